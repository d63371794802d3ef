//! Flags that several commands take, one subject a file.

pub mod capture;
pub mod context;
pub mod filter;
pub mod globals;
pub mod goal;
pub mod iterations;
pub mod java;
pub mod named;
pub mod names;
pub mod native;
pub mod no_report;
pub mod pattern;
pub mod period;
pub mod sample_names;
pub mod session;
pub mod stack;
#[cfg(feature = "virtual-phone")]
pub mod virtual_phone;
