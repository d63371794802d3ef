//! Servers and limits from the environment.

use super::super::cache::MAX_LIBRARIES;
use heaptap_base::units::ByteSize;
use std::ffi::OsString;
use std::time::Duration;

/// Default time limit for the start of a response, as in elfutils.
const TIMEOUT: Duration = Duration::from_secs(90);

/// Maximum size of a fetched file: a larger one would displace all others in the cache.
const MAX_SIZE: u64 = MAX_LIBRARIES / 2;
/// Servers and limits from the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Servers {
    /// `DEBUGINFOD_URLS`, in order, without trailing slashes.
    pub urls: Vec<String>,
    /// `DEBUGINFOD_TIMEOUT`: time limit for the start of a response.
    pub timeout: Duration,
    /// `DEBUGINFOD_MAXTIME`: time limit for a file.
    pub longest: Duration,
    /// `DEBUGINFOD_MAXSIZE`: size limit for a file.
    pub largest: ByteSize,
}

impl Servers {
    /// Reads the environment; `None` if `DEBUGINFOD_URLS` is unset or empty.
    pub fn from_env(get: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        let text = |name: &str| get(name).and_then(|value| value.into_string().ok());
        let urls = text("DEBUGINFOD_URLS")?;
        // Words that are not URLs, such as `ima:enforcing`, are options of elfutils.
        let is_url = |word: &&str| word.starts_with("http://") || word.starts_with("https://");
        let urls: Vec<String> = urls
            .split_whitespace()
            .filter(is_url)
            .map(|url| url.trim_end_matches('/').to_owned())
            .collect();
        if urls.is_empty() {
            return None;
        }
        // 0 means no limit.
        let number = |name: &str| text(name)?.trim().parse::<u64>().ok().filter(|n| *n > 0);
        let timeout = number("DEBUGINFOD_TIMEOUT").map_or(TIMEOUT, Duration::from_secs);
        let longest = number("DEBUGINFOD_MAXTIME").map(Duration::from_secs);
        Some(Servers {
            urls,
            timeout,
            longest: longest.unwrap_or(timeout.saturating_mul(10)),
            largest: ByteSize(number("DEBUGINFOD_MAXSIZE").map_or(MAX_SIZE, |n| n.min(MAX_SIZE))),
        })
    }
}

/// Reason why a server did not return a file.
#[derive(Debug, thiserror::Error)]
pub(in crate::symbolize) enum Refusal {
    /// The server does not have the file.
    #[cfg_attr(
        not(feature = "debuginfod"),
        expect(dead_code, reason = "no server is queried")
    )]
    #[error("does not have the file")]
    Missing,
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

/// Returns a server's URL for messages: without its user and password.
pub fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or(authority);
    format!("{scheme}://{host}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(variables: &[(&str, &str)]) -> Option<Servers> {
        Servers::from_env(|name| {
            let found = variables.iter().find(|(n, _)| *n == name);
            found.map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn without_urls_there_are_no_servers() {
        assert_eq!(servers(&[]), None);
        assert_eq!(servers(&[("DEBUGINFOD_URLS", " ")]), None);
        assert_eq!(
            servers(&[("DEBUGINFOD_URLS", "ima:enforcing file:///x")]),
            None
        );
    }

    #[test]
    fn passwords_in_urls_are_not_told() {
        for (url, expected) in [
            ("https://me:secret@a.example/x@y", "https://a.example/x@y"),
            ("https://me:se@cret@a.example:8", "https://a.example:8"),
            ("http://a.example/x", "http://a.example/x"),
        ] {
            assert_eq!(without_password(url), expected);
        }
    }

    #[test]
    fn limits_are_those_of_the_environment() {
        let found = servers(&[
            (
                "DEBUGINFOD_URLS",
                "https://a.example/ http://b.example:8002",
            ),
            ("DEBUGINFOD_TIMEOUT", "7"),
            ("DEBUGINFOD_MAXSIZE", "1000"),
            ("DEBUGINFOD_MAXTIME", "0"),
        ])
        .unwrap();
        assert_eq!(found.urls, ["https://a.example", "http://b.example:8002"]);
        assert_eq!(found.timeout, Duration::from_secs(7));
        assert_eq!(found.longest, Duration::from_secs(70));
        assert_eq!(found.largest, ByteSize(1000));
        let default = servers(&[
            ("DEBUGINFOD_URLS", "http://a"),
            ("DEBUGINFOD_TIMEOUT", "soon"),
        ]);
        assert_eq!(default.unwrap().timeout, TIMEOUT);
    }
}
