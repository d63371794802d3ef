//! Android devices of an adb server: run a command, write its stdin, stat, pull, push, and follow
//! the device's state. The crate has its own client of the adb server's protocol, finds the server,
//! and starts it if none is running. It does not depend on profiling.
//!
//! [`Server`] lists devices and selects one; [`Device`] is one of them. Both reach the server
//! through a [`Connect`]: TCP in programs, an in-memory stream in tests.
//!
//! # The method
//!
//! - Each operation opens its own connection. Dropping its future closes the connection.
//! - Each operation has a deadline. For a pull, it is the maximum silence between two blocks.
//! - A command has ended once its exit packet has arrived. A connection that ends earlier is
//!   [`DeviceError::Lost`], although adb itself then exits with 0.
//! - Nothing reaches the device's shell unquoted: [`Command`] is the only way to write a command.
//! - A running server is never replaced. `adb start-server` kills servers of other versions, so the
//!   crate runs `adb nodaemon server` instead.
//! - No allocation depends on a length that a server or device sends.
//!
//! # The protocol
//!
//! A request is four hexadecimal digits of length and a service. The answer is `OKAY`, or `FAIL`
//! with a text of the same form. The server itself provides the `host:` services. After
//! `host:transport:SERIAL`, the connection leads to the device, which provides
//! `shell,v2,raw:COMMAND` and `sync:`. `docs/internals/device.md` lists every request in use; its facts were
//! checked against adb 29 and adbd 34.
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
//! A line of a list is parsed from its end, because states contain spaces:
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
//! A command on the selected device. Tests do not run this example, because it needs a server:
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
//! | `server`, `select`, `list` | host services; selection of a device; grammar of the list |
//! | `handle` | one device: commands and files, and its return after a lost cable |
//! | `operation` | an operation on a device: its deadline and the errors of its steps |
//! | `shell`, `sync`, `debug` | framing of the shell, sync and debugger services |
//! | `command` | command lines for the device's shell |
//! | `connect`, `wire` | streams to the server; requests and answers |
//! | `lines`, `printable` | output of a command in whole lines; sanitized texts of a device or server |
//! | `host_adb`, `detach` | search and start of the adb program on the host |
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
mod lines;
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
pub use error::{DeviceError, INSTALL_ADB};
pub use handle::{Device, Features, RETURN_LIMIT};
pub use host_adb::{HostAdb, find_adb};
pub use lines::Lines;
pub use list::{DeviceState, ListedDevice, parse_list};
pub use select::Selector;
pub use server::{Server, Tracker};
pub use shell::{Output, Shell, ShellEvent};
pub use sync::RemoteStat;
