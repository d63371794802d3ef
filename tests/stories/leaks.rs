//! Iterations of an action, a snapshot after each: reports the growing callsites, and their
//! confidence.

use crate::lab::Lab;
use crate::program::assert_contains;

/// The caller of the phone's functions that leak.
const PLANTED: &str = "Java_com_example_app_telemetry_Telemetry_subscribe";

#[test]
fn labelled_rounds_tell_the_leak_and_accuse_nothing_healthy() {
    // Slow enough for punctual snapshots on a busy host.
    let lab = Lab::new("android=14,build=userdebug,speed=3");
    let mut running = lab.record("--snapshots=1s");
    running.until_recorded();
    for round in 0..7 {
        let label = format!("round-{round}");
        lab.expect(0, &["snapshot", "--label", &label]);
    }
    running.interrupted(0);
    let document = lab.expect(0, "leaks out --json").json();
    let series = &document["series"][0];
    let heaps = series["heaps"].as_array().unwrap();
    let malloc = heaps.iter().find(|h| h["heap"] == "libc.malloc").unwrap();
    // Seven labels, of which the first is warm-up.
    assert_eq!(malloc["steps"], 5, "{malloc:#}");
    let sites = series["sites"].as_array().unwrap();
    let grows: Vec<&str> = sites
        .iter()
        .filter(|site| site["verdict"] == "confirmed")
        .map(|site| site["app_frame"]["function"].as_str().unwrap())
        .collect();
    // Without symbols, the nearest named frame is the JNI method above both leaks.
    assert!(!grows.is_empty(), "{series:#}");
    assert!(grows.iter().all(|name| *name == PLANTED), "{grows:?}");
    // The start of a thread has a name, but the addresses that it calls are of the app.
    let top = lab.expect(0, "top out --json").stdout;
    assert_contains(&top, "pthread");
    assert_contains(&top, "libexample.so+0x");
    let names = sites.iter().map(|site| &site["app_frame"]["function"]);
    let names: Vec<&str> = names.filter_map(|name| name.as_str()).collect();
    assert!(
        !names.iter().any(|name| name.contains("pthread")),
        "{names:?}"
    );
    // Omitted dumps are reported with the reason.
    let notes = series["notes"].to_string();
    assert_contains(&notes, "warm-up");
    let text = lab.expect(9, "leaks out --fail").stdout;
    assert_contains(&text, &format!("1. {PLANTED}"));
    assert_contains(&text, "Find what keeps it");
    // A row of several callsites has the addresses that allocate, for tools such as addr2line.
    for site in sites.iter().filter(|site| site["unit"] == "line") {
        let functions = site["allocating_functions"].as_array().unwrap();
        let functions: Vec<&str> = functions.iter().filter_map(|f| f.as_str()).collect();
        let through = format!("through {}", functions.join(", "));
        assert_contains(&text, &through);
    }
    // A single dump cannot be compared.
    let one = lab.fails(2, "leaks out@last");
    assert_eq!(one["kind"], "too-few-dumps");
}
