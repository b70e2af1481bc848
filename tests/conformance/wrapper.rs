//! C through `blosc2`: the safe wrapper as a writer and a reader.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use blosc2::super_chunk::{Metalayers, VariableBlocks};
use blosc2::{
    CParams, Chunk, ChunkRef, Codec, Compressor, Filter, NDArray, OpenOptions, RawItems, SChunk,
    SaveOptions, Special, SplitMode, Target, npy,
};

use crate::object::{
    Array, BEFORE, Facts, Kind, Made, Object, Params, Part, Place, digest, digests, filters,
    found_layers, list, special_name,
};

fn cparams(params: &Params) -> CParams {
    let filters: Vec<Filter> = params
        .filters
        .iter()
        .map(|&(code, meta)| Filter::from_code(code, meta).unwrap_or(Filter::Other { code, meta }))
        .collect();
    let mut made = CParams::new()
        .codec(Codec::from_code(params.codec))
        .codec_meta(params.codec_meta)
        .level(params.level)
        .filters(&filters)
        .split(match params.split {
            1 => SplitMode::Always,
            2 => SplitMode::Never,
            3 => SplitMode::Auto,
            _ => SplitMode::ForwardCompat,
        })
        .dictionary(params.dictionary)
        .blosc1(params.blosc1)
        .typesize(params.typesize);
    if params.blocksize > 0 {
        made = made.blocksize(params.blocksize);
    }
    made
}

fn special(special: blosc2_format::chunk::Special) -> Special {
    match special {
        blosc2_format::chunk::Special::Zeros => Special::Zeros,
        blosc2_format::chunk::Special::Nan => Special::Nan,
        blosc2_format::chunk::Special::Value => Special::Value,
        blosc2_format::chunk::Special::Uninit => Special::Uninit,
    }
}

/// Writes an object to its path.
pub(crate) fn write(object: &Object, path: &Path) -> Result<()> {
    match &object.kind {
        Kind::Chunk(part) => fs::write(path, chunk(part, &cparams(&object.params))?)?,
        Kind::Parts(parts) => {
            let mut schunk = create(object, path)?;
            for part in parts {
                match part {
                    Part::Data(bytes) => schunk.append(bytes)?,
                    Part::Blocks(blocks) => {
                        let blocks: Vec<&[u8]> = blocks.iter().map(Vec::as_slice).collect();
                        schunk.append(VariableBlocks(&blocks))?
                    }
                    Part::Special { .. } => {
                        let bytes = chunk(part, &cparams(&object.params))?;
                        schunk.append(&ChunkRef::new(&bytes)?)?
                    }
                };
            }
            finish(schunk, object, path)?;
        }
        Kind::Fill(fill) if fill.special == blosc2_format::chunk::Special::Value => {
            let mut schunk = create(object, path)?;
            let params = cparams(&object.params);
            let mut items = fill.items;
            while items > 0 {
                let count = items.min(fill.chunk);
                schunk.append(&Chunk::repeat(&fill.value, count, &params)?)?;
                items -= count;
            }
            finish(schunk, object, path)?;
        }
        Kind::Fill(fill) => {
            let mut schunk = create(object, path)?;
            schunk.fill(special(fill.special), fill.items as u64, fill.chunk)?;
            finish(schunk, object, path)?;
        }
        Kind::Array(array) => {
            let schunk = create_array(array, object, path)?.into_schunk();
            finish(schunk, object, path)?;
        }
        Kind::Npy(array) => {
            let typesize = object.params.typesize;
            let builder = NDArray::builder().dtype(&array.dtype, typesize);
            let items = builder.from_slice(RawItems(&array.bytes(typesize)), &array.shape)?;
            npy::write(&items, fs::File::create(path)?)?;
        }
        Kind::Container(container) => container.write(object, path)?,
    }
    Ok(())
}

fn chunk(part: &Part, params: &CParams) -> Result<Vec<u8>> {
    Ok(match part {
        Part::Data(bytes) => blosc2::compress(&bytes[..], params)?,
        Part::Blocks(blocks) => {
            let blocks: Vec<&[u8]> = blocks.iter().map(Vec::as_slice).collect();
            Compressor::new(params)?.compress_blocks(&blocks)?.into_bytes()
        }
        Part::Special { special, nbytes, value } => {
            use blosc2_format::chunk::Special;
            let chunk = match special {
                Special::Zeros => Chunk::zeros::<u8>(*nbytes, params)?,
                Special::Uninit => Chunk::uninit::<u8>(*nbytes, params)?,
                Special::Nan if value.len() == 4 => Chunk::nans::<f32>(nbytes / 4, params)?,
                Special::Nan => Chunk::nans::<f64>(nbytes / 8, params)?,
                Special::Value => Chunk::repeat(value, nbytes / value.len(), params)?,
            };
            chunk.into_bytes()
        }
    })
}

fn create(object: &Object, path: &Path) -> Result<SChunk> {
    let mut options = OpenOptions::new().typesize(object.params.typesize);
    options = options.cparams(cparams(&object.params));
    for (name, value) in &object.meta {
        options = options.meta(name, value.to_msgpack()?);
    }
    Ok(options.create_new(true).open(target(object.place, path))?)
}

/// Where the object is created. A frame at an offset is created in memory first.
fn target(place: Place, path: &Path) -> Target {
    match place {
        Place::Memory => Target::memory(),
        Place::Frame | Place::Offset => Vec::new().into(),
        Place::File | Place::Directory => Target::from(path).directory(place == Place::Directory),
    }
}

