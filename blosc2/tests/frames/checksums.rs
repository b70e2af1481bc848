//! Checksums: every changed byte is reported, every change updates them, every copy keeps them.

use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use blosc2::repair::{Repaired, repair};
use blosc2::storage::ReadOnly;
use blosc2::super_chunk::VariableBlocks;
use blosc2::{
    CParams, Codec, ErrorKind, Filter, NDArray, OpenOptions, SChunk, SChunkReader, SaveOptions,
    Special, Target,
};
use blosc2_format::file::{self, File};
use blosc2_format::frame::{self, Frame, Piece, salvage};
use blosc2_format::{Limits, Options, Part, chunk};

use super::common::{Rng, codecs};
use super::{CHUNK, PLACES, assert_holds, folder, model, numbers};

/// Compressible and incompressible bytes.
fn mixed(len: usize, rng: &mut Rng) -> Vec<u8> {
    (0..len).map(|at| if at / 64 % 2 == 0 { at as u8 / 8 } else { rng.below(256) as u8 }).collect()
}

/// Small frames with checksums: each codec with four filters, in chunks of several blocks, and with special chunks.
fn samples() -> Vec<(String, Vec<u8>)> {
    let mut rng = Rng(25);
    let mut samples = Vec::new();
    let filters: [&[Filter]; 4] =
        [&[Filter::Shuffle], &[Filter::Bitshuffle], &[Filter::Delta, Filter::Shuffle], &[]];
    for codec in codecs() {
        for (number, filters) in filters.into_iter().enumerate() {
            let level = if number == 3 { 0 } else { 5 };
            let params = CParams::new().codec(codec).filters(filters).level(level).blocksize(256);
            let options = OpenOptions::new().checksums(true).typesize(4).meta("units", b"kelvin");
            let mut schunk = options.cparams(&params).create_new(true).open(Vec::new()).unwrap();
            for _ in 0..3 {
                schunk.append(&mixed(320, &mut rng)).unwrap();
            }
            schunk.append(&[0u8; 320]).unwrap();
            schunk.append(&[7u8; 320]).unwrap();
            schunk.vlmeta_mut().set("author", b"me").unwrap();
            let name = format!("{codec} with {filters:?}, level {level}");
            samples.push((name, schunk.into_cframe().unwrap()));
        }
    }
    assert_eq!(samples.len(), 4 * codecs().len());
    samples
}

/// The items, the metalayers and the typesize of a frame.
type Content = (Vec<u8>, Vec<(String, Vec<u8>)>, u64);

fn content(bytes: Vec<u8>) -> blosc2::Result<Content> {
    let schunk = SChunk::open(bytes)?;
    let (meta, vlmeta) = (schunk.meta(), schunk.vlmeta());
    let layers = meta.iter().chain(vlmeta.iter());
    let layers = layers.collect::<Result<_, _>>()?;
    Ok((schunk.read::<u8>(..)?, layers, schunk.typesize() as u64))
}

/// The parts of a frame.
fn parts(bytes: &[u8]) -> Vec<(Part, Range<u64>)> {
    let options = Options { map: true, ..Options::default() };
    let regions = frame::check(bytes, &options).unwrap().regions.into_iter();
    regions.map(|region| (region.part, region.offset..region.offset + region.len)).collect()
}

/// The places of the stored chunks.
fn chunks(bytes: &[u8]) -> Vec<(u64, Range<u64>)> {
    let number = |(part, range)| match part {
        Part::Chunk(number) => Some((number, range)),
        _ => None,
    };
    parts(bytes).into_iter().filter_map(number).collect()
}

