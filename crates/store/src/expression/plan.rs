//! The types and shapes of the parts of an expression.

use std::cell::Cell;
use std::sync::{Arc, Mutex};

use super::apply::{Binary, Comparison, Unary};
use super::items::Type;
use super::parse::{Literal, Tree, invalid, unsupported};
use super::reduce::Reduction;
use crate::tag::Fault;

type Result<T> = std::result::Result<T, Fault>;

/// The maximum memory of the results of reductions that are computed once and kept, in bytes: of an expression, with
/// those to which it refers. Others are computed where they are needed. Small in unit tests.
pub(super) const KEPT: u64 = if cfg!(test) { 1 << 10 } else { 64 << 20 };

/// The maximum number of items of a part: their positions are `usize` in memory, and `i64` in results.
pub(super) const MAX_ITEMS: u64 = isize::MAX as u64;

#[derive(Debug)]
pub(super) struct Node {
    pub(super) step: Step,
    pub(super) of: Type,
    pub(super) shape: Vec<u64>,
    /// Whether it needs a reduction whose results are not kept.
    pub(super) recomputes: bool,
}

#[derive(Debug)]
pub(super) enum Step {
    /// An operand, by its number.
    Operand(usize),
    /// A number of Python. It takes the type of the other operand.
    Literal(Literal),
    Cast(Box<Node>),
    Unary(Unary, Box<Node>),
    Binary(Binary, Box<[Node; 2]>),
    /// A comparison of integers that have no common type.
    CompareIntegers(Comparison, Box<[Node; 2]>),
    Select(Box<[Node; 3]>),
    Reduce(Box<Reduce>),
}

#[derive(Debug)]
pub(super) struct Reduce {
    pub(super) reduction: Reduction,
    pub(super) of: Node,
    /// For each axis of `of`, whether it is reduced.
    pub(super) axes: Vec<bool>,
    pub(super) keepdims: bool,
    /// `None` if the results are not kept.
    pub(super) kept: Option<Kept>,
}

/// The bytes of all results of a reduction, after they are computed.
type Kept = Mutex<Option<Arc<Vec<u8>>>>;

/// The number of items of a shape; saturates.
pub(super) fn count(shape: &[u64]) -> u64 {
    // A shape with a zero has no items.
    match shape.contains(&0) {
        true => 0,
        false => shape.iter().fold(1, |len: u64, size| len.saturating_mul(*size)),
    }
}

impl Node {
    fn literal(&self) -> Option<Literal> {
        match self.step {
            // A bool of Python has the type of NumPy's bool.
            Step::Literal(literal @ (Literal::Int(_) | Literal::Float(_))) => Some(literal),
            _ => None,
        }
    }

    fn of_literal(literal: Literal) -> Self {
        let of = match literal {
            Literal::Bool(_) => Type::Bool,
            Literal::Int(_) => Type::I64,
            Literal::Float(_) => Type::F64,
        };
        Self { step: Step::Literal(literal), of, shape: Vec::new(), recomputes: false }
    }

    /// A number with the type that NumPy gives it where no other operand determines the type.
    pub(super) fn typed(self) -> Result<Self> {
        let of = self.of;
        let is_number = matches!(self.step, Step::Literal(_));
        let node = self.cast(of)?;
        Ok(if is_number { node.then(|node| Step::Cast(Box::new(node)), of) } else { node })
    }

    pub(super) fn cast(self, to: Type) -> Result<Self> {
        if let Step::Literal(Literal::Int(integer)) = self.step
            && to.is_integer()
            && !to.holds(integer)
        {
            return unsupported(format!(
                "the integer {integer} is out of the range of the dtype `{}`",
                to.dtype()
            ));
        }
        Ok(match self.step {
            _ if self.of == to => self,
            Step::Literal(Literal::Int(integer)) if to == Type::Bool => {
                Self::of_literal(Literal::Bool(integer != 0))
            }
            Step::Literal(Literal::Float(float)) if to == Type::Bool => {
                Self::of_literal(Literal::Bool(float != 0.0))
            }
            Step::Literal(_) => Self { of: to, ..self },
            _ => self.then(|node| Step::Cast(Box::new(node)), to),
        })
    }

