//! `blosc2 import` and `blosc2 export`: conversion from and to NumPy's npy files, and to CSV files.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use blosc2::{CParams, Dtype, ErrorKind, OpenOptions};
use blosc2_format::ReadAt;
use blosc2_format::npy::Header;

use crate::csv::CsvWriter;
use crate::data;
use crate::file::Node;
use crate::foreign::{self, NotNpy};
use crate::output::Force;
use crate::params::{Compression, Cut, Shape};
use crate::raw::{self, RawItems};
use crate::slice::{Pick, Slices};
use crate::stream::Items;
use crate::{csv, extension, progress, remote, stdin, stream};

/// Create an array from an npy file, or from raw items.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Defaults, as in Python: zstd, level 5, shuffle. The command holds a few chunks in \
    memory. If IN is a pipe or a URL, the command also holds a row of chunks: all items with the same range of the first axis. \
    It copies all items to a temporary file instead if a row of chunks exceeds 64 MiB, if raw items have no --shape, \
    or if an npy file is in Fortran order.\n\nExamples:\n  blosc2 import table.npy table.b2nd --codec lz4\n  \
    sensor | blosc2 import - log.b2nd --dtype '<i2' --shape 86400,16"
)]
pub(crate) struct ImportArgs {
    /// npy file, or raw items with --dtype; `-` is stdin.
    r#in: PathBuf,
    #[command(flatten)]
    url: remote::UrlOptions,
    /// File to create; `-` is stdout.
    out: PathBuf,
    /// IN contains raw items of this dtype in C order. NumPy's notation: `f4`, `>i2`, `S10`.
    #[arg(long)]
    dtype: Option<Dtype>,
    /// Shape of raw items, such as `100,200`. Default: one axis with all items.
    #[arg(long, requires = "dtype")]
    shape: Option<Shape>,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    compression: Compression,
    #[command(flatten)]
    cut: Cut,
}

/// Write an array or a tensor to an npy or CSV file.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A line of a CSV file is a row of a 2-d array, an item of a 1-d array, or the fields of an item. \
    The first line contains the names of fields.\n\nExamples:\n  blosc2 export table.b2nd first.csv --slice 0:100\n  \
    blosc2 export runs.b2z --key /speed - | python3 plot.py"
)]
pub(crate) struct ExportArgs {
    /// File, directory (sparse frame) or store (with --key); `-` is stdin.
    r#in: PathBuf,
    #[command(flatten)]
    node: Node,
    /// File to create; `-` is stdout.
    out: PathBuf,
    /// Selected items, as in `cat`. An index removes its axis.
    #[arg(long, allow_hyphen_values = true)]
    slice: Option<Slices>,
    /// Format of OUT [default: by its extension, else `npy`].
    #[arg(long, value_enum)]
    format: Option<Format>,
    #[command(flatten)]
    force: Force,
}

/// The formats of `export`.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Format {
    Npy,
    Csv,
}

impl Format {
    /// The format that the extension of a file names.
    fn of(path: &Path) -> Result<Self> {
        match extension::of(path).as_deref() {
            None | Some("npy") => Ok(Self::Npy),
            Some("csv") => Ok(Self::Csv),
            Some(_) => {
                Err(extension::unsupported(path, "`.npy` or `.csv`; --format sets the format"))
            }
        }
    }
}

