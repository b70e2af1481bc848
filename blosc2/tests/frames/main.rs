//! Super-chunks and frames in every storage: the behavior that upstream's tests check.
//!
//! | upstream (`c-blosc2/tests/test_*.c`) | here |
//! |---|---|
//! | `b2nd_multiwriter_lock`, `b2nd_set_slice_lock` | `writers_of_items_do_not_undo_each_other` |
//! | `change_nthreads_append` | `threads_change_between_the_chunks` |
//! | `copy` | `copies_go_from_every_storage_to_every_other` |
//! | `delete_chunk` | `chunks_are_deleted_anywhere` |
//! | `delta_schunk` | `every_parameter_on_every_storage` |
//! | `fill_special` | `special_values_of_gigabytes_take_no_room` |
//! | `frame` | `every_parameter_on_every_storage`, `metalayers_follow_the_chunks` |
//! | `frame_get_offsets` | `offsets_say_where_chunks_are` |
//! | `frame_lazychunk_malformed_cbytes` | `a_chunk_that_claims_more_than_there_is` |
//! | `frame_lock` | `locked_handles_follow_each_other`, `the_lock_is_a_file_beside_the_frame`, `locked_writers_insert_side_by_side`, `writers_of_items_do_not_undo_each_other` |
//! | `frame_malformed_offsets` | `an_index_of_wrong_places` |
//! | `frame_malformed_trailer_len` | `a_trailer_of_a_wrong_length` |
//! | `frame_metalayer_overflow` | `a_metalayer_longer_than_the_frame` |
//! | `frame_offset` | `a_frame_is_appended_to_a_file_and_read_there` |
//! | `frame_shared_reader` | `threads_share_a_reader_of_each_storage`, `a_reader_stays_with_its_file` |
//! | `frame_trailer_neg_nvlmeta` | `a_number_of_metalayers_that_cannot_be` |
//! | `get_slice_buffer` | `ranges_across_chunks` |
//! | `get_slice_nchunks` | `a_range_reads_its_chunks_only` |
//! | `growth_swmr` | `handles_follow_changes`, `locked_handles_follow_each_other` |
//! | `insert_chunk`, `insert_chunk_reopen` | `chunks_are_inserted_anywhere` |
//! | `lazychunk`, `sframe_lazychunk` | `lazy_chunks_read_what_is_asked_for` |
//! | `mmap` | `every_parameter_on_every_storage`, `a_private_map_keeps_its_changes` |
//! | `mmap_arithmetic`, `stdio_validation` | `positions_that_cannot_be`, `writes_far_behind_memory_are_errors` |
//! | `reorder_offsets`, `reorder_offsets_negative` | `chunks_are_put_into_any_order` |
//! | `schunk`, `schunk_frame` | `every_parameter_on_every_storage`, `conversions_there_and_back`, `bytes_that_are_no_frame` |
//! | `schunk_get_sparse` | `single_items_in_any_order` |
//! | `schunk_header` | `a_frame_keeps_its_parameters` |
//! | `schunk_large_typesize` | `items_of_more_than_255_bytes` |
//! | `schunk_min_header_chunk` | `chunks_of_blosc1_stay_outside` |
//! | `schunk_negative_index` | `what_is_out_of_range_changes_nothing` |
//! | `set_slice_buffer` | `ranges_are_written_across_chunks` |
//! | `sframe` | `every_parameter_on_every_storage`, `metalayers_follow_the_chunks`, `names_of_chunk_files` |
//! | `small_chunks` | `five_thousand_files_of_chunks` |
//! | `special_chunk_copy` | `copies_keep_special_chunks` |
//! | `stale_sframe` | `handles_follow_changes`, `a_chunk_file_that_was_cut` |
//! | `udio` | `a_custom_storage_backend_is_called` |
//! | `update_chunk` | `chunks_are_replaced_anywhere` |
//! | `variable_chunks` | `chunks_of_any_lengths`, `later_versions_are_refused` |
//!
//! C's tests of arrays that grow and are shared also have counterparts in `blosc2/tests/arrays/behaviour`. The tests of
//! chunks and contexts are in `chunks/contexts.rs`.

mod changes;
mod checksums;
#[path = "../../../tests/common/mod.rs"]
mod common;
mod copies;
mod folders;
mod gaps;
mod handles;
mod reading;
mod real_files;
mod transactions;

use std::collections::BTreeSet;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use blosc2::storage::{MappedFile, Seekable};
use blosc2::{CParams, Check, OpenOptions, SChunk, Target};
use tempfile::TempDir;

use folders::Folded;

use common::{kind, name, table, upstream_files};

/// Items of a chunk.
const CHUNK: usize = 1500;

/// The storage of a super-chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Memory,
    Buffer,
    File,
    Directory,
    Mapped,
    Stream,
    Folder,
}

const PLACES: [Place; 7] = [
    Place::Memory,
    Place::Buffer,
    Place::File,
    Place::Directory,
    Place::Mapped,
    Place::Stream,
    Place::Folder,
];

