//! The socket, its connections and their deadlines.

use super::answer::{Answer, Content, Terms};
use super::body::{self, FileBody, Progress};
use super::listener::{Connections, Listener, Once, guard, http, no_connections, reason, secret};
use super::page;
use heaptap_base::error::Failure;
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use perfetto_heap::Source;
use std::convert::Infallible;
use std::io::{self, SeekFrom};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// Time limit for a stalled connection, in either direction.
const STALL_PATIENCE: Duration = Duration::from_secs(60);
/// Time limit of a second fetch waiting for the end of the first.
const TURN_PATIENCE: Duration = Duration::from_secs(5);

/// A file, and its permitted reader.
pub struct Offer {
    /// Contents; streamed from the beginning for each request.
    pub source: Box<dyn Source>,
    /// Name in the URL and in the UI.
    pub name: String,
    /// The only origin that can read it, such as `https://ui.perfetto.dev`.
    pub origin: String,
    /// If true, serve a page that transfers it to that origin.
    pub page: bool,
}

/// Result of serving.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The complete file was fetched.
    Fetched,
    /// The file was not fetched in time.
    TimedOut,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerEvent {
    /// A client that knows the path began to fetch the file.
    Fetching,
    /// A request was rejected, with this status.
    Refused(u16),
}

/// A listening server that has not answered yet.
pub struct Server {
    listener: Listener,
    shared: Shared,
}

/// State shared by all connections.
struct Shared {
    terms: Terms,
    source: Arc<Mutex<Box<dyn Source>>>,
    length: u64,
    page: Option<(Bytes, HeaderValue)>,
    entry: Once,
    disposition: HeaderValue,
}

impl Server {
    /// Listens on 127.0.0.1. With port 0, the system chooses one.
    ///
    /// # Errors
    /// Returns an error if the port is in use or the file cannot be read.
    pub async fn bind(port: u16, offer: Offer) -> io::Result<Server> {
        let listener = Listener::open(port).await?;
        let mut source = offer.source;
        let length = source.seek(SeekFrom::End(0))?;
        let secret = secret()?;
        let name = in_url(&offer.name);
        let file = format!("/{secret}/{name}");
        let page = offer
            .page
            .then(|| page::page(&offer.origin, &file, &offer.name, length));
        let page = match page {
            Some((text, policy)) => {
                let policy = HeaderValue::try_from(policy).map_err(io::Error::other)?;
                Some((Bytes::from(text), policy))
            }
            None => None,
        };
        let disposition = format!("attachment; filename=\"{name}\"");
        let shared = Shared {
            terms: Terms {
                host: listener.address.to_string(),
                file,
                page: page.is_some().then(|| format!("/{secret}/")),
                entry: None,
                origin: HeaderValue::try_from(offer.origin).map_err(io::Error::other)?,
            },
            source: Arc::new(Mutex::new(source)),
            length,
            page,
            entry: Once::default(),
            disposition: HeaderValue::try_from(disposition).map_err(io::Error::other)?,
        };
        Ok(Server { listener, shared })
    }

    /// Returns an address that redirects only its first request to `goal`. All users of a computer
    /// see the arguments of its programs, so browsers are started with this address.
    ///
    /// # Errors
    /// Returns an error if the system has no random bits, or `goal` is not an address.
    pub fn lead_once(&mut self, goal: &str) -> io::Result<String> {
        let path = format!("/{}", secret()?);
        let address = format!("http://{}{path}", self.listener.address);
        self.shared.terms.entry = Some(path);
        self.shared.entry = Once::to(goal)?;
        Ok(address)
    }

    /// Returns the listening address.
    pub fn address(&self) -> SocketAddr {
        self.listener.address
    }

    /// Bytes of the file.
    pub fn length(&self) -> u64 {
        self.shared.length
    }

    pub fn file_url(&self) -> String {
        format!("http://{}{}", self.listener.address, self.shared.terms.file)
    }

    /// Returns the URL of the page, if there is one.
    pub fn page_url(&self) -> Option<String> {
        let page = self.shared.terms.page.as_ref()?;
        Some(format!("http://{}{page}", self.listener.address))
    }

    /// Answers until the complete file was fetched, or no part of it for `patience`. Calls
    /// `on_event` immediately for each event.
    ///
    /// # Errors
    /// Returns an error if accepting connections fails repeatedly, and no connection is open.
    pub async fn serve(
        self,
        patience: Duration,
        on_event: impl Fn(ServerEvent) + Send + Sync + 'static,
    ) -> Result<Ended, Failure> {
        let on_event: Arc<dyn Fn(ServerEvent) + Send + Sync> = Arc::new(on_event);
        let (mut listener, shared) = (self.listener, Arc::new(self.shared));
        let mut connections = Connections::new();
        let mut deadline = Instant::now() + patience;
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok(stream) => {
                        let (shared, on_event) = (Arc::clone(&shared), Arc::clone(&on_event));
                        connections.spawn(|fetches| attend(stream, shared, fetches, on_event));
                    }
                    Err(error) if connections.open.is_empty() => return Err(no_connections(&error)),
                    Err(_) => {}
                },
                Some(ended) = connections.open.join_next() => match ended {
                    Ok(Connection::Whole) => return Ok(Ended::Fetched),
                    Ok(Connection::Broken) => deadline = Instant::now() + patience,
                    Ok(Connection::Idle) | Err(_) => {}
                },
                () = sleep_until(deadline) => {
                    // A running fetch has its own deadline.
                    match shared.source.try_lock() {
                        Ok(_) => return Ok(Ended::TimedOut),
                        Err(_) => deadline = Instant::now() + patience,
                    }
                }
            }
        }
    }
}

