//! Arrays in every storage: the behavior that upstream's tests of `b2nd` check.
//!
//! Except for known faults of C, its functions have to return the same.
//!
//! | upstream (`c-blosc2/tests/b2nd/test_b2nd_*.c`, `c-blosc2/tests/test_*.c`) | here |
//! |---|---|
//! | `append` | `items_are_appended_along_each_dimension` |
//! | `b2nd_multiwriter_lock` | `locked_writers_insert_side_by_side`, `locked_writers_append_beside_one_who_cuts` |
//! | `b2nd_set_slice_lock` | `writes_across_chunks_are_seen_whole` |
//! | `chunk_overflow` | `chunks_and_blocks_that_are_too_large_are_refused` |
//! | `concatenate` | `arrays_are_joined_along_each_dimension` |
//! | `copy` | `copies_go_from_every_storage_to_every_other` |
//! | `copy_buffer` | `boxes_of_chunks_make_up_an_array` |
//! | `delete` | `items_are_deleted_along_each_dimension` |
//! | `deserialize_meta_security` | `shapes_that_cannot_be_read_make_no_array` |
//! | `expand_dims` | `dimensions_of_one_item_come` |
//! | `full` | `arrays_of_one_value_hold_it_everywhere` |
//! | `get_slice` | `parts_are_copied_with_other_chunks` |
//! | `get_slice_buffer` | `boxes_are_read` |
//! | `get_sparse` | `points_are_read_in_any_order` |
//! | `growth_swmr` | `readers_follow_growth_when_they_ask`, `readers_beside_an_array_that_shrinks`, `metalayers_follow_other_handles`, `readers_beside_a_writer_that_grows_along_any_dimension` |
//! | `insert` | `items_are_inserted_along_each_dimension` |
//! | `large_typesize` | `items_of_more_than_255_bytes` |
//! | `metalayers` | `metalayers_stay_with_an_array` |
//! | `nans` | `arrays_of_no_number_take_no_room` |
//! | `open_offset` | `two_arrays_are_in_one_file` |
//! | `orthogonal_selection` | `lists_select_their_product` |
//! | `persistency` | `files_hold_what_was_put_in` |
//! | `resize` | `arrays_get_other_shapes`, `a_file_that_grows_step_by_step_has_no_gaps` |
//! | `roundtrip` | `what_goes_in_comes_out` |
//! | `save` | `saved_arrays_are_the_same` |
//! | `save_append` | `an_array_is_appended_to_any_file` |
//! | `serialize` | `arrays_in_one_buffer_are_the_same` |
//! | `set_slice_buffer` | `boxes_are_written` |
//! | `shape_overflow` | `chunks_and_blocks_that_are_too_large_are_refused`, `shapes_that_cannot_be_make_no_array` |
//! | `squeeze` | `dimensions_of_one_item_go` |
//! | `squeeze_index` | `chosen_dimensions_go` |
//! | `stringshuffle` | `strings_are_shuffled_by_their_characters` |
//! | `uninit`, `zeros` | `zeros_and_nothing_yet_take_no_room` |
//! | `zero_chunkshape_nonzero_shape` | `shapes_that_cannot_be_make_no_array` |
//!
//! Random arrays, selections and changes are in `plain_model.rs`, `selections` and `shapes.rs`.

mod c;
mod changes;
mod handles;
mod making;
mod reading;
mod storing;

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use blosc2::{CParams, Codec, NDArray, NDArrayBuilder, RawItems, Target, Threads};
use tempfile::TempDir;

use crate::common::{Model, assert_same, kind, name, table, upstream_files};
use c::CArray;

/// Where an array is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Memory,
    Buffer,
    File,
    Directory,
}

const PLACES: [Place; 4] = [Place::Memory, Place::Buffer, Place::File, Place::Directory];
const IN_FILES: [Place; 2] = [Place::File, Place::Directory];

impl Place {
    /// Sets the storage of a builder to this place.
    fn of(self, builder: NDArrayBuilder, path: &Path) -> NDArrayBuilder {
        match self {
            Self::Memory => builder,
            Self::Buffer => builder.target(Vec::new()),
            Self::File => builder.target(path),
            Self::Directory => builder.target(Target::from(path).directory(true)),
        }
    }

    /// Reopens the array as another program would.
    fn reopened(self, array: NDArray, path: &Path) -> NDArray {
        match self {
            Self::Memory | Self::Buffer => NDArray::open_rw(array.schunk().to_cframe().unwrap()),
            Self::File | Self::Directory => {
                drop(array);
                NDArray::open_rw(path)
            }
        }
        .unwrap()
    }

    fn is_file(self) -> bool {
        IN_FILES.contains(&self)
    }
}

/// The shape, chunk shape and block shape of an array.
#[derive(Debug, Clone, Copy)]
struct Cut {
    shape: &'static [u64],
    chunks: &'static [u64],
    blocks: &'static [u64],
}

const fn cut(shape: &'static [u64], chunks: &'static [u64], blocks: &'static [u64]) -> Cut {
    Cut { shape, chunks, blocks }
}

impl Cut {
    fn builder(&self) -> NDArrayBuilder {
        let params = CParams::new().codec(Codec::Lz4).threads(Threads::new(2));
        NDArray::builder().chunk_shape(self.chunks).block_shape(self.blocks).cparams(params)
    }

    /// Creates an array with the items of the model, without a particular dtype.
    fn holding(&self, model: &Model, place: Place, path: &Path) -> NDArray {
        filled(place.of(self.builder(), path), model)
    }

