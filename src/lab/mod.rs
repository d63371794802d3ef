//! Scenarios on devices: runs the steps while a recording is going on, measures the budgets, and
//! writes the results.
//!
//! | module | contents |
//! |---|---|
//! | `figures` | the figure of each budget in the directory of a run |
//! | `steps` | performing the steps of a run on a device |
//! | `conditions` | heat, space and settings of the device around a run |
//! | `install`, `builds` | installing the app; two builds that alternate |
//! | `triggers` | watching for the conditions of triggers while the steps go on |
//! | `judging` | verdicts from the figures so far |
//! | `device_pool`, `device_lock` | several devices side by side, each with one job at a time |
//! | `single_run` | one run: a recording, its steps, its figures |
//! | `recover` | waiting for a device, and fetching what a run left on it |
//! | `request`, `scenario_run` | a scenario; runs until its budgets are decided, and the results |
//! | `resume` | completing the run of a killed process |
//! | `state`, `run_record` | what is done so far, for a later `--resume` |
//! | `events`, `failures` | events for display; errors of runs, and whether the device is their cause |
//! | `path_lock` | locks of output directories and baselines |
//! | `files`, `page` | writing the results, and the page of a run |
//! | `baseline_file` | reading and updating the file of a baseline |
//! | `phone` | facts of the device and the app |

pub mod baseline_file;
mod builds;
mod conditions;
mod device_lock;
pub mod device_pool;
pub mod events;
mod failures;
pub mod figures;
pub mod files;
pub mod install;
mod judging;
mod page;
mod path_lock;
mod phone;
pub mod recover;
mod request;
mod resume;
mod run_record;
pub mod scenario_run;
mod single_run;
pub mod state;
mod steps;
mod triggers;

pub use conditions::hold_options;
pub use phone::is_of_class;
pub use steps::action;

pub use triggers::describe as describe_condition;

/// Describes a step in a few words.
pub fn describe_step(what: &heaptap_lab::scenario::What) -> String {
    steps::describe(what, "")
}
