//! The files that a symbol file names and does not hold: its debug file, the file that dwz
//! shares between several, the functions of split DWARF. Owns where to look beside a file; what
//! is wanted and whether a file is it, the reader of the file decides.

use super::Bytes;
use super::facts::{DebugLink, Supplement};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// A file that another one needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SupplementaryRef<'a> {
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
    pub companions: Arc<dyn SupplementaryFiles>,
}

/// Finds the files that a symbol file needs beside itself.
pub trait SupplementaryFiles: Send + Sync {
    /// The first of the files in question for which `fits` holds: names are only hints, the
    /// check of build ID, CRC or DWO ID is what counts.
    fn find(
        &self,
        reference: &SupplementaryRef<'_>,
        fits: &dyn Fn(&Bytes) -> bool,
    ) -> Option<Companion>;
}

/// A file that stands alone: nothing is looked for.
pub struct Alone;

impl SupplementaryFiles for Alone {
    fn find(&self, _: &SupplementaryRef<'_>, _: &dyn Fn(&Bytes) -> bool) -> Option<Companion> {
        None
    }
}

/// Looks beside a file on this host, where debuggers do: its folder, `.debug/` and `.dwz/`
/// below it, and for split DWARF the folder that the compiler ran in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiblingFiles {
    file: PathBuf,
    /// Whether paths that it names are followed to other folders.
    is_trusted: bool,
}

impl SiblingFiles {
    /// Of the file at this path, which somebody built or installed here: the paths that it names
    /// are followed, to the folder of its build or to a shared one.
    pub fn new(file: impl Into<PathBuf>) -> SiblingFiles {
        SiblingFiles {
            file: file.into(),
            is_trusted: true,
        }
    }

    /// Of a file that came from elsewhere: from a phone, a server, an archive. Of the paths that
    /// it names only the last part counts.
    pub fn stranger(file: impl Into<PathBuf>) -> SiblingFiles {
        SiblingFiles {
            file: file.into(),
            is_trusted: false,
        }
    }

    /// A path that the file names, where it may be followed.
    fn followed(&self, folder: &Path, path: &str) -> Option<PathBuf> {
        let path = folder.join(path);
        (self.is_trusted && is_ordinary(&path)).then_some(path)
    }

    fn places(&self, reference: &SupplementaryRef<'_>) -> Vec<PathBuf> {
        let folder = self.file.parent().unwrap_or(Path::new(""));
        match reference {
            // The section holds a file name; folders in it would lead elsewhere.
            SupplementaryRef::Debug(link) => match base(&link.name) {
                Some(name) => vec![folder.join(name), folder.join(".debug").join(name)],
                None => Vec::new(),
            },
            SupplementaryRef::Supplement(supplement) => {
                let mut places: Vec<PathBuf> = self
                    .followed(folder, &supplement.path)
                    .into_iter()
                    .collect();
                if let Some(name) = base(&supplement.path) {
                    places.push(folder.join(name));
                    places.push(folder.join(".dwz").join(name));
                }
                places
            }
            SupplementaryRef::Package => {
                let mut beside = self.file.clone().into_os_string();
                beside.push(".dwp");
                // `lib.so.debug` is the debug file of `lib.so`, whose package is `lib.so.dwp`.
                vec![beside.into(), self.file.with_extension("dwp")]
            }
            SupplementaryRef::Split { name, folder: ran } => {
                let ran = Path::new(ran);
                let mut places: Vec<PathBuf> = [ran, folder]
                    .into_iter()
                    .filter_map(|folder| self.followed(folder, name))
                    .collect();
                places.extend(base(name).map(|name| folder.join(name)));
                places
            }
        }
    }
}

/// Whether a path leads to a file system of this host: not to another host (asking it tells it
/// who we are), not to what the kernel makes up.
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

/// The last part of a path, written on any host.
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
            // A place without a file is no failure; the note names what was not found.
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
    use heaptap_model::units::BuildId;

    #[test]
    fn paths_of_a_stranger_lead_nowhere_else() {
        let split = SupplementaryRef::Split {
            name: "obj/unit.dwo",
            folder: "/home/dev/build",
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
