//! `heaptap open` as a program: its output, the pages for a browser, its exit codes.

use crate::exports::{command, fixture, heaptap};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};

/// A running `heaptap open`, and its first line of output.
fn open(directory: &Path, arguments: &[&str]) -> (Child, String) {
    let mut child = command(directory)
        .arg("open")
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut line = String::new();
    let stdout = child.stdout.as_mut().expect("it is a pipe");
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    (child, line.trim_end().to_owned())
}

fn end(mut child: Child) -> (Option<i32>, String) {
    let mut told = String::new();
    let stderr = child.stderr.take();
    let status = child.wait().expect("it ends");
    if let Some(mut stderr) = stderr {
        stderr.read_to_string(&mut told).expect("it is UTF-8");
    }
    (status.code(), told)
}

/// Fetches like a page of `origin`.
fn get(url: &str, origin: Option<&str>) -> (String, Vec<u8>) {
    let rest = url.strip_prefix("http://").expect("plain HTTP");
    let (host, path) = rest.split_once('/').expect("a path");
    let mut stream = TcpStream::connect(host).expect("it listens");
    let origin = origin.map_or(String::new(), |origin| format!("Origin: {origin}\r\n"));
    write!(
        stream,
        "GET /{path} HTTP/1.1\r\nHost: {host}\r\n{origin}\r\n"
    )
    .expect("it is taken");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("it answers");
    let end = answer
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .expect("a head");
    let body = answer.split_off(end + 4);
    (String::from_utf8(answer).expect("heads are ASCII"), body)
}

#[test]
fn a_trace_is_given_to_the_ui_once() {
    let directory = tempfile::tempdir().expect("a folder");
    let input = fixture("conversions/c_cont.pftrace");
    let path = input.to_string_lossy();
    // The UI fetches from a fixed port that only one process can use, so this uses another.
    let ui = "http://127.0.0.1:10000";
    let (child, url) = open(
        directory.path(),
        &[&path, "--print-url", "--port", "0", "--ui", ui],
    );
    let (head, page) = get(&url, None);
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    let page = String::from_utf8(page).expect("it is UTF-8");
    let file = page
        .split("\"file\":\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next());
    let host = url.split('/').nth(2).expect("a host");
    let trace_url = format!("http://{host}{}", file.expect("it names the trace"));
    let (head, _) = get(&trace_url, Some("https://evil.example"));
    assert!(head.starts_with("HTTP/1.1 403 "), "{head}");
    let (head, body) = get(&trace_url, Some(ui));
    assert!(
        head.contains(&format!("access-control-allow-origin: {ui}")),
        "{head}"
    );
    assert!(
        body == std::fs::read(&input).expect("it can be read"),
        "byte for byte"
    );
    let (code, told) = end(child);
    assert_eq!(code, Some(0), "{told}");
}

#[test]
#[ignore = "needs port 9001 of this computer: tests/run.sh runs it"]
fn given_port_9001_the_uis_own_is_named_as_its_policy_has_it() {
    let directory = tempfile::tempdir().expect("a folder");
    let input = fixture("conversions/c_cont.pftrace");
    let path = input.to_string_lossy();
    let (child, line) = open(directory.path(), &[&path, "--print-url", "--timeout", "1h"]);
    if line.is_empty() {
        panic!("{:?}", end(child));
    }
    let trace = line
        .strip_prefix("https://ui.perfetto.dev/#!/?url=")
        .expect("the UI is opened");
    assert!(trace.starts_with("http://127.0.0.1:9001/"), "{trace}");
    assert!(trace.ends_with("/c_cont.pftrace"), "{trace}");
    let busy = heaptap(directory.path(), &["open", &path, "--print-url", "--json"]);
    let document: serde_json::Value = serde_json::from_slice(&busy.stdout).expect("a document");
    assert_eq!(document["error"]["kind"], "port-busy");
    assert_eq!(busy.status.code(), Some(11));
    let (_, body) = get(trace, Some("https://ui.perfetto.dev"));
    assert!(!body.is_empty());
    let (code, told) = end(child);
    assert_eq!(code, Some(0), "{told}");
}

#[test]
fn whoever_holds_many_idle_connections_keeps_nobody_from_the_trace() {
    let directory = tempfile::tempdir().expect("a folder");
    let input = fixture("conversions/c_cont.pftrace");
    let path = input.to_string_lossy();
    for many in [16, 100] {
        let arguments = [&path, "--print-url", "--page", "--timeout", "1h"];
        let (child, url) = open(directory.path(), &arguments);
        let host = url.split('/').nth(2).expect("a host");
        let connect = |_| TcpStream::connect(host).expect("it listens");
        let mut idle: Vec<TcpStream> = (0..many).map(connect).collect();
        let (head, page) = get(&url, None);
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        // The timeout is not the cause: it would also have cut off the last of them.
        let last = idle.last_mut().expect("a connection");
        last.set_nonblocking(true).expect("it can be asked");
        let state = last.read(&mut [0]);
        let waits = |error: &std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
        assert!(state.as_ref().is_err_and(waits), "{many}: {state:?}");
        let page = String::from_utf8(page).expect("it is UTF-8");
        let file = page
            .split("\"file\":\"")
            .nth(1)
            .and_then(|rest| rest.split('"').next());
        let (_, body) = get(&format!("http://{host}{}", file.expect("a file")), None);
        assert!(body == std::fs::read(&input).expect("it can be read"));
        let (code, told) = end(child);
        assert_eq!(code, Some(0), "{told}");
    }
}

#[test]
fn who_does_not_come_is_not_waited_for() {
    let directory = tempfile::tempdir().expect("a folder");
    let input = fixture("conversions/c_cont.pftrace");
    let path = input.to_string_lossy();
    let arguments = ["open", &path, "--print-url", "--page", "--timeout", "10ms"];
    let output = heaptap(directory.path(), &arguments);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(12), "{told}");
    assert!(
        told.contains("serving until the trace is fetched, at most 10 ms (press Ctrl-C to stop)"),
        "{told}"
    );
    assert!(
        told.contains("the browser did not fetch the trace within 10 ms"),
        "{told}"
    );
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        printed.lines().count(),
        1,
        "the address and nothing else: {printed}"
    );
}

#[test]
fn what_the_ui_does_not_read_is_shown_as_a_page() {
    let directory = tempfile::tempdir().expect("a folder");
    let input = fixture("hprof/android-a.hprof.gz");
    let path = input.to_string_lossy();
    let output = heaptap(directory.path(), &["open", &path, "--print-url"]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    let url = String::from_utf8(output.stdout).expect("it is UTF-8");
    let page = directory.path().join("android-a.hprof.gz.html");
    assert!(
        url.starts_with("file:///") && url.ends_with("android-a.hprof.gz.html\n"),
        "{url}"
    );
    let page = std::fs::read_to_string(page).expect("it was made");
    assert!(page.starts_with("<!doctype html>"), "{page:.100}");
    let page = "android-a.hprof.gz.html";
    let again = heaptap(directory.path(), &["open", page, "--print-url"]);
    assert_eq!(again.status.code(), Some(0));
    assert_eq!(again.stdout, url.as_bytes(), "the page itself is opened");
    std::fs::write(directory.path().join("notes"), "no heap").expect("it can be written");
    for (arguments, code) in [
        (["open", "notes", "--print-url"], 8),
        (["open", "none", "--print-url"], 8),
        (["open", &path, "--ui=nowhere"], 2),
    ] {
        let output = heaptap(directory.path(), &arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
    }
}
