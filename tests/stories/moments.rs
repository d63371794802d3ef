//! `PATH@LABEL`, `PATH@N`, `PATH@last` and `PATH@end`: every command selects the same moment, of
//! dumps and of companion data.

use serde_json::Value;

use crate::lab::Lab;
use crate::program::{Arguments, assert_contains};

const ROOTED: &str = "android=14,build=userdebug,speed=4";

/// Identity of the moment in an answer: its label, and the text of its source.
fn asked(lab: &Lab, command: impl Arguments, which: &str) -> Value {
    let input = format!("out{which}");
    lab.expect(0, (command, (input, "--json"))).json()
}

#[test]
fn a_name_means_one_moment_whoever_is_asked() {
    let lab = Lab::new(ROOTED);
    let mut running = lab.record("--with java,meminfo,smaps -c 1s");
    running.until_recorded();
    for label in ["before", "after"] {
        lab.expect(0, &["snapshot", "--label", label]);
        running.until("captured");
    }
    running.interrupted(0);
    let manifest = lab.manifest("out");
    let dumps = manifest["dumps"].as_array().unwrap();
    let after = manifest["labels"][1]["dumps"][0]["number"]
        .as_u64()
        .unwrap();
    let last = dumps.last().unwrap()["number"].as_u64().unwrap();
    assert!(after < last, "{manifest:#}");
    let (after, last) = (format!("@{after}"), format!("@{last}"));
    for command in ["smaps", "meminfo", "meminfo --reconcile"] {
        let at = |which: &str| asked(&lab, command, which);
        let labelled = at("@after");
        assert_eq!(labelled, at(&after), "{command:?}");
        let end = at("@end");
        assert_ne!(labelled, end, "{command:?}");
        for which in ["@last", &last] {
            assert_eq!(end, at(which), "{command:?} {which}");
        }
        assert_eq!(labelled, at(""), "{command:?}");
        let misspelt = lab.expect(2, (command, "out@befor --json")).json();
        assert_eq!(misspelt["error"]["kind"], "no-such-capture", "{misspelt:#}");
        let help = misspelt["error"]["help"].as_str().unwrap();
        assert!(help.starts_with("did you mean @before?"), "{help}");
        assert_contains(&help, &format!("@after ({after}"));
    }
    // Dumps and Java heaps use the same numbers.
    let number = |which: &str, more: &str| {
        let top = asked(&lab, ("top", more), which);
        let heap = match top["heaps"].as_array() {
            Some(native) => &native[0]["dump"],
            None => &top["heap"],
        };
        format!("@{}", heap["number"])
    };
    for more in ["", "--heap java"] {
        assert_eq!(number("@after", more), after, "{more:?}");
        assert_eq!(number("", more), after, "{more:?}");
        assert_eq!(number(&after, more), after, "{more:?}");
        assert_eq!(number("@end", more), last, "{more:?}");
        assert_eq!(number("@last", more), last, "{more:?}");
    }
    // A dump without a label has no companion data.
    let bare = dumps
        .iter()
        .find(|dump| dump["label"].is_null() && format!("@{}", dump["number"]) != last);
    if let Some(bare) = bare {
        let input = format!("out@{}", bare["number"]);
        lab.expect(2, &["smaps", &input])
            .assert_stderr("has no label")
            .assert_stderr("@before");
    }
    lab.expect(2, "top out@befor")
        .assert_stderr("did you mean @before?");
}
