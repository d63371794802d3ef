//! Messages of Perfetto and pprof, generated from the `.proto` files of this package by [prost]. The
//! crate has only the generated code.
//!
//! | module | owns |
//! |---|---|
//! | [`perfetto`] | Perfetto's configs, and the part of its traces that the virtual phone writes |
//! | [`pprof`] | `perftools.profiles.Profile` |
//! | [`DESCRIPTORS`] | the descriptor set of both, for the text format of configs |
//!
//! The files were written from field numbers and have only the fields that heaptap uses;
//! `PROVENANCE.md` has the sources. Decoding skips every other field. To read a trace, use
//! `perfetto-heap`: it does not use these messages, so that a mistake in one of the two is found by
//! the tests of the other.
//!
//! # A worked example
//!
//! A config with one data source is a message in a message in a message. Each has a byte for field
//! and wire type, a length, and its content:
//!
//! ```
//! use heaptap_proto::perfetto::{DataSourceConfig, TraceConfig, trace_config::DataSource};
//! use prost::Message;
//!
//! let source = DataSourceConfig { name: Some("a".to_owned()), ..Default::default() };
//! let source = DataSource { config: Some(source), ..Default::default() };
//! let config = TraceConfig { data_sources: vec![source], ..Default::default() };
//! assert_eq!(config.encode_to_vec(), [0x12, 5, 0x0a, 3, 0x0a, 1, b'a']);
//! ```
#![allow(clippy::all)]

/// Perfetto's config and the part of the trace that the virtual phone writes.
pub mod perfetto {
    include!(concat!(env!("OUT_DIR"), "/perfetto.protos.rs"));
}

/// pprof's profile.
pub mod pprof {
    include!(concat!(env!("OUT_DIR"), "/perftools.profiles.rs"));
}

/// The serialized `FileDescriptorSet` of all files, for the text format of configs.
pub static DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
