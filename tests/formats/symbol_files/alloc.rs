//! `alloc.tar.xz`: a small allocating library in the variants of an app's release, with
//! llvm-symbolizer 14's answers for sampled addresses.

use super::{Line, lookup, open, samples};
use heaptap_symbols::symbolize::file::{Alone, Bytes, Knowledge, SymbolFile, identify};
use serde_json::Value;
use std::sync::Arc;

fn expected(object: &str) -> Vec<(u64, Vec<Line>)> {
    let text = std::fs::read_to_string(samples("alloc").join("expected_frames.jsonl"));
    let text = text.expect("the archive holds the answers");
    let rows = text
        .lines()
        .map(|row| serde_json::from_str::<Value>(row).expect("JSON"));
    let rows = rows.filter(|row| row["obj"] == object);
    rows.map(|row| {
        let address = row["vaddr"].as_str().expect("an address");
        let address = u64::from_str_radix(&address[2..], 16).expect("hexadecimal");
        let text = |frame: &Value, key: &str| frame[key].as_str().expect("text").to_owned();
        let number = |frame: &Value, key: &str| frame[key].as_u64().expect("a number") as u32;
        let frames = row["llvm14"].as_array().expect("frames").iter();
        let lines = frames.map(|frame| Line {
            linkage: text(frame, "mangled"),
            function: text(frame, "fn"),
            file: text(frame, "file"),
            line: number(frame, "line"),
            column: number(frame, "column"),
        });
        (address, lines.collect())
    })
    .collect()
}

/// The expected lines of `like`, without demangled names, which other tests check.
fn check_like(object: &str, like: &str) {
    let expected = expected(like);
    assert!(expected.len() > 10, "{like} has rows");
    let file = open(&samples("alloc").join(object)).expect("a sound file");
    let addresses: Vec<u64> = expected.iter().map(|(address, _)| *address).collect();
    let found = lookup(&file, &addresses);
    for ((address, wanted), found) in expected.iter().zip(&found) {
        let found: Vec<Line> = found
            .iter()
            .zip(wanted)
            .map(|(line, wanted)| Line {
                file: line.file.rsplit('/').next().unwrap_or_default().to_owned(),
                function: wanted.function.clone(),
                ..line.clone()
            })
            .collect();
        assert_eq!(*wanted, found, "{object} at {address:#x}");
    }
    assert_eq!(file.notes(), []);
}

macro_rules! objects {
    ($($test:ident: $object:literal $(as $like:literal)?,)*) => {
        $(
            #[test]
            fn $test() {
                let _like = $object;
                $(let _like = $like;)?
                check_like($object, _like);
            }
        )*
    };
}

objects! {
    aarch64: "liballoc-aarch64.so",
    aarch64_16k_pages: "liballoc-aarch64-16k-relr.so",
    aarch64_symtab: "liballoc-aarch64-symtabonly.so",
    aarch64_debuglink: "liballoc-aarch64-debuglink.so" as "liballoc-aarch64.so",
    aarch64_debug_file: "liballoc-aarch64.debug" as "liballoc-aarch64.so",
    x86: "liballoc-x86.so",
    x86_64_dwarf4: "liballoc-x86_64-dwarf4.so",
    x86_64_dwarf5: "liballoc-x86_64-dwarf5.so",
    x86_64_debuglink: "liballoc-x86_64-dwarf5-debuglink.so" as "liballoc-x86_64-dwarf5.so",
    x86_64_debug_file: "liballoc-x86_64-dwarf5.debug" as "liballoc-x86_64-dwarf5.so",
    x86_64_symtab: "liballoc-x86_64-dwarf5-symtabonly.so",
    x86_64_clang: "liballoc-x86_64-clang-dwarf5.so",
    x86_64_folded: "liballoc-x86_64-clang-icf.so",
    x86_64_line_tables: "liballoc-x86_64-gmlt.so",
    x86_64_package: "liballoc-x86_64-split.so",
    x86_64_zlib: "liballoc-x86_64-zlibdebug.so",
    // llvm-symbolizer 14 does not support zstd; the code is the same.
    x86_64_zstd: "liballoc-x86_64-zstddebug.so" as "liballoc-x86_64-dwarf5.so",
    armv7: "libplain-armv7-arm.so",
    load_bias: "libplain-loadbias.so",
    no_build_id: "libplain-nobuildid.so",
    plain: "libplain-x86_64.so",
    rust_symtab: "librustdemo-legacy-symtabonly.so",
}

