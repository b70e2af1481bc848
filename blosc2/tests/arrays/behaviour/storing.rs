//! Arrays in files, in buffers and inside other files, and copies between all of them.

use std::fs;

use blosc2::storage::MappedFile;
use blosc2::{CParams, Codec, ErrorKind, NDArray, OpenOptions, SaveOptions, Target, Threads};

use super::c::CArray;
use super::{
    Cut, IN_FILES, PLACES, Place, assert_c_holds, assert_holds, assert_keeps, cut, filled, folder,
    kind, numbers,
};
use crate::selections::Shared;

const TYPESIZES: [usize; 4] = [1, 2, 4, 8];

const SHAPES: [Cut; 8] = [
    cut(&[], &[], &[]),
    cut(&[10], &[7], &[2]),
    cut(&[100, 100], &[20, 20], &[10, 10]),
    cut(&[40, 55, 23], &[31, 5, 22], &[4, 4, 4]),
    cut(&[100, 0, 12], &[31, 0, 12], &[10, 0, 12]),
    cut(&[25, 15, 31, 12], &[20, 10, 20, 10], &[5, 5, 5, 10]),
    cut(&[1, 1, 1024, 1, 1], &[1, 1, 500, 1, 1], &[1, 1, 200, 1, 1]),
    cut(&[5, 1, 100, 3, 1, 2], &[5, 1, 50, 2, 1, 2], &[2, 1, 20, 2, 1, 2]),
];

#[test]
fn files_hold_what_was_put_in() {
    for cut in SHAPES {
        for typesize in TYPESIZES {
            for place in IN_FILES {
                let (_folder, path) = folder();
                let model = numbers(cut.shape, typesize, 1);
                let made = cut.holding(&model, place, &path);
                // Also while the first handle is open.
                let what = format!("{place:?}, {cut:?}, {typesize} bytes");
                assert_holds(&NDArray::open(&path).unwrap(), &model, &what);
                assert_keeps(place, made, &path, &model, &what);
            }
        }
    }
}

#[test]
fn saved_arrays_are_the_same() {
    for cut in SHAPES {
        for typesize in TYPESIZES {
            for place in PLACES {
                let (_folder, path) = folder();
                let model = numbers(cut.shape, typesize, 1);
                let array = cut.holding(&model, place, &path);
                let saved = path.with_extension("saved");
                array.save(&saved).unwrap();
                let what = format!("{place:?}, {cut:?}, {typesize} bytes");
                assert_keeps(Place::File, NDArray::open(&saved).unwrap(), &saved, &model, &what);
                assert_eq!(kind(array.save(&saved)), ErrorKind::AlreadyExists, "{what}");
            }
        }
    }
}

#[test]
fn an_array_is_appended_to_any_file() {
    for cut in &SHAPES[..4] {
        for (place, padding) in
            [(Place::Memory, 1), (Place::Memory, 57), (Place::Buffer, 1024), (Place::Buffer, 4031)]
        {
            for typesize in TYPESIZES {
                let (_folder, path) = folder();
                let model = numbers(cut.shape, typesize, 1);
                let array = cut.holding(&model, place, &path);
                fs::write(&path, vec![0; padding]).unwrap();
                let offset = SaveOptions::new().append(&array.schunk(), &path).unwrap();
                assert_eq!(offset, padding as u64);
                let what = format!("{place:?}, {cut:?}, {typesize} bytes, at {padding}");
                let found = OpenOptions::new().open(Target::from(&path).offset(offset)).unwrap();
                assert_holds(&NDArray::from_schunk(found).unwrap(), &model, &what);
                assert_c_holds(CArray::open_at(&path, offset).as_ref(), &model, &what);
                // An array inside a larger file is read-only.
                let found = OpenOptions::new().write(true).open(Target::from(&path).offset(offset));
                assert_eq!(kind(found), ErrorKind::InvalidArgument, "{what}");
            }
        }
    }
}

