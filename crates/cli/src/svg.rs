//! The layout of a file, drawn as SVG.

use std::io::{self, Write};

use blosc2_format::{Part, Region};

use crate::map::Group;

const WIDTH: f64 = 1000.0;
const MARGIN: u64 = 20;
/// Height of a strip, and of a file with its name.
const STRIP: u64 = 40;
const ROW: u64 = 80;

/// The parts and their colours, in the order of the legend.
const COLOURS: [(&str, &str); 8] = [
    ("header", "#4e79a7"),
    ("metalayer", "#59a14f"),
    ("chunk", "#f28e2b"),
    ("index", "#b07aa1"),
    ("variable-length metalayer", "#8cd17d"),
    ("trailer", "#76b7b2"),
    ("other chunk", "#edc948"),
    ("gap", "#bab0ac"),
];

fn colour(part: &Part) -> &'static str {
    let name = match part {
        Part::Header => "header",
        Part::Metalayer(_) => "metalayer",
        Part::Chunk(_) => "chunk",
        Part::Index => "index",
        Part::VlMetalayer(_) => "variable-length metalayer",
        Part::Trailer => "trailer",
        Part::Ancillary(_) => "other chunk",
        _ => "gap",
    };
    COLOURS.iter().find(|(each, _)| *each == name).map_or("#bab0ac", |(_, colour)| colour)
}

/// Writes a strip for each file, divided into its regions, each with a tooltip.
pub(crate) fn write(out: &mut dyn Write, groups: &[Group]) -> io::Result<()> {
    let (width, height) = (WIDTH as u64 + 2 * MARGIN, ROW * groups.len() as u64 + 3 * MARGIN);
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"13\">"
    )?;
    writeln!(out, "<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>")?;
    for (row, group) in groups.iter().enumerate() {
        let top = MARGIN + ROW * row as u64;
        let end = group.end();
        let name = escaped(&group.name);
        writeln!(out, "<text x=\"{MARGIN}\" y=\"{top}\">{name}, {end} bytes</text>")?;
        for region in &group.regions {
            write_region(out, region, top + 8, end)?;
        }
    }
    write_legend(out, ROW * groups.len() as u64 + 2 * MARGIN)?;
    writeln!(out, "</svg>")
}

fn write_region(out: &mut dyn Write, region: &Region, y: u64, end: u64) -> io::Result<()> {
    let scale = |bytes: u64| bytes as f64 / end.max(1) as f64 * WIDTH;
    let x = MARGIN as f64 + scale(region.offset);
    // Regions too small to be visible get a minimum width.
    let width = scale(region.len).max(0.5);
    writeln!(
        out,
        "<rect x=\"{x:.3}\" y=\"{y}\" width=\"{width:.3}\" height=\"{STRIP}\" fill=\"{}\" \
         stroke=\"#ffffff\" stroke-width=\"0.2\"><title>{}: {} bytes at {}</title></rect>",
        colour(&region.part),
        escaped(&region.part.to_string()),
        region.len,
        region.offset,
    )
}

fn write_legend(out: &mut dyn Write, y: u64) -> io::Result<()> {
    let mut x = MARGIN;
    for (name, colour) in COLOURS {
        let (square, text) = (y - 11, x + 16);
        writeln!(
            out,
            "<rect x=\"{x}\" y=\"{square}\" width=\"12\" height=\"12\" fill=\"{colour}\"/>\
             <text x=\"{text}\" y=\"{y}\">{name}</text>"
        )?;
        x += 40 + 8 * name.len() as u64;
    }
    Ok(())
}

/// Escapes text for XML; characters that XML does not allow are replaced.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for each in text.chars() {
        match each {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            each if each.is_control() || matches!(each, '\u{fffe}' | '\u{ffff}') => {
                out.push('\u{fffd}');
            }
            each => out.push(each),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_out() {
        let part = Part::Metalayer("<script>&\"'\u{0}".into());
        let region = Region { file: None, part, offset: 0, len: 10 };
        let group = Group { name: "<a & b>\u{1b}".into(), regions: vec![region] };
        let mut out = Vec::new();
        write(&mut out, &[group]).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("&lt;a &amp; b&gt;\u{fffd}, 10 bytes"), "{text}");
        assert!(!text.contains("<script>") && text.contains("&lt;script&gt;&amp;"), "{text}");
        assert!(text.chars().all(|each| each == '\n' || !each.is_control()));
        let opened = text.matches('<').count() - text.matches("</").count();
        let closed = text.matches("</").count() + text.matches("/>").count();
        assert_eq!(opened, closed, "{text}");
    }

    #[test]
    fn regions_stay_inside() {
        for (offset, len, end) in [(0, 0, 0), (u64::MAX, u64::MAX, u64::MAX), (5, 10, 15)] {
            let mut out = Vec::new();
            let region = Region { file: None, part: Part::Gap, offset, len };
            write_region(&mut out, &region, 0, end).unwrap();
            let text = String::from_utf8(out).unwrap();
            assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        }
    }
}
