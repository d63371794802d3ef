//! What is fuzzed: the whole way of a hostile file. Shared by the fuzz targets and by
//! `tests/fuzz_corpus.rs`, which replays their corpora with a stable compiler.

use heaptap::analyze::aggregation::class_aggregation;
use heaptap::analyze::class_tree::{ClassTree, Merge, Over};
use heaptap::analyze::{fields, leaks, paths, waste};
use heaptap::bytes::Bytes;
use heaptap::deobfuscate::{AppFrame, Entry, FieldType, MapFile, Retracer};
use heaptap::export::gzip::Gzip;
use heaptap::export::java_pprof::{self, JavaProfile};
use heaptap::export::pprof::{Pprof, PprofOptions};
use heaptap::heap_graph::{Dominators, Follow, HeapGraph, ObjectIndex, Reachable, ShortestPaths};
use heaptap::hprof::convert::{ConvertOptions, convert};
use heaptap::hprof::info::{Contents, info};
use heaptap::hprof::records::{Header, Records};
use heaptap::hprof::strip::{StripOptions, strip};
use heaptap::hprof::sub_records::SubRecords;
use heaptap::hprof::{Options, histogram, read};
use heaptap::import::{Kind, TextInput, read_pprof};
use heaptap::jdwp::{Allocations, Packet};
use heaptap::memory::gc::{self, Axis, Row, Splitter};
use heaptap::memory::graphics;
use heaptap::memory::malloc_info;
use heaptap::memory::meminfo::Meminfo;
use heaptap::memory::smaps::{self, By, Smaps};
use heaptap::memory::status::{self, Status};
use heaptap::naming::names::NameOptions;
use heaptap::naming::r8_mappings::R8Mappings;
use heaptap::stacks::{JoinBy, join};
use heaptap::symbolize::file::{Alone, SymbolFile, identify};
use heaptap::timeline::{Source, Timeline};
use heaptap::trace::{DumpScanner, MemoryWanted, Surveyed, Trace, TraceError, read_packages};
use std::convert::Infallible;
use std::io::{Cursor, Read as _};
use std::num::NonZero;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// Bytes as a trace: decoded, encoded, compressed; its figures of memory; and as one that is
/// still being written.
pub fn trace(bytes: &[u8]) {
    let Ok(mut trace) = Surveyed::read(Box::new(Cursor::new(bytes.to_vec()))) else {
        return;
    };
    let _ = R8Mappings::open_what_opens(&NameOptions::default()).name(&mut trace);
    let mut trace = trace.seal();
    let pprof = Pprof::new(trace.recording().clone(), PprofOptions::default());
    let mut gzip = Gzip::default();
    let _ = trace.read_dumps(|dump| -> Result<(), TraceError> {
        gzip.compress(&pprof.encode(&dump, &[]));
        Ok(())
    });
    for (every_counter, collections_only) in [(false, false), (true, false), (false, true)] {
        let wanted = MemoryWanted {
            pids: None,
            every_counter,
            collections_only,
        };
        if let Ok(memory) = trace.memory(&wanted) {
            let lines: String = memory.timeline.entries.iter().map(|e| e.line()).collect();
            let (back, strange) = Timeline::parse(&lines);
            assert_eq!((back, strange), (memory.timeline, 0));
        }
    }
    for at in 0..trace.smaps().len() {
        if let Ok(rows) = trace.read_smaps(at) {
            all_of_smaps(&heaptap::memory::smaps::Smaps::of_rows(&rows));
        }
    }
    read_packages(bytes);
    let mut scanner = DumpScanner::default();
    for piece in bytes.chunks(100) {
        scanner.push(piece);
    }
}

