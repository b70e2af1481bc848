//! `blosc2 bench`: compares compression parameters on the data of a file.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use blosc2::{Codec, Threads};
use serde_json::{Value, json};

use crate::file::Node;
use crate::measure::{Bench, Recommended, Row, Setting, recommend};
use crate::output::Force;
use crate::sample::Sample;
use crate::slice::Slices;
use crate::table::size;
use crate::{UsageError, chart, complain, extension, json, progress};

/// The number of bytes with which the time of a row is estimated, and the share of the time limit for all estimates.
const PROBE: usize = 256 << 10;
const PROBE_SHARE: f64 = 0.25;
/// The share of the remaining time that the measurements should take. It is below 1 because the estimate is not exact.
const USED_SHARE: f64 = 0.7;
/// The number of runs of each row that the estimate assumes.
const RUNS: f64 = 2.0;

/// Compare codecs, levels and filters on the data of a file.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
For each row of the table, a sample is compressed with the chunk and block size of the file, decompressed and checked. \
Speeds are uncompressed bytes per second, the best of at least two runs. `*` marks the parameters of the file. Recommended rows: \
`smallest` has the highest ratio; of the rows that save at least half of the bytes that `smallest` saves, `fastest` \
decompresses fastest and `random access` reads a few items fastest; `best compromise` has the highest product of both \
speeds of the rows that save 80 % of them.

Examples:
  blosc2 bench data.b2nd
  blosc2 bench data.b2nd --codecs lz4,zstd --levels 1,5 --plot speeds.png")]
pub(crate) struct Args {
    /// File of any format, directory (sparse frame) or store (with --key); `-` is stdin.
    file: PathBuf,
    #[command(flatten)]
    node: Node,
    /// Slice to sample [default: chunks across the file].
    #[arg(long, allow_hyphen_values = true)]
    slice: Option<Slices>,
    /// Codecs, such as `lz4,zstd` [default: all of `blosclz,lz4,lz4hc,zlib,zstd` in this build].
    #[arg(long, value_delimiter = ',')]
    codecs: Vec<Codec>,
    /// Compression levels, 0 to 9.
    #[arg(long, value_delimiter = ',', default_value = "1,5,9",
        value_parser = clap::value_parser!(u8).range(0..=9))]
    levels: Vec<u8>,
    /// Maximum size of the sample [default: 64 MiB].
    #[arg(long, value_name = "BYTES", default_value_t = 64 << 20, hide_default_value = true,
        value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    size: u64,
    /// Time limit; a shorter time makes the sample smaller.
    #[arg(long, value_name = "SECONDS", default_value_t = 10,
        value_parser = clap::value_parser!(u64).range(1..=86_400))]
    time: u64,
    /// Threads, 1 to 256.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: u16,
    /// PNG file to create: ratio against decompression speed.
    #[arg(long, value_name = "PNG")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

/// What `bench` prints.
struct Report {
    rows: Vec<Row>,
    recommended: Option<Recommended>,
    /// The parameters of the file.
    current: Setting,
    /// Number of combinations that were not measured, for lack of time.
    left_out: usize,
    /// The time that the rows took.
    elapsed: Duration,
    /// Bytes and chunks of the sample, and bytes of the data.
    sample: u64,
    chunks: usize,
    nbytes: u64,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let plot = args.plot.as_ref().map(|path| args.force.output_apart(path, &args.file));
    let plot = plot.transpose()?;
    args.plot.as_deref().map_or(Ok(()), |path| extension::check(path, "png"))?;
    let lacking = args.codecs.iter().find(|codec| !codec.is_available());
    if let Some(codec) = lacking {
        return Err(UsageError(format!("the codec {codec} is not in this build")).into());
    }
    let sample = Sample::read(args.node.of(&args.file)?, args.slice.as_ref(), args.size)?;
    let report = measure(args, sample)?;
    if let Some(plot) = plot {
        let name = args.file.file_name().unwrap_or(args.file.as_os_str()).to_string_lossy();
        let canvas = chart::draw_rows(&name, &report.rows, &report.current, report.recommended);
        plot.write(|out| canvas.write_png(out))?;
        if plot.is_stdout() {
            return Ok(());
        }
    }
    let mut out = BufWriter::new(io::stdout().lock());
    match args.json {
        true => writeln!(out, "{}", json::pretty(&report.to_json(args))?)?,
        false => report.write(args, &mut out)?,
    }
    Ok(out.flush()?)
}

/// The lossless codecs of this build that work on any data.
fn default_codecs() -> Vec<Codec> {
    let all = [Codec::BloscLz, Codec::Lz4, Codec::Lz4Hc, Codec::Zlib, Codec::Zstd];
    all.into_iter().filter(|codec| codec.is_available()).collect()
}

