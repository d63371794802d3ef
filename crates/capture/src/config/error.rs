//! Errors of a config.

use std::io;
use std::path::PathBuf;

use heaptap_model::error::{Classified, ErrorClass, ErrorFacts};

/// Reason to refuse a config.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// No target process is given.
    #[error("no target process is given")]
    NoTarget,
    /// The config file is for something else than a native heap.
    #[error("the config is for {what}, not for a native heap")]
    NotNative {
        what: String,
        /// The next step.
        help: String,
    },
    /// A value would fail or do harm.
    #[error("cannot use {option} {value}: {why}")]
    BadValue {
        /// The option as typed.
        option: String,
        value: String,
        /// The effect of the value.
        why: String,
        /// The alternative.
        help: String,
    },
    /// Two options exclude each other.
    #[error("cannot combine {first} with {second}: {why}")]
    Conflict {
        first: &'static str,
        second: &'static str,
        why: &'static str,
    },
    /// The Android release of the device does not support it.
    #[error("{option} needs Android {needs}, but the device runs {}: {why}", release(*sdk))]
    TooOld {
        option: &'static str,
        /// The first release that supports it.
        needs: u32,
        /// The device's API level.
        sdk: u32,
        /// The effect on this device.
        why: &'static str,
    },
    /// `--set` has an unknown field or an invalid form.
    #[error("cannot apply --set {setting}: {why}")]
    BadSetting {
        /// As typed.
        setting: String,
        /// The problem.
        why: String,
        /// The valid fields or values.
        help: String,
    },
    /// Neither a file nor a preset.
    #[error("{} is neither a file nor a preset", path.display())]
    NoSuchFile {
        /// As typed.
        path: PathBuf,
        /// All preset names.
        presets: String,
        /// The preset with a similar name.
        similar: Option<&'static str>,
    },
    /// The config file cannot be read.
    #[error("cannot read the config {}", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The config file is invalid.
    #[error("{origin}: {why}")]
    BadFile {
        /// The file, with line and column if known.
        origin: String,
        /// The problem.
        why: String,
        /// The next step.
        help: String,
    },
}

/// Formats an API level as the release that people know.
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

    pub(super) fn too_old(option: &'static str, needs: u32, sdk: u32, why: &'static str) -> Self {
        ConfigError::TooOld {
            option,
            needs,
            sdk,
            why,
        }
    }

    pub(super) fn bad_file(origin: &str, why: String) -> Self {
        ConfigError::BadFile {
            origin: origin.to_owned(),
            why,
            help: "see docs/reference/formats.md for the supported keys, and configs/ for examples"
                .to_owned(),
        }
    }
}

impl Classified for ConfigError {
    fn facts(&self) -> ErrorFacts {
        match self {
            ConfigError::NoTarget => ErrorFacts::new(ErrorClass::Usage, "no-target").with_help(
                "use `-n NAME`, `-p PID` or `--package PKG`; `heaptap apps` lists packages",
            ),
            ConfigError::NotNative { help, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "config-not-native").with_help(help)
            }
            ConfigError::BadValue { help, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "bad-value").with_help(help)
            }
            ConfigError::Conflict { first, second, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "option-conflict")
                    .with_help(format!("omit {first} or {second}"))
            }
            ConfigError::TooOld { option, .. } => {
                ErrorFacts::new(ErrorClass::NotEligible, "android-too-old")
                    .with_help(format!("omit {option}, or use a newer device"))
            }
            ConfigError::BadSetting { help, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "bad-setting").with_help(help)
            }
            ConfigError::NoSuchFile {
                presets, similar, ..
            } => {
                ErrorFacts::new(ErrorClass::BadInput, "config-not-found").with_help(match similar {
                    Some(name) => format!("did you mean `{name}`? The presets are {presets}"),
                    None => format!("choose a file or one of the presets {presets}"),
                })
            }
            ConfigError::Unreadable { .. } => {
                ErrorFacts::new(ErrorClass::BadInput, "config-unreadable")
                    .with_help("check the path and its permissions")
            }
            ConfigError::BadFile { help, .. } => {
                ErrorFacts::new(ErrorClass::BadInput, "config-invalid").with_help(help)
            }
        }
    }
}
