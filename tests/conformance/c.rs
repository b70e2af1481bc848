//! C through `blosc2-sys`: the raw functions as a writer and a reader.

use std::ffi::{CStr, CString, c_void};
use std::fs;
use std::os::raw::c_char;
use std::path::Path;
use std::ptr::{self, NonNull};

use anyhow::{Context, Result, bail, ensure};
use blosc2_format::chunk::Special;
use blosc2_sys as sys;

use crate::object::{
    Array, BEFORE, Facts, Kind, Made, Object, Params, Part, Place, digest, digests, filters,
    found_layers, list, special_name,
};

/// Fails if a function of C has returned an error.
fn done(code: impl Into<i64>, what: &str) -> Result<()> {
    let code = code.into();
    ensure!(code >= 0, "{what}: C returns {code}");
    Ok(())
}

fn text(text: &str) -> Result<CString> {
    Ok(CString::new(text)?)
}

fn path_text(path: &Path) -> Result<CString> {
    text(path.to_str().context("a path that is not UTF-8")?)
}

fn cparams(params: &Params) -> sys::blosc2_cparams {
    let mut c = sys::blosc2_cparams_defaults();
    (c.filters, c.filters_meta) = params.slots();
    c.compcode = params.codec;
    c.compcode_meta = params.codec_meta;
    c.clevel = params.level;
    c.use_dict = params.dictionary.into();
    c.typesize = params.typesize as i32;
    c.nthreads = 1;
    c.blocksize = params.blocksize as i32;
    c.splitmode = params.split.into();
    c
}

/// A context, which is freed once.
struct Ctx(NonNull<sys::blosc2_context>);

impl Ctx {
    fn compress(params: &Params) -> Result<Self> {
        // SAFETY: the parameters are copied.
        let context = unsafe { sys::blosc2_create_cctx(cparams(params)) };
        let context = Self(NonNull::new(context).context("C creates no context")?);
        if params.blosc1 {
            // SAFETY: the context is live and not in use.
            done(unsafe { sys::set_blosc1(context.0.as_ptr(), true) }, "set_blosc1")?;
        }
        Ok(context)
    }

    fn decompress() -> Result<Self> {
        let mut params = sys::blosc2_dparams_defaults();
        params.nthreads = 1;
        // SAFETY: the parameters are copied.
        let context = unsafe { sys::blosc2_create_dctx(params) };
        Ok(Self(NonNull::new(context).context("C creates no context")?))
    }
}

impl Drop for Ctx {
    fn drop(&mut self) {
        // SAFETY: the context is live, and freed once.
        unsafe { sys::blosc2_free_ctx(self.0.as_ptr()) };
    }
}

fn chunk(part: &Part, params: &Params) -> Result<Vec<u8>> {
    let nbytes = part.bytes().len();
    // The room decides whether data is stored uncompressed.
    let room = match part {
        Part::Data(_) => nbytes + sys::BLOSC2_MAX_OVERHEAD as usize,
        // Each block has a start, a length, and overhead of the codec.
        Part::Blocks(blocks) => nbytes + 64 + 64 * blocks.len(),
        Part::Special { .. } => 64 + params.typesize,
    };
    let mut chunk = vec![0u8; room];
    let (to, room) = (chunk.as_mut_ptr().cast::<c_void>(), chunk.len() as i32);
    let context = Ctx::compress(params)?;
    let c = cparams(params);
    // SAFETY: each source has the length that is passed, the target has `room` bytes, and the context is live. The
    // repeated value has the size of an item.
    let len = unsafe {
        match part {
            Part::Data(bytes) => {
                let (from, len) = (bytes.as_ptr().cast(), bytes.len() as i32);
                sys::blosc2_compress_ctx(context.0.as_ptr(), from, len, to, room)
            }
            Part::Blocks(blocks) => {
                let from: Vec<*const c_void> = blocks.iter().map(|b| b.as_ptr().cast()).collect();
                let lens: Vec<i32> = blocks.iter().map(|block| block.len() as i32).collect();
                let (context, count) = (context.0.as_ptr(), blocks.len() as i32);
                let (from, lens) = (from.as_ptr(), lens.as_ptr());
                sys::blosc2_vlcompress_ctx(context, from, lens, count, to, room)
            }
            Part::Special { special, value, .. } => {
                let nbytes = nbytes as i32;
                match special {
                    Special::Zeros => sys::blosc2_chunk_zeros(c, nbytes, to, room),
                    Special::Nan => sys::blosc2_chunk_nans(c, nbytes, to, room),
                    Special::Uninit => sys::blosc2_chunk_uninit(c, nbytes, to, room),
                    Special::Value => {
                        let value = value.as_ptr().cast();
                        sys::blosc2_chunk_repeatval(c, nbytes, to, room, value)
                    }
                }
            }
        }
    };
    done(len, "compress")?;
    chunk.truncate(len as usize);
    Ok(chunk)
}