#[test]
fn two_arrays_are_in_one_file() {
    const CHUNK: u64 = 20_000;
    const COUNT: u64 = 20;
    let (_folder, path) = folder();
    let array = |factor: i32| {
        let params = CParams::new().codec(Codec::Lz4).level(9).threads(Threads::new(4));
        let builder = NDArray::builder().chunk_shape([CHUNK]).block_shape([CHUNK]).cparams(params);
        let item = |[index]: [u64; 1]| {
            let (chunk, at) = (index / CHUNK, index % CHUNK);
            factor * (chunk * at) as i32
        };
        builder.target(Vec::new()).from_fn(&[COUNT * CHUNK], item).unwrap()
    };
    let (first, second) = (array(1), array(2));
    first.save(&path).unwrap();
    let len = fs::metadata(&path).unwrap().len();
    assert_eq!(SaveOptions::new().append(&second.schunk(), &path).unwrap(), len);
    for (array, offset) in [(first, 0), (second, len)] {
        let found = OpenOptions::new().open(Target::from(&path).offset(offset)).unwrap();
        let found = NDArray::from_schunk(found).unwrap();
        assert!(
            found.schunk().to_cframe().unwrap() == array.schunk().to_cframe().unwrap(),
            "at {offset}"
        );
        let items = array.read::<Vec<i32>>(..).unwrap();
        assert!(found.read::<Vec<i32>>(..).unwrap() == items, "at {offset}");
        if let Some(c) = CArray::open_at(&path, offset) {
            let c = c.read_all();
            assert!(c.chunks_exact(4).zip(&items).all(|(c, item)| c == item.to_le_bytes()));
        }
    }
}

#[test]
fn arrays_in_one_buffer_are_the_same() {
    for cut in SHAPES {
        for typesize in TYPESIZES {
            for place in PLACES {
                let (_folder, path) = folder();
                let model = numbers(cut.shape, typesize, 1);
                let what = format!("{place:?}, {cut:?}, {typesize} bytes");
                let array = cut.holding(&model, place, &path);
                let bytes = array.schunk().to_cframe().unwrap();
                assert_holds(&NDArray::open_rw(bytes.clone()).unwrap(), &model, &what);
                // The bytes are those of a file.
                let path = path.with_extension("file");
                fs::write(&path, bytes).unwrap();
                assert_keeps(Place::File, NDArray::open(&path).unwrap(), &path, &model, &what);
            }
        }
    }
}

#[test]
fn copies_go_from_every_storage_to_every_other() {
    let cases: [(Cut, &[u64], &[u64]); 6] = [
        (cut(&[30, 30], &[20, 20], &[10, 10]), &[20, 20], &[10, 10]),
        (cut(&[40, 15, 23], &[31, 5, 22], &[4, 4, 4]), &[30, 5, 20], &[10, 4, 4]),
        (cut(&[40, 0, 12], &[31, 0, 12], &[10, 0, 12]), &[20, 0, 12], &[20, 0, 6]),
        (cut(&[12, 15, 16, 6], &[6, 10, 10, 5], &[5, 5, 5, 5]), &[12, 10, 10, 5], &[5, 5, 5, 5]),
        (
            cut(&[1, 1, 1024, 1, 1], &[1, 1, 500, 1, 1], &[1, 1, 200, 1, 1]),
            &[1, 1, 300, 1, 1],
            &[1, 1, 50, 1, 1],
        ),
        (
            cut(&[5, 1, 100, 3, 1, 2], &[4, 1, 50, 2, 1, 2], &[2, 1, 20, 2, 1, 2]),
            &[4, 1, 50, 2, 1, 1],
            &[2, 1, 20, 2, 1, 1],
        ),
    ];
    let content = 8.34f64.to_le_bytes();
    for (cut, chunks, blocks) in cases {
        for typesize in [2, 4] {
            for place in PLACES {
                let (_folder, path) = folder();
                let model = numbers(cut.shape, typesize, 1);
                let builder = place
                    .of(cut.builder(), &path)
                    .options(OpenOptions::new().meta("random", &content));
                let mut array = filled(builder, &model);
                array.vlmeta_mut().set("random", &content).unwrap();
                for to in PLACES {
                    let what = format!("{place:?} to {to:?}, {cut:?}, {typesize} bytes");
                    let path = path.with_extension(format!("{to:?}"));
                    let builder = NDArray::builder().chunk_shape(chunks).block_shape(blocks);
                    let copy = to.of(builder, &path).copy(&array).unwrap();
                    assert_eq!(
                        (copy.chunk_shape(), copy.block_shape()),
                        (chunks, blocks),
                        "{what}"
                    );
                    let copy = assert_keeps(to, copy, &path, &model, &what);
                    assert_eq!(copy.meta().get("random").unwrap().unwrap(), content, "{what}");
                    assert_eq!(copy.vlmeta().get("random").unwrap().unwrap(), content, "{what}");
                    // Without parameters a copy keeps the chunk and block shapes.
                    let same = NDArray::builder().copy(&copy).unwrap();
                    assert_eq!(
                        (same.chunk_shape(), same.block_shape()),
                        (chunks, blocks),
                        "{what}"
                    );
                }
            }
        }
    }
}

