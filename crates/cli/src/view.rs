//! `blosc2 view`: statistics and pictures of numbers.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Result, anyhow, bail};
use serde_json::{Value, json};

use crate::data::{self, stored_dtype};
use crate::figure::{self, Ends};
use crate::file::Node;
use crate::grid::{Cell, Grid, Side, Statistics, fit};
use crate::numbers::Numbers;
use crate::output::Force;
use crate::picture::{Canvas, Colormap};
use crate::scale::Scale;
use crate::slice::{Pick, Slices};
use crate::stream::{self, Items};
use crate::terminal::Terminal;
use crate::typed::{ItemType, Part, SmallFloat, Widened};
use crate::{extension, json, printable, progress, web};

/// Print statistics of numbers, and draw them in the terminal or as PNG.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A 2-d slice is drawn in colors: each cell shows the mean of its finite items. A 1-d slice is drawn as a curve: each \
column of the picture shows its smallest and largest item. Infinite items are at the ends of the scale, and NaN has \
its own color. The statistics are computed from the finite items, as f8. For complex numbers, \
the absolute values are used. NaT counts as NaN.

Examples:
  blosc2 view image.b2nd
  blosc2 view cube.b2nd --slice 0,:,::2 -o first.png --colormap magma")]
pub(crate) struct Args {
    /// File of any format, npy file, directory (sparse frame) or store (with --key); `-` is stdin.
    file: PathBuf,
    #[command(flatten)]
    node: Node,
    /// Selected items, as in `cat`, on at most two axes.
    #[arg(long, allow_hyphen_values = true)]
    slice: Option<Slices>,
    /// Field of a structured dtype.
    #[arg(long, value_name = "NAME")]
    field: Option<String>,
    /// Use this dtype, such as `f4` or `bfloat16`.
    #[arg(long)]
    dtype: Option<ItemType>,
    /// PNG file to create; `-` is stdout.
    #[arg(short, long, value_name = "PNG")]
    output: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
    /// Maximum width of the PNG in pixels.
    #[arg(long, default_value_t = 800, value_parser = clap::value_parser!(u32).range(300..=2000))]
    width: u32,
    /// Colors of a 2-d slice, from low to high.
    #[arg(long, value_enum, default_value_t = Colormap::Viridis)]
    colormap: Colormap,
    /// Ends of the scale [default: from the data].
    #[arg(long, value_name = "LOW,HIGH", allow_hyphen_values = true)]
    range: Option<Range>,
    /// Print one JSON object instead of text and picture.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    web: web::WebOptions,
}

/// The ends of a scale.
#[derive(Debug, Clone, Copy)]
struct Range {
    low: f64,
    high: f64,
}

impl FromStr for Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.trim().parse().ok().filter(|end: &f64| end.is_finite());
        let ends = text.split_once(',').and_then(|(low, high)| number(low).zip(number(high)));
        match ends {
            Some((low, high)) if low < high => Ok(Self { low, high }),
            _ => Err(format!("expected two numbers LOW,HIGH with LOW below HIGH, got `{text}`")),
        }
    }
}

/// Where the slice is drawn.
#[derive(Debug, Clone, Copy)]
enum Target {
    Nowhere,
    Png,
    Terminal(Terminal),
}

pub(crate) fn run(args: &Args) -> Result<()> {
    if args.web.is_set() {
        return web::serve(&args.file, args.web);
    }
    let output = args.output.as_ref().map(|path| args.force.output_apart(path, &args.file));
    let output = output.transpose()?;
    args.output.as_deref().map_or(Ok(()), |path| extension::check(path, "png"))?;
    let target = match output {
        Some(_) => Target::Png,
        None if !args.json && io::stdout().is_terminal() => Target::Terminal(Terminal::of_stdout()),
        None => Target::Nowhere,
    };
    let items = data::open(args.node.of(&args.file)?)?;
    let slice = Slice::read(args, target, &*items)?;
    if let Some(output) = output {
        let canvas = slice.draw(args);
        output.write(|out| canvas.write_png(out))?;
        if output.is_stdout() {
            return Ok(());
        }
    }
    let mut out = BufWriter::new(io::stdout().lock());
    if args.json {
        writeln!(out, "{}", json::pretty(&slice.to_json(args))?)?;
        return Ok(out.flush()?);
    }
    if let Target::Terminal(terminal) = target {
        writeln!(out, "{}", printable(&slice.title))?;
        write!(out, "{}", slice.draw_in(terminal, args))?;
    }
    let times = slice.grid.times();
    let [min, max, mean] = times.map_or([None, None, None], |times| times.map(Some));
    for (name, value) in slice.facts() {
        let time = match name {
            "min" => &min,
            "max" => &max,
            "mean" => &mean,
            _ => &None,
        };
        let text = match (value, time) {
            (_, Some(time)) => time.clone(),
            (Value::Array(sizes), _) if !sizes.is_empty() => {
                sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
            }
            (Value::Array(_) | Value::Null, _) => "-".to_owned(),
            (Value::String(text), _) => printable(&text),
            (number, _) => number.to_string().trim_end_matches(".0").to_owned(),
        };
        writeln!(out, "{name:<14} {text}")?;
    }
    Ok(out.flush()?)
}

