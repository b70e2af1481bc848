//! Frames and directories of the C library against those of `blosc2-format`, both ways.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::path::Path;
use std::ptr::{self, NonNull};

use blosc2_format::chunk::{Params, Special, SplitMode};
use blosc2_format::frame::{self, Frame, Metalayer};
use blosc2_format::{Limits, Options, Report, directory};
use blosc2_sys as sys;

use crate::IDENTICAL;
use crate::common::{KINDS, Kind, Rng, assert_same, data, repeats};

/// A super-chunk that the C library keeps in a file or a directory.
pub(crate) struct CSchunk(NonNull<sys::blosc2_schunk>);

fn c_path(path: &Path) -> CString {
    CString::new(path.to_str().unwrap()).unwrap()
}

fn cparams(params: &Params) -> sys::blosc2_cparams {
    sys::blosc2_cparams {
        compcode: params.codec,
        compcode_meta: params.codec_meta,
        clevel: params.level,
        typesize: params.typesize as i32,
        blocksize: params.blocksize.unwrap_or(0) as i32,
        splitmode: match params.split {
            SplitMode::Always => 1,
            SplitMode::Never => 2,
            SplitMode::Auto => 3,
            SplitMode::ForwardCompat => 4,
        },
        filters: params.filters,
        filters_meta: params.filters_meta,
        nthreads: 1,
        ..sys::blosc2_cparams_defaults()
    }
}

impl CSchunk {
    fn new(path: &Path, contiguous: bool, params: &Params) -> Self {
        blosc2::Codec::Zstd.is_available(); // starts the library
        let path = c_path(path);
        let (mut cparams, mut dparams) = (cparams(params), sys::blosc2_dparams_defaults());
        let mut storage = sys::blosc2_storage {
            contiguous,
            urlpath: path.as_ptr().cast_mut(),
            cparams: &mut cparams,
            dparams: &mut dparams,
            io: ptr::null_mut(),
        };
        // SAFETY: what the settings point to lives through the call, which copies it.
        Self(NonNull::new(unsafe { sys::blosc2_schunk_new(&mut storage) }).unwrap())
    }

    /// Opens the file or directory at `path`; `None` if C refuses it.
    pub(crate) fn open(path: &Path) -> Option<Self> {
        blosc2::Codec::Zstd.is_available();
        // SAFETY: the path ends in a NUL byte.
        NonNull::new(unsafe { sys::blosc2_schunk_open(c_path(path).as_ptr()) }).map(Self)
    }

    fn fields(&self) -> &sys::blosc2_schunk {
        // SAFETY: the super-chunk is live.
        unsafe { self.0.as_ref() }
    }

    fn append(&self, data: &[u8]) {
        // SAFETY: `data` has the given length.
        let count = unsafe {
            let from = data.as_ptr().cast();
            sys::blosc2_schunk_append_buffer(self.0.as_ptr(), from, data.len() as i32)
        };
        assert_eq!(count, self.fields().nchunks, "append");
    }

    pub(crate) fn append_chunk(&self, chunk: &[u8]) {
        // SAFETY: the chunk is whole, and C copies it.
        let count = unsafe {
            sys::blosc2_schunk_append_chunk(self.0.as_ptr(), chunk.as_ptr().cast_mut(), true)
        };
        assert_eq!(count, self.fields().nchunks, "append a chunk");
    }

    pub(crate) fn insert_chunk(&self, number: i64, chunk: &[u8]) {
        // SAFETY: the chunk is whole, and C copies it.
        let count = unsafe {
            let chunk = chunk.as_ptr().cast_mut();
            sys::blosc2_schunk_insert_chunk(self.0.as_ptr(), number, chunk, true)
        };
        assert_eq!(count, self.fields().nchunks, "insert a chunk");
    }

    pub(crate) fn update_chunk(&self, number: i64, chunk: &[u8]) {
        // SAFETY: the chunk is whole, and C copies it.
        let count = unsafe {
            let chunk = chunk.as_ptr().cast_mut();
            sys::blosc2_schunk_update_chunk(self.0.as_ptr(), number, chunk, true)
        };
        assert_eq!(count, self.fields().nchunks, "update a chunk");
    }

