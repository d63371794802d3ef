//! Symbols from the phone's own libraries: by default, once, and never at the recording's cost.

use serde_json::Value;

use crate::lab::{APP, Lab};
use crate::program::Arguments;

/// A phone whose heapprofd could not open the system's libraries: exported functions have names,
/// the others need the files.
const PHONE: &str = "speed=20,names=exported";
const HWUI: &str = "/system/lib64/libhwui.so";

/// Contents of a recording of the app in `directory`.
fn record(lab: &Lab, directory: &str, more: impl Arguments) -> Value {
    let record = format!("record -n {APP} -d 10s -i 512 -o {directory}");
    lab.expect(0, (record, more));
    lab.manifest(directory)["symbolization"].clone()
}

/// The requests about libraries: successful ones, and those that only searched.
fn asked(lab: &Lab) -> Vec<String> {
    let of_libraries = |request: &String| {
        request.contains("/lib64/") || request.contains("/framework/") || request.contains(".apk")
    };
    let mut asked = lab.phone.requests();
    asked.retain(of_libraries);
    asked
}

fn library<'a>(names: &'a Value, list: &str, path: &str) -> Option<&'a Value> {
    let mut all = names[list].as_array().expect("a list").iter();
    all.find(|library| library["path"] == path)
}

/// Whether the library file from the phone names its frames.
fn came(names: &Value, path: &str) -> bool {
    let named = library(names, "libraries_named", path);
    let files = named.and_then(|library| library["files"].as_array());
    files.is_some_and(|files| {
        let by_phone = |f: &Value| f["place"] == "cache" && f["debug_info"] == "symtab";
        files.iter().any(by_phone)
    })
}

/// Reason for a missing library.
fn why_not(names: &Value, path: &str) -> String {
    let missing = library(names, "libraries_missing", path).unwrap_or_else(|| panic!("{names:#}"));
    let places = missing["searched"].as_array().expect("places");
    let phone = places.iter().find(|place| place["place"] == "device");
    let phone = phone.unwrap_or_else(|| panic!("{missing:#}"));
    phone["why"].as_str().expect("a word").to_owned()
}

#[test]
fn names_come_from_the_phone_once() {
    let lab = Lab::new(PHONE);
    let names = record(&lab, "first", "");
    for path in [
        HWUI,
        "/apex/com.android.art/lib64/libart.so",
        "/system/lib64/libsqlite.so",
    ] {
        assert!(came(&names, path), "{path}: {names:#}");
    }
    lab.assert_tidy("first");
    let after_the_first = asked(&lab);
    assert!(
        after_the_first.iter().any(|r| r.starts_with("RECV")),
        "{after_the_first:?}"
    );
    // Libraries without symbols on the phone are not requested again, either.
    let names = record(&lab, "second", "");
    assert!(came(&names, HWUI), "{names:#}");
    assert_eq!(asked(&lab), after_the_first);
}

#[test]
fn a_library_of_several_apps_names_the_frames_of_all() {
    let lab = Lab::new("android=14,build=userdebug,stripped=no,speed=20");
    let apps = "com.example.browser,com.example.platform";
    let named = |directory: &str| {
        let args = format!("record -n {apps} -d 3s -i 512 -o {directory}");
        lab.expect(0, &args);
        let names = lab.manifest(directory)["symbolization"].clone();
        let all = names["libraries_named"].as_array().expect("a list");
        let paths = all.iter().map(|library| library["path"].to_string());
        let own: Vec<String> = paths
            .filter(|path| path.contains("libexample.so"))
            .collect();
        own
    };
    let first = named("first");
    assert_eq!(first.len(), 2, "{first:?}");
    assert_eq!(named("second"), first);
}

