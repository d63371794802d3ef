//! One small profile with unusual names in every text format, with values compared.

use super::chosen::Chosen;
use super::{csv, folded, json, speedscope, svg};
use heaptap_model::profile::DumpKind;
use heaptap_model::stacks::{
    Dump, Facts, Frame, Function, Kind, Library, Measure, NodeId, StackProfile, TextId, Unit,
    Values, View,
};
use std::io;

#[cfg(feature = "parquet")]
mod tables;

fn child(profile: &mut StackProfile, parent: NodeId, name: &str, line: u32) -> NodeId {
    let table = &mut profile.table;
    let library = Library {
        path: table.text("/data/app/lib/libapp.so"),
        build_id: table.text("abcd"),
    };
    let function = Function {
        name: table.text(name),
        system_name: TextId::default(),
        library: table.library(library),
        kind: Kind::Plain,
    };
    let frame = Frame {
        function: table.function(function),
        file: table.text("app.cpp"),
        line,
        inlined: false,
    };
    let frame = table.frame(frame);
    table.child(parent, frame)
}

/// `main` calls `load` from two lines, whose stacks have 300 and 40 bytes; `main` itself has 7.
fn profile() -> StackProfile {
    let mut profile = StackProfile::default();
    let main = child(&mut profile, NodeId::ROOT, "main", 1);
    let load = child(&mut profile, main, "=load;\n\"x\", y", 2);
    let again = child(&mut profile, main, "=load;\n\"x\", y", 3);
    let unused = child(&mut profile, NodeId::ROOT, "unused", 9);
    profile.dumps.push(Dump {
        facts: Facts {
            number: 4,
            label: Some("after,login".to_owned()),
            pid: 12,
            process: "com.example".to_owned(),
            heap: "libc.malloc".to_owned(),
            time_ns: Some(5_000_000_000),
            wall_time_ns: Some(1_700_000_000_000_000_000),
            sampling_interval_bytes: 4096,
            kind: DumpKind::Cumulative,
            ..Facts::default()
        },
        measures: View::ALL.map(Measure::of_view).to_vec(),
        default_measure: 0,
        values: Values {
            nodes: vec![main, load, again, unused],
            columns: vec![
                vec![7, 300, 40, 0],
                vec![7, 500, 40, 0],
                vec![1, 3, 1, 0],
                vec![1, 5, 1, 0],
            ],
        },
        threads: Vec::new(),
    });
    profile
}

fn text(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).expect("writing to memory cannot fail");
    String::from_utf8(out).expect("the formats are UTF-8")
}

#[test]
fn folded_stacks_add_up_by_name() {
    let profile = profile();
    let chosen = Chosen::all(&profile);
    let written = text(|out| folded::write(out, chosen.table, &chosen.dumps[0], 0));
    assert_eq!(written, "main 7\nmain;=load: \"x\", y 340\n");
}

#[test]
fn csv_has_a_row_a_callsite_and_no_formula() {
    let profile = profile();
    let written = text(|out| csv::write(out, &Chosen::all(&profile)));
    let lines: Vec<&str> = written.split("\n").collect();
    assert_eq!(
        lines[0],
        "dump,label,time_ns,time,pid,process,heap,function,library,file,line,stack,\
         space,alloc_space,objects,alloc_objects"
    );
    assert_eq!(
        lines[2],
        "4,\"after,login\",5000000000,2023-11-14T22:13:20Z,12,com.example,libc.malloc,\
         \"'=load;\u{fffd}\"\"x\"\", y\",/data/app/lib/libapp.so,app.cpp,2,\
         \"main;'=load: \"\"x\"\", y\",300,500,3,5"
    );
    assert_eq!(lines.len(), 5, "three rows and the heading");
}

#[test]
fn json_leaves_out_what_no_number_needs() {
    let profile = profile();
    let written = text(|out| json::write(out, &Chosen::all(&profile)));
    let json: serde_json::Value = serde_json::from_str(&written).expect("it is JSON");
    assert_eq!(json["schema"], "heaptap-profile");
    assert_eq!(json["functions"].as_array().map(Vec::len), Some(2));
    assert_eq!(json["functions"][1]["name"], "=load;\n\"x\", y");
    assert_eq!(
        json["callsites"]["parent"],
        serde_json::json!([null, 0, 1, 1])
    );
    assert_eq!(
        json["callsites"]["frame"],
        serde_json::json!([null, 0, 1, 2])
    );
    let dump = &json["dumps"][0];
    assert_eq!(dump["callsite"], serde_json::json!([1, 2, 3]));
    assert_eq!(dump["values"][0], serde_json::json!([7, 300, 40]));
    assert_eq!(dump["totals"], serde_json::json!([347, 547, 5, 7]));
    assert_eq!(dump["measures"][0]["view"], "space");
}

