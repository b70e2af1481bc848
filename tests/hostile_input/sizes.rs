//! Sources that state any size, as servers can, and zip files that state any sizes of their parts.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use blosc2::storage::{ReadAt, ReadOnly};
use blosc2::{CParams, NDArray, OpenOptions, SChunk, Target};
use blosc2_format::{Options, file};
use blosc2_store::{EmbedStore, Members, Object, TreeStore};

/// The limits of 64-bit numbers with and without a sign.
const EDGES: [u64; 9] =
    [0, 1, 22, u32::MAX as u64, 1 << 62, (1 << 63) - 1, 1 << 63, u64::MAX - 1, u64::MAX];

/// Bytes at the start and at the end of a source, with zeros between them.
#[derive(Debug, Clone)]
struct Stated {
    start: Arc<Vec<u8>>,
    end: Arc<Vec<u8>>,
    size: u64,
    /// The number of reads, and of the bytes that were read.
    reads: Arc<[AtomicU64; 2]>,
}

/// The most bytes that opening a source may read.
const MOST: u64 = 4 << 30;

impl Stated {
    fn new(start: &[u8], end: &[u8], size: u64) -> Self {
        let [start, end] = [start, end].map(|bytes| Arc::new(bytes.to_vec()));
        Self { start, end, size, reads: Arc::default() }
    }
}

impl ReadAt for Stated {
    fn size(&self) -> io::Result<u64> {
        Ok(self.size)
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(buffer.len() as u64).filter(|&end| end <= self.size);
        let end = end.ok_or(io::ErrorKind::UnexpectedEof)?;
        let [count, len] = &*self.reads;
        count.fetch_add(1, Ordering::Relaxed);
        if len.fetch_add(buffer.len() as u64, Ordering::Relaxed) > MOST {
            return Err(io::Error::other("too much was read"));
        }
        buffer.fill(0);
        let tail = self.size.saturating_sub(self.end.len() as u64);
        for (from, bytes) in [(0, &self.start), (tail, &self.end)] {
            let first = offset.max(from);
            let last = end.min(from.saturating_add(bytes.len() as u64));
            if first < last {
                let part = &bytes[(first - from) as usize..(last - from) as usize];
                buffer[(first - offset) as usize..][..part.len()].copy_from_slice(part);
            }
        }
        Ok(())
    }
}

/// Opens a source in every way. None may panic, or read without bound.
fn open_all(source: &Stated, what: &str) {
    let read = |object: Object| {
        if let Object::NDArray(array) = &object {
            drop(array.read::<Vec<u8>>(0..1));
        }
        if let Some(schunk) = object.schunk() {
            drop((schunk.decompress_chunk::<u8>(0), schunk.read::<u8>(0..1)));
        }
    };
    let schunk = || OpenOptions::new().open(Target::storage(ReadOnly::new(source.clone())));
    let calls: [(&str, &dyn Fn()); 7] = [
        ("recognise", &|| drop(file::recognise(source))),
        ("check", &|| drop(file::check(source, &Options::default()))),
        ("schunk", &|| drop(schunk())),
        ("array", &|| drop(schunk().and_then(NDArray::from_schunk))),
        ("container", &|| drop(Object::open_source(source.clone()).map(read))),
        ("store", &|| {
            if let Ok(store) = TreeStore::open_source(source.clone()) {
                for key in store.keys().map(str::to_owned).collect::<Vec<_>>() {
                    drop(store.get(&key).map(read));
                }
            }
        }),
        ("members", &|| {
            if let Ok(members) = Members::open_source(source.clone()) {
                drop(members.duplicates());
                for member in members.iter() {
                    drop(member.open().map(|bytes| bytes.read_vec_at(0, 1000)));
                }
            }
        }),
    ];
    for (name, call) in calls {
        source.reads.iter().for_each(|number| number.store(0, Ordering::Relaxed));
        call();
        let [count, len] = [0, 1].map(|at| source.reads[at].load(Ordering::Relaxed));
        // Where nothing is at the end, nothing is searched.
        let (max_count, max) = if source.end.is_empty() { (100, 4 << 20) } else { (300_000, MOST) };
        assert!(count < max_count && len < max, "{name} of {what}: {count} reads, {len} bytes");
    }
}

/// The bytes of a frame with this length in its header.
fn with_length(frame: &[u8], len: u64) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[16..24].copy_from_slice(&len.to_be_bytes());
    frame
}

#[test]
fn stated_sizes_of_frames() {
    let frame = NDArray::from_slice(&[7u8; 5000], &[5000]).unwrap().schunk().to_cframe().unwrap();
    for size in EDGES.into_iter().chain([frame.len() as u64 - 1, frame.len() as u64]) {
        for len in EDGES.into_iter().chain([size, frame.len() as u64]) {
            let start = with_length(&frame, len);
            let what = format!("a frame of {len} bytes in {size} bytes");
            open_all(&Stated::new(&start, &frame[frame.len() / 2..], size), &what);
            open_all(&Stated::new(&start, b"", size), &what);
        }
    }
}

