//! Owner of a frame's code, which selects the R8 mappings that apply. As in Perfetto, this is the
//! package of the APK that the code was loaded from (`/data/app/…/package-…/`), otherwise the
//! packages with the app ID of a process it was seen in. Code compiled in memory (`/memfd:`) can
//! belong to any app. If a trace does not list packages, the name of a process is that of its
//! package.

use super::frame_name::FrameName;
use heaptap_model::profile::{FrameId, Recording};
use std::collections::{BTreeSet, HashMap};

/// Processes in which each frame was sampled.
pub type SeenIn = HashMap<FrameId, BTreeSet<u64>>;

/// Owner of the code in a memory mapping.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Owner<'a> {
    Package(&'a str),
    /// Compiled in memory: the path does not name the package, and any R8 mapping can apply.
    Any,
    /// To be decided from the processes it was seen in.
    Unknown,
}

impl<'a> Owner<'a> {
    pub(super) fn from_path(path: &'a str) -> Owner<'a> {
        if path.starts_with("/memfd:") {
            return Owner::Any;
        }
        // This includes "dex extracted in memory from /data/app/…".
        let Some(at) = path.find("/data/app/") else {
            return Owner::Unknown;
        };
        let mut parts = path[at + "/data/app/".len()..].split('/');
        let directory = match parts.next() {
            Some(random) if random.starts_with("~~") => parts.next(),
            other => other,
        };
        match directory.and_then(|directory| directory.split_once('-')) {
            Some((package, _)) if !package.is_empty() => Owner::Package(package),
            _ => Owner::Unknown,
        }
    }
}

/// Returns whether a memory mapping contains native code, whose names are never Java names.
pub(super) fn is_native(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let name = name.strip_suffix(" (deleted)").unwrap_or(name);
    name.ends_with(".so") || name.contains(".so.")
}

/// Returns whether a memory mapping contains platform code: R8 mappings of apps do not apply to it.
pub(super) fn is_platform(path: &str) -> bool {
    let directory = |start: &str| path.contains(start);
    directory("/apex/") || directory("/framework/") || path.starts_with("/system/lib")
}

/// Returns the number of frames in Java code of apps, judged by their paths.
pub fn java_frames(recording: &Recording) -> u64 {
    let tables = &recording.tables;
    let is_java: Vec<bool> = tables
        .mappings()
        .iter()
        .map(|mapping| {
            let path = tables.string(mapping.path);
            let kinds = [".apk", ".dex", ".vdex", ".odex", ".oat", ".jar"];
            let is_code = kinds.iter().any(|kind| path.contains(kind));
            (is_code || path.starts_with("/memfd:")) && !is_native(path) && !is_platform(path)
        })
        .collect();
    let frames = tables.frames().iter();
    let java = frames.filter(|frame| {
        let of_app = frame
            .mapping
            .is_some_and(|mapping| is_java[mapping.0 as usize]);
        of_app && FrameName::parse(tables.string(frame.name)).is_some()
    });
    java.count() as u64
}

const USERS: u64 = 100_000;
const FIRST_APP: u64 = 10_000;

/// Packages of processes, by UID if the trace lists packages, otherwise by process name.
#[derive(Debug)]
pub(super) struct Packages<'a> {
    recording: &'a Recording,
    by_app: HashMap<u64, Vec<&'a str>>,
}

impl<'a> Packages<'a> {
    pub(super) fn from_recording(recording: &'a Recording) -> Self {
        let mut by_app: HashMap<u64, Vec<&str>> = HashMap::new();
        for package in &recording.packages {
            let names = by_app.entry(package.uid % USERS).or_default();
            names.push(&package.name);
        }
        Packages { recording, by_app }
    }

    /// Returns the packages that a process can belong to, most likely first.
    pub(super) fn of_process(&self, pid: u64) -> Vec<&'a str> {
        let Some(process) = self.recording.processes.get(&pid) else {
            return Vec::new();
        };
        let app = process.uid.map(|uid| uid % USERS);
        if let Some(known) = app.and_then(|app| self.by_app.get(&app)) {
            return known.clone();
        }
        package_in(&process.name).into_iter().collect()
    }

    /// Returns whether a process belongs to an app, as far as known from the trace.
    fn is_app(&self, pid: u64) -> bool {
        let process = self.recording.processes.get(&pid);
        let uid = process.and_then(|process| process.uid);
        uid.is_none_or(|uid| uid % USERS >= FIRST_APP)
    }
}

