//! Items: the types that arrays and super-chunks contain.

#[cfg(feature = "derive")]
pub(crate) mod derive;
pub(crate) mod element;
pub mod elements;
