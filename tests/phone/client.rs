//! A small blocking client of the adb protocol, so that the phone is tested independently of
//! heaptap's own client.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use heaptap_proto::perfetto as pb;
use prost::Message as _;
use virtual_phone::{PhoneSpec, VirtualPhone};

/// Starts a phone; the SPEC must be valid.
pub fn phone(spec: &str) -> VirtualPhone {
    let spec = PhoneSpec::parse(spec).unwrap_or_else(|e| panic!("{spec}: {e}"));
    VirtualPhone::start(spec).expect("loopback gives a port")
}

/// Result of a shell command; no status if the connection ended without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    pub out: Vec<u8>,
    pub err: String,
    pub status: Option<u8>,
}

impl Ran {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.out).into_owned()
    }
}

/// Connects and sends one request, expecting OKAY.
fn request(addr: SocketAddr, services: &[&str]) -> Result<TcpStream, String> {
    let mut stream = TcpStream::connect(addr).map_err(|e| e.to_string())?;
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .expect("a nonzero limit");
    for service in services {
        ask(&mut stream, service)?;
    }
    Ok(stream)
}

/// Opens a service of the only device; returns the message if it is refused.
pub fn connect(phone: &VirtualPhone, service: &str) -> Result<TcpStream, String> {
    request(phone.addr(), &["host:transport-any", service])
}

fn ask(stream: &mut TcpStream, service: &str) -> Result<(), String> {
    let text = format!("{:04x}{service}", service.len());
    stream
        .write_all(text.as_bytes())
        .map_err(|e| e.to_string())?;
    let mut status = [0; 4];
    stream.read_exact(&mut status).map_err(|e| e.to_string())?;
    match &status {
        b"OKAY" => Ok(()),
        _ => Err(body(stream)),
    }
}

pub fn body(stream: &mut TcpStream) -> String {
    let mut digits = [0; 4];
    if stream.read_exact(&mut digits).is_err() {
        return String::new();
    }
    let length = usize::from_str_radix(&String::from_utf8_lossy(&digits), 16).expect("hex");
    let mut text = vec![0; length];
    stream.read_exact(&mut text).expect("the whole body");
    String::from_utf8_lossy(&text).into_owned()
}

/// Sends a host service with a body.
pub fn host(phone: &VirtualPhone, service: &str) -> Result<String, String> {
    let mut stream = request(phone.addr(), &[service])?;
    Ok(body(&mut stream))
}

/// Runs a command over shell v2, with stdin.
pub fn feed(phone: &VirtualPhone, command: &str, stdin: &[u8]) -> Ran {
    let service = format!("shell,v2,raw:{command}");
    let mut stream = request(phone.addr(), &["host:transport-any", &service]).expect("a shell");
    for part in stdin.chunks(4096) {
        let mut packet = vec![0];
        packet.extend_from_slice(&(part.len() as u32).to_le_bytes());
        packet.extend_from_slice(part);
        stream.write_all(&packet).expect("the shell reads");
    }
    stream.write_all(&[4, 0, 0, 0, 0]).expect("the shell reads");
    read_shell(stream)
}

/// Reads the packets of a shell until the end.
pub fn read_shell(mut stream: TcpStream) -> Ran {
    let mut ran = Ran {
        out: Vec::new(),
        err: String::new(),
        status: None,
    };
    loop {
        let mut header = [0; 5];
        if stream.read_exact(&mut header).is_err() {
            return ran;
        }
        let length = u32::from_le_bytes([header[1], header[2], header[3], header[4]]);
        let mut payload = vec![0; length as usize];
        if stream.read_exact(&mut payload).is_err() {
            return ran;
        }
        match header[0] {
            1 => ran.out.extend_from_slice(&payload),
            2 => ran.err.push_str(&String::from_utf8_lossy(&payload)),
            3 => {
                ran.status = Some(payload[0]);
                return ran;
            }
            other => panic!("packet {other}"),
        }
    }
}

/// Runs a command without stdin.
pub fn run(phone: &VirtualPhone, command: &str) -> Ran {
    feed(phone, command, b"")
}

/// Opens a shell and leaves it running.
pub fn open(phone: &VirtualPhone, command: &str) -> TcpStream {
    let service = format!("shell,v2,raw:{command}");
    request(phone.addr(), &["host:transport-any", &service]).expect("a shell")
}

/// Returns stdout of a command that must succeed.
pub fn text(phone: &VirtualPhone, command: &str) -> String {
    let ran = run(phone, command);
    assert_eq!(ran.status, Some(0), "{command}: {ran:?}");
    ran.text()
}

