//! Running processes, and parsers for their sources: `ps`, and a few files
//! below `/proc/PID`. Pure functions from bytes to [`Process`]es.

use std::collections::BTreeMap;

use serde::Serialize;

use super::packages::PER_USER;
use super::sections::Sections;
use heaptap_base::untrusted::sanitize_bytes;

/// A process ID on the device.
pub type Pid = u32;

/// Kind of process, as far as it affects eligibility.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProcessKind {
    /// A child of a zygote that runs an app or one of its services.
    App,
    /// An app process with a UID of its own (`isolatedProcess`, WebView renderers).
    Isolated,
    /// An SDK sandbox (Android 13 and later).
    SdkSandbox,
    SystemServer,
    /// A zygote: apps are forked from it.
    Zygote,
    /// A native program: a daemon, or something started from a shell.
    Native,
    KernelThread,
}

/// A running process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Process {
    pub pid: Pid,
    /// Parent process.
    pub ppid: Option<Pid>,
    pub uid: Option<u32>,
    /// argv0: whole if read from `/proc/PID/cmdline`, otherwise without its directories.
    pub name: String,
    pub kind: ProcessKind,
    /// 64 or 32, if the parent or the device shows it.
    pub bits: Option<u8>,
    /// State letter of `ps`.
    pub state: Option<char>,
    /// `oom_score_adj`: from 900 on the process is cached.
    pub oom_score_adj: Option<i32>,
    /// The freezer has stopped it.
    pub frozen: Option<bool>,
    /// SELinux domain, such as `untrusted_app_32`.
    pub domain: Option<String>,
}

/// Lowest `oom_score_adj` at which Android keeps a process only to start it faster next time.
pub const CACHED_ADJ: i32 = 900;

impl Process {
    /// Returns the UID without the user.
    pub fn appid(&self) -> Option<u32> {
        self.uid.map(|uid| uid % PER_USER)
    }

    pub fn user(&self) -> Option<u32> {
        self.uid.map(|uid| uid / PER_USER)
    }

    /// Returns whether it has an ART runtime.
    pub fn has_art(&self) -> bool {
        !matches!(self.kind, ProcessKind::Native | ProcessKind::KernelThread)
    }
}

/// Parses `ps -A -o PID,PPID,UID,S,NAME`, by its header. Invalid rows are skipped. `is_64_bit` is
/// about the device's preferred ABI.
pub fn read_ps(stdout: &[u8], is_64_bit: Option<bool>) -> Vec<Process> {
    let text = String::from_utf8_lossy(stdout);
    let mut lines = text.lines().map(|l| l.trim_end_matches('\r'));
    let Some(header) = lines.find(|l| l.split_whitespace().any(|w| w == "PID")) else {
        return Vec::new();
    };
    let columns: Vec<&str> = header.split_whitespace().collect();
    let mut processes: Vec<Process> = lines.filter_map(|line| row(line, &columns)).collect();
    let names: BTreeMap<Pid, String> = processes.iter().map(|p| (p.pid, p.name.clone())).collect();
    for process in &mut processes {
        let parent = process.ppid.and_then(|p| names.get(&p)).map(String::as_str);
        process.kind = kind(process, parent);
        process.bits = bits(&process.name, parent, is_64_bit);
    }
    processes
}

/// Parses a row, without what follows from its parent. The last column extends to the end of the
/// line: names can contain blanks.
fn row(line: &str, columns: &[&str]) -> Option<Process> {
    let mut rest = line;
    let mut cells = BTreeMap::new();
    for (n, column) in columns.iter().enumerate() {
        rest = rest.trim_start();
        let cell = if n + 1 == columns.len() {
            rest.trim_end()
        } else {
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            let (cell, tail) = rest.split_at(end);
            rest = tail;
            cell
        };
        cells.insert(*column, cell);
    }
    let get = |name| cells.get(name).copied();
    Some(Process {
        pid: get("PID")?.parse().ok()?,
        ppid: get("PPID").and_then(|v| v.parse().ok()),
        uid: get("UID").and_then(|v| v.parse().ok()),
        name: sanitize_bytes(get("NAME")?.as_bytes()),
        kind: ProcessKind::Native,
        bits: None,
        state: get("S")
            .and_then(|v| v.chars().next())
            .filter(char::is_ascii_alphabetic),
        oom_score_adj: None,
        frozen: None,
        domain: None,
    })
}