#[test]
fn every_changed_byte_is_reported() {
    let limits = Limits::default();
    let mut rng = Rng(1);
    for (name, bytes) in samples() {
        let expected = content(bytes.clone()).unwrap();
        assert!(frame::check(&bytes[..], &Options::default()).unwrap().findings.is_empty());
        let chunks = chunks(&bytes);
        assert!(chunks.len() >= 4, "{name}: three chunks with data, one repeated value");
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1 + rng.below(255) as u8;
            let what = format!("{name}: byte {at}");
            let chunk = chunks.iter().find(|(_, range)| range.contains(&(at as u64)));
            let Some((number, range)) = chunk else { continue };
            let report = frame::check(&changed[..], &Options::default()).unwrap();
            let rule = |id: &str| report.findings.iter().any(|finding| finding.rule.id == id);
            assert!(!report.is_good(), "{what}");
            // An invalid header is another error.
            let header = range.start..range.start + 32;
            assert!(rule("frame.checksums.chunk") || header.contains(&(at as u64)), "{what}");
            let frame = Frame::open(&changed[..], &limits).unwrap();
            frame.chunk(*number).map(drop).expect_err(&what);
            let schunk = OpenOptions::new().check(blosc2::Check::Header);
            let schunk = schunk.open(changed.clone()).unwrap();
            for index in 0..5u64 {
                let read = schunk.decompress_chunk::<u8>(index as usize);
                match read {
                    Ok(data) => {
                        assert_ne!(index, *number, "{what}");
                        assert!(data[..] == expected.0[index as usize * 320..][..320], "{what}");
                    }
                    Err(error) => {
                        assert_eq!(
                            (index, error.kind()),
                            (*number, ErrorKind::InvalidData),
                            "{what}"
                        );
                    }
                }
            }
            // A part of a chunk is not read without a comparison.
            let start = number * 80;
            schunk.read::<u32>(start..start + 1).expect_err(&what);
        }
    }
}

#[test]
fn a_changed_byte_outside_the_chunks_never_changes_what_is_read() {
    let mut rng = Rng(2);
    for (name, bytes) in samples() {
        let expected = content(bytes.clone()).unwrap();
        let (mut unnoticed, parts) = (0, parts(&bytes));
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1 + rng.below(255) as u8;
            if let Ok(found) = content(changed.clone()) {
                assert!(found == expected, "{name}: byte {at}");
                let report = frame::check(&changed[..], &Options::default()).unwrap();
                let part = parts.iter().find(|(_, range)| range.contains(&(at as u64)));
                let is_own = matches!(part, Some((Part::Index | Part::Trailer, _)));
                // Some fields in the headers of the index chunk and of the chunk with the checksums have no effect.
                assert!(!report.findings.is_empty() || is_own, "{name}: byte {at}");
                unnoticed += usize::from(report.findings.is_empty());
            }
        }
        assert!(unnoticed <= 2 * 32, "{name}: {unnoticed}");
    }
}

/// The items, the metalayers, the typesize and the shape of a frame at `path`.
fn all_of(path: &Path) -> blosc2::Result<(Content, Option<Vec<u64>>)> {
    let of = |schunk: &SChunk, items, shape| {
        let (meta, vlmeta) = (schunk.meta(), schunk.vlmeta());
        let layers = meta.iter().chain(vlmeta.iter()).collect::<Result<_, _>>()?;
        Ok(((items, layers, schunk.typesize() as u64), shape))
    };
    if path.extension().is_some_and(|ending| ending == "b2nd") {
        let array = NDArray::open(path)?;
        let items = array.read::<Vec<i16>>(..)?.into_iter().flat_map(i16::to_le_bytes).collect();
        return of(array.schunk(), items, Some(array.shape().to_vec()));
    }
    let schunk = SChunk::open(path)?;
    of(&schunk, schunk.read::<u8>(..)?, None)
}

/// The same, as `blosc2-format` reads it: the items of chunks, or of the array.
fn all_of_format(path: &Path) -> Result<(Content, Option<Vec<u64>>), blosc2_format::Error> {
    let mut file = File::open(path, &Limits::default())?;
    let info = file.info().clone();
    let mut layers: Vec<_> =
        info.metalayers.into_iter().map(|layer| (layer.name, layer.content)).collect();
    for name in info.vlmetalayers {
        let content = file.vlmetalayer(&name)?.unwrap();
        layers.push((name, content));
    }
    let shape = file.geometry().map(|array| array.shape().to_vec());
    let mut items = Vec::new();
    match &shape {
        Some(shape) => {
            let ranges: Vec<_> = shape.iter().map(|&side| 0..side).collect();
            items = file.read_box(&ranges)?;
        }
        None => {
            let mut data = Vec::new();
            for number in 0..info.nchunks {
                file.decode_chunk(number, &mut data)?;
                items.extend_from_slice(&data);
            }
        }
    }

    Ok(((items, layers, info.typesize.into()), shape))
}

