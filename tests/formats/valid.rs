//! Valid files that look unusual have no findings about wrong fields.

use blosc2::user_defined::{BoxError, CodecInfo, FilterBlock, TunerInput, UserCodec, UserTuner};
use blosc2::{CParams, Codec, Filter, NDArray, OpenOptions, SChunk, Tuner};
use blosc2_format::Severity;

use crate::rust::check_bytes;

/// A super-chunk whose chunks differ.
fn frame(params: CParams) -> Vec<u8> {
    let params = params.typesize(4);
    let mut schunk =
        OpenOptions::new().cparams(&params).typesize(4).create_new(true).open(Vec::new()).unwrap();
    for start in 0..4u32 {
        let items: Vec<u32> = (start..start + 1000).map(|item| item / 7).collect();
        schunk.append(&items).unwrap();
    }
    schunk.into_cframe().unwrap()
}

/// Halves the data: all bytes occur twice.
struct Twice;

impl UserCodec for Twice {
    fn compress(
        &self,
        input: &[u8],
        out: &mut [u8],
        _: &CodecInfo,
    ) -> Result<Option<usize>, BoxError> {
        let is_twice = input.chunks(2).all(|pair| pair[0] == pair[pair.len() - 1]);
        if !is_twice || out.len() < input.len() / 2 {
            return Ok(None);
        }
        input.iter().step_by(2).zip(&mut *out).for_each(|(from, to)| *to = *from);
        Ok(Some(input.len() / 2))
    }

    fn decompress(&self, input: &[u8], out: &mut [u8], _: &CodecInfo) -> Result<(), BoxError> {
        input.iter().zip(out.chunks_mut(2)).for_each(|(from, to)| to.fill(*from));
        Ok(())
    }
}

/// Chooses another codec, level and filter for each chunk.
struct Other;

impl UserTuner for Other {
    fn next(&mut self, params: &mut CParams, _: &TunerInput<'_>) -> Result<(), BoxError> {
        *params = params.clone().codec(Codec::Lz4).level(9).filters(&[Filter::Bitshuffle]);
        Ok(())
    }
}

#[test]
fn unusual_files_have_no_suspect_fields() {
    let xor = |block: &mut FilterBlock<'_>| -> Result<(), BoxError> {
        let input = block.input();
        block.output().iter_mut().zip(input).for_each(|(to, from)| *to = from ^ 0x55);
        Ok(())
    };
    let filter = Filter::register(229, "xor", (xor, xor)).unwrap();
    let codec = Codec::register(228, "twice", Twice).unwrap();
    let tuner = Tuner::register(227, "other", |_| Other).unwrap();
    let twice: Vec<u8> = (0..4000u32).map(|at| (at / 2 % 251) as u8).collect();
    let mut with_codec = SChunk::in_memory::<u8>(CParams::new().codec(codec).filters(&[])).unwrap();
    with_codec.append(&twice).unwrap();
    let with_codec = with_codec.into_cframe().unwrap();
    let builder = || {
        NDArray::builder().chunk_shape([10]).options(OpenOptions::new().meta("units", b"kelvin"))
    };
    let array = builder().from_iter(0..35u16, [35]).unwrap().schunk().to_cframe().unwrap();
    let mut name = array.clone();
    let at = name.windows(5).position(|bytes| bytes == b"units").unwrap();
    name[at] = 0xff;
    let mut dtype = array.clone();
    let at = dtype.windows(3).position(|bytes| bytes == b"<u2").unwrap();
    dtype[at..at + 3].copy_from_slice(b"<q9");

    // The notes and warnings that each file must have.
    let files: [(&str, Vec<u8>, &[&str]); 5] = [
        (
            "filter",
            frame(CParams::new().filters(&[filter, Filter::Shuffle])),
            &["chunk.unsupported"],
        ),
        ("codec", with_codec, &["chunk.unsupported"]),
        ("tuner", frame(CParams::new().tuner(tuner)), &["frame.chunk.params", "frame.params"]),
        ("name", name, &["frame.meta.name"]),
        ("dtype", dtype, &["b2nd.dtype_unknown"]),
    ];
    for (what, bytes, expected) in files {
        let report = check_bytes(&bytes, &Default::default());
        let ids: Vec<&str> = report.findings.iter().map(|finding| finding.rule.id).collect();
        assert!(report.is_good() && !ids.contains(&"frame.suspect"), "{what}: {report:#?}");
        assert!(expected.iter().all(|id| ids.contains(id)), "{what}: {ids:?}");
        let is_warned = report.worst() == Some(Severity::Warning);
        assert_eq!(is_warned, what == "name", "{what}: {ids:?}");
    }
}
