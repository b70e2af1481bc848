//! The types and shapes of the parts of an expression.

use std::sync::Mutex;

use super::apply::{Binary, Comparison, Unary, next_after_f32, next_after_f64};
use super::items::{Items, Type};
use super::parse::{Fault, Literal, Tree, invalid, unsupported};
use super::reduce::Reduction;

type Result<T> = std::result::Result<T, Fault>;

/// Results of up to this number of items are computed once. Larger ones are computed where they are needed.
pub(super) const KEPT: u64 = 1 << 18;

/// A part of an expression.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) step: Step,
    pub(super) of: Type,
    pub(super) shape: Vec<u64>,
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
    /// The results, if they are few and computed.
    pub(super) kept: Mutex<Option<Items>>,
}

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
        Self { step: Step::Literal(literal), of, shape: Vec::new() }
    }

    fn cast(self, to: Type) -> Result<Self> {
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
            Step::Literal(_) => Self { of: to, ..self },
            _ => {
                let shape = self.shape.clone();
                Self { step: Step::Cast(Box::new(self)), of: to, shape }
            }
        })
    }

    fn unary(operation: Unary, of: Self, result: Type) -> Self {
        let shape = of.shape.clone();
        Self { step: Step::Unary(operation, Box::new(of)), of: result, shape }
    }

    /// Whether a part is a reduction with more results than are kept.
    fn repeats_work(&self) -> bool {
        match &self.step {
            Step::Operand(_) | Step::Literal(_) => false,
            Step::Cast(of) | Step::Unary(_, of) => of.repeats_work(),
            Step::Binary(_, of) | Step::CompareIntegers(_, of) => of.iter().any(Self::repeats_work),
            Step::Select(of) => of.iter().any(Self::repeats_work),
            Step::Reduce(reduce) => count(&self.shape) > KEPT || reduce.of.repeats_work(),
        }
    }

    /// Whether a part combines items of different rows, the positions on the first axis.
    pub(super) fn combines_rows(&self) -> bool {
        match &self.step {
            Step::Operand(_) | Step::Literal(_) => false,
            Step::Cast(of) | Step::Unary(_, of) => of.combines_rows(),
            Step::Binary(_, of) | Step::CompareIntegers(_, of) => {
                of.iter().any(Self::combines_rows)
            }
            Step::Select(of) => of.iter().any(Self::combines_rows),
            Step::Reduce(reduce) => {
                reduce.axes.first().is_some_and(|reduced| *reduced) || reduce.of.combines_rows()
            }
        }
    }
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
    // Positions are 64-bit integers.
    if count(&found) > i64::MAX as u64 {
        return unsupported(format!(
            "its operands have the shapes {shapes:?}, together more than 2^63 items"
        ));
    }
    Ok(found)
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

/// Plans the parts of an expression.
pub(super) struct Planner<'a> {
    /// The name, the type and the shape of each operand.
    pub(super) operands: &'a [(String, Type, Vec<u64>)],
}

