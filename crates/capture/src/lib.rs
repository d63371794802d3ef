//! Recording: from options to a trace on the host. The crate encodes configs, checks whether
//! processes can be profiled, runs sessions on a device, and reads memory samples and the log
//! meanwhile. It does not decode traces, and it does not print; it emits events.
//!
//! | module | owns |
//! |---|---|
//! | [`conditions`] | heat, battery, free space, kills for memory |
//! | [`config`] | options, presets, txtproto, YAML; their rules; the encoded TraceConfig |
//! | [`eligibility`] | processes that can be profiled, the reasons if not, and the fixes |
//! | [`error`] | the error of all of them |
//! | [`host`] | programs of this host, through heapprofd's preload library |
//! | [`session`] | lifecycle of a session on the device: start, snapshot, stop, pull; its journal on the host |
//! | [`observe`] | samples of memory and the log, during a recording or alone |
//! | [`jdwp`] | recent allocations of a Java runtime, over its debugger connection |
//! | [`provoke`] | actions that provoke leaks: rotations, restarts, trims, input |
//!
//! # The method
//!
//! ```text
//! options ─► config ─► CaptureSpec ─► for_sdk ─► EncodedConfig
//!                          │                          │
//! device ─► eligibility ───┘        session ◄─────────┘
//!                                   journal ─► start ─► follow ─► stop ─► pull
//! ```
//! The journal is written and synced before the first request to the device, so a later process can
//! finish a session that this one started. All access to the device goes through
//! `heaptap_adb::Device`; nothing here opens a socket.
//!
//! # A worked example
//! Options become a config for the tracing service. Rules reject values that the service would
//! reject, and values that it would accept but ignore:
//!
//! ```
//! use heaptap_capture::config::{DeviceLimits, Options, Targets, resolve};
//! use std::time::Duration;
//!
//! let targets = Targets { names: vec!["com.example.app".to_owned()], ..Targets::default() };
//! let options = Options {
//!     targets,
//!     interval_bytes: Some(4096),
//!     duration: Some(Duration::from_secs(30)),
//!     ..Options::default()
//! };
//! let spec = resolve(None, &options)?.spec;
//! let config = spec.encode(&DeviceLimits::default())?;
//! assert_eq!(config.config.duration_ms, Some(30_000));
//! assert!(config.text.contains("sampling_interval_bytes: 4096"));
//!
//! assert!(resolve(None, &Options::default()).is_err(), "no target process is given");
//! # Ok::<(), heaptap_base::error::Failure>(())
//! ```

pub mod conditions;
pub mod config;
pub mod eligibility;
pub mod error;
pub mod host;
pub mod jdwp;
pub mod observe;
pub mod provoke;
pub mod session;
#[cfg(test)]
mod testing;
