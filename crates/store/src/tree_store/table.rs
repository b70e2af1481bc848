//! Tables in tree stores.

use crate::blosc2::{Result, SChunk};

use super::CHANGE;
use super::place::Files;
use super::{TreeStore, failed, open_embed};
use crate::ctable::Leaves;
use crate::folder::EntryKind;
use crate::key::{self, ENDINGS};

impl TreeStore {
    /// A copy of the handle for a table, which reads its parts from it.
    pub(crate) fn for_table(&self, key: &str) -> Result<Self> {
        let place = self.place.for_reading();
        let embed = match place.files() {
            Files::InPlace(files) => files.index(&self.options())?,
            Files::Folder(folder) => open_embed(folder, &self.options())?,
        };
        let mut copy = Self {
            path: self.path.clone(),
            place,
            leaves: self.leaves.clone(),
            embed,
            embedded: self.embedded.clone(),
            objects: Default::default(),
            groups: self.groups,
            lent: Default::default(),
            changed: false,
        };
        copy.find_parts(key)?;
        Ok(copy)
    }

    /// Updates the list of the parts of a table in a directory, which another handle may have changed.
    pub(super) fn find_parts(&mut self, key: &str) -> Result<()> {
        let Some(folder) = self.place.folder() else { return Ok(()) };
        let below = key.trim_start_matches('/');
        let path = folder.path().join(below);
        let io = failed(CHANGE, &path);
        let (files, start) = match below {
            "" => (folder.files(), String::new()),
            _ if folder.kind(below).map_err(&io)? != Some(EntryKind::Folder) => return Ok(()),
            _ => (folder.folder(below).and_then(|below| below.files()), format!("{below}/")),
        };
        let mut found = Vec::new();
        for name in files.map_err(&io)?.iter().filter_map(|file| file.text()) {
            let name = start.clone() + &name;
            if let Some((key, ending)) = key::of_name(&name)
                && ENDINGS.contains(&ending)
            {
                found.push((key, name));
            }
        }
        self.leaves.retain(|each, _| !key::is_below(each, key));
        self.leaves.extend(found);
        Ok(())
    }

    /// The file of a part of a table: if files differ only in their extension, the one with this extension.
    pub(super) fn name_of(&self, key: &str, ending: &str) -> Option<String> {
        let other = key::to_name(key, ending);
        match self.leaves.get(key) {
            Some(name) if *name != other && self.has_file(&other) => Some(other),
            name => name.cloned(),
        }
    }
}

impl Leaves for TreeStore {
    fn leaf(&self, key: &str, ending: &str) -> Result<Option<SChunk>> {
        match self.name_of(key, ending) {
            Some(name) => self.file(&name).map(Some),
            None => TreeStore::leaf(self, key),
        }
    }

    fn exists(&self, key: &str, ending: &str) -> bool {
        self.has_file(&key::to_name(key, ending))
    }

    fn refresh(&mut self, root: &str) -> Result<()> {
        self.find_parts(root)
    }
}
