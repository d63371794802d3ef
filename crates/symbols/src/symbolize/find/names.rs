//! Names of a library on this host. Paths in a recording come from a device: only plain components
//! of them become part of a path here.

use crate::symbolize::file::debug_id;
use crate::symbolize::library::Library;
use heaptap_base::untrusted::windows;
use std::path::{Path, PathBuf};

/// Maximum length of a file name on most file systems.
const MAX_NAME_LENGTH: usize = 255;
/// Maximum depth of a path that is searched below a root.
const MAX_COMPONENTS: usize = 40;
/// Maximum number of modules of a platform build searched for variants of one.
const MAX_MODULES: usize = 500;

/// Names of one library, parsed once for all places.
#[derive(Debug)]
pub(super) struct LibraryQuery<'a> {
    pub library: &'a Library,
    /// True if a file without build ID is accepted by its name.
    pub allow_no_build_id: bool,
    /// Components of its path without the root, if all of them are valid in a path of this host.
    pub components: Vec<&'a str>,
    /// Name of its file, as recorded (`base.apk!libfoo.so`) and without the part before the `!`.
    /// `None` if it is not a file, such as `[vdso]`.
    pub names: Option<Names<'a>>,
}

/// Names of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Names<'a> {
    /// Recorded name, after the last slash.
    pub recorded: &'a str,
    /// Name without the archive that contains it.
    pub bare: &'a str,
}

impl<'a> LibraryQuery<'a> {
    pub(super) fn new(library: &'a Library, allow_no_build_id: bool) -> Self {
        let path = library.path.as_str();
        let path = path.strip_suffix(" (deleted)").unwrap_or(path);
        let mut components: Vec<&str> = path.split('/').filter(|c| !c.is_empty()).collect();
        let names = components.last().and_then(|&recorded| {
            let bare = match recorded.split_once('!') {
                Some((archive, inner)) if archive.ends_with(".apk") => inner,
                _ => recorded,
            };
            let region = recorded.starts_with(['[', '<']) || path.starts_with("/memfd:");
            let region =
                region || path.starts_with("memfd:") || recorded.starts_with("anon_inode:");
            (!region && is_plain(bare) && is_plain(recorded)).then_some(Names { recorded, bare })
        });
        if components.len() > MAX_COMPONENTS || !components.iter().all(|c| is_plain(c)) {
            components.clear();
        }
        LibraryQuery {
            library,
            allow_no_build_id,
            components,
            names,
        }
    }

    /// Returns the paths below a root that Perfetto's `find` examines, in its order; the one of
    /// `.build-id` last.
    pub(super) fn five_places(&self) -> Vec<PathBuf> {
        let mut places = Vec::with_capacity(5);
        if let Some(names) = self.names {
            let directory = self.components.split_last().map(|(_, directory)| directory);
            if let Some(directory) = directory.filter(|directory| !directory.is_empty()) {
                let directory: PathBuf = directory.iter().collect();
                places.push(directory.join(names.recorded));
                if names.bare != names.recorded {
                    places.push(directory.join(names.bare));
                }
            }
            places.push(PathBuf::from(names.recorded));
            if names.bare != names.recorded {
                places.push(PathBuf::from(names.bare));
            }
        }
        places.extend(build_id_path(&self.library.build_id.0));
        places
    }

    /// Returns the paths below a root, with and without directories, of the package in its path
    /// (`…/base.apk!lib/…`, or a package itself if the library is mapped from it).
    pub(super) fn packages(&self) -> Vec<PathBuf> {
        let at = self.components.iter().position(|c| c.contains(".apk"));
        let Some(at) = at else {
            return Vec::new();
        };
        let name = self.components[at].split('!').next().unwrap_or_default();
        let mut whole: PathBuf = self.components[..at].iter().collect();
        whole.push(name);
        vec![whole, PathBuf::from(name)]
    }

