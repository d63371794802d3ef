//! What both servers share: a socket on loopback, its connections, and what every answer says.

use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::parallel::lock;
use heaptap_base::units::hex;
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper_util::rt::TokioTimer;
use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until};

/// Time limit for sending a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of a request head, in bytes; browsers send a few hundred.
const MAX_HEAD_BYTES: usize = 16 << 10;
/// Maximum number of connections that asked for nothing yet: browsers keep six. Beyond it, the oldest
/// is closed, so that no client can lock out others.
const MAX_SILENT: usize = 32;
/// Pause after a connection that could not be accepted.
pub(super) const FAILURE_PAUSE: Duration = Duration::from_millis(100);
/// Maximum number of consecutive failures.
pub(super) const MAX_FAILURES: u32 = 50;

/// A listening socket.
pub(super) struct Listener {
    pub(super) socket: TcpListener,
    pub(super) address: SocketAddr,
    failures: u32,
    resume: Instant,
}

impl Listener {
    /// Listens on 127.0.0.1. With port 0, the system chooses one.
    pub(super) async fn open(port: u16) -> io::Result<Listener> {
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        Ok(Listener {
            address: socket.local_addr()?,
            socket,
            failures: 0,
            resume: Instant::now(),
        })
    }

    /// Accepts the next connection. Connections that failed before they began are ignored. If the host
    /// has no file descriptors left, the next attempt would also fail immediately, forever.
    ///
    /// # Errors
    /// Returns an error if accepting connections fails repeatedly.
    pub(super) async fn accept(&mut self) -> io::Result<TcpStream> {
        loop {
            sleep_until(self.resume).await;
            let error = match self.socket.accept().await {
                Ok((stream, _)) => {
                    self.failures = 0;
                    return Ok(stream);
                }
                Err(error) => error,
            };
            self.failures += 1;
            self.resume = Instant::now() + FAILURE_PAUSE;
            if self.failures > MAX_FAILURES {
                return Err(error);
            }
        }
    }
}

/// Returns the failure of a server that cannot accept connections.
pub(super) fn no_connections(error: &io::Error) -> Failure {
    let message = "cannot accept connections on 127.0.0.1";
    Failure::new(ErrorClass::HostWrite, "no-listener", message)
        .caused_by(error)
        .with_help(
            "stop other programs and try again; the host might lack a resource such as open files",
        )
}

/// Open connections, each a task with the result `T`.
pub(super) struct Connections<T> {
    pub(super) open: JoinSet<T>,
    silent: VecDeque<(AbortHandle, Arc<AtomicBool>)>,
}

impl<T: Send + 'static> Connections<T> {
    pub(super) fn new() -> Connections<T> {
        Connections {
            open: JoinSet::new(),
            silent: VecDeque::new(),
        }
    }

    /// Serves a connection, which sets the flag when it asks for something.
    pub(super) fn spawn<F>(&mut self, serve: impl FnOnce(Arc<AtomicBool>) -> F)
    where
        F: Future<Output = T> + Send + 'static,
    {
        self.silent
            .retain(|(task, asked)| !task.is_finished() && !asked.load(Ordering::Relaxed));
        while self.silent.len() >= MAX_SILENT {
            self.silent
                .pop_front()
                .inspect(|(oldest, _)| oldest.abort());
        }
        let asked = Arc::new(AtomicBool::new(false));
        let task = self.open.spawn(serve(Arc::clone(&asked)));
        self.silent.push_back((task, asked));
    }
}

/// An address that redirects only its first request. All users of a computer see the arguments of its
/// programs, so browsers are started with such an address.
#[derive(Default)]
pub(super) struct Once(Mutex<Option<HeaderValue>>);

impl Once {
    pub(super) fn to(goal: &str) -> io::Result<Once> {
        let goal = HeaderValue::try_from(goal).map_err(io::Error::other)?;
        Ok(Once(Mutex::new(Some(goal))))
    }

    /// Redirects the first request; for later ones, there is nothing.
    pub(super) fn redirect(&self, headers: &mut HeaderMap) -> StatusCode {
        match lock(&self.0).take() {
            Some(goal) => {
                headers.insert(header::LOCATION, goal);
                StatusCode::SEE_OTHER
            }
            None => StatusCode::NOT_FOUND,
        }
    }
}

/// Returns the limits of every connection.
pub(super) fn http() -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::default())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
        .keep_alive(false);
    http
}

/// Sets the headers of every answer: it is of that type, is not stored, and other sites cannot use it.
pub(super) fn guard(headers: &mut HeaderMap, media: &'static str) {
    for (name, value) in [
        (header::CONTENT_TYPE, media),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// Returns the body of a refusal: a few words.
pub(super) fn reason(status: StatusCode) -> Bytes {
    Bytes::from_static(status.canonical_reason().unwrap_or("refused").as_bytes())
}

/// Returns 128 unpredictable bits.
pub(super) fn secret() -> io::Result<String> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).map_err(io::Error::other)?;
    Ok(hex(&bits))
}