pub(crate) fn import(args: &ImportArgs) -> Result<()> {
    let output = args.force.output(&args.out);
    output.check()?;
    output.check_apart(&args.r#in)?;
    extension::check_blosc2(&args.out)?;
    let failed =
        |error: anyhow::Error| foreign::unimported(&args.r#in, args.dtype.is_some(), &error);
    let object = match remote::is_url(&args.r#in) {
        true => match remote::open(&args.r#in, &args.url)? {
            remote::Opened::Object(object) => Some(object),
            remote::Opened::Folder(_) => {
                bail!("cannot import ({}): not an npy file, but a directory", args.r#in.display())
            }
        },
        false => None,
    };
    let (dtype, items) = open_items(args, object).map_err(failed)?;
    let layout = items.layout();
    let nbytes = raw::nbytes(layout).map_err(failed)?;
    let builder = args.cut.builder().cparams(args.compression.apply(CParams::new()));
    let builder = builder.progress(progress::of_chunks(nbytes));
    output.create(|path, replace| {
        let fill =
            |ranges: &[Range<u64>], bytes: &mut [u8]| items.read(ranges, bytes).map_err(failed);
        let builder = builder.target(path).options(OpenOptions::new().replace(replace));
        let made =
            builder.dtype(&dtype.to_string(), layout.typesize).from_chunk_fn(&layout.shape, fill);
        made.map(drop).map_err(|error| match (error.kind(), error.get_ref()) {
            // The error of reading IN.
            (ErrorKind::Callback, Some(source)) => anyhow!("{source}"),
            _ => error.into(),
        })
    })
}

/// Opens the items to import, and reads their header.
fn open_items(args: &ImportArgs, object: Option<remote::Object>) -> Result<(Dtype, RawItems)> {
    let path = &args.r#in;
    let open = || match &object {
        Some(object) => Ok(remote::reader(Arc::clone(object))),
        None => stdin::open(path),
    };
    // A pipe and an object are read once, from the beginning to the end.
    let file = match object.is_some() || stdin::is_pipe(path) {
        true => None,
        false => {
            Some(File::open(path)?).filter(|file| file.metadata().is_ok_and(|it| it.is_file()))
        }
    };
    let (header, source) = match (&args.dtype, file) {
        (Some(dtype), Some(file)) => {
            (raw_header(args, dtype, Some(file.metadata()?.len()))?, Ok(file))
        }
        (Some(dtype), None) if args.shape.is_some() || object.is_some() => {
            let len = object.as_ref().map(ReadAt::size).transpose()?;
            (raw_header(args, dtype, len)?, Err(open()?))
        }
        (Some(dtype), None) => {
            // The number of items is known at the end.
            let mut copy = tempfile::tempfile()?;
            let len = io::copy(&mut open()?, &mut copy)?;
            copy.rewind()?;
            (raw_header(args, dtype, Some(len))?, Ok(copy))
        }
        (None, Some(mut file)) => {
            // Unbuffered, so that the file is at the first item afterwards.
            (Header::read(&mut file)?, Ok(file))
        }
        (None, None) => {
            let mut stream = open()?;
            let mut start = Vec::new();
            stream.by_ref().take(foreign::START).read_to_end(&mut start)?;
            let found = foreign::other_bytes(start.as_slice());
            let mut stream: Box<dyn Read + Send> = Box::new(Cursor::new(start).chain(stream));
            let header = Header::read(&mut stream).map_err(|error| match found {
                Some(found) => NotNpy(found).into(),
                None => anyhow::Error::from(error),
            });
            (header?, Err(stream))
        }
    };
    let (layout, dtype) = (header.layout(), header.dtype);
    if dtype.has_pointers() {
        bail!("its dtype `{dtype}` holds pointers to Python objects, not data");
    }
    if layout.typesize == 0 {
        bail!("its itemsize is 0");
    }
    let items = match source {
        Ok(file) => RawItems::of_file(file, layout),
        Err(stream) => RawItems::of_stream(stream, layout),
    };
    // For raw items a wrong option is more likely than a damaged file.
    let hint = |error| match args.shape.is_some() {
        true => anyhow!("{error}; --shape and --dtype state the number of bytes"),
        false => error,
    };
    let items = items.map_err(hint)?;
    Ok((dtype, items))
}

/// The shape and dtype of raw items of `len` bytes.
fn raw_header(args: &ImportArgs, dtype: &Dtype, len: Option<u64>) -> Result<Header> {
    let typesize = dtype.size() as u64;
    let shape = match (&args.shape, len) {
        (Some(Shape(shape)), _) => shape.clone(),
        (None, Some(len)) if typesize > 0 && len % typesize == 0 => vec![len / typesize],
        (None, len) => {
            let len = len.unwrap_or_default();
            bail!("its {len} bytes are not a whole number of items of {typesize} bytes")
        }
    };
    Ok(Header { dtype: dtype.clone(), shape, fortran_order: false })
}

pub(crate) fn export(args: &ExportArgs) -> Result<()> {
    let output = args.force.output(&args.out);
    output.check()?;
    output.check_apart(&args.r#in)?;
    let format = args.format.map_or_else(|| Format::of(&args.out), Ok)?;
    let items = data::open(args.node.of(&args.r#in)?)?;
    let failed = |error| anyhow!("cannot export ({}): {error}", args.r#in.display());
    let slices = args.slice.clone().unwrap_or_default();
    let dtype = dtype_of(&*items).map_err(failed)?;
    let picks = slices.resolve_in(&args.r#in, &items.shape())?;
    let kept = picks.iter().zip(slices.kept(picks.len())?).filter(|(_, kept)| *kept);
    let shape = kept.map(|(pick, _)| pick.count()).collect();
    let header = Header::new(dtype, shape);
    let nbytes = picks.iter().map(Pick::count).fold(items.typesize() as u64, u64::saturating_mul);
    let bar = match output.is_stdout() {
        true => progress::bar_beside_stdout(nbytes),
        false => progress::bar(nbytes),
    };
    match format {
        Format::Npy => {
            let header = header.to_bytes().map_err(|error| failed(anyhow!("{error}; {HINT}")))?;
            output.write(|out| {
                out.write_all(&header)?;
                stream::write(&*items, &picks, out, &bar)
            })
        }
        Format::Csv => {
            let layout = csv::Layout::new(&header.shape, &header.dtype).map_err(failed)?;
            output.write(|out| {
                stream::write(&*items, &picks, &mut CsvWriter::new(out, layout)?, &bar)
            })
        }
    }
}

/// Follows an error of an array that the file cannot describe.
const HINT: &str = "`cat` reads its bytes";

/// The dtype of items that can be exported.
fn dtype_of(items: &dyn Items) -> Result<Dtype> {
    if items.is_flat() {
        bail!("it is a super-chunk, without shape and dtype; `cat` reads it");
    }
    let hint = HINT;
    let text = &items.dtype().with_context(|| format!("it has no dtype; {hint}"))?;
    let dtype = Dtype::parse(text).map_err(|error| anyhow!("{error}; {hint}"))?;
    if dtype.has_pointers() {
        bail!("its dtype `{text}` holds pointers to Python objects, not data; {hint}");
    }
    let (said, typesize) = (dtype.size(), items.typesize());
    if said != typesize {
        bail!("its dtype `{text}` has {said} bytes, but its typesize is {typesize}; {hint}");
    }
    Ok(dtype)
}
