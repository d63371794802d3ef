//! The commands: their names, the families of options that they accept, and their own options.

/// A command and its options.
pub(crate) struct Row {
    /// Name, as typed.
    pub(crate) command: &'static str,
    /// Positional arguments.
    pub(crate) words: &'static str,
    /// Families of options, as letters of `FAMILIES`.
    pub(crate) families: &'static str,
    /// Own options.
    pub(crate) own: &'static str,
}

const fn row(
    command: &'static str,
    words: &'static str,
    families: &'static str,
    own: &'static str,
) -> Row {
    Row {
        command,
        words,
        families,
        own,
    }
}

/// Options that belong together, with one letter.
pub(crate) const FAMILIES: &[(char, &str)] = &[
    ('T', "name pid package"),
    ('@', "at"),
    ('H', "heap"),
    ('F', "focus ignore hide show show-from all-frames"),
    ('L', "limit"),
    ('B', "by"),
    ('C', "csv"),
    ('D', "duration"),
    ('O', "output"),
    ('X', "force"),
    ('S', "symbols"),
    ('M', "mapping"),
    (
        'N',
        "project no-discover allow-no-build-id pull-libs no-symbolize",
    ),
    ('J', "ignore-refs sizes"),
];

/// The letters; each belongs to one option in the whole program.
pub(crate) const LETTERS: &[(char, &str)] = &[
    ('b', "buffer-size"),
    ('c', "continuous-dump"),
    ('d', "duration"),
    ('f', "follow"),
    ('i', "interval"),
    ('l', "limit"),
    ('n', "name"),
    ('o', "output"),
    ('p', "pid"),
    ('q', "quiet"),
    ('s', "serial"),
    ('v', "verbose"),
    ('z', "app-only"),
];

/// Options of Perfetto's scripts that are accepted without effect.
pub(crate) const RETIRED: &[&str] = &[
    "idle-allocations",
    "no-start",
    "simpleperf",
    "traceconv-binary",
    "no-android-tree-symbolization",
];

/// Every command.
pub(crate) const COMMANDS: &[Row] = &[
    row("doctor", "", "O", "try name"),
    row("devices", "", "", "connect disconnect pair mdns"),
    row("apps", "FILTER", "", "all"),
    row("check", "NAME", "TH", ""),
    row(
        "record",
        "NAME PROGRAM",
        "TDOSMN",
        "continuous-dump interval heaps all-heaps java-allocations shmem-size block-client \
         no-block-client block-client-timeout no-startup no-running dump-at-max \
         disable-fork-teardown no-annotations no-versions config set print-config with \
         sample-names no-check launch snapshots no-snapshots detach retry-overrun disable-selinux \
         no-report host preload-library perfetto-dir wait-device",
    ),
    row(
        "dump",
        "NAME",
        "TOM",
        "buffer-size continuous-dump dump-smaps stop-when-done no-stop-when-done no-versions \
         wait-for-oom oom-wait-seconds hprof bitmaps malloc-info no-gc timeout no-check detach \
         print-config sample-names dominators",
    ),
    row(
        "provoke",
        "ACTION",
        "T",
        "rounds settle seed dry-run timeline list restore",
    ),
    row("snapshot", "SESSION", "", "label"),
    row("status", "SESSION", "", "fail"),
    row("stop", "SESSION", "OSMN", "all forget no-report"),
    row(
        "top",
        "INPUT",
        "T@HFLBCSMJ",
        "sort view tree invert depth min reachable every-object alloc-site no-retained",
    ),
    row(
        "leaks",
        "INPUT",
        "T@HFLSMJ",
        "interval fail fail-known rounds tolerance warmup only",
    ),
    row(
        "diff",
        "A B",
        "T@HFLBCOXSMJ",
        "sort view rounds per-second noise fail-over mapping-before mapping-after smaps unchanged \
         depth min",
    ),
    row("paths", "INPUT", "T@LMJ", "focus object width depth"),
    row("report", "INPUT", "T@HLOXSMJ", "base rounds contents open"),
    row("query", "INPUT SQL", "THCOXSM", "file timeout memory sizes"),
    row(
        "explore",
        "INPUT",
        "T@OXMJ",
        "redact contents print-url port idle",
    ),
    row("open", "INPUT", "", "print-url page port ui timeout"),
    row(
        "meminfo",
        "INPUT",
        "T@LBCDX",
        "wide details local no-local system explain save every reconcile",
    ),
    row("smaps", "INPUT", "T@LBCX", "save"),
    row("gc", "INPUT", "T@BCD", "follow since now"),
    row(
        "run",
        "SCENARIO",
        "OSMN",
        "all-devices device-class jobs shard resume dry-run plan init schema baseline \
         update-baseline against",
    ),
    row(
        "convert",
        "INPUT",
        "T@HOXSMN",
        "format view timestamps dominators no-annotations sample-names",
    ),
    row("archive", "REC", "", "to build compact"),
    row("symbolize", "TRACE", "OXSMN", "only whole-trace"),
    row("hprof conv", "IN OUT", "X", "app-only compat"),
    row("hprof info", "FILE", "", ""),
    row("hprof strip", "IN OUT", "X", "fields keep-strings"),
    row("demo", "", "O", "no-report"),
    row("virtual-phone", "SPEC", "", "port"),
    row("completions", "SHELL", "", ""),
    row("man", "", "O", ""),
    row("licenses", "", "", ""),
];