fn bytes(object: &str) -> Bytes {
    Bytes::map(&samples("alloc").join(object)).expect("the file is there")
}

/// Address of `heaptap::demo::local_static_fn`, which is local to its library.
fn local_function() -> u64 {
    let rows = expected("liballoc-x86_64-dwarf5.so");
    let is_local = |lines: &[Line]| lines.iter().any(|l| l.linkage.contains("local_static_fn"));
    let found = rows.iter().find(|(_, lines)| is_local(lines));
    found.expect("the function has a row").0
}

#[test]
fn mini_debuginfo_names_what_dynsym_does_not() {
    let address = local_function();
    let name = |object: &str| {
        let file = SymbolFile::open(bytes(object), Arc::new(Alone)).expect("a sound file");
        let lines = lookup(&file, &[address]).remove(0);
        lines.first().map(|line| line.function.clone())
    };
    let mini = name("liballoc-x86_64-dwarf5-minidebuginfo.so");
    assert_eq!(
        mini.as_deref(),
        Some("heaptap::demo::local_static_fn(int volatile*)")
    );
    assert_eq!(name("liballoc-x86_64-dwarf5-stripped.so"), None);
}

#[test]
fn a_file_says_how_much_it_knows() {
    let knowledge = |object: &str| identify(&bytes(object)).expect("a sound file").knowledge;
    for (object, known) in [
        ("liballoc-x86_64-dwarf5.so", Knowledge::Dwarf),
        ("liballoc-x86_64-zstddebug.so", Knowledge::Dwarf),
        ("liballoc-x86_64-split.so", Knowledge::Lines),
        ("liballoc-x86_64-dwarf5-symtabonly.so", Knowledge::Symtab),
        ("liballoc-x86_64-dwarf5-minidebuginfo.so", Knowledge::Symtab),
        ("liballoc-x86_64-dwarf5-stripped.so", Knowledge::Dynsym),
    ] {
        assert_eq!(knowledge(object), known, "{object}");
    }
    let facts = identify(&bytes("liballoc-aarch64-debuglink.so")).expect("a sound file");
    assert_eq!(
        facts.build_id.to_string(),
        "2ba08ce277fc6f04602e776a7562c8badae71993"
    );
    let link = facts.debug_link.expect("it names a file");
    assert_eq!(link.name, "liballoc-aarch64.debug");
    assert!(facts.has_unwind);
    let plain = identify(&bytes("libplain-nobuildid.so")).expect("a sound file");
    assert!(plain.build_id.is_empty());
}

#[test]
fn a_wrong_load_bias_is_corrected_and_a_right_one_left() {
    // First segment at 0x200000, code at offset 0x690, address 0x201690.
    let file = open(&samples("alloc").join("libplain-loadbias.so")).expect("a sound file");
    let expected = expected("libplain-loadbias.so");
    let (address, lines) = &expected[0];
    let bias = 0x20_1690 - 0x690;
    for (offset, load_bias) in [(0, 0), (0, bias)] {
        let rel_pc = address - bias + load_bias;
        let svma = file.svma(rel_pc, offset, load_bias);
        assert_eq!(svma, *address, "load bias {load_bias:#x}");
        let found = lookup(&file, &[svma]).remove(0);
        assert_eq!(found[0].linkage, lines[0].linkage);
    }
}

#[test]
fn what_is_not_found_beside_a_file_is_noted() {
    let alone = |object: &str| {
        let file = SymbolFile::open(bytes(object), Arc::new(Alone)).expect("a sound file");
        let rows = expected("liballoc-x86_64-dwarf5.so");
        let addresses: Vec<u64> = rows.iter().map(|(address, _)| *address).collect();
        let found = lookup(&file, &addresses);
        let notes: Vec<String> = file.notes().iter().map(ToString::to_string).collect();
        (found, notes)
    };
    let (found, notes) = alone("liballoc-x86_64-split.so");
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].contains("split.dwo"), "{notes:?}");
    // The skeleton has the lines, the symbol table the functions.
    assert!(
        found
            .iter()
            .all(|lines| lines.len() == 1 && lines[0].line > 0)
    );
    let (_, notes) = alone("liballoc-x86_64-dwarf5-debuglink.so");
    assert!(
        notes[0].contains("liballoc-x86_64-dwarf5.debug"),
        "{notes:?}"
    );
}
