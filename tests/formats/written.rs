//! C and Python read what `blosc2-format` writes, with all kinds of parameters.

use std::fs;
use std::path::{Path, PathBuf};

use blosc2_format::b2nd::{Geometry, Meta, NAME};
use blosc2_format::chunk::{Chunk, Encoder, Params, Special, SplitMode, special};
use blosc2_format::frame::{self, Metalayer};
use blosc2_format::{Limits, Severity, directory};
use serde_json::{Value, json};

use crate::common::{KINDS, Kind, Rng, assert_same, data, name, repeats, run_python};
use crate::content::Content;
use crate::{c, rust};

/// Lossless filters, and lossy ones.
const LOSSLESS: [u8; 5] = [0, 1, 2, DELTA, BYTEDELTA];
const DELTA: u8 = 3;
const BYTEDELTA: u8 = 35;
const TRUNC_PREC: u8 = 4;
const INT_TRUNC: u8 = 36;

/// Random parameters, and whether they are lossless.
fn params(rng: &mut Rng) -> (Params, bool) {
    let typesize = match rng.below(10) {
        0..=4 => *rng.pick(&[1, 2, 4, 8, 16]),
        5 => *rng.pick(&[254, 255, 256, 257]),
        _ => 1 + rng.below(300) as u32,
    };
    let mut params = Params {
        codec: *rng.pick(&[0, 1, 4, 5]),
        level: rng.below(10) as u8,
        typesize,
        split: *rng.pick(&[
            SplitMode::Always,
            SplitMode::Never,
            SplitMode::Auto,
            SplitMode::ForwardCompat,
        ]),
        ..Params::default()
    };
    if rng.below(2) == 0 {
        let size = *rng.pick(&[16, 128, 1000, 4096, 5000, 65_536]);
        params.blocksize = Some(size.max(typesize));
    }
    params.filters = [0; 6];
    for slot in 0..6 {
        if rng.below(2) == 0 {
            params.filters[slot] = *rng.pick(&LOSSLESS);
        }
        // Delta is undone with the final first block, so it has to be the first filter.
        if params.filters[slot] == DELTA && params.filters[..slot] != [0; 6][..slot] {
            params.filters[slot] = 0;
        }
        let meta = 1 + rng.below(40) as u8;
        match params.filters[slot] {
            1 if meta < 20 => params.filters_meta[slot] = meta,
            // Python does not accept items of more than 127 bytes for this parameter, which is then the
            // size of the items.
            BYTEDELTA if meta < 20 || typesize > 127 => params.filters_meta[slot] = meta,
            _ => {}
        }
    }
    let lossy = rng.below(6) == 0;
    let slot = rng.below(6) as usize;
    match typesize {
        4 | 8 if lossy && rng.below(2) == 0 => {
            (params.filters[slot], params.filters_meta[slot]) =
                (TRUNC_PREC, 1 + rng.below(20) as u8);
        }
        1 | 2 | 4 | 8 if lossy => {
            (params.filters[slot], params.filters_meta[slot]) = (INT_TRUNC, 1 + rng.below(6) as u8);
        }
        _ => return (params, true),
    }
    (params, false)
}

/// A length in bytes that is a multiple of the typesize.
fn length(typesize: u32, rng: &mut Rng) -> usize {
    let bytes = match rng.below(6) {
        0 => rng.below(40),
        1 => rng.below(3000),
        2 => 70_000 + rng.below(50_000),
        _ => rng.below(20_000),
    };
    let typesize = typesize as usize;
    (bytes as usize).div_ceil(typesize) * typesize
}

fn decode(chunk: &[u8], typesize: u32) -> Vec<u8> {
    let chunk = Chunk::new(chunk, &Limits::default()).unwrap();
    chunk.with_typesize(typesize as usize).decode().unwrap()
}

#[test]
fn chunks_are_read_by_c() {
    for seed in 0..repeats(2000) as u64 {
        let rng = &mut Rng(seed);
        let (mut params, lossless) = params(rng);
        let typesize = params.typesize;
        for (filter, meta) in params.filters.iter().zip(&mut params.filters_meta) {
            // The meaning of 0 depends on the super-chunk.
            if *filter == BYTEDELTA && *meta == 0 {
                *meta = typesize.min(255) as u8;
            }
        }
        let kind = *rng.pick(&KINDS);
        let what = format!("case {seed}: {kind:?}, {params:?}");
        let source = data(kind, length(typesize, rng), seed);
        let mut encoder = Encoder::new(params).unwrap();
        let mut blocks: Vec<&[u8]> = source.chunks(1 + rng.below(9000) as usize).collect();
        let chunk = if seed % 7 == 0 && !source.is_empty() {
            // Different lengths.
            let (first, last) = blocks[0].split_at(blocks[0].len() / 3);
            blocks.splice(0..1, [first, last]);
            blocks.retain(|block| !block.is_empty());
            encoder.encode_blocks(&blocks)
        } else {
            encoder.encode(&source)
        };
        let chunk = chunk.unwrap_or_else(|error| panic!("{what}: {error}"));
        let found = decode(&chunk, typesize);
        if lossless {
            assert_same(&found, &source, &what);
        }
        match blosc2::decompress::<u8>(&chunk) {
            Ok(in_c) => assert_same(&in_c, &found, &what),
            Err(error) => panic!("{what}: {error}"),
        }
    }
}

