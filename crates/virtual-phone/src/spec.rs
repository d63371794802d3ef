//! What the virtual phone is asked to be: `key=value,…` in, [`PhoneSpec`] out. Owns the keys,
//! their defaults and the words of their errors.

use std::path::PathBuf;

use super::faults::Fault;

/// How the system image was built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BuildType {
    /// What people buy: shell is never root.
    User,
    /// Like user, with `su` and `setenforce`.
    Userdebug,
    /// A developer's own build.
    Eng,
}

impl BuildType {
    /// The value of `ro.build.type`.
    pub fn name(self) -> &'static str {
        match self {
            BuildType::User => "user",
            BuildType::Userdebug => "userdebug",
            BuildType::Eng => "eng",
        }
    }
}

/// What `com.example.app` is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AppState {
    /// In the foreground, allocating.
    Running,
    /// Running, but it allocates nothing.
    Idle,
    /// Cached and frozen by the system: no thread of it runs.
    Frozen,
    /// Installed, not started.
    Stopped,
    /// In the foreground, with a great many callsites: a dump of some 10 MB.
    Heavy,
}

/// How the screen is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ScreenState {
    /// On, and nothing to unlock.
    On,
    /// Off; no lock screen.
    Off,
    /// Off; a lock screen that goes with a swipe.
    Locked,
    /// Off; a lock screen that asks for a PIN.
    Pin,
}

/// Which functions of native libraries have names in traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Names {
    /// All that the phone's files name: heapprofd reads .symtab and .gnu_debugdata.
    All,
    /// Exported ones, as where heapprofd may not open a file and reads it from memory.
    Exported,
}

/// A virtual phone, as asked for.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PhoneSpec {
    /// Android release, 10 to 16.
    pub android: u32,
    /// Build type.
    pub build: BuildType,
    /// `arm64-v8a`, `armeabi-v7a`, `x86_64` or `x86`.
    pub abi: Abi,
    /// Serial number of the first phone; a second one gets `-2` after it.
    pub serial: String,
    /// Phones behind the server.
    pub devices: u32,
    /// How many seconds pass on the phone while one passes on the host.
    pub speed: f64,
    /// Seed of everything random on the phone.
    pub seed: u64,
    /// State of `com.example.app`.
    pub app: AppState,
    /// How the screen is found.
    pub screen: ScreenState,
    /// Callsites of a heavy app.
    pub sites: u32,
    /// Objects on the Java heap of `com.example.app`, about, besides what the app is about.
    pub java: u32,
    /// Seconds (phone's clock) after a session begins to wait for an app that runs out of memory,
    /// `com.example.app` does.
    pub oom: Option<u32>,
    /// Whether apps ship their own libraries stripped, as Gradle does where there is an NDK.
    pub stripped: bool,
    /// Whether the apps' Java code went through R8.
    pub obfuscated: bool,
    /// Which native functions have names in traces.
    pub names: Names,
    /// Free space below /data, bytes.
    pub space: u64,
    /// Major version of perfetto; by default the one that came with the Android release.
    pub perfetto: Option<u32>,
    /// A stored recording that every session on this phone results in, byte for byte.
    pub trace: Option<PathBuf>,
    /// Whether SELinux enforces at boot.
    pub enforcing: bool,
    /// Whether `host:kill` ends this server.
    pub killable: bool,
    /// What is to go wrong.
    pub faults: Vec<Fault>,
}

/// Instruction set of the phone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Abi {
    /// 64-bit ARM, with 32-bit apps beside.
    Arm64,
    /// 32-bit ARM.
    Arm,
    /// 64-bit x86, with 32-bit apps beside.
    X86_64,
    /// 32-bit x86.
    X86,
}

impl Abi {
    /// All of them.
    pub const ALL: [Abi; 4] = [Abi::Arm64, Abi::Arm, Abi::X86_64, Abi::X86];

    /// The value of `ro.product.cpu.abi`.
    pub fn name(self) -> &'static str {
        match self {
            Abi::Arm64 => "arm64-v8a",
            Abi::Arm => "armeabi-v7a",
            Abi::X86_64 => "x86_64",
            Abi::X86 => "x86",
        }
    }

    /// Whether the phone runs 64-bit code.
    pub fn is_64_bit(self) -> bool {
        matches!(self, Abi::Arm64 | Abi::X86_64)
    }
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
        }
    }
}

/// A SPEC that can't be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// A key that no phone has.
    #[error("the virtual phone has no setting {key:?}; it has {}", PhoneSpec::KEYS.map(|(key, _)| key).join(", "))]
    UnknownKey {
        /// As typed.
        key: String,
    },
    /// A part without `=`.
    #[error("{part:?} is no setting of the virtual phone: write key=value")]
    NoValue {
        /// As typed.
        part: String,
    },
    /// A value that the key doesn't take.
    #[error("{key}={value} is not possible: {expected}")]
    BadValue {
        /// The key.
        key: &'static str,
        /// As typed.
        value: String,
        /// What the key takes.
        expected: String,
    },
}

