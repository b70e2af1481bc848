//! `SChunkWriter` and `SChunkReader`, compared with a plain model, reads of chunks, the checker of `blosc2-format` and
//! Python.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use blosc2::limits::MAX_CHUNK_LEN;
use blosc2::storage::{ReadOnly, Seekable};
use blosc2::{
    CParams, Chunk, Codec, DParams, ErrorKind, Filter, NDArray, OpenOptions, SChunk, SChunkReader,
    SChunkWriter, SplitMode, Target, Threads,
};
use blosc2_format::{Finding, Options, Severity, chunk, frame};

use crate::common::measure::largest_allocation;
use crate::common::{
    KINDS, Kind, Rng, assert_same, codecs, data, lossless, run_python, upstream_files,
};

/// The frame of `data`, written in pieces of any lengths.
fn written(data: &[u8], chunksize: usize, params: &CParams, rng: &mut Rng) -> Vec<u8> {
    let schunk = OpenOptions::new().cparams(params).create_new(true).open(Vec::new()).unwrap();
    let typesize = schunk.typesize();
    let mut writer = SChunkWriter::new(schunk, chunksize).unwrap();
    let mut rest = data;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(piece(rng, chunksize).min(rest.len()));
        writer.write_all(piece).unwrap();
        rest = after;
        // The filter delta needs whole items.
        if rng.below(8) == 0 && (data.len() - rest.len()).is_multiple_of(typesize) {
            writer.flush().unwrap();
        }
    }
    writer.finish().unwrap().to_cframe().unwrap()
}

/// A source that implements `Read` and `Seek`, as a super-chunk.
fn open(source: impl Read + Seek + Send + 'static) -> blosc2::Result<SChunk> {
    OpenOptions::new().open(Target::storage(ReadOnly::new(Seekable::new(source))))
}

fn reader(bytes: &[u8]) -> SChunkReader<SChunk> {
    SChunkReader::new(open(Cursor::new(bytes.to_vec())).unwrap())
}

/// A length: often small, around that of a chunk, or of several.
fn piece(rng: &mut Rng, chunksize: usize) -> usize {
    let size = chunksize as u64;
    let len = match rng.below(5) {
        0 => rng.below(4),
        1 => size,
        2 => size - 1 + rng.below(3),
        3 => rng.below(size + 1),
        _ => rng.below(4 * size + 100),
    };
    len as usize
}

fn read_all(bytes: &[u8]) -> Vec<u8> {
    let mut found = Vec::new();
    reader(bytes).read_to_end(&mut found).unwrap();
    found
}

/// Asserts that there is no finding and no note, except for a last chunk with an incomplete item, which may have its
/// own parameters.
fn assert_clean(bytes: &[u8], what: &str) {
    let report = frame::check(bytes, &Options { content: true, ..Options::default() }).unwrap();
    let schunk = open(Cursor::new(bytes.to_vec())).unwrap();
    let whole = schunk.nbytes().is_multiple_of(schunk.typesize() as u64);
    let wrong = |each: &Finding| whole || each.rule.severity > Severity::Note;
    assert!(!report.findings.iter().any(wrong) && report.is_complete(), "{what}: {report:?}");
}

/// What the super-chunk in a file holds.
fn of_schunk(path: &Path, chunksize: usize) -> Vec<u8> {
    let schunk = SChunk::open(path).unwrap();
    let chunks: Vec<Vec<u8>> = schunk.iter_chunks::<u8>().collect::<Result<_, _>>().unwrap();
    if let Some((last, others)) = chunks.split_last() {
        assert!(others.iter().all(|chunk| chunk.len() == chunksize));
        assert!((1..=chunksize).contains(&last.len()));
    }
    chunks.concat()
}

fn random_params(typesize: usize, rng: &mut Rng) -> CParams {
    let count = rng.below(3);
    let filters: Vec<Filter> = (0..count).map(|at| lossless(typesize, at == 0, rng)).collect();
    let params = CParams::new()
        .codec(*rng.pick(&codecs()))
        .level(rng.below(10) as u8)
        .typesize(typesize)
        .filters(&filters)
        .split(*rng.pick(&[SplitMode::Auto, SplitMode::Always, SplitMode::Never]))
        .threads(Threads::new(*rng.pick(&[1, 1, 1, 3])));
    match rng.below(3) {
        0 => params.blocksize(typesize * (1 + rng.below(2000) as usize)),
        _ => params,
    }
}

