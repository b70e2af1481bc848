use super::*;
use half::f16;
use num_bigint::{BigInt, BigUint, Sign};

/// A finite value as an integer of units of 2^-1074.
fn big(value: f64) -> BigInt {
    let (mantissa, exponent) = decompose(value);
    let sign = if value < 0.0 { Sign::Minus } else { Sign::Plus };
    BigInt::from_biguint(sign, BigUint::from(mantissa) << (exponent + 1074) as u32)
}

fn big_sum<T: Copy + Into<f64>>(items: &[T]) -> BigInt {
    items.iter().map(|&item| big(item.into())).sum()
}

fn big_squares<T: Copy + Into<f64>>(items: &[T]) -> BigInt {
    items.iter().map(|&item| big(item.into())).map(|item| &item * &item).sum()
}

/// The value of a sum in units of 2^-`unit`.
fn value<const W: usize, const L: i32>(sum: &Exact<W, L>, unit: i32) -> BigInt {
    assert_eq!(sum.special, 0.0);
    let mut total = BigInt::ZERO;
    for &digit in sum.digits.iter().rev() {
        total = (total << 32) + digit;
    }
    total << (unit + L) as u32
}

/// `numerator / denominator * 2^low` rounded to a format, by comparing with all candidates near it.
fn rounded(numerator: &BigInt, denominator: &BigInt, low: i32, format: Format) -> u64 {
    let sign = u64::from(numerator.sign() == Sign::Minus) << format.sign_bit();
    // Both in units of half the smallest positive number.
    let half_unit = format.lowest_exponent() - 1;
    let mut numerator = numerator.magnitude().clone();
    let mut denominator = denominator.magnitude().clone();
    if low >= half_unit {
        numerator <<= (low - half_unit) as u32;
    } else {
        denominator <<= (half_unit - low) as u32;
    }
    // The candidate with these bits, in units of the smallest number; infinity is the next power of two.
    let candidate = |bits: u64| {
        let biased = bits >> (format.precision - 1);
        let fraction = bits & ((1 << (format.precision - 1)) - 1);
        if biased == 0 {
            BigUint::from(fraction)
        } else {
            BigUint::from(fraction | 1 << (format.precision - 1)) << (biased - 1)
        }
    };
    // The largest candidate that is not larger, by bisection.
    let (mut from, mut to) = (0, format.infinity());
    while from < to {
        let middle = (from + to).div_ceil(2);
        if candidate(middle) * 2u32 * &denominator <= numerator {
            from = middle;
        } else {
            to = middle - 1;
        }
    }
    if from == format.infinity() {
        return sign | from;
    }
    let middle = (candidate(from) + candidate(from + 1)) * &denominator;
    let up = numerator > middle || numerator == middle && from & 1 == 1;
    sign | (from + u64::from(up))
}

fn check_results<const W: usize, const L: i32>(sum: &Exact<W, L>, exact: &BigInt, low: i32) {
    for count in [1, 3, 10, 1000, u64::MAX] {
        let divisor = BigInt::from(count);
        assert_eq!(sum.mean_f64(count).to_bits(), rounded(exact, &divisor, low, F64));
        assert_eq!(u64::from(sum.mean_f32(count).to_bits()), rounded(exact, &divisor, low, F32));
        assert_eq!(u64::from(sum.mean_f16_bits(count)), rounded(exact, &divisor, low, F16));
    }
    assert_eq!(sum.to_f64().to_bits(), sum.mean_f64(1).to_bits());
    assert_eq!(sum.to_f32().to_bits(), sum.mean_f32(1).to_bits());
    assert_eq!(sum.to_f16_bits(), sum.mean_f16_bits(1));
}

