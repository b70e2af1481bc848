//! `blosc2-format`: the formats in pure Rust as a writer and a reader.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use blosc2_format::b2nd::{Geometry, Meta, NAME};
use blosc2_format::chunk::{Chunk, Encoder, Params, Special, SplitMode, special};
use blosc2_format::directory::{self, Disk};
use blosc2_format::file::{File, Kind as FileKind};
use blosc2_format::frame::{self, Metalayer};
use blosc2_format::npy::Header;
use blosc2_format::read_at::AtOffset;
use blosc2_format::{Dtype, Limits, Options, ReadAt, Report, Severity};

use crate::object::{
    Array, BEFORE, Facts, Kind, Made, Object, Part, Place, digest, digests, filters, found_layers,
    list, special_name,
};

fn params(object: &Object) -> Result<Params> {
    let given = &object.params;
    ensure!(!given.dictionary && !given.blosc1, "no dictionaries and no chunks of Blosc1");
    let (codes, metas) = given.slots();
    Ok(Params {
        codec: given.codec,
        codec_meta: given.codec_meta,
        level: given.level,
        typesize: given.typesize as u32,
        blocksize: Some(given.blocksize as u32).filter(|&size| size > 0),
        filters: codes,
        filters_meta: metas,
        split: match given.split {
            1 => SplitMode::Always,
            2 => SplitMode::Never,
            3 => SplitMode::Auto,
            _ => SplitMode::ForwardCompat,
        },
    })
}

/// The layouts of a super-chunk.
enum Writer {
    Frame(frame::Writer<Cursor<Vec<u8>>>),
    Directory(frame::Writer<Disk>),
}

/// Calls the same method of both writers.
macro_rules! both {
    ($writer:expr, $method:ident $arguments:tt) => {
        match $writer {
            Writer::Frame(writer) => writer.$method $arguments,
            Writer::Directory(writer) => writer.$method $arguments,
        }
    };
}

/// Writes an object to its path.
pub(crate) fn write(object: &Object, path: &Path) -> Result<()> {
    ensure!(object.place != Place::Memory, "the frame is the only form in memory");
    let mut params = params(object)?;
    let mut layers: Vec<Metalayer> = Vec::new();
    if let Kind::Array(array) = &object.kind {
        let meta = meta(array);
        let geometry = Geometry::new(&meta, params.typesize, &Limits::default())?;
        // An array without items in a block has no block size.
        params.blocksize = Some(geometry.block_len() as u32).filter(|&len| len > 0);
        layers.push(Metalayer { name: NAME.to_owned(), content: meta.to_bytes()? });
    }
    for (name, value) in &object.meta {
        layers.push(Metalayer { name: name.clone(), content: value.to_msgpack()? });
    }
    match &object.kind {
        Kind::Chunk(part) => return Ok(fs::write(path, chunk(part, params)?)?),
        Kind::Npy(array) => {
            let shape = array.shape.clone();
            let dtype = Dtype::parse(&array.dtype)?;
            let mut bytes = Header { dtype, shape, fortran_order: false }.to_bytes()?;
            bytes.extend(array.bytes(object.params.typesize));
            return Ok(fs::write(path, bytes)?);
        }
        _ => {}
    }
    let mut writer = match object.place {
        Place::Directory => {
            Writer::Directory(frame::Writer::new_directory(Disk(path.to_owned()), params, &layers)?)
        }
        _ => Writer::Frame(frame::Writer::new(Cursor::new(Vec::new()), params, &layers)?),
    };
    match &object.kind {
        Kind::Parts(parts) => {
            for part in parts {
                match part {
                    Part::Data(bytes) => both!(&mut writer, push(bytes))?,
                    Part::Blocks(blocks) => {
                        let blocks: Vec<&[u8]> = blocks.iter().map(Vec::as_slice).collect();
                        both!(&mut writer, push_blocks(&blocks))?;
                    }
                    Part::Special { .. } => {
                        both!(&mut writer, push_chunk(&chunk(part, params)?))?;
                    }
                }
            }
        }
        Kind::Fill(fill) => {
            let typesize = object.params.typesize;
            let (nbytes, chunk) = (fill.items * typesize, fill.chunk * typesize);
            make_special(&mut writer, &params, fill.special, nbytes, chunk, &fill.value)?;
        }
        Kind::Array(array) => {
            let geometry = Geometry::new(&meta(array), params.typesize, &Limits::default())?;
            let chunk_len = geometry.chunk_len();
            match &array.made {
                Made::Items(bytes) => {
                    let mut chunk = vec![0; chunk_len];
                    for number in 0..geometry.nchunks() {
                        geometry.cut(number, bytes, &mut chunk)?;
                        both!(&mut writer, push(&chunk))?;
                    }
                }
                Made::Special(special, value) => {
                    let nbytes = geometry.nchunks() as usize * chunk_len;
                    make_special(&mut writer, &params, *special, nbytes, chunk_len, value)?;
                }
            }
        }
        Kind::Chunk(_) | Kind::Npy(_) | Kind::Container(_) => bail!("not a super-chunk"),
    }
    for (name, value) in &object.vlmeta {
        both!(&mut writer, add_vlmetalayer(name, &value.to_msgpack()?))?;
    }
    match writer {
        Writer::Directory(writer) => drop(writer.finish()?),
        Writer::Frame(writer) => {
            let frame = writer.finish()?.into_inner();
            match object.place {
                Place::Offset => fs::write(path, [&BEFORE[..], &frame].concat())?,
                _ => fs::write(path, frame)?,
            }
        }
    }
    Ok(())
}