    pub(crate) fn delete_chunk(&self, number: i64) {
        // SAFETY: the super-chunk is live.
        let count = unsafe { sys::blosc2_schunk_delete_chunk(self.0.as_ptr(), number) };
        assert_eq!(count, self.fields().nchunks, "delete a chunk");
    }

    fn fill(&self, special: i32, items: i64, chunksize: i32) {
        // SAFETY: the super-chunk is live.
        let count =
            unsafe { sys::blosc2_schunk_fill_special(self.0.as_ptr(), items, special, chunksize) };
        assert_eq!(count, self.fields().nchunks, "fill");
    }

    fn add_metalayer(&self, name: &str, content: &[u8]) {
        let name = CString::new(name).unwrap();
        // SAFETY: C copies name and content.
        let number = unsafe {
            let content_len = content.len() as i32;
            let content = content.as_ptr().cast_mut();
            sys::blosc2_meta_add(self.0.as_ptr(), name.as_ptr(), content, content_len)
        };
        assert!(number >= 0, "metalayer {name:?}");
    }

    fn add_vlmetalayer(&self, name: &str, content: &[u8]) {
        let name = CString::new(name).unwrap();
        // SAFETY: C compresses the content and copies the name.
        let number = unsafe {
            let (from, len) = (content.as_ptr().cast_mut(), content.len() as i32);
            sys::blosc2_vlmeta_add(self.0.as_ptr(), name.as_ptr(), from, len, ptr::null_mut())
        };
        assert!(number >= 0, "metalayer {name:?}");
    }

    fn metalayers(&self) -> Vec<(String, Vec<u8>)> {
        let fields = self.fields();
        let layers = &fields.metalayers[..usize::from(fields.nmetalayers)];
        let pair = |layer: &*mut sys::blosc2_metalayer| {
            // SAFETY: each of the `nmetalayers` entries has a name and `content_len` bytes of content.
            unsafe {
                let layer = &**layer;
                let name = CStr::from_ptr(layer.name).to_str().unwrap().to_owned();
                let content = match layer.content_len {
                    0 => Vec::new(),
                    len => std::slice::from_raw_parts(layer.content, len as usize).to_vec(),
                };
                (name, content)
            }
        };
        layers.iter().map(pair).collect()
    }

    fn vlmetalayers(&self) -> Vec<(String, Vec<u8>)> {
        let fields = self.fields();
        let layers = &fields.vlmetalayers[..fields.nvlmetalayers as usize];
        let pair = |layer: &*mut sys::blosc2_metalayer| {
            // SAFETY: all `nvlmetalayers` entries are there; C allocates a copy of the content, which is freed.
            unsafe {
                let name = CStr::from_ptr((**layer).name);
                let (mut content, mut len) = (ptr::null_mut(), 0);
                let schunk = self.0.as_ptr();
                let code = sys::blosc2_vlmeta_get(schunk, name.as_ptr(), &mut content, &mut len);
                assert!(code >= 0, "{name:?}: {code}");
                let copy = match len {
                    0 => Vec::new(),
                    len => std::slice::from_raw_parts(content, len as usize).to_vec(),
                };
                libc::free(content.cast());
                (name.to_str().unwrap().to_owned(), copy)
            }
        };
        layers.iter().map(pair).collect()
    }

    /// Decompresses a chunk of `len` bytes.
    pub(crate) fn chunk(&self, number: i64, len: usize) -> Result<Vec<u8>, i32> {
        let mut bytes = vec![0; len];
        // SAFETY: `bytes` has room for `len` bytes.
        let found = unsafe {
            let to = bytes.as_mut_ptr().cast();
            sys::blosc2_schunk_decompress_chunk(self.0.as_ptr(), number, to, len as i32)
        };
        if found == len as i32 { Ok(bytes) } else { Err(found) }
    }
}

impl Drop for CSchunk {
    fn drop(&mut self) {
        // SAFETY: the super-chunk is live, and freed once.
        unsafe { sys::blosc2_schunk_free(self.0.as_ptr()) };
    }
}

