//! Places: the files of a store, read in place or unpacked.

#[cfg(feature = "c")]
pub(super) mod writer;

#[cfg(feature = "c")]
use std::path::PathBuf;
use std::sync::Arc;

#[cfg(feature = "c")]
use self::writer::{FolderWriter, Stamp};
use super::in_place::InPlace;
use crate::folder::Folder;
#[cfg(feature = "c")]
use crate::work::Work;

#[derive(Debug, Clone)]
pub(super) enum Place {
    /// A zip file or a custom directory, which is only read.
    ReadOnly(Arc<InPlace>),
    Folder {
        folder: Arc<Folder>,
        /// `None` for reading.
        #[cfg(feature = "c")]
        writer: Option<Arc<FolderWriter>>,
    },
    /// A zip file that is being created or changed: its files are in a temporary directory.
    #[cfg(feature = "c")]
    Unpacked {
        folder: Arc<Folder>,
        /// The temporary directory. While it exists, no other handle can change the zip file.
        work: Arc<Work>,
        target: PathBuf,
        replaced: Option<Stamp>,
    },
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Files<'a> {
    InPlace(&'a InPlace),
    Folder(&'a Arc<Folder>),
}

impl Place {
    pub(super) fn reading(folder: Arc<Folder>) -> Self {
        Self::Folder {
            folder,
            #[cfg(feature = "c")]
            writer: None,
        }
    }

    pub(super) fn files(&self) -> Files<'_> {
        match self {
            Self::ReadOnly(files) => Files::InPlace(files),
            Self::Folder { folder, .. } => Files::Folder(folder),
            #[cfg(feature = "c")]
            Self::Unpacked { folder, .. } => Files::Folder(folder),
        }
    }

    pub(super) fn folder(&self) -> Option<&Arc<Folder>> {
        match self.files() {
            Files::InPlace(_) => None,
            Files::Folder(folder) => Some(folder),
        }
    }

    /// The same place for reading: a directory becomes read-only.
    pub(super) fn for_reading(&self) -> Self {
        match self.clone() {
            Self::Folder { folder, .. } => Self::reading(folder),
            place => place,
        }
    }
}
