//! Files after bugs, crashes and damage: records that are cut off, doubled, unknown or too long.

use super::dump::{ClassSpec, Dump, Val, put_record};
use super::shapes::{ARRAY, NODE, OBJECT, node, with_classes};
use super::{class_name, graph_of, object, references};
use crate::records::tag;
use crate::{Options, histogram, read};
use heaptap_base::bytes::Bytes;
use heaptap_model::heap_graph::BasicType::{Long, Object};

#[test]
fn unknown_top_level_records_are_skipped_by_their_length() {
    let mut dump = Dump::hotspot();
    dump.record(0x77, &[0x1c; 21]);
    node(with_classes(&mut dump), 0x1000, 0);
    let graph = graph_of(dump.finish());
    assert_eq!(graph.len(), 5);
    assert_eq!(graph.facts.losses, Default::default());
}

#[test]
fn a_dump_whose_writer_died_is_read_to_its_end_and_told() {
    let mut dump = Dump::hotspot();
    with_classes(&mut dump).segment();
    node(&mut dump, 0x1000, 0);
    node(&mut dump, 0x1010, 0);
    dump.ended = false;
    let graph = graph_of(dump.finish_with(|at, bytes| if at == 1 { 0 } else { bytes }));
    assert_eq!(graph.len(), 6);
    assert!(graph.facts.losses.truncated);
    // An emptied segment is different: a record follows.
    let mut emptied = Dump::hotspot();
    with_classes(&mut emptied).segment().segment();
    node(&mut emptied, 0x1000, 0);
    let graph = graph_of(emptied.finish());
    assert_eq!(graph.len(), 5);
    assert!(!graph.facts.losses.truncated);
}

#[test]
fn a_sub_record_that_crosses_the_end_of_its_record_is_finished_by_its_own_length() {
    let mut dump = Dump::hotspot();
    with_classes(&mut dump);
    dump.array(0x1000, Long, &[0x1c; 800]).segment();
    node(&mut dump, 0x1010, 0x1000).segment();
    node(&mut dump, 0x1020, 0x1010);
    let claim = |at, bytes: u32| if at == 0 { bytes - 500 } else { bytes };
    let file = dump.finish_with(claim);
    let graph = graph_of(file.clone());
    assert_eq!(graph.len(), 7);
    assert_eq!(references(&graph, 0x1020), [0x1010]);
    assert_eq!(graph.facts.losses, Default::default());
    let counts = histogram(&Bytes::from(file), &Options::default()).expect("it has a header");
    assert_eq!(counts.rows.iter().map(|row| row.objects).sum::<u64>(), 7);
}

/// A file of more than 4 GiB that takes no space on the disk.
#[cfg(target_os = "linux")]
#[test]
fn a_record_of_more_than_4_gib_claims_its_length_modulo_that() {
    use std::io::{Seek as _, SeekFrom, Write as _};
    let mut dump = Dump::hotspot();
    node(with_classes(&mut dump), 0x1000, 0);
    // An array of zeros, whose data begin at the end of what is written.
    let data_bytes = (1 << 32) + 800u64;
    dump.array_without_data(0x23, 0x1010, Long, (data_bytes / 8) as u32);
    dump.segment_tag = tag::HEAP_DUMP;
    dump.ended = false;
    let mut head = dump.finish();
    let claimed_at = dump.front().len() + 5;
    let claimed = (head.len() - claimed_at - 4) as u32 + 800;
    head[claimed_at..claimed_at + 4].copy_from_slice(&claimed.to_be_bytes());
    let mut file = tempfile::tempfile().expect("the temporary directory exists");
    file.write_all(&head).expect("there is room");
    file.seek(SeekFrom::Start(0)).expect("it is a file");
    file.set_len(head.len() as u64 + data_bytes)
        .expect("files can have holes");
    let graph = read(
        Bytes::from_file(&file, std::path::Path::new("damaged")).expect("it can be mapped"),
        &Options::default(),
    );
    let graph = graph.expect("it has a header");
    assert_eq!(graph.facts.losses, Default::default());
    assert!(graph.shallow_bytes(object(&graph, 0x1010)) > data_bytes);
    assert_eq!(graph.len(), 6);
}

#[test]
fn of_an_object_that_comes_twice_the_last_record_counts() {
    let mut dump = Dump::hotspot();
    with_classes(&mut dump);
    node(&mut dump, 0x1000, NODE);
    dump.objects(0x1010, ARRAY, &[0x1000, 0x1000]).segment();
    node(&mut dump, 0x1000, 0x1010);
    dump.objects(0x1010, ARRAY, &[NODE]);
    let graph = graph_of(dump.finish());
    assert_eq!(graph.len(), 6);
    assert_eq!(graph.facts.losses.repeated_objects, 2);
    assert_eq!(references(&graph, 0x1000), [0x1010]);
    assert_eq!(references(&graph, 0x1010), [NODE]);
}

