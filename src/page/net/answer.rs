//! Answers to requests: a function of the request head only, so that hostile requests can be tested
//! without a socket.

use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, StatusCode, Uri};

/// Offered files, and permitted readers.
#[derive(Debug, Clone)]
pub(super) struct Terms {
    /// `127.0.0.1:PORT`, as in requests of a browser for this server.
    pub host: String,
    /// Path of the file.
    pub file: String,
    /// Path of the page, if there is one.
    pub page: Option<String>,
    /// Path that redirects one request to the page that fetches the file, if there is one.
    pub entry: Option<String>,
    /// Origin that can read the file, besides the server's own page.
    pub origin: HeaderValue,
}

/// Content of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// Empty, or a one-word reason.
    None,
    File,
    /// Only the headers of the file.
    FileHead,
    Page,
    /// Only the headers of the page.
    PageHead,
    /// The redirection target, for the first request.
    Entry,
}

/// An answer without its body.
#[derive(Debug)]
pub(super) struct Answer {
    pub status: StatusCode,
    pub content: Content,
    pub headers: HeaderMap,
}

const REQUEST_PRIVATE: HeaderName =
    HeaderName::from_static("access-control-request-private-network");
const ALLOW_PRIVATE: HeaderName = HeaderName::from_static("access-control-allow-private-network");
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, OPTIONS");

impl Terms {
    /// Answers the head of a request.
    pub(super) fn answer(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Answer {
        let refuse = |status| Answer {
            status,
            content: Content::None,
            headers: HeaderMap::new(),
        };
        if !is_for(&self.host, uri, headers) {
            return refuse(StatusCode::MISDIRECTED_REQUEST);
        }
        let is_file = uri.path() == self.file && uri.query().is_none();
        let is_page = self.page.as_deref() == Some(uri.path()) && uri.query().is_none();
        let is_entry = self.entry.as_deref() == Some(uri.path()) && uri.query().is_none();
        if !is_file && !is_page && !is_entry {
            return refuse(StatusCode::NOT_FOUND);
        }
        let origin = headers.get(header::ORIGIN);
        if is_entry {
            // Browsers that open an address send no origin, so this is a script.
            return match (method, origin) {
                (_, Some(_)) => refuse(StatusCode::FORBIDDEN),
                (&Method::GET, None) => Answer {
                    content: Content::Entry,
                    ..refuse(StatusCode::SEE_OTHER)
                },
                (_, None) => refuse(StatusCode::METHOD_NOT_ALLOWED),
            };
        }
        let several = headers.get_all(header::ORIGIN).iter().nth(1).is_some();
        let from_ui = is_file && origin == Some(&self.origin);
        let own_origin =
            |origin: &HeaderValue| self.page.is_some() && is_origin(origin, &self.host);
        if several || origin.is_some_and(|origin| !from_ui && !own_origin(origin)) {
            return refuse(StatusCode::FORBIDDEN);
        }
        let (status, content) = match (method, is_file) {
            (&Method::GET, true) => (StatusCode::OK, Content::File),
            (&Method::HEAD, true) => (StatusCode::OK, Content::FileHead),
            (&Method::GET, false) => (StatusCode::OK, Content::Page),
            (&Method::HEAD, false) => (StatusCode::OK, Content::PageHead),
            (&Method::OPTIONS, _) => (StatusCode::NO_CONTENT, Content::None),
            _ => (StatusCode::METHOD_NOT_ALLOWED, Content::None),
        };
        let mut sent = HeaderMap::new();
        if status == StatusCode::METHOD_NOT_ALLOWED || method == Method::OPTIONS {
            sent.insert(header::ALLOW, METHODS);
        }
        if from_ui {
            sent.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, self.origin.clone());
            if method == Method::OPTIONS {
                sent.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
                if headers.get(REQUEST_PRIVATE).is_some_and(|v| v == "true") {
                    sent.insert(ALLOW_PRIVATE, HeaderValue::from_static("true"));
                }
            }
        }
        sent.insert(header::VARY, HeaderValue::from_static("Origin"));
        Answer {
            status,
            content,
            headers: sent,
        }
    }
}

/// Returns whether a request is for this host. Another name for its address is an attempt to imitate its
/// site.
pub(super) fn is_for(host: &str, uri: &Uri, headers: &HeaderMap) -> bool {
    only(headers, header::HOST).is_some_and(|named| named == host)
        && uri.authority().is_none_or(|named| named.as_str() == host)
}

/// Returns whether an origin is the site of a host.
pub(super) fn is_origin(origin: &HeaderValue, host: &str) -> bool {
    origin.as_bytes().strip_prefix(b"http://") == Some(host.as_bytes())
}

