//! Bytes of sections, decompressed: zlib and zstd of `SHF_COMPRESSED`, zlib of `.zdebug_*`, xz of
//! `.gnu_debugdata`. Limits the memory for sizes claimed by a file.

use super::Bytes;
use super::elf::Elf;
use super::inflate::{Inflater, Method, inflate};
use super::notes::Note;
use std::io::Read;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum compression ratio. Debug information compresses to a third or a tenth, so larger claims
/// are false. The floor allows any ratio for small sections.
const MAX_PER_BYTE: u64 = 64;
const FLOOR: u64 = 16 << 20;
/// Maximum decompressed size of all sections of a file.
const MAX_OF_A_FILE: u64 = 4 << 30;
/// Maximum decompressed size of `.gnu_debugdata`, a symbol table: a few megabytes in the largest
/// libraries.
const MAX_OF_MINI_DEBUGINFO: u64 = 256 << 20;
/// Maximum memory of the xz dictionary, in KiB: `xz -9` needs 64 MiB.
const XZ_MEMORY_KIB: u32 = 80 << 10;

/// Maximum length of a name or path, in bytes, far above those of toolchains. A damaged file can
/// contain one as long as the file, with a reference from every address.
pub(super) const MAX_TEXT_LENGTH: usize = 64 << 10;

/// Returns the text at the start of `bytes`, up to its zero byte; `None` if that is missing.
pub(super) fn text(bytes: &[u8]) -> Option<&[u8]> {
    let bytes = &bytes[..bytes.len().min(MAX_TEXT_LENGTH + 1)];
    let end = memchr::memchr(0, bytes)?;
    Some(&bytes[..end])
}

/// Remaining memory for the sections of a file.
#[derive(Debug)]
pub(super) struct Allowance(AtomicU64);

impl Default for Allowance {
    fn default() -> Allowance {
        Allowance(AtomicU64::new(MAX_OF_A_FILE))
    }
}

/// Part of the allowance, returned when its sections are dropped.
#[derive(Debug)]
pub(super) struct Loan<'run> {
    from: &'run Allowance,
    taken: AtomicU64,
}

impl Allowance {
    /// Starts a loan for sections that are dropped together.
    pub fn loan(&self) -> Loan<'_> {
        let taken = AtomicU64::new(0);
        Loan { from: self, taken }
    }

    fn take(&self, size: u64) -> bool {
        let less = |left: u64| left.checked_sub(size);
        let order = Ordering::Relaxed;
        self.0.fetch_update(order, order, less).is_ok()
    }
}

impl Loan<'_> {
    fn take(&self, size: u64) -> bool {
        let taken = self.from.take(size);
        if taken {
            self.taken.fetch_add(size, Ordering::Relaxed);
        }
        taken
    }
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        let taken = *self.taken.get_mut();
        self.from.0.fetch_add(taken, Ordering::Relaxed);
    }
}

/// Decompresses the ELF file in `.gnu_debugdata`; `None` if there is none.
pub(super) fn read_mini_debuginfo(
    bytes: &Bytes,
    elf: &Elf,
    allowance: &Allowance,
) -> Option<Result<Bytes, Note>> {
    const NAME: &str = ".gnu_debugdata";
    let section = elf.section(bytes, NAME)?;
    let packed = bytes.get(section.file.clone())?;
    let most = (packed.len() as u64 * MAX_PER_BYTE).clamp(FLOOR, MAX_OF_MINI_DEBUGINFO);
    let mut data = Vec::new();
    let reader = lzma_rust2::XzReader::new_mem_limit(packed, false, XZ_MEMORY_KIB);
    let read = reader.take(most).read_to_end(&mut data);
    Some(match read {
        Err(error) => Err(Note::damaged(NAME, error)),
        Ok(_) if data.len() as u64 == most || !allowance.take(data.len() as u64) => {
            let packed = packed.len();
            Err(Note::damaged(
                NAME,
                format_args!("{packed} compressed bytes expand to more than {most}"),
            ))
        }
        Ok(_) => Ok(Bytes::from(data)),
    })
}

/// Section of debug information, as it is in the file.
pub(super) struct DebugSection {
    /// Its name in the file.
    pub name: String,
    whole: Bytes,
    packed: Option<Result<Packed, &'static str>>,
}

/// Compressed part of a section.
#[derive(Clone)]
struct Packed {
    method: Method,
    /// Claimed size of the decompressed bytes.
    size: u64,
    /// Its bytes in the section.
    data: Range<usize>,
}

