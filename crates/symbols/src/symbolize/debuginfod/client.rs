//! HTTP client for debuginfod servers: the only file of symbolization that uses the network.

use super::super::cache::{Cache, NotKept, Origin};
use super::servers::{Refusal, Servers, without_password};
use heaptap_base::units::{BuildId, ByteSize, hex};
use sha2::{Digest as _, Sha256};
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Minimum bytes received within the timeout, as in elfutils.
const LEAST: u64 = 100 << 10;
/// Maximum number of redirects.
const MAX_HOPS: usize = 3;
/// Supported lengths of build IDs, in bytes.
const BUILD_IDS: RangeInclusive<usize> = 2..=64;
/// Time for which a missing file is remembered.
const BELIEVED: Duration = Duration::from_secs(600);

/// Client of the servers.
#[derive(Debug)]
pub(in crate::symbolize) struct Client {
    servers: Servers,
    /// By server: whether it failed to respond.
    silent: Vec<AtomicBool>,
    agent: ureq::Agent,
    cache: Cache,
}

impl Client {
    /// Makes a client for `servers`. Does not connect yet.
    pub(in crate::symbolize) fn new(servers: Servers, cache: Cache) -> Self {
        let agent = ureq::Agent::config_builder()
            .timeout_resolve(Some(servers.timeout))
            .timeout_connect(Some(servers.timeout))
            .timeout_recv_response(Some(servers.timeout))
            .timeout_recv_body(Some(servers.longest))
            .http_status_as_error(false)
            // Redirects are checked before they are followed.
            .max_redirects(0)
            .user_agent(concat!("heaptap/", env!("CARGO_PKG_VERSION")))
            .build()
            .into();
        Client {
            silent: servers
                .urls
                .iter()
                .map(|_| AtomicBool::new(false))
                .collect(),
            servers,
            agent,
            cache,
        }
    }

    /// Fetches a file into the cache. Calls `refused` for each server that did not return it.
    /// Blocks up to the time limits of the servers.
    pub(in crate::symbolize) fn fetch(
        &self,
        build_id: &BuildId,
        origin: Origin,
        mut refused: impl FnMut(&str, Refusal),
    ) -> Option<PathBuf> {
        for (url, silent) in self.servers.urls.iter().zip(&self.silent) {
            match self.ask(url, silent, build_id, origin) {
                Ok(path) => return Some(path),
                Err(refusal) => refused(&without_password(url), refusal),
            }
        }
        None
    }

    fn ask(
        &self,
        url: &str,
        silent: &AtomicBool,
        build_id: &BuildId,
        origin: Origin,
    ) -> Result<PathBuf, Refusal> {
        if silent.load(Ordering::Relaxed) {
            return Err(Refusal::Failed("did not respond earlier".to_owned()));
        }
        let kind = match origin {
            Origin::Executable => "executable",
            Origin::Debuginfo | Origin::Device => "debuginfo",
        };
        let hex = hex(&build_id.0);
        let url = format!("{url}/buildid/{hex}/{kind}");
        if self.is_known_missing(&url) {
            return Err(Refusal::Missing);
        }
        if !BUILD_IDS.contains(&build_id.0.len()) {
            return Err(Refusal::Missing);
        }
        let began = Instant::now();
        let response = self.follow(&url, silent)?;
        match response.status().as_u16() {
            200 => {}
            404 => {
                self.note_missing(&url);
                return Err(Refusal::Missing);
            }
            status => {
                return Err(Refusal::Failed(format!("returned HTTP status {status}")));
            }
        }
        let (_, body) = response.into_parts();
        let kept = self.keep(body, build_id, origin, began);
        if kept.is_err() && began.elapsed() >= self.servers.timeout {
            // The server is so slow that the next file would take just as long.
            silent.store(true, Ordering::Relaxed);
        }
        kept.map_err(Refusal::Failed)
    }

