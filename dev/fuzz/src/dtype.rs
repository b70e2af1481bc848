//! Texts of dtypes, and headers of NumPy's files.

use blosc2_format::dtype::Dtype;
use blosc2_format::{b2nd, npy};

/// The largest item that is swapped, in bytes.
const LARGEST: usize = 1 << 16;

/// Parses a dtype, the metalayer of an array, or the header of a `.npy` file; and writes it again.
pub fn dtype(input: &[u8]) {
    if let Ok(meta) = b2nd::Meta::parse(input) {
        // A shape of a valid metalayer may exceed what is written.
        if let Ok(bytes) = meta.to_bytes() {
            let mut again = b2nd::Meta::parse(&bytes).expect("it was written here");
            if meta.dtype.is_none() {
                // An array without a dtype is written with that of bytes.
                again.dtype = None;
            }
            assert_eq!(again, meta);
        }
        if let Some(dtype) = &meta.dtype {
            parse(dtype);
        }
    }
    if let Ok(header) = npy::Header::read(&mut &*input)
        && let Ok(bytes) = header.to_bytes()
    {
        let again = npy::Header::read(&mut &bytes[..]).expect("it was written here");
        assert_eq!(again.to_bytes().expect("it was written before"), bytes);
    }
    if let Ok(text) = std::str::from_utf8(input) {
        parse(text);
    }
}

fn parse(text: &str) {
    if let Ok(dtype) = Dtype::from_descr(text) {
        look_at(&dtype);
    }
    if let Ok(dtype) = Dtype::parse(text) {
        look_at(&dtype);
    }
}

fn look_at(dtype: &Dtype) {
    let text = dtype.to_string();
    let again = Dtype::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(&again, dtype, "{text}");
    if let Ok(text) = dtype.to_descr() {
        let again = Dtype::from_descr(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert!(again.is_equivalent(dtype), "{text}: {again} is not {dtype}");
    }
    assert_eq!(dtype.to_native().size(), dtype.size());
    if let Ok(plan) = dtype.swap_plan()
        && dtype.size() <= LARGEST
    {
        let items: Vec<u8> = (0..dtype.size() * 2).map(|at| at as u8).collect();
        let mut swapped = items.clone();
        plan.apply(&mut swapped);
        plan.apply(&mut swapped);
        assert_eq!(swapped, items, "{text}");
    }
}
