//! `blosc2 copy`: recompresses a file into a new one.

use std::ops::Range;
use std::path::PathBuf;

use anyhow::{Result, anyhow};
use blosc2::{CParams, DParams, OpenOptions, SaveOptions, Target};
use blosc2_format::chunk::{MAX_FILTERS, Params};
use blosc2_format::file::Kind;
use blosc2_format::frame::{SEARCH_INDEXES, Writer};
use indicatif::ProgressBar;

use crate::UsageError;
use crate::file::{Content, Node, Source, TENSOR};
use crate::foreign::with_article;
use crate::output::{Force, Output};
use crate::params::{Compression, Cut};
use crate::slice::{Pick, Slices};
use crate::{chunk, extension, progress, rust, stream};

/// Copy a file, optionally with other compression parameters or shapes.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Parameters that are not given are copied from IN. If no parameter is given, the compressed \
    chunks are copied unchanged. Legacy files become frames of the current format. A single chunk \
    stays a single chunk, or becomes a frame if OUT ends in `.b2frame`.\n\nExamples:\n  blosc2 copy a.b2nd small.b2nd --codec zstd --level 9 --filters bitshuffle\n  \
    blosc2 copy runs.b2z speed.b2nd --key /first/speed --chunks 1000,50"
)]
pub(crate) struct Args {
    /// File, directory (sparse frame) or store (with --key); `-` is stdin.
    r#in: PathBuf,
    #[command(flatten)]
    node: Node,
    /// File or directory to create; `-` is stdout.
    out: PathBuf,
    /// Items of an array or a tensor to copy, as in `cat`. A copy of a part has no metalayers.
    #[arg(long, allow_hyphen_values = true)]
    slice: Option<Slices>,
    /// Create a directory (sparse frame) with one file per chunk.
    #[arg(long)]
    directory: bool,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    compression: Compression,
    #[command(flatten)]
    cut: Cut,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let source = args.node.of(&args.r#in)?;
    let output = args.force.output(&args.out);
    if args.directory && output.is_stdout() {
        let message = "--directory cannot be combined with stdout".to_owned();
        return Err(UsageError(message).into());
    }
    output.check()?;
    extension::check_blosc2(&args.out)?;
    // Only a whole file is replaced by its copy.
    if source.key.is_some() || source.offset > 0 || args.r#in.is_dir() {
        output.check_apart(&args.r#in)?;
    }
    if let Some(kind) = rust::needed(source) {
        refuse_options(args, kind)?;
        let to_frame = args.out.extension().is_some_and(|ending| ending == "b2frame");
        return match kind {
            Kind::Chunk if !to_frame => chunk::copy(source, output, &args.compression),
            _ => copy_to_frame(args, source, output),
        };
    }
    if let Some(slices) = &args.slice {
        return copy_slice(args, source, output, slices);
    }
    let mut content = Content::open(source)?;
    let verbatim = args.compression.is_default() && args.cut.is_default();
    let params = args.compression.apply(content.schunk().info().cparams);
    let progress = progress::of_chunks(content.nbytes());
    // `Content::open` opens a tensor as its super-chunk.
    if let Content::SChunk(schunk) = &mut content {
        if !args.cut.is_default() {
            let path = args.r#in.display();
            let what = match schunk.vlmeta().contains(TENSOR) {
                true => "a tensor; with `--slice ...` the copy is an array",
                false => "a plain super-chunk",
            };
            return Err(UsageError(format!(
                "--chunks and --blocks require an array, and {path} is {what}"
            ))
            .into());
        }
        schunk.set_dparams(DParams::new().threads(args.compression.threads()));
    }
    output.create(|path, replace| {
        // `Output` has refused an existing directory.
        let replace = replace && !args.directory;
        let target = Target::from(path).directory(args.directory);
        let options = SaveOptions::new().replace(replace);
        match &content {
            Content::Array(array) if !verbatim => {
                let builder =
                    args.cut.builder().cparams(params).options(OpenOptions::new().replace(replace));
                builder.progress(progress).target(target).copy(array)?;
            }
            content if verbatim => {
                options.progress(progress).save(&content.schunk(), target)?;
            }
            content => {
                let options = options.cparams(params).progress(progress);
                options.save(&content.schunk(), target)?;
            }
        }
        Ok(())
    })
}

/// Copies a part of an array or a tensor to a new array.
fn copy_slice(args: &Args, source: Source<'_>, output: Output<'_>, slices: &Slices) -> Result<()> {
    let content = Content::open_data(source)?;
    if let Content::SChunk(_) = content {
        let path = args.r#in.display();
        let message = format!("--slice requires an array or a tensor, and {path} is a super-chunk");
        return Err(UsageError(message).into());
    }
    let items = content.items();
    let picks = slices.resolve_in(&args.r#in, &items.shape())?;
    let nbytes = picks.iter().map(Pick::count).fold(items.typesize() as u64, u64::saturating_mul);
    // The block size is that of the new block shape.
    let params = args.compression.apply(content.schunk().info().cparams);
    output.create(|path, replace| {
        let builder = args
            .cut
            .builder()
            .cparams(params)
            .options(OpenOptions::new().replace(replace && !args.directory));
        let builder = builder.progress(progress::of_chunks(nbytes));
        let builder = builder.target(Target::from(path).directory(args.directory));
        let tensor = match &content {
            Content::Array(array) => {
                let selection = slices.selection(array.ndim())?;
                builder.copy(array.view().slice(selection)?)?;
                return Ok(());
            }
            Content::Tensor(tensor) => tensor,
            Content::SChunk(_) => return Ok(()),
        };
        let kept = slices.kept(picks.len())?;
        let axes = picks.iter().zip(&kept).filter(|(_, kept)| **kept);
        let shape: Vec<u64> = axes.map(|(pick, _)| pick.count()).collect();
        let fill = |ranges: &[Range<u64>], bytes: &mut [u8]| -> Result<()> {
            let mut ranges = ranges.iter();
            let part = |(pick, kept): (&Pick, &bool)| match kept.then(|| ranges.next()).flatten() {
                Some(range) => pick.part(range.start, range.end - range.start),
                // An index has no axis in the new array.
                None => *pick,
            };
            let picks: Vec<Pick> = picks.iter().zip(&kept).map(part).collect();
            stream::write(tensor, &picks, &mut &mut *bytes, &ProgressBar::hidden())
        };
        let (dtype, typesize) = (tensor.dtype().to_string(), tensor.dtype().size());
        builder.dtype(&dtype, typesize).from_chunk_fn(&shape, fill)?;
        Ok(())
    })
}

/// Refuses the options that require a file of the current format.
fn refuse_options(args: &Args, kind: Kind) -> Result<()> {
    let what = match (args.cut.is_default(), args.directory) {
        _ if args.slice.is_some() => "--slice requires an array of the current format",
        (true, false) => return Ok(()),
        (false, _) => "--chunks and --blocks require an array of the current format",
        (true, true) => "--directory requires a frame of the current format",
    };
    let (path, kind) = (args.r#in.display(), with_article(kind));
    Err(UsageError(format!("{what}, and {path} is {kind}")).into())
}

/// Decodes a file that C-Blosc2 does not open, and writes it as a frame of the current format.
fn copy_to_frame(args: &Args, source: Source<'_>, output: Output<'_>) -> Result<()> {
    let path = args.r#in.display();
    let mut file = rust::open_data(source)?;
    let info = file.info().clone();
    let mut params = rust::params(&info);
    if !params.codec.is_available() {
        // A codec that C-Blosc2 no longer has, in a file without chunks.
        params = params.codec(CParams::default().codec);
    }
    if let Some(geometry) = file.geometry() {
        params = params.blocksize(geometry.block_len());
    }
    let params = args.compression.apply(params);
    let bar = progress::bar(info.nbytes);
    let failed = |error: blosc2_format::Error| anyhow!("cannot read ({path}): {error}");
    let out_path = args.out.display();
    let unmade =
        |error: blosc2_format::Error| anyhow!("cannot create a file ({out_path}): {error}");
    output.write_seekable(|out| {
        let mut writer =
            Writer::new(out, format_params(&params)?, &info.metalayers).map_err(unmade)?;
        let mut data = Vec::new();
        for number in 0..info.nchunks {
            let decoded = file.decode_chunk(number, &mut data);
            decoded.map_err(|error| rust::unread_chunk(source, number, &error))?;
            // Frames cannot hold an empty chunk; skipping it loses no data.
            if !data.is_empty() {
                writer.push_chunk(&blosc2::compress(&data, &params)?).map_err(unmade)?;
            }
            bar.inc(data.len() as u64);
        }
        for name in info.vlmetalayers.iter().filter(|name| !SEARCH_INDEXES.contains(&&***name)) {
            let content = file.vlmetalayer(name).map_err(failed)?;
            writer.add_vlmetalayer(name, &content.unwrap_or_default()).map_err(unmade)?;
        }
        writer.finish().map_err(unmade)?;
        Ok(())
    })
}

/// The parameters as the header of a frame stores them.
fn format_params(params: &CParams) -> Result<Params> {
    let mut all = Params {
        codec: params.codec.code(),
        codec_meta: params.codec_meta,
        level: params.level,
        typesize: u32::try_from(params.typesize.unwrap_or(1))?,
        blocksize: params.blocksize.map(u32::try_from).transpose()?,
        filters: [0; MAX_FILTERS],
        ..Params::default()
    };
    // The filters fill the last slots.
    let slots = all.filters.iter_mut().zip(&mut all.filters_meta).rev();
    for ((code, meta), filter) in slots.zip(params.filters.iter().rev()) {
        (*code, *meta) = (filter.code(), filter.meta());
    }
    Ok(all)
}