fn check<T, const S: usize, const Q: usize, const LS: i32, const LQ: i32>(items: &[T])
where
    T: Summand<Sum = Exact<S, LS>, Squares = Exact<Q, LQ>> + Into<f64>,
{
    let (sum, squares) = (big_sum(items), big_squares(items));
    let (mut s, mut q) = (Exact::new(), Exact::new());
    add_run::<T>(&mut s, items);
    T::add_run_of_squares(&mut q, items);
    assert_eq!(value(&s, 1074), sum, "{:?}", items.len());
    assert_eq!(value(&q, 2148), squares, "{:?}", items.len());
    check_results(&s, &sum, -1074);
    check_results(&q, &squares, -2148);
    let count = items.len() as u64;
    for ddof in [0, 1, 5].into_iter().filter(|&ddof| ddof < count) {
        let spread = BigInt::from(count) * &squares - &sum * &sum;
        let divisor = BigInt::from(count) * BigInt::from(count - ddof);
        let expected = f64::from_bits(rounded(&spread, &divisor, -2148, F64));
        assert_eq!(variance(count, &[(&s, &q)], ddof), expected);
        // Twice the variance, as of a complex number with equal parts.
        let twice = f64::from_bits(rounded(&(spread * 2), &divisor, -2148, F64));
        assert_eq!(variance(count, &[(&s, &q), (&s, &q)], ddof), twice);
    }
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    AnyBits,
    Subnormal,
    Uniform,
    Normal,
    Sparse,
    Equal,
    Wide,
    Huge,
    Tiny,
    Cancel,
}

const KINDS: [Kind; 10] = [
    Kind::AnyBits,
    Kind::Subnormal,
    Kind::Uniform,
    Kind::Normal,
    Kind::Sparse,
    Kind::Equal,
    Kind::Wide,
    Kind::Huge,
    Kind::Tiny,
    Kind::Cancel,
];

const LENGTHS: [usize; 13] = [0, 1, 2, 7, 8, 9, 100, 1023, 1024, 1025, 1040, 2050, 5000];

fn sign(random: &mut fastrand::Rng) -> f64 {
    if random.bool() { -1.0 } else { 1.0 }
}

fn f64s(kind: Kind, count: usize, random: &mut fastrand::Rng) -> Vec<f64> {
    let equal = (random.f64() - 0.5) * 1e3;
    let item = |index: usize, random: &mut fastrand::Rng| match kind {
        Kind::AnyBits => f64::from_bits(random.u64(..) & !(1 << 62 & random.u64(..))),
        Kind::Subnormal => sign(random) * f64::from_bits(random.u64(..1 << 53)),
        Kind::Uniform => random.f64(),
        Kind::Normal => (0..12).map(|_| random.f64() - 0.5).sum(),
        Kind::Sparse => {
            if random.u8(..) < 100 {
                random.f64()
            } else {
                0.0 * sign(random)
            }
        }
        Kind::Equal => equal,
        Kind::Wide => sign(random) * (random.f64() * 240.0 - 120.0).exp2(),
        Kind::Huge => f64::MAX * if random.u8(..) < 10 { random.f64() } else { 1.0 },
        Kind::Tiny => sign(random) * (random.f64() * 90.0 - 1074.0).exp2(),
        Kind::Cancel => [1e308, 1.5, -1e308, 1e-308, -1.5][index % 5],
    };
    (0..count).map(|i| Some(item(i, random)).filter(|x| x.is_finite()).unwrap_or(1.0)).collect()
}

fn f32s(kind: Kind, count: usize, random: &mut fastrand::Rng) -> Vec<f32> {
    let equal = random.f32();
    let item = |index: usize, random: &mut fastrand::Rng| match kind {
        Kind::AnyBits => f32::from_bits(random.u32(..)),
        Kind::Subnormal => sign(random) as f32 * f32::from_bits(random.u32(..1 << 24)),
        Kind::Equal => equal,
        Kind::Huge => f32::MAX * if random.u8(..) < 10 { random.f32() } else { 1.0 },
        Kind::Tiny => sign(random) as f32 * (random.f32() * 40.0 - 149.0).exp2(),
        Kind::Cancel => [3e38, 1.5, -3e38, 1e-38, -1.5][index % 5],
        _ => f64s(kind, 1, random)[0] as f32,
    };
    (0..count).map(|i| Some(item(i, random)).filter(|x| x.is_finite()).unwrap_or(1.0)).collect()
}