    /// The part that computes each item from one of these.
    fn then(self, step: impl FnOnce(Self) -> Step, of: Type) -> Self {
        let (shape, recomputes) = (self.shape.clone(), self.recomputes);
        Self { step: step(self), of, shape, recomputes }
    }

    fn unary(operation: Unary, of: Self, result: Type) -> Self {
        of.then(|of| Step::Unary(operation, Box::new(of)), result)
    }

    /// The bytes of the items of all parts, which are computed one after the other; saturates.
    pub(super) fn work(&self) -> u64 {
        let sum = |parts: &[Self]| parts.iter().map(Self::work).fold(0, u64::saturating_add);
        let parts = match &self.step {
            Step::Operand(_) | Step::Literal(_) => 0,
            Step::Cast(of) | Step::Unary(_, of) => of.work(),
            Step::Binary(_, of) | Step::CompareIntegers(_, of) => sum(&of[..]),
            Step::Select(of) => sum(&of[..]),
            Step::Reduce(reduce) => reduce.of.work(),
        };
        count(&self.shape).saturating_mul(self.of.size() as u64).saturating_add(parts)
    }

    /// Whether a part combines items of different rows, the positions on the first axis.
    pub(super) fn combines_rows(&self) -> bool {
        match &self.step {
            Step::Operand(_) | Step::Literal(_) => false,
            Step::Cast(of) | Step::Unary(_, of) => of.combines_rows(),
            Step::Binary(_, of) | Step::CompareIntegers(_, of) => combine_rows(&of[..]),
            Step::Select(of) => combine_rows(&of[..]),
            Step::Reduce(reduce) => {
                reduce.axes.first().is_some_and(|reduced| *reduced) || reduce.of.combines_rows()
            }
        }
    }
}

/// Whether parts that are broadcast combine rows. Where they have different numbers of axes, the rows of one part are
/// combined with another axis of the other one.
fn combine_rows(parts: &[Node]) -> bool {
    let mut ndims = parts.iter().map(|part| part.shape.len()).filter(|ndim| *ndim > 0);
    let first = ndims.next();
    ndims.any(|ndim| Some(ndim) != first) || parts.iter().any(Node::combines_rows)
}

/// The shape of operands after broadcasting.
fn broadcast(shapes: &[&[u64]]) -> Result<Vec<u64>> {
    let ndim = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
    let mut found = vec![1; ndim];
    for shape in shapes {
        for (size, wanted) in found[ndim - shape.len()..].iter_mut().zip(*shape) {
            match (*size, *wanted) {
                (old, new) if old == new || new == 1 => {}
                (1, new) => *size = new,
                _ => {
                    return invalid(format!(
                        "its operands have the shapes {shapes:?}, which cannot be broadcast"
                    ));
                }
            }
        }
    }
    if count(&found) > MAX_ITEMS {
        return unsupported(format!(
            "its operands have the shapes {shapes:?}, together more than {MAX_ITEMS} items"
        ));
    }
    Ok(found)
}

/// Combines parts item by item, after broadcasting.
fn combine<const N: usize>(
    parts: [Node; N],
    of: Type,
    step: impl FnOnce(Box<[Node; N]>) -> Step,
) -> Result<Node> {
    let shape = broadcast(&parts.each_ref().map(|part| &part.shape[..]))?;
    let repeats = |part: &Node| part.recomputes && count(&part.shape) < count(&shape);
    if parts.iter().any(repeats) {
        return unsupported(format!(
            "it combines the results of a reduction with more items, and the memory for such results has {KEPT} bytes"
        ));
    }
    let recomputes = parts.iter().any(|part| part.recomputes);
    Ok(Node { step: step(Box::new(parts)), of, shape, recomputes })
}

