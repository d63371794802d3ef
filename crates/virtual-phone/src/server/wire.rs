//! Bytes on a connection of the virtual adb server: requests, answers, and the slowness and
//! fragmentation that can be asked for.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Mutex;
use std::time::Duration;

use crate::events::lock;

/// Longest request that an adb server takes.
const MAX_REQUEST: usize = 64 << 10;

/// How long a finished connection waits for its peer to leave.
const LINGER: Duration = Duration::from_secs(2);

/// What came of waiting for the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waited {
    /// It said something.
    Data,
    /// It is silent.
    Nothing,
    /// It is gone.
    Left,
}

/// One connection; reading and writing may happen on different threads.
pub(super) struct Wire {
    stream: TcpStream,
    writing: Mutex<()>,
    fragment: bool,
}

impl Wire {
    pub(super) fn new(stream: TcpStream, fragment: bool) -> Self {
        // Latency matters more than the number of packets; a failure costs only that.
        let _ = stream.set_nodelay(true);
        Wire {
            stream,
            writing: Mutex::new(()),
            fragment,
        }
    }

    /// Exactly `buffer.len()` bytes.
    pub(super) fn read_exact(&self, buffer: &mut [u8]) -> io::Result<()> {
        (&self.stream).read_exact(buffer)
    }

    /// Some bytes; none at the end.
    pub(super) fn read_some(&self, buffer: &mut [u8]) -> io::Result<usize> {
        (&self.stream).read(buffer)
    }

    /// Waits for the peer to say something, and leaves it there to be read.
    pub(super) fn wait(&self, limit: Duration) -> io::Result<Waited> {
        self.stream.set_read_timeout(Some(limit))?;
        let peeked = self.stream.peek(&mut [0]);
        self.stream.set_read_timeout(None)?;
        match peeked {
            Ok(0) => Ok(Waited::Left),
            Ok(_) => Ok(Waited::Data),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock
                | io::ErrorKind::TimedOut
                | io::ErrorKind::Interrupted => Ok(Waited::Nothing),
                _ => Ok(Waited::Left),
            },
        }
    }

    /// All of `bytes`, in one piece among those of other threads.
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let _whole = lock(&self.writing);
        if self.fragment {
            return bytes
                .iter()
                .try_for_each(|b| (&self.stream).write_all(std::slice::from_ref(b)));
        }
        (&self.stream).write_all(bytes)
    }

    /// A request: four hex digits of length and the service.
    pub(super) fn request(&self) -> io::Result<String> {
        let mut digits = [0; 4];
        self.read_exact(&mut digits)?;
        let length = std::str::from_utf8(&digits)
            .ok()
            .and_then(|d| usize::from_str_radix(d, 16).ok())
            .filter(|n| *n <= MAX_REQUEST)
            .ok_or_else(|| io::Error::other("no request"))?;
        let mut service = vec![0; length];
        self.read_exact(&mut service)?;
        String::from_utf8(service).map_err(io::Error::other)
    }

    pub(super) fn okay(&self) -> io::Result<()> {
        self.write(b"OKAY")
    }

    /// OKAY and a body with its length.
    pub(super) fn answer(&self, body: &str) -> io::Result<()> {
        self.okay()?;
        self.body(body)
    }

    /// A body with its length.
    pub(super) fn body(&self, body: &str) -> io::Result<()> {
        self.write(format!("{:04x}{body}", body.len()).as_bytes())
    }

    pub(super) fn fail(&self, text: &str) -> io::Result<()> {
        self.write(format!("FAIL{:04x}{text}", text.len()).as_bytes())
    }

    /// A second handle to the same connection, to cut it from elsewhere.
    pub(super) fn handle(&self) -> io::Result<TcpStream> {
        self.stream.try_clone()
    }

    /// Ends the answer: the peer reads all of it, then the end. Closing at once would reset the
    /// connection where something of the peer's is unread, and take the answer's tail along.
    pub(super) fn finish(&self) {
        // It may be closed already.
        let _ = self.stream.shutdown(Shutdown::Write);
        self.silence(Some(LINGER));
        self.close();
    }

    /// Ends the connection for both sides.
    pub(super) fn close(&self) {
        // It may be closed already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Waits on the host's clock, as long as the peer stays.
    pub(super) fn silence(&self, limit: Option<Duration>) {
        let _ = self.stream.set_read_timeout(limit);
        let mut one = [0; 512];
        // What the peer says meanwhile is lost, as with a server that hangs.
        while matches!(self.read_some(&mut one), Ok(n) if n > 0) {}
        let _ = self.stream.set_read_timeout(None);
    }
}
