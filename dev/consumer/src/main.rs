//! Writes and reads with the codecs in this build of `blosc2`, and checks the errors for the missing ones.

use b2::{CParams, Check, Codec, ErrorKind, NDArray, OpenOptions, SChunk};

fn main() -> b2::Result<()> {
    let items: Vec<f64> = (0..10_000).map(|item| f64::from(item).sqrt()).collect();
    for codec in [Codec::BloscLz, Codec::Lz4, Codec::Lz4Hc, Codec::Zlib, Codec::Zstd] {
        let is_optional = matches!(codec, Codec::Zlib | Codec::Zstd);
        let is_here = cfg!(feature = "default") || !is_optional;
        assert_eq!(codec.is_available(), is_here, "{codec}");
        let params = CParams::new().codec(codec);
        let outcome = b2::compress(&items, &params);
        if !is_here {
            let error = outcome.expect_err("a codec that is not in this build");
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
            continue;
        }
        assert_eq!(b2::decompress::<f64>(&outcome?)?, items, "{codec}");

        let mut schunk = SChunk::in_memory::<f64>(&params)?;
        schunk.append(&items)?;
        let bytes = schunk.into_cframe()?;
        let schunk = SChunk::open(bytes.clone())?;
        assert_eq!(schunk.read::<f64>(..)?, items, "{codec}");
        check_refuses_damage(codec, &bytes);

        let array = NDArray::builder().cparams(params).from_slice(&items, &[10, 1000])?;
        assert_eq!(array.read::<Vec<f64>>(&[7..8, 0..1000])?, items[7000..8000], "{codec}");
        println!("{codec}: chunks, frames and arrays are good");
    }
    // The default codec is Zstandard; a build without it returns an error.
    let outcome = NDArray::from_slice(&items, &[100, 100]);
    if cfg!(feature = "default") {
        assert_eq!(outcome?.read::<Vec<f64>>(..)?, items);
        #[cfg(feature = "default")]
        structs::round_trip()?;
        #[cfg(feature = "default")]
        blosc1::exchange()?;
    } else {
        let error = outcome.expect_err("the default codec is not in this build");
        assert!(error.to_string().contains("feature `zstd`"), "{error}");
    }
    Ok(())
}

/// Asserts that bytes that pass the check of the content can be read with the codecs of this build.
fn check_refuses_damage(codec: Codec, bytes: &[u8]) {
    let options = OpenOptions::new().check(Check::Content);
    let mut refused = 0;
    for at in (100..bytes.len()).step_by(bytes.len() / 50) {
        let mut damaged = bytes.to_vec();
        damaged[at] ^= 0x10;
        match options.open(damaged) {
            Ok(schunk) => assert!(schunk.read::<f64>(..).is_ok(), "{codec}: byte {at}"),
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 0, "{codec}: no damage was found");
}

/// The derive macros, with other names of the libraries.
#[cfg(feature = "default")]
mod structs {
    use store::{CTable, Row};

    #[derive(Debug, Clone, Copy, PartialEq, b2::Element)]
    #[element(crate = "b2")]
    #[repr(C)]
    struct Point {
        #[element(name = "abscissa")]
        x: f64,
        #[element(dtype = "<i8")]
        y: [u8; 8],
    }

    #[derive(Debug, Clone, Copy, PartialEq, b2::Element)]
    #[element(crate = "b2")]
    #[repr(transparent)]
    struct Length(f32);

    #[derive(Debug, Clone, PartialEq, Row)]
    #[row(crate = "store")]
    struct Station {
        #[row(name = "id")]
        number: i64,
        name: Option<String>,
    }

    pub(super) fn round_trip() -> b2::Result<()> {
        let points = [Point { x: 0.5, y: [1, 0, 0, 0, 0, 0, 0, 2] }; 100];
        let chunk = b2::compress(&points, &b2::CParams::new())?;
        assert_eq!(b2::decompress::<Point>(&chunk)?, points);
        let chunk = b2::compress(&[Length(1.5); 100], &b2::CParams::new())?;
        assert_eq!(b2::decompress::<f32>(&chunk)?, [1.5; 100]);

        let stations = [Some("north".to_owned()), None].map(|name| Station { number: 7, name });
        let mut table = CTable::in_memory(&Station::schema())?;
        table.append_rows(&stations)?;
        assert_eq!(table.rows::<Station>(..)?, stations);
        println!("structs: the derive macros work with other names of the libraries");
        Ok(())
    }
}

/// C-Blosc (the crate `blosc-src`) in the same program.
#[cfg(feature = "default")]
mod blosc1 {
    use b2::{CParams, Codec, Filter};
    use blosc_src as c;

    /// Each library decompresses the chunks of both libraries.
    pub(super) fn exchange() -> b2::Result<()> {
        let items: Vec<f64> = (0..100_000).map(|item| f64::from(item / 7)).collect();
        let names = [c"blosclz", c"lz4", c"lz4hc", c"zstd"];
        let codecs = [Codec::BloscLz, Codec::Lz4, Codec::Lz4Hc, Codec::Zstd];
        for (codec, name) in codecs.into_iter().zip(names) {
            for (filter, number) in [(Filter::Shuffle, 1), (Filter::Bitshuffle, 2)] {
                let mut theirs =
                    vec![0u8; size_of_val(&items[..]) + c::BLOSC_MAX_OVERHEAD as usize];
                // SAFETY: the sizes are those of the buffers, and the name ends in a NUL byte.
                let len = unsafe {
                    c::blosc_compress_ctx(
                        5,
                        number,
                        size_of::<f64>(),
                        size_of_val(&items[..]),
                        items.as_ptr().cast(),
                        theirs.as_mut_ptr().cast(),
                        theirs.len(),
                        name.as_ptr(),
                        0,
                        2,
                    )
                };
                theirs.truncate(len.try_into().expect("C-Blosc compresses"));
                let params = CParams::new().codec(codec).filters(&[filter]).blosc1(true);
                let ours = b2::compress(&items, &params)?;
                for chunk in [&theirs[..], ours.as_ref()] {
                    assert!(chunk.len() < size_of_val(&items[..]), "{codec}");
                    assert_eq!(b2::decompress::<f64>(chunk)?, items, "{codec}");
                    let mut read = vec![0.0; items.len()];
                    // SAFETY: the chunk is valid, and `read` has the size that is passed.
                    let len = unsafe {
                        c::blosc_decompress_ctx(
                            chunk.as_ptr().cast(),
                            read.as_mut_ptr().cast(),
                            size_of_val(&items[..]),
                            2,
                        )
                    };
                    assert_eq!(usize::try_from(len), Ok(size_of_val(&items[..])), "{codec}");
                    assert_eq!(read, items, "{codec}");
                }
            }
        }
        println!("C-Blosc: both libraries work in one program");
        Ok(())
    }
}
