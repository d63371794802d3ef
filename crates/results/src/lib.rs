//! Results of a recording: directory, manifest, timeline, findings.
//!
//! | module | owns |
//! |---|---|
//! | [`manifest`] | `manifest.json`: schema, writing, reading |
//! | [`findings`] | message, remedy and exit code of each flag of a dump |
//! | [`deduped`], [`unwinding`] | frames with another method's name; stacks without an end |
//! | [`output`], [`publication`] | the directory of a recording, and how results appear in it |
//! | [`destination`], [`whole_file`] | the one result of a command; files that appear whole |
//! | [`overwrite`] | what an output may replace |
//! | [`file_names`] | names from a device as names of files |
//! | [`labels`] | dumps of a snapshot's label |
//! | [`recorded`] | facts that are in the manifest and not in the trace |
//! | [`summary`] | totals and largest callsites of a recording |
//! | [`timeline`] | memory over time, from companion data and the trace |
//! | [`lists`] | lists in sentences |

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