#[test]
fn runs_are_exact() {
    let mut random = fastrand::Rng::with_seed(1);
    for kind in KINDS {
        for count in LENGTHS {
            check(&f32s(kind, count, &mut random));
            check(&f64s(kind, count, &mut random));
        }
    }
}

#[test]
fn vectors_of_all_widths_add_the_same() {
    let mut random = fastrand::Rng::with_seed(9);
    for kind in KINDS {
        let (items, singles) = (f64s(kind, 5000, &mut random), f32s(kind, 5000, &mut random));
        let (mut sums, mut others) = <[(Sum32, Sum64); 2]>::default().into();
        f32::add_each(&mut sums.0, &singles);
        f64::add_each(&mut sums.1, &items);
        add_run(&mut others.0, &singles);
        add_run(&mut others.1, &items);
        assert_eq!(state(&sums.0), state(&others.0));
        assert_eq!(state(&sums.1), state(&others.1));
    }
}

/// Pieces for which the bounds on the bits of partial sums are nearly reached.
#[test]
fn largest_partial_sums() {
    for exponent in [-1022, -990, -940, -900, -100, 0, 500, 1000, 1012, 1013, 1014, 1022] {
        let below = f64::from_bits(((exponent + 1023) as u64) << 52).next_down();
        for low in [0, 17, 43, 44, 45, 86, 87, 88, 89] {
            let small = f64::from_bits(((exponent + 1023 - low).max(0) as u64) << 52);
            let mut items = [below; 1100];
            items[500] = small;
            items[700..900].fill(small.next_down());
            check(&items);
            check(&items.map(|item| -item));
        }
    }
    // Squares near the bounds of the fast path.
    let mut random = fastrand::Rng::with_seed(6);
    for exponent in [-540, -520, -500, -490, -485, -480, -479, -300, 300, 479, 480, 481, 510] {
        let item = |random: &mut fastrand::Rng| {
            sign(random) * (1.0 + random.f64()) * 2f64.powi(exponent - random.i32(0..3))
        };
        check(&(0..1500).map(|_| item(&mut random)).collect::<Vec<_>>());
    }
    for exponent in [-126, -110, -100, 0, 100, 127, 128] {
        let below = f32::from_bits((exponent + 127) as u32 * (1 << 23)).next_down();
        for low in [0, 18, 19, 20, 21, 22, 42, 43, 44] {
            let small = f32::from_bits((exponent + 127 - low).max(0) as u32 * (1 << 23));
            for small in [small, small.next_down(), small.next_up()] {
                let small = small.min(f32::MAX);
                let mut items = [below; 1100];
                items[500] = small;
                items[700..900].fill(small);
                check(&items);
                check(&items.map(|item| -item));
            }
        }
    }
}

fn state<const W: usize, const L: i32>(sum: &Exact<W, L>) -> [i64; W] {
    let mut sum = sum.clone();
    sum.carry();
    sum.digits
}

