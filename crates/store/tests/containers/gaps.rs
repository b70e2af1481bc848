//! Files of containers do not grow without bound.

use std::fs;
use std::path::{Path, PathBuf};

use blosc2::{SChunk, Value};
use blosc2_format::{Options, Severity, frame};
use blosc2_store::{BatchArray, CTable, Data, ItemKind, ListArray, ObjectArray, Schema};

use crate::common::{Rng, repeats};

/// Asserts that a file has at most twice the size of a copy without gaps, or 64 KiB more, and no errors.
fn check(path: &Path, what: &str) {
    let bytes = fs::read(path).unwrap();
    let copy = SChunk::open(path).unwrap().to_cframe().unwrap().len();
    let most = (2 * copy).max(copy + (64 << 10));
    assert!(bytes.len() <= most, "{what}: {} bytes, a copy has {copy}", bytes.len());
    let options = Options { content: true, ..Options::default() };
    let report = frame::check(&bytes, &options).unwrap();
    let bad = report.findings.iter().find(|finding| finding.rule.severity > Severity::Note);
    assert!(bad.is_none(), "{what}: {bad:?}");
}

fn text(rng: &mut Rng) -> String {
    let len = rng.index(2000);
    rng.bytes(len).iter().map(|byte| char::from(b'a' + byte % 26)).collect()
}

fn of_objects(path: &Path, rng: &mut Rng) {
    let mut array = ObjectArray::create(path).unwrap();
    let mut model: Vec<String> = Vec::new();
    for _ in 0..2000 {
        let (index, text) = (rng.index(model.len().max(1)), text(rng));
        match rng.below(if model.len() < 100 { 4 } else { 6 }) {
            0 => {
                array.insert(index, &text).unwrap();
                model.insert(index, text);
            }
            1 => {
                array.append(&text).unwrap();
                model.push(text);
            }
            2 | 3 if !model.is_empty() => {
                array.set(index, &text).unwrap();
                model[index] = text;
            }
            4 | 5 => {
                array.remove(index).unwrap();
                model.remove(index);
            }
            _ => {}
        }
    }
    let found: Vec<_> = array.iter().map(Result::unwrap).collect();
    let expected: Vec<_> = model.into_iter().map(Value::from).collect();
    assert_eq!(found, expected);
}

fn of_batches(path: &Path, rng: &mut Rng) {
    let mut array = BatchArray::create(path).unwrap();
    let mut model: Vec<Vec<String>> = Vec::new();
    for _ in 0..2000 {
        let index = rng.index(model.len().max(1));
        let batch: Vec<String> = (0..1 + rng.index(5)).map(|_| text(rng)).collect();
        match rng.below(if model.len() < 40 { 3 } else { 5 }) {
            0 => {
                array.append(&batch).unwrap();
                model.push(batch);
            }
            1 | 2 if !model.is_empty() => {
                array.set(index, &batch).unwrap();
                model[index] = batch;
            }
            3 | 4 => {
                array.remove(index).unwrap();
                model.remove(index);
            }
            _ => {}
        }
    }
    let found: Vec<_> = array.items().map(Result::unwrap).collect();
    let expected: Vec<_> = model.concat().into_iter().map(Value::from).collect();
    assert_eq!(found, expected);
}

fn of_lists(path: &Path, rng: &mut Rng) {
    let mut lists = ListArray::create(path, ItemKind::Int64, true).unwrap();
    let mut model: Vec<Option<Vec<i64>>> = Vec::new();
    for number in 0..2000 {
        let row: Option<Vec<i64>> =
            (rng.below(5) > 0).then(|| (0..rng.below(60)).map(|_| rng.next() as i64).collect());
        if model.len() < 100 || rng.below(20) == 0 {
            lists.append(row.as_deref()).unwrap();
            model.push(row);
        } else {
            let index = rng.index(model.len());
            lists.set(index as u64, row.as_deref()).unwrap();
            model[index] = row;
        }
        if number % 7 == 0 {
            lists.flush().unwrap();
        }
    }
    lists.flush().unwrap();
    let list = |row: Option<Vec<i64>>| row.map(|row| row.into_iter().map(Value::from).collect());
    let expected: Vec<Option<Vec<Value>>> = model.into_iter().map(list).collect();
    let found: Vec<_> = lists.iter().map(Result::unwrap).collect();
    assert_eq!(found, expected);
}

/// A table in a directory, with a file for each column.
fn of_table(path: &Path, rng: &mut Rng) {
    let schema = Schema::new().column("number", ItemKind::Int64).column("text", ItemKind::Utf8);
    let mut table = CTable::create(path, &schema).unwrap();
    let mut model: Vec<(i64, String)> = Vec::new();
    for number in 0..300 {
        let count = if model.len() < 500 { 1 + rng.below(20) } else { 1 };
        let new: Vec<(i64, String)> = (0..count).map(|_| (rng.next() as i64, text(rng))).collect();
        if number % 2 == 0 {
            let numbers: Vec<i64> = new.iter().map(|row| row.0).collect();
            let texts = Data::texts(new.iter().map(|row| Some(&row.1)));
            table.append([("number", Data::items(&numbers)), ("text", texts)]).unwrap();
            model.extend(new);
        } else if rng.below(4) == 0 {
            let first = rng.below(model.len() as u64);
            let end = (first + 10).min(model.len() as u64);
            table.delete_rows(first..end).unwrap();
            model.drain(first as usize..end as usize);
            if rng.below(3) == 0 {
                table.compact().unwrap();
            }
        } else {
            let row = rng.below(model.len() as u64);
            let (number, text) = new.into_iter().next().unwrap();
            table.update("number", row..row + 1, Data::items(&[number])).unwrap();
            table.update("text", row..row + 1, Data::texts([Some(&text)])).unwrap();
            model[row as usize] = (number, text);
        }
    }
    let numbers: Vec<i64> = model.iter().map(|row| row.0).collect();
    assert!(table.read::<i64>("number", ..).unwrap() == numbers);
}

#[test]
fn no_sequence_of_changes_leaves_many_gaps() {
    for seed in 0..repeats(60) as u64 {
        let (folder, mut rng) = (tempfile::tempdir().unwrap(), Rng(seed));
        let path = folder.path().join("a.b2d");
        match seed % 4 {
            0 => of_objects(&path, &mut rng),
            1 => of_batches(&path, &mut rng),
            2 => of_lists(&path, &mut rng),
            _ => of_table(&path, &mut rng),
        }
        if path.is_dir() {
            let files = walk(&path);
            assert!(files.len() > 3, "{files:?}");
            files.iter().for_each(|path| check(path, &format!("seed {seed}")));
        } else {
            check(&path, &format!("seed {seed}"));
        }
    }
}

/// The frames of a store in a directory.
fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(walk(&path));
        } else if path
            .extension()
            .is_some_and(|end| ["b2f", "b2nd", "b2b"].contains(&&*end.to_string_lossy()))
        {
            found.push(path);
        }
    }
    found
}
