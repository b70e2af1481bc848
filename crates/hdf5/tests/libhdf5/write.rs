//! Python reads the files of this crate.

use std::path::Path;

use anyhow::Result;
use blosc2::{Codec, Filter};
use blosc2_hdf5::{FILTER_ID, FilterParams};
use blosc2_testing::{Kind, data};
use hdf5_metno::types::{
    CompoundField, CompoundType, FloatSize, IntSize, TypeDescriptor as Type, VarLenUnicode,
};
use hdf5_metno::{Datatype, File};

use crate::common::run_python;
use crate::hdf5::{alone, read_bytes, write_bytes};

const CODECS: [Codec; 5] = [Codec::BloscLz, Codec::Lz4, Codec::Lz4Hc, Codec::Zlib, Codec::Zstd];
const FILTERS: [Option<Filter>; 4] =
    [None, Some(Filter::Shuffle), Some(Filter::Bitshuffle), Some(Filter::Delta)];

/// What is in the pipeline besides Blosc2.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Pipeline {
    Alone,
    FletcherAfter,
    FletcherBefore,
    DeflateBefore,
}

/// A file with datasets that are compressed, and the same data without a filter.
struct Writer(File);

impl Writer {
    fn create(path: &Path) -> Result<Self> {
        blosc2_hdf5::register()?;
        let file = File::create(path)?;
        file.create_group("cases")?;
        file.create_group("raw")?;
        Ok(Self(file))
    }

    fn add(
        &self,
        name: &str,
        (shape, chunk): (&[usize], &[usize]),
        datatype: &Type,
        pipeline: Pipeline,
        values: &[u32],
        bytes: &[u8],
    ) -> Result<()> {
        // As it is: a descriptor would be aligned.
        let datatype = Datatype::from_descriptor(datatype)?;
        let raw = self.0.new_dataset_builder().empty_as(&datatype).shape(shape);
        write_bytes(&raw.create(format!("raw/{name}").as_str())?, bytes)?;
        let mut builder =
            self.0.new_dataset_builder().empty_as(&datatype).shape(shape).chunk(chunk);
        builder = match pipeline {
            Pipeline::FletcherBefore => builder.fletcher32(),
            Pipeline::DeflateBefore => builder.deflate(6),
            Pipeline::Alone | Pipeline::FletcherAfter => builder,
        };
        builder = builder.add_filter(FILTER_ID, values);
        if pipeline == Pipeline::FletcherAfter {
            builder = builder.fletcher32();
        }
        let dataset = builder.create(format!("cases/{name}").as_str())?;
        write_bytes(&dataset, bytes)?;
        Ok(())
    }

    /// Closes the file, reads it with this crate, and lets Python read it in three ways. Returns the number of datasets
    /// that each has compared.
    fn finish(self, path: &Path) -> Result<[usize; 4]> {
        self.0.close()?;
        let file = File::open(path)?;
        let names = file.group("cases")?.member_names()?;
        for name in &names {
            let [found, expected] = ["cases", "raw"].map(|group| -> Result<Vec<u8>> {
                read_bytes(&file.dataset(&format!("{group}/{name}"))?)
            });
            assert!(found? == expected?, "{name} differs");
        }
        file.close()?;
        let mut counts = [names.len(), 0, 0, 0];
        for (count, how) in
            counts[1..].iter_mut().zip(["hdf5plugin_reads", "b2h5py_reads", "pytables_reads"])
        {
            let (folder, path) = (path.parent().unwrap(), path.to_str().unwrap());
            *count = run_python("read.py", folder, &[how, path]).trim().parse()?;
        }
        Ok(counts)
    }
}

#[test]
fn codecs_filters_levels_and_blocks() -> Result<()> {
    let _alone = alone();
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("codecs.h5");
    let writer = Writer::create(&path)?;
    let (shape, chunk): (&[usize], &[usize]) = (&[90, 70], &[32, 25]);
    let bytes = data(Kind::Ramp, 90 * 70 * 8, 1);
    let mut number = 0;
    for codec in CODECS {
        for filter in FILTERS {
            for level in [0, 1, 5, 9] {
                let params = FilterParams::new(8, chunk)?.codec(codec).filter(filter).level(level);
                let params = match number % 3 {
                    0 => params,
                    1 => params.blocksize(1000),
                    _ => params.blocksize(8),
                };
                let (values, float) = (params.cd_values()?, Type::Float(FloatSize::U8));
                let name = format!("case{number}");
                writer.add(&name, (shape, chunk), &float, Pipeline::Alone, &values, &bytes)?;
                number += 1;
            }
        }
    }
    assert_eq!(writer.finish(&path)?, [80, 80, 60, 60]);
    Ok(())
}

