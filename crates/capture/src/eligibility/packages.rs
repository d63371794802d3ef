//! Installed packages, and parsers for their sources: `pm list packages`,
//! `simpleperf_app_runner --show-app-type`, `packages.list`, the `android.packages_list`
//! packet of a trace, `dumpsys package`. Pure functions from bytes to [`Package`]s.

use std::collections::BTreeMap;

use serde::Serialize;

use super::sections::{Sections, text_lines};
use heaptap_base::untrusted::sanitize_bytes;

/// Profiling that a package's manifest allows, as seen by the device's package manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AppType {
    /// `android:debuggable`: adb can profile it.
    Debuggable,
    /// `<profileable android:shell="true"/>`: adb can profile it.
    Profileable,
    /// Only the system can profile it.
    PlatformOnly,
    /// Neither debuggable nor profileable by the adb shell.
    Closed,
}

impl AppType {
    /// Returns whether a session of the adb shell can profile it on a user build.
    pub fn allows_shell(self) -> bool {
        matches!(self, AppType::Debuggable | AppType::Profileable)
    }
}

/// Source of [`Package::app_type`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AppTypeSource {
    /// `simpleperf_app_runner PKG --show-app-type` (Android 12 and later).
    AppRunner,
    /// The packages list of a Perfetto trace.
    PackagesTrace,
    /// `/data/system/packages.list`, which only root can read.
    PackagesList,
    /// `run-as`, which identifies only debuggable packages.
    RunAs,
    /// `dumpsys package`: a flag proves its fact, a missing flag proves nothing.
    Dumpsys,
    /// The manifest in the APK.
    Manifest,
}

/// An installed package.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Package {
    pub name: String,
    /// Uid of its processes: `user * 100000 + appid`.
    pub uid: Option<u32>,
    /// The package that installed it.
    pub installer: Option<String>,
    /// Profiling that its manifest allows; `None` if it could not be read.
    pub app_type: Option<AppType>,
    pub app_type_source: Option<AppTypeSource>,
}

impl Package {
    /// Creates a package with only a name.
    pub fn named(name: &str) -> Package {
        Package {
            name: name.to_owned(),
            ..Package::default()
        }
    }

    /// Returns the appid: the UID without the user.
    pub fn appid(&self) -> Option<u32> {
        self.uid.map(|uid| uid % PER_USER)
    }

    pub(super) fn set_type(&mut self, kind: AppType, source: AppTypeSource) {
        self.app_type = Some(kind);
        self.app_type_source = Some(source);
    }
}

/// Number of UIDs per user: `uid / PER_USER` is the user, `uid % PER_USER` the appid.
pub const PER_USER: u32 = 100_000;

/// Parses `pm list packages -U -i [--user N]`: lines of
/// `package:NAME  installer=NAME  uid:10123`, in the device's order. With several users and no
/// `--user` the UIDs are a list; the first counts.
pub fn read_list(stdout: &[u8]) -> Vec<Package> {
    text_lines(stdout)
        .iter()
        .filter_map(|line| {
            let mut words = line.strip_prefix("package:")?.split_whitespace();
            let mut package = Package::named(&sanitize_bytes(words.next()?.as_bytes()));
            for word in words {
                if let Some(installer) = word.strip_prefix("installer=") {
                    package.installer =
                        (installer != "null").then(|| sanitize_bytes(installer.as_bytes()));
                } else if let Some(uids) = word.strip_prefix("uid:") {
                    package.uid = uids.split(',').next().and_then(|uid| uid.parse().ok());
                }
            }
            Some(package)
        })
        .collect()
}

/// Parses the answers of `simpleperf_app_runner PKG --show-app-type` by package. A package
/// that it does not know, or a device without it, has no entry.
pub fn read_app_types(output: &[u8]) -> BTreeMap<String, AppType> {
    let sections = Sections::read(output);
    let kind = |line: &String| match line.as_str() {
        "debuggable" => Some(AppType::Debuggable),
        "profileable" => Some(AppType::Profileable),
        "non_profileable" => Some(AppType::Closed),
        _ => None,
    };
    let of_name = |name: &str| {
        let kind = sections.lines(name).iter().find_map(kind)?;
        Some((name.to_owned(), kind))
    };
    sections.names().filter_map(of_name).collect()
}

/// One row of the device's package list, from a trace or from `packages.list`. heapprofd
/// decides by the first row with the appid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PackageRow {
    pub name: String,
    /// Appid, or a user's UID if the device wrote that.
    pub uid: u32,
    /// `android:debuggable`.
    pub debuggable: bool,
    /// `<profileable android:shell="true"/>`; debuggable implies it.
    pub profileable_from_shell: bool,
    /// Profileable by the system (Android 12 and later).
    pub profileable_by_platform: Option<bool>,
}

