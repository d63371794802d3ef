//! Errors of provoking an app.

use std::io;
use std::path::PathBuf;

use super::unrestored::UnrestoredSetting;
use crate::eligibility::AbsentTarget;
use heaptap_adb::DeviceError;
use heaptap_model::error::{Classified, ErrorClass, ErrorFacts};
use heaptap_model::untrusted::sanitize;
use heaptap_model::untrusted::shell::{Shell, quoted};

/// Failure of provoking.
#[derive(Debug, thiserror::Error)]
pub enum ProvokeError {
    /// The connection to the device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The target is not a package name.
    #[error("{text:?} is not a package or process name")]
    BadTarget {
        /// The target as given.
        text: String,
    },
    /// The app is not installed.
    #[error(transparent)]
    Absent(AbsentTarget),
    /// The app does not have an activity to start.
    #[error("cannot start an activity of {package} on {serial}: {why}")]
    NoActivity {
        serial: String,
        package: String,
        /// Reason given by the device or by heaptap.
        why: String,
    },
    /// The app started, but another activity stays in the foreground.
    #[error(
        "cannot bring {package} to the foreground on {serial}: {} is in front",
        sanitize(front)
    )]
    NotInFront {
        serial: String,
        package: String,
        /// The foreground activity.
        front: String,
    },
    /// The lock screen stays.
    #[error("{what} needs an unlocked screen, and {serial} is locked")]
    Locked {
        serial: String,
        /// The action.
        what: String,
    },
    /// The device refused a command.
    #[error("{serial} refused `{command}`: {why}")]
    Refused {
        serial: String,
        command: String,
        /// Output of the command.
        why: String,
    },
    /// This Android release does not support the action.
    #[error("{serial} does not support {action}: {why}")]
    NotOnThisAndroid {
        serial: String,
        action: String,
        /// The first release that supports it.
        why: &'static str,
    },
    /// An answer of the device cannot be parsed.
    #[error("cannot read {what} of {serial}: unexpected answer {}", sanitize(text))]
    Odd {
        serial: String,
        /// The requested facts.
        what: &'static str,
        /// Beginning of the answer.
        text: String,
    },
    /// The process dies repeatedly.
    #[error("{process} on {serial} died {times} times in a row: {why}")]
    KeepsDying {
        serial: String,
        process: String,
        /// Number of deaths.
        times: u32,
        /// Reason of the last one.
        why: String,
    },
    /// Settings were not restored.
    #[error("cannot restore {serial}: {what}{}", not_put_back(unrestored))]
    NotPutBack {
        serial: String,
        /// Reason.
        what: String,
        /// Settings that are not restored.
        unrestored: Vec<UnrestoredSetting>,
    },
    /// Another heaptap process is provoking on this device.
    #[error("another heaptap process is provoking on {serial}")]
    Busy { serial: String },
    /// The journal belongs to another device.
    #[error("{serial} is not the device ({noted}) whose settings must be restored")]
    OtherPhone {
        serial: String,
        /// The serial number in the journal.
        noted: String,
    },
    /// The run cannot continue: rotation, foreground and process were reset by the restart.
    #[error("{serial} restarted while it was disconnected")]
    Restarted { serial: String },
    /// The journal cannot be written.
    #[error("cannot write the settings to restore to {}", path.display())]
    Journal { path: PathBuf, source: io::Error },
    /// The user interrupted it.
    #[error("interrupted")]
    Interrupted,
}

fn not_put_back(unrestored: &[UnrestoredSetting]) -> String {
    let what: Vec<&str> = unrestored.iter().map(|one| one.what.as_str()).collect();
    match what.is_empty() {
        true => String::new(),
        false => format!("; not restored: {}", what.join(", ")),
    }
}

impl ProvokeError {
    /// Returns whether the device might be connected again later.
    pub fn is_connection(&self) -> bool {
        matches!(self, ProvokeError::Device(error) if error.is_connection())
    }
}

const SEE_THE_LIST: &str = "run `heaptap provoke --list` for the requirements of each action";

impl Classified for ProvokeError {
    fn facts(&self) -> ErrorFacts {
        match self {
            ProvokeError::Device(error) => error.facts(),
            ProvokeError::BadTarget { .. } => ErrorFacts::new(ErrorClass::Usage, "bad-target")
                .with_help("use a package name such as com.example.app; `heaptap apps` lists them"),
            ProvokeError::Absent(absent) => {
                ErrorFacts::new(ErrorClass::NotEligible, "target-not-found")
                    .with_help(&*absent.help)
            }
            ProvokeError::NoActivity { .. } => {
                ErrorFacts::new(ErrorClass::NotEligible, "no-activity").with_help(
                    "choose another user with `--user`, or open an app without an icon with \
                     `deep-link`",
                )
            }
            ProvokeError::NotInFront { .. } => {
                ErrorFacts::new(ErrorClass::Device, "not-in-foreground").with_help(
                    "close what is in front (a permission dialog?), and check that the app \
                     keeps running",
                )
            }
            ProvokeError::Locked { .. } => ErrorFacts::new(ErrorClass::Device, "screen-locked")
                .with_help("unlock it manually; heaptap cannot enter a PIN, pattern or password"),
            ProvokeError::Refused { .. } => {
                ErrorFacts::new(ErrorClass::Device, "action-refused").with_help(SEE_THE_LIST)
            }
            ProvokeError::NotOnThisAndroid { .. } => {
                ErrorFacts::new(ErrorClass::Device, "not-on-this-android").with_help(SEE_THE_LIST)
            }
            ProvokeError::Odd { .. } => ErrorFacts::new(ErrorClass::Device, "unexpected-answer"),
            ProvokeError::KeepsDying { .. } => {
                ErrorFacts::new(ErrorClass::Incomplete, "keeps-dying")
                    .with_help("find the cause with `heaptap gc` or in the device log")
            }
            ProvokeError::NotPutBack {
                serial, unrestored, ..
            } => {
                let hints = by_hand(unrestored, serial);
                let and_by_hand = match hints.is_empty() {
                    true => "",
                    false => ", or restore the settings manually:",
                };
                let serial = quoted(serial);
                ErrorFacts::new(ErrorClass::Device, "not-restored")
                    .with_help(format!(
                        "run `heaptap provoke --restore -s {serial}`{and_by_hand}"
                    ))
                    .with_hints(hints)
            }
            ProvokeError::Restarted { .. } => {
                ErrorFacts::new(ErrorClass::Device, "device-restarted")
                    .with_help("start again when the device is ready")
            }
            ProvokeError::Busy { .. } => ErrorFacts::new(ErrorClass::Device, "provoke-busy")
                .with_help("wait for its end, or stop it with Ctrl-C, which restores the device"),
            ProvokeError::OtherPhone { .. } => {
                ErrorFacts::new(ErrorClass::NoDevice, "other-device")
                    .with_help("connect that device, then run `heaptap provoke --restore` again")
            }
            ProvokeError::Journal { .. } => {
                ErrorFacts::new(ErrorClass::HostWrite, "journal-unwritable")
                    .with_help("free disk space, or set `HEAPTAP_STATE_DIR` to another directory")
            }
            ProvokeError::Interrupted => ErrorFacts::new(ErrorClass::Interrupted, "interrupted"),
        }
    }
}

/// Returns the commands that restore the remaining settings, each for a line of its own.
fn by_hand(unrestored: &[UnrestoredSetting], serial: &str) -> Vec<String> {
    let commands = unrestored.iter();
    let commands = commands.filter_map(|one| one.by_hand(serial, Shell::HOST));
    commands.collect()
}
