//! Memory scenarios: what to do with an app, what to measure, and what it may use. Pure: reads text
//! and figures, returns plain values; knows no device and no file system.
//!
//! | module | contents |
//! |---|---|
//! | [`scenario`] | the YAML language of scenarios, its JSON Schema, and errors with line and column |
//! | [`verdict`] | verdicts of budgets from repeated measurements; how many repeats decide a budget |
//! | [`baseline`] | figures of the last nights, for version control |
//! | [`excess`] | parts of a figure that account for its excess |
//! | [`results`] | results of a scenario as plain data, and as JUnit XML, GitHub annotations, Markdown, HTML |

pub mod baseline;
pub mod excess;
pub mod results;
pub mod scenario;
pub mod verdict;