#[test]
fn chunks_of_one_value_are_read_by_c() {
    for seed in 0..repeats(300) as u64 {
        let rng = &mut Rng(seed);
        let (params, _) = params(rng);
        let typesize = params.typesize;
        let kind = *rng.pick(&[Special::Zeros, Special::Nan, Special::Value, Special::Uninit]);
        if kind == Special::Nan && ![4, 8].contains(&typesize) {
            continue;
        }
        let value = data(Kind::Random, typesize as usize, seed);
        let len = length(typesize, rng).max(typesize as usize);
        let chunk = special(&params, kind, len, &value).unwrap();
        let what = format!("case {seed}: {kind:?}, {len} bytes, {params:?}");
        let found = decode(&chunk, typesize);
        match kind {
            Special::Value => assert_same(&found, &value.repeat(len / value.len()), &what),
            Special::Nan if typesize == 4 => {
                let floats = found.chunks_exact(4).map(|item| item.try_into().unwrap());
                assert!(floats.map(f32::from_le_bytes).all(f32::is_nan), "{what}");
            }
            Special::Nan => {
                let floats = found.chunks_exact(8).map(|item| item.try_into().unwrap());
                assert!(floats.map(f64::from_le_bytes).all(f64::is_nan), "{what}");
            }
            _ => assert_same(&found, &vec![0; len], &what),
        }
        let in_c = blosc2::decompress::<u8>(&chunk);
        let in_c = in_c.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_same(&in_c, &found, &what);
    }
}

/// A file that was written, and what is in it.
struct Written {
    path: PathBuf,
    what: String,
    params: Params,
    /// Whether its values are undefined.
    undefined: bool,
    content: Content,
    /// Of an array.
    shape: Option<Vec<i64>>,
    dtype: String,
}

/// The two layouts of a super-chunk.
enum Writer {
    Frame(frame::Writer<fs::File>),
    Directory(directory::Writer<directory::Disk>),
}

impl Writer {
    fn create(path: &Path, contiguous: bool, params: Params, meta: &[Metalayer]) -> Self {
        let writer = if contiguous {
            let file = fs::File::create(path).unwrap();
            frame::Writer::new(file, params, meta).map(Self::Frame)
        } else {
            let folder = directory::Disk(path.to_owned());
            directory::Writer::new(folder, params, meta).map(Self::Directory)
        };
        writer.unwrap_or_else(|error| panic!("{error}: {params:?}"))
    }

    fn push(&mut self, data: &[u8]) {
        match self {
            Self::Frame(writer) => writer.push(data).unwrap(),
            Self::Directory(writer) => writer.push(data).unwrap(),
        }
    }

    fn push_blocks(&mut self, blocks: &[&[u8]]) {
        match self {
            Self::Frame(writer) => writer.push_blocks(blocks).unwrap(),
            Self::Directory(writer) => writer.push_blocks(blocks).unwrap(),
        }
    }

    fn push_chunk(&mut self, chunk: &[u8]) {
        match self {
            Self::Frame(writer) => writer.push_chunk(chunk).unwrap(),
            Self::Directory(writer) => writer.push_chunk(chunk).unwrap(),
        }
    }

    fn fill(&mut self, special: Special, nbytes: u64, chunksize: u32) {
        match self {
            Self::Frame(writer) => writer.fill(special, nbytes, chunksize).unwrap(),
            Self::Directory(writer) => writer.fill(special, nbytes, chunksize).unwrap(),
        }
    }

    fn finish(mut self, vlmeta: &[(String, Vec<u8>)]) {
        for (name, content) in vlmeta {
            match &mut self {
                Self::Frame(writer) => writer.add_vlmetalayer(name, content).unwrap(),
                Self::Directory(writer) => writer.add_vlmetalayer(name, content).unwrap(),
            }
        }
        match self {
            Self::Frame(writer) => drop(writer.finish().unwrap()),
            Self::Directory(writer) => drop(writer.finish().unwrap()),
        }
    }
}

