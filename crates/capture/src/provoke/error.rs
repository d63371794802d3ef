//! What can go wrong while an app is provoked.

use std::io;
use std::path::PathBuf;

use super::unrestored::UnrestoredSetting;
use heaptap_adb::DeviceError;
use heaptap_model::error::{Classified, ErrorClass, ErrorFacts};
use heaptap_model::untrusted::sanitize;
use heaptap_model::untrusted::shell::{Shell, quoted};

/// Why provoking failed.
#[derive(Debug, thiserror::Error)]
pub enum ProvokeError {
    /// The phone.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// No name of a package.
    #[error("{text:?} is no name of a package or process")]
    BadTarget {
        /// What was given.
        text: String,
    },
    /// It has nothing to start, or is not there.
    #[error("{package} has no activity that could be started on {serial}: {why}")]
    NoActivity {
        /// The phone.
        serial: String,
        /// The app.
        package: String,
        /// The phone's words, or ours.
        why: String,
    },
    /// It was started, and something else stays in front.
    #[error(
        "{package} does not come to the front on {serial}: {} is there",
        sanitize(front)
    )]
    NotInFront {
        /// The phone.
        serial: String,
        /// The app.
        package: String,
        /// What is in front.
        front: String,
    },
    /// The lock screen stays.
    #[error("the screen of {serial} is locked, and {what} needs it")]
    Locked {
        /// The phone.
        serial: String,
        /// The action.
        what: String,
    },
    /// The phone refused a command.
    #[error("{serial} refused `{command}`: {why}")]
    Refused {
        /// The phone.
        serial: String,
        /// The command.
        command: String,
        /// Its words.
        why: String,
    },
    /// An action that this release does not have.
    #[error("{action} is not possible on {serial}: {why}")]
    NotOnThisAndroid {
        /// The phone.
        serial: String,
        /// The action.
        action: String,
        /// Since when it is.
        why: &'static str,
    },
    /// An answer that makes no sense.
    #[error("{serial} answered oddly when asked for {what}: {}", sanitize(text))]
    Odd {
        /// The phone.
        serial: String,
        /// What was asked for.
        what: &'static str,
        /// The answer's beginning.
        text: String,
    },
    /// It dies again and again.
    #[error("{process} on {serial} died {times} times in a row: {why}")]
    KeepsDying {
        /// The phone.
        serial: String,
        /// The process.
        process: String,
        /// How often.
        times: u32,
        /// Why the last time.
        why: String,
    },
    /// Something was not put back.
    #[error("{serial} is not as it was: {what}{}", not_put_back(unrestored))]
    NotPutBack {
        /// The phone.
        serial: String,
        /// Why.
        what: String,
        /// What is not.
        unrestored: Vec<UnrestoredSetting>,
    },
    /// Another heaptap is at work on this phone.
    #[error("another heaptap is provoking on {serial}")]
    Busy {
        /// The phone.
        serial: String,
    },
    /// A journal that belongs to another phone.
    #[error("{serial} is not the phone ({noted}) whose settings are to be put back")]
    OtherPhone {
        /// The phone.
        serial: String,
        /// The serial number that was noted.
        noted: String,
    },
    /// What was begun cannot go on: rotation, front and process are those of a new start.
    #[error("{serial} was restarted while it was away")]
    Restarted {
        /// The phone.
        serial: String,
    },
    /// The journal.
    #[error("cannot keep what is to be put back in {}", path.display())]
    Journal {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The user.
    #[error("interrupted")]
    Interrupted,
}

fn not_put_back(unrestored: &[UnrestoredSetting]) -> String {
    let what: Vec<&str> = unrestored.iter().map(|one| one.what.as_str()).collect();
    match what.is_empty() {
        true => String::new(),
        false => format!("; not put back: {}", what.join(", ")),
    }
}

impl ProvokeError {
    /// Whether the phone may be there again later.
    pub fn is_connection(&self) -> bool {
        matches!(self, ProvokeError::Device(error) if error.is_connection())
    }
}

const SEE_THE_LIST: &str = "`heaptap provoke --list` tells what each action needs";

impl Classified for ProvokeError {
    fn facts(&self) -> ErrorFacts {
        match self {
            ProvokeError::Device(error) => error.facts(),
            ProvokeError::BadTarget { .. } => ErrorFacts::new(ErrorClass::Usage, "bad-target")
                .with_help("name a package such as com.example.app; `heaptap apps` lists them"),
            ProvokeError::NoActivity { .. } => {
                ErrorFacts::new(ErrorClass::NotEligible, "no-activity").with_help(
                    "`heaptap apps` lists what is installed; --user names another user's app; an \
                     app without an icon can be opened by deep-link",
                )
            }
            ProvokeError::NotInFront { .. } => ErrorFacts::new(ErrorClass::Device, "not-in-front")
                .with_help(
                    "answer or close what is in front by hand (a question for a permission?), and \
                     look whether the app keeps running",
                ),
            ProvokeError::Locked { .. } => ErrorFacts::new(ErrorClass::Device, "screen-locked")
                .with_help(
                    "unlock it by hand: a PIN, pattern or password can't be entered from here",
                ),
            ProvokeError::Refused { .. } => {
                ErrorFacts::new(ErrorClass::Device, "action-refused").with_help(SEE_THE_LIST)
            }
            ProvokeError::NotOnThisAndroid { .. } => {
                ErrorFacts::new(ErrorClass::Device, "not-on-this-android").with_help(SEE_THE_LIST)
            }
            ProvokeError::Odd { .. } => ErrorFacts::new(ErrorClass::Device, "odd-answer"),
            ProvokeError::KeepsDying { .. } => {
                ErrorFacts::new(ErrorClass::Incomplete, "keeps-dying")
                    .with_help("`heaptap gc` and the phone's log tell more; fix that first")
            }
            ProvokeError::NotPutBack {
                serial, unrestored, ..
            } => {
                let hints = by_hand(unrestored, serial);
                let and_by_hand = match hints.is_empty() {
                    true => "",
                    false => ", or put it back by hand:",
                };
                let serial = quoted(serial);
                ErrorFacts::new(ErrorClass::Device, "not-put-back")
                    .with_help(format!(
                        "run `heaptap provoke --restore -s {serial}`{and_by_hand}"
                    ))
                    .with_hints(hints)
            }
            ProvokeError::Restarted { .. } => {
                ErrorFacts::new(ErrorClass::Device, "phone-restarted")
                    .with_help("begin again once it is up")
            }
            ProvokeError::Busy { .. } => ErrorFacts::new(ErrorClass::Device, "provoke-busy")
                .with_help(
                    "wait until it ends, or end it with Ctrl-C: it then puts the phone back",
                ),
            ProvokeError::OtherPhone { .. } => ErrorFacts::new(ErrorClass::NoDevice, "other-phone")
                .with_help("connect that phone, and run `heaptap provoke --restore` again"),
            ProvokeError::Journal { .. } => {
                ErrorFacts::new(ErrorClass::HostWrite, "journal-unwritable")
                    .with_help("make room there, or name another folder by HEAPTAP_STATE_DIR")
            }
            ProvokeError::Interrupted => ErrorFacts::new(ErrorClass::Interrupted, "interrupted"),
        }
    }
}

/// The commands that put back what is left, each for a line of its own.
fn by_hand(unrestored: &[UnrestoredSetting], serial: &str) -> Vec<String> {
    let commands = unrestored.iter();
    let commands = commands.filter_map(|one| one.by_hand(serial, Shell::HOST));
    commands.collect()
}
