//! Phones as heaptap detects them: servers, lists, health, eligibility.

use std::fs;

use crate::phone::{Phone, SERIAL, SOON, until};
use crate::{PATIENCE, TARGET, exit, json, kind};

#[test]
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn the_bench_itself_works() {
    let phone = Phone::boot("itself");
    let three = phone.shell("echo out; echo err >&2; exit 3");
    assert_eq!(three.code(), Some(3), "{three:?}");
    assert_eq!((&*three.stdout, &*three.stderr), ("out\n", "err\n"));
    assert_eq!(phone.shell("getprop ro.build.type").stdout, "user\n");
    let sources = phone.shell("perfetto --query-raw");
    assert!(
        sources.stdout.contains("linux.process_stats"),
        "the tracing daemons are not up: {sources:?}"
    );
}

#[test]
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn devices_come_from_the_real_server() {
    let phone = Phone::boot("devices");
    let ended = phone.heaptap(&["devices", "--json"]).end(SOON);
    assert_eq!(ended.code(), Some(exit::DONE), "{ended:?}");
    assert!(ended.stdout.contains(SERIAL), "{ended:?}");
    // heaptap asks the phone for facts that the server does not have.
    assert!(ended.stdout.contains("Bench Phone"), "{ended:?}");

    phone.host("adb", &["disconnect"]).end(SOON);
    let none = phone.heaptap(&["devices", "--json"]).end(SOON);
    assert_eq!(
        none.code(),
        Some(exit::DONE),
        "none is no failure: {none:?}"
    );
    let check = phone.heaptap(&["check", "-n", TARGET, "--json"]).end(SOON);
    assert_eq!(check.code(), Some(exit::NO_DEVICE), "{check:?}");
}

#[test]
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn the_real_adb_takes_the_virtual_phone_for_one() {
    let phone = Phone::boot_unconnected("virtual", 5601);
    let server = phone.heaptap(&["virtual-phone", "--port", "0"]);
    until("its port", SOON, || server.wrote().ends_with('\n'));
    let said = server.wrote();
    let port = said.trim().strip_prefix("listening on 127.0.0.1:");
    let port = port.unwrap_or_else(|| panic!("{said:?}"));
    let adb = |args: &[&str]| {
        let mut all = vec!["-P", port];
        all.extend(args);
        phone.host("adb", &all).end(SOON)
    };
    let devices = adb(&["devices", "-l"]);
    assert!(devices.stdout.contains(" device "), "{devices:?}");
    assert!(!devices.words().contains("daemon"), "replaced: {devices:?}");
    let sdk = adb(&["shell", "getprop", "ro.build.version.sdk"]);
    assert!(sdk.stdout.trim().parse::<u32>().is_ok(), "{sdk:?}");
    assert_eq!(adb(&["shell", "exit 3"]).code(), Some(3));
    let words = adb(&["shell", "echo out; echo err >&2"]);
    assert_eq!((&*words.stdout, &*words.stderr), ("out\n", "err\n"));

    let bytes: Vec<u8> = (0..3_000_000_u32).map(|i| (i % 251) as u8).collect();
    fs::write(phone.work().join("sent"), &bytes).expect("writable");
    let remote = "/data/local/tmp/sent";
    let push = adb(&["push", "sent", remote]);
    assert!(push.status.success(), "{push:?}");
    let pull = adb(&["pull", remote, "back"]);
    assert!(pull.status.success(), "{pull:?}");
    assert!(fs::read(phone.work().join("back")).expect("pulled") == bytes);
    // adb passes its own stdin to the command.
    let fed = "adb -P \"$0\" shell cat <sent | cmp - sent";
    let fed = phone.host("sh", &["-c", fed, port]).end(SOON);
    assert!(fed.status.success(), "{fed:?}");
    let log = adb(&["logcat", "-d"]);
    assert!(log.status.success() && !log.stdout.is_empty(), "{log:?}");
}

#[test]
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn a_missing_server_is_started_and_stays() {
    // The server finds a phone at an emulator's port by itself.
    let phone = Phone::boot_unconnected("server", 5555);
    let mut listed = phone.heaptap(&["devices"]).end(SOON);
    until("the phone in the list", SOON, || {
        assert_eq!(listed.code(), Some(exit::DONE), "{listed:?}");
        let found = listed.words().contains("emulator-5554");
        if !found {
            listed = phone.heaptap(&["devices"]).end(SOON);
        }
        found
    });
    // adb detects that server: otherwise it would print that it started one.
    let adb = phone.host("adb", &["devices"]).end(SOON);
    assert!(!adb.words().contains("daemon"), "not kept: {adb:?}");
    assert!(adb.stdout.contains("emulator-5554"), "{adb:?}");
}

