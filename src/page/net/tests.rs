//! Tests of the server over loopback sockets with hand-written requests: those of browsers, and
//! those of clients without access.

use super::{Api, ApiProblem, Ended, Offer, Server, ServerEvent, Site, SitePage};
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

const UI: &str = "https://ui.perfetto.dev";
const PATIENCE: Duration = Duration::from_secs(300);

struct Served {
    ended: JoinHandle<Ended>,
    host: String,
    path: String,
    events: Arc<Mutex<Vec<ServerEvent>>>,
}

async fn serve(source: impl Read + Seek + Send + 'static, page: bool) -> Served {
    let offer = Offer {
        source: Box::new(source),
        name: "my trace</script>.pftrace".to_owned(),
        origin: UI.to_owned(),
        page,
    };
    let server = Server::bind(0, offer).await.expect("a free port");
    let host = server.address().to_string();
    let url = server.page_url().unwrap_or_else(|| server.file_url());
    let path = url
        .strip_prefix(&format!("http://{host}"))
        .expect("its own")
        .to_owned();
    let events: Arc<Mutex<Vec<ServerEvent>>> = Arc::default();
    let ended = tokio::spawn({
        let events = Arc::clone(&events);
        async move {
            let serving = server.serve(PATIENCE, move |event| events.lock().unwrap().push(event));
            serving.await.expect("it takes connections")
        }
    });
    Served {
        ended,
        host,
        path,
        events,
    }
}

