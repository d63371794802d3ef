//! Breakpad symbol files: the text of `dump_syms`, records of one line each.
//!
//! ```text
//! MODULE Linux arm64 0123456789ABCDEF0123456789ABCDEF0 libfoo.so
//! INFO CODE_ID 67452301ab89efcd0123456789abcdefcafef00d
//! FILE 0 /src/foo.cc
//! INLINE_ORIGIN 0 foo::inlined(int)
//! FUNC [m] 1130 28 0 foo::outer(int)     address, size, parameter size, name
//! INLINE 0 41 0 0 1138 8                 nesting, line and file of the call, origin, (address, size)…
//! 1130 8 40 0                            address, size, line, file: of the FUNC above
//! PUBLIC [m] 1160 0 foo_c                address, parameter size, name
//! ```
//!
//! Numbers are hexadecimal, except lines, files, origins and nesting. Addresses count from the image
//! base: the address of the first loaded segment, which is 0 if the module is position-independent.
//! Names are already demangled. A PUBLIC record has no size. The index has only the start of each
//! FUNC; its lines are read when an address falls into it.

use super::answers::{Answers, SourceLine};
use super::facts::{Facts, Knowledge};
use heaptap_base::units::BuildId;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// `MODULE` line with the `INFO` lines after it.
pub(super) struct Module<'data> {
    debug_id: &'data str,
    code_id: BuildId,
    has_functions: bool,
}

impl<'data> Module<'data> {
    /// Reads the head of a Breakpad file; `None` if it is not one.
    pub fn read(bytes: &'data [u8]) -> Option<Module<'data>> {
        if !bytes.starts_with(b"MODULE ") {
            return None;
        }
        // MODULE, operating system, architecture, debug ID, name.
        let mut lines = Lines::new(bytes);
        let (_, first) = lines.next()?;
        let mut fields = str::from_utf8(first).ok()?.split(' ').skip(3);
        let debug_id = fields.next()?;
        let is_id = debug_id.len() >= 33 && debug_id.bytes().all(|b| b.is_ascii_hexdigit());
        if !is_id || debug_id.len() > 40 {
            return None;
        }
        let mut code_id = BuildId::default();
        let mut has_functions = false;
        // FILE records come before FUNC records, so a few kilobytes are enough to classify the
        // file.
        for (_, line) in lines {
            if let Some(id) = line.strip_prefix(b"INFO CODE_ID ") {
                code_id = BuildId(hex(id.split(|b| *b == b' ').next().unwrap_or(id)));
            } else if !line.starts_with(b"INFO ") {
                has_functions = line.starts_with(b"F") || line.starts_with(b"INLINE_ORIGIN ");
                break;
            }
        }
        Some(Module {
            debug_id,
            code_id,
            has_functions,
        })
    }

    pub fn facts(&self) -> Facts {
        Facts {
            build_id: self.code_id.clone(),
            debug_id: Some(self.debug_id.to_owned()),
            knowledge: if self.has_functions {
                Knowledge::Lines
            } else {
                Knowledge::Dynsym
            },
            debug_link: None,
            supplement: None,
            // STACK records at the end of the file would show this, but nothing is unwound here.
            has_unwind: true,
        }
    }
}

/// Returns the bytes of pairs of hex digits, up to the first other character.
fn hex(text: &[u8]) -> Vec<u8> {
    let digits = |pair: &[u8]| {
        let pair = str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
        u8::from_str_radix(pair, 16).ok()
    };
    text.chunks(2).map_while(digits).collect()
}

/// Returns the lowest address of a FUNC record; without any, that of a PUBLIC record.
pub(super) fn lowest_address(bytes: &[u8]) -> u64 {
    let index = Index::build(bytes);
    let first = index.functions.first().map(|function| function.address);
    let first = first.or_else(|| index.publics.first().map(|public| public.address));
    first.unwrap_or(u64::MAX)
}

/// Returns the image base of a module whose code was mapped with this load bias. Code is nowhere
/// below its bias, so functions below it count from another base: that of a program that is not
/// position-independent. Its bias is the base, some pages more if each segment begins on its own
/// page, or less if `patchelf` moved the code.
pub(super) fn image_base(load_bias: u64, lowest_address: impl FnOnce() -> u64) -> u64 {
    /// Linkers put programs at multiples of 2 MiB; for 32-bit ARM at 32 KiB or 64 KiB.
    const LARGE: u64 = 1 << 20;
    const SMALL: u64 = 1 << 15;
    let unit = if load_bias < LARGE { SMALL } else { LARGE };
    let nearest = load_bias.saturating_add(unit / 2);
    let base = nearest - nearest % unit;
    if base > 0 && lowest_address() < load_bias {
        base
    } else {
        0
    }
}

/// Offsets of the functions in a Breakpad file.
pub(super) struct Index<'data> {
    bytes: &'data [u8],
    /// Sorted by address.
    functions: Vec<Function>,
    /// Sorted by address.
    publics: Vec<Public>,
    files: HashMap<u64, &'data [u8]>,
    origins: HashMap<u64, &'data [u8]>,
}

