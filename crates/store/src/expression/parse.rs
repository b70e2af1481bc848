//! The text of an expression as a tree. Nothing is looked up or executed.

use crate::blosc2::ErrorKind;
use crate::tag::Fault;

/// The largest length of a text, in bytes.
const MAX_LENGTH: usize = 64 << 10;

/// The largest depth of a tree. Everything that walks a tree is recursive.
pub(super) const MAX_DEPTH: usize = 128;

/// A literal. As in NumPy, a number does not determine the type of a result alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Literal {
    Bool(bool),
    Int(i128),
    Float(f64),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Tree {
    Name(String),
    Literal(Literal),
    None,
    Tuple(Vec<Tree>),
    /// An operator with one operand: `-`, `+` or `~`.
    Unary(&'static str, Box<Tree>),
    Binary(&'static str, Box<Tree>, Box<Tree>),
    /// A call, with the arguments without and with names. The object of a method is the first argument.
    Call(String, Vec<Tree>, Vec<(String, Tree)>),
}

impl Tree {
    fn depth(&self) -> usize {
        // The parser limits the depth.
        let below = match self {
            Self::Name(_) | Self::Literal(_) | Self::None => 0,
            Self::Tuple(items) => items.iter().map(Self::depth).max().unwrap_or(0),
            Self::Unary(_, item) => item.depth(),
            Self::Binary(_, left, right) => left.depth().max(right.depth()),
            Self::Call(_, items, named) => {
                let named = named.iter().map(|(_, item)| item);
                items.iter().chain(named).map(Self::depth).max().unwrap_or(0)
            }
        };
        below + 1
    }
}

type Result<T> = std::result::Result<T, Fault>;

pub(super) fn unsupported<T>(detail: impl Into<String>) -> Result<T> {
    Err((ErrorKind::Unsupported, detail.into()))
}

pub(super) fn invalid<T>(detail: impl Into<String>) -> Result<T> {
    Err((ErrorKind::InvalidData, detail.into()))
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Name(String),
    Number(Literal),
    /// An operator, a bracket or a comma.
    Mark(&'static str),
}

/// Longer ones first.
const MARKS: [&str; 25] = [
    "**", "//", "<<", ">>", "<=", ">=", "==", "!=", "+", "-", "*", "/", "%", "<", ">", "&", "|",
    "^", "~", "(", ")", ",", ".", "=", "@",
];

fn tokens(text: &str) -> Result<Vec<Token>> {
    if text.len() > MAX_LENGTH {
        let len = text.len();
        return unsupported(format!("its text has {len} bytes, expected up to {MAX_LENGTH}"));
    }
    let (mut found, mut rest) = (Vec::new(), text.trim_start());
    while let Some(first) = rest.chars().next() {
        let len = if first.is_alphabetic() || first == '_' {
            let len = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            found.push(Token::Name(rest[..len].to_owned()));
            len
        } else if starts_number(rest) {
            let (number, len) = number(rest)?;
            found.push(Token::Number(number));
            len
        } else if let Some(mark) = MARKS.iter().find(|mark| rest.starts_with(**mark)) {
            found.push(Token::Mark(mark));
            mark.len()
        } else {
            return unsupported(match first {
                '\'' | '"' => "it contains text in quotes".to_owned(),
                '[' | ']' => "it selects items by an index, `[...]`".to_owned(),
                ':' => "it contains code with a `:`".to_owned(),
                other => format!("it contains the character {other:?}"),
            });
        };
        rest = rest[len..].trim_start();
    }
    Ok(found)
}

fn starts_number(text: &str) -> bool {
    let mut bytes = text.bytes();
    match bytes.next() {
        Some(b'.') => bytes.next().is_some_and(|byte| byte.is_ascii_digit()),
        first => first.is_some_and(|byte| byte.is_ascii_digit()),
    }
}

/// The number at the start of a text, and its length.
fn number(text: &str) -> Result<(Literal, usize)> {
    let digits = |from: usize| {
        let len = text[from..].bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'_');
        from + len.count()
    };
    let byte = |at: usize| text.as_bytes().get(at).copied();
    let mut end = digits(0);
    let mut is_float = false;
    if byte(end) == Some(b'.') {
        is_float = true;
        end = digits(end + 1);
    }
    if matches!(byte(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(byte(end + 1), Some(b'+' | b'-')));
        let after = digits(end + 1 + sign);
        if after > end + 1 + sign {
            (is_float, end) = (true, after);
        }
    }
    if matches!(byte(end), Some(b'j' | b'J')) {
        return unsupported("it contains a complex number");
    }
    let plain = text[..end].replace('_', "");
    if !is_float && plain.starts_with('0') && plain.bytes().any(|byte| byte != b'0') {
        return invalid(format!("its integer `{plain}` starts with 0"));
    }
    if text[end..].starts_with(|c: char| c.is_alphanumeric() || c == '_') {
        return unsupported(format!("it contains a number with letters after `{plain}`"));
    }
    let literal = match is_float {
        true => plain.parse().map(Literal::Float).ok(),
        false => plain.parse().map(Literal::Int).ok(),
    };
    match literal {
        Some(literal) => Ok((literal, end)),
        None => unsupported("it contains an integer of more than 127 bits"),
    }
}

pub(super) fn parse(text: &str) -> Result<Tree> {
    let mut parser = Parser { tokens: tokens(text)?, at: 0, depth: 0 };
    let tree = parser.expression(0)?;
    match parser.next() {
        None if tree.depth() > MAX_DEPTH => too_deep(),
        None => Ok(tree),
        Some(token) => unexpected(&token),
    }
}

fn unexpected<T>(token: &Token) -> Result<T> {
    const WORDS: [&str; 8] = ["if", "for", "lambda", "and", "or", "not", "in", "is"];
    match token {
        Token::Name(name) if WORDS.contains(&name.as_str()) => {
            unsupported(format!("it uses Python's `{name}`"))
        }
        Token::Name(name) => invalid(format!("the name `{name}` does not follow an operator")),
        Token::Number(_) => invalid("a number does not follow an operator"),
        Token::Mark("@") => unsupported("it uses a matrix product, `@`"),
        Token::Mark(mark) => invalid(format!("`{mark}` is at the wrong place")),
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

/// How tightly an operator with two operands binds.
fn binding(mark: &str) -> Option<u8> {
    Some(match mark {
        "<" | "<=" | ">" | ">=" | "==" | "!=" => COMPARISON,
        "|" => 2,
        "^" => 3,
        "&" => 4,
        "<<" | ">>" => 5,
        "+" | "-" => 6,
        "*" | "/" | "//" | "%" => 7,
        "**" => POWER,
        _ => return None,
    })
}

const COMPARISON: u8 = 1;
const UNARY: u8 = 8;
const POWER: u8 = 9;

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn next(&mut self) -> Option<Token> {
        self.at += 1;
        self.tokens.get(self.at - 1).cloned()
    }

    fn take(&mut self, mark: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Mark(next)) if *next == mark);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, mark: &str) -> Result<()> {
        if self.take(mark) {
            return Ok(());
        }
        match self.next() {
            Some(token) => unexpected(&token),
            None => invalid(format!("it ends where `{mark}` is expected")),
        }
    }

    /// Parses operators that bind at least as tightly as `tightness`.
    fn expression(&mut self, tightness: u8) -> Result<Tree> {
        self.depth += 1;
        // A level of the tree, such as `a + (b + c)`, takes two: one on the right of the operator, one in parentheses.
        if self.depth > 2 * MAX_DEPTH {
            return too_deep();
        }
        let mut left = self.operand()?;
        // A chain of operators of the same binding makes the tree as deep as it is long.
        let mut depth = left.depth();
        let mut compared = false;
        while let Some(Token::Mark(mark)) = self.peek() {
            let mark = *mark;
            let Some(found) = binding(mark).filter(|found| *found >= tightness) else { break };
            if found == COMPARISON && std::mem::replace(&mut compared, true) {
                return unsupported("it chains comparisons");
            }
            self.at += 1;
            // The exponent can have a sign, and powers are grouped from the right.
            let right = self.expression(if found == POWER { UNARY } else { found + 1 })?;
            depth = depth.max(right.depth()) + 1;
            if depth > MAX_DEPTH {
                return too_deep();
            }
            left = Tree::Binary(mark, Box::new(left), Box::new(right));
        }
        self.depth -= 1;
        Ok(left)
    }

    fn operand(&mut self) -> Result<Tree> {
        let token = self.next();
        let mut tree = match token {
            None => return invalid("it ends where an operand is expected"),
            Some(Token::Mark(mark @ ("-" | "+" | "~"))) => {
                return Ok(Tree::Unary(mark, Box::new(self.expression(UNARY)?)));
            }
            Some(Token::Mark("(")) => self.parenthesis()?,
            Some(Token::Number(number)) => Tree::Literal(number),
            Some(Token::Name(name)) => match name.as_str() {
                "True" => Tree::Literal(Literal::Bool(true)),
                "False" => Tree::Literal(Literal::Bool(false)),
                "None" => Tree::None,
                "not" | "lambda" => return unexpected(&Token::Name(name)),
                _ if self.take("(") => {
                    let (items, named) = self.arguments()?;
                    Tree::Call(name, items, named)
                }
                _ => Tree::Name(name),
            },
            Some(token) => return unexpected(&token),
        };
        while self.take(".") {
            let Some(Token::Name(name)) = self.next() else {
                return invalid("a `.` is not followed by a name");
            };
            if !self.take("(") {
                return unsupported(format!("it uses the attribute `.{name}`"));
            }
            let (mut items, named) = self.arguments()?;
            items.insert(0, tree);
            tree = Tree::Call(name, items, named);
            if tree.depth() > MAX_DEPTH {
                return too_deep();
            }
        }
        Ok(tree)
    }

    /// Parses the rest of a parenthesis: an expression, or a tuple.
    fn parenthesis(&mut self) -> Result<Tree> {
        if self.take(")") {
            return Ok(Tree::Tuple(Vec::new()));
        }
        let first = self.expression(0)?;
        if self.take(")") {
            return Ok(first);
        }
        let mut items = vec![first];
        while self.take(",") {
            if self.take(")") {
                return Ok(Tree::Tuple(items));
            }
            items.push(self.expression(0)?);
        }
        self.expect(")")?;
        Ok(Tree::Tuple(items))
    }

    /// Parses the arguments of a call after the parenthesis.
    #[expect(clippy::type_complexity, reason = "the two parts of a call")]
    fn arguments(&mut self) -> Result<(Vec<Tree>, Vec<(String, Tree)>)> {
        let (mut items, mut named) = (Vec::new(), Vec::new());
        while !self.take(")") {
            let name = match (self.peek(), self.tokens.get(self.at + 1)) {
                (Some(Token::Name(name)), Some(Token::Mark("="))) => Some(name.clone()),
                _ => None,
            };
            match name {
                Some(name) => {
                    self.at += 2;
                    named.push((name, self.expression(0)?));
                }
                None if named.is_empty() => items.push(self.expression(0)?),
                None => return invalid("an argument without a name follows one with a name"),
            }
            if !self.take(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok((items, named))
    }
}

fn too_deep<T>() -> Result<T> {
    unsupported(format!("it is nested deeper than {MAX_DEPTH} levels"))
}