impl PackageRow {
    /// Returns the app type that the row amounts to.
    pub fn app_type(&self) -> AppType {
        if self.debuggable {
            AppType::Debuggable
        } else if self.profileable_from_shell {
            AppType::Profileable
        } else if self.profileable_by_platform == Some(true) {
            AppType::PlatformOnly
        } else {
            AppType::Closed
        }
    }
}

/// Parses `/data/system/packages.list`: space-separated columns 0 name, 1 appid, 2 debuggable,
/// 3 data directory, 4 seinfo, 5 gids, 6 profileable from shell (Android 10+), 7 version code,
/// 8 profileable by the platform (12+), 9 installer. Missing tail columns are tolerated, a
/// line without the first three is not a row.
pub fn read_packages_list(text: &[u8]) -> Vec<PackageRow> {
    text_lines(text)
        .iter()
        .filter_map(|line| {
            let columns: Vec<&str> = line.split(' ').collect();
            let flag = |n: usize| {
                columns.get(n).and_then(|c| match *c {
                    "0" => Some(false),
                    "1" => Some(true),
                    _ => None,
                })
            };
            Some(PackageRow {
                name: sanitize_bytes(columns.first()?.as_bytes()),
                uid: columns.get(1)?.parse().ok()?,
                debuggable: flag(2)?,
                profileable_from_shell: flag(6) == Some(true),
                profileable_by_platform: flag(8),
            })
        })
        .collect()
}

impl From<&heaptap_model::profile::Package> for PackageRow {
    fn from(package: &heaptap_model::profile::Package) -> PackageRow {
        PackageRow {
            name: sanitize_bytes(package.name.as_bytes()),
            // No device has such a UID, so the row matches no package.
            uid: u32::try_from(package.uid).unwrap_or(u32::MAX),
            debuggable: package.debuggable,
            profileable_from_shell: package.profileable_from_shell,
            profileable_by_platform: None,
        }
    }
}

/// Parses the rows of a trace that contains `android.packages_list`. Returns `None` if the
/// bytes are not such a trace, or the device could not read its list.
pub fn read_packages_trace(bytes: &[u8]) -> Option<Vec<PackageRow>> {
    let packages = perfetto_heap::read_packages(bytes);
    (!packages.is_empty()).then(|| packages.iter().map(PackageRow::from).collect())
}

/// Returns what the first record of `dumpsys package PKG` proves: flags in it count, missing
/// ones prove nothing (many builds have no flag for profileable). A second record belongs to
/// the package hidden below an updated system app.
pub fn read_dumpsys(stdout: &[u8], name: &str) -> Option<AppType> {
    let mut found = None;
    for word in read_flags(stdout, name)? {
        match &word[..] {
            "DEBUGGABLE" => return Some(AppType::Debuggable),
            "PROFILEABLE_BY_SHELL" => found = Some(AppType::Profileable),
            _ => {}
        }
    }
    found
}

/// Returns whether the app has `android:largeHeap`, according to `dumpsys package PKG`;
/// `None` if the output has no flags of the package.
pub fn read_large_heap(stdout: &[u8], name: &str) -> Option<bool> {
    let flags = read_flags(stdout, name).filter(|flags| !flags.is_empty())?;
    Some(flags.iter().any(|flag| flag == "LARGE_HEAP"))
}

/// Collects the flags of the first record of a package.
fn read_flags(stdout: &[u8], name: &str) -> Option<Vec<String>> {
    let lines = text_lines(stdout);
    let head = format!("Package [{name}]");
    let start = lines.iter().position(|l| l.starts_with(&head))?;
    let record = lines[start + 1..]
        .iter()
        .take_while(|l| !l.starts_with("Package [") && !l.starts_with("Hidden system packages:"));
    let mut words = Vec::new();
    for line in record {
        let Some((key, flags)) = line.split_once("=[") else {
            continue;
        };
        if ["flags", "pkgFlags", "privateFlags", "privatePkgFlags"].contains(&key) {
            let flags = flags.trim_end_matches(']').split_whitespace();
            words.extend(flags.map(str::to_owned));
        }
    }
    Some(words)
}

