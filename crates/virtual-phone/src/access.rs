//! What uid 2000 may do on a phone, by Android version, build and SELinux. The one place
//! with these rules; `tests/phone/access.rs` holds them as a table.

use super::fs::Stat;
use super::process::{Process, Role, SHELL};
use super::spec::{BuildType, PhoneSpec};

/// Who acts: uid, groups and SELinux domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cred {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) groups: Vec<u32>,
    /// SELinux domain.
    pub(crate) domain: &'static str,
}

/// log, adb, sdcard_rw, sdcard_r, ext_data_rw, ext_obb_rw, net_bt_admin, net_bt, inet,
/// net_bw_stats, readproc, uhid, readtracefs: the groups that adbd gives its shell.
const SHELL_GROUPS: [u32; 14] = [
    1004, 1007, 1011, 1015, 1028, 1078, 1079, 3001, 3002, 3003, 3006, 3009, 3011, 3012,
];

impl Cred {
    /// What adb starts.
    pub(crate) fn shell() -> Cred {
        Cred {
            uid: SHELL,
            gid: SHELL,
            groups: SHELL_GROUPS.to_vec(),
            domain: "shell",
        }
    }

    /// What `su root` starts.
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

/// read, write or search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Want {
    Read = 4,
    Write = 2,
    Search = 1,
}

/// Whether owner, group and mode allow it.
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

/// Whether SELinux lets the domain do it to a file of this type.
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
        // The shell may pull and, from 11 on, remove traces; only perfetto makes them.
        ("perfetto_traces_data_file", FileAction::Remove) => spec.android >= 11,
        ("perfetto_traces_data_file", action) => action == FileAction::Read,
        ("perfetto_configs_data_file", _) => spec.android >= 12,
        ("system_data_file" | "packages_list_file" | "app_data_file", _) => false,
        ("apk_data_file" | "system_file", action) => action == FileAction::Read,
        _ => true,
    }
}

/// What is done to a file, as far as policy tells it apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileAction {
    Read,
    Write,
    Remove,
}

/// Whether `cred` may signal a process. The kernel lets one uid signal its own processes;
/// root may signal all, except that SELinux keeps `su` from nothing.
pub(crate) fn may_signal(cred: &Cred, target: &Process) -> bool {
    cred.is_root() || cred.uid == target.uid
}

/// Whether `cred` may read maps, smaps and the like: what ptrace may read.
pub(crate) fn may_inspect(cred: &Cred, target: &Process) -> bool {
    cred.is_root() || (cred.uid == target.uid && target.role != Role::Kernel)
}

/// Whether `cred` may set the property.
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
    // A release build keeps the properties that change how other apps run.
    let debug_only = name.starts_with("wrap.") || name.starts_with("libc.debug.");
    allowed && (!debug_only || spec.build != BuildType::User)
}

/// Whether there is an `su` at all, and `setenforce` has an effect for root.
pub(crate) fn has_su(spec: &PhoneSpec) -> bool {
    spec.build != BuildType::User
}

/// Whether ART takes every app for debuggable.
pub(crate) fn java_debuggable_build(spec: &PhoneSpec) -> bool {
    spec.build != BuildType::User
}
