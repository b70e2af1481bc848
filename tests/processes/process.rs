//! Interactions of the library with its process: environment variables, other programs, plugins, forks.
//!
//! Each test that needs its own process starts this program again.

#![cfg_attr(windows, expect(dead_code, unused_imports, reason = "a part of the tests needs Unix"))]

use std::path::Path;
#[cfg(all(target_os = "linux", feature = "dynamic-plugins"))]
use std::process::Command;
use std::{env, fs};

use blosc2::{
    CParams, Codec, DParams, ErrorKind, Filter, NDArray, OpenOptions, SChunk, SplitMode, Threads,
    compress, decompress,
};

#[cfg(unix)]
use crate::common::fork;
use crate::common::{Rng, VARIABLES, own_process, run_alone};

/// Writes what depends on parameters: an array, and a super-chunk appended to twice.
fn write_files(folder: &Path) {
    let items: Vec<i32> = (0..50_000).map(|i| i / 7).collect();
    let array = NDArray::builder().chunk_shape([60, 100]).block_shape([20, 50]);
    array.target(folder.join("array.b2nd")).from_slice(&items, [250, 200]).unwrap();
    let path = folder.join("chunks.b2frame");
    SChunk::create::<i32>(&path, &CParams::new().codec(Codec::Lz4)).unwrap();
    for part in items.chunks(20_000) {
        SChunk::open_rw(&path).unwrap().append(part).unwrap();
    }
    fs::write(folder.join("chunk"), compress(&items, &CParams::new()).unwrap()).unwrap();
}

#[test]
fn environment_variables_change_no_byte() {
    if let Some(folder) = own_process() {
        return write_files(&folder);
    }
    let test = "environment_variables_change_no_byte";
    let (with, without) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    run_alone(test, with.path(), &VARIABLES);
    run_alone(test, without.path(), &[]);
    for name in ["array.b2nd", "chunks.b2frame", "chunk"] {
        let read = |folder: &Path| fs::read(folder.join(name)).unwrap();
        assert!(read(with.path()) == read(without.path()), "{name}");
    }
}

#[test]
fn the_environment_is_taken_where_the_program_asks() {
    let params = CParams::new().filters(&[Filter::Bitshuffle]);
    if own_process().is_none() {
        let test = "the_environment_is_taken_where_the_program_asks";
        run_alone(test, tempfile::tempdir().unwrap().path(), &VARIABLES);
        return;
    }
    let found = params.with_env_overrides().unwrap();
    let expected = CParams::new()
        .typesize(3)
        .level(0)
        .codec(Codec::Zlib)
        .threads(Threads::new(64))
        .filters(&[Filter::Delta, Filter::Bitshuffle])
        .blocksize(4096)
        .split(SplitMode::Never);
    assert_eq!(found, expected);
    assert_eq!(DParams::new().with_env_overrides().unwrap().threads, Threads::new(64));
    let data: Vec<u8> = (0..30_000).map(|i| (i / 100) as u8).collect();
    let found = found.level(5).codec(Codec::Lz4);
    assert_eq!(decompress::<u8>(&compress(&data, &found).unwrap()).unwrap(), data);
}

#[test]
fn a_variable_that_says_nothing_sensible_is_an_error_that_names_it() {
    let bad = [
        ("BLOSC_TYPESIZE", "four"),
        ("BLOSC_CLEVEL", "-1"),
        ("BLOSC_COMPRESSOR", "brotli"),
        ("BLOSC_SHUFFLE", "yes"),
        ("BLOSC_DELTA", "2"),
        ("BLOSC_SPLITMODE", "auto"),
        ("BLOSC_NTHREADS", ""),
    ];
    let test = "a_variable_that_says_nothing_sensible_is_an_error_that_names_it";
    if own_process().is_none() {
        for variable in bad {
            run_alone(test, tempfile::tempdir().unwrap().path(), &[variable]);
        }
        return;
    }
    let (name, _) = bad.into_iter().find(|(name, _)| env::var_os(name).is_some()).unwrap();
    let error = CParams::new().with_env_overrides().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains(name), "{error}");
}