    /// Returns the paths below a directory of Breakpad symbols: `<ID>.breakpad` as in Perfetto, and
    /// the layout of Breakpad's tools, `<name>/<ID>/<name>.sym`.
    pub(super) fn breakpad_places(&self) -> Vec<PathBuf> {
        let id = &self.library.build_id;
        let Some(hex) = hex_name(&id.0) else {
            return Vec::new();
        };
        let upper = hex.to_ascii_uppercase();
        let mut places = vec![PathBuf::from(format!("{upper}.breakpad"))];
        if upper != hex {
            places.push(PathBuf::from(format!("{hex}.breakpad")));
        }
        if let Some(names) = self.names {
            let name = names.bare;
            for directory in [debug_id(id), upper] {
                places.push([name, &directory, &format!("{name}.sym")].iter().collect());
            }
        }
        places
    }

    /// Returns more paths below `symbols` of a platform build for a library of an APEX: those of
    /// the variants of its module (`com.android.art.debug`), and the copy in `system`.
    pub(super) fn module_places(&self, symbols: &Path) -> Vec<PathBuf> {
        let ["apex", module, directories @ .., name] = self.components.as_slice() else {
            return Vec::new();
        };
        // The name of a mounted module contains its version: `com.android.art@350820960`.
        let module = module.split('@').next().unwrap_or(module);
        let below: PathBuf = directories.iter().chain([name]).collect();
        let entries = std::fs::read_dir(symbols.join("apex"))
            .into_iter()
            .flatten()
            .flatten();
        let mut variants: Vec<String> = entries
            .take(MAX_MODULES)
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|variant| {
                variant
                    .split(['@', '.'])
                    .take(3)
                    .eq(module.split('.').take(3))
            })
            .collect();
        variants.sort_unstable_by_key(|variant| (variant != module, variant.clone()));
        let apex = variants
            .iter()
            .map(|v| symbols.join("apex").join(v).join(&below));
        apex.chain([symbols.join("system").join(&below)]).collect()
    }

    /// Returns the paths below a root with a `.build-id` tree: the debug file, the library itself,
    /// and both in the layout of perf.
    pub(super) fn build_id_places(&self) -> Vec<PathBuf> {
        let Some(debug) = build_id_path(&self.library.build_id.0) else {
            return Vec::new();
        };
        let library = debug.with_extension("");
        let perf = ["debug", "elf"].map(|name| library.join(name));
        let [first, second] = perf;
        vec![debug, library, first, second]
    }

    /// Returns the path of the memory mapping, if it can be on this host. Only absolute Unix paths
    /// of plain components are returned, and none where an access could have effects: devices,
    /// virtual file systems of the kernel, and directories that mount on access.
    pub(super) fn host_path(&self) -> Option<PathBuf> {
        const NEVER: [&str; 6] = ["proc", "sys", "dev", "net", "afs", "run"];
        let first = self.components.first()?;
        let absolute = self.library.path.starts_with('/');
        if !cfg!(unix) || !absolute || self.names.is_none() || NEVER.contains(first) {
            return None;
        }
        let mut path = PathBuf::from("/");
        path.extend(&self.components);
        Some(path)
    }

    /// Returns the number of components, counted from the end, that `path` shares with the
    /// library's.
    pub(super) fn likeness<'p>(&self, path: impl DoubleEndedIterator<Item = &'p str>) -> usize {
        let own = self.library.path.rsplit(['/', '!']);
        path.rev().zip(own).take_while(|(a, b)| a == b).count()
    }
}

/// Returns `.build-id/xx/rest.debug`, the path that debuggers use.
pub(super) fn build_id_path(build_id: &[u8]) -> Option<PathBuf> {
    let hex = hex_name(build_id)?;
    if hex.len() < 4 {
        return None;
    }
    let (first, rest) = hex.split_at(2);
    Some(
        [".build-id", first, &format!("{rest}.debug")]
            .iter()
            .collect(),
    )
}

/// Endings of compressed files.
const PACKED: [&str; 5] = [".gz", ".xz", ".zst", ".bz2", ".lz4"];

