//! What can go wrong between this host and a phone, told apart by what the user can do about
//! it: no server, no usable device, a connection lost on the way, a phone that is silent, a
//! phone that says no.

use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::{DeviceState, ListedDevice};
use heaptap_model::error::{Classified, ErrorClass, ErrorFacts};
use heaptap_model::untrusted::shell::quoted;

/// Why talking to the adb server or the phone failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// An address of a server or a phone makes no sense.
    #[error("{text:?} ({from}) is no address: {why}")]
    BadAddress {
        /// What was given.
        text: String,
        /// The flag or variable it was given by.
        from: &'static str,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Nothing answers at the server's address, and nothing may be started there.
    #[error("no adb server answers at {address}")]
    NoServer {
        /// The server's address.
        address: String,
        /// The socket's error.
        #[source]
        source: io::Error,
    },
    /// No server runs, and no adb to start one was found.
    #[error("no adb server runs at {address}, and no adb was found to start one")]
    AdbMissing {
        /// The server's address.
        address: String,
        /// The places searched, PATH aside.
        searched: Vec<PathBuf>,
    },
    /// adb was started but no server came up.
    #[error("{} did not bring up an adb server at {address}: {why}", adb.display())]
    ServerStart {
        /// The program started.
        adb: PathBuf,
        /// The server's address.
        address: String,
        /// What happened to it.
        why: String,
    },
    /// The server's connection ended before its answer was whole.
    #[error("the adb server at {address} closed the connection during {what}")]
    ServerLost {
        /// The server's address.
        address: String,
        /// The operation.
        what: String,
        /// The socket's error, where there was one.
        #[source]
        source: Option<io::Error>,
    },
    /// The server did not answer in time.
    #[error("the adb server at {address} did not answer to {what} within {} s", after.as_secs_f32())]
    ServerSilent {
        /// The server's address.
        address: String,
        /// The operation.
        what: String,
        /// The time allowed.
        after: Duration,
    },
    /// The server said no.
    #[error("the adb server at {address} refused {what}: {text}")]
    ServerRefused {
        /// The server's address.
        address: String,
        /// The operation.
        what: String,
        /// Its words.
        text: String,
    },
    /// What listens there does not speak adb's protocol.
    #[error("what listens at {address} does not answer as an adb server ({what}: {detail})")]
    NotAdb {
        /// The server's address.
        address: String,
        /// The operation.
        what: String,
        /// What came instead.
        detail: String,
    },
    /// The server could not connect to, disconnect from or pair with a phone on the network.
    #[error("could not {what} {at}: {text}")]
    Network {
        /// `connect to`, `pair with`, …
        what: &'static str,
        /// The phone's address.
        at: String,
        /// The server's words.
        text: String,
    },
    /// No device is connected.
    #[error("no device is connected to the adb server at {address}")]
    NoDevice {
        /// The server's address.
        address: String,
    },
    /// The device that was asked for is not there.
    #[error("no device {wanted} at the adb server{}", list(devices))]
    NotFound {
        /// What was asked for.
        wanted: String,
        /// What is there.
        devices: Vec<ListedDevice>,
    },
    /// More than one device fits.
    #[error("{} devices {}{}", devices.len(), match wanted {
        Some(wanted) => format!("match {wanted}"),
        None => "are connected and none was named".to_owned(),
    }, list(devices))]
    Several {
        /// What was asked for; `None` where nothing was.
        wanted: Option<String>,
        /// Those that fit.
        devices: Vec<ListedDevice>,
    },
    /// The device is listed, but can't be used as it is.
    #[error("{serial} is not ready: {state}")]
    NotReady {
        /// The device.
        serial: String,
        /// Its state.
        state: DeviceState,
    },
    /// The device was there and no longer is.
    #[error("{serial} is no longer connected ({what})")]
    Gone {
        /// The device.
        serial: String,
        /// The operation.
        what: String,
    },
    /// The connection ended before the answer was whole.
    #[error("the connection to {serial} was lost during {what}")]
    Lost {
        /// The device.
        serial: String,
        /// The operation.
        what: String,
        /// The socket's error, where there was one.
        #[source]
        source: Option<io::Error>,
    },
    /// No answer in time.
    #[error("{serial} did not answer to {what} within {} s", after.as_secs_f32())]
    Deadline {
        /// The device.
        serial: String,
        /// The operation.
        what: String,
        /// The time allowed.
        after: Duration,
    },
    /// The phone or the server said no.
    #[error("{serial} refused {what}: {text}")]
    Refused {
        /// The device.
        serial: String,
        /// The operation.
        what: String,
        /// Its words.
        text: String,
    },
    /// The answer is not what the protocol allows.
    #[error("{serial} answered {what} with something that is not adb's protocol: {detail}")]
    Garbled {
        /// The device.
        serial: String,
        /// The operation.
        what: String,
        /// What came.
        detail: String,
    },
    /// The sink of a pull ended it.
    #[error("could not keep what was pulled: {0}")]
    Sink(#[source] io::Error),
}

