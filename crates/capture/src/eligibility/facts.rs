//! Facts about a device. Owns [`DeviceFacts`] and their parsing from the answers of its shell;
//! does not judge.
//!
//! Every field is an `Option` or has a value for "unknown": vendor builds omit tools and
//! properties, and unread facts are never guessed. Texts are sanitized.

use std::time::Duration;

use serde::Serialize;

use super::properties::Properties;
use super::sections::Sections;
use heaptap_model::untrusted::sanitize_bytes;

/// `ro.build.type`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BuildType {
    /// A user build; heapprofd treats an empty type as this one too.
    User,
    /// A user build with root access for developers.
    Userdebug,
    /// A developer build.
    Eng,
    /// Anything else; heapprofd treats it like `userdebug`.
    #[serde(untagged)]
    Other(String),
}

/// Output of `getenforce`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Selinux {
    /// Denials are enforced.
    Enforcing,
    /// Denials are only logged.
    Permissive,
    /// SELinux is off.
    Disabled,
}

/// Method to run commands as root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Root {
    /// The shell itself is root (`adb root`).
    Shell,
    /// `su root COMMAND` works.
    Su,
}

display_as_serialized!(BuildType, Selinux, Root);

/// A user or profile of the device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AndroidUser {
    /// The user's number; uids are `id * 100000 + appid`.
    pub id: u32,
    pub name: String,
    pub running: bool,
}

/// A session of the tracing service, as `perfetto --query-raw` lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TracingSession {
    /// Number that the service gave it.
    pub id: u64,
    /// UID of the user that started it; 2000 is the adb shell.
    pub uid: Option<u32>,
    /// `STARTED`, `CONFIGURED`, …
    pub state: String,
    /// Unique name, often empty.
    pub name: String,
    /// Start, ns since the epoch by the device's clock.
    pub start_realtime_ns: Option<i64>,
}

/// Facts about a device. `None` means that the fact could not be read.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeviceFacts {
    pub serial: String,
    /// `ro.product.model`.
    pub model: Option<String>,
    /// `ro.serialno`: unlike the serial that adb uses, the same by cable and by network.
    #[serde(skip)]
    pub hardware_serial: Option<String>,
    /// `ro.build.fingerprint`.
    pub fingerprint: Option<String>,
    /// SDK level as stated by the build; a preview can state the last one.
    pub sdk: Option<u32>,
    /// `14`, or the code name of a preview.
    pub release: Option<String>,
    /// `ro.build.version.codename` of a preview; `None` on a release.
    pub preview: Option<String>,
    /// `ro.build.type`; `None` if properties could not be read.
    pub build_type: Option<BuildType>,
    /// `ro.debuggable` (the build type decides, not this).
    pub debuggable: Option<bool>,
    /// ABIs, the preferred one first.
    pub abis: Vec<String>,
    /// Library that translates code of other processors, if there is one.
    pub native_bridge: Option<String>,
    pub emulator: bool,
    pub selinux: Option<Selinux>,
    /// UID of the adb shell: 2000, or 0 after `adb root`.
    pub shell_uid: Option<u32>,
    /// Method to run commands as root; `None` without root access.
    pub root: Option<Root>,
    /// The tracing daemon is running.
    pub tracing_on: Option<bool>,
    /// `libc.debug.malloc.options`.
    pub malloc_debug: Option<String>,
    /// `libc.debug.malloc.program`: the only program that `malloc_debug` applies to.
    pub malloc_debug_program: Option<String>,
    /// `wrap.NAME` properties: process name and wrapper command.
    pub wraps: Vec<(String, String)>,
    /// Users and profiles.
    pub users: Vec<AndroidUser>,
    /// The user in the foreground.
    pub current_user: Option<u32>,
    /// Random ID of this boot.
    pub boot_id: Option<String>,
    /// Time since boot.
    #[serde(rename = "uptime_s", serialize_with = "as_seconds")]
    pub uptime: Option<Duration>,
    /// Clock of the device, seconds since the epoch.
    pub clock_s: Option<i64>,
    /// Memory of the device, bytes.
    pub memory_bytes: Option<u64>,
    /// Free bytes of the directory for traces (`/data/misc/perfetto-traces`).
    pub free_bytes: Option<u64>,
    pub screen_on: Option<bool>,
    /// Version of perfetto on the device, such as `45.0`.
    pub perfetto_version: Option<String>,
    /// Sessions of the tracing service.
    pub sessions: Option<Vec<TracingSession>>,
    /// A property shows a running heap profiling session. `false` does not prove that
    /// there is none, because builds might hide these properties from the adb shell.
    pub heap_session: bool,
    /// Names that a running session waits for (`heapprofd.enable.NAME`).
    pub armed_names: Vec<String>,
}

