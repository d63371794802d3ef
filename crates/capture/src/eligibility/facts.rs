//! Facts about a device. Owns [`DeviceFacts`] and their parsing from the answers of its shell;
//! does not judge.
//!
//! Every field is an `Option` or has a value for "unknown": vendor builds omit tools and
//! properties, and unread facts are never guessed. Texts are sanitized.

use std::time::Duration;

use serde::Serialize;

use super::properties::Properties;
use super::sections::Sections;
use android_memory::status::kilobytes;
use heaptap_base::untrusted::sanitize_bytes;

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
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
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
        let is_on = |name| p.flag(name) == Some(true);
        let codename = text("ro.build.version.codename").filter(|c| c != "REL");
        let list = |name: &str| -> Vec<String> {
            let items = p.get(name).into_iter().flat_map(|v| v.split(','));
            let items = items.map(|item| sanitize_bytes(item.trim().as_bytes()));
            items.filter(|item| !item.is_empty()).collect()
        };
        let mut abis = list("ro.product.cpu.abilist");
        if abis.is_empty() {
            abis = list("ro.product.cpu.abi");
            abis.extend(list("ro.product.cpu.abi2"));
        }
        let under = |prefix| {
            let properties = p.under(prefix);
            properties.map(|(k, v)| (sanitize_bytes(k.as_bytes()), sanitize_bytes(v.as_bytes())))
        };
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
            emulator: is_on("ro.kernel.qemu") || is_on("ro.boot.qemu"),
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
            wraps: under("wrap.").collect(),
            boot_id,
            uptime: s.line("uptime").and_then(|l| {
                let seconds: f64 = l.split_whitespace().next()?.parse().ok()?;
                Duration::try_from_secs_f64(seconds).ok()
            }),
            clock_s: s.number("date"),
            memory_bytes: s.line("memory").and_then(|l| memory_bytes(&l)),
            free_bytes: free_bytes(&s.lines("df")),
            // traced sets the first while a session needs heapprofd, and heapprofd sets the other
            // while one waits for processes to start.
            heap_session: is_on("traced.lazy.heapprofd") || is_on("heapprofd.enable"),
            armed_names: under("heapprofd.enable.").map(|(name, _)| name).collect(),
            ..DeviceFacts::default()
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
        let state = TracingServiceState::decode(stdout);
        let Some(state) = state.ok().filter(|_| !stdout.is_empty()) else {
            return;
        };
        self.tracing_on = Some(true);
        let sessions = state.tracing_sessions.into_iter().map(|t| TracingSession {
            id: t.id(),
            uid: t.consumer_uid.and_then(|uid| u32::try_from(uid).ok()),
            state: sanitize_bytes(t.state().as_bytes()),
            name: sanitize_bytes(t.unique_session_name().as_bytes()),
            start_realtime_ns: t.start_realtime_ns,
        });
        self.sessions = Some(sessions.collect());
    }

    /// Returns the SDK level that decides about features: a preview counts as its future level.
    pub fn api(&self) -> Option<u32> {
        let sdk = self.sdk?;
        Some(sdk.saturating_add(u32::from(self.preview.is_some())))
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
        let release = self.release.as_deref().unwrap_or("?");
        let sdk = self.sdk.map_or("?".to_owned(), |sdk| sdk.to_string());
        match &self.build_type {
            Some(build) => format!("Android {release} (SDK {sdk}, {build})"),
            None => format!("Android {release} (SDK {sdk}, build type unknown)"),
        }
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
        Some("running") => Some(true),
        Some("stopped") => Some(false),
        _ => p.get("persist.traced.enable").map(|switch| switch != "0"),
    }
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
    kilobytes(line.strip_prefix("MemTotal:")?.trim())
}

/// Parses `df -k`: the figure before the one with `%`, in KiB. Long device names push the
/// figures to the next line.
pub(crate) fn free_bytes(lines: &[impl AsRef<str>]) -> Option<u64> {
    lines.iter().rev().find_map(|line| {
        let words: Vec<&str> = line.as_ref().split_whitespace().collect();
        let is_percent = |w: &&str| w.strip_suffix('%').is_some_and(|n| n.parse::<u8>().is_ok());
        let percent = words.iter().position(is_percent)?;
        let kib: u64 = words.get(percent.checked_sub(1)?)?.parse().ok()?;
        kib.checked_mul(1024)
    })
}

#[cfg(test)]
mod tests;
