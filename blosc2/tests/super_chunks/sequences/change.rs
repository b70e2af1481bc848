//! One change of a super-chunk: random choice and execution.

use std::fmt;
use std::io::Write;

use blosc2::super_chunk::VariableBlocks;
use blosc2::{CParams, SChunk, SChunkWriter, Special};

use super::data::{Data, Form, Ready, as_items, cut, params, to_items};
use super::simple::{Layer, Model, pack};
use crate::common::{Rng, hex};

/// A change.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    Append(Data),
    AppendChunk(Ready),
    AppendBlocks(Data, Vec<usize>),
    Insert(usize, Data),
    InsertChunk(usize, Ready),
    Update(usize, Data),
    UpdateChunk(usize, Ready),
    RemoveChunks(Vec<usize>),
    Truncate(usize),
    Reorder(Vec<usize>),
    Fill(Special, usize, usize),
    WriteItems(usize, Data),
    Stream { chunksize: usize, parts: Vec<Data>, flush: bool, finish: bool },
    SetCParams(Box<CParams>),
    Set { variable: bool, name: String, content: Hex },
    Remove { variable: bool, name: String },
}

/// Bytes that are printed shortened.
#[derive(Clone)]
pub(crate) struct Hex(pub(crate) Vec<u8>);

impl fmt::Debug for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

/// What a super-chunk was opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Append,
    Write,
}

/// The other conditions for the success of a change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    pub(crate) access: Access,
    /// Whether the fixed metalayers stand in front of the chunks.
    pub(crate) contiguous: bool,
    /// Whether most chunks have one size.
    pub(crate) regular: bool,
    /// Whether most chunks have variable-length blocks.
    pub(crate) variable_blocks: bool,
}

/// The most bytes of a chunk, nearly.
const LONGEST: usize = 1200;

