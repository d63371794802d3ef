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
//! | `event` | events of a run |
//! | `hold` | settings for the time of a run: screen, animations, doze |
//! | `lost_cable` | a disconnected device: waiting, continuing, or restoring |
//! | `phone_state` | queries to the device: foreground activity, process, CPU time |
//! | `plan` | the actions to perform, and the app to perform them on |
//! | `read` | parsers for answers of a device: pure, bounded, fuzzed |
//! | `run` | a plan from its first command to the restored state |
//! | `settings_journal` | previous settings of a device; their journal on the host; restoring them |
//! | `settle` | waiting until an app is idle |
//! | `trend` | change of memory from iteration to iteration, with its confidence interval |
//! | `unrestored` | settings that were not restored, and commands to restore them manually |

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
mod plan;
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
pub use plan::{Plan, Target};
pub use run::run;
pub use settings_journal::{Journals, Lock, Saved, Setting, put_back};
pub use settle::Settle;
pub use trend::{Held, LEFT_OUT, MIN_COUNT, Trend, Verdict};
pub use unrestored::UnrestoredSetting;
