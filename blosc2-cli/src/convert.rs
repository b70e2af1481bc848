//! `blosc2 import` and `blosc2 export`: conversion from and to NumPy's npy files.

use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use blosc2::{CParams, Dtype, NDArray};
use blosc2_format::npy::Header;

use crate::file::{self, Content, Node};
use crate::npy::fortran_to_c;
use crate::params::{Compression, Cut};
use crate::progress;
use crate::slice::Slices;
use crate::stream::{self, ArrayItems};

/// Create an array from an npy file.
///
/// Default compression, as in Python: zstd, level 5, shuffle. The default chunk and block shapes are computed from the
/// shape and the itemsize. The whole array is held in memory.
#[derive(Debug, clap::Args)]
pub(crate) struct ImportArgs {
    /// npy file.
    r#in: PathBuf,
    /// File to create; must not exist yet.
    out: PathBuf,
    #[command(flatten)]
    compression: Compression,
    #[command(flatten)]
    cut: Cut,
}

/// Write an array to an npy file.
#[derive(Debug, clap::Args)]
pub(crate) struct ExportArgs {
    /// File, or directory with a sparse frame; with --key, a store.
    r#in: PathBuf,
    #[command(flatten)]
    node: Node,
    /// File to create; must not exist yet.
    out: PathBuf,
}

pub(crate) fn import(args: &ImportArgs) -> Result<()> {
    file::refuse_existing(&args.out)?;
    let failed = |error: anyhow::Error| anyhow!("cannot read ({}): {error}", args.r#in.display());
    let (header, bytes) = read_npy(&args.r#in).map_err(failed)?;
    let _spinner = progress::spinner(bytes.len() as u64, "compressing");
    let (dtype, typesize) = (header.dtype.to_string(), header.dtype.size());
    let builder = args.cut.builder().cparams(args.compression.apply(CParams::new()));
    builder.file(&args.out).from_bytes(&bytes, &header.shape, &dtype, typesize)?;
    Ok(())
}

/// Reads the header and the items; returns the items in C order.
fn read_npy(path: &Path) -> Result<(Header, Vec<u8>)> {
    let file = File::open(path)?;
    let bar = progress::bar(file.metadata()?.len());
    let mut file = bar.wrap_read(BufReader::new(file));
    let header = Header::read(&mut file)?;
    if header.dtype.has_pointers() {
        bail!("its dtype `{}` holds pointers to Python objects, not data", header.dtype);
    }
    let typesize = header.dtype.size();
    if typesize == 0 {
        bail!("its itemsize is 0");
    }
    let len = match header.shape.contains(&0) {
        true => Some(0),
        false => header.shape.iter().try_fold(typesize as u64, |len, &size| len.checked_mul(size)),
    };
    let len =
        len.ok_or_else(|| anyhow!("its shape {:?} has more than 2^64 - 1 bytes", header.shape))?;
    let mut bytes = Vec::new();
    file.by_ref().take(len).read_to_end(&mut bytes)?;
    if (bytes.len() as u64) < len {
        bail!("the file is truncated: expected {len} bytes of items, found {}", bytes.len());
    }
    if file.read(&mut [0])? > 0 {
        bail!("more bytes follow the {len} bytes of its items; only one array can be imported");
    }
    if header.fortran_order {
        bytes = fortran_to_c(&bytes, &header.shape, typesize);
    }
    Ok((header, bytes))
}

pub(crate) fn export(args: &ExportArgs) -> Result<()> {
    file::refuse_existing(&args.out)?;
    let Content::Array(array) = Content::open_data(args.node.of(&args.r#in))? else {
        let path = args.r#in.display();
        bail!(
            "cannot export ({path}): it is a super-chunk, without shape and dtype; `cat` reads it"
        );
    };
    let header = npy_header(&array)
        .map_err(|error| anyhow!("cannot export ({}): {error}", args.r#in.display()))?;
    let picks = Slices::default().resolve(array.shape())?;
    let bar = progress::bar(array.len().saturating_mul(array.typesize() as u64));
    file::create(&args.out, |out| {
        out.write_all(&header)?;
        stream::write(&ArrayItems(&array), &picks, out, &bar)
    })
}

fn npy_header(array: &NDArray) -> Result<Vec<u8>> {
    let hint = "`cat` reads its bytes";
    let text = array.dtype_str().with_context(|| format!("it has no dtype; {hint}"))?;
    let mut dtype = Dtype::parse(text).map_err(|error| anyhow!("{error}; {hint}"))?;
    if dtype.has_pointers() {
        bail!("its dtype `{text}` holds pointers to Python objects, not data; {hint}");
    }
    let (said, typesize) = (dtype.size(), array.typesize());
    if said != typesize {
        bail!("its dtype `{text}` has {said} bytes, but its typesize is {typesize}; {hint}");
    }
    let mut shape = array.shape().to_vec();
    // As in NumPy: the axes of a subarray dtype become the last axes of the array.
    while let Some((item, item_shape)) = dtype.subarray() {
        shape.extend(item_shape);
        dtype = item.clone();
    }
    let header = Header { dtype, shape, fortran_order: false };
    header.to_bytes().map_err(|error| anyhow!("{error}; {hint}"))
}
