//! Codecs and filters that use the shape of the array: the plugins of C-Blosc2.

use blosc2::{CParams, Codec, ErrorKind, Filter, NDArray, NDArrayBuilder};

fn waves() -> Vec<f32> {
    (0..40 * 40).map(|k| ((k / 40) as f32 * 0.1).sin() + (k % 40) as f32).collect()
}

fn builder(params: CParams) -> NDArrayBuilder {
    NDArray::builder().chunk_shape([16, 16]).block_shape([8, 8]).cparams(params)
}

fn farthest(left: &[f32], right: &[f32]) -> f32 {
    left.iter().zip(right).map(|(left, right)| (left - right).abs()).fold(0.0, f32::max)
}

#[test]
fn ndlz_gives_the_bytes_back() {
    let bytes: Vec<u8> = (0..64 * 64).map(|k| ((k / 64) / 7 * 3 + (k % 64) / 9) as u8).collect();
    for side in [4, 8] {
        let params = CParams::new().codec(Codec::Ndlz).codec_meta(side).filters(&[]);
        let array = builder(params).from_slice(&bytes, [64, 64]).unwrap();
        assert_eq!(array.read::<Vec<u8>>(..).unwrap(), bytes);
        assert!(array.schunk().cbytes() < 64 * 64 * 2);
        assert_eq!(array.read::<Vec<u8>>(&[20..21, 30..33]).unwrap(), bytes[20 * 64 + 30..][..3]);
    }
}

#[test]
fn ndlz_refuses_other_sides_and_larger_items() {
    let params = |side| CParams::new().codec(Codec::Ndlz).codec_meta(side).filters(&[]);
    for error in [
        builder(params(5)).from_slice(&[0u8; 64 * 64], [64, 64]).unwrap_err(),
        builder(params(4)).from_slice(&[0u16; 64 * 64], [64, 64]).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
}

#[test]
fn ndcell_gives_the_items_back() {
    let items = waves();
    let params = CParams::new().codec(Codec::Lz4).filters(&[Filter::Ndcell(4), Filter::Shuffle]);
    let array = builder(params).from_slice(&items, [40, 40]).unwrap();
    assert_eq!(array.read::<Vec<f32>>(..).unwrap(), items);
}

#[test]
fn ndmean_replaces_cells_by_their_mean() {
    let items = waves();
    let params = CParams::new().codec(Codec::Lz4).filters(&[Filter::Ndmean(4), Filter::Shuffle]);
    let array = builder(params).from_slice(&items, [40, 40]).unwrap();
    let cell: f32 = (0..4).flat_map(|i| (0..4).map(move |j| items_at(i, j))).sum::<f32>() / 16.0;
    let read: Vec<f32> = array.read(&[0..4, 0..4]).unwrap();
    // The additions of the mean are in another order.
    assert!(farthest(&read, &[cell; 16]) < 1e-5, "{read:?} is not {cell}");
}

fn items_at(row: usize, column: usize) -> f32 {
    waves()[row * 40 + column]
}

#[cfg(feature = "zfp")]
#[test]
fn zfp_stays_within_its_accuracy() {
    let items = waves();
    for (codec, meta, limit) in [
        (Codec::ZfpAccuracy, (-3i8) as u8, 1e-3),
        (Codec::ZfpPrecision, 20, 1e-3),
        (Codec::ZfpRate, 50, 1e-3),
    ] {
        let params = CParams::new().codec(codec).codec_meta(meta).filters(&[]);
        let array = builder(params).from_slice(&items, &[40, 40]).unwrap();
        let error = farthest(&array.read::<Vec<f32>>(..).unwrap(), &items);
        assert!(error <= limit, "{codec} is off by {error}");
        assert!(array.schunk().cbytes() < 40 * 40 * 4);
    }
}

#[test]
fn a_plain_buffer_has_no_shape_for_them() {
    for params in [
        CParams::new().codec(Codec::Ndlz).codec_meta(4),
        CParams::new().filters(&[Filter::Ndcell(4)]),
        CParams::new().filters(&[Filter::Ndmean(4)]),
    ] {
        let error = blosc2::compress(&[0f32; 100], &params).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
}
