//! A site on loopback: one page, and the requests of its script. It answers until it was idle for a
//! while.
//!
//! | path | answer |
//! |---|---|
//! | `/ENTRY` | redirects the first request to the page; browsers are started with this address |
//! | `/SECRET/` | the page |
//! | `/SECRET/api/OPERATION?NAME=VALUE&…` | JSON; needs the header `X-Heaptap: 1` |
//!
//! The header makes a browser ask before a script of another site sends such a request, and the answer
//! is no.

use super::answer::{is_for, is_origin};
use super::body::Content;
use super::listener::{Connections, Listener, Once, guard, http, no_connections, reason, secret};
use heaptap_base::error::Failure;
use heaptap_base::parallel::lock;
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until};

/// Maximum number of connections: a browser keeps six.
const MAX_CONNECTIONS: usize = 64;
/// Maximum number of requests that are answered at the same time.
const MAX_ANSWERS: usize = 4;
/// Time that a connection may be open: longer than any answer takes.
const CONNECTION_LIMIT: Duration = Duration::from_secs(600);

/// Page of a site, and the policy under which a browser shows it.
pub struct SitePage {
    pub text: String,
    /// Content-Security-Policy.
    pub policy: String,
}

/// Request of the page's script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiRequest {
    pub operation: String,
    /// Names and values, decoded, in their order.
    pub query: Vec<(String, String)>,
}

impl ApiRequest {
    /// Returns the value of a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Reason why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApiProblem {
    /// The operation or the object does not exist.
    NotFound(String),
    /// A value is not valid.
    Invalid(String),
    /// The page asks too early.
    NotReady,
    /// Another heap is shown meanwhile.
    OtherHeap,
}

/// Answers a request with JSON. Called on a blocking thread.
pub type ApiHandler = Arc<dyn Fn(&ApiRequest) -> Result<Vec<u8>, ApiProblem> + Send + Sync>;

/// Answers to the requests of a site.
pub struct Api {
    pub handler: ApiHandler,
    /// Operations that take no time, and do not wait for others.
    pub quick: &'static [&'static str],
}

/// A listening site that has not answered yet.
pub struct Site {
    listener: Listener,
    shared: Shared,
}

struct Shared {
    rules: Rules,
    page: Bytes,
    policy: HeaderValue,
    api: Api,
    entry: Once,
    answers: Arc<Semaphore>,
    used: Mutex<Instant>,
}

impl Site {
    /// Listens on 127.0.0.1. With port 0, the system chooses one.
    ///
    /// # Errors
    /// Returns an error if the port is in use.
    pub async fn bind(port: u16, page: SitePage, api: Api) -> io::Result<Site> {
        let listener = Listener::open(port).await?;
        let rules = Rules {
            host: listener.address.to_string(),
            page: format!("/{}/", secret()?),
            entry: format!("/{}", secret()?),
        };
        let url = format!("http://{}{}", listener.address, rules.page);
        Ok(Site {
            listener,
            shared: Shared {
                page: Bytes::from(page.text),
                policy: HeaderValue::try_from(page.policy).map_err(io::Error::other)?,
                api,
                entry: Once::to(&url)?,
                answers: Arc::new(Semaphore::new(MAX_ANSWERS)),
                used: Mutex::new(Instant::now()),
                rules,
            },
        })
    }

    /// Returns the address of the page.
    pub fn url(&self) -> String {
        format!("http://{}{}", self.listener.address, self.shared.rules.page)
    }

    /// Returns an address that redirects only its first request to the page. All users of a computer
    /// see the arguments of its programs, so browsers are started with this address.
    pub fn entry_url(&self) -> String {
        format!(
            "http://{}{}",
            self.listener.address, self.shared.rules.entry
        )
    }

    /// Answers until there was no request for `idle`, and none is being answered.
    ///
    /// # Errors
    /// Returns an error if accepting connections fails repeatedly.
    pub async fn serve(self, idle: Duration) -> Result<(), Failure> {
        let (mut listener, shared) = (self.listener, Arc::new(self.shared));
        let mut connections = Connections::new();
        loop {
            let end = *lock(&shared.used) + idle;
            tokio::select! {
                accepted = listener.accept(), if connections.open.len() < MAX_CONNECTIONS => {
                    let stream = accepted.map_err(|error| no_connections(&error))?;
                    connections.spawn(|asked| attend(stream, Arc::clone(&shared), asked));
                }
                Some(_) = connections.open.join_next() => {}
                () = sleep_until(end) => {
                    if shared.answers.available_permits() < MAX_ANSWERS {
                        *lock(&shared.used) = Instant::now();
                    }
                    if *lock(&shared.used) + idle <= Instant::now() {
                        return Ok(());
                    }
                }
            }
        }
    }
}

