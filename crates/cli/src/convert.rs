//! `blosc2 import` and `blosc2 export`: conversion from and to files of other programs.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use blosc2::{CParams, Dtype, ErrorKind, OpenOptions};
use blosc2_format::ReadAt;
use blosc2_format::npy::Header;
use blosc2_store::CTable;

use crate::csv::CsvWriter;
use crate::evaluate;
use crate::file::{Content, Node, Source};
use crate::foreign::{self, NotNpy};
use crate::formats::Format;
use crate::output::{Force, Output};
use crate::params::{Compression, Cut, Shape};
use crate::raw::{self, RawItems};
use crate::rows::{self, Notation};
use crate::slice::{Pick, Slices};
use crate::stream::Items;
use crate::{UsageError, complain, csv, data, extension, limits, progress, remote, stdin, stream};

/// Create an array or a table from a file of another format.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "CSV, Parquet and Arrow files become tables: OUT is a zip file (`.b2z`) or a directory. Other \
    files, and Parquet and Arrow files if OUT ends in `.b2nd`, become arrays. Defaults, as in Python: zstd, level 5, \
    shuffle.\n\nExamples:\n  blosc2 import trips.parquet trips.b2z --columns day,price\n  \
    sensor | blosc2 import - log.b2nd --dtype '<i2' --shape 86400,16"
)]
pub(crate) struct ImportArgs {
    /// File of another format, Zarr directory, or raw items with --dtype; `-` is stdin.
    r#in: PathBuf,
    #[command(flatten)]
    url: remote::UrlOptions,
    /// File or directory to create; `-` is stdout.
    out: PathBuf,
    /// Format of IN [default: by its bytes, else its extension].
    #[arg(long, value_enum, conflicts_with = "dtype")]
    format: Option<Format>,
    /// Columns of a table, such as `id,price` [default: all].
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    columns: Vec<String>,
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

/// Write an array or a table to a file of another format.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Arrays become npy, CSV, Parquet, Arrow or Zarr files; tables CSV, Parquet or Arrow files. A line of \
    a CSV file is a row of a table or of a 2-d array, an item of a 1-d array, or the fields of an item.\n\n\
    Examples:\n  blosc2 export trips.b2z cheap.parquet --where 'price < 9.5'\n  \
    blosc2 export runs.b2z --key /speed - | python3 plot.py"
)]
pub(crate) struct ExportArgs {
    /// File, directory (sparse frame) or store (with --key); `-` is stdin.
    r#in: PathBuf,
    #[command(flatten)]
    node: Node,
    /// File to create; `-` is stdout.
    out: PathBuf,
    /// Selected items or rows, as in `cat`. An index removes its axis.
    #[arg(long, allow_hyphen_values = true)]
    slice: Option<Slices>,
    /// Compute the items of a Python expression, as in `cat`; for npy and CSV files.
    #[arg(long)]
    evaluate: bool,
    #[command(flatten)]
    selection: rows::Selection,
    /// Format of OUT [default: by its extension, else `npy`].
    #[arg(long, value_enum)]
    format: Option<Format>,
    #[command(flatten)]
    force: Force,
}