/// The items of a slice, reduced to the cells of a picture.
struct Slice {
    title: String,
    shape: Vec<u64>,
    dtype: String,
    /// The first and last position of the axes with more than one item; `None` if there are no items.
    ends: Option<Vec<Ends>>,
    /// Rows and columns of a 2-d slice.
    sides: Option<[Side; 2]>,
    grid: Grid,
}

impl Slice {
    /// Reads all items of the slice that the arguments select.
    fn read(args: &Args, target: Target, items: &dyn Items) -> Result<Self> {
        let path = args.file.display();
        let failed = |error: anyhow::Error| anyhow!("cannot view ({path}): {error}");
        let given = type_of(args, items).map_err(failed)?;
        let widened;
        let (items, dtype): (&dyn Items, _) = match &given {
            ItemType::Numpy(dtype) => (items, dtype.clone()),
            ItemType::Small(float) => {
                widened = Widened::new(items, *float, args.field.as_deref()).map_err(failed)?;
                (&widened, SmallFloat::dtype()?)
            }
        };
        let part = Part::new(items, &dtype, args.field.as_deref()).map_err(failed)?;
        let (items, dtype): (&dyn Items, _) = (&part.0, part.1);
        let numbers = Numbers::new(&dtype).map_err(failed)?;
        let slices = args.slice.clone().unwrap_or_default();
        let picks = slices.resolve_in(&args.file, &items.shape())?;
        let is_axis = slices.kept(picks.len())?;
        let axes = picks.iter().zip(is_axis).filter(|(_, is_axis)| *is_axis);
        let shape: Vec<u64> = axes.map(|(pick, _)| pick.count()).collect();
        let kept: Vec<&Pick> = picks.iter().filter(|pick| pick.count() != 1).collect();
        let size = |axis: usize| kept.get(axis).map_or(1, |pick| pick.count());
        let ends_of = |pick: &&Pick| (pick.position(0), pick.position(pick.count() - 1));
        let ends = (!shape.contains(&0)).then(|| kept.iter().map(ends_of).collect::<Vec<_>>());
        let columns = match target {
            Target::Nowhere => 1,
            Target::Png => figure::plot_room(args.width),
            Target::Terminal(terminal) => terminal.plot_room(),
        };
        let (lens, sides) = match kept.len() {
            0 | 1 => ([1, size(0)], None),
            2 => {
                let lens = [size(0), size(1)];
                let rows = ends.as_ref().map_or((0, 0), |ends| ends[0]);
                let room = match target {
                    Target::Nowhere => [1, 1],
                    Target::Png => figure::image_room(args.width, rows),
                    Target::Terminal(terminal) => terminal.image_room(),
                };
                (lens, Some(fit(lens, room)))
            }
            ndim => return Err(failed(too_many_dimensions(ndim, &picks))),
        };
        let cells = match sides {
            Some(sides) => sides.map(|side| side.cells),
            None => [1, lens[1].clamp(1, columns.into()) as usize],
        };
        let mut grid = Grid::new(numbers, items.typesize(), lens, cells);
        let bytes = shape.iter().fold(items.typesize() as u64, |all, n| all.saturating_mul(*n));
        stream::write(items, &picks, &mut grid, &progress::bar(bytes))?;
        // A field and the items of a sub-array have their own dtype.
        let dtype = match given {
            ItemType::Numpy(_) => dtype.to_string(),
            ItemType::Small(_) => given.to_string(),
        };
        let name = args.file.file_name().unwrap_or(args.file.as_os_str()).to_string_lossy();
        let key = args.node.key().unwrap_or_default();
        let sizes = shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(" x ");
        let title = match sizes.as_str() {
            "" => format!("{name}{key}  {dtype}"),
            sizes => format!("{name}{key}  {sizes}  {dtype}"),
        };
        Ok(Self { title, shape, dtype, ends, sides, grid })
    }