impl Served {
    /// Sends a request as it is, and reads until the server closes.
    async fn send(&self, request: &str) -> (String, Vec<u8>) {
        let mut stream = TcpStream::connect(&self.host).await.expect("it listens");
        // A rejected client might be disconnected while it still writes.
        let _ = stream.write_all(request.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
        let body = end.map_or(Vec::new(), |end| answer.split_off(end + 4));
        (String::from_utf8(answer).expect("heads are ASCII"), body)
    }

    async fn ask(&self, method: &str, path: &str, headers: &str) -> (String, Vec<u8>) {
        let host = &self.host;
        let request = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n");
        self.send(&request).await
    }
}

fn trace() -> Vec<u8> {
    (0..1_000_000u32).flat_map(u32::to_le_bytes).collect()
}

#[tokio::test]
async fn the_ui_fetches_the_file_once_and_the_server_ends() {
    let served = serve(Cursor::new(trace()), false).await;
    let ui = format!("Origin: {UI}\r\n");
    let (head, body) = served.ask("HEAD", &served.path, &ui).await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert!(head.contains("content-length: 4000000"), "{head}");
    assert!(body.is_empty());
    let preflight = format!("{ui}Access-Control-Request-Private-Network: true\r\n");
    let (head, _) = served.ask("OPTIONS", &served.path, &preflight).await;
    assert!(head.starts_with("HTTP/1.1 204 "), "{head}");
    assert!(
        head.contains("access-control-allow-private-network: true"),
        "{head}"
    );
    let (head, body) = served.ask("GET", &served.path, &ui).await;
    assert!(
        head.contains(&format!("access-control-allow-origin: {UI}")),
        "{head}"
    );
    assert!(head.contains("cache-control: no-store"), "{head}");
    assert!(head.contains("connection: close"), "{head}");
    assert!(
        served.path.ends_with("/my_trace__script_.pftrace"),
        "{}",
        served.path
    );
    assert!(body == trace(), "{} bytes", body.len());
    assert_eq!(served.ended.await.expect("it ended"), Ended::Fetched);
    assert_eq!(*served.events.lock().unwrap(), [ServerEvent::Fetching]);
    let gone = TcpStream::connect(&served.host).await;
    assert!(gone.is_err(), "the server does not listen any more");
}

#[tokio::test]
async fn the_hostile_get_nothing_and_do_not_end_it() {
    let served = serve(Cursor::new(trace()), false).await;
    let (host, path) = (&served.host, &served.path);
    let up = format!("/../..{path}");
    let encoded = path.replace('/', "%2f");
    for (request, status) in [
        (format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"), "404"),
        (format!("GET {up} HTTP/1.1\r\nHost: {host}\r\n\r\n"), "404"),
        (
            format!("GET /{encoded} HTTP/1.1\r\nHost: {host}\r\n\r\n"),
            "404",
        ),
        (
            format!("GET {path}x HTTP/1.1\r\nHost: {host}\r\n\r\n"),
            "404",
        ),
        (
            format!("GET {path} HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
            "421",
        ),
        (format!("GET {path} HTTP/1.1\r\n\r\n"), "421"),
        (format!("GET {path} HTTP/1.0\r\n\r\n"), "421"),
        (
            format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nOrigin: https://evil.example\r\n\r\n"),
            "403",
        ),
        (
            format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nOrigin: null\r\n\r\n"),
            "403",
        ),
        (
            format!("PUT {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 9\r\n\r\n"),
            "405",
        ),
        ("GET\r\n\r\n".to_owned(), "400"),
        ("\u{0}\u{1}\u{2}\r\n\r\n".to_owned(), "400"),
        (
            format!(
                "GET {path} HTTP/1.1\r\nHost: {host}\r\nX: {}\r\n\r\n",
                "x".repeat(1 << 20)
            ),
            "431",
        ),
        (
            format!(
                "GET {path} HTTP/1.1\r\nHost: {host}\r\n{}\r\n",
                "X: y\r\n".repeat(2000)
            ),
            "431",
        ),
    ] {
        let (head, body) = served.send(&request).await;
        let shown = &request[..request.len().min(100)];
        // A client that is disconnected while sending might receive nothing.
        let refused = head.starts_with(&format!("HTTP/1.1 {status} "))
            || head.starts_with(&format!("HTTP/1.0 {status} "))
            || (status == "431" && head.is_empty());
        assert!(refused, "{shown}: {head}");
        assert!(body.len() < 100, "{shown}: {body:?}");
        assert!(
            !head.contains("access-control-allow-origin"),
            "{shown}: {head}"
        );
    }
    assert!(!served.ended.is_finished());
    let (_, body) = served.ask("GET", path, "").await;
    assert_eq!(body.len(), 4_000_000);
    assert_eq!(served.ended.await.expect("it ended"), Ended::Fetched);
}

#[tokio::test]
async fn a_fetch_that_breaks_off_may_be_tried_again() {
    let served = serve(Cursor::new(trace()), false).await;
    let mut stream = TcpStream::connect(&served.host).await.expect("it listens");
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\n\r\n",
        served.path, served.host
    );
    stream
        .write_all(request.as_bytes())
        .await
        .expect("it is taken");
    let mut some = [0; 1000];
    stream.read_exact(&mut some).await.expect("it begins");
    drop(stream);
    let (_, body) = served.ask("GET", &served.path, "").await;
    assert!(body == trace(), "from the beginning");
    assert_eq!(served.ended.await.expect("it ended"), Ended::Fetched);
}

#[tokio::test(start_paused = true)]
async fn who_sends_slowly_is_cut_off_and_who_never_comes_is_not_waited_for() {
    let served = serve(Cursor::new(trace()), false).await;
    let mut slow: Vec<TcpStream> = Vec::new();
    for _ in 0..30 {
        let mut stream = TcpStream::connect(&served.host).await.expect("it listens");
        stream.write_all(b"GET / HT").await.expect("it is taken");
        slow.push(stream);
    }
    for stream in &mut slow {
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        assert!(answer.len() < 200, "{answer:?}");
    }
    assert_eq!(served.ended.await.expect("it ended"), Ended::TimedOut);
}

#[tokio::test(start_paused = true)]
async fn who_takes_nothing_is_cut_off() {
    let length = 1 << 40;
    let read = Arc::new(AtomicU64::new(0));
    let served = serve(Endless::new(length, &read), false).await;
    let mut stream = TcpStream::connect(&served.host).await.expect("it listens");
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\n\r\n",
        served.path, served.host
    );
    stream
        .write_all(request.as_bytes())
        .await
        .expect("it is taken");
    let mut some = [0; 1000];
    stream.read_exact(&mut some).await.expect("it begins");
    // While a file is read, a paused clock does not advance by itself.
    while !served.ended.is_finished() {
        tokio::time::advance(Duration::from_secs(61)).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(served.ended.await.expect("it ended"), Ended::TimedOut);
    let read = read.load(Ordering::Relaxed);
    assert!(
        read > 0 && read < 64 << 20,
        "{read} bytes were read without a reader"
    );
}

/// A file of zeros that counts what is read of it.
struct Endless {
    at: u64,
    length: u64,
    read: Arc<AtomicU64>,
}

impl Endless {
    fn new(length: u64, read: &Arc<AtomicU64>) -> Endless {
        Endless {
            at: 0,
            length,
            read: Arc::clone(read),
        }
    }
}

impl Read for Endless {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = (self.length - self.at).min(into.len() as u64);
        into[..read as usize].fill(0);
        self.at += read;
        self.read.fetch_add(read, Ordering::Relaxed);
        Ok(read as usize)
    }
}

impl Seek for Endless {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.at = match to {
            SeekFrom::Start(at) => at,
            SeekFrom::End(_) => self.length,
            SeekFrom::Current(_) => self.at,
        };
        Ok(self.at)
    }
}

#[tokio::test]
async fn a_file_that_shrank_is_not_passed_off_as_whole() {
    /// Reports a larger size than it has.
    struct Shrunk(Cursor<Vec<u8>>);
    impl Read for Shrunk {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            Read::read(&mut self.0, into)
        }
    }
    impl Seek for Shrunk {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            let at = self.0.seek(to)?;
            Ok(at + 10)
        }
    }
    // More than the buffer: for a small file, the error might occur before anything is sent.
    let served = serve(Shrunk(Cursor::new(trace())), false).await;
    let (head, body) = served.ask("GET", &served.path, "").await;
    assert!(head.contains("content-length: 4000010"), "{head}");
    assert!(body.len() <= 4_000_000);
    assert!(!served.ended.is_finished());
    served.ended.abort();
}

