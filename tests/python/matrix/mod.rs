//! Arrays and super-chunks between Python and Rust, both ways: every dtype, codec, filter, kind of content and
//! storage; files that both change in turns; the same bytes of the same data; the same defaults.
//!
//! Both directions take the same cases, which `case` and `cases` make: Python writes them and Rust reads, Rust
//! writes them and Python reads.

mod bytes;
mod case;
mod cases;
mod defaults;
mod metadata;
mod script;
mod turns;

use std::fs;
use std::path::Path;

use serde_json::Value;

use case::Case;

/// Writes the cases where Python finds them.
fn hand_over(folder: &Path, cases: &[Case]) {
    let mut items = Vec::new();
    let described: Vec<Value> = cases.iter().map(|case| case.to_json(&mut items)).collect();
    fs::write(folder.join("items"), items).unwrap();
    fs::write(folder.join("cases.json"), Value::from(described).to_string()).unwrap();
}

/// Checks every case, and reports all failures.
fn each<'c>(cases: impl IntoIterator<Item = &'c Case>, look: impl Fn(usize, &Case)) {
    let mut failed = Vec::new();
    for (number, case) in cases.into_iter().enumerate() {
        let look = std::panic::AssertUnwindSafe(|| look(number, case));
        if std::panic::catch_unwind(look).is_err() {
            failed.push(case.to_json(&mut Vec::new()).to_string());
        }
    }
    assert!(failed.is_empty(), "{} cases fail:\n{}", failed.len(), failed.join("\n"));
}

/// The caches that Python has found.
fn caches(printed: &Value) -> blosc2::array::CacheSizes {
    let size = |level: usize| printed["caches"][level].as_u64().unwrap();
    blosc2::array::CacheSizes { l1: size(0), l2: size(1), l3: size(2) }
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn both_read_what_the_other_writes_and_write_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let mut cases = cases::all();
    hand_over(folder.path(), &cases);
    let printed = crate::common::run_python(&script::with(script::WRITE), folder.path(), &[]);
    let printed: Value = serde_json::from_str(&printed).unwrap();
    let found = printed["found"].as_array().unwrap();
    assert_eq!(found.len(), cases.len());
    each(&cases, |number, case| case.check(folder.path(), &found[number]));

    let rust = folder.path().join("rust");
    fs::create_dir(&rust).unwrap();
    for case in &mut cases {
        case.write(&rust, caches(&printed));
    }
    each(&cases, |_, case| bytes::compare(case, folder.path(), &rust));

    hand_over(&rust, &cases);
    let printed = crate::common::run_python(&script::with(script::READ), &rust, &[]);
    assert_eq!(printed.trim(), format!("{} are as they should be", cases.len()));
}

#[test]
fn the_cases_have_all_pairs() {
    cases::check_pairs(&cases::all());
}
