//! Orthogonal indexing, strided slices, boolean masks and point selection.

use blosc2::{NDArray, Selection};

fn main() -> blosc2::Result<()> {
    // Ten stations with 365 days. Each item is: station * 1000 + day.
    let mut days =
        NDArray::builder().from_fn(&[10, 365], |[station, day]| (station * 1000 + day) as u32)?;

    // Reads three stations on the first day of each of four weeks, in all combinations, as with NumPy's `ix_`.
    let some = days.read::<Vec<u32>>(([7, 0, 3], (0..28).step_by(7)))?;
    assert_eq!(some[..4], [7000, 7007, 7014, 7021]);
    assert_eq!(some.len(), 12);

    // Reads the last week of one station.
    assert_eq!(days.read::<Vec<u32>>((4, -7..))?[0], 4358);

    // Reads single items, in any order. Each block is decompressed once.
    assert_eq!(
        days.read::<Vec<u32>>(Selection::points(&[[9, 364], [0, 1], [9, 364]]))?,
        [9364, 1, 9364]
    );

    // Reads and writes the items at which the mask is true.
    let all = days.read::<Vec<u32>>(..)?;
    let mask: Vec<bool> = all.iter().map(|value| value % 1000 == 100).collect();
    assert_eq!(days.read::<Vec<u32>>(Selection::mask(&mask))?.len(), 10);
    days.write(Selection::mask(&mask), &[0u32; 10])?;
    assert_eq!(days.item::<u32>(&[5, 100])?, 0);
    Ok(())
}