/// What a super-chunk is created with. Its fields have to live until C has copied them.
struct Storage {
    cparams: Box<sys::blosc2_cparams>,
    dparams: Box<sys::blosc2_dparams>,
    path: Option<CString>,
    contiguous: bool,
}

impl Storage {
    /// Frames at an offset are created in memory first.
    fn new(object: &Object, path: &Path) -> Result<Self> {
        let in_file = matches!(object.place, Place::File | Place::Directory);
        let mut dparams = sys::blosc2_dparams_defaults();
        dparams.nthreads = 1;
        Ok(Self {
            cparams: Box::new(cparams(&object.params)),
            dparams: Box::new(dparams),
            path: in_file.then(|| path_text(path)).transpose()?,
            contiguous: !matches!(object.place, Place::Memory | Place::Directory),
        })
    }

    fn get(&mut self) -> sys::blosc2_storage {
        sys::blosc2_storage {
            contiguous: self.contiguous,
            urlpath: self.path.as_ref().map_or(ptr::null_mut(), |path| path.as_ptr().cast_mut()),
            cparams: &mut *self.cparams,
            dparams: &mut *self.dparams,
            io: ptr::null_mut(),
        }
    }
}

/// A super-chunk or an array, which is freed once.
enum Handle {
    SChunk(NonNull<sys::blosc2_schunk>),
    Array(NonNull<sys::b2nd_array_t>),
}

impl Handle {
    fn schunk(schunk: *mut sys::blosc2_schunk) -> Result<Self> {
        Ok(Self::SChunk(NonNull::new(schunk).context("C returns no super-chunk")?))
    }

    fn array(array: *mut sys::b2nd_array_t) -> Result<Self> {
        Ok(Self::Array(NonNull::new(array).context("C returns no array")?))
    }

    fn sc(&self) -> *mut sys::blosc2_schunk {
        match self {
            Self::SChunk(schunk) => schunk.as_ptr(),
            // SAFETY: the array is live.
            Self::Array(array) => unsafe { array.as_ref().sc },
        }
    }

    fn fields(&self) -> &sys::blosc2_schunk {
        // SAFETY: the super-chunk is live, and nothing changes it while it is borrowed.
        unsafe { &*self.sc() }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: each is freed once. An array frees its super-chunk.
        unsafe {
            match self {
                Self::SChunk(schunk) => drop(sys::blosc2_schunk_free(schunk.as_ptr())),
                Self::Array(array) => drop(sys::b2nd_free(array.as_ptr())),
            }
        }
    }
}

