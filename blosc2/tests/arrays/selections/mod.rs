//! Reads and writes of arrays with every selection in every storage, against two models: arrays of the crate
//! `ndarray`, and the C library.
//!
//! After each write the array holds what the model does. After each case the reopened array holds it as well, and
//! `blosc2-format` has no findings.

mod c;
mod cases;
mod fetched;
mod forms;
mod model;
mod points;
mod refused;
mod regions;
mod transfers;
mod views;

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::common::{Rng, repeats};
pub(crate) use cases::Shared;
use cases::{Case, Kinds};
use model::Item;

/// The number of cases of each kind in a long run; see `repeats`.
const CASES: usize = 2000;

/// The subject of a case.
#[derive(Debug, Clone, Copy)]
enum About {
    Slices,
    Lists,
    Points,
    Views,
    C,
}

fn check<T: Item>(about: About, rng: Rng, log: &mut Vec<String>) {
    let mut case = Case::<T>::random(rng, log);
    match about {
        About::Slices => regions::check(&mut case, Kinds::Slices),
        About::Lists => regions::check(&mut case, Kinds::Lists),
        About::Points => points::check(&mut case),
        About::Views => views::check(&mut case),
        About::C => c::check(&mut case),
    }
    case.finish();
}

fn check_any(about: About, seed: u64, log: &mut Vec<String>) {
    let mut rng = Rng(seed * 10 + about as u64);
    let check = match rng.below(16) {
        0 => check::<u8>,
        1 => check::<bool>,
        2 => check::<u16>,
        3 | 4 => check::<[u8; 3]>,
        5 | 6 => check::<f32>,
        7 => check::<i64>,
        8 => check::<f64>,
        9 | 10 => check::<[u8; 12]>,
        11 | 12 => check::<[u8; 16]>,
        13 => check::<[u8; 255]>,
        14 => check::<[u8; 256]>,
        _ => check::<[u8; 300]>,
    };
    check(about, rng, log);
}

/// Runs the required number of cases.
fn cases(about: About) {
    let cases = repeats(CASES) as u64;
    let failed = (0..cases).filter_map(|seed| {
        let mut log = Vec::new();
        let panic = catch_unwind(AssertUnwindSafe(|| check_any(about, seed, &mut log))).err()?;
        let fixed = panic.downcast_ref::<&str>().copied();
        let text = panic.downcast_ref::<String>().map(String::as_str).or(fixed);
        Some(format!("case {seed}: {}\n  {}", text.unwrap_or("a panic"), log.join("\n  ")))
    });
    let failed: Vec<String> = failed.collect();
    let first: Vec<&str> = failed.iter().filter_map(|each| each.lines().next()).collect();
    let all = failed[..failed.len().min(3)].join("\n");
    assert!(failed.is_empty(), "{} of {cases} fail:\n{all}\n{}", failed.len(), first.join("\n"));
}

#[test]
fn boxes_and_slices_are_those_of_ndarray() {
    cases(About::Slices);
}

#[test]
fn lists_of_items_are_those_of_ndarray() {
    cases(About::Lists);
}

#[test]
fn points_and_masks_are_those_of_ndarray() {
    cases(About::Points);
}

#[test]
fn views_are_those_of_ndarray() {
    cases(About::Views);
}

#[test]
fn what_c_reads_and_writes_is_the_same() {
    cases(About::C);
}
