//! Bug reports of `adb bugreport`: sections of many programs in one text, which is in a ZIP with
//! other files since Android 7. Other sections quote the same texts, of earlier boots and of
//! crashes, so only the section of a program is read. Reports have hundreds of megabytes: a section
//! is streamed.
//!
//! ```text
//! == dumpstate: 2026-09-10 10:00:00
//! ------ SYSTEM LOG (logcat -v threadtime …) ------
//! ------ 0.4s was the duration of 'SYSTEM LOG' ------
//! ------ SHOW MAP 1001 (com.example.app) (su root showmap -q 1001) ------
//! -------------------------------------------------------------------------------
//! DUMP OF SERVICE HIGH meminfo:
//! --------- 0.412s was the duration of dumpsys meminfo, ending at: 2026-09-10 10:00:04
//! ```

use std::io::{self, BufRead, BufReader, Cursor, Read};

/// Bytes at the start of a report that contain its head.
const HEAD: usize = 4 << 10;
/// Prefix of the line with the creation time of the report.
const MADE: &str = "== dumpstate: ";
/// Maximum number of bytes of a line that are read at once.
const MAX_PIECE_LENGTH: u64 = 64 << 10;

/// A section that a command reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// The device's log.
    Log,
    /// Output of `dumpsys meminfo`.
    Meminfo,
    /// Outputs of showmap, with their headings.
    Mappings,
}

impl Section {
    /// Returns the title in a report.
    pub fn title(self) -> &'static str {
        match self {
            Section::Log => "SYSTEM LOG",
            Section::Meminfo => "DUMP OF SERVICE meminfo",
            Section::Mappings => "SHOW MAP",
        }
    }
}

/// Returns the year in which a report was made, if `head` is the start of one and has it; the outer
/// `None` means that it is not a report.
pub fn year(head: &[u8]) -> Option<Option<i32>> {
    let head = String::from_utf8_lossy(&head[..head.len().min(HEAD)]);
    let made = head.lines().find_map(|line| line.strip_prefix(MADE))?;
    Some(made.split('-').next().and_then(|year| year.parse().ok()))
}

/// Finder of the sections in the lines of a report.
#[derive(Debug, Clone, Default)]
pub struct Sections {
    current: Option<Section>,
}

impl Sections {
    /// Returns the section to which the next line belongs.
    pub fn line(&mut self, line: &[u8]) -> Option<Section> {
        if let Some(title) = line.strip_prefix(b"------ ") {
            // `------ 1.234s was the duration of 'SYSTEM LOG' ------` ends a section.
            let titles: [(&[u8], Section); 4] = [
                (b"SYSTEM LOG", Section::Log),
                (b"MAIN LOG", Section::Log),
                (b"DUMPSYS MEMINFO", Section::Meminfo),
                (b"SHOW MAP ", Section::Mappings),
            ];
            let found = titles.iter().find(|(begin, _)| title.starts_with(begin));
            self.current = found.map(|(_, section)| *section);
            // The title of mappings has the process.
            return self.current.filter(|found| *found == Section::Mappings);
        }
        if let Some(service) = line.strip_prefix(b"DUMP OF SERVICE ") {
            // `HIGH meminfo:`.
            let name = service.trim_ascii_end().rsplit(|byte| *byte == b' ').next();
            self.current = (name == Some(b"meminfo:")).then_some(Section::Meminfo);
            return None;
        }
        if self.current == Some(Section::Meminfo) && line.starts_with(b"--------") {
            self.current = None;
        }
        self.current
    }
}

/// A reader of the lines of one section.
pub(super) struct SectionReader<R> {
    inner: BufReader<R>,
    sections: Sections,
    wanted: Section,
    /// Whether the current line is wanted, and whether its end was read.
    is_wanted: bool,
    is_ended: bool,
    line: Cursor<Vec<u8>>,
}

impl<R: Read> SectionReader<R> {
    pub(super) fn new(inner: R, wanted: Section) -> Self {
        SectionReader {
            inner: BufReader::new(inner),
            sections: Sections::default(),
            wanted,
            is_wanted: false,
            is_ended: true,
            line: Cursor::default(),
        }
    }
}

impl<R: Read> Read for SectionReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.line.read(out)?;
            if count > 0 || out.is_empty() {
                return Ok(count);
            }
            self.line.set_position(0);
            let line = self.line.get_mut();
            line.clear();
            let mut piece = (&mut self.inner).take(MAX_PIECE_LENGTH);
            if piece.read_until(b'\n', line)? == 0 {
                return Ok(0);
            }
            // A long line comes in pieces, of which the first decides.
            if self.is_ended {
                self.is_wanted = self.sections.line(line) == Some(self.wanted);
            }
            self.is_ended = line.ends_with(b"\n");
            if !self.is_wanted {
                line.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "========================================================\n\
        == dumpstate: 2025-12-31 23:59:58\n\
        ========================================================\n\
        ------ SYSTEM LOG (logcat -v threadtime -v printable -v uid -d *:v) ------\n\
        --------- beginning of main\nline of the log\n\
        ------ 0.4s was the duration of 'SYSTEM LOG' ------\n\
        ------ LAST LOGCAT (logcat -L) ------\nline of another boot\n\
        ------ SHOW MAP 1 (init) (/system/xbin/su root showmap -q 1) ------\n\
        -------- -------- ----\n4 TOTAL\n\
        ------ SHOW MAP 2: b (showmap -q 2) ------\n8 TOTAL\n\
        ------ DUMPSYS HIGH (/system/bin/dumpsys) ------\n\
        -------------------------------------------------------------------------------\n\
        DUMP OF SERVICE HIGH meminfo:\nApplications Memory Usage\n                ------\n\
        --------- 0.412s was the duration of dumpsys meminfo, ending at: 2025-12-31 23:59:58\n\
        -------------------------------------------------------------------------------\n\
        DUMP OF SERVICE HIGH activity:\nACTIVITY MANAGER SETTINGS\n";

    fn section(text: &str, wanted: Section) -> String {
        let mut all = String::new();
        let mut reader = SectionReader::new(text.as_bytes(), wanted);
        reader.read_to_string(&mut all).unwrap();
        all
    }

    #[test]
    fn each_section_is_read_alone() {
        assert_eq!(year(REPORT.as_bytes()), Some(Some(2025)));
        assert_eq!(year(b"== dumpstate: x\n"), Some(None));
        assert_eq!(year(b"01-02 03:04:05.000  1  1 I x: y\n"), None);
        for (wanted, text) in [
            (
                Section::Log,
                "--------- beginning of main\nline of the log\n",
            ),
            (
                Section::Meminfo,
                "Applications Memory Usage\n                ------\n",
            ),
            (
                Section::Mappings,
                "------ SHOW MAP 1 (init) (/system/xbin/su root showmap -q 1) ------\n\
                 -------- -------- ----\n4 TOTAL\n\
                 ------ SHOW MAP 2: b (showmap -q 2) ------\n8 TOTAL\n",
            ),
        ] {
            assert_eq!(section(REPORT, wanted), text);
        }
    }

    #[test]
    fn a_line_without_end_belongs_to_its_section_in_pieces() {
        let long = "x".repeat(3 * MAX_PIECE_LENGTH as usize);
        let text =
            format!("{long}------ SYSTEM LOG\n------ SYSTEM LOG ()\n{long}\n------ x\n{long}");
        assert_eq!(section(&text, Section::Log), format!("{long}\n"));
    }
}
