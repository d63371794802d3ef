//! One phone behind an adb server: run a command, feed it, stat, pull, push, follow its
//! state. Owns the adb server's protocol and the finding and starting of that server; knows
//! nothing of profiling. Every operation has a deadline; a lost connection is an error, never
//! an end.
//!
//! [`Server`] speaks host services and chooses; [`Device`] is one phone; both reach the server
//! through a [`Connect`] (TCP in the program, an in-memory stream in tests):
//!
//! ```no_run
//! # use std::time::Duration;
//! # use heaptap_adb::{Command, DeviceError, Selector, Server};
//! # async fn example() -> Result<(), DeviceError> {
//! let server = Server::locate(None).await?;
//! let phone = server.select(&Selector::from_flag_or_env(None)).await?;
//! let model = Command::program("getprop").arg("ro.product.model");
//! let output = phone.run(&model, Duration::from_secs(5)).await?;
//! # Ok(())
//! # }
//! ```
//!
//! `docs/adb.md` describes the protocol as it is spoken here.
#![warn(missing_docs)]

mod adb_client;
mod command;
mod connect;
mod debug;
mod detach;
mod error;
mod handle;
mod host_adb;
mod list;
#[cfg(any(test, feature = "scripted"))]
pub mod scripted;
mod select;
mod server;
mod shell;
mod sync;
#[cfg(test)]
mod tests;
mod wire;

pub use adb_client::Announced;
pub use command::Command;
pub use connect::{Address, Connect, Connecting, DEFAULT_PORT, Stream, Tcp};
pub use debug::{DebugStream, Debuggable};
pub use error::DeviceError;
pub use handle::{Device, Features};
pub use host_adb::{HostAdb, find_adb};
pub use list::{DeviceState, ListedDevice, parse_list};
pub use select::Selector;
pub use server::{Server, Tracker};
pub use shell::{Shell, ShellEvent};
pub use sync::RemoteStat;

/// What a command left behind. There is none without an exit code: a connection that ends
/// before the exit packet is [`DeviceError::Lost`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Output {
    /// Standard output, byte for byte.
    pub stdout: Vec<u8>,
    /// Standard error, byte for byte.
    pub stderr: Vec<u8>,
    /// Exit code of the shell.
    pub exit: u8,
}

#[cfg(any(test, feature = "scripted"))]
impl Output {
    /// Of a command that said this, and ended well.
    pub fn said(stdout: &str, stderr: &str) -> Output {
        Output {
            stdout: stdout.into(),
            stderr: stderr.into(),
            exit: 0,
        }
    }
}
