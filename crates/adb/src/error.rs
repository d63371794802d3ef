//! Errors between the host and a device, classified by what the user can do about them: no server,
//! no usable device, a lost connection, no answer, or a refusal.

use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::{DeviceState, ListedDevice};
use heaptap_base::error::{Classified, ErrorClass, ErrorFacts};
use heaptap_base::untrusted::shell::quoted;

/// Remedy for a host without adb.
pub const INSTALL_ADB: &str = "install the Android SDK Platform-Tools (`apt install adb`, `brew \
                               install --cask android-platform-tools`) and add adb to PATH, or \
                               set ANDROID_HOME to the SDK";

/// Failure of an operation on the adb server or on a device.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The address of a server or a device is invalid.
    #[error("cannot use {text:?} ({from}) as an address: {why}")]
    BadAddress {
        /// Text of the address.
        text: String,
        /// Flag or variable that the text comes from.
        from: &'static str,
        /// Reason why the text is invalid.
        why: &'static str,
    },
    /// No program answers at the server's address, and heaptap cannot start a server there.
    #[error("no adb server answers at {address}")]
    NoServer {
        /// The server's address.
        address: String,
        /// Error of the socket.
        #[source]
        source: io::Error,
    },
    /// No server is running, and adb was not found.
    #[error("cannot start an adb server at {address}: adb was not found")]
    AdbMissing {
        /// The server's address.
        address: String,
        /// Searched paths other than PATH.
        searched: Vec<PathBuf>,
    },
    /// adb ran, but the server did not start.
    #[error("cannot start an adb server at {address} with {}: {why}", adb.display())]
    ServerStart {
        /// The adb program.
        adb: PathBuf,
        /// The server's address.
        address: String,
        /// Reason of the failure.
        why: String,
    },
    /// The server closed the connection before its answer was complete.
    #[error("the adb server at {address} closed the connection during {what}")]
    ServerLost {
        /// The server's address.
        address: String,
        /// The operation.
        what: String,
        /// Error of the socket, if any.
        #[source]
        source: Option<io::Error>,
    },
    /// The server did not answer in time.
    #[error("the adb server at {address} did not answer within {} s ({what})", after.as_secs_f32())]
    ServerSilent {
        /// The server's address.
        address: String,
        /// The operation.
        what: String,
        /// Time limit.
        after: Duration,
    },
    /// The server refused a request.
    #[error("the adb server at {address} refused {what}: {text}")]
    ServerRefused {
        /// The server's address.
        address: String,
        /// The operation.
        what: String,
        /// Text of the server.
        text: String,
    },
    /// The program at the server's address does not use the adb protocol.
    #[error("the server at {address} is not an adb server ({what}: {detail})")]
    NotAdb {
        /// The server's address.
        address: String,
        /// The operation.
        what: String,
        /// Description of the answer.
        detail: String,
    },
    /// The server could not connect to, disconnect from or pair with a device on the network.
    #[error("cannot {what} {at}: {text}")]
    Network {
        /// `connect to`, `pair with`, …
        what: &'static str,
        /// Address of the device.
        at: String,
        /// Text of the server.
        text: String,
    },
    /// No device is connected.
    #[error("no device is connected to the adb server at {address}")]
    NoDevice {
        /// The server's address.
        address: String,
    },
    /// No connected device matches the selector.
    #[error("cannot find device {wanted} at the adb server{}", list(devices))]
    NotFound {
        /// The selector.
        wanted: String,
        /// The connected devices.
        devices: Vec<ListedDevice>,
    },
    /// Several devices match the selector.
    #[error("{} devices {}{}", devices.len(), match wanted {
        Some(wanted) => format!("match {wanted}"),
        None => "are connected, but none is selected".to_owned(),
    }, list(devices))]
    Several {
        /// The selector; `None` if the user gave none.
        wanted: Option<String>,
        /// The matching devices.
        devices: Vec<ListedDevice>,
    },
    /// The device is listed, but its state does not allow operations.
    #[error("{serial} is not ready: {state}")]
    NotReady {
        /// Serial number.
        serial: String,
        /// Its state.
        state: DeviceState,
    },
    /// The device has disconnected.
    #[error("{serial} is no longer connected ({what})")]
    Gone {
        /// Serial number.
        serial: String,
        /// The operation.
        what: String,
    },
    /// The connection ended before the answer was complete.
    #[error("the connection to {serial} was lost ({what})")]
    Lost {
        /// Serial number.
        serial: String,
        /// The operation.
        what: String,
        /// Error of the socket, if any.
        #[source]
        source: Option<io::Error>,
    },
    /// The answer is missing or nonsense: the device might have been unable to start a program.
    #[error("{serial} gave no usable answer ({what})")]
    NoAnswer {
        /// Serial number.
        serial: String,
        /// The operation.
        what: String,
    },
    /// The device did not answer in time.
    #[error("{serial} did not answer within {} s ({what})", after.as_secs_f32())]
    Deadline {
        /// Serial number.
        serial: String,
        /// The operation.
        what: String,
        /// Time limit.
        after: Duration,
    },
    /// The device or the server refused the operation.
    #[error("{serial} refused {what}: {text}")]
    Refused {
        /// Serial number.
        serial: String,
        /// The operation.
        what: String,
        /// Text of the device or the server.
        text: String,
    },
    /// The answer violates the protocol.
    #[error("{serial} violated the adb protocol during {what}: {detail}")]
    Garbled {
        /// Serial number.
        serial: String,
        /// The operation.
        what: String,
        /// Description of the answer.
        detail: String,
    },
    /// The sink of a pull returned an error.
    #[error("cannot write the pulled data: {0}")]
    Sink(#[source] io::Error),
}

