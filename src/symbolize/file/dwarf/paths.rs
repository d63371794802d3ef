//! Paths of source files as the compiler saw them: the folder it ran in, the folder of the
//! file, the file's name. Nothing is normalised: `..` may lead through links.

use super::{Sections, Slice, Unit};
use gimli::AttributeValue;
use std::collections::HashMap;

/// Paths, each once.
#[derive(Debug, Default)]
pub(super) struct Paths {
    pub list: Vec<Box<str>>,
    numbers: HashMap<Box<str>, u32>,
}

impl Paths {
    pub fn intern(&mut self, path: &str) -> u32 {
        if let Some(number) = self.numbers.get(path) {
            return *number;
        }
        let number = self.list.len() as u32;
        self.list.push(path.into());
        self.numbers.insert(path.into(), number);
        number
    }
}

/// The table of files of one unit.
pub(super) struct Files<'u, 'a> {
    sections: &'u Sections<'a>,
    unit: &'u Unit<'a>,
    known: HashMap<u64, Option<u32>>,
    path: String,
}

impl<'u, 'a> Files<'u, 'a> {
    /// Of the unit with the line program.
    pub fn new(sections: &'u Sections<'a>, unit: &'u Unit<'a>) -> Self {
        Files {
            sections,
            unit,
            known: HashMap::new(),
            path: String::new(),
        }
    }

    /// The path of the file of this number in the unit's table.
    pub fn path(&mut self, file: u64, paths: &mut Paths) -> Option<u32> {
        if let Some(known) = self.known.get(&file) {
            return *known;
        }
        self.path.clear();
        let number = self.build(file).map(|()| paths.intern(&self.path));
        self.known.insert(file, number);
        number
    }

    fn build(&mut self, file: u64) -> Option<()> {
        let header = self.unit.line_program.as_ref()?.header();
        let five = header.version() >= 5;
        // Before DWARF 5 files count from 1.
        if !five && file == 0 {
            return None;
        }
        let entry = header.file(file)?;
        let name = self.text(entry.path_name())?;
        if is_absolute(name.slice()) {
            return self.push(name.slice());
        }
        let folder = match entry.directory_index() {
            0 if !five => None,
            folder => header
                .directory(folder)
                .and_then(|folder| self.text(folder)),
        };
        let folder = folder.map_or(&[][..], |folder| folder.slice());
        // In DWARF 5 folder 0 is the folder that the compiler ran in.
        let is_comp_dir = five && entry.directory_index() == 0;
        if !is_comp_dir && !is_absolute(folder) {
            let comp_dir = self.unit.comp_dir.map_or(&[][..], |dir| dir.slice());
            self.push(comp_dir);
        }
        self.push(folder);
        self.push(name.slice())
    }

    fn text(&self, value: AttributeValue<Slice<'a>>) -> Option<Slice<'a>> {
        self.sections.attr_string(self.unit, value).ok()
    }

    fn push(&mut self, part: &[u8]) -> Option<()> {
        if part.is_empty() {
            return Some(());
        }
        if !self.path.is_empty() && !self.path.ends_with(['/', '\\']) {
            let windows = self.path.as_bytes().get(1) == Some(&b':') && self.path.contains('\\');
            self.path.push(if windows { '\\' } else { '/' });
        }
        self.path.push_str(&String::from_utf8_lossy(part));
        Some(())
    }
}

/// On Linux or on Windows: the compiler may have run on either.
fn is_absolute(path: &[u8]) -> bool {
    matches!(path, [b'/' | b'\\', ..])
        || matches!(path, [drive, b':', b'/' | b'\\', ..] if drive.is_ascii_alphabetic())
}