impl Place {
    /// Creates a super-chunk.
    fn make(self, path: &Path, options: &OpenOptions) -> SChunk {
        let options = options.clone();
        match self {
            Self::Memory => options.open(Target::memory()),
            Self::Buffer => options.create_new(true).open(Vec::new()),
            Self::File => options.create_new(true).open(path),
            Self::Directory => options.create_new(true).open(Target::from(path).directory(true)),
            Self::Mapped => options.create_new(true).open(Target::storage(map(path))),
            Self::Stream => options
                .create_new(true)
                .open(Target::storage(Seekable::new(Cursor::new(Vec::new())))),
            Self::Folder => options.create_new(true).open(Target::folder(Folded::new(path))),
        }
        .unwrap()
    }

    /// Reopens the super-chunk as another program would, with a full check.
    fn reopened(self, schunk: SChunk, path: &Path) -> SChunk {
        let options = OpenOptions::new().write(true).check(Check::Content);
        match self {
            Self::Memory => options.open(schunk.into_cframe().unwrap()).unwrap().try_clone(),
            Self::Buffer => options.open(schunk.into_cframe().unwrap()),
            Self::File | Self::Directory => {
                drop(schunk);
                options.open(path)
            }
            Self::Mapped => {
                drop(schunk);
                options.open(Target::storage(map(path)))
            }
            Self::Stream => {
                let bytes = schunk.into_cframe().unwrap();
                options.open(Target::storage(Seekable::new(Cursor::new(bytes))))
            }
            Self::Folder => {
                drop(schunk);
                options.open(Target::folder(Folded::new(path)))
            }
        }
        .unwrap()
    }

    /// Whether the frame is contiguous.
    fn is_contiguous(self) -> bool {
        !matches!(self, Self::Memory | Self::Directory | Self::Folder)
    }
}

fn map(path: &Path) -> MappedFile {
    // SAFETY: the file is in a folder of the test's own, which changes it by this map only.
    unsafe { MappedFile::create(path) }.unwrap()
}

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("frame");
    (folder, path)
}

/// The items of the chunk with this index.
fn numbers(chunk: usize) -> Vec<i32> {
    let start = i32::try_from(chunk * CHUNK).unwrap();
    (start..).take(CHUNK).collect()
}

/// The first `count` chunks.
fn model(count: usize) -> Vec<Vec<i32>> {
    (0..count).map(numbers).collect()
}

/// A super-chunk of these chunks.
fn filled(place: Place, path: &Path, params: &CParams, model: &[Vec<i32>]) -> SChunk {
    let mut schunk = place.make(path, &OpenOptions::new().cparams(params).typesize(4));
    for (before, chunk) in model.iter().enumerate() {
        schunk.append(chunk).unwrap();
        assert_eq!(schunk.nchunks(), before + 1);
    }
    schunk
}

/// Asserts that all reads return the chunks of the model.
fn assert_holds(schunk: &SChunk, model: &[Vec<i32>], what: &str) {
    assert_eq!(schunk.nchunks(), model.len(), "{what}");
    let nbytes: usize = model.iter().map(|chunk| 4 * chunk.len()).sum();
    assert_eq!(schunk.nbytes(), nbytes as u64, "{what}");
    for (index, chunk) in model.iter().enumerate() {
        assert!(schunk.decompress_chunk::<i32>(index).unwrap() == *chunk, "{what}: chunk {index}");
    }
    assert!(schunk.read::<i32>(..).unwrap() == model.concat(), "{what}: all items");
}

/// Asserts that the super-chunk holds what the model does, before and after it is reopened.
fn assert_keeps(
    place: Place,
    schunk: SChunk,
    path: &Path,
    model: &[Vec<i32>],
    what: &str,
) -> SChunk {
    let what = format!("{place:?}, {what}");
    assert_holds(&schunk, model, &what);
    let schunk = place.reopened(schunk, path);
    assert_holds(&schunk, model, &format!("{what}, reopened"));
    schunk
}

#[test]
fn each_test_of_upstream_has_its_row_and_each_row_its_tests() {
    let (names, tests) = table(include_str!("main.rs"));
    let (others, _) = table(include_str!("../chunks/contexts.rs"));
    let patterns: Vec<&str> = names.union(&others).copied().collect();
    let found = upstream_files("tests", ".c").into_iter().map(|path| name(&path));
    let found: BTreeSet<String> = found
        .filter_map(|file| Some(file.strip_prefix("test_")?.strip_suffix(".c")?.to_owned()))
        .collect();
    assert!(found.len() > 80, "{found:?}");
    for test in &found {
        let is = |pattern: &&str| match pattern.strip_suffix('*') {
            Some(start) => test.starts_with(start),
            None => test == *pattern,
        };
        assert!(patterns.iter().any(is), "{test} is in no table");
    }
    for name in names {
        assert!(found.contains(name), "there is no test `{name}` upstream");
    }
    let sources = [
        include_str!("changes.rs"),
        include_str!("copies.rs"),
        include_str!("handles.rs"),
        include_str!("../../../tests/hostile_input/malformed.rs"),
        include_str!("reading.rs"),
        include_str!("../../src/bytes/tests.rs"),
    ];
    for test in tests {
        let function = format!("#[test]\nfn {test}()");
        assert!(sources.iter().any(|source| source.contains(&function)), "there is no {test}");
    }
}
