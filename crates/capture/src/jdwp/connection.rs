//! One connection to a runtime. IDs distinguish answers from unsolicited packets; the latter
//! are read and dropped, because a runtime blocks if its output is not read.

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::packet::{Chunk, ChunkType, MAX_LENGTH, Packet};

/// First message of both sides.
pub const HANDSHAKE: &[u8; 14] = b"JDWP-Handshake";
/// Bytes per read.
const BLOCK: usize = 64 << 10;

/// Error of a connection to a runtime.
#[derive(Debug, thiserror::Error)]
pub enum JdwpError {
    /// The runtime closed the connection, or the cable is disconnected.
    #[error("the connection was closed")]
    Closed,
    /// The connection broke.
    #[error("the connection broke")]
    Io(#[source] std::io::Error),
    /// The peer does not use JDWP.
    #[error("the peer is not a Java runtime: {0}")]
    Garbled(String),
    /// The runtime rejected the request.
    #[error("the runtime refused {asked}{}", because(why))]
    Refused {
        /// Type of the chunk.
        asked: ChunkType,
        /// Reason given by the runtime, or empty.
        why: String,
    },
}

fn because(why: &str) -> String {
    match why {
        "" => String::new(),
        why => format!(": {why}"),
    }
}

impl From<std::io::Error> for JdwpError {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::UnexpectedEof => JdwpError::Closed,
            _ => JdwpError::Io(error),
        }
    }
}

/// A connection to a runtime after the handshake.
#[derive(Debug)]
pub struct Connection<S> {
    stream: S,
    /// Bytes read that are not a whole packet yet: reading can be cancelled at any time.
    read: Vec<u8>,
    last_id: u32,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Performs the handshake. A runtime with another debugger does not answer; the caller sets the
    /// timeout.
    ///
    /// # Errors
    /// Returns an error if the peer closes the connection or sends something else.
    pub async fn open(mut stream: S) -> Result<Connection<S>, JdwpError> {
        stream.write_all(HANDSHAKE).await?;
        stream.flush().await?;
        let mut answer = [0; HANDSHAKE.len()];
        stream.read_exact(&mut answer).await?;
        if answer != *HANDSHAKE {
            return Err(JdwpError::Garbled(
                "it did not complete the handshake".to_owned(),
            ));
        }
        Ok(Connection {
            stream,
            read: Vec::new(),
            last_id: 0,
        })
    }

    /// Sends a chunk that does not have an answer.
    ///
    /// # Errors
    /// Returns an error if the connection is lost.
    pub async fn send(&mut self, kind: ChunkType, data: &[u8]) -> Result<(), JdwpError> {
        self.last_id = self.last_id.wrapping_add(1);
        let packet = Packet::command(self.last_id, kind, data);
        self.stream.write_all(&packet).await?;
        self.stream.flush().await?;
        Ok(())
    }

    /// Sends a chunk and waits for its answer.
    ///
    /// # Errors
    /// Returns an error if the connection is lost, or if the runtime refuses.
    pub async fn request(&mut self, kind: ChunkType, data: &[u8]) -> Result<Vec<u8>, JdwpError> {
        self.send(kind, data).await?;
        let refused = |why: String| JdwpError::Refused { asked: kind, why };
        loop {
            match self.next().await? {
                Packet::Reply { id, error, chunk } if id == self.last_id => {
                    return match chunk {
                        _ if error != 0 => Err(refused(format!("error {error}"))),
                        Some(chunk) if chunk.kind == kind => Ok(chunk.data),
                        Some(chunk) if chunk.kind == ChunkType::FAIL => {
                            Err(refused(failure(&chunk)))
                        }
                        Some(chunk) => {
                            Err(JdwpError::Garbled(format!("{} answers {kind}", chunk.kind)))
                        }
                        None => Err(refused(String::new())),
                    };
                }
                Packet::Reply { .. } | Packet::Command { .. } => {}
            }
        }
    }

    /// Returns whether allocations are being tracked.
    ///
    /// # Errors
    /// Returns the errors of [`Connection::request`].
    pub async fn is_tracking(&mut self) -> Result<bool, JdwpError> {
        let answer = self.request(ChunkType::REAQ, &[]).await?;
        match answer.as_slice() {
            [on, ..] => Ok(*on != 0),
            [] => Err(JdwpError::Garbled("an empty answer to REAQ".to_owned())),
        }
    }

    /// Switches allocation tracking on or off, and verifies it. Switching it off discards the
    /// tracked allocations.
    ///
    /// # Errors
    /// Returns the errors of [`Connection::request`], and an error if the state does not change.
    pub async fn track(&mut self, on: bool) -> Result<(), JdwpError> {
        self.send(ChunkType::REAE, &[u8::from(on)]).await?;
        if self.is_tracking().await? == on {
            return Ok(());
        }
        Err(JdwpError::Refused {
            asked: ChunkType::REAE,
            why: "tracking did not change".to_owned(),
        })
    }

    /// Reads and drops unsolicited packets until the connection ends. Can be cancelled at any
    /// time.
    pub async fn drain(&mut self) -> JdwpError {
        loop {
            if let Err(error) = self.next().await {
                return error;
            }
        }
    }

