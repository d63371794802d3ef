//! Messages generated from `proto/`. Owns nothing but the generated code.
#![allow(missing_docs, clippy::all)]

/// Perfetto's config and the part of the trace that the virtual phone writes.
pub mod perfetto {
    include!(concat!(env!("OUT_DIR"), "/perfetto.protos.rs"));
}

/// pprof's profile.
pub mod pprof {
    include!(concat!(env!("OUT_DIR"), "/perftools.profiles.rs"));
}

/// The serialized `FileDescriptorSet` of all of `proto/`, for the text format of configs.
pub static DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