struct Function {
    address: u64,
    size: u64,
    /// Offset of its FUNC record.
    offset: usize,
}

struct Public {
    address: u64,
    /// Offset of its PUBLIC record.
    offset: usize,
}

impl<'data> Index<'data> {
    /// Reads the file once to find its records.
    pub fn build(bytes: &'data [u8]) -> Index<'data> {
        let mut index = Index {
            bytes,
            functions: Vec::new(),
            publics: Vec::new(),
            files: HashMap::new(),
            origins: HashMap::new(),
        };
        for (offset, line) in Lines::new(bytes) {
            // Line records, which make up most of the file, begin with a digit or a lower-case
            // letter.
            match line.first() {
                Some(b'F') => {
                    if let Some(mut fields) = Fields::new(line, b"FUNC ") {
                        fields.skip_marker();
                        if let (Some(address), Some(size)) = (fields.hex(), fields.hex()) {
                            let function = Function {
                                address,
                                size,
                                offset,
                            };
                            index.functions.push(function);
                        }
                    } else if let Some(mut fields) = Fields::new(line, b"FILE ")
                        && let Some(number) = fields.decimal()
                    {
                        index.files.insert(number, fields.rest);
                    }
                }
                Some(b'P') => {
                    if let Some(mut fields) = Fields::new(line, b"PUBLIC ") {
                        fields.skip_marker();
                        if let Some(address) = fields.hex() {
                            index.publics.push(Public { address, offset });
                        }
                    }
                }
                Some(b'I') => {
                    if let Some(mut fields) = Fields::new(line, b"INLINE_ORIGIN ")
                        && let Some(number) = fields.decimal()
                    {
                        index.origins.insert(number, fields.rest);
                    }
                }
                _ => {}
            }
        }
        // If several begin at one address, the largest counts, and among equal ones the first.
        let key = |function: &Function| (function.address, Reverse(function.size));
        index.functions.sort_by_key(key);
        index.functions.dedup_by_key(|function| function.address);
        index.publics.sort_by_key(|public| public.address);
        index
    }

    /// Looks up sorted addresses; the records of a function are read once for all of its addresses.
    pub fn lookup(&self, addresses: &[u64], answers: &mut Answers) {
        let mut block: Option<(usize, Block<'data>)> = None;
        for (at, address) in addresses.iter().enumerate() {
            let after = self.functions.partition_point(|f| f.address <= *address);
            let nearest = self.functions[..after].last();
            let holding = nearest.filter(|f| address - f.address < f.size);
            if let Some(function) = holding {
                let is_known = |(offset, _): &(usize, Block<'_>)| *offset == function.offset;
                if !block.as_ref().is_some_and(is_known) {
                    let read = self.read_block(function);
                    block = read.map(|block| (function.offset, block));
                }
                if let Some((_, block)) = &block {
                    self.answer(block, *address, answers);
                }
            } else {
                let floor = nearest.map_or(0, |f| f.address);
                let after = self.publics.partition_point(|p| p.address <= *address);
                if let Some(public) = self.publics[..after].last()
                    && public.address >= floor
                    && address - public.address < MAX_PUBLIC_LENGTH
                    && let Some(name) = self.name_of(public.offset, b"PUBLIC ", 2)
                {
                    answers.add(line(&text(name), "", 0));
                }
            }
            answers.finish(at);
        }
    }

    /// Returns the name at the end of a FUNC or PUBLIC record, after `numbers` numbers.
    fn name_of(&self, offset: usize, record: &[u8], numbers: usize) -> Option<&'data [u8]> {
        let (_, line) = Lines::new(self.bytes.get(offset..)?).next()?;
        let mut fields = Fields::new(line, record)?;
        fields.skip_marker();
        for _ in 0..numbers {
            fields.hex()?;
        }
        Some(fields.rest)
    }

    /// Reads the records of a function.
    fn read_block(&self, function: &Function) -> Option<Block<'data>> {
        let mut block = Block {
            name: self.name_of(function.offset, b"FUNC ", 3)?,
            lines: Vec::new(),
            calls: BTreeMap::new(),
        };
        for (_, line) in Lines::new(&self.bytes[function.offset..]).skip(1) {
            if let Some(fields) = Fields::new(line, b"INLINE ") {
                block.read_inline(fields);
                continue;
            }
            // FUNC also begins with a hex digit, `F`.
            if line.starts_with(b"FUNC ") || !line.first().is_some_and(u8::is_ascii_hexdigit) {
                break;
            }
            let mut fields = Fields { rest: line };
            if let (Some(start), Some(size)) = (fields.hex(), fields.hex())
                && let (Some(line), Some(file)) = (fields.decimal(), fields.decimal())
            {
                let place = Place { line, file };
                block.lines.push(Span { start, size, place });
            }
        }
        block.lines.sort_by_key(|span| span.start);
        for calls in block.calls.values_mut() {
            calls.sort_by_key(|span| span.start);
        }
        Some(block)
    }

    /// Adds the location of the innermost frame, then that of each call outwards.
    fn answer(&self, block: &Block<'_>, address: u64, answers: &mut Answers) {
        let own = holding(&block.lines, address);
        let mut place = own.map_or(Place::NOWHERE, |span| span.place);
        for calls in block.calls.values().rev() {
            if let Some(span) = holding(calls, address) {
                let (call, origin) = span.place;
                let origin = self.origins.get(&origin).copied().unwrap_or_default();
                answers.add(line(&text(origin), &self.file(place.file), place.line));
                place = call;
            }
        }
        answers.add(line(&text(block.name), &self.file(place.file), place.line));
    }

    fn file(&self, number: u64) -> Cow<'data, str> {
        text(self.files.get(&number).copied().unwrap_or_default())
    }
}

