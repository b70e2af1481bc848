//! Tables of a million rows: scattered deletions and 1,000 appends, compared with Python; and appends in batches of several
//! sizes, compared with one append of all rows. `cargo xtask bench tables` runs it. It prints ratios of times in one run.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use blosc2::Dtype;
use blosc2_store::{CTable, Data, ItemKind, ItemType, Schema};

const ROWS: u64 = 1_000_000;
const DELETED: u64 = 10_000;
const ROUNDS: usize = 3;

fn main() {
    deletions();
    small_appends();
    appends();
}

fn schema() -> Schema {
    Schema::new()
        .column("n", ItemKind::Int64)
        .column("f", ItemType::from(ItemKind::Float64).nullable())
        .column("text", ItemKind::Utf8)
        .column("word", ItemType::from(ItemKind::Dictionary { ordered: false }).nullable())
        .expected_rows(ROWS)
}

/// The cells of some rows.
fn cells(numbers: &[i64]) -> [(&'static str, Data<'static>); 4] {
    let floats: Vec<f64> = numbers.iter().map(|n| *n as f64 * 0.7).collect();
    let nulls: Vec<bool> = numbers.iter().map(|n| n % 11 == 0).collect();
    let text = |n: &i64| Some(format!("text {}", n.wrapping_mul(2_654_435_761) % 100_000));
    let word = |n: &i64| (n % 13 != 0).then(|| format!("word {}", n % 500));
    let bytes =
        |items: &[f64]| items.iter().flat_map(|item| item.to_le_bytes()).collect::<Vec<u8>>();
    let integers: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    [
        ("n", Data::bytes(Dtype::parse("<i8").unwrap(), integers)),
        ("f", Data::bytes(Dtype::parse("<f8").unwrap(), bytes(&floats)).nulls(nulls)),
        ("text", Data::texts(numbers.iter().map(text))),
        ("word", Data::texts(numbers.iter().map(word))),
    ]
}

/// The time of a call in seconds.
fn time(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

fn deletions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.b2d");
    // The same pseudo-random rows as in the script.
    let mut deleted: Vec<u64> = (0..DELETED).map(|k| k * 7_919 * 31 % ROWS).collect();
    deleted.sort_unstable();
    deleted.dedup();
    let mut mask = vec![false; ROWS as usize];
    deleted.iter().for_each(|row| mask[*row as usize] = true);
    let numbers: Vec<i64> = (0..ROWS as i64).collect();
    let fastest = |by_mask: bool| {
        let times = (0..ROUNDS).map(|_| {
            let _ = std::fs::remove_dir_all(&path);
            let schema = Schema::new().column("n", ItemKind::Int64).expected_rows(ROWS);
            let mut table = CTable::create(&path, &schema).unwrap();
            table.append([("n", Data::items(&numbers))]).unwrap();
            time(|| {
                let count = match by_mask {
                    true => table.delete_rows(&mask[..]),
                    false => table.delete_rows(&deleted[..]),
                };
                assert_eq!(count.unwrap(), deleted.len() as u64);
            })
        });
        times.fold(f64::INFINITY, f64::min)
    };
    let [indices, by_mask] = [fastest(false), fastest(true)];
    println!("deletion of {} of {ROWS} rows", deleted.len());
    let script = format!(
        "\
import dataclasses, time, shutil, numpy as np, blosc2
@dataclasses.dataclass
class R:
    n: int = blosc2.field(blosc2.int64())
rows = np.unique(np.arange({DELETED}) * 7919 * 31 % {ROWS})
best = 1e9
for _ in range({ROUNDS}):
    shutil.rmtree('p.b2d', ignore_errors=True)
    table = blosc2.CTable(R, urlpath='p.b2d', mode='w', expected_size={ROWS})
    table.extend({{'n': np.arange({ROWS})}})
    start = time.perf_counter()
    table.delete(rows.tolist())
    best = min(best, time.perf_counter() - start)
    assert table.nrows == {ROWS} - len(rows)
    table.close()
print(best)
"
    );
    compare(folder.path(), &script, &[("by indices", indices), ("by mask", by_mask)]);
}

/// Prints times of this crate beside the time that a script of Python prints.
fn compare(folder: &Path, script: &str, times: &[(&str, f64)]) {
    let Some(python) = std::env::var_os("BLOSC2_TEST_PYTHON") else {
        println!("{times:.4?} s; no Python to compare with\n");
        return;
    };
    let output = Command::new(python).args(["-I", "-c", script]).current_dir(folder).output();
    let output = output.unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let python: f64 = String::from_utf8_lossy(&output.stdout).trim().parse().expect(&errors);
    println!("             Python, s   ours, s   ours / Python");
    for (what, ours) in times {
        println!("{what:<12} {python:>9.4} {ours:>9.4} {:>15.2}", ours / python);
    }
    println!();
}

/// Appends without an appender: each call recompresses the last chunk of each column, as in Python.
fn small_appends() {
    const COLUMNS: usize = 20;
    const PART: usize = 1000;
    const PARTS: usize = 1000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.b2d");
    let names: Vec<String> = (0..COLUMNS).map(|column| format!("c{column}")).collect();
    let numbers: Vec<f64> = (0..PART).map(|n| (n * 7919 % 1000) as f64).collect();
    let schema =
        names.iter().fold(Schema::new(), |schema, name| schema.column(name, ItemKind::Float64));
    let ours = time(|| {
        let mut table = CTable::create(&path, &schema).unwrap();
        for _ in 0..PARTS {
            table.append(names.iter().map(|name| (name, Data::items(&numbers)))).unwrap();
        }
        table.finish().unwrap();
    });
    println!("{PARTS} appends of {PART} rows of {COLUMNS} columns");
    let script = format!(
        "\
import dataclasses, time, numpy as np, blosc2
names = [f'c{{column}}' for column in range({COLUMNS})]
R = dataclasses.make_dataclass('R', [(name, float, blosc2.field(blosc2.float64())) for name in names])
part = (np.arange({PART}) * 7919 % 1000).astype('f8')
start = time.perf_counter()
table = blosc2.CTable(R, urlpath='p.b2d', mode='w')
for _ in range({PARTS}):
    table.extend({{name: part for name in names}})
table.close()
print(time.perf_counter() - start)
"
    );
    compare(folder.path(), &script, &[("append", ours)]);
}

fn appends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.b2d");
    let sizes = [100, 1024, 10_000, 65_536, 700_000, ROWS as usize];
    let mut times = [f64::INFINITY; 6];
    for _ in 0..ROUNDS {
        for (best, size) in times.iter_mut().zip(sizes) {
            let _ = std::fs::remove_dir_all(&path);
            let numbers: Vec<i64> = (0..ROWS as i64).collect();
            let batches: Vec<_> = numbers.chunks(size).map(cells).collect();
            *best = best.min(time(|| {
                let mut rows = CTable::create(&path, &schema()).unwrap().into_appender().unwrap();
                for batch in batches {
                    rows.append(batch).unwrap();
                }
                rows.finish().unwrap().finish().unwrap();
            }));
            assert_eq!(CTable::open(&path).unwrap().nrows(), ROWS);
        }
    }
    let best = times.iter().copied().fold(f64::INFINITY, f64::min);
    println!("append of {ROWS} rows with an appender\nrows of a batch         s   time / best");
    for (size, time) in sizes.iter().zip(times) {
        println!("{size:>15} {time:>9.3} {:>13.2}", time / best);
    }
}
