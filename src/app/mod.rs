//! One use case a file: plain options in, events and an outcome out. Orchestrates the stages;
//! never prints.

pub mod apps;
pub mod check;
pub mod devices;
pub mod doctor;
pub mod findings;
pub mod labels;
pub mod manifest;
pub mod output;
pub mod summary;
