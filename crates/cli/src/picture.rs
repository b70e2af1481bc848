//! Pictures: text, colours, axes, and PNG files.

use std::convert::Infallible;
use std::io::Write;

use anyhow::Result;
use clap::ValueEnum;
use embedded_graphics::geometry::AnchorPoint;
use embedded_graphics::mono_font::iso_8859_1::{FONT_7X13, FONT_8X13_BOLD};
use embedded_graphics::mono_font::{MonoFont, MonoTextStyle};
use embedded_graphics::pixelcolor::Rgb888;
use embedded_graphics::prelude::*;
use embedded_graphics::primitives::{Line, PrimitiveStyle, Rectangle};
use embedded_graphics::text::{Alignment, Baseline, Text, TextStyleBuilder};

use crate::printable;
use crate::scale::Scale;

const INK: Rgb888 = Rgb888::new(40, 40, 40);
const FRAME: Rgb888 = Rgb888::new(140, 140, 140);
const LINES: Rgb888 = Rgb888::new(228, 228, 228);

/// Space at the edges of a picture, in pixels.
pub(crate) const EDGE: u32 = 10;
/// Height of the title, and of the numbers below the data, with the space around them.
pub(crate) const TITLE: u32 = 34;
pub(crate) const FOOT: u32 = 28;
/// Width of the numbers beside the data: [`Scale::label`] returns at most 11 characters.
pub(crate) const NUMBERS: u32 = 11 * 7 + 7;
/// Space between the frame of axes and the first and last position.
pub(crate) const INSET: u32 = 6;

const BODY: &MonoFont<'_> = &FONT_7X13;
const HEADING: &MonoFont<'_> = &FONT_8X13_BOLD;

/// Pixels with three bytes each, red, green and blue, row by row.
#[derive(Debug)]
pub(crate) struct Canvas {
    width: u32,
    height: u32,
    bytes: Vec<u8>,
}

impl Canvas {
    /// A white canvas with a title.
    pub(crate) fn new(width: u32, height: u32, title: &str) -> Self {
        let bytes = vec![255; width as usize * height as usize * 3];
        let mut canvas = Self { width, height, bytes };
        let most = ((width - 2 * EDGE) / HEADING.character_size.width) as usize;
        let mut title = printable(title);
        if title.chars().count() > most {
            title = title.chars().take(most.saturating_sub(3)).chain("...".chars()).collect();
        }
        let at = Point::new(EDGE as i32, TITLE as i32 / 2);
        write_text(&mut canvas, &title, at, Alignment::Left, HEADING);
        canvas
    }

    /// Writes the canvas as PNG.
    pub(crate) fn write_png(&self, out: &mut dyn Write) -> Result<()> {
        let write = || {
            let mut encoder = png::Encoder::new(out, self.width, self.height);
            encoder.set_color(png::ColorType::Rgb);
            encoder.set_depth(png::BitDepth::Eight);
            let mut writer = encoder.write_header()?;
            writer.write_image_data(&self.bytes)?;
            writer.finish()
        };
        Ok(write().map_err(std::io::Error::from)?)
    }

    pub(crate) fn fill(&mut self, area: Rectangle, colour: Rgb888) {
        draw(area.into_styled(PrimitiveStyle::with_fill(colour)), self);
    }

    /// Draws a frame of one pixel around an area.
    pub(crate) fn frame(&mut self, area: Rectangle) {
        let around = area.resized(area.size + Size::new_equal(2), AnchorPoint::Center);
        draw(around.into_styled(PrimitiveStyle::with_stroke(FRAME, 1)), self);
    }

    /// Writes one line of text at a point: the middle of its left or right end, or its centre.
    pub(crate) fn text(&mut self, text: &str, at: Point, alignment: Alignment) {
        write_text(self, text, at, alignment, BODY);
    }
}

/// Width of a text, in pixels.
pub(crate) fn text_width(text: &str) -> u32 {
    text.chars().count() as u32 * BODY.character_size.width
}

/// Width of a picture that is as wide as its title.
pub(crate) fn title_width(title: &str) -> u32 {
    (title.chars().count() as u32).saturating_mul(HEADING.character_size.width) + 2 * EDGE
}

fn write_text(
    canvas: &mut Canvas,
    text: &str,
    at: Point,
    alignment: Alignment,
    font: &MonoFont<'_>,
) {
    let style = TextStyleBuilder::new().alignment(alignment).baseline(Baseline::Middle).build();
    draw(Text::with_text_style(text, at, MonoTextStyle::new(font, INK), style), canvas);
}

/// Draws a shape; parts outside of the target are ignored.
pub(crate) fn draw<T: DrawTarget<Error = Infallible>>(
    shape: impl Drawable<Color = T::Color>,
    target: &mut T,
) {
    let Ok(_) = shape.draw(target);
}

impl OriginDimensions for Canvas {
    fn size(&self) -> Size {
        Size::new(self.width, self.height)
    }
}

impl DrawTarget for Canvas {
    type Color = Rgb888;
    type Error = Infallible;

    fn draw_iter<I>(&mut self, pixels: I) -> Result<(), Infallible>
    where
        I: IntoIterator<Item = Pixel<Rgb888>>,
    {
        for Pixel(Point { x, y }, colour) in pixels {
            let (Ok(x), Ok(y)) = (u32::try_from(x), u32::try_from(y)) else { continue };
            if x < self.width && y < self.height {
                let at = (y as usize * self.width as usize + x as usize) * 3;
                self.bytes[at..at + 3].copy_from_slice(&[colour.r(), colour.g(), colour.b()]);
            }
        }
        Ok(())
    }
}

