//! One phone behind an adb server: run a command, feed it, stat, pull, push, follow its
//! state. Owns the adb server's protocol and the finding and starting of that server; knows
//! nothing of profiling. Every operation has a deadline; a lost connection is an error, never
//! an end.
//!
//! [`Server`] speaks host services; [`Device`] is one phone, reached through a [`Connect`]
//! (TCP in the program, an in-memory stream in tests).

mod command;
mod error;

pub use command::Command;
pub use error::DeviceError;

use std::io;
use std::time::Duration;

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

/// One event of a running command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShellEvent {
    /// Bytes of standard output.
    Stdout(Vec<u8>),
    /// Bytes of standard error.
    Stderr(Vec<u8>),
    /// The command ended; nothing follows.
    Exit(u8),
}

/// What `stat` says of a remote file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RemoteStat {
    /// Size in bytes (64 bits where the phone offers `stat_v2`).
    pub size: u64,
    /// st_mode.
    pub mode: u32,
    /// Modification time, seconds since the epoch.
    pub mtime: i64,
}

/// State of a device in the adb server's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceState {
    /// Ready.
    Device,
    /// Listed but not answering.
    Offline,
    /// The phone asks its user to allow this computer.
    Unauthorized,
    /// The host may not open the USB device; the text says more.
    NoPermissions(String),
    /// authorizing, connecting, recovery, sideload, bootloader, … as the server says it.
    Other(String),
}

/// One line of `host:devices-l`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedDevice {
    /// Serial number; not unique in rare cases.
    pub serial: String,
    /// Its state.
    pub state: DeviceState,
    /// `usb:…`, `product:…`, `model:…`, `device:…`; absent ones are `None`.
    pub usb: Option<String>,
    /// Product name.
    pub product: Option<String>,
    /// Model name (underscores for spaces).
    pub model: Option<String>,
    /// Device name.
    pub device: Option<String>,
    /// The server's number for this connection.
    pub transport_id: Option<u64>,
}

/// A phone. Cheap to clone; each operation opens a connection of its own.
#[derive(Clone)]
pub struct Device {
    _todo: (),
}

/// A running command with its stdin open.
pub struct Shell {
    _todo: (),
}

impl Device {
    /// The serial number by which the server knows it.
    pub fn serial(&self) -> &str {
        todo!()
    }

    /// Runs `command` to its end, with no stdin.
    ///
    /// # Errors
    /// [`DeviceError::Lost`] where the connection ends before the exit packet,
    /// [`DeviceError::Deadline`] where it takes longer than `deadline`.
    pub async fn run(&self, command: &Command, deadline: Duration) -> Result<Output, DeviceError> {
        self.run_with_stdin(command, &[], deadline).await
    }

    /// Runs `command` to its end, feeding it `stdin` and then closing it.
    ///
    /// # Errors
    /// As [`Device::run`].
    pub async fn run_with_stdin(
        &self,
        _command: &Command,
        _stdin: &[u8],
        _deadline: Duration,
    ) -> Result<Output, DeviceError> {
        todo!()
    }

    /// Starts `command` and leaves it running; `deadline` is for the start alone.
    ///
    /// # Errors
    /// As [`Device::run`].
    pub async fn spawn(
        &self,
        _command: &Command,
        _deadline: Duration,
    ) -> Result<Shell, DeviceError> {
        todo!()
    }

    /// What is at `path`; `None` where nothing is (other errors are errors).
    ///
    /// # Errors
    /// As [`Device::run`]; [`DeviceError::Refused`] where the phone forbids it.
    pub async fn stat(
        &self,
        _path: &str,
        _deadline: Duration,
    ) -> Result<Option<RemoteStat>, DeviceError> {
        todo!()
    }

    /// Pulls `path` into `sink`, block by block; returns the bytes received. `sink` may end
    /// the pull with an error (cancel, disk full), which comes back as [`DeviceError::Sink`].
    /// `stall` is the longest silence allowed between two blocks. Dropping the future closes
    /// the connection.
    ///
    /// # Errors
    /// [`DeviceError::Lost`] where the stream ends before the phone's DONE.
    pub async fn pull(
        &self,
        _path: &str,
        _sink: &mut (dyn FnMut(&[u8]) -> io::Result<()> + Send),
        _stall: Duration,
    ) -> Result<u64, DeviceError> {
        todo!()
    }

    /// Writes `bytes` to `path` on the phone with `mode`.
    ///
    /// # Errors
    /// As [`Device::run`]; [`DeviceError::Refused`] where the phone forbids it.
    pub async fn push(
        &self,
        _bytes: &[u8],
        _path: &str,
        _mode: u32,
        _deadline: Duration,
    ) -> Result<(), DeviceError> {
        todo!()
    }

    /// Waits until the server lists this device as ready again (after a pulled cable).
    ///
    /// # Errors
    /// [`DeviceError::Deadline`] where it does not come back in time.
    pub async fn wait_ready(&self, _deadline: Duration) -> Result<(), DeviceError> {
        todo!()
    }
}

impl Shell {
    /// The next event. After [`ShellEvent::Exit`] do not call it again. It waits for as long
    /// as the command is silent: callers set their own time limits. Cancel-safe.
    ///
    /// # Errors
    /// [`DeviceError::Lost`] where the connection ends before the exit packet.
    pub async fn next(&mut self) -> Result<ShellEvent, DeviceError> {
        todo!()
    }

    /// Feeds bytes to the command.
    ///
    /// # Errors
    /// [`DeviceError::Lost`].
    pub async fn write(&mut self, _bytes: &[u8]) -> Result<(), DeviceError> {
        todo!()
    }

    /// Closes the command's stdin.
    ///
    /// # Errors
    /// [`DeviceError::Lost`].
    pub async fn close_stdin(&mut self) -> Result<(), DeviceError> {
        todo!()
    }
}
