//! The expressions of carriers, and the files to which they refer.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::blosc2::{Dtype, Error, ErrorKind, NDArray, Result, Value};
use crate::carrier::{Carrier, CarrierKind};
use crate::expression::{Expression, MAX_OPERANDS, Operand};
use crate::folder::{Access, EntryKind, Folder};
use crate::object::Object;
use crate::tree_store::TreeStore;
use crate::without_secrets;

const OPEN: &str = "open the operands of an expression";

/// How deep expressions can refer to expressions.
const MAX_REFERENCES: usize = 8;

impl Carrier {
    /// Returns the expression with these operands: the arrays with their names, see [`operands`](Self::operands). No
    /// file is opened.
    ///
    /// # Errors
    /// - [`ErrorKind::Unsupported`](blosc2::ErrorKind::Unsupported): this is not an expression, but for example a
    ///   user-defined function; or the dtype or the shape in the file differ from those of the expression, because Python
    ///   does not store all parts of some expressions;
    /// - the errors of [`Expression::new`](crate::Expression::new).
    pub fn expression_with<N: Into<String>>(
        &self,
        operands: impl IntoIterator<Item = (N, NDArray)>,
    ) -> Result<Expression> {
        let operands = operands.into_iter();
        self.evaluable(|_| {
            let named =
                |(name, array): (N, NDArray)| (name.into(), Operand::Array(Arc::new(array)));
            Ok(operands.map(named).collect())
        })
    }

    /// Returns the expression with the operands to which the file refers: arrays, and other expressions, in `folder` or
    /// below. For Python, `folder` is the directory of the file.
    ///
    /// The references are untrusted: absolute paths, `..`, URLs and symbolic links are refused. Up to 64 files are
    /// opened.
    ///
    /// ```
    /// use blosc2::NDArray;
    /// use blosc2_store::Object;
    /// # use blosc2::{OpenOptions, Value};
    /// # let folder = tempfile::tempdir()?;
    /// # let folder = folder.path();
    /// # NDArray::from_slice(&[1.5f32, 2.5], 2)?.save(folder.join("a.b2nd"))?;
    /// # let array = NDArray::builder().zeros::<f32>(2)?;
    /// # let mut schunk = OpenOptions::new().write(true).open(array.schunk().to_cframe()?)?;
    /// # let reference = Value::from([("kind", "urlpath".into()), ("urlpath", "a.b2nd".into())]);
    /// # let operands = Value::from([("a", reference)]);
    /// # let content = [("kind", "lazyexpr".into()), ("expression", "a + 1".into()), ("operands", operands)];
    /// # schunk.vlmeta_mut().with_reserved().set_value("b2o", &Value::from(content))?;
    /// # schunk.save(folder.join("sum.b2nd"))?;
    ///
    /// // Python: a = blosc2.open("a.b2nd"); blosc2.lazyexpr("a + 1").save("sum.b2nd")
    /// let Object::Carrier(carrier) = Object::open(folder.join("sum.b2nd"))? else { panic!("not a carrier") };
    /// let sum = carrier.open_expression(folder)?.to_array(NDArray::builder())?;
    /// assert_eq!(sum.read::<Vec<f32>>(..)?, [2.5, 3.5]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`](blosc2::ErrorKind::InvalidArgument): a reference is refused: pass the operands
    ///   to [`expression_with`](Self::expression_with);
    /// - [`ErrorKind::NotFound`](blosc2::ErrorKind::NotFound), [`ErrorKind::Io`](blosc2::ErrorKind::Io): a file cannot be
    ///   opened;
    /// - the errors of [`expression_with`](Self::expression_with), and of
    ///   [opening a container](crate#opening-a-container).
    pub fn open_expression(&self, folder: impl AsRef<Path>) -> Result<Expression> {
        let path = folder.as_ref();
        let folder = Folder::open(path).map_err(|error| Error::of_io(OPEN, error).at(path))?;
        let mut files = Files { folder, left: MAX_OPERANDS };
        self.open_in(&mut files, Path::new(""), 0)
    }

    /// Opens the operands. Relative paths start at `place` in the folder.
    fn open_in(&self, files: &mut Files, place: &Path, depth: usize) -> Result<Expression> {
        self.evaluable(|description| {
            let Some(Value::Map(operands)) = description.get("operands") else { return Ok(vec![]) };
            let mut found = Vec::with_capacity(operands.len().min(MAX_OPERANDS));
            for (name, reference) in operands {
                let name = name.as_str().unwrap_or("?");
                let operand = files.operand(self, (name, reference), place, depth)?;
                found.push((name.to_owned(), operand));
            }
            Ok(found)
        })
    }

