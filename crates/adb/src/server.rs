//! The adb server: which one, is it there, what does it list. Owns host services;
//! the way to a device is `handle`'s.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::timeout;

use super::connect::{Address, Connect, Tcp};
use super::error::DeviceError;
use super::host_adb;
use super::list::{ListedDevice, parse_list};
use super::printable::printable;
use super::wire::{Wire, WireError};

/// Host services answer from the server's memory.
const ANSWER: Duration = Duration::from_secs(5);
/// A connection to a device on the network; the server itself gives up after 10 s.
const CONNECT_DEVICE: Duration = Duration::from_secs(15);

/// An adb server. Cheap to clone; each request is a connection of its own.
#[derive(Clone)]
pub struct Server {
    inner: Arc<Inner>,
}

struct Inner {
    connector: Box<dyn Connect>,
    /// Where that leads, where it is TCP; a local server may be started there.
    tcp: Option<Address>,
    /// Whether this process has started it.
    started: AtomicBool,
}

impl Server {
    /// The server that `flag` (`--adb-server`) or the environment names, else the local one,
    /// which is started where nothing answers. One that runs is never touched.
    ///
    /// # Errors
    /// [`DeviceError::BadAddress`]; [`DeviceError::NoServer`], [`DeviceError::AdbMissing`] or
    /// [`DeviceError::ServerStart`] where none is to be had; [`DeviceError::NotAdb`] where
    /// something else listens there.
    pub async fn locate(flag: Option<&str>) -> Result<Self, DeviceError> {
        let address = resolve_address(flag, |name| std::env::var(name).ok())?;
        let server = Server::at(address);
        server.ensure_running().await?;
        server.version().await?;
        Ok(server)
    }

    /// The server that `flag` or the environment names; `None` where neither does.
    ///
    /// # Errors
    /// [`DeviceError::BadAddress`].
    pub fn named(flag: Option<&str>) -> Result<Option<Address>, DeviceError> {
        named_address(flag, |name| std::env::var(name).ok())
    }

    /// The server at `address`, started when it is needed and the address is this machine's.
    /// Does nothing yet.
    pub fn at(address: Address) -> Self {
        Server {
            inner: Arc::new(Inner {
                connector: Box::new(Tcp(address.clone())),
                tcp: Some(address),
                started: AtomicBool::new(false),
            }),
        }
    }

    /// The server behind `connector`; never started by us (tests, the virtual phone).
    pub fn over(connector: impl Connect) -> Self {
        Server {
            inner: Arc::new(Inner {
                connector: Box::new(connector),
                tcp: None,
                started: AtomicBool::new(false),
            }),
        }
    }

    /// Its address, for messages.
    pub fn address(&self) -> String {
        self.inner.connector.address()
    }

    /// Whether it serves within this process, and so ends with it.
    pub fn is_in_process(&self) -> bool {
        self.inner.tcp.is_none()
    }

    /// Whether this process has started it.
    pub fn was_started(&self) -> bool {
        self.inner.started.load(Ordering::Relaxed)
    }

    /// Starts the local server where nothing answers; does nothing where something does.
    ///
    /// # Errors
    /// As [`Server::locate`].
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

    /// The server's protocol version, such as 41.
    ///
    /// # Errors
    /// [`DeviceError::NotAdb`] where the answer is no version; errors of the connection.
    pub async fn version(&self) -> Result<u32, DeviceError> {
        let what = "host:version";
        let text = self.ask(what, ANSWER).await?;
        u32::from_str_radix(&text, 16).map_err(|_| DeviceError::NotAdb {
            address: self.address(),
            what: what.to_owned(),
            detail: format!("{:?} is no version", printable(text.as_bytes())),
        })
    }

    /// The devices it lists, whatever their state.
    ///
    /// # Errors
    /// Errors of the connection.
    pub async fn devices(&self) -> Result<Vec<ListedDevice>, DeviceError> {
        Ok(parse_list(&self.ask("host:devices-l", ANSWER).await?))
    }

    /// Follows the list of devices.
    ///
    /// # Errors
    /// Errors of the connection.
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
                // Servers from before 2017 know only the short form.
                Err(DeviceError::ServerRefused { .. }) if what.ends_with("-l") => {}
                Err(error) => return Err(error),
            }
        }
        unreachable!("the last form returns")
    }

    /// Asks the server to connect to the device at `address` (`HOST:PORT`); the server's words.
    ///
    /// # Errors
    /// Errors of the connection. A failed attempt is told in the words.
    pub(super) async fn connect_device(&self, address: &str) -> Result<String, DeviceError> {
        self.ask(&format!("host:connect:{address}"), CONNECT_DEVICE)
            .await
    }

    /// Its address, where it is reached by TCP.
    pub(super) fn tcp_address(&self) -> Option<&Address> {
        self.inner.tcp.as_ref()
    }

    /// A new connection.
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

    /// A host service whose answer is one text.
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

/// The stream of device lists.
pub struct Tracker {
    wire: Wire,
    server: Server,
    /// A list that has arrived in part.
    read: Vec<u8>,
}

impl Tracker {
    /// The whole list, first as it is now, then after each change; waits for as long as
    /// nothing changes. Cancel-safe.
    ///
    /// # Errors
    /// [`DeviceError::ServerLost`] where the server goes away.
    pub async fn next(&mut self) -> Result<Vec<ListedDevice>, DeviceError> {
        self.wire
            .read_text_piecewise(&mut self.read)
            .await
            .map(|text| parse_list(&text))
            .map_err(|e| self.server.error("host:track-devices", e))
    }
}

/// `flag`, else adb's variables, else the local default.
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
        // A host alone, as adb takes it; an IPv6 address may stand there bare.
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
