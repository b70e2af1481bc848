//! The faults of an installed C-Blosc2 (feature `system`) that need a workaround or an error.
//!
//! Each constant is true if the library in use has the fault. The library that blosc2-sys compiles is patched and has
//! none of these faults, so the compiler removes the workarounds. `SAFETY.md` lists the tests of the faults.

use blosc2_format::chunk::Header;
use blosc2_sys as sys;

use crate::{Error, ErrorKind, Reason, Result};

/// Whether the library in use is an installed library.
pub(crate) const IN_USE: bool = !sys::HARDENED;

/// The threads of the pool overflow scratch memory, and deadlock if the first block of a chunk with delta is damaged.
pub(super) const BREAKS_THREADS: bool = IN_USE;
/// A context uses properties of its previous chunk. Scratch memory is reallocated only if the block size changes, so
/// that larger items overflow it. A chunk with a header of 16 bytes is read with the filter parameters of the previous
/// chunk.
pub(crate) const KEEPS_THE_LAST_CHUNK: bool = IN_USE;
/// Codecs and filters cannot identify the call that runs them.
pub(crate) const HIDES_CALLERS: bool = IN_USE;
/// An unknown codec makes C load a library or start Python.
pub(crate) const LOADS_PLUGINS: bool = IN_USE;
/// Codecs for arrays access memory outside their buffers, or return wrong data.
pub(crate) const BREAKS_ARRAY_CODECS: bool = IN_USE;
/// All axes are scaled by the cell size of the first axis.
pub(super) const MISPLACES_NDMEAN: bool = IN_USE;
/// Without SSSE3 and NEON, the first version of bytedelta is another filter (bytedelta.c). MSVC cannot enable SSSE3.
pub(super) const MISREADS_FIRST_BYTEDELTA: bool = IN_USE
    && !cfg!(any(
        target_arch = "aarch64",
        all(any(target_arch = "x86", target_arch = "x86_64"), not(target_env = "msvc"))
    ));
/// From the third filter on, the source is used as scratch memory. A prefilter counts as a filter.
pub(crate) const WRITES_TO_SOURCE: bool = IN_USE;
/// Dictionaries and tables of blocks are written without a bounds check.
pub(crate) const WRITES_BEHIND_TARGET: bool = IN_USE;
/// A context uses the typesize and block size of its previous call.
pub(crate) const KEEPS_SIZES: bool = IN_USE;
/// A chunk whose data is too small for a dictionary has the flags of a chunk with a dictionary (blosc2.c,
/// blosc2_compress_ctx).
pub(crate) const MISFLAGS_SMALL_DATA: bool = IN_USE;
/// The output of the postfilter is used as the reference of delta.
pub(crate) const BREAKS_POSTFILTERS: bool = IN_USE;
/// Delta reads more of the target than was written.
pub(crate) const READS_TARGET: bool = IN_USE;
/// A mask can skip the first block, which delta needs. With delta, and with variable-length blocks, masks are not used.
pub(crate) const MASKS_TOO_MUCH: bool = IN_USE;
/// Reads of single variable-length blocks do not use the dictionary or the reference of delta.
pub(crate) const SPOILS_BLOCKS: bool = IN_USE;
/// Items come from the wrong block, or without the dictionary or the reference of delta.
pub(crate) const SPOILS_ITEMS: bool = IN_USE;

/// A fault that makes some calls of an installed library an error. The text continues "an installed C-Blosc2 ...".
pub(crate) struct Fault(&'static str);

impl Fault {
    /// Returns an error if an installed library is used and `asked` is true: the program has requested such a call.
    pub(crate) fn refuse(self, asked: bool) -> Result<(), Reason> {
        if !(IN_USE && asked) {
            return Ok(());
        }
        let detail = format!("an installed C-Blosc2 {}", self.0);
        Err(Reason::new(ErrorKind::Unsupported, detail))
    }
}

/// If there are more blocks, their table overflows.
pub(crate) const MANY_BLOCKS: Fault =
    Fault("writes the table of this number of blocks outside the chunk");
/// The codecs use the level as an index of tables; 0 is outside of these tables.
pub(crate) const BLOCKS_AT_LEVEL_0: Fault = Fault("crashes on variable-length blocks at level 0");
pub(crate) const BLOCKS_WITH_DICTIONARY: Fault =
    Fault("may write the dictionary of variable-length blocks outside the chunk");
pub(super) const LZ4_DICTIONARY: Fault =
    Fault("builds dictionaries of LZ4 with overlapping copies");
pub(super) const BLOSC1: Fault =
    Fault("writes such chunks only if an environment variable requests it");
/// The workaround for [`WRITES_TO_SOURCE`] is a copy of the source. It does not help if C reads the source again.
pub(super) const SOURCE_TWICE: Fault =
    Fault("corrupts data with three filters and delta or a dictionary");

/// Checks that an installed library decompresses the chunk correctly.
pub(crate) fn check_chunk(header: &Header, chunk: &[u8]) -> Result<(), Reason> {
    let has = |filter: i32| IN_USE && header.filters.contains(&(filter as u8));
    let fault = "can decode this chunk wrongly: it has delta twice, delta between three filters \
                 and another filter, or delta with variable-length blocks";
    let delta = has(sys::BLOSC_DELTA) && (header.variable_blocks || !header.is_delta_undone());
    Fault(fault).refuse(delta)?;
    // Undoing bitshuffle does not write the bytes after the last whole item of a block (shuffle.c, bitunshuffle).
    let (block, typesize) = (header.block_len().max(1), u32::from(header.typesize));
    let rest = |len: u32| !len.is_multiple_of(typesize) && (len / typesize).is_multiple_of(8);
    let bitshuffle = header.version == 2 && has(sys::BLOSC_BITSHUFFLE);
    let loses = bitshuffle && (rest(block) || rest(header.nbytes % block));
    Fault("loses the end of this chunk of Blosc1 (bitshuffle)").refuse(loses)?;
    // A long sequence of the byte 255 overflows the length of a match (blosclz.c, blosclz_decompress; c-blosc2
    // #801).
    const RUN: usize = i32::MAX as usize / 255;
    let run = || chunk.chunks_exact(RUN / 2).any(|part| part.iter().all(|&byte| byte == 255));
    if IN_USE && i32::from(header.codec()) == sys::BLOSC_BLOSCLZ && run() {
        let detail = "it contains a match whose length overflows";
        return Err(Reason::new(ErrorKind::InvalidData, detail));
    }
    Ok(())
}

/// Variables that override the parameters of the program.
const OVERRIDES: &str = "BLOSC_BLOCKSIZE BLOSC_CLEVEL BLOSC_COMPRESSOR BLOSC_DELTA BLOSC_LOCKING \
    BLOSC_NTHREADS BLOSC_SHUFFLE BLOSC_SPLITMODE BLOSC_TYPESIZE BTUNE_TRADEOFF";

/// Checks that none of the variables [`OVERRIDES`] is set. A program may set a variable at any time.
pub(crate) fn check_environment() -> Result<()> {
    if IN_USE && let Some(name) = OVERRIDES.split(' ').find(|name| std::env::var_os(name).is_some())
    {
        let detail = format!(
            "the environment variable {name} is set, which overrides parameters and can \
             corrupt data; unset it, or build without the feature `system`"
        );
        return Err(Error::new(ErrorKind::Unsupported, "use the installed C-Blosc2", detail));
    }
    Ok(())
}