/// Compresses data, or variable-length blocks, to a chunk with the C library.
fn c_chunk(params: &Params, data: &[u8]) -> Vec<u8> {
    blosc2::Codec::Zstd.is_available();
    let mut chunk = vec![0; data.len() + 32];
    // SAFETY: the context is created and freed here, and the buffers have the given lengths.
    unsafe {
        let context = sys::blosc2_create_cctx(cparams(params));
        let (from, to) = (data.as_ptr().cast(), chunk.as_mut_ptr().cast());
        let len = data.len() as i32;
        let cbytes = sys::blosc2_compress_ctx(context, from, len, to, len + 32);
        sys::blosc2_free_ctx(context);
        assert!(cbytes > 0, "{cbytes}");
        chunk.truncate(cbytes as usize);
    }
    chunk
}

fn c_blocks(params: &Params, blocks: &[&[u8]]) -> Vec<u8> {
    blosc2::Codec::Zstd.is_available();
    let len: usize = blocks.iter().map(|block| block.len()).sum();
    let mut chunk = vec![0; len + 32 + 8 * blocks.len() + 4 + 32768];
    let sources: Vec<_> = blocks.iter().map(|block| block.as_ptr().cast()).collect();
    let sizes: Vec<_> = blocks.iter().map(|block| block.len() as i32).collect();
    // SAFETY: as above; there are as many sources and sizes as passed.
    unsafe {
        let context = sys::blosc2_create_cctx(cparams(params));
        let to = chunk.as_mut_ptr().cast();
        let (sources, sizes) = (sources.as_ptr(), sizes.as_ptr());
        let count = blocks.len() as i32;
        let cbytes =
            sys::blosc2_vlcompress_ctx(context, sources, sizes, count, to, chunk.len() as i32);
        sys::blosc2_free_ctx(context);
        assert!(cbytes > 0, "{cbytes}");
        chunk.truncate(cbytes as usize);
    }
    chunk
}

/// The content of a frame.
#[derive(Debug, PartialEq, Eq)]
struct Content {
    chunks: Vec<Vec<u8>>,
    metalayers: Vec<(String, Vec<u8>)>,
    vlmetalayers: Vec<(String, Vec<u8>)>,
}

/// Reads the frame at `path` with this crate.
fn read(path: &Path) -> Content {
    let limits = Limits::default();
    let mut frame = if path.is_dir() {
        Frame::open_directory(directory::Disk(path.into()), &limits)
    } else {
        Frame::open(File::open(path).unwrap(), &limits)
    }
    .unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let nchunks = frame.nchunks();
    let chunk = |number| {
        let mut data = Vec::new();
        frame.decode_chunk(number, &mut data).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        assert_eq!(frame.chunk_nbytes(number).unwrap(), data.len() as u64);
        data
    };
    let chunks: Vec<_> = (0..nchunks).map(chunk).collect();
    assert_eq!(frame.header().nbytes, chunks.iter().map(|chunk| chunk.len() as u64).sum::<u64>());
    let metalayers = frame.metalayers().iter();
    let metalayers = metalayers.map(|layer| (layer.name.clone(), layer.content.clone())).collect();
    let names: Vec<String> = frame.vlmetalayers().map(str::to_owned).collect();
    let vlmetalayer = |name: String| {
        let content = frame.vlmetalayer(&name).unwrap().unwrap();
        (name, content)
    };
    Content { chunks, metalayers, vlmetalayers: names.into_iter().map(vlmetalayer).collect() }
}

/// Reads the frame at `path` with C. The chunks have the given lengths.
fn c_read(path: &Path, lengths: &[usize]) -> Content {
    let schunk = CSchunk::open(path).unwrap_or_else(|| panic!("C refuses {path:?}"));
    assert_eq!(schunk.fields().nchunks, lengths.len() as i64, "{path:?}");
    let chunk = |(number, &len): (i64, _)| {
        schunk.chunk(number, len).unwrap_or_else(|code| panic!("{path:?}, {number}: {code}"))
    };
    Content {
        chunks: (0..).zip(lengths).map(chunk).collect(),
        metalayers: schunk.metalayers(),
        vlmetalayers: schunk.vlmetalayers(),
    }
}

