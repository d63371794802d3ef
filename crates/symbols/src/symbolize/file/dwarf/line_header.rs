//! Header of a line table (DWARF 5, 6.2.4): parameters of its program, and the files that rows
//! refer to by number. The file tables are read when a file is needed.

use super::abbrev::Cursor;
use super::error::DwarfError;
use super::unit::{Parts, Unit, Value};
use super::work::Share;
use gimli::constants::{self as dw, DwAt, DwForm, DwLnct};
use gimli::{
    Abbreviations, AttributeSpecification, AttributeValue, Encoding, EndianSlice, EntriesRaw,
    Format, LittleEndian, UnitOffset,
};
use std::collections::HashMap;
use std::rc::Rc;

/// Header of a unit's line table.
pub(super) struct LineHeader<'data> {
    encoding: Encoding,
    pub minimum_instruction_length: u8,
    pub line_base: i8,
    /// Not 0.
    pub line_range: u8,
    /// Not 0.
    pub opcode_base: u8,
    pub standard_opcode_lengths: &'data [u8],
    pub program: &'data [u8],
    /// Directory and file tables, not parsed yet.
    tables: &'data [u8],
}

/// File in the table.
#[derive(Debug, Clone, Copy)]
struct File<'data> {
    name: Value<'data>,
    directory: u64,
}

impl<'data> LineHeader<'data> {
    /// Reads the header of a unit's line table; `None` if the unit does not have one.
    pub fn read(
        unit: &Unit<'data>,
        parts: &Parts<'data>,
        work: &Share<'_>,
    ) -> Result<Option<LineHeader<'data>>, DwarfError> {
        let Some(offset) = unit.line_program else {
            return Ok(None);
        };
        let mut at = Cursor {
            bytes: parts.line,
            at: offset.0,
        };
        let (format, table) = read_whole(&mut at).ok_or(DwarfError::Cut)?;
        // Several units can refer to the same table, and each reads it again.
        work.take(table.len())?;
        let mut at = Cursor {
            bytes: table,
            at: 0,
        };
        let version = at.number(2).ok_or(DwarfError::Cut)? as u16;
        if !(2..=5).contains(&version) {
            return Err(DwarfError::LineVersion(version));
        }
        let address_size = unit.encoding.address_size;
        let encoding = Encoding {
            address_size,
            format,
            version,
        };
        read_header(&mut at, encoding)
            .ok_or(DwarfError::LineHeader)
            .map(Some)
    }

    fn files(&self) -> Option<(Vec<Value<'data>>, Vec<File<'data>>)> {
        let mut at = Cursor {
            bytes: self.tables,
            at: 0,
        };
        if self.encoding.version >= 5 {
            let directories = self.entries(&mut at)?;
            let files = self.entries(&mut at)?;
            return Some((
                directories.into_iter().map(|file| file.name).collect(),
                files,
            ));
        }
        let text = |text| AttributeValue::String(EndianSlice::new(text, LittleEndian));
        let (mut directories, mut files) = (Vec::new(), Vec::new());
        loop {
            match at.text()? {
                b"" => break,
                directory => directories.push(text(directory)),
            }
        }
        loop {
            let name = match at.text()? {
                b"" => return Some((directories, files)),
                name => text(name),
            };
            let directory = at.leb()?;
            // Modification time and size.
            at.leb()?;
            at.leb()?;
            files.push(File { name, directory });
        }
    }

    /// Reads a table of DWARF 5: the format of its entries, their number, and the entries.
    fn entries(&self, at: &mut Cursor<'data>) -> Option<Vec<File<'data>>> {
        let mut specs = Vec::new();
        let mut is_sized = false;
        for _ in 0..at.byte()? {
            let (content, form) = (at.leb()?, at.leb()?);
            let form = DwForm(u16::try_from(form).ok()?);
            // Their values are stored elsewhere, so they are not valid in a file table.
            if form == dw::DW_FORM_implicit_const || form == dw::DW_FORM_indirect {
                return None;
            }
            is_sized |= form != dw::DW_FORM_flag_present;
            let content = DwLnct(u16::try_from(content).unwrap_or(u16::MAX));
            let name = match content {
                dw::DW_LNCT_path => PATH,
                dw::DW_LNCT_directory_index => DIRECTORY,
                _ => OTHER,
            };
            specs.push(AttributeSpecification::new(name, form, None));
        }
        let count = at.leb()?;
        if (!is_sized && count > 0) || count > MAX_FILES {
            // The number of entries of size zero would not be limited by the data.
            return None;
        }
        let mut files = Vec::new();
        let abbreviations = Abbreviations::default();
        let rest = EndianSlice::new(at.bytes.get(at.at..)?, LittleEndian);
        let offset = UnitOffset(at.at);
        let mut reader = EntriesRaw::new(rest, self.encoding, &abbreviations, offset);
        for _ in 0..count {
            let mut file = File {
                name: AttributeValue::String(EndianSlice::new(b"", LittleEndian)),
                directory: 0,
            };
            for spec in &specs {
                let value = reader.read_attribute(*spec).ok()?.raw_value();
                match spec.name() {
                    PATH => file.name = value,
                    DIRECTORY => file.directory = value.udata_value().unwrap_or(0),
                    _ => {}
                }
            }
            files.push(file);
        }
        at.at = reader.next_offset().0;
        Some(files)
    }
}