pub(crate) fn import(args: &ImportArgs) -> Result<()> {
    let output = args.force.output(&args.out);
    output.check()?;
    output.check_apart(&args.r#in)?;
    extension::check_blosc2(&args.out)?;
    let object = match remote::is_url(&args.r#in) {
        true => match remote::open(&args.r#in, &args.url)? {
            remote::Opened::Object(object) => Some(object),
            remote::Opened::Folder(_) | remote::Opened::Store(_) => {
                bail!("cannot import ({}): not an npy file, but a directory", args.r#in.display())
            }
        },
        false => None,
    };
    let format = match (args.format, &object) {
        (Some(format), _) => format,
        _ if args.dtype.is_some() => Format::Npy,
        (None, Some(object)) => Format::of_input(&args.r#in, Some(object)),
        // Opening a pipe would block.
        (None, None) => {
            let file = Some(&args.r#in).filter(|path| path.is_file());
            let file = file.and_then(|path| File::open(path).ok());
            Format::of_input(&args.r#in, file.as_ref())
        }
    };
    let failed = |error: anyhow::Error| match format {
        Format::Npy => foreign::unimported(&args.r#in, args.dtype.is_some(), &error),
        _ => anyhow!("cannot import ({}): {error}", args.r#in.display()),
    };
    if let Some(name) = rows::repeated(&args.columns) {
        return Err(UsageError(format!("--columns names the column `{name}` twice")).into());
    }
    let (dtype, items) = match format {
        Format::Npy | Format::Zarr if !args.columns.is_empty() => {
            return Err(UsageError("--columns requires a CSV, Parquet or Arrow file".into()).into());
        }
        Format::Npy => open_items(args, object).map_err(failed)?,
        #[cfg(feature = "zarr")]
        Format::Zarr => crate::zarr::open(&args.r#in).map_err(failed)?,
        #[cfg(not(feature = "zarr"))]
        Format::Zarr => return Err(format.missing("import", &args.r#in)),
        _ => {
            // These files are read in any order, or twice.
            let from = match &object {
                Some(object) => stdin::copy_of(&args.r#in, object)?,
                None if stdin::is_pipe(&args.r#in) => stdin::file(&args.r#in)?,
                None => args.r#in.clone(),
            };
            File::open(&from).map_err(|error| foreign::unopened(&args.r#in, &error))?;
            let is_array = extension::of(&args.out).as_deref() == Some("b2nd");
            match is_array && format != Format::Csv {
                true => batch_items(args, &from, format)?,
                false => return import_table(args, &from, format, output),
            }
        }
    };
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

/// Opens the items of an array in a Parquet or Arrow file.
#[cfg(feature = "arrow")]
fn batch_items(args: &ImportArgs, from: &Path, format: Format) -> Result<(Dtype, RawItems)> {
    let Some(batches) = format.of_batches() else { unreachable!("the caller checks it") };
    crate::batches::items(from, batches, &args.columns)
        .map_err(|error| anyhow!("cannot import ({}): {error}", args.r#in.display()))
}

#[cfg(not(feature = "arrow"))]
fn batch_items(args: &ImportArgs, _: &Path, format: Format) -> Result<(Dtype, RawItems)> {
    Err(format.missing("import", &args.r#in))
}

#[cfg(not(feature = "arrow"))]
fn import_table(args: &ImportArgs, _: &Path, format: Format, _: Output<'_>) -> Result<()> {
    Err(format.missing("import", &args.r#in))
}

/// Creates a table: a zip file or a directory.
#[cfg(feature = "arrow")]
fn import_table(args: &ImportArgs, from: &Path, format: Format, output: Output<'_>) -> Result<()> {
    let failed = |error: anyhow::Error| anyhow!("cannot import ({}): {error}", args.r#in.display());
    if !args.cut.is_default() {
        let message = "--chunks and --blocks require an array, and this file becomes a table";
        return Err(UsageError(message.into()).into());
    }
    let extension = extension::of(&args.out);
    if let Some(extension @ ("b2nd" | "b2f" | "b2frame" | "b2e")) = extension.as_deref() {
        let message = format!(
            "cannot write a table to a `.{extension}` file ({}): expected `.b2z`, or a name for a directory",
            args.out.display()
        );
        return Err(UsageError(message).into());
    }
    let Some(batches) = format.of_batches() else { unreachable!("the caller checks it") };
    let make = |path: &Path| {
        crate::batches::to_table(from, batches, &args.columns, path, &args.compression)
            .map_err(failed)
    };
    if !output.is_stdout() && extension.as_deref() != Some("b2z") {
        return output.create_folder(make);
    }
    output.create_complete(|path| {
        // The extension makes the table a zip file. The target of a link can have another one. The name is short, because
        // the folder for temporary files has a longer one.
        let zip = path.with_file_name("new.b2z");
        make(&zip)?;
        std::fs::rename(&zip, path)
            .map_err(|error| anyhow!("cannot create a file ({}): {error}", args.out.display()))
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
                Some(found) => {
                    let hint = match found.as_str() {
                        foreign::PARQUET => "; `--format parquet` imports it",
                        foreign::ARROW => "; `--format arrow` imports it",
                        foreign::TEXT => "; `--format csv` imports a table of values",
                        _ => "",
                    };
                    NotNpy(found + hint).into()
                }
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
    let format = args.format.map_or_else(|| Format::of_output(&args.out, Format::Npy), Ok)?;
    let source = args.node.of(&args.r#in)?;
    let failed = |error| anyhow!("cannot export ({}): {error}", args.r#in.display());
    let slices = args.slice.clone().unwrap_or_default();
    if !args.evaluate
        && let Some(table) = rows::table(source)
    {
        return export_table(args, &table, format, output);
    }
    if !args.selection.is_default() {
        let path = args.r#in.display();
        let message = format!("--columns and --where require a table, and this is none ({path})");
        return Err(UsageError(message).into());
    }
    if !matches!(format, Format::Npy | Format::Csv) {
        if args.evaluate {
            return Err(UsageError("--evaluate requires the format `npy` or `csv`".into()).into());
        }
        return export_array(args, source, format, output);
    }
    let items = match args.evaluate {
        true => Box::new(evaluate::open(source)?),
        false => data::open(source)?,
    };
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
    if format == Format::Npy {
        let header = header.to_bytes().map_err(|error| failed(anyhow!("{error}; {HINT}")))?;
        return output.write(|out| {
            out.write_all(&header)?;
            stream::write(&*items, &picks, out, &bar)
        });
    }
    let layout = csv::Layout::new(&header.shape, &header.dtype).map_err(failed)?;
    output.write(|out| stream::write(&*items, &picks, &mut CsvWriter::new(out, layout)?, &bar))
}

/// Writes the selected rows and columns of a table.
fn export_table(
    args: &ExportArgs,
    table: &CTable,
    format: Format,
    output: Output<'_>,
) -> Result<()> {
    let path = &args.r#in;
    let failed = |error: anyhow::Error| match error.is::<io::Error>() {
        true => error,
        false => anyhow!("cannot export ({}): {}", path.display(), limits::named(error)),
    };
    let columns = args.selection.columns(table, path)?;
    let is_left = |name: &str| columns.iter().all(|column| column.name() != name);
    if !args.selection.has_columns() {
        for column in table.columns().iter().filter(|column| is_left(column.name())) {
            let (path, name) = (path.display(), column.name());
            complain(&format!("warning ({path}): the computed column `{name}` is left out"));
        }
    }
    let slices = args.slice.clone().unwrap_or_default();
    let rows = args.selection.rows(table, &slices, path)?;
    let bar = match output.is_stdout() {
        true => progress::rows_beside_stdout(rows.len()),
        false => progress::rows(rows.len()),
    };
    match format {
        Format::Npy | Format::Zarr => Err(failed(anyhow!(
            "it is a table, and the format of a table is `.csv`, `.parquet`, `.arrow` or `.arrows`"
        ))),
        Format::Csv => output.write(|out| {
            rows::write(table, &columns, &rows, Notation::Csv, &bar, out).map_err(failed)
        }),
        #[cfg(feature = "arrow")]
        format => {
            let Some(batches) = format.of_batches() else { unreachable!("all others are above") };
            let names: Vec<&str> = columns.iter().map(|column| column.name()).collect();
            let ranges = rows.ranges().map_err(failed)?;
            output.write_sent(|out| {
                crate::batches::from_table(table, &names, ranges, batches, out, &bar)
                    .map_err(failed)
            })
        }
        #[cfg(not(feature = "arrow"))]
        format => Err(format.missing("export", path)),
    }
}

/// Writes an array, or a part of its first axis.
#[cfg_attr(
    not(any(feature = "arrow", feature = "zarr")),
    expect(unused_variables, reason = "each of these formats needs a feature")
)]
fn export_array(
    args: &ExportArgs,
    source: Source<'_>,
    format: Format,
    output: Output<'_>,
) -> Result<()> {
    let path = &args.r#in;
    let failed = |error: anyhow::Error| match error.is::<io::Error>() {
        true => error,
        false => anyhow!("cannot export ({}): {}", path.display(), limits::named(error)),
    };
    let Content::Array(array) = Content::open_data(source)? else {
        return Err(failed(anyhow!(
            "this format requires an array or a table; `.npy` takes others"
        )));
    };
    let slices = args.slice.clone().unwrap_or_default();
    let picks = slices.resolve_in(path, array.shape())?;
    let sides = array.shape().iter();
    let is_whole = |(pick, side): (&Pick, &u64)| pick.count == *side && pick.step == 1;
    let is_part = picks.iter().zip(sides).skip(1).all(is_whole)
        && picks.first().is_none_or(|pick| pick.step == 1)
        && slices.kept(picks.len())?.into_iter().all(|kept| kept);
    if !is_part {
        let message = "--slice selects a part of the first axis in this format, such as `10:20`";
        return Err(UsageError(message.into()).into());
    }
    let rows = picks.first().map(|pick| pick.start..pick.start + pick.count);
    match (format, rows) {
        #[cfg(feature = "zarr")]
        (Format::Zarr, rows) => crate::zarr::write(&array, rows, output).map_err(failed),
        #[cfg(not(feature = "zarr"))]
        (Format::Zarr, _) => Err(format.missing("export", path)),
        (_, None) => Err(failed(anyhow!("it has no axis, and this format has rows"))),
        #[cfg(feature = "arrow")]
        (format, Some(rows)) => {
            let Some(batches) = format.of_batches() else { unreachable!("all others are above") };
            let count = rows.end - rows.start;
            let bar = match output.is_stdout() {
                true => progress::rows_beside_stdout(count),
                false => progress::rows(count),
            };
            output.write_sent(|out| {
                crate::batches::from_array(&array, rows, batches, out, &bar).map_err(failed)
            })
        }
        #[cfg(not(feature = "arrow"))]
        (format, Some(_)) => Err(format.missing("export", path)),
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
