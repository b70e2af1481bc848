//! How good the choice of `CParams::suggest` is, compared with all settings.

use std::path::Path;
use std::time::Instant;

use blosc2::elements::Void;
use blosc2::{Aim, CParams, Measured};
use serde_json::{Value, json};

use crate::library::Library;
use crate::measure;
use crate::ours::Ours;
use crate::set::Set;

const AIMS: [(&str, Aim); 4] = [
    ("smallest", Aim::Smallest),
    ("balanced", Aim::Balanced),
    ("fastest to read", Aim::FastestToRead),
    ("random access", Aim::RandomAccess),
];
/// The rounds in which the choice and the best setting are measured alternately.
const ROUNDS: usize = 5;

/// The share of the bytes saved by the smallest setting that others must save.
fn least_saved(aim: Aim) -> f64 {
    match aim {
        Aim::Smallest => 1.0,
        Aim::Balanced => 0.8,
        _ => 0.5,
    }
}

fn suggest(set: &Set, aim: Aim) -> CParams {
    /// The items as a vector, whose memory is aligned.
    fn items<const N: usize, T>(bytes: &[u8], item: impl Fn([u8; N]) -> T) -> Vec<T> {
        bytes.chunks_exact(N).map(|bytes| item(bytes.try_into().expect("N bytes"))).collect()
    }
    let bytes = &set.items;
    let found = match set.itemsize {
        1 => CParams::suggest(bytes, aim),
        2 => CParams::suggest(&items(bytes, u16::from_le_bytes), aim),
        4 => CParams::suggest(&items(bytes, u32::from_le_bytes), aim),
        8 => CParams::suggest(&items(bytes, u64::from_le_bytes), aim),
        44 => CParams::suggest(&items(bytes, Void::<44>), aim),
        other => panic!("items of {other} bytes"),
    };
    found.expect("a suggestion")
}

pub fn evaluate(set: &Set, records: &[Value], work: &Path) -> Vec<Value> {
    let ours: Vec<(Ours, Measured)> = Ours::all(set.itemsize)
        .into_iter()
        .filter_map(|setting| {
            let name = setting.setting();
            let same = |it: &&Value| it["library"] == "blosc2" && it["setting"] == name;
            Some((setting, measured(records.iter().find(same)?)))
        })
        .collect();
    let settings: Vec<Measured> = ours.iter().map(|(_, measured)| *measured).collect();
    let evaluate = |&(name, aim): &(&str, Aim)| {
        let start = Instant::now();
        let CParams { codec, level, filters, .. } = suggest(set, aim);
        let seconds = start.elapsed().as_secs_f64();
        let chosen = Ours::new(codec, level, filters);
        let rank = aim.choose(&settings).expect("settings");
        let index = ours.iter().position(|(setting, _)| setting.setting() == chosen.setting());
        let index = index.expect("the choice is one of all settings");
        let mut loss = loss(aim, &settings, index, rank);
        if loss > 0.0 && index != rank && aim != Aim::Smallest {
            // The best of many noisy measurements is too good: measure only these two again.
            let [chosen, best] = duel(set, [&ours[index].0, &ours[rank].0], work);
            let mut again = settings.clone();
            again[index] = chosen;
            again[rank] = best;
            loss = self::loss(aim, &again, index, rank);
        }
        json!({
            "set": set.name, "aim": name, "chosen": chosen.setting(), "best": ours[rank].0.setting(),
            "loss": loss, "seconds": seconds,
        })
    };
    AIMS.iter().map(evaluate).collect()
}

fn measured(record: &Value) -> Measured {
    let number = |key: &str| record[key].as_f64().expect("a number");
    let nbytes = number("nbytes");
    Measured {
        ratio: nbytes / number("bytes"),
        compress: nbytes / number("write_s"),
        decompress: nbytes / number("read_1_s"),
        random_access: 1.0 / number("row_s"),
    }
}

/// The part of the value of the best setting that the choice lacks. A choice that saves too few bytes lacks at least
/// what is missing of these bytes.
fn loss(aim: Aim, settings: &[Measured], chosen: usize, best: usize) -> f64 {
    let value = |index: usize| {
        let it = settings[index];
        match aim {
            Aim::Smallest => it.ratio,
            Aim::Balanced => (it.compress * it.decompress).sqrt(),
            Aim::FastestToRead => it.decompress,
            _ => it.random_access,
        }
    };
    let saved = |it: &Measured| 1.0 - 1.0 / it.ratio;
    let most = settings.iter().map(saved).fold(f64::NEG_INFINITY, f64::max);
    let lack = match most > 0.0 && aim != Aim::Smallest {
        true => 1.0 - saved(&settings[chosen]) / (most * least_saved(aim)),
        false => 0.0,
    };
    (1.0 - value(chosen) / value(best)).max(lack).max(0.0)
}

/// Measures two settings alternately.
fn duel(set: &Set, settings: [&Ours; 2], work: &Path) -> [Measured; 2] {
    let none = Measured { ratio: 0.0, compress: 0.0, decompress: 0.0, random_access: 0.0 };
    let mut best = [none; 2];
    for _ in 0..ROUNDS {
        for (setting, best) in settings.iter().zip(&mut best) {
            let now = measured(&measure::measure(*setting, set, work));
            *best = Measured {
                ratio: now.ratio,
                compress: now.compress.max(best.compress),
                decompress: now.decompress.max(best.decompress),
                random_access: now.random_access.max(best.random_access),
            };
        }
    }
    best
}