/// Maximum number of files of a unit; units with some thousand files exist.
const MAX_FILES: u64 = 1 << 20;

/// Attribute names for the contents of table entries, chosen so that gimli does not interpret them.
const PATH: DwAt = DwAt(0xfff1);
const DIRECTORY: DwAt = DwAt(0xfff2);
const OTHER: DwAt = DwAt(0xfff3);

/// Splits off the table after its length.
fn read_whole<'data>(at: &mut Cursor<'data>) -> Option<(Format, &'data [u8])> {
    let length = at.number(4)?;
    if length == 0xffff_ffff {
        let length = at.number(8)?;
        return Some((Format::Dwarf64, at.split(length)?));
    }
    Some((Format::Dwarf32, at.split(length)?))
}

fn read_header<'data>(at: &mut Cursor<'data>, mut encoding: Encoding) -> Option<LineHeader<'data>> {
    if encoding.version >= 5 {
        encoding.address_size = at.byte()?;
        // Segment selectors are not used by current machines.
        at.byte()?;
    }
    let length = at.number(encoding.format.word_size())?;
    let header = at.split(length)?;
    let program = at.bytes.get(at.at..)?;
    let mut at = Cursor {
        bytes: header,
        at: 0,
    };
    let minimum_instruction_length = at.byte()?;
    if encoding.version >= 4 {
        // Operations per instruction (VLIW), not used on Android.
        at.byte()?;
    }
    at.byte()?;
    let line_base = at.byte()? as i8;
    let line_range = at.byte()?;
    let opcode_base = at.byte()?;
    let lengths = u64::from(opcode_base.checked_sub(1)?);
    let standard_opcode_lengths = at.split(lengths)?;
    (line_range > 0 && matches!(encoding.address_size, 2 | 4 | 8)).then_some(LineHeader {
        encoding,
        minimum_instruction_length,
        line_base,
        line_range,
        opcode_base,
        standard_opcode_lengths,
        program,
        tables: header.get(at.at..)?,
    })
}

impl LineHeader<'_> {
    /// Returns the mask for addresses.
    pub fn address_mask(&self) -> u64 {
        u64::MAX >> (64 - 8 * u32::from(self.encoding.address_size))
    }
}

/// Paths of the files of a line table, as used by the compiler. They are not normalized, because
/// `..` can follow links.
pub(super) struct Paths<'unit, 'data> {
    unit: &'unit Unit<'data>,
    parts: &'unit Parts<'data>,
    header: Option<&'unit LineHeader<'data>>,
    tables: Option<(Vec<Value<'data>>, Vec<File<'data>>)>,
    known: HashMap<u64, Option<Rc<str>>>,
}

