//! The pictures of `blosc2 view` in a terminal: half blocks in colours, and curves of Braille characters.

use std::convert::Infallible;
use std::fmt::Write;
use std::io;

use anstream::{AutoStream, ColorChoice};
use anstyle::{Color, Style};
use embedded_graphics::pixelcolor::{BinaryColor, Rgb888};
use embedded_graphics::prelude::*;

use crate::figure::{self, Ends};
use crate::grid::{Grid, Side};
use crate::picture::Colormap;
use crate::scale::Scale;

/// Lines of the terminal that the picture leaves for the text around it, and its lowest height.
const TEXT_LINES: u16 = 12;
const MIN_LINES: u16 = 6;
/// Characters of the scale below a picture, and of the numbers beside a curve.
const BAR: u32 = 24;
const NUMBERS: usize = 11;
/// Positions on a scale from low to high, without colours.
const SHADES: [char; 8] = ['.', ':', '-', '=', '+', '*', '#', '@'];

/// What a terminal can show.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terminal {
    /// Characters of a line, and lines for a picture.
    pub(crate) columns: u16,
    pub(crate) lines: u16,
    pub(crate) colours: Colours,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colours {
    /// No colours: pictures consist of characters.
    None,
    /// 256 colours.
    Indexed,
    /// All colours.
    All,
}

impl Terminal {
    /// The terminal at stdout.
    pub(crate) fn of_stdout() -> Self {
        let stdout = io::stdout();
        let size = terminal_size::terminal_size_of(&stdout);
        let (columns, lines) = size.map_or((80, 24), |(width, height)| (width.0, height.0));
        let colours = match AutoStream::choice(&stdout) {
            ColorChoice::Never => Colours::None,
            _ if anstyle_query::truecolor() => Colours::All,
            _ => Colours::Indexed,
        };
        Self {
            columns: columns.clamp(20, 500),
            lines: lines.saturating_sub(TEXT_LINES).clamp(MIN_LINES, 200),
            colours,
        }
    }

    /// Height and width of the data area of a 2-d slice, in half blocks.
    pub(crate) fn image_room(&self) -> [u32; 2] {
        [u32::from(self.lines) * 2, self.columns.into()]
    }

    /// The largest number of columns of a 1-d slice, in dots.
    pub(crate) fn plot_room(&self) -> u32 {
        self.curve_size().width
    }

    /// Size of a curve in dots.
    fn curve_size(&self) -> Size {
        let columns = u32::from(self.columns).saturating_sub(NUMBERS as u32 + 2);
        Size::new(columns * 2, u32::from(self.lines) * 4)
    }

    /// A 2-d slice, with a scale below.
    pub(crate) fn image(
        &self,
        grid: &Grid,
        [rows, columns]: [Side; 2],
        scale: Scale,
        colormap: Colormap,
    ) -> String {
        let line_of = |cells: &[crate::grid::Cell]| {
            let places = cells.iter().map(|cell| scale.at(cell.mean()));
            places.flat_map(|at| (0..columns.pixels).map(move |_| at)).collect::<Vec<_>>()
        };
        let lines = grid.rows().flat_map(|cells| (0..rows.pixels).map(move |_| cells));
        let lines: Vec<Vec<f64>> = lines.map(line_of).collect();
        let mut text = String::new();
        for pair in lines.chunks(2) {
            let lower = pair.get(1);
            let halves = pair[0].iter().enumerate();
            let halves = halves.map(|(x, upper)| (*upper, lower.map(|lower| lower[x])));
            self.write_halves(&mut text, halves, colormap);
            text.push('\n');
        }
        text += &format!("{} ", scale.text(scale.low));
        if scale.low < scale.high {
            let places = (0..BAR).map(|k| f64::from(k) / f64::from(BAR - 1));
            self.write_halves(&mut text, places.map(|at| (at, Some(at))), colormap);
            text += &format!(" {}", scale.text(scale.high));
        }
        if lines.iter().flatten().any(|at| at.is_nan()) {
            text += "  NaN ";
            self.write_halves(&mut text, [(f64::NAN, Some(f64::NAN)); 2].into_iter(), colormap);
        }
        text.push('\n');
        text
    }

