//! Damaged and hostile symbol files: an error or a note, never a panic or an endless loop.

use super::{open, samples};
use heaptap_symbols::symbolize::file::{Alone, Bytes, FileError, SymbolFile, identify};
use std::num::NonZero;
use std::sync::Arc;

#[test]
fn damaged_headers_are_errors_that_say_so() {
    let broken = samples("alloc").join("broken");
    for (name, word) in [
        ("bad-shoff.so", "section"),
        ("header-only.so", "header"),
        ("truncated.so", "section"),
        ("zero-after-magic.so", "class"),
    ] {
        let error = open(&broken.join(name)).err().expect("an error");
        assert!(matches!(error, FileError::Damaged(_)), "{name}: {error}");
        assert!(error.to_string().contains(word), "{name}: {error}");
        let bytes = Bytes::map(&broken.join(name)).expect("the file is there");
        assert_eq!(identify(&bytes), Err(error), "{name}");
    }
}

#[test]
fn a_section_that_claims_an_exbibyte_is_noted_and_left_out() {
    let file = open(&samples("alloc").join("broken/zlib-bomb-claims-1EiB.so"));
    let file = file.expect("its headers are sound");
    let mut found = 0;
    let addresses: Vec<u64> = (0..0x3000).collect();
    file.lookup(&addresses, NonZero::<usize>::MIN, &mut |_, lines| {
        found += 1;
        assert_eq!(lines.len(), 1, "the symbol table alone");
    });
    assert!(found > 500);
    let notes = file.notes();
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].to_string().contains(".debug_"), "{notes:?}");
}

/// Reads a possibly damaged file as a command does.
fn use_up(bytes: Vec<u8>, addresses: &[u64]) {
    let _ = identify(&bytes);
    let Ok(file) = SymbolFile::open(Bytes::from(bytes), Arc::new(Alone)) else {
        return;
    };
    file.svma(0x1234, 0x1000, 0);
    file.lookup(addresses, NonZero::<usize>::MIN, &mut |_, lines| {
        assert!(!lines.is_empty());
    });
    let _ = file.notes();
}

/// Small files that together cover every reader.
const SMALL: [&str; 9] = [
    "clang-types5/libshapes.so",
    "clang-dwarf4/libshapes.so",
    "folded-lld5/libshapes.so",
    "dwz4/one.so",
    "zdebug/libzdebug.so",
    "zdebug/libzstd.so",
    "rust-v0/libshapes.so",
    "split5-clang/libshapes.so",
    "headless/bare.so",
];

fn code() -> Vec<u64> {
    (0..0x4000).step_by(7).collect()
}

#[test]
fn files_cut_at_any_length_are_read_or_refused() {
    for name in SMALL {
        let whole = std::fs::read(samples("shapes").join(name)).expect("the file is there");
        for length in (0..whole.len()).step_by(97) {
            use_up(whole[..length].to_vec(), &[0x1100, 0x1500]);
        }
    }
}

#[test]
fn files_with_changed_bytes_are_read_or_refused() {
    let code = code();
    for (seed, name) in SMALL.iter().enumerate() {
        let whole = std::fs::read(samples("shapes").join(name)).expect("the file is there");
        let mut random = fastrand::Rng::with_seed(seed as u64);
        for _ in 0..150 {
            let mut bytes = whole.clone();
            for _ in 0..random.usize(1..20) {
                let at = random.usize(..bytes.len());
                bytes[at] = match random.u8(..4) {
                    0 => 0,
                    1 => 0xff,
                    2 => bytes[at] ^ (1 << random.u8(..8)),
                    _ => random.u8(..),
                };
            }
            use_up(bytes, &code);
        }
    }
}
