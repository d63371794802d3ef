//! Profiles in the formats of other tools: from the model to bytes. Knows neither traces nor
//! where the bytes go.

pub mod allocations;
mod by_name;
pub mod chosen;
pub mod csv;
pub mod deobfuscation_packets;
pub mod folded;
pub mod gzip;
pub mod java_pprof;
pub mod java_stacks;
pub mod json;
pub mod packets;
pub mod parquet;
pub mod pprof;
pub mod speedscope;
pub mod svg;
pub mod text;
mod wire;

#[cfg(test)]
mod tests;
