//! The program against adb servers with unusual answers, over real TCP: the messages, the exit
//! code, and that a server is not stopped.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use serde_json::Value;

/// Answers of a server to each request; after a transport request the connection continues.
type Answers = HashMap<String, Vec<u8>>;

/// Serves on loopback during the test; returns `HOST:PORT`.
fn serve(answers: Answers) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("loopback has a free port");
    serve_on(listener, answers)
}

fn serve_on(listener: TcpListener, answers: Answers) -> String {
    let address = listener.local_addr().expect("bound").to_string();
    let answers = Arc::new(answers);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let answers = Arc::clone(&answers);
            // A client that disconnects early is not a failure of the server.
            std::thread::spawn(move || talk(stream, &answers));
        }
    });
    address
}

fn talk(mut stream: TcpStream, answers: &Answers) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    loop {
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        let length = usize::from_str_radix(&String::from_utf8_lossy(&length), 16)
            .expect("requests begin with their length");
        let mut request = vec![0; length];
        stream.read_exact(&mut request)?;
        let request = String::from_utf8_lossy(&request).into_owned();
        let unknown = b"FAIL0014unknown host service".to_vec();
        let answer = answers.get(&request).unwrap_or(&unknown);
        // Byte by byte, as over a slow network.
        for byte in answer {
            stream.write_all(&[*byte])?;
        }
        if !request.starts_with("host:transport") {
            // Unread data from the client would reset the connection and drop the answer.
            stream.shutdown(std::net::Shutdown::Write)?;
            std::io::copy(&mut stream, &mut std::io::sink())?;
            return Ok(());
        }
    }
}

fn okay(text: &str) -> Vec<u8> {
    format!("OKAY{:04x}{text}", text.len()).into_bytes()
}

fn fail(text: &str) -> Vec<u8> {
    format!("FAIL{:04x}{text}", text.len()).into_bytes()
}

/// A server that returns `list` as its devices.
fn listing(list: &str) -> Answers {
    HashMap::from([
        ("host:version".to_owned(), okay("0029")),
        ("host:devices-l".to_owned(), okay(list)),
    ])
}

/// Adds the answer of `serial` to any shell command.
fn with_shell(mut answers: Answers, serial: &str, command: &str, stdout: &str) -> Answers {
    let mut shell = b"OKAY".to_vec();
    for (id, payload) in [(1, stdout.as_bytes()), (3, &[0][..])] {
        shell.push(id);
        shell.extend((payload.len() as u32).to_le_bytes());
        shell.extend(payload);
    }
    answers.insert(
        format!("host-serial:{serial}:features"),
        okay("shell_v2,cmd,stat_v2"),
    );
    answers.insert(format!("host:transport:{serial}"), b"OKAY".to_vec());
    answers.insert(format!("shell,v2,raw:{command}"), shell);
    answers
}

fn heaptap(args: &[&str]) -> Command {
    let mut command = crate::program::heaptap();
    command.args(args);
    command
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
}

const GETPROP: &str = "sh -c 'for p; do getprop \"$p\"; done' heaptap ro.product.model \
    ro.build.version.release_or_codename ro.build.version.release ro.build.version.sdk \
    ro.build.type ro.product.cpu.abi ro.product.manufacturer";