#[tokio::test]
async fn the_page_hands_the_trace_over() {
    let served = serve(Cursor::new(trace()), true).await;
    let (head, body) = served.ask("GET", &served.path, "").await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert!(head.contains("content-security-policy: default-src 'none'; script-src 'sha256-"));
    let body = String::from_utf8(body).expect("it is UTF-8");
    assert_eq!(
        body.matches("</script>").count(),
        2,
        "a title ends nothing: {body}"
    );
    let file = format!("{}my_trace__script_.pftrace", served.path);
    assert!(body.contains(&format!("\"file\":\"{file}\"")), "{body}");
    let own = format!("Origin: http://{}\r\n", served.host);
    let (head, _) = served.ask("HEAD", &file, &own).await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    let (_, body) = served.ask("GET", &file, "").await;
    assert_eq!(body.len(), 4_000_000);
    assert_eq!(served.ended.await.expect("it ended"), Ended::Fetched);
}

#[tokio::test]
async fn the_address_that_a_browser_is_started_with_leads_on_once() {
    let offer = Offer {
        source: Box::new(Cursor::new(trace())),
        name: "trace".to_owned(),
        origin: UI.to_owned(),
        page: false,
    };
    let mut server = Server::bind(0, offer).await.expect("a free port");
    let file = server.file_url();
    let goal = format!("{UI}/#!/?url={file}");
    let once = server.lead_once(&goal).expect("an address");
    let host = server.address().to_string();
    let path = |url: &str| {
        let path = url
            .strip_prefix(&format!("http://{host}"))
            .expect("its own");
        path.to_owned()
    };
    let secret = path(&file);
    let secret = secret.split('/').nth(1).expect("a part");
    assert!(!once.contains(secret), "{once} names {file}");
    let served = Served {
        path: path(&file),
        host: host.clone(),
        events: Arc::default(),
        ended: tokio::spawn(async move {
            let serving = server.serve(PATIENCE, |_| {});
            serving.await.expect("it takes connections")
        }),
    };
    let (head, _) = served.ask("HEAD", &path(&once), "").await;
    assert!(head.starts_with("HTTP/1.1 405 "), "{head}");
    let (head, body) = served.ask("GET", &path(&once), "").await;
    assert!(head.starts_with("HTTP/1.1 303 "), "{head}");
    assert!(head.contains(&format!("location: {goal}\r\n")), "{head}");
    assert!(head.contains("cache-control: no-store"), "{head}");
    assert!(head.contains("referrer-policy: no-referrer"), "{head}");
    assert!(body.is_empty(), "{body:?}");
    for _ in 0..2 {
        let (head, _) = served.ask("GET", &path(&once), "").await;
        assert!(head.starts_with("HTTP/1.1 404 "), "{head}");
        assert!(!head.contains(secret), "{head}");
    }
    let (_, body) = served.ask("GET", &served.path, "").await;
    assert!(body == trace(), "{} bytes", body.len());
    assert_eq!(served.ended.await.expect("it ended"), Ended::Fetched);
}

#[tokio::test]
async fn a_port_in_use_is_an_error() {
    let offer = || Offer {
        source: Box::new(Cursor::new(vec![1])),
        name: String::new(),
        origin: UI.to_owned(),
        page: false,
    };
    let first = Server::bind(0, offer()).await.expect("a free port");
    assert!(first.file_url().ends_with("/trace"), "{}", first.file_url());
    let second = Server::bind(first.address().port(), offer()).await;
    let error = second.err().expect("it is taken");
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
}

#[tokio::test]
async fn silent_connections_do_not_keep_the_browser_from_a_site() {
    let page = SitePage {
        text: "the page".to_owned(),
        policy: "default-src 'none'".to_owned(),
    };
    let api = Api {
        handler: Arc::new(|_| Err(ApiProblem::NotReady)),
        quick: &[],
    };
    let site = Site::bind(0, page, api).await.expect("a free port");
    let url = site.url();
    let (host, path) = url["http://".len()..].split_once('/').unwrap();
    let serving = tokio::spawn(site.serve(PATIENCE));
    let mut silent = Vec::new();
    for _ in 0..200 {
        silent.push(TcpStream::connect(host).await.expect("it listens"));
    }
    let mut stream = TcpStream::connect(host).await.expect("it listens");
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    // Well before the silent ones are closed for their silence.
    let reading = stream.read_to_string(&mut answer);
    let read = tokio::time::timeout(Duration::from_secs(5), reading).await;
    assert!(read.is_ok(), "no answer");
    assert!(answer.ends_with("the page"), "{answer}");
    serving.abort();
}
