//! A user-defined filter: stores the differences of neighboring items. Small differences compress well.

use blosc2::user_defined::{BoxError, FilterBlock, UserFilter};
use blosc2::{CParams, Codec, Filter, Threads};

/// Stores the first item of each block. Replaces every other item by its difference to the previous item.
struct Differences;

impl UserFilter for Differences {
    fn forward(&self, block: &mut FilterBlock<'_>) -> Result<(), BoxError> {
        let (input, mut last) = (block.input_as::<i64>()?, 0i64);
        for (to, &from) in block.output_as::<i64>()?.iter_mut().zip(input) {
            *to = from.wrapping_sub(last);
            last = from;
        }
        Ok(())
    }

    fn backward(&self, block: &mut FilterBlock<'_>) -> Result<(), BoxError> {
        let (input, mut last) = (block.input_as::<i64>()?, 0i64);
        for (to, &from) in block.output_as::<i64>()?.iter_mut().zip(input) {
            last = last.wrapping_add(from);
            *to = last;
        }
        Ok(())
    }
}

fn main() -> blosc2::Result<()> {
    let differences = Filter::register(160, "differences", Differences)?;

    // Times in nanoseconds since 1970, about one in each millisecond.
    let start = 1_700_000_000_000_000_000;
    let times: Vec<i64> = (0..1_000_000).map(|i| start + i * 1_000_000 + i * i % 997).collect();
    let params = CParams::new().codec(Codec::Lz4).threads(Threads::auto());

    let plain = blosc2::compress(&times, &params)?;
    let params = params.filters(&[differences, Filter::Shuffle]);
    let filtered = blosc2::compress(&times, &params)?;
    assert_eq!(blosc2::decompress::<i64>(&filtered)?, times);

    println!("{} bytes of times", size_of_val(times.as_slice()));
    println!("{:9} bytes with shuffle", plain.len());
    println!("{:9} bytes with {differences} and shuffle", filtered.len());
    Ok(())
}
