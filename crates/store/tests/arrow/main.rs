//! The feature `arrow`: tables, arrays and batches as Arrow arrays, compared with pyarrow and with the other ways to
//! read them.

mod arrays;
mod batches;
mod common;
mod hostile;
mod python;
mod tables;
