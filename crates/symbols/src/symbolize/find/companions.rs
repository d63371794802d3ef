//! Files that a symbol file refers to, found through the same places: its debug file, dwz's shared
//! file, split DWARF. Defines the places to search; the reader of the file decides by build ID, CRC
//! or DWO ID whether one matches.

use super::names::{build_id_path, is_plain};
use super::search::Shared;
use super::source::Source;
use crate::symbolize::file::{
    Bytes, Companion, SiblingFiles, SupplementaryFiles, SupplementaryRef,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum number of files with the same name that are opened for a check.
const MAX_OF_A_NAME: usize = 64;

/// Supplementary files of one file.
#[derive(Debug)]
pub(super) struct Around {
    shared: Arc<Shared>,
    /// Path of the file, if it is on this host.
    file: Option<PathBuf>,
    /// True if it was built or installed on this host, so that paths in it can be followed.
    is_own: bool,
    /// Its name, and the names of its library.
    names: Vec<String>,
}

impl SupplementaryFiles for Around {
    fn find(
        &self,
        reference: &SupplementaryRef<'_>,
        fits: &dyn Fn(&Bytes) -> bool,
    ) -> Option<Companion> {
        // The file itself can have the name of the file that it needs: a library that refers to a
        // debug file of the same name elsewhere.
        if let Some(file) = &self.file
            && let Some(found) = self.siblings(file).find(reference, fits)
        {
            return Some(found);
        }
        match reference {
            SupplementaryRef::Debug(link) => {
                let global = self
                    .file
                    .iter()
                    .flat_map(|file| self.global(file, &link.name));
                self.first_of(global, fits)
                    .or_else(|| self.named(&link.name, fits))
            }
            SupplementaryRef::Supplement(supplement) => {
                let of_id = build_id_path(&supplement.build_id.0);
                let trees = self
                    .shared
                    .roots()
                    .filter_map(|root| Some(root.join(of_id.as_ref()?)));
                self.first_of(trees, fits)
                    .or_else(|| {
                        self.companion(self.shared.fetch_debug(&supplement.build_id)?, fits)
                    })
                    .or_else(|| self.named(last(&supplement.path), fits))
            }
            SupplementaryRef::Package => {
                let names = self.names.iter();
                let mut packages = names.map(|name| format!("{name}.dwp"));
                packages.find_map(|name| self.named(&name, fits))
            }
            SupplementaryRef::Split { name, .. } => self.named(last(name), fits),
        }
    }
}

impl Around {
    /// Makes the lookup for a file from this source.
    pub(super) fn new(shared: Arc<Shared>, source: &Source, names: Vec<String>) -> Arc<Self> {
        Arc::new(Around {
            shared,
            file: source.path(),
            is_own: matches!(source, Source::File { .. }),
            names,
        })
    }

    fn siblings(&self, file: &Path) -> SiblingFiles {
        if self.is_own {
            SiblingFiles::new(file)
        } else {
            SiblingFiles::stranger(file)
        }
    }

    /// Makes the lookup for another file of the same library.
    fn of(&self, file: PathBuf) -> Arc<dyn SupplementaryFiles> {
        Arc::new(Around {
            shared: Arc::clone(&self.shared),
            file: Some(file),
            // It might have been fetched.
            is_own: false,
            names: self.names.clone(),
        })
    }

    /// Returns the paths where debuggers search for a linked debug file of the system: its
    /// directory below a tree.
    fn global(&self, file: &Path, name: &str) -> Vec<PathBuf> {
        let directory = file.parent();
        let directory = directory.and_then(|directory| directory.strip_prefix("/").ok());
        let (Some(directory), true) = (directory, is_plain(name)) else {
            return Vec::new();
        };
        let trees = self.shared.build_id_trees();
        trees.map(|tree| tree.join(directory).join(name)).collect()
    }

    fn first_of(
        &self,
        paths: impl Iterator<Item = PathBuf>,
        fits: &dyn Fn(&Bytes) -> bool,
    ) -> Option<Companion> {
        let own = self.file.as_deref();
        paths
            .filter(|path| Some(path.as_path()) != own)
            .find_map(|path| self.companion(path, fits))
    }

    fn companion(&self, path: PathBuf, fits: &dyn Fn(&Bytes) -> bool) -> Option<Companion> {
        let bytes = super::source::map(&path, None).ok()?.0;
        fits(&bytes).then(|| Companion {
            bytes,
            companions: self.of(path),
        })
    }

    /// Finds a file with this name in one of the trees.
    fn named(&self, name: &str, fits: &dyn Fn(&Bytes) -> bool) -> Option<Companion> {
        let sources = self.shared.named(name);
        sources.into_iter().take(MAX_OF_A_NAME).find_map(|source| {
            let bytes = source.open(None).ok().filter(|bytes| fits(bytes))?;
            Some(Companion {
                bytes,
                companions: Around::new(Arc::clone(&self.shared), &source, self.names.clone()),
            })
        })
    }
}

/// Returns the file name of a path, with the separators of any system.
fn last(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}
