//! Colour maps, and the colours of numbers.
//!
//! The maps are paths in Oklab, a colour space in which equal distances look equal: lightness changes evenly from one end
//! to the other.

use std::f64::consts::TAU;

/// The number of colours of a map.
const COLOURS: usize = 256;

/// The colour of NaN and of unknown pixels: not a colour of any map.
pub const NAN: [u8; 4] = [0xd9, 0x2a, 0x7d, 0xff];

/// Lightness, chroma and hue (in turns) at some places of a map.
type Path = &'static [(f64, f64, f64)];

/// The names of the maps and their paths.
const MAPS: [(&str, Path); 6] = [
    ("dusk", &[(0.22, 0.11, 0.83), (0.55, 0.10, 0.56), (0.95, 0.17, 0.30)]),
    ("ember", &[(0.10, 0.03, 0.75), (0.45, 0.17, 0.97), (0.72, 0.17, 1.12), (0.97, 0.09, 1.29)]),
    ("ocean", &[(0.15, 0.06, 0.75), (0.55, 0.12, 0.66), (0.97, 0.05, 0.52)]),
    ("grey", &[(0.0, 0.0, 0.0), (1.0, 0.0, 0.0)]),
    ("grey, reversed", &[(1.0, 0.0, 0.0), (0.0, 0.0, 0.0)]),
    ("diverging", &[(0.40, 0.15, 0.72), (0.96, 0.0, 0.72), (0.96, 0.0, 0.07), (0.42, 0.16, 0.07)]),
];

/// Returns the names of the colour maps.
pub fn names() -> impl Iterator<Item = &'static str> {
    MAPS.iter().map(|(name, _)| *name)
}

/// Returns the colours of the map with this name, from low to high; of the first map if the name is unknown.
pub fn map(name: &str) -> Vec<[u8; 4]> {
    let (_, path) = MAPS.iter().find(|(known, _)| *known == name).unwrap_or(&MAPS[0]);
    let parts = (path.len() - 1) as f64;
    let colour = |k: usize| {
        let place = k as f64 / (COLOURS - 1) as f64 * parts;
        let part = (place as usize).min(path.len() - 2);
        let (a, b, t) = (path[part], path[part + 1], place - part as f64);
        let mix = |a: f64, b: f64| a + (b - a) * t;
        srgb(mix(a.0, b.0), mix(a.1, b.1), mix(a.2, b.2) * TAU)
    };
    (0..COLOURS).map(colour).collect()
}

/// Converts lightness, chroma and hue of Oklab to sRGB.
fn srgb(lightness: f64, chroma: f64, hue: f64) -> [u8; 4] {
    let (a, b) = (chroma * hue.cos(), chroma * hue.sin());
    let l = (lightness + 0.396_337_777_4 * a + 0.215_803_757_3 * b).powi(3);
    let m = (lightness - 0.105_561_345_8 * a - 0.063_854_172_8 * b).powi(3);
    let s = (lightness - 0.089_484_177_5 * a - 1.291_485_548 * b).powi(3);
    let channel = |linear: f64| {
        let linear = linear.clamp(0.0, 1.0);
        let value = if linear <= 0.003_130_8 {
            12.92 * linear
        } else {
            1.055 * linear.powf(1.0 / 2.4) - 0.055
        };
        (value * 255.0).round() as u8
    };
    [
        channel(4.076_741_662_1 * l - 3.307_711_591_3 * m + 0.230_969_929_2 * s),
        channel(-1.268_438_004_6 * l + 2.609_757_401_1 * m - 0.341_319_396_5 * s),
        channel(-0.004_196_086_3 * l - 0.703_418_614_7 * m + 1.707_614_701 * s),
        0xff,
    ]
}

/// Returns the colours of numbers as red, green, blue and opacity. `low` and `high` have the first and the last colour of
/// the map, numbers beyond them too. If `log` is set, colours are proportional to the logarithm, and numbers that have none
/// have the first colour.
pub fn paint(values: &[f64], map: &[[u8; 4]], low: f64, high: f64, log: bool) -> Vec<u8> {
    let mut pixels = Vec::with_capacity(4 * values.len());
    let scale = |value: f64| if log { value.max(f64::MIN_POSITIVE).ln() } else { value };
    let (start, end) = (scale(low), scale(high));
    let factor = if end > start { map.len() as f64 / (end - start) } else { 0.0 };
    let middle = if factor == 0.0 { map.len() as f64 / 2.0 } else { 0.0 };
    for &value in values {
        let colour = match value.is_nan() {
            true => NAN,
            // A conversion to an integer saturates.
            false => map[(((scale(value) - start) * factor + middle) as usize).min(map.len() - 1)],
        };
        pixels.extend(colour);
    }
    pixels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lightness_changes_evenly() {
        for name in ["dusk", "ember", "ocean", "grey"] {
            let colours = map(name);
            let luminance = |[r, g, b, _]: [u8; 4]| {
                0.3 * f64::from(r) + 0.6 * f64::from(g) + 0.1 * f64::from(b)
            };
            assert!(
                colours.windows(2).all(|pair| luminance(pair[0]) <= luminance(pair[1]) + 1.0),
                "{name}"
            );
        }
        let grey = map("grey");
        assert_eq!((grey[0], grey[255]), ([0, 0, 0, 255], [255, 255, 255, 255]));
    }

    #[test]
    fn numbers_have_their_colours() {
        let grey = map("grey");
        let values = [0.0, 5.0, 10.0, -3.0, 99.0, f64::NAN, f64::INFINITY];
        let pixels = paint(&values, &grey, 0.0, 10.0, false);
        let colours: Vec<&[u8]> = pixels.chunks(4).collect();
        let expected = [grey[0], grey[128], grey[255], grey[0], grey[255], NAN, grey[255]];
        assert!(
            colours.iter().zip(expected).all(|(found, expected)| found == &expected),
            "{colours:?}"
        );
        let pixels = paint(&[1.0, 20.0, 100.0, 0.0, -1.0], &grey, 1.0, 100.0, true);
        let colours: Vec<&[u8]> = pixels.chunks(4).collect();
        // 256 ln 20 / ln 100 is 166.5.
        let expected = [grey[0], grey[166], grey[255], grey[0], grey[0]];
        assert!(
            colours.iter().zip(expected).all(|(found, expected)| found == &expected),
            "{colours:?}"
        );
        // One value only.
        assert_eq!(paint(&[7.0], &grey, 7.0, 7.0, false), grey[128]);
    }
}