/// The common type of operands. NumPy: `result_type`.
fn common(one: &Node, other: &Node) -> Type {
    let weak = |literal: Literal, of: Type| match literal {
        Literal::Int(_) if of == Type::Bool => Type::I64,
        Literal::Float(_) if !of.is_float() => Type::F64,
        _ => of,
    };
    match (one.literal(), other.literal()) {
        (Some(literal), None) => weak(literal, other.of),
        (None, Some(literal)) => weak(literal, one.of),
        _ => one.of.promote(other.of),
    }
}

pub(super) struct Known {
    pub(super) name: String,
    pub(super) of: Type,
    pub(super) shape: Vec<u64>,
    /// As in [`Node`].
    pub(super) recomputes: bool,
}

pub(super) struct Planner<'a> {
    pub(super) operands: &'a [Known],
    /// The memory in which results can still be kept.
    pub(super) left: Cell<u64>,
}

/// A function of one argument whose results are floats.
fn real(name: &str) -> Option<Unary> {
    macro_rules! functions {
        ($($($name:literal)|+ => $function:ident,)*) => {
            Some(match name {
                $($($name)|+ => Unary::Real { f64: f64::$function, f32: f32::$function },)*
                "sqrt" => Unary::Sqrt,
                _ => return None,
            })
        };
    }
    functions! {
        "sin" => sin, "cos" => cos, "tan" => tan,
        "arcsin" | "asin" => asin, "arccos" | "acos" => acos, "arctan" | "atan" => atan,
        "sinh" => sinh, "cosh" => cosh, "tanh" => tanh,
        "arcsinh" | "asinh" => asinh, "arccosh" | "acosh" => acosh, "arctanh" | "atanh" => atanh,
        "exp" => exp, "expm1" => exp_m1, "exp2" => exp2, "log" => ln, "log1p" => ln_1p,
        "log2" => log2, "log10" => log10, "cbrt" => cbrt,
    }
}

/// Another function of one argument whose result does not depend on a common type.
fn unary(name: &str) -> Option<Unary> {
    Some(match name {
        "isnan" => Unary::IsNan,
        "isinf" => Unary::IsInf,
        "isfinite" => Unary::IsFinite,
        "signbit" => Unary::SignBit,
        "logical_not" => Unary::LogicalNot,
        "abs" | "absolute" => Unary::Abs,
        "floor" => Unary::Floor,
        "ceil" => Unary::Ceil,
        "trunc" => Unary::Trunc,
        "round" => Unary::Round,
        "sign" => Unary::Sign,
        "square" => Unary::Square,
        _ => return None,
    })
}

/// Whether a function is planned by its name alone.
fn is_other(name: &str) -> bool {
    let others = "where clip logical_and logical_or logical_xor negative positive bitwise_invert real conj reciprocal";
    others.split(' ').any(|other| other == name)
}

fn log_add_exp(one: f64, other: f64) -> f64 {
    if one == other {
        return one + std::f64::consts::LN_2;
    }
    let (small, large) = if one < other { (one, other) } else { (other, one) };
    match (small - large).is_nan() {
        true => small - large,
        false => large + (small - large).exp().ln_1p(),
    }
}

/// The operators and functions of two arguments.
fn pair(name: &str) -> Option<Binary> {
    use Binary::*;
    Some(match name {
        "+" | "add" => Add,
        "-" | "subtract" => Subtract,
        "*" | "multiply" => Multiply,
        "/" | "divide" | "true_divide" => Divide,
        "//" | "floor_divide" => FloorDivide,
        "%" | "remainder" | "mod" => Remainder,
        "**" | "pow" | "power" => Power,
        "minimum" => Minimum,
        "maximum" => Maximum,
        "&" | "bitwise_and" => And,
        "|" | "bitwise_or" => Or,
        "^" | "bitwise_xor" => Xor,
        "<<" | "bitwise_left_shift" => ShiftLeft,
        ">>" | "bitwise_right_shift" => ShiftRight,
        "<" | "less" => Compare(Comparison::Less),
        "<=" | "less_equal" => Compare(Comparison::LessEqual),
        ">" | "greater" => Compare(Comparison::Greater),
        ">=" | "greater_equal" => Compare(Comparison::GreaterEqual),
        "==" | "equal" => Compare(Comparison::Equal),
        "!=" | "not_equal" => Compare(Comparison::NotEqual),
        "arctan2" | "atan2" => Real { f64: f64::atan2, f32: f32::atan2 },
        "hypot" => Real { f64: f64::hypot, f32: f32::hypot },
        "copysign" => Real { f64: f64::copysign, f32: f32::copysign },
        "nextafter" => NextAfter,
        "logaddexp" => Real {
            f64: log_add_exp,
            f32: |one, other| log_add_exp(one.into(), other.into()) as f32,
        },
        _ => return None,
    })
}