/// Writes an object to its path.
pub(crate) fn write(object: &Object, path: &Path) -> Result<()> {
    let handle = match &object.kind {
        Kind::Chunk(part) => return Ok(fs::write(path, chunk(part, &object.params)?)?),
        Kind::Parts(parts) => {
            let handle = create(object, path)?;
            for part in parts {
                append(&handle, part, &object.params)?;
            }
            handle
        }
        Kind::Fill(fill) if fill.special == Special::Value => {
            let handle = create(object, path)?;
            let (typesize, mut items) = (object.params.typesize, fill.items);
            while items > 0 {
                let count = items.min(fill.chunk);
                let (special, value) = (fill.special, fill.value.clone());
                let part = Part::Special { special, nbytes: count * typesize, value };
                append(&handle, &part, &object.params)?;
                items -= count;
            }
            handle
        }
        Kind::Fill(fill) => {
            let handle = create(object, path)?;
            let special = match fill.special {
                Special::Zeros => 1,
                Special::Nan => 2,
                Special::Value => 3,
                Special::Uninit => 4,
            };
            let (items, chunk) = (fill.items as i64, fill.chunk * object.params.typesize);
            // SAFETY: the super-chunk is live.
            let code = unsafe {
                sys::blosc2_schunk_fill_special(handle.sc(), items, special, chunk as i32)
            };
            done(code, "fill_special")?;
            handle
        }
        Kind::Array(array) => create_array(array, object, path)?,
        Kind::Npy(_) | Kind::Container(_) => bail!("not a super-chunk"),
    };
    for (name, value) in &object.vlmeta {
        let (name, content) = (text(name)?, value.to_msgpack()?);
        let (from, len) = (content.as_ptr().cast_mut(), content.len() as i32);
        let mut params = sys::blosc2_cparams_defaults();
        params.typesize = 1;
        // SAFETY: C copies name and content, and reads the parameters during the call.
        let code =
            unsafe { sys::blosc2_vlmeta_add(handle.sc(), name.as_ptr(), from, len, &mut params) };
        done(code, "vlmeta_add")?;
    }
    match object.place {
        Place::Memory | Place::Frame => {
            let (mut frame, mut is_owned) = (ptr::null_mut(), false);
            // SAFETY: the super-chunk is live. The frame has `len` bytes, and C says whether it has to be freed.
            unsafe {
                let len = sys::blosc2_schunk_to_buffer(handle.sc(), &mut frame, &mut is_owned);
                done(len, "to_buffer")?;
                let written = fs::write(path, bytes(frame, len as usize));
                if is_owned {
                    libc::free(frame.cast());
                }
                written?;
            }
        }
        Place::Offset => {
            fs::write(path, BEFORE)?;
            let path = path_text(path)?;
            // SAFETY: the super-chunk is live, and the path is a string.
            let at = unsafe { sys::blosc2_schunk_append_file(handle.sc(), path.as_ptr()) };
            ensure!(at == BEFORE.len() as i64, "the frame is at {at}");
        }
        Place::File | Place::Directory => {}
    }
    Ok(())
}

fn create(object: &Object, path: &Path) -> Result<Handle> {
    let mut storage = Storage::new(object, path)?;
    // SAFETY: C copies what the storage points to.
    let handle = Handle::schunk(unsafe { sys::blosc2_schunk_new(&mut storage.get()) })?;
    for (name, value) in &object.meta {
        let (name, content) = (text(name)?, value.to_msgpack()?);
        let (from, len) = (content.as_ptr().cast_mut(), content.len() as i32);
        // SAFETY: the super-chunk is live, and C copies name and content.
        done(unsafe { sys::blosc2_meta_add(handle.sc(), name.as_ptr(), from, len) }, "meta_add")?;
    }
    Ok(handle)
}

fn append(handle: &Handle, part: &Part, params: &Params) -> Result<()> {
    if let Part::Data(bytes) = part {
        let (from, len) = (bytes.as_ptr().cast(), bytes.len() as i32);
        // SAFETY: the source has `len` bytes.
        let code = unsafe { sys::blosc2_schunk_append_buffer(handle.sc(), from, len) };
        return done(code, "append_buffer");
    }
    let chunk = chunk(part, params)?;
    // SAFETY: the chunk is one of C's, which copies it.
    let code =
        unsafe { sys::blosc2_schunk_append_chunk(handle.sc(), chunk.as_ptr().cast_mut(), true) };
    done(code, "append_chunk")
}

