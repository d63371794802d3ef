//! Recording: from options to a trace on this computer. The crate encodes configs, checks whether
//! processes can be profiled, runs sessions on a device, and reads samples and the log meanwhile.
//! It does not decode what was recorded, and it does not print; it emits events.
//!
//! | module | owns |
//! |---|---|
//! | [`config`] | options, presets, txtproto, YAML; their rules; the encoded TraceConfig |
//! | [`eligibility`] | which processes can be profiled, the reason if not, and what helps |
//! | [`session`] | a session's life on the device: start, snapshot, stop, pull; its journal on the host |
//! | [`observe`] | samples of memory and the log, while a recording runs or alone |
//! | [`jdwp`] | recent allocations of a Java runtime, over its debugger connection |
//! | [`provoke`] | actions that bring leaks out: rotations, restarts, trims, input |
//!
//! # The method
//!
//! ```text
//! options ─► config ─► CaptureSpec ─► for_sdk ─► EncodedConfig
//!                          │                          │
//! device ─► eligibility ───┘        session ◄─────────┘
//!                                   journal ─► start ─► follow ─► stop ─► pull
//! ```
//!
//! The journal is written and synced before the first request to the device, so a later process can
//! finish a session that this one started. Everything on the device is reached through
//! `heaptap_adb::Device`; nothing here opens a socket.
//!
//! # A worked example
//!
//! Options become a config for the tracing service. Rules refuse what the service would refuse, and
//! what it would accept but not do:
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
//! assert!(resolve(None, &Options::default()).is_err(), "no process is named");
//! # Ok::<(), heaptap_capture::config::ConfigError>(())
//! ```

pub mod config;
pub mod eligibility;
pub mod jdwp;
pub mod observe;
pub mod provoke;
pub mod session;
