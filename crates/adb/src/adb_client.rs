//! Devices on the network: connect, disconnect, pair, and mDNS announcements. heaptap uses the
//! crate `adb_client` only for these; its blocking calls run on their own threads.
//!
//! The crate runs `adb start-server` before each request to a loopback server, which kills a server
//! of another version. It gets a program name that no system can run (it contains a NUL), so that
//! it only connects. [`Server`] has started a server before.

use std::net::{SocketAddr, SocketAddrV4};
use std::time::Duration;

use adb_client::RustADBError;
use adb_client::server::ADBServer;
use serde::Serialize;
use tokio::net::lookup_host;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::connect::Address;
use super::error::DeviceError;
use super::printable::printable;
use super::server::Server;

/// Time limit for a request; the server itself stops connecting after 10 s.
const NETWORK: Duration = Duration::from_secs(20);

/// Default port of a device on the network.
const PHONE_PORT: u16 = 5555;

/// Name of a program that no system can run.
const NO_PROGRAM: &str = "\0";

/// Answer of a server that predates the request; pairing and mDNS were added in 2020.
const UNKNOWN: &str = "unknown host service";

/// A service that a device on the network announces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Announced {
    /// Instance name, such as `adb-39021FDH2009QN-uRNlTs`.
    pub name: String,
    /// Service type: `_adb-tls-connect._tcp`, `_adb-tls-pairing._tcp` or `_adb._tcp`.
    pub service: String,
    /// Address and port of the service.
    pub address: String,
}

impl Server {
    /// Connects the server to the device at `HOST[:PORT]`. Succeeds if it is already connected.
    ///
    /// # Errors
    /// Returns [`DeviceError::Network`] with the server's text, or an error of the connection to
    /// the server.
    pub async fn connect_to(&self, at: &str) -> Result<(), DeviceError> {
        let phone = phone_address(at, Some(PHONE_PORT)).await?;
        self.blocking("connect to", at, move |adb| adb.connect_device(phone))
            .await
    }

    /// Disconnects the server from the device at `HOST[:PORT]`.
    ///
    /// # Errors
    /// Returns the errors of [`Server::connect_to`].
    pub async fn disconnect_from(&self, at: &str) -> Result<(), DeviceError> {
        let phone = phone_address(at, Some(PHONE_PORT)).await?;
        self.blocking("disconnect from", at, move |adb| {
            adb.disconnect_device(phone)
        })
        .await
    }

    /// Pairs with the device at `HOST:PORT` with the code on its screen.
    ///
    /// # Errors
    /// Returns the errors of [`Server::connect_to`].
    pub async fn pair_with(&self, at: &str, code: &str) -> Result<(), DeviceError> {
        if code.is_empty() || !code.bytes().all(|b| b.is_ascii_digit()) {
            return Err(network("pair with", at, "a pairing code has only digits"));
        }
        let phone = phone_address(at, None).await?;
        let code = code.to_owned();
        self.blocking("pair with", at, move |adb| adb.pair(phone, code))
            .await
    }

    /// Returns the services that devices on the network announce to the server.
    ///
    /// # Errors
    /// Returns the errors of [`Server::connect_to`].
    pub async fn announced(&self) -> Result<Vec<Announced>, DeviceError> {
        let services = self
            .blocking("find", "devices by mDNS", |adb| adb.mdns_services())
            .await?;
        Ok(services
            .into_iter()
            .map(|service| Announced {
                name: printable(service.service_name.as_bytes()),
                service: printable(service.reg_type.as_bytes()),
                address: service.socket_v4.to_string(),
            })
            .collect())
    }

    async fn blocking<T: Send + 'static>(
        &self,
        what: &'static str,
        at: &str,
        request: impl FnOnce(&mut ADBServer) -> adb_client::Result<T> + Send + 'static,
    ) -> Result<T, DeviceError> {
        self.ensure_running().await?;
        let Some(address) = self.tcp_address() else {
            return Err(network(what, at, "this server is not a TCP server"));
        };
        let server = v4(address.host(), address.port())
            .await
            .ok_or_else(|| network(what, at, "the adb server does not have an IPv4 address"))?;
        let asked = spawn_blocking(move || {
            request(&mut ADBServer::new_from_path(
                server,
                Some(NO_PROGRAM.to_owned()),
            ))
        });
        let silent = || DeviceError::ServerSilent {
            address: self.address(),
            what: format!("{what} {at}"),
            after: NETWORK,
        };
        match timeout(NETWORK, asked).await {
            Ok(Ok(Ok(value))) => Ok(value),
            Ok(Ok(Err(error))) => Err(match error {
                RustADBError::IOError(source) => DeviceError::ServerLost {
                    address: self.address(),
                    what: format!("{what} {at}"),
                    source: Some(source),
                },
                RustADBError::ADBRequestFailed(text) if text == UNKNOWN => {
                    DeviceError::ServerRefused {
                        address: self.address(),
                        what: format!("{what} {at}"),
                        text,
                    }
                }
                RustADBError::ADBRequestFailed(text) => network(what, at, &text),
                other => network(what, at, &other.to_string()),
            }),
            // The thread did not run because the runtime is ending, or it panicked in the crate.
            Ok(Err(join)) => Err(network(what, at, &join.to_string())),
            Err(_) => Err(silent()),
        }
    }
}

