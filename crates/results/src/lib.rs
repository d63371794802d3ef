//! Results of a recording: directory, manifest, timeline, findings.

pub mod deduped;
pub mod destination;
pub mod file_names;
pub mod findings;
pub mod labels;
pub mod lists;
pub mod manifest;
pub mod output;
pub mod overwrite;
pub mod publication;
pub mod recorded;
pub mod summary;
pub mod timeline;
pub mod unwinding;
pub mod whole_file;