    /// Sends a request to `url` and follows redirects.
    fn follow(
        &self,
        url: &str,
        silent: &AtomicBool,
    ) -> Result<ureq::http::Response<ureq::Body>, Refusal> {
        let mut at = url.to_owned();
        for _ in 0..=MAX_HOPS {
            let request = self.agent.get(&at);
            let request = match is_of_this_host(&at) {
                // A proxy from the environment is only for other hosts.
                true => request.config().proxy(None).build(),
                false => request,
            };
            let response = request.call().map_err(|error| {
                silent.store(true, Ordering::Relaxed);
                Refusal::Failed(told(&error))
            })?;
            if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
                return Ok(response);
            }
            let to = response.headers().get("location");
            let to = to.and_then(|to| to.to_str().ok()).unwrap_or_default();
            at = next(&at, to)
                .filter(|next| may_lead(url, &at, next))
                .ok_or_else(|| Refusal::Failed("redirects to a forbidden address".to_owned()))?;
        }
        Err(Refusal::Failed("too many redirects".to_owned()))
    }

    fn keep(
        &self,
        body: ureq::Body,
        build_id: &BuildId,
        origin: Origin,
        began: Instant,
    ) -> Result<PathBuf, String> {
        let ByteSize(largest) = self.servers.largest;
        let too_large = || format!("file is larger than {}", self.servers.largest);
        if body.content_length().is_some_and(|length| length > largest) {
            return Err(too_large());
        }
        let cannot_write = |error: io::Error| format!("cannot write to the cache: {error}");
        let mut incoming = self.cache.libraries().receive().map_err(cannot_write)?;
        let mut size = 0u64;
        let pieces = pieces_of(body);
        loop {
            let piece = match pieces.recv_timeout(self.servers.timeout) {
                Ok(Ok(piece)) => piece,
                Ok(Err(error)) => return Err(format!("transfer failed: {error}")),
                Err(RecvTimeoutError::Timeout) => return Err("stopped sending".to_owned()),
                Err(RecvTimeoutError::Disconnected) => break,
            };
            size += piece.len() as u64;
            if size > largest {
                return Err(too_large());
            }
            let waited = began.elapsed();
            if waited > self.servers.longest || (waited > self.servers.timeout && size < LEAST) {
                return Err("too slow".to_owned());
            }
            incoming.file().write_all(&piece).map_err(cannot_write)?;
        }
        incoming
            .keep(build_id, origin)
            .map_err(|error| match error {
                NotKept::Io(error) => cannot_write(error),
                other => format!("sent the wrong file: {other}"),
            })
    }

    fn missing_key(url: &str) -> [u8; 32] {
        let digest = Sha256::new().chain_update(b"missing\0").chain_update(url);
        digest.finalize().into()
    }

    fn note_missing(&self, url: &str) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |now| now.as_secs());
        // If this fails, the server is only queried again.
        let _ = self
            .cache
            .answers()
            .put(&Self::missing_key(url), &now.to_le_bytes());
    }

    fn is_known_missing(&self, url: &str) -> bool {
        let noted = self.cache.answers().get(&Self::missing_key(url));
        let noted = noted.and_then(|bytes| Some(u64::from_le_bytes(bytes.try_into().ok()?)));
        noted.is_some_and(|seconds| {
            let at = UNIX_EPOCH + Duration::from_secs(seconds.min(u64::from(u32::MAX)));
            at.elapsed().is_ok_and(|since| since < BELIEVED)
        })
    }
}

/// Returns whether a URL is on this host.
fn is_of_this_host(url: &str) -> bool {
    let uri: Option<ureq::http::Uri> = url.parse().ok();
    uri.as_ref().and_then(|uri| uri.host()).is_some_and(|host| {
        let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
        host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|a| a.is_loopback())
    })
}

/// Resolves `location` in a response of `from`: an absolute URL, or a path on the same server.
fn next(from: &str, location: &str) -> Option<String> {
    let to = match location.starts_with('/') && !location.starts_with("//") {
        true => {
            let from: ureq::http::Uri = from.parse().ok()?;
            format!("{}://{}{location}", from.scheme_str()?, from.authority()?)
        }
        false => location.to_owned(),
    };
    let uri: ureq::http::Uri = to.parse().ok()?;
    let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
    (is_web && uri.host().is_some()).then_some(to)
}

/// Returns whether a request that began at `first` is allowed to be redirected from `from` to `to`:
/// neither from HTTPS to HTTP, nor from outside to an address of this host or network. Host names
/// are not resolved for this.
fn may_lead(first: &str, from: &str, to: &str) -> bool {
    let is_closed = |url: &str| url.starts_with("https:");
    (!is_closed(from) || is_closed(to)) && (is_inside(first) || !is_inside(to))
}

