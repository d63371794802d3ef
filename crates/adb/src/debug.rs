//! adbd's services for debuggers: a list of debuggable processes and a stream to each. Owns the two
//! services; independent of the protocol on the stream.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::io::{BufReader, Join, ReadHalf, WriteHalf};

use super::connect::Stream;
use super::error::DeviceError;
use super::handle::Device;
use super::operation::Operation;
use super::wire::Wire;

/// List of the device's processes that accept a debugger, updated by the device.
pub struct Debuggable {
    wire: Wire,
    serial: String,
    /// Received part of the next list.
    read: Vec<u8>,
}

impl Debuggable {
    pub(super) const SERVICE: &'static str = "track-jdwp";

    pub(super) fn new(wire: Wire, serial: &str) -> Debuggable {
        Debuggable {
            wire,
            serial: serial.to_owned(),
            read: Vec::new(),
        }
    }

    /// Returns all process IDs on the first call, then after each change. Waits while nothing
    /// changes. Cancel-safe.
    ///
    /// # Errors
    /// Returns an error if the connection is lost.
    pub async fn next(&mut self) -> Result<BTreeSet<u32>, DeviceError> {
        let text = self.wire.read_text_piecewise(&mut self.read).await;
        let operation = Operation {
            serial: &self.serial,
            what: Self::SERVICE,
        };
        let text = text.map_err(|error| operation.error(error))?;
        Ok(text
            .lines()
            .filter_map(|line| line.trim().parse().ok())
            .collect())
    }
}

/// A debugger's stream to a process.
pub type DebugStream = Join<BufReader<ReadHalf<Box<dyn Stream>>>, WriteHalf<Box<dyn Stream>>>;

impl Device {
    /// Follows the processes that accept a debugger: those of debuggable apps, or of all apps on
    /// debuggable builds.
    ///
    /// # Errors
    /// Returns the errors of [`Device::run`].
    pub async fn debuggable(&self, deadline: Duration) -> Result<Debuggable, DeviceError> {
        let wire = self.open_service(Debuggable::SERVICE, deadline).await?;
        Ok(Debuggable::new(wire, self.serial()))
    }

    /// Opens a stream to the runtime of `pid`. The device also opens it if another debugger is
    /// attached to the process, but then the runtime never answers.
    ///
    /// # Errors
    /// Returns [`DeviceError::Lost`] if the process does not accept a debugger (adb does not report
    /// another reason), otherwise the errors of [`Device::run`].
    pub async fn debugger(&self, pid: u32, deadline: Duration) -> Result<DebugStream, DeviceError> {
        let wire = self.open_service(&format!("jdwp:{pid}"), deadline).await?;
        Ok(tokio::io::join(wire.reader, wire.writer))
    }
}
