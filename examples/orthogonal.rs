//! Selections beyond boxes: lists for each dimension, single items, masks.

use blosc2::{Along, NDArray};

fn main() -> blosc2::Result<()> {
    // Ten stations, a year of days: station * 1000 + day.
    let mut days = NDArray::builder().from_fn(&[10, 365], |at| (at[0] * 1000 + at[1]) as u32)?;

    // Three stations on every first day of four weeks: all pairs, as NumPy's `ix_`.
    let stations = Along::List(vec![7, 0, 3]);
    let mondays = Along::Slice { start: 0, end: Some(28), step: 7 };
    let some = days.read::<u32>([stations, mondays])?;
    assert_eq!(some[..4], [7000, 7007, 7014, 7021]);
    assert_eq!(some.len(), 12);

    // Single items, in any order; each block is decompressed once.
    assert_eq!(days.read_points::<u32>(&[[9, 364], [0, 1], [9, 364]])?, [9364, 1, 9364]);

    // Items for which something holds, read and written.
    let all = days.read_all::<u32>()?;
    let mask: Vec<bool> = all.iter().map(|value| value % 1000 == 100).collect();
    assert_eq!(days.read_mask::<u32>(&mask)?.len(), 10);
    days.write_mask(&mask, &[0u32; 10])?;
    assert_eq!(days.item::<u32>(&[5, 100])?, 0);
    Ok(())
}