fn reduction(name: &str) -> Option<Reduction> {
    Some(match name {
        "sum" => Reduction::Sum,
        "prod" => Reduction::Prod,
        "min" => Reduction::Min,
        "max" => Reduction::Max,
        "mean" => Reduction::Mean,
        "var" => Reduction::Var(0.0),
        "std" => Reduction::Std(0.0),
        "any" => Reduction::Any,
        "all" => Reduction::All,
        "count_nonzero" => Reduction::CountNonzero,
        "argmin" => Reduction::ArgMin,
        "argmax" => Reduction::ArgMax,
        _ => return None,
    })
}

impl Planner<'_> {
    pub(super) fn plan(&self, tree: &Tree) -> Result<Node> {
        match tree {
            Tree::Literal(literal) => Ok(Node::of_literal(*literal)),
            Tree::Name(name) => self.operand(name),
            Tree::None => unsupported("it uses `None` as an operand"),
            Tree::Tuple(_) => unsupported("it uses a tuple as an operand"),
            Tree::Unary("-", of) => self.negative(self.plan(of)?),
            Tree::Unary("~", of) => invert(self.plan(of)?),
            Tree::Unary(_, of) => positive(self.plan(of)?),
            Tree::Binary(mark, left, right) => {
                let Some(operation) = pair(mark) else {
                    return unsupported(format!("it uses the operator `{mark}`"));
                };
                binary(operation, mark, self.plan(left)?, self.plan(right)?)
            }
            Tree::Call(name, items, named) => self.call(name, items, named),
        }
    }

    fn operand(&self, name: &str) -> Result<Node> {
        match self.operands.iter().position(|known| known.name == name) {
            Some(at) => {
                let Known { of, shape, recomputes, .. } = &self.operands[at];
                let (shape, recomputes) = (shape.clone(), *recomputes);
                Ok(Node { step: Step::Operand(at), of: *of, shape, recomputes })
            }
            None if name == "nan" => Ok(Node::of_literal(Literal::Float(f64::NAN))),
            None if name == "inf" => Ok(Node::of_literal(Literal::Float(f64::INFINITY))),
            None if name == "pi" => Ok(Node::of_literal(Literal::Float(std::f64::consts::PI))),
            None => unsupported(format!("its operand `{name}` is missing")),
        }
    }

    fn negative(&self, of: Node) -> Result<Node> {
        match of.step {
            Step::Literal(Literal::Int(integer)) => {
                Ok(Node::of_literal(Literal::Int(integer.wrapping_neg())))
            }
            Step::Literal(Literal::Float(float)) => Ok(Node::of_literal(Literal::Float(-float))),
            Step::Literal(Literal::Bool(bool)) => {
                Ok(Node::of_literal(Literal::Int(-i128::from(bool))))
            }
            _ if of.of == Type::Bool => invalid("it negates a bool with `-`"),
            _ => {
                let result = of.of;
                Ok(Node::unary(Unary::Negative, of, result))
            }
        }
    }

    fn call(&self, name: &str, items: &[Tree], named: &[(String, Tree)]) -> Result<Node> {
        if let Some(reduction) = reduction(name) {
            return self.reduce(reduction, name, items, named);
        }
        let operation = pair(name);
        let is_known =
            real(name).is_some() || operation.is_some() || unary(name).is_some() || is_other(name);
        if !is_known {
            return unsupported(format!("it calls `{name}`, which is not a supported function"));
        }
        if let Some((option, _)) = named.first() {
            return unsupported(format!("it calls `{name}` with the argument `{option}`"));
        }
        let parts = items.iter().map(|item| self.plan(item)).collect::<Result<Vec<_>>>()?;
        let found = parts.len();
        // The results of NumPy and of Python's Blosc2 have different dtypes.
        if found > 1 && parts.iter().all(|part| matches!(part.step, Step::Literal(_))) {
            return unsupported(format!("it calls `{name}` with numbers only"));
        }
        let mut parts = parts.into_iter();
        let first = [(); 3].map(|()| parts.next());
        match (name, operation, first, parts.next()) {
            (_, Some(operation), [Some(left), Some(right), None], _) => {
                binary(operation, name, left, right)
            }
            ("where", _, [Some(condition), Some(one), Some(other)], None) => {
                select(condition, one, other)
            }
            ("clip", _, [Some(of), Some(low), Some(high)], None) => {
                let raised = binary(Binary::Maximum, name, of, low)?;
                binary(Binary::Minimum, name, raised, high)
            }
            (
                "logical_and" | "logical_or" | "logical_xor",
                _,
                [Some(left), Some(right), None],
                _,
            ) => {
                let operation = pair(&name.replace("logical", "bitwise")).unwrap_or(Binary::And);
                binary(operation, name, left.cast(Type::Bool)?, right.cast(Type::Bool)?)
            }
            (_, None, [Some(of), None, _], _) => self.function(name, of),
            _ => invalid(format!("it calls `{name}` with {found} arguments")),
        }
    }

    /// Plans a function of one argument.
    fn function(&self, name: &str, of: Node) -> Result<Node> {
        let of = of.typed()?;
        if let Some(operation) = real(name) {
            let result = of.of.to_float();
            return Ok(Node::unary(operation, of.cast(result)?, result));
        }
        let operation = match name {
            "negative" => return self.negative(of),
            "positive" => return positive(of),
            "bitwise_invert" => return invert(of),
            "conj" if of.of == Type::Bool => return of.cast(Type::I8),
            "real" | "conj" => return Ok(of),
            "reciprocal" => {
                let result = if of.of.is_float() { of.of } else { Type::F64 };
                return Ok(Node::unary(Unary::Reciprocal, of.cast(result)?, result));
            }
            _ => match unary(name) {
                Some(operation) => operation,
                None => return unsupported(format!("it calls `{name}` with one argument")),
            },
        };
        let result = match operation {
            Unary::IsNan | Unary::IsInf | Unary::IsFinite | Unary::SignBit | Unary::LogicalNot => {
                Type::Bool
            }
            Unary::Square if of.of == Type::Bool => Type::I8,
            Unary::Round if of.of == Type::Bool => Type::F16,
            Unary::Sign if of.of == Type::Bool => {
                return invalid(format!("it calls `{name}` with a bool"));
            }
            _ => of.of,
        };
        let of =
            if matches!(operation, Unary::Square | Unary::Round) { of.cast(result)? } else { of };
        Ok(Node::unary(operation, of, result))
    }

    fn reduce(
        &self,
        mut reduction: Reduction,
        name: &str,
        items: &[Tree],
        named: &[(String, Tree)],
    ) -> Result<Node> {
        let (of, mut axis) = match items {
            [of] => (self.plan(of)?, None),
            [of, axis] => (self.plan(of)?, Some(axis)),
            _ => return invalid(format!("it calls `{name}` with {} arguments", items.len())),
        };
        let of = of.typed()?;
        let mut keepdims = false;
        for (at, (option, value)) in named.iter().enumerate() {
            let is_repeated = named[..at].iter().any(|(earlier, _)| earlier == option);
            if is_repeated || option == "axis" && axis.is_some() {
                return invalid(format!("it calls `{name}` with two arguments `{option}`"));
            }
            match (option.as_str(), value) {
                ("axis", value) => axis = Some(value),
                ("dtype" | "out", Tree::None) => {}
                ("keepdims", Tree::Literal(Literal::Bool(keep))) => keepdims = *keep,
                ("ddof" | "correction", value) => {
                    let (Reduction::Var(ddof) | Reduction::Std(ddof)) = &mut reduction else {
                        return invalid(format!("it calls `{name}` with `{option}`"));
                    };
                    *ddof = match self.plan(value)?.step {
                        Step::Literal(Literal::Int(integer)) => integer as f64,
                        Step::Literal(Literal::Float(float)) => float,
                        _ => {
                            return unsupported(format!(
                                "it calls `{name}` with `{option}` that is not a number"
                            ));
                        }
                    };
                }
                _ => return unsupported(format!("it calls `{name}` with the argument `{option}`")),
            }
        }
        let ndim = of.shape.len();
        let mut axes = vec![false; ndim];
        let integer = |axis: &Tree| match self.plan(axis)?.step {
            Step::Literal(Literal::Int(axis)) => Ok(axis),
            _ => unsupported(format!("it calls `{name}` with an axis that is not an integer")),
        };
        let mut add = |axis: i128| {
            let place = if axis < 0 { axis + ndim as i128 } else { axis };
            match usize::try_from(place).ok().and_then(|place| axes.get_mut(place)) {
                Some(reduced) if !*reduced => {
                    *reduced = true;
                    Ok(())
                }
                _ => invalid(format!(
                    "it calls `{name}` with axis {axis}, and there are {ndim} axes"
                )),
            }
        };
        match axis {
            None | Some(Tree::None) => axes.fill(true),
            Some(Tree::Tuple(list)) => list.iter().try_for_each(|axis| add(integer(axis)?))?,
            Some(axis) => match integer(axis)? {
                // NumPy accepts these axes of a single item.
                0 | -1 if ndim == 0 => {}
                axis => add(axis)?,
            },
        }
        let reduced = axes.iter().filter(|reduced| **reduced).count();
        let is_position = matches!(reduction, Reduction::ArgMin | Reduction::ArgMax);
        if is_position && reduced > 1 && reduced < ndim {
            return invalid(format!("it calls `{name}` with several axes"));
        }
        let sizes = of.shape.iter().zip(&axes);
        if !reduction.accepts_none() && sizes.clone().any(|(size, reduced)| *reduced && *size == 0)
        {
            return invalid(format!("it calls `{name}` for no items"));
        }
        let shape: Vec<u64> = sizes
            .filter_map(|(size, reduced)| match (*reduced, keepdims) {
                (false, _) => Some(*size),
                (true, true) => Some(1),
                (true, false) => None,
            })
            .collect();
        let result = reduction.result(of.of);
        let nbytes = count(&shape).saturating_mul(result.size() as u64);
        let left = self.left.get().checked_sub(nbytes);
        if let Some(left) = left {
            self.left.set(left);
        } else if of.recomputes {
            // Through several files, the work would multiply.
            return unsupported(format!(
                "it calls `{name}` of a reduction, and the memory for results of reductions has {KEPT} bytes"
            ));
        }
        let kept = left.map(|_| Mutex::default());
        let recomputes = kept.is_none();
        let reduce = Reduce { reduction, of, axes, keepdims, kept };
        Ok(Node { step: Step::Reduce(Box::new(reduce)), of: result, shape, recomputes })
    }
}