fn as_seconds<S: serde::Serializer>(d: &Option<Duration>, s: S) -> Result<S::Ok, S::Error> {
    d.map(|d| d.as_secs_f64()).serialize(s)
}

impl DeviceFacts {
    /// Parses the output of the script `gather::BASE`.
    pub fn read(serial: &str, output: &[u8]) -> DeviceFacts {
        let s = Sections::read(output);
        let p = Properties::read(s.bytes("getprop"));
        let text = |name: &str| p.get(name).map(|v| sanitize_bytes(v.as_bytes()));
        let codename = text("ro.build.version.codename").filter(|c| c != "REL");
        let list = |name: &str| -> Vec<String> {
            p.get(name)
                .map(|v| v.split(',').map(|a| sanitize_bytes(a.trim().as_bytes())))
                .into_iter()
                .flatten()
                .filter(|a| !a.is_empty())
                .collect()
        };
        let mut abis = list("ro.product.cpu.abilist");
        if abis.is_empty() {
            abis = list("ro.product.cpu.abi");
            abis.extend(list("ro.product.cpu.abi2"));
        }
        let shell_uid: Option<u32> = s.number("id");
        let boot_id = s
            .line("boot_id")
            .filter(|id| id.len() == 36 && id.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit()));
        DeviceFacts {
            serial: sanitize_bytes(serial.as_bytes()),
            model: text("ro.product.model"),
            hardware_serial: text("ro.serialno").filter(|s| !s.is_empty()),
            fingerprint: text("ro.build.fingerprint"),
            sdk: p
                .number("ro.build.version.sdk")
                .or_else(|| p.number("ro.system.build.version.sdk")),
            release: text("ro.build.version.release_or_codename")
                .or_else(|| text("ro.build.version.release")),
            preview: codename,
            build_type: (!p.is_empty()).then(|| build_type(p.get("ro.build.type"))),
            debuggable: p.flag("ro.debuggable"),
            abis,
            native_bridge: text("ro.dalvik.vm.native.bridge").filter(|b| b != "0"),
            emulator: ["ro.kernel.qemu", "ro.boot.qemu"]
                .iter()
                .any(|name| p.flag(name) == Some(true)),
            selinux: s.line("getenforce").and_then(|l| match l.as_str() {
                "Enforcing" => Some(Selinux::Enforcing),
                "Permissive" => Some(Selinux::Permissive),
                "Disabled" => Some(Selinux::Disabled),
                _ => None,
            }),
            shell_uid,
            root: (shell_uid == Some(0)).then_some(Root::Shell),
            tracing_on: tracing_on(&p),
            malloc_debug: text("libc.debug.malloc.options"),
            malloc_debug_program: text("libc.debug.malloc.program"),
            wraps: p
                .under("wrap.")
                .map(|(k, v)| (sanitize_bytes(k.as_bytes()), sanitize_bytes(v.as_bytes())))
                .collect(),
            users: Vec::new(),
            current_user: None,
            boot_id,
            uptime: s.line("uptime").and_then(|l| {
                let seconds: f64 = l.split_whitespace().next()?.parse().ok()?;
                Duration::try_from_secs_f64(seconds).ok()
            }),
            clock_s: s.number("date"),
            memory_bytes: s.line("memory").and_then(|l| memory_bytes(&l)),
            free_bytes: free_bytes(&s.lines("df")),
            screen_on: None,
            perfetto_version: None,
            sessions: None,
            heap_session: heap_session(&p),
            armed_names: p
                .under("heapprofd.enable.")
                .map(|(name, _)| sanitize_bytes(name.as_bytes()))
                .collect(),
        }
    }

    /// Adds the facts in the output of `gather::SERVICES`.
    pub fn read_services(&mut self, output: &[u8]) {
        let s = Sections::read(output);
        self.users = s.lines("users").iter().filter_map(|l| user(l)).collect();
        self.current_user = s.number("current_user");
        self.screen_on =
            s.lines("screen")
                .iter()
                .find_map(|l| match l.split_once("mWakefulness=")?.1.trim() {
                    "Awake" => Some(true),
                    "Asleep" | "Dozing" | "Dreaming" => Some(false),
                    _ => None,
                });
        self.perfetto_version = s.lines("version").iter().find_map(|l| version(l));
    }

    /// Adds root access, if `su root id -u` printed 0.
    pub fn read_su(&mut self, stdout: &[u8]) {
        let works = super::sections::text_lines(stdout).iter().any(|l| l == "0");
        if self.root.is_none() && works {
            self.root = Some(Root::Su);
        }
    }

    /// Adds the sessions that `perfetto --query-raw` printed: a `TracingServiceState`. A valid
    /// answer proves that the tracing daemon is running.
    pub fn read_query(&mut self, stdout: &[u8]) {
        use heaptap_proto::perfetto::TracingServiceState;
        use prost::Message as _;
        if stdout.is_empty() {
            return;
        }
        let Ok(state) = TracingServiceState::decode(stdout) else {
            return;
        };
        self.tracing_on = Some(true);
        self.sessions = Some(
            state
                .tracing_sessions
                .into_iter()
                .map(|t| TracingSession {
                    id: t.id(),
                    uid: t.consumer_uid.and_then(|uid| u32::try_from(uid).ok()),
                    state: sanitize_bytes(t.state().as_bytes()),
                    name: sanitize_bytes(t.unique_session_name().as_bytes()),
                    start_realtime_ns: t.start_realtime_ns,
                })
                .collect(),
        );
    }

    /// Returns the SDK level that decides about features: a preview counts as its future level.
    pub fn api(&self) -> Option<u32> {
        let sdk = self.sdk?;
        Some(if self.preview.is_some() {
            sdk.saturating_add(1)
        } else {
            sdk
        })
    }

    /// Returns whether heapprofd checks the manifest (`user`, or no type) instead of the build;
    /// `None` if the properties could not be read.
    pub fn is_user_build(&self) -> Option<bool> {
        self.build_type.as_ref().map(|t| *t == BuildType::User)
    }

    /// Returns whether the preferred ABI is a 64-bit one.
    pub fn is_64_bit(&self) -> Option<bool> {
        self.abis.first().map(|abi| abi.contains("64"))
    }

    /// Formats the system for people: `Android 14 (SDK 34, user)`.
    pub fn system(&self) -> String {
        let or_unknown = |v: Option<String>| v.unwrap_or_else(|| "?".to_owned());
        format!(
            "Android {} (SDK {}, {})",
            or_unknown(self.release.clone()),
            or_unknown(self.sdk.map(|s| s.to_string())),
            match &self.build_type {
                Some(build_type) => build_type.to_string(),
                None => "build type unknown".to_owned(),
            }
        )
    }
}