#[test]
fn order_and_splits_do_not_matter() {
    let mut random = fastrand::Rng::with_seed(2);
    for kind in KINDS {
        let mut items = f64s(kind, 5000, &mut random);
        let mut singles = f32s(kind, 5000, &mut random);
        let (mut s, mut q, mut s32, mut q32) = <(Sum64, Squares64, Sum32, Squares32)>::default();
        add_run::<f64>(&mut s, &items);
        f64::add_run_of_squares(&mut q, &items);
        add_run::<f32>(&mut s32, &singles);
        f32::add_run_of_squares(&mut q32, &singles);
        for _ in 0..5 {
            random.shuffle(&mut items);
            random.shuffle(&mut singles);
            let mut totals = <(Sum64, Squares64, Sum32, Squares32)>::default();
            let mut from = 0;
            while from < 5000 {
                let to = (from + random.usize(1..1500)).min(5000);
                let mut parts = <(Sum64, Squares64, Sum32, Squares32)>::default();
                add_run::<f64>(&mut parts.0, &items[from..to]);
                f64::add_run_of_squares(&mut parts.1, &items[from..to]);
                add_run::<f32>(&mut parts.2, &singles[from..to]);
                f32::add_run_of_squares(&mut parts.3, &singles[from..to]);
                totals.0.merge(&parts.0);
                totals.1.merge(&parts.1);
                totals.2.merge(&parts.2);
                totals.3.merge(&parts.3);
                from = to;
            }
            assert_eq!(state(&totals.0), state(&s));
            assert_eq!(state(&totals.1), state(&q));
            assert_eq!(state(&totals.2), state(&s32));
            assert_eq!(state(&totals.3), state(&q32));
        }
    }
}

#[test]
fn not_finite() {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let cases: [(&[f64], f64, f64); 6] = [
        (&[nan], nan, nan),
        (&[inf], inf, inf),
        (&[-inf], -inf, inf),
        (&[inf, -inf], nan, inf),
        (&[-inf, -inf], -inf, inf),
        (&[inf, nan], nan, nan),
    ];
    for (special, sum, squares) in cases {
        for (filler, count) in [(0.0, 0), (0.0, 1100), (1.0, 5), (1.0, 1100), (1e300, 3000)] {
            for place in [0, count / 2, count] {
                let mut items = vec![filler; count];
                items.splice(place..place, special.iter().copied());
                let singles: Vec<f32> =
                    items.iter().map(|&x| if x == 1e300 { 1e30 } else { x as f32 }).collect();
                let (mut s, mut q, mut s32, mut q32) =
                    <(Sum64, Squares64, Sum32, Squares32)>::default();
                add_run::<f64>(&mut s, &items);
                f64::add_run_of_squares(&mut q, &items);
                add_run::<f32>(&mut s32, &singles);
                f32::add_run_of_squares(&mut q32, &singles);
                let bits = |x: f64| x.to_bits();
                assert_eq!(bits(s.to_f64()), bits(sum));
                assert_eq!(bits(q.to_f64()), bits(squares));
                assert_eq!(bits(s32.mean_f64(7)), bits(sum));
                assert_eq!(bits(q32.to_f64()), bits(squares));
                assert_eq!(s.to_f32().to_bits(), (sum as f32).to_bits());
                assert_eq!(s.to_f16_bits(), f16::from_f64(sum).to_bits());
                assert!(variance(9, &[(&s, &q)], 0).is_nan());
                assert!(variance(9, &[(&s32, &q32)], 9).is_nan());
            }
        }
    }
    let mut sum = Sum64::new();
    sum.add_repeated(inf, 0);
    assert_eq!(sum.to_f64().to_bits(), 0);
    assert!(sum.mean_f64(0).is_nan());
    sum.add_repeated(inf, 2);
    let mut other = Sum64::new();
    other.add(-inf);
    sum.merge(&other);
    assert!(sum.to_f64().is_nan());
}

