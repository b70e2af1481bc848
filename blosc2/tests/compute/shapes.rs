//! Reshaped and broadcast arrays and assignments, compared with NumPy.

use blosc2::compute::{InMemory, Real};
use blosc2::{AxisSelection, CParams, ErrorKind, NDArray, RawItems, Selection, Threads};

use crate::cases::{Case, Cases, of_dtype};

const SCRIPT: &str = r#"
def random_shape(least=1, most=9, axes=5):
    return tuple(int(size) for size in rng.integers(least, most, rng.integers(0, axes)))
def factors(size):
    shape = []
    while rng.random() < 0.7 and len(shape) < 5:
        divisors = [part for part in range(1, size + 1) if size % part == 0]
        shape.append(int(rng.choice(divisors)))
        size //= shape[-1]
    return shape + [size]
def stretched(shape):
    # A shape that can be broadcast to this one.
    shape = [1 if rng.random() < 0.3 else size for size in shape]
    return shape[int(rng.integers(0, len(shape) + 1)):]
for number in range(count):
    dtype = np.dtype(dtypes[number // 3 % len(dtypes)])
    case = {"dtype": dtype.str, "kind": ["reshape", "broadcast", "assign"][number % 3]}
    shape = random_shape(0 if number % 10 == 0 else 1)
    if number % 3 == 0:
        items = random_items(dtype, shape)
        if items.size:
            new = [int(size) for size in rng.permutation(factors(items.size))]
        else:
            new = [0] + list(random_shape(0))
        asked = list(new)
        if items.size and rng.random() < 0.3:
            asked[int(rng.integers(len(asked)))] = -1
        expected = items.reshape(asked)
        assert list(expected.shape) == new
        case.update({"asked": asked})
    elif number % 3 == 1:
        own = stretched(shape)
        items = random_items(dtype, own)
        new = list(shape)
        expected = np.broadcast_to(items, new)
    else:
        items = random_items(dtype, shape).copy()
        expected, selection, box = items.copy(), [], []
        for size in shape[:int(rng.integers(0, len(shape) + 1))]:
            kind = rng.random()
            if kind < 0.2 and size:
                at = int(rng.integers(-size, size))
                selection.append({"index": at})
                box.append(at)
            elif kind < 0.3 and size:
                # Lists of indices that NumPy does not combine with those of other axes.
                at = [int(at) for at in rng.integers(-size, size, rng.integers(1, 6))]
                selection.append({"list": at})
                box.append(at)
            else:
                start, end = sorted(int(at) for at in rng.integers(0, size + 1, 2))
                step = int(rng.integers(1, 4)) * int(rng.choice([1, 1, -1]))
                selection.append({"start": start, "end": end, "step": step})
                positions = list(range(start, end))
                positions = positions[::step] if step > 0 else positions[::-1][::-step]
                box.append(positions)
        box += [list(range(size)) for size in shape[len(box):]]
        index = np.ix_(*[at if isinstance(at, list) else [at] for at in box])
        new = [len(at) for at in box if isinstance(at, list)]
        own = stretched(new)
        if rng.random() < 0.2 and len(own) == len(new):
            own = [1] * int(rng.integers(1, 3)) + own
        value = random_items(dtype, own)
        full = np.broadcast_to(value.reshape(own[max(len(own) - len(new), 0):]), new)
        full = full.reshape([len(at) if isinstance(at, list) else 1 for at in box])
        if len(shape):
            # Of equal indices, the last one.
            for at in np.ndindex(full.shape):
                expected[tuple(part[axis] if isinstance(part, list) else part for part, axis in zip(box, at))] = full[at]
        else:
            expected[()] = full
        case.update({"selection": selection, "own": own, "value": put(value),
            "operand": ["memory", "array", "transposed"][number // 3 % 3], "own_chunks": random_chunks(own)})
    case.update({"shape": items.shape, "chunks": random_chunks(items.shape), "new": new, "threads": 1 + number % 2,
        "new_chunks": random_chunks(expected.shape), "items": put(items), "expected": put(expected)})
    cases.append(case)
"#;

fn check<T: Real>(case: &Case<'_>) {
    let made = |items: &str, shape: &str, chunks: &str| {
        let typed = NDArray::builder().dtype(T::dtype(), size_of::<T>());
        let builder = typed.chunk_shape(case.list(chunks));
        builder.from_slice(RawItems(case.bytes(items)), case.list(shape)).unwrap()
    };
    let mut source = made("items", "shape", "chunks");
    let builder = || {
        let params = CParams::new().threads(Threads::new(case.number("threads") as usize));
        NDArray::builder().cparams(params).chunk_shape(case.list("new_chunks"))
    };
    let result = match case.text("kind") {
        "reshape" => {
            let shape: Vec<i64> = serde_json::from_value(case.value["asked"].clone()).unwrap();
            builder().reshape(&source, shape).unwrap()
        }
        "broadcast" => builder().broadcast_to(&source, case.list("new")).unwrap(),
        _ => {
            let axes = case.value["selection"].as_array().unwrap().iter().map(|axis| {
                let number = |name: &str| axis[name].as_i64();
                match (number("index"), number("step")) {
                    (Some(at), _) => AxisSelection::Index(at),
                    (_, Some(step)) => {
                        let (start, end) = (number("start").unwrap(), number("end"));
                        AxisSelection::Slice { start, end, step }
                    }
                    _ => AxisSelection::Indices(
                        serde_json::from_value(axis["list"].clone()).unwrap(),
                    ),
                }
            });
            let selection = Selection::from(axes.collect::<Vec<_>>());
            let value = made("value", "own", "own_chunks");
            match case.text("operand") {
                "memory" => {
                    let items: Vec<T> = value.read(..).unwrap();
                    let operand = InMemory::new(&items, case.list("own"));
                    source.assign::<T>(selection, operand).unwrap();
                }
                "array" => source.assign::<T>(selection, &value).unwrap(),
                // The same items in another order of the axes.
                _ => {
                    let turned = NDArray::builder().copy(value.view().transpose()).unwrap();
                    source.assign::<T>(selection, turned.view().transpose()).unwrap();
                }
            }
            source
        }
    };
    if case.text("kind") != "assign" {
        assert_eq!(result.shape(), case.list("new"), "{}", case.value);
    }
    let items = result.read::<RawItems>(..).unwrap().0;
    case.check(result.dtype_str().unwrap(), &items, "dtype", "expected");
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn shapes_are_those_of_numpy() {
    for case in Cases::run(SCRIPT, 20261201, 540).iter() {
        of_dtype!(case.dtype("dtype"), check(&case));
    }
}

/// Views with steps, lists and added axes, of items that are no numbers.
#[test]
fn views_are_reshaped() {
    let items: Vec<[u16; 3]> = (0..600).map(|at| [at, at + 1, at + 2]).collect();
    let builder = || NDArray::builder().chunk_shape((3, 4, 7)).block_shape((2, 4, 3));
    let array = builder().from_slice(&items, (10, 5, 12)).unwrap();
    let view = array.view().slice((
        AxisSelection::strided(1.., -2),
        AxisSelection::Indices(vec![4, 0, 0, 3]),
        AxisSelection::strided(1..11, 3),
    ));
    let view = view.unwrap().permute(&[2, 0, 1]).unwrap().expand_dims(1).unwrap();
    assert_eq!(view.shape(), [4, 1, 5, 4]);
    let expected: Vec<[u16; 3]> = view.read(..).unwrap();
    for shape in [vec![80], vec![8, 10], vec![2, 2, 2, 2, 5], vec![1, 80, 1], vec![-1, 16]] {
        let chunks: Vec<u64> = vec![3; shape.len()];
        let result = NDArray::builder().chunk_shape(chunks).reshape(view.clone(), &shape);
        assert_eq!(result.unwrap().read::<Vec<[u16; 3]>>(..).unwrap(), expected, "{shape:?}");
    }
    let wide = NDArray::builder().broadcast_to(view.clone(), (2, 4, 3, 5, 4)).unwrap();
    for at in 0..3 {
        let part: Vec<[u16; 3]> = wide.read((1, .., at)).unwrap();
        assert_eq!(part, expected);
    }
    // A dtype of a file keeps its notation and byte order.
    let array = NDArray::builder().dtype(">u2", 2).from_slice(RawItems(&[0, 1, 0, 2]), 2).unwrap();
    let reshaped = NDArray::builder().reshape(&array, (2, 1)).unwrap();
    assert_eq!(reshaped.dtype_str(), Some(">u2"));
    assert_eq!(reshaped.read::<RawItems>(..).unwrap().0, [0, 1, 0, 2]);
}

/// The items of reshaped views are those at plain indices.
#[test]
fn reshaped_views_have_the_items_at_these_indices() {
    let all = |size: u64| (AxisSelection::from(..), (0..size).collect::<Vec<u64>>());
    let list = |at: &[u64]| {
        let indices = at.iter().map(|at| *at as i64).collect();
        (AxisSelection::Indices(indices), at.to_vec())
    };
    let cases = [
        [all(10), all(5), all(12)],
        [(AxisSelection::strided(2..9, -1), (2..9).rev().collect()), all(5), all(12)],
        [all(10), (AxisSelection::strided(1.., -1), (1..5).rev().collect()), all(12)],
        [all(10), all(5), (AxisSelection::strided(3..11, -1), (3..11).rev().collect())],
        [
            (AxisSelection::strided(1.., 2), vec![1, 3, 5, 7, 9]),
            (AxisSelection::strided(.., 2), vec![0, 2, 4]),
            (AxisSelection::strided(1..10, 2), vec![1, 3, 5, 7, 9]),
        ],
        [list(&[9, 9, 0, 4]), all(5), list(&[11, 2, 3, 3, 0])],
        [list(&[5]), (AxisSelection::strided(.., -2), vec![4, 2, 0]), list(&[7])],
    ];
    for chunks in [(3, 4, 7), (10, 5, 12), (1, 2, 5)] {
        let array = NDArray::builder().chunk_shape(chunks).block_shape((1, 2, 4));
        let array = array.from_fn([10, 5, 12], |[i, j, k]| ((i * 5 + j) * 12 + k) as u32).unwrap();
        for axes in &cases {
            let selection = axes.each_ref().map(|(axis, _)| axis.clone());
            let view = array.view().slice(Selection::from(selection.to_vec())).unwrap();
            let mut expected = Vec::new();
            for i in &axes[0].1 {
                for j in &axes[1].1 {
                    expected.extend(axes[2].1.iter().map(|k| ((i * 5 + j) * 12 + k) as u32));
                }
            }
            let [i, j, k] = axes.each_ref().map(|(_, at)| at.len() as i64);
            let views =
                [view.clone(), view.clone().expand_dims(0).unwrap(), view.expand_dims(2).unwrap()];
            for view in views {
                let shapes =
                    [vec![-1], vec![i * j, k], vec![i, j * k], vec![k, j, i], vec![k, 1, -1]];
                for (shape, side) in shapes.iter().flat_map(|shape| [1, 4, 50].map(|s| (shape, s)))
                {
                    let builder = NDArray::builder().chunk_shape(vec![side; shape.len()]);
                    let result = builder.reshape(view.clone(), shape).unwrap();
                    let found: Vec<u32> = result.read(..).unwrap();
                    assert_eq!(found, expected, "{selection:?} {shape:?} {side} {chunks:?}");
                }
            }
        }
    }
}

/// An array without axes has one item.
#[test]
fn arrays_without_axes_are_reshaped() {
    let point = NDArray::from_slice(&[7u16], ()).unwrap();
    let reshaped = NDArray::builder().reshape(&point, (1, -1)).unwrap();
    assert_eq!((reshaped.shape(), reshaped.item::<u16>((0, 0)).unwrap()), (&[1, 1][..], 7));
    let back = NDArray::builder().reshape(&reshaped, ()).unwrap();
    assert_eq!((back.shape(), back.read::<Vec<u16>>(..).unwrap()), (&[][..], vec![7]));
    let same = NDArray::builder().reshape(&back, ()).unwrap();
    assert_eq!((same.shape(), same.read::<Vec<u16>>(..).unwrap()), (&[][..], vec![7]));
    let wide = NDArray::builder().chunk_shape((1, 2)).broadcast_to(&same, (2, 3)).unwrap();
    assert_eq!(wide.read::<Vec<u16>>(..).unwrap(), [7; 6]);
    let one = NDArray::builder().arange(0u16, 9, 1).unwrap();
    let one = NDArray::builder().reshape(one.view().slice(4).unwrap(), ()).unwrap();
    assert_eq!(one.read::<Vec<u16>>(..).unwrap(), [4]);
}

#[test]
fn shapes_that_do_not_fit_are_errors() {
    let array = NDArray::builder().arange(0u8, 12, 1).unwrap();
    let shapes: [&[i64]; 8] =
        [&[], &[11], &[13], &[5, -1], &[-1, -1], &[-2, 6], &[0, -1], &[i64::MAX, i64::MAX, 4]];
    for shape in shapes {
        let error = NDArray::builder().reshape(&array, shape).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{shape:?}");
    }
    for shape in [&[][..], &[1], &[12, 2], &[-1, 12]] {
        let error = NDArray::builder().broadcast_to(&array, shape).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{shape:?}");
    }
    let mut target = NDArray::builder().zeros::<u8>((2, 3)).unwrap();
    let memory = |shape: &[u64]| InMemory::new(&[1u8; 6], shape);
    for shape in [&[3, 2][..], &[6], &[2, 1, 3]] {
        let error = target.assign(.., memory(shape)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{shape:?}");
    }
    assert_eq!(target.assign(.., 1.0f32).unwrap_err().kind(), ErrorKind::TypeMismatch);
    assert_eq!(target.assign((.., 3), 1u8).unwrap_err().kind(), ErrorKind::OutOfBounds);
    let points = Selection::points(&[[0u64, 0]]);
    assert_eq!(target.assign(points, 1u8).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(target.read::<Vec<u8>>(..).unwrap(), [0; 6]);
}

/// If an item cannot be computed, nothing is written; and an assignment can be a part of a transaction.
#[test]
fn an_assignment_is_atomic() {
    let mut array = NDArray::builder().chunk_shape(10).zeros::<i32>(100).unwrap();
    let numbers = NDArray::builder().chunk_shape(7).arange(0i32, 100, 1).unwrap();
    let failing = numbers.lazy::<i32>().try_map(|item| match item {
        0..95 => Ok(item),
        _ => Err("too large"),
    });
    assert_eq!(array.assign(.., failing).unwrap_err().kind(), ErrorKind::Callback);
    assert_eq!(array.read::<Vec<i32>>(..).unwrap(), [0; 100]);
    let result = array.transaction(|array| {
        array.assign::<i32>(.., &numbers)?;
        array.assign(..50, 7)?;
        assert_eq!(array.item::<i32>(49)?, 7);
        array.assign(60, 1.0f32)
    });
    assert_eq!(result.unwrap_err().kind(), ErrorKind::TypeMismatch);
    assert_eq!(array.read::<Vec<i32>>(..).unwrap(), [0; 100]);
}
