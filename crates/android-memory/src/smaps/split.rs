//! The processes of a text that has several: the sections `SHOW MAP` of a bug report, outputs of
//! showmap or smaps behind each other, with or without the headings of `tail` and `head`.

use std::ops::Range;

/// A process in a text of mappings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProcessText {
    /// Process ID, if a heading has it.
    pub pid: Option<u32>,
    /// Process name, if a heading has it.
    pub name: Option<String>,
    /// Part of the text that has its mappings.
    pub bytes: Range<usize>,
}

/// Maximum number of processes; a device has a few thousand.
const MAX_PROCESSES: usize = 20_000;
/// Maximum number of bytes kept of a name.
const MAX_NAME_LENGTH: usize = 255;

/// Splits a plain text into its processes; parts without mappings are left out. A process begins
/// at a heading, at an address below the last mapping, or after the total of showmap.
pub fn split(text: &[u8]) -> Vec<ProcessText> {
    let mut found: Vec<ProcessText> = Vec::new();
    let mut part = ProcessText::default();
    // Whether the part has mappings, the end of its last mapping, and whether its table is over.
    let (mut has, mut last, mut is_over) = (false, 0, false);
    let mut at = 0;
    while at < text.len() && found.len() < MAX_PROCESSES {
        let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |end| at + end + 1);
        let line = text[at..end].trim_ascii_end();
        let range = addresses(line);
        let heading = heading(line);
        let begins = heading.is_some()
            || range.is_some_and(|(start, _)| start < last)
            || is_over && !line.is_empty();
        if begins {
            let (pid, name) = heading.unwrap_or_default();
            part.bytes.end = at;
            let next = ProcessText {
                pid,
                name,
                bytes: at..at,
            };
            let before = std::mem::replace(&mut part, next);
            found.extend(has.then_some(before));
            (has, last, is_over) = (false, 0, false);
        }
        if let Some((_, end)) = range {
            (has, last) = (true, end);
        } else if line.ends_with(b" object") {
            has = true;
        } else if line.ends_with(b" TOTAL") && line.trim_ascii_start()[0].is_ascii_digit() {
            is_over = true;
        }
        at = end;
    }
    part.bytes.end = text.len();
    found.extend(has.then_some(part));
    found
}

/// Parses the addresses at the start of a mapping of smaps.
fn addresses(line: &[u8]) -> Option<(u64, u64)> {
    line.first().filter(|byte| byte.is_ascii_hexdigit())?;
    let word = std::str::from_utf8(&line[..memchr::memchr(b' ', line)?]).ok()?;
    let (start, end) = word.split_once('-')?;
    let hex = |text| u64::from_str_radix(text, 16).ok();
    Some((hex(start)?, hex(end)?))
}

/// Parses `------ SHOW MAP 7 (init) (…) ------` and `------ SHOW MAP 7: init (…) ------` of a bug
/// report, and `==> /proc/7/smaps <==`.
fn heading(line: &[u8]) -> Option<(Option<u32>, Option<String>)> {
    if !line.starts_with(b"------ ") && !line.starts_with(b"==> ") {
        return None;
    }
    let line = String::from_utf8_lossy(line);
    if let Some(file) = line.strip_prefix("==> ") {
        let pid = file
            .strip_prefix("/proc/")
            .and_then(|file| file.split('/').next());
        return Some((pid.and_then(|pid| pid.parse().ok()), None));
    }
    let title = line.strip_prefix("------ ")?.strip_prefix("SHOW MAP ")?;
    let end = title
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(title.len());
    let (pid, rest) = title.split_at(end);
    let name = match rest.strip_prefix(':') {
        Some(rest) => rest.split(" (").next(),
        None => rest
            .trim_start()
            .strip_prefix('(')
            .and_then(|rest| rest.split(')').next()),
    };
    let name = name.map(|name| name.trim().chars().take(MAX_NAME_LENGTH).collect());
    Some((
        pid.parse().ok(),
        name.filter(|name: &String| !name.is_empty()),
    ))
}
