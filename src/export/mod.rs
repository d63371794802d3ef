//! Profiles in the formats of other tools: from the model to bytes. Knows neither traces nor
//! where the bytes go.

pub mod deobfuscation_packets;
pub mod gzip;
pub mod java_pprof;
pub mod packets;
pub mod pprof;
mod wire;