#[test]
fn speedscope_has_a_profile_for_each_view() {
    let mut profile = profile();
    profile.dumps[0].values.columns[3][0] = -1;
    let mut out = Vec::new();
    let negative =
        speedscope::write(&mut out, &Chosen::all(&profile), "rec").expect("it is written");
    assert_eq!(negative, 1);
    let json: serde_json::Value = serde_json::from_slice(&out).expect("it is JSON");
    let profiles = json["profiles"].as_array().expect("a list");
    assert_eq!(profiles.len(), 4);
    assert_eq!(json["activeProfileIndex"], 0);
    let space = &profiles[0];
    assert_eq!(space["unit"], "bytes");
    assert_eq!(
        (&space["startValue"], &space["endValue"]),
        (&0.into(), &347.into())
    );
    assert_eq!(space["samples"], serde_json::json!([[0], [0, 1], [0, 2]]));
    assert_eq!(space["weights"], serde_json::json!([7, 300, 40]));
    assert_eq!(profiles[2]["unit"], "none");
    assert_eq!(json["shared"]["frames"][2]["line"], 3);
}

#[test]
fn a_flamegraph_is_a_picture_and_nothing_else() {
    let mut profile = profile();
    let evil = child(
        &mut profile,
        NodeId::ROOT,
        "</title><script>x</script>\u{202e}",
        0,
    );
    let values = &mut profile.dumps[0].values;
    values.nodes.push(evil);
    values
        .columns
        .iter_mut()
        .for_each(|column| column.push(2000));
    let chosen = Chosen::all(&profile);
    let written = text(|out| svg::write(out, chosen.table, &chosen.dumps[0], 0, "rec"));
    for unwanted in ["<script", "\u{202e}", "href", "style", "onload"] {
        assert!(!written.contains(unwanted), "{unwanted}: {written}");
    }
    assert!(
        written.contains("<title>=load;\u{fffd}&quot;x&quot;, y&#10;340 B, 14.49 %"),
        "{written}"
    );
    assert!(
        written.contains("all&#10;2.3 KiB (2,347 B), 100.00 %"),
        "{written}"
    );
}

#[test]
fn stacks_of_any_depth_are_written() {
    let mut profile = StackProfile::default();
    let mut node = NodeId::ROOT;
    for _ in 0..100_000 {
        node = child(&mut profile, node, "f", 0);
    }
    profile.dumps.push(Dump {
        measures: vec![Measure::of_view(View::Space)],
        values: Values {
            nodes: vec![node],
            columns: vec![vec![1]],
        },
        ..Dump::default()
    });
    let chosen = Chosen::all(&profile);
    let written = text(|out| folded::write(out, chosen.table, &chosen.dumps[0], 0));
    assert_eq!(written.len(), 200_000 + " 1\n".len() - 1);
    let written = text(|out| svg::write(out, chosen.table, &chosen.dumps[0], 0, ""));
    assert!(written.contains("deeper"), "omitted frames are mentioned");
    let written = text(|out| csv::write(out, &chosen));
    let cell = written.split(',').find(|cell| cell.starts_with('…'));
    assert!(
        cell.is_some_and(|cell| cell.len() < 32_767),
        "a cell holds it"
    );
    text(|out| json::write(out, &chosen));
}

#[test]
fn an_empty_profile_is_written_as_one() {
    let mut profile = StackProfile::default();
    let chosen = Chosen::all(&profile);
    serde_json::from_str::<serde_json::Value>(&text(|out| json::write(out, &chosen)))
        .expect("it is JSON");
    let written = text(|out| speedscope::write(out, &chosen, "none").map(drop));
    serde_json::from_str::<serde_json::Value>(&written).expect("it is JSON");
    assert_eq!(text(|out| csv::write(out, &chosen)).lines().count(), 1);
    profile.dumps.push(Dump {
        measures: vec![Measure::of_view(View::Space)],
        values: Values {
            nodes: Vec::new(),
            columns: vec![Vec::new()],
        },
        ..Dump::default()
    });
    let chosen = Chosen::all(&profile);
    assert_eq!(
        text(|out| folded::write(out, chosen.table, &chosen.dumps[0], 0)),
        ""
    );
    let written = text(|out| svg::write(out, chosen.table, &chosen.dumps[0], 0, ""));
    assert!(written.contains("0 B in total"), "{written}");
    #[cfg(feature = "parquet")]
    tables::assert_written_of_nothing(&chosen);
}