fn positive(of: Node) -> Result<Node> {
    match of.step {
        Step::Literal(Literal::Bool(bool)) => Ok(Node::of_literal(Literal::Int(bool.into()))),
        _ if of.of == Type::Bool => invalid("it uses `+` with a bool"),
        _ => Ok(of),
    }
}

fn invert(of: Node) -> Result<Node> {
    let result = of.of;
    match result.is_float() {
        true => invalid("it uses `~` with a float"),
        false if matches!(of.step, Step::Literal(_)) => unsupported("it uses `~` with a number"),
        false => Ok(Node::unary(Unary::Invert, of, result)),
    }
}

fn select(condition: Node, one: Node, other: Node) -> Result<Node> {
    let of = common(&one, &other);
    let parts = [condition.cast(Type::Bool)?, one.cast(of)?, other.cast(of)?];
    combine(parts, of, Step::Select)
}

/// Computes with two numbers as Python does; `None` if that is not supported, or the result has too many bits.
fn fold(operation: Binary, left: Literal, right: Literal) -> Option<Literal> {
    let integer = |literal| match literal {
        Literal::Bool(bool) => Some(i128::from(bool)),
        Literal::Int(integer) => Some(integer),
        Literal::Float(_) => None,
    };
    let float = |literal| match literal {
        Literal::Float(float) => Some(float),
        // A float holds integers of 53 bits.
        _ => integer(literal).filter(|int| int.unsigned_abs() <= 1 << 53).map(|int| int as f64),
    };
    if let (Some(one), Some(other)) = (integer(left), integer(right))
        && !matches!(operation, Binary::Divide)
    {
        let are_bools = matches!((left, right), (Literal::Bool(_), Literal::Bool(_)));
        let integer = match operation {
            Binary::Compare(comparison) => return Some(Literal::Bool(comparison.of(one, other))),
            Binary::Add => one.checked_add(other)?,
            Binary::Subtract => one.checked_sub(other)?,
            Binary::Multiply => one.checked_mul(other)?,
            Binary::Power => one.checked_pow(u32::try_from(other).ok()?)?,
            Binary::And | Binary::Or | Binary::Xor if are_bools => {
                return Some(Literal::Bool(
                    match operation {
                        Binary::And => one & other,
                        Binary::Or => one | other,
                        _ => one ^ other,
                    } != 0,
                ));
            }
            _ => return None,
        };
        return Some(Literal::Int(integer));
    }
    let (left, right) = (float(left)?, float(right)?);
    Some(Literal::Float(match operation {
        Binary::Add => left + right,
        Binary::Subtract => left - right,
        Binary::Multiply => left * right,
        Binary::Divide if right != 0.0 => left / right,
        Binary::Compare(comparison) => return Some(Literal::Bool(comparison.of(left, right))),
        _ => return None,
    }))
}

