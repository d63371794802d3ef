//! What is fuzzed: the whole way from hostile bytes to results. Shared by the program `heaptap-fuzz`
//! and by `tests/fuzz_corpus.rs`, which replays the corpora.

pub mod device;
pub mod files;
pub mod heap_dumps;
pub mod results;
mod talker;
pub mod texts;
pub mod traces;
pub mod typed;

/// A reader of outside bytes with all that heaptap does with them.
pub struct Target {
    /// Also the directory in `fuzz/corpus`.
    pub name: &'static str,
    /// Maximum length of its inputs in bytes.
    pub max_len: usize,
    /// Directories with the words of its language, separated by commas, for the dictionary.
    pub sources: &'static str,
    /// What it reads, for `docs/internals/fuzzing.md`.
    pub covers: &'static str,
    /// Panics at a wrong result.
    pub run: fn(&[u8]),
}

macro_rules! targets {
    ($($module:ident::$name:ident, $max_len:expr, $sources:literal, $covers:literal;)*) => {
        pub const TARGETS: &[Target] = &[$(Target {
            name: stringify!($name),
            max_len: $max_len,
            sources: $sources,
            covers: $covers,
            run: $module::$name,
        }),*];
    };
}

targets! {
    traces::trace, 1 << 16, "crates/perfetto-heap/src", "Perfetto traces: native heaps, memory counters, packages, growing files";
    traces::heap_graph, 1 << 15, "crates/perfetto-heap/src/java", "Java heap graphs in traces: names, dominators, class trees, leaks";
    traces::pprof, 1 << 15, "crates/input/src/pprof", "pprof files of any program: import and joins";
    heap_dumps::hprof_records, 1 << 15, "crates/android-hprof/src", "HPROF record by record";
    heap_dumps::hprof_graph, 1 << 15, "crates/android-hprof/src,crates/analyze/src", "HPROF as a heap graph: paths, leaks, waste";
    heap_dumps::hprof_tools, 1 << 15, "crates/android-hprof/src", "HPROF converted and stripped";
    files::input, 1 << 16, "crates/input/src", "detection and unpacking of any input: gzip, zstd, xz, tar, ZIP, UTF-16";
    files::symbols_zip, 1 << 16, "crates/symbols/src/symbolize/find", "archives of symbol files";
    files::symbol_file, 1 << 17, "crates/symbols/src/symbolize/file", "ELF, DWARF, Breakpad: identification and lookup";
    files::mapping, 1 << 17, "crates/symbols/src/deobfuscate", "R8 and ProGuard mapping files: classes, methods, retracing";
    files::java_allocations, 1 << 14, "crates/capture/src/jdwp", "JDWP packets and lists of Java allocations";
    texts::provoke, 1 << 14, "crates/capture/src/provoke", "answers of `am`, `dumpsys` and others to `provoke`; its actions";
    texts::gc_log, 1 << 15, "crates/android-memory/src/gc,src/commands/gc/run", "logcat in any format and its GC lines";
    texts::status, 1 << 13, "crates/android-memory/src", "`/proc` status, `gfxinfo`, DMA-BUF";
    texts::smaps, 1 << 15, "crates/android-memory/src/smaps,crates/model/src", "smaps, rollups, `showmap`: sums and differences";
    texts::malloc_info, 1 << 14, "crates/android-memory/src", "malloc_info of allocators";
    texts::meminfo, 1 << 15, "crates/android-memory/src/meminfo", "`dumpsys meminfo`, full and compact";
    device::adb, 1 << 13, "crates/adb/src", "adb server: lists, shell v2, sync and debugger protocols";
    device::eligibility, 1 << 15, "crates/capture/src/eligibility", "`getprop`, `ps`, `pm`, `dumpsys`, APK manifests and others for `check` and `apps`";
    device::session_answers, 1 << 14, "crates/capture/src/session,crates/capture/src/eligibility", "answers to a recording: processes, traces, conditions, scripts";
    device::observation, 1 << 15, "crates/capture/src/observe,crates/android-memory/src", "samples of memory and followed logs";
    results::manifest, 1 << 14, "crates/results/src", "`manifest.json`";
    results::lab_results, 1 << 14, "crates/lab/src/results,src/lab", "`result.json` and `progress.json`, results for CI systems, plans";
    results::baseline, 1 << 13, "crates/lab/src", "baselines of `run`";
    results::journal, 1 << 14, "crates/capture/src/session,src/recording", "session journals, owners of directories";
    results::timeline_lines, 1 << 14, "crates/model/src", "`memory.jsonl`";
    results::archive, 1 << 14, "crates/tables/src,crates/archive/src", "Parquet files of an archive: opening, compaction";
    typed::sql, 1 << 12, "crates/query/src", "SQL of `query` on a recording";
    typed::scenario, 1 << 14, "crates/lab/src/scenario", "YAML of scenarios";
    typed::trace_config, 1 << 14, "crates/capture/src/config", "configs: YAML, text, binary; encoded for several versions";
    typed::arguments, 1 << 8, "src/heaps,crates/model/src,crates/virtual-phone/src/spec.rs", "selectors, sizes, times, addresses, IDs";
}