    /// Writes characters whose upper and lower halves have different positions on the scale.
    fn write_halves(
        &self,
        text: &mut String,
        halves: impl Iterator<Item = (f64, Option<f64>)>,
        colormap: Colormap,
    ) {
        let mut last = None;
        for (upper, lower) in halves {
            if self.colours == Colours::None {
                text.push(shade(lower.map_or(upper, |lower| upper / 2.0 + lower / 2.0)));
                continue;
            }
            let colour = |at: f64| self.colour(colormap.colour(at));
            let style = Style::new().fg_color(Some(colour(upper))).bg_color(lower.map(colour));
            if last != Some(style) {
                // A reset comes first: the last style may have a background that this one lacks.
                let _ = write!(text, "{}{style}", anstyle::Reset);
                last = Some(style);
            }
            text.push('▀');
        }
        if last.is_some() {
            let _ = write!(text, "{}", anstyle::Reset);
        }
    }

    fn colour(&self, colour: Rgb888) -> Color {
        let colour = anstyle::RgbColor(colour.r(), colour.g(), colour.b());
        match self.colours {
            Colours::All => colour.into(),
            _ => anstyle_lossy::rgb_to_xterm(colour).into(),
        }
    }

    /// A 1-d slice, with numbers beside and below it.
    pub(crate) fn plot(&self, grid: &Grid, (first, last): Ends, y: Scale) -> String {
        let size = self.curve_size();
        let mut dots = Dots::new(size);
        let end = size - Size::new_equal(1);
        let point = |at: f64, value: f64| {
            let (x, y) = (at * f64::from(end.width), (1.0 - y.at(value)) * f64::from(end.height));
            Point::new(x.round() as i32, y.round() as i32)
        };
        figure::curve(grid, point, BinaryColor::On, &mut dots);
        let mut text = String::new();
        let lines: Vec<String> = dots.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            let label = match index {
                _ if y.low == y.high && index != lines.len() / 2 => String::new(),
                _ if y.low == y.high => y.text(y.low),
                0 => y.text(y.high),
                index if index + 1 == lines.len() => y.text(y.low),
                _ => String::new(),
            };
            let _ = writeln!(text, "{label:>NUMBERS$} {}", line.trim_end_matches('\u{2800}'));
        }
        let (first, last) = (first.to_string(), last.to_string());
        let width = (size.width as usize / 2).saturating_sub(first.len());
        let _ = writeln!(text, "{:NUMBERS$} {first}{last:>width$}", "");
        text
    }
}

fn shade(at: f64) -> char {
    match at.is_nan() {
        true => ' ',
        false => SHADES[((at * SHADES.len() as f64) as usize).min(SHADES.len() - 1)],
    }
}

/// Dots that become Braille characters, two dots wide and four dots high.
struct Dots {
    size: Size,
    characters: Vec<u8>,
}

impl Dots {
    fn new(size: Size) -> Self {
        let characters = vec![0; (size.width.div_ceil(2) * size.height.div_ceil(4)) as usize];
        Self { size, characters }
    }

    fn lines(&self) -> impl Iterator<Item = String> {
        let lines = self.characters.chunks(self.size.width.div_ceil(2).max(1) as usize);
        let character = |dots: &u8| char::from_u32(0x2800 + u32::from(*dots)).unwrap_or(' ');
        lines.map(move |line| line.iter().map(character).collect())
    }
}

impl OriginDimensions for Dots {
    fn size(&self) -> Size {
        self.size
    }
}

impl DrawTarget for Dots {
    type Color = BinaryColor;
    type Error = Infallible;

