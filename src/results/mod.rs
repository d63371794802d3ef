//! What a recording leaves, in files and in words: its folder, its manifest, its timeline, findings.

pub mod deduped;
pub mod findings;
pub mod labels;
pub mod lists;
pub mod manifest;
pub mod output;
pub mod recorded;
pub mod summary;
pub mod timeline;
pub mod whole_file;
