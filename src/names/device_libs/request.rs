//! Requested libraries: their benefit, and the location of their files. Paths come from the trace
//! and are not trusted: only absolute normalized ones are requested, and by default only below the
//! directories of the system, of apps and of pushed programs.

use std::collections::BTreeMap;

use heaptap_base::units::BuildId;
use heaptap_base::untrusted::sanitize;
use heaptap_model::names::java_code;
use heaptap_model::profile::{CallsiteId, FrameId, MappingId, Recording, StringId};

/// Directories of system libraries.
const SYSTEM: [&str; 7] = [
    "/apex/",
    "/odm/",
    "/product/",
    "/system/",
    "/system_dlkm/",
    "/system_ext/",
    "/vendor/",
];
/// Directories of installed or pushed files, whose build might have left symbols in them.
const OWN: [&str; 4] = [
    "/data/app/",
    "/data/local/tmp/",
    "/data/nativetest/",
    "/data/nativetest64/",
];
/// Directories without linked files.
const NEVER: [&str; 3] = ["/dev/", "/proc/", "/sys/"];
/// adbd's longest path.
const MAX_LENGTH: usize = 1024;

/// A library that could have more symbols than the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LibraryRequest {
    /// Path as the recording has it.
    pub path: String,
    /// GNU build ID.
    pub build_id: BuildId,
    /// Offset of its ELF file in the file of that path: not 0 in an APK.
    pub start_offset: u64,
    /// Callsites with a nameless frame in it.
    pub nameless: usize,
    /// Callsites with a frame in it that has no file and line.
    pub without_lines: usize,
}

/// Location of a library's bytes on the device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Where {
    /// File on the device.
    pub(super) file: String,
    /// True if the file is an APK that contains the library.
    pub(super) is_inside: bool,
}

impl LibraryRequest {
    /// Returns its benefit: unnamed frames before frames without lines.
    pub(super) fn weight(&self) -> (usize, usize) {
        (self.nameless, self.without_lines)
    }

    /// Returns whether it was installed or pushed, so that its build might have left symbols in it.
    pub(super) fn is_own(&self) -> bool {
        OWN.iter().any(|directory| self.path.starts_with(directory))
    }

    /// Returns whether it is in a directory of device libraries.
    pub(super) fn is_at_home(&self) -> bool {
        self.is_own()
            || SYSTEM
                .iter()
                .any(|directory| self.path.starts_with(directory))
    }

    /// Returns its path without terminal control characters.
    pub(super) fn shown(&self) -> String {
        sanitize(&self.path).into_owned()
    }

    /// Returns its location on the device; `None` if it is not a file there.
    pub(super) fn place(&self) -> Option<Where> {
        let (file, is_inside) = match self.path.split_once('!') {
            Some((apk, _)) => (apk, true),
            None => (self.path.as_str(), self.start_offset != 0),
        };
        let normal = file
            .split('/')
            .skip(1)
            .all(|part| !matches!(part, "" | "." | ".."));
        let known = file.starts_with('/')
            && !NEVER.iter().any(|directory| file.starts_with(directory))
            && !["/[", "/memfd:"].iter().any(|name| file.starts_with(name));
        let plain = !file.contains(|c: char| c.is_control() || c == char::REPLACEMENT_CHARACTER);
        if !(normal && known && plain && file.len() <= MAX_LENGTH) || file.ends_with(" (deleted)") {
            return None;
        }
        let file = file.to_owned();
        Some(Where { file, is_inside })
    }
}