    fn draw_iter<I>(&mut self, pixels: I) -> Result<(), Infallible>
    where
        I: IntoIterator<Item = Pixel<BinaryColor>>,
    {
        // The bits of the dots of a character: column by column, but the lowest row comes last.
        const BITS: [[u8; 2]; 4] = [[0, 3], [1, 4], [2, 5], [6, 7]];
        for Pixel(Point { x, y }, colour) in pixels {
            let (Ok(x), Ok(y)) = (u32::try_from(x), u32::try_from(y)) else { continue };
            if x < self.size.width && y < self.size.height && colour.is_on() {
                let at = y / 4 * self.size.width.div_ceil(2) + x / 2;
                self.characters[at as usize] |= 1 << BITS[y as usize % 4][x as usize % 2];
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use blosc2::Dtype;

    use super::*;
    use crate::numbers::Numbers;

    fn grid(values: &[u8], items: [u64; 2]) -> Grid {
        let numbers = Numbers::new(&Dtype::parse("<f4").unwrap()).unwrap();
        let mut grid = Grid::new(numbers, 4, items, items.map(|items| items as usize));
        // 255 is NaN.
        let value = |&value: &u8| if value == 255 { f32::NAN } else { value.into() };
        for value in values.iter().map(value) {
            grid.write_all(&value.to_le_bytes()).unwrap();
        }
        grid
    }

    fn terminal(columns: u16, lines: u16, colours: Colours) -> Terminal {
        Terminal { columns, lines, colours }
    }

    const SIDES: [Side; 2] = [Side { cells: 3, pixels: 1 }, Side { cells: 2, pixels: 2 }];

    #[test]
    fn pictures_in_colours() {
        let grid = grid(&[0, 4, 4, 0, 255, 2], [3, 2]);
        let scale = Scale::new(0.0, 4.0);
        let text = terminal(80, 10, Colours::All).image(&grid, SIDES, scale, Colormap::Gray);
        let (black, white) = ("2;0;0;0m", "2;255;255;255m");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text:?}");
        let first = format!(
            "\u{1b}[0m\u{1b}[38;{black}\u{1b}[48;{white}▀▀\u{1b}[0m\u{1b}[38;{white}\u{1b}[48;{black}▀▀\u{1b}[0m"
        );
        assert_eq!(lines[0], first);
        // The last row has no lower half, and its first cell the colour of NaN.
        assert!(lines[1].contains("38;2;255;120;110m▀▀") && !lines[1].contains("48;"), "{text:?}");
        assert!(lines[2].starts_with("0 \u{1b}") && lines[2].contains("NaN"), "{text:?}");
        let text = terminal(80, 10, Colours::Indexed).image(&grid, SIDES, scale, Colormap::Gray);
        assert!(text.contains("38;5;16m") && !text.contains(";2;"), "{text:?}");
    }

    #[test]
    fn pictures_without_colours() {
        let grid = grid(&[0, 4, 0, 4, 255, 2], [3, 2]);
        let terminal = terminal(80, 10, Colours::None);
        let text = terminal.image(&grid, SIDES, Scale::new(0.0, 4.0), Colormap::Gray);
        assert_eq!(text, "..@@\n  ++\n0 ...:::---===+++***###@@@ 4  NaN   \n");
        let text = terminal.image(&grid, SIDES, Scale::new(5.0, 5.0), Colormap::Gray);
        assert!(text.lines().nth(2).unwrap().starts_with("5  "), "{text}");
    }

    #[test]
    fn curves_of_dots() {
        let grid = grid(&[0, 1, 2, 3, 4, 5, 6, 7], [1, 8]);
        let terminal = terminal(17, 2, Colours::None);
        assert_eq!(terminal.plot_room(), 8);
        let text = terminal.plot(&grid, (10, 17), Scale::new(0.0, 7.0));
        let expected = "          7   ⡠⠊\n          0 ⡠⠊\n            1017\n";
        assert_eq!(text, expected.replace("  ⡠⠊\n   ", "\u{2800}\u{2800}⡠⠊\n   "));
        let text = terminal.plot(&grid, (0, 7), Scale::new(7.0, 7.0));
        assert!(text.contains("          7 "), "{text}");
    }
}