const ODD: &str = "\
A1                     device usb:1-1 product:shiba model:Pixel_8 device:shiba transport_id:1
B2                     unauthorized usb:1-2 transport_id:2
????????????           no permissions (missing udev rules? user is in the plugdev group); see [http://developer.android.com/tools/device.html] usb:1-3 transport_id:3
adb-C3 (2)._adb-tls-connect._tcp offline transport_id:4
E\u{1b}[2J                  bootloader
";

#[test]
fn devices_shows_every_state_with_its_fix() {
    let answers = with_shell(
        listing(ODD),
        "A1",
        GETPROP,
        "Pixel 8\n14\n14\n34\nuser\narm64-v8a\nGoogle\n",
    );
    let server = serve(answers);
    let output = heaptap(&["--adb-server", &server, "devices", "--json"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let document = json(&output);
    let devices = document["devices"].as_array().unwrap();
    let states: Vec<&str> = devices
        .iter()
        .map(|d| d["state"].as_str().unwrap())
        .collect();
    assert_eq!(
        states,
        [
            "device",
            "unauthorized",
            "no permissions",
            "offline",
            "bootloader"
        ]
    );
    assert_eq!(devices[0]["android"], "14");
    assert_eq!(devices[0]["sdk"], 34);
    assert_eq!(devices[0]["build_type"], "user");
    assert_eq!(devices[0]["abi"], "arm64-v8a");
    assert!(devices[0]["fix"].is_null());
    assert!(devices[1..].iter().all(|d| d["fix"].is_string()));
    assert_eq!(devices[3]["serial"], "adb-C3 (2)._adb-tls-connect._tcp");

    let output = heaptap(&["--adb-server", &server, "devices", "--color", "always"])
        .output()
        .unwrap();
    let shown = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(
        shown.contains("Pixel 8") && shown.contains("14 (SDK 34)"),
        "{shown}"
    );
    assert!(shown.contains("Allow USB debugging"), "{shown}");
    assert!(!shown.contains("\u{1b}[2J"), "{shown}");
}

#[test]
fn a_server_is_reached_by_ipv6_and_by_name() {
    let server = serve(listing(ODD));
    let port = server.rsplit_once(':').unwrap().1;
    let mut addresses = vec![format!("localhost:{port}"), format!("tcp:localhost:{port}")];
    // A host without IPv6 has no ::1.
    if let Ok(listener) = TcpListener::bind(("::1", 0)) {
        addresses.push(serve_on(listener, listing(ODD)));
    }
    for address in addresses {
        let output = heaptap(&["--adb-server", &address, "devices", "--json"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{address}: {output:?}");
        assert_eq!(json(&output)["devices"][1]["serial"], "B2");
    }
}

#[test]
fn no_device_is_an_empty_list_for_devices_and_exit_3_elsewhere() {
    let server = serve(listing(""));
    let output = heaptap(&["--adb-server", &server, "devices", "--json"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(json(&output)["devices"], Value::Array(Vec::new()));
    let output = heaptap(&["--adb-server", &server, "apps", "--json"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3));
    let error = json(&output)["error"].clone();
    assert_eq!(error["kind"], "no-device");
    // The next step for every command but `doctor` itself.
    assert!(
        error["help"].to_string().contains("heaptap doctor"),
        "{error}"
    );
    let doctor = heaptap(&["--adb-server", &server, "doctor", "--json"])
        .output()
        .unwrap();
    let doctor = String::from_utf8_lossy(&doctor.stdout);
    assert!(doctor.contains("enable USB debugging"), "{doctor}");
    assert!(!doctor.contains("heaptap doctor"), "{doctor}");
}

#[test]
fn what_stands_in_the_way_of_a_command_has_its_kind_and_exit_3() {
    let twins = "S device usb:1-1 transport_id:5\nS device usb:1-2 transport_id:6\n";
    for (list, serial, kind) in [
        (ODD, None, "several-devices"),
        (ODD, Some("B2"), "device-unauthorized"),
        (ODD, Some("usb:1-3"), "device-no-permissions"),
        (ODD, Some("transport:4"), "device-offline"),
        (ODD, Some("model:Pixel_9"), "device-not-found"),
        (twins, Some("S"), "several-devices"),
        ("X\tauthorizing\n", None, "device-authorizing"),
        ("X\trecovery\n", None, "device-recovery"),
    ] {
        let server = serve(listing(list));
        let mut command = heaptap(&["--adb-server", &server, "apps", "--json"]);
        if let Some(serial) = serial {
            // The flag and the variable mean the same.
            command.env("ANDROID_SERIAL", serial);
        }
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{kind}: {output:?}");
        let error = json(&output);
        assert_eq!(error["error"]["kind"], kind, "{output:?}");
        assert!(error["error"]["help"].is_string(), "{kind}");
    }
}

#[test]
fn a_phone_that_vanishes_between_list_and_request_is_told() {
    let mut answers = listing("A1\tdevice\n");
    answers.insert(
        "host-serial:A1:features".to_owned(),
        fail("device 'A1' not found"),
    );
    let server = serve(answers);
    let output = heaptap(&["--adb-server", &server, "apps", "--json"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert_eq!(json(&output)["error"]["kind"], "device-gone");
    // The list still has it, with the reason why nothing else is known.
    let output = heaptap(&["--adb-server", &server, "devices", "--json"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let error = json(&output)["devices"][0]["error"].clone();
    assert!(
        error.as_str().unwrap().contains("no longer connected"),
        "{error}"
    );
}

#[test]
fn what_is_no_adb_server_is_left_alone_and_said() {
    let mut answers = Answers::new();
    answers.insert(
        "host:version".to_owned(),
        b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
    );
    let server = serve(answers);
    let output = heaptap(&["devices", "--json"])
        .env("ADB_SERVER_SOCKET", format!("tcp:{server}"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert_eq!(json(&output)["error"]["kind"], "not-an-adb-server");
}

/// A program named adb that leaves a note when it runs.
#[cfg(unix)]
fn fake_adb(directory: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let path = directory.join("adb");
    let script = "#!/bin/sh\necho \"$@\" >>\"${0%/*}/ran\"\nexit 1\n";
    std::fs::write(&path, script).expect("a temporary folder is writable");
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&path, executable).expect("a temporary folder is ours");
}

#[cfg(unix)]
#[test]
fn adb_is_run_only_where_nothing_answers_and_only_to_serve() {
    let directory = tempfile::tempdir().unwrap();
    fake_adb(directory.path());
    let path = std::env::join_paths(
        std::iter::once(directory.path().to_owned())
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    )
    .unwrap();
    let ran = directory.path().join("ran");

    // A server of any version is accepted.
    let mut answers = listing("");
    answers.insert("host:version".to_owned(), okay("0007"));
    answers.insert(
        "host:connect:127.0.0.1:5555".to_owned(),
        okay("failed to connect"),
    );
    let server = serve(answers);
    for (args, code) in [
        (&["devices"][..], 0),
        (&["devices", "--connect", "127.0.0.1"], 3),
        (&["devices", "--mdns"], 3),
        (&["doctor"], 3),
    ] {
        let output = heaptap(&[&["--adb-server", &server], args].concat())
            .env("PATH", &path)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?} {output:?}");
        assert!(
            !ran.exists(),
            "{args:?} ran adb {:?}",
            std::fs::read_to_string(&ran)
        );
    }

    // A port without a listener: it was free a moment ago.
    let port = TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.local_addr())
        .unwrap()
        .port()
        .to_string();
    // Listing sessions does not start a server, and says that it could not look there.
    let output = heaptap(&["status"])
        .env("PATH", &path)
        .env("ANDROID_ADB_SERVER_PORT", &port)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(!ran.exists(), "status ran adb");
    let output = heaptap(&["devices", "--json"])
        .env("PATH", &path)
        .env("ANDROID_ADB_SERVER_PORT", &port)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert_eq!(json(&output)["error"]["kind"], "adb-server-start");
    let ran = std::fs::read_to_string(&ran).unwrap();
    assert_eq!(ran, format!("-P {port} nodaemon server\n"));
}
