//! What is known of a phone. Owns [`DeviceFacts`] and how the answers of its shell become
//! them; judges nothing.
//!
//! Every field is an `Option` or says "unknown" by itself: vendor builds leave out tools and
//! properties, and what could not be read is never guessed. Texts are safe to show.

use std::time::Duration;

use serde::Serialize;

use super::properties::Properties;
use super::sections::Sections;
use super::untrusted::shown;

/// `ro.build.type`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BuildType {
    /// A production build; heapprofd takes an empty type for this one too.
    User,
    /// A production build with root access for developers.
    Userdebug,
    /// A developer's build.
    Eng,
    /// Anything else; heapprofd treats it like `userdebug`.
    #[serde(untagged)]
    Other(String),
}

/// What `getenforce` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Selinux {
    /// Denials are enforced.
    Enforcing,
    /// Denials are only logged.
    Permissive,
    /// Not there.
    Disabled,
}

/// How commands can be run as root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Root {
    /// The shell itself is root (`adb root`).
    Shell,
    /// `su root COMMAND` works.
    Su,
}

/// A user or profile of the phone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AndroidUser {
    /// The user's number; uids are `id * 100000 + appid`.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Whether it is running.
    pub running: bool,
}

/// A session of the tracing service, as `perfetto --query-raw` lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TracingSession {
    /// The service's number.
    pub id: u64,
    /// Uid of who started it; 2000 is adb's shell.
    pub uid: Option<u32>,
    /// `STARTED`, `CONFIGURED`, …
    pub state: String,
    /// Its unique name, often empty.
    pub name: String,
    /// When it started, ns since the epoch by the phone's clock.
    pub start_realtime_ns: Option<i64>,
}

/// What is known of a phone. `None` means: could not be read.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeviceFacts {
    /// Serial number.
    pub serial: String,
    /// `ro.product.model`.
    pub model: Option<String>,
    /// `ro.build.fingerprint`.
    pub fingerprint: Option<String>,
    /// SDK level as the build states it; previews may state the one before.
    pub sdk: Option<u32>,
    /// `14`, or the code name of a preview.
    pub release: Option<String>,
    /// `ro.build.version.codename` of a preview; `None` on a release.
    pub preview: Option<String>,
    /// `ro.build.type`; `None` where properties could not be read.
    pub build_type: Option<BuildType>,
    /// `ro.debuggable` (the build type decides, not this).
    pub debuggable: Option<bool>,
    /// ABIs, the preferred one first.
    pub abis: Vec<String>,
    /// The library that translates foreign code, where there is one.
    pub native_bridge: Option<String>,
    /// Whether this is an emulator.
    pub emulator: bool,
    /// SELinux mode.
    pub selinux: Option<Selinux>,
    /// Uid of adb's shell: 2000, or 0 after `adb root`.
    pub shell_uid: Option<u32>,
    /// How root is reached; `None` where it is not.
    pub root: Option<Root>,
    /// Whether the tracing daemon runs.
    pub tracing_on: Option<bool>,
    /// `libc.debug.malloc.options`.
    pub malloc_debug: Option<String>,
    /// `libc.debug.malloc.program`: the only program that `malloc_debug` is for.
    pub malloc_debug_program: Option<String>,
    /// `wrap.NAME` properties: process name and wrapper command.
    pub wraps: Vec<(String, String)>,
    /// Users and profiles.
    pub users: Vec<AndroidUser>,
    /// The user in the foreground.
    pub current_user: Option<u32>,
    /// Identity of this boot.
    pub boot_id: Option<String>,
    /// Time since boot.
    #[serde(rename = "uptime_s", serialize_with = "as_seconds")]
    pub uptime: Option<Duration>,
    /// The phone's clock, seconds since the epoch.
    pub clock_s: Option<i64>,
    /// Free bytes where traces are written (`/data/misc/perfetto-traces`).
    pub free_bytes: Option<u64>,
    /// Whether the screen is on.
    pub screen_on: Option<bool>,
    /// Version of the phone's perfetto, such as `45.0`.
    pub perfetto_version: Option<String>,
    /// Sessions of the tracing service.
    pub sessions: Option<Vec<TracingSession>>,
    /// Whether a property shows that a heap profiling session is running; `false` is no proof
    /// that none is, since builds may hide these properties from adb's shell.
    pub heap_session: bool,
    /// Names that a running session waits for (`heapprofd.enable.NAME`).
    pub armed_names: Vec<String>,
}

fn as_seconds<S: serde::Serializer>(d: &Option<Duration>, s: S) -> Result<S::Ok, S::Error> {
    d.map(|d| d.as_secs_f64()).serialize(s)
}

impl DeviceFacts {
    /// The facts that the script [`super::gather::BASE`] answers.
    pub fn read(serial: &str, output: &[u8]) -> DeviceFacts {
        let s = Sections::read(output);
        let p = Properties::read(s.bytes("getprop"));
        let text = |name: &str| p.get(name).map(|v| shown(v.as_bytes()));
        let codename = text("ro.build.version.codename").filter(|c| c != "REL");
        let list = |name: &str| -> Vec<String> {
            p.get(name)
                .map(|v| v.split(',').map(|a| shown(a.trim().as_bytes())))
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
            serial: shown(serial.as_bytes()),
            model: text("ro.product.model"),
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
                .map(|(k, v)| (shown(k.as_bytes()), shown(v.as_bytes())))
                .collect(),
            users: Vec::new(),
            current_user: None,
            boot_id,
            uptime: s.line("uptime").and_then(|l| {
                let seconds: f64 = l.split_whitespace().next()?.parse().ok()?;
                Duration::try_from_secs_f64(seconds).ok()
            }),
            clock_s: s.number("date"),
            free_bytes: free_bytes(&s.lines("df")),
            screen_on: None,
            perfetto_version: None,
            sessions: None,
            heap_session: heap_session(&p),
            armed_names: p
                .under("heapprofd.enable.")
                .map(|(name, _)| shown(name.as_bytes()))
                .collect(),
        }
    }