#[test]
fn messages_of_the_library_are_printed_when_asked_for() {
    let test = "messages_of_the_library_are_printed_when_asked_for";
    if own_process().is_none() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!run_alone(test, folder.path(), &[]).contains("[error]"));
        assert!(run_alone(test, folder.path(), &[("BLOSC_TRACE", "1")]).contains("[error]"));
        return;
    }
    // A chunk whose dictionary, after the starts of its blocks, has no sensible length.
    let items: Vec<i32> = (0..100_000).map(|i| (i * 7919) % 1000).collect();
    let params = CParams::new().codec(Codec::Lz4).blocksize(8192).dictionary(true);
    let mut chunk = compress(&items, &params).unwrap();
    let at = 32 + 4 * 400_000usize.div_ceil(8192);
    chunk[at..at + 4].fill(0xff);
    assert!(decompress::<i32>(&chunk).is_err());
}

/// A folder with programs `python` and `python3` that leave a mark and print a path, for `PATH`.
#[cfg(unix)]
fn fake_python(folder: &Path, prints: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    for name in ["python", "python3"] {
        let mark = folder.join("mark");
        let script = format!("#!/bin/sh\ntouch '{}'\nprintf '%s' '{prints}'\n", mark.display());
        fs::write(folder.join(name), script).unwrap();
        fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    format!("{}:{}", folder.display(), env::var("PATH").unwrap())
}

/// The libraries that are loaded.
#[cfg(target_os = "linux")]
fn libraries() -> std::collections::BTreeSet<String> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let paths = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    paths.filter(|path| path.contains(".so")).map(str::to_owned).collect()
}

/// A chunk whose header names this codec, or else this filter.
fn forged(chunk: &[u8], codec: Option<u8>, filter: Option<u8>) -> Vec<u8> {
    let mut chunk = chunk.to_vec();
    if let Some(codec) = codec {
        chunk[2] = (chunk[2] & 0x1f) | 6 << 5;
        chunk[0x16] = codec;
    }
    if let Some(filter) = filter {
        chunk[0x15] = filter;
    }
    chunk
}

/// A frame whose header and first chunk name this codec, or else this filter.
fn forged_frame(frame: &[u8], codec: Option<u8>, filter: Option<u8>) -> Vec<u8> {
    let mut frame = frame.to_vec();
    let header_len = u32::from_be_bytes(frame[0x0b..0x0f].try_into().unwrap()) as usize;
    if let Some(codec) = codec {
        frame[0x1b] = (frame[0x1b] & 0xf0) | 6;
        frame[0x4d] = codec;
    }
    if let Some(filter) = filter {
        frame[0x4c] = filter;
    }
    let chunk = forged(&frame[header_len..], codec, filter);
    frame[header_len..].copy_from_slice(&chunk);
    frame
}

#[cfg(target_os = "linux")]
#[test]
fn codecs_and_filters_of_any_number_start_no_program_and_load_no_library() {
    let test = "codecs_and_filters_of_any_number_start_no_program_and_load_no_library";
    let Some(folder) = own_process() else {
        let folder = tempfile::tempdir().unwrap();
        let path = fake_python(folder.path(), "libblosc2_nothing.so");
        run_alone(test, folder.path(), &[("PATH", &path)]);
        assert!(!folder.path().join("mark").exists(), "python was run");
        return;
    };
    let items: Vec<i32> = (0..20_000).map(|i| i / 5).collect();
    let params = CParams::new().codec(Codec::Lz4);
    let chunk = compress(&items, &params).unwrap();
    let path = folder.join("good.b2frame");
    SChunk::create::<i32>(&path, &params).unwrap().append(&items).unwrap();
    let frame = fs::read(&path).unwrap();

    let before = libraries();
    let numbers = (32..=40).map(|code| (Some(code), None));
    let numbers = numbers.chain((32..=255).map(|code| (None, Some(code))));
    let mut read = 0;
    for (codec, filter) in numbers {
        let result = decompress::<i32>(&forged(&chunk, codec, filter));
        read += usize::from(result.is_ok());
        if let Some(code @ 36..=40) = codec {
            assert!(!Codec::from_code(code).is_available());
            assert_eq!(result.unwrap_err().kind(), ErrorKind::Unsupported);
            let asked = CParams::new().codec(Codec::from_code(code));
            assert_eq!(compress(&items, &asked).unwrap_err().kind(), ErrorKind::Unsupported);
        }
        let path = folder.join("forged.b2frame");
        fs::write(&path, forged_frame(&frame, codec, filter)).unwrap();
        let schunk = SChunk::open(&path).unwrap();
        read += usize::from(schunk.decompress_chunk::<i32>(0).is_ok());
        let copy = folder.join("copy.b2frame");
        schunk.save(&copy).unwrap();
        fs::remove_file(&copy).unwrap();
        drop(schunk);
        if let Ok(mut schunk) = SChunk::open_rw(&path) {
            let _ = schunk.append(&items);
        }
    }
    // The existing filters decode to other data without an error.
    assert!(read < 20, "{read} read");
    assert_eq!(libraries(), before);
}