#[test]
fn any_split_of_writes_reads_and_seeks() {
    let rng = &mut Rng(1);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2frame");
    for case in 0..400 {
        let typesize = match rng.below(4) {
            0 => 1 + rng.below(300) as usize,
            _ => *rng.pick(&[1, 2, 4, 8]),
        };
        let items = match rng.below(3) {
            0 => 1 + rng.below(20),
            1 => 1 + rng.below(300),
            _ => 1 + rng.below(20_000 / typesize as u64),
        };
        let chunksize = typesize * items as usize;
        let len = piece(rng, chunksize) * rng.below(8) as usize + rng.below(20) as usize;
        let len = len.min(300 * chunksize).min(200_000);
        let params = random_params(typesize, rng);
        let needs_items = params.filters.contains(&Filter::Delta);
        let len = if needs_items { len - len % typesize } else { len };
        let content = data(*rng.pick(&KINDS), len, rng.next());
        let what = format!("case {case}: {len} bytes in chunks of {chunksize}, {params:?}");

        let bytes = written(&content, chunksize, &params, rng);
        assert_clean(&bytes, &what);
        assert_same(&read_all(&bytes), &content, &what);
        fs::write(&path, &bytes).unwrap();
        assert_same(&of_schunk(&path, chunksize), &content, &what);
        let schunk = SChunk::open(&path).unwrap();
        assert_eq!(schunk.nchunks(), len.div_ceil(chunksize), "{what}");
        assert_eq!(schunk.typesize(), typesize, "{what}");
        if params.blocksize.is_none() {
            // How many threads there were is kept nowhere.
            let mut expected = params.clone().threads(Threads::ONE);
            for filter in &mut expected.filters {
                if *filter == Filter::Bytedelta(0) {
                    *filter = Filter::Bytedelta(typesize as u8);
                }
            }
            assert_eq!(schunk.info().cparams, expected, "{what}");
        }
        like_a_plain_cursor(&bytes, &content, chunksize, rng, &what);
    }
}

/// Reads and seeks as in the data itself.
fn like_a_plain_cursor(bytes: &[u8], content: &[u8], size: usize, rng: &mut Rng, what: &str) {
    let dparams = DParams::new().threads(Threads::new(*rng.pick(&[1, 1, 3])));
    let mut schunk = open(Cursor::new(bytes.to_vec())).unwrap();
    schunk.set_dparams(&dparams);
    let mut reader = SChunkReader::new(schunk);
    assert_eq!(reader.get_ref().nbytes(), content.len() as u64, "{what}");
    let mut plain = Cursor::new(content);
    for _ in 0..60 {
        let len = content.len() as i64;
        match rng.below(6) {
            0 => {
                let to = match rng.below(3) {
                    0 => SeekFrom::Start(rng.below(len as u64 + 10)),
                    1 => SeekFrom::End(5 - rng.below(len as u64 + 10) as i64),
                    _ => SeekFrom::Current(rng.below(2 * size as u64 + 4) as i64 - size as i64),
                };
                let (found, expected) = (reader.seek(to), plain.seek(to));
                match (found, expected) {
                    (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{what}: {to:?}"),
                    (found, expected) => {
                        let kinds = [found.unwrap_err().kind(), expected.unwrap_err().kind()];
                        assert_eq!(kinds, [io::ErrorKind::InvalidInput; 2], "{what}: {to:?}");
                    }
                }
            }
            1 => {
                let taken = reader.fill_buf().unwrap();
                let expected = plain.fill_buf().unwrap();
                assert_eq!(taken.is_empty(), expected.is_empty(), "{what}");
                assert_same(taken, &expected[..taken.len()], what);
                let amount = rng.below(taken.len() as u64 + 1) as usize;
                reader.consume(amount);
                plain.consume(amount);
            }
            2 => {
                let (mut found, mut expected) = (Vec::new(), Vec::new());
                let end = *rng.pick(&[0, 60, 200]);
                reader.read_until(end, &mut found).unwrap();
                plain.read_until(end, &mut expected).unwrap();
                assert_same(&found, &expected, what);
            }
            _ => {
                let mut found = vec![0; piece(rng, size)];
                let read = reader.read(&mut found).unwrap();
                let mut expected = vec![0; read];
                plain.read_exact(&mut expected).unwrap();
                assert_same(&found[..read], &expected, what);
                let at_end = plain.position() >= content.len() as u64;
                assert!(read > 0 || found.is_empty() || at_end, "{what}");
            }
        }
        assert_eq!(reader.stream_position().unwrap(), plain.position(), "{what}");
    }
}

#[test]
fn lengths_around_whole_chunks() {
    let rng = &mut Rng(2);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2frame");
    for (chunksize, typesize) in [(1, 1), (2, 2), (7, 1), (32, 8), (33, 1), (1000, 1000)] {
        let params = CParams::new().codec(Codec::Lz4).typesize(typesize);
        let lens = [0, 1, chunksize - 1, chunksize, chunksize + 1, 2 * chunksize, 5 * chunksize];
        for len in lens {
            for kind in KINDS {
                let content = data(kind, len, 3);
                let bytes = written(&content, chunksize, &params, rng);
                let what = format!("{len} bytes in chunks of {chunksize}, {kind:?}");
                assert_clean(&bytes, &what);
                assert_same(&read_all(&bytes), &content, &what);
                fs::write(&path, &bytes).unwrap();
                assert_same(&of_schunk(&path, chunksize), &content, &what);
                let schunk = SChunk::open(&path).unwrap();
                assert_eq!(schunk.nchunks(), len.div_ceil(chunksize), "{what}");
            }
        }
    }
}

#[test]
fn much_data_through_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2frame");
    let content = data(Kind::Mixed, 6_000_001, 4);
    let params = CParams::new().codec(Codec::Lz4).typesize(4).threads(Threads::new(4));
    let out = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    let options = OpenOptions::new().create_new(true).cparams(&params);
    let schunk = options.open(Target::storage(Seekable::new(out))).unwrap();
    let mut writer = SChunkWriter::new(schunk, 1 << 20).unwrap();
    assert_eq!(io::copy(&mut content.as_slice(), &mut writer).unwrap(), content.len() as u64);
    drop(writer.finish().unwrap());

    let mut schunk = open(BufReader::new(File::open(&path).unwrap())).unwrap();
    schunk.set_dparams(DParams::new().threads(Threads::new(4)));
    let mut reader = SChunkReader::new(&schunk);
    assert_eq!((schunk.nbytes(), schunk.typesize()), (content.len() as u64, 4));
    let mut found = Vec::new();
    io::copy(&mut reader, &mut found).unwrap();
    assert_same(&found, &content, "all");
    assert_same(&of_schunk(&path, 1 << 20), &content, "by the super-chunk");
    let report = frame::check(&File::open(&path).unwrap(), &Options::default()).unwrap();
    assert!(report.findings.is_empty(), "{report:?}");
}