/// Returns whether a file has the name of an archive other than ZIP.
pub(super) fn is_tar(name: &str) -> bool {
    const ENDINGS: [&str; 6] = [".tar", ".tgz", ".txz", ".tbz2", ".tzst", ".7z"];
    let packed = PACKED.iter().find_map(|ending| name.strip_suffix(ending));
    let name = packed.unwrap_or(name);
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Returns the common part in the names of a library's files: `libfoo.so` for `libfoo.so`,
/// `libfoo.so.debug`, `libfoo.so.dbg`, `libfoo.so.sym`, `libfoo.so.gz`, `libfoo.so.debug.xz`.
pub(super) fn key_of(name: &str) -> &str {
    let packed = PACKED.iter().find_map(|ending| name.strip_suffix(ending));
    let name = packed.filter(|key| !key.is_empty()).unwrap_or(name);
    const ENDINGS: [&str; 5] = [".debug", ".dbg", ".sym", ".breakpad", ".unstripped"];
    let stripped = ENDINGS.iter().find_map(|ending| name.strip_suffix(ending));
    stripped.filter(|key| !key.is_empty()).unwrap_or(name)
}

/// Returns a build ID as a file name; `None` if linkers do not write build IDs of its length.
pub(super) fn hex_name(build_id: &[u8]) -> Option<String> {
    (!build_id.is_empty() && build_id.len() <= 64)
        .then(|| heaptap_base::units::BuildId(build_id.to_vec()).to_string())
}

/// Returns whether `name` is a single plain component of a path on every system: it can neither
/// lead elsewhere nor open a device.
pub(super) fn is_plain(name: &str) -> bool {
    let odd = |c: char| c.is_control() || matches!(c, '/' | '\\');
    if name.is_empty()
        || name.len() > MAX_NAME_LENGTH
        || name == "."
        || name == ".."
        || name.contains(odd)
    {
        return false;
    }
    !cfg!(windows) || windows::is_plain(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_base::units::BuildId;

    fn library(path: &str) -> Library {
        Library {
            path: path.to_owned(),
            build_id: BuildId(vec![0xab, 0xcd, 0xef]),
            offset: 0,
            load_bias: 0,
            addresses: Vec::new(),
        }
    }

    fn five(path: &str) -> Vec<String> {
        let library = library(path);
        let places = LibraryQuery::new(&library, false).five_places();
        let places = places
            .iter()
            .map(|p| p.to_str().unwrap().replace('\\', "/"));
        places.collect()
    }

    #[test]
    fn the_five_places_are_perfettos() {
        let id = ".build-id/ab/cdef.debug";
        assert_eq!(
            five("/system/lib64/libc.so"),
            ["system/lib64/libc.so", "libc.so", id]
        );
        assert_eq!(
            five("/data/app/~~x==/com.a-y==/base.apk!libfoo.so"),
            [
                "data/app/~~x==/com.a-y==/base.apk!libfoo.so",
                "data/app/~~x==/com.a-y==/libfoo.so",
                "base.apk!libfoo.so",
                "libfoo.so",
                id
            ]
        );
        // Without a directory, the first two are missing.
        assert_eq!(five("libfoo.so"), ["libfoo.so", id]);
        assert_eq!(five("/vendor/x.so (deleted)")[1], "x.so");
    }

    #[test]
    fn names_of_a_recording_never_lead_elsewhere() {
        let id = ".build-id/ab/cdef.debug";
        for path in ["/a/../../etc/passwd", "/a/./passwd"] {
            assert_eq!(five(path), ["passwd", id], "{path}");
        }
        for path in [
            "/..",
            "/[vdso]",
            "/memfd:jit-cache",
            "/a/b\\..\\c",
            "/a/\u{1b}[2J",
            "",
        ] {
            assert_eq!(five(path), [id], "{path:?}");
        }
        let deep = "/x".repeat(5000);
        assert_eq!(five(&deep), ["x", id]);
        assert_eq!(five(&format!("/{}", "y".repeat(5000))), [id]);
    }

    #[test]
    fn paths_are_alike_from_the_end() {
        let library = library("/data/app/x/base.apk!lib/arm64-v8a/libfoo.so");
        let wanted = LibraryQuery::new(&library, false);
        let alike = |path: &str| wanted.likeness(path.split('/'));
        assert_eq!(alike("build/obj/arm64-v8a/libfoo.so"), 2);
        assert_eq!(alike("build/obj/x86/libfoo.so"), 1);
        assert_eq!(alike("libbar.so"), 0);
    }
}
