//! Decoded data equals the encoded data for any profile.

use super::header::Header;
use super::*;
use heaptap_model::profile::DumpKind;
use heaptap_model::stacks::{
    Dump, Frame, Function, Kind, Library, Measure, NodeId, StackProfile, StackTable, Unit, Values,
    View,
};
use proptest::prelude::*;

/// Frame as text, for comparison across tables.
type Shown = (String, String, String, String, Kind, String, u32, bool);

fn shown(table: &StackTable, node: NodeId) -> Vec<Shown> {
    let text = |id| table.text_of(id).to_owned();
    table
        .stack(node)
        .map(|node| {
            let frame = table.frame_of(node).expect("not the root");
            let frame = table.frames()[frame.0 as usize];
            let function = &table.functions()[frame.function.0 as usize];
            let library = &table.libraries()[function.library.0 as usize];
            (
                text(function.name),
                text(function.system_name),
                text(library.path),
                text(library.build_id),
                function.kind,
                text(frame.file),
                frame.line,
                frame.inlined,
            )
        })
        .collect()
}

/// Stack with its values by measure.
type Row = (Vec<Shown>, Vec<(String, i64)>);
/// Dump: its base, and count and bytes by callsite.
type Numbers = (u8, Vec<(u8, i64, i64)>);

/// Returns rows by stack, without zeros.
fn rows(profile: &StackProfile, dump: &Dump) -> Vec<Row> {
    let mut rows: Vec<_> = dump
        .values
        .nodes
        .iter()
        .enumerate()
        .map(|(row, &node)| {
            let values = dump.measures.iter().zip(&dump.values.columns);
            let mut values: Vec<(String, i64)> = values
                .map(|(measure, column)| (measure.name.clone(), column[row]))
                .collect();
            values.sort();
            (shown(&profile.table, node), values)
        })
        .filter(|(_, values)| values.iter().any(|(_, value)| *value != 0))
        .collect();
    rows.sort();
    rows
}

/// Creates a tree and dumps from a few numbers.
fn profile(calls: &[(u8, u8)], dumps: &[Numbers]) -> StackProfile {
    let names = [
        "",
        "main",
        "\u{feff}größe",
        "日本語",
        "a😀b",
        "</script>",
        "load",
    ];
    let mut table = StackTable::default();
    let mut nodes = vec![NodeId::ROOT];
    for &(parent, name) in calls {
        let name = usize::from(name);
        let text = table.text(names[name % names.len()]);
        let library = Library {
            path: table.text(names[name % 3]),
            build_id: text,
        };
        let function = Function {
            name: text,
            system_name: table.text(names[name % 2]),
            library: table.library(library),
            kind: [Kind::Plain, Kind::Allocator, Kind::Runtime, Kind::Java][name % 4],
        };
        let frame = Frame {
            function: table.function(function),
            file: text,
            line: name as u32 * 1000,
            inlined: name.is_multiple_of(2),
        };
        let frame = table.frame(frame);
        nodes.push(table.child(nodes[usize::from(parent) % nodes.len()], frame));
    }
    let dumps = dumps.iter().enumerate().map(|(at, (kind, given))| {
        let views: &[View] = match kind % 3 {
            0 => &View::ALL,
            1 => &[View::AllocSpace, View::AllocObjects],
            _ => &[View::Space],
        };
        let mut measures: Vec<Measure> = views.iter().copied().map(Measure::of_view).collect();
        if kind % 5 == 0 {
            measures.insert(
                0,
                Measure {
                    name: "contentions".to_owned(),
                    unit: Unit::Other("nanoseconds".to_owned()),
                    view: None,
                    small_of: None,
                },
            );
        }
        let mut values = std::collections::BTreeMap::new();
        for &(node, count, bytes) in given {
            values.insert(nodes[usize::from(node) % nodes.len()], (count, bytes));
        }
        let columns = measures
            .iter()
            .map(|measure| {
                let pick = |(count, bytes): &(i64, i64)| match measure.unit {
                    Unit::Count => *count,
                    _ => bytes.wrapping_add(count.wrapping_mul(4096)),
                };
                values.values().map(pick).collect()
            })
            .collect();
        let mut dump = Dump {
            default_measure: measures.len() - 1,
            measures,
            values: Values {
                nodes: values.keys().copied().collect(),
                columns,
            },
            ..Dump::default()
        };
        dump.facts.number = at as u32 * 3;
        dump.facts.pid = u64::from(kind / 128);
        dump.facts.process = "com.example.app".to_owned();
        dump.facts.heap = "libc.malloc".to_owned();
        dump.facts.sampling_interval_bytes = 4096;
        dump.facts.time_ns = Some(1_000_000 + at as u64 * 1000);
        dump.facts.kind = DumpKind::Cumulative;
        dump.facts.flags.disconnected = kind % 7 == 0;
        dump
    });
    StackProfile {
        dumps: dumps.collect(),
        table,
    }
}

