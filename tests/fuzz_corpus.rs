//! Replays the seeds and findings of the fuzz targets in `fuzz/`. `cargo fuzz run trace` searches
//! for more and stores its findings in `fuzz/corpus`.

#[path = "../fuzz/targets.rs"]
mod targets;

fn replay(name: &str, target: fn(&[u8])) {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/corpus")
        .join(name);
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).expect("a corpus") {
        let path = entry.expect("the folder can be read").path();
        target(&std::fs::read(&path).expect("a file"));
        count += 1;
    }
    assert!(count > 3, "{name} has a corpus");
}

#[test]
fn traces() {
    replay("trace", targets::trace);
}

#[test]
fn profiles() {
    replay("pprof", targets::pprof);
}

#[test]
fn heap_graphs() {
    replay("heap_graph", targets::heap_graph);
}

#[test]
fn inputs() {
    replay("input", targets::input);
}

#[test]
fn archives_of_symbols() {
    replay("symbols_zip", targets::symbols_zip);
}

#[test]
fn answers_to_provoking() {
    replay("provoke", targets::provoke);
}

#[test]
fn mappings() {
    replay("mapping", targets::mapping);
}

#[test]
fn symbol_files() {
    replay("symbol_file", targets::symbol_file);
}

#[test]
fn records_of_heap_dumps() {
    replay("hprof_records", targets::hprof_records);
}

#[test]
fn graphs_of_heap_dumps() {
    replay("hprof_graph", targets::hprof_graph);
}

#[test]
fn rewritten_heap_dumps() {
    replay("hprof_tools", targets::hprof_tools);
}

#[test]
fn logs_of_collections() {
    replay("gc_log", targets::gc_log);
}

#[test]
fn mappings_of_memory() {
    replay("smaps", targets::smaps);
}

#[test]
fn words_of_allocators() {
    replay("malloc_info", targets::malloc_info);
}

#[test]
fn texts_of_meminfo() {
    replay("meminfo", targets::meminfo);
}

#[test]
fn texts_that_are_read_all_along() {
    replay("status", targets::status);
}

#[test]
fn allocations_of_runtimes() {
    replay("java_allocations", targets::java_allocations);
}