fn types() -> Vec<Type> {
    let sizes = [IntSize::U1, IntSize::U2, IntSize::U4, IntSize::U8];
    let field = |name: &str, ty, offset, index| CompoundField::new(name, ty, offset, index);
    let compound = Type::Compound(CompoundType {
        fields: vec![
            field("id", Type::Integer(IntSize::U4), 0, 0),
            field("name", Type::FixedAscii(5), 4, 1),
            field("at", Type::Float(FloatSize::U8), 9, 2),
        ],
        size: 17,
    });
    let array = Type::FixedArray(Box::new(Type::Integer(IntSize::U4)), 3);
    let floats = [FloatSize::U4, FloatSize::U8].map(Type::Float);
    let text = [1, 7, 300].map(Type::FixedAscii);
    let integers = sizes.into_iter().flat_map(|size| [Type::Integer(size), Type::Unsigned(size)]);
    integers.chain(floats).chain(text).chain([compound, array]).collect()
}

#[test]
fn types_shapes_and_pipelines() -> Result<()> {
    let _alone = alone();
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("types.h5");
    let writer = Writer::create(&path)?;
    let shapes: [(&[usize], &[usize]); 4] = [
        (&[1000], &[300]),
        (&[50, 41], &[16, 12]),
        (&[13, 11, 10], &[5, 7, 4]),
        (&[5, 6, 7, 4], &[2, 5, 3, 4]),
    ];
    for (number, datatype) in types().iter().enumerate() {
        for (shape, chunk) in shapes {
            let len = shape.iter().product::<usize>() * datatype.size();
            // Bytes without zeros, so that strings keep their lengths.
            let mut bytes = data(Kind::Mixed, len, number as u64);
            bytes.iter_mut().for_each(|byte| *byte = 33 + *byte % 64);
            for pipeline in [
                Pipeline::Alone,
                Pipeline::FletcherAfter,
                Pipeline::FletcherBefore,
                Pipeline::DeflateBefore,
            ] {
                let codec = CODECS[(number + shape.len()) % 5];
                let values = FilterParams::new(datatype.size(), chunk)?.codec(codec).cd_values()?;
                let prefix = match pipeline {
                    Pipeline::Alone | Pipeline::FletcherAfter => "case",
                    _ => "pipeline",
                };
                let name = format!("{prefix}{number}_{}d_{pipeline:?}", shape.len());
                writer.add(&name, (shape, chunk), datatype, pipeline, &values, &bytes)?;
            }
        }
    }
    // 15 types, 4 shapes, 4 pipelines. b2h5py cannot read arrays, and only 2 of the pipelines; PyTables cannot read
    // structures with several axes.
    assert_eq!(writer.finish(&path)?, [240, 240, 112, 228]);
    Ok(())
}

