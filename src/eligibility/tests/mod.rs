//! Tests that span several files of eligibility.

mod calls;
mod decision;
mod targets;