/// Answers the request of a connection; `asked` becomes true when it has come.
async fn attend(stream: tokio::net::TcpStream, shared: Arc<Shared>, asked: Arc<AtomicBool>) {
    let service = service_fn(move |request: Request<Incoming>| {
        asked.store(true, Ordering::Relaxed);
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(respond(&shared, &request).await) }
    });
    let connection = http().serve_connection(TokioIo::new(stream), service);
    // A browser that hangs up is no error.
    let _ended = tokio::time::timeout(CONNECTION_LIMIT, connection).await;
}

async fn respond(shared: &Arc<Shared>, request: &Request<Incoming>) -> Response<Content> {
    let target = shared
        .rules
        .check(request.method(), request.uri(), request.headers());
    let (status, media, body) = match target {
        Err(status) => (status, "text/plain", reason(status)),
        Ok(Target::Entry) => {
            let mut response = response(StatusCode::SEE_OTHER, "text/plain", Bytes::new());
            let status = shared.entry.redirect(response.headers_mut());
            if status == StatusCode::SEE_OTHER {
                return response;
            }
            (status, "text/plain", reason(status))
        }
        Ok(Target::Page) => {
            *lock(&shared.used) = Instant::now();
            let mut response = response(
                StatusCode::OK,
                "text/html; charset=utf-8",
                shared.page.clone(),
            );
            let policy = shared.policy.clone();
            response
                .headers_mut()
                .insert(header::CONTENT_SECURITY_POLICY, policy);
            return response;
        }
        Ok(Target::Api(request)) => {
            *lock(&shared.used) = Instant::now();
            let (status, body) = answer(shared, request).await;
            *lock(&shared.used) = Instant::now();
            (status, "application/json", body)
        }
    };
    response(status, media, body)
}

async fn answer(shared: &Arc<Shared>, request: ApiRequest) -> (StatusCode, Bytes) {
    let is_quick = shared.api.quick.contains(&request.operation.as_str());
    let turn = match is_quick {
        true => None,
        // It is never closed.
        false => Arc::clone(&shared.answers).acquire_owned().await.ok(),
    };
    let handler = Arc::clone(&shared.api.handler);
    let work = move || {
        // The work goes on if the browser hangs up, so the turn ends with the work.
        let _turn = turn;
        handler(&request)
    };
    let answered = tokio::task::spawn_blocking(work).await;
    let (status, problem) = match answered {
        Ok(Ok(body)) => return (StatusCode::OK, body.into()),
        Ok(Err(ApiProblem::NotFound(what))) => (StatusCode::NOT_FOUND, what),
        Ok(Err(ApiProblem::Invalid(what))) => (StatusCode::BAD_REQUEST, what),
        Ok(Err(ApiProblem::NotReady)) => (
            StatusCode::SERVICE_UNAVAILABLE,
            "the heap is being read".to_owned(),
        ),
        Ok(Err(ApiProblem::OtherHeap)) => {
            (StatusCode::CONFLICT, "another heap is shown".to_owned())
        }
        Err(_) => (
            StatusCode::INTERNAL_SERVER_ERROR,
            "heaptap failed to answer; this is a bug".to_owned(),
        ),
    };
    let body = serde_json::json!({ "error": problem }).to_string();
    (status, body.into())
}