/// Parses `run-as PKG id`, which succeeds only for debuggable packages. A refusal proves
/// nothing, because the package might be profileable.
pub fn read_run_as(stdout: &[u8]) -> Option<AppType> {
    let mut lines = text_lines(stdout).into_iter();
    let is_run = lines.any(|line| line.starts_with("uid="));
    is_run.then_some(AppType::Debuggable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_read_with_and_without_installers() {
        let list = read_list(
            b"WARNING: linker: x\npackage:com.example.app  installer=null  uid:10234\r\n\
              package:com.example.app.demo  installer=com.android.vending  uid:10245\n\
              package:com.both uid:10241,1010241\npackage:old\nError: java.lang.X\n",
        );
        let rows: Vec<_> = list
            .iter()
            .map(|p| (p.name.as_str(), p.uid, p.installer.as_deref()))
            .collect();
        assert_eq!(
            rows,
            [
                ("com.example.app", Some(10_234), None),
                (
                    "com.example.app.demo",
                    Some(10_245),
                    Some("com.android.vending")
                ),
                ("com.both", Some(10_241), None),
                ("old", None, None),
            ]
        );
    }

    #[test]
    fn app_types_come_by_package() {
        let types = read_app_types(
            b"@@heaptap a\ndebuggable\n\n@@heaptap b\r\nprofileable\r\n\n@@heaptap c\n\
              non_profileable\n\n@@heaptap d\nfailed to find package d\n\n@@heaptap e\n",
        );
        assert_eq!(types.len(), 3);
        assert_eq!(types["a"], AppType::Debuggable);
        assert_eq!(types["b"], AppType::Profileable);
        assert_eq!(types["c"], AppType::Closed);
    }

    #[test]
    fn packages_list_may_lack_its_tail() {
        let rows = read_packages_list(
            b"com.a 10100 1 /data/user/0/com.a default:targetSdkVersion=33 none 1 42 1 @null\n\
              com.b 10101 0 /data/user/0/com.b default 3003,1004 1 42 1 com.android.vending\n\
              com.c 10102 0 /data/user/0/com.c default none 0 42 1 @system\n\
              com.d 10103 0 /data/user/0/com.d default none 0 42 0 @null\n\
              com.e 10104 0 /data/user/0/com.e default none\n\
              com.f x 0\n\ncom.g 10105\n",
        );
        let kinds: Vec<_> = rows
            .iter()
            .map(|r| (r.name.as_str(), r.app_type()))
            .collect();
        assert_eq!(
            kinds,
            [
                ("com.a", AppType::Debuggable),
                ("com.b", AppType::Profileable),
                ("com.c", AppType::PlatformOnly),
                ("com.d", AppType::Closed),
                ("com.e", AppType::Closed),
            ]
        );
    }

    #[test]
    fn a_trace_tells_rows_or_that_it_could_not() {
        use heaptap_proto::perfetto::{
            PackagesList, Trace, TracePacket, packages_list::PackageInfo,
        };
        use prost::Message as _;
        let trace = |list: Option<PackagesList>| {
            Trace {
                packet: vec![
                    TracePacket::default(),
                    TracePacket {
                        packages_list: list,
                        ..TracePacket::default()
                    },
                ],
            }
            .encode_to_vec()
        };
        let info = PackageInfo {
            name: Some("com.a".into()),
            uid: Some(10_100),
            profileable_from_shell: Some(true),
            ..PackageInfo::default()
        };
        let rows = read_packages_trace(&trace(Some(PackagesList {
            packages: vec![info],
            ..PackagesList::default()
        })));
        assert_eq!(rows.map(|r| r[0].app_type()), Some(AppType::Profileable));
        let failed = PackagesList {
            read_error: Some(true),
            ..PackagesList::default()
        };
        assert_eq!(read_packages_trace(&trace(Some(failed))), None);
        assert_eq!(read_packages_trace(&trace(None)), None);
        assert_eq!(read_packages_trace(b"Service error: x"), None);
        assert_eq!(read_packages_trace(b""), None);
    }

    #[test]
    fn dumpsys_proves_only_what_it_affirms() {
        let text = b"Packages:\n  Package [com.a] (1a2b):\n    userId=10100\n    \
            flags=[ DEBUGGABLE HAS_CODE ]\n  Package [com.b] (2):\n    flags=[ HAS_CODE ]\n    \
            privateFlags=[ PROFILEABLE_BY_SHELL ]\n  Package [com.c] (3):\n    pkgFlags=0x2\n\
            Hidden system packages:\n  Package [com.c] (4):\n    flags=[ DEBUGGABLE ]\n";
        assert_eq!(read_dumpsys(text, "com.a"), Some(AppType::Debuggable));
        assert_eq!(read_dumpsys(text, "com.b"), Some(AppType::Profileable));
        assert_eq!(read_dumpsys(text, "com.c"), None);
        assert_eq!(read_dumpsys(text, "com"), None);
        assert_eq!(read_large_heap(text, "com.a"), Some(false));
        assert_eq!(read_large_heap(text, "com.c"), None);
        let large = b"  Package [com.a] (1):\n    flags=[ HAS_CODE LARGE_HEAP ]\n";
        assert_eq!(read_large_heap(large, "com.a"), Some(true));
        assert_eq!(
            read_run_as(b"uid=10100(u0_a100) gid=10100\n"),
            Some(AppType::Debuggable)
        );
        assert_eq!(
            read_run_as(b"run-as: package not debuggable: com.b\n"),
            None
        );
    }
}
