//! `top` of Java heaps: figures, groupings and trees.

use serde_json::Value;

use super::{after, before, fixture, heaptap, json, row, words};
use crate::program::{assert_contains, assert_lacks, expect};

#[test]
fn top_shows_where_the_memory_went_at_one_look() {
    let text = words(&["top", &after()]);
    let line = |part: &str| {
        let line = text.lines().find(|line| line.contains(part));
        line.unwrap_or_else(|| panic!("no {part} in\n{text}"))
            .to_owned()
    };
    let registry = line("lab.LeakLab.REGISTRY");
    assert_contains(&registry, "1.7 MiB");
    assert_contains(
        &registry,
        "java.util.ArrayList  of 180 × LeakLab$Listener  ← lab.LeakLab.REGISTRY",
    );
    assert!(line("lab.LeakLab.LEAKED").contains("of 5 × LeakLab$DetailActivity"));
    assert!(line("lab.LeakLab.HUGE").contains("1.4 MiB"));
    assert!(line("unreachable, not yet collected").contains("objects"));
    // Listeners appear below their list, and in the table of classes.
    assert_eq!(text.matches("LeakLab$Listener").count(), 2, "{text}");
    assert!(!text.contains('\x1b'), "no colours where nobody looks");
}

#[test]
fn figures_in_json_csv_and_text_agree() {
    let document = json(&["top", &after(), "--by", "class"]);
    let listener = row(&document["rows"], "lab.LeakLab$Listener");
    assert_eq!(listener["count"], 180);
    assert_eq!(listener["shallow_bytes"], 180 * 24);
    assert_eq!(listener["retained_count"], 360);
    // Each has 10,000 bytes after a header of 16.
    assert_eq!(listener["retained_bytes"], 180 * (24 + 10_016));
    let total: u64 = document["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["shallow_bytes"].as_u64().unwrap())
        .sum();
    assert_eq!(document["reachable"]["shallow_bytes"], total);
    assert_eq!(document["reachable"]["retained_bytes"], total);
    assert_eq!(document["heap"]["source"], "hprof");
    assert_eq!(document["heap"]["sizes"], "hotspot");
    let csv = words(&format!("top {} --by class --csv", after()));
    let line = csv
        .lines()
        .find(|line| line.starts_with("lab.LeakLab$Listener,"));
    assert_eq!(
        line.unwrap(),
        format!(
            "lab.LeakLab$Listener,180,4320,0,360,{},0,,,,,,",
            180 * 10_040
        )
    );
    assert_eq!(
        csv.lines().count(),
        1 + document["rows_total"].as_u64().unwrap() as usize
    );
}

#[test]
fn every_grouping_adds_up_to_the_whole() {
    let heap = after();
    let whole = json(&["top", &heap])["reachable"]["shallow_bytes"].clone();
    for by in ["class", "package", "heap", "loader", "root"] {
        let document = json(&["top", &heap, "--by", by]);
        let rows = document["rows"].as_array().unwrap();
        let sum: u64 = rows
            .iter()
            .map(|row| row["shallow_bytes"].as_u64().unwrap())
            .sum();
        assert_eq!(whole, sum, "{by}");
    }
    let superclasses = json(&["top", &heap, "--by", "superclass"]);
    let activities = row(&superclasses["rows"], "android.app.Activity");
    assert_eq!(activities["count"], 9, "8 details and the main one");
    let packages = json(&format!("top {heap} --by package --focus ^lab"));
    assert_eq!(packages["rows"].as_array().unwrap().len(), 1);
}

#[test]
fn a_count_without_a_graph_is_that_of_all_objects() {
    let count = json(&["top", &after(), "--no-retained"]);
    let all = json(&format!("top {} --reachable any --by class", after()));
    assert_eq!(count["reachable"], Value::Null);
    for name in [
        "lab.LeakLab$Listener",
        "java.util.ArrayList",
        "lab.LeakLab$Node",
    ] {
        let (a, b) = (row(&count["rows"], name), row(&all["rows"], name));
        assert_eq!(a["count"], b["count"], "{name}");
        assert_eq!(a["shallow_bytes"], b["shallow_bytes"], "{name}");
        assert_eq!(a["retained_bytes"], Value::Null, "{name}");
    }
    for flags in [
        &["--no-retained", "--by", "root"][..],
        &["--reachable", "no", "--by", "object"],
        &["--reachable", "any", "--by", "root"],
        &["--no-retained", "--by", "thread"],
        &["--by", "thread", "--focus", "Activity"],
    ] {
        expect(2, &[&["top", &after()][..], flags].concat());
    }
}

#[test]
fn threads_have_their_stacks_and_what_their_frames_hold() {
    let document = json(&["top", &after(), "--by", "thread"]);
    let of = |name: &str| {
        let found = row(&document["rows"], name);
        let locals = found["thread"]["locals"].as_array().unwrap();
        let sizes = locals.iter().map(|l| l["retained_bytes"].as_u64().unwrap());
        (found, locals, sizes.collect::<Vec<u64>>())
    };
    let (main, locals, sizes) = of("main");
    assert_eq!(
        main["thread"]["stack"][1],
        "lab.LeakLab.main (LeakLab.java:58)"
    );
    assert_eq!(
        (&locals[0]["name"], &locals[0]["frame"]),
        (&"lab.LeakLab$Shared".into(), &1.into())
    );
    assert!(sizes.is_sorted_by(|a, b| a >= b), "{sizes:?}");
    // Its object retains 12,976 B more.
    assert_eq!(main["retained_bytes"], sizes.iter().sum::<u64>() + 12_976);
    // The object of this thread is a local of its `run`, and counts once.
    let (holder, _, sizes) = of("holder-thread");
    assert_eq!(holder["retained_bytes"], sizes.iter().sum::<u64>());
    assert_eq!((&holder["count"], sizes.len()), (&3.into(), 3));
    let refused = expect(
        2,
        &[
            "top",
            &fixture("heap_graphs/graph_10k.pftrace.zst"),
            "--by",
            "thread",
        ],
    );
    refused
        .assert_stderr("does not contain threads")
        .assert_stderr("--hprof");
    let csv = words(&format!("top {} --by thread --csv", after()));
    let id = main["thread"]["id"].as_str().unwrap();
    assert_contains(&csv, &format!("\nmain,10,952,0,34,665896,0,{id},"));
}

#[test]
fn android_heaps_keep_native_bytes_apart() {
    let heap = fixture("hprof/android-a.hprof.gz");
    let document = json(&["top", &heap, "--by", "class"]);
    let bitmaps = row(&document["rows"], "android.graphics.Bitmap");
    assert!(
        bitmaps["native_bytes"].as_u64().unwrap() > 1 << 20,
        "{bitmaps}"
    );
    assert_eq!(bitmaps["native_bytes"], bitmaps["retained_native_bytes"]);
    let objects = json(&format!("top {heap} --by object --focus Bitmap$ -l 1"));
    let largest = &objects["rows"][0];
    assert_eq!(largest["native_bytes"], bitmaps["native_bytes"]);
    let holder = largest["object"]["held_by"]
        .as_array()
        .unwrap()
        .last()
        .unwrap();
    assert!(
        holder.as_str().unwrap().starts_with("Object[].["),
        "{holder}"
    );
    let heaps = json(&["top", &heap, "--by", "heap"]);
    assert!(heaps["rows"].as_array().unwrap().len() > 1, "{heaps}");
}

#[test]
fn the_dominator_tree_unfolds_to_a_depth() {
    let text = words(&["top", &after(), "--tree", "--focus", "^class lab.LeakLab$"]);
    let lines: Vec<&str> = text.lines().collect();
    let at = lines
        .iter()
        .position(|l| l.ends_with("  class lab.LeakLab"))
        .unwrap();
    assert!(lines[at + 1].contains("├ "), "{text}");
    assert!(
        lines.iter().any(|l| l.ends_with("├ lab.LeakLab$Listener")),
        "{text}"
    );
    let document = json(&format!("top {} --tree --depth 2 --min 100k", after()));
    for node in document["nodes"].as_array().unwrap() {
        assert!(node["depth"].as_u64().unwrap() < 2);
        let bytes = |field: &str| node[field].as_u64().unwrap();
        assert!(bytes("retained_bytes") + bytes("retained_native_bytes") >= 100 << 10);
    }
}

#[test]
fn the_dominator_tree_can_be_of_packages() {
    let tree = ["top", &after(), "--tree", "--by"];
    let document = json(&[&tree[..], &["package", "--depth", "1", "--min", "0"]].concat());
    let nodes = document["nodes"].as_array().unwrap();
    let retained = |row: &serde_json::Value| row["retained_bytes"].as_u64().unwrap();
    let sum: u64 = nodes.iter().map(retained).sum();
    assert_eq!(sum, retained(&document["reachable"]));
    // Objects whose dominator is of the package join its node.
    let classes = json(&[&tree[..], &["class", "--depth", "1", "--min", "0"]].concat());
    let of_lab = |row: &&serde_json::Value| row["name"].as_str().unwrap().contains("lab.LeakLab");
    let of_classes = classes["nodes"].as_array().unwrap().iter().filter(of_lab);
    assert_eq!(
        retained(row(&document["nodes"], "lab")),
        of_classes.map(retained).sum::<u64>()
    );
    expect(2, &[&tree[..], &["root"]].concat());
}

#[test]
fn patterns_are_checked_and_colours_come_where_they_are_asked_for() {
    expect(2, &["top", &after(), "--focus", "("]);
    let text = words(&["top", &after(), "--color", "always"]);
    assert!(text.contains("\x1b[1m"), "colours where they are asked for");
}

#[test]
fn threads_are_bounded_by_the_flag_or_the_environment_and_change_no_figure() {
    let heap = after();
    let top = |threads: Option<&str>, flags: &[&str]| {
        let mut command = crate::program::heaptap();
        command.args(["top", &heap, "--json"]).args(flags);
        if let Some(threads) = threads {
            command.env("HEAPTAP_THREADS", threads);
        }
        command.output().unwrap()
    };
    let usual = top(None, &[]);
    for (threads, flags) in [(Some("1"), &[][..]), (Some("none"), &["--threads", "1"])] {
        let bounded = top(threads, flags);
        assert_eq!(bounded.status.code(), Some(0));
        assert_eq!(bounded.stdout, usual.stdout);
    }
    let refused = top(Some("0"), &[]);
    assert_eq!(refused.status.code(), Some(2));
    let document: Value = serde_json::from_slice(&refused.stdout).unwrap();
    assert_eq!(document["error"]["kind"], "bad-value");
    assert_eq!(top(None, &["--threads", "0"]).status.code(), Some(2));
}

/// Returns the error of a wrong use.
fn told(args: &[&str]) -> String {
    expect(2, args).stderr
}

#[test]
fn the_dump_before_an_exit_is_next() {
    let trace = fixture("conversions/rust_cont_symbolized.pftrace");
    for args in [&["--at", "last"][..], &[], &["--focus", "Nothing"]] {
        let output = heaptap(&[&["top", trace.as_str()], args].concat());
        let next = output
            .stderr
            .lines()
            .find_map(|line| line.strip_prefix("next: heaptap "));
        let next: Vec<&str> = next.expect("a command").split(' ').collect();
        assert!(next[1].ends_with("pftrace@8"), "{output}");
        assert_eq!(heaptap(&next).status.code(), Some(0), "{next:?}");
    }
}

#[test]
fn a_wrong_use_is_answered_with_the_right_one() {
    let (before, after) = (before(), after());
    let told_by = told(&["top", &before, "--by", "library"]);
    let values = "class, package, thread, superclass, object, heap, loader, root";
    assert_contains(&told_by, &format!("use one of {values}\n"));
    let told_by = told(&["diff", &before, &after, "--by", "library"]);
    assert_contains(&told_by, "use one of class, package, path, leak\n");
    let told_view = told(&["top", &before, "--view", "space"]);
    assert_contains(&told_view, "help: leave out the flag\n");
    let told_two = told(&["top", &before, &after]);
    assert_contains(&told_two, "`heaptap diff` compares two");
    let told_depth = told(&["top", &before, "--depth", "x"]);
    assert_contains(
        &told_depth,
        "cannot use --depth x: it is not a whole number",
    );
    let told_kinds = told(&["top", &before, "--heap", "app,libc.malloc"]);
    assert_contains(&told_kinds, "--heap value names both Java heaps and native");
    let told_output = told(&["convert", &before, &after]);
    assert_contains(&told_output, "an output is named with -o");
    let told_query = told(&["query", &before, "SELECT 1", &after]);
    assert_contains(&told_query, "`heaptap diff` compares two");
    let told_info = told(&["hprof", "info", &before, &after]);
    assert_lacks(&told_info, "heaptap diff");
}

#[test]
fn what_matches_nothing_says_so_and_leads_nowhere() {
    let trace = fixture("conversions/c_cont.pftrace");
    for (input, args) in [
        (before(), &["--tree"][..]),
        (before(), &[]),
        (trace.clone(), &["--tree"]),
        (trace.clone(), &[]),
    ] {
        let args = [&["top", input.as_str(), "--focus", "Nothing"][..], args].concat();
        let output = expect(0, &args);
        let text = output.stdout + &output.stderr;
        let says = ["nothing matches", "no node matches"];
        assert!(
            says.iter().any(|says| text.contains(says)),
            "{args:?} {text}"
        );
        assert!(!text.contains("next: "), "{args:?} {text}");
    }
}