/// Bytes as a pprof: read, joined with itself both ways, its numbers carried over.
pub fn pprof(bytes: &[u8]) {
    let Some(read) = read_pprof(bytes) else {
        return;
    };
    let table = &read.profile.table;
    for by in [JoinBy::Exact, JoinBy::Name] {
        let joined = join(&[table, table], by);
        assert_eq!(joined.nodes[0], joined.nodes[1]);
        for dump in &read.profile.dumps {
            let through = dump.values.through(&joined.nodes[0]);
            assert!(through.nodes.len() <= dump.values.nodes.len());
            assert!(through.nodes.is_sorted_by(|a, b| a < b));
        }
    }
}

/// Bytes as a trace with Java heaps: decoded, named, walked, written as profiles; twice, with one
/// result.
pub fn heap_graph(bytes: &[u8]) {
    const OBJECTS: u32 = 300;
    let Ok(mut trace) = Surveyed::read(Box::new(Cursor::new(bytes.to_vec()))) else {
        return;
    };
    let maps = R8Mappings::open_what_opens(&NameOptions::default());
    let Ok(mut renamed) = maps.name(&mut trace) else {
        return;
    };
    let mut trace = trace.seal();
    let recording = trace.recording().clone();
    for at in 0..trace.java_dumps().len().min(8) {
        let mut graph = trace.read_java_dump(at).expect("memory can be read");
        let again = trace.read_java_dump(at).expect("memory can be read");
        assert_same(&graph, &again);
        renamed.heaps.name(&mut graph, &recording);
        for object in (0..OBJECTS.min(graph.len() as u32)).map(ObjectIndex) {
            assert_eq!(graph.find(graph.id(object)), Some(object));
            fields::visit(&graph, object, |_| ControlFlow::Continue(()));
        }
        let shortest = ShortestPaths::of(&graph, Follow::default());
        let dominators = Dominators::compute(&graph, Follow::default());
        assert_eq!(dominators.order().len(), shortest.order().len());
        let sums = class_aggregation(&graph, &dominators);
        let reachable: u64 = sums.iter().map(|sums| sums.reachable.count).sum();
        for over in [
            Over::ShortestPaths(&shortest),
            Over::Dominators(&dominators),
        ] {
            let tree = ClassTree::of(&graph, over, Merge::Collapsed);
            let nodes = tree.nodes.iter().filter(|node| !node.is_native);
            assert_eq!(nodes.map(|node| node.count).sum::<u64>(), reachable);
            let (tree, _) = java_pprof::tree_for_profile(&graph, over);
            java_pprof::encode(&tree, &JavaProfile::default());
        }
        let _ = leaks::find(&graph);
    }
}

/// Bytes as a mapping file: indexed, read class by class, and asked for frames with and without
/// lines, as far as that has ends.
pub fn mapping(bytes: &[u8]) {
    const CLASSES: usize = 200;
    const METHODS: usize = 20;
    let Ok(map) = MapFile::from_bytes(Bytes::from(bytes.to_vec()), Path::new("fuzz")) else {
        return;
    };
    let mut classes: Vec<(String, Vec<(String, u32)>)> = Vec::new();
    let Ok(()) = map.entries(|entry| -> Result<(), Infallible> {
        match entry {
            Entry::Class { obfuscated, .. } => classes.push((obfuscated.to_owned(), Vec::new())),
            Entry::Field { .. } => {}
            Entry::Method {
                obfuscated, lines, ..
            } => {
                let (_, methods) = classes
                    .last_mut()
                    .expect("a class comes before its methods");
                let line = lines.obfuscated_end.unwrap_or(7);
                methods.push((obfuscated.to_owned(), line));
            }
        }
        Ok(())
    });
    let retracer = Retracer::new(&map);
    let mut frames = Vec::new();
    for (class, methods) in classes.iter().take(CLASSES) {
        assert!(
            retracer.class(class).is_some(),
            "a class that was given is found"
        );
        retracer.type_name(&format!("{class}[]"));
        for (method, line) in methods.iter().take(METHODS) {
            assert!(!retracer.method(class, method).is_empty());
            retracer.method_with_descriptor(class, method, "(I)V");
            retracer.field(class, method, FieldType::Object);
            retracer.frame(class, method, Some(*line));
            retracer.frame(class, method, None);
            frames.push(AppFrame {
                class,
                method,
                line: Some(*line),
            });
        }
    }
    retracer.stack(Some("a"), &frames);
}

