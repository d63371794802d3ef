//! heaptap: memory profiling of Android devices from the host.
//!
//! Data flows one way; every stage passes a plain type to the next and does not depend on it:
//!
//! ```text
//! cli -> commands -> capture (device) -> raw-trace
//!                    raw-trace -> perfetto-heap -> model -> export (pprof), report
//! ```
//!
//! `docs/internals/architecture.md` shows the same, with the table of permitted imports.

pub mod cli;
#[allow(
    rustdoc::broken_intra_doc_links,
    rustdoc::invalid_html_tags,
    reason = "the docs of options are the text of --help"
)]
pub mod commands;
mod console;
pub mod heaps;
pub mod lab;
pub mod names;
pub mod page;
pub mod recording;
