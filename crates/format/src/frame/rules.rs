//! The rules of a frame.

use crate::report::Rule;

const HEADER: &str = "Frame: header";
const METALAYERS: &str = "Frame: metalayers";
const INDEX: &str = "Frame: index";
const TRAILER: &str = "Frame: trailer";
const CHECKS: &str = "Frame: checksums";
const CHANGES: &str = "Frame: changes";
const FRAME: &str = "Frame";

macro_rules! rules {
    ($($name:ident = $severity:ident($id:literal, $what:literal, $section:expr);)*) => {
        $(pub(crate) static $name: Rule = Rule::$severity($id, $what, $section);)*
        /// Every rule of a frame.
        pub(crate) const RULES: &[&Rule] = &[$(&$name),*];
    };
}

rules! {
    MAGIC = error("frame.magic", "magic", HEADER);
    SHORT = error("frame.short", "frame header", HEADER);
    MARKER = error("frame.marker", "msgpack marker", HEADER);
    VERSION = error("frame.version", "frame version", HEADER);
    HEADER_LEN = error("frame.header_len", "header length", HEADER);
    FRAME_LEN = error("frame.frame_len", "frame length", HEADER);
    UNFINISHED = error("frame.unfinished", "state of the frame", CHANGES);
    TRAILING = note("frame.trailing", "bytes after the frame", FRAME);
    OFFSET_SIZE = error("frame.offset_size", "size of an offset", HEADER);
    FLAGS = warning("frame.flags", "general flags", HEADER);
    LAYOUT = error("frame.type", "frame type", HEADER);
    CODEC = warning("frame.codec", "codec", HEADER);
    LEVEL = warning("frame.level", "compression level", HEADER);
    RESERVED = warning("frame.reserved", "reserved bits", HEADER);
    NBYTES = error("frame.nbytes", "decompressed size", HEADER);
    CBYTES = error("frame.cbytes", "compressed size", HEADER);
    CBYTES_SUM = warning("frame.cbytes_sum", "compressed size", HEADER);
    DELETED = note("frame.deleted", "compressed size", HEADER);
    TYPESIZE = error("frame.typesize", "typesize", HEADER);
    BLOCKSIZE = error("frame.blocksize", "block size", HEADER);
    CHUNKSIZE = error("frame.chunksize", "chunk size", HEADER);
    THREADS = warning("frame.threads", "number of threads", HEADER);
    HAS_VLMETA = warning("frame.has_vlmeta", "whether variable-length metalayers follow", HEADER);
    NFILTERS = error("frame.nfilters", "number of filters", HEADER);
    FILTER_SLOTS = warning("frame.filter_slots", "filters", HEADER);

    META = error("frame.meta", "metalayers", METALAYERS);
    META_COUNT = error("frame.meta.count", "number of metalayers", METALAYERS);
    META_INDEX = error("frame.meta.index_size", "size of the metalayers' index", METALAYERS);
    META_NAME = warning("frame.meta.name", "name of a metalayer", METALAYERS);
    META_TWICE = error("frame.meta.twice", "name of a metalayer", METALAYERS);
    META_OFFSET = error("frame.meta.offset", "offset of a metalayer", METALAYERS);
    META_END = error("frame.meta.end", "end of the metalayers", METALAYERS);

    TRAILER_MARKER =
        error("frame.trailer.marker", "marker of the trailer length", TRAILER);
    TRAILER_LEN = error("frame.trailer.len", "trailer length", TRAILER);
    TRAILER_PLACE = error("frame.trailer.place", "start of the trailer", TRAILER);
    TRAILER_VERSION = error("frame.trailer.version", "trailer version", TRAILER);
    FINGERPRINT = warning("frame.fingerprint", "fingerprint", TRAILER);
    VLMETA_MANY = note("frame.vlmeta.many", "number of variable-length metalayers", TRAILER);
    VLMETA_CHUNK = error("frame.vlmeta.chunk", "content of a variable-length metalayer", TRAILER);

    CHECKSUMS = error("frame.checksums", "checksums", CHECKS);
    CHECKSUMS_OUTDATED = warning("frame.checksums.outdated", "checksums of an earlier state", CHECKS);
    CHECKSUMS_MISSING = error("frame.checksums.missing", "checksums", CHECKS);
    METADATA_CHECKSUM = error("frame.checksums.metadata", "checksum of the header and metalayers", CHECKS);
    CHUNK_CHECKSUM = error("frame.checksums.chunk", "checksum of a chunk", CHECKS);

    INDEX_PLACE = error("frame.index.place", "index", INDEX);
    INDEX_CHUNK = error("frame.index.chunk", "index chunk", INDEX);
    INDEX_PARAMS = note("frame.index.params", "parameters of the index", INDEX);
    INDEX_COUNT = error("frame.index.count", "number of offsets", INDEX);
    INDEX_GAP = note("frame.index.gap", "bytes between index and trailer", INDEX);
    OFFSET = error("frame.offset", "offset of a chunk", INDEX);
    OFFSET_KIND = error("frame.offset.special", "special offset", INDEX);
    OFFSET_RESERVED = warning("frame.offset.reserved", "reserved bits of a special offset", INDEX);

    CHUNK_PLACE = error("frame.chunk.place", "position of a chunk", FRAME);
    CHUNK_LAZY = error("frame.chunk.lazy", "chunk flags", FRAME);
    CHUNK_SPECIAL = error("frame.chunk.special", "special value of a chunk", FRAME);
    CHUNK_VALUE = error("frame.chunk.value", "repeated value of a chunk", FRAME);
    CHUNK_OVERLAP = error("frame.chunk.overlap", "position of a chunk", FRAME);
    CHUNK_NBYTES = error("frame.chunk.nbytes", "decompressed size of a chunk", FRAME);
    CHUNK_EMPTY = error("frame.chunk.empty", "decompressed size of a chunk", FRAME);
    CHUNK_NAN = error("frame.chunk.nan", "typesize of a chunk of NaN", FRAME);
    CHUNK_UNKNOWN = error("frame.chunk.unknown_size", "decompressed size of a chunk", FRAME);
    CHUNK_TYPESIZE = warning("frame.chunk.typesize", "typesize of a chunk", FRAME);
    PARAMS = note("frame.params", "parameters of the chunks", HEADER);
    DICTIONARY = note("frame.dictionary", "whether chunks have dictionaries", HEADER);
    CHUNK_BLOCKS = warning("frame.chunk.blocks", "kind of blocks", FRAME);
    CHUNK_PARAMS = note("frame.chunk.params", "parameters of a chunk", FRAME);
    CHUNK_SHORT = error("frame.chunk.short", "compressed size of a chunk", FRAME);
    GAP = note("frame.gap", "bytes that no chunk uses", FRAME);
    SUSPECT = note("frame.suspect", "suspect field", FRAME);
    LIMIT = warning("frame.limit", "unchecked content", FRAME);
    UNSUPPORTED = warning("frame.unsupported", "unchecked content", FRAME);
}