#[test]
fn a_phone_may_be_left_alone() {
    let lab = Lab::new(PHONE);
    let names = record(&lab, "out", "--pull-libs never");
    assert!(
        library(&names, "libraries_missing", HWUI).is_some(),
        "{names:#}"
    );
    assert_eq!(asked(&lab), Vec::<String>::new());
    // It can be requested later, for the profiles of the same recording.
    lab.expect(0, "symbolize out --pull-libs always");
    let names = &lab.manifest("out")["symbolization"];
    assert!(came(names, HWUI), "{names:#}");
    assert!(
        library(names, "libraries_missing", HWUI).is_none(),
        "{names:#}"
    );
    lab.expect(0, "convert out -o again");
    let names = &lab.manifest("again")["symbolization"];
    assert!(
        library(names, "libraries_missing", HWUI).is_none(),
        "{names:#}"
    );
}

#[test]
fn convert_asks_a_phone_only_where_that_is_wished() {
    let lab = Lab::new(PHONE);
    record(&lab, "out", "--pull-libs never");
    let before = lab.phone.requests();
    lab.expect(0, "convert out/raw-trace -o plain");
    assert_eq!(lab.phone.requests(), before);
    lab.expect(0, "convert out/raw-trace -o pulled --pull-libs always");
    assert!(came(&lab.manifest("pulled")["symbolization"], HWUI));
    // Without a phone there is a warning, and the rest works.
    lab.phone.unplug(0);
    lab.expect(0, "convert out/raw-trace -o alone --pull-libs always")
        .assert_stderr("cannot fetch libraries");
}

#[test]
fn what_stands_in_the_way_is_told_and_costs_nothing_else() {
    let lab = Lab::new(PHONE);
    let others = lab
        .phone
        .file("/system/lib64/libutils.so")
        .expect("a library");
    // An update after the start of the process, and an unreadable file.
    lab.phone.put_file(HWUI, &others, 0o644);
    let sqlite = lab
        .phone
        .file("/system/lib64/libsqlite.so")
        .expect("a library");
    lab.phone
        .put_file("/system/lib64/libsqlite.so", &sqlite, 0o600);
    let names = record(&lab, "out", "");
    assert_eq!(why_not(&names, HWUI), "other-build-id");
    assert_eq!(why_not(&names, "/system/lib64/libsqlite.so"), "unreadable");
    assert!(
        came(&names, "/apex/com.android.art/lib64/libart.so"),
        "{names:#}"
    );
    lab.assert_truth("out");
}

#[test]
fn more_than_64_mib_are_left_on_the_phone() {
    let lab = Lab::new("speed=20,names=exported");
    let large = vec![0; 65 << 20];
    lab.phone.put_file(HWUI, &large, 0o644);
    let names = record(&lab, "out", "");
    assert_eq!(why_not(&names, HWUI), "over-budget");
    assert!(!asked(&lab).contains(&format!("RECV:{HWUI}")));
}

#[test]
fn a_cable_pulled_while_libraries_come_costs_names_only() {
    // The first pull is for the trace.
    let lab = Lab::new("speed=20,names=exported,fault=pull-cut@100#2");
    let names = record(&lab, "out", "");
    let all = names["libraries_missing"]
        .as_array()
        .expect("a list")
        .clone();
    let gone = all.iter().filter(|library| {
        let places = library["searched"].as_array().expect("places");
        places
            .iter()
            .any(|p| p["place"] == "device" && p["why"] == "device")
    });
    assert!(gone.count() > 1, "{names:#}");
    lab.assert_truth("out");
    lab.assert_tidy("out");
}

#[test]
fn ctrl_c_while_libraries_come_goes_on_without() {
    let lab = Lab::new("speed=20,names=exported,fault=pull-hang@0#2");
    let args = "--pull-libs always -d 5s";
    let mut running = lab.start_recording(args);
    running.until("library-requested");
    lab.until("the pull hangs", |lab| {
        asked(lab).iter().any(|request| request.starts_with("RECV"))
    });
    running.interrupted(0);
    lab.assert_truth("out");
    lab.assert_tidy("out");
}