#[test]
fn dictionaries_and_filters_that_need_whole_items() {
    let content = data(Kind::Mixed, 400_000, 5);
    let rng = &mut Rng(3);
    let params = CParams::new().codec(Codec::Zstd).typesize(8);
    if Codec::Zstd.is_available() {
        let bytes = written(&content, 100_000, &params.clone().dictionary(true), rng);
        assert_same(&read_all(&bytes), &content, "dictionary");
        let mut frame = frame::Frame::open(bytes, &Default::default()).unwrap();
        assert_eq!(frame.nchunks(), 4);
        let mut data = Vec::new();
        frame.decode_chunk(3, &mut data).unwrap();
        assert_same(&data, &content[300_000..], "dictionary, by Rust");
    }
    let params = params.codec(Codec::Lz4).filters(&[Filter::Delta, Filter::Shuffle]);
    let bytes = written(&content, 8000, &params, rng);
    assert_same(&read_all(&bytes), &content, "delta");
    assert_clean(&bytes, "delta");
    let schunk = OpenOptions::new().cparams(&params).create_new(true).open(Vec::new()).unwrap();
    let mut writer = SChunkWriter::new(schunk, 8000).unwrap();
    writer.write_all(&content[..8003]).unwrap();
    assert_eq!(writer.finish().unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn a_chunk_of_nothing_takes_no_memory() {
    let params = CParams::new().codec(Codec::Lz4).typesize(1);
    let size = MAX_CHUNK_LEN;
    let chunk = Chunk::zeros::<u8>(size, &params).unwrap();
    let format = chunk::Params { codec: 1, typesize: 1, ..chunk::Params::default() };
    let mut writer = frame::Writer::new(Cursor::new(Vec::new()), format, &[]).unwrap();
    writer.push_chunk(chunk.as_bytes()).unwrap();
    writer.push_chunk(chunk.as_bytes()).unwrap();
    let bytes = writer.finish().unwrap().into_inner();
    assert!(bytes.len() < 300, "{}", bytes.len());

    let (_, largest) = largest_allocation(|| {
        let schunk = open(Cursor::new(bytes)).unwrap();
        assert_eq!((schunk.chunksize(), schunk.nbytes()), (size, 2 * size as u64));
        let mut reader = SChunkReader::new(&schunk);
        let mut few = [1; 2];
        for position in [0, 70_000, size as u64 - 1, 2 * size as u64 - 2] {
            reader.seek(SeekFrom::Start(position)).unwrap();
            reader.read_exact(&mut few).unwrap();
            assert_eq!(few, [0; 2], "{position}");
            few = [1; 2];
        }
        reader.seek(SeekFrom::Start(size as u64 - 200_000)).unwrap();
        let mut many = vec![1; 400_000];
        assert_eq!(reader.read(&mut many).unwrap(), 200_000);
        assert!(many[..200_000].iter().all(|&byte| byte == 0) && many[200_000] == 1);
    });
    assert!((1..=1 << 20).contains(&largest), "{largest} bytes at once");
}

#[test]
fn chunks_that_are_not_compressed_are_read_in_parts() {
    let size = 300_000;
    let random = data(Kind::Random, size, 4);
    let params = CParams::new().codec(Codec::Lz4);
    let stored = blosc2::compress(&random, &params.clone().level(0)).unwrap();
    let chunks = [
        Chunk::new(stored).unwrap(),
        Chunk::repeat(&[1u8, 2, 3], size / 3, &params).unwrap(),
        Chunk::nans::<f64>(size / 8, &params).unwrap(),
        Chunk::uninit::<u8>(size / 2, &params).unwrap(),
    ];
    let content: Vec<u8> = [
        &random[..],
        &[1, 2, 3].repeat(size / 3),
        &f64::NAN.to_ne_bytes().repeat(size / 8),
        &vec![0; size / 2],
    ]
    .concat();
    let format = chunk::Params { codec: 1, typesize: 1, ..chunk::Params::default() };
    let mut writer = frame::Writer::new(Cursor::new(Vec::new()), format, &[]).unwrap();
    for chunk in &chunks {
        writer.push_chunk(chunk.as_bytes()).unwrap();
    }
    let bytes = writer.finish().unwrap().into_inner();
    assert_same(&read_all(&bytes), &content, "all");
    let rng = &mut Rng(9);
    for case in 0..30 {
        like_a_plain_cursor(&bytes, &content, size, rng, &format!("case {case}"));
    }
}

#[test]
fn large_reads_go_to_the_callers_buffer() {
    let (chunksize, len) = (1 << 20, 3_500_000);
    let content = data(Kind::Ramp, len, 2);
    let params = CParams::new().codec(Codec::Lz4).typesize(4);
    let bytes = written(&content, chunksize, &params, &mut Rng(2));
    let mut buffer = vec![0; 2 * chunksize];
    let mut reader = reader(&bytes);
    let (_, largest) = largest_allocation(|| {
        assert_eq!(reader.read(&mut buffer).unwrap(), buffer.len());
    });
    assert!((1..chunksize).contains(&largest), "{largest} bytes at once");
    assert_same(&buffer, &content[..buffer.len()], "two chunks");
}

#[test]
fn looking_at_a_stream_shows_no_data() {
    let content = data(Kind::Random, 100_000, 3);
    let schunk = SChunk::in_memory::<u8>(CParams::new().codec(Codec::Lz4)).unwrap();
    let mut writer = SChunkWriter::new(schunk, 64_000).unwrap();
    writer.write_all(&content).unwrap();
    let text = format!("{writer:?}");
    assert!(text.contains("chunksize: 64000") && text.contains("rest: 36000"), "{text}");
    assert!(text.len() < 200, "{text}");
    let mut reader = SChunkReader::new(Arc::new(writer.finish().unwrap()));
    reader.read_exact(&mut [0; 3]).unwrap();
    let text = format!("{reader:?}");
    assert!(text.contains("nbytes: 100000") && text.contains("at: 3"), "{text}");
    assert!(text.len() < 200, "{text}");
    assert_eq!(reader.into_inner().read::<u8>(..).unwrap(), content);
}

#[test]
fn chunk_sizes_that_cannot_be_are_refused() {
    let refused = |chunksize, typesize| {
        let params = CParams::new().codec(Codec::Lz4).typesize(typesize);
        let schunk = OpenOptions::new().cparams(params).open(Target::memory()).unwrap();
        let error = SChunkWriter::new(schunk, chunksize).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains(&format!("got {chunksize}")), "{error}");
    };
    for chunksize in [0, MAX_CHUNK_LEN + 1, usize::MAX] {
        refused(chunksize, 1);
    }
    refused(1001, 8);
    // The largest chunk takes no memory before there is data.
    let schunk = SChunk::in_memory::<u8>(CParams::new().codec(Codec::Lz4)).unwrap();
    let mut writer = SChunkWriter::new(schunk, MAX_CHUNK_LEN).unwrap();
    writer.write_all(b"little").unwrap();
    assert_eq!(writer.finish().unwrap().read::<u8>(..).unwrap(), b"little");
}

/// A source that fails after `left` operations.
#[derive(Debug)]
struct Failing<T> {
    inner: T,
    left: usize,
}

impl<T> Failing<T> {
    fn work(&mut self) -> io::Result<&mut T> {
        match self.left.checked_sub(1) {
            None => Err(io::Error::new(io::ErrorKind::StorageFull, "enough")),
            Some(left) => {
                self.left = left;
                Ok(&mut self.inner)
            }
        }
    }
}

impl<T: Read> Read for Failing<T> {
    fn read(&mut self, data: &mut [u8]) -> io::Result<usize> {
        self.work()?.read(data)
    }
}

impl<T: Seek> Seek for Failing<T> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.work()?.seek(to)
    }
}

