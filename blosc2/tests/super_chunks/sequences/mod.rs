//! Random sequences of changes of a super-chunk, in every storage, against a plain model.
//!
//! After each operation the super-chunk equals the model. An operation that must fail leaves everything unchanged.
//! After each sequence `blosc2-format` has no findings, and it and the C library read the content of the model. After
//! some sequences Python does as well.

mod c;
mod change;
mod data;
mod foretell;
mod look;
mod place;
mod sequence;
mod simple;
mod stored;

use std::any::Any;
use std::fs;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use blosc2::{OpenOptions, SChunkWriter};
use serde_json::{Value, json};

use crate::common::{hex, repeats, run_python};
use sequence::Sequence;
use simple::Layer;

/// The number of sequences in a long run; see `repeats`.
const CASES: usize = 2000;
/// The number of these sequences that Python reads.
const IN_PYTHON: u64 = 100;
/// Threads to run them on.
const WORKERS: u64 = 2;

/// Runs a sequence and passes its result to `then`. `Err` is the failure with a log of all operations.
fn run<R>(seed: u64, folder: &Path, then: impl FnOnce(&Sequence) -> R) -> Result<R, String> {
    let mut log = Vec::new();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut sequence = Sequence::start(seed, folder, &mut log);
        sequence.run();
        sequence.finish();
        then(&sequence)
    }));
    outcome.map_err(|panic| {
        let fixed = |panic: &Box<dyn Any + Send>| panic.downcast_ref::<&str>().copied();
        let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| fixed(&panic));
        let panic = text.unwrap_or("a panic");
        format!("sequence {seed}: {panic}\n  {}", log.join("\n  "))
    })
}

#[test]
fn any_sequence_of_changes_does_what_the_model_does() {
    let cases = repeats(CASES) as u64;
    let worker = |worker: u64| {
        let seeds = (0..cases).filter(move |seed| seed % WORKERS == worker);
        let failed = seeds.filter_map(|seed| {
            let folder = tempfile::tempdir().unwrap();
            run(seed, folder.path(), |_| ()).err()
        });
        failed.collect::<Vec<_>>()
    };
    let failed: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> =
            (0..WORKERS).map(|number| scope.spawn(move || worker(number))).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let first: Vec<&str> = failed.iter().filter_map(|each| each.lines().next()).collect();
    let all = failed[..failed.len().min(3)].join("\n");
    assert!(failed.is_empty(), "{} of {cases} fail:\n{all}\n{}", failed.len(), first.join("\n"));
}

/// What was flushed is there, and who may only append does not replace it.
#[test]
fn for_appending_nothing_follows_what_was_flushed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("frame");
    let mut schunk = OpenOptions::new().append(true).create(true).open(&path).unwrap();
    let mut writer = SChunkWriter::new(&mut schunk, 10).unwrap();
    writer.write_all(&[1; 25]).unwrap();
    writer.flush().unwrap();
    let error = writer.write_all(&[2; 3]).unwrap_err();
    assert!(error.to_string().contains("appending"), "{error}");
    writer.write_all(&[]).unwrap();
    writer.finish().unwrap();
    assert_eq!(schunk.read::<u8>(..).unwrap(), [1; 25]);
    assert_eq!(schunk.nchunks(), 3);
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn python_reads_what_sequences_of_changes_leave() {
    let folder = tempfile::tempdir().unwrap();
    let mut cases = Vec::new();
    for seed in 0..IN_PYTHON {
        let work = tempfile::tempdir().unwrap();
        let case = run(seed, work.path(), |left| {
            let file = format!("{seed:03}.b2frame");
            left.stored().copy_to(&folder.path().join(&file));
            let model = left.model();
            let chunks = format!("{file}.chunks");
            fs::write(folder.path().join(&chunks), model.content()).unwrap();
            let layers = |layers: &[Layer]| -> Value {
                let packed = layers
                    .iter()
                    .filter_map(|layer| Some((layer.name.clone(), hex_of(layer.packed()?).into())));
                packed.collect::<serde_json::Map<_, Value>>().into()
            };
            json!({
                "file": file, "what": format!("sequence {seed}"), "chunks": chunks,
                "lengths": model.chunks.iter().map(|chunk| chunk.data.len()).collect::<Vec<_>>(),
                "undefined": model.chunks.iter().any(|chunk| chunk.undefined),
                "typesize": model.typesize, "delta": false,
                "meta": layers(&model.meta), "vlmeta": layers(&model.vlmeta),
            })
        });
        cases.push(case.unwrap_or_else(|failed| panic!("{failed}")));
    }
    let read = |case: &&Value| !case["lengths"].as_array().unwrap().is_empty();
    assert!(cases.iter().filter(read).count() > 70, "most sequences leave chunks");
    fs::write(folder.path().join("written.json"), Value::from(cases).to_string()).unwrap();
    run_python(include_str!("../../../../tests/formats/read.py"), folder.path(), &[]);
}

fn hex_of(bytes: &[u8]) -> String {
    bytes.chunks(200).map(hex).collect()
}