    /// Reads the next packet. Cancelling it does not lose data.
    async fn next(&mut self) -> Result<Packet, JdwpError> {
        loop {
            if let Some(length) = Packet::length(&self.read) {
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                if length > MAX_LENGTH {
                    return Err(JdwpError::Garbled(format!("a packet of {length} bytes")));
                }
                if let Some(bytes) = self.read.get(..length) {
                    let packet = Packet::read(bytes)
                        .ok_or_else(|| JdwpError::Garbled(format!("a packet of {length} bytes")))?;
                    self.read.drain(..length);
                    return Ok(packet);
                }
                // One reservation for a long answer; the rest might never arrive.
                let missing = length.saturating_sub(self.read.len());
                self.read.reserve(missing.min(BLOCK.saturating_mul(16)));
            } else {
                self.read.reserve(BLOCK);
            }
            if self.stream.read_buf(&mut self.read).await? == 0 {
                return Err(JdwpError::Closed);
            }
        }
    }
}

/// Parses the message of a `FAIL` chunk: a code, a length, UTF-16.
fn failure(chunk: &Chunk) -> String {
    let code = chunk.data.first_chunk::<4>();
    let code = code.map_or(0, |bytes| u32::from_be_bytes(*bytes));
    let text = chunk.data.get(8..).unwrap_or_default();
    let units = text.as_chunks::<2>().0.iter().take(200);
    let units: Vec<u16> = units.map(|pair| u16::from_be_bytes(*pair)).collect();
    let text = String::from_utf16_lossy(&units);
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    match text.as_str() {
        "" => format!("code {code}"),
        text => format!("{text} (code {code})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{DuplexStream, duplex};

    /// Builds a reply with a chunk.
    fn reply(id: u32, kind: ChunkType, data: &[u8]) -> Vec<u8> {
        let mut bytes = Packet::command(id, kind, data);
        bytes[8] = 0x80;
        bytes[9] = 0;
        bytes[10] = 0;
        bytes
    }

    async fn shaken() -> (Connection<DuplexStream>, DuplexStream) {
        let (ours, mut theirs) = duplex(1 << 20);
        theirs.write_all(HANDSHAKE).await.unwrap();
        let connection = Connection::open(ours).await.unwrap();
        let mut said = [0; 14];
        theirs.read_exact(&mut said).await.unwrap();
        assert_eq!(said, *HANDSHAKE);
        (connection, theirs)
    }

    #[tokio::test]
    async fn answers_are_found_among_what_nobody_asked_for_however_cut() {
        let (mut ours, mut theirs) = shaken().await;
        let noise = Packet::command(0x8000_0001, ChunkType(*b"APNM"), b"\0\0\0\0");
        let late = reply(77, ChunkType::REAQ, &[0]);
        let said = [noise.clone(), late, reply(1, ChunkType::REAQ, &[1]), noise].concat();
        let answering = async {
            for byte in said {
                theirs.write_all(&[byte]).await.unwrap();
                tokio::task::yield_now().await;
            }
            theirs
        };
        let (on, mut theirs) = tokio::join!(ours.is_tracking(), answering);
        assert!(on.unwrap());
        let mut asked = [0; 19];
        theirs.read_exact(&mut asked).await.unwrap();
        assert_eq!(asked.as_slice(), Packet::command(1, ChunkType::REAQ, &[]));
        drop(theirs);
        assert!(matches!(ours.drain().await, JdwpError::Closed));
    }

    #[tokio::test]
    async fn reading_that_is_broken_off_loses_nothing() {
        let (mut ours, mut theirs) = shaken().await;
        let noise = Packet::command(5, ChunkType(*b"WAIT"), &[0]);
        theirs.write_all(&noise[..13]).await.unwrap();
        tokio::select! {
            biased;
            error = ours.drain() => panic!("{error}"),
            () = async { for _ in 0..10 { tokio::task::yield_now().await } } => {}
        }
        let rest = [&noise[13..], &reply(1, ChunkType::REAL, b"abc")].concat();
        theirs.write_all(&rest).await.unwrap();
        assert_eq!(ours.request(ChunkType::REAL, &[]).await.unwrap(), b"abc");
    }

    #[tokio::test]
    async fn what_a_runtime_refuses_is_told_in_its_words() {
        let (mut ours, mut theirs) = shaken().await;
        let mut words = vec![0, 0, 0, 3, 0, 0, 0, 2];
        words.extend("no".encode_utf16().flat_map(u16::to_be_bytes));
        let empty = [0, 0, 0, 11, 0, 0, 0, 2, 0x80, 0, 0];
        let failed = [0, 0, 0, 11, 0, 0, 0, 3, 0x80, 0, 99];
        let said = [
            reply(1, ChunkType::FAIL, &words),
            empty.to_vec(),
            failed.to_vec(),
        ];
        theirs.write_all(&said.concat()).await.unwrap();
        for expected in [
            "the runtime refused REAL: no (code 3)",
            "the runtime refused REAL",
            "the runtime refused REAL: error 99",
        ] {
            let error = ours.request(ChunkType::REAL, &[]).await.unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }

    #[tokio::test]
    async fn who_speaks_something_else_is_not_waited_for() {
        let (ours, mut theirs) = duplex(64);
        theirs.write_all(b"SSH-2.0-OpenSSH").await.unwrap();
        let error = Connection::open(ours).await.unwrap_err();
        assert!(matches!(error, JdwpError::Garbled(_)), "{error}");
        let (mut ours, mut theirs) = shaken().await;
        theirs.write_all(&[0xff; 16]).await.unwrap();
        let error = ours.is_tracking().await.unwrap_err();
        assert!(matches!(error, JdwpError::Garbled(_)), "{error}");
        let (ours, theirs) = duplex(64);
        drop(theirs);
        let error = Connection::open(ours).await.unwrap_err();
        assert!(
            matches!(error, JdwpError::Closed | JdwpError::Io(_)),
            "{error}"
        );
    }
}