#[test]
fn errors_of_the_source_come_through_and_pass() {
    let content = data(Kind::Random, 1000, 9);
    let rng = &mut Rng(5);
    let bytes = written(&content, 300, &CParams::new().codec(Codec::Lz4), rng);
    let mut failures = 0;
    for left in 0.. {
        let source = Failing { inner: Cursor::new(bytes.clone()), left };
        let mut found = Vec::new();
        let read = open(source).map_err(io::Error::from).and_then(|schunk| {
            let mut reader = SChunkReader::new(schunk);
            let outcome = reader.read_to_end(&mut found);
            // The same position fails again, and is not skipped.
            outcome.map_err(|_| reader.read(&mut [0]).unwrap_err())
        });
        match read {
            Ok(_) => break,
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{error}"),
        }
        assert_same(&found, &content[..found.len()], "before the error");
        failures += 1;
    }
    assert!(failures > 10, "{failures}");
}

#[test]
fn frames_cut_short_or_changed_are_errors_or_data() {
    let rng = &mut Rng(6);
    let content = data(Kind::Mixed, 3000, 10);
    let params = CParams::new().codec(Codec::Lz4).typesize(4);
    let bytes = written(&content, 400, &params, rng);
    for len in 0..bytes.len() {
        let error = open(Cursor::new(bytes[..len].to_vec())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{len}: {error}");
    }
    // Cut short after it was opened.
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&bytes).unwrap();
    file.rewind().unwrap();
    let mut reader = SChunkReader::new(open(file.try_clone().unwrap()).unwrap());
    file.set_len(200).unwrap();
    let error = reader.read_to_end(&mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{error}");

    let mut outcomes = [0; 3];
    for at in 0..8 * bytes.len() {
        let mut changed = bytes.clone();
        changed[at / 8] ^= 1 << (at % 8);
        let Ok(schunk) = open(Cursor::new(changed)) else {
            outcomes[0] += 1;
            continue;
        };
        let expected = schunk.nbytes();
        let mut reader = SChunkReader::new(schunk);
        let mut found = Vec::new();
        match reader.by_ref().take(1 << 20).read_to_end(&mut found) {
            Ok(_) => {
                assert!(found.len() as u64 == expected.min(1 << 20));
                outcomes[1] += 1;
            }
            Err(_) => outcomes[2] += 1,
        }
    }
    assert!(outcomes.iter().all(|&count| count > 500), "{outcomes:?}");
}

#[test]
fn frames_of_super_chunks_and_arrays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2frame");
    let items: Vec<i32> = (0..10_000).map(|item| item / 50).collect();
    let mut schunk = SChunk::create::<i32>(&path, &CParams::new().codec(Codec::Lz4)).unwrap();
    for part in items.chunks(3000) {
        schunk.append(part).unwrap();
    }
    drop(schunk);
    let expected: Vec<u8> = items.iter().flat_map(|item| item.to_ne_bytes()).collect();
    let schunk = open(File::open(&path).unwrap()).unwrap();
    let mut found = Vec::new();
    SChunkReader::new(&schunk).read_to_end(&mut found).unwrap();
    assert_same(&found, &expected, "a super-chunk");
    assert_eq!(schunk.typesize(), 4);

    // An array of one chunk without padding, without and with a filter that needs its shape.
    for filter in [Filter::Shuffle, Filter::Ndcell(4)] {
        let path = folder.path().join(format!("{}.b2nd", filter.code()));
        let params = CParams::new().codec(Codec::Lz4).filters(&[filter]);
        let shape = [100, 100];
        let builder = NDArray::builder().chunk_shape(shape).block_shape(shape).cparams(params);
        builder.target(&path).from_slice(&items, shape).unwrap();
        let mut found = Vec::new();
        let array = open(File::open(&path).unwrap()).unwrap();
        SChunkReader::new(array).read_to_end(&mut found).unwrap();
        assert_same(&found, &expected, "an array");
    }
}

