//! debuginfod, with a server on the loopback interface that counts requests.

use super::{places_of, reasons};
use crate::symbolize::cache::Cache;
use crate::symbolize::debuginfod::Servers;
use crate::symbolize::file::Knowledge;
use crate::symbolize::find::tests::sample_files::{FULL, ID, NAMES, OTHER, elf, library};
use crate::symbolize::find::{Finder, Found, Place, Places, RejectReason};
use heaptap_base::units::ByteSize;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// End of a response after which the connection stays open.
const STALL: &[u8] = b"HTTP/1.1 200 and then nothing";

/// Server that runs until it is dropped and records every request.
struct Server {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Makes a server that responds to each path with the bytes from `answer`.
    fn new(answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        // The thread ends with the test process.
        std::thread::spawn(move || {
            let mut stalled = Vec::new();
            for stream in listener.incoming().flatten() {
                let path = read_path(&stream);
                log.lock().unwrap().push(path.clone());
                let answer = answer(&path);
                let _ = (&stream).write_all(&answer);
                if answer.ends_with(STALL) {
                    stalled.push(stream);
                }
            }
        });
        Server { url, asked }
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

fn read_path(stream: &TcpStream) -> String {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next().unwrap().unwrap();
    for line in lines {
        if line.unwrap().is_empty() {
            break;
        }
    }
    first.split(' ').nth(1).unwrap().to_owned()
}

fn response(status: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// Search of servers only, with a separate cache.
struct Search {
    cache: tempfile::TempDir,
    urls: Vec<String>,
    largest: u64,
    timeout: Duration,
}

impl Search {
    fn new(urls: &[&str]) -> Self {
        Search {
            cache: tempfile::tempdir().unwrap(),
            urls: urls.iter().map(|&url| url.to_owned()).collect(),
            largest: 1 << 20,
            timeout: Duration::from_secs(20),
        }
    }

    fn finder(&self) -> Finder {
        Finder::new(Places {
            cache: Some(Cache::in_directory(self.cache.path()).unwrap()),
            debuginfod: Some(Servers {
                urls: self.urls.clone(),
                timeout: self.timeout,
                longest: Duration::from_secs(20),
                largest: ByteSize(self.largest),
            }),
            ..Places::default()
        })
    }

    fn find(&self) -> Found {
        self.finder().find(&library("/x/libfoo.so", &ID))
    }
}

/// Returns the attempts at servers only.
fn at_servers(found: &Found) -> Vec<String> {
    let attempts = found.attempts.iter();
    let attempts = attempts.filter(|a| a.place == Place::Debuginfod);
    attempts.map(|a| a.why_not.to_string()).collect()
}

#[test]
fn a_debug_file_is_fetched_once_and_kept() {
    let server = Server::new(|_| response("200 OK", &elf(&ID, FULL)));
    let search = Search::new(&[&server.url]);
    let found = search.find();
    assert_eq!(places_of(&found), [Place::Debuginfod]);
    assert_eq!(found.candidates[0].knowledge, Knowledge::Dwarf);
    assert!(found.candidates[0].verified);
    assert_eq!(*found.candidates[0].open().unwrap(), *elf(&ID, FULL));
    let hex = "ab".repeat(20);
    let expected = format!("/buildid/{hex}/debuginfo");
    assert_eq!(*server.asked.lock().unwrap(), [expected]);
    let again = search.find();
    assert_eq!(places_of(&again), [Place::Cache]);
    assert_eq!(server.asked(), 1);
}

#[test]
fn what_is_missing_is_asked_for_once_in_ten_minutes() {
    let first = Server::new(|_| response("404 Not Found", b"not here"));
    let second = Server::new(|path| match path.ends_with("executable") {
        true => response("200 OK", &elf(&ID, NAMES)),
        false => response("404 Not Found", b""),
    });
    let search = Search::new(&[&first.url, &second.url]);
    let found = search.find();
    // The library itself has at least names.
    assert_eq!(found.candidates[0].knowledge, Knowledge::Symtab);
    assert_eq!(at_servers(&found), ["not found", "not found"]);
    assert_eq!((first.asked(), second.asked()), (2, 2));
    let again = search.find();
    assert_eq!(places_of(&again), [Place::Cache]);
    assert_eq!((first.asked(), second.asked()), (2, 2));
}

#[test]
fn another_file_than_the_one_asked_for_is_not_kept() {
    for wrong in [
        elf(&OTHER, FULL),
        b"<html>login</html>".to_vec(),
        Vec::new(),
    ] {
        let server = Server::new(move |_| response("200 OK", &wrong));
        let found = Search::new(&[&server.url]).find();
        assert!(found.candidates.is_empty());
        let told = at_servers(&found);
        assert!(told[0].starts_with("sent the wrong file"), "{told:?}");
    }
}

#[test]
fn servers_that_fail_are_told_and_not_asked_again() {
    let silent = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let busy = Server::new(|_| response("503 Service Unavailable", b""));
    let cut = Server::new(|_| {
        let mut whole = response("200 OK", &elf(&ID, FULL));
        whole.truncate(whole.len() - 10);
        whole
    });
    let search = Search::new(&[&silent, &busy.url, &cut.url]);
    let finder = search.finder();
    let found = finder.find(&library("/x/libfoo.so", &ID));
    assert!(found.candidates.is_empty());
    let told = at_servers(&found);
    assert_eq!(told.len(), 3);
    assert_eq!(told[1], "returned HTTP status 503");
    assert!(told[2].starts_with("transfer failed"), "{told:?}");
    assert_eq!(
        reasons(&found).iter().filter(|r| **r == "server").count(),
        3
    );
    let found = finder.find(&library("/x/libbar.so", &OTHER));
    assert_eq!(at_servers(&found)[0], "did not respond earlier");
}

#[test]
fn files_have_a_largest_size() {
    for is_told in [true, false] {
        let server = Server::new(move |_| {
            let mut body = elf(&ID, FULL);
            body.resize(5000, 0);
            match is_told {
                true => response("200 OK", &body),
                false => [&b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"[..], &body].concat(),
            }
        });
        let mut search = Search::new(&[&server.url]);
        search.largest = 4999;
        let found = search.find();
        assert!(found.candidates.is_empty());
        assert_eq!(
            at_servers(&found),
            ["file is larger than 4.9 KiB"],
            "{is_told}"
        );
    }
}

#[test]
fn no_server_is_asked_where_a_place_has_the_best() {
    let server = Server::new(|_| response("404 Not Found", b""));
    let search = Search::new(&[&server.url]);
    let root = tempfile::tempdir().unwrap();
    crate::symbolize::find::tests::sample_files::put(root.path(), "libfoo.so", &elf(&ID, FULL));
    let places = Places {
        symbols: vec![root.path().to_owned()],
        cache: Some(Cache::in_directory(search.cache.path()).unwrap()),
        debuginfod: Some(Servers {
            urls: search.urls.clone(),
            timeout: Duration::from_secs(5),
            longest: Duration::from_secs(5),
            largest: ByteSize(1 << 20),
        }),
        ..Places::default()
    };
    let finder = Finder::new(places);
    assert_eq!(
        places_of(&finder.find(&library("/x/libfoo.so", &ID))),
        [Place::Symbols]
    );
    // Without a build ID, no server is queried either.
    let nameless = finder.find(&library("/x/libbar.so", &[]));
    assert!(
        nameless
            .attempts
            .iter()
            .all(|a| a.why_not == RejectReason::NotThere)
    );
    assert_eq!(server.asked(), 0);
}

#[test]
fn servers_that_stop_are_left() {
    let silent = Server::new(|_| STALL.to_vec());
    let stopping = Server::new(|_| {
        let whole = response("200 OK", &elf(&ID, FULL));
        [&whole[..whole.len() - 100], STALL].concat()
    });
    // The second needs enough time to begin, even on a busy machine.
    for (server, timeout, expected) in [
        (silent, 100, "did not respond in time"),
        (stopping, 2000, "stopped sending"),
    ] {
        let mut search = Search::new(&[&server.url]);
        search.timeout = Duration::from_millis(timeout);
        let finder = search.finder();
        let found = finder.find(&library("/x/libfoo.so", &ID));
        assert_eq!(at_servers(&found), [expected]);
        let found = finder.find(&library("/x/libbar.so", &OTHER));
        assert_eq!(at_servers(&found), ["did not respond earlier"]);
        assert_eq!(server.asked(), 1);
    }
}

#[test]
fn a_server_may_lead_to_another_path_but_not_on_and_on() {
    let moved = |to: &str| {
        let head = "HTTP/1.1 302 Found\r\nContent-Length: 0\r\nConnection: close\r\n";
        format!("{head}Location: {to}\r\n\r\n").into_bytes()
    };
    let server = Server::new(move |path| match path {
        "/file" => response("200 OK", &elf(&ID, FULL)),
        _ => moved("/file"),
    });
    assert_eq!(
        places_of(&Search::new(&[&server.url]).find()),
        [Place::Debuginfod]
    );
    let circle = Server::new(move |_| moved("/again"));
    let found = Search::new(&[&circle.url]).find();
    assert_eq!(at_servers(&found), ["too many redirects"]);
}

#[test]
fn an_odd_build_id_and_a_password_go_nowhere() {
    let server = Server::new(|_| response("404 Not Found", b""));
    let url = server.url.replace("http://", "http://me:secret@");
    let search = Search::new(&[&url]);
    for odd in [&[1u8][..], &[7; 65]] {
        search.finder().find(&library("/x/libfoo.so", odd));
    }
    assert_eq!(server.asked(), 0);
    let found = search.find();
    let told = format!("{:?}", found.attempts);
    assert!(
        told.contains(&server.url) && !told.contains("secret"),
        "{told}"
    );
}