/// Contents of the files below `/proc/PID` of one process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcDetails {
    /// Whole argv0.
    pub argv0: Option<String>,
    pub oom_score_adj: Option<i32>,
    /// The freezer has stopped it.
    pub frozen: Option<bool>,
    /// SELinux domain.
    pub domain: Option<String>,
}

/// Parses the output of [`super::gather::DETAILS`], by PID.
pub fn read_details(output: &[u8]) -> BTreeMap<Pid, ProcDetails> {
    let sections = Sections::read(output);
    let mut details: BTreeMap<Pid, ProcDetails> = BTreeMap::new();
    for name in sections.names() {
        let Some((what, pid)) = name.split_once(' ') else {
            continue;
        };
        let Ok(pid) = pid.parse() else { continue };
        let entry = details.entry(pid).or_default();
        match what {
            "cmdline" => {
                let mut words = sections.bytes(name).split(|&b| b == 0 || b == b'\n');
                let argv0 = words.next().filter(|argv0| !argv0.is_empty());
                entry.argv0 = argv0.map(sanitize_bytes);
            }
            "adj" => entry.oom_score_adj = sections.number(name),
            "events" => {
                entry.frozen = sections.lines(name).iter().find_map(|l| match l.as_str() {
                    "frozen 1" => Some(true),
                    "frozen 0" => Some(false),
                    _ => None,
                });
            }
            "label" => {
                entry.domain = sections.line(name).and_then(|l| {
                    let domain = l.split(':').nth(2)?;
                    let domain = domain.trim_end_matches('\0');
                    (!domain.is_empty()).then(|| sanitize_bytes(domain.as_bytes()))
                });
            }
            _ => {}
        }
    }
    details
}

/// Parses `dumpsys activity processes` for frozen processes (Android 11 and later):
/// `ProcessRecord{1a2b 4711:com.example.app/u0a234}` opens a block that can contain
/// `isFrozen=true`.
pub fn read_activity(stdout: &[u8]) -> BTreeMap<Pid, bool> {
    let mut frozen = BTreeMap::new();
    let mut open: Option<Pid> = None;
    for line in super::sections::text_lines(stdout) {
        if line.starts_with('*')
            && let Some((_, record)) = line.split_once("ProcessRecord{")
        {
            let pid = record.split([' ', ':']).nth(1);
            open = pid.and_then(|pid| pid.parse().ok());
        }
        let flag = line
            .split_whitespace()
            .find_map(|w| w.strip_prefix("isFrozen="));
        if let (Some(pid), Some(flag @ ("true" | "false"))) = (open, flag) {
            frozen.entry(pid).or_insert(flag == "true");
        }
    }
    frozen
}

/// Returns whether processes with this name fork apps. App zygotes are called
/// `PACKAGE_zygote`.
pub fn is_zygote_name(name: &str) -> bool {
    matches!(
        name,
        "zygote" | "zygote64" | "zygote32" | "usap32" | "usap64" | "<pre-initialized>"
    ) || name.ends_with("_zygote")
}

fn kind(process: &Process, parent: Option<&str>) -> ProcessKind {
    if process.name.starts_with('[') && process.uid == Some(0) || process.ppid == Some(2) {
        return ProcessKind::KernelThread;
    }
    if is_zygote_name(&process.name) {
        return ProcessKind::Zygote;
    }
    let of_zygote = parent.is_some_and(is_zygote_name);
    match process.appid() {
        Some(1000) if of_zygote && process.name == "system_server" => ProcessKind::SystemServer,
        Some(90_000..=99_999) => ProcessKind::Isolated,
        Some(20_000..=29_999) if of_zygote => ProcessKind::SdkSandbox,
        _ if of_zygote => ProcessKind::App,
        _ => ProcessKind::Native,
    }
}