/// Returns whether a URL is on this host or in its own network.
fn is_inside(url: &str) -> bool {
    let uri: Option<ureq::http::Uri> = url.parse().ok();
    let Some(host) = uri.as_ref().and_then(|uri| uri.host()) else {
        return false;
    };
    let of_v6 = |a: Ipv6Addr| {
        a.is_loopback() || a.is_unspecified() || a.is_unique_local() || a.is_unicast_link_local()
    };
    match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(address) => match address.to_canonical() {
            IpAddr::V4(a) => {
                a.is_loopback() || a.is_unspecified() || a.is_private() || a.is_link_local()
            }
            IpAddr::V6(a) => of_v6(a),
        },
        Err(_) => {
            let host = host.trim_end_matches('.').to_ascii_lowercase();
            host == "localhost" || host.ends_with(".localhost") || is_number(&host)
        }
    }
}

/// Returns whether a resolver could read a host name as an address in an unusual form:
/// `2130706433`, `0x7f.1`.
fn is_number(host: &str) -> bool {
    let last = host.rsplit('.').next().unwrap_or(host);
    let digits = last.strip_prefix("0x").unwrap_or(last);
    last.starts_with(|c: char| c.is_ascii_digit()) && digits.chars().all(|c| c.is_ascii_hexdigit())
}

/// Reads a body on a separate thread, because only then can a server that stops sending be
/// abandoned. The thread ends with the body, at the latest at the time limit of the file.
fn pieces_of(body: ureq::Body) -> Receiver<io::Result<Vec<u8>>> {
    let (sender, receiver) = mpsc::sync_channel(8);
    let mut body = body.into_reader();
    let read = move || {
        loop {
            let mut piece = vec![0; 64 << 10];
            let read = match body.read(&mut piece) {
                Ok(0) => return,
                Ok(length) => {
                    piece.truncate(length);
                    Ok(piece)
                }
                Err(error) => Err(error),
            };
            let is_end = read.is_err();
            // The receiver is gone, or the body has ended.
            if sender.send(read).is_err() || is_end {
                return;
            }
        }
    };
    // Without a thread the channel closes: the file is then empty and refused.
    let _ = std::thread::Builder::new()
        .name("debuginfod".to_owned())
        .spawn(read);
    receiver
}

/// Describes an error without revealing more than the URL of the server.
fn told(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Timeout(_) => "did not respond in time".to_owned(),
        ureq::Error::HostNotFound => "no such host".to_owned(),
        ureq::Error::ConnectionFailed => "does not accept connections".to_owned(),
        ureq::Error::Io(error) => error.to_string(),
        // These errors would repeat the URL with its password.
        ureq::Error::BadUri(_) | ureq::Error::Http(_) => "invalid URL".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_of_this_host_are_told_from_others() {
        for url in [
            "http://127.0.0.1:8002/x",
            "http://localhost/",
            "https://[::1]:9/x",
        ] {
            assert!(is_of_this_host(url), "{url}");
        }
        for url in [
            "http://127.0.0.1.example/",
            "https://debuginfod.example",
            "nonsense",
        ] {
            assert!(!is_of_this_host(url), "{url}");
        }
    }

    #[test]
    fn redirects_lead_no_further_in_than_their_server() {
        let outside = "https://debuginfod.example/buildid/ab/debuginfo";
        for (from, location, expected) in [
            (
                outside,
                "/files/x",
                Some("https://debuginfod.example/files/x"),
            ),
            (
                outside,
                "https://cdn.example/x",
                Some("https://cdn.example/x"),
            ),
            (outside, "http://cdn.example/x", None),
            (outside, "https://127.0.0.1/x", None),
            (outside, "https://localhost./x", None),
            (outside, "https://10.1.2.3:8443/x", None),
            (outside, "https://169.254.169.254/latest", None),
            (outside, "https://[::1]/x", None),
            (outside, "https://[fe80::1]/x", None),
            (outside, "https://[fd00::1]/x", None),
            (outside, "https://[::ffff:127.0.0.1]/x", None),
            (outside, "https://2130706433/x", None),
            (outside, "https://0x7f.1/x", None),
            (outside, "file:///etc/passwd", None),
            (outside, "", None),
            (
                "http://10.0.0.1:8002/x",
                "http://10.0.0.2/x",
                Some("http://10.0.0.2/x"),
            ),
        ] {
            let to = next(from, location).filter(|to| may_lead(from, from, to));
            assert_eq!(to.as_deref(), expected, "{from} to {location}");
        }
    }
}