impl Change {
    /// Any change; most can be done.
    pub(crate) fn random(model: &Model, setting: &Setting, rng: &mut Rng) -> Self {
        let (count, typesize) = (model.chunks.len(), model.typesize);
        // Mostly one that there is.
        let index = |rng: &mut Rng| match rng.below(12) {
            0 => count + rng.below(2) as usize,
            _ => rng.below(count.max(1) as u64) as usize,
        };
        let at = |rng: &mut Rng| {
            let beyond = rng.below(12) / 11;
            rng.below(count as u64 + 1 + beyond) as usize
        };
        let number = match rng.below(100) {
            // Without chunks there is little else to do.
            26..65 if count == 0 && rng.below(4) > 0 => *rng.pick(&[0, 16, 62]),
            number => number,
        };
        match number {
            0..16 if setting.variable_blocks && rng.below(8) > 0 => {
                let len = chunk_len(model, setting, rng);
                let lens = cut(len, rng);
                Self::AppendBlocks(Data::plain(len, rng), lens)
            }
            0..16 => Self::Append(Data::of(chunk_len(model, setting, rng), typesize, rng)),
            16..24 => Self::AppendChunk(ready(model, setting, rng)),
            24..26 => {
                let len = rng.below(300) as usize;
                let data = Data::plain(len, rng);
                let mut lens = cut(data.len, rng);
                if rng.below(5) == 0 {
                    lens.push(0);
                }
                Self::AppendBlocks(data, lens)
            }
            26..32 => {
                Self::Insert(at(rng), Data::of(chunk_len(model, setting, rng), typesize, rng))
            }
            32..36 => Self::InsertChunk(at(rng), ready(model, setting, rng)),
            36..44 => {
                // Mostly of the same length, so that chunks keep one size.
                let index = index(rng);
                let old = model.chunks.get(index).map_or(40, |chunk| chunk.data.len());
                let len = if rng.below(5) > 0 { old } else { chunk_len(model, setting, rng) };
                Self::Update(index, Data::of(len, typesize, rng))
            }
            44..50 => {
                let index = index(rng);
                let mut ready = ready(model, setting, rng);
                if let (Some(old), 1..) = (model.chunks.get(index), rng.below(5)) {
                    ready.items = (old.data.len() / typesize).max(1);
                }
                Self::UpdateChunk(index, ready)
            }
            50..56 => {
                let count = [1, 1, 2, 5][rng.below(4) as usize];
                Self::RemoveChunks((0..count).map(|_| index(rng)).collect())
            }
            56 => Self::Truncate(at(rng)),
            57..62 => {
                let mut order: Vec<usize> = (0..count).collect();
                for last in (1..count).rev() {
                    order.swap(last, rng.below(last as u64 + 1) as usize);
                }
                match rng.below(10) {
                    0 => order.push(0),
                    1 if count > 1 => order[0] = order[1],
                    2 if count > 0 => order[0] = count,
                    // The last one stays, so that chunks keep one size.
                    3..8 if count > 1 => {
                        let last = order.iter().position(|&each| each == count - 1).unwrap();
                        order.swap(last, count - 1);
                    }
                    _ => {}
                }
                Self::Reorder(order)
            }
            62..65 => {
                // Special chunks of NaN are little-endian, and refused on other platforms.
                let nan = if cfg!(target_endian = "big") { Special::Zeros } else { Special::Nan };
                let all = [Special::Zeros, Special::Zeros, nan, Special::Uninit];
                let special = if rng.below(12) == 0 { Special::Value } else { *rng.pick(&all) };
                let most = (LONGEST / typesize) as u64;
                Self::Fill(special, rng.below(4 * most) as usize, rng.below(most) as usize)
            }
            65..76 => {
                let width = if rng.below(2) == 0 { 1 } else { typesize };
                let items = model.nbytes() / width;
                let start = rng.below(items as u64 + 1) as usize;
                let past = if rng.below(6) == 0 { 2 * usual_len(model) / width } else { 0 };
                let len = rng.below((items - start + past) as u64 + 1) as usize;
                let start = if rng.below(12) == 0 { items + 1 } else { start };
                let data = Data::of(len * width, if width == 1 { 1 } else { typesize }, rng);
                Self::WriteItems(start * width / data.width(typesize), data)
            }
            76..82 => {
                let parts = 1 + rng.below(4);
                let long = 1 + rng.below(LONGEST as u64);
                let mut part = |_| {
                    let len = rng.below(long) as usize;
                    Data::plain(len, rng)
                };
                let parts = (0..parts).map(&mut part).collect();
                let chunksize = rng.below(10).min(1) as usize * usual_len(model);
                // For appending, nothing can follow what was flushed.
                let flush = rng.below(2) == 0 && setting.access == Access::Write;
                Self::Stream { chunksize, parts, flush, finish: rng.below(2) == 0 }
            }
            82..85 => {
                let mut params = params(typesize, rng);
                match rng.below(8) {
                    0 => params.level = 10,
                    1 => params.typesize = Some(typesize + 1),
                    2 => params.typesize = Some(typesize),
                    _ => {}
                }
                Self::SetCParams(Box::new(params))
            }
            85..96 => {
                let variable = rng.below(3) > 0;
                let layers = if variable { &model.vlmeta } else { &model.meta };
                let name = name(layers, rng);
                let old = layers.iter().find(|layer| layer.name == name);
                let bytes = Data::plain(rng.below(200) as usize, rng).bytes();
                let mut content = if name.starts_with("raw") { bytes } else { pack(&bytes) };
                if let (Some(old), false, 1..) = (old, variable, rng.below(4)) {
                    content = old.content.iter().map(|byte| byte ^ 1).collect();
                    // What tells the length stays.
                    content[..5.min(old.content.len())]
                        .copy_from_slice(&old.content[..5.min(old.content.len())]);
                }
                Self::Set { variable, name, content: Hex(content) }
            }
            _ => {
                let variable = rng.below(3) > 0;
                let layers = if variable { &model.vlmeta } else { &model.meta };
                Self::Remove { variable, name: name(layers, rng) }
            }
        }
    }