/// Pulls a file by sync v1.
pub fn pull(phone: &VirtualPhone, path: &str) -> Result<Vec<u8>, String> {
    let mut stream = request(phone.addr(), &["host:transport-any", "sync:"])?;
    let mut message = b"RECV".to_vec();
    message.extend_from_slice(&(path.len() as u32).to_le_bytes());
    message.extend_from_slice(path.as_bytes());
    stream.write_all(&message).map_err(|e| e.to_string())?;
    let mut bytes = Vec::new();
    loop {
        let mut header = [0; 8];
        stream.read_exact(&mut header).map_err(|e| e.to_string())?;
        let length = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
        if &header[..4] == b"DONE" {
            return Ok(bytes);
        }
        let mut block = vec![0; length as usize];
        stream.read_exact(&mut block).map_err(|e| e.to_string())?;
        if &header[..4] == b"FAIL" {
            return Err(String::from_utf8_lossy(&block).into_owned());
        }
        bytes.extend_from_slice(&block);
    }
}

/// Trace path of the tests.
pub const TRACE: &str = "/data/misc/perfetto-traces/test";

/// A config for one process name.
pub fn config(names: &[&str]) -> pb::TraceConfig {
    pb::TraceConfig {
        buffers: vec![pb::trace_config::BufferConfig {
            size_kb: Some(65_536),
            ..Default::default()
        }],
        data_sources: vec![pb::trace_config::DataSource {
            config: Some(pb::DataSourceConfig {
                name: Some("android.heapprofd".to_owned()),
                heapprofd_config: Some(pb::HeapprofdConfig {
                    sampling_interval_bytes: Some(4096),
                    process_cmdline: names.iter().map(|n| (*n).to_owned()).collect(),
                    shmem_size_bytes: Some(8 << 20),
                    block_client: Some(true),
                    ..Default::default()
                }),
                ..Default::default()
            }),
            ..Default::default()
        }],
        write_into_file: Some(true),
        file_write_period_ms: Some(1_000),
        flush_period_ms: Some(1_000),
        ..Default::default()
    }
}

/// The heapprofd part of a config.
pub fn heapprofd(config: &mut pb::TraceConfig) -> &mut pb::HeapprofdConfig {
    config.data_sources[0]
        .config
        .as_mut()
        .and_then(|c| c.heapprofd_config.as_mut())
        .expect("made by config()")
}

/// Starts perfetto in the background; returns its pid.
pub fn start(phone: &VirtualPhone, config: &pb::TraceConfig) -> u32 {
    let ran = feed(
        phone,
        &format!("perfetto -c - -o {TRACE} -d"),
        &config.encode_to_vec(),
    );
    assert_eq!(ran.status, Some(0), "{ran:?}");
    ran.text().trim().parse().expect("a pid")
}

/// Waits, on the phone, until a process has ended.
pub fn wait_for(phone: &VirtualPhone, pid: u32) {
    let script = format!("while [ -d /proc/{pid} ]; do sleep 0.1; done");
    assert_eq!(run(phone, &script).status, Some(0));
}

/// Waits on the phone's clock.
pub fn sleep(phone: &VirtualPhone, seconds: f64) {
    text(phone, &format!("sleep {seconds}"));
}

/// Records for the config's duration; returns the trace.
pub fn record(phone: &VirtualPhone, config: &pb::TraceConfig) -> pb::Trace {
    let pid = start(phone, config);
    wait_for(phone, pid);
    decode(phone)
}

/// Returns the trace at [`TRACE`].
pub fn decode(phone: &VirtualPhone) -> pb::Trace {
    let bytes = pull(phone, TRACE).expect("the trace is there");
    pb::Trace::decode(bytes.as_slice()).expect("a whole trace")
}

/// One dump, merged from the packets of a chain.
#[derive(Debug, Clone)]
pub struct Dump {
    pub header: pb::profile_packet::ProcessHeapSamples,
    pub samples: Vec<pb::profile_packet::HeapSample>,
}

/// Returns all dumps of a trace, in order.
pub fn dumps(trace: &pb::Trace) -> Vec<Dump> {
    let mut all: Vec<Dump> = Vec::new();
    let mut open = false;
    for profile in trace
        .packet
        .iter()
        .filter_map(|p| p.profile_packet.as_ref())
    {
        for process in &profile.process_dumps {
            match all.last_mut() {
                Some(dump) if open && dump.header.pid == process.pid => {
                    dump.samples.extend(process.samples.iter().copied());
                }
                _ => all.push(Dump {
                    header: process.clone(),
                    samples: process.samples.clone(),
                }),
            }
            open = true;
        }
        open = profile.continued();
    }
    all
}
