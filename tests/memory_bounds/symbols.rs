//! Symbol files: ELF with its tables and DWARF, and Breakpad's text.

use super::wire::many;
use super::{MIB, Shapes};
use crate::elf::{PROGBITS, STRTAB, elf, entry, leb, unit};
use heaptap_base::bytes::Bytes;
use heaptap_symbols::symbolize::file::{Alone, SymbolFile, identify};
use std::num::NonZero;
use std::sync::Arc;

const SIZE: usize = 8 * MIB;
const SYMTAB: u32 = 2;
const NOTE: u32 = 7;

/// The root of a unit with low_pc and high_pc, a function likewise, an inlined call.
const ABBREVS: [u8; 30] = [
    1, 0x11, 1, 0x11, 0x01, 0x12, 0x06, 0, 0, //
    2, 0x2e, 1, 0x11, 0x01, 0x12, 0x06, 0, 0, //
    3, 0x1d, 1, 0x11, 0x01, 0x12, 0x06, 0x31, 0x13, 0, 0, //
    0,
];

/// A DWARF 4 line table with these directories and files, and this program.
fn lines(files: &[u8], program: &[u8]) -> Vec<u8> {
    let mut header = vec![1, 1, 1, 0xfb, 14, 13];
    header.extend([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1]);
    header.extend_from_slice(files);
    let mut table = vec![4, 0];
    table.extend((header.len() as u32).to_le_bytes());
    table.extend(header);
    table.extend_from_slice(program);
    [&(table.len() as u32).to_le_bytes()[..], &table].concat()
}

