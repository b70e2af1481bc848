//! The effect of a change on the model, and the expected errors.

use std::collections::BTreeSet;

use blosc2::{ErrorKind, Special};

use super::change::{Access, Change, Hex, Setting};
use super::data::{Data, Form, Made};
use super::simple::{Layer, Model, Piece};

impl Change {
    /// Applies the change to the model. If the change must fail, returns the possible kinds of errors and leaves the
    /// model in the state after the failure.
    pub(crate) fn foretell(&self, model: &mut Model, setting: &Setting) -> Vec<ErrorKind> {
        use ErrorKind::{InvalidArgument, OutOfBounds, ReadOnly, TypeMismatch, Unsupported};

        let mut wrong = Vec::new();
        let mut unless = |right: bool, kind| {
            if !right {
                wrong.push(kind);
            }
        };
        let (count, typesize) = (model.chunks.len(), model.typesize);
        let variable_blocks = model.variable_blocks();
        let appends = setting.access != Access::Read;
        let writes = setting.access == Access::Write;
        match self {
            Self::Append(data) | Self::Insert(_, data) | Self::Update(_, data) => {
                let (room, others) = match self {
                    Self::Append(_) => {
                        unless(appends, ReadOnly);
                        (count, count)
                    }
                    Self::Insert(..) => {
                        unless(writes, ReadOnly);
                        (count + 1, count)
                    }
                    _ => {
                        unless(writes, ReadOnly);
                        (count, count.saturating_sub(1))
                    }
                };
                unless(data.form != Form::Wrong, TypeMismatch);
                unless(data.len > 0, InvalidArgument);
                unless(others == 0 || !variable_blocks, InvalidArgument);
                let piece = Piece::of(data.bytes());
                match *self {
                    Self::Append(_) if wrong.is_empty() => model.insert(count, piece),
                    Self::Insert(index, _) | Self::Update(index, _) if index >= room => {
                        wrong.push(OutOfBounds);
                    }
                    Self::Insert(index, _) if wrong.is_empty() => model.insert(index, piece),
                    Self::Update(index, _) if wrong.is_empty() => model.replace(index, piece),
                    _ => {}
                }
            }
            Self::AppendChunk(ready)
            | Self::InsertChunk(_, ready)
            | Self::UpdateChunk(_, ready) => {
                let others = match self {
                    Self::AppendChunk(_) => {
                        unless(appends, ReadOnly);
                        count
                    }
                    Self::InsertChunk(index, _) => {
                        unless(writes, ReadOnly);
                        unless(*index <= count, OutOfBounds);
                        count
                    }
                    Self::UpdateChunk(index, _) => {
                        unless(writes, ReadOnly);
                        unless(*index < count, OutOfBounds);
                        count.saturating_sub(1)
                    }
                    _ => count,
                };
                let piece = ready.piece(typesize);
                match &piece {
                    Some(piece) => {
                        let same = piece.blocks.is_some() == variable_blocks;
                        unless(others == 0 || same, InvalidArgument);
                    }
                    None => match ready.made {
                        Made::Blosc1 => unless(false, Unsupported),
                        Made::Empty => unless(false, InvalidArgument),
                        _ => unless(false, TypeMismatch),
                    },
                }
                match (self, piece) {
                    (_, None) => {}
                    (Self::AppendChunk(_), Some(piece)) if wrong.is_empty() => {
                        model.insert(count, piece);
                    }
                    (Self::InsertChunk(index, _), Some(piece)) if wrong.is_empty() => {
                        model.insert(*index, piece);
                    }
                    (Self::UpdateChunk(index, _), Some(piece)) if wrong.is_empty() => {
                        model.replace(*index, piece);
                    }
                    _ => {}
                }
            }
            Self::AppendBlocks(data, lens) => {
                unless(appends, ReadOnly);
                unless(!lens.is_empty() && lens.iter().all(|&len| len > 0), InvalidArgument);
                unless(count == 0 || variable_blocks, InvalidArgument);
                if wrong.is_empty() {
                    let blocks = Some(lens.clone());
                    model.insert(count, Piece { blocks, ..Piece::of(data.bytes()) });
                }
            }
            Self::RemoveChunks(list) => {
                unless(writes, ReadOnly);
                unless(list.iter().all(|&index| index < count), OutOfBounds);
                if wrong.is_empty() {
                    let removed: BTreeSet<_> = list.iter().rev().collect();
                    for &index in removed.into_iter().rev() {
                        model.chunks.remove(index);
                    }
                    if model.chunks.is_empty() {
                        model.chunksize = None;
                    }
                    model.measure();
                }
            }
            Self::Truncate(kept) => {
                unless(writes, ReadOnly);
                unless(*kept <= count, OutOfBounds);
                if wrong.is_empty() && *kept < count {
                    model.chunks.truncate(*kept);
                    if model.chunks.is_empty() {
                        model.chunksize = None;
                    }
                    model.measure();
                }
            }
            Self::Reorder(order) => {
                unless(writes, ReadOnly);
                let mut sorted = order.clone();
                sorted.sort_unstable();
                unless(sorted.iter().copied().eq(0..count), InvalidArgument);
                if wrong.is_empty() {
                    let chunks = order.iter().map(|&index| model.chunks[index].clone());
                    model.chunks = chunks.collect();
                    model.measure();
                }
            }
            Self::Fill(special, items, chunk_items) => {
                unless(appends, ReadOnly);
                unless(count == 0 && *chunk_items > 0, InvalidArgument);
                unless(*special != Special::Value, InvalidArgument);
                unless(*special != Special::Nan || [4, 8].contains(&typesize), InvalidArgument);
                if wrong.is_empty() && *items > 0 {
                    let item = match (special, typesize) {
                        (Special::Nan, 4) => f32::NAN.to_le_bytes().to_vec(),
                        (Special::Nan, _) => f64::NAN.to_le_bytes().to_vec(),
                        _ => vec![0; typesize],
                    };
                    let chunksize = chunk_items * typesize;
                    model.chunksize = Some(chunksize);
                    let undefined = *special == Special::Uninit;
                    let all = item.repeat(*items);
                    let piece = |data: &[u8]| Piece { undefined, ..Piece::of(data.to_vec()) };
                    model.chunks = all.chunks(chunksize).map(piece).collect();
                }
            }
            Self::WriteItems(start, data) => {
                let width = data.width(typesize);
                unless(data.form != Form::Wrong, TypeMismatch);
                unless(writes, ReadOnly);
                unless(!variable_blocks, Unsupported);
                let (from, bytes) = (start * width, data.bytes());
                let past = (from + bytes.len()).saturating_sub(model.nbytes());
                unless(from <= model.nbytes(), OutOfBounds);
                let size = model.chunksize.unwrap_or(0);
                unless(past == 0 || size > 0, InvalidArgument);
                if wrong.is_empty() {
                    let (over, new) = bytes.split_at(bytes.len() - past);
                    model.write(from, over);
                    model.extend(size, new);
                }
            }
            Self::Stream { chunksize, parts, flush, .. } => {
                let size = match model.chunksize {
                    None | Some(0) => *chunksize,
                    Some(size) => size,
                };
                let short = model.chunks.last().is_some_and(|last| last.data.len() < size);
                unless(appends, ReadOnly);
                unless(writes || !short, ReadOnly);
                unless(model.chunksize != Some(0) && !variable_blocks, InvalidArgument);
                let known = model.chunksize.is_some_and(|size| size > 0);
                unless(size > 0 && (known || size % typesize == 0), InvalidArgument);
                if wrong.is_empty() {
                    model.stream(size, parts, *flush);
                }
            }
            Self::SetCParams(params) => {
                let asked = params.typesize.unwrap_or(typesize);
                unless(params.level < 10 && asked == typesize, InvalidArgument);
            }
            Self::Set { variable, name, content: Hex(content) } => {
                let fixed = !variable;
                let cannot_move = fixed && setting.contiguous && count > 0;
                let layers = if *variable { &mut model.vlmeta } else { &mut model.meta };
                let full = layers.len() >= 16;
                let there = layers.iter_mut().find(|layer| layer.name == *name);
                unless(writes, ReadOnly);
                unless(!is_reserved(name), InvalidArgument);
                unless((1..=31).contains(&name.len()) && !name.contains('\0'), InvalidArgument);
                match there {
                    Some(layer) => {
                        unless(!fixed || layer.content.len() == content.len(), InvalidArgument);
                        if wrong.is_empty() {
                            layer.content.clone_from(content);
                        }
                    }
                    None => {
                        unless(!full && !cannot_move, InvalidArgument);
                        if wrong.is_empty() {
                            layers.push(Layer { name: name.clone(), content: content.clone() });
                        }
                    }
                }
            }
            Self::Remove { variable, name } => {
                let cannot_move = !variable && setting.contiguous && count > 0;
                let layers = if *variable { &mut model.vlmeta } else { &mut model.meta };
                let there = layers.iter().position(|layer| layer.name == *name);
                unless(writes, ReadOnly);
                unless(!is_reserved(name), InvalidArgument);
                unless(there.is_none() || !cannot_move, InvalidArgument);
                if let (true, Some(at)) = (wrong.is_empty(), there) {
                    layers.remove(at);
                }
            }
        }
        wrong
    }
}