/// The bytes that a size with a unit stands for, as `512`, `64k` or `8MiB`.
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
    /// Every key of the SPEC, and the values that it takes.
    pub const KEYS: [(&'static str, &'static str); 20] = [
        ("android", "Android 10 to 16"),
        ("build", "user, userdebug or eng"),
        ("abi", "arm64-v8a, armeabi-v7a, x86_64 or x86"),
        ("serial", "letters, digits and - _ . :"),
        ("devices", "0 to 8 phones"),
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
        ("trace", "a file on this computer"),
        ("selinux", "enforcing or permissive"),
        ("fault", "KIND[@VALUE][#K], several joined by +"),
    ];

    /// Parses `key=value,key=value`; the empty text is the default phone. `fault` may be
    /// repeated, and `fault=a+b` joins several.
    ///
    /// # Errors
    /// Names the first part that can't be understood.
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
    /// As [`PhoneSpec::parse`].
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
        let bad = || wrong(expected.to_owned());
        match key {
            "android" => {
                self.android = value
                    .parse()
                    .ok()
                    .filter(|v| (10..=16).contains(v))
                    .ok_or_else(bad)?;
            }
            "build" => {
                self.build = match value {
                    "user" => BuildType::User,
                    "userdebug" => BuildType::Userdebug,
                    "eng" => BuildType::Eng,
                    _ => return Err(bad()),
                };
            }
            "abi" => {
                self.abi = match value {
                    "arm64" | "arm64-v8a" => Abi::Arm64,
                    "arm" | "armeabi-v7a" => Abi::Arm,
                    "x86_64" => Abi::X86_64,
                    "x86" => Abi::X86,
                    _ => return Err(bad()),
                };
            }
            "serial" => {
                let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
                if value.is_empty() || !value.chars().all(plain) {
                    return Err(bad());
                }
                self.serial = value.to_owned();
            }
            "devices" => {
                self.devices = value.parse().ok().filter(|v| *v <= 8).ok_or_else(bad)?;
            }
            "speed" => {
                self.speed = value
                    .parse()
                    .ok()
                    .filter(|v: &f64| (0.01..=100_000.0).contains(v))
                    .ok_or_else(bad)?;
            }
            "seed" => self.seed = value.parse().map_err(|_| bad())?,
            "app" => {
                self.app = match value {
                    "running" => AppState::Running,
                    "idle" => AppState::Idle,
                    "frozen" => AppState::Frozen,
                    "stopped" => AppState::Stopped,
                    "heavy" => AppState::Heavy,
                    _ => return Err(bad()),
                };
            }
            "screen" => {
                self.screen = match value {
                    "on" => ScreenState::On,
                    "off" => ScreenState::Off,
                    "locked" => ScreenState::Locked,
                    "pin" => ScreenState::Pin,
                    _ => return Err(bad()),
                };
            }
            "sites" => {
                self.sites = value
                    .parse()
                    .ok()
                    .filter(|v| (1..=2_000_000).contains(v))
                    .ok_or_else(bad)?;
            }
            "java" => {
                self.java = value
                    .parse()
                    .ok()
                    .filter(|v| (0..=10_000_000).contains(v))
                    .ok_or_else(bad)?;
            }
            "oom" => {
                self.oom = Some(value.parse().map_err(|_| bad())?);
            }
            "stripped" => self.stripped = yes_or_no(value).ok_or_else(bad)?,
            "obfuscated" => self.obfuscated = yes_or_no(value).ok_or_else(bad)?,
            "names" => {
                self.names = match value {
                    "all" => Names::All,
                    "exported" => Names::Exported,
                    _ => return Err(bad()),
                };
            }
            "space" => {
                self.space = bytes(value).ok_or_else(bad)?;
            }
            "perfetto" => {
                self.perfetto = Some(
                    value
                        .parse()
                        .ok()
                        .filter(|v| (1..=99).contains(v))
                        .ok_or_else(bad)?,
                );
            }
            "trace" => self.trace = Some(PathBuf::from(value)),
            "selinux" => {
                self.enforcing = match value {
                    "enforcing" => true,
                    "permissive" => false,
                    _ => return Err(bad()),
                };
            }
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

    /// API level of the Android release.
    pub fn sdk(&self) -> u32 {
        match self.android {
            10 => 29,
            11 => 30,
            12 => 31,
            13 => 33,
            14 => 34,
            15 => 35,
            _ => 36,
        }
    }

    /// Major version of this phone's perfetto.
    pub fn perfetto_version(&self) -> u32 {
        self.perfetto.unwrap_or(match self.android {
            10 => 1,
            11 => 6,
            12 => 16,
            13 => 25,
            14 => 34,
            15 => 43,
            _ => 49,
        })
    }
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
             fault=pull-cut@100#2+no-exit,fault=traced-off",
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
        assert_eq!(PhoneSpec::parse(""), Ok(PhoneSpec::default()));
    }

    #[test]
    fn what_is_not_understood_is_named() {
        let text = |spec: &str| PhoneSpec::parse(spec).expect_err(spec).to_string();
        assert!(text("androd=14").contains("no setting \"androd\""));
        assert!(text("androd=14").contains("android, build"));
        assert!(text("android").contains("write key=value"));
        assert!(text("android=9").contains("10 to 16"));
        assert!(text("build=release").contains("user, userdebug or eng"));
        assert!(text("stripped=maybe").contains("yes or no"));
        assert!(text("speed=nan").contains("factor"));
        assert!(text("fault=explode").contains("explode"));
    }
}
