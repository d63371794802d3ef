//! The installed packages: profiling settings of their manifests, their sources and processes, and
//! heapprofd's CanProfile decision for a UID.

use super::spec::{BuildType, PhoneSpec};

/// Profiling setting of a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profiling {
    /// `android:debuggable`.
    Debuggable,
    /// `<profileable android:shell="true"/>`.
    Shell,
    /// Not set: since Android 12, only the platform can profile the app.
    Platform,
    /// `<profileable android:enabled="false"/>`.
    Closed,
}

/// One package.
#[derive(Debug, Clone)]
pub(crate) struct Package {
    pub(crate) name: &'static str,
    pub(crate) appid: u32,
    pub(crate) profiling: Profiling,
    pub(crate) system: bool,
    pub(crate) version: u64,
    /// Wall clock of its installation in ns since the epoch; 0 if it came with the phone.
    pub(crate) installed: u64,
    /// Size of its native allocations, in percent of their usual size.
    pub(crate) memory_percent: u64,
    /// State of its compiled code: `speed-profile`.
    pub(crate) compiled: String,
    pub(crate) installer: Option<&'static str>,
    /// Android users that have the package installed.
    pub(crate) users: &'static [u32],
    /// Suffixes of the processes that run after its start (`""`, `:service`).
    pub(crate) processes: &'static [&'static str],
    /// Whether it is a 32-bit app.
    pub(crate) bits_32: bool,
    /// The activity that a launcher starts.
    pub(crate) activity: Option<&'static str>,
    /// `android:sharedUserId`.
    pub(crate) shared_user: Option<&'static str>,
}

/// An installation whose parts are written one by one.
#[derive(Debug)]
pub(crate) struct InstallSession {
    /// `-d`: an older version may replace a newer one.
    pub(crate) downgrade: bool,
    pub(crate) parts: Vec<Vec<u8>>,
}

impl InstallSession {
    /// Creates a session with the options of a command line.
    pub(crate) fn new(args: &[String]) -> InstallSession {
        InstallSession {
            downgrade: args.iter().any(|arg| arg == "-d"),
            parts: Vec::new(),
        }
    }
}

/// The main app: debuggable and in the foreground.
pub(crate) const APP: &str = "com.example.app";

const PLAY: Option<&str> = Some("com.android.vending");
const USER_0: &[u32] = &[0];
const BOTH: &[u32] = &[0, 10];

/// Returns the packages that a phone starts with.
pub(crate) fn installed() -> Vec<Package> {
    let app = |name, appid, profiling, installer| Package {
        name,
        appid,
        profiling,
        system: false,
        version: 42,
        installed: 0,
        memory_percent: 100,
        compiled: "speed-profile".to_owned(),
        installer,
        users: USER_0,
        processes: &[""],
        bits_32: false,
        activity: Some(".MainActivity"),
        shared_user: None,
    };
    let system = |name, appid| Package {
        system: true,
        version: 34,
        users: BOTH,
        activity: None,
        ..app(name, appid, Profiling::Platform, None)
    };
    vec![
        Package {
            processes: &["", ":service"],
            activity: Some(".ui.FeedActivity"),
            ..app(APP, 10_234, Profiling::Debuggable, None)
        },
        app("com.example.profileable", 10_235, Profiling::Shell, PLAY),
        app("com.example.platform", 10_236, Profiling::Platform, PLAY),
        app("com.example.closed", 10_237, Profiling::Closed, PLAY),
        app("com.example.idle", 10_238, Profiling::Debuggable, None),
        app("com.example.frozen", 10_239, Profiling::Debuggable, None),
        Package {
            users: &[10],
            ..app("com.example.work", 10_240, Profiling::Debuggable, None)
        },
        Package {
            users: BOTH,
            ..app("com.example.chat", 10_241, Profiling::Shell, PLAY)
        },
        Package {
            bits_32: true,
            ..app("com.example.legacy", 10_242, Profiling::Debuggable, None)
        },
        Package {
            processes: &[
                "",
                ":sandboxed_process0:org.chromium.content.app.SandboxedProcessService0:0",
            ],
            ..app("com.example.browser", 10_243, Profiling::Shell, PLAY)
        },
        app("com.example.stopped", 10_244, Profiling::Debuggable, None),
        app("com.example.app.demo", 10_245, Profiling::Platform, PLAY),
        Package {
            shared_user: Some("android.uid.system"),
            activity: Some(".Settings"),
            ..system("com.android.settings", 1_000)
        },
        Package {
            shared_user: Some("android.uid.phone"),
            ..system("com.android.phone", 1_001)
        },
        system("com.android.systemui", 10_101),
        Package {
            activity: Some(".NexusLauncherActivity"),
            ..system("com.google.android.apps.nexuslauncher", 10_102)
        },
        system("com.google.android.webview", 10_103),
        Package {
            shared_user: Some("android.uid.system"),
            processes: &[],
            ..system("android", 1_000)
        },
        Package {
            shared_user: Some("android.uid.shell"),
            processes: &[],
            ..system("com.android.shell", 2_000)
        },
    ]
}