fn encoded(profile: &StackProfile) -> Vec<u8> {
    let mut header = Header::default();
    outline(profile, &[], &mut header);
    let native = NativeSections::new(profile, &header);
    encode(Some(native), header, Vec::new()).bytes
}

fn check(profile: &StackProfile) -> Data {
    let order = Order::from_profile(profile);
    let data = encoded(profile);
    let mut page = Vec::new();
    blocks::Blocks::from_data(&data)
        .write(&mut page)
        .expect("it is written");
    let page = String::from_utf8(page).expect("base64 is text");
    assert_eq!(from_page(&page).as_deref(), Some(&data[..]));
    let read = Data::decode(&data).expect("it was just written");
    assert_eq!(read.native.dumps.len(), profile.dumps.len());
    for (dump, back) in profile.dumps.iter().zip(&read.native.dumps) {
        assert_eq!(rows(profile, dump), rows(&read.native, back));
        assert_eq!(dump.facts, back.facts);
        assert_eq!(
            dump.measures[dump.default_measure],
            back.measures[back.default_measure]
        );
        for &node in &dump.values.nodes {
            let number = NodeId(order.number(node).expect("it has values"));
            assert_eq!(
                shown(&profile.table, node),
                shown(&read.native.table, number),
                "callsites have the numbers that the header names them by"
            );
        }
    }
    for (dump, header) in read.native.dumps.iter().zip(&read.header.dumps) {
        for (column, measure) in dump.values.columns.iter().zip(&header.measures) {
            assert_eq!(measure.total, total(column));
        }
    }
    read
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_profile_comes_back(
        calls in proptest::collection::vec((any::<u8>(), 0u8..24), 0..60),
        dumps in proptest::collection::vec(
            (any::<u8>(), proptest::collection::vec(
                (any::<u8>(), 0i64..9, prop_oneof![Just(0), -5i64..5, any::<i64>()]), 0..20)),
            0..5),
    ) {
        check(&profile(&calls, &dumps));
    }

    #[test]
    fn damaged_data_is_refused_or_read_and_never_worse(
        at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<prop::sample::Index>(),
    ) {
        let profile = profile(&[(0, 1), (1, 2), (1, 3), (0, 4)], &[
            (0, vec![(1, 2, 0), (3, 1, 7)]), (0, vec![(1, 3, 0), (4, 1, 7)]),
        ]);
        let mut data = encoded(&profile);
        let at = at.index(data.len());
        data[at] = byte;
        let _ = Data::decode(&data);
        data.truncate(cut.index(data.len()));
        prop_assert!(Data::decode(&data).is_none());
    }
}

