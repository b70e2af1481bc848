//! Why a side cannot write or read some objects. The matrix tries every case, and fails if an excuse is not true.

use crate::containers::Container;
use crate::object::{
    BITSHUFFLE, DELTA, Kind, LZ4HC, NDCELL, NDLZ, NDMEAN, Object, Part, Place, Side,
};

/// The reason of an empty cell, or of a part of it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Excuse {
    /// The case cannot succeed.
    Always(&'static str),
    /// It depends on the data whether the case succeeds.
    Sometimes(&'static str),
    /// The outcome is not counted: because of a fault of C-Blosc2 it may depend on uninitialized memory.
    Undefined(&'static str),
}

use Excuse::{Always, Sometimes, Undefined};

/// The reason why a side cannot write an object.
pub(crate) fn cannot_write(side: Side, object: &Object) -> Option<Excuse> {
    let params = &object.params;
    match (side, &object.kind) {
        (Side::C, Kind::Npy(_)) => Some(Always(NPY)),
        (Side::Format, Kind::Npy(_)) => None,
        (Side::Format, Kind::Container(_)) => Some(Always(FORMAT_CONTAINER)),
        (Side::C, Kind::Container(_)) => Some(Always(C_CONTAINER)),
        (Side::Blosc2, Kind::Container(Container::Dict { .. })) => Some(Always(
            "`blosc2-store` creates stores as TreeStore. It reads and changes DictStores, but does not create \
             them.",
        )),
        (Side::Blosc2, Kind::Container(Container::Table { .. })) => Some(Always(
            "The matrix does not write tables with `blosc2-store`: `crates/store/tests/containers` tests the tables that it \
                 writes.",
        )),
        (Side::Format, _) if params.blosc1 => {
            Some(Always("`blosc2-format` reads chunks of Blosc1 and does not write them."))
        }
        (Side::Format, _) if params.dictionary => {
            Some(Always("`blosc2-format` reads dictionaries and does not create them."))
        }
        (Side::Format, _) if needs_array_plugins(object) => Some(Always(PLUGINS)),
        (Side::Format, _) if object.place == Place::Memory => {
            Some(Always("`blosc2-format` writes super-chunks in memory only as frames."))
        }
        (Side::Format, _) if params.codec == LZ4HC => Some(Sometimes(
            "`blosc2-format` reads LZ4HC and has no encoder for it. It writes only chunks whose \
             data is stored uncompressed or is special.",
        )),
        (Side::Python, Kind::Chunk(Part::Special { .. })) => {
            Some(Always("Python has no function for a single special chunk."))
        }
        (Side::Python | Side::C, Kind::Parts(parts)) if are_variable_with_zeros(parts) => {
            Some(Sometimes(
                "C-Blosc2 cannot append some sequences of variable-length chunks with a chunk of zeros: the \
                 index stores that chunk as a special chunk, without its length.",
            ))
        }
        _ => None,
    }
}

/// The reason why a side cannot read what another has written.
pub(crate) fn cannot_read(reader: Side, object: &Object, writer: Side) -> Option<Excuse> {
    let params = &object.params;
    if matches!(writer, Side::Python | Side::C) && exports_large_items(object) {
        return Some(Always(
            "If C-Blosc2 converts a super-chunk of separate chunks in memory to a frame, and the items have \
             more than 255 bytes, the frame has a typesize of 1: the items cannot be read again.",
        ));
    }
    if writer == Side::Python && params.filters.len() > 2 {
        return Some(Undefined(
            "With more than two filters, the C-Blosc2 of Python writes into the buffer that it compresses, so \
             that the data is wrong; the sources that `blosc2-sys` compiles are patched.",
        ));
    }
    if writer == Side::Python && has_incomplete_item(object) && !is_below_an_item(object) {
        return Some(Undefined(
            "If the length of a chunk is not a multiple of the typesize, the C-Blosc2 of Python loses the end \
             of blocks that it splits into streams; the sources that `blosc2-sys` compiles are patched.",
        ));
    }
    match (reader, &object.kind) {
        (Side::C, Kind::Npy(_)) => Some(Always(NPY)),
        (Side::Format, Kind::Container(_)) => Some(Always(FORMAT_CONTAINER)),
        (Side::C, Kind::Container(_)) => Some(Always(C_CONTAINER)),
        // A chunk that is stored uncompressed needs no plugin.
        (Side::Format, _) if needs_array_plugins(object) => Some(Sometimes(PLUGINS)),
        (Side::Python, _)
            if params.blosc1 && params.has(BITSHUFFLE) && has_incomplete_item(object) =>
        {
            Some(Undefined(
                "The C-Blosc2 of Python loses the bytes after the last whole item of bitshuffled chunks of \
                 Blosc1; the sources that `blosc2-sys` compiles are patched.",
            ))
        }
        _ => None,
    }
}

/// Facts that a side cannot find.
pub(crate) fn unknown_facts(side: Side, object: &Object) -> &'static [&'static str] {
    match side {
        // The library of Python reads wrong data of parts of chunks with delta.
        Side::Python if object.params.has(DELTA) => &["box"],
        // Python has no function for the header of a single chunk.
        Side::Python if matches!(object.kind, Kind::Chunk(_)) => &["special", "dictionary"],
        _ => &[],
    }
}

fn needs_array_plugins(object: &Object) -> bool {
    object.params.codec == NDLZ || object.params.has(NDCELL) || object.params.has(NDMEAN)
}

/// Whether variable-length chunks include one of zeros.
fn are_variable_with_zeros(parts: &[Part]) -> bool {
    let chunks = parts.iter().filter_map(|part| match part {
        Part::Data(bytes) => Some(bytes),
        _ => None,
    });
    let first = chunks.clone().next().map_or(0, Vec::len);
    chunks.clone().any(|chunk| chunk.len() > first)
        && chunks.clone().any(|chunk| chunk.iter().all(|&byte| byte == 0))
}

fn exports_large_items(object: &Object) -> bool {
    let has_chunks = match &object.kind {
        Kind::Parts(parts) => !parts.is_empty(),
        Kind::Array(array) => !array.shape.contains(&0),
        _ => false,
    };
    object.place == Place::Memory && object.params.typesize > 255 && has_chunks
}

fn has_incomplete_item(object: &Object) -> bool {
    let typesize = object.params.typesize;
    match &object.kind {
        Kind::Chunk(Part::Data(bytes)) => bytes.len() % typesize != 0,
        _ => false,
    }
}

fn is_below_an_item(object: &Object) -> bool {
    matches!(&object.kind, Kind::Chunk(Part::Data(bytes)) if bytes.len() < object.params.typesize)
}

/// Whether the library of Python compresses the index of an object in threads, which store blocks in any order.
pub(crate) fn has_index_of_blocks(object: &Object) -> bool {
    match &object.kind {
        Kind::Parts(parts) => parts.len() > 2048,
        Kind::Array(array) => {
            let counts =
                array.shape.iter().zip(&array.chunks).map(|(size, chunk)| size.div_ceil(*chunk));
            counts.product::<u64>() > 2048
        }
        _ => false,
    }
}

const NPY: &str = "The C library has no functions for `.npy` files.";
const FORMAT_CONTAINER: &str =
    "`blosc2-format` reads and writes the frames of containers, not containers.";
const C_CONTAINER: &str =
    "Python defines these containers. The C library has no functions for them.";
const PLUGINS: &str = "`blosc2-format` does not contain NDLZ, NDCELL and NDMEAN. It reads chunks \
     that are stored uncompressed.";