impl Model {
    /// Appends bytes: fills up the last chunk, and adds chunks of `size` bytes.
    fn extend(&mut self, size: usize, mut bytes: &[u8]) {
        let count = self.chunks.len();
        if let Some(last) = self.chunks.last().filter(|last| last.data.len() < size) {
            let (more, rest) = bytes.split_at(bytes.len().min(size - last.data.len()));
            if !more.is_empty() {
                let data = [&last.data[..], more].concat();
                self.replace(count - 1, Piece::of(data));
            }
            bytes = rest;
        }
        for new in bytes.chunks(size.max(1)) {
            self.insert(self.chunks.len(), Piece::of(new.to_vec()));
        }
    }

    /// Appends as a writer does that has chunks of `size` bytes.
    fn stream(&mut self, size: usize, parts: &[Data], flush: bool) {
        let mut replaces = None;
        let mut rest = Vec::new();
        let put = |model: &mut Self, rest: &mut Vec<u8>, replaces: &mut Option<usize>| {
            let piece = Piece::of(rest.clone());
            match *replaces {
                Some(index) => model.replace(index, piece),
                None => {
                    *replaces = Some(model.chunks.len());
                    model.insert(model.chunks.len(), piece);
                }
            }
            if rest.len() == size {
                rest.clear();
                *replaces = None;
            }
        };
        if let Some(last) = self.chunks.last().filter(|last| last.data.len() < size) {
            (rest, replaces) = (last.data.clone(), Some(self.chunks.len() - 1));
        }
        let mut is_new = false;
        for part in parts {
            for byte in part.bytes() {
                rest.push(byte);
                is_new = true;
                if rest.len() == size {
                    put(self, &mut rest, &mut replaces);
                    is_new = false;
                }
            }
            if flush && is_new {
                put(self, &mut rest, &mut replaces);
                is_new = false;
            }
        }
        if is_new {
            put(self, &mut rest, &mut replaces);
        }
    }
}

fn is_reserved(name: &str) -> bool {
    ["b2nd", "b2o", "LazyArray"].contains(&name)
}