/// Makes a super-chunk of special chunks.
fn make_special(
    writer: &mut Writer,
    params: &Params,
    kind: Special,
    nbytes: usize,
    chunk: usize,
    value: &[u8],
) -> Result<()> {
    if nbytes == 0 {
        return Ok(());
    }
    if kind == Special::Value {
        for start in (0..nbytes).step_by(chunk) {
            let bytes = special(params, kind, chunk.min(nbytes - start), value)?;
            both!(&mut *writer, push_chunk(&bytes))?;
        }
        return Ok(());
    }
    Ok(both!(writer, fill(kind, nbytes as u64, chunk as u32))?)
}

fn chunk(part: &Part, params: Params) -> Result<Vec<u8>> {
    Ok(match part {
        Part::Data(bytes) => Encoder::new(params)?.encode(bytes)?,
        Part::Blocks(blocks) => {
            let blocks: Vec<&[u8]> = blocks.iter().map(Vec::as_slice).collect();
            Encoder::new(params)?.encode_blocks(&blocks)?
        }
        Part::Special { special: kind, nbytes, value } => special(&params, *kind, *nbytes, value)?,
    })
}

fn meta(array: &Array) -> Meta {
    let small = |sizes: &[u64]| sizes.iter().map(|&size| size as i32).collect();
    Meta {
        shape: array.shape.iter().map(|&size| size as i64).collect(),
        chunks: small(&array.chunks),
        blocks: small(&array.blocks),
        dtype: Some(array.dtype.clone()),
        dtype_format: 0,
    }
}

