//! Specification of a virtual phone: parses `key=value,…` into a [`PhoneSpec`]. Owns the keys,
//! their defaults and their error messages.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use super::faults::Fault;
use super::faults::draws::Odds;
use super::named::named;

named! {
    /// Build type of the system image.
    #[non_exhaustive]
    pub enum BuildType {
        /// Production build: the shell is never root.
        User = "user",
        /// Like user, but with `su` and `setenforce`.
        Userdebug = "userdebug",
        /// Build for platform developers.
        Eng = "eng",
    }
}

named! {
    /// State of `com.example.app`.
    #[non_exhaustive]
    pub enum AppState {
        /// In the foreground and allocating.
        Running = "running",
        /// Running, but not allocating.
        Idle = "idle",
        /// Cached and frozen by the system: none of its threads run.
        Frozen = "frozen",
        /// Installed, but not started.
        Stopped = "stopped",
        /// In the foreground, with so many callsites that a dump has about 10 MB.
        Heavy = "heavy",
    }
}

named! {
    /// State of the screen at boot.
    #[non_exhaustive]
    pub enum ScreenState {
        /// On and unlocked.
        On = "on",
        /// Off, without a lock screen.
        Off = "off",
        /// Off, with a lock screen that a swipe dismisses.
        Locked = "locked",
        /// Off, with a lock screen that requires a PIN.
        Pin = "pin",
    }
}

named! {
    /// Functions of native libraries that have names in traces.
    #[non_exhaustive]
    pub enum Names {
        /// All functions named in the phone's files: heapprofd reads .symtab and .gnu_debugdata.
        All = "all",
        /// Exported functions only, as if heapprofd cannot open a file and reads it from memory.
        Exported = "exported",
    }
}

named! {
    /// Instruction set of the phone, as `ro.product.cpu.abi` names it.
    #[non_exhaustive]
    pub enum Abi {
        /// 64-bit ARM, including 32-bit apps.
        Arm64 = "arm64-v8a",
        /// 32-bit ARM.
        Arm = "armeabi-v7a",
        /// 64-bit x86, including 32-bit apps.
        X86_64 = "x86_64",
        /// 32-bit x86.
        X86 = "x86",
    }
}

/// Specification of a virtual phone.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PhoneSpec {
    /// Android release, 10 to 16.
    pub android: u32,
    /// Build type of the system image.
    pub build: BuildType,
    /// Instruction set: `arm64-v8a`, `armeabi-v7a`, `x86_64` or `x86`.
    pub abi: Abi,
    /// Serial number of the first phone; a second one adds `-2`.
    pub serial: String,
    /// Number of phones behind the server.
    pub devices: u32,
    /// Seconds on the phone's clock per second on the host.
    pub speed: f64,
    /// Seed of all random values on the phone.
    pub seed: u64,
    /// State of `com.example.app`.
    pub app: AppState,
    /// State of the screen at boot.
    pub screen: ScreenState,
    /// Number of callsites of a heavy app.
    pub sites: u32,
    /// Approximate number of objects on the Java heap of `com.example.app`, in addition to the
    /// app's own ones.
    pub java: u32,
    /// Time in seconds (phone's clock) from the start of a session that waits for an
    /// OutOfMemoryError until `com.example.app` throws one.
    pub oom: Option<u32>,
    /// Whether apps ship their own libraries stripped, as Gradle does if an NDK is installed.
    pub stripped: bool,
    /// Whether the apps' Java code is obfuscated by R8.
    pub obfuscated: bool,
    /// Native functions that have names in traces.
    pub names: Names,
    /// Free space below /data in bytes.
    pub space: u64,
    /// Major version of perfetto; by default the version of the Android release.
    pub perfetto: Option<u32>,
    /// Stored recording that every session on this phone returns byte for byte.
    pub trace: Option<PathBuf>,
    /// Whether SELinux is enforcing at boot.
    pub enforcing: bool,
    /// Whether `host:kill` ends the server.
    pub killable: bool,
    /// Injected faults.
    pub faults: Vec<Fault>,
    /// Faults drawn from a seed.
    pub odds: Option<Odds>,
}

impl Abi {
    /// Returns whether the phone runs 64-bit code.
    pub fn is_64_bit(self) -> bool {
        matches!(self, Abi::Arm64 | Abi::X86_64)
    }
}

/// Facts of the Android releases from 10 on: API level, major version of perfetto, and, of a device
/// from the year when the release was new, kernel, build ID, name and model.
const RELEASES: &str = "\
29 1 4.9.185-perf QQ3A.200805.001 sargo Pixel 3a
30 6 4.19.113-perf RQ3A.211001.001 sunfish Pixel 4a
31 16 5.10.66-android12-9 SP1A.210812.015 redfin Pixel 5
33 25 5.10.149-android13-4 TQ3A.230901.001 oriole Pixel 6
34 34 5.15.137-android14-11 UQ1A.240205.002 shiba Pixel 8
35 43 6.1.99-android14-11 AP4A.250205.002 tokay Pixel 9
36 49 6.6.77-android15-8 BP3A.250905.014 frankel Pixel 10";

