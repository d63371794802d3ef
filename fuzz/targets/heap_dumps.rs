//! HPROF files.

use android_hprof::convert::{ConvertOptions, convert};
use android_hprof::info::{Contents, info};
use android_hprof::records::{Header, Records};
use android_hprof::strip::{StripOptions, strip};
use android_hprof::sub_records::SubRecords;
use android_hprof::{Options, histogram, read};
use heaptap_analyze::{fields, leaks, paths, waste};
use heaptap_base::bytes::Bytes;
use heaptap_model::heap_graph::{
    Dominators, Follow, HeapGraph, ObjectIndex, Reachable, ShortestPaths,
};
use std::num::NonZero;
use std::ops::ControlFlow;

/// Bytes as an HPROF, record by record: every byte is passed at most once, and the end is
/// reached.
pub fn hprof_records(bytes: &[u8]) {
    let Ok(header) = Header::read(bytes) else {
        assert!(info(bytes).is_err());
        return;
    };
    let mut records = Records::new(bytes, &header);
    let mut at = records.at();
    while let Some(record) = records.next() {
        assert!(records.at() > at, "it goes on");
        at = records.at();
        let Ok(record) = record else { continue };
        let _ = record.content(header.id_size);
        if !record.is_dump() {
            continue;
        }
        let mut subs = SubRecords::new(bytes, &record, header.id_size);
        let mut sub_at = subs.at();
        while let Some(sub) = subs.next() {
            assert!(subs.at() > sub_at || sub.is_err());
            sub_at = subs.at();
        }
        assert!(sub_at <= bytes.len());
        records.continue_at(sub_at.max(record.body_range().start));
        at = records.at();
    }
    let info = info(bytes).expect("it has a header");
    assert!(info.damage.first.len() as u64 <= info.damage.count);
}

/// Bytes as an HPROF, as a graph: with all that is computed on it and asked of it.
pub fn hprof_graph(bytes: &[u8]) {
    const OBJECTS: u32 = 300;
    let bytes = Bytes::from(bytes.to_vec());
    let options = |threads| Options {
        threads: NonZero::new(threads),
        ..Options::default()
    };
    let Ok(graph) = read(bytes.clone(), &options(1)) else {
        assert!(histogram(&bytes, &options(1)).is_err());
        return;
    };
    let again = read(bytes.clone(), &options(3)).expect("as with one thread");
    assert_same(&graph, &again);
    histogram(&bytes, &options(2)).expect("as the graph");
    let dominators = Dominators::compute(&graph, Follow::default());
    let shortest = ShortestPaths::new(&graph, Follow::default());
    assert_eq!(dominators.order().len(), shortest.order().len());
    for object in (0..OBJECTS.min(graph.len() as u32)).map(ObjectIndex) {
        assert_eq!(graph.find(graph.id(object)), Some(object));
        fields::visit(&graph, object, |_| ControlFlow::Continue(()));
        let contents = graph.contents();
        contents.string(&graph, object);
        contents.primitive_array(&graph, object);
        contents.object_array_length(&graph, object);
        contents.allocated_at(&graph, object);
        contents.identity_hash(&graph, object);
        paths::shortest(&graph, &shortest, Follow::default(), object);
    }
    let _ = leaks::find(&graph);
    let _ = waste::find(&graph, &Reachable::new(&graph, Follow::default()), 10);
}

pub fn assert_same(one: &HeapGraph, other: &HeapGraph) {
    assert_eq!(one.len(), other.len());
    assert_eq!(one.roots(), other.roots());
    for object in (0..one.len() as u32).map(ObjectIndex) {
        assert_eq!(one.id(object), other.id(object));
        assert_eq!(one.shallow_bytes(object), other.shallow_bytes(object));
        assert_eq!(one.references(object), other.references(object));
    }
}

/// Bytes as an HPROF that is converted and stripped: what comes out can be read to its end, and
/// has nothing in its arrays.
pub fn hprof_tools(bytes: &[u8]) {
    for (app_only, compat) in [(false, false), (true, false), (false, true)] {
        let mut out = Vec::new();
        let options = ConvertOptions { app_only, compat };
        if let Ok(done) = convert(bytes, options, &mut out) {
            assert_eq!(done.file.bytes, out.len() as u64);
            let after = info(&out).expect("a header");
            // What only the app's heap leaves of a record may be nothing, as hprof-conv has it.
            assert!(
                compat || app_only || after.damage.is_empty(),
                "{:?}",
                after.damage
            );
        }
    }
    for (keep_strings, fields) in [(false, false), (true, false), (false, true)] {
        let options = StripOptions {
            keep_strings,
            fields,
        };
        let mut out = Vec::new();
        let Ok(done) = strip(bytes, options, &mut out) else {
            continue;
        };
        assert!(out.len() <= bytes.len() && done.file.bytes == out.len() as u64);
        let after = info(&out).expect("a header");
        assert!(after.damage.is_empty(), "{:?}", after.damage);
        assert!(keep_strings || after.contents != Contents::Present);
        let mut again = Vec::new();
        strip(&out, options, &mut again).expect("a header");
        assert!(again == out, "stripped is stripped");
    }
}