/// Bytes as any input: detected and unpacked.
pub fn input(bytes: &[u8]) {
    text(bytes);
    if let Ok(dump) = heaptap::import::open_hprof_stream(bytes, "fuzz") {
        let _ = Header::read(&dump.bytes);
    }
    let _ = heaptap::import::open_java_stream(bytes, "fuzz");
    if let Ok(traces) = heaptap::import::open_stream(bytes, "fuzz") {
        for trace in traces {
            let _ = Trace::open(trace.source);
        }
    }
}

/// Bytes as a text: its stream is bounded, and begins as its head.
fn text(bytes: &[u8]) {
    const MOST: u64 = 1 << 20;
    let Ok(mut input) = TextInput::of_stream(bytes, "fuzz") else {
        return;
    };
    let is_zip = input.kind() == Kind::Zip;
    let head = input.head().to_vec();
    if let Ok(Some(mut text)) = input.text(MOST) {
        let mut read = Vec::new();
        text.read_to_end(&mut read).expect("memory can be read");
        assert!(is_zip || read.starts_with(&head) || text.is_cut());
        // Two bytes of UTF-16 are at most three of UTF-8.
        assert!(read.len() as u64 <= MOST / 2 * 3 || bytes.len() as u64 > MOST);
    }
    let input = TextInput::of_stream(bytes, "fuzz").expect("it opened before");
    let _ = input.whole(MOST);
}

/// Bytes as an archive that symbols are looked for in: every library in it is unpacked and
/// identified.
pub fn symbols_zip(bytes: &[u8]) {
    let archive = Bytes::from(bytes.to_vec());
    let Ok(libraries) = heaptap::symbolize::find::libraries_in(&archive) else {
        return;
    };
    for (_, library) in libraries {
        if let Ok(library) = library {
            let _ = identify(&library);
        }
    }
}

/// Bytes as a symbol file: identified, opened, and asked for addresses all over it.
pub fn symbol_file(bytes: &[u8]) {
    let bytes = Bytes::from(bytes.to_vec());
    let facts = identify(&bytes);
    let Ok(file) = SymbolFile::open(bytes, Arc::new(Alone)) else {
        assert!(facts.is_err(), "what is identified can be opened");
        return;
    };
    file.svma(0x1234, 0x1000, 0);
    let mut addresses: Vec<u64> = (0..0x8000).step_by(37).collect();
    addresses.extend((0x20_0000..0x20_4000).step_by(101));
    file.lookup(&addresses, NonZero::<usize>::MIN, &mut |at, lines| {
        assert!(at < addresses.len() && !lines.is_empty());
    });
    for note in file.notes() {
        assert!(!note.to_string().is_empty());
    }
}

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
    let shortest = ShortestPaths::of(&graph, Follow::default());
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
    let _ = waste::find(&graph, &Reachable::of(&graph, Follow::default()), 10);
}