/// Result of a connection.
enum Connection {
    /// It received the complete file.
    Whole,
    /// It was interrupted within the file.
    Broken,
    /// It received nothing of it.
    Idle,
}

/// Answers one request, with time limits for its start and for stalls.
async fn attend(
    stream: TcpStream,
    shared: Arc<Shared>,
    fetches: Arc<AtomicBool>,
    on_event: Arc<dyn Fn(ServerEvent) + Send + Sync>,
) -> Connection {
    let progress = Arc::new(Progress::default());
    let service = service_fn({
        let (shared, progress) = (Arc::clone(&shared), Arc::clone(&progress));
        move |request| {
            let (shared, progress) = (Arc::clone(&shared), Arc::clone(&progress));
            let (fetches, on_event) = (Arc::clone(&fetches), Arc::clone(&on_event));
            async move {
                let answer = respond(&shared, &request, progress, &fetches, &*on_event);
                Ok::<_, Infallible>(answer.await)
            }
        }
    });
    let connection = http().serve_connection(TokioIo::new(stream), service);
    let stalled = async {
        let mut before = progress.bytes();
        loop {
            sleep(STALL_PATIENCE).await;
            let now = progress.bytes();
            if now == before {
                return;
            }
            before = now;
        }
    };
    let ended = tokio::select! {
        ended = connection => ended.is_ok(),
        () = stalled => false,
    };
    match progress.bytes() {
        bytes if ended && bytes > 0 && bytes == shared.length => Connection::Whole,
        0 => Connection::Idle,
        _ => Connection::Broken,
    }
}

async fn respond(
    shared: &Shared,
    request: &Request<Incoming>,
    progress: Arc<Progress>,
    fetches: &AtomicBool,
    on_event: &(dyn Fn(ServerEvent) + Send + Sync),
) -> Response<body::Content> {
    let mut answer = shared
        .terms
        .answer(request.method(), request.uri(), request.headers());
    let mut content = body::Content::Text(Bytes::new());
    let mut length = None;
    match answer.content {
        Content::None => {}
        Content::FileHead => length = Some(shared.length),
        Content::File => {
            fetches.store(true, Ordering::Relaxed);
            let turn = Arc::clone(&shared.source).lock_owned();
            match timeout(TURN_PATIENCE, turn).await {
                Ok(source) => {
                    on_event(ServerEvent::Fetching);
                    content = body::Content::File(FileBody::new(source, shared.length, progress));
                }
                Err(_) => answer = busy(),
            }
        }
        Content::Page | Content::PageHead => {
            if let Some((text, policy)) = &shared.page {
                let policy = policy.clone();
                answer
                    .headers
                    .insert(header::CONTENT_SECURITY_POLICY, policy);
                match answer.content {
                    Content::Page => content = body::Content::Text(text.clone()),
                    _ => length = Some(text.len() as u64),
                }
            }
        }
        Content::Entry => {
            answer.status = shared.entry.redirect(&mut answer.headers);
        }
    }
    if answer.status.is_client_error() || answer.status.is_server_error() {
        on_event(ServerEvent::Refused(answer.status.as_u16()));
        content = body::Content::Text(reason(answer.status));
    }
    let mut response = Response::new(content);
    *response.status_mut() = answer.status;
    let headers = response.headers_mut();
    *headers = answer.headers;
    let is_file = matches!(answer.content, Content::File | Content::FileHead);
    let media = match answer.content {
        _ if !answer.status.is_success() => "text/plain",
        Content::Page | Content::PageHead => "text/html; charset=utf-8",
        _ => "application/octet-stream",
    };
    guard(headers, media);
    if is_file && answer.status.is_success() {
        headers.insert(header::CONTENT_DISPOSITION, shared.disposition.clone());
    }
    if let Some(length) = length {
        headers.insert(header::CONTENT_LENGTH, length.into());
    }
    response
}

/// The file is being fetched by another connection.
fn busy() -> Answer {
    let mut answer = Answer {
        status: StatusCode::SERVICE_UNAVAILABLE,
        content: Content::None,
        headers: HeaderMap::new(),
    };
    let seconds = HeaderValue::from_static("1");
    answer.headers.insert(header::RETRY_AFTER, seconds);
    answer
}

/// Returns a name for the last part of a path: letters, digits, `.`, `_`, `-`, at most 100
/// characters.
fn in_url(name: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let name: String = name
        .chars()
        .map(|c| if safe(c) { c } else { '_' })
        .take(100)
        .collect();
    match name.trim_matches('.') {
        "" => "trace".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::super::listener::{FAILURE_PAUSE, MAX_FAILURES};
    use super::*;
    use std::os::fd::AsFd as _;

    #[tokio::test(start_paused = true)]
    async fn what_takes_no_connection_any_more_ends() {
        let offer = Offer {
            source: Box::new(io::Cursor::new(b"trace".to_vec())),
            name: "trace".to_owned(),
            origin: "https://ui.perfetto.dev".to_owned(),
            page: false,
        };
        let server = Server::bind(0, offer).await.expect("a free port");
        let shared = server.listener.socket.as_fd().try_clone_to_owned();
        let shared = std::net::TcpStream::from(shared.expect("a descriptor"));
        // Linux fails every accept() on a socket that was shut down.
        let shut = shared.shutdown(std::net::Shutdown::Both);
        shut.expect("it is shut down");
        let begin = Instant::now();
        let ended = server.serve(Duration::from_secs(300), |_| {}).await;
        assert!(ended.is_err(), "{ended:?}");
        let borne = FAILURE_PAUSE * MAX_FAILURES;
        let took = begin.elapsed();
        assert!(took >= borne && took < borne * 2, "{took:?}");
    }
}