#[test]
fn no_changed_byte_of_three_files_is_read_without_an_error() {
    let (folder, path) = folder();
    let mut rng = Rng(77);
    let options = OpenOptions::new().checksums(true).create_new(true).meta("units", b"kelvin");
    let cparams = CParams::new().codec(Codec::Lz4).blocksize(32);
    let options = options.typesize(2).cparams(&cparams);
    let sparse = folder.path().join("sparse");
    for (path, directory) in [(&path, false), (&sparse, true)] {
        let mut schunk = options.open(Target::from(path).directory(directory)).unwrap();
        for _ in 0..2 {
            schunk.append(&mixed(48, &mut rng)).unwrap();
        }
        schunk.append(&[0u8; 48]).unwrap();
        schunk.append(&[7u8; 20]).unwrap();
        schunk.vlmeta_mut().set("author", b"me").unwrap();
    }
    let array = folder.path().join("array.b2nd");
    let options = OpenOptions::new().checksums(true).vlmeta_value("author", "me").unwrap();
    let builder = NDArray::builder().chunk_shape([3, 4]).cparams(&cparams);
    let builder = builder.options(options).target(&array);
    let items: Vec<i16> = (0..35).map(|_| rng.below(5) as i16).collect();
    builder.from_slice(&items, [5, 7]).unwrap();

    for path in [path, array, sparse] {
        let expected = all_of(&path).unwrap();
        assert_eq!(all_of_format(&path).unwrap(), expected, "{path:?}");
        let (_, report) = file::check_path(&path, &Options::default()).unwrap();
        assert!(report.is_good() && report.unverified == 0, "{path:?}");
        let files: Vec<PathBuf> = match path.is_dir() {
            true => fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()).collect(),
            false => vec![path.clone()],
        };
        let mut refused = 0;
        for file in files {
            let bytes = fs::read(&file).unwrap();
            let name = b"blosc2.crc32c";
            let name_at = bytes.windows(name.len()).position(|bytes| bytes == name);
            for at in 0..bytes.len() {
                // Each bit, and another value.
                for flip in (0..8).map(|bit| 1 << bit).chain([1 + rng.below(255) as u8]) {
                    let mut changed = bytes.clone();
                    changed[at] ^= flip;
                    fs::write(&file, &changed).unwrap();
                    let what =
                        format!("{file:?}: byte {at}: {:#x} to {:#x}", bytes[at], changed[at]);
                    let (read, format) = (all_of(&path), all_of_format(&path));
                    if let Ok(found) = &read {
                        assert!(*found == expected, "{what}");
                    }
                    if let Ok(found) = &format {
                        assert!(*found == expected, "{what}");
                    }
                    refused += usize::from(read.is_err() && format.is_err());
                    // The name of the checksums, and its copy in their content.
                    if name_at.is_some_and(|name_at| (name_at..name_at + name.len()).contains(&at))
                    {
                        assert!(read.is_err() && format.is_err(), "{what}");
                        let (_, report) = file::check_path(&path, &Options::default()).unwrap();
                        let mut ids = report.findings.iter().map(|finding| finding.rule.id);
                        assert!(ids.any(|id| id == "frame.checksums"), "{what}: {report:?}");
                    }
                }
            }
            fs::write(&file, &bytes).unwrap();
        }
        assert!(refused > 1000, "{path:?}: {refused}");
        assert_eq!(all_of(&path).unwrap(), expected, "{path:?}");
    }
}