fn check(path: &Path) -> Report {
    let options = Options { content: true, map: true, ..Options::default() };
    let report = if path.is_dir() {
        directory::check(&directory::Disk(path.into()), &options).unwrap()
    } else {
        frame::check(&File::open(path).unwrap(), &options).unwrap()
    };
    assert_mapped(path, &report);
    report
}

/// Asserts that each byte of each file is in exactly one region of the map.
fn assert_mapped(path: &Path, report: &Report) {
    let mut ends: BTreeMap<Option<String>, u64> = BTreeMap::new();
    let mut regions = report.regions.clone();
    regions.sort_by_key(|region| region.offset);
    for region in &regions {
        let end = ends.entry(region.file.as_deref().map(str::to_owned)).or_default();
        assert_eq!(region.offset, *end, "{path:?}: {region:?}");
        *end += region.len;
    }
    for (file, end) in ends {
        let file = file.map_or(path.to_owned(), |name| path.join(name));
        assert_eq!(end, fs::metadata(&file).unwrap().len(), "{file:?}");
    }
}

/// Asserts that there are no findings.
fn assert_clean(path: &Path) {
    let report = check(path);
    assert!(report.findings.is_empty(), "{path:?}: {:#?}", report.findings);
}

fn assert_good(path: &Path) {
    let report = check(path);
    assert!(report.is_good(), "{path:?}: {:#?}", report.findings);
}

/// The files of a directory, or the file, by name.
fn files(path: &Path) -> BTreeMap<String, Vec<u8>> {
    if path.is_file() {
        return [(String::new(), fs::read(path).unwrap())].into();
    }
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap());
    let pair = |entry: fs::DirEntry| {
        (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())
    };
    entries.map(pair).collect()
}

fn assert_equal_files(c: &Path, rust: &Path, what: &str) {
    let (c, rust) = (files(c), files(rust));
    assert!(c.keys().eq(rust.keys()), "{what}: {:?} and {:?}", c.keys(), rust.keys());
    for (name, bytes) in &c {
        if bytes != &rust[name] {
            let at = bytes.iter().zip(&rust[name]).position(|(c, rust)| c != rust);
            let lens = (bytes.len(), rust[name].len());
            panic!("{what}: {name:?} differs at {at:?}, lengths {lens:?}");
        }
    }
}

/// What is put into a frame.
#[derive(Debug, Clone)]
enum Step {
    Data(Vec<u8>),
    Chunk(Vec<u8>),
    Blocks(Vec<Vec<u8>>),
    Fill(Special, u64, u32),
}

#[derive(Debug, Clone, Default)]
struct Plan {
    params: Params,
    metalayers: Vec<(String, Vec<u8>)>,
    steps: Vec<Step>,
    vlmetalayers: Vec<(String, Vec<u8>)>,
}

fn slices(blocks: &[Vec<u8>]) -> Vec<&[u8]> {
    blocks.iter().map(Vec::as_slice).collect()
}

impl Plan {
    fn c(&self, path: &Path, contiguous: bool) {
        let schunk = CSchunk::new(path, contiguous, &self.params);
        for (name, content) in &self.metalayers {
            schunk.add_metalayer(name, content);
        }
        for step in &self.steps {
            match step {
                Step::Data(data) => schunk.append(data),
                Step::Chunk(chunk) => schunk.append_chunk(chunk),
                Step::Blocks(blocks) => {
                    schunk.append_chunk(&c_blocks(&self.params, &slices(blocks)));
                }
                Step::Fill(special, nbytes, chunksize) => {
                    let items = *nbytes / u64::from(self.params.typesize);
                    let special = match special {
                        Special::Zeros => 1,
                        Special::Nan => 2,
                        Special::Value | Special::Uninit => 4,
                    };
                    schunk.fill(special, items as i64, *chunksize as i32);
                }
            }
        }
        for (name, content) in &self.vlmetalayers {
            schunk.add_vlmetalayer(name, content);
        }
    }

