//! Debug files from debuginfod servers, for those who name some in `DEBUGINFOD_URLS`: without
//! it no socket is ever opened. Where their answers rank among other files is for the search.
//!
//! One request a file and server, `GET <url>/buildid/<hex>/debuginfo` (elfutils'
//! debuginfod(8)), no retries. What comes is kept in the cache only if it has the build ID that
//! was asked for. A server that does not answer is not asked again by this process; that it
//! does not have a file is remembered for ten minutes.

use super::cache::MOST_LIBRARIES;
use heaptap_model::units::ByteSize;
use std::ffi::OsString;
use std::time::Duration;

#[cfg_attr(not(feature = "debuginfod"), path = "no_client.rs")]
mod client;

pub(super) use client::Client;

/// How long a server may take to begin, by default. elfutils' default too.
const TIMEOUT: Duration = Duration::from_secs(90);
/// No larger file is fetched: it would leave the cache no room for another.
const LARGEST: u64 = MOST_LIBRARIES / 2;
/// The servers that an environment names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Servers {
    /// `DEBUGINFOD_URLS`, in order, without a slash at the end.
    pub urls: Vec<String>,
    /// `DEBUGINFOD_TIMEOUT`: how long a server may take to begin.
    pub timeout: Duration,
    /// `DEBUGINFOD_MAXTIME`: how long a file may take.
    pub longest: Duration,
    /// `DEBUGINFOD_MAXSIZE`: no larger file is fetched.
    pub largest: ByteSize,
}

impl Servers {
    /// `None` where `DEBUGINFOD_URLS` is not set or empty.
    pub fn from_env(get: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        let text = |name: &str| get(name).and_then(|value| value.into_string().ok());
        let urls = text("DEBUGINFOD_URLS")?;
        // Words that are no URL, such as `ima:enforcing`, tell elfutils other things.
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
            largest: ByteSize(number("DEBUGINFOD_MAXSIZE").map_or(LARGEST, |n| n.min(LARGEST))),
        })
    }
}

/// Why a server gave no file.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    /// It does not have it.
    #[cfg_attr(
        not(feature = "debuginfod"),
        expect(dead_code, reason = "none is asked")
    )]
    #[error("does not have it")]
    Missing,
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

/// A server's URL as it may be told: without the user and the password in it.
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