    /// Adds what [`super::gather::SERVICES`] answers.
    pub fn read_services(&mut self, output: &[u8]) {
        let s = Sections::read(output);
        self.users = s.lines("users").iter().filter_map(|l| user(l)).collect();
        self.current_user = s.number("current_user");
        self.screen_on = s.lines("screen").iter().find_map(|l| match l.as_str() {
            "true" => Some(true),
            "false" => Some(false),
            l => match l.split_once("mWakefulness=")?.1.trim() {
                "Awake" => Some(true),
                "Asleep" | "Dozing" | "Dreaming" => Some(false),
                _ => None,
            },
        });
        self.perfetto_version = s.lines("version").iter().find_map(|l| version(l));
    }

    /// Adds what `su root id -u` answered.
    pub fn read_su(&mut self, stdout: &[u8]) {
        let works = super::sections::text_lines(stdout).iter().any(|l| l == "0");
        if self.root.is_none() && works {
            self.root = Some(Root::Su);
        }
    }

    /// Adds what `perfetto --query-raw` answered: a `TracingServiceState`. An answer proves
    /// that the tracing daemon runs.
    pub fn read_query(&mut self, stdout: &[u8]) {
        use crate::proto::perfetto::TracingServiceState;
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
                    state: shown(t.state().as_bytes()),
                    name: shown(t.unique_session_name().as_bytes()),
                    start_realtime_ns: t.start_realtime_ns,
                })
                .collect(),
        );
    }

    /// The SDK level that decides what works: a preview counts as the level it will be.
    pub fn api(&self) -> Option<u32> {
        let sdk = self.sdk?;
        Some(if self.preview.is_some() {
            sdk.saturating_add(1)
        } else {
            sdk
        })
    }

    /// Whether heapprofd asks the manifest (`user`, or no type) and not the build; `None`
    /// where the properties could not be read.
    pub fn is_user_build(&self) -> Option<bool> {
        self.build_type.as_ref().map(|t| *t == BuildType::User)
    }

    /// Whether the preferred ABI has 64 bits.
    pub fn is_64_bit(&self) -> Option<bool> {
        self.abis.first().map(|abi| abi.contains("64"))
    }

    /// `Android 14 (SDK 34, user)`, for people.
    pub fn system(&self) -> String {
        let or_unknown = |v: Option<String>| v.unwrap_or_else(|| "?".to_owned());
        format!(
            "Android {} (SDK {}, {})",
            or_unknown(self.release.clone()),
            or_unknown(self.sdk.map(|s| s.to_string())),
            match &self.build_type {
                Some(BuildType::User) => "user",
                Some(BuildType::Userdebug) => "userdebug",
                Some(BuildType::Eng) => "eng",
                Some(BuildType::Other(other)) => other,
                None => "build type unknown",
            }
        )
    }
}

fn build_type(value: Option<&str>) -> BuildType {
    match value {
        None | Some("user") => BuildType::User,
        Some("userdebug") => BuildType::Userdebug,
        Some("eng") => BuildType::Eng,
        Some(other) => BuildType::Other(shown(other.as_bytes())),
    }
}

/// The daemon's state decides where init tells it; else the switch (2 = relay).
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

/// traced sets `traced.lazy.heapprofd` for as long as a session wants heapprofd, and
/// heapprofd `heapprofd.enable` for as long as one waits for processes to start.
fn heap_session(p: &Properties) -> bool {
    let on = |name| p.flag(name) == Some(true);
    on("traced.lazy.heapprofd") || on("heapprofd.enable")
}

/// `UserInfo{10:Work profile:1030} running`; a name may hold colons.
fn user(line: &str) -> Option<AndroidUser> {
    let (_, rest) = line.split_once("UserInfo{")?;
    let (inside, tail) = rest.rsplit_once('}')?;
    let (id, rest) = inside.split_once(':')?;
    let name = rest.rsplit_once(':').map_or(rest, |(name, _)| name);
    Some(AndroidUser {
        id: id.parse().ok()?,
        name: shown(name.as_bytes()),
        running: tail.contains("running"),
    })
}

/// `Perfetto v45.0-abcdef (…)`.
fn version(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("erfetto v")?;
    let end = rest
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(rest.len());
    let number = rest[..end].trim_end_matches('.');
    (!number.is_empty()).then(|| number.to_owned())
}

/// `df -k`: the figure before the one with `%`, in KiB. Device names may be so long that the
/// figures stand on a line of their own.
fn free_bytes(lines: &[String]) -> Option<u64> {
    lines.iter().rev().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let percent = words
            .iter()
            .position(|w| w.strip_suffix('%').is_some_and(|n| n.parse::<u8>().is_ok()))?;
        let kib: u64 = words.get(percent.checked_sub(1)?)?.parse().ok()?;
        kib.checked_mul(1024)
    })
}