impl<'unit, 'data> Paths<'unit, 'data> {
    /// Makes the paths for a unit with this line table.
    pub fn new(
        unit: &'unit Unit<'data>,
        parts: &'unit Parts<'data>,
        header: Option<&'unit LineHeader<'data>>,
    ) -> Paths<'unit, 'data> {
        Paths {
            unit,
            parts,
            header,
            tables: None,
            known: HashMap::new(),
        }
    }

    /// Returns the path of a file in the form of llvm-symbolizer: relative paths are appended to
    /// their directory, and that to the working directory of the compiler. `None` if the file is
    /// missing.
    pub fn get(&mut self, file: u64) -> Option<Rc<str>> {
        if let Some(path) = self.known.get(&file) {
            return path.clone();
        }
        let path = self.build(file);
        let path = path.map(|path| Rc::from(String::from_utf8_lossy(&path)));
        self.known.insert(file, path.clone());
        path
    }

    fn build(&mut self, file: u64) -> Option<Vec<u8>> {
        let header = self.header?;
        let is_5 = header.encoding.version >= 5;
        if self.tables.is_none() {
            self.tables = Some(header.files().unwrap_or_default());
        }
        let (directories, files) = self.tables.as_ref()?;
        let text = |value| self.unit.string(self.parts, value);
        // Before version 5, files and directories count from 1.
        let place = |number: u64| usize::try_from(number.checked_sub(u64::from(!is_5))?).ok();
        let file = files.get(place(file)?)?;
        let name = text(file.name)?;
        if is_absolute(name) {
            return Some(name.to_vec());
        }
        let directory = place(file.directory).and_then(|at| directories.get(at));
        let directory = directory
            .and_then(|directory| text(*directory))
            .unwrap_or_default();
        let ran_in = self.unit.comp_dir;
        let mut path = Vec::with_capacity(ran_in.len() + directory.len() + name.len() + 2);
        // Directory 0 of version 5 is the working directory of the compiler.
        let is_there = is_5 && file.directory == 0;
        if !is_there && !is_absolute(directory) {
            path.extend_from_slice(ran_in);
        }
        append(&mut path, directory);
        append(&mut path, name);
        Some(path)
    }
}

/// Returns whether a path is absolute on Windows or elsewhere: the compiler could run on either.
fn is_absolute(path: &[u8]) -> bool {
    matches!(path, [b'/', ..] | [b'\\', b'\\', ..])
        || matches!(path, [drive, b':', b'/' | b'\\', ..] if drive.is_ascii_alphabetic())
}

/// Appends a part of a path with exactly one separator.
fn append(path: &mut Vec<u8>, part: &[u8]) {
    let leading = part.iter().take_while(|byte| **byte == b'/').count();
    if path.ends_with(b"/") {
        path.extend_from_slice(&part[leading..]);
    } else {
        if !path.is_empty() && !part.is_empty() && leading == 0 {
            path.push(b'/');
        }
        path.extend_from_slice(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_paths_are_joined_by_one_separator() {
        for (parts, joined) in [
            (["/src", "lib", "a.c"], "/src/lib/a.c"),
            (["/src/", "lib", "a.c"], "/src/lib/a.c"),
            (["/src", "/lib/", "/a.c"], "/src/lib/a.c"),
            (["", "lib", "a.c"], "lib/a.c"),
            (["/src", "", "../a.c"], "/src/../a.c"),
            (["C:\\src", "", "a.c"], "C:\\src/a.c"),
        ] {
            let mut path = Vec::new();
            for part in parts {
                append(&mut path, part.as_bytes());
            }
            assert_eq!(String::from_utf8_lossy(&path), joined);
        }
        for (path, absolute) in [
            ("/a.c", true),
            ("C:\\a.c", true),
            ("c:/a.c", true),
            ("\\\\host\\a.c", true),
            ("c:a.c", false),
            ("a/b.c", false),
            ("", false),
        ] {
            assert_eq!(is_absolute(path.as_bytes()), absolute, "{path}");
        }
    }
}