fn create_array(array: &Array, object: &Object, path: &Path) -> Result<NDArray> {
    let builder = NDArray::builder().chunk_shape(&array.chunks).block_shape(&array.blocks);
    let builder = builder.cparams(cparams(&object.params));
    let mut options = OpenOptions::new();
    for (name, value) in &object.meta {
        options = options.meta(name, value.to_msgpack()?);
    }
    let builder = builder.options(options).target(target(object.place, path));
    let typesize = object.params.typesize;
    Ok(match &array.made {
        Made::Items(bytes) => {
            builder.dtype(&array.dtype, typesize).from_slice(RawItems(bytes), &array.shape)?
        }
        Made::Special(blosc2_format::chunk::Special::Value, value) => {
            builder.dtype(&array.dtype, value.len()).full(RawItems(value), &array.shape)?
        }
        Made::Special(kind, _) => {
            builder.dtype(&array.dtype, typesize).special(special(*kind), &array.shape)?
        }
    })
}

fn finish(mut schunk: SChunk, object: &Object, path: &Path) -> Result<()> {
    for (name, value) in &object.vlmeta {
        schunk.vlmeta_mut().set_value(name, value)?;
    }
    match object.place {
        Place::Memory | Place::Frame => fs::write(path, schunk.into_cframe()?)?,
        Place::Offset => {
            fs::write(path, BEFORE)?;
            let at = SaveOptions::new().append(&schunk, path)?;
            ensure!(at == BEFORE.len() as u64, "the frame is at {at}");
        }
        Place::File | Place::Directory => {}
    }
    Ok(())
}

/// Reads what a side has written to this path.
pub(crate) fn read(object: &Object, path: &Path) -> Result<Facts> {
    let mut facts = Facts::new();
    let mut set = |name: &str, text: String| drop(facts.insert(name.into(), text));
    let schunk = match &object.kind {
        Kind::Chunk(_) => {
            let bytes = fs::read(path)?;
            let chunk = ChunkRef::new(&bytes)?;
            set("nbytes", chunk.nbytes().to_string());
            set("blocksize", chunk.blocksize().map_or("none".to_owned(), |size| size.to_string()));
            set("special", special_name(chunk.special()));
            set("dictionary", chunk.has_dictionary().to_string());
            set("data", digest(&chunk.decompress::<u8>()?));
            if chunk.has_variable_blocks() {
                let blocks: Result<Vec<_>, _> =
                    (0..chunk.nblocks()).map(|block| chunk.block(block)).collect();
                set("blocks", digests(&blocks?));
            }
            return Ok(facts);
        }
        Kind::Npy(_) => {
            let array = npy::read(fs::File::open(path)?, NDArray::builder())?;
            set("shape", list(array.shape()));
            set("dtype", array.dtype_str().context("no dtype")?.to_owned());
            set("items", digest(&array.read::<RawItems>(..)?.0));
            return Ok(facts);
        }
        Kind::Container(container) => return container.read(object, path),
        Kind::Array(_) => {
            let array = NDArray::from_schunk(open(object, path)?)?;
            set("shape", list(array.shape()));
            set("chunk shape", list(array.chunk_shape()));
            set("block shape", list(array.block_shape()));
            set("dtype", array.dtype_str().context("no dtype")?.to_owned());
            if let Some(ranges) = object.read_box() {
                set("box", digest(&array.read::<RawItems>(&ranges)?.0));
            }
            set("items", digest(&array.read::<RawItems>(..)?.0));
            array.into_schunk()
        }
        Kind::Parts(_) | Kind::Fill(_) => open(object, path)?,
    };
    let chunks: Vec<Vec<u8>> = schunk.iter_chunks().collect::<Result<_, _>>()?;
    set("nchunks", schunk.nchunks().to_string());
    set("chunks", digests(&chunks));
    if schunk.nchunks() > 0 {
        set("special", special_name(schunk.chunk_info(0)?.special));
    }
    let found = schunk.info().cparams;
    set("typesize", schunk.typesize().to_string());
    set("codec", found.codec.code().to_string());
    set("level", found.level.to_string());
    set("codec parameter", found.codec_meta.to_string());
    let split = match found.split {
        SplitMode::Always => 1,
        SplitMode::Never => 2,
        SplitMode::Auto => 3,
        SplitMode::ForwardCompat => 4,
    };
    set("split mode", split.to_string());
    set("dictionary", found.dictionary.to_string());
    set("filters", filters(found.filters.iter().map(|filter| (filter.code(), filter.meta()))));
    found_layers("meta", layers(schunk.meta())?, &mut facts);
    found_layers("vlmeta", layers(schunk.vlmeta())?, &mut facts);
    Ok(facts)
}

fn open(object: &Object, path: &Path) -> Result<SChunk> {
    Ok(match object.place {
        Place::Memory | Place::Frame => SChunk::open(fs::read(path)?)?,
        Place::Offset => SChunk::open(Target::from(path).offset(BEFORE.len() as u64))?,
        Place::File | Place::Directory => {
            let schunk = SChunk::open(path)?;
            let contiguous = schunk.info().contiguous.context("no file")?;
            ensure!(contiguous == (object.place == Place::File), "the other storage");
            schunk
        }
    })
}

/// Names and contents.
pub(crate) fn layers(layers: Metalayers<'_>) -> Result<Vec<(String, Vec<u8>)>> {
    let mut found = Vec::new();
    for name in layers.names() {
        let content = layers.get(&name)?.context("a metalayer without content")?;
        found.push((name, content));
    }
    Ok(found)
}
