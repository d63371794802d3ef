//! Actions that provoke leaks, as recommended by the Android guide: rotations, leaving and
//! returning, activity restarts, trims, random and scripted input. Each action is a plain value
//! that can be written in a script; changes to the device are restored afterwards.
//!
//! | module | owns |
//! |---|---|
//! | `action` | the actions as values, as text |
//! | `cancel` | ending a run from outside |
//! | `catalog` | descriptions of the actions for people |
//! | `checks` | checks of the effect after each command |
//! | `commands` | the commands of each action on a release of Android, and the check after each |
//! | `dry` | the commands of a run, without sending them |
//! | `hold` | settings for the time of a run: screen, animations, doze |
//! | `lost_cable` | a disconnected device: waiting, continuing, or restoring |
//! | `phone_state` | queries to the device: foreground activity, process, CPU time |
//! | `read` | parsers for answers of a device: pure, bounded, fuzzed |
//! | `run` | a plan from its first command to the restored state |
//! | `settings_journal` | previous settings of a device; their journal on the host; restoring them |
//! | `settle` | waiting until an app is idle |
//! | `trend` | change of memory from iteration to iteration, with its confidence interval |
//! | `unrestored` | settings that were not restored, and commands to restore them manually |

use heaptap_base::error::{ErrorClass, Failure};

mod action;
mod cancel;
pub mod catalog;
mod checks;
mod commands;
mod dry;
mod event;
mod hold;
mod lost_cable;
mod phone_state;
pub mod read;
mod run;
mod settings_journal;
mod settle;
mod trend;
mod unrestored;

pub use crate::error::CaptureError;
pub use action::{Action, ActionError, Key, Monkey, Point, Swipe, Trim, TrimLevel};
pub use cancel::{Cancel, Canceller};
pub use commands::{CheckedCommand, Phone};
pub use dry::{Planned, dry_run};
pub use event::{Death, Effect, Event, Launch, PutBack, Report, Step};
pub use hold::{HeldSettings, HoldOptions, hold, restore};
pub use phone_state::{boot, foreground, hardware_serial};
pub use run::run;
pub use settings_journal::{Journals, Lock, Saved, Setting, put_back};
pub use settle::Settle;
pub use trend::{FEWEST, Held, LEFT_OUT, Trend, Verdict};
pub use unrestored::UnrestoredSetting;

/// App to provoke.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Package to start, stop and send events to.
    pub package: String,
    /// Process to watch and to ask for memory; the package's main process has the package's name.
    pub process: String,
    /// The Android user; by default the one in the foreground.
    pub user: Option<u32>,
}

impl Target {
    /// Parses `com.example.app` or `com.example.app:service`.
    ///
    /// # Errors
    /// Returns an error if the text is not a package or process name.
    pub fn parse(text: &str, user: Option<u32>) -> Result<Target, Failure> {
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
            false => {
                let message = format!("{text:?} is not a package or process name");
                Err(
                    Failure::new(ErrorClass::Usage, "bad-target", message).with_help(
                        "use a package name such as com.example.app; `heaptap apps` lists them",
                    ),
                )
            }
        }
    }
}

/// Actions to perform on an app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub target: Target,
    /// Actions in order.
    pub actions: Vec<Action>,
    /// Number of iterations of all actions.
    pub rounds: u32,
    /// Wait after each iteration until the app is idle.
    pub settle: Option<Settle>,
    /// Seed of each monkey without its own; it increases with each monkey of later iterations.
    pub seed: u32,
}

impl Plan {
    /// Creates a plan with one iteration of these actions.
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