    /// The expression of a carrier that is one.
    fn evaluable(
        &self,
        operands: impl FnOnce(&Value) -> Result<Vec<(String, Operand)>>,
    ) -> Result<Expression> {
        let text = match (self.kind(), self.expression()) {
            (CarrierKind::LazyExpr, Some(text)) => text,
            _ => return Err(self.refused("evaluate an expression")),
        };
        let expression = Expression::of(text, operands(self.description())?)?;
        let Some(schunk) = self.schunk() else { return Ok(expression) };
        let stated = schunk.meta().value("b2nd")?;
        let field = |at: usize| stated.as_ref()?.as_list()?.get(at);
        let shape = field(2).and_then(Value::as_list);
        let shape: Option<Vec<u64>> =
            shape.map(|sizes| sizes.iter().filter_map(Value::as_u64).collect());
        let dtype = field(6).and_then(Value::as_str).and_then(|text| Dtype::parse(text).ok());
        match (shape, dtype) {
            // The items that are computed are in native byte order.
            (Some(shape), Some(dtype))
                if shape != expression.shape() || dtype.to_native() != *expression.dtype() =>
            {
                let detail = format!(
                    "`{text}` has the dtype {} and the shape {:?}, and the file states {dtype} and {shape:?}: Python \
                     has not stored all of it, or an operand has changed",
                    expression.dtype(),
                    expression.shape()
                );
                Err(Error::new(ErrorKind::Unsupported, "evaluate an expression", detail))
            }
            _ => Ok(expression),
        }
    }
}

struct Files {
    folder: Folder,
    /// How many can still be opened.
    left: usize,
}

impl Files {
    fn operand(
        &mut self,
        carrier: &Carrier,
        (operand, reference): (&str, &Value),
        place: &Path,
        depth: usize,
    ) -> Result<Operand> {
        let refused = |detail: String| {
            let detail = format!("the operand `{operand}` {detail}");
            Err(Error::new(ErrorKind::InvalidArgument, OPEN, detail))
        };
        let kind = reference.get("kind").and_then(Value::as_str);
        let path = match kind {
            _ if reference.as_str().is_some() => reference.as_str(),
            Some("urlpath" | "dictstore_key") => reference.get("urlpath").and_then(Value::as_str),
            _ => None,
        };
        let Some(path) = path else {
            let kind = kind.unwrap_or("unknown");
            return refused(format!(
                "is a reference of the kind `{kind}`, expected a path of a file"
            ));
        };
        let parts = Path::new(path).components().filter(|part| *part != Component::CurDir);
        let is_below = parts.clone().all(|part| matches!(part, Component::Normal(_)));
        let below: PathBuf = parts.collect();
        let is_empty = below.as_os_str().is_empty();
        if is_empty || path.contains("://") || path.contains('\\') || !is_below {
            return refused(format!(
                "is at `{}`, expected a path in the folder of the expression or below",
                without_secrets(path)
            ));
        }
        if depth == MAX_REFERENCES || self.left == 0 {
            return refused(format!(
                "is not opened: expressions refer to each other over {MAX_REFERENCES} levels or {MAX_OPERANDS} files"
            ));
        }
        self.left -= 1;
        let name = place.join(below);
        let at = self.folder.path().join(&name);
        let io = |error| Error::of_io(OPEN, error).at(&at);
        let (limits, max_read) = match carrier.schunk() {
            Some(schunk) => (schunk.info().limits, schunk.max_read()),
            None => (crate::blosc2::Limits::default(), None),
        };
        let mut object = match self.folder.kind(&name).map_err(io)? {
            Some(EntryKind::Folder) => {
                let store = self.folder.folder(&name).map_err(io)?;
                TreeStore::in_opened(store, limits, max_read)?.into_object()?
            }
            _ => {
                let file = self.folder.file(&name, Access::Read).map_err(io)?;
                let object = Object::open_source_with_limits(file, limits, max_read);
                object.map_err(|error| error.at(&at))?
            }
        };
        if let Some(key) = reference.get("key").and_then(Value::as_str) {
            let Object::TreeStore(store) = &object else {
                return refused(format!(
                    "is {}, expected a store with the key `{key}`",
                    object.kind()
                ));
            };
            object = Object::from_schunk(store.schunk(key)?)?;
        }
        match object {
            Object::NDArray(array) => Ok(Operand::Array(Arc::new(array))),
            Object::Carrier(nested) => {
                let place = name.parent().unwrap_or(Path::new("")).to_owned();
                Ok(Operand::Expression(Box::new(nested.open_in(self, &place, depth + 1)?)))
            }
            other => refused(format!("is {}, expected an array", other.kind())),
        }
    }
}