    fn rust(&self, path: &Path, contiguous: bool) -> Result<(), blosc2_format::Error> {
        let layer = |(name, content): &(String, Vec<u8>)| Metalayer {
            name: name.clone(),
            content: content.clone(),
        };
        let metalayers: Vec<_> = self.metalayers.iter().map(layer).collect();
        macro_rules! write {
            ($writer:expr) => {{
                let mut writer = $writer?;
                for step in &self.steps {
                    match step {
                        Step::Data(data) => writer.push(data)?,
                        Step::Chunk(chunk) => writer.push_chunk(chunk)?,
                        Step::Blocks(blocks) => writer.push_blocks(&slices(blocks))?,
                        Step::Fill(special, nbytes, chunksize) => {
                            writer.fill(*special, *nbytes, *chunksize)?;
                        }
                    }
                }
                for (name, content) in &self.vlmetalayers {
                    writer.add_vlmetalayer(name, content)?;
                }
                writer.finish()?;
            }};
        }
        if contiguous {
            let file = File::create_new(path).unwrap();
            write!(frame::Writer::new(file, self.params, &metalayers));
        } else {
            let folder = directory::Disk(path.into());
            write!(frame::Writer::new_directory(folder, self.params, &metalayers));
        }
        Ok(())
    }

    /// The data of the chunks after the steps.
    fn data(&self) -> Vec<Vec<u8>> {
        let data = |step: &Step| match step {
            Step::Data(data) => data.clone(),
            Step::Blocks(blocks) => blocks.concat(),
            Step::Chunk(_) | Step::Fill(..) => unreachable!("the plan says no data"),
        };
        self.steps.iter().map(data).collect()
    }

    fn content(&self) -> Content {
        Content {
            chunks: self.data(),
            metalayers: self.metalayers.clone(),
            vlmetalayers: self.vlmetalayers.clone(),
        }
    }

    /// Asserts that both write the same bytes.
    fn assert_identical(&self, folder: &Path, what: &str) {
        for contiguous in [true, false] {
            let kind = if contiguous { "file" } else { "folder" };
            let (c, rust) = (folder.join(format!("c-{kind}")), folder.join(format!("r-{kind}")));
            self.c(&c, contiguous);
            self.rust(&rust, contiguous).unwrap_or_else(|error| panic!("{what}, {kind}: {error}"));
            assert_equal_files(&c, &rust, &format!("{what}, {kind}"));
            assert_clean(&rust);
            for path in [c, rust] {
                if contiguous {
                    fs::remove_file(path).unwrap();
                } else {
                    fs::remove_dir_all(path).unwrap();
                }
            }
        }
    }
}

fn layers(count: usize, rng: &mut Rng) -> Vec<(String, Vec<u8>)> {
    let layer = |number| {
        let name = format!("{number}{}", "n".repeat(rng.below(31) as usize));
        let len = *rng.pick(&[0, 1, 7, 31, 32, 100, 300, 5000]);
        (name, data(*rng.pick(&KINDS), len, rng.next()))
    };
    (0..count).map(layer).collect()
}

fn params(codec: u8, typesize: u32) -> Params {
    Params { codec, typesize, ..Params::default() }
}

#[test]
fn frames_are_those_of_c_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let mut rng = Rng(3);
    for &codec in IDENTICAL {
        for typesize in [1, 2, 4, 8, 12, 255, 256, 300] {
            for level in [0, 1, 5, 9] {
                let params = Params { level, ..params(codec, typesize) };
                for count in [0, 1, 2, 5] {
                    let len = (typesize * (1 + rng.below(3000) as u32)) as usize;
                    let mut steps: Vec<_> = (0..count)
                        .map(|_| Step::Data(data(*rng.pick(&KINDS), len, rng.next())))
                        .collect();
                    if let (Some(Step::Data(last)), 0) = (steps.last_mut(), rng.below(2)) {
                        last.truncate(typesize as usize * (1 + rng.below(5) as usize).min(len));
                    }
                    let plan = Plan {
                        params,
                        metalayers: layers(rng.below(4) as usize, &mut rng),
                        steps,
                        vlmetalayers: layers(rng.below(4) as usize, &mut rng),
                    };
                    let what =
                        format!("codec {codec}, typesize {typesize}, level {level}, {count}");
                    plan.assert_identical(folder.path(), &what);
                }
            }
        }
    }
}

