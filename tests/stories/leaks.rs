//! Rounds of a repeated action, a snapshot after each: what grows is told, and with which
//! certainty.

use crate::lab::Lab;

/// What calls the phone's functions that leak.
const PLANTED: &str = "Java_com_example_app_telemetry_Telemetry_subscribe";

#[test]
fn labelled_rounds_tell_the_leak_and_accuse_nothing_healthy() {
    // Slow enough for snapshots to come in time on a machine that is busy.
    let lab = Lab::new("android=14,build=userdebug,speed=3");
    let mut running = lab.record(&["--snapshots=1s"]);
    running.until_recorded();
    for round in 0..7 {
        let label = format!("round-{round}");
        lab.expect(0, &["snapshot", "--label", &label]);
    }
    running.signal("INT");
    assert_eq!(running.end().code(), Some(0));
    let document = lab.expect(0, &["leaks", "out", "--json"]).json();
    let series = &document["series"][0];
    let heaps = series["heaps"].as_array().unwrap();
    let malloc = heaps.iter().find(|h| h["heap"] == "libc.malloc").unwrap();
    // Seven labels, the first of them warm-up.
    assert_eq!(malloc["steps"], 5, "{malloc:#}");
    let sites = series["sites"].as_array().unwrap();
    let grows: Vec<&str> = sites
        .iter()
        .filter(|site| site["verdict"] == "grows")
        .map(|site| site["app_frame"]["function"].as_str().unwrap())
        .collect();
    // Without symbols the nearest frame with a name is the JNI method above both leaks.
    assert!(!grows.is_empty(), "{series:#}");
    assert!(grows.iter().all(|name| *name == PLANTED), "{grows:?}");
    // What was left out and why is said.
    let notes = series["notes"].to_string();
    assert!(notes.contains("warm-up"), "{notes}");
    let text = lab.expect(9, &["leaks", "out", "--fail"]).stdout;
    assert!(text.contains(&format!("1. {PLANTED}")), "{text}");
    assert!(text.contains("Each iteration leaves"), "{text}");
    // Of a single dump there is nothing to compare.
    let one = lab.expect(2, &["leaks", "out@last", "--json"]).json();
    assert_eq!(one["error"]["kind"], "too-few-dumps");
}
