//! Tests that span several files of eligibility.

mod calls;
mod decision;
mod hostile;
mod targets;