    /// The scale of the picture: without `--range`, the finite `values` of all cells are on it.
    fn scale(&self, args: &Args, values: impl Fn(&Cell) -> [f64; 2]) -> Scale {
        let (low, high) = match args.range {
            Some(Range { low, high }) => (low, high),
            None => self.grid.range(values).unwrap_or((0.0, 1.0)),
        };
        Scale::new(low, high).with_dates(self.grid.date_unit())
    }

    fn image_scale(&self, args: &Args) -> Scale {
        self.scale(args, |cell| [cell.mean(); 2])
    }

    fn plot_scale(&self, args: &Args) -> Scale {
        self.scale(args, |cell| cell.range().unwrap_or([f64::NAN; 2]))
    }

    fn draw(&self, args: &Args) -> Canvas {
        let Self { title, ends, sides, grid, .. } = self;
        let ends = ends.as_deref();
        match *sides {
            Some(sides) => {
                let ends = ends.map(|ends| [ends[0], ends[1]]);
                let (scale, colormap) = (self.image_scale(args), args.colormap);
                figure::image(grid, sides, ends, scale, colormap, title, args.width)
            }
            None => {
                let ends = ends.map(|ends| ends.first().copied().unwrap_or_default());
                figure::plot(grid, ends, self.plot_scale(args), title, args.width)
            }
        }
    }

    /// The picture as text; empty if there are no items, or only one.
    fn draw_in(&self, terminal: Terminal, args: &Args) -> String {
        match (self.ends.as_deref(), self.sides) {
            (None | Some([]), _) => String::new(),
            (_, Some(sides)) => {
                terminal.image(&self.grid, sides, self.image_scale(args), args.colormap)
            }
            (Some([ends, ..]), None) => terminal.plot(&self.grid, *ends, self.plot_scale(args)),
        }
    }

    /// The names and values of the output, in their order.
    fn facts(&self) -> [(&'static str, Value); 8] {
        let Statistics { count, nan, infinite, finite } = self.grid.statistics();
        [
            ("shape", json!(self.shape)),
            ("dtype", json!(self.dtype)),
            ("count", json!(count)),
            ("nan", json!(nan)),
            ("infinite", json!(infinite)),
            ("min", json!(finite.map(|finite| finite.min))),
            ("max", json!(finite.map(|finite| finite.max))),
            ("mean", json!(finite.map(|finite| finite.mean))),
        ]
    }

    fn to_json(&self, args: &Args) -> Value {
        let path = ("path", json!(args.file.display().to_string()));
        let facts = [path].into_iter().chain(self.facts());
        Value::Object(facts.map(|(name, value)| (name.to_owned(), value)).collect())
    }
}

/// The type of the items: that of the arguments or of the file.
fn type_of(args: &Args, items: &dyn Items) -> Result<ItemType> {
    let typesize = items.typesize();
    let dtype = match (&args.dtype, items.dtype()) {
        (Some(dtype), _) => dtype.clone(),
        (None, Some(text)) => return stored_dtype(&text, typesize).map(ItemType::Numpy),
        (None, None) => bail!("it has no dtype; --dtype sets it, such as `--dtype f4`"),
    };
    let size = dtype.size();
    if size != typesize {
        bail!("the dtype `{dtype}` has {size} bytes, but its typesize is {typesize}");
    }
    Ok(dtype)
}

/// The error for a slice of `ndim` dimensions, with a slice of two dimensions.
fn too_many_dimensions(ndim: usize, picks: &[Pick]) -> anyhow::Error {
    let mut dropped = 0;
    let mut slice = Vec::new();
    for pick in picks {
        if dropped == ndim - 2 {
            break;
        }
        dropped += usize::from(pick.count() != 1);
        slice.push(pick.start.to_string());
    }
    let slice = slice.join(",");
    anyhow!(
        "the slice has {ndim} dimensions, expected 1 or 2; select fewer, such as --slice {slice}"
    )
}