/// Reads what a side has written to this path.
pub(crate) fn read(object: &Object, path: &Path) -> Result<Facts> {
    let mut facts = Facts::new();
    let mut set = |name: &str, text: String| drop(facts.insert(name.into(), text));
    let limits = Limits::default();
    match &object.kind {
        Kind::Chunk(_) => {
            let bytes = fs::read(path)?;
            let chunk = Chunk::new(&bytes, &limits)?.with_typesize(object.params.typesize);
            set("nbytes", chunk.header().nbytes.to_string());
            let header = chunk.header();
            set("blocksize", header.block_len().to_string());
            set("special", special_name(header.special));
            set("dictionary", (header.dictionary && header.is_compressed()).to_string());
            let data = chunk.decode()?;
            set("data", digest(&data));
            let (mut blocks, mut at) = (Vec::new(), 0);
            for block in 0..chunk.nblocks() {
                let len = chunk.block_size(block);
                blocks.push(&data[at..at + len]);
                at += len;
            }
            set("blocks", digests(&blocks));
            return Ok(facts);
        }
        Kind::Npy(_) => {
            let bytes = fs::read(path)?;
            let mut rest = &bytes[..];
            let header = Header::read(&mut rest)?;
            ensure!(!header.fortran_order, "in Fortran's order");
            set("shape", list(&header.shape));
            set("dtype", header.dtype.to_string());
            set("items", digest(rest));
            return Ok(facts);
        }
        Kind::Container(_) => bail!("a container"),
        Kind::Parts(_) | Kind::Fill(_) | Kind::Array(_) => {}
    }
    let mut file = match object.place {
        Place::Memory | Place::Frame => File::from_reader(fs::read(path)?, &limits)?,
        Place::Offset => {
            let reader = AtOffset::new(fs::File::open(path)?, BEFORE.len() as u64);
            File::from_reader(reader, &limits)?
        }
        Place::File | Place::Directory => File::open(path, &limits)?,
    };
    let report = check(object, path)?;
    if let Some(finding) = report.findings.iter().find(|each| each.rule.severity > Severity::Note) {
        bail!("a finding: {finding}");
    }
    let info = file.info().clone();
    let is_directory = info.kind == FileKind::Directory;
    ensure!(is_directory == (object.place == Place::Directory), "it is a {}", info.kind);
    let mut chunks = Vec::new();
    for number in 0..info.nchunks {
        let mut data = Vec::new();
        file.decode_chunk(number, &mut data)?;
        chunks.push(data);
    }
    set("nchunks", info.nchunks.to_string());
    set("chunks", digests(&chunks));
    set("typesize", info.typesize.to_string());
    set("codec", info.codec.to_string());
    set("level", info.level.context("no level")?.to_string());
    set("filters", filters(info.filters.into_iter().zip(info.filters_meta)));
    if let Kind::Array(_) = &object.kind {
        let meta = file.meta().context("no array")?.clone();
        set("shape", list(&meta.shape));
        set("chunk shape", list(&meta.chunks));
        set("block shape", list(&meta.blocks));
        set("dtype", meta.dtype.context("no dtype")?);
        let whole: Vec<_> = meta.shape.iter().map(|&size| 0..size as u64).collect();
        set("items", digest(&file.read_box(&whole)?));
        if let Some(ranges) = object.read_box() {
            set("box", digest(&file.read_box(&ranges)?));
        }
    }
    let (header, special) = stored(object, path)?;
    set("codec parameter", header.codec_meta.to_string());
    set("split mode", header.split_mode.to_string());
    set("dictionary", header.dictionary.to_string());
    if info.nchunks > 0 {
        set("special", special_name(special));
    }
    let layers = info.metalayers.into_iter().map(|layer| (layer.name, layer.content));
    found_layers("meta", layers, &mut facts);
    let mut layers = Vec::new();
    for name in info.vlmetalayers {
        let content = file.vlmetalayer(&name)?.context("a metalayer without content")?;
        layers.push((name, content));
    }
    found_layers("vlmeta", layers, &mut facts);
    Ok(facts)
}

/// Checks all of a file.
fn check(object: &Object, path: &Path) -> Result<Report> {
    let options = Options { content: true, ..Options::default() };
    Ok(match object.place {
        Place::Directory => directory::check(&Disk(path.to_owned()), &options)?,
        Place::Offset => {
            let reader = AtOffset::new(fs::File::open(path)?, BEFORE.len() as u64);
            frame::check(&reader, &options)?
        }
        _ => frame::check(&fs::read(path)?, &options)?,
    })
}

/// The header of the frame, and the kind of the first chunk, if it is special.
fn stored(object: &Object, path: &Path) -> Result<(frame::Header, Option<Special>)> {
    let limits = Limits::default();
    match object.place {
        Place::Directory => {
            header_and_special(&frame::Frame::open_directory(Disk(path.to_owned()), &limits)?)
        }
        place => {
            let bytes = fs::read(path)?;
            let start = if place == Place::Offset { BEFORE.len() } else { 0 };
            header_and_special(&frame::Frame::open(&bytes[start..], &limits)?)
        }
    }
}

fn header_and_special(
    frame: &frame::Frame<impl ReadAt>,
) -> Result<(frame::Header, Option<Special>)> {
    let special = match frame.nchunks() {
        0 => None,
        _ => Chunk::new(&frame.chunk(0)?, &Limits::default())?.header().special,
    };
    Ok((frame.header().clone(), special))
}
