//! Recording: configs, whether a process may be profiled, sessions, samples beside them.

pub mod config;
pub mod eligibility;
pub mod jdwp;
pub mod observe;
pub mod provoke;
pub mod session;