#[test]
fn rounding() {
    let sum = |items: &[f64]| {
        let mut sum = Sum64::new();
        add_run::<f64>(&mut sum, items);
        sum
    };
    // A tie of f32 that is none: rounding to f64 first would make it one.
    let tie = 1.0 + 2f64.powi(-24);
    assert_eq!(sum(&[tie]).to_f32(), 1.0);
    assert_eq!(sum(&[tie, 1e-300]).to_f32(), 1f32.next_up());
    assert_eq!(sum(&[tie, -1e-300]).to_f32(), 1.0);
    let odd = 1.0 + 3.0 * 2f64.powi(-24);
    assert_eq!(sum(&[odd]).to_f32(), 1f32.next_up().next_up());
    assert_eq!(sum(&[odd, -1e-300]).to_f32(), 1f32.next_up());
    let tie = 1.0 + 2f64.powi(-11);
    assert_eq!(sum(&[tie]).to_f16_bits(), f16::ONE.to_bits());
    assert_eq!(sum(&[tie, 1e-300]).to_f16_bits(), f16::ONE.to_bits() + 1);
    // Subnormal results, and overflow from half a unit above the largest number.
    assert_eq!(sum(&[2f64.powi(-150)]).to_f32().to_bits(), 0);
    assert_eq!(sum(&[2f64.powi(-150), 1e-300]).to_f32().to_bits(), 1);
    assert_eq!(sum(&[-2f64.powi(-150), -1e-300]).to_f32(), -f32::from_bits(1));
    assert_eq!(sum(&[5e-324]).to_f32().to_bits(), 0);
    assert_eq!(sum(&[f64::from(f32::MAX), 2f64.powi(103)]).to_f32(), f32::INFINITY);
    assert_eq!(sum(&[f64::from(f32::MAX), 2f64.powi(103), -1.0]).to_f32(), f32::MAX);
    assert_eq!(sum(&[f64::MAX, 2f64.powi(970)]).to_f64(), f64::INFINITY);
    assert_eq!(sum(&[-f64::MAX, -2f64.powi(970), 1.0]).to_f64(), -f64::MAX);
    assert_eq!(sum(&[65504.0, 16.0]).to_f16_bits(), f16::INFINITY.to_bits());
    assert_eq!(sum(&[65504.0, 16.0, -1e-9]).to_f16_bits(), f16::MAX.to_bits());
    // Zero is positive; sums that exceed f64 on the way, or at the end.
    assert_eq!(sum(&[-0.0]).to_f64().to_bits(), 0);
    assert_eq!(sum(&[1e308, -1e308]).to_f64().to_bits(), 0);
    assert_eq!(sum(&[1e308, 1e308, -1e308, 1e-308, -1e308]).to_f64(), 1e-308);
    assert_eq!(sum(&[f64::MAX; 3000]).to_f64(), f64::INFINITY);
    assert_eq!(sum(&[f64::MAX; 3000]).mean_f64(3000), f64::MAX);
    assert_eq!(sum(&[-f64::MAX; 3]).to_f32(), f32::NEG_INFINITY);
}

/// Ties, and numbers next to ties: the difference is in any limb, or in the remainder of a division.
#[test]
fn bits_far_below_a_tie() {
    for count in [1.0, 3.0, 10.0, 1000.0] {
        for precision in [11, 24, 53] {
            for distance in (60..400).chain([1000, 1074]) {
                for small in [2f64.powi(-distance), -2f64.powi(-distance)] {
                    let items = [count, count * 2f64.powi(-precision), small];
                    let mut sum = Sum64::new();
                    add_run::<f64>(&mut sum, &items);
                    check_results(&sum, &big_sum(&items), -1074);
                }
            }
        }
    }
}

#[test]
fn repeated_items() {
    let mut random = fastrand::Rng::with_seed(4);
    let counts = [0, 1, 2, 1000, u64::from(u32::MAX), 1 << 63];
    for kind in KINDS {
        for (item, single) in
            f64s(kind, 30, &mut random).into_iter().zip(f32s(kind, 30, &mut random))
        {
            for count in counts {
                let big_count = BigInt::from(count);
                let mut sum = Sum64::new();
                sum.add_repeated(item, count);
                assert_eq!(value(&sum, 1074), big(item) * &big_count);
                check_results(&sum, &(big(item) * &big_count), -1074);
                let mut squares = Squares64::new();
                squares.add_square_repeated(item, count);
                assert_eq!(value(&squares, 2148), big(item) * big(item) * &big_count);
                let single = f64::from(single);
                let mut sum = Sum32::new();
                sum.add_repeated(single, count);
                assert_eq!(value(&sum, 1074), big(single) * &big_count);
                let mut squares = Squares32::new();
                squares.add_repeated(single * single, count);
                assert_eq!(value(&squares, 2148), big(single) * big(single) * &big_count);
                assert!(!squares.magnitude().0);
            }
        }
    }
    for item in [f32::MAX, f32::MIN] {
        let mut sum = Sum32::new();
        sum.add_repeated(item.into(), 1 << 63);
        assert_eq!(sum.mean_f32(1 << 63), item);
    }
}

