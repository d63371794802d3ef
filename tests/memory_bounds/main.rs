//! Memory that a reader uses for an input made to use much of it: at most 64 MiB and sixteen times
//! the bytes read, for any shape. All allocations of this program are counted, so the tests run one
//! after the other.

#[path = "../common/elf.rs"]
mod elf;

mod archives;
mod counting;
mod heap_dumps;
mod mappings;
mod pprofs;
mod symbols;
mod texts;
mod traces;
mod wire;

use counting::Counting;
use heaptap_analyze::filter::Filter;
use heaptap_analyze::histogram::{ObjectScope, histograms};
use heaptap_analyze::largest::largest;
use heaptap_explore::TABLE_KEYS;
use heaptap_model::heap_graph::{Dominators, Follow, HeapGraph};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static ALONE: Mutex<()> = Mutex::new(());

const MIB: usize = 1 << 20;

/// The shapes of one kind of input, and the memory used by its reader.
struct Shapes {
    of: &'static str,
    _alone: MutexGuard<'static, ()>,
    too_much: Vec<String>,
}

impl Shapes {
    /// Create it before the inputs: until it is dropped, other tests do not allocate theirs.
    fn of(of: &'static str) -> Shapes {
        Shapes {
            of,
            _alone: ALONE.lock().unwrap_or_else(PoisonError::into_inner),
            too_much: Vec::new(),
        }
    }

    /// Reads an input of `bytes` bytes. The result of `read` counts, too: it is the model.
    #[allow(clippy::print_stdout)]
    fn read<T>(&mut self, shape: &str, bytes: usize, read: impl FnOnce() -> T) {
        let before = counting::restart();
        let model = read();
        let peak = counting::peak() - before;
        drop(model);
        let most = counting::limit(bytes);
        let line = format!(
            "{}, {shape}: {} KiB for {} KiB, at most {} KiB",
            self.of,
            peak >> 10,
            bytes >> 10,
            most >> 10
        );
        println!("{line}");
        if peak > most {
            self.too_much.push(line);
        }
    }

    fn hold(self) {
        assert!(self.too_much.is_empty(), "{:#?}", self.too_much);
    }
}

/// Computes what the tables of `top` and of the page have about a Java heap.
fn tables_of(graph: &HeapGraph) {
    let dominators = Dominators::compute(graph, Follow::default());
    let all = Filter::default();
    drop(largest(graph, &dominators, &all, 20, true));
    let keys = TABLE_KEYS.map(|(_, by)| by);
    let scope = ObjectScope::Reachable(&dominators);
    drop(histograms(graph, scope, &keys, &all));
}

#[test]
fn what_is_allocated_is_counted() {
    let mut shapes = Shapes::of("a vector");
    // The test runner's own threads also allocate a little.
    shapes.read("of 127 MiB", 4 * MIB, || vec![1u8; 127 * MIB]);
    shapes.read("of 129 MiB", 4 * MIB, || {
        drop(vec![1u8; 129 * MIB]);
        vec![1u8; MIB]
    });
    assert_eq!(shapes.too_much.len(), 1, "{:?}", shapes.too_much);
}