#[test]
fn a_damaged_name_of_the_checksums_is_repaired_or_accepted() {
    let (_folder, path) = folder();
    let options = OpenOptions::new().checksums(true).typesize(4).create_new(true);
    let mut schunk = options.open(&path).unwrap();
    schunk.append(&model(1)[0]).unwrap();
    schunk.vlmeta_mut().set("author", b"me").unwrap();
    drop(schunk);
    let intact = fs::read(&path).unwrap();
    let at = intact.windows(6).position(|bytes| bytes == b"crc32c").unwrap();
    let mut bytes = intact.clone();
    bytes[at] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let error = SChunk::open(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
    assert!(error.to_string().contains("blosc2.brc32c"), "{error}");

    let options = OpenOptions::new().write(true).verify_checksums(false);
    let mut ignored = options.open(&path).unwrap();
    assert!(ignored.info().has_checksums && ignored.vlmeta().len() == 1);
    ignored.set_checksums(true).unwrap();
    drop(ignored);
    assert_eq!(fs::read(&path).unwrap(), intact);

    fs::write(&path, &bytes).unwrap();
    let Repaired::Rebuilt(rebuilt) = repair(&path).unwrap() else { panic!() };
    assert_eq!(rebuilt.lost, Some(vec![]));
    let repaired = SChunk::open(&path).unwrap();
    assert!(repaired.info().has_checksums && repaired.vlmeta().len() == 1);
    assert_holds(&repaired, &model(1), "repaired");
}

#[test]
fn content_like_that_of_checksums_is_refused() {
    let bytes = samples().remove(0).1;
    let at = bytes.windows(13).rposition(|bytes| bytes == b"blosc2.crc32c").unwrap();
    // The chunk of level 0 starts with a header of 32 bytes.
    let chunk = &bytes[at - 34..];
    let len = u32::from_le_bytes(chunk[12..16].try_into().unwrap()) as usize;
    let mut outline = frame::Outline::new(Default::default(), frame::Layout::Contiguous);
    let error = outline.set_vlmetalayer_chunk("other", &chunk[..len]).unwrap_err();
    assert!(error.to_string().contains("reserved for checksums"), "{error}");
    // Compressed, the same content is that of an ordinary metalayer.
    let mut content = chunk[32..len].to_vec();
    let params = chunk::Params { codec: 5, ..chunk::Params::default() };
    content.extend([0; 1000]);
    let chunk = chunk::Encoder::new(params).unwrap().encode(&content).unwrap();
    outline.set_vlmetalayer_chunk("other", &chunk).unwrap();
    assert!(!outline.has_checksums());
}

#[test]
fn checksums_can_be_required() {
    for place in PLACES {
        let (_folder, path) = folder();
        let required = OpenOptions::new().require_checksums(true);
        let mut schunk = super::filled(place, &path, &CParams::new(), &model(2));
        let refused = |bytes: Vec<u8>, expected: &str| {
            let error = required.open(bytes.clone()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidData, "{place:?}");
            assert!(error.to_string().contains(expected), "{error}");
            let frame = Frame::open(&bytes, &Limits::default()).unwrap();
            frame.require_checksums().unwrap_err();
            let file = File::from_reader(&bytes, &Limits::default()).unwrap();
            file.require_checksums().unwrap_err();
        };
        refused(schunk.to_cframe().unwrap(), "no checksums");
        schunk.set_checksums(true).unwrap();
        let mut bytes = schunk.to_cframe().unwrap();
        required.open(bytes.clone()).unwrap();
        Frame::open(&bytes, &Limits::default()).unwrap().require_checksums().unwrap();
        // As after a change by a program that does not know them.
        let at = bytes.windows(13).rposition(|bytes| bytes == b"blosc2.crc32c").unwrap() + 13 + 2;
        bytes[at..at + 8].copy_from_slice(&7u64.to_be_bytes());
        refused(bytes, "an earlier state");
    }
    let (_folder, path) = folder();
    let required = OpenOptions::new().require_checksums(true);
    let error = required.clone().create_new(true).open(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(!path.exists());
    required.clone().checksums(true).create_new(true).open(&path).unwrap();
    required.clone().open(&path).unwrap();
    // A handle that re-reads the metadata.
    let mut reader = required.open(&path).unwrap();
    SChunk::open_rw(&path).unwrap().set_checksums(false).unwrap();
    let error = reader.refresh().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
    // Files that cannot have checksums.
    let chunk = chunk::Encoder::new(chunk::Params::default()).unwrap().encode(&[7; 40]).unwrap();
    let file = File::from_reader(&chunk, &Limits::default()).unwrap();
    file.require_checksums().unwrap_err();
    for require_checksums in [false, true] {
        let options = Options { require_checksums, ..Options::default() };
        let (_, report) = file::check(&chunk, &options).unwrap();
        assert_eq!((report.is_good(), report.unverified), (!require_checksums, 1));
        let (_, report) = file::check_path(&path, &options).unwrap();
        assert_eq!((report.is_good(), report.unverified), (!require_checksums, 1));
    }
}

#[test]
fn every_change_updates_the_checksums() {
    for place in PLACES {
        let (_folder, path) = folder();
        let mut rng = Rng(3);
        let mut model = model(3);
        let options = OpenOptions::new().checksums(true).typesize(4);
        let mut schunk = place.make(&path, &options);
        for chunk in &model {
            schunk.append(chunk).unwrap();
        }
        for step in 0..60 {
            let count = model.len();
            let index = rng.below(count as u64) as usize;
            let values = numbers(rng.below(90) as usize);
            match rng.below(9) {
                0 | 1 => {
                    schunk.insert(index, &values).unwrap();
                    model.insert(index, values);
                }
                2 | 3 => {
                    schunk.replace(index, &values).unwrap();
                    model[index] = values;
                }
                4 if count > 1 => {
                    schunk.remove(index).unwrap();
                    model.remove(index);
                }
                5 => {
                    let mut order: Vec<usize> = (0..count).collect();
                    order.rotate_left(index);
                    schunk.reorder(&order).unwrap();
                    model.rotate_left(index);
                }
                6 => {
                    schunk.vlmeta_mut().set("step", [step]).unwrap();
                }
                7 => {
                    schunk.replace(index, &[0i32; CHUNK]).unwrap();
                    model[index] = vec![0; CHUNK];
                }
                _ => {
                    let at = rng.below((count * CHUNK) as u64 - 9);
                    let items: Vec<i32> = (0..9).map(|_| rng.below(1000) as i32).collect();
                    schunk.write(at, &items).unwrap();
                    for (offset, item) in items.into_iter().enumerate() {
                        let at = at as usize + offset;
                        model[at / CHUNK][at % CHUNK] = item;
                    }
                }
            }
            assert!(schunk.info().has_checksums);
            let copy = SChunk::open(schunk.to_cframe().unwrap()).unwrap();
            assert_holds(&copy, &model, &format!("{place:?}, step {step}"));
        }
        assert_holds(&schunk, &model, &format!("{place:?}"));
        let schunk = place.reopened(schunk, &path);
        assert!(schunk.info().has_checksums, "{place:?}");
        assert_holds(&schunk, &model, &format!("{place:?}, opened again"));
        let bytes = schunk.to_cframe().unwrap();
        let report = frame::check(&bytes[..], &Options::default()).unwrap();
        let ids: Vec<_> = report.findings.iter().map(|finding| finding.rule.id).collect();
        assert!(ids.iter().all(|id| *id == "frame.gap" || *id == "frame.chunk.params"), "{ids:?}");
    }
}

#[test]
fn copies_keep_checksums() {
    let (folder, path) = folder();
    let model = model(3);
    let options = OpenOptions::new().checksums(true).typesize(4).create_new(true);
    let mut schunk = options.open(&path).unwrap();
    for chunk in &model {
        schunk.append(chunk).unwrap();
    }
    let clone = schunk.try_clone().unwrap();
    let recompressed = schunk.recompress(CParams::new().level(9)).unwrap();
    let target = folder.path().join("directory");
    SaveOptions::new().save(&schunk, Target::from(&target).directory(true)).unwrap();
    let directory = SChunk::open(&target).unwrap();
    for copy in [clone, recompressed, directory] {
        assert!(copy.info().has_checksums);
        assert_holds(&copy, &model, "a copy");
        assert!(copy.vlmeta().is_empty(), "the checksums are no metalayer of the user");
    }
    let array = NDArray::builder()
        .options(OpenOptions::new().checksums(true))
        .chunk_shape([7])
        .from_iter(0..50u16, [50])
        .unwrap();
    assert!(array.schunk().info().has_checksums);
    let slice = array.read::<Vec<u16>>(3..40).unwrap();
    assert_eq!(slice, (3..40).collect::<Vec<u16>>());
}

#[test]
fn arrays_of_zeros_have_checksums_of_their_index() {
    let array = NDArray::builder()
        .options(OpenOptions::new().checksums(true))
        .chunk_shape([100])
        .zeros::<f64>([100_000])
        .unwrap();
    let bytes = array.schunk().to_cframe().unwrap();
    let report = frame::check(&bytes[..], &Options::default()).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let mut filled = OpenOptions::new().checksums(true).typesize(8).open(Target::memory()).unwrap();
    // Special chunks of NaN are little-endian.
    let special = match cfg!(target_endian = "big") {
        true => Special::Uninit,
        false => Special::Nan,
    };
    filled.fill(special, 10_000, 100).unwrap();
    let copy = SChunk::open(filled.to_cframe().unwrap()).unwrap();
    assert!(copy.info().has_checksums);
    let item = copy.read::<f64>(500..501).unwrap()[0];
    assert_eq!(item.is_nan(), special == Special::Nan);
}

#[test]
fn checksums_are_switched_on_and_off() {
    for place in PLACES {
        let (_folder, path) = folder();
        let model = model(3);
        let mut schunk = super::filled(place, &path, &CParams::new(), &model);
        let before = schunk.to_cframe().unwrap();
        schunk.set_checksums(true).unwrap();
        assert!(schunk.info().has_checksums);
        assert_holds(&schunk, &model, &format!("{place:?}"));
        let error = schunk.vlmeta_mut().set("blosc2.crc32c", b"").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        schunk.set_checksums(false).unwrap();
        assert!(!schunk.info().has_checksums);
        assert_eq!(schunk.to_cframe().unwrap(), before, "{place:?}");
    }
}

#[test]
fn checksums_take_the_place_of_one_metalayer() {
    let mut schunk = SChunk::in_memory::<u8>(CParams::new()).unwrap();
    for number in 0..16 {
        schunk.vlmeta_mut().set(&format!("layer {number}"), b"").unwrap();
    }
    assert_eq!(schunk.set_checksums(true).unwrap_err().kind(), ErrorKind::InvalidArgument);
    schunk.vlmeta_mut().remove("layer 3").unwrap();
    schunk.set_checksums(true).unwrap();
    let error = schunk.vlmeta_mut().set("one more", b"").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    schunk.vlmeta_mut().set("layer 4", b"content").unwrap();
}

#[test]
fn a_damaged_chunk_is_left_out_by_a_repair() {
    let (_folder, path) = folder();
    let model = model(3);
    let options = OpenOptions::new().checksums(true).typesize(4).create_new(true);
    let mut schunk = options.cparams(CParams::new().level(0)).open(&path).unwrap();
    for chunk in &model {
        schunk.append(chunk).unwrap();
    }
    let at = schunk.offsets().unwrap()[1].unwrap() as usize;
    drop(schunk);
    let mut bytes = fs::read(&path).unwrap();
    // The data is stored uncompressed, so that it can be decompressed.
    bytes[at + 1000] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let salvaged = salvage(&bytes, &Limits::default()).unwrap();
    assert!(salvaged.has_checksums && salvaged.vlmetalayers == Some(vec![]));
    assert!(matches!(salvaged.chunks[..], [Piece::Intact(_), Piece::Lost, Piece::Intact(_)]));
    let Repaired::Rebuilt(rebuilt) = repair(&path).unwrap() else { panic!() };
    assert_eq!((rebuilt.nchunks, rebuilt.lost), (2, Some(vec![1])));
    let schunk = SChunk::open(&path).unwrap();
    assert!(schunk.info().has_checksums);
    assert_holds(&schunk, &[model[0].clone(), model[2].clone()], "repaired");
}

#[test]
fn checksums_keep_the_limits_of_reads() {
    for checksums in [false, true] {
        let mut schunk =
            OpenOptions::new().checksums(checksums).create_new(true).open(Vec::new()).unwrap();
        schunk.append(VariableBlocks(&[&vec![7; 300 << 20]])).unwrap();
        let options = OpenOptions::new().max_read(1 << 20);
        let schunk = options.open(schunk.into_cframe().unwrap()).unwrap();
        let error = schunk.read::<u8>(0..1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{checksums}");
    }
}

#[test]
fn a_stream_does_not_trust_the_sizes_of_damaged_chunks() {
    let mut schunk = OpenOptions::new().checksums(true).create_new(true).open(Vec::new()).unwrap();
    for len in [1000usize, 700, 900] {
        schunk.append(&vec![len as u8; len]).unwrap();
    }
    let mut bytes = schunk.into_cframe().unwrap();
    let (_, range) = chunks(&bytes).remove(0);
    bytes[range.start as usize + 4] ^= 0x10; // the decompressed size
    let schunk = OpenOptions::new().open(Target::storage(ReadOnly::new(bytes))).unwrap();
    let mut reader = SChunkReader::new(schunk);
    reader.seek(SeekFrom::Start(1100)).unwrap();
    reader.read_exact(&mut [0; 4]).unwrap_err();
}

#[test]
fn a_failed_refresh_changes_nothing() {
    let (_folder, path) = folder();
    let options = OpenOptions::new().checksums(true).meta("units", b"kelvin").create_new(true);
    let mut schunk = options.open(&path).unwrap();
    schunk.append(&[1u8; 100]).unwrap();
    // Another program writes another header.
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(6).position(|bytes| bytes == b"kelvin").unwrap();
    bytes[at] ^= 1;
    bytes[0x1b] ^= 0x10; // the level
    fs::write(&path, &bytes).unwrap();
    assert_eq!(schunk.refresh().unwrap_err().kind(), ErrorKind::InvalidData);
    assert_eq!(schunk.append(&[2u8; 100]).unwrap_err().kind(), ErrorKind::Busy);
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn a_repair_states_that_metadata_has_changed() {
    let (_folder, path) = folder();
    let options = OpenOptions::new().checksums(true).meta("units", b"kelvin").create_new(true);
    options.open(&path).unwrap().append(&[1u8; 100]).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(6).position(|bytes| bytes == b"kelvin").unwrap();
    bytes[at] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let Repaired::Rebuilt(rebuilt) = repair(&path).unwrap() else { panic!() };
    assert!(rebuilt.is_metadata_changed && rebuilt.lost == Some(vec![]));
    assert!(rebuilt.to_string().contains("checksum"), "{rebuilt}");
}

#[test]
fn damaged_metadata_is_an_error_unless_it_is_ignored() {
    let mut schunk = OpenOptions::new()
        .checksums(true)
        .meta("units", b"kelvin")
        .create_new(true)
        .open(Vec::new());
    schunk.as_mut().unwrap().append(&[1u8; 100]).unwrap();
    let mut bytes = schunk.unwrap().into_cframe().unwrap();
    let at = bytes.windows(6).position(|bytes| bytes == b"kelvin").unwrap();
    bytes[at] ^= 1;
    let error = SChunk::open(bytes.clone()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
    assert!(error.to_string().contains("checksum"), "{error}");
    let options = OpenOptions::new().verify_checksums(false).write(true);
    let mut ignored = options.open(bytes).unwrap();
    assert_eq!(ignored.decompress_chunk::<u8>(0).unwrap(), [1; 100]);
    ignored.set_checksums(true).unwrap();
    let accepted = SChunk::open(ignored.into_cframe().unwrap()).unwrap();
    assert_eq!(accepted.meta().get("units").unwrap().unwrap(), b"jelvin");
}

#[test]
fn an_unchanged_outline_returns_the_same_checksums() {
    let (_, bytes) = samples().remove(0);
    let limits = Limits::default();
    let mut outline = frame::Outline::read(&bytes, frame::Layout::Contiguous, &limits).unwrap();
    outline.load(&bytes).unwrap();
    let index = outline.index().unwrap();
    assert!(bytes.ends_with(&outline.trailer(index.len()).unwrap()));
}
