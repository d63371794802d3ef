//! Symbol files that are small, but expensive to read, although each part is valid.

use super::{Line, lookup};
use crate::elf::{PROGBITS, elf, entry, leb, unit};
use heaptap_symbols::symbolize::file::{Alone, Bytes, Note, SymbolFile};
use std::sync::Arc;

fn debug(sections: &[(&str, Vec<u8>)]) -> SymbolFile {
    let sections: Vec<_> = sections
        .iter()
        .map(|(name, data)| (*name, PROGBITS, data.clone()))
        .collect();
    let bytes = Bytes::from(elf(&sections));
    SymbolFile::open(bytes, Arc::new(Alone)).expect("its headers are sound")
}

// Abbreviations, with DWARF's numbers for tags, attributes and forms.
const UNIT: [u8; 9] = [1, 0x11, 1, 0x11, 0x01, 0x12, 0x06, 0, 0];
const FUNCTION: [u8; 9] = [2, 0x2e, 1, 0x11, 0x01, 0x12, 0x06, 0, 0];
const INLINED: [u8; 11] = [3, 0x1d, 1, 0x11, 0x01, 0x12, 0x06, 0x31, 0x13, 0, 0];

#[test]
fn a_hundred_thousand_units_that_read_one_long_table_from_everywhere() {
    // A table of 100,000 abbreviations; each unit begins at another one, and has the last as its
    // root.
    let mut abbrevs = Vec::new();
    let mut starts = Vec::new();
    let mut code = 100_000;
    while code > 2 {
        starts.push(abbrevs.len() as u32);
        abbrevs.extend(leb(code));
        abbrevs.extend([0x34, 0, 0, 0]);
        code -= 1;
    }
    abbrevs.extend(UNIT);
    abbrevs.push(0);
    let mut info = Vec::new();
    for (number, start) in starts.iter().enumerate() {
        let mut entries = entry(1, number as u64 * 16, 16);
        entries.push(0);
        info.extend(unit(*start, &entries));
    }
    let file = debug(&[(".debug_info", info), (".debug_abbrev", abbrevs)]);
    let addresses: Vec<u64> = (0..90_000).map(|at| at * 16).collect();
    lookup(&file, &addresses);
    assert!(
        file.notes().contains(&Note::TooMuchWork),
        "{:?}",
        file.notes()
    );
}

#[test]
fn ten_thousand_units_with_one_long_list_of_ranges() {
    let mut abbrevs = vec![1, 0x11, 1, 0x11, 0x01, 0x55, 0x17, 0, 0];
    abbrevs.push(0);
    let mut ranges = Vec::new();
    for at in 0..100_000u64 {
        ranges.extend((1 + at * 16).to_le_bytes());
        ranges.extend((9 + at * 16).to_le_bytes());
    }
    ranges.extend([0; 16]);
    let mut info = Vec::new();
    for _ in 0..10_000 {
        let mut entries = vec![1];
        entries.extend([0; 12]);
        entries.push(0);
        info.extend(unit(0, &entries));
    }
    let file = debug(&[
        (".debug_info", info),
        (".debug_abbrev", abbrevs),
        (".debug_ranges", ranges),
    ]);
    lookup(&file, &[5, 21, 160_001]);
    assert!(
        file.notes().contains(&Note::TooMuchWork),
        "{:?}",
        file.notes()
    );
}

/// A function at 0x1000 with calls inlined into one another, each of which refers to itself.
fn nested(depth: usize) -> SymbolFile {
    let mut abbrevs = UNIT.to_vec();
    abbrevs.extend(FUNCTION);
    abbrevs.extend(INLINED);
    abbrevs.push(0);
    let mut entries = entry(1, 0x1000, 0x1000);
    entries.extend(entry(2, 0x1000, 0x1000));
    for _ in 0..depth {
        let at = entries.len() as u32 + 11;
        entries.extend(entry(3, 0x1000, 0x1000));
        entries.extend(at.to_le_bytes());
    }
    entries.resize(entries.len() + depth + 2, 0);
    debug(&[
        (".debug_info", unit(0, &entries)),
        (".debug_abbrev", abbrevs),
    ])
}