/// Records of a function.
struct Block<'data> {
    name: &'data [u8],
    /// Sorted by address.
    lines: Vec<Span<Place>>,
    /// By nesting, then sorted by address: location of a call, and number of the INLINE_ORIGIN of
    /// the called function.
    calls: BTreeMap<u64, Vec<Span<(Place, u64)>>>,
}

/// Value for a range of addresses.
struct Span<T> {
    start: u64,
    size: u64,
    place: T,
}

#[derive(Clone, Copy)]
struct Place {
    line: u64,
    file: u64,
}

impl Place {
    const NOWHERE: Place = Place {
        line: 0,
        file: u64::MAX,
    };
}

/// Returns the last span that begins at or before the address, if it contains the address.
fn holding<T>(spans: &[Span<T>], address: u64) -> Option<&Span<T>> {
    let after = spans.partition_point(|span| span.start <= address);
    let span = spans[..after].last()?;
    (address - span.start < span.size).then_some(span)
}

/// Maximum size of the function of a PUBLIC record, in bytes.
const MAX_PUBLIC_LENGTH: u64 = 64 << 10;

/// Maximum nesting of inlined calls. A few dozen levels occur, and each is searched for each
/// address.
const MAX_DEPTH: u64 = 256;

impl Block<'_> {
    fn read_inline(&mut self, mut fields: Fields<'_>) -> Option<()> {
        let nesting = fields.decimal().filter(|nesting| *nesting < MAX_DEPTH)?;
        let (line, file) = (fields.decimal()?, fields.decimal()?);
        let place = (Place { line, file }, fields.decimal()?);
        let calls = self.calls.entry(nesting).or_default();
        while let (Some(start), Some(size)) = (fields.hex(), fields.hex()) {
            calls.push(Span { start, size, place });
        }
        Some(())
    }
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn line<'text>(function: &'text str, file: &'text str, line: u64) -> SourceLine<'text> {
    SourceLine {
        function,
        linkage: function,
        file,
        line: u32::try_from(line).unwrap_or(0),
        column: 0,
    }
}

