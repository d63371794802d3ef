//! Permissions of uid 2000 on a phone by Android version, build type and SELinux. All rules are in
//! this module; `tests/phone/access.rs` lists them as a table.

use super::fs::Stat;
use super::process::{Process, Role, SHELL};
use super::spec::{BuildType, PhoneSpec};

/// Credentials: UID, groups and SELinux domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cred {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) groups: Vec<u32>,
    pub(crate) domain: &'static str,
}

/// Groups that adbd gives its shell: log, adb, sdcard_rw, sdcard_r, ext_data_rw, ext_obb_rw,
/// net_bt_admin, net_bt, inet, net_bw_stats, readproc, uhid, readtracefs.
const SHELL_GROUPS: [u32; 14] = [
    1004, 1007, 1011, 1015, 1028, 1078, 1079, 3001, 3002, 3003, 3006, 3009, 3011, 3012,
];

impl Cred {
    /// Returns the credentials of processes started by adb.
    pub(crate) fn shell() -> Cred {
        Cred {
            uid: SHELL,
            gid: SHELL,
            groups: SHELL_GROUPS.to_vec(),
            domain: "shell",
        }
    }

    /// Returns the credentials of processes started by `su root`.
    pub(crate) fn root() -> Cred {
        Cred {
            uid: 0,
            gid: 0,
            groups: vec![0],
            domain: "su",
        }
    }

    pub(crate) fn is_root(&self) -> bool {
        self.uid == 0
    }
}

/// Access to a file: read, write or search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Want {
    Read = 4,
    Write = 2,
    Search = 1,
}

/// Returns whether owner, group and mode allow the access.
pub(crate) fn mode_allows(cred: &Cred, stat: &Stat, want: Want) -> bool {
    if cred.is_root() {
        return true;
    }
    let shift = if cred.uid == stat.uid {
        6
    } else if cred.gid == stat.gid || cred.groups.contains(&stat.gid) {
        3
    } else {
        0
    };
    stat.mode >> shift & want as u32 != 0
}

/// Returns whether SELinux allows the domain this action on a file of this type.
pub(crate) fn label_allows(
    spec: &PhoneSpec,
    enforcing: bool,
    cred: &Cred,
    label: &str,
    action: FileAction,
) -> bool {
    if !enforcing || cred.domain != "shell" {
        return true;
    }
    match (label, action) {
        // The shell can pull traces and, from Android 11 on, remove them; only perfetto creates
        // them.
        ("perfetto_traces_data_file", FileAction::Remove) => spec.android >= 11,
        ("perfetto_traces_data_file", action) => action == FileAction::Read,
        ("perfetto_configs_data_file", _) => spec.android >= 12,
        ("system_data_file" | "packages_list_file" | "app_data_file", _) => false,
        ("apk_data_file" | "system_file", action) => action == FileAction::Read,
        _ => true,
    }
}

/// Action on a file, as distinguished by the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileAction {
    Read,
    Write,
    Remove,
}

/// Returns whether `cred` can signal a process. The kernel lets a UID signal its own processes;
/// root can signal all, and SELinux does not restrict `su`.
pub(crate) fn may_signal(cred: &Cred, target: &Process) -> bool {
    cred.is_root() || cred.uid == target.uid
}

/// Returns whether `cred` can read maps, smaps and other files that require ptrace permission.
pub(crate) fn may_inspect(cred: &Cred, target: &Process) -> bool {
    cred.is_root() || (cred.uid == target.uid && target.role != Role::Kernel)
}

/// Returns whether `cred` can set the property.
pub(crate) fn may_set_property(spec: &PhoneSpec, cred: &Cred, name: &str) -> bool {
    if name.starts_with("ro.") {
        return false;
    }
    if cred.is_root() {
        return true;
    }
    let of_shell = [
        "debug.",
        "log.tag.",
        "persist.log.tag.",
        "persist.traced.",
        "persist.sys.trace",
        "sys.powerctl",
        "ctl.dumpstate",
        "persist.debug.",
        "wrap.",
        "libc.debug.",
        "dalvik.vm.extra",
    ];
    let allowed = of_shell.iter().any(|p| name.starts_with(p));
    // A release build restricts the properties that change how other apps run.
    let debug_only = name.starts_with("wrap.") || name.starts_with("libc.debug.");
    allowed && (!debug_only || spec.build != BuildType::User)
}

/// Returns whether `su` exists and `setenforce` has an effect for root.
pub(crate) fn has_su(spec: &PhoneSpec) -> bool {
    spec.build != BuildType::User
}

/// Returns whether ART treats every app as debuggable.
pub(crate) fn java_debuggable_build(spec: &PhoneSpec) -> bool {
    spec.build != BuildType::User
}
