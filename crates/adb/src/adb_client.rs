//! Phones on the network: connect, disconnect, pair, and what they announce by mDNS. This is
//! what the crate `adb_client` does well, and all of it is used here; its blocking calls run
//! on threads of their own.
//!
//! The crate starts `adb start-server` before each request to a loopback server, which on a
//! server of another version kills it. It is given a program name that no system can run (a
//! NUL in it), so that it only ever connects; [`Server`] has seen to it that one runs.

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

/// The server itself gives up a connection after 10 s.
const NETWORK: Duration = Duration::from_secs(20);

/// The port of a phone on the network where none is given.
const PHONE_PORT: u16 = 5555;

/// No system runs a program of this name.
const NO_PROGRAM: &str = "\0";

/// What a server says that is older than the request, as pairing and mDNS are in 2020.
const UNKNOWN: &str = "unknown host service";

/// A service that a phone on the network announces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Announced {
    /// Its name, such as `adb-39021FDH2009QN-uRNlTs`.
    pub name: String,
    /// `_adb-tls-connect._tcp`, `_adb-tls-pairing._tcp`, `_adb._tcp`.
    pub service: String,
    /// Where it listens.
    pub address: String,
}

impl Server {
    /// Connects the server to the phone at `HOST[:PORT]`; no error where it was before.
    ///
    /// # Errors
    /// [`DeviceError::Network`] with the server's words; errors of the server's connection.
    pub async fn connect_to(&self, at: &str) -> Result<(), DeviceError> {
        let phone = phone_address(at, Some(PHONE_PORT)).await?;
        self.blocking("connect to", at, move |adb| adb.connect_device(phone))
            .await
    }

    /// Ends the server's connection to the phone at `HOST[:PORT]`.
    ///
    /// # Errors
    /// As [`Server::connect_to`].
    pub async fn disconnect_from(&self, at: &str) -> Result<(), DeviceError> {
        let phone = phone_address(at, Some(PHONE_PORT)).await?;
        self.blocking("disconnect from", at, move |adb| {
            adb.disconnect_device(phone)
        })
        .await
    }

    /// Pairs with the phone at `HOST:PORT` by the code on its screen.
    ///
    /// # Errors
    /// As [`Server::connect_to`].
    pub async fn pair_with(&self, at: &str, code: &str) -> Result<(), DeviceError> {
        if code.is_empty() || !code.bytes().all(|b| b.is_ascii_digit()) {
            return Err(network("pair with", at, "a pairing code is digits only"));
        }
        let phone = phone_address(at, None).await?;
        let code = code.to_owned();
        self.blocking("pair with", at, move |adb| adb.pair(phone, code))
            .await
    }

    /// What phones on the network announce to the server.
    ///
    /// # Errors
    /// As [`Server::connect_to`].
    pub async fn announced(&self) -> Result<Vec<Announced>, DeviceError> {
        let services = self
            .blocking("look for", "phones by mDNS", |adb| adb.mdns_services())
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
            return Err(network(what, at, "this server is not reached by TCP"));
        };
        let server = v4(address.host(), address.port())
            .await
            .ok_or_else(|| network(what, at, "the adb server has no IPv4 address"))?;
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
            // The thread was not run (the runtime ends) or panicked in the crate.
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

/// The crate takes IPv4 alone; names are looked up here.
async fn phone_address(at: &str, port: Option<u16>) -> Result<SocketAddrV4, DeviceError> {
    if port.is_none() && !at.contains(':') {
        return Err(network(
            "pair with",
            at,
            "the port is missing; the phone shows it beside the code",
        ));
    }
    let address = Address::parse_with_port(at, "the phone's address", port.unwrap_or(PHONE_PORT))?;
    v4(address.host(), address.port())
        .await
        .ok_or_else(|| network("reach", at, "it has no IPv4 address"))
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

    /// A server on loopback that accepts once more per answer: the first connection is the
    /// question whether anybody is there. Returns the requests it got.
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
            "could not connect to 127.0.0.1: failed to connect to 127.0.0.1:5555"
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