/// Names and contents: msgpack's bytes, so that Python can tell them.
fn layers(name: &str, longest: u64, rng: &mut Rng) -> Vec<(String, Vec<u8>)> {
    let count = rng.below(4);
    let layer = |number| {
        let content = data(Kind::Mixed, rng.below(longest) as usize, rng.next());
        let mut packed = vec![0xc6];
        packed.extend((content.len() as u32).to_be_bytes());
        packed.extend(content);
        (format!("{name} {number}"), packed)
    };
    (0..count).map(layer).collect()
}

/// Three shapes of an array: without dimensions, without items, with one to four dimensions, with 16.
fn shapes(rng: &mut Rng) -> [Vec<i64>; 3] {
    let ndim = *rng.pick(&[0, 1, 1, 2, 2, 3, 4, 16]);
    let most = [1, 500, 40, 15, 7][if ndim == 16 { 4 } else { ndim }];
    let [mut shape, mut chunks, mut blocks] = [const { Vec::new() }; 3];
    for axis in 0..ndim {
        // Of sixteen, most have size 1, or there would be millions of items.
        let size = if ndim == 16 && axis % 4 != 0 { 1 } else { 1 + rng.below(most) };
        // Sometimes larger than the axis, and not multiples of each other.
        let chunk = 1 + rng.below(if ndim == 16 { size } else { size + 2 });
        shape.push(size as i64);
        chunks.push(chunk as i64);
        blocks.push(1 + rng.below(chunk) as i64);
    }
    if ndim > 0 && rng.below(8) == 0 {
        shape[rng.below(ndim as u64) as usize] = 0;
    }
    [shape, chunks, blocks]
}

/// Writes a file of any kind.
fn write(folder: &Path, seed: u64) -> Written {
    let rng = &mut Rng(seed);
    let (mut params, lossless) = params(rng);
    let typesize = params.typesize;
    let contiguous = rng.below(3) > 0;
    let mut content = Content {
        chunks: Vec::new(),
        array: None,
        meta: layers("meta", 300, rng),
        vlmeta: layers("vlmeta", 6000, rng),
    };
    let kind = *rng.pick(&KINDS);
    let path = folder.join(format!("{seed:04}.b2frame"));
    let metalayers = |content: &Content| -> Vec<Metalayer> {
        let layer = |(name, content): &(String, Vec<u8>)| Metalayer {
            name: name.clone(),
            content: content.clone(),
        };
        content.meta.iter().map(layer).collect()
    };
    let mut what = format!("case {seed}: {kind:?}, contiguous {contiguous}, {params:?}");
    let (mut shape, mut dtype, mut undefined) = (None, String::new(), false);
    if rng.below(2) == 0 {
        let [sizes, chunks, blocks] = loop {
            let shapes = shapes(rng);
            // With padding.
            let items = |(size, chunk): (&i64, &i64)| (size + chunk) as u64 * 2;
            let items: u64 = shapes[0].iter().zip(&shapes[1]).map(items).product();
            if shapes[0].len() == 16 || items * u64::from(typesize) < 1 << 24 {
                break shapes;
            }
        };
        what += &format!(", {sizes:?}, {chunks:?}, {blocks:?}");
        dtype = if typesize == 4 { "<f4".into() } else { format!("|S{typesize}") };
        let small = |sizes: &[i64]| sizes.iter().map(|&size| size as i32).collect();
        let meta = Meta {
            shape: sizes.clone(),
            chunks: small(&chunks),
            blocks: small(&blocks),
            dtype: Some(dtype.clone()),
            dtype_format: 0,
        };
        let at = rng.below(content.meta.len() as u64 + 1) as usize;
        content.meta.insert(at, (NAME.into(), meta.to_bytes().unwrap()));
        let geometry = Geometry::new(&meta, typesize, &Limits::default()).unwrap();
        params.blocksize = Some(geometry.block_len() as u32);
        let array = data(kind, geometry.len() as usize * typesize as usize, seed);
        let mut writer = Writer::create(&path, contiguous, params, &metalayers(&content));
        for number in 0..geometry.nchunks() {
            let mut chunk = vec![0; geometry.chunk_len()];
            geometry.cut(number, &array, &mut chunk).unwrap();
            writer.push(&chunk);
            content.chunks.push(chunk);
        }
        writer.finish(&content.vlmeta);
        content.array = Some(array);
        shape = Some(sizes);
    } else {
        let form = rng.below(6);
        if form == 1 {
            // In Python, as upstream, delta of such blocks is undone to other data.
            params.filters = params.filters.map(|filter| if filter == DELTA { 0 } else { filter });
        }
        let mut writer = Writer::create(&path, contiguous, params, &metalayers(&content));
        let len = length(typesize, rng).max(typesize as usize);
        let count = rng.below(5);
        match form {
            // Special chunks.
            0 => {
                let special = *rng.pick(&[Special::Zeros, Special::Uninit]);
                undefined = special == Special::Uninit;
                let nbytes = count * len as u64 + u64::from(typesize);
                what += &format!(", {nbytes} bytes in chunks of {len}, {special:?}");
                writer.fill(special, nbytes, len as u32);
                let all = vec![0; nbytes as usize];
                content.chunks = all.chunks(len).map(<[u8]>::to_vec).collect();
            }
            // Chunks of variable-length blocks of whole items. Python has the filters of upstream, which lose
            // an incomplete item.
            1 => {
                for number in 0..count {
                    let chunk = data(kind, len, seed + number);
                    let third = (len / typesize as usize).div_ceil(3) * typesize as usize;
                    let mut blocks: Vec<&[u8]> = chunk.chunks(third).collect();
                    let (first, last) = blocks[0].split_at(typesize as usize);
                    blocks.splice(0..1, [last, first]);
                    blocks.retain(|block| !block.is_empty());
                    writer.push_blocks(&blocks);
                    content.chunks.push(blocks.concat());
                }
            }
            // Variable-length chunks.
            2 => {
                for number in 0..count {
                    let len = length(typesize, rng).max(typesize as usize);
                    let chunk = data(kind, len, seed + number);
                    writer.push(&chunk);
                    content.chunks.push(chunk);
                }
            }
            // Ordinary chunks: the last one is shorter, one is a repeated value, one has other parameters.
            _ => {
                for number in 0..count {
                    let typesize = typesize as usize;
                    let half = (len / typesize).div_ceil(2) * typesize;
                    let len = if number > 0 && number + 1 == count { half } else { len };
                    let chunk = data(*rng.pick(&[kind, Kind::Zeros]), len, seed + number);
                    let value = data(Kind::Random, typesize, seed);
                    if rng.below(6) == 0 {
                        writer.push_chunk(&special(&params, Special::Value, len, &value).unwrap());
                        content.chunks.push(value.repeat(len / value.len()));
                    } else if rng.below(6) == 0 {
                        let other = Params { codec: 1, filters: [0; 6], ..params };
                        writer.push_chunk(&Encoder::new(other).unwrap().encode(&chunk).unwrap());
                        content.chunks.push(chunk);
                    } else {
                        writer.push(&chunk);
                        content.chunks.push(chunk);
                    }
                }
            }
        }
        writer.finish(&content.vlmeta);
    }
    let found = rust::read(&path, &Limits::default());
    let found = found.unwrap_or_else(|error| panic!("{what}: {error}"));
    if lossless {
        found.assert_same(&content, &what);
    }
    Written { path, what, params, undefined, content: found, shape, dtype }
}

