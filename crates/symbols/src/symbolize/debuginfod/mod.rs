//! Debug files from debuginfod servers in `DEBUGINFOD_URLS`. Without the variable, no socket is
//! ever opened. The search decides when to query servers.
//!
//! There is one request for each file and server, `GET <url>/buildid/<hex>/debuginfo` (elfutils'
//! debuginfod(8)), without retries. A file is kept in the cache only if it has the requested build
//! ID. A server that does not respond is not queried again by this process, and a missing file is
//! remembered for ten minutes.

#[cfg_attr(not(feature = "debuginfod"), path = "no_client.rs")]
mod client;
mod servers;

pub(super) use client::Client;
pub(super) use servers::Refusal;
pub use servers::{Servers, without_password};
