//! The adb server: its address, its start, and its list of devices. Owns host services; `handle`
//! owns connections to a device.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::timeout;

use super::connect::{Address, Connect, DEFAULT_PORT, Tcp};
use super::error::DeviceError;
use super::host_adb;
use super::list::{ListedDevice, parse_list};
use super::printable::printable;
use super::wire::{Wire, WireError};

/// Time limit for host services, which answer from the server's memory.
const ANSWER: Duration = Duration::from_secs(5);
/// Time limit for connecting to a device on the network; the server itself stops after 10 s.
const CONNECT_DEVICE: Duration = Duration::from_secs(15);

/// An adb server. Cheap to clone; each request opens its own connection.
#[derive(Clone)]
pub struct Server {
    inner: Arc<Inner>,
}

struct Inner {
    connector: Box<dyn Connect>,
    /// TCP address of the connector, if any; a local server can be started there.
    tcp: Option<Address>,
    /// Whether this process has started the server.
    started: AtomicBool,
}

impl Server {
    /// Returns the server that `flag` (`--adb-server`) or the environment names, otherwise the
    /// local one. Starts the local server if nothing answers; never touches a running server. At
    /// another port than adb's that `flag` names, a tunnel or a virtual phone is expected, which
    /// could not come back if a server took the port.
    ///
    /// # Errors
    /// Returns [`DeviceError::BadAddress`] for an invalid address. Returns
    /// [`DeviceError::NoServer`], [`DeviceError::AdbMissing`] or [`DeviceError::ServerStart`] if no
    /// server can be reached or started, and [`DeviceError::NotAdb`] if another program listens
    /// there.
    pub async fn locate(flag: Option<&str>) -> Result<Self, DeviceError> {
        let address = resolve_address(flag, |name| std::env::var(name).ok())?;
        let may_start = flag.is_none() || address.port() == DEFAULT_PORT;
        let server = Server::at(address);
        if may_start {
            server.ensure_running().await?;
        }
        server.version().await?;
        Ok(server)
    }

    /// Returns the address that `flag` or the environment names, if any.
    ///
    /// # Errors
    /// Returns [`DeviceError::BadAddress`] if it is invalid.
    pub fn named(flag: Option<&str>) -> Result<Option<Address>, DeviceError> {
        named_address(flag, |name| std::env::var(name).ok())
    }

    /// Creates a client for the server at `address`, without connecting yet. A server at a local
    /// address is started when it is needed.
    pub fn at(address: Address) -> Self {
        Server {
            inner: Arc::new(Inner {
                connector: Box::new(Tcp(address.clone())),
                tcp: Some(address),
                started: AtomicBool::new(false),
            }),
        }
    }

    /// Creates a client for the server of `connector`, which is never started (tests, the virtual
    /// phone).
    pub fn over(connector: impl Connect) -> Self {
        Server {
            inner: Arc::new(Inner {
                connector: Box::new(connector),
                tcp: None,
                started: AtomicBool::new(false),
            }),
        }
    }

    /// Returns the server's address, for messages.
    pub fn address(&self) -> String {
        self.inner.connector.address()
    }

    /// Returns whether the server runs inside this process and thus ends with it.
    pub fn is_in_process(&self) -> bool {
        self.inner.tcp.is_none()
    }

    /// Returns whether this process has started the server.
    pub fn was_started(&self) -> bool {
        self.inner.started.load(Ordering::Relaxed)
    }

    /// Returns whether a program listens at the server's address. Never starts a server.
    pub async fn is_running(&self) -> bool {
        self.open().await.is_ok()
    }

    /// Starts the local server if nothing answers at its address.
    ///
    /// # Errors
    /// Returns the errors of [`Server::locate`].
    pub async fn ensure_running(&self) -> Result<(), DeviceError> {
        match self.open().await {
            Ok(_) => Ok(()),
            Err(DeviceError::NoServer { address, source }) => match &self.inner.tcp {
                Some(at)
                    if at.is_local() && source.kind() == std::io::ErrorKind::ConnectionRefused =>
                {
                    host_adb::start_server(at, &*self.inner.connector).await?;
                    self.inner.started.store(true, Ordering::Relaxed);
                    Ok(())
                }
                _ => Err(DeviceError::NoServer { address, source }),
            },
            Err(error) => Err(error),
        }
    }