/// Derives the bitness. On a 64-bit device `zygote64` forks 64-bit apps and `zygote` 32-bit
/// apps; on a 32-bit device every process is 32-bit.
fn bits(name: &str, parent: Option<&str>, is_64_bit: Option<bool>) -> Option<u8> {
    if is_64_bit == Some(false) {
        return Some(32);
    }
    let of = |zygote: &str| match zygote {
        "zygote64" | "usap64" => Some(64),
        "zygote" | "zygote32" | "usap32" if is_64_bit == Some(true) => Some(32),
        _ => None,
    };
    of(name).or_else(|| of(parent?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOYBOX: &[u8] = b"  PID  PPID   UID S NAME\n\
        1     0     0 S init\n\
        2     0     0 S [kthreadd]\n\
        53     2     0 I [kworker/6:0H-events_highpri]\n\
        502     1  1000 S surfaceflinger\n\
        700     1     0 S zygote64\n\
        701     1     0 S zygote\n\
        702   700  1053 S webview_zygote\n\
        900   700  1000 S system_server\n\
        4711   700 10234 S com.example.app\r\n\
        4712   700 10234 S com.example.app:service\n\
        4713   701 10242 S com.example.legacy\n\
        4714   702 99001 S com.google.android.webview:sandboxed_process0:C:0\n\
        4715   700 20234 S com.example.app_sdk_sandbox\n\
        4716   700 10250 S name with blanks\n\
        4717  4711 10234 S helper\n\
        x y z\n";

    fn list() -> Vec<Process> {
        read_ps(TOYBOX, Some(true))
    }

    #[test]
    fn kinds_and_bits_follow_from_parents_and_uids() {
        let of = |name: &str| {
            let list = list();
            let p = list.iter().find(|p| p.name == name).expect("listed");
            (p.kind, p.bits)
        };
        use ProcessKind as K;
        assert_eq!(of("init"), (K::Native, None));
        assert_eq!(of("[kthreadd]"), (K::KernelThread, None));
        assert_eq!(of("[kworker/6:0H-events_highpri]"), (K::KernelThread, None));
        assert_eq!(of("surfaceflinger"), (K::Native, None));
        assert_eq!(of("zygote64"), (K::Zygote, Some(64)));
        assert_eq!(of("webview_zygote").0, K::Zygote);
        assert_eq!(of("system_server"), (K::SystemServer, Some(64)));
        assert_eq!(of("com.example.app"), (K::App, Some(64)));
        assert_eq!(of("com.example.legacy"), (K::App, Some(32)));
        assert_eq!(
            of("com.google.android.webview:sandboxed_process0:C:0").0,
            K::Isolated
        );
        assert_eq!(of("com.example.app_sdk_sandbox").0, K::SdkSandbox);
        assert_eq!(of("name with blanks").0, K::App);
        assert_eq!(of("helper").0, K::Native);
    }

    #[test]
    fn users_and_appids_come_from_uids() {
        let p = &read_ps(b"PID PPID UID S NAME\n7 1 1010234 S com.a\n", Some(false))[0];
        assert_eq!((p.user(), p.appid()), (Some(10), Some(10_234)));
        assert_eq!(p.bits, Some(32));
    }

    #[test]
    fn what_is_no_list_has_no_processes() {
        assert!(read_ps(b"sh: ps: not found\n", None).is_empty());
        assert!(read_ps(b"PID\nnot a number\n", None).is_empty());
    }

    #[test]
    fn the_activity_manager_tells_who_is_frozen() {
        let frozen = read_activity(
            b"  All known processes:\n  *APP* UID 10234 ProcessRecord{1a 4711:com.a/u0a234}\n\
              \x20   curAdj=905\n    isFreezeExempt=false isPendingFreeze=false isFrozen=true\n\
              \x20 *PERS* UID 1001 ProcessRecord{2b 812:com.android.phone/1001}\n    isFrozen=false\n\
              \x20   isFrozen=true\n  *APP* UID 1 ProcessRecord{junk\n    isFrozen=true\n",
        );
        assert_eq!(frozen, BTreeMap::from([(812, false), (4711, true)]));
    }

    #[test]
    fn details_are_read_by_pid() {
        let d = read_details(
            b"\n@@heaptap cmdline 7\n/system/bin/app\0-x\0\n@@heaptap adj 7\n905\n\
              @@heaptap label 7\nu:r:untrusted_app_32:s0:c1,c2\0\n@@heaptap events 7\npopulated 1\nfrozen 1\n\
              @@heaptap cmdline 8\n\n@@heaptap adj 8\ncat: x\n@@heaptap junk z\n",
        );
        assert_eq!(d[&7].argv0.as_deref(), Some("/system/bin/app"));
        assert_eq!(d[&7].oom_score_adj, Some(905));
        assert_eq!(d[&7].frozen, Some(true));
        assert_eq!(d[&7].domain.as_deref(), Some("untrusted_app_32"));
        assert_eq!(d[&8], ProcDetails::default());
    }
}