/// The colours of values, from the lowest to the highest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colormap {
    Viridis,
    Magma,
    Inferno,
    Plasma,
    Cividis,
    Turbo,
    // From black to white.
    Gray,
    // From blue to red.
    Coolwarm,
}

impl Colormap {
    /// The colour of a position on a scale, 0 to 1; NaN has a colour that is not in the map.
    pub(crate) fn colour(self, at: f64) -> Rgb888 {
        if at.is_nan() {
            return match self {
                Self::Gray => Rgb888::new(255, 120, 110),
                _ => Rgb888::new(200, 200, 200),
            };
        }
        let (gradient, at) = match self {
            Self::Viridis => (colorous::VIRIDIS, at),
            Self::Magma => (colorous::MAGMA, at),
            Self::Inferno => (colorous::INFERNO, at),
            Self::Plasma => (colorous::PLASMA, at),
            Self::Cividis => (colorous::CIVIDIS, at),
            Self::Turbo => (colorous::TURBO, at),
            Self::Gray => (colorous::GREYS, 1.0 - at),
            Self::Coolwarm => (colorous::RED_BLUE, 1.0 - at),
        };
        let colorous::Color { r, g, b } = gradient.eval_continuous(at);
        Rgb888::new(r, g, b)
    }
}

/// Two scales and the area in which they place points.
#[derive(Debug)]
pub(crate) struct Axes {
    pub(crate) area: Rectangle,
    pub(crate) x: Scale,
    pub(crate) y: Scale,
}

impl Axes {
    /// The point of two values. Values beyond the end of a scale are placed at its end.
    pub(crate) fn point(&self, x: f64, y: f64) -> Point {
        place(self.area, self.x.at(x), self.y.at(y))
    }

    /// Draws the frame, lines and numbers.
    pub(crate) fn draw(&self, canvas: &mut Canvas) {
        let Rectangle { top_left, size } = self.area;
        let end = top_left + size;
        let inset = INSET as i32;
        let style = PrimitiveStyle::with_stroke(LINES, 1);
        let (ticks, step) = self.y.ticks(6);
        let mut written = String::new();
        for tick in ticks {
            let y = top_left.y + inset + pixel(size.height, 1.0 - self.y.at(tick));
            let (from, to) = (Point::new(top_left.x, y), Point::new(end.x - 1, y));
            draw(Line::new(from, to).into_styled(style), canvas);
            let at = Point::new(top_left.x - inset, y);
            let label = self.y.label(tick, step);
            // The differences of very large numbers do not fit.
            if label != written {
                canvas.text(&label, at, Alignment::Right);
            }
            written = label;
        }
        let (ticks, step) = self.x.ticks(8);
        for tick in ticks {
            let x = top_left.x + inset + pixel(size.width, self.x.at(tick));
            let (from, to) = (Point::new(x, top_left.y), Point::new(x, end.y - 1));
            draw(Line::new(from, to).into_styled(style), canvas);
            let label = self.x.label(tick, step);
            // A number at the right end must not leave the picture.
            let half = text_width(&label) as i32 / 2;
            let most = canvas.width as i32 - half - 2;
            let at = Point::new(x.min(most), end.y + FOOT as i32 / 2);
            canvas.text(&label, at, Alignment::Center);
        }
        canvas.frame(self.area);
    }
}

/// The point at two positions, 0 to 1 from left to right and from bottom to top, inside an area.
pub(crate) fn place(area: Rectangle, x: f64, y: f64) -> Point {
    let inset = Point::new_equal(INSET as i32);
    let Size { width, height } = area.size;
    area.top_left + inset + Point::new(pixel(width, x), pixel(height, 1.0 - y))
}

/// The pixel at a position, 0 to 1, of a length without its insets.
fn pixel(len: u32, at: f64) -> i32 {
    (at * f64::from(len.saturating_sub(2 * INSET + 1))).round() as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_maps_have_their_ends_and_another_colour_for_nan() {
        let black = Rgb888::new(0, 0, 0);
        assert_eq!(Colormap::Gray.colour(0.0), black);
        assert_eq!(Colormap::Gray.colour(1.0), Rgb888::WHITE);
        assert_eq!(Colormap::Viridis.colour(0.0), Rgb888::new(68, 1, 84));
        assert_eq!(Colormap::Viridis.colour(1.0), Rgb888::new(253, 231, 37));
        let (cold, warm) = (Colormap::Coolwarm.colour(0.0), Colormap::Coolwarm.colour(1.0));
        assert!(cold.b() > cold.r() && warm.r() > warm.b());
        for map in Colormap::value_variants() {
            let nan = map.colour(f64::NAN);
            let nearest = (0..=1000).map(|k| {
                let colour = map.colour(f64::from(k) / 1000.0);
                let pairs = [(nan.r(), colour.r()), (nan.g(), colour.g()), (nan.b(), colour.b())];
                pairs.iter().map(|(a, b)| u32::from(a.abs_diff(*b))).sum::<u32>()
            });
            assert!(nearest.min().unwrap() > 30, "{map:?}");
        }
    }

    #[test]
    fn titles_are_cut_off() {
        let canvas = Canvas::new(100, 60, &"name\n".repeat(50));
        let row = |x: u32| (0..60).all(|y| canvas.bytes[((y * 100 + x) * 3) as usize] == 255);
        assert!((90..100).all(row), "the title is wider than the picture");
        assert!(!(10..90).all(row));
    }
}