impl DeviceError {
    /// Whether the connection is what failed, so that the same operation may succeed once
    /// [`super::Device::wait_ready`] returns. A phone that refuses is not among these.
    pub fn is_connection(&self) -> bool {
        match self {
            DeviceError::NoServer { .. }
            | DeviceError::ServerStart { .. }
            | DeviceError::ServerLost { .. }
            | DeviceError::ServerSilent { .. }
            | DeviceError::NoDevice { .. }
            | DeviceError::NotReady { .. }
            | DeviceError::Gone { .. }
            | DeviceError::Lost { .. }
            | DeviceError::Deadline { .. } => true,
            DeviceError::BadAddress { .. }
            | DeviceError::AdbMissing { .. }
            | DeviceError::ServerRefused { .. }
            | DeviceError::NotAdb { .. }
            | DeviceError::Network { .. }
            | DeviceError::NotFound { .. }
            | DeviceError::Several { .. }
            | DeviceError::Refused { .. }
            | DeviceError::Garbled { .. }
            | DeviceError::Sink(_) => false,
        }
    }
}

const CHECK_THE_CABLE: &str =
    "check the cable or the network; `heaptap devices` shows whether it is back";

impl Classified for DeviceError {
    fn facts(&self) -> ErrorFacts {
        match self {
            DeviceError::BadAddress { .. } => {
                ErrorFacts::new(ErrorClass::Usage, "adb-server-address")
                    .with_help("write it as HOST:PORT, such as 127.0.0.1:5037 or [::1]:5037")
            }
            DeviceError::NoServer { address, .. } => {
                ErrorFacts::new(ErrorClass::NoDevice, "no-adb-server").with_help(format!(
                    "start one there (`adb -a -P PORT server`, or forward {address} by ssh), or \
                     leave out --adb-server, ADB_SERVER_SOCKET and ANDROID_ADB_SERVER_ADDRESS to \
                     use this machine's"
                ))
            }
            DeviceError::AdbMissing { searched, .. } => {
                let mut help = String::from(
                    "install the Android SDK Platform-Tools and put adb into PATH, or set \
                     ANDROID_HOME to the SDK",
                );
                if !searched.is_empty() {
                    let places: Vec<String> =
                        searched.iter().map(|p| p.display().to_string()).collect();
                    let _ = write!(help, "; looked in PATH, {}", places.join(", "));
                }
                ErrorFacts::new(ErrorClass::NoDevice, "adb-not-found").with_help(help)
            }
            DeviceError::ServerStart { adb, .. } => {
                ErrorFacts::new(ErrorClass::NoDevice, "adb-server-start")
                    .with_help(format!("run `{} nodaemon server` to see why", adb.display()))
            }
            DeviceError::ServerLost { .. } => {
                ErrorFacts::new(ErrorClass::NoDevice, "adb-server-lost")
                    .with_help("another tool may have restarted the adb server: try again")
            }
            DeviceError::ServerSilent { .. } => {
                ErrorFacts::new(ErrorClass::NoDevice, "adb-server-silent").with_help(
                    "the server hangs: restart it with `adb kill-server`, then try again",
                )
            }
            DeviceError::ServerRefused { .. } => {
                ErrorFacts::new(ErrorClass::NoDevice, "adb-server-refused")
                    .with_help("the server may be too old: update adb")
            }
            DeviceError::NotAdb { .. } => ErrorFacts::new(ErrorClass::NoDevice, "not-an-adb-server")
                .with_help(
                    "another program may use that port: name the server with --adb-server \
                     HOST:PORT",
                ),
            DeviceError::Network { .. } => {
                ErrorFacts::new(ErrorClass::NoDevice, "device-unreachable").with_help(
                    "phone and computer must be in one network, with wireless debugging on; since \
                     Android 11 a phone is paired once: `heaptap devices --pair HOST:PORT CODE`, \
                     with the port and the code that it shows, then `--connect` with its other port",
                )
            }
            DeviceError::NoDevice { .. } => {
                ErrorFacts::new(ErrorClass::NoDevice, "no-device").with_help(
                    "connect a phone by cable and enable USB debugging in its developer options, \
                     connect by network with `heaptap devices --connect HOST:PORT`, or use \
                     --virtual; `heaptap doctor` looks further",
                )
            }
            DeviceError::NotFound { .. } => {
                ErrorFacts::new(ErrorClass::NoDevice, "device-not-found")
                    .with_help("`heaptap devices` lists what is connected")
            }
            DeviceError::Several { devices, .. } => {
                ErrorFacts::new(ErrorClass::NoDevice, "several-devices")
                    .with_help(several_help(devices))
            }
            DeviceError::NotReady { state, .. } => ErrorFacts {
                help: state.fix().map(str::to_owned),
                ..ErrorFacts::new(ErrorClass::NoDevice, state.kind())
            },
            DeviceError::Gone { .. } => {
                ErrorFacts::new(ErrorClass::NoDevice, "device-gone").with_help(CHECK_THE_CABLE)
            }
            DeviceError::Lost { .. } => {
                ErrorFacts::new(ErrorClass::Device, "connection-lost").with_help(CHECK_THE_CABLE)
            }
            DeviceError::Deadline { .. } => ErrorFacts::new(ErrorClass::Device, "device-silent")
                .with_help(
                    "the phone may be busy, asleep or hung: wake it, or reconnect the cable",
                ),
            DeviceError::Refused { .. } => ErrorFacts::new(ErrorClass::Device, "device-refused"),
            DeviceError::Garbled { .. } => ErrorFacts::new(ErrorClass::Device, "device-garbled"),
            DeviceError::Sink(_) => ErrorFacts::new(ErrorClass::HostWrite, "host-write")
                .with_help("free space on this host, or write elsewhere with -o"),
        }
    }
}

/// `: serial (state, model), …`, or nothing for an empty list.
fn list(devices: &[ListedDevice]) -> String {
    if devices.is_empty() {
        return String::new();
    }
    let each: Vec<String> = devices.iter().map(ToString::to_string).collect();
    format!(": {}", each.join(", "))
}

/// `-s SERIAL` helps, unless serials repeat: then only the server's transport id tells them
/// apart.
fn several_help(devices: &[ListedDevice]) -> String {
    let repeated = devices
        .iter()
        .enumerate()
        .any(|(i, a)| devices[..i].iter().any(|b| a.serial == b.serial));
    let ids: Vec<String> = devices
        .iter()
        .filter_map(|d| d.transport_id)
        .map(|id| format!("-s transport:{id}"))
        .collect();
    if repeated && !ids.is_empty() {
        return format!("two have one serial; name one: {}", ids.join(", "));
    }
    let serials: Vec<String> = devices
        .iter()
        .map(|d| format!("-s {}", quoted(&d.serial)))
        .collect();
    format!("name one: {} (or set ANDROID_SERIAL)", serials.join(", "))
}