/// Chunks of the same size without data, one after the other, between others.
#[test]
fn special_chunks_are_kept_as_c_keeps_them() {
    let folder = tempfile::tempdir().unwrap();
    for typesize in [4usize, 8] {
        let params = params(IDENTICAL[IDENTICAL.len() - 1], typesize as u32);
        let value = |special, value: &[u8]| {
            Step::Chunk(blosc2_format::chunk::special(&params, special, 4000, value).unwrap())
        };
        let ramp = Step::Data(data(Kind::Ramp, 4000, 1));
        let nan = value(Special::Nan, &[]);
        let repeated = value(Special::Value, &[7; 8][..typesize]);
        let uninit = value(Special::Uninit, &[]);
        let zeros = value(Special::Zeros, &[]);
        let found_zeros = Step::Data(vec![0; 4000]);
        let steps = [nan, ramp.clone(), repeated, zeros, uninit, found_zeros, ramp];
        for start in 0..steps.len() {
            for end in start + 1..=steps.len() {
                let plan = Plan { params, steps: steps[start..end].to_vec(), ..Plan::default() };
                plan.assert_identical(folder.path(), &format!("{start}..{end}"));
            }
        }
        for special in [Special::Zeros, Special::Nan, Special::Uninit] {
            for (nbytes, blocksize) in [(0, None), (8, None), (4000, None), (100_008, Some(1000))] {
                let steps = vec![Step::Fill(special, nbytes, 4000)];
                let plan =
                    Plan { params: Params { blocksize, ..params }, steps, ..Plan::default() };
                plan.assert_identical(folder.path(), &format!("{nbytes} bytes of {special:?}"));
            }
        }
    }
}

#[test]
fn sizes_vary_as_in_c() {
    let folder = tempfile::tempdir().unwrap();
    let mut rng = Rng(8);
    for codec in [0, 1] {
        let params = params(codec, 4);
        for lengths in [&[100, 200][..], &[200, 100, 200], &[200, 100, 50], &[4, 8, 12, 8, 4]] {
            let chunk = |&len| Step::Data(data(Kind::Ramp, len, 1));
            let steps: Vec<_> = lengths.iter().map(chunk).collect();
            let plan = Plan { params, steps, ..Plan::default() };
            plan.assert_identical(folder.path(), &format!("codec {codec}, {lengths:?}"));
        }
        for round in 0..20 {
            let mut chunk = || {
                let count = 1 + rng.below(6);
                let blocks =
                    (0..count).map(|_| data(*rng.pick(&KINDS), 1 + rng.below(700) as usize, 5));
                Step::Blocks(blocks.collect())
            };
            let mut steps = vec![chunk()];
            if round % 2 == 0 {
                steps.resize(1 + round / 2, steps[0].clone());
            } else {
                steps.extend((0..round / 2).map(|_| chunk()));
            }
            let plan = Plan { params, steps, ..Plan::default() };
            plan.assert_identical(folder.path(), &format!("codec {codec}, round {round}"));
        }
    }
}

/// Frames that the library writes with every codec are read here.
#[test]
fn what_c_writes_is_read_and_found_right() {
    let folder = tempfile::tempdir().unwrap();
    for seed in 0..repeats(150) as u64 {
        let mut rng = Rng(seed);
        let plan = random_plan(&mut rng, &[0, 1, 2, 4, 5]);
        let contiguous = rng.below(2) == 0;
        let path = folder.path().join(seed.to_string());
        plan.c(&path, contiguous);
        assert_eq!(read(&path), plan.content(), "seed {seed}: {:?}", plan.params);
        assert_clean(&path);
    }
}