#[test]
fn stated_sizes_of_other_files() {
    let mut schunk = SChunk::in_memory::<u8>(&CParams::default()).unwrap();
    schunk.append(&[1u8; 100]).unwrap();
    let chunk = schunk.chunk(0).unwrap();
    let zip = zip64(|_, _| {});
    let ends = [&b"PK\x05\x06"[..]; 1000].concat();
    let local = &b"PK\x03\x04"[..];
    let chunk = chunk.as_bytes();
    let files = [
        (&b""[..], &b""[..]),
        (b"blpk", b""),
        (chunk, b""),
        (local, b""),
        (local, &zip),
        (local, &ends),
    ];
    for size in EDGES {
        for (start, end) in files {
            // The library for zip files searches the zeros between them, up to a limit.
            if !end.is_empty() && size > u32::MAX.into() && size != 1 << 63 {
                continue;
            }
            let what = format!("{start:?} and {} bytes in {size} bytes", end.len());
            open_all(&Stated::new(start, end, size), &what);
        }
    }
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc: u32, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    })
}

/// A zip file with the sizes and offsets of zip64. `change` gets each of them, with its number.
fn zip64(change: impl Fn(usize, &mut u64)) -> Vec<u8> {
    let store = EmbedStore::in_memory().unwrap().schunk().to_cframe().unwrap();
    let name = &b"embed.b2e"[..];
    let len = store.len() as u64;
    let number = |at: usize, mut value: u64| {
        change(at, &mut value);
        value.to_le_bytes()
    };
    let crc = crc32(&store).to_le_bytes();
    let extra = |fields: &[[u8; 8]]| {
        let fields = fields.concat();
        [&1u16.to_le_bytes()[..], &(fields.len() as u16).to_le_bytes(), &fields].concat()
    };
    let len_of = |bytes: &[u8]| (bytes.len() as u16).to_le_bytes();
    let all = &[0xff; 4][..];
    let local = extra(&[number(0, len), number(1, len)]);
    let header = b"PK\x03\x04\x2d\0\0\0\0\0\0\0\x21\0";
    let mut zip =
        [&header[..], &crc, all, all, &len_of(name), &len_of(&local), name, &local, &store]
            .concat();
    let start = zip.len() as u64;
    let central = extra(&[number(2, len), number(3, len), number(4, 0)]);
    let header = b"PK\x01\x02\x2d\x03\x2d\0\0\0\0\0\0\0\x21\0";
    let lens = [len_of(name), len_of(&central)].concat();
    zip.extend([&header[..], &crc, all, all, &lens, &[0; 10], all, name, &central].concat());
    let end = zip.len() as u64;
    zip.extend([&b"PK\x06\x06"[..], &number(5, 44), b"\x2d\x03\x2d\0", &[0; 8]].concat());
    zip.extend([number(6, 1), number(7, 1), number(8, end - start), number(9, start)].concat());
    zip.extend([&b"PK\x06\x07\0\0\0\0"[..], &number(10, end), b"\x01\0\0\0"].concat());
    zip.extend([&b"PK\x05\x06\0\0\0\0\xff\xff\xff\xff"[..], all, all, b"\0\0"].concat());
    zip
}

#[test]
fn stated_sizes_in_zip_files() {
    let zip = zip64(|_, _| {});
    let size = zip.len() as u64;
    let store = TreeStore::open_source(zip).unwrap();
    assert_eq!(store.keys().count(), 0, "the zip file is valid");
    for field in 0..11 {
        for edge in EDGES {
            let zip = zip64(|number, value| {
                if number == field {
                    *value = edge;
                }
            });
            let what = format!("a zip file with {edge} in its field {field}");
            open_all(&Stated::new(&zip, b"", size), &what);
        }
    }
}

/// Zip files whose offsets are those at the end of a source of any size.
#[test]
fn zip_files_at_the_end_of_sources_of_any_size() {
    // An entry after the last one that the file states, with an extra field and a comment of 65,535 bytes.
    let mut entry = b"PK\x01\x02".to_vec();
    entry.resize(46, 0);
    entry[30..34].fill(0xff);
    let len = (zip64(|_, _| {}).len() + entry.len()) as u64;
    for size in EDGES.into_iter().filter(|&size| size > len) {
        let base = size - len;
        let mut zip = zip64(|number, value| match number {
            4 | 9 => *value += base,
            10 => *value += base + entry.len() as u64,
            _ => {}
        });
        let at = zip.windows(4).position(|bytes| bytes == b"PK\x06\x06").unwrap();
        zip.splice(at..at, entry.clone());
        let source = Stated::new(b"PK\x03\x04", &zip, size);
        let members = Members::open_source(source.clone()).unwrap();
        assert_eq!(members.iter().count(), 1, "{size} bytes");
        assert!(members.duplicates().unwrap().is_empty());
        let store = TreeStore::open_source(source).unwrap();
        assert_eq!(store.keys().count(), 0);
    }
}
