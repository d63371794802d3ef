//! Actions that bring leaks out, as the Android guide recommends them: rotations, leaving and
//! coming back, restarts of activities, trims, random and scripted input. Each is a plain value
//! that can be written in a script; what an action changes on the device is put back afterwards.
//!
//! | module | owns |
//! |---|---|
//! | `action` | the actions as values, as text, in YAML |
//! | `away` | a phone whose cable is lost: waiting for it, going on, or putting back |
//! | `cancel` | ending a run from outside |
//! | `catalog` | what each is for, for people |
//! | `checks` | what is looked at after each command |
//! | `commands` | the commands that each comes to on a release of Android, and what is checked after each |
//! | `dry` | what would be sent, printed |
//! | `read` | the texts that a phone answers with: pure, bounded, fuzzed |
//! | `look` | asking the phone: what is in front, which process, how much it works |
//! | `saved` | what a phone was set to before; its journal on the host; putting it back |
//! | `settle` | waiting until an app has come to rest |
//! | `run` | a plan from its first command to the state put back |
//! | `trend` | what memory does from round to round, and how sure that is |
//! | `unrestored` | what was not put back, and what a person can type |

mod action;
mod cancel;
pub mod catalog;
mod checks;
mod commands;
mod dry;
mod error;
mod event;
mod lost_cable;
mod phone_state;
pub mod read;
mod run;
mod saved;
mod settle;
mod trend;
mod unrestored;

pub use action::{Action, ActionError, Key, Monkey, Point, Swipe, Trim, TrimLevel};
pub use cancel::{Cancel, Canceller};
pub use commands::{CheckedCommand, Phone};
pub use dry::{Planned, dry_run};
pub use error::ProvokeError;
pub use event::{Death, Effect, Event, Launch, PutBack, Report, Step};
pub use phone_state::hardware_serial;
pub use run::run;
pub use saved::{Journals, Lock, Saved, Setting, identity, put_back};
pub use settle::Settle;
pub use trend::{FEWEST, Held, LEFT_OUT, Trend, Verdict};
pub use unrestored::UnrestoredSetting;

/// Which app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The package: what is started, stopped and sent events.
    pub package: String,
    /// The process that is watched and asked for memory; the package's main one has its name.
    pub process: String,
    /// The Android user; without it the one in front.
    pub user: Option<u32>,
}

impl Target {
    /// From `com.example.app` or `com.example.app:service`.
    ///
    /// # Errors
    /// Where that is no name of a package or process.
    pub fn parse(text: &str, user: Option<u32>) -> Result<Target, ProvokeError> {
        let package = text.split(':').next().unwrap_or(text);
        let fits = |c: char| c.is_ascii_alphanumeric() || "._".contains(c);
        let good = !package.is_empty() && package.len() <= 223 && package.chars().all(fits);
        let good = good && text.len() <= 255 && !text.chars().any(|c| c.is_control() || c == ' ');
        match good {
            true => Ok(Target {
                package: package.to_owned(),
                process: text.to_owned(),
                user,
            }),
            false => Err(ProvokeError::BadTarget {
                text: text.to_owned(),
            }),
        }
    }
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// To whom.
    pub target: Target,
    /// What, in this order.
    pub actions: Vec<Action>,
    /// How often all of it.
    pub rounds: u32,
    /// Wait after each round until the app has come to rest.
    pub settle: Option<Settle>,
    /// The seed of each monkey that names none; a monkey of a later round has a later one.
    pub seed: u32,
}

impl Plan {
    /// One round of these actions.
    pub fn new(target: Target, actions: Vec<Action>) -> Plan {
        Plan {
            target,
            actions,
            rounds: 1,
            settle: None,
            seed: 1,
        }
    }

    fn turns(&self) -> bool {
        let turns = |a: &Action| matches!(a, Action::Rotate(_) | Action::Monkey(_));
        self.actions.iter().any(turns)
    }

    fn needs_screen(&self) -> bool {
        self.actions.iter().any(Action::needs_screen)
    }
}