/// Frames of this crate, which C opens.
#[test]
fn what_is_written_is_read_by_c() {
    let folder = tempfile::tempdir().unwrap();
    for seed in 1000..1000 + repeats(300) as u64 {
        let mut rng = Rng(seed);
        let plan = random_plan(&mut rng, &[0, 1, 4, 5]);
        let contiguous = rng.below(2) == 0;
        let path = folder.path().join(seed.to_string());
        plan.rust(&path, contiguous).unwrap();
        let content = plan.content();
        let lengths: Vec<_> = content.chunks.iter().map(Vec::len).collect();
        assert_eq!(c_read(&path, &lengths), content, "seed {seed}: {:?}", plan.params);
        assert_eq!(read(&path), content, "seed {seed}: {:?}", plan.params);
        assert_clean(&path);
    }
}

/// Chunks of one value in a frame whose chunks have different sizes: C cannot read what it writes
/// itself, as special offsets do not say how many bytes they stand for.
#[test]
fn zeros_among_chunks_of_any_size_are_read_by_c() {
    let folder = tempfile::tempdir().unwrap();
    for (number, lengths) in [[400, 800, 400], [800, 402, 800], [400, 400, 800]].iter().enumerate()
    {
        for typesize in [1, 4, 8] {
            let chunk = |(at, len): (usize, &usize)| match at {
                1 => Step::Data(data(Kind::Ramp, *len, 1)),
                _ => Step::Data(vec![0; *len]),
            };
            let steps: Vec<_> = lengths.iter().enumerate().map(chunk).collect();
            let plan = Plan { params: params(1, typesize), steps, ..Plan::default() };
            for contiguous in [true, false] {
                let path = folder.path().join(format!("{number} {typesize} {contiguous}"));
                plan.rust(&path, contiguous).unwrap();
                assert_eq!(c_read(&path, lengths), plan.content());
                assert_eq!(read(&path), plan.content());
                assert_clean(&path);
            }
        }
    }
}

/// The library writes these and cannot read them.
#[test]
fn special_offsets_that_do_not_say_how_long_chunks_are_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let ramp = |len| Step::Data(data(Kind::Ramp, len, 1));
    let cases = [
        ("frame.chunk.unknown_size", vec![ramp(800), ramp(400), Step::Data(vec![0; 400])]),
        ("frame.chunk.nbytes", vec![Step::Data(vec![0; 402])]),
    ];
    for (id, steps) in cases {
        for contiguous in [true, false] {
            let path = folder.path().join(format!("{id} {contiguous}"));
            Plan { params: params(1, 4), steps: steps.clone(), ..Plan::default() }
                .c(&path, contiguous);
            let found: Vec<_> = check(&path).findings.iter().map(|each| each.rule.id).collect();
            assert_eq!(found, [id]);
        }
    }
}

/// Frames that were changed after they were written: with gaps and with unordered offsets.
#[test]
fn changed_frames_are_good() {
    let folder = tempfile::tempdir().unwrap();
    for seed in 0..60 {
        let mut rng = Rng(seed);
        let contiguous = seed % 2 == 0;
        let path = folder.path().join(seed.to_string());
        let params = params(*rng.pick(&[0, 1, 5]), 4);
        let schunk = CSchunk::new(&path, contiguous, &params);
        let mut expected: Vec<Vec<u8>> = Vec::new();
        for _ in 0..30 {
            let new = data(*rng.pick(&KINDS), 1200, rng.next());
            let chunk = c_chunk(&params, &new);
            let count = expected.len() as u64;
            let number = rng.below(count.max(1)) as usize;
            match rng.below(4) {
                _ if count == 0 => {
                    schunk.append_chunk(&chunk);
                    expected.push(new);
                }
                0 => {
                    schunk.append_chunk(&chunk);
                    expected.push(new);
                }
                1 => {
                    schunk.insert_chunk(number as i64, &chunk);
                    expected.insert(number, new);
                }
                2 => {
                    schunk.update_chunk(number as i64, &chunk);
                    expected[number] = new;
                }
                _ => {
                    schunk.delete_chunk(number as i64);
                    expected.remove(number);
                }
            }
            if rng.below(4) == 0 {
                assert_eq!(read(&path).chunks, expected, "seed {seed}");
                assert_good(&path);
            }
        }
        assert_eq!(read(&path).chunks, expected, "seed {seed}");
        assert_good(&path);
    }
}

