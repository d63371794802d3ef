//! Line-by-line parsing of `/proc/PID/smaps` and `smaps_rollup` from any kernel. Unknown fields are
//! summed by name. Lines in another form are counted, and a few of them are kept. Memory use
//! follows the number of mappings, which is limited, not the length of lines.

use super::mapping::{Form, Mapping, Smaps};
use heaptap_base::untrusted::sanitize_bytes;
use heaptap_model::smaps::{Field, Sums};

/// Maximum number of mappings. The kernel's default limit is 65,530 per process.
pub(super) const MAX_MAPPINGS: usize = 1 << 18;
/// Maximum number of bytes kept of a line.
const MAX_LINE_LENGTH: usize = 16 << 10;
/// Maximum number of bytes kept of a mapping name; paths have at most 4,096 bytes.
const MAX_NAME_LENGTH: usize = 8 << 10;
/// Maximum number of lines kept that are not smaps lines.
pub(super) const STRANGE_KEPT: usize = 8;
/// Maximum number of unknown figures kept; a kernel has about ten.
const OTHERS_KEPT: usize = 64;

/// Error when a text is not smaps.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SmapsError {
    /// The text does not contain a memory mapping.
    #[error(
        "no memory mapping found: {}",
        match first_line.as_str() { "" => "the text is empty", line => line }
    )]
    NotSmaps {
        /// Start of the text, sanitized.
        first_line: String,
    },
    /// There are more mappings than any process has.
    #[error("more than {MAX_MAPPINGS} memory mappings")]
    TooMany,
}

/// An incremental parser of smaps, fed in pieces of any length.
#[derive(Debug, Default)]
pub struct Reader {
    smaps: Smaps,
    /// Start of a line whose end has not arrived.
    line: Vec<u8>,
    /// Mapping that is being read.
    mapping: Option<Mapping>,
    /// Last figure of the mapping that is being read, and of the first mapping.
    last_key: String,
    first_ends: Option<String>,
}

impl Reader {
    /// Parses the next piece.
    ///
    /// # Errors
    /// Returns an error if there are more mappings than any process has.
    pub fn feed(&mut self, mut piece: &[u8]) -> Result<(), SmapsError> {
        while let Some(end) = memchr::memchr(b'\n', piece) {
            let (line, rest) = piece.split_at(end);
            piece = &rest[1..];
            if self.line.is_empty() {
                self.line(line)?;
            } else {
                self.keep(line);
                let whole = std::mem::take(&mut self.line);
                self.line(&whole)?;
            }
        }
        self.keep(piece);
        Ok(())
    }

    /// Parses the rest and returns the result.
    ///
    /// # Errors
    /// Returns an error if there was no memory mapping.
    pub fn finish(mut self) -> Result<Smaps, SmapsError> {
        let last = std::mem::take(&mut self.line);
        self.smaps.cut = !is_whole(&last);
        self.line(&last)?;
        let ends = std::mem::take(&mut self.last_key);
        self.close()?;
        if self.smaps.mappings.is_empty() {
            let first_line = self.smaps.strange.first().cloned().unwrap_or_default();
            return Err(SmapsError::NotSmaps { first_line });
        }
        // A last mapping without figures, if others have some, was cut off after its first line.
        let has_figures = |mapping: &Mapping| mapping.sums != Sums::default();
        let mappings = &self.smaps.mappings;
        self.smaps.cut |= mappings.len() > 1
            && mappings.first().is_some_and(has_figures)
            && !mappings.last().is_some_and(has_figures);
        // A kernel prints the same figures for each mapping, in the same order.
        self.smaps.cut |= mappings.len() > 1 && self.first_ends.is_some_and(|first| first != ends);
        Ok(self.smaps)
    }

    fn keep(&mut self, piece: &[u8]) {
        let room = MAX_LINE_LENGTH.saturating_sub(self.line.len());
        self.line.extend_from_slice(&piece[..piece.len().min(room)]);
    }

