//! Android devices behind an adb server: run a command, feed it, stat, pull, push, follow the
//! device's state. The crate has its own client of the adb server's protocol, finds the server, and
//! starts it if none runs. It knows nothing of profiling.
//!
//! [`Server`] lists devices and selects one; [`Device`] is one of them. Both reach the server
//! through a [`Connect`]: TCP in programs, an in-memory stream in tests.
//!
//! # The method
//!
//! - Each operation opens a connection of its own. Dropping its future closes the connection.
//! - Each operation has a deadline. For a pull it is the longest silence between two blocks.
//! - A command has ended if its exit packet came. A connection that ends before is
//!   [`DeviceError::Lost`], although adb itself then exits with 0.
//! - Nothing reaches the device's shell unquoted: [`Command`] is the only way to write a command.
//! - A running server is never replaced. `adb start-server` kills servers of other versions, so the
//!   crate runs `adb nodaemon server` instead.
//! - No length that a server or device claims decides an allocation.
//!
//! # The protocol
//!
//! A request is four hexadecimal digits of length and a service. The answer is `OKAY`, or `FAIL`
//! with a text of the same form. `host:` services are the server's own. After
//! `host:transport:SERIAL` the connection belongs to the device, which offers
//! `shell,v2,raw:COMMAND` and `sync:`.
//! `docs/adb.md` lists every request in use; its facts were checked against adb 29 and adbd 34.
//!
//! ```text
//! → 000chost:version
//! ← OKAY 0004 0029
//! ```
//!
//! # Worked examples
//!
//! An argument cannot end its quotes:
//!
//! ```
//! use heaptap_adb::Command;
//!
//! let command = Command::program("ls").arg("-l").arg("/sdcard/it's here; reboot");
//! assert_eq!(command.text(), r"ls -l '/sdcard/it'\''s here; reboot'");
//! ```
//!
//! The line of a list is read from its end, because states contain spaces:
//!
//! ```
//! use heaptap_adb::{DeviceState, parse_list};
//!
//! let list = "0A1B2C                 device product:oriole model:Pixel_6 transport_id:3\n";
//! let device = &parse_list(list)[0];
//! assert_eq!((device.serial.as_str(), &device.state), ("0A1B2C", &DeviceState::Device));
//! assert_eq!(device.model.as_deref(), Some("Pixel_6"));
//! ```
//!
//! A command on the selected device. This one is not run by the tests, because it needs a server:
//!
//! ```no_run
//! use heaptap_adb::{Command, DeviceError, Selector, Server};
//! use std::time::Duration;
//!
//! # async fn example() -> Result<(), DeviceError> {
//! let server = Server::locate(None).await?;
//! let device = server.select(&Selector::from_flag_or_env(None)).await?;
//! let model = Command::program("getprop").arg("ro.product.model");
//! let output = device.run(&model, Duration::from_secs(5)).await?;
//! assert_eq!(output.exit, 0);
//! # Ok(())
//! # }
//! ```
//!
//! # Modules
//!
//! | module | owns |
//! |---|---|
//! | `server`, `select`, `list` | host services; which device is meant; the list's grammar |
//! | `handle` | one device: commands and files, and its return after a lost cable |
//! | `operation` | an operation on a device: its deadline, and what a failure means for it |
//! | `shell`, `sync`, `debug` | framing of the shell, sync and debugger services |
//! | `command` | command lines for the device's shell |
//! | `connect`, `wire` | streams to the server; requests and answers |
//! | `printable` | words of a device or server, made safe to show |
//! | `host_adb`, `detach` | the adb program of this computer, found and started |
//! | `adb_client` | network devices: connect, disconnect, pair, mDNS |
//! | `error` | errors by what the user can do about them |
//! | `scripted` (feature) | a server that plays a script, for tests |
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
mod operation;
mod printable;
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