/// A frame inside a larger file, with other bytes around it.
#[test]
fn a_frame_may_be_anywhere_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let (path, whole) = (folder.path().join("frame"), folder.path().join("whole"));
    let steps = vec![Step::Data(data(Kind::Ramp, 4000, 1)); 3];
    let plan = Plan { params: params(1, 4), steps, ..Plan::default() };
    plan.rust(&path, true).unwrap();
    let frame = fs::read(&path).unwrap();
    let bytes = [&[1; 1000][..], &frame, &[2; 500]].concat();
    fs::write(&whole, &bytes).unwrap();

    let within = blosc2_format::read_at::AtOffset::new(File::open(&whole).unwrap(), 1000);
    let report = frame::check(&within, &Options::default()).unwrap();
    let found: Vec<_> = report.findings.iter().map(|each| (each.rule.id, each.offset)).collect();
    assert_eq!(found, [("frame.trailing", frame.len() as u64)]);
    let mut frame = Frame::open(within, &Limits::default()).unwrap();
    let mut data = Vec::new();
    for (number, expected) in plan.data().iter().enumerate() {
        frame.decode_chunk(number as u64, &mut data).unwrap();
        assert_same(&data, expected, "at an offset");
    }

    // The same bytes are written there.
    let mut out = std::io::Cursor::new(vec![1; 1000]);
    out.set_position(1000);
    let mut writer = frame::Writer::new(out, plan.params, &[]).unwrap();
    for chunk in plan.data() {
        writer.push(&chunk).unwrap();
    }
    assert_eq!(writer.finish().unwrap().into_inner(), bytes[..bytes.len() - 500]);
}

fn random_plan(rng: &mut Rng, codecs: &[u8]) -> Plan {
    let typesize = *rng.pick(&[1, 2, 3, 4, 7, 8, 12, 16, 17, 100, 255, 256, 300]);
    let mut filters = [0; 6];
    for slot in 0..rng.below(4) as usize {
        filters[slot * 2] = *rng.pick(&[1, 2, 3]);
    }
    // Delta twice cannot be undone.
    if filters.iter().filter(|&&filter| filter == 3).count() > 1 {
        filters = [0, 0, 0, 0, 3, 1];
    }
    let params = Params {
        codec: *rng.pick(codecs),
        codec_meta: 0,
        level: rng.below(10) as u8,
        typesize,
        blocksize: (rng.below(3) == 0).then(|| typesize * (8 + rng.below(200) as u32)),
        filters,
        filters_meta: [0; 6],
        split: *rng.pick(&[SplitMode::Always, SplitMode::Never, SplitMode::ForwardCompat]),
    };
    let len = (typesize * (1 + rng.below(2000) as u32)) as usize;
    let count = rng.below(6) as usize;
    let steps = match rng.below(6) {
        // Variable-length blocks.
        0 => {
            let mut block = || data(*rng.pick(&KINDS), 1 + rng.below(900) as usize, rng.next());
            let blocks: Vec<Vec<_>> =
                (0..count).map(|chunk| (0..=chunk).map(|_| block()).collect()).collect();
            blocks.into_iter().map(Step::Blocks).collect()
        }
        // Variable-length chunks, which are not all zeros.
        1 => {
            let kinds = [Kind::Random, Kind::Ramp];
            let mut len = || (typesize * (1 + rng.below(500) as u32)) as usize;
            let lens: Vec<_> = (0..count).map(|_| len()).collect();
            lens.iter().map(|&len| Step::Data(data(*rng.pick(&kinds), len, rng.next()))).collect()
        }
        _ => {
            let mut chunk = |len| Step::Data(data(*rng.pick(&KINDS), len, rng.next()));
            let mut steps: Vec<_> = (0..count).map(|_| chunk(len)).collect();
            if count > 0 && count.is_multiple_of(2) {
                steps.push(chunk(typesize as usize));
            }
            steps
        }
    };
    let metalayers = layers(rng.below(5) as usize, rng);
    Plan { params, metalayers, steps, vlmetalayers: layers(rng.below(5) as usize, rng) }
}