fn network(what: &'static str, at: &str, text: &str) -> DeviceError {
    DeviceError::Network {
        what,
        at: printable(at.as_bytes()),
        text: printable(text.trim().as_bytes()),
    }
}

/// Resolves a device's address, because the crate supports only IPv4 addresses.
async fn phone_address(at: &str, port: Option<u16>) -> Result<SocketAddrV4, DeviceError> {
    if port.is_none() && !at.contains(':') {
        return Err(network(
            "pair with",
            at,
            "the port is missing; the device shows it next to the code",
        ));
    }
    let address = Address::parse_with_port(at, "device address", port.unwrap_or(PHONE_PORT))?;
    v4(address.host(), address.port())
        .await
        .ok_or_else(|| network("reach", at, "it does not have an IPv4 address"))
}

async fn v4(host: &str, port: u16) -> Option<SocketAddrV4> {
    let found = lookup_host((host, port)).await.ok()?;
    found
        .filter_map(|address| match address {
            SocketAddr::V4(address) => Some(address),
            SocketAddr::V6(_) => None,
        })
        .next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// Runs `request` against a server on loopback. The first connection only checks that the
    /// server answers; the second one gets `answer`. Returns the received request, if any.
    async fn ask<T>(
        answer: &'static str,
        request: impl AsyncFnOnce(Server) -> T,
    ) -> (T, Option<String>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = Server::at(Address::new("127.0.0.1", port));
        let serving = async {
            drop(listener.accept().await.unwrap());
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut length = [0; 4];
            stream.read_exact(&mut length).await.ok()?;
            let length = usize::from_str_radix(std::str::from_utf8(&length).ok()?, 16).ok()?;
            let mut request = vec![0; length];
            stream.read_exact(&mut request).await.ok()?;
            stream.write_all(answer.as_bytes()).await.ok()?;
            String::from_utf8(request).ok()
        };
        tokio::join!(request(server), serving)
    }

    #[tokio::test]
    async fn connecting_and_pairing_say_what_the_server_says() {
        let (result, request) = ask("OKAY001aconnected to 127.0.0.1:5601", async |s| {
            s.connect_to("127.0.0.1:5601").await
        })
        .await;
        result.unwrap();
        assert_eq!(request.unwrap(), "host:connect:127.0.0.1:5601");

        let (result, _) = ask("OKAY0023failed to connect to 127.0.0.1:5555", async |s| {
            s.connect_to("127.0.0.1").await
        })
        .await;
        assert_eq!(
            result.unwrap_err().to_string(),
            "cannot connect to 127.0.0.1: failed to connect to 127.0.0.1:5555"
        );

        let (result, request) = ask("OKAY0010Failed: wrong it", async |s| {
            s.pair_with("127.0.0.1:40001", "123456").await
        })
        .await;
        assert!(matches!(result, Err(DeviceError::Network { .. })));
        assert_eq!(request.unwrap(), "host:pair:123456:127.0.0.1:40001");
    }

    #[tokio::test]
    async fn announced_phones_are_listed() {
        let (result, request) = ask(
            "OKAY003eadb-39021FDH2009QN-uRNlTs\t_adb-tls-connect._tcp\t10.0.0.7:37041\n",
            async |s| s.announced().await,
        )
        .await;
        assert_eq!(request.unwrap(), "host:mdns:services");
        assert_eq!(
            result.unwrap(),
            [Announced {
                name: "adb-39021FDH2009QN-uRNlTs".into(),
                service: "_adb-tls-connect._tcp".into(),
                address: "10.0.0.7:37041".into(),
            }]
        );
    }

    #[tokio::test]
    async fn what_cannot_be_asked_is_refused_before_anybody_is_asked() {
        let server = Server::at(Address::new("127.0.0.1", 1));
        for (at, code) in [
            ("127.0.0.1", "123456"),
            ("127.0.0.1:1", "12x"),
            ("a b:1", "1"),
        ] {
            assert!(server.pair_with(at, code).await.is_err(), "{at} {code}");
        }
    }
}