fn binary(operation: Binary, name: &str, left: Node, right: Node) -> Result<Node> {
    if let (Step::Literal(left), Step::Literal(right)) = (&left.step, &right.step) {
        return match fold(operation, *left, *right) {
            Some(literal) => Ok(Node::of_literal(literal)),
            None => unsupported(format!("it uses `{name}` with two numbers")),
        };
    }
    let shared = common(&left, &right);
    // NumPy computes this power, too, as a square root, which differs for -0 and -inf.
    if let (Binary::Power, "**", Some(Literal::Float(0.5))) = (operation, name, right.literal()) {
        return Ok(Node::unary(Unary::Sqrt, left.cast(shared)?, shared));
    }
    if let Binary::Compare(comparison) = operation {
        let integers = !left.of.is_float() && !right.of.is_float();
        let fits = |node: &Node| match node.step {
            Step::Literal(Literal::Int(integer)) => shared.is_integer() && shared.holds(integer),
            _ => true,
        };
        if integers && (shared.is_float() || !fits(&left) || !fits(&right)) {
            let step = |parts| Step::CompareIntegers(comparison, parts);
            return combine([left, right], Type::Bool, step);
        }
    }
    let is_bool = shared == Type::Bool;
    let of = match operation {
        Binary::Subtract if is_bool => return invalid("it subtracts bools"),
        Binary::Divide if !shared.is_float() => Type::F64,
        Binary::FloorDivide | Binary::Remainder | Binary::Power if is_bool => Type::I8,
        Binary::ShiftLeft | Binary::ShiftRight if is_bool => Type::I8,
        Binary::Real { .. } | Binary::NextAfter => shared.to_float(),
        Binary::And | Binary::Or | Binary::Xor | Binary::ShiftLeft | Binary::ShiftRight
            if shared.is_float() =>
        {
            return invalid(format!("it uses `{name}` with floats"));
        }
        _ => shared,
    };
    let result = if matches!(operation, Binary::Compare(_)) { Type::Bool } else { of };
    let parts = [left.cast(of)?, right.cast(of)?];
    combine(parts, result, |parts| Step::Binary(operation, parts))
}