impl Package {
    pub(crate) fn debuggable(&self) -> bool {
        self.profiling == Profiling::Debuggable
    }

    /// Returns column 6 of packages.list; debuggable implies it.
    pub(crate) fn profileable_from_shell(&self) -> bool {
        matches!(self.profiling, Profiling::Debuggable | Profiling::Shell)
    }

    pub(crate) fn uid(&self, user: u32) -> u32 {
        user * 100_000 + self.appid
    }

    /// Returns the directory of the APK.
    pub(crate) fn code_path(&self) -> String {
        if self.system {
            return match self.name {
                "android" => "/system/framework".to_owned(),
                name => format!(
                    "/system/priv-app/{}",
                    name.rsplit('.').next().unwrap_or(name)
                ),
            };
        }
        // Random parts, as generated by the installer; fixed per installation here.
        let mark = match self.installed {
            0 => format!("{}", self.appid % 100),
            installed => format!("{:x}", installed ^ u64::from(self.appid)),
        };
        format!(
            "/data/app/~~kQ3bZr{mark}Ttq8Wm2vYdN1g==/{}-x7Hf{mark}pLq0sVbR4eJ2wKzA==",
            self.name
        )
    }

    /// Returns the path of the APK.
    pub(crate) fn apk(&self) -> String {
        match self.name {
            "android" => "/system/framework/framework-res.apk".to_owned(),
            name if self.system => format!(
                "{}/{}.apk",
                self.code_path(),
                name.rsplit('.').next().unwrap_or(name)
            ),
            _ => format!("{}/base.apk", self.code_path()),
        }
    }

    /// Formats a line of /data/system/packages.list.
    pub(crate) fn list_line(&self, android: u32) -> String {
        let mut line = format!(
            "{} {} {} /data/user/0/{} default:targetSdkVersion=33 none {} {}",
            self.name,
            self.appid,
            u8::from(self.debuggable()),
            self.name,
            u8::from(self.profileable_from_shell()),
            self.version,
        );
        if android >= 12 {
            let installer = match (self.system, self.installer) {
                (true, _) => "@system",
                (false, Some(name)) => name,
                (false, None) => "@null",
            };
            line.push_str(&format!(
                " {} {installer}",
                u8::from(self.profiling != Profiling::Closed)
            ));
        }
        line
    }
}

/// Returns heapprofd's decision on a process of `uid` for a session started over adb.
pub(crate) fn can_profile(spec: &PhoneSpec, packages: &[Package], uid: u32) -> bool {
    if spec.build != BuildType::User {
        return true;
    }
    let appid = uid % 100_000;
    let appid = match appid {
        10_000..=19_999 => appid,
        20_000..=29_999 if spec.android >= 13 => appid - 10_000,
        _ => return false,
    };
    packages
        .iter()
        .find(|p| p.appid == appid)
        .is_some_and(Package::profileable_from_shell)
}

/// Returns whether heapprofd must never touch an SELinux domain.
pub(crate) fn never_profile(android: u32, domain: &str) -> bool {
    const ALWAYS: &str = "bpfloader init kernel keystore llkd logd ueventd vold";
    const SINCE_12: &str = "apexd app_zygote hal_configstore_default logpersist recovery \
        vendor_init webview_zygote zygote";
    let among = |list: &str| list.split(' ').any(|known| known == domain);
    among(ALWAYS) || (android >= 12 && among(SINCE_12))
}
