//! The rules of a chunk, and the destinations of their violations.

use crate::FormatError;
use crate::report::{Checker, Rule, Severity};

const HEADER_SECTION: &str = "Chunk: header";
/// The section about the blocks of a chunk whose header is valid.
pub(crate) const BLOCKS: &str = "Chunk: blocks";
const SPECIAL_VALUES: &str = "Chunk: special values";
const VL: &str = "Chunk: variable-length blocks";

macro_rules! rules {
    ($($name:ident $severity:ident $id:literal $what:literal $section:expr;)*) => {
        $(pub(crate) const $name: Rule = Rule::$severity($id, $what, $section);)*

        /// All rules of this module.
        pub(crate) const RULES: &[&Rule] = &[$(&$name),*];
    };
}

rules! {
    HEADER error "chunk.header" "chunk header" HEADER_SECTION;
    EXTENDED_HEADER error "chunk.extended_header" "extended chunk header" HEADER_SECTION;
    VERSION error "chunk.version" "chunk version" HEADER_SECTION;
    TYPESIZE error "chunk.typesize" "typesize" HEADER_SECTION;
    NBYTES error "chunk.nbytes" "decompressed size" HEADER_SECTION;
    BLOCKSIZE error "chunk.blocksize" "block size" HEADER_SECTION;
    CBYTES error "chunk.cbytes" "compressed size" HEADER_SECTION;
    TRUNCATED error "chunk.truncated" "compressed size" HEADER_SECTION;
    TRAILING warning "chunk.trailing" "bytes after the chunk" HEADER_SECTION;
    RESERVED warning "chunk.reserved" "reserved bits" HEADER_SECTION;
    CODEC_VERSION warning "chunk.codec_version" "version of the codec's format" HEADER_SECTION;
    OTHER_VERSION warning "chunk.other_version" "chunk version" HEADER_SECTION;
    DELTA_FLAG warning "chunk.delta_flag" "delta flag" HEADER_SECTION;
    LARGE_BLOCKSIZE note "chunk.large_blocksize" "block size" HEADER_SECTION;
    STORED_CBYTES error "chunk.stored_cbytes" "compressed size" HEADER_SECTION;
    INSTRUMENTED note "chunk.instrumented" "instrumented codec" HEADER_SECTION;

    CODEC error "chunk.codec" "codec" "Codecs";
    PLUGIN_CODEC note "chunk.plugin_codec" "codec" "Codecs";
    USER_CODEC warning "chunk.user_codec" "code of the codec" "Codecs";
    FILTER error "chunk.filter" "filter" "Filters";
    LOST_END error "chunk.lost_end" "end of the blocks" "Filters";
    DELTA_PLACE warning "chunk.delta_place" "filters" "Filters";
    PLUGIN_FILTER note "chunk.plugin_filter" "filter" "Filters";

    SPECIAL error "chunk.special" "special value" SPECIAL_VALUES;
    SPECIAL_ITEMS error "chunk.special_items" "decompressed size" SPECIAL_VALUES;
    SPECIAL_BLOCKS error "chunk.special_blocks" "block size" SPECIAL_VALUES;
    SPECIAL_STORED error "chunk.special_stored" "compressed size" SPECIAL_VALUES;
    SPECIAL_CBYTES warning "chunk.special_cbytes" "compressed size" SPECIAL_VALUES;
    NAN_TYPESIZE error "chunk.nan_typesize" "typesize" SPECIAL_VALUES;
    VALUE_WIDTH error "chunk.value_width" "decompressed size" SPECIAL_VALUES;

    BSTARTS error "chunk.bstarts" "block starts" BLOCKS;
    BSTART error "chunk.bstart" "block start" BLOCKS;
    DICTIONARY error "chunk.dictionary" "size of the dictionary" BLOCKS;
    DICTIONARY_CONTENT error "chunk.dictionary_content" "content of the dictionary" BLOCKS;
    UNUSED_DICTIONARY warning "chunk.unused_dictionary" "dictionary" BLOCKS;
    SPLIT error "chunk.split" "block size" BLOCKS;
    OLD_SPLIT error "chunk.old_split" "bytes after a block" BLOCKS;
    OVERLAP error "chunk.overlap" "blocks" BLOCKS;
    GAP warning "chunk.gap" "bytes between blocks" BLOCKS;
    CSIZE error "chunk.csize" "size of a stream" BLOCKS;
    RATIO error "chunk.ratio" "size of a stream" BLOCKS;
    TOKEN error "chunk.token" "token of a stream" BLOCKS;
    TOKEN_BITS warning "chunk.token_bits" "token of a stream" BLOCKS;
    RUN error "chunk.run" "repeated byte of a stream" BLOCKS;
    CONTENT error "chunk.content" "content of a block" BLOCKS;
    UNSUPPORTED note "chunk.unsupported" "content of a block" BLOCKS;
    LIMIT warning "chunk.limit" "content of a block" BLOCKS;

    LAZY error "chunk.lazy" "lazy chunk" "Chunk: lazy";
    LAZY_NUMBER error "chunk.lazy_number" "number of a lazy chunk" "Chunk: lazy";
    LAZY_OFFSET error "chunk.lazy_offset" "offset of a lazy chunk" "Chunk: lazy";
    LAZY_BSIZE error "chunk.lazy_bsize" "size of a lazy block" "Chunk: lazy";

    VL_FLAGS error "chunk.vl_flags" "chunk flags" VL;
    VL_EMPTY error "chunk.vl_empty" "decompressed size" VL;
    VL_BSTART error "chunk.vl_bstart" "block start" VL;
    VL_SIZE error "chunk.vl_size" "size of a block" VL;
    VL_SUM error "chunk.vl_sum" "decompressed size" VL;
}

/// A destination of violations: a check records all of them, a reader stops at the first error.
pub(crate) trait Findings {
    fn found(
        &mut self,
        rule: &'static Rule,
        offset: u64,
        len: u64,
        expected: impl ToString,
        found: impl ToString,
    );
}

impl Findings for Checker<'_> {
    fn found(
        &mut self,
        rule: &'static Rule,
        offset: u64,
        len: u64,
        expected: impl ToString,
        found: impl ToString,
    ) {
        Checker::found(self, rule, offset, len, expected, found);
    }
}

/// The first error.
#[derive(Debug, Default)]
pub(crate) struct First(Option<FormatError>);

impl First {
    /// Returns `value` if there was no error.
    pub(crate) fn or<T>(self, value: T) -> Result<T, FormatError> {
        self.0.map_or(Ok(value), Err)
    }

    pub(crate) fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the error that prevented reading.
    pub(crate) fn error(self) -> FormatError {
        self.0.unwrap_or_else(|| FormatError::of(&HEADER, 0, "a chunk", "none"))
    }
}

impl Findings for First {
    fn found(
        &mut self,
        rule: &'static Rule,
        offset: u64,
        _: u64,
        expected: impl ToString,
        found: impl ToString,
    ) {
        if self.0.is_none() && rule.severity == Severity::Error {
            self.0 = Some(FormatError::of(rule, offset, expected, found));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_has_its_own_name() {
        let mut names: Vec<_> = RULES.iter().map(|rule| rule.id).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), RULES.len());
        assert!(names.iter().all(|name| name.starts_with("chunk.")));
    }
}
