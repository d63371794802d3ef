//! `paths`: what keeps objects alive.

use serde_json::Value;

use super::{after, fixture, json, words};
use crate::program::{assert_contains, expect};

#[test]
fn paths_name_the_fields_from_the_root_on() {
    let document = json(&["paths", &after(), "--focus", "LeakLab.Listener$"]);
    assert_eq!(document["reachable"]["count"], 180);
    let steps = document["shortest"]["steps"].as_array().unwrap();
    let links: Vec<&str> = steps
        .iter()
        .filter_map(|step| step["via"]["text"].as_str())
        .collect();
    let end = &links[links.len() - 3..];
    assert_eq!(end[..2], ["lab.LeakLab.REGISTRY", "ArrayList.elementData"]);
    assert!(end[2].starts_with("Object[].["), "{links:?}");
    let text = words(&["paths", &after(), "--focus", "LeakLab.Listener$"]);
    assert_contains(&text, "↓ static lab.LeakLab.REGISTRY");
    assert_contains(&text, "╰→ lab.LeakLab$Listener");
}

#[test]
fn a_class_without_objects_is_found_by_the_name_that_top_shows() {
    for focus in ["lab.LeakLab$", "^class lab.LeakLab$"] {
        let document = json(&["paths", &after(), "--focus", focus]);
        assert_eq!(document["targets"], "class lab.LeakLab", "{focus}");
        let top = words(&["top", &after(), "--by", "object", "--focus", focus]);
        assert_contains(&top, "  class lab.LeakLab");
    }
}

#[test]
fn paths_of_several_patterns_are_those_of_each() {
    let count = |focus: &[&str]| {
        let input = after();
        let mut args = vec!["paths", &input];
        args.extend(focus.iter().flat_map(|focus| ["--focus", focus]));
        json(&args)["reachable"]["count"].as_u64().unwrap()
    };
    let [listeners, shared] = ["LeakLab.Listener$", "LeakLab.Shared$"];
    let each = count(&[listeners]) + count(&[shared]);
    assert_eq!(count(&[listeners, shared]), each);
}

#[test]
fn the_path_to_a_leak_is_shown_before_that_to_a_larger_object() {
    // The list of the activities is larger than each of them, and in use.
    let focus = "DetailActivity$|ArrayList$";
    let document = json(&["paths", &after(), "--focus", focus]);
    assert_eq!(document["leak"]["what"], "destroyed Activity");
    assert_eq!(document["leak"]["certainty"], "confirmed");
    let steps = document["shortest"]["steps"].as_array().unwrap();
    let end = steps.last().unwrap();
    assert_eq!(end["name"], "lab.LeakLab$DetailActivity");
    let text = words(&["paths", &after(), "--focus", focus]);
    assert_contains(
        &text,
        "leaking object: destroyed Activity, mDestroyed is true",
    );
    let list = json(&["paths", &after(), "--focus", "ArrayList$"]);
    assert_eq!(list["leak"], Value::Null);
}

#[test]
fn all_ways_to_the_roots_are_merged() {
    let document = json(&["paths", &after(), "--focus", "LeakLab.Shared$"]);
    let holders = document["holders"].as_array().unwrap();
    let texts: Vec<&str> = holders
        .iter()
        .filter_map(|row| row["via"]["text"].as_str())
        .collect();
    assert!(texts.contains(&"LeakLab$OwnerA.s"), "{texts:?}");
    assert!(texts.contains(&"LeakLab$OwnerB.s"), "{texts:?}");
    let root = &holders[0]["roots"][0];
    assert_eq!(root["kind"], "ROOT_JAVA_FRAME");
    assert_eq!(root["thread"], "main");
    assert!(
        root["frame"]
            .as_str()
            .unwrap()
            .starts_with("lab.LeakLab.main"),
        "{root}"
    );
    let activities = json(&["paths", &after(), "--focus", "DetailActivity$"]);
    let holders = activities["holders"].as_array().unwrap();
    let list = holders
        .iter()
        .find(|row| row["parent"] == 0 && row["via"]["kind"] == "element");
    assert_eq!(list.unwrap()["referenced"], 5, "LEAKED has five");
    // 20,000 nodes in a chain are one row, without recursion.
    let chain = json(&["paths", &after(), "--focus", "LeakLab.Node$"]);
    assert_eq!(chain["holders"][1]["via"]["text"], "lab.LeakLab.CHAIN");
}

#[test]
fn one_object_is_told_in_full() {
    let largest = json(&format!(
        "top {} --by object --focus DetailActivity$ -l 1",
        after()
    ));
    let id = largest["rows"][0]["object"]["id"].as_str().unwrap();
    let document = json(&["paths", &after(), "--object", id]);
    let object = &document["object"];
    assert_eq!(object["name"], "lab.LeakLab$DetailActivity");
    assert_eq!(object["ancestry"][0], object["name"]);
    assert_eq!(object["ancestry"][1], "android.app.Activity");
    let field = |name: &str| {
        let fields = object["fields"].as_array().unwrap();
        fields.iter().find(|field| field["name"] == name).unwrap()
    };
    assert_eq!(field("mDestroyed")["value"], "true");
    assert_eq!(field("mTitle")["object"]["text"], "Detail");
    assert_eq!(field("bulk")["object"]["length"], 100_000);
    let text = words(&["paths", &after(), "--object", id]);
    assert_contains(&text, "byte[100000]");
    let bulk = field("bulk")["object"]["id"].as_str().unwrap();
    let array = json(&["paths", &after(), "--object", bulk]);
    let array = &array["object"];
    assert_eq!(array["length"], 100_000);
    assert_eq!(array["dominator"]["id"], id);
    assert_eq!(array["referrers_total"], 1);
    assert_eq!(array["referrers"][0]["via"]["name"], "bulk");
    let none = expect(2, &format!("paths {} --object 0x3 --json", after()));
    let failure = none.json();
    assert_eq!(failure["error"]["kind"], "no-such-object");
}

#[test]
fn a_missing_java_heap_is_reported_before_a_missing_class() {
    for (input, code, kind) in [
        (fixture("conversions/no_target.pftrace"), 7, "no-java-heap"),
        (fixture("conversions/c_cont.pftrace"), 7, "native-heap"),
        (after(), 2, "usage"),
    ] {
        let refused = expect(code, &["paths", &input, "--json"]);
        let failure = refused.json();
        assert_eq!(failure["error"]["kind"], kind);
    }
}

#[test]
fn a_pattern_that_no_class_matches_is_refused_with_the_nearest() {
    for (typed, help) in [
        ("DetialActivity", "did you mean lab.LeakLab$DetailActivity?"),
        (
            "detailACTIVITY$",
            "did you mean lab.LeakLab$DetailActivity?",
        ),
        ("NoSuchThingAtAll", "--by class` lists the classes"),
    ] {
        let refused = expect(2, &["paths", &after(), "--focus", typed, "--json"]);
        let failure = refused.json();
        assert_eq!(failure["error"]["kind"], "no-such-class");
        let told = failure["error"]["help"].as_str().unwrap();
        assert!(told.contains(help), "{typed}: {told}");
    }
}