fn build_type(value: Option<&str>) -> BuildType {
    match value {
        None | Some("user") => BuildType::User,
        Some("userdebug") => BuildType::Userdebug,
        Some("eng") => BuildType::Eng,
        Some(other) => BuildType::Other(sanitize_bytes(other.as_bytes())),
    }
}

/// Returns the daemon's state as reported by init, or otherwise the switch (2 = relay).
fn tracing_on(p: &Properties) -> Option<bool> {
    match p.get("init.svc.traced") {
        Some("running") => return Some(true),
        Some("stopped") => return Some(false),
        _ => {}
    }
    match p.get("persist.traced.enable") {
        Some("0") => Some(false),
        Some(_) => Some(true),
        None => None,
    }
}

/// Returns whether a session uses heapprofd. traced sets `traced.lazy.heapprofd` while a session
/// needs heapprofd, and heapprofd sets `heapprofd.enable` while one waits for processes to start.
fn heap_session(p: &Properties) -> bool {
    let on = |name| p.flag(name) == Some(true);
    on("traced.lazy.heapprofd") || on("heapprofd.enable")
}

/// Parses `UserInfo{10:Work profile:1030} running`; a name can contain colons.
fn user(line: &str) -> Option<AndroidUser> {
    let (_, rest) = line.split_once("UserInfo{")?;
    let (inside, tail) = rest.rsplit_once('}')?;
    let (id, rest) = inside.split_once(':')?;
    let name = rest.rsplit_once(':').map_or(rest, |(name, _)| name);
    Some(AndroidUser {
        id: id.parse().ok()?,
        name: sanitize_bytes(name.as_bytes()),
        running: tail.contains("running"),
    })
}

/// Parses `Perfetto v45.0-abcdef (…)`.
fn version(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("erfetto v")?;
    let end = rest
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(rest.len());
    let number = rest[..end].trim_end_matches('.');
    (!number.is_empty()).then(|| number.to_owned())
}

