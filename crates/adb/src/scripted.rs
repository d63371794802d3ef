//! An adb server for tests that plays a script over in-memory streams. Owns only the server's side
//! of the framing; `virtual_phone` imitates a device.
#![allow(clippy::unwrap_used, reason = "for tests: a poisoned lock ends them")]

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::watch;

use super::connect::{Connect, Connecting, Stream};
use super::handle::Device;
use super::list::parse_list;
use super::server::Server;

/// One step of a connection's script.
#[derive(Debug, Clone)]
pub enum Step {
    /// Expects this request.
    Expect(String),
    /// Sends these bytes.
    Say(Vec<u8>),
    /// Reads this many bytes and compares them with the expected bytes, if any.
    Hear(usize, Option<Vec<u8>>),
    /// Waits until this many more connections have been opened.
    After(usize),
    /// Keeps the connection open and does nothing.
    Hang,
}

/// A server that plays one script per connection, in order, and refuses further connections.
#[derive(Clone)]
pub struct Scripted {
    scripts: Arc<Mutex<VecDeque<Vec<Step>>>>,
    /// Buffer size in bytes; 1 delivers every byte separately.
    pipe: usize,
    wrong: Arc<Mutex<Vec<String>>>,
    connections: watch::Sender<usize>,
}

impl Scripted {
    /// Creates a server with one script for each connection.
    pub fn new(scripts: impl IntoIterator<Item = Vec<Step>>) -> Self {
        Scripted {
            scripts: Arc::new(Mutex::new(scripts.into_iter().collect())),
            pipe: 1 << 16,
            wrong: Arc::default(),
            connections: watch::Sender::new(0),
        }
    }

    /// Delivers bytes one by one.
    pub fn byte_by_byte(mut self) -> Self {
        self.pipe = 1;
        self
    }

    /// Returns a client of this server.
    pub fn server(&self) -> Server {
        Server::over(self.clone())
    }

    /// Returns the device `S` of this server.
    pub fn phone(&self) -> Device {
        let listed = parse_list("S\tdevice");
        self.server().device(&listed[0], &listed)
    }

    /// Returns the differences from the scripts, including scripts that were not played.
    pub fn complaints(&self) -> Vec<String> {
        let mut wrong = self.wrong.lock().unwrap().clone();
        wrong.extend(
            self.scripts
                .lock()
                .unwrap()
                .iter()
                .map(|script| format!("not played: {script:?}")),
        );
        wrong
    }
}

impl Connect for Scripted {
    fn connect(&self) -> Connecting<'_> {
        Box::pin(async move {
            let script = self.scripts.lock().unwrap().pop_front();
            let Some(script) = script else {
                return Err(io::ErrorKind::ConnectionRefused.into());
            };
            let (ours, theirs) = tokio::io::duplex(self.pipe);
            let wrong = Arc::clone(&self.wrong);
            self.connections.send_modify(|made| *made += 1);
            let connections = self.connections.subscribe();
            tokio::spawn(async move {
                if let Err(complaint) = play(script, theirs, connections).await {
                    wrong.lock().unwrap().push(complaint);
                }
            });
            Ok(Box::new(ours) as Box<dyn Stream>)
        })
    }

    fn address(&self) -> String {
        "script".to_owned()
    }
}

/// Plays a script to its end, then closes the connection. A client can disconnect early.
async fn play(
    script: Vec<Step>,
    mut stream: DuplexStream,
    mut connections: watch::Receiver<usize>,
) -> Result<(), String> {
    let made_before = *connections.borrow();
    for step in script {
        match step {
            Step::Expect(wanted) => {
                let mut length = [0; 4];
                if stream.read_exact(&mut length).await.is_err() {
                    return Err(format!("expected {wanted:?}, got no request"));
                }
                let length = usize::from_str_radix(&String::from_utf8_lossy(&length), 16)
                    .map_err(|_| format!("expected a length, got {length:?}"))?;
                let mut request = vec![0; length];
                stream
                    .read_exact(&mut request)
                    .await
                    .map_err(|e| e.to_string())?;
                let request = String::from_utf8_lossy(&request);
                if request != wanted {
                    return Err(format!("expected {wanted:?}, got {request:?}"));
                }
            }
            Step::Say(bytes) => {
                if stream.write_all(&bytes).await.is_err() {
                    return Ok(());
                }
            }
            Step::Hear(length, expected) => {
                let mut bytes = vec![0; length];
                if stream.read_exact(&mut bytes).await.is_err() {
                    return Err(format!("expected {length} bytes, got fewer"));
                }
                if let Some(expected) = expected
                    && bytes != expected
                {
                    return Err(format!("expected {expected:?}, got {bytes:?}"));
                }
            }
            Step::After(more) => {
                let enough = connections.wait_for(|made| *made >= made_before + more);
                if enough.await.is_err() {
                    return Err("the test ended first".to_owned());
                }
            }
            Step::Hang => std::future::pending().await,
        }
    }
    Ok(())
}

/// Expects a request for this service.
pub fn expect(service: &str) -> Step {
    Step::Expect(service.to_owned())
}

/// Sends these bytes.
pub fn say(bytes: impl AsRef<[u8]>) -> Step {
    Step::Say(bytes.as_ref().to_vec())
}

/// Sends `FAIL` with its text.
pub fn fail(text: &str) -> Step {
    say(format!("FAIL{:04x}{text}", text.len()))
}

/// Sends `OKAY` and a text with its length.
pub fn okay_text(text: &str) -> Step {
    say(format!("OKAY{:04x}{text}", text.len()))
}

/// Encodes a shell v2 packet.
pub fn packet(id: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![id];
    packet.extend((payload.len() as u32).to_le_bytes());
    packet.extend(payload);
    packet
}

/// Encodes a sync record: ID, length or number, and payload.
pub fn record(id: &[u8; 4], number: u32, payload: &[u8]) -> Vec<u8> {
    let mut record = id.to_vec();
    record.extend(number.to_le_bytes());
    record.extend(payload);
    record
}

/// Returns the script of the connection that reads the features of the device `S`.
pub fn features(list: &str) -> Vec<Step> {
    vec![expect("host-serial:S:features"), okay_text(list)]
}

/// Returns the first steps of a connection to a service of the device `S`.
pub fn service(name: &str) -> Vec<Step> {
    vec![
        expect("host:transport:S"),
        say("OKAY"),
        expect(name),
        say("OKAY"),
    ]
}
