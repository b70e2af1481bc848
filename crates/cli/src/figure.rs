//! The pictures of `blosc2 view`: a 2-d slice in colours, and a 1-d slice as a curve.

use std::convert::Infallible;

use embedded_graphics::pixelcolor::Rgb888;
use embedded_graphics::prelude::*;
use embedded_graphics::primitives::{Line, PrimitiveStyle, Rectangle};
use embedded_graphics::text::Alignment;

use crate::grid::{Grid, Side};
use crate::picture::{
    Axes, Canvas, Colormap, EDGE, FOOT, INSET, NUMBERS, TITLE, draw, place, text_width, title_width,
};
use crate::scale::Scale;

/// Width of the colour bar, the space before it, and the space between it and its numbers.
const BAR: u32 = 16;
const BAR_SPACE: u32 = 18;
const BAR_NUMBERS: u32 = 6;
/// The shortest colour bar: its three numbers do not overlap.
const MIN_BAR: u32 = 60;

const CURVE: Rgb888 = Rgb888::new(31, 90, 160);

/// The first and the last position of an axis.
pub(crate) type Ends = (u64, u64);

/// Width of the positions of the rows, with the space around them.
fn rows_width(rows: Ends) -> u32 {
    EDGE + text_width(&rows.0.max(rows.1).to_string()) + INSET
}

/// Height and width of the data area of a 2-d slice.
pub(crate) fn image_room(width: u32, rows: Ends) -> [u32; 2] {
    let rest = rows_width(rows) + BAR_SPACE + BAR + BAR_NUMBERS + NUMBERS;
    [width.saturating_sub(rest).max(1); 2]
}

/// The largest number of columns of a 1-d slice.
pub(crate) fn plot_room(width: u32) -> u32 {
    plot_size(width).width.saturating_sub(2 * INSET)
}

fn plot_size(width: u32) -> Size {
    Size::new(width.saturating_sub(2 * EDGE + NUMBERS + INSET), width / 2)
}

/// A 2-d slice in colours with a colour bar; `sides` are rows and columns.
pub(crate) fn image(
    grid: &Grid,
    sides: [Side; 2],
    ends: Option<[Ends; 2]>,
    scale: Scale,
    colormap: Colormap,
    title: &str,
    width: u32,
) -> Canvas {
    let [rows, columns] = sides;
    let left = rows_width(ends.map_or((0, 0), |ends| ends[0]));
    let area =
        Rectangle::new(Point::new(left as i32, TITLE as i32), Size::new(columns.len(), rows.len()));
    let bar = Rectangle::new(
        Point::new((left + area.size.width + BAR_SPACE) as i32, TITLE as i32),
        Size::new(BAR, area.size.height.max(MIN_BAR)),
    );
    let numbers = bar_numbers(scale);
    let longest = numbers.iter().map(|(_, text)| text_width(text)).max().unwrap_or(0);
    let longest = longest.max(text_width("NaN") + BAR);
    let end = bar.top_left.x as u32 + BAR + BAR_NUMBERS + longest + EDGE;
    let width = end.max(title_width(title)).min(width);
    let mut canvas = Canvas::new(width, TITLE + bar.size.height + FOOT, title);
    canvas.frame(area);
    let Some(ends) = ends else {
        canvas.text("no items", area.center(), Alignment::Center);
        return canvas;
    };
    let mut has_nan = false;
    for (y, row) in grid.rows().enumerate() {
        for (x, cell) in row.iter().enumerate() {
            let mean = cell.mean();
            has_nan |= mean.is_nan();
            let at = Point::new(x as i32 * columns.pixels as i32, y as i32 * rows.pixels as i32);
            let square = Rectangle::new(area.top_left + at, Size::new(columns.pixels, rows.pixels));
            canvas.fill(square, colormap.colour(scale.at(mean)));
        }
    }
    label_ends(&mut canvas, area, ends);
    draw_bar(&mut canvas, bar, scale.low == scale.high, &numbers, colormap);
    if has_nan {
        let at = bar.top_left + Point::new(3, bar.size.height as i32 + FOOT as i32 / 2 - 5);
        let square = Rectangle::new(at, Size::new_equal(10));
        canvas.fill(square, colormap.colour(f64::NAN));
        canvas.frame(square);
        canvas.text("NaN", at + Point::new(19, 5), Alignment::Left);
    }
    canvas
}

