//! Files read by `blosc2-format`, without C-Blosc2.

use std::cell::RefCell;
use std::io::Write;
use std::ops::Range;

use anyhow::{Result, anyhow, bail};
use blosc2::{CParams, Codec, Filter};
use blosc2_format::Options;
use blosc2_format::file::{self, File, Info, Kind};

use crate::file::{Content, Source, TENSOR, needs_rust};
use crate::stream::{self, Items};
use crate::{complain, progress, raw};

/// The kind of a file, if C-Blosc2 does not open files of this kind.
pub(crate) fn needed(source: Source<'_>) -> Option<Kind> {
    // An error of reading is reported when the file is opened.
    source.kind().ok().flatten().filter(|&kind| needs_rust(kind))
}

/// Opens a file of any kind.
pub(crate) fn open(source: Source<'_>) -> Result<File<'static>> {
    let limits = source.limits.limits();
    let file = match (source.remote_folder(), source.path.is_dir()) {
        (Some(folder), _) => {
            let kind = source.kind().map_err(Into::into);
            kind.and_then(|_| File::from_folder(folder.clone(), &limits))
        }
        (None, true) => {
            source.kind().map_err(Into::into).and_then(|_| File::open(source.path, &limits))
        }
        (None, false) => {
            source.bytes().map_err(Into::into).and_then(|it| File::from_reader(it, &limits))
        }
    };
    file.map_err(|error| match (error, source.kind()) {
        (blosc2_format::Error::Io(error), _) => source.unopened(&error),
        // A store, or not a Blosc2 file.
        (error, kind) => match source.open() {
            Err(error) if matches!(kind, Ok(None)) => error,
            _ => anyhow!("cannot open ({}): {error}", source.path.display()),
        },
    })
}

/// A warning if the data of a file is ambiguous.
pub(crate) fn ambiguity(source: Source<'_>, kind: Kind) -> Option<&'static str> {
    if kind != Kind::Packed {
        return None;
    }
    let options = Options { limits: source.limits.limits(), ..Options::default() };
    let (_, report) = file::check(&source.bytes().ok()?, &options).ok()?;
    let ambiguous = report.findings.iter().any(|each| each.rule.id == "packed.delta_ambiguous");
    ambiguous.then_some(
        "it is ambiguous whether uncompressed chunks hold data or differences (delta); the more \
         likely interpretation is used, and `check` lists the chunks",
    )
}

/// Opens a file whose items are data, and warns if the data is ambiguous.
pub(crate) fn open_data(source: Source<'_>) -> Result<File<'static>> {
    let file = open(source)?;
    if !needs_rust(file.info().kind) {
        // Only files of the current format can be carriers (lazy expressions, proxies).
        Content::open_data(source)?;
    }
    if let Some(note) = ambiguity(source, file.info().kind) {
        complain(&format!("warning ({}): {note}", source.path.display()));
    }
    Ok(file)
}

/// The compression parameters of a file, as far as it states them.
pub(crate) fn params(info: &Info) -> CParams {
    let filters = info.filters.iter().zip(info.filters_meta);
    let filters: Vec<_> =
        filters.filter_map(|(&code, meta)| Filter::from_code(code, meta)).collect();
    let params = CParams::new().codec(Codec::from_code(info.codec)).codec_meta(info.codec_meta);
    let params = match info.level {
        Some(level) => params.level(level),
        None => params,
    };
    params.filters(&filters).typesize(info.typesize as usize)
}

/// Bytes of all items, without the padding of the chunks of an array.
pub(crate) fn nbytes(file: &File<'_>) -> u64 {
    match file.geometry() {
        Some(geometry) => geometry.len().saturating_mul(geometry.typesize() as u64),
        None => file.info().nbytes,
    }
}

/// The items of a file.
#[derive(Debug)]
pub(crate) struct RustItems<'a> {
    source: Source<'a>,
    file: RefCell<File<'static>>,
    shape: Vec<u64>,
    chunks: Vec<u64>,
    typesize: usize,
    /// The dtype of an array or a tensor.
    dtype: Option<String>,
    /// Offset of each chunk in the data, in bytes, and the end of the last chunk; `None` for an array.
    bounds: Option<Vec<u64>>,
    is_tensor: bool,
    /// The number and the bytes of the chunk that was decoded last, because a chunk can be longer than what is read at
    /// once. Not used for an array.
    last: RefCell<Option<(u64, Vec<u8>)>>,
}

impl<'a> RustItems<'a> {
    pub(crate) fn new(source: Source<'a>, mut file: File<'static>) -> Result<Self> {
        if file.info().vlmetalayers.iter().any(|name| name == TENSOR)
            && let Content::Tensor(tensor) = Content::open_data(source)?
        {
            let bounds = Some(bounds(&mut file).map_err(|error| source.unread(&error))?);
            let (shape, chunks) = (Items::shape(&tensor), tensor.chunks());
            let (typesize, dtype) = (tensor.typesize(), Items::dtype(&tensor));
            let (file, last) = (RefCell::new(file), RefCell::default());
            return Ok(Self {
                source,
                file,
                shape,
                chunks,
                typesize,
                dtype,
                bounds,
                is_tensor: true,
                last,
            });
        }
        let typesize = usize::try_from(file.info().typesize)?;
        let dtype = file.meta().and_then(|meta| meta.dtype.clone());
        let (shape, chunks, bounds) = match file.geometry() {
            Some(geometry) => {
                let chunks = geometry.chunk_shape().iter().map(|&size| size.max(1)).collect();
                (geometry.shape().to_vec(), chunks, None)
            }
            None => {
                let bounds = bounds(&mut file).map_err(|error| source.unread(&error))?;
                let size = typesize.max(1) as u64;
                let chunk = u64::from(file.info().chunksize.unwrap_or(0)) / size;
                let len = bounds.last().map_or(0, |end| end / size);
                (vec![len], vec![chunk.max(1)], Some(bounds))
            }
        };
        let (file, last) = (RefCell::new(file), RefCell::default());
        Ok(Self { source, file, shape, chunks, typesize, dtype, bounds, is_tensor: false, last })
    }

    pub(crate) fn is_array(&self) -> bool {
        self.bounds.is_none()
    }

    fn chunk(&self, index: u64) -> Result<Vec<u8>> {
        let mut data = Vec::new();
        let decoded = self.file.borrow_mut().decode_chunk(index, &mut data);
        decoded.map_err(|error| unread_chunk(self.source, index, &error))?;
        Ok(data)
    }

    /// The content of a fixed-length metalayer.
    pub(crate) fn metalayer(&self, name: &str) -> Option<Vec<u8>> {
        let file = self.file.borrow();
        let layer = file.info().metalayers.iter().find(|layer| layer.name == name);
        layer.map(|layer| layer.content.clone())
    }

    /// The content of a variable-length metalayer.
    pub(crate) fn vlmetalayer(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let content = self.file.borrow_mut().vlmetalayer(name);
        content.map_err(|error| self.source.unread(&error))
    }

    /// The error of reading a slice of an array: names the chunk that cannot be decoded.
    fn of_chunks(&self, ranges: &[Range<u64>], error: blosc2_format::Error) -> anyhow::Error {
        let mut file = self.file.borrow_mut();
        let geometry = file.geometry().cloned();
        let chunks = geometry.as_ref().and_then(|geometry| geometry.chunks_of(ranges).ok());
        let mut data = Vec::new();
        for number in chunks.into_iter().flatten() {
            if let Err(error) = file.decode_chunk(number, &mut data) {
                return unread_chunk(self.source, number, &error);
            }
        }
        self.source.unread(&error)
    }

    /// Writes all chunks, including variable-length ones.
    pub(crate) fn write_chunks(&self, out: &mut dyn Write) -> Result<()> {
        let (nchunks, expected) = {
            let file = self.file.borrow();
            (file.info().nchunks, file.info().nbytes)
        };
        let bar = progress::bar_beside_stdout(expected);
        let mut found = 0;
        for index in 0..nchunks {
            let chunk = self.chunk(index)?;
            out.write_all(&chunk)?;
            bar.inc(chunk.len() as u64);
            found += chunk.len() as u64;
        }
        if found != expected {
            bail!("cannot read all chunks: expected {expected} bytes in total, found {found}");
        }
        Ok(())
    }
}

/// The error of decoding a chunk.
pub(crate) fn unread_chunk(
    source: Source<'_>,
    number: u64,
    error: &blosc2_format::Error,
) -> anyhow::Error {
    source.unread(&format_args!("chunk {number}: {error}"))
}

/// Offset of each chunk in the data, in bytes, and the end of the last chunk.
fn bounds(file: &mut File<'_>) -> Result<Vec<u64>, blosc2_format::Error> {
    let (nchunks, nbytes) = (file.info().nchunks, file.info().nbytes);
    let mut bounds = vec![0];
    match u64::from(file.info().chunksize.unwrap_or(0)) {
        0 => {
            let mut end: u64 = 0;
            for index in 0..nchunks {
                end = end.saturating_add(file.chunk_nbytes(index)?);
                bounds.push(end);
            }
        }
        size => {
            bounds.extend((1..nchunks).map(|index| index.saturating_mul(size)));
            bounds.extend((nchunks > 0).then_some(nbytes));
        }
    }
    Ok(bounds)
}

impl Items for RustItems<'_> {
    fn shape(&self) -> Vec<u64> {
        self.shape.clone()
    }

    fn chunks(&self) -> Vec<u64> {
        self.chunks.clone()
    }

    fn typesize(&self) -> usize {
        self.typesize
    }

    fn dtype(&self) -> Option<String> {
        self.dtype.clone()
    }

    fn is_flat(&self) -> bool {
        !self.is_array() && !self.is_tensor
    }

    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<u8>> {
        if self.is_array() {
            let read = self.file.borrow_mut().read_box(ranges);
            return read.map_err(|error| self.of_chunks(ranges, error));
        }
        if self.is_tensor {
            let read = |bytes| self.read_bytes(bytes);
            return raw::read_flat(&self.shape, self.typesize, ranges, &read);
        }
        self.read_bytes(stream::bytes_of(ranges, self.typesize)?)
    }

    fn tail(&self) -> Result<Vec<u8>> {
        if self.is_tensor {
            return Ok(Vec::new());
        }
        let len: u64 = self.shape.iter().sum();
        self.read_bytes(len.saturating_mul(self.typesize as u64)..u64::MAX)
    }
}

impl RustItems<'_> {
    /// Reads bytes of a file that is not an array, up to its end.
    fn read_bytes(&self, Range { start, end }: Range<u64>) -> Result<Vec<u8>> {
        let bounds = self.bounds.as_deref().unwrap_or_default();
        let mut bytes = Vec::new();
        let first = bounds.partition_point(|&bound| bound <= start).saturating_sub(1);
        for (index, bounds) in bounds.windows(2).enumerate().skip(first) {
            let (from, to) = (bounds[0], bounds[1]);
            if from >= end {
                break;
            }
            let index = index as u64;
            let last = self.last.take().filter(|(number, _)| *number == index);
            let chunk = last.map_or_else(|| self.chunk(index), |(_, chunk)| Ok(chunk))?;
            // The sizes in the frame may be wrong.
            if to.checked_sub(from) != Some(chunk.len() as u64) {
                let found = chunk.len();
                bail!(
                    "cannot read chunk {index}: it decodes to {found} bytes, which contradicts the sizes in the frame"
                );
            }
            let wanted = (start.max(from) - from) as usize..(end.min(to) - from) as usize;
            bytes.extend_from_slice(chunk.get(wanted).unwrap_or_default());
            self.last.replace(Some((index, chunk)));
        }
        Ok(bytes)
    }
}
