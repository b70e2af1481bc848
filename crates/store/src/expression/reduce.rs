//! Accumulators of reductions.

use super::items::{Items, Number, Type, for_items};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Reduction {
    Sum,
    Prod,
    Min,
    Max,
    Mean,
    /// With the divisor's difference to the number of items.
    Var(f64),
    Std(f64),
    Any,
    All,
    CountNonzero,
    ArgMin,
    ArgMax,
}

impl Reduction {
    pub(super) fn result(self, of: Type) -> Type {
        match self {
            Self::Sum | Self::Prod if of.is_float() => of,
            Self::Sum | Self::Prod if of.is_signed() || of == Type::Bool => Type::I64,
            Self::Sum | Self::Prod => Type::U64,
            Self::Mean | Self::Var(_) | Self::Std(_) if of.is_float() => of,
            Self::Mean | Self::Var(_) | Self::Std(_) => Type::F64,
            Self::Min | Self::Max => of,
            Self::Any | Self::All => Type::Bool,
            Self::CountNonzero | Self::ArgMin | Self::ArgMax => Type::I64,
        }
    }

    /// Whether it has a result without items.
    pub(super) fn accepts_none(self) -> bool {
        !matches!(self, Self::Min | Self::Max | Self::ArgMin | Self::ArgMax)
    }
}

/// One result while items are added.
#[derive(Debug, Clone, Copy)]
enum State {
    /// A sum or product of integers, modulo 2^64; a number of items.
    Integer(i64),
    Sum(f64, f64),
    Product(f64),
    /// The number of items, their mean, and the sum of the squares of their distances from it.
    Moments(f64, f64, f64),
    Flag(bool),
    /// The extreme item and its position.
    Integers(Option<(i128, i64)>),
    Floats(Option<(f64, i64)>),
}

/// The results of a box.
#[derive(Debug)]
pub(super) struct Accumulators {
    reduction: Reduction,
    of: Type,
    states: Vec<State>,
    /// The number of items of each result.
    count: f64,
}

impl Accumulators {
    pub(super) fn new(reduction: Reduction, of: Type, results: usize, count: f64) -> Self {
        let start = match reduction {
            Reduction::Sum if of.is_float() => State::Sum(0.0, 0.0),
            Reduction::Mean => State::Sum(0.0, 0.0),
            Reduction::Sum | Reduction::CountNonzero => State::Integer(0),
            Reduction::Prod if of.is_float() => State::Product(1.0),
            Reduction::Prod => State::Integer(1),
            Reduction::Var(_) | Reduction::Std(_) => State::Moments(0.0, 0.0, 0.0),
            Reduction::Any => State::Flag(false),
            Reduction::All => State::Flag(true),
            _ if of.is_float() => State::Floats(None),
            _ => State::Integers(None),
        };
        Self { reduction, of, states: vec![start; results], count }
    }

    /// Adds items. For each item, `places` returns the result to which it belongs, and its position.
    pub(super) fn add(&mut self, items: &Items, places: impl Iterator<Item = (usize, i64)>) {
        for_items!(items, items => self.add_all(items, places));
    }

    fn add_all<T: Number>(&mut self, items: &[T], places: impl Iterator<Item = (usize, i64)>) {
        let reduction = self.reduction;
        let is_max = matches!(reduction, Reduction::Max | Reduction::ArgMax);
        for (item, (at, position)) in items.iter().zip(places) {
            match &mut self.states[at] {
                State::Integer(sum) => match reduction {
                    Reduction::Prod => *sum = sum.wrapping_mul(item.integer() as i64),
                    Reduction::CountNonzero => *sum += i64::from(bool::of_number(*item)),
                    _ => *sum = sum.wrapping_add(item.integer() as i64),
                },
                State::Sum(sum, rest) => {
                    let item = item.float();
                    let total = *sum + item;
                    *rest += match sum.abs() >= item.abs() {
                        true => (*sum - total) + item,
                        false => (item - total) + *sum,
                    };
                    *sum = total;
                }
                State::Product(product) => *product *= item.float(),
                State::Moments(count, mean, squares) => {
                    let item = item.float();
                    *count += 1.0;
                    let distance = item - *mean;
                    *mean += distance / *count;
                    *squares += distance * (item - *mean);
                }
                State::Flag(flag) => match reduction {
                    Reduction::Any => *flag |= bool::of_number(*item),
                    _ => *flag &= bool::of_number(*item),
                },
                State::Integers(found) => keep_extreme(found, item.integer(), position, is_max),
                State::Floats(found) => keep_extreme(found, item.float(), position, is_max),
            }
        }
    }

    pub(super) fn finish(self) -> Items {
        let Self { reduction, of, states, count } = self;
        let result = reduction.result(of);
        let floats = |of: &dyn Fn(&State) -> f64| Items::F64(states.iter().map(of).collect());
        let integers = |of: &dyn Fn(&State) -> i64| Items::I64(states.iter().map(of).collect());
        // An infinite sum makes its compensation NaN.
        let total = |state: &State| match state {
            State::Sum(sum, rest) if rest.is_finite() => sum + rest,
            State::Sum(sum, _) | State::Product(sum) => *sum,
            _ => f64::NAN,
        };
        let variance = |state: &State, ddof: f64| match state {
            State::Moments(_, _, squares) => squares / (count - ddof).max(0.0),
            _ => f64::NAN,
        };
        let items = match reduction {
            Reduction::Mean => floats(&|state| total(state) / count),
            Reduction::Var(ddof) => floats(&|state| variance(state, ddof)),
            Reduction::Std(ddof) => floats(&|state| variance(state, ddof).sqrt()),
            Reduction::Any | Reduction::All => {
                Items::Bool(states.iter().map(|state| matches!(state, State::Flag(true))).collect())
            }
            Reduction::ArgMin | Reduction::ArgMax => integers(&|state| match state {
                State::Integers(Some((_, at))) | State::Floats(Some((_, at))) => *at,
                _ => 0,
            }),
            Reduction::Min | Reduction::Max if of.is_float() => floats(&|state| match state {
                State::Floats(Some((item, _))) => *item,
                _ => f64::NAN,
            }),
            Reduction::Min | Reduction::Max => integers(&|state| match state {
                State::Integers(Some((item, _))) => *item as i64,
                _ => 0,
            }),
            _ if result.is_float() => floats(&total),
            _ => integers(&|state| if let State::Integer(sum) = state { *sum } else { 0 }),
        };
        items.cast(result)
    }
}

/// Keeps the more extreme item with its position. NaN is more extreme than any number. The first of equal items stays; tiles
/// do not come in the order of their items.
fn keep_extreme<T: PartialOrd>(found: &mut Option<(T, i64)>, item: T, position: i64, is_max: bool) {
    let is_nan = |item: &T| item.partial_cmp(item).is_none();
    let is_kept = found.as_ref().is_some_and(|(old, place)| match (is_nan(&item), is_nan(old)) {
        (true, true) => position > *place,
        (false, false) if item == *old => position > *place,
        (false, false) => (item < *old) == is_max,
        (_, is_kept) => is_kept,
    });
    if !is_kept {
        *found = Some((item, position));
    }
}
