//! The language of scenarios as data: keys, their values and descriptions. The check of a file and
//! the JSON Schema both follow it.
//!
//! | module | contents |
//! |---|---|
//! | `grammar` | shapes of values, and keys of maps |
//! | `file` | keys of a file: the app, its recording, devices |
//! | `steps` | keys of a step |
//! | `budgets` | keys of a budget |

mod budgets;
mod file;
mod grammar;
mod steps;

pub(super) use self::file::{MATRIX, MAX_CELLS, SCENARIO};
pub(super) use self::grammar::{Choice, Group, Key, Shape};
pub(super) use self::steps::{
    MONKEY, MONKEY_EVENTS, REPEAT, RETRY, STEP_ACTIONS, STEP_OPTIONS, SUB_STEPS,
};