    fn close(&mut self) -> Result<(), SmapsError> {
        if let Some(mapping) = self.mapping.take() {
            if self.smaps.mappings.len() >= MAX_MAPPINGS {
                return Err(SmapsError::TooMany);
            }
            self.smaps.mappings.push(mapping);
            let ends = std::mem::take(&mut self.last_key);
            self.first_ends.get_or_insert(ends);
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8]) -> Result<(), SmapsError> {
        let line = &line[..line.len().min(MAX_LINE_LENGTH)];
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        let text = String::from_utf8_lossy(line);
        if let Some(mapping) = heading(&text) {
            self.close()?;
            if mapping.name == "[rollup]" {
                self.smaps.form = Form::Rollup;
            }
            self.mapping = Some(mapping);
        } else if !self.figure(&text) {
            self.smaps.strange_count += 1;
            if self.smaps.strange.len() < STRANGE_KEPT {
                self.smaps.strange.push(sanitize_bytes(line));
            }
        }
        Ok(())
    }

    /// Parses a line below a mapping's first line. Returns whether it is a figure.
    fn figure(&mut self, line: &str) -> bool {
        let Some(mapping) = &mut self.mapping else {
            return false;
        };
        let Some((key, value)) = line.split_once(':') else {
            return false;
        };
        let is_key = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if key.is_empty() || !key.chars().all(is_key) {
            return false;
        }
        let value = value.trim();
        if self.last_key != key {
            self.last_key.clear();
            // Kernel keys are short.
            self.last_key.extend(key.chars().take(64));
        }
        match key {
            "VmFlags" => return true,
            // Kernels of Android 5 to 8 print the name of anonymous memory on a separate line.
            "Name" => {
                if mapping.name.is_empty() {
                    set_name(mapping, value);
                }
                return true;
            }
            _ => {}
        }
        let (number, unit) = match value.split_once(' ') {
            Some((number, unit)) => (number, unit.trim()),
            None => (value, ""),
        };
        let Ok(number) = number.parse::<u64>() else {
            return false;
        };
        let bytes = match unit {
            "kB" => number.saturating_mul(1024),
            // `THPeligible: 0`, `ProtectionKey: 0`: not sizes.
            "" => return true,
            _ => return false,
        };
        match Field::of_kernel(key) {
            Some(field) => mapping.sums.set(field, bytes),
            // The same for every mapping, so a sum has no meaning.
            None if matches!(key, "KernelPageSize" | "MMUPageSize") => {}
            None => {
                let others = &mut self.smaps.others;
                if others.contains_key(key) || others.len() < OTHERS_KEPT {
                    let sum = others.entry(key.to_owned()).or_default();
                    *sum = sum.saturating_add(bytes);
                }
            }
        }
        true
    }
}

/// Returns whether a last line without its line end can be whole: a size, or the last figure of a
/// kernel.
fn is_whole(last: &[u8]) -> bool {
    let others: [&[u8]; 3] = [b"VmFlags:", b"THPeligible:", b"ProtectionKey:"];
    last.is_empty() || last.ends_with(b" kB") || others.iter().any(|key| last.starts_with(key))
}

/// `7b6c2e3000-7b6c37f000 r-xp 00051000 fe:2d 51       /apex/…/libc.so`
fn heading(line: &str) -> Option<Mapping> {
    let (addresses, rest) = line.split_once(' ')?;
    let (start, end) = addresses.split_once('-')?;
    let hex = |text: &str| match text.len() {
        1..=16 => u64::from_str_radix(text, 16).ok(),
        _ => None,
    };
    let (start, end) = (hex(start)?, hex(end)?);
    let (permissions, rest) = rest.trim_start().split_once(' ')?;
    if permissions.len() != 4 || !permissions.bytes().all(|b| b"rwxsp-".contains(&b)) {
        return None;
    }
    let (offset, rest) = rest.trim_start().split_once(' ')?;
    let offset = hex(offset)?;
    let (device, rest) = rest.trim_start().split_once(' ')?;
    let (major, minor) = device.split_once(':')?;
    hex(major)?;
    hex(minor)?;
    let rest = rest.trim_start();
    let inode = rest.find(' ').unwrap_or(rest.len());
    let (inode, name) = rest.split_at(inode);
    inode.parse::<u64>().ok()?;
    let mut mapping = Mapping {
        start,
        end: end.max(start),
        permissions: permissions.to_owned(),
        offset,
        count: 1,
        ..Mapping::default()
    };
    set_name(&mut mapping, name.trim_start());
    Some(mapping)
}

/// Sets the name without the kernel's suffix for a deleted file.
pub(super) fn set_name(mapping: &mut Mapping, name: &str) {
    let name = name.strip_suffix(" (deleted)").unwrap_or(name);
    let mut end = name.len().min(MAX_NAME_LENGTH);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    mapping.name = name[..end].to_owned();
}