fn create_array(array: &Array, object: &Object, path: &Path) -> Result<Handle> {
    let mut storage = Storage::new(object, path)?;
    let shape: Vec<i64> = array.shape.iter().map(|&size| size as i64).collect();
    let small = |sizes: &[u64]| sizes.iter().map(|&size| size as i32).collect::<Vec<_>>();
    let (chunks, blocks) = (small(&array.chunks), small(&array.blocks));
    let dtype = text(&array.dtype)?;
    let names: Vec<CString> =
        object.meta.iter().map(|(name, _)| text(name)).collect::<Result<_>>()?;
    let contents: Vec<Vec<u8>> =
        object.meta.iter().map(|(_, value)| value.to_msgpack()).collect::<Result<_, _>>()?;
    let layers: Vec<sys::blosc2_metalayer> = names
        .iter()
        .zip(&contents)
        .map(|(name, content)| sys::blosc2_metalayer {
            name: name.as_ptr().cast_mut(),
            content: content.as_ptr().cast_mut(),
            content_len: content.len() as i32,
        })
        .collect();
    let mut made = ptr::null_mut();
    // SAFETY: the shapes have `ndim` numbers, names, contents and the storage live until the end of the block, and C
    // copies them. The items have the given length, and the repeated value the size of an item.
    let code = unsafe {
        let context = sys::b2nd_create_ctx(
            &storage.get(),
            shape.len() as i8,
            shape.as_ptr(),
            chunks.as_ptr(),
            blocks.as_ptr(),
            dtype.as_ptr(),
            0,
            layers.as_ptr(),
            layers.len() as i32,
        );
        ensure!(!context.is_null(), "C creates no context");
        let code = match &array.made {
            Made::Items(bytes) => {
                let (from, len) = (bytes.as_ptr().cast(), bytes.len() as i64);
                sys::b2nd_from_cbuffer(context, &mut made, from, len)
            }
            Made::Special(Special::Zeros, _) => sys::b2nd_zeros(context, &mut made),
            Made::Special(Special::Nan, _) => sys::b2nd_nans(context, &mut made),
            Made::Special(Special::Uninit, _) => sys::b2nd_uninit(context, &mut made),
            Made::Special(Special::Value, value) => {
                sys::b2nd_full(context, &mut made, value.as_ptr().cast())
            }
        };
        sys::b2nd_free_ctx(context);
        code
    };
    done(code, "the array")?;
    Handle::array(made)
}

/// Reads what a side has written to this path.
pub(crate) fn read(object: &Object, path: &Path) -> Result<Facts> {
    let mut facts = Facts::new();
    let mut set = |name: &str, text: String| drop(facts.insert(name.into(), text));
    let handle = match &object.kind {
        Kind::Chunk(part) => {
            let bytes = fs::read(path)?;
            let data = decompress(&bytes)?;
            set("nbytes", data.len().to_string());
            set("blocksize", sizes(&bytes)?.1.to_string());
            set("data", digest(&data));
            match part {
                Part::Data(_) if object.params.dictionary => {
                    set("dictionary", (bytes[31] & sys::BLOSC2_USEDICT as u8 != 0).to_string());
                }
                Part::Data(_) => {}
                Part::Blocks(_) => set("blocks", digests(&decompress_blocks(&bytes)?)),
                Part::Special { .. } => set("special", special_name(special_of(&bytes))),
            }
            return Ok(facts);
        }
        Kind::Npy(_) | Kind::Container(_) => bail!("not a super-chunk"),
        Kind::Array(_) => open_array(object, path)?,
        Kind::Parts(_) | Kind::Fill(_) => open(object, path)?,
    };
    let fields = handle.fields();
    let mut chunks = Vec::new();
    for number in 0..fields.nchunks {
        let (data, special) = decompress_chunk(&handle, number)?;
        if number == 0 {
            set("special", special_name(special));
        }
        chunks.push(data);
    }
    set("nchunks", fields.nchunks.to_string());
    set("chunks", digests(&chunks));
    let mut params = ptr::null_mut();
    // SAFETY: the super-chunk is live. C allocates a copy of the parameters, which is freed.
    let params = unsafe {
        done(sys::blosc2_schunk_get_cparams(handle.sc(), &mut params), "get_cparams")?;
        let copy = *params;
        libc::free(params.cast());
        copy
    };
    set("typesize", fields.typesize.to_string());
    set("codec", params.compcode.to_string());
    set("level", params.clevel.to_string());
    set("codec parameter", params.compcode_meta.to_string());
    set("split mode", params.splitmode.to_string());
    set("dictionary", (params.use_dict != 0).to_string());
    set("filters", filters(params.filters.into_iter().zip(params.filters_meta)));
    if let Handle::Array(array) = &handle {
        // SAFETY: the array is live.
        let array = unsafe { array.as_ref() };
        let ndim = array.ndim as usize;
        set("shape", list(&array.shape[..ndim]));
        set("chunk shape", list(&array.chunkshape[..ndim]));
        set("block shape", list(&array.blockshape[..ndim]));
        // SAFETY: the dtype is a string.
        let dtype = unsafe { CStr::from_ptr(array.dtype) };
        set("dtype", dtype.to_str()?.to_owned());
        let typesize = fields.typesize as usize;
        let mut items = vec![0u8; array.nitems as usize * typesize];
        let (to, len) = (items.as_mut_ptr().cast(), items.len() as i64);
        // SAFETY: the target has `len` bytes.
        done(unsafe { sys::b2nd_to_cbuffer(array, to, len) }, "to_cbuffer")?;
        set("items", digest(&items));
        if let Some(ranges) = object.read_box() {
            let start: Vec<i64> = ranges.iter().map(|range| range.start as i64).collect();
            let stop: Vec<i64> = ranges.iter().map(|range| range.end as i64).collect();
            let shape: Vec<i64> =
                start.iter().zip(&stop).map(|(start, stop)| stop - start).collect();
            ensure!(shape.len() == ndim, "{ndim} dimensions");
            let mut part = vec![0u8; shape.iter().product::<i64>() as usize * typesize];
            let (to, len) = (part.as_mut_ptr().cast(), part.len() as i64);
            let (start, stop, shape) = (start.as_ptr(), stop.as_ptr(), shape.as_ptr());
            // SAFETY: the target has the shape of the box, and each list has a number for each axis.
            let code = unsafe { sys::b2nd_get_slice_cbuffer(array, start, stop, to, shape, len) };
            done(code, "get_slice_cbuffer")?;
            set("box", digest(&part));
        }
    }
    found_layers("meta", metalayers(fields), &mut facts);
    found_layers("vlmeta", vlmetalayers(&handle)?, &mut facts);
    Ok(facts)
}