impl DebugSection {
    /// Finds `.debug_info`, or the old `.zdebug_info`, if `name` is `debug_info`.
    pub fn find(bytes: &Bytes, elf: &Elf, name: &str) -> Option<DebugSection> {
        let plain = format!(".{name}");
        if let Some(section) = elf.section(bytes, &plain) {
            let whole = bytes.slice(section.file.clone())?;
            let packed = section.is_compressed();
            return Some(DebugSection {
                name: plain,
                packed: packed.then(|| compression_header(&whole, elf.is_64)),
                whole,
            });
        }
        let old = format!(".z{name}");
        let section = elf.section(bytes, &old)?;
        let whole = bytes.slice(section.file.clone())?;
        Some(DebugSection {
            name: old,
            packed: Some(old_header(&whole)),
            whole,
        })
    }

    /// Returns the bytes, decompressed.
    pub fn read(self, loan: &Loan<'_>) -> Result<Bytes, Note> {
        let Some(packed) = self.packed else {
            return Ok(self.whole);
        };
        let read = packed.and_then(|packed| {
            let data = &self.whole[packed.data.clone()];
            inflate(packed.method, data, packed.claim(loan)?)
        });
        let read = read.map(Bytes::from);
        read.map_err(|why| Note::damaged(&self.name, why))
    }

    /// Returns the claimed size of the decompressed bytes; `None` if they are not compressed.
    pub fn unpacked_size(&self) -> Option<u64> {
        Some(self.packed.as_ref()?.as_ref().ok()?.size)
    }

    /// Starts to decompress the bytes in pieces. `None` if they are not compressed, or damaged.
    pub fn unpack(self, loan: &Loan<'_>) -> Option<Inflater> {
        let packed = self.packed?.ok()?;
        let size = packed.claim(loan).ok()?;
        Inflater::new(packed.method, self.whole.slice(packed.data)?, size)
    }
}

impl Packed {
    /// Takes the memory for the decompressed bytes from the loan, and returns their size.
    fn claim(&self, loan: &Loan<'_>) -> Result<usize, &'static str> {
        let most = (self.data.len() as u64).saturating_mul(MAX_PER_BYTE);
        if self.size > most.max(FLOOR) || !loan.take(self.size) {
            return Err("claimed size is too large for its bytes");
        }
        Ok(usize::try_from(self.size).unwrap_or(usize::MAX))
    }
}

/// Returns the bytes of a section of debug information; `None` if there is none.
pub(super) fn read_debug(
    bytes: &Bytes,
    elf: &Elf,
    name: &str,
    loan: &Loan<'_>,
) -> Option<Result<Bytes, Note>> {
    Some(DebugSection::find(bytes, elf, name)?.read(loan))
}

/// Reads `Elf32_Chdr` or `Elf64_Chdr`.
fn compression_header(section: &[u8], is_64: bool) -> Result<Packed, &'static str> {
    const CUT: &str = "truncated compression header";
    let (word, double) = (
        |at: usize| Some(u32::from_le_bytes(*section.get(at..)?.first_chunk()?)),
        |at: usize| Some(u64::from_le_bytes(*section.get(at..)?.first_chunk()?)),
    );
    let (size, header) = match is_64 {
        true => (double(8), 24),
        false => (word(4).map(u64::from), 12),
    };
    if section.len() < header {
        return Err(CUT);
    }
    Ok(Packed {
        method: Method::from_number(word(0).ok_or(CUT)?),
        size: size.ok_or(CUT)?,
        data: header..section.len(),
    })
}

/// Reads the header of `.zdebug_*`: "ZLIB", followed by the size in 8 bytes, big-endian.
fn old_header(section: &[u8]) -> Result<Packed, &'static str> {
    let rest = section.strip_prefix(b"ZLIB");
    let size = rest.and_then(|rest| rest.first_chunk());
    Ok(Packed {
        method: Method::Zlib,
        size: u64::from_be_bytes(*size.ok_or("missing ZLIB header")?),
        data: 12..section.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loan_is_given_back_when_its_sections_are_dropped() {
        let allowance = Allowance::default();
        for _ in 0..1000 {
            let loan = allowance.loan();
            assert!(loan.take(MAX_OF_A_FILE / 2));
            assert!(!loan.take(MAX_OF_A_FILE));
        }
        assert!(allowance.take(MAX_OF_A_FILE));
        assert!(!allowance.loan().take(1));
    }
}
