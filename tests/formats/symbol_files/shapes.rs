//! `shapes.tar.xz`: one program in every shape produced by compilers, linkers and their tools.

use super::{Line, lookup, open, samples};
use std::collections::{BTreeMap, BTreeSet};

/// Answer of llvm-symbolizer for a range of addresses.
struct Run {
    first: u64,
    last: u64,
    /// `FUNCTION@FILE:LINE:COLUMN`, innermost first, separated by `|`.
    frames: String,
}

fn answers() -> BTreeMap<String, Vec<Run>> {
    let text = std::fs::read_to_string(samples("shapes").join("answers.tsv"));
    let text = text.expect("the archive holds the answers");
    let mut answers: BTreeMap<String, Vec<Run>> = BTreeMap::new();
    for row in text.lines() {
        let fields: Vec<&str> = row.split('\t').collect();
        let [file, first, last, frames] = fields[..] else {
            panic!("four fields: {row}");
        };
        let number = |text| u64::from_str_radix(text, 16).expect("a number");
        answers.entry(file.to_owned()).or_default().push(Run {
            first: number(first),
            last: number(last),
            frames: frames.to_owned(),
        });
    }
    answers
}

fn shown(lines: &[Line]) -> String {
    if lines.is_empty() {
        return "@:0:0".to_owned();
    }
    let one = |l: &Line| format!("{}@{}:{}:{}", l.linkage, l.file, l.line, l.column);
    let shown: Vec<String> = lines.iter().map(one).collect();
    shown.join("|")
}

/// Each code address of the file has llvm-symbolizer's answer.
fn check(name: &str) {
    let answers = answers();
    let runs = &answers[name];
    let file = open(&samples("shapes").join(name)).expect("a sound file");
    let addresses: Vec<u64> = runs.iter().flat_map(|run| run.first..=run.last).collect();
    let wanted = runs
        .iter()
        .flat_map(|run| (run.first..=run.last).map(|_| &run.frames));
    let found = lookup(&file, &addresses);
    let wrong: Vec<String> = addresses
        .iter()
        .zip(wanted)
        .zip(&found)
        .filter(|((_, wanted), found)| **wanted != shown(found))
        .map(|((address, wanted), found)| {
            format!("{address:#x}\n  wanted {wanted}\n  found  {}", shown(found))
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "{} of {} addresses differ, such as {}",
        wrong.len(),
        addresses.len(),
        wrong[0]
    );
    assert_eq!(file.notes(), [], "nothing is missing");
}

macro_rules! shapes {
    ($($test:ident: $name:literal,)*) => {
        $(
            #[test]
            fn $test() {
                check($name);
            }
        )*

        #[test]
        fn every_file_with_answers_has_a_test() {
            let tested = BTreeSet::from([$($name),*]);
            let answers = answers();
            let known: BTreeSet<&str> = answers.keys().map(String::as_str).collect();
            assert_eq!(tested, known);
        }
    };
}

shapes! {
    arm_thumb: "arm-thumb/libshapes.so",
    arm_mixed: "arm-mixed/libshapes.so",
    riscv64_gcc: "riscv64-gcc/libshapes.so",
    clang_aarch64: "clang-aarch64/libshapes.so",
    clang_armv7a: "clang-armv7a/libshapes.so",
    clang_x86_64: "clang-x86_64/libshapes.so",
    clang_i686: "clang-i686/libshapes.so",
    clang_riscv64: "clang-riscv64/libshapes.so",
    dwarf2: "dwarf2/libshapes.so",
    dwarf3: "dwarf3/libshapes.so",
    dwarf4: "dwarf4/libshapes.so",
    dwarf5: "dwarf5/libshapes.so",
    dwarf64: "dwarf64/libshapes.so",
    clang_dwarf4: "clang-dwarf4/libshapes.so",
    clang_line_tables_only: "clang-gmlt/libshapes.so",
    types4: "types4/libshapes.so",
    types5: "types5/libshapes.so",
    clang_types5: "clang-types5/libshapes.so",
    link_time_optimisation: "lto/libshapes.so",
    dropped_by_bfd4: "dropped-bfd4/libshapes.so",
    dropped_by_bfd5: "dropped-bfd5/libshapes.so",
    dropped_by_gold4: "dropped-gold4/libshapes.so",
    dropped_by_gold5: "dropped-gold5/libshapes.so",
    folded_by_lld4: "folded-lld4/libshapes.so",
    folded_by_lld5: "folded-lld5/libshapes.so",
    split4_gcc: "split4-gcc/libshapes.so",
    split5_gcc: "split5-gcc/libshapes.so",
    split4_clang: "split4-clang/libshapes.so",
    split5_clang: "split5-clang/libshapes.so",
    package4_gcc: "package4-gcc/libshapes.so",
    package4_clang: "package4-clang/libshapes.so",
    package5_clang: "package5-clang/libshapes.so",
    zdebug: "zdebug/libzdebug.so",
    zstd: "zdebug/libzstd.so",
    dwz4_alone: "dwz4/alone.so",
    dwz4_with_shared_file: "dwz4/one.so",
    dwz5_alone: "dwz5/alone.so",
    dwz5_with_shared_file: "dwz5/one.so",
    debuglink_by_crc: "debuglink/stripped.so",
    rust_legacy: "rust-legacy/libshapes.so",
    rust_v0: "rust-v0/libshapes.so",
}