#[test]
fn entries_that_refer_to_themselves_have_no_name() {
    let file = nested(2);
    let nameless = Line {
        linkage: String::new(),
        function: String::new(),
        file: String::new(),
        line: 0,
        column: 0,
    };
    let found = lookup(&file, &[0x1800]);
    assert_eq!(found[0][..2], [nameless.clone(), nameless]);
    assert_eq!(file.notes(), []);
}

#[test]
fn calls_inlined_a_hundred_thousand_deep() {
    let file = nested(100_000);
    let addresses: Vec<u64> = (0x1000..0x2000).collect();
    let found = lookup(&file, &addresses);
    assert!(found.iter().all(|lines| lines.len() < 1000));
}

/// A unit whose line table has this header after the version, and this program.
fn with_lines(header: &[u8], program: &[u8]) -> SymbolFile {
    let mut abbrevs = vec![1, 0x11, 0, 0x11, 0x01, 0x12, 0x06, 0x10, 0x17, 0, 0];
    abbrevs.push(0);
    let mut entries = entry(1, 0x1000, 0x100);
    entries.extend([0; 4]);
    let mut table = (header.len() as u32).to_le_bytes().to_vec();
    table.extend_from_slice(header);
    table.extend_from_slice(program);
    let mut line = (table.len() as u32 + 4).to_le_bytes().to_vec();
    line.extend([5, 0, 8, 0]);
    line.extend(table);
    debug(&[
        (".debug_info", unit(0, &entries)),
        (".debug_abbrev", abbrevs),
        (".debug_line", line),
    ])
}

/// One row for 0x1000 to 0x1010.
const PROGRAM: [u8; 17] = [0, 9, 2, 0, 0x10, 0, 0, 0, 0, 0, 0, 1, 2, 0x10, 0, 1, 1];

#[test]
fn a_table_of_files_without_size_and_end() {
    let lengths = [0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1];
    let mut header = vec![1, 1, 1, 0xfb, 14, 13];
    header.extend(lengths);
    let mut sound = header.clone();
    // One directory (DW_LNCT_path as DW_FORM_string) and two files in it.
    sound.extend(*b"\x01\x01\x08\x01/src\0\x01\x01\x08\x02a.c\0b.c\0");
    let file = with_lines(&sound, &PROGRAM);
    let found = lookup(&file, &[0x1008]).remove(0);
    assert_eq!((found[0].file.as_str(), found[0].line), ("/src/b.c", 1));
    // DW_LNCT_path as DW_FORM_flag_present, 2^63 times.
    let mut endless = header;
    endless.extend([1, 1, 0x19]);
    endless.extend(leb(1 << 63));
    let file = with_lines(&endless, &PROGRAM);
    assert!(lookup(&file, &[0x1008])[0].is_empty());
}

#[test]
fn a_line_program_that_tells_the_same_addresses_over_and_over() {
    let mut header = vec![1, 1, 1, 0xfb, 14, 13];
    header.extend([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1]);
    header.extend([0, 0, 0, 0]);
    let program = PROGRAM.repeat(200_000);
    let file = with_lines(&header, &program);
    let addresses: Vec<u64> = (0x1000..0x1010).collect();
    lookup(&file, &addresses);
    assert_eq!(file.notes(), []);
}

#[test]
fn compressed_data_that_holds_more_than_it_should() {
    // 256 MiB of zeros in some KiB, in each compression format.
    let zeros = vec![0; 1 << 20];
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..256 {
        std::io::Write::write_all(&mut zlib, &zeros).expect("memory");
    }
    let zlib = zlib.finish().expect("memory");
    let mut gnu = b"ZLIB".to_vec();
    gnu.extend((256u64 << 20).to_be_bytes());
    gnu.extend(&zlib);
    let file = debug(&[(".zdebug_info", gnu), (".debug_info", Vec::new())]);
    lookup(&file, &[0x1000]);
    let notes = file.notes();
    assert!(matches!(&notes[..], [Note::Damaged { .. }]), "{notes:?}");

    // 64 MiB in .gnu_debugdata.
    let path = super::root().join("fuzz/corpus/symbol_file/xz_bomb");
    let file = super::open(&path).expect("its headers are sound");
    let notes = file.notes();
    assert!(matches!(&notes[..], [Note::Damaged { .. }]), "{notes:?}");
}
