//! One connection to the adb server: requests, OKAY or FAIL, and texts with a length. Owns the
//! framing of host services; callers choose the requests and interpret errors.
//!
//! A request is four lower-case hex digits of length and the service's name. The answer is `OKAY`,
//! or `FAIL`, four hex digits and a text. Most host services then send one more text of the same
//! form. No allocation depends on a received length: bytes are stored as they arrive.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, ReadHalf, WriteHalf};

use super::connect::Stream;
use super::printable::printable;

/// Size of the read buffer: two full sync blocks with their headers.
const READ_BUFFER: usize = 128 * 1024 + 16;

/// Failure of a protocol step, before it is assigned to an operation.
#[derive(Debug)]
pub(super) enum WireError {
    /// The connection ended; contains the socket's error, if any.
    Closed(Option<io::Error>),
    /// `FAIL` and its text.
    Fail(String),
    /// The answer violates adb's protocol.
    Garbled(String),
}

impl From<io::Error> for WireError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => WireError::Closed(None),
            _ => WireError::Closed(Some(error)),
        }
    }
}

/// A connection with a read buffer.
pub(super) struct Wire {
    pub(super) reader: BufReader<ReadHalf<Box<dyn Stream>>>,
    pub(super) writer: WriteHalf<Box<dyn Stream>>,
}

impl Wire {
    pub(super) fn new(stream: Box<dyn Stream>) -> Self {
        let (reader, writer) = tokio::io::split(stream);
        Wire {
            reader: BufReader::with_capacity(READ_BUFFER, reader),
            writer,
        }
    }

    /// Requests `service` and waits for OKAY.
    pub(super) async fn request(&mut self, service: &str) -> Result<(), WireError> {
        let Ok(length) = u16::try_from(service.len()) else {
            return Err(WireError::Fail(format!(
                "a request of {} bytes exceeds adb's limit of 65535",
                service.len()
            )));
        };
        let mut request = format!("{length:04x}").into_bytes();
        request.extend_from_slice(service.as_bytes());
        // A server that refuses early might close before it has read everything: its FAIL takes
        // precedence.
        let sent = self.writer.write_all(&request).await;
        match self.status().await {
            Err(WireError::Closed(None)) => match sent {
                Ok(()) => Err(WireError::Closed(None)),
                Err(error) => Err(error.into()),
            },
            other => other,
        }
    }

    /// Reads `OKAY`, or `FAIL` with its text.
    pub(super) async fn status(&mut self) -> Result<(), WireError> {
        let mut status = [0; 4];
        self.reader.read_exact(&mut status).await?;
        match &status {
            b"OKAY" => Ok(()),
            b"FAIL" => Err(WireError::Fail(self.fail_text().await)),
            other => Err(WireError::Garbled(format!(
                "expected OKAY or FAIL, got {:?}",
                printable(other)
            ))),
        }
    }

    /// Reads the text after FAIL, as much as arrives.
    async fn fail_text(&mut self) -> String {
        match self.text().await {
            Ok(text) if !text.trim().is_empty() => printable(text.trim().as_bytes()),
            _ => "no reason given".to_owned(),
        }
    }

    /// Reads four hex digits and that many bytes.
    pub(super) async fn text(&mut self) -> Result<String, WireError> {
        let mut digits = [0; 4];
        self.reader.read_exact(&mut digits).await?;
        let length = hex_length(&digits)?;
        let mut body = Vec::new();
        (&mut self.reader)
            .take(u64::from(length))
            .read_to_end(&mut body)
            .await?;
        if body.len() < usize::from(length) {
            return Err(WireError::Closed(None));
        }
        Ok(String::from_utf8_lossy(&body).into_owned())
    }
}

impl Wire {
    /// Reads like [`Wire::text`], but cancel-safe: received bytes stay in `read` until the next
    /// call.
    pub(super) async fn read_text_piecewise(
        &mut self,
        read: &mut Vec<u8>,
    ) -> Result<String, WireError> {
        loop {
            let wanted = match read.first_chunk::<4>() {
                None => 4,
                Some(digits) => 4 + usize::from(hex_length(digits)?),
            };
            if read.len() >= 4 && read.len() == wanted {
                let text = String::from_utf8_lossy(&read[4..]).into_owned();
                read.clear();
                return Ok(text);
            }
            let available = self.reader.fill_buf().await?;
            let n = available.len().min(wanted - read.len());
            if n == 0 {
                return Err(WireError::Closed(None));
            }
            read.extend_from_slice(&available[..n]);
            self.reader.consume(n);
        }
    }
}

/// Parses adb's four hex digits (either case).
pub(super) fn hex_length(digits: &[u8; 4]) -> Result<u16, WireError> {
    let garbled = || {
        WireError::Garbled(format!(
            "expected a length of four hex digits, got {:?}",
            printable(digits)
        ))
    };
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(garbled());
    }
    let text = std::str::from_utf8(digits).map_err(|_| garbled())?;
    u16::from_str_radix(text, 16).map_err(|_| garbled())
}