impl DeviceError {
    /// Returns whether the connection failed, so that the same operation might succeed once
    /// [`super::Device::wait_ready`] returns. A refusal by the device is not a failure of the
    /// connection.
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
            | DeviceError::NoAnswer { .. }
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
    "check the cable or the network, then run `heaptap devices` to see the state of the device";

impl Classified for DeviceError {
    fn facts(&self) -> ErrorFacts {
        match self {
            DeviceError::BadAddress { .. } => {
                ErrorFacts::new(ErrorClass::Usage, "adb-server-address")
                    .with_help("write it as HOST:PORT, such as `127.0.0.1:5037` or `[::1]:5037`")
            }
            DeviceError::NoServer { address, .. } => {
                ErrorFacts::new(ErrorClass::NoDevice, "no-adb-server").with_help(format!(
                    "start an adb server there with `adb -P PORT start-server` (`adb -a` for other \
                     hosts), forward {address} by ssh, or remove `--adb-server`, \
                     `ADB_SERVER_SOCKET` and `ANDROID_ADB_SERVER_ADDRESS` to use the local server"
                ))
            }
            DeviceError::AdbMissing { searched, .. } => {
                let mut help = INSTALL_ADB.to_owned();
                if !searched.is_empty() {
                    let places: Vec<String> =
                        searched.iter().map(|p| p.display().to_string()).collect();
                    let _ = write!(help, "; searched PATH, {}", places.join(", "));
                }
                ErrorFacts::new(ErrorClass::NoDevice, "adb-not-found").with_help(help)
            }
            DeviceError::ServerStart { adb, .. } => {
                ErrorFacts::new(ErrorClass::NoDevice, "adb-server-start").with_help(format!(
                    "run `{} nodaemon server` to see the cause",
                    adb.display()
                ))
            }
            DeviceError::ServerLost { .. } => {
                ErrorFacts::new(ErrorClass::NoDevice, "adb-server-lost")
                    .with_help("try again: another tool might have restarted the adb server")
            }
            DeviceError::ServerSilent { .. } => {
                ErrorFacts::new(ErrorClass::NoDevice, "adb-server-silent")
                    .with_help("restart the server with `adb kill-server`, then try again")
            }
            DeviceError::ServerRefused { .. } => {
                ErrorFacts::new(ErrorClass::NoDevice, "adb-server-refused")
                    .with_help("update adb: the server might be too old")
            }
            DeviceError::NotAdb { .. } => {
                ErrorFacts::new(ErrorClass::NoDevice, "not-an-adb-server").with_help(
                    "select the adb server with `--adb-server HOST:PORT`; another program might \
                     use that port",
                )
            }
            DeviceError::Network { .. } => {
                ErrorFacts::new(ErrorClass::NoDevice, "device-unreachable").with_help(
                    "connect the device and the host to the same network and enable wireless \
                     debugging. Since Android 11, pair the device once with `heaptap devices \
                     --pair HOST:PORT CODE`, with the port and code on its screen, then use \
                     `--connect` with its other port.",
                )
            }
            DeviceError::NoDevice { .. } => ErrorFacts::new(ErrorClass::NoDevice, "no-device")
                .with_help(
                    "enable USB debugging in the developer options and connect the cable, \
                     connect over the network with `heaptap devices --connect HOST:PORT`, or use \
                     `--virtual`",
                ),
            DeviceError::NotFound { .. } => {
                ErrorFacts::new(ErrorClass::NoDevice, "device-not-found")
                    .with_help("run `heaptap devices` to list the connected devices")
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
            DeviceError::Deadline { .. } | DeviceError::NoAnswer { .. } => {
                ErrorFacts::new(ErrorClass::Device, "device-silent").with_help(
                    "wake the device or reconnect the cable: it might be busy, asleep or hung",
                )
            }
            DeviceError::Refused { .. } => ErrorFacts::new(ErrorClass::Device, "device-refused"),
            DeviceError::Garbled { .. } => ErrorFacts::new(ErrorClass::Device, "device-garbled"),
            DeviceError::Sink(_) => ErrorFacts::new(ErrorClass::HostWrite, "host-write")
                .with_help("free space on the host, or write elsewhere with `-o`"),
        }
    }
}

/// Formats `: serial (state, model), …`; returns an empty text for an empty list.
fn list(devices: &[ListedDevice]) -> String {
    if devices.is_empty() {
        return String::new();
    }
    let each: Vec<String> = devices.iter().map(ToString::to_string).collect();
    format!(": {}", each.join(", "))
}

/// Suggests `-s SERIAL`. Suggests `-s transport:ID` if serials repeat, because only the server's
/// transport IDs differ then.
fn several_help(devices: &[ListedDevice]) -> String {
    let repeated = devices
        .iter()
        .enumerate()
        .any(|(i, a)| devices[..i].iter().any(|b| a.serial == b.serial));
    let ids: Vec<String> = devices
        .iter()
        .filter_map(|d| d.transport_id)
        .map(|id| format!("`-s transport:{id}`"))
        .collect();
    if repeated && !ids.is_empty() {
        return format!("two devices share a serial; select one: {}", ids.join(", "));
    }
    let serials: Vec<String> = devices
        .iter()
        .map(|d| format!("`-s {}`", quoted(&d.serial)))
        .collect();
    format!(
        "select one: {} (or set `ANDROID_SERIAL`)",
        serials.join(", ")
    )
}
