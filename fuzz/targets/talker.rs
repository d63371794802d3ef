//! A device that answers by the fuzzer's bytes: an adb server in memory. The input is text in parts.
//! A part begins with the line `== KEY` and answers each command that contains `KEY`. If several
//! do, they answer one after the other; the last one repeats. `== KEY #3` exits with 3, `#hang`
//! never exits, and `#cut` loses the connection. Commands without a part exit with 127.

use heaptap_adb::{Connect, Connecting, Device, Server, Stream, parse_list};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

/// Start of a part.
const MARK: &[u8] = b"== ";
/// Longer requests do not exist.
const MAX_REQUEST_BYTES: usize = 1 << 16;

#[derive(Debug, Clone, Copy)]
enum End {
    Exit(u8),
    Hang,
    Cut,
}

#[derive(Debug)]
struct Part {
    key: Vec<u8>,
    end: End,
    answer: Vec<u8>,
}

fn parts(bytes: &[u8]) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        if let Some(head) = line.strip_prefix(MARK) {
            let head = head.strip_suffix(b"\n").unwrap_or(head);
            let at = head.windows(2).rposition(|pair| pair == b" #");
            let (key, end) = match at.map(|at| (&head[..at], &head[at + 2..])) {
                Some((key, b"hang")) => (key, End::Hang),
                Some((key, b"cut")) => (key, End::Cut),
                Some((key, exit)) => {
                    let exit = std::str::from_utf8(exit).ok().and_then(|n| n.parse().ok());
                    (key, End::Exit(exit.unwrap_or(1)))
                }
                None => (head, End::Exit(0)),
            };
            parts.push(Part {
                key: key.to_vec(),
                end,
                answer: Vec::new(),
            });
        } else if let Some(last) = parts.last_mut() {
            last.answer.extend_from_slice(line);
        }
    }
    parts
}

/// The server and its only device.
#[derive(Clone)]
pub struct Talker {
    parts: Arc<Vec<Part>>,
    /// Number of answers to each key so far.
    given: Arc<Mutex<BTreeMap<Vec<u8>, usize>>>,
}

impl Talker {
    pub fn new(bytes: &[u8]) -> Talker {
        Talker {
            parts: Arc::new(parts(bytes)),
            given: Arc::default(),
        }
    }

    pub fn server(&self) -> Server {
        Server::over(self.clone())
    }

    pub fn device(&self) -> Device {
        let listed = parse_list("S\tdevice");
        self.server().device(&listed[0], &listed)
    }

    fn answer(&self, command: &[u8]) -> Option<(&[u8], End)> {
        let contains = |key: &[u8]| memchr::memmem::find(command, key).is_some();
        let first = self.parts.iter().find(|part| contains(&part.key))?;
        let same: Vec<&Part> = self.parts.iter().filter(|p| p.key == first.key).collect();
        let mut given = self.given.lock().expect("a panic ends the process");
        let count = given.entry(first.key.clone()).or_default();
        let part = same[(*count).min(same.len() - 1)];
        *count += 1;
        Some((&part.answer, part.end))
    }

    async fn serve(self, mut stream: DuplexStream) -> io::Result<()> {
        loop {
            let mut length = [0; 4];
            stream.read_exact(&mut length).await?;
            let length = String::from_utf8_lossy(&length).into_owned();
            let length = usize::from_str_radix(&length, 16).map_err(io::Error::other)?;
            let mut request = vec![0; length.min(MAX_REQUEST_BYTES)];
            stream.read_exact(&mut request).await?;
            let request = String::from_utf8_lossy(&request).into_owned();
            if request.ends_with(":features") {
                return stream.write_all(b"OKAY0014shell_v2,stat_v2,cmd").await;
            }
            if request.starts_with("host:") && !request.starts_with("host:transport") {
                return self.raw(&request, stream).await;
            }
            stream.write_all(b"OKAY").await?;
            if let Some(command) = request.strip_prefix("shell,v2,raw:") {
                return self.run(command, stream).await;
            }
            if !request.starts_with("host:") {
                return self.raw(&request, stream).await;
            }
        }
    }

    /// Sends an answer of another service as it is.
    async fn raw(self, request: &str, mut stream: DuplexStream) -> io::Result<()> {
        let Some((answer, end)) = self.answer(request.as_bytes()) else {
            return Ok(());
        };
        stream.write_all(answer).await?;
        match end {
            End::Hang => std::future::pending().await,
            End::Exit(_) | End::Cut => Ok(()),
        }
    }

    async fn run(self, command: &str, mut stream: DuplexStream) -> io::Result<()> {
        let (answer, end) = self
            .answer(command.as_bytes())
            .unwrap_or((b"", End::Exit(127)));
        // A long answer comes in several packets.
        for piece in answer.chunks(1 << 14) {
            packet(&mut stream, 1, piece).await?;
        }
        match end {
            End::Exit(exit) => packet(&mut stream, 3, &[exit]).await?,
            End::Hang => std::future::pending().await,
            End::Cut => return Ok(()),
        }
        // The client might still write; adb closes the connection later.
        let mut rest = [0; 1024];
        while stream.read(&mut rest).await? > 0 {}
        Ok(())
    }
}

async fn packet(stream: &mut DuplexStream, id: u8, payload: &[u8]) -> io::Result<()> {
    let length = u32::try_from(payload.len()).map_err(io::Error::other)?;
    stream.write_all(&[id]).await?;
    stream.write_all(&length.to_le_bytes()).await?;
    stream.write_all(payload).await
}

impl Connect for Talker {
    fn connect(&self) -> Connecting<'_> {
        Box::pin(async move {
            let (ours, theirs) = tokio::io::duplex(1 << 16);
            tokio::spawn(self.clone().serve(theirs));
            Ok(Box::new(ours) as Box<dyn Stream>)
        })
    }

    fn address(&self) -> String {
        "memory".to_owned()
    }
}

/// Runs `work` on a paused clock: a command without an answer reaches its deadline at once.
pub fn on_paused_clock<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime needs no resource but memory")
        .block_on(work)
}
