//! Exact output for recorded inputs: stderr, then stdout, then the exit code, as written to a pipe.
//! `snapshots/` has the texts. After an intended change, run the tests with `INSTA_UPDATE=always`
//! and review the difference.

use crate::program::heaptap;

/// Output of a command, split at spaces, that runs in `fixtures/`.
fn seen(command: &str) -> String {
    let output = heaptap()
        .args(command.split(' '))
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"))
        .output()
        .expect("heaptap runs");
    let code = output.status.code().expect("it ends by itself");
    let [said, data] =
        [output.stderr, output.stdout].map(|bytes| String::from_utf8(bytes).expect("UTF-8"));
    let rule = "-".repeat(if said.is_empty() || data.is_empty() {
        0
    } else {
        8
    });
    format!("$ heaptap {command}\n{said}{rule}\n{data}exit code {code}")
}

/// The short help of every command. The complete help is docs/reference/cli.md.
#[test]
fn short_help() {
    let mut all = seen("-h");
    let list = |text: &str| -> Vec<String> {
        let commands = text.lines().filter(|line| line.starts_with("  "));
        let first = commands.filter_map(|line| line.split_whitespace().next());
        first.map(str::to_owned).collect()
    };
    let mut shown = 0;
    let words: std::collections::BTreeSet<String> = list(&all).into_iter().collect();
    let also = ["demo", "virtual-phone", "completions"];
    for word in words.iter().map(String::as_str).chain(also) {
        if word != "heaptap" {
            all = format!("{all}\n\n{}", seen(&format!("{word} -h")));
            shown += 1;
        }
    }
    assert!(shown >= 26, "{shown}");
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("short_help", all);
    });
}

/// A test for each name: compares the output of its command with its snapshot.
macro_rules! shows {
    ($($name:ident: $command:literal,)*) => {
        $(#[test]
        fn $name() {
            insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
                insta::assert_snapshot!(stringify!($name), seen($command));
            });
        })*
    };
}

// The text of the system error differs between systems.
#[cfg(unix)]
shows! {
    no_such_file: "top conversions/c_cont.pftrac",
}

shows! {
    native_table: "top conversions/c_cont.pftrace",
    native_tree: "top --tree conversions/rust_cont_symbolized.pftrace",
    native_growth: "leaks conversions/c_cont.pftrace",
    native_difference: "diff conversions/c_cont.pftrace@1 conversions/c_cont.pftrace@last",
    native_overrun: "top conversions/overrun.pftrace",
    native_nothing_recorded: "top conversions/no_target.pftrace",
    java_classes: "top hprof/leaklab-after.hprof.zst",
    java_leaks: "leaks hprof/leaklab-after.hprof.zst",
    java_difference: "diff hprof/leaklab-before.hprof.zst hprof/leaklab-after.hprof.zst",
    java_no_such_object: "paths hprof/android-a.hprof.gz --focus NoSuchActivity",
    java_heap_graph: "top heap_graphs/graph_10k.pftrace.zst",
    hprof_described: "hprof info hprof/android-a.hprof.gz",
    gc_log: "gc gclog/gc_forms.log",
    meminfo: "meminfo meminfo/synthetic_api34_d.txt",
    meminfo_difference: "diff meminfo/synthetic_api26_a.txt meminfo/synthetic_api26_d.txt",
    no_heap_in_it: "top meminfo/synthetic_api34_d.txt",
    missing_input: "leaks",
    missing_option: "diff a b --force",
    no_native_heap: "report --heap native -o - hprof/leaklab-after.hprof.zst",
    no_native_dump: "report --heap native -o - --at 99 conversions/c_cont.pftrace",
    no_such_process: "query -n nope heap_graphs/graph_10k.pftrace.zst .tables",
    part_of_the_java_heap: "convert --heap zygote hprof/android-a.hprof.gz -o nowhere",
    two_moments: "top --at 1 --at 2 conversions/c_cont.pftrace",
    option_without_effect: "diff --view space meminfo/synthetic_api26_a.txt meminfo/synthetic_api26_d.txt",
    dumps_around_a_lost_one: "diff conversions/c_cont_noprof.pftrace@2 conversions/c_cont_noprof.pftrace@8",
    no_such_statement: "query conversions/c_cont.pftrace SELECT",
}
