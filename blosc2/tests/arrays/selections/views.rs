//! Views of views, read in every way.

use blosc2::{NDArrayView, RawItems};
use ndarray::{ArrayD, Axis};

use super::cases::{Case, Kinds, selection};
use super::model::{Item, Layout, Model, items, raw, select};
use crate::common::{Rng, assert_same};

/// Reads of views at random, between writes.
pub(crate) fn check<T: Item>(case: &mut Case<'_, T>) {
    for _ in 0..3 {
        let (mut view, mut numbers) = (case.array.view(), case.model.numbers.clone());
        let mut log = Vec::new();
        for _ in 0..1 + case.rng.below(4) {
            (view, numbers) = change(view, numbers, &mut case.rng, &mut log);
            let shape: Vec<u64> = numbers.shape().iter().map(|&size| size as u64).collect();
            assert_eq!(view.shape(), shape, "{log:?}");
            assert_eq!((view.ndim(), view.len()), (shape.len(), numbers.len() as u64), "{log:?}");
        }
        for _ in 0..2 {
            read(&view, &numbers, &case.model, &mut case.rng, &mut log);
        }
        log.into_iter().for_each(|line| case.log(line));
        let at = selection(case.model.shape(), Kinds::Lists, &mut case.rng);
        let numbers = select(&case.model.numbers.view(), &at);
        let items: Vec<T> = items(numbers.len(), &mut case.rng);
        case.log(format!("write {at:?}"));
        case.array.write(&at, &items).unwrap();
        case.model.put(numbers.iter().copied(), &items);
    }
}

/// A random view of a view, and the equivalent view of `ndarray`.
fn change<'a>(
    view: NDArrayView<'a>,
    mut numbers: ArrayD<usize>,
    rng: &mut Rng,
    log: &mut Vec<String>,
) -> (NDArrayView<'a>, ArrayD<usize>) {
    let ndim = numbers.ndim();
    match rng.below(7) {
        0 if ndim < 16 => {
            let axis = rng.below(ndim as u64 + 1) as usize;
            log.push(format!("expand at {axis}"));
            (view.expand_dims(axis).unwrap(), numbers.insert_axis(Axis(axis)))
        }
        1 => {
            log.push("squeeze".to_owned());
            for axis in (0..ndim).rev() {
                if numbers.len_of(Axis(axis)) == 1 {
                    numbers = numbers.remove_axis(Axis(axis));
                }
            }
            (view.squeeze(), numbers)
        }
        2 | 3 => {
            let mut order: Vec<usize> = (0..ndim).collect();
            (1..ndim).for_each(|at| order.swap(at, rng.below(at as u64 + 1) as usize));
            log.push(format!("permute {order:?}"));
            (view.permute(&order).unwrap(), numbers.permuted_axes(&order[..]))
        }
        4 => {
            log.push("transpose".to_owned());
            (view.transpose(), numbers.reversed_axes())
        }
        _ => {
            let kinds = *rng.pick(&[Kinds::Slices, Kinds::Slices, Kinds::Lists]);
            let selection = selection(numbers.shape(), kinds, rng);
            log.push(format!("slice {selection:?}"));
            match view.slice(&selection) {
                Ok(view) => (view, select(&numbers.view(), &selection)),
                // An added axis cannot be empty or repeat its item: there is no such view.
                Err(error) => {
                    assert_eq!(error.kind(), blosc2::ErrorKind::Unsupported, "{error}");
                    (view, numbers)
                }
            }
        }
    }
}

fn read<T: Item>(
    view: &NDArrayView<'_>,
    numbers: &ArrayD<usize>,
    model: &Model<T>,
    rng: &mut Rng,
    log: &mut Vec<String>,
) {
    let way = rng.below(6);
    log.push(format!("read all, way {way}"));
    let expected = model.get(numbers.iter().copied());
    let other = T::of(0x5555_5555_5555_5555);
    let found = match way {
        0 => view.read::<Vec<T>>(..).unwrap(),
        1 => view.read::<Vec<T>>(..).unwrap(),
        2 => {
            let mut found = vec![other; expected.len()];
            view.read_into(.., &mut found).unwrap();
            found
        }
        3 => {
            let mut found = vec![0xee; size_of_val(&expected[..])];
            view.read_into(.., RawItems(&mut found)).unwrap();
            assert_same(&found, &view.read::<RawItems>(..).unwrap().0, "both ways");
            return assert_same(&found, raw(&expected), "its bytes");
        }
        4 => {
            let found = view.read::<ArrayD<T>>(..).unwrap();
            assert_eq!(found.shape(), numbers.shape());
            found.into_iter().collect()
        }
        _ => {
            let layout = Layout::random(numbers.shape(), rng);
            log.push(format!("{layout:?}"));
            let mut found = layout.memory(other);
            view.read_into(.., layout.view_mut(&mut found)).unwrap();
            layout.view(&found).iter().copied().collect()
        }
    };
    assert_same(raw(&found), raw(&expected), "the items");
}