#[test]
fn symbol_files() {
    let mut all = Shapes::of("a symbol file");
    let with_lines = |lines: Vec<u8>| {
        // A root with low_pc, high_pc and stmt_list.
        let abbrevs = vec![1, 0x11, 0, 0x11, 0x01, 0x12, 0x06, 0x10, 0x17, 0, 0, 0];
        let root = [entry(1, 0x1000, 0x4000), vec![0; 4]].concat();
        elf(&[
            (".debug_abbrev", PROGBITS, abbrevs),
            (".debug_info", PROGBITS, unit(0, &root)),
            (".debug_line", PROGBITS, lines),
        ])
    };
    let with_entries = |entries: Vec<u8>| {
        let root = [entry(1, 0x1000, 0x4000), entries].concat();
        elf(&[
            (".debug_abbrev", PROGBITS, ABBREVS.to_vec()),
            (".debug_info", PROGBITS, unit(0, &root)),
        ])
    };
    let func = |n: u64| format!("FUNC {n:x} 1 0 a\n").into_bytes();
    let breakpad = |rest: Vec<u8>| {
        [
            &b"MODULE Linux arm64 0123456789ABCDEF0123456789ABCDEF0 a\n"[..],
            &rest,
        ]
        .concat()
    };
    let shapes = vec![
        (
            "symbols",
            elf(&[
                (
                    ".symtab",
                    SYMTAB,
                    many(SIZE, |n| {
                        let mut symbol = vec![1, 0, 0, 0, 2, 0, 1, 0];
                        symbol.extend((0x1000 + n).to_le_bytes());
                        symbol.extend(1u64.to_le_bytes());
                        symbol
                    }),
                ),
                (".strtab", STRTAB, b"\0name\0".to_vec()),
            ]),
        ),
        (
            "symbols of one long name",
            elf(&[
                (
                    ".symtab",
                    SYMTAB,
                    many(MIB, |n| {
                        let mut symbol = vec![1, 0, 0, 0, 2, 0, 1, 0];
                        symbol.extend((0x1000 + n).to_le_bytes());
                        symbol.extend(1u64.to_le_bytes());
                        symbol
                    }),
                ),
                (
                    ".strtab",
                    STRTAB,
                    [&b"\0_ZN"[..], &b"3foo".repeat(MIB / 4), b"Ev\0"].concat(),
                ),
            ]),
        ),
        (
            "notes",
            elf(&[(".note", NOTE, many(SIZE, |_| vec![0; 12]))]),
        ),
        (
            "abbreviations",
            elf(&[
                (
                    ".debug_abbrev",
                    PROGBITS,
                    many(SIZE, |n| [leb(n + 1), vec![0x34, 0, 0, 0]].concat()),
                ),
                (".debug_info", PROGBITS, unit(0, &[1, 0])),
            ]),
        ),
        (
            "attributes of one abbreviation",
            elf(&[
                (
                    ".debug_abbrev",
                    PROGBITS,
                    [
                        &[1, 0x11, 1][..],
                        &[0x03, 0x19].repeat(SIZE / 2),
                        &[0, 0, 0],
                    ]
                    .concat(),
                ),
                (".debug_info", PROGBITS, unit(0, &[1, 0])),
            ]),
        ),
        (
            "units",
            elf(&[
                (".debug_abbrev", PROGBITS, ABBREVS.to_vec()),
                (
                    ".debug_info",
                    PROGBITS,
                    many(SIZE, |n| {
                        unit(0, &[entry(1, 0x1000 + n, 1), vec![0]].concat())
                    }),
                ),
            ]),
        ),
        (
            "empty units",
            elf(&[
                (".debug_abbrev", PROGBITS, ABBREVS.to_vec()),
                (".debug_info", PROGBITS, many(SIZE, |_| unit(0, &[]))),
            ]),
        ),
        (
            "functions",
            with_entries(many(SIZE, |n| [entry(2, 0x1000 + n, 1), vec![0]].concat())),
        ),
        (
            "functions within each other",
            with_entries(many(SIZE, |_| entry(2, 0x1000, 0x4000))),
        ),
        (
            "inlined calls within each other",
            with_entries(
                [
                    entry(2, 0x1000, 0x4000),
                    many(SIZE, |_| {
                        [entry(3, 0x1000, 0x4000), vec![11, 0, 0, 0]].concat()
                    }),
                ]
                .concat(),
            ),
        ),
        (
            "rows of lines",
            with_lines(lines(&[0, b'a', 0, 0, 0, 0, 0], &{
                // At 0x1000: a row for each special opcode.
                let mut program = vec![0, 9, 2];
                program.extend(0x1000u64.to_le_bytes());
                program.extend(vec![0x20; SIZE]);
                program.extend([0, 1, 1]);
                program
            })),
        ),
        (
            "sequences of lines",
            with_lines(lines(
                &[0, b'a', 0, 0, 0, 0, 0],
                &many(SIZE, |n| {
                    let mut program = vec![0, 9, 2];
                    program.extend((0x1000 + n).to_le_bytes());
                    program.extend([0x20, 0, 1, 1]);
                    program
                }),
            )),
        ),
        (
            "files of lines",
            with_lines(lines(
                &[&[0][..], &[b'a', 0, 0, 0, 0].repeat(SIZE / 5), &[0]].concat(),
                &[0, 9, 2, 0, 0x10, 0, 0, 0, 0, 0, 0, 0x20, 0x20, 0, 1, 1],
            )),
        ),
        (
            "folders of lines",
            with_lines(lines(
                &[&b"a\0".repeat(SIZE / 2)[..], &[0, b'a', 0, 0, 0, 0, 0]].concat(),
                &[0, 9, 2, 0, 0x10, 0, 0, 0, 0, 0, 0, 0x20, 0x20, 0, 1, 1],
            )),
        ),
        ("functions of Breakpad", breakpad(many(SIZE, func))),
        (
            "short functions of Breakpad",
            breakpad(b"FUNC 1 1 0 a\n".repeat(SIZE / 13)),
        ),
        (
            "lines of Breakpad",
            breakpad(
                [
                    func(0x1000),
                    many(SIZE, |n| format!("{:x} 1 1 0\n", 0x1000 + n).into_bytes()),
                ]
                .concat(),
            ),
        ),
        (
            "files of Breakpad",
            breakpad(many(SIZE, |n| format!("FILE {n} a\n").into_bytes())),
        ),
        (
            "symbols of Breakpad",
            breakpad(many(SIZE, |n| format!("PUBLIC {n:x} 0 a\n").into_bytes())),
        ),
        (
            "inlined calls of Breakpad",
            breakpad(
                [
                    func(0x1000),
                    many(SIZE, |n| format!("INLINE {n} 1 0 0 1000 1\n").into_bytes()),
                ]
                .concat(),
            ),
        ),
        (
            "origins of Breakpad",
            breakpad(many(SIZE, |n| {
                format!("INLINE_ORIGIN {n} a\n").into_bytes()
            })),
        ),
        ("one long line of Breakpad", breakpad(b"F".repeat(SIZE))),
    ];
    let addresses: Vec<u64> = (0x1000..0x5000).step_by(16).collect();
    for (shape, file) in shapes {
        let size = file.len();
        let file = Bytes::from(file);
        all.read(shape, size, || {
            let facts = identify(&file);
            let Ok(file) = SymbolFile::open(file.clone(), Arc::new(Alone)) else {
                return (facts, None);
            };
            file.lookup(&addresses, NonZero::<usize>::MIN, &mut |_, _| {});
            (facts, Some(file))
        });
    }
    all.hold();
}