/// Returns the value of a header that occurs once.
fn only(headers: &HeaderMap, name: HeaderName) -> Option<&HeaderValue> {
    let mut all = headers.get_all(name).iter();
    all.next().filter(|_| all.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    const UI: &str = "https://ui.perfetto.dev";

    fn terms(page: bool) -> Terms {
        Terms {
            host: "127.0.0.1:9001".to_owned(),
            file: "/secret/trace".to_owned(),
            page: page.then(|| "/secret/".to_owned()),
            entry: Some("/once".to_owned()),
            origin: HeaderValue::from_static(UI),
        }
    }

    fn ask(terms: &Terms, method: &str, target: &str, headers: &[(&str, &str)]) -> Answer {
        let mut map = HeaderMap::new();
        let host = ("host", terms.host.as_str());
        let has_host = headers.iter().any(|h| h.0 == "host");
        for (name, value) in headers.iter().chain((!has_host).then_some(&host)) {
            let name: HeaderName = name.parse().unwrap();
            map.append(name, value.parse().unwrap());
        }
        let method: Method = method.parse().unwrap();
        terms.answer(&method, &target.parse().unwrap(), &map)
    }

    #[test]
    fn the_ui_is_given_the_file() {
        let terms = terms(false);
        let answer = ask(&terms, "GET", "/secret/trace", &[("origin", UI)]);
        assert_eq!(
            (answer.status.as_u16(), answer.content),
            (200, Content::File)
        );
        assert_eq!(answer.headers["access-control-allow-origin"], UI);
        let answer = ask(&terms, "HEAD", "/secret/trace", &[("origin", UI)]);
        assert_eq!(answer.content, Content::FileHead);
        let preflight = [
            ("origin", UI),
            ("access-control-request-method", "GET"),
            ("access-control-request-private-network", "true"),
        ];
        let answer = ask(&terms, "OPTIONS", "/secret/trace", &preflight);
        assert_eq!(answer.status.as_u16(), 204);
        assert_eq!(
            answer.headers["access-control-allow-private-network"],
            "true"
        );
        assert_eq!(
            answer.headers["access-control-allow-methods"],
            "GET, HEAD, OPTIONS"
        );
    }

    #[test]
    fn nobody_else_learns_anything() {
        let terms = terms(false);
        for (method, target, headers, status) in [
            ("GET", "/", &[][..], 404),
            ("GET", "/secret/", &[], 404),
            ("GET", "/secret/trace?x", &[], 404),
            ("GET", "/secret/../secret/trace", &[], 404),
            ("GET", "/secret%2ftrace", &[], 404),
            ("GET", "//secret/trace", &[], 404),
            ("GET", "/secret/trace/", &[], 404),
            (
                "GET",
                "/secret/trace",
                &[("origin", "https://evil.example")],
                403,
            ),
            ("GET", "/secret/trace", &[("origin", "null")], 403),
            (
                "GET",
                "/secret/trace",
                &[("origin", "http://127.0.0.1:9001")],
                403,
            ),
            (
                "GET",
                "/secret/trace",
                &[("origin", UI), ("origin", UI)],
                403,
            ),
            (
                "OPTIONS",
                "/secret/trace",
                &[("origin", "https://evil.example")],
                403,
            ),
            (
                "GET",
                "/secret/trace",
                &[("host", "evil.example:9001")],
                421,
            ),
            ("GET", "/secret/trace", &[("host", "localhost:9001")], 421),
            ("GET", "/secret/trace", &[("host", "127.0.0.1")], 421),
            (
                "GET",
                "/secret/trace",
                &[("host", "127.0.0.1:9001"), ("host", "x")],
                421,
            ),
            ("GET", "http://evil.example/secret/trace", &[], 421),
            ("POST", "/secret/trace", &[], 405),
            ("DELETE", "/secret/trace", &[("origin", UI)], 405),
            ("TRACE", "/secret/trace", &[], 405),
            ("GET", "/once/", &[], 404),
            ("GET", "/once?x", &[], 404),
            ("GET", "/once", &[("origin", "https://evil.example")], 403),
            ("GET", "/once", &[("origin", UI)], 403),
            ("GET", "/once", &[("host", "evil.example:9001")], 421),
            ("HEAD", "/once", &[], 405),
            ("OPTIONS", "/once", &[], 405),
        ] {
            let answer = ask(&terms, method, target, headers);
            assert_eq!(
                answer.status.as_u16(),
                status,
                "{method} {target} {headers:?}"
            );
            assert_eq!(answer.content, Content::None, "{method} {target}");
            let allowed = answer.headers.get("access-control-allow-origin");
            assert!(status == 405 || allowed.is_none(), "{method} {target}");
        }
    }

    #[test]
    fn the_entry_leads_on_whoever_opens_it() {
        let answer = ask(&terms(true), "GET", "/once", &[]);
        assert_eq!(
            (answer.status.as_u16(), answer.content),
            (303, Content::Entry)
        );
        assert!(answer.headers.is_empty());
    }

    #[test]
    fn our_own_page_may_fetch_and_others_may_not_read_it() {
        let terms = terms(true);
        let status = |target: &str, origin: &str| {
            ask(&terms, "GET", target, &[("origin", origin)])
                .status
                .as_u16()
        };
        assert_eq!(ask(&terms, "GET", "/secret/", &[]).content, Content::Page);
        assert_eq!(
            ask(&terms, "HEAD", "/secret/", &[]).content,
            Content::PageHead
        );
        assert_eq!(status("/secret/trace", "http://127.0.0.1:9001"), 200);
        assert_eq!(status("/secret/trace", "http://127.0.0.1:9002"), 403);
        assert_eq!(status("/secret/", UI), 403);
    }
}