#[test]
fn recompressed_copies_go_to_every_storage() {
    let cut = cut(&[30, 31], &[20, 8], &[10, 4]);
    let params = CParams::new().codec(Codec::BloscLz).level(7);
    let options = SaveOptions::new().cparams(&params);
    let model = numbers(cut.shape, 4, 1);
    for place in PLACES {
        let (folder, path) = folder();
        let array = cut.holding(&model, place, &path);
        let at = |name: &str| folder.path().join(name);
        let copied = |name: &str| NDArray::builder().cparams(&params).target(at(name)).copy(&array);
        let mapped = |name: &str| {
            fs::write(at(name), []).unwrap();
            // SAFETY: here and below, nobody else knows the file, and nothing else writes to it meanwhile.
            unsafe { MappedFile::open_rw(at(name)) }.unwrap()
        };
        options.save(&array, at("saved")).unwrap();
        options.save(&array, Target::from(at("directory")).directory(true)).unwrap();
        options.save(&array, Target::storage(mapped("saved_in_map"))).unwrap();
        drop(
            NDArray::builder()
                .cparams(&params)
                .target(Target::storage(mapped("map")))
                .copy(&array)
                .unwrap(),
        );
        drop(copied("file").unwrap());
        let builder =
            NDArray::builder().cparams(&params).target(Target::from(at("folder")).directory(true));
        drop(builder.copy(&array).unwrap());
        for name in ["saved", "directory", "saved_in_map", "map", "file", "folder"] {
            let copy = NDArray::open(at(name)).unwrap();
            assert_recompressed(&copy, &model, &format!("{place:?} to {name}"));
        }
        let (saved, made) = (Shared::default(), Shared::default());
        options.save(&array, Target::storage(saved.clone())).unwrap();
        drop(
            NDArray::builder()
                .cparams(&params)
                .target(Target::storage(made.clone()))
                .copy(&array)
                .unwrap(),
        );
        for storage in [saved, made] {
            let copy = OpenOptions::new().open(Target::storage(storage)).unwrap();
            let copy = NDArray::from_schunk(copy).unwrap();
            assert_recompressed(&copy, &model, &format!("{place:?} to a custom storage"));
        }
        let builder = || NDArray::builder().cparams(&params);
        let frame = array.schunk().recompress(&params).unwrap().into_cframe().unwrap();
        for copy in [
            builder().copy(&array).unwrap(),
            builder().target(Vec::new()).copy(&array).unwrap(),
            NDArray::from_schunk(array.schunk().recompress(&params).unwrap()).unwrap(),
            NDArray::open_rw(frame).unwrap(),
        ] {
            assert_recompressed(&copy, &model, &format!("{place:?} to memory"));
        }
    }
}

fn assert_recompressed(copy: &NDArray, model: &crate::common::Model, what: &str) {
    assert_holds(copy, model, what);
    assert_eq!(
        (copy.info().cparams.codec, copy.info().cparams.level),
        (Codec::BloscLz, 7),
        "{what}"
    );
    for index in 0..copy.schunk().nchunks() {
        assert_eq!(copy.schunk().chunk(index).unwrap().codec(), Codec::BloscLz, "{what}, {index}");
    }
}