    /// Creates the same array in a file, and opens it with C.
    fn in_c(&self, model: &Model, place: Place, path: &Path) -> Option<CArray> {
        let place = if place.is_file() { place } else { Place::File };
        drop(self.holding(model, place, path));
        CArray::open(path)
    }
}

fn filled(builder: NDArrayBuilder, model: &Model) -> NDArray {
    let dtype = format!("|V{}", model.typesize);
    builder.dtype(&dtype, model.typesize).from_slice(RawItems(&model.bytes), &model.shape).unwrap()
}

/// Runs `work` for each storage and each item size, each time in its own folder.
fn everywhere(typesizes: &[usize], mut work: impl FnMut(Place, usize, &Path)) {
    for place in PLACES {
        for &typesize in typesizes {
            let (_folder, path) = folder();
            work(place, typesize, &path);
        }
    }
}

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("array.b2nd");
    (folder, path)
}

/// A model of the numbers from `first`, little-endian.
fn numbers(shape: &[u64], typesize: usize, first: u64) -> Model {
    let items: u64 = shape.iter().product();
    let mut bytes = vec![0; items as usize * typesize];
    for (number, item) in (first..).zip(bytes.chunks_exact_mut(typesize)) {
        let len = typesize.min(8);
        item[..len].copy_from_slice(&number.to_le_bytes()[..len]);
    }
    Model { shape: shape.to_vec(), typesize, bytes }
}

/// A model in which all bytes are equal.
fn constant(shape: &[u64], typesize: usize, byte: u8) -> Model {
    let items: u64 = shape.iter().product();
    Model { shape: shape.to_vec(), typesize, bytes: vec![byte; items as usize * typesize] }
}

/// The full ranges of a shape.
fn whole(shape: &[u64]) -> Vec<Range<u64>> {
    shape.iter().map(|&size| 0..size).collect()
}

/// Ranges from their starts and ends.
fn ranges(start: &[u64], end: &[u64]) -> Vec<Range<u64>> {
    start.iter().zip(end).map(|(&start, &end)| start..end).collect()
}

/// The full ranges of a shape, except for one axis.
fn along(shape: &[u64], axis: usize, range: Range<u64>) -> Vec<Range<u64>> {
    let mut ranges = whole(shape);
    ranges[axis] = range;
    ranges
}

/// A part of a model along one axis.
fn part(model: &Model, axis: usize, range: Range<u64>) -> Model {
    let ranges = along(&model.shape, axis, range.clone());
    let mut shape = model.shape.clone();
    shape[axis] = range.end - range.start;
    Model { shape, typesize: model.typesize, bytes: model.read(&ranges) }
}

/// The concatenation of models along one axis.
fn joined(axis: usize, models: &[&Model]) -> Model {
    let mut shape = models[0].shape.clone();
    shape[axis] = models.iter().map(|model| model.shape[axis]).sum();
    let typesize = models[0].typesize;
    let rows: u64 = shape[..axis].iter().product();
    let mut bytes = Vec::new();
    for row in 0..rows as usize {
        for model in models {
            let len = model.shape[axis..].iter().product::<u64>() as usize * typesize;
            bytes.extend(&model.bytes[row * len..(row + 1) * len]);
        }
    }
    Model { shape, typesize, bytes }
}

/// Asserts that all reads return the items of the model.
fn assert_holds(array: &NDArray, model: &Model, what: &str) {
    assert_eq!(array.shape(), model.shape, "{what}");
    assert_eq!(array.typesize(), model.typesize, "{what}");
    assert_same(&array.read::<RawItems>(..).unwrap().0, &model.bytes, what);
}

/// Asserts that the array holds what the model does, before and after it is reopened, and as C reads it.
fn assert_keeps(place: Place, array: NDArray, path: &Path, model: &Model, what: &str) -> NDArray {
    let what = format!("{place:?}, {what}");
    assert_holds(&array, model, &what);
    let array = place.reopened(array, path);
    assert_holds(&array, model, &format!("{what}, reopened"));
    if place.is_file() {
        assert_c_holds(CArray::open(path).as_ref(), model, &what);
    }
    array
}

fn assert_c_holds(array: Option<&CArray>, model: &Model, what: &str) {
    let Some(array) = array else { return };
    assert_eq!(array.shape(), model.shape, "{what}, in C");
    assert_same(&array.read_all(), &model.bytes, &format!("{what}, in C"));
}

#[test]
fn each_test_of_upstream_has_its_row_and_each_row_its_tests() {
    let (names, tests) = table(include_str!("mod.rs"));
    let found = |folder: &str, prefix: &str| -> BTreeSet<String> {
        let files = upstream_files(folder, ".c").into_iter().map(|path| name(&path));
        files
            .filter_map(|file| Some(file.strip_prefix(prefix)?.strip_suffix(".c")?.to_owned()))
            .collect()
    };
    let (arrays, others) = (found("tests/b2nd", "test_b2nd_"), found("tests", "test_"));
    assert!(arrays.len() > 30, "{arrays:?}");
    for test in &arrays {
        assert!(names.contains(test.as_str()), "{test} is not in the table");
    }
    for name in names {
        assert!(arrays.contains(name) || others.contains(name), "there is no `{name}` upstream");
    }
    let sources = [
        include_str!("changes.rs"),
        include_str!("handles.rs"),
        include_str!("making.rs"),
        include_str!("reading.rs"),
        include_str!("storing.rs"),
    ];
    for test in tests {
        let function = format!("#[test]\nfn {test}()");
        assert!(sources.iter().any(|source| source.contains(&function)), "there is no {test}");
    }
}
