//! Where an input's names come from: options, mapping files, libraries of the phone, packets of names.

pub mod coverage;
pub mod device_libs;
pub mod frames;
pub mod names;
pub mod packet_files;
pub mod r8_mappings;
