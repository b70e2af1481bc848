//! Values for metalayers: as Python objects, and as stored bytes.

use rmpv::Value as Stored;

use crate::common::Rng;

/// A value of Python's.
#[derive(Debug, Clone)]
pub(crate) struct Value {
    /// The expression for it.
    pub(crate) text: String,
    /// What is stored of it, in msgpack.
    pub(crate) stored: Stored,
}

/// The mark that Python writes before the items of a tuple.
const TUPLE: &str = "__tuple__";
/// The extension type of complex numbers, which fixed metalayers do not have.
const COMPLEX: i8 = 44;

impl Value {
    /// The bytes of a metalayer.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        rmpv::encode::write_value(&mut bytes, &self.stored).unwrap();
        bytes
    }

    /// As the library has it.
    pub(crate) fn value(&self) -> blosc2::Value {
        blosc2::Value::from_msgpack(&self.bytes()).unwrap()
    }

    pub(crate) fn random(rng: &mut Rng, depth: u32, extended: bool) -> Self {
        // At the bottom there are none that hold others.
        let kind = match rng.below(if depth == 0 { 6 } else { 9 } + u64::from(extended)) {
            6 if depth == 0 => 9,
            kind => kind,
        };
        let (text, stored) = match kind {
            0 => ("None".to_owned(), Stored::Nil),
            1 => match rng.below(2) {
                0 => ("False".to_owned(), Stored::Boolean(false)),
                _ => ("True".to_owned(), Stored::Boolean(true)),
            },
            2 => match rng.below(2) {
                0 => {
                    let number = rng.next() >> rng.below(64);
                    (number.to_string(), Stored::from(number))
                }
                _ => {
                    let number = (rng.next() as i64) >> rng.below(64);
                    (number.to_string(), Stored::from(number))
                }
            },
            3 => {
                let number = (rng.next() as i64 >> 11) as f64 / 1024.0;
                (format!("{number:?}"), Stored::from(number))
            }
            4 => {
                let all: Vec<char> = "azé日𝄞 '\"\\{}".chars().collect();
                let len = *rng.pick(&[0, 3, 31, 32, 300]);
                let text: String = (0..len).map(|_| *rng.pick(&all)).collect();
                (serde_json::Value::from(text.as_str()).to_string(), Stored::from(text))
            }
            5 => {
                let len = rng.below(20);
                let bytes: Vec<u8> = (0..len).map(|_| rng.next() as u8).collect();
                let text: String = bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect();
                (format!("b'{text}'"), Stored::Binary(bytes))
            }
            6 => {
                let (text, items) = Self::several(rng, depth, extended);
                (format!("[{text}]"), Stored::Array(items))
            }
            7 => {
                let (text, mut items) = Self::several(rng, depth, extended);
                items.insert(0, Stored::from(TUPLE));
                (format!("({text})"), Stored::Array(items))
            }
            8 => {
                let values: Vec<Self> =
                    (0..rng.below(4)).map(|_| Self::random(rng, depth - 1, extended)).collect();
                let of_each = values.iter().enumerate();
                let text: Vec<String> =
                    of_each.clone().map(|(at, value)| format!("'k{at}': {}", value.text)).collect();
                let of_each =
                    of_each.map(|(at, value)| (format!("k{at}").into(), value.stored.clone()));
                (format!("{{{}}}", text.join(", ")), Stored::Map(of_each.collect()))
            }
            _ => {
                let (re, im) = (rng.below(100) as f64 / 8.0, rng.below(100) as f64 / 8.0);
                let bytes = [re.to_be_bytes(), im.to_be_bytes()].concat();
                (format!("({re:?} + {im:?}j)"), Stored::Ext(COMPLEX, bytes))
            }
        };
        Self { text, stored }
    }

    fn several(rng: &mut Rng, depth: u32, extended: bool) -> (String, Vec<Stored>) {
        let count = *rng.pick(&[0, 1, 2, 3, 17]);
        let values: Vec<Self> =
            (0..count).map(|_| Self::random(rng, depth - 1, extended)).collect();
        // With a comma behind each, one item makes a tuple too.
        let text: String = values.iter().map(|value| format!("{}, ", value.text)).collect();
        (text, values.into_iter().map(|value| value.stored).collect())
    }
}