/// A function of one argument whose results are floats.
fn real(name: &str) -> Option<Unary> {
    macro_rules! functions {
        ($($($name:literal)|+ => $function:ident,)*) => {
            Some(match name {
                $($($name)|+ => Unary::Real(f64::$function, f32::$function),)*
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
        "arctan2" | "atan2" => Real(f64::atan2, f32::atan2),
        "hypot" => Real(f64::hypot, f32::hypot),
        "copysign" => Real(f64::copysign, f32::copysign),
        "nextafter" => Real(next_after_f64, next_after_f32),
        "logaddexp" => Real(log_add_exp, |one, other| log_add_exp(one.into(), other.into()) as f32),
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
            Tree::Unary('-', of) => self.negative(self.plan(of)?),
            Tree::Unary('~', of) => invert(self.plan(of)?),
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
        match self.operands.iter().position(|(known, ..)| known == name) {
            Some(at) => {
                let (_, of, shape) = &self.operands[at];
                Ok(Node { step: Step::Operand(at), of: *of, shape: shape.clone() })
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
        let known = real(name).is_some() || pair(name).is_some() || OTHERS.contains(&name);
        if !known {
            return unsupported(format!("it calls `{name}`, which is not a supported function"));
        }
        if let Some((option, _)) = named.first() {
            return unsupported(format!("it calls `{name}` with the argument `{option}`"));
        }
        let mut parts = Vec::with_capacity(items.len());
        for item in items {
            parts.push(self.plan(item)?);
        }
        let found = parts.len();
        let wrong = || invalid(format!("it calls `{name}` with {found} arguments"));
        if let Some(operation) = pair(name) {
            let Ok([left, right]) = <[Node; 2]>::try_from(parts) else { return wrong() };
            return binary(operation, name, left, right);
        }
        match (name, &mut parts[..]) {
            ("where", [_, _, _]) => {
                let Ok([condition, one, other]) = <[Node; 3]>::try_from(parts) else {
                    return wrong();
                };
                select(condition, one, other)
            }
            ("clip", [_, _, _]) => {
                let Ok([of, low, high]) = <[Node; 3]>::try_from(parts) else { return wrong() };
                let raised = binary(Binary::Maximum, name, of, low)?;
                binary(Binary::Minimum, name, raised, high)
            }
            ("logical_and" | "logical_or" | "logical_xor", [_, _]) => {
                let Ok([left, right]) = <[Node; 2]>::try_from(parts) else { return wrong() };
                let operation = pair(&name.replace("logical", "bitwise")).unwrap_or(Binary::And);
                binary(operation, name, left.cast(Type::Bool)?, right.cast(Type::Bool)?)
            }
            (_, [_]) => {
                let Some(of) = parts.pop() else { return wrong() };
                self.function(name, of)
            }
            _ => wrong(),
        }
    }

    /// Plans a function of one argument.
    fn function(&self, name: &str, of: Node) -> Result<Node> {
        if let Some(operation) = real(name) {
            let result = of.of.to_float();
            return Ok(Node::unary(operation, of.cast(result)?, result));
        }
        let operation = match name {
            "negative" => return self.negative(of),
            "positive" => return positive(of),
            "bitwise_invert" => return invert(of),
            "real" | "conj" => return Ok(of),
            "reciprocal" => {
                let result = if of.of.is_float() { of.of } else { Type::F64 };
                return Ok(Node::unary(Unary::Reciprocal, of.cast(result)?, result));
            }
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
            _ => return unsupported(format!("it calls `{name}` with one argument")),
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
        let (of, axis) = match items {
            [of] => (self.plan(of)?, None),
            [of, axis] => (self.plan(of)?, Some(axis)),
            _ => return invalid(format!("it calls `{name}` with {} arguments", items.len())),
        };
        let (mut axis, mut keepdims) = (axis, false);
        for (option, value) in named {
            match (option.as_str(), value) {
                ("axis", value) => axis = Some(value),
                ("keepdims", Tree::Literal(Literal::Bool(keep))) => keepdims = *keep,
                ("ddof" | "correction", Tree::Literal(literal)) => {
                    let ddof = match literal {
                        Literal::Int(ddof) => *ddof as f64,
                        Literal::Float(ddof) => *ddof,
                        Literal::Bool(ddof) => f64::from(*ddof),
                    };
                    match &mut reduction {
                        Reduction::Var(old) | Reduction::Std(old) => *old = ddof,
                        _ => return invalid(format!("it calls `{name}` with `{option}`")),
                    }
                }
                (_, Tree::None) => {}
                _ => return unsupported(format!("it calls `{name}` with the argument `{option}`")),
            }
        }
        let ndim = of.shape.len();
        let mut axes = vec![false; ndim];
        let mut add = |axis: &Tree| {
            let axis = match axis {
                Tree::Literal(Literal::Int(axis)) => Some(*axis),
                Tree::Unary('-', axis) => match **axis {
                    Tree::Literal(Literal::Int(axis)) => Some(-axis),
                    _ => None,
                },
                _ => None,
            };
            let Some(axis) = axis else {
                return unsupported(format!(
                    "it calls `{name}` with an axis that is not an integer"
                ));
            };
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
            Some(Tree::Tuple(list)) => list.iter().try_for_each(&mut add)?,
            Some(axis) => add(axis)?,
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
        if count(&shape) > KEPT && of.repeats_work() {
            return unsupported(format!(
                "it calls `{name}` of a reduction, both with more than {KEPT} results"
            ));
        }
        let result = reduction.result(of.of);
        let reduce = Reduce { reduction, of, axes, keepdims, kept: Mutex::default() };
        Ok(Node { step: Step::Reduce(Box::new(reduce)), of: result, shape })
    }
}

/// The functions that are neither in `real` nor in `pair`.
const OTHERS: [&str; 24] = [
    "where",
    "clip",
    "logical_and",
    "logical_or",
    "logical_xor",
    "logical_not",
    "negative",
    "positive",
    "bitwise_invert",
    "real",
    "conj",
    "reciprocal",
    "isnan",
    "isinf",
    "isfinite",
    "signbit",
    "abs",
    "absolute",
    "floor",
    "ceil",
    "trunc",
    "round",
    "sign",
    "square",
];

fn positive(of: Node) -> Result<Node> {
    match of.of {
        Type::Bool => invalid("it uses `+` with a bool"),
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
    let shape = broadcast(&[&condition.shape, &one.shape, &other.shape])?;
    let parts = [condition.cast(Type::Bool)?, one.cast(of)?, other.cast(of)?];
    Ok(Node { step: Step::Select(Box::new(parts)), of, shape })
}

/// Computes with two numbers of Python; `None` if the result is not exact.
fn fold(operation: Binary, left: Literal, right: Literal) -> Option<Literal> {
    let float = |literal| match literal {
        Literal::Int(integer) => integer as f64,
        Literal::Float(float) => float,
        Literal::Bool(bool) => f64::from(bool),
    };
    if let (Literal::Int(left), Literal::Int(right)) = (left, right) {
        if let Binary::Compare(comparison) = operation {
            return Some(Literal::Bool(comparison.of(left, right)));
        }
        let integer = match operation {
            Binary::Add => left.checked_add(right),
            Binary::Subtract => left.checked_sub(right),
            Binary::Multiply => left.checked_mul(right),
            Binary::Power => u32::try_from(right).ok().and_then(|right| left.checked_pow(right)),
            _ => None,
        };
        if let Some(integer) = integer {
            return Some(Literal::Int(integer));
        }
    }
    let (left, right) = (float(left), float(right));
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
    if let (Some(left), Some(right)) = (left.literal(), right.literal()) {
        return match fold(operation, left, right) {
            Some(literal) => Ok(Node::of_literal(literal)),
            None => unsupported(format!("it uses `{name}` with two numbers")),
        };
    }
    let shape = broadcast(&[&left.shape, &right.shape])?;
    let shared = common(&left, &right);
    if let Binary::Compare(comparison) = operation {
        let integers = !left.of.is_float() && !right.of.is_float();
        let fits = |node: &Node| match node.step {
            Step::Literal(Literal::Int(integer)) => shared.is_integer() && shared.holds(integer),
            _ => true,
        };
        if integers && (shared.is_float() || !fits(&left) || !fits(&right)) {
            let step = Step::CompareIntegers(comparison, Box::new([left, right]));
            return Ok(Node { step, of: Type::Bool, shape });
        }
    }
    let is_bool = shared == Type::Bool;
    let of = match operation {
        Binary::Subtract if is_bool => return invalid("it subtracts bools"),
        Binary::Divide if !shared.is_float() => Type::F64,
        Binary::FloorDivide | Binary::Remainder | Binary::Power if is_bool => Type::I8,
        Binary::ShiftLeft | Binary::ShiftRight if is_bool => Type::I8,
        Binary::Real(..) => shared.to_float(),
        Binary::And | Binary::Or | Binary::Xor | Binary::ShiftLeft | Binary::ShiftRight
            if shared.is_float() =>
        {
            return invalid(format!("it uses `{name}` with floats"));
        }
        _ => shared,
    };
    let result = if matches!(operation, Binary::Compare(_)) { Type::Bool } else { of };
    let parts = [left.cast(of)?, right.cast(of)?];
    Ok(Node { step: Step::Binary(operation, Box::new(parts)), of: result, shape })
}