fn open(object: &Object, path: &Path) -> Result<Handle> {
    if object.place.in_memory() {
        let frame = fs::read(path)?;
        let (from, len) = (frame.as_ptr().cast_mut(), frame.len() as i64);
        // SAFETY: C copies `len` bytes.
        return Handle::schunk(unsafe { sys::blosc2_schunk_from_buffer(from, len, true) });
    }
    let path = path_text(path)?;
    // SAFETY: the path is a string.
    Handle::schunk(unsafe { sys::blosc2_schunk_open_offset(path.as_ptr(), offset(object)) })
}

fn open_array(object: &Object, path: &Path) -> Result<Handle> {
    let mut array = ptr::null_mut();
    if object.place.in_memory() {
        let frame = fs::read(path)?;
        let (from, len) = (frame.as_ptr().cast_mut(), frame.len() as i64);
        // SAFETY: C copies `len` bytes.
        done(unsafe { sys::b2nd_from_cframe(from, len, true, &mut array) }, "from_cframe")?;
    } else {
        let path = path_text(path)?;
        // SAFETY: the path is a string.
        let code = unsafe { sys::b2nd_open_offset(path.as_ptr(), &mut array, offset(object)) };
        done(code, "open_offset")?;
    }
    Handle::array(array)
}

fn offset(object: &Object) -> i64 {
    if object.place == Place::Offset { BEFORE.len() as i64 } else { 0 }
}

fn decompress(chunk: &[u8]) -> Result<Vec<u8>> {
    let (nbytes, _) = sizes(chunk)?;
    let mut data = vec![0u8; nbytes];
    let context = Ctx::decompress()?;
    let (from, size) = (chunk.as_ptr().cast(), chunk.len() as i32);
    let (to, room) = (data.as_mut_ptr().cast(), data.len() as i32);
    // SAFETY: the source has `size` bytes, and the target `room`.
    let len = unsafe { sys::blosc2_decompress_ctx(context.0.as_ptr(), from, size, to, room) };
    done(len, "decompress")?;
    ensure!(len as usize == nbytes, "{len} bytes of {nbytes}");
    Ok(data)
}

/// The decompressed size of a chunk, and the size of its blocks.
fn sizes(chunk: &[u8]) -> Result<(usize, i32)> {
    ensure!(chunk.len() >= 16, "a chunk of {} bytes", chunk.len());
    let (mut nbytes, mut cbytes, mut blocksize) = (0, 0, 0);
    // SAFETY: the chunk has a header.
    let code = unsafe {
        let from = chunk.as_ptr().cast();
        sys::blosc2_cbuffer_sizes(from, &mut nbytes, &mut cbytes, &mut blocksize)
    };
    done(code, "cbuffer_sizes")?;
    ensure!(cbytes as usize == chunk.len(), "{cbytes} bytes in the header of {}", chunk.len());
    Ok((nbytes as usize, blocksize))
}

