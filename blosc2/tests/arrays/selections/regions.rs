//! Reads and writes of regions: into new memory, into the caller's, and into memory of any layout.

use blosc2::{AxisSelection, RawItems, Selection};
use ndarray::{ArrayD, IxDyn, SliceInfo, SliceInfoElem};

use super::cases::{Case, Kinds, selection};
use super::model::{Item, Layout, clamped, items, raw, select};
use crate::common::{Rng, assert_same};

/// Reads and writes of what is selected at random.
pub(crate) fn check<T: Item>(case: &mut Case<'_, T>, kinds: Kinds) {
    for _ in 0..4 {
        let selection = selection(case.model.shape(), kinds, &mut case.rng);
        let numbers = select(&case.model.numbers.view(), &selection);
        match case.rng.below(2) {
            0 => read(case, &selection, &numbers),
            _ => {
                write(case, &selection, &numbers);
                case.compare();
            }
        }
    }
}

/// The equivalent selection of `ndarray`, if there is one.
fn sliced(selection: &[AxisSelection]) -> Option<Selection> {
    let elem = |along: &AxisSelection| {
        Some(match along {
            AxisSelection::Index(at) => SliceInfoElem::Index(clamped(*at)),
            AxisSelection::Slice { start, end, step } => SliceInfoElem::Slice {
                start: clamped(*start),
                end: end.map(clamped),
                step: clamped(*step),
            },
            AxisSelection::NewAxis => SliceInfoElem::NewAxis,
            _ => return None,
        })
    };
    let elems: Vec<SliceInfoElem> = selection.iter().map(elem).collect::<Option<_>>()?;
    Some(SliceInfo::<_, IxDyn, IxDyn>::try_from(elems).unwrap().into())
}

fn selected(selection: &[AxisSelection], rng: &mut Rng) -> Selection {
    let sliced = if rng.below(2) == 0 { sliced(selection) } else { None };
    sliced.unwrap_or_else(|| selection.into())
}

fn read<T: Item>(case: &mut Case<'_, T>, selection: &[AxisSelection], numbers: &ArrayD<usize>) {
    let expected = case.model.get(numbers.iter().copied());
    let other = T::of(0x5555_5555_5555_5555);
    for _ in 0..2 {
        let way = case.rng.below(6);
        case.log(format!("read {selection:?}, way {way}"));
        let asked = selected(selection, &mut case.rng);
        let array = &case.array;
        let found = match way {
            0 => array.read::<Vec<T>>(asked).unwrap(),
            1 => {
                let mut found = vec![other; expected.len()];
                array.read_into(asked, &mut found).unwrap();
                found
            }
            2 => {
                let found = array.read::<RawItems>(asked).unwrap().0;
                assert_same(&found, raw(&expected), "its bytes");
                continue;
            }
            3 => {
                let mut found = vec![0xee; size_of_val(&expected[..])];
                array.read_into(asked, RawItems(&mut found)).unwrap();
                assert_same(&found, raw(&expected), "the caller's bytes");
                continue;
            }
            4 => {
                let found = array.read::<ArrayD<T>>(asked).unwrap();
                assert_eq!(found.shape(), numbers.shape());
                found.into_iter().collect()
            }
            _ => {
                let layout = Layout::random(numbers.shape(), &mut case.rng);
                let (mut found, mut model) = (layout.memory(other), layout.memory(other));
                let view = layout.view_mut(&mut found);
                case.array.read_into(asked, view).unwrap();
                layout.view_mut(&mut model).iter_mut().zip(&expected).for_each(|(to, &item)| {
                    *to = item;
                });
                case.log(format!("{layout:?}"));
                let (found, model) = (found.as_slice().unwrap(), model.as_slice().unwrap());
                assert_same(raw(found), raw(model), "memory, and what is around the items");
                continue;
            }
        };
        assert_same(raw(&found), raw(&expected), "the items");
    }
    if let (Some(index), [number]) = (index(selection, case.model.shape()), &expected[..]) {
        let found: T = case.array.item(&index).unwrap();
        assert_same(raw(&[found]), raw(&[*number]), "the item");
    }
}

/// The index of the item, if the selection is a single index.
fn index(selection: &[AxisSelection], shape: &[usize]) -> Option<Vec<u64>> {
    let place = |(along, &size): (&AxisSelection, &usize)| match along {
        AxisSelection::Index(at) if *at < 0 => Some(size as u64 - at.unsigned_abs()),
        AxisSelection::Index(at) => Some(at.unsigned_abs()),
        _ => None,
    };
    let same = selection.len() == shape.len();
    selection.iter().zip(shape).map(place).collect::<Option<_>>().filter(|_| same)
}

fn write<T: Item>(case: &mut Case<'_, T>, selection: &[AxisSelection], numbers: &ArrayD<usize>) {
    let way = case.rng.below(7);
    case.log(format!("write {selection:?}, way {way}"));
    let asked = selected(selection, &mut case.rng);
    let mut items: Vec<T> = items(numbers.len(), &mut case.rng);
    let item = T::of(case.rng.next());
    match way {
        0 => case.array.write(asked, RawItems(raw(&items))),
        1 => {
            items.fill(item);
            case.array.write(asked, item)
        }
        2 => {
            // Broadcast along some axes: the items are in memory once.
            let shape = numbers.shape().iter();
            let once: Vec<usize> = shape
                .map(|&size| if case.rng.below(2) == 0 { size.min(1) } else { size })
                .collect();
            let few = ArrayD::from_shape_simple_fn(&once[..], || T::of(case.rng.next()));
            let all = few.broadcast(numbers.shape()).unwrap();
            items = all.iter().copied().collect();
            case.array.write(asked, all)
        }
        3 | 4 => {
            let layout = Layout::random(numbers.shape(), &mut case.rng);
            let memory = layout.with(&items);
            case.log(format!("{layout:?}"));
            case.array.write(asked, layout.view(&memory))
        }
        _ => match index(selection, case.model.shape()) {
            Some(index) if numbers.ndim() == 0 => case.array.write(&index, items[0]),
            _ => case.array.write(asked, &items),
        },
    }
    .unwrap();
    case.model.put(numbers.iter().copied(), &items);
}
