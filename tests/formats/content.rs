//! The content of a file as a reader returns it, for comparisons.

use crate::common::assert_same;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Content {
    /// The data of each chunk.
    pub(crate) chunks: Vec<Vec<u8>>,
    /// The items, where the file holds an array.
    pub(crate) array: Option<Vec<u8>>,
    /// Names and contents of the fixed metalayers.
    pub(crate) meta: Vec<(String, Vec<u8>)>,
    /// Names and contents of the metalayers of variable length.
    pub(crate) vlmeta: Vec<(String, Vec<u8>)>,
}

impl Content {
    /// Asserts that two contents are equal. The message has the first difference.
    #[track_caller]
    pub(crate) fn assert_same(&self, expected: &Self, what: &str) {
        assert_eq!(self.meta, expected.meta, "{what}: metalayers");
        assert_eq!(self.vlmeta, expected.vlmeta, "{what}: variable-length metalayers");
        assert_eq!(self.chunks.len(), expected.chunks.len(), "{what}: chunks");
        for (index, (found, expected)) in self.chunks.iter().zip(&expected.chunks).enumerate() {
            assert_same(found, expected, &format!("{what}, chunk {index}"));
        }
        match (&self.array, &expected.array) {
            (Some(found), Some(expected)) => assert_same(found, expected, what),
            (found, expected) => assert_eq!(found, expected, "{what}: an array"),
        }
    }
}
