//! Byte streams to the adb server: TCP in the program, in-memory streams in tests. Owns the
//! server's address; independent of the protocol.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::error::DeviceError;

/// Default port of adb servers.
pub const DEFAULT_PORT: u16 = 5037;

/// Schemes of addresses of adb that are not TCP. No host of an address has such a name.
const OTHER_SCHEMES: [&str; 7] = [
    "localfilesystem:",
    "localabstract:",
    "localreserved:",
    "local:",
    "unix:",
    "vsock:",
    "acceptfd:",
];

/// A two-way byte stream.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// The future of [`Connect::connect`].
pub type Connecting<'a> = Pin<Box<dyn Future<Output = io::Result<Box<dyn Stream>>> + Send + 'a>>;

/// Source of connections to the adb server.
pub trait Connect: Send + Sync + 'static {
    /// Opens a new connection. Dropping the stream closes it.
    fn connect(&self) -> Connecting<'_>;

    /// Returns the server's address, for messages.
    fn address(&self) -> String;
}

/// TCP address of an adb server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    host: String,
    port: u16,
}

impl Address {
    /// Returns the address of the local server at the default port.
    pub fn local() -> Self {
        Address::new("127.0.0.1", DEFAULT_PORT)
    }

    /// Creates an address from a host name or IP address (IPv6 without brackets) and a port.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Address {
            host: host.into(),
            port,
        }
    }

    /// Parses `HOST:PORT`, `[IPV6]:PORT`, `HOST` or `PORT`, each with an optional `tcp:` prefix.
    ///
    /// # Errors
    /// Returns [`DeviceError::BadAddress`] for any other text, such as adb's
    /// `localfilesystem:PATH`. `from` names the flag or variable in the message.
    pub fn parse(text: &str, from: &'static str) -> Result<Self, DeviceError> {
        Self::parse_with_port(text, from, DEFAULT_PORT)
    }

    /// Parses like [`Address::parse`], with another default port.
    pub(super) fn parse_with_port(
        text: &str,
        from: &'static str,
        default_port: u16,
    ) -> Result<Self, DeviceError> {
        let bad = |why| DeviceError::BadAddress {
            text: text.to_owned(),
            from,
            why,
        };
        let rest = text.strip_prefix("tcp:").unwrap_or(text).trim();
        if rest.contains(',') {
            return Err(bad("only `run` and `devices` support several addresses"));
        }
        if OTHER_SCHEMES.iter().any(|scheme| rest.starts_with(scheme)) {
            return Err(bad("only TCP addresses are supported"));
        }
        let port_of = |port: &str| match port.parse::<u16>() {
            Ok(port) if port != 0 => Ok(port),
            _ => Err(bad("the port must be a number from 1 to 65535")),
        };
        let (host, port) = if let Some(bracketed) = rest.strip_prefix('[') {
            let (host, tail) = bracketed
                .split_once(']')
                .ok_or_else(|| bad("the `]` after the IPv6 address is missing"))?;
            match tail {
                "" => (host, default_port),
                tail => (
                    host,
                    port_of(
                        tail.strip_prefix(':')
                            .ok_or_else(|| bad("a colon must precede the port"))?,
                    )?,
                ),
            }
        } else if rest.parse::<std::net::Ipv6Addr>().is_ok() {
            (rest, default_port)
        } else if !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()) {
            ("127.0.0.1", port_of(rest)?)
        } else {
            match rest.split_once(':') {
                Some((_, port)) if port.contains(':') => {
                    return Err(bad(
                        "an IPv6 address must be in brackets, as in `[::1]:5037`",
                    ));
                }
                Some(("", port)) => ("127.0.0.1", port_of(port)?),
                Some((host, port)) => (host, port_of(port)?),
                None => (rest, default_port),
            }
        };
        if host.is_empty() || host.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(bad("the host is missing or contains spaces"));
        }
        Ok(Address::new(host, port))
    }

    /// Returns the host name or IP address, without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the TCP port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns whether both addresses lead to the same server. The local host has several names.
    pub fn is_same(&self, other: &Address) -> bool {
        self == other || self.is_local() && other.is_local() && self.port == other.port
    }

    /// Returns whether a server started on this host would listen at this address. adb binds only
    /// 127.0.0.1.
    pub fn is_local(&self) -> bool {
        self.host == "127.0.0.1" || self.host.eq_ignore_ascii_case("localhost")
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Connector by TCP; tries each address of the host name in turn.
#[derive(Debug, Clone)]
pub struct Tcp(pub Address);

impl Connect for Tcp {
    fn connect(&self) -> Connecting<'_> {
        Box::pin(async move {
            let stream = TcpStream::connect((self.0.host(), self.0.port())).await?;
            // Requests are small, and each one waits for its answer.
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }

    fn address(&self) -> String {
        self.0.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses_are_read_in_every_form_that_adb_takes() {
        for (text, host, port) in [
            ("127.0.0.1:5038", "127.0.0.1", 5038),
            ("tcp:5038", "127.0.0.1", 5038),
            ("tcp:build-host:5037", "build-host", 5037),
            ("build-host", "build-host", 5037),
            ("5040", "127.0.0.1", 5040),
            (":5040", "127.0.0.1", 5040),
            ("[::1]:5041", "::1", 5041),
            ("tcp:[fe80::1]:1", "fe80::1", 1),
            ("::1", "::1", 5037),
            ("[::1]", "::1", 5037),
        ] {
            assert_eq!(
                Address::parse(text, "--adb-server").unwrap(),
                Address::new(host, port),
                "{text}"
            );
        }
        for text in [
            "",
            "tcp:",
            "host:",
            "host:0",
            "host:65536",
            "host:x",
            "a:b:c",
            "a:1,b:2",
            "[::1",
            "[::1]x",
            "[::1]:",
            "my host:1",
            "localfilesystem:/tmp/adb",
        ] {
            assert!(Address::parse(text, "--adb-server").is_err(), "{text}");
        }
    }

    #[test]
    fn only_the_plain_loopback_counts_as_local() {
        for (text, local) in [
            ("127.0.0.1:1", true),
            ("localhost:1", true),
            ("[::1]:1", false),
            ("127.0.0.2:1", false),
            ("0.0.0.0:1", false),
            ("example.org:1", false),
        ] {
            let address = Address::parse(text, "--adb-server").unwrap();
            assert_eq!(address.is_local(), local, "{text}");
        }
    }

    proptest! {
        #[test]
        fn printed_addresses_parse_back(host in "[a-z][a-z0-9.-]{0,20}|::1|fe80::[1-9]", port in 1u16..) {
            let scheme = format!("{host}:");
            prop_assume!(scheme != "tcp:" && !OTHER_SCHEMES.contains(&scheme.as_str()));
            let address = Address::new(host, port);
            prop_assert_eq!(Address::parse(&address.to_string(), "test").unwrap(), address);
        }

        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = Address::parse(&text, "test");
        }
    }
}