/// Returns the package in the name of a process, such as `com.example.app:service`.
pub(super) fn package_in(process: &str) -> Option<&str> {
    let name = process.split(':').next().unwrap_or_default();
    (name.contains('.') && !name.contains('/')).then_some(name)
}

/// Returns the packages that an R8 mapping without a package can apply to: those of the profiled
/// apps. If none of them has code of its own in the trace, packages with code in the trace are
/// added. Apps with only Java heap dumps (process IDs in `dumped`) count as profiled.
pub fn profiled_packages(
    recording: &Recording,
    seen: &SeenIn,
    dumped: &BTreeSet<u64>,
) -> BTreeSet<String> {
    let packages = Packages::from_recording(recording);
    let pids: BTreeSet<u64> = seen.values().flatten().chain(dumped).copied().collect();
    let by_process: BTreeSet<&str> = pids
        .into_iter()
        .filter(|&pid| packages.is_app(pid))
        .flat_map(|pid| packages.of_process(pid))
        .collect();
    let tables = &recording.tables;
    let by_path: BTreeSet<&str> = tables
        .frames()
        .iter()
        .enumerate()
        .filter(|(at, _)| seen.contains_key(&FrameId(*at as u32)))
        .filter_map(|(_, frame)| frame.mapping)
        .filter_map(|mapping| {
            let path = tables.string(tables.mapping(mapping).path);
            match Owner::from_path(path) {
                Owner::Package(package) if !is_native(path) => Some(package),
                _ => None,
            }
        })
        .collect();
    let all: BTreeSet<&str> = if by_process.is_disjoint(&by_path) {
        by_process.union(&by_path).copied().collect()
    } else {
        by_process
    };
    all.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_model::profile::{Package, Process};

    #[test]
    fn an_apk_names_its_package() {
        for (path, package) in [
            ("/data/app/com.x-Ab1==/base.apk", Some("com.x")),
            (
                "/data/app/~~r4nd==/com.x-Ab1==/oat/arm64/base.odex",
                Some("com.x"),
            ),
            (
                "/[anon:dalvik-classes2.dex extracted in memory from /data/app/~~r==/com.x-A/base.apk]",
                Some("com.x"),
            ),
            ("/data/app/com.x/base.apk", None),
            ("/system/priv-app/X/X.apk", None),
        ] {
            let expected = package.map_or(Owner::Unknown, Owner::Package);
            assert_eq!(Owner::from_path(path), expected, "{path}");
        }
        assert_eq!(Owner::from_path("/memfd:jit-cache (deleted)"), Owner::Any);
    }

    #[test]
    fn a_process_is_of_the_packages_with_its_uid_else_of_its_name() {
        let mut recording = Recording::default();
        let package = |name: &str, uid| Package {
            name: name.to_owned(),
            uid,
            ..Package::default()
        };
        recording.packages = vec![package("com.x", 10_007), package("com.x.shared", 10_007)];
        for (pid, name, uid) in [
            (1, "com.x:service", Some(1_010_007)),
            (2, "com.y:service", Some(10_008)),
            (3, "com.z", None),
            (4, "/system/bin/x.y", Some(0)),
            (5, "zygote64", Some(0)),
        ] {
            let name = name.to_owned();
            let process = Process {
                name,
                uid,
                ..Process::default()
            };
            recording.processes.insert(pid, process);
        }
        let packages = Packages::from_recording(&recording);
        assert_eq!(packages.of_process(1), ["com.x", "com.x.shared"]);
        assert_eq!(packages.of_process(2), ["com.y"]);
        assert_eq!(packages.of_process(3), ["com.z"]);
        assert!(packages.of_process(4).is_empty());
        assert!(packages.of_process(5).is_empty());
        assert!(packages.of_process(6).is_empty());
    }

    #[test]
    fn native_code_and_the_systems_are_told_apart() {
        assert!(is_native("/data/app/com.x-1/base.apk!libx.so"));
        assert!(is_native("/system/lib64/libc.so (deleted)"));
        assert!(!is_native("/data/app/com.x-1/base.apk"));
        assert!(is_platform("/apex/com.android.art/javalib/core-oj.jar"));
        assert!(is_platform("/system/framework/arm64/boot-framework.oat"));
        assert!(!is_platform("/system/priv-app/SystemUI/SystemUI.apk"));
    }
}