fn measure(args: &Args, mut sample: Sample) -> Result<Report> {
    let _spinner = progress::spinner(u64::MAX, "measuring");
    let start = Instant::now();
    let limit = Duration::from_secs(args.time);
    let codecs = if args.codecs.is_empty() { default_codecs() } else { args.codecs.clone() };
    let current = Setting::of(&sample.params);
    let mut settings = Setting::all(&codecs, &args.levels, sample.typesize());
    settings.retain(|setting| *setting != current);
    // The parameters of the file come first, so that they are not left out.
    settings.insert(0, current.clone());
    let threads = Threads::new(args.threads.into());
    let params = |setting: &Setting, file: &blosc2::CParams| match *setting == current {
        // All parameters of the file, such as that of the codec.
        true => file.clone().threads(threads),
        false => setting.params(file, threads),
    };

    let probe = &sample.chunks[sample.chunks.len() / 2];
    let len = sample.whole(probe.len(), PROBE.max(sample.typesize()));
    let probe = [probe[..len].to_vec()];
    let mut seconds = 0.0;
    let mut probed = 0.0;
    let mut bench = Bench::new(&probe);
    for setting in &settings {
        let Ok((_, times)) = bench.measure(&params(setting, &sample.params), Duration::ZERO) else {
            continue;
        };
        seconds += times.iter().map(Duration::as_secs_f64).sum::<f64>();
        probed += 1.0;
        if start.elapsed() > limit.mul_f64(PROBE_SHARE) {
            break;
        }
    }
    if probed > 0.0 {
        let per_byte = seconds / probed / len as f64 * settings.len() as f64 * RUNS;
        let left = limit.saturating_sub(start.elapsed()).as_secs_f64();
        sample.reduce((left * USED_SHARE / per_byte.max(1e-15)) as u64);
    }

    let started = Instant::now();
    let mut bench = Bench::new(&sample.chunks);
    let (mut rows, mut left_out) = (Vec::new(), 0);
    for (index, setting) in settings.iter().enumerate() {
        if !rows.is_empty() && start.elapsed() > limit {
            left_out = settings.len() - index;
            break;
        }
        match bench.row(setting, &params(setting, &sample.params)) {
            Ok(row) => rows.push(row),
            Err(error) if *setting == current => complain(&format!(
                "warning ({}): the parameters of the file cannot be measured: {error}",
                args.file.display()
            )),
            Err(error) => {
                let (path, options) = (args.file.display(), setting.options());
                return Err(anyhow!("cannot compare parameters ({path}): {options}: {error}"));
            }
        }
    }
    rows.sort_by(|a, b| b.ratio.total_cmp(&a.ratio).then(b.decompress.total_cmp(&a.decompress)));
    Ok(Report {
        recommended: recommend(&rows),
        rows,
        current,
        left_out,
        elapsed: started.elapsed(),
        sample: sample.len(),
        chunks: sample.chunks.len(),
        nbytes: sample.nbytes,
    })
}

/// Bytes per second, as people read them.
fn speed(bytes: f64) -> String {
    format!("{}/s", size(bytes as u64))
}

impl Report {
    fn write(&self, args: &Args, out: &mut dyn Write) -> Result<()> {
        let chunks = if self.chunks == 1 { "chunk" } else { "chunks" };
        let threads = if args.threads == 1 { "thread" } else { "threads" };
        writeln!(
            out,
            "sample: {} of {} in {} {chunks}, {} {threads}",
            size(self.sample),
            size(self.nbytes),
            self.chunks,
            args.threads
        )?;
        let filters = self.rows.iter().map(|row| row.setting.filters().len());
        let width = filters.max().unwrap_or(0).max("filters".len());
        writeln!(
            out,
            "  {:<8} level {:<width$} {:>8} {:>13} {:>13}",
            "codec", "filters", "ratio", "compress", "decompress"
        )?;
        for row in &self.rows {
            let Setting { codec, level, .. } = row.setting;
            let mark = if row.setting == self.current { '*' } else { ' ' };
            let (codec, filters) = (codec.to_string(), row.setting.filters());
            let (compress, decompress) = (speed(row.compress), speed(row.decompress));
            writeln!(
                out,
                "{mark} {codec:<8} {level:>5} {filters:<width$} {:>8.2} {compress:>13} {decompress:>13}",
                row.ratio
            )?;
        }
        if self.left_out > 0 {
            let all = self.rows.len() + self.left_out;
            let seconds = args.time;
            writeln!(out, "{} of {all} rows are left out: {seconds} s are over", self.left_out)?;
            let (each, measured) =
                (self.elapsed.as_secs_f64() / self.rows.len() as f64, self.rows.len());
            let needed = (each * all as f64).ceil() as u64 + 1;
            writeln!(
                out,
                "the recommendations compare only the {measured} measured rows; --time {needed} measures all"
            )?;
        }
        for (name, row) in self.recommendations() {
            writeln!(out, "{name:<15} {}", row.setting.options())?;
        }
        Ok(())
    }

    /// The recommended rows.
    fn recommendations(&self) -> impl Iterator<Item = (&'static str, &Row)> {
        let all = self.recommended.map(|it| {
            [
                ("smallest", it.smallest),
                ("fastest", it.fastest),
                ("best compromise", it.compromise),
                ("random access", it.random_access),
            ]
        });
        let rows = all.into_iter().flatten();
        rows.filter_map(|(name, index)| self.rows.get(index).map(|row| (name, row)))
    }

    fn to_json(&self, args: &Args) -> Value {
        let row = |row: &Row| {
            let filters = row.setting.filters.iter().map(ToString::to_string);
            json!({
                "codec": row.setting.codec.to_string(),
                "clevel": row.setting.level,
                "filters": filters.collect::<Vec<_>>(),
                "ratio": row.ratio,
                "cbytes": row.cbytes,
                "compress_bytes_per_second": row.compress.round() as u64,
                "decompress_bytes_per_second": row.decompress.round() as u64,
                "random_reads_per_second": row.random_access.round() as u64,
                "current": row.setting == self.current,
                "options": row.setting.options(),
            })
        };
        let recommended = self.recommendations();
        let recommended = recommended
            .map(|(name, row)| (name.replace(' ', "_"), Value::String(row.setting.options())));
        json!({
            "path": args.file.display().to_string(),
            "nbytes": self.nbytes,
            "sample_nbytes": self.sample,
            "sample_chunks": self.chunks,
            "threads": args.threads,
            "rows": self.rows.iter().map(row).collect::<Vec<_>>(),
            "left_out": self.left_out,
            "recommended": recommended.collect::<serde_json::Map<_, _>>(),
        })
    }
}
