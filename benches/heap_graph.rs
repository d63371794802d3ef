//! Measures the engine of `heap_graph` on generated heaps: seconds and anonymous memory of each
//! step.
//!
//!     cargo run --release --example heap_graph -- OBJECTS [chain]
//!
//! The heap is like those of apps: trees of small objects, strings with their arrays, lists,
//! maps; a third of all references lead somewhere else, mostly near by. `chain` makes one list
//! of all objects with references back.

use heaptap_model::heap_graph::{
    Class, ClassIndex, Dominators, DumpFacts, Follow, GraphBuilder, HeapGraph, HeapKind, NewObject,
    NoContents, ObjectId, Reachable, Referrers, RootKind, ShortestPaths,
};
use std::error::Error;
use std::hint::black_box;
use std::io::Write as _;
use std::time::Instant;

const CLASSES: u32 = 5000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let objects: u64 = arguments.next().ok_or("how many objects?")?.parse()?;
    let chain = arguments.next().as_deref() == Some("chain");
    let start = Instant::now();
    let builder = if chain { list(objects) } else { app(objects) };
    told("generated", start, None)?;
    let graph = step("graph built", || finish(builder))?;
    let graph = graph?;
    step("reachable", || {
        Reachable::new(&graph, Follow::default()).count()
    })?;
    step("shortest paths", || {
        black_box(ShortestPaths::new(&graph, Follow::default()))
            .order()
            .len()
    })?;
    step("referrers", || {
        black_box(Referrers::new(&graph, Follow::default(), None))
    })?;
    let dominators = step("dominators", || {
        Dominators::compute(&graph, Follow::default())
    })?;
    step("by class", || dominators.retained_by_class(&graph))?;
    let total = dominators.total();
    writeln!(
        std::io::stdout(),
        "{} of {objects} objects reached",
        total.count
    )?;
    Ok(())
}

fn step<T>(name: &str, work: impl FnOnce() -> T) -> Result<T, Box<dyn Error>> {
    let start = Instant::now();
    let done = work();
    told(name, start, anonymous_bytes("RssAnon"))?;
    Ok(done)
}

fn told(name: &str, start: Instant, memory: Option<u64>) -> Result<(), Box<dyn Error>> {
    let seconds = start.elapsed().as_secs_f64();
    let mut out = std::io::stdout().lock();
    write!(out, "{name:15} {seconds:7.3} s")?;
    if let (Some(now), Some(peak)) = (memory, anonymous_bytes("VmHWM")) {
        write!(
            out,
            "  {:6} MB after it, peak of all {:6} MB",
            now / 1_000_000,
            peak / 1_000_000
        )?;
    }
    writeln!(out)?;
    Ok(())
}

/// A line of `/proc/self/status`, where there is one.
fn anonymous_bytes(line: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with(line))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

fn object(builder: &mut GraphBuilder, n: u64, class: u32, shallow_bytes: u64) {
    builder.object(NewObject {
        id: id(n),
        class: ClassIndex(class % CLASSES),
        shallow_bytes,
        heap: HeapKind::App,
    });
}

/// Ids of heap graphs are addresses by 8.
fn id(n: u64) -> ObjectId {
    ObjectId(0x258_0000 + n * 4)
}

fn app(objects: u64) -> GraphBuilder {
    let mut random = fastrand::Rng::with_seed(7);
    let mut builder = GraphBuilder::default();
    for n in 0..objects {
        let class = random.u32(..) % CLASSES;
        object(&mut builder, n, class, 16 + u64::from(class % 7) * 8);
        // A tree in order of addresses, as a moving collector leaves it, half of it leaves.
        for child in [2 * n + 1, 2 * n + 2] {
            if child < objects && random.u8(0..20) != 0 {
                builder.reference(id(child));
            }
        }
        if random.u8(0..3) == 0 {
            let near = n.saturating_sub(random.u64(0..1000)) + random.u64(0..1000);
            builder.reference(id(near.min(objects - 1)));
        }
        if random.u8(0..20) == 0 {
            builder.reference(id(random.u64(0..objects)));
        }
        if n < 2 || random.u16(0..1000) == 0 {
            builder.root(id(n), RootKind::JniGlobal, None, None);
        }
    }
    builder
}

fn list(objects: u64) -> GraphBuilder {
    let mut random = fastrand::Rng::with_seed(7);
    let mut builder = GraphBuilder::default();
    for n in 0..objects {
        object(&mut builder, n, (n % 7) as u32, 24);
        if n + 1 < objects {
            builder.reference(id(n + 1));
        }
        builder.reference(id(random.u64(0..=n)));
    }
    builder.root(id(0), RootKind::ThreadObject, None, None);
    builder
}

fn finish(builder: GraphBuilder) -> Result<HeapGraph, Box<dyn Error>> {
    let class = |n: u32| Class {
        name: format!("com.example.Class{n}"),
        ..Class::default()
    };
    let classes = (0..CLASSES).map(class).collect();
    let facts = DumpFacts::default();
    Ok(builder.finish(classes, Vec::new(), Box::new(NoContents), facts, true)?)
}
