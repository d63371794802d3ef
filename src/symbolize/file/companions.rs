//! The files that a symbol file names and does not hold: its debug file, the file that dwz
//! shares between several, the functions of split DWARF. Owns where to look beside a file; what
//! is wanted and whether a file is it, the reader of the file decides.

use super::Bytes;
use super::facts::{DebugLink, Supplement};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file that another one needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted<'a> {
    /// The debug file that `.gnu_debuglink` names.
    Debug(&'a DebugLink),
    /// The dwz file that `.gnu_debugaltlink` names.
    Supplement(&'a Supplement),
    /// The functions of all units of split DWARF in one file: `FILE.dwp`.
    Package,
    /// The functions of one unit of split DWARF.
    Split {
        /// Path of the `.dwo` file as the compiler was given it.
        name: &'a str,
        /// The folder that the compiler ran in.
        folder: &'a str,
    },
}

/// A file found for another.
pub struct Companion {
    /// What it holds.
    pub bytes: Bytes,
    /// Where those files are found that it names itself.
    pub companions: Arc<dyn Companions>,
}

/// Finds the files that a symbol file needs beside itself.
pub trait Companions: Send + Sync {
    /// The first of the files in question for which `fits` holds: names are only hints, the
    /// check of build ID, CRC or DWO ID is what counts.
    fn find(&self, wanted: &Wanted<'_>, fits: &dyn Fn(&Bytes) -> bool) -> Option<Companion>;
}

/// A file that stands alone: nothing is looked for.
pub struct Alone;

impl Companions for Alone {
    fn find(&self, _: &Wanted<'_>, _: &dyn Fn(&Bytes) -> bool) -> Option<Companion> {
        None
    }
}

/// Looks beside a file on this host, where debuggers do: its folder, `.debug/` and `.dwz/`
/// below it, and for split DWARF the folder that the compiler ran in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beside {
    file: PathBuf,
}

impl Beside {
    /// Of the file at this path.
    pub fn new(file: impl Into<PathBuf>) -> Beside {
        Beside { file: file.into() }
    }

    fn places(&self, wanted: &Wanted<'_>) -> Vec<PathBuf> {
        let folder = self.file.parent().unwrap_or(Path::new(""));
        match wanted {
            // The section holds a file name; folders in it would lead elsewhere.
            Wanted::Debug(link) => match base(&link.name) {
                Some(name) => vec![folder.join(name), folder.join(".debug").join(name)],
                None => Vec::new(),
            },
            Wanted::Supplement(supplement) => {
                let mut places = vec![folder.join(&supplement.path)];
                if let Some(name) = base(&supplement.path) {
                    places.push(folder.join(name));
                    places.push(folder.join(".dwz").join(name));
                }
                places
            }
            Wanted::Package => {
                let mut beside = self.file.clone().into_os_string();
                beside.push(".dwp");
                // `lib.so.debug` is the debug file of `lib.so`, whose package is `lib.so.dwp`.
                vec![beside.into(), self.file.with_extension("dwp")]
            }
            Wanted::Split { name, folder: ran } => {
                let mut places = vec![Path::new(ran).join(name), folder.join(name)];
                places.extend(base(name).map(|name| folder.join(name)));
                places
            }
        }
    }
}

/// The last part of a path, written on any host.
fn base(path: &str) -> Option<&str> {
    let name = path.rsplit(['/', '\\']).next()?;
    (!name.is_empty() && name != "." && name != "..").then_some(name)
}

impl Companions for Beside {
    fn find(&self, wanted: &Wanted<'_>, fits: &dyn Fn(&Bytes) -> bool) -> Option<Companion> {
        self.places(wanted).into_iter().find_map(|path| {
            if path == self.file {
                return None;
            }
            // A place without a file is no failure; the note names what was not found.
            let bytes = Bytes::map(&path).ok().filter(|bytes| fits(bytes))?;
            Some(Companion {
                bytes,
                companions: Arc::new(Beside::new(path)),
            })
        })
    }
}
