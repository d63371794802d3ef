//! An adb server in memory with one device `S`, whose shell answers by a function of the test.

use std::io;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

use heaptap_adb::{Connect, Connecting, Device, Server, Stream, parse_list};

/// Response of the device to a command.
pub enum Reply {
    /// Standard output and exit code.
    Says(Vec<u8>, u8),
    /// Prints this and never exits.
    Begins(String),
    /// The connection ends without an exit code.
    Lost,
}

/// Prints this and exits.
pub fn says(text: impl Into<Vec<u8>>) -> Reply {
    Reply::Says(text.into(), 0)
}

type CommandScript = dyn Fn(&str) -> Reply + Send + Sync;
type InputScript = dyn Fn(&str, &[u8]) -> Reply + Send + Sync;

/// A function of the command, and of its standard input if it is read to its end first.
#[derive(Clone)]
enum Script {
    Command(Arc<CommandScript>),
    Input(Arc<InputScript>),
}

/// The adb server, and the commands that reached the device.
#[derive(Clone)]
pub struct FakePhone {
    script: Script,
    commands: Arc<Mutex<Vec<String>>>,
}

impl FakePhone {
    /// Answers at once.
    pub fn new(script: impl Fn(&str) -> Reply + Send + Sync + 'static) -> FakePhone {
        FakePhone {
            script: Script::Command(Arc::new(script)),
            commands: Arc::default(),
        }
    }

    /// Answers once it has all of the standard input.
    pub fn with_input(script: impl Fn(&str, &[u8]) -> Reply + Send + Sync + 'static) -> FakePhone {
        FakePhone {
            script: Script::Input(Arc::new(script)),
            commands: Arc::default(),
        }
    }

    pub fn device(&self) -> Device {
        let listed = parse_list("S\tdevice");
        Server::over(self.clone()).device(&listed[0], &listed)
    }

    /// Commands so far.
    pub fn commands(&self) -> Vec<String> {
        let commands = self.commands.lock().expect("no test panics with it");
        commands.clone()
    }

    /// Commands so far that contain `part`.
    pub fn asked(&self, part: &str) -> Vec<String> {
        let commands = self.commands().into_iter();
        commands.filter(|command| command.contains(part)).collect()
    }

    async fn serve(&self, mut stream: DuplexStream) -> io::Result<()> {
        loop {
            let mut length = [0; 4];
            stream.read_exact(&mut length).await?;
            let length = usize::from_str_radix(&String::from_utf8_lossy(&length), 16)
                .map_err(io::Error::other)?;
            let mut request = vec![0; length];
            stream.read_exact(&mut request).await?;
            let request = String::from_utf8_lossy(&request).into_owned();
            let text = match request.as_str() {
                "host-serial:S:features" => "shell_v2,stat_v2",
                "host:track-devices-l" => "S\tdevice\n",
                "host:version" => "0029",
                _ => "",
            };
            if !text.is_empty() {
                let answer = format!("OKAY{:04x}{text}", text.len());
                stream.write_all(answer.as_bytes()).await?;
                continue;
            }
            stream.write_all(b"OKAY").await?;
            let command = request.strip_prefix("shell,v2,raw:");
            if let Some(command) = command.or_else(|| request.strip_prefix("shell,v2:")) {
                self.run(command, &mut stream).await?;
                // Whatever the client still writes, until it disconnects.
                tokio::io::copy(&mut stream, &mut tokio::io::sink()).await?;
                return Ok(());
            }
        }
    }

    async fn run(&self, command: &str, stream: &mut DuplexStream) -> io::Result<()> {
        let input = match self.script {
            Script::Input(_) => read_input(stream).await?,
            Script::Command(_) => Vec::new(),
        };
        self.commands
            .lock()
            .expect("no test panics with it")
            .push(command.to_owned());
        let reply = match &self.script {
            Script::Command(script) => script(command),
            Script::Input(script) => script(command, &input),
        };
        let (output, exit) = match reply {
            Reply::Lost => return Err(io::ErrorKind::ConnectionReset.into()),
            Reply::Says(output, exit) => (output, Some(exit)),
            Reply::Begins(output) => (output.into_bytes(), None),
        };
        let mut packets = packet(1, &output);
        packets.extend(exit.iter().flat_map(|exit| packet(3, &[*exit])));
        stream.write_all(&packets).await
    }
}

fn packet(id: u8, bytes: &[u8]) -> Vec<u8> {
    [&[id], &(bytes.len() as u32).to_le_bytes()[..], bytes].concat()
}

/// Standard input, to its end.
async fn read_input(stream: &mut DuplexStream) -> io::Result<Vec<u8>> {
    let mut input = Vec::new();
    loop {
        let mut head = [0; 5];
        stream.read_exact(&mut head).await?;
        let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]);
        let mut payload = vec![0; length as usize];
        stream.read_exact(&mut payload).await?;
        match head[0] {
            0 => input.extend(payload),
            4 => return Ok(input),
            _ => {}
        }
    }
}

impl Connect for FakePhone {
    fn connect(&self) -> Connecting<'_> {
        Box::pin(async move {
            let (ours, theirs) = tokio::io::duplex(1 << 16);
            let phone = self.clone();
            tokio::spawn(async move {
                // A client that disconnects is not a failure.
                let _ = phone.serve(theirs).await;
            });
            Ok(Box::new(ours) as Box<dyn Stream>)
        })
    }

    fn address(&self) -> String {
        "memory".to_owned()
    }
}