    /// Makes the change. Returns whether a metalayer to be removed was there.
    pub(crate) fn apply(&self, schunk: &mut SChunk) -> blosc2::Result<Option<bool>> {
        let typesize = schunk.typesize();
        let mut found = None;
        match self {
            Self::Append(data) => as_items!(data, typesize, items => schunk.append(items))?,
            Self::AppendChunk(ready) => schunk.append(&ready.chunk(typesize))?,
            Self::AppendBlocks(data, lens) => {
                let bytes = data.bytes();
                let mut rest = &bytes[..];
                let blocks: Vec<&[u8]> =
                    lens.iter().map(|&len| rest.split_off(..len).unwrap()).collect();
                schunk.append(VariableBlocks(&blocks))?;
            }
            Self::Insert(index, data) => {
                as_items!(data, typesize, items => schunk.insert(*index, items))?;
            }
            Self::InsertChunk(index, ready) => schunk.insert(*index, &ready.chunk(typesize))?,
            Self::Update(index, data) => {
                as_items!(data, typesize, items => schunk.replace(*index, items))?;
            }
            Self::UpdateChunk(index, ready) => {
                schunk.replace(*index, &ready.chunk(typesize))?;
            }
            Self::RemoveChunks(list) => match list[..] {
                [index] => schunk.remove(index)?,
                _ => schunk.remove(list)?,
            },
            Self::Truncate(count) => schunk.remove(*count..)?,
            Self::Reorder(order) => schunk.reorder(order)?,
            Self::Fill(special, items, chunk_items) => {
                schunk.fill(*special, *items as u64, *chunk_items)?;
            }
            Self::WriteItems(start, data) => {
                let start = *start as u64;
                as_items!(data, typesize, items => schunk.write(start, items))?;
            }
            Self::Stream { chunksize, parts, flush, finish } => {
                let mut writer = SChunkWriter::new(schunk, *chunksize)?;
                for part in parts {
                    writer.write_all(&part.bytes()).unwrap();
                    if *flush {
                        writer.flush().unwrap();
                    }
                }
                if *finish {
                    writer.finish()?;
                }
            }
            Self::SetCParams(params) => schunk.set_cparams(&**params)?,
            Self::Set { variable: true, name, content } => {
                schunk.vlmeta_mut().set(name, &content.0)?;
            }
            Self::Set { variable: false, name, content } => {
                schunk.meta_mut().set(name, &content.0)?
            }
            Self::Remove { variable, name } => {
                let mut layers = if *variable { schunk.vlmeta_mut() } else { schunk.meta_mut() };
                found = Some(layers.remove(name)?);
            }
        }
        Ok(found)
    }
}

/// Bytes of most chunks of this super-chunk.
fn usual_len(model: &Model) -> usize {
    match model.chunksize {
        None | Some(0) => (LONGEST / 3 / model.typesize).max(1) * model.typesize,
        Some(size) => size,
    }
}

/// Bytes of a new chunk.
fn chunk_len(model: &Model, setting: &Setting, rng: &mut Rng) -> usize {
    let usual = usual_len(model);
    let typesize = model.typesize;
    match rng.below(40) {
        0 => 0,
        // No whole items.
        1 => 1 + rng.below(usual as u64) as usize,
        2 => (1 + rng.below((usual / typesize).max(1) as u64) as usize) * typesize,
        3.. if setting.regular => usual,
        _ => (1 + rng.below((LONGEST / typesize) as u64) as usize) * typesize,
    }
}

fn ready(model: &Model, setting: &Setting, rng: &mut Rng) -> Ready {
    let items = (chunk_len(model, setting, rng) / model.typesize).max(1);
    Ready {
        params: params(model.typesize, rng),
        ..Ready::random(items, setting.variable_blocks, rng)
    }
}

/// The name of a metalayer: often of one that is there.
fn name(layers: &[Layer], rng: &mut Rng) -> String {
    if !layers.is_empty() && rng.below(2) == 0 {
        return rng.pick(layers).name.clone();
    }
    match rng.below(30) {
        0 => String::new(),
        1 => "n".repeat(31),
        2 => "n".repeat(32),
        3 => (*rng.pick(&["b2nd", "b2o", "LazyArray"])).into(),
        4 => "nul\0".into(),
        5 => "größe".into(),
        6..9 => format!("raw {}", rng.below(3)),
        _ => format!("layer {}", rng.below(18)),
    }
}
