//! The results of expressions that Python stored (`--evaluate`).

use std::ops::Range;
use std::path::Path;

use anyhow::Result;
use blosc2_store::{Expression, Object};

use crate::UsageError;
use crate::file::Source;
use crate::remote;
use crate::stream::{Items, rows_of};

/// Number of items in a piece that is read for itself.
const PIECE: usize = 1 << 17;

/// Opens the expression in a file. Its operands are in the directory of the file or below.
pub(crate) fn open(source: Source<'_>) -> Result<Expression> {
    let path = source.path.display();
    if remote::is_url(source.path) || !source.path.exists() {
        let message =
            format!("--evaluate requires a file in a directory, and this is none ({path})");
        return Err(UsageError(message).into());
    }
    let object = source.object()?;
    let Object::Carrier(carrier) = object else {
        let kind = object.kind();
        let message =
            format!("--evaluate requires a Python expression, and this is {kind} ({path})");
        return Err(UsageError(message).into());
    };
    let parent = source.path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let opened = carrier.open_expression(parent.unwrap_or(Path::new(".")));
    Ok(opened.map_err(|error| match error.path() {
        // The path of an operand.
        Some(_) => error,
        None => error.at(source.path),
    })?)
}

impl Items for Expression {
    fn shape(&self) -> Vec<u64> {
        self.shape().to_vec()
    }

    fn chunks(&self) -> Vec<u64> {
        rows_of(self.shape(), PIECE)
    }

    fn typesize(&self) -> usize {
        self.dtype().size()
    }

    fn dtype(&self) -> Option<String> {
        Some(self.dtype().to_string())
    }

    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<u8>> {
        Ok(self.read(ranges)?)
    }
}