/// Writes the positions of the first and last row and column beside the area.
fn label_ends(canvas: &mut Canvas, area: Rectangle, [rows, columns]: [Ends; 2]) {
    let Size { width, height } = area.size;
    let (left, top) = (area.top_left.x, area.top_left.y);
    let (right, bottom) = (left + width as i32, top + height as i32);
    let x = left - INSET as i32;
    canvas.text(&rows.0.to_string(), Point::new(x, top + 6), Alignment::Right);
    if height >= 28 {
        canvas.text(&rows.1.to_string(), Point::new(x, bottom - 7), Alignment::Right);
    }
    let (first, last) = (columns.0.to_string(), columns.1.to_string());
    let y = bottom + FOOT as i32 / 2 - 2;
    canvas.text(&first, Point::new(left, y), Alignment::Left);
    if text_width(&first) + text_width(&last) + text_width(" ") <= width {
        canvas.text(&last, Point::new(right, y), Alignment::Right);
    }
}

/// The positions and texts of the numbers at a colour bar: low, middle and high.
fn bar_numbers(scale: Scale) -> Vec<(f64, String)> {
    let Scale { low, high, .. } = scale;
    if low == high {
        return vec![(0.5, scale.text(low))];
    }
    let all = [(0.0, low), (0.5, low / 2.0 + high / 2.0), (1.0, high)];
    all.map(|(at, value)| (at, scale.text(value))).to_vec()
}

/// Draws the colours of a scale from the lowest at the bottom to the highest, with numbers.
fn draw_bar(
    canvas: &mut Canvas,
    bar: Rectangle,
    is_constant: bool,
    numbers: &[(f64, String)],
    colormap: Colormap,
) {
    let last = f64::from(bar.size.height - 1);
    for y in 0..bar.size.height {
        let at = if is_constant { 0.5 } else { 1.0 - f64::from(y) / last };
        let line = Rectangle::new(bar.top_left + Point::new(0, y as i32), Size::new(BAR, 1));
        canvas.fill(line, colormap.colour(at));
    }
    canvas.frame(bar);
    for (at, text) in numbers {
        let to = Point::new((BAR + BAR_NUMBERS) as i32, ((1.0 - at) * last).round() as i32);
        canvas.text(text, bar.top_left + to, Alignment::Left);
    }
}

/// A 1-d slice as a curve.
pub(crate) fn plot(grid: &Grid, ends: Option<Ends>, y: Scale, title: &str, width: u32) -> Canvas {
    let size = plot_size(width);
    let mut canvas = Canvas::new(width, TITLE + size.height + FOOT, title);
    let area = Rectangle::new(Point::new((EDGE + NUMBERS) as i32, TITLE as i32), size);
    let Some((first, last)) = ends else {
        canvas.frame(area);
        canvas.text("no items", area.center(), Alignment::Center);
        return canvas;
    };
    let axes = Axes { area, x: Scale::new(first as f64, last as f64), y };
    axes.draw(&mut canvas);
    let point = |at: f64, value: f64| place(area, at, y.at(value));
    curve(grid, point, CURVE, &mut canvas);
    if grid.columns() as u32 <= size.width / 8 {
        for (at, values) in columns(grid) {
            for value in values.into_iter().flatten() {
                let dot = Rectangle::with_center(point(at, value), Size::new_equal(5));
                canvas.fill(dot, CURVE);
            }
        }
    }
    canvas
}

/// The position of each column, 0 to 1, with its smallest and largest item; `None` if all are NaN.
fn columns(grid: &Grid) -> impl Iterator<Item = (f64, Option<[f64; 2]>)> {
    let last = grid.columns() - 1;
    // A single column is in the middle.
    let at = move |column: usize| if last == 0 { 0.5 } else { column as f64 / last as f64 };
    grid.rows().flatten().enumerate().map(move |(column, cell)| (at(column), cell.range()))
}

/// Draws a line through the smallest and the largest item of each column. It is interrupted where all items are NaN.
pub(crate) fn curve<T: DrawTarget<Error = Infallible>>(
    grid: &Grid,
    point: impl Fn(f64, f64) -> Point,
    colour: T::Color,
    target: &mut T,
) {
    let mut last = None;
    for (at, values) in columns(grid) {
        let Some(values) = values else {
            last = None;
            continue;
        };
        for value in values {
            let to = point(at, value);
            let line = Line::new(last.unwrap_or(to), to);
            draw(line.into_styled(PrimitiveStyle::with_stroke(colour, 1)), target);
            last = Some(to);
        }
    }
}