#[test]
fn chunks_of_several_lengths_and_bytedelta_by_the_typesize() {
    // By the writer of `blosc2-format`, and the number of streams left to the super-chunk.
    let params = chunk::Params {
        codec: 1,
        typesize: 4,
        filters: [0, 0, 0, 0, 1, 35],
        ..chunk::Params::default()
    };
    let content = data(Kind::Ramp, 10_000, 11);
    let mut writer = frame::Writer::new(Cursor::new(Vec::new()), params, &[]).unwrap();
    let mut rest = content.as_slice();
    for len in [400, 4000, 8, 2000, 3592] {
        let (part, after) = rest.split_at(len);
        writer.push(part).unwrap();
        rest = after;
    }
    let bytes = writer.finish().unwrap().into_inner();
    let rng = &mut Rng(7);
    assert_same(&read_all(&bytes), &content, "all");
    like_a_plain_cursor(&bytes, &content, 900, rng, "chunks of several lengths");

    let files = upstream_files("compat", ".b2frame");
    assert_eq!(files.len(), 3);
    for file in files {
        let schunk = SChunk::open(&file).unwrap();
        let expected = schunk.iter_chunks::<u8>().collect::<Result<Vec<_>, _>>().unwrap().concat();
        let found = read_all(&fs::read(&file).unwrap());
        assert!(!found.is_empty());
        assert_same(&found, &expected, &crate::common::name(&file));
    }
}

