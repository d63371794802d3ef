//! Sources of names: options, R8 mappings, libraries of the device, packet files.

pub mod coverage;
pub mod device_libs;
pub mod frames;
pub mod options;
pub mod packet_files;
pub mod r8_mappings;
