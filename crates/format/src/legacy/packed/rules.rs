//! The rules of the packed super-chunk.

use crate::report::Rule;

const SECTION: &str = "Packed super-chunk";

macro_rules! rules {
    ($($name:ident: $severity:ident $id:literal, $what:literal;)*) => {
        $(pub(crate) static $name: Rule = Rule::$severity(concat!("packed.", $id), $what, SECTION);)*
        pub(crate) const RULES: &[&Rule] = &[$(&$name,)*];
    };
}

rules! {
    LENGTH: error "length", "packed super-chunk";
    ALPHA5: error "alpha5", "header";
    VERSION: error "version", "version";
    FLAGS: warning "flags", "flags";
    CODEC: error "codec", "codec";
    OTHER_CODEC: warning "other_codec", "codec";
    LEVEL: error "level", "compression level";
    FILTERS: error "filters", "filters";
    OTHER_FILTERS: warning "other_filters", "filters";
    UNUSED_FILTERS: note "unused_filters", "filters after those that apply";
    FILTERS_META: note "filters_meta", "filters' parameters";
    CHUNKSIZE: warning "chunksize", "chunk size";
    NCHUNKS: error "nchunks", "number of chunks";
    NBYTES: error "nbytes", "decompressed size";
    CBYTES: error "cbytes", "compressed size";
    POSITION: error "position", "position of an ancillary chunk";
    INDEX: error "index", "position of the table of positions";
    OFFSET: error "offset", "position of a chunk";
    ORDER: warning "order", "order of the parts";
    OVERLAP: error "overlap", "chunk";
    GAP: warning "gap", "bytes between chunks";
    REST: note "rest", "bytes after the packed super-chunk";
    LIMIT: warning "limit", "unchecked content";
    REFERENCE: error "reference", "reference of delta";
    DELTA_AMBIGUOUS: warning "delta_ambiguous", "delta of a stored chunk";
}
