//! The parser of `--slice` of the command.

// The command is a program without a library.
#[allow(dead_code)]
#[path = "../../../crates/cli/src/slice.rs"]
mod slice;

use slice::{Pick, Slices};

/// Parses slices, and resolves them on arrays of several shapes.
pub fn slices(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(slices) = text.parse::<Slices>() else { return };
    for shape in [
        &[][..],
        &[0],
        &[1],
        &[10],
        &[i64::MAX as u64],
        &[u64::MAX],
        &[5, 0, 7],
        &[3, u64::MAX, 1],
        &[2; 16],
    ] {
        let Ok(picks) = slices.resolve(shape) else { continue };
        assert_eq!(picks.len(), shape.len());
        assert_eq!(slices.kept(shape.len()).expect("it was resolved").len(), shape.len());
        for (pick, &size) in picks.iter().zip(shape) {
            inside(pick, size, text);
        }
    }
}

fn inside(pick: &Pick, size: u64, text: &str) {
    assert!(pick.count() <= size, "{text} selects {} of {size}", pick.count());
    if pick.count() > 0 {
        let span = pick.span();
        assert!(span.start < span.end && span.end <= size, "{text}: {span:?} of {size}");
        let half = pick.part(pick.count() / 2, pick.count() - pick.count() / 2);
        assert_eq!(half.position(0), pick.position(pick.count() / 2), "{text}");
    }
}
