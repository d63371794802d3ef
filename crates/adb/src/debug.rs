//! What adbd offers to debuggers: which processes take one, and the way to each. Owns the two
//! services; what is said over the stream is not known here.

use std::collections::BTreeSet;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::error::DeviceError;
use super::handle::Device;
use super::operation::Operation;
use super::wire::Wire;

/// Processes of a phone that take a debugger, as the phone tells of them.
pub struct Debuggable {
    wire: Wire,
    serial: String,
    /// A list that has arrived in part.
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

    /// The ids of all of them, first as they are now, then after each change; waits for as long
    /// as nothing changes. Cancel-safe.
    ///
    /// # Errors
    /// Where the connection is lost.
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

/// A stream to a process, as a debugger has it.
pub struct DebugStream {
    wire: Wire,
}

impl DebugStream {
    pub(super) fn new(wire: Wire) -> DebugStream {
        DebugStream { wire }
    }
}

impl AsyncRead for DebugStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire.reader).poll_read(cx, buf)
    }
}

impl AsyncWrite for DebugStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.wire.writer).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire.writer).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire.writer).poll_shutdown(cx)
    }
}

impl Device {
    /// Follows which processes take a debugger: those of debuggable apps; all apps on builds that
    /// are.
    ///
    /// # Errors
    /// As [`Device::run`].
    pub async fn debuggable(&self, deadline: Duration) -> Result<Debuggable, DeviceError> {
        let wire = self.open_service(Debuggable::SERVICE, deadline).await?;
        Ok(Debuggable::new(wire, self.serial()))
    }

    /// A stream to the runtime of `pid`. The phone gives it also where another debugger holds the
    /// process: then nobody answers.
    ///
    /// # Errors
    /// [`DeviceError::Lost`] where the process takes no debugger (adb has no other word for that),
    /// else as [`Device::run`].
    pub async fn debugger(&self, pid: u32, deadline: Duration) -> Result<DebugStream, DeviceError> {
        let wire = self.open_service(&format!("jdwp:{pid}"), deadline).await?;
        Ok(DebugStream::new(wire))
    }
}