fn response(status: StatusCode, media: &'static str, body: Bytes) -> Response<Content> {
    let mut response = Response::new(Content::Text(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    guard(headers, media);
    headers.insert(OPENER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

/// What a request is for.
#[derive(Debug, PartialEq, Eq)]
enum Target {
    Page,
    Entry,
    Api(ApiRequest),
}

/// Who is answered: a function of the request head only, so that hostile requests can be tested
/// without a socket.
#[derive(Debug)]
struct Rules {
    /// `127.0.0.1:PORT`, as in requests of a browser for this server.
    host: String,
    /// Path of the page.
    page: String,
    /// Path of the redirection.
    entry: String,
}

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const OWN_HEADER: HeaderName = HeaderName::from_static("x-heaptap");
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

impl Rules {
    fn check(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<Target, StatusCode> {
        if !is_for(&self.host, uri, headers) {
            return Err(StatusCode::MISDIRECTED_REQUEST);
        }
        let operation = uri
            .path()
            .strip_prefix(self.page.as_str())
            .and_then(|rest| rest.strip_prefix("api/"));
        let target = match (uri.path(), operation) {
            (path, _) if path == self.page => Target::Page,
            (path, _) if path == self.entry && uri.query().is_none() => Target::Entry,
            (_, Some(operation)) => Target::Api(ApiRequest {
                operation: operation.to_owned(),
                query: parsed(uri.query().unwrap_or("")).ok_or(StatusCode::BAD_REQUEST)?,
            }),
            _ => return Err(StatusCode::NOT_FOUND),
        };
        if method != Method::GET {
            return Err(StatusCode::METHOD_NOT_ALLOWED);
        }
        let is_own = |origin| is_origin(origin, &self.host);
        let site = headers.get(FETCH_SITE).map(HeaderValue::as_bytes);
        let is_permitted = match &target {
            // Browsers that open an address send no origin.
            Target::Page | Target::Entry => headers.get(header::ORIGIN).is_none(),
            Target::Api(_) => {
                headers.get_all(header::ORIGIN).iter().all(is_own)
                    && site.is_none_or(|site| site == b"same-origin")
                    && headers.get(OWN_HEADER).is_some_and(|value| value == "1")
            }
        };
        match is_permitted {
            true => Ok(target),
            false => Err(StatusCode::FORBIDDEN),
        }
    }
}

/// Parses a query; `None` if it is not percent-encoded UTF-8.
fn parsed(query: &str) -> Option<Vec<(String, String)>> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decoded(name)?, decoded(value)?))
        })
        .collect()
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                (digit()? << 4 | digit()?) as u8
            }
            b'+' => b' ',
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        Rules {
            host: "127.0.0.1:9001".to_owned(),
            page: "/secret/".to_owned(),
            entry: "/once".to_owned(),
        }
    }

    fn check(method: &str, target: &str, headers: &[(&str, &str)]) -> Result<Target, u16> {
        let rules = rules();
        let mut map = HeaderMap::new();
        let host = ("host", rules.host.as_str());
        let has_host = headers.iter().any(|h| h.0 == "host");
        for (name, value) in headers.iter().chain((!has_host).then_some(&host)) {
            let name: HeaderName = name.parse().unwrap();
            map.append(name, value.parse().unwrap());
        }
        let method: Method = method.parse().unwrap();
        let checked = rules.check(&method, &target.parse().unwrap(), &map);
        checked.map_err(|status| status.as_u16())
    }

    const OWN: (&str, &str) = ("x-heaptap", "1");

    #[test]
    fn the_page_and_its_script_are_answered() {
        assert_eq!(check("GET", "/secret/", &[]), Ok(Target::Page));
        assert_eq!(check("GET", "/once", &[]), Ok(Target::Entry));
        let request = ApiRequest {
            operation: "objects".to_owned(),
            query: vec![
                ("class".to_owned(), "a.B<ü> &+=".to_owned()),
                ("offset".to_owned(), "10".to_owned()),
                ("all".to_owned(), String::new()),
            ],
        };
        let target = "/secret/api/objects?class=a.B%3C%C3%BC%3E+%26%2B%3D&offset=10&all";
        for headers in [
            &[OWN][..],
            &[OWN, ("origin", "http://127.0.0.1:9001")],
            &[OWN, ("sec-fetch-site", "same-origin")],
        ] {
            let checked = check("GET", target, headers);
            assert_eq!(checked, Ok(Target::Api(request.clone())), "{headers:?}");
        }
        assert_eq!(request.get("offset"), Some("10"));
        assert_eq!(request.get("limit"), None);
    }

    #[test]
    fn nobody_else_learns_anything() {
        let evil = ("origin", "https://evil.example");
        for (method, target, headers, status) in [
            ("GET", "/", &[][..], 404),
            ("GET", "/secret", &[], 404),
            ("GET", "/secret/other", &[OWN], 404),
            ("GET", "//secret/", &[], 404),
            ("GET", "/once?x", &[], 404),
            ("GET", "/secret/", &[evil], 403),
            ("GET", "/once", &[evil], 403),
            ("GET", "/secret/api/meta", &[], 403),
            ("GET", "/secret/api/meta", &[("x-heaptap", "2")], 403),
            ("GET", "/secret/api/meta", &[OWN, evil], 403),
            ("GET", "/secret/api/meta", &[OWN, ("origin", "null")], 403),
            (
                "GET",
                "/secret/api/meta",
                &[OWN, ("origin", "http://127.0.0.1:9002")],
                403,
            ),
            (
                "GET",
                "/secret/api/meta",
                &[OWN, ("sec-fetch-site", "cross-site")],
                403,
            ),
            (
                "GET",
                "/secret/api/meta",
                &[OWN, ("sec-fetch-site", "same-site")],
                403,
            ),
            ("OPTIONS", "/secret/api/meta", &[OWN], 405),
            ("POST", "/secret/api/meta", &[OWN], 405),
            ("HEAD", "/secret/", &[], 405),
            ("GET", "/secret/", &[("host", "evil.example")], 421),
            ("GET", "/secret/", &[("host", "localhost:9001")], 421),
            ("GET", "http://evil.example/secret/", &[], 421),
            (
                "GET",
                "/secret/",
                &[("host", "127.0.0.1:9001"), ("host", "x")],
                421,
            ),
            ("GET", "/secret/api/meta?a=%", &[OWN], 400),
            ("GET", "/secret/api/meta?a=%ff", &[OWN], 400),
            ("GET", "/secret/api/meta?%zz=1", &[OWN], 400),
        ] {
            assert_eq!(
                check(method, target, headers),
                Err(status),
                "{method} {target} {headers:?}"
            );
        }
    }
}
