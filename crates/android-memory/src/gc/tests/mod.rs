//! Tests of every form of line with its expected values, of results, and of hostile texts.

mod analysis;
mod forms;
mod hostile;