/// A row of [`RELEASES`].
pub(crate) struct Release {
    sdk: u32,
    perfetto: u32,
    pub(crate) kernel: &'static str,
    pub(crate) build_id: &'static str,
    pub(crate) device: &'static str,
    pub(crate) model: &'static str,
}

impl Default for PhoneSpec {
    fn default() -> Self {
        PhoneSpec {
            android: 14,
            build: BuildType::User,
            abi: Abi::Arm64,
            serial: "virtual-1".to_owned(),
            devices: 1,
            speed: 1.0,
            seed: 1,
            app: AppState::Running,
            screen: ScreenState::On,
            sites: 100_000,
            java: 20_000,
            oom: None,
            stripped: true,
            obfuscated: false,
            names: Names::All,
            space: 24 << 30,
            perfetto: None,
            trace: None,
            enforcing: true,
            killable: false,
            faults: Vec::new(),
            odds: None,
        }
    }
}

/// Error in a specification.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// The key is unknown.
    #[error("unknown key {key:?}; the virtual phone supports {}", PhoneSpec::KEYS.map(|(key, _)| key).join(", "))]
    UnknownKey {
        /// The key as typed.
        key: String,
    },
    /// A part does not contain `=`.
    #[error("{part:?} is not a setting of the virtual phone; write key=value")]
    NoValue {
        /// The part as typed.
        part: String,
    },
    /// The key does not support the value.
    #[error("cannot use {key}={value}: {expected}")]
    BadValue {
        /// The key.
        key: &'static str,
        /// The value as typed.
        value: String,
        /// Reason, such as the expected values.
        expected: String,
    },
}