/// Permitted differences of an option between commands, with reasons.
pub(crate) const MAY_DIFFER: &[(&str, &[&str], &str)] = &[
    ("by", &["type", "help"], "each command has rows of its own"),
    ("sort", &["type"], "each command has columns of its own"),
    (
        "only",
        &["type", "help"],
        "each command has kinds of its own",
    ),
    (
        "view",
        &["type", "help", "action"],
        "`diff` has two of the measures, `convert` writes several",
    ),
    (
        "output",
        &["type", "value", "help"],
        "a file or a directory",
    ),
    (
        "rounds",
        &["type", "value", "help"],
        "two numbers in `diff`; `leaks` counts from dump to dump, `diff` and `report` in total",
    ),
    ("all", &["help"], "packages in `apps`, recordings in `stop`"),
    ("fail", &["help"], "leaks, or recordings in `status`"),
    ("duration", &["type"], "Perfetto's bare numbers in `record`"),
    ("interval", &["letter"], "in `leaks` it is rare"),
    (
        "limit",
        &["help"],
        "callsites of the page in `report`, fields in `paths`",
    ),
];

/// Paths of results, which need not be there.
pub(crate) const OUTPUTS: &[&str] = &["output", "save", "timeline", "to", "OUT"];

/// Command lines with a path that is not there, `nope`; `T` is a trace, `H` an HPROF, `SCENARIO` a scenario.
pub(crate) const MISSING: &[&str] = &[
    "top nope",
    "top T --symbols nope",
    "top T --mapping nope",
    "leaks nope",
    "leaks T --symbols nope",
    "leaks T --mapping nope",
    "diff nope T",
    "diff T nope",
    "diff T T --symbols nope",
    "diff T T --mapping nope",
    "diff T T --mapping-before nope",
    "diff T T --mapping-after nope",
    "paths nope --focus x",
    "paths H --focus x --mapping nope",
    "report nope",
    "report T --symbols nope",
    "report T --mapping nope",
    "report T --base nope",
    "query nope SQL",
    "query T --file nope",
    "query T SQL --symbols nope",
    "query T SQL --mapping nope",
    "explore nope --print-url",
    "explore H --mapping nope --print-url",
    "open nope",
    "meminfo nope",
    "smaps nope",
    "gc nope",
    "convert nope",
    "convert T --symbols nope",
    "convert T --mapping nope",
    "convert T --project nope",
    "archive nope --to out",
    "symbolize nope",
    "symbolize T --symbols nope",
    "symbolize T --mapping nope",
    "symbolize T --project nope",
    "hprof conv nope out",
    "hprof info nope",
    "hprof strip nope out",
    "record -n x --config nope.txt",
    "record -n x --symbols nope",
    "record -n x --mapping nope",
    "record -n x --project nope",
    "record --host --perfetto-dir nope",
    "record --host --preload-library nope",
    "dump -n x --mapping nope",
    "run nope",
    "run SCENARIO --baseline nope",
    "run SCENARIO --against nope",
    "run SCENARIO --plan nope",
    "run SCENARIO --symbols nope",
    "run SCENARIO --mapping nope",
    "run SCENARIO --project nope",
    "stop --symbols nope",
    "stop --mapping nope",
    "stop --project nope",
];

/// Command lines that are wrong by themselves or for their input.
pub(crate) const WRONG: &[&str] = &[
    "frobnicate",
    "collect",
    "top",
    "top T --process x",
    "top T --frobnicate",
    "top T -n nobody",
    "record -n x -d 30",
    "record",
    "query T SELEKT",
    "smaps",
    "leaks T --limit x",
    "paths H --focus a --limit 5",
    "report T -o -",
    "convert T --format nope",
    "virtual-phone nope=1",
    "open T --page nope",
    "run",
    "run --init x/y",
];