#[test]
fn carries_are_propagated() {
    let mut sum = Sum32::new();
    sum.pending = MAX_PENDING - 2;
    sum.digits[3] = 1 << 62;
    for _ in 0..5 {
        sum.add(-1.5);
    }
    assert_eq!(value(&sum, 149), (BigInt::from(1) << 158) - (BigInt::from(15) << 148));
    assert_eq!(sum.pending, 3);
}

#[test]
fn variances() {
    let of = |items: &[f64], ddof| {
        let (mut s, mut q) = (Sum64::new(), Squares64::new());
        add_run::<f64>(&mut s, items);
        f64::add_run_of_squares(&mut q, items);
        variance(items.len() as u64, &[(&s, &q)], ddof)
    };
    assert_eq!(of(&[1e9 + 4.0, 1e9 + 7.0, 1e9 + 13.0, 1e9 + 16.0], 1), 30.0);
    assert_eq!(of(&[1e300, -1e300], 0), f64::INFINITY);
    assert_eq!(of(&[1e-300, -1e-300], 0), 0.0);
    assert_eq!(of(&[1e154, -1e154], 0), 1e154 * 1e154);
    let next = 1e300f64.next_up();
    assert_eq!(of(&[1e300, next], 0), ((next - 1e300) / 2.0).powi(2));
    assert_eq!(of(&[7.25; 1000], 0), 0.0);
    assert!(of(&[], 0).is_nan());
    assert!(of(&[1.0], 1).is_nan());
    assert_eq!(of(&[1.0, 2.0], 2), f64::INFINITY);
    assert_eq!(of(&[1.0, 2.0], 3), f64::INFINITY);
}

#[test]
fn variances_of_integers() {
    let mut random = fastrand::Rng::with_seed(5);
    let mut cases: Vec<Vec<i128>> = vec![
        vec![i64::MIN.into(), i64::MAX.into()],
        vec![u64::MAX.into(), 0],
        vec![u64::MAX.into(); 100],
        vec![i64::MIN.into(); 100],
        vec![i128::from(u64::MAX) - 1, u64::MAX.into()],
    ];
    for bits in [8, 20, 63, 64] {
        let item = |random: &mut fastrand::Rng| i128::from(random.u64(..) >> (64 - bits));
        cases.push((0..1000).map(|_| item(&mut random)).collect());
        cases.push((0..1000).map(|_| item(&mut random) - (1 << (bits - 1))).collect());
    }
    for items in cases {
        let count = items.len() as u64;
        let sum: i128 = items.iter().sum();
        let mut squares = SquaresInt::new();
        let mut exact = BigInt::ZERO;
        for &item in &items {
            let square = item.unsigned_abs() * item.unsigned_abs();
            squares.add_integer(square);
            exact += square;
        }
        for ddof in [0, 1] {
            let spread = BigInt::from(count) * &exact - BigInt::from(sum) * BigInt::from(sum);
            let divisor = BigInt::from(count) * BigInt::from(count - ddof);
            let expected = f64::from_bits(rounded(&spread, &divisor, 0, F64));
            assert_eq!(variance_of_integers(count, sum, &squares, ddof), expected);
        }
    }
    // 2^63 items of the largest magnitude: half of them u64::MAX, half 0.
    let mut squares = SquaresInt::new();
    squares.add_integer_repeated(u128::from(u64::MAX).pow(2), 1 << 62);
    let sum = i128::from(u64::MAX) << 62;
    assert_eq!(variance_of_integers(1 << 63, sum, &squares, 0), 2f64.powi(126));
    assert!(variance_of_integers(0, 0, &SquaresInt::new(), 0).is_nan());
}