    /// Starts the local server again after it ended, if nothing answers at its address. Another port
    /// than adb's can be a tunnel, which could not come back: there, only a server that this process
    /// has started is started again.
    ///
    /// # Errors
    /// Returns the errors of [`Server::locate`].
    pub(super) async fn ensure_back(&self) -> Result<(), DeviceError> {
        let tcp = self.inner.tcp.as_ref();
        if self.was_started() || tcp.is_some_and(|at| at.port() == DEFAULT_PORT) {
            self.ensure_running().await?;
        }
        Ok(())
    }

    /// Returns the server's protocol version, such as 41.
    ///
    /// # Errors
    /// Returns [`DeviceError::NotAdb`] if the answer is not a version, or an error of the
    /// connection.
    pub async fn version(&self) -> Result<u32, DeviceError> {
        let what = "host:version";
        let text = self.ask(what, ANSWER).await?;
        u32::from_str_radix(&text, 16).map_err(|_| DeviceError::NotAdb {
            address: self.address(),
            what: what.to_owned(),
            detail: format!("{:?} is not a version", printable(text.as_bytes())),
        })
    }

    /// Returns the listed devices in any state.
    ///
    /// # Errors
    /// Returns an error if the connection fails.
    pub async fn devices(&self) -> Result<Vec<ListedDevice>, DeviceError> {
        Ok(parse_list(&self.ask("host:devices-l", ANSWER).await?))
    }

    /// Follows the list of devices.
    ///
    /// # Errors
    /// Returns an error if the connection fails.
    pub async fn track(&self) -> Result<Tracker, DeviceError> {
        for what in ["host:track-devices-l", "host:track-devices"] {
            let mut wire = self.open().await?;
            match self.within(what, ANSWER, wire.request(what)).await {
                Ok(()) => {
                    return Ok(Tracker {
                        wire,
                        server: self.clone(),
                        read: Vec::new(),
                    });
                }
                // Servers from before 2017 support only the short form.
                Err(DeviceError::ServerRefused { .. }) if what.ends_with("-l") => {}
                Err(error) => return Err(error),
            }
        }
        unreachable!("the last form returns")
    }

    /// Requests a connection to the device at `address` (`HOST:PORT`) and returns the server's
    /// text.
    ///
    /// # Errors
    /// Returns an error if the connection to the server fails. The text reports a failed attempt.
    pub(super) async fn connect_device(&self, address: &str) -> Result<String, DeviceError> {
        self.ask(&format!("host:connect:{address}"), CONNECT_DEVICE)
            .await
    }

    /// Returns the server's address if it is a TCP server.
    pub(super) fn tcp_address(&self) -> Option<&Address> {
        self.inner.tcp.as_ref()
    }

    /// Opens a new connection.
    pub(super) async fn open(&self) -> Result<Wire, DeviceError> {
        let connecting = self.inner.connector.connect();
        match timeout(ANSWER, connecting).await {
            Ok(Ok(stream)) => Ok(Wire::new(stream)),
            Ok(Err(source)) => Err(DeviceError::NoServer {
                address: self.address(),
                source,
            }),
            Err(_) => Err(DeviceError::NoServer {
                address: self.address(),
                source: std::io::ErrorKind::TimedOut.into(),
            }),
        }
    }

    /// Requests a host service that returns one text.
    async fn ask(&self, service: &str, limit: Duration) -> Result<String, DeviceError> {
        let mut wire = self.open().await?;
        self.within(service, limit, async {
            wire.request(service).await?;
            wire.text().await
        })
        .await
    }

    async fn within<T>(
        &self,
        what: &str,
        limit: Duration,
        step: impl Future<Output = Result<T, WireError>>,
    ) -> Result<T, DeviceError> {
        match timeout(limit, step).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(self.error(what, error)),
            Err(_) => Err(DeviceError::ServerSilent {
                address: self.address(),
                what: what.to_owned(),
                after: limit,
            }),
        }
    }

    fn error(&self, what: &str, error: WireError) -> DeviceError {
        let (address, what) = (self.address(), what.to_owned());
        match error {
            WireError::Closed(source) => DeviceError::ServerLost {
                address,
                what,
                source,
            },
            WireError::Fail(text) => DeviceError::ServerRefused {
                address,
                what,
                text,
            },
            WireError::Garbled(detail) => DeviceError::NotAdb {
                address,
                what,
                detail,
            },
        }
    }
}