#[test]
fn creation_completes_the_parameters() -> Result<()> {
    let _alone = alone();
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("local.h5");
    let writer = Writer::create(&path)?;
    let bytes = data(Kind::Ramp, 64 * 64 * 4, 1);
    let shape: (&[usize], &[usize]) = (&[64, 64], &[20, 30]);
    let integer = Type::Unsigned(IntSize::U4);
    // As hdf5plugin and PyTables pass them; and with the sizes of another dataset.
    let others = [1, 0, 8, 800, 3, 2, 5, 1, 100];
    let (sizes, compression) = ([4, 2400], [2, 20, 30]);
    for (name, given, used) in [
        ("none", &[][..], [1, 0, 5, 1, 0]),
        ("level", &[0, 0, 0, 0, 7], [1, 0, 7, 1, 0]),
        ("codec", &[0, 64, 0, 0, 9, 2, 4], [1, 64, 9, 2, 4]),
        ("others", &others, [1, 0, 3, 2, 5]),
    ] {
        writer.add(name, shape, &integer, Pipeline::Alone, given, &bytes)?;
        let filters = writer.0.dataset(&format!("cases/{name}"))?.filters();
        let [revision, blocksize, level, filter, codec] = used;
        let mut expected = vec![revision, blocksize, sizes[0], sizes[1], level, filter, codec];
        expected.extend(compression);
        let [hdf5_metno::filters::Filter::User(FILTER_ID, found)] = &filters[..] else {
            panic!("{filters:?}");
        };
        assert_eq!(found, &expected, "{name}");
    }
    // For items that are arrays, the typesize is that of an item of the arrays.
    let array = Type::FixedArray(Box::new(Type::Unsigned(IntSize::U2)), 2);
    writer.add("array", shape, &array, Pipeline::Alone, &[], &bytes)?;
    let filters = writer.0.dataset("cases/array")?.filters();
    let expected =
        hdf5_metno::filters::Filter::user(FILTER_ID, &[1, 0, 2, 2400, 5, 1, 0, 2, 20, 30]);
    assert_eq!(filters, [expected]);
    assert_eq!(writer.finish(&path)?, [5, 5, 4, 5]);

    // Creation fails if the parameters cannot be used. (For datasets with a name, `hdf5-metno` loses the message.)
    let file = File::create(folder.path().join("invalid.h5"))?;
    for (given, message) in [
        (&[0, 0, 0, 0, 10][..], "the level has to be from 0 to 9, got 10"),
        (&[0, 0, 0, 0, 5, 4], "trunc_prec:0 keeps 0 bits"),
        (&[0, 0, 0, 0, 5, 99], "filter 99 is not in this build"),
        (&[0, 0, 0, 0, 5, 300], "expected the code of a filter of at most 255, got 300"),
        (&[0, 0, 0, 0, 5, 1, 6], "codec 6 is not in this build"),
    ] {
        let builder = file.new_dataset::<u32>().shape([64, 64]).chunk([20, 30]);
        let error = builder.add_filter(FILTER_ID, given).create(None).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
    }
    Ok(())
}

#[test]
fn strings_of_variable_length() -> Result<()> {
    let _alone = alone();
    blosc2_hdf5::register()?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("text.h5");
    let text: Vec<String> = (0..500).map(|i| format!("text {i}").repeat(i % 4)).collect();
    let items = text.iter().map(|text| text.parse()).collect::<Result<Vec<VarLenUnicode>, _>>()?;
    let file = File::create(&path)?;
    // Chunks contain references to the strings; HDF5 does not complete the parameters. Without sizes, the filter fails,
    // and HDF5 stores chunks without the filter.
    let sizes = FilterParams::new(16, &[90])?.cd_values()?;
    for (name, values) in [("sizes", &sizes[..]), ("no_sizes", &[0, 0, 0, 0, 5, 1, 1])] {
        let builder = file.new_dataset::<VarLenUnicode>().shape(500).chunk(90);
        let dataset = builder.add_filter(FILTER_ID, values).create(name)?;
        dataset.write_raw(&items)?;
        assert_eq!(dataset.chunk_info(0).unwrap().filter_mask, u32::from(name == "no_sizes"));
    }
    // If compression fails, HDF5 stores chunks without the filter.
    let builder = file.new_dataset::<VarLenUnicode>().shape(500).chunk(90);
    let dataset = builder.add_filter(FILTER_ID, &[0, 0, 0, 0, 5, 4]).create("refused")?;
    dataset.write_raw(&items)?;
    assert_eq!(dataset.chunk_info(0).unwrap().filter_mask, 1);
    assert_eq!(dataset.read_raw::<VarLenUnicode>()?, items);
    drop(dataset);
    file.close()?;
    let file = File::open(&path)?;
    for name in ["sizes", "no_sizes"] {
        let dataset = file.dataset(name)?;
        assert_eq!(dataset.read_raw::<VarLenUnicode>()?, items);
        let is_small = dataset.storage_size() < 500 * 16 / 2;
        assert_eq!(is_small, name == "sizes", "{name}: {}", dataset.storage_size());
    }
    file.close()?;
    let printed = run_python("read.py", folder.path(), &["text", path.to_str().unwrap()]);
    assert_eq!(printed.trim(), "3");
    Ok(())
}
