//! Config of a recording: options, presets and Perfetto text become one [`CaptureSpec`], which
//! becomes the bytes of a TraceConfig. Owns every rule for allowed values; independent of
//! devices and of the files of a recording.
//!
//! ```text
//! configs/*.yaml, preset ─┐
//! Perfetto text, binary ──┼─► Options, template ─► CaptureSpec ─► for_sdk ─► EncodedConfig
//! flags, --set ───────────┘        (resolve)         (rules)                  (encode)
//! ```

mod companion_sources;

mod error;
mod fields;
mod file;
mod heap_file;
mod host;
mod java;
mod options;
mod preset;
mod resolve;
mod rules;
pub(crate) mod sources;
mod spec;
mod targets;
mod text;
mod trace_config;
mod trigger;
mod yaml;

pub use companion_sources::CompanionSources;
pub use fields::FieldSetting;
pub use file::ConfigFile;
pub use heap_file::{BitmapFormat, HeapFileSpec};
pub use java::{JAVA_HPROF, JAVA_HPROF_OOM, JavaSpec, TimeoutFactor};
pub use options::{Options, Snapshots};
pub use preset::{PRESETS, Preset};
pub use resolve::{Resolved, resolve};
pub use rules::HEAPS_SDK;
pub use sources::HEAPPROFD;
pub use spec::{CaptureSpec, JavaAllocations};
pub use targets::Targets;
pub use text::{parse_text, print_text};
pub use trace_config::{DeviceLimits, EncodedConfig};
pub use trigger::trigger_config;

#[cfg(test)]
mod tests;