fn decompress_blocks(chunk: &[u8]) -> Result<Vec<Vec<u8>>> {
    let context = Ctx::decompress()?;
    let (from, size) = (chunk.as_ptr().cast(), chunk.len() as i32);
    let mut count = 0;
    let mut blocks = Vec::new();
    // SAFETY: the chunk has `size` bytes. There is room for `count` blocks. C allocates each block, which is freed.
    unsafe {
        done(sys::blosc2_vlchunk_get_nblocks(from, size, &mut count), "vlchunk_get_nblocks")?;
        let mut starts = vec![ptr::null_mut(); count as usize];
        let mut lens = vec![0; count as usize];
        let (to, sizes) = (starts.as_mut_ptr(), lens.as_mut_ptr());
        let context = context.0.as_ptr();
        let code = sys::blosc2_vldecompress_ctx(context, from, size, to, sizes, count);
        done(code, "vldecompress")?;
        for (start, len) in starts.into_iter().zip(lens) {
            blocks.push(bytes(start.cast(), len as usize).to_vec());
            libc::free(start.cast());
        }
    }
    Ok(blocks)
}

/// The data of a chunk of a super-chunk, and its kind if it is special.
fn decompress_chunk(handle: &Handle, number: i64) -> Result<(Vec<u8>, Option<Special>)> {
    let (mut chunk, mut is_owned) = (ptr::null_mut(), false);
    // SAFETY: the super-chunk is live. The lazy chunk has a header of 32 bytes, and is freed if C says so.
    let (nbytes, special) = unsafe {
        let len = sys::blosc2_schunk_get_lazychunk(handle.sc(), number, &mut chunk, &mut is_owned);
        done(len, "get_lazychunk")?;
        let header = bytes(chunk, 32);
        let found = (i32::from_le_bytes(header[4..8].try_into()?), special_of(header));
        if is_owned {
            libc::free(chunk.cast());
        }
        found
    };
    let mut data = vec![0u8; nbytes as usize];
    let to = data.as_mut_ptr().cast();
    // SAFETY: the target has `nbytes` bytes.
    let len = unsafe { sys::blosc2_schunk_decompress_chunk(handle.sc(), number, to, nbytes) };
    done(len, "decompress_chunk")?;
    ensure!(len == nbytes, "chunk {number}: {len} bytes of {nbytes}");
    Ok((data, special))
}

/// The kind of a chunk, if it is special, from its header of 32 bytes.
fn special_of(chunk: &[u8]) -> Option<Special> {
    match chunk[31] >> 4 & 7 {
        1 => Some(Special::Zeros),
        2 => Some(Special::Nan),
        3 => Some(Special::Value),
        4 => Some(Special::Uninit),
        _ => None,
    }
}

fn metalayers(fields: &sys::blosc2_schunk) -> Vec<(String, Vec<u8>)> {
    let layers = &fields.metalayers[..usize::from(fields.nmetalayers)];
    let layer = |&layer: &*mut sys::blosc2_metalayer| {
        // SAFETY: each of the `nmetalayers` entries has a name and `content_len` bytes of content.
        unsafe {
            let content = bytes((*layer).content, (*layer).content_len as usize);
            (name((*layer).name), content.to_vec())
        }
    };
    layers.iter().map(layer).collect()
}

fn vlmetalayers(handle: &Handle) -> Result<Vec<(String, Vec<u8>)>> {
    let fields = handle.fields();
    let mut found = Vec::new();
    for &layer in &fields.vlmetalayers[..fields.nvlmetalayers as usize] {
        let (mut content, mut len) = (ptr::null_mut(), 0);
        // SAFETY: all `nvlmetalayers` entries are set. C allocates a copy of the content, which is freed.
        unsafe {
            let code = sys::blosc2_vlmeta_get(handle.sc(), (*layer).name, &mut content, &mut len);
            done(code, "vlmeta_get")?;
            found.push((name((*layer).name), bytes(content, len as usize).to_vec()));
            libc::free(content.cast());
        }
    }
    Ok(found)
}

/// # Safety
/// `name` is a string.
unsafe fn name(name: *const c_char) -> String {
    // SAFETY: the guarantee of the caller.
    unsafe { CStr::from_ptr(name).to_string_lossy().into_owned() }
}

/// # Safety
/// There are `len` bytes, which live as long as the result, if `len` is not 0.
unsafe fn bytes<'a>(from: *const u8, len: usize) -> &'a [u8] {
    // SAFETY: the guarantee of the caller.
    if len == 0 { &[] } else { unsafe { std::slice::from_raw_parts(from, len) } }
}