#[test]
fn files_are_read_by_c() {
    let folder = tempfile::tempdir().unwrap();
    for seed in 0..repeats(1000) as u64 {
        let Written { path, what, content, .. } = write(folder.path(), seed);
        let report = rust::check(&path, &Limits::default()).unwrap();
        assert!(report.worst() < Some(Severity::Warning), "{what}: {:?}", report.findings);
        match c::read(&path) {
            Ok(in_c) => in_c.assert_same(&content, &what),
            Err(error) => panic!("{what}: {error}"),
        }
    }
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn files_are_read_by_python() {
    let folder = tempfile::tempdir().unwrap();
    let mut cases = Vec::new();
    for seed in 0..repeats(500) as u64 {
        let Written { path, what, params, undefined, content, shape, dtype } =
            write(folder.path(), seed);
        let file = name(&path);
        let beside = |end: &str, bytes: &[u8]| {
            let name = format!("{file}.{end}");
            fs::write(folder.path().join(&name), bytes).unwrap();
            name
        };
        // The content of the packed bytes.
        let layers = |layers: &[(String, Vec<u8>)]| -> Value {
            let layer = |(name, packed): &(String, Vec<u8>)| {
                let hex: String = packed[5..].iter().map(|byte| format!("{byte:02x}")).collect();
                (name.clone(), Value::from(hex))
            };
            layers.iter().filter(|(name, _)| name != NAME).map(layer).collect()
        };
        let mut case = json!({
            "file": file, "what": what, "typesize": params.typesize, "undefined": undefined,
            "delta": params.filters.contains(&DELTA),
            "chunks": beside("chunks", &content.chunks.concat()),
            "lengths": content.chunks.iter().map(Vec::len).collect::<Vec<_>>(),
            "meta": layers(&content.meta), "vlmeta": layers(&content.vlmeta),
        });
        if let (Some(shape), Some(array)) = (shape, &content.array) {
            case["data"] = beside("data", array).into();
            case["shape"] = json!(shape);
            case["dtype"] = dtype.into();
        }
        cases.push(case);
    }
    fs::write(folder.path().join("written.json"), Value::from(cases).to_string()).unwrap();
    run_python(include_str!("read.py"), folder.path(), &[]);
}
