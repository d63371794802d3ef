//! Why a config is refused.

use std::io;
use std::path::PathBuf;

use heaptap_model::error::{Classified, ErrorClass, ErrorFacts};

/// Why a config is refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Nothing says which process to profile.
    #[error("no process is named")]
    NoTarget,
    /// A value is known to fail or to harm.
    #[error("{option} {value} cannot work: {why}")]
    BadValue {
        /// The option as it may be typed.
        option: String,
        /// Its value.
        value: String,
        /// What would happen.
        why: String,
        /// What to do instead.
        help: String,
    },
    /// Two options exclude each other.
    #[error("{first} and {second} exclude each other: {why}")]
    Conflict {
        /// One.
        first: &'static str,
        /// The other.
        second: &'static str,
        /// Why.
        why: &'static str,
    },
    /// This phone's Android cannot do it.
    #[error("{option} needs Android {needs}, this device runs {}: {why}", release(*sdk))]
    TooOld {
        /// The option.
        option: &'static str,
        /// The first release that has it.
        needs: u32,
        /// The device's API level.
        sdk: u32,
        /// What would happen instead.
        why: &'static str,
    },
    /// `--set` names no field, or not in its form.
    #[error("--set {setting}: {why}")]
    BadSetting {
        /// As typed.
        setting: String,
        /// What is wrong.
        why: String,
        /// Which there are.
        help: String,
    },
    /// Neither a file nor a preset.
    #[error("{} is neither a file nor a preset", path.display())]
    NoSuchFile {
        /// As typed.
        path: PathBuf,
        /// The presets.
        presets: String,
        /// The preset that is spelt much like it.
        similar: Option<&'static str>,
    },
    /// The config file cannot be read.
    #[error("could not read the config {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The config file is no config.
    #[error("{origin}: {why}")]
    BadFile {
        /// The file, with line and column where known.
        origin: String,
        /// What is wrong.
        why: String,
        /// What to do.
        help: String,
    },
}

/// Releases as people call them.
fn release(sdk: u32) -> String {
    let name = match sdk {
        26 | 27 => "8",
        28 => "9",
        29 => "10",
        30 => "11",
        31 | 32 => "12",
        33.. => return format!("Android {} (API level {sdk})", sdk - 20),
        _ => return format!("API level {sdk}"),
    };
    format!("Android {name} (API level {sdk})")
}

impl ConfigError {
    pub(super) fn bad_value(
        option: impl Into<String>,
        value: impl ToString,
        why: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        ConfigError::BadValue {
            option: option.into(),
            value: value.to_string(),
            why: why.into(),
            help: help.into(),
        }
    }

    pub(super) fn bad_file(origin: &str, why: String) -> Self {
        ConfigError::BadFile {
            origin: origin.to_owned(),
            why,
            help: "docs/config.md lists what a config may hold; configs/ has examples".to_owned(),
        }
    }
}

impl Classified for ConfigError {
    fn facts(&self) -> ErrorFacts {
        match self {
            ConfigError::NoTarget => ErrorFacts::new(ErrorClass::Usage, "no-target").with_help(
                "name one with -n NAME, -p PID or --package PKG; `heaptap apps` lists packages",
            ),
            ConfigError::BadValue { help, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "bad-value").with_help(help)
            }
            ConfigError::Conflict { first, second, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "option-conflict")
                    .with_help(format!("leave out {first} or {second}"))
            }
            ConfigError::TooOld { option, .. } => {
                ErrorFacts::new(ErrorClass::NotEligible, "android-too-old")
                    .with_help(format!("leave out {option}, or use a newer device"))
            }
            ConfigError::BadSetting { help, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "bad-setting").with_help(help)
            }
            ConfigError::NoSuchFile {
                presets, similar, ..
            } => ErrorFacts::new(ErrorClass::Usage, "config-not-found").with_help(match similar {
                Some(name) => format!("did you mean `{name}`? The presets are {presets}"),
                None => format!("the presets are {presets}"),
            }),
            ConfigError::Unreadable { .. } => {
                ErrorFacts::new(ErrorClass::BadInput, "config-unreadable")
                    .with_help("check the path and its permissions")
            }
            ConfigError::BadFile { help, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "config-invalid").with_help(help)
            }
        }
    }
}