/// Parses `MemTotal:        7831084 kB`.
fn memory_bytes(line: &str) -> Option<u64> {
    let figure = line.strip_prefix("MemTotal:")?.trim().strip_suffix("kB")?;
    figure.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Parses `df -k`: the figure before the one with `%`, in KiB. Long device names push the
/// figures to the next line.
pub(crate) fn free_bytes(lines: &[impl AsRef<str>]) -> Option<u64> {
    lines.iter().rev().find_map(|line| {
        let words: Vec<&str> = line.as_ref().split_whitespace().collect();
        let percent = words
            .iter()
            .position(|w| w.strip_suffix('%').is_some_and(|n| n.parse::<u8>().is_ok()))?;
        let kib: u64 = words.get(percent.checked_sub(1)?)?.parse().ok()?;
        kib.checked_mul(1024)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> DeviceFacts {
        DeviceFacts::read("SERIAL", text.as_bytes())
    }

    #[test]
    fn memory_is_read_in_kilobytes() {
        assert_eq!(memory_bytes("MemTotal:  7831084 kB"), Some(7_831_084 << 10));
        for line in ["", "MemTotal:", "MemTotal: x kB", "MemFree: 5 kB"] {
            assert_eq!(memory_bytes(line), None, "{line}");
        }
    }

    #[test]
    fn a_production_phone_is_read_whatever_its_line_ends() {
        let text = "\
WARNING: linker: libfoo.so: unused DT entry
@@heaptap getprop
[init.svc.traced]: [running]
[libc.debug.malloc.options]: []
[ro.build.fingerprint]: [acme/one/one:14/UQ1A/7:user/release-keys]
[ro.build.type]: [user]
[ro.build.version.codename]: [REL]
[ro.build.version.release]: [14]
[ro.build.version.sdk]: [34]
[ro.debuggable]: [0]
[ro.product.cpu.abilist]: [arm64-v8a,armeabi-v7a]
[ro.product.model]: [One\u{1b}]0;x]
[wrap.com.example]: [LIBC_DEBUG_MALLOC_OPTIONS=backtrace]

@@heaptap id
2000

@@heaptap boot_id
6d1a7c55-8a8e-4d24-9d1d-0a2f4a5fbb10

@@heaptap uptime
12345.67 98765.43

@@heaptap date
1707120000

@@heaptap getenforce
Enforcing

@@heaptap df
Filesystem       1K-blocks     Used Available Use% Mounted on
/dev/block/dm-44 112000000 40000000  71000000  37% /data/user/0
";
        for text in [text.to_owned(), text.replace('\n', "\r\n")] {
            let f = read(&text);
            assert_eq!(f.model.as_deref(), Some("One\u{fffd}]0;x"));
            assert_eq!(f.api(), Some(34));
            assert_eq!(f.is_user_build(), Some(true));
            assert_eq!(f.debuggable, Some(false));
            assert_eq!(f.abis, ["arm64-v8a", "armeabi-v7a"]);
            assert_eq!(f.is_64_bit(), Some(true));
            assert_eq!(f.selinux, Some(Selinux::Enforcing));
            assert_eq!(f.shell_uid, Some(2000));
            assert_eq!(f.root, None);
            assert_eq!(f.tracing_on, Some(true));
            assert_eq!(f.malloc_debug, None);
            assert_eq!(f.wraps[0].0, "com.example");
            assert_eq!(f.uptime, Some(Duration::from_secs_f64(12345.67)));
            assert_eq!(f.clock_s, Some(1_707_120_000));
            assert_eq!(f.free_bytes, Some(71_000_000 * 1024));
            assert!(f.boot_id.is_some());
            assert_eq!(f.system(), "Android 14 (SDK 34, user)");
        }
    }

    #[test]
    fn a_phone_that_answers_nothing_leaves_everything_unknown() {
        for text in [
            "",
            "@@heaptap getprop\n/system/bin/sh: getprop: not found\n@@heaptap id\n",
            "@@heaptap boot_id\ncat: /proc: Permission denied\n@@heaptap df\nbroken 100%\n",
        ] {
            let f = read(text);
            assert_eq!(f.api(), None);
            assert_eq!(f.is_user_build(), None);
            assert_eq!(f.tracing_on, None);
            assert_eq!(f.free_bytes, None);
            assert_eq!(f.boot_id, None);
            assert!(f.abis.is_empty());
        }
    }

    #[test]
    fn no_build_type_counts_as_user_and_a_preview_as_the_next_level() {
        let f = read(
            "@@heaptap getprop\n[ro.build.version.sdk]: [35]\n\
             [ro.build.version.codename]: [Baklava]\n[ro.product.cpu.abi]: [x86]\n\
             [ro.product.cpu.abi2]: [armeabi-v7a]\n",
        );
        assert_eq!(f.is_user_build(), Some(true));
        assert_eq!((f.sdk, f.api()), (Some(35), Some(36)));
        assert_eq!(f.preview.as_deref(), Some("Baklava"));
        assert_eq!(f.abis, ["x86", "armeabi-v7a"]);
        assert_eq!(f.is_64_bit(), Some(false));
        let other = read("@@heaptap getprop\n[ro.build.type]: [qa\u{1b}]\n");
        assert_eq!(
            other.build_type,
            Some(BuildType::Other("qa\u{fffd}".into()))
        );
        assert_eq!(other.is_user_build(), Some(false));
    }

    #[test]
    fn the_tracing_daemon_is_off_by_its_state_or_its_switch() {
        let on = |props: &str| read(&format!("@@heaptap getprop\n{props}")).tracing_on;
        assert_eq!(
            on("[init.svc.traced]: [stopped]\n[persist.traced.enable]: [1]"),
            Some(false)
        );
        assert_eq!(
            on("[init.svc.traced]: [running]\n[persist.traced.enable]: [0]"),
            Some(true)
        );
        assert_eq!(on("[persist.traced.enable]: [0]"), Some(false));
        assert_eq!(on("[persist.traced.enable]: [2]"), Some(true));
        assert_eq!(on("[a]: [b]"), None);
    }

    #[test]
    fn services_tell_users_screen_version_and_sessions() {
        let mut f = read("");
        f.read_services(
            b"@@heaptap users\nUsers:\n\tUserInfo{0:Owner:c13} running\n\
              \tUserInfo{10:Work: a}b:1030}\n@@heaptap current_user\n10\n\
              @@heaptap screen\n  mWakefulness=Dozing\n\
              @@heaptap version\nPerfetto v45.0-8fa6a5c (8fa6a5c)\n",
        );
        assert_eq!(f.users.len(), 2);
        assert_eq!((f.users[0].id, f.users[0].running), (0, true));
        assert_eq!(
            (f.users[1].name.as_str(), f.users[1].running),
            ("Work: a}b", false)
        );
        assert_eq!(f.current_user, Some(10));
        assert_eq!(f.screen_on, Some(false));
        assert_eq!(f.perfetto_version.as_deref(), Some("45.0"));

        use heaptap_proto::perfetto::{TracingServiceState, tracing_service_state as t};
        use prost::Message as _;
        let state = TracingServiceState {
            tracing_sessions: vec![t::TracingSession {
                id: Some(7),
                consumer_uid: Some(2000),
                state: Some("STARTED".into()),
                unique_session_name: Some("x\u{1b}".into()),
                start_realtime_ns: Some(5),
            }],
            ..TracingServiceState::default()
        };
        f.read_query(&state.encode_to_vec());
        assert_eq!(f.tracing_on, Some(true));
        assert_eq!(
            f.sessions.as_ref().map(|s| s[0].name.as_str()),
            Some("x\u{fffd}")
        );
        let before = f.clone();
        f.read_query(b"Usage: perfetto");
        assert_eq!(f, before);
    }

    #[test]
    fn root_is_what_su_proves() {
        let mut f = read("@@heaptap id\n2000\n");
        f.read_su(b"/system/bin/sh: su: not found\n");
        assert_eq!(f.root, None);
        f.read_su(b"WARNING: linker: x\r\n0\r\n");
        assert_eq!(f.root, Some(Root::Su));
        assert_eq!(read("@@heaptap id\n0\n").root, Some(Root::Shell));
    }

    #[test]
    fn df_is_found_by_its_percent_sign() {
        for (text, kib) in [
            (
                "Filesystem 1K-blocks Used Available Use% Mounted on\n/dev/fuse 10 4 6 40% /data",
                Some(6),
            ),
            (
                "/dev/block/a/very/long/name\n 10 4 6 40% /data with blanks",
                Some(6),
            ),
            ("df: /data: Permission denied", None),
            ("40% x", None),
        ] {
            let lines = super::super::sections::text_lines(text.as_bytes());
            assert_eq!(free_bytes(&lines), kib.map(|k: u64| k * 1024), "{text}");
        }
    }
}
