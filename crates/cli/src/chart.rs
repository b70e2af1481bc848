//! The plot of `blosc2 bench`: compression ratio against decompression speed.

use blosc2::Codec;
use embedded_graphics::pixelcolor::Rgb888;
use embedded_graphics::prelude::*;
use embedded_graphics::primitives::{Circle, PrimitiveStyle, Rectangle};
use embedded_graphics::text::Alignment;

use crate::measure::{Recommended, Row, Setting};
use crate::picture::{Axes, Canvas, EDGE, FOOT, NUMBERS, TITLE, draw, text_width};
use crate::scale::Scale;

const WIDTH: u32 = 1000;
const HEIGHT: u32 = 600;
/// Height of a line of text.
const LINE: u32 = 15;
const DOT: u32 = 7;
const RING: u32 = 13;
const RING_COLOUR: Rgb888 = Rgb888::new(40, 40, 40);

/// The colours of the codecs, in the order of the legend.
const COLOURS: [Rgb888; 8] = [
    Rgb888::new(31, 119, 180),
    Rgb888::new(255, 127, 14),
    Rgb888::new(44, 160, 44),
    Rgb888::new(214, 39, 40),
    Rgb888::new(148, 103, 189),
    Rgb888::new(140, 86, 75),
    Rgb888::new(227, 119, 194),
    Rgb888::new(23, 190, 207),
];

/// Draws a point for each row in the colour of its codec. The rows that no other row surpasses in both ratio and speed,
/// the recommended rows (in a ring) and the parameters of the file (`*`) have a label if there is room.
pub(crate) fn draw_rows(
    name: &str,
    rows: &[Row],
    current: &Setting,
    recommended: Option<Recommended>,
) -> Canvas {
    let title = format!("{name}: ratio against decompression speed in MiB/s");
    let mut canvas = Canvas::new(WIDTH, HEIGHT, &title);
    let area = Rectangle::new(
        Point::new((EDGE + NUMBERS) as i32, TITLE as i32),
        Size::new(WIDTH - 2 * EDGE - NUMBERS, HEIGHT - TITLE - FOOT - FOOT),
    );
    let speed = |row: &Row| row.decompress / f64::from(1 << 20);
    let axes =
        Axes { area, x: scale(rows.iter().map(speed)), y: scale(rows.iter().map(|row| row.ratio)) };
    axes.draw(&mut canvas);
    let mut codecs: Vec<Codec> = rows.iter().map(|row| row.setting.codec).collect();
    codecs.sort_unstable_by_key(|codec| codec.code());
    codecs.dedup();
    let colour = |codec: Codec| {
        let index = codecs.iter().position(|each| *each == codec).unwrap_or(0);
        COLOURS[index % COLOURS.len()]
    };
    let chosen = recommended
        .map_or([usize::MAX; 4], |it| [it.smallest, it.fastest, it.compromise, it.random_access]);
    // Areas that labels must not cover.
    let mut taken = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let at = axes.point(speed(row), row.ratio);
        let style = PrimitiveStyle::with_fill(colour(row.setting.codec));
        draw(Circle::with_center(at, DOT).into_styled(style), &mut canvas);
        if chosen.contains(&index) {
            let style = PrimitiveStyle::with_stroke(RING_COLOUR, 1);
            draw(Circle::with_center(at, RING).into_styled(style), &mut canvas);
        }
        taken.push(Rectangle::with_center(at, Size::new_equal(DOT)));
    }
    // The important labels come first.
    let best = |row: &Row| {
        !rows.iter().any(|other| other.ratio > row.ratio && other.decompress > row.decompress)
    };
    let mut labelled: Vec<(u8, usize)> = (0..rows.len())
        .filter_map(|index| match &rows[index] {
            _ if chosen.contains(&index) => Some((0, index)),
            row if row.setting == *current => Some((1, index)),
            row if best(row) => Some((2, index)),
            _ => None,
        })
        .collect();
    labelled.sort_unstable();
    for (_, index) in labelled {
        let row = &rows[index];
        let mark = if row.setting == *current { "*" } else { "" };
        let text =
            format!("{mark}{} {} {}", row.setting.codec, row.setting.level, row.setting.filters());
        let at = axes.point(speed(row), row.ratio);
        write_label(&mut canvas, &text, at, area, &mut taken);
    }
    let mut x = area.top_left.x;
    for codec in &codecs {
        let y = (HEIGHT - FOOT / 2) as i32 - 2;
        let style = PrimitiveStyle::with_fill(colour(*codec));
        draw(Circle::with_center(Point::new(x + 4, y), DOT).into_styled(style), &mut canvas);
        let text = codec.to_string();
        canvas.text(&text, Point::new(x + 14, y), Alignment::Left);
        x += 14 + text_width(&text) as i32 + 20;
    }
    canvas
}

/// Writes a label beside a point where it covers nothing, if there is such a place.
fn write_label(
    canvas: &mut Canvas,
    text: &str,
    at: Point,
    area: Rectangle,
    taken: &mut Vec<Rectangle>,
) {
    let size = Size::new(text_width(text), LINE);
    let side = RING as i32 / 2 + 4;
    let (width, line) = (size.width as i32, LINE as i32);
    let starts = [
        Point::new(side, -line / 2),
        Point::new(-side - width, -line / 2),
        Point::new(-width / 2, -side - line),
        Point::new(-width / 2, side),
        Point::new(side, -side - line),
        Point::new(side, side),
        Point::new(-side - width, -side - line),
        Point::new(-side - width, side),
    ];
    let boxes = starts.map(|start| Rectangle::new(at + start, size));
    let free = boxes.into_iter().find(|label| {
        area.intersection(label) == *label
            && taken.iter().all(|each| each.intersection(label).is_zero_sized())
    });
    if let Some(label) = free {
        canvas.text(text, label.top_left + Point::new(0, line / 2), Alignment::Left);
        taken.push(label);
    }
}

/// A logarithmic scale with some space beyond the positive `values`.
fn scale(values: impl Iterator<Item = f64>) -> Scale {
    const SPACE: f64 = 1.1;
    let (mut low, mut high) = (f64::MAX, f64::MIN_POSITIVE);
    for value in values {
        (low, high) = (low.min(value), high.max(value));
    }
    match low <= high {
        true => Scale::logarithmic(low / SPACE, high * SPACE),
        false => Scale::logarithmic(1.0, 2.0),
    }
}
