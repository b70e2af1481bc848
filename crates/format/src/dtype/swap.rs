//! Conversion of items between byte orders.

use super::{Dtype, Form};
use crate::Error;

/// The conversion of items between their stored byte order and the native byte order.
/// [`Dtype::swap_plan`] creates the plan. The conversion swaps the bytes of each number, of each
/// part of a complex number, and of each character.
///
/// ```
/// use blosc2_format::Dtype;
///
/// let mut items = 258u16.to_be_bytes();
/// Dtype::parse(">u2")?.swap_plan()?.apply(&mut items);
/// assert_eq!(items, 258u16.to_ne_bytes());
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwapPlan {
    size: usize,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// `count` consecutive words.
    Words { at: usize, word: usize, count: usize },
    /// `count` items at a distance of `step` bytes, each with these parts.
    Repeat { at: usize, step: usize, count: usize, parts: Vec<Part> },
}

impl Dtype {
    /// Returns the plan that converts items of this type to native byte order, which is the byte
    /// order of the type [`to_native`](Self::to_native). The same plan converts the items back.
    /// Parts in native byte order are not changed.
    ///
    /// # Errors
    /// [`Error::Unsupported`]: two fields of a structure overlap, and the structure contains bytes
    /// to swap. Exception: two fields may overlap if they have the same offset and size, and their
    /// bytes are swapped in the same way.
    ///
    /// ```
    /// use blosc2_format::Dtype;
    ///
    /// let mut items = *b"\0\x01ab\x02\0cd";
    /// let dtype = Dtype::parse("[('n', '>u2'), ('text', 'S2')]")?;
    /// if cfg!(target_endian = "little") {
    ///     dtype.swap_plan()?.apply(&mut items);
    ///     assert_eq!(items, *b"\x01\0ab\0\x02cd");
    /// }
    /// # Ok::<(), blosc2_format::Error>(())
    /// ```
    pub fn swap_plan(&self) -> Result<SwapPlan, Error> {
        let mut parts = Vec::new();
        self.add_parts(&mut parts)?;
        Ok(SwapPlan { size: self.size, parts })
    }

    fn add_parts(&self, parts: &mut Vec<Part>) -> Result<(), Error> {
        // Also skips types without bytes to swap. There can be many of them.
        if self.size == 0 || self.is_native() {
            return Ok(());
        }
        match &self.form {
            Form::Scalar(scalar) => {
                let word = scalar.kind.word(self.size);
                parts.push(Part::Words { at: 0, word, count: self.size / word });
            }
            Form::Array(item, _) => {
                let (step, count) = (item.size, self.size / item.size);
                let mut inner = Vec::new();
                item.add_parts(&mut inner)?;
                parts.push(match inner[..] {
                    [Part::Words { at: 0, word, count: each }] if word * each == step => {
                        Part::Words { at: 0, word, count: count * each }
                    }
                    _ => Part::Repeat { at: 0, step, count, parts: inner },
                });
            }
            Form::Struct(structure) => {
                let mut fields: Vec<_> =
                    structure.fields.iter().filter(|field| field.dtype.size > 0).collect();
                fields.sort_by_key(|field| field.offset);
                let (mut end, mut last) = (0, None);
                for field in fields {
                    let mut inner = Vec::new();
                    field.dtype.add_parts(&mut inner)?;
                    let this = (field.offset, field.dtype.size, inner);
                    if field.offset >= end {
                        parts.extend(this.2.iter().map(|part| part.moved(field.offset)));
                    } else if last.as_ref() != Some(&this) {
                        let detail = format!(
                            "the byte order of the field `{}`, which overlaps another",
                            field.name
                        );
                        return Err(Error::Unsupported(detail));
                    }
                    end = field.offset + field.dtype.size;
                    last = Some(this);
                }
            }
        }
        Ok(())
    }
}

impl SwapPlan {
    /// Returns whether the conversion changes nothing.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Converts items in place. An incomplete item at the end is not changed.
    pub fn apply(&self, items: &mut [u8]) {
        if self.size == 0 {
            return;
        }
        if let [Part::Words { at: 0, word, count }] = self.parts[..]
            && word * count == self.size
        {
            let whole = items.len() / self.size * self.size;
            return reverse_words(&mut items[..whole], word);
        }
        for item in items.chunks_exact_mut(self.size) {
            apply(&self.parts, item);
        }
    }
}

impl Part {
    fn moved(&self, by: usize) -> Self {
        match self.clone() {
            Self::Words { at, word, count } => Self::Words { at: at + by, word, count },
            Self::Repeat { at, step, count, parts } => {
                Self::Repeat { at: at + by, step, count, parts }
            }
        }
    }
}

fn apply(parts: &[Part], item: &mut [u8]) {
    for part in parts {
        match *part {
            Part::Words { at, word, count } => {
                reverse_words(&mut item[at..at + word * count], word);
            }
            Part::Repeat { at, step, count, ref parts } => {
                for item in item[at..at + step * count].chunks_exact_mut(step) {
                    apply(parts, item);
                }
            }
        }
    }
}

fn reverse_words(bytes: &mut [u8], word: usize) {
    fn reverse<const N: usize>(bytes: &mut [u8]) {
        bytes.as_chunks_mut::<N>().0.iter_mut().for_each(|word| word.reverse());
    }
    match word {
        2 => reverse::<2>(bytes),
        4 => reverse::<4>(bytes),
        8 => reverse::<8>(bytes),
        _ => bytes.chunks_exact_mut(word).for_each(<[u8]>::reverse),
    }
}
