//! A connection of the virtual adb server: requests, answers, and injected delays and
//! fragmentation.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Mutex;
use std::time::Duration;

use crate::events::lock;
use crate::faults::gate::Answer;

/// Maximum length of a request.
const MAX_REQUEST: usize = 64 << 10;

/// Time that a finished connection waits for its client to disconnect.
const LINGER: Duration = Duration::from_secs(2);

/// Result of waiting for the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waited {
    /// The client sent data.
    Data,
    /// The client sent nothing.
    Nothing,
    /// The client disconnected.
    Left,
}

/// A connection; different threads can read and write at the same time.
pub(super) struct Wire {
    stream: TcpStream,
    writing: Mutex<()>,
    fragment: bool,
}

impl Wire {
    pub(super) fn new(stream: TcpStream, fragment: bool) -> Self {
        // Latency matters more than the number of packets; a failure only increases latency.
        let _ = stream.set_nodelay(true);
        Wire {
            stream,
            writing: Mutex::new(()),
            fragment,
        }
    }

    /// Reads exactly `buffer.len()` bytes.
    pub(super) fn read_exact(&self, buffer: &mut [u8]) -> io::Result<()> {
        (&self.stream).read_exact(buffer)
    }

    /// Reads some bytes; none at the end.
    pub(super) fn read_some(&self, buffer: &mut [u8]) -> io::Result<usize> {
        (&self.stream).read(buffer)
    }

    /// Waits until the client sends data, which stays unread.
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

    /// Writes all of `bytes` without interruption by other threads.
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let _whole = lock(&self.writing);
        if self.fragment {
            return bytes
                .iter()
                .try_for_each(|b| (&self.stream).write_all(std::slice::from_ref(b)));
        }
        (&self.stream).write_all(bytes)
    }

    /// Reads a request: four hex digits of length and the service.
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

    /// Sends OKAY and a body with its length.
    pub(super) fn answer(&self, body: &str) -> io::Result<()> {
        self.okay()?;
        self.body(body)
    }

    /// Sends a body with its length.
    pub(super) fn body(&self, body: &str) -> io::Result<()> {
        self.write(format!("{:04x}{body}", body.len()).as_bytes())
    }

    pub(super) fn fail(&self, text: &str) -> io::Result<()> {
        self.write(format!("FAIL{:04x}{text}", text.len()).as_bytes())
    }

    /// Gives a request an answer that is not the right one.
    pub(super) fn give(&self, answer: Answer) -> io::Result<()> {
        match answer {
            Answer::Serve | Answer::Close => Err(io::Error::other("closed at a gate")),
            Answer::Refuse => self.fail("closed"),
            Answer::Garble | Answer::Nonsense => self.write(b"\x7fELF\xff\xff\xff\xff????"),
            Answer::Silence => {
                self.silence(None);
                Ok(())
            }
        }
    }

    /// Returns a second handle of the connection, to cut it from another thread.
    pub(super) fn handle(&self) -> io::Result<TcpStream> {
        self.stream.try_clone()
    }

    /// Ends the answer: the client reads all of it, then the end. Closing at once would reset the
    /// connection if data of the client is unread, and thus lose the end of the answer.
    pub(super) fn finish(&self) {
        // The stream might be closed already.
        let _ = self.stream.shutdown(Shutdown::Write);
        self.silence(Some(LINGER));
        self.close();
    }

    /// Closes the connection in both directions.
    pub(super) fn close(&self) {
        // The stream might be closed already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Waits on the host's clock, while the client stays connected.
    pub(super) fn silence(&self, limit: Option<Duration>) {
        let _ = self.stream.set_read_timeout(limit);
        let mut one = [0; 512];
        // Data that the client sends meanwhile is lost, as with a server that hangs.
        while matches!(self.read_some(&mut one), Ok(n) if n > 0) {}
        let _ = self.stream.set_read_timeout(None);
    }
}