/// A stream of device lists.
pub struct Tracker {
    wire: Wire,
    server: Server,
    /// Received part of the next list.
    read: Vec<u8>,
}

impl Tracker {
    /// Returns the whole current list on the first call, then the list after each change. Waits
    /// while nothing changes. Cancel-safe.
    ///
    /// # Errors
    /// Returns [`DeviceError::ServerLost`] if the server ends.
    pub async fn next(&mut self) -> Result<Vec<ListedDevice>, DeviceError> {
        self.wire
            .read_text_piecewise(&mut self.read)
            .await
            .map(|text| parse_list(&text))
            .map_err(|e| self.server.error("host:track-devices", e))
    }
}

/// Returns the address in `flag`, otherwise the one in adb's variables, otherwise the local
/// default.
fn resolve_address(
    flag: Option<&str>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Address, DeviceError> {
    Ok(named_address(flag, variable)?.unwrap_or_else(Address::local))
}

fn named_address(
    flag: Option<&str>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<Address>, DeviceError> {
    if let Some(text) = flag {
        return Address::parse(text, "--adb-server").map(Some);
    }
    let variable = |name| variable(name).filter(|value| !value.is_empty());
    if let Some(text) = variable("ADB_SERVER_SOCKET") {
        return Address::parse(&text, "ADB_SERVER_SOCKET").map(Some);
    }
    let mut address = variable("ANDROID_ADB_SERVER_ADDRESS").map(|host| {
        // A host without a port, as in adb; an IPv6 address can lack brackets.
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        Address::new(bare, super::connect::DEFAULT_PORT)
    });
    if let Some(port) = variable("ANDROID_ADB_SERVER_PORT") {
        let number = match port.trim().parse::<u16>() {
            Ok(number) if number != 0 => number,
            _ => {
                return Err(DeviceError::BadAddress {
                    text: port,
                    from: "ANDROID_ADB_SERVER_PORT",
                    why: "the port must be a number from 1 to 65535",
                });
            }
        };
        let host = address.unwrap_or_else(Address::local);
        address = Some(Address::new(host.host(), number));
    }
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(flag: Option<&str>, env: &[(&str, &str)]) -> Result<String, DeviceError> {
        resolve_address(flag, |name| {
            env.iter()
                .find(|(n, _)| *n == name)
                .map(|(_, v)| (*v).to_owned())
        })
        .map(|address| address.to_string())
    }

    #[test]
    fn the_servers_address_comes_from_flag_then_variables_then_default() {
        let socket = ("ADB_SERVER_SOCKET", "tcp:lab:1");
        let host = ("ANDROID_ADB_SERVER_ADDRESS", "farm");
        let port = ("ANDROID_ADB_SERVER_PORT", "6000");
        for (flag, env, wanted) in [
            (Some("x:2"), &[socket, host, port][..], "x:2"),
            (None, &[socket, host, port], "lab:1"),
            (None, &[host, port], "farm:6000"),
            (None, &[host], "farm:5037"),
            (None, &[port], "127.0.0.1:6000"),
            (None, &[("ADB_SERVER_SOCKET", "")], "127.0.0.1:5037"),
            (None, &[("ANDROID_ADB_SERVER_ADDRESS", "::1")], "[::1]:5037"),
            (None, &[], "127.0.0.1:5037"),
        ] {
            assert_eq!(resolve(flag, env).unwrap(), wanted, "{flag:?} {env:?}");
        }
        for env in [
            ("ANDROID_ADB_SERVER_PORT", "x"),
            ("ANDROID_ADB_SERVER_PORT", "0"),
            ("ADB_SERVER_SOCKET", "localabstract:adb"),
        ] {
            assert!(resolve(None, &[env]).is_err(), "{env:?}");
        }
    }
}
