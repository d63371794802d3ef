//! Files that a symbol file refers to: its debug file, the file that dwz shares between several,
//! the functions of split DWARF. Defines the paths to try next to a file; the reader of the file
//! decides which files it needs and whether one matches.

use super::Bytes;
use super::facts::{DebugLink, Supplement};
use std::fmt::Debug;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Reference to a supplementary file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SupplementaryRef<'a> {
    /// Debug file, from `.gnu_debuglink`.
    Debug(&'a DebugLink),
    /// dwz file, from `.gnu_debugaltlink`.
    Supplement(&'a Supplement),
    /// Functions of all units of split DWARF in one file: `FILE.dwp`.
    Package,
    /// Functions of one unit of split DWARF.
    Split {
        /// Path of the `.dwo` file as passed to the compiler.
        name: &'a str,
        /// Working directory of the compiler.
        directory: &'a str,
    },
}

/// Supplementary file that was found.
pub struct Companion {
    pub bytes: Bytes,
    /// Lookup of the files that it refers to itself.
    pub companions: Arc<dyn SupplementaryFiles>,
}

/// Lookup of the files that a symbol file refers to.
pub trait SupplementaryFiles: Debug + Send + Sync {
    /// Returns the first candidate that satisfies `fits`. Names are only hints; the check of build
    /// ID, CRC or DWO ID decides.
    fn find(
        &self,
        reference: &SupplementaryRef<'_>,
        fits: &dyn Fn(&Bytes) -> bool,
    ) -> Option<Companion>;
}

/// Lookup that finds nothing, for a file without supplementary files.
#[derive(Debug)]
pub struct Alone;

impl SupplementaryFiles for Alone {
    fn find(&self, _: &SupplementaryRef<'_>, _: &dyn Fn(&Bytes) -> bool) -> Option<Companion> {
        None
    }
}

/// Lookup next to a file on this host, in the same places as debuggers: its directory, `.debug/`
/// and `.dwz/` below it, and for split DWARF the working directory of the compiler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiblingFiles {
    file: PathBuf,
    /// True if paths in the file are followed to other directories.
    is_trusted: bool,
}

impl SiblingFiles {
    /// Makes the lookup for a file that was built or installed on this host. Paths in it are
    /// followed, for example to its build directory or to a shared one.
    pub fn new(file: impl Into<PathBuf>) -> SiblingFiles {
        SiblingFiles {
            file: file.into(),
            is_trusted: true,
        }
    }

    /// Makes the lookup for a file from another machine: a device, a server, an archive. Of the
    /// paths in it only the file name is used.
    pub fn stranger(file: impl Into<PathBuf>) -> SiblingFiles {
        SiblingFiles {
            file: file.into(),
            is_trusted: false,
        }
    }

    /// Returns the full path of a path in the file, if it can be followed.
    fn followed(&self, directory: &Path, path: &str) -> Option<PathBuf> {
        let path = directory.join(path);
        (self.is_trusted && is_ordinary(&path)).then_some(path)
    }

    fn places(&self, reference: &SupplementaryRef<'_>) -> Vec<PathBuf> {
        let directory = self.file.parent().unwrap_or(Path::new(""));
        match reference {
            // The section contains a file name; a path in it would lead elsewhere.
            SupplementaryRef::Debug(link) => match base(&link.name) {
                Some(name) => vec![directory.join(name), directory.join(".debug").join(name)],
                None => Vec::new(),
            },
            SupplementaryRef::Supplement(supplement) => {
                let mut places: Vec<PathBuf> = self
                    .followed(directory, &supplement.path)
                    .into_iter()
                    .collect();
                if let Some(name) = base(&supplement.path) {
                    places.push(directory.join(name));
                    places.push(directory.join(".dwz").join(name));
                }
                places
            }
            SupplementaryRef::Package => {
                let mut beside = self.file.clone().into_os_string();
                beside.push(".dwp");
                // `lib.so.debug` is the debug file of `lib.so`, whose package is `lib.so.dwp`.
                vec![beside.into(), self.file.with_extension("dwp")]
            }
            SupplementaryRef::Split {
                name,
                directory: ran,
            } => {
                let ran = Path::new(ran);
                let mut places: Vec<PathBuf> = [ran, directory]
                    .into_iter()
                    .filter_map(|directory| self.followed(directory, name))
                    .collect();
                places.extend(base(name).map(|name| directory.join(name)));
                places
            }
        }
    }
}

/// Returns whether a path is in a regular file system of this host. Paths on other hosts are not,
/// because a request would reveal the identity of the user; nor are virtual file systems of the
/// kernel.
fn is_ordinary(path: &Path) -> bool {
    let text = path.to_string_lossy();
    let is_remote = text.starts_with("\\\\") || text.starts_with("//");
    let mut depth = Vec::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                depth.pop();
            }
            Component::Normal(part) => depth.push(part),
            _ => {}
        }
    }
    let top = depth.first().and_then(|top| top.to_str());
    let is_made_up = path.has_root() && matches!(top, Some("dev" | "proc" | "sys"));
    !is_remote && !is_made_up
}

/// Returns the file name of a path, with the separators of any system.
fn base(path: &str) -> Option<&str> {
    let name = path.rsplit(['/', '\\']).next()?;
    (!name.is_empty() && name != "." && name != "..").then_some(name)
}

impl SupplementaryFiles for SiblingFiles {
    fn find(
        &self,
        reference: &SupplementaryRef<'_>,
        fits: &dyn Fn(&Bytes) -> bool,
    ) -> Option<Companion> {
        self.places(reference).into_iter().find_map(|path| {
            if path == self.file {
                return None;
            }
            // A missing file is not an error; the note lists files that were not found.
            let bytes = Bytes::map(&path).ok().filter(|bytes| fits(bytes))?;
            Some(Companion {
                bytes,
                companions: Arc::new(SiblingFiles {
                    file: path,
                    ..self.clone()
                }),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_base::units::BuildId;

    #[test]
    fn paths_of_a_stranger_lead_nowhere_else() {
        let split = SupplementaryRef::Split {
            name: "obj/unit.dwo",
            directory: "/home/dev/build",
        };
        let own = SiblingFiles::new("/libs/lib.so").places(&split);
        assert_eq!(own[0], Path::new("/home/dev/build/obj/unit.dwo"));
        assert_eq!(own.len(), 3);
        let strange = SiblingFiles::stranger("/cache/lib.so").places(&split);
        assert_eq!(strange, [Path::new("/cache/unit.dwo")]);
        let supplement = |path: &str| Supplement {
            path: path.to_owned(),
            build_id: BuildId(vec![1]),
        };
        let siblings = SiblingFiles::new("/usr/lib/debug/lib.debug");
        let first = |path: &str| {
            siblings
                .places(&SupplementaryRef::Supplement(&supplement(path)))
                .remove(0)
        };
        assert_eq!(first(".dwz/a"), Path::new("/usr/lib/debug/.dwz/a"));
        assert_eq!(first("/shared/a"), Path::new("/shared/a"));
        for elsewhere in [
            "/dev/zero",
            "/x/../proc/self/mem",
            "//host/share/a",
            "\\\\host\\a",
        ] {
            assert!(
                first(elsewhere).starts_with("/usr/lib/debug"),
                "{elsewhere}"
            );
        }
    }
}
