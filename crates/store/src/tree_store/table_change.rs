//! Creating and changing tables in tree stores.

use std::io;
use std::sync::Arc;

use super::CHANGE;
use super::change::unlink_copies;
use super::{TreeStore, failed};
use crate::blosc2::{ErrorKind, Result, SChunk, Value};
use crate::ctable::LeavesMut;
use crate::ctable::{CTable, Schema, new_parts};
use crate::key::{self, META};

impl TreeStore {
    /// Creates an empty table under a key. Returns the table, open for changing as by [`edit`](Self::edit). Python:
    /// `store[key] = table`.
    ///
    /// For a store in a zip file, drop the table before you call [`finish`](Self::finish) of the store.
    ///
    /// ```
    /// use blosc2_store::{ItemKind, Data, Object, Schema, TreeStore};
    ///
    /// let folder = tempfile::tempdir()?;
    /// let mut store = TreeStore::create(folder.path().join("runs.b2d"))?;
    /// let schema = Schema::new().column("time", ItemKind::Float64);
    /// let mut table = store.create_table("/first/times", &schema)?;
    /// table.append([("time", Data::items(&[0.5, 1.5]))])?;
    /// table.finish()?;
    /// drop(table);
    ///
    /// let Object::CTable(table) = store.get("/first/times")? else { panic!("it is a table") };
    /// assert_eq!(table.read::<f64>("time", ..)?, [0.5, 1.5]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::AlreadyExists`]: there is an entry with this key;
    /// - [`ErrorKind::Unsupported`]: the store is a [`DictStore`](Self::is_dict), which cannot contain tables in
    ///   Python;
    /// - the errors of [`insert`](Self::insert) for the key and the store;
    /// - the errors of [`CTable::create`] for the schema.
    pub fn create_table(&mut self, key: &str, schema: &Schema) -> Result<CTable> {
        if self.contains(key) {
            let detail = format!("there is already an entry `{key}`");
            return Err(self.error(ErrorKind::AlreadyExists, CHANGE, detail));
        }
        if self.is_dict() {
            let detail = "it is a DictStore, which has no tables";
            return Err(self.error(ErrorKind::Unsupported, CHANGE, detail));
        }
        self.check_free(key)?;
        for (part, ending, schunk) in new_parts(schema, key)? {
            self.put_schunk(&format!("{key}{part}"), ending, &schunk)?;
        }
        let entry = Value::from([
            ("kind", "ctable".into()),
            ("version", 1.into()),
            ("layout", "inline-tree-subtree".into()),
        ]);
        let mut objects = self.objects.clone();
        objects.insert(key.to_owned(), entry);
        self.register(objects)?;
        self.edit_table(key).map(|table| table.with_params_of(schema))
    }

    pub(super) fn edit_table(&mut self, key: &str) -> Result<CTable> {
        let mut parts = self.for_table(key)?;
        parts.place = self.place.clone();
        let table = CTable::for_changes(parts, key)?;
        // An open table keeps this file open.
        self.find_parts(key)?;
        self.lent.extend(self.leaves.get(&format!("{key}{META}")).cloned());
        self.changed = true;
        Ok(table)
    }

    /// Removes files of a table, if they exist.
    fn remove_parts(&mut self, names: impl IntoIterator<Item = String>) -> Result<()> {
        let folder = Arc::clone(self.folder_for_changes()?);
        for name in names {
            match folder.remove_file(&name) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(CHANGE, &folder.path().join(name))(error)),
            }
            self.leaves.retain(|_, each| *each != name);
        }
        Ok(())
    }
}

impl LeavesMut for TreeStore {
    fn leaf_for_changes(&self, key: &str, ending: &str) -> Result<Option<SChunk>> {
        let Some(name) = self.name_of(key, ending) else {
            // Python stores the parts of tables in files.
            return match self.embedded.contains(key) {
                true => {
                    let detail =
                        format!("`{key}` is in the embedded store, where it is not changed");
                    Err(self.error(ErrorKind::Unsupported, CHANGE, detail))
                }
                false => Ok(None),
            };
        };
        unlink_copies(&self.place, &name)?;
        self.lend(&name).map(Some)
    }

    fn put(&mut self, key: &str, ending: &str, schunk: &SChunk) -> Result<()> {
        self.put_schunk(key, ending, schunk)
    }

    fn discard(&mut self, key: &str, ending: &str) -> Result<()> {
        self.remove_parts([key::to_name(key, ending)])
    }

    fn discard_below(&mut self, key: &str) -> Result<()> {
        let below = self.leaves.iter().filter(|(each, _)| key::is_below(each, key));
        let names: Vec<String> = below.map(|(_, name)| name.clone()).collect();
        self.remove_parts(names)
    }

    fn finish(&mut self) -> Result<()> {
        self.changed = true;
        TreeStore::finish(self)
    }
}
