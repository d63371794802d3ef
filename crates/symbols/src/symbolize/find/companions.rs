//! Files that a file of symbols names and does not hold, found through the same places: its
//! debug file, dwz's shared one, split DWARF. Owns where to look; whether a file is the right
//! one its reader decides, by build ID, CRC or DWO ID.

use super::Shared;
use super::names::{build_id_path, is_plain};
use super::source::Source;
use crate::symbolize::file::{
    Bytes, Companion, SiblingFiles, SupplementaryFiles, SupplementaryRef,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files of one name that are opened to see whether they fit.
const MOST_OF_A_NAME: usize = 64;

/// The companions of one file.
#[derive(Debug)]
pub(super) struct Around {
    shared: Arc<Shared>,
    /// The file, where it is one of this host.
    file: Option<PathBuf>,
    /// Whether it was built or installed here, so that the paths it names may be followed.
    is_own: bool,
    /// Its name and those of the library it belongs to.
    names: Vec<String>,
}

impl SupplementaryFiles for Around {
    fn find(
        &self,
        reference: &SupplementaryRef<'_>,
        fits: &dyn Fn(&Bytes) -> bool,
    ) -> Option<Companion> {
        // The file itself may have the name of what it wants: a library linked to a debug file
        // of the same name elsewhere.
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
    /// Of a file from this source.
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

    /// What is around another file of the same library.
    fn of(&self, file: PathBuf) -> Arc<dyn SupplementaryFiles> {
        Arc::new(Around {
            shared: Arc::clone(&self.shared),
            file: Some(file),
            // It may have been fetched.
            is_own: false,
            names: self.names.clone(),
        })
    }

    /// Where debuggers look for a linked debug file of the system: its folder below a tree.
    fn global(&self, file: &Path, name: &str) -> Vec<PathBuf> {
        let folder = file
            .parent()
            .and_then(|folder| folder.strip_prefix("/").ok());
        let (Some(folder), true) = (folder, is_plain(name)) else {
            return Vec::new();
        };
        let trees = self.shared.build_id_trees();
        trees.map(|tree| tree.join(folder).join(name)).collect()
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

    /// A file of this name in one of the trees.
    fn named(&self, name: &str, fits: &dyn Fn(&Bytes) -> bool) -> Option<Companion> {
        let sources = self.shared.named(name);
        sources.into_iter().take(MOST_OF_A_NAME).find_map(|source| {
            let bytes = source.open(None).ok().filter(|bytes| fits(bytes))?;
            Some(Companion {
                bytes,
                companions: Around::new(Arc::clone(&self.shared), &source, self.names.clone()),
            })
        })
    }
}

/// The last part of a path of any system.
fn last(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}