#[test]
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn of_two_phones_one_must_be_named() {
    let phone = Phone::boot("two");
    let other = phone.boot_another(5603);
    let torn = phone.heaptap(&["check", "-n", TARGET]).end(SOON);
    assert_eq!(torn.code(), Some(exit::NO_DEVICE), "{torn:?}");
    assert!(
        torn.stderr.contains(SERIAL) && torn.stderr.contains(&other.serial),
        "both are listed: {torn:?}"
    );
    let named = phone
        .heaptap(&["-s", &other.serial, "check", "-n", TARGET])
        .end(SOON);
    assert_eq!(named.code(), Some(exit::DONE), "{named:?}");
}

#[test]
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn doctor_finds_the_bench_healthy() {
    let phone = Phone::boot("doctor");
    let ended = phone.heaptap(&["doctor"]).end(SOON);
    assert_eq!(ended.code(), Some(exit::DONE), "{ended:?}");
    // A phone without tracing is not healthy.
    phone.signal("KILL", "traced");
    let ill = phone.heaptap(&["doctor"]).end(SOON);
    assert_eq!(ill.code(), Some(exit::NO_DEVICE), "{ill:?}");
}

#[test]
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn check_tells_apart_what_may_be_profiled() {
    let phone = Phone::boot("check");
    let yes = phone.heaptap(&["check", "-n", TARGET]).end(SOON);
    assert_eq!(yes.code(), Some(exit::DONE), "{yes:?}");
    let no = phone
        .heaptap(&["check", "-n", "com.example.release"])
        .end(SOON);
    assert_eq!(no.code(), Some(exit::NOT_ELIGIBLE), "{no:?}");
    assert!(no.words().contains("profileable"), "the fix: {no:?}");
    let unknown = phone
        .heaptap(&["check", "-n", "com.example.nowhere"])
        .end(SOON);
    assert_eq!(unknown.code(), Some(exit::NOT_ELIGIBLE), "{unknown:?}");
}

#[test]
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn a_silent_phone_is_told_from_an_absent_one() {
    let phone = Phone::boot("silent");
    phone.signal("STOP", "adbd");
    let silent = phone
        .heaptap(&["check", "-n", TARGET, "--json"])
        .end(PATIENCE);
    assert_eq!(silent.code(), Some(exit::DEVICE_FAILED), "{silent:?}");
    let devices = phone.heaptap(&["devices"]).end(PATIENCE);
    assert_eq!(devices.code(), Some(exit::DONE), "{devices:?}");
    phone.host("adb", &["disconnect"]).end(SOON);
    let absent = phone
        .heaptap(&["check", "-n", TARGET, "--json"])
        .end(PATIENCE);
    assert_eq!(absent.code(), Some(exit::NO_DEVICE), "{absent:?}");
    assert_ne!(kind(&silent), kind(&absent));
}

#[test]
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn a_try_ends_with_verdicts_and_puts_everything_back() {
    let phone = Phone::boot("try");
    let ended = phone
        .heaptap(&["doctor", "--try", "-n", TARGET, "-o", "out", "--json"])
        .end(PATIENCE * 4);
    let document = json(&ended);
    let steps = document["steps"].as_array().expect("steps");
    let step = |name: &str| {
        let found = steps.iter().find(|step| step["step"] == name);
        found.unwrap_or_else(|| panic!("no step {name}: {ended:?}"))
    };
    assert_eq!(step("app")["verdict"], "works", "{ended:?}");
    // heapprofd is missing, and the trace says so.
    let native = step("native");
    assert_eq!(native["verdict"], "fails", "{ended:?}");
    assert_eq!(native["error"]["kind"], "heapprofd-silent", "{ended:?}");
    assert!(phone.work().join("out/native/raw-trace").is_file());
    assert_eq!(step("put-back")["verdict"], "works", "{ended:?}");
    assert_eq!(phone.traces(), [], "{ended:?}");
    assert!(phone.work().join("out/try.json").is_file());
    assert_eq!(
        document["exit_code"].as_i64(),
        ended.code().map(i64::from),
        "{ended:?}"
    );
}