/// Parses a size with a unit, such as `512`, `64k` or `8MiB`, to bytes.
pub(crate) fn bytes(size: &str) -> Option<u64> {
    let end = size.find(|c: char| !c.is_ascii_digit());
    let (number, unit) = size.split_at(end.unwrap_or(size.len()));
    let unit = unit.trim().to_ascii_lowercase();
    let shift = match unit
        .strip_suffix("ib")
        .or(unit.strip_suffix('b'))
        .unwrap_or(&unit)
    {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

impl PhoneSpec {
    /// All keys of a specification and their values.
    pub const KEYS: [(&'static str, &'static str); 21] = [
        ("android", "Android 10 to 16"),
        ("build", "user, userdebug or eng"),
        ("abi", "arm64-v8a, armeabi-v7a, x86_64 or x86"),
        ("serial", "letters, digits and - _ . :"),
        ("devices", "0 to 256 phones"),
        ("speed", "a factor from 0.01 to 100000"),
        ("seed", "a whole number"),
        ("app", "running, idle, frozen, stopped or heavy"),
        ("screen", "on, off, locked or pin"),
        ("sites", "1 to 2000000 callsites"),
        ("java", "0 to 10000000 objects"),
        ("oom", "a number of seconds"),
        ("stripped", "yes or no"),
        ("obfuscated", "yes or no"),
        ("names", "all or exported"),
        ("space", "a size such as 512m or 24g"),
        ("perfetto", "a major version from 1 to 99"),
        ("trace", "a file on the host"),
        ("selinux", "enforcing or permissive"),
        ("fault", "KIND[@VALUE][#K], several joined by +"),
        ("faults", "SEED[@PERCENT], which draws faults at each step"),
    ];

    /// Parses `key=value,key=value`; the empty text is the default phone. `fault` can be repeated,
    /// and `fault=a+b` joins several.
    ///
    /// # Errors
    /// Returns an error that names the first invalid part.
    pub fn parse(text: &str) -> Result<PhoneSpec, SpecError> {
        let mut spec = PhoneSpec::default();
        for part in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let Some((key, value)) = part.split_once('=') else {
                return Err(SpecError::NoValue {
                    part: part.to_owned(),
                });
            };
            spec.set(key.trim(), value.trim())?;
        }
        Ok(spec)
    }

    /// Sets one key.
    ///
    /// # Errors
    /// Returns the errors of [`PhoneSpec::parse`].
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SpecError> {
        let (key, expected) = Self::KEYS
            .into_iter()
            .chain([("killable", "yes or no")])
            .find(|(known, _)| *known == key)
            .ok_or_else(|| SpecError::UnknownKey {
                key: key.to_owned(),
            })?;
        let wrong = |expected: String| SpecError::BadValue {
            key,
            value: value.to_owned(),
            expected,
        };
        let bad = || wrong(format!("expected {expected}"));
        match key {
            "android" => self.android = within(value, 10..=16).ok_or_else(bad)?,
            "build" => self.build = value.parse().map_err(|()| bad())?,
            "abi" => self.abi = value.parse().map_err(|()| bad())?,
            "serial" => {
                let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
                if value.is_empty() || !value.chars().all(plain) {
                    return Err(bad());
                }
                self.serial = value.to_owned();
            }
            "devices" => self.devices = within(value, 0..=256).ok_or_else(bad)?,
            "speed" => self.speed = within(value, 0.01..=100_000.0).ok_or_else(bad)?,
            "seed" => self.seed = value.parse().map_err(|_| bad())?,
            "app" => self.app = value.parse().map_err(|()| bad())?,
            "screen" => self.screen = value.parse().map_err(|()| bad())?,
            "sites" => self.sites = within(value, 1..=2_000_000).ok_or_else(bad)?,
            "java" => self.java = within(value, 0..=10_000_000).ok_or_else(bad)?,
            "oom" => self.oom = Some(value.parse().map_err(|_| bad())?),
            "stripped" => self.stripped = yes_or_no(value).ok_or_else(bad)?,
            "obfuscated" => self.obfuscated = yes_or_no(value).ok_or_else(bad)?,
            "names" => self.names = value.parse().map_err(|()| bad())?,
            "space" => self.space = bytes(value).ok_or_else(bad)?,
            "perfetto" => self.perfetto = Some(within(value, 1..=99).ok_or_else(bad)?),
            "trace" => self.trace = Some(PathBuf::from(value)),
            "selinux" => {
                self.enforcing = match value {
                    "enforcing" => true,
                    "permissive" => false,
                    _ => return Err(bad()),
                };
            }
            "faults" => self.odds = Some(Odds::parse(value).ok_or_else(bad)?),
            "killable" => self.killable = yes_or_no(value).ok_or_else(bad)?,
            _ => {
                for one in value.split('+') {
                    self.faults
                        .push(Fault::parse(one).map_err(|e| wrong(e.to_string()))?);
                }
            }
        }
        Ok(())
    }

    /// Returns the facts of the Android release.
    pub(crate) fn release(&self) -> Release {
        let row = RELEASES
            .lines()
            .nth(self.android.saturating_sub(10) as usize);
        let words: Vec<&str> = row.unwrap_or_default().splitn(6, ' ').collect();
        let [sdk, perfetto, kernel, build_id, device, model] = words[..] else {
            panic!("a release has six words: {words:?}");
        };
        let number = |text: &str| text.parse().expect("a number");
        Release {
            sdk: number(sdk),
            perfetto: number(perfetto),
            kernel,
            build_id,
            device,
            model,
        }
    }

    /// Returns the API level of the Android release.
    pub fn sdk(&self) -> u32 {
        self.release().sdk
    }

    /// Returns the major version of the phone's perfetto.
    pub fn perfetto_version(&self) -> u32 {
        self.perfetto.unwrap_or_else(|| self.release().perfetto)
    }
}

/// Parses a number of a range.
fn within<T: std::str::FromStr + PartialOrd>(value: &str, range: RangeInclusive<T>) -> Option<T> {
    value.parse().ok().filter(|v| range.contains(v))
}

fn yes_or_no(value: &str) -> Option<bool> {
    match value {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_taken() {
        let spec = PhoneSpec::parse(
            "android=11, build=userdebug,abi=x86_64,serial=abc:5555,devices=2,speed=50,seed=9,\
             app=idle,screen=pin,sites=10,java=7,oom=3,stripped=no,obfuscated=yes,names=exported,space=2g,perfetto=54,trace=/tmp/x,selinux=permissive,\
             fault=pull-cut@100#2+no-exit,fault=traced-off,faults=7@50",
        )
        .expect("valid");
        assert_eq!((spec.android, spec.sdk()), (11, 30));
        assert_eq!(spec.build, BuildType::Userdebug);
        assert_eq!(spec.app, AppState::Idle);
        assert_eq!(spec.screen, ScreenState::Pin);
        assert!(!spec.stripped && spec.obfuscated);
        assert_eq!(spec.names, Names::Exported);
        assert_eq!(spec.space, 2 << 30);
        assert_eq!(spec.perfetto_version(), 54);
        assert!(!spec.enforcing);
        assert_eq!(spec.faults.len(), 3);
        assert_eq!(spec.odds, Odds::parse("7@50"));
        assert_eq!(PhoneSpec::parse(""), Ok(PhoneSpec::default()));
    }

    #[test]
    fn what_is_not_understood_is_named() {
        let text = |spec: &str| PhoneSpec::parse(spec).expect_err(spec).to_string();
        assert!(text("androd=14").contains("unknown key \"androd\""));
        assert!(text("androd=14").contains("android, build"));
        assert!(text("android").contains("write key=value"));
        assert!(text("android=9").contains("10 to 16"));
        assert!(text("build=release").contains("user, userdebug or eng"));
        assert!(text("stripped=maybe").contains("yes or no"));
        assert!(text("speed=nan").contains("factor"));
        assert!(text("fault=explode").contains("explode"));
        assert!(text("faults=7@").contains("SEED"));
    }
}
