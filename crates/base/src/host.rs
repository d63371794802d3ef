//! What differs between the systems that heaptap runs on, as data. Each system has the rules of
//! all, so that tests on one cover the others. Calls of one system are elsewhere, each next to its
//! twin.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use etcetera::app_strategy::{AppStrategy, AppStrategyArgs, Apple, Windows, Xdg};

/// A system that heaptap runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Host {
    Linux,
    MacOs,
    Windows,
}

/// Directories of the user for heaptap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserDirectories {
    /// Journals of recordings, which must outlive heaptap's processes and belong to this host.
    pub state: PathBuf,
    /// Files that can be found or computed again.
    pub cache: PathBuf,
}

impl Host {
    /// The system of this process. Other Unix systems follow the rules of Linux.
    pub const CURRENT: Host = if cfg!(windows) {
        Host::Windows
    } else if cfg!(target_os = "macos") {
        Host::MacOs
    } else {
        Host::Linux
    };

    /// The separator in variables with lists of paths. Paths of Windows can contain a colon.
    pub const fn list_separator(self) -> char {
        match self {
            Host::Linux | Host::MacOs => ':',
            Host::Windows => ';',
        }
    }

    /// Returns the file name of a program.
    pub fn program(self, name: &str) -> String {
        match self {
            Host::Linux | Host::MacOs => name.to_owned(),
            Host::Windows => format!("{name}.exe"),
        }
    }

    /// Returns the directories of Android SDKs, best first: those of the variables, then the usual
    /// ones of Android Studio, package managers and Visual Studio.
    pub fn sdks(
        self,
        variable: impl Fn(&str) -> Option<OsString>,
        home: Option<PathBuf>,
    ) -> Vec<PathBuf> {
        let directory = |name: &str| variable(name).filter(|value| !value.is_empty());
        let below = |base: Option<PathBuf>, path: &str| base.map(|base| base.join(path));
        let mut all: Vec<Option<PathBuf>> = ["ANDROID_HOME", "ANDROID_SDK_ROOT"]
            .map(|name| directory(name).map(PathBuf::from))
            .into();
        match self {
            Host::Linux => all.extend([
                below(home, "Android/Sdk"),
                Some("/usr/lib/android-sdk".into()),
                Some("/opt/android-sdk".into()),
            ]),
            Host::MacOs => all.extend([
                below(home, "Library/Android/sdk"),
                Some("/opt/homebrew/share/android-commandlinetools".into()),
                Some("/usr/local/share/android-commandlinetools".into()),
            ]),
            Host::Windows => {
                let of = |name: &str| directory(name).map(PathBuf::from);
                all.extend([
                    below(of("LOCALAPPDATA"), r"Android\Sdk"),
                    below(home, r"scoop\apps\android-clt\current"),
                    below(of("ProgramFiles(x86)"), r"Android\android-sdk"),
                    Some(r"C:\Android\android-sdk".into()),
                ]);
            }
        }
        let mut sdks = Vec::new();
        for sdk in all.into_iter().flatten() {
            if !sdks.contains(&sdk) {
                sdks.push(sdk);
            }
        }
        sdks
    }

    /// Commands that show an address in the user's browser, best first. The address follows.
    pub const fn browsers(self) -> &'static [&'static [&'static str]] {
        match self {
            Host::Linux => &[&["xdg-open"], &["gio", "open"], &["wslview"]],
            Host::MacOs => &[&["open"]],
            // `start` and `explorer` misinterpret parts of an address.
            Host::Windows => &[&["rundll32", "url.dll,FileProtocolHandler"]],
        }
    }

    /// Returns the directories of the user for heaptap.
    ///
    /// # Errors
    /// Returns an error if there is no home directory.
    pub fn user_directories(self) -> io::Result<UserDirectories> {
        let args = AppStrategyArgs {
            app_name: "heaptap".to_owned(),
            ..AppStrategyArgs::default()
        };
        let error = |error| io::Error::new(io::ErrorKind::NotFound, error);
        Ok(match self {
            Host::Linux => {
                let xdg = Xdg::new(args).map_err(error)?;
                UserDirectories {
                    state: xdg.state_dir().unwrap_or_else(|| xdg.data_dir()),
                    cache: xdg.cache_dir(),
                }
            }
            // Backups leave the cache out.
            Host::MacOs => {
                let apple = Apple::new(args).map_err(error)?;
                UserDirectories {
                    state: apple.data_dir(),
                    cache: apple.cache_dir(),
                }
            }
            // Not the roaming directory: a journal belongs to this host.
            Host::Windows => {
                let cache = Windows::new(args).map_err(error)?.cache_dir();
                UserDirectories {
                    state: cache.with_file_name("state"),
                    cache,
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Host; 3] = [Host::Linux, Host::MacOs, Host::Windows];

    #[test]
    fn sdks_of_variables_come_first_and_once() {
        for host in ALL {
            let sdks = host.sdks(
                |name| match name {
                    "ANDROID_HOME" | "ANDROID_SDK_ROOT" => Some("/sdk".into()),
                    "LOCALAPPDATA" => Some("/local".into()),
                    _ => None,
                },
                Some("/home/u".into()),
            );
            assert_eq!(sdks[0], PathBuf::from("/sdk"), "{host:?}");
            assert_eq!(sdks.iter().filter(|sdk| **sdk == sdks[0]).count(), 1);
            let text = format!("{sdks:?}");
            let usual = match host {
                Host::Linux => "/home/u/Android/Sdk",
                Host::MacOs => "/home/u/Library/Android/sdk",
                Host::Windows => r"Android\\Sdk",
            };
            assert!(text.contains(usual), "{host:?}: {text}");
        }
    }

    #[test]
    fn without_home_and_variables_the_usual_places_remain() {
        for host in ALL {
            let sdks = host.sdks(|_| None, None);
            assert!(!sdks.is_empty(), "{host:?}");
        }
    }

    #[test]
    fn state_and_cache_are_directories_of_each_system() {
        let directories = |host: Host| {
            let directories = host.user_directories().expect("a home directory");
            assert_ne!(directories.state, directories.cache, "{host:?}");
            [directories.state, directories.cache]
                .map(|path| path.to_string_lossy().replace('\\', "/"))
        };
        let [state, cache] = directories(Host::MacOs);
        assert!(
            state.ends_with("Library/Application Support/heaptap"),
            "{state}"
        );
        assert!(cache.ends_with("Library/Caches/heaptap"), "{cache}");
        let [state, cache] = directories(Host::Windows);
        assert!(state.ends_with("heaptap/state"), "{state}");
        assert!(cache.ends_with("heaptap/cache"), "{cache}");
        assert!(!state.contains("Roaming"), "{state}");
        let [state, cache] = directories(Host::Linux);
        for path in [state, cache] {
            assert!(path.ends_with("/heaptap"), "{path}");
        }
    }

    #[test]
    fn programs_and_lists_follow_the_system() {
        assert_eq!(Host::Windows.program("adb"), "adb.exe");
        assert_eq!(Host::MacOs.program("adb"), "adb");
        for host in ALL {
            assert!(!host.browsers().is_empty());
        }
        let list = std::env::join_paths(["a", "b"]).expect("a list");
        let expected = format!("a{}b", Host::CURRENT.list_separator());
        assert_eq!(list.to_string_lossy(), expected);
    }
}
