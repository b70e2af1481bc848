//! The rules of the legacy frames. Both layouts have the same rules with separate identifiers.

use super::Layout;
use crate::report::Rule;

macro_rules! rules {
    ($($field:ident: $severity:ident $what:literal,)*) => {
        /// The rules of one layout.
        #[derive(Debug)]
        pub(crate) struct Rules {
            $(pub(crate) $field: Rule,)*
        }

        static EARLY: Rules = Rules {
            $($field: Rule::$severity(
                concat!("early.", stringify!($field)), $what, "Early frame",
            ),)*
        };

        static VERSION1: Rules = Rules {
            $($field: Rule::$severity(
                concat!("frame1.", stringify!($field)), $what, "Frame version 1",
            ),)*
        };

        pub(crate) const RULES: &[&Rule] = &[$(&EARLY.$field, &VERSION1.$field,)*];
    };
}

rules! {
    length: error "frame",
    magic: error "magic",
    elements: error "number of elements",
    marker: error "msgpack marker",
    header_len: error "header length",
    frame_len: error "frame length",
    stale_frame_len: warning "frame length",
    general_flags: error "general flags",
    filter_flags: warning "filter flags",
    codec: error "codec",
    other_codec: warning "codec",
    level: error "compression level",
    reserved: warning "reserved flags",
    nbytes: error "decompressed size",
    cbytes: error "compressed size",
    typesize: error "typesize",
    other_typesize: warning "typesize",
    chunksize: error "chunk size",
    threads: warning "number of threads",
    flag: error "flag before the metalayers",
    other_flag: warning "flag before the metalayers",
    stale_flag: note "flag before the metalayers",
    filters: error "filters",
    other_filters: warning "filters",
    metalayers: error "metalayers",
    metalayer_map_len: warning "length of the map of metalayers",
    metalayer_name: error "metalayer name",
    metalayer_offset: error "metalayer offset",
    index: error "index",
    index_form: warning "header of the index",
    offset: error "chunk offset",
    overlap: error "chunk",
    gap: warning "bytes between chunks",
    trailer: error "trailer",
    trailer_len: error "trailer length",
    trailer_gap: warning "bytes between index and trailer",
    fingerprint: warning "fingerprint",
    rest: note "bytes after the frame",
    limit: warning "unchecked content",
}

impl Rules {
    pub(crate) fn of(layout: Layout) -> &'static Self {
        match layout {
            Layout::Early => &EARLY,
            Layout::Version1 => &VERSION1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut ids: Vec<_> = RULES.iter().map(|rule| rule.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), RULES.len());
        assert!(ids.contains(&"early.general_flags") && ids.contains(&"frame1.general_flags"));
    }
}