fn assert_same(one: &HeapGraph, other: &HeapGraph) {
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

/// Bytes as what a phone answers while an app is provoked, and as an action.
pub fn provoke(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    heaptap::provoke::read::every_reader(&text);
    if let Ok(action) = text.parse::<heaptap::provoke::Action>() {
        let again = action.to_string().parse();
        assert_eq!(again, Ok(action), "what is shown is read back");
    }
}

/// Bytes as a log of the phone: each line in any format, what it says of collections.
pub fn gc_log(bytes: &[u8]) {
    let mut splitter = Splitter::default();
    let mut axis = Axis::default();
    for bytes in bytes.split(|byte| *byte == b'\n') {
        let text = String::from_utf8_lossy(bytes);
        if let Row::Line(line) = splitter.line(&text) {
            gc::parse_event(&line);
            gc::chatty(&line);
            line.time.map(|time| axis.ns(time));
        }
    }
}

/// Bytes as the kernel's and the services' texts that are read all along: whatever is read of
/// them is what the same text says with other line ends.
pub fn status(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let crlf = text.replace("\r\n", "\n").replace('\n', "\r\n");
    let unix = crlf.replace("\r\n", "\n");
    let (one, other) = (Status::parse(&unix), Status::parse(&crlf));
    assert_eq!(one, other);
    if let Some(status) = one {
        assert_eq!(status.resident(None).map(|of| of.rss), status.rss);
    }
    assert_eq!(
        graphics::gfxinfo_bytes(&unix),
        graphics::gfxinfo_bytes(&crlf)
    );
    assert_eq!(graphics::dmabuf_bytes(&unix), graphics::dmabuf_bytes(&crlf));
    for line in unix.lines() {
        let _ = (
            status::uptime_ns(line),
            status::seconds_ns(line),
            status::kilobytes(line),
        );
    }
}

/// Bytes as mappings, in one piece and in several: sums by kind are the sum of all, and nothing
/// differs from itself.
pub fn smaps(bytes: &[u8]) {
    let Ok(whole) = smaps::parse(bytes) else {
        return;
    };
    all_of_smaps(&whole);
    let mut reader = smaps::Reader::default();
    for piece in bytes.chunks(37) {
        if reader.feed(piece).is_err() {
            return;
        }
    }
    let mut again = smaps::Reader::default();
    let fed = again.feed(bytes);
    if let (Ok(()), Ok(pieces)) = (fed, reader.finish()) {
        assert!(again.finish() == Ok(pieces));
    }
}

fn all_of_smaps(smaps: &Smaps) {
    smaps.parts();
    let kinds = smaps.groups(By::Kind);
    if !smaps.is_rollup() {
        let mut sum = smaps::Sums::default();
        for row in kinds.rows.iter().filter(|row| row.group.sub.is_none()) {
            sum += &row.sums;
        }
        assert!(sum == kinds.total);
    }
    for by in [By::Kind, By::Library, By::Mapping] {
        assert!(smaps::changes(smaps, smaps, by).rows.is_empty());
    }
    for mapping in &smaps.mappings {
        let once = smaps::stable(&mapping.name);
        assert!(smaps::stable(&once).len() <= once.len());
    }
}

/// Bytes as what an allocator says of itself.
pub fn malloc_info(bytes: &[u8]) {
    if let Ok(info) = malloc_info::parse(bytes) {
        assert!(info.large <= info.live);
    }
}

/// Bytes as a packet of a Java runtime, and as its list of recent allocations.
pub fn java_allocations(bytes: &[u8]) {
    assert_eq!(Packet::read(bytes).is_some(), bytes.len() >= 11);
    let Ok(read) = Allocations::read(bytes) else {
        return;
    };
    let mut frames = 0;
    for entry in read.entries() {
        let _ = read.class_of(entry);
        frames += read.stack_of(entry).count();
    }
    assert!(frames * 8 + read.entries().len() * 9 + read.unread() <= bytes.len());
}

/// Bytes as what `dumpsys meminfo` printed: read, looked through, printed again as it was.
pub fn meminfo(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let meminfo = Meminfo::parse(&text);
    assert_eq!(meminfo.render(), text, "every text comes back");
    for process in meminfo.processes() {
        process.parts(Source::Meminfo);
        process.texts().for_each(drop);
        process.table().map(|table| table.sums());
    }
    for list in meminfo.lists() {
        list.sum();
        for item in list.items.values() {
            item.name();
            item.pid();
            item.swap();
        }
    }
    for fact in meminfo.facts() {
        fact.amounts().for_each(drop);
    }
    meminfo.trouble();
}