/// Returns the libraries with frames that lack names or lines, with the number of affected
/// callsites. Reads every callsite once.
pub fn requests(recording: &Recording) -> Vec<LibraryRequest> {
    let tables = &recording.tables;
    // Requirement of a frame: 0 none, 1 lines, 2 a name.
    let needs: Vec<u8> = (0..tables.frames().len() as u32)
        .map(|at| {
            let frame = tables.frame(FrameId(at));
            let lines = recording.symbols.lines(FrameId(at));
            let has_lines = lines.iter().any(|line| line.line != 0);
            let is_named = !lines.is_empty() || frame.name != StringId::default();
            let path = frame.mapping.map(|id| tables.mapping(id).path);
            // No file has lines of compiled Java code.
            if is_named && path.is_some_and(|path| java_code(tables.string(path)).is_some()) {
                return 0;
            }
            match (has_lines, is_named) {
                (true, _) => 0,
                (false, true) => 1,
                (false, false) => 2,
            }
        })
        .collect();
    let mut worst = vec![0u8; tables.mappings().len()];
    let mut counts = vec![(0usize, 0usize); tables.mappings().len()];
    let mut touched: Vec<usize> = Vec::new();
    for callsite in 0..tables.callsite_count() as u32 {
        for frame in tables.callsite(CallsiteId(callsite)) {
            let need = needs[frame.0 as usize];
            let Some(MappingId(mapping)) = tables.frame(frame).mapping else {
                continue;
            };
            let at = mapping as usize;
            if need > 0 && worst[at] == 0 {
                touched.push(at);
            }
            worst[at] = worst[at].max(need);
        }
        for at in touched.drain(..) {
            match std::mem::take(&mut worst[at]) {
                2 => counts[at].0 += 1,
                _ => counts[at].1 += 1,
            }
        }
    }
    let mut found: BTreeMap<(&str, &[u8]), LibraryRequest> = BTreeMap::new();
    for (mapping, (nameless, without_lines)) in tables.mappings().iter().zip(counts) {
        if nameless + without_lines == 0 || mapping.build_id.is_empty() {
            continue;
        }
        let path = tables.string(mapping.path);
        let request = found
            .entry((path, &mapping.build_id.0))
            .or_insert_with(|| LibraryRequest {
                path: path.to_owned(),
                build_id: mapping.build_id.clone(),
                start_offset: mapping.start_offset,
                nameless: 0,
                without_lines: 0,
            });
        request.nameless += nameless;
        request.without_lines += without_lines;
    }
    found.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_model::profile::{Frame, Line, Mapping};

    fn request(path: &str, start_offset: u64) -> LibraryRequest {
        LibraryRequest {
            path: path.to_owned(),
            build_id: BuildId(vec![1; 20]),
            start_offset,
            nameless: 1,
            without_lines: 0,
        }
    }

    #[test]
    fn only_absolute_normalised_paths_of_files_are_asked_for() {
        let in_file = |file: &str, is_inside| {
            let file = file.to_owned();
            Some(Where { file, is_inside })
        };
        let place = |path: &str, offset| request(path, offset).place();
        assert_eq!(
            place("/system/lib64/libc.so", 0),
            in_file("/system/lib64/libc.so", false)
        );
        for (path, at_home, own) in [
            ("/apex/com.android.art/lib64/libart.so", true, false),
            ("/data/local/tmp/bench", true, true),
            ("/data/user/0/x/files/libx.so", false, false),
            ("/usr/lib/libc.so.6", false, false),
            ("/systemd/libc.so", false, false),
        ] {
            assert_eq!(place(path, 0), in_file(path, false), "{path}");
            let request = request(path, 0);
            assert_eq!(
                (request.is_at_home(), request.is_own()),
                (at_home, own),
                "{path}"
            );
        }
        let app = "/data/app/~~a==/x-b==/base.apk";
        let apk = in_file(app, true);
        assert_eq!(place(&format!("{app}!libx.so"), 4096), apk);
        assert_eq!(place(app, 4096), apk);
        for path in [
            "",
            "/[vdso]",
            "/[anon:scudo]",
            "/memfd:jit-cache (deleted)",
            "/data/app/x-1/lib/arm64/libx.so (deleted)",
            "/proc/self/mem",
            "/dev/ashmem/x",
            "/data/app/../user/0/x/secret",
            "/system//lib/libc.so",
            "/system/lib/./libc.so",
            "system/lib64/libc.so",
            "/system/lib64/lib\nc.so",
            "/system/lib64/lib\u{1b}[2J.so",
            &format!("/system/{}", "x".repeat(1024)),
        ] {
            assert_eq!(place(path, 0), None, "{path:?}");
        }
    }

    #[test]
    fn a_library_is_requested_for_the_callsites_that_it_leaves_open() {
        let mut recording = Recording::default();
        let tables = &mut recording.tables;
        let mut mapping = |path: &str, id| {
            let path = tables.intern_str(path);
            tables.intern_mapping(Mapping {
                path,
                build_id: BuildId(vec![id; 20]),
                end: 0x1000,
                ..Mapping::default()
            })
        };
        let (a, b, c) = (mapping("/a", 1), mapping("/b", 2), mapping("/c", 3));
        let name = tables.intern_str("malloc");
        let mut frame = |mapping, rel_pc, name| {
            let frame = Frame {
                mapping: Some(mapping),
                rel_pc,
                name,
                file: StringId::default(),
                line: 0,
            };
            tables.intern_frame(frame).0
        };
        let none = StringId::default();
        let (a1, a2) = (frame(a, 1, none), frame(a, 2, none));
        let (b1, c1) = (frame(b, 1, name), frame(c, 1, none));
        tables.intern_callsite(&[a1, a2, b1]);
        tables.intern_callsite(&[a1, c1]);
        tables.intern_callsite(&[b1]);
        let line = Line {
            function: name,
            linkage: name,
            file: name,
            line: 7,
        };
        let row = recording.symbols.add_lines(&[line]).unwrap();
        recording.symbols.set_lines(FrameId(c1), row);
        let found: Vec<(String, (usize, usize))> = requests(&recording)
            .into_iter()
            .map(|request| (request.path.clone(), request.weight()))
            .collect();
        assert_eq!(
            found,
            [("/a".to_owned(), (2, 0)), ("/b".to_owned(), (0, 2))]
        );
    }
}