#[cfg(all(target_os = "linux", feature = "dynamic-plugins"))]
#[test]
fn a_plugin_is_loaded_when_the_program_asks() {
    let test = "a_plugin_is_loaded_when_the_program_asks";
    let Some(folder) = own_process() else {
        let folder = tempfile::tempdir().unwrap();
        // A codec that stores bytes with some bits turned, all unless its parameters say which, less their last half,
        // which repeats. The first byte says which.
        let source = folder.path().join("plugin.c");
        fs::write(
            &source,
            "#include \"blosc2.h\"
             typedef struct { char *encoder, *decoder; } codec_info;
             codec_info info = {\"encode\", \"decode\"};
             int encode(const uint8_t *in, int32_t len, uint8_t *out, int32_t room, uint8_t meta,
                        blosc2_cparams *cparams, const void *chunk) {
               int32_t half = len / 2;
               if (len % 2 || half + 1 > room) return 0;
               struct { int32_t count; uint8_t bits; } *params = cparams->codec_params;
               out[0] = params ? params->bits : 0xFF;
               if (params) __atomic_add_fetch(&params->count, 1, __ATOMIC_SEQ_CST);
               for (int32_t i = 0; i < half; i++) {
                 if (in[i] != in[half + i]) return 0;
                 out[1 + i] = in[i] ^ out[0];
               }
               return half + 1;
             }
             int decode(const uint8_t *in, int32_t len, uint8_t *out, int32_t room, uint8_t meta,
                        void *dparams, const void *chunk) {
               int32_t half = len - 1;
               if (room != 2 * half) return -1;
               for (int32_t i = 0; i < half; i++) out[i] = out[half + i] = in[1 + i] ^ in[0];
               return room;
             }",
        )
        .unwrap();
        let library = folder.path().join("plugin.so");
        let mut compiler = Command::new("cc");
        let headers = blosc2_testing::root().join("c-blosc2/include");
        compiler.args(["-shared", "-fPIC", "-I"]).arg(headers);
        compiler.arg("-o").arg(&library).arg(&source);
        assert!(compiler.status().unwrap().success());
        let path = fake_python(folder.path(), &library.display().to_string());
        run_alone(test, folder.path(), &[("PATH", &path)]);
        assert!(folder.path().join("mark").exists(), "python was not run");
        return;
    };
    let half: Vec<u8> = (0..4_000u32).map(|i| (i * i / 3) as u8).collect();
    let data = [half.clone(), half].concat();
    let codec = Codec::from_code(38);
    let params = CParams::new().codec(codec).filters(&[]).blocksize(8_000).split(SplitMode::Never);
    assert_eq!(compress(&data, &params).unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(!folder.join("mark").exists());
    for other in [Codec::Zstd, Codec::Other(41), Codec::Other(255)] {
        // SAFETY: there is no plugin for these, so nothing is run.
        let error = unsafe { other.load_plugin() }.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }
    assert!(!folder.join("mark").exists());
    // SAFETY: the plugin is the one above, which keeps within its buffers.
    unsafe { codec.load_plugin().unwrap() };
    assert!(codec.is_available() && !Codec::from_code(37).is_available());
    let chunk = compress(&data, &params).unwrap();
    assert!(chunk.len() < 4_100, "{}", chunk.len());
    assert_eq!(decompress::<u8>(&chunk).unwrap(), data);
    check_plugin_params(codec, &params, &data);
}

/// The structure of the plugin above.
#[cfg(all(target_os = "linux", feature = "dynamic-plugins"))]
#[repr(C)]
struct Turned {
    count: std::sync::atomic::AtomicI32,
    bits: u8,
}

#[cfg(all(target_os = "linux", feature = "dynamic-plugins"))]
static COMPRESSED: std::sync::atomic::AtomicI32 = std::sync::atomic::AtomicI32::new(-1);

/// Says how many blocks were compressed with it.
#[cfg(all(target_os = "linux", feature = "dynamic-plugins"))]
impl Drop for Turned {
    fn drop(&mut self) {
        use std::sync::atomic::Ordering::Relaxed;
        let before = COMPRESSED.swap(self.count.load(Relaxed), Relaxed);
        assert_eq!(before, -1, "dropped twice");
    }
}

#[cfg(all(target_os = "linux", feature = "dynamic-plugins"))]
fn check_plugin_params(codec: Codec, params: &CParams, data: &[u8]) {
    use std::sync::atomic::Ordering::Relaxed;

    // The chunk's first block follows the header, its place and its length.
    let bits = |chunk: &[u8]| chunk[32 + 4 + 4];
    assert_eq!(bits(&compress(data, params).unwrap()), 0xFF);
    let turned = Turned { count: 0.into(), bits: 0x3C };
    // SAFETY: it is what the plugin of this codec takes, and what it changes of it is atomic.
    let plugin = unsafe { codec.plugin_params(turned) };
    let with = params.clone().plugin_params(plugin.clone());
    assert!(with == params.clone().plugin_params(plugin) && with != *params);
    for other in [Codec::Lz4, Codec::from_code(37)] {
        let error = compress(data, &with.clone().codec(other)).unwrap_err();
        let expected = [ErrorKind::InvalidArgument, ErrorKind::Unsupported];
        assert_eq!(error.kind(), expected[usize::from(other != Codec::Lz4)], "{error}");
    }
    let mut compressor = blosc2::Compressor::new(&with).unwrap();
    let mut schunk = SChunk::in_memory::<u8>(&with).unwrap();
    let builder = NDArray::builder().chunk_shape(&[2, 8000]).block_shape(&[1, 8000]).cparams(&with);
    let array = builder.from_slice(&[data, data].concat(), &[2, 8000]).unwrap();
    drop(with);
    for _ in 0..2 {
        let chunk = compressor.compress(data).unwrap();
        assert_eq!(
            (bits(chunk.as_bytes()), chunk.decompress::<u8>().unwrap() == data),
            (0x3C, true)
        );
        schunk.append(data).unwrap();
    }
    drop(compressor);
    assert_eq!(bits(schunk.chunk(1).unwrap().as_bytes()), 0x3C);
    assert!(schunk.decompress_chunk::<u8>(1).unwrap() == data);
    assert!(array.read::<Vec<u8>>(..).unwrap()[8000..] == *data);
    drop(schunk);
    assert_eq!(COMPRESSED.load(Relaxed), -1, "the array has it");
    drop(array);
    assert_eq!(COMPRESSED.load(Relaxed), 2 + 2 + 2);
}

#[cfg(unix)]
#[test]
fn after_a_fork_arrays_use_new_threads() {
    let test = "after_a_fork_arrays_use_new_threads";
    if own_process().is_none() {
        run_alone(test, tempfile::tempdir().unwrap().path(), &[]);
        return;
    }
    let items: Vec<u32> = (0..1 << 20).collect();
    let threads = Threads::new(3);
    let write = || {
        let builder =
            NDArray::builder().chunk_shape([1 << 16]).cparams(CParams::new().threads(threads));
        builder
            .options(OpenOptions::new().dparams(DParams::new().threads(threads)))
            .from_slice(&items, 1 << 20)
            .unwrap()
    };
    let array = write();
    assert!(array.read::<Vec<u32>>(..).unwrap() == items);
    let works = || {
        let is_read = matches!(array.read::<Vec<u32>>(..), Ok(found) if found == items);
        let is_written = matches!(write().read::<Vec<u32>>(..), Ok(found) if found == items);
        is_read && is_written
    };
    // The threads of the parent have just become idle, and do not exist in the child. Several tries: each meets them
    // at another point.
    for _ in 0..5 {
        assert!(works());
        assert_eq!(fork(|| i32::from(!works())), Some(0));
    }
}

#[cfg(unix)]
#[test]
fn after_a_fork_threads_are_refused_and_one_thread_works() {
    let test = "after_a_fork_threads_are_refused_and_one_thread_works";
    if own_process().is_none() {
        run_alone(test, tempfile::tempdir().unwrap().path(), &[]);
        return;
    }
    let items: Vec<i32> = (0..300_000).map(|i| i / 3).collect();
    let params = CParams::new().codec(Codec::Lz4).blocksize(8_192);
    let many = params.clone().threads(Threads::new(4));
    let works = |params: &CParams| {
        let chunk = compress(&items, params)?;
        Ok::<bool, blosc2::Error>(decompress::<i32>(&chunk)? == items)
    };

    // Before threads were used, a child may use them.
    assert_eq!(fork(|| if matches!(works(&many), Ok(true)) { 0 } else { 1 }), Some(0));

    // A super-chunk whose contexts have threads, to be dropped in the child.
    let mut schunk = SChunk::in_memory::<i32>(&many).unwrap();
    schunk.set_dparams(DParams::new().threads(Threads::new(4)));
    schunk.append(&items).unwrap();
    assert_eq!(schunk.decompress_chunk::<i32>(0).unwrap(), items);
    let status = fork(|| {
        let refused = |result: blosc2::Result<bool>| {
            result.is_err_and(|error| error.kind() == ErrorKind::Unsupported)
        };
        let mut status = 0;
        if !refused(works(&many)) {
            status |= 1;
        }
        if !matches!(works(&params), Ok(true)) {
            status |= 2;
        }
        if !refused(schunk.decompress_chunk::<i32>(0).map(|found| found == items)) {
            status |= 4;
        }
        if !refused(schunk.append(&items).map(|_| true)) {
            status |= 8;
        }
        schunk.set_dparams(DParams::new());
        if !matches!(schunk.decompress_chunk::<i32>(0), Ok(found) if found == items) {
            status |= 16;
        }
        drop(schunk);
        status
    });
    assert_eq!(status, Some(0));
    // The parent goes on as before.
    assert!(works(&many).unwrap());
}

/// Keeps this process from making files longer, or takes the limit off.
#[cfg(unix)]
fn limit_files(len: libc::rlim_t) {
    let limit = libc::rlimit { rlim_cur: len, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the structure is whole; the signal is only not to end the process.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &limit), 0);
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_cannot_grow_keeps_its_last_good_state() {
    let test = "a_file_that_cannot_grow_keeps_its_last_good_state";
    let Some(folder) = own_process() else {
        run_alone(test, tempfile::tempdir().unwrap().path(), &[]);
        return;
    };
    let noise = |seed: u64| -> Vec<u64> {
        let mut rng = Rng(seed);
        (0..4_000).map(|_| rng.next()).collect()
    };
    let path = folder.join("full.b2frame");
    let mut schunk = SChunk::create::<u64>(&path, &CParams::new()).unwrap();
    for seed in 1..=3 {
        schunk.append(&noise(seed)).unwrap();
    }
    let before = fs::read(&path).unwrap();
    let room = before.len() as libc::rlim_t;
    // Some of the chunk, all of it but not the index, and so on.
    for more in [0, 1, 100, 10_000, 32_000, 32_031, 32_035] {
        limit_files(room + more);
        let error = schunk.append(&noise(9)).unwrap_err();
        limit_files(libc::RLIM_INFINITY);
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        assert!(fs::read(&path).unwrap() == before, "{more} bytes more: the file has changed");
        assert_eq!(schunk.nchunks(), 3);
        for index in 0..3 {
            assert!(schunk.decompress_chunk::<u64>(index).unwrap() == noise(index as u64 + 1));
        }
    }
    schunk.append(&noise(4)).unwrap();
    assert_eq!(schunk.nchunks(), 4);
    drop(schunk);
    assert!(SChunk::open(&path).unwrap().decompress_chunk::<u64>(3).unwrap() == noise(4));
}

#[test]
fn a_handle_stays_with_its_file_when_the_folder_changes_or_another_takes_its_name() {
    let test = "a_handle_stays_with_its_file_when_the_folder_changes_or_another_takes_its_name";
    let Some(folder) = own_process() else {
        run_alone(test, tempfile::tempdir().unwrap().path(), &[]);
        return;
    };
    let create = |path: &Path, item: i32| {
        let mut schunk = SChunk::create::<i32>(path, &CParams::new()).unwrap();
        schunk.append(&[item; 100]).unwrap();
        schunk
    };
    let (first, second) = (folder.join("first"), folder.join("second"));
    fs::create_dir(&first).unwrap();
    fs::create_dir(&second).unwrap();
    env::set_current_dir(&first).unwrap();
    let mut schunk = create(Path::new("name"), 1);
    env::set_current_dir(&second).unwrap();
    drop(create(Path::new("name"), 2));
    assert_eq!(schunk.decompress_chunk::<i32>(0).unwrap(), [1; 100]);
    schunk.append(&[3; 100]).unwrap();
    assert_eq!(SChunk::open("name").unwrap().nchunks(), 1);
    assert_eq!(SChunk::open(first.join("name")).unwrap().nchunks(), 2);

    // Another file of that name is not appended to.
    env::set_current_dir(&first).unwrap();
    fs::rename("name", "other").unwrap();
    drop(create(Path::new("name"), 4));
    schunk.append(&[5; 100]).unwrap();
    assert_eq!(schunk.nchunks(), 3);
    assert_eq!(SChunk::open("name").unwrap().nchunks(), 1);
    assert_eq!(SChunk::open("other").unwrap().nchunks(), 3);
}
