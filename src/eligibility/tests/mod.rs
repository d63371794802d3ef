//! Tests that span several files of eligibility.

mod decision;
mod targets;
