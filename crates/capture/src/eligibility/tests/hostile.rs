//! For any answer of a device: no panic, and nothing in the facts that a terminal would act on.

use proptest::prelude::*;

use crate::eligibility::facts::DeviceFacts;
use crate::eligibility::manifest_xml::read_manifest;
use crate::eligibility::names::fnmatch;
use crate::eligibility::packages::{
    read_app_types, read_dumpsys, read_list, read_packages_list, read_packages_trace, read_run_as,
};
use crate::eligibility::parse_log;
use crate::eligibility::processes::{read_activity, read_details, read_ps};

/// Bytes made of strings that the parsers look for and of anything else.
fn texts() -> impl Strategy<Value = Vec<u8>> {
    let words = [
        "@@heaptap getprop\n",
        "@@heaptap df\n",
        "@@heaptap users\n",
        "@@heaptap cmdline 7\n",
        "@@heaptap label 7\n",
        "@@heaptap events 7\n",
        "@@heaptap date\n",
        "@@heaptap uptime\n",
        "[ro.build.type]: [",
        "[ro.build.version.sdk]: [34]",
        "[wrap.x]: [y]",
        "]\n",
        "\r\n",
        "\n",
        " ",
        "\t",
        "\0",
        "\u{1b}[31m",
        "\u{202e}",
        "PID PPID UID S NAME\n",
        "7 1 10234 S ",
        "package:",
        "uid:10234,",
        "installer=",
        "UserInfo{0:a:b} running",
        "Package [x]",
        "flags=[ DEBUGGABLE ]",
        "isFrozen=true",
        "*APP* ProcessRecord{1 7:x/y}",
        "u:r:d:s0",
        "1707120000.1  7  7 I perfetto: ",
        "100%",
        "999999999999999999999",
        "-1",
        "x",
    ];
    let word = prop_oneof![
        4 => prop::sample::select(words.to_vec()).prop_map(|w| w.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..6),
    ];
    prop::collection::vec(word, 0..40).prop_map(|words| words.concat())
}

fn is_clean(json: &str) -> bool {
    // JSON escapes control characters as \u, but leaves direction marks unchanged.
    !json.contains("\\u00") && !json.contains('\u{202e}') && !json.contains('\u{9b}')
}

/// Returns whether `text` matches, trying every split at a star: exponential, but obviously right.
fn matches_slowly(pattern: &[char], text: &[char]) -> bool {
    match (pattern.first(), text.first()) {
        (None, None) => true,
        (Some('*'), _) => (0..=text.len()).any(|n| matches_slowly(&pattern[1..], &text[n..])),
        (Some('?'), Some(_)) => matches_slowly(&pattern[1..], &text[1..]),
        (Some(p), Some(t)) => p == t && matches_slowly(&pattern[1..], &text[1..]),
        _ => false,
    }
}

proptest! {
    #[test]
    fn no_answer_breaks_a_reader_or_passes_raw(bytes in texts()) {
        let mut facts = DeviceFacts::read("S", &bytes);
        facts.read_services(&bytes);
        facts.read_su(&bytes);
        facts.read_query(&bytes);
        let json = serde_json::to_string(&facts).expect("plain data");
        prop_assert!(is_clean(&json), "{json}");
        let processes = read_ps(&bytes, facts.is_64_bit());
        prop_assert!(is_clean(&serde_json::to_string(&processes).expect("plain data")));
        let list = read_list(&bytes);
        prop_assert!(is_clean(&serde_json::to_string(&list).expect("plain data")));
        let rows = read_packages_list(&bytes);
        prop_assert!(is_clean(&serde_json::to_string(&rows).expect("plain data")));
        let log = parse_log(&bytes);
        prop_assert!(is_clean(&serde_json::to_string(&log).expect("plain data")));
        for details in read_details(&bytes).into_values() {
            let texts = [details.argv0, details.domain];
            prop_assert!(is_clean(&serde_json::to_string(&texts).expect("plain data")));
        }
        read_app_types(&bytes);
        read_activity(&bytes);
        read_packages_trace(&bytes);
        read_dumpsys(&bytes, "x");
        read_run_as(&bytes);
        read_manifest(&bytes);
    }

    #[test]
    fn patterns_match_as_defined(pattern in "[ab*?]{0,8}", text in "[ab/]{0,8}") {
        let (p, t): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
        prop_assert_eq!(fnmatch(&pattern, &text), matches_slowly(&p, &t));
    }
}