/// Python reads the frames of this crate and one of its own, and reports their content.
#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn python_reads_what_is_streamed_and_is_read_as_a_stream() {
    let folder = tempfile::tempdir().unwrap();
    let rng = &mut Rng(8);
    let mut names = Vec::new();
    for (codec, typesize, chunksize, len) in [
        (Codec::Lz4, 4, 4000, 100_003),
        (Codec::BloscLz, 1, 1, 50),
        (Codec::Lz4Hc, 300, 30_000, 60_000),
        (*codecs().last().unwrap(), 8, 1 << 16, 1 << 18),
        (Codec::Lz4, 1, 100, 0),
    ] {
        let content = data(Kind::Mixed, len, rng.next());
        let params = CParams::new().codec(codec).typesize(typesize);
        let name = format!("{codec}-{len}");
        let frame = written(&content, chunksize, &params, rng);
        fs::write(folder.path().join(format!("{name}.b2frame")), frame).unwrap();
        fs::write(folder.path().join(format!("{name}.raw")), content).unwrap();
        names.push(name);
    }
    let script = r#"
import sys
import numpy as np
import blosc2

for name in sys.argv[1:]:
    schunk = blosc2.open(name + ".b2frame")
    data = b"".join(schunk.decompress_chunk(number) for number in range(schunk.nchunks))
    with open(name + ".raw", "rb") as file:
        assert data == file.read(), name
    assert schunk.nbytes == len(data), name
    whole = len(data) // schunk.typesize
    if whole:
        items = schunk[: min(whole, 1000)]
        assert items == data[: len(items)] and len(items) > 0, name

data = np.arange(70_000, dtype="<i8")
filters = [blosc2.Filter.SHUFFLE, blosc2.Filter.BYTEDELTA]
cparams = {"typesize": 8, "filters": filters, "use_dict": False}
blosc2.SChunk(8 * 9_000, data, urlpath="python.b2frame", contiguous=True, cparams=cparams)
data.tofile("python.raw")
print("read", len(sys.argv) - 1)
"#;
    let arguments: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(run_python(script, folder.path(), &arguments).trim(), "read 5");
    let expected = fs::read(folder.path().join("python.raw")).unwrap();
    let found = read_all(&fs::read(folder.path().join("python.b2frame")).unwrap());
    assert_same(&found, &expected, "Python's");
}
