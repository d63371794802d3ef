//! heaptap: memory profiling of Android devices from the host.
//!
//! Data flows one way; every stage passes a plain type to the next and does not depend on it:
//!
//! ```text
//! cli -> commands -> config  -> session (device) -> raw-trace
//!                    raw-trace -> trace -> profile -> export (pprof), report
//! ```
//!
//! `docs/internals/architecture.md` shows the same, with the table of permitted imports.

pub use heaptap_analyze as analyze;
pub use heaptap_explore as explore;
pub(crate) use heaptap_model::abandoned;
pub use heaptap_model::bytes;
pub mod cli;
#[allow(
    rustdoc::broken_intra_doc_links,
    rustdoc::invalid_html_tags,
    reason = "the docs of options are the text of --help"
)]
pub mod commands;
mod console;
pub mod conversion;
mod exit;
pub mod explored;
mod flags;
pub mod heaps;
pub mod lab;
pub mod naming;
pub mod pages;
pub mod recording;
pub mod results;
pub mod system;
mod views;
pub use android_hprof as hprof;
pub use android_memory as memory;
pub use heaptap_adb as device;
pub use heaptap_capture as capture;
pub use heaptap_capture::config;
pub use heaptap_capture::eligibility;
pub use heaptap_capture::jdwp;
pub use heaptap_export as export;
pub use heaptap_input as import;
pub use heaptap_model::error;
pub use heaptap_model::folder;
#[cfg(unix)]
pub use heaptap_model::hangup;
pub use heaptap_model::heap_graph;
pub use heaptap_model::host;
pub use heaptap_model::names;
pub use heaptap_model::near;
pub use heaptap_model::parallel;
pub use heaptap_model::patience;
pub use heaptap_symbols::deobfuscate;
pub mod net;
pub use heaptap_capture::observe;
pub use heaptap_capture::provoke;
pub use heaptap_capture::session;
pub use heaptap_model::profile;
pub use heaptap_model::stacks;
pub use heaptap_model::units;
pub use heaptap_model::untrusted;
pub use heaptap_model::{counter, timeline};
pub use heaptap_proto as proto;
#[cfg(feature = "sql")]
pub use heaptap_query as query;
pub use heaptap_report as report;
pub use heaptap_symbols::symbolize;
pub use perfetto_heap as trace;
#[cfg(feature = "virtual-phone")]
pub use virtual_phone as phone;
