//! Scenarios on devices: runs the steps while a recording is going on, measures the budgets, and
//! writes the results.
//!
//! | module | contents |
//! |---|---|
//! | `figures` | the figure of each budget in the directory of a run |
//! | `steps` | performing the steps of a run on a device |
//! | `triggers` | watching for the conditions of triggers while the steps go on |
//! | `install` | installing the app |
//! | `judging` | verdicts from the figures so far |
//! | `many`, `device_lock` | several devices side by side, each with one job at a time |
//! | `once` | one run: a recording, its steps, its figures |
//! | `recover` | waiting for a device, and fetching what a run left on it |
//! | `scenario_run` | runs until the budgets are decided; the results |
//! | `state` | what is done so far, for a later `--resume` |
//! | `files`, `page` | writing the results, and the page of a run |
//! | `phone` | facts of the device and the app |

mod device_lock;
pub mod events;
pub mod figures;
pub mod files;
pub mod install;
mod judging;
pub mod many;
mod once;
mod page;
mod phone;
mod recover;
pub mod scenario_run;
pub mod state;
mod steps;
mod triggers;

pub use phone::is_of_class;
pub use steps::action;

pub use triggers::describe as describe_condition;

/// Describes a step in a few words.
pub fn describe_step(what: &heaptap_lab::scenario::What) -> String {
    steps::describe(what, "")
}