/// Lines of the text with their offsets, without line ends.
struct Lines<'data> {
    bytes: &'data [u8],
    offset: usize,
}

impl<'data> Lines<'data> {
    fn new(bytes: &'data [u8]) -> Lines<'data> {
        Lines { bytes, offset: 0 }
    }
}

impl<'data> Iterator for Lines<'data> {
    type Item = (usize, &'data [u8]);

    fn next(&mut self) -> Option<(usize, &'data [u8])> {
        let rest = self.bytes.get(self.offset..)?;
        if rest.is_empty() {
            return None;
        }
        let length = rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
        let start = self.offset;
        self.offset += length + 1;
        let line = &rest[..length];
        Some((start, line.strip_suffix(b"\r").unwrap_or(line)))
    }
}

/// Fields of a record, separated by blanks.
struct Fields<'data> {
    rest: &'data [u8],
}

impl<'data> Fields<'data> {
    fn new(line: &'data [u8], record: &[u8]) -> Option<Fields<'data>> {
        let rest = line.strip_prefix(record)?;
        Some(Fields { rest })
    }

    /// Skips `m`, which marks functions that share an address.
    fn skip_marker(&mut self) {
        self.rest = self.rest.strip_prefix(b"m ").unwrap_or(self.rest);
    }

    fn number(&mut self, radix: u32) -> Option<u64> {
        let end = self.rest.iter().position(|b| *b == b' ');
        let end = end.unwrap_or(self.rest.len());
        let field = str::from_utf8(&self.rest[..end]).ok()?;
        let number = u64::from_str_radix(field, radix).ok()?;
        self.rest = self.rest.get(end + 1..).unwrap_or_default();
        Some(number)
    }

    fn hex(&mut self) -> Option<u64> {
        self.number(16)
    }

    fn decimal(&mut self) -> Option<u64> {
        self.number(10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbolize::file::answers::for_each;
    use crate::symbolize::file::debug_id::debug_id;

    const FILE: &[u8] = b"MODULE Linux arm64 67452301AB89EFCD0123456789ABCDEF0 libfoo.so\n\
        INFO CODE_ID 0123456789ABCDEF0123456789ABCDEFCAFEF00D\n\
        FILE 0 /src/foo.cc\n\
        FILE 1 /src/foo.h\r\n\
        INLINE_ORIGIN 0 foo::middle(int)\n\
        INLINE_ORIGIN 1 foo::inner(int)\n\
        FUNC 1130 28 0 foo::outer(int)\n\
        INLINE 0 41 0 0 1138 10\n\
        INLINE 1 12 1 1 113c 4 1144 4\n\
        1130 8 40 0\n\
        1138 4 11 1\n\
        113c 4 7 1\n\
        1140 18 42 0\n\
        FUNC m 1158 8 0 shared name\n\
        PUBLIC 1000 0 _start\n\
        PUBLIC m 1170 0 foo_c\n\
        STACK CFI INIT 1130 28 .cfa: sp 0 +\n";

    fn names(addresses: &[u64]) -> Vec<(usize, Vec<String>)> {
        let mut answers = Answers::default();
        Index::build(FILE).lookup(addresses, &mut answers);
        let mut found = Vec::new();
        for_each(&[answers], &mut |at, lines| {
            let shown = lines
                .iter()
                .map(|l| format!("{} {}:{}", l.function, l.file, l.line));
            found.push((at, shown.collect()));
        });
        found
    }

    #[test]
    fn the_head_tells_the_build() {
        let facts = Module::read(FILE).unwrap().facts();
        assert_eq!(facts.knowledge, Knowledge::Lines);
        let build_id = BuildId(hex(b"0123456789abcdef0123456789abcdefcafef00d"));
        assert_eq!(facts.build_id, build_id);
        assert_eq!(
            Some(debug_id(&build_id)),
            facts.debug_id,
            "the first three fields are swapped"
        );
        assert!(facts.is_build(&build_id));
        assert!(facts.is_build(&BuildId(b"67452301AB89EFCD0123456789ABCDEF0".to_vec())));
        assert!(!facts.is_build(&BuildId(vec![1; 20])));
        assert!(!facts.is_build(&BuildId::default()));
        assert!(Module::read(b"MODULE Linux arm64 123 lib\n").is_none());
    }

    #[test]
    fn functions_below_the_load_bias_count_from_the_image_base() {
        for (case, lowest, load_bias, base) in [
            ("position-independent", 0x1130, 0, 0),
            ("a page of each segment, lld", 0x1690, 0x1000, 0),
            ("pages of 64 KiB, lld", 0x2_1690, 0x2_0000, 0),
            ("ld", 0x1000, 0x40_0000, 0x40_0000),
            (
                "ld, code at the start of the file",
                0x480,
                0x40_0000,
                0x40_0000,
            ),
            ("lld", 0x1690, 0x20_1000, 0x20_0000),
            ("lld with pages of 64 KiB", 0x2_1690, 0x22_0000, 0x20_0000),
            ("moved by patchelf", 0x480, 0x3f_e000, 0x40_0000),
            ("32-bit ARM", 0x174, 0x1_0000, 0x1_0000),
            ("link-time addresses", 0x40_1000, 0x40_0000, 0),
            ("no records", u64::MAX, 0x40_0000, 0),
        ] {
            assert_eq!(image_base(load_bias, || lowest), base, "{case}");
        }
        assert_eq!(lowest_address(FILE), 0x1130);
        assert_eq!(
            lowest_address(b"PUBLIC 2000 0 b\nPUBLIC 1000 0 a\n"),
            0x1000
        );
    }

    #[test]
    fn an_address_far_behind_the_last_public_has_no_name() {
        assert_eq!(names(&[0x1170 + 0xffff, 0x1170 + 0x1_0000]).len(), 1);
    }

    #[test]
    fn a_long_function_is_read_once_for_all_its_addresses() {
        use std::fmt::Write as _;
        let mut text = "MODULE Linux arm64 67452301AB89EFCD0123456789ABCDEF0 lib\n".to_owned();
        text.push_str("FILE 0 a.cc\nINLINE_ORIGIN 0 inner\nFUNC 1000 40000 0 outer\n");
        for at in 0..20_000 {
            let address = 0x1000 + at * 8;
            writeln!(text, "INLINE 0 {at} 0 0 {address:x} 4").unwrap();
            writeln!(text, "{address:x} 8 {at} 0").unwrap();
        }
        let addresses: Vec<u64> = (0..40_000).map(|at| 0x1000 + at * 4).collect();
        let mut answers = Answers::default();
        Index::build(text.as_bytes()).lookup(&addresses, &mut answers);
        let mut depths = [0; 3];
        for_each(&[answers], &mut |at, lines| {
            depths[lines.len()] += 1;
            assert_eq!(u64::from(lines[0].line), at as u64 / 2);
        });
        assert_eq!(depths, [0, 20_000, 20_000]);
    }

    #[test]
    fn functions_inlined_calls_and_publics_are_found() {
        let found = names(&[
            0xfff, 0x1004, 0x1130, 0x1139, 0x113c, 0x115f, 0x1160, 0x1175,
        ]);
        let expected: [(usize, &[&str]); 6] = [
            (1, &["_start :0"]),
            (2, &["foo::outer(int) /src/foo.cc:40"]),
            (
                3,
                &[
                    "foo::middle(int) /src/foo.h:11",
                    "foo::outer(int) /src/foo.cc:41",
                ],
            ),
            (
                4,
                &[
                    "foo::inner(int) /src/foo.h:7",
                    "foo::middle(int) /src/foo.h:12",
                    "foo::outer(int) /src/foo.cc:41",
                ],
            ),
            (5, &["shared name :0"]),
            (7, &["foo_c :0"]),
        ];
        let expected: Vec<(usize, Vec<String>)> = expected
            .into_iter()
            .map(|(at, lines)| (at, lines.iter().map(|l| (*l).to_owned()).collect()))
            .collect();
        assert_eq!(found, expected);
    }
}
