//! Why a side cannot write or read some objects. The matrix tries each case and fails if an excuse is no longer true.

use crate::object::{
    DELTA, Kind, LZ4HC, NDCELL, NDLZ, NDMEAN, Object, Part, Place, Side,
};
use crate::containers::Container;

/// The reason why a side cannot write an object.
pub(crate) fn cannot_write(side: Side, object: &Object) -> Option<&'static str> {
    let params = &object.params;
    match side {
        Side::Blosc2 => match &object.kind {
            Kind::Npy(_) => Some(NPY),
            Kind::Container(Container::Dict { .. }) => Some("`blosc2-store` writes stores as TreeStore, not as DictStore."),
            Kind::Container(Container::Table { .. }) => Some("`blosc2-store` reads tables and does not write them."),
            _ => None,
        },
        Side::Format => match &object.kind {
            Kind::Container(_) => Some(FORMAT_CONTAINER),
            Kind::Npy(_) => None,
            _ if params.blosc1 => Some("`blosc2-format` reads chunks of Blosc1 and does not write them."),
            _ if params.dictionary => Some("`blosc2-format` reads dictionaries and does not create them."),
            _ if needs_array_plugins(object) => Some(PLUGINS),
            _ if object.place == Place::Memory => Some("In memory, `blosc2-format` has no form of a super-chunk other than the frame."),
            _ => None,
        },
        Side::Python => match &object.kind {
            Kind::Chunk(Part::Special { .. }) => Some("Python has no function for a single special chunk."),
            _ => None,
        },
        Side::C => match &object.kind {
            Kind::Npy(_) => Some(NPY),
            Kind::Container(_) => Some(C_CONTAINER),
            _ => None,
        },
    }
}

/// The reason why a side cannot read what another has written.
pub(crate) fn cannot_read(side: Side, object: &Object, _writer: Side) -> Option<&'static str> {
    match side {
        Side::Blosc2 => match &object.kind {
            Kind::Npy(_) => Some(NPY),
            _ => None,
        },
        Side::Format => match &object.kind {
            Kind::Container(_) => Some(FORMAT_CONTAINER),
            _ if needs_array_plugins(object) => Some(PLUGINS),
            _ => None,
        },
        Side::Python => None,
        Side::C => match &object.kind {
            Kind::Npy(_) => Some(NPY),
            Kind::Container(_) => Some(C_CONTAINER),
            _ => None,
        },
    }
}

/// The reason why a side may be unable to write an object, depending on the data.
pub(crate) fn may_not_write(side: Side, object: &Object) -> Option<&'static str> {
    let has_no_encoder = side == Side::Format && object.params.codec == LZ4HC;
    has_no_encoder.then_some(
        "`blosc2-format` has no encoder of LZ4HC. It writes only chunks that are not compressed.",
    )
}

/// Facts that a side cannot find.
pub(crate) fn unknown_facts(side: Side, object: &Object) -> &'static [&'static str] {
    match side {
        // The library of Python reads wrong data of parts of chunks with delta.
        Side::Python if object.params.has(DELTA) => &["box"],
        _ => &[],
    }
}

fn needs_array_plugins(object: &Object) -> bool {
    object.params.codec == NDLZ || object.params.has(NDCELL) || object.params.has(NDMEAN)
}

const NPY: &str = "The C library and `blosc2` have no functions for `.npy` files.";
const FORMAT_CONTAINER: &str = "`blosc2-format` reads and writes the frames of containers, not containers.";
const C_CONTAINER: &str = "Python defines these containers. The C library has no functions for them.";
const PLUGINS: &str = "`blosc2-format` does not contain NDLZ, NDCELL and NDMEAN.";
