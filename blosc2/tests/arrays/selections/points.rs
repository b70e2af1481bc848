//! Reads and writes of single items, by point selections and boolean masks.

use blosc2::Selection;

use super::cases::Case;
use super::model::{Item, items, raw};
use crate::common::assert_same;

/// Reads and writes of items at random.
pub(crate) fn check<T: Item>(case: &mut Case<'_, T>) {
    for _ in 0..4 {
        let by_mask = case.rng.below(3) == 0;
        let numbers = if by_mask { mask(case) } else { numbers(case) };
        let what = if by_mask { "mask" } else { "points" };
        match case.rng.below(2) {
            0 => {
                case.log(format!("read {what} {numbers:?}"));
                read(case, &numbers, by_mask);
            }
            _ => {
                case.log(format!("write {what} {numbers:?}"));
                write(case, &numbers, by_mask);
                case.compare();
            }
        }
    }
}

/// Indices of items in any order: many, few, or duplicates.
fn numbers<T>(case: &mut Case<'_, T>) -> Vec<usize> {
    let (all, rng) = (case.model.items.len() as u64, &mut case.rng);
    let most = *rng.pick(&[3, 40, 400]);
    let count = if all == 0 { 0 } else { rng.below(all.min(most) + 3) };
    let among = *rng.pick(&[all, all, all.min(3)]);
    (0..count).map(|_| rng.below(among) as usize).collect()
}

fn mask<T>(case: &mut Case<'_, T>) -> Vec<usize> {
    let (all, rng) = (case.model.items.len(), &mut case.rng);
    let one_in = *rng.pick(&[1, 2, 30]);
    (0..all).filter(|_| rng.below(one_in) == 0).collect()
}

fn bools(numbers: &[usize], all: usize) -> Vec<bool> {
    let mut mask = vec![false; all];
    numbers.iter().for_each(|&number| mask[number] = true);
    mask
}

fn indices<T: Item>(case: &Case<'_, T>, numbers: &[usize]) -> Vec<Vec<u64>> {
    let index = |&number: &usize| {
        let mut number = number;
        let mut index: Vec<u64> = case
            .model
            .shape()
            .iter()
            .rev()
            .map(|&size| {
                let at = number % size;
                number /= size;
                at as u64
            })
            .collect();
        index.reverse();
        index
    };
    numbers.iter().map(index).collect()
}

fn read<T: Item>(case: &mut Case<'_, T>, numbers: &[usize], by_mask: bool) {
    let expected = case.model.get(numbers.iter().copied());
    let found = if by_mask {
        case.array.read::<Vec<T>>(Selection::mask(&bools(numbers, case.model.items.len()))).unwrap()
    } else {
        let indices = indices(case, numbers);
        let mut found = vec![T::of(0x5555_5555_5555_5555); numbers.len()];
        case.array.read_into(Selection::points(&indices), &mut found).unwrap();
        assert_same(raw(&found), raw(&expected), "the caller's items");
        case.array.read(Selection::points(&indices)).unwrap()
    };
    assert_same(raw(&found), raw(&expected), "the items");
}

fn write<T: Item>(case: &mut Case<'_, T>, numbers: &[usize], by_mask: bool) {
    let items: Vec<T> = items(numbers.len(), &mut case.rng);
    if by_mask {
        case.array.write(Selection::mask(&bools(numbers, case.model.items.len())), &items).unwrap();
    } else {
        let indices = indices(case, numbers);
        case.array.write(Selection::points(&indices), &items).unwrap();
    }
    case.model.put(numbers.iter().copied(), &items);
}