#[test]
fn a_later_dump_is_written_as_what_changed_and_counts_tell_bytes() {
    let given: Vec<_> = (1..=100).map(|node| (node, 3, 0)).collect();
    let calls: Vec<_> = (0..100).map(|at| (0, at)).collect();
    let calls: Vec<_> = calls
        .iter()
        .map(|&(parent, at)| (parent, at % 24))
        .collect();
    let mut later = given.clone();
    later[99].1 = 5;
    let profile = profile(&calls, &[(3, given), (3, later)]);
    let read = check(&profile);
    let [first, second] = &read.header.dumps[..] else {
        panic!("two dumps");
    };
    assert_eq!((first.base, second.base), (None, Some(0)));
    assert_eq!(second.rows, 1);
    assert_eq!(second.callsites, first.callsites);
    assert_eq!(read.header.series.len(), 1);
    let space = &first.measures[1];
    assert_eq!(space.view.as_deref(), Some("space"));
    assert_eq!(
        space.derived,
        Some(header::DerivedMeasure {
            measure: 0,
            times: 4096
        })
    );
}

#[test]
fn a_restart_begins_a_series_that_knows_the_one_before() {
    let given = || vec![(1, 2, 0)];
    let profile = profile(&[(0, 1)], &[(3, given()), (130, given()), (3, given())]);
    let series = check(&profile).header.series;
    assert_eq!(series.len(), 2);
    assert_eq!(series[0].dumps, [0, 2]);
    assert_eq!((series[0].after, series[1].after), (None, Some(0)));
}

#[test]
fn nothing_is_a_page_too_and_depth_does_no_harm() {
    check(&StackProfile::default());
    let calls: Vec<_> = (0..=250u8).map(|at| (at, at % 24)).collect();
    check(&profile(&calls, &[(0, vec![(250, 1, 1)])]));
    let mut table = StackTable::default();
    let frame = table.bare_frame("again");
    let leaf = (0..100_000).fold(NodeId::ROOT, |above, _| table.child(above, frame));
    let dump = Dump {
        measures: vec![Measure::of_view(View::Space)],
        values: Values {
            nodes: vec![leaf],
            columns: vec![vec![1]],
        },
        ..Dump::default()
    };
    let profile = StackProfile {
        table,
        dumps: vec![dump],
    };
    let data = encoded(&profile);
    let read = Data::decode(&data).expect("it was just written");
    assert_eq!(read.native.table.stack(NodeId(100_000)).count(), 100_000);
}

#[test]
fn a_column_of_another_tool_is_no_error_of_ours_whatever_its_name() {
    let own = Measure::small_samples(View::Space);
    let foreign = Measure {
        small_of: None,
        ..own.clone()
    };
    let small_of = |measure| values::measure(measure, 0).small_of;
    assert_eq!(small_of(&own).as_deref(), Some("space"));
    assert_eq!(small_of(&foreign), None);
    let dump = Dump {
        measures: vec![Measure::of_view(View::Space), foreign],
        values: Values {
            nodes: vec![NodeId::ROOT],
            columns: vec![vec![1], vec![1]],
        },
        ..Dump::default()
    };
    let profile = StackProfile {
        dumps: vec![dump],
        ..StackProfile::default()
    };
    let read = check(&profile);
    assert_eq!(read.header.dumps[0].measures[1].small_of, None);
}

#[test]
fn what_a_long_column_follows_from_is_found_in_some_of_its_rows() {
    // Each caller has four callees, one of which allocates less at once.
    let counts: Vec<i64> = (0..40_000).map(|row| row % 7 + 1).collect();
    let bytes = (0..).zip(&counts).map(|(row, count)| match row % 4 {
        0 => count * 64,
        _ => count * 4096,
    });
    let columns = vec![counts.clone(), bytes.collect()];
    let rows = values::Rows {
        nodes: (0..40_000).collect(),
        columns,
    };
    let (_, froms) = rows.encode(&[64, 4096]);
    let nearest = header::DerivedMeasure {
        measure: 0,
        times: 4096,
    };
    assert_eq!(froms, [None, Some(nearest)]);
}