#[test]
fn the_referent_of_a_record_that_does_not_count_is_none() {
    const WEAK: u64 = 0x150;
    let mut dump = Dump::art();
    with_classes(&mut dump);
    for (id, name, superclass, fields) in [
        (
            0x140,
            "java.lang.ref.Reference",
            OBJECT,
            &[("referent", Object)][..],
        ),
        (WEAK, "java.lang.ref.WeakReference", 0x140, &[]),
    ] {
        dump.class(&ClassSpec {
            id,
            name,
            superclass,
            fields,
            ..ClassSpec::default()
        });
    }
    node(&mut dump, 0x1000, 0);
    node(&mut dump, 0x1010, 0);
    // Twice a reference; first a reference, then none; first none, then a reference.
    dump.instance(0x1020, WEAK, &[Val::Ref(0x1000)]);
    dump.instance(0x1030, WEAK, &[Val::Ref(0x1000)]);
    node(&mut dump, 0x1040, 0x1010);
    dump.instance(0x1020, WEAK, &[Val::Ref(0x1010)]);
    node(&mut dump, 0x1030, 0x1010);
    dump.instance(0x1040, WEAK, &[Val::Ref(0x1000)]);
    let graph = graph_of(dump.finish());
    let referents = |id: u64| -> Vec<u64> {
        let referents = graph.referents_of(object(&graph, id)).iter();
        referents.map(|one| graph.id(one.target).0).collect()
    };
    assert_eq!(referents(0x1020), [0x1010]);
    assert!(referents(0x1030).is_empty());
    assert_eq!(referents(0x1040), [0x1000]);
    assert_eq!(references(&graph, 0x1030), [0x1010]);
    assert!(references(&graph, 0x1040).is_empty());
}

#[test]
fn what_the_dump_does_not_have_is_counted() {
    let mut dump = Dump::art();
    with_classes(&mut dump);
    node(&mut dump, 0x1000, 0xdead0);
    dump.root(0x05, 0xbeef0);
    dump.load_class(0x300, "a.Known");
    dump.instance(0x1010, 0x300, &[Val::Int(1)]);
    dump.instance(0x1020, 0x310, &[]);
    let graph = graph_of(dump.finish());
    assert_eq!(references(&graph, 0x1000), [0]);
    assert_eq!(class_name(&graph, 0x1010), "a.Known");
    assert_eq!(class_name(&graph, 0x1020), "unknown class 0x310");
    let losses = &graph.facts.losses;
    assert_eq!(losses.dangling_references, 1);
    assert_eq!(losses.dangling_roots, 1);
    assert_eq!(losses.unknown_classes, 2);
}

#[test]
fn a_dump_without_its_end_is_truncated_and_damage_has_its_place() {
    let mut dump = Dump::art();
    node(with_classes(&mut dump), 0x1000, 0);
    dump.ended = false;
    assert!(graph_of(dump.finish()).facts.losses.truncated);
    dump.ended = true;
    dump.raw(&[0x55, 1, 2, 3]).segment();
    node(&mut dump, 0x1010, 0);
    let graph = graph_of(dump.finish());
    assert_eq!(graph.len(), 6, "the next segment is whole");
    let losses = &graph.facts.losses;
    assert!(!losses.truncated);
    assert_eq!(losses.malformed, 1);
    assert_eq!(losses.damage.len(), 1);
    assert!(losses.damage[0].contains("0x55"), "{}", losses.damage[0]);
}

#[test]
fn superclasses_in_a_circle_end() {
    let mut dump = Dump::hotspot();
    let circle = [(0x200, 0x210), (0x210, 0x220), (0x220, 0x200)];
    for (id, superclass) in circle {
        dump.class(&ClassSpec {
            id,
            name: "a.Round",
            superclass,
            fields: &[("f", Object)],
            ..ClassSpec::default()
        });
    }
    dump.instance(0x1000, 0x200, &[Val::Ref(0x1000); 9]);
    let graph = graph_of(dump.finish());
    assert_eq!(references(&graph, 0x1000), [0x1000; 9]);
}

#[test]
fn a_file_that_is_only_a_header_is_a_heap_cut_off_before_it_began() {
    let dump = Dump::hotspot();
    let graph = graph_of(dump.front());
    assert!(graph.is_empty());
    assert!(graph.facts.losses.truncated);
    let mut half = dump.front();
    put_record(&mut half, tag::UTF8, &[0; 3], 3);
    let graph = graph_of(half);
    assert_eq!(graph.facts.losses.malformed, 1);
}
