//! Bytes of sections, decompressed: zlib and zstd of `SHF_COMPRESSED`, zlib of `.zdebug_*`, xz of
//! `.gnu_debugdata`. Limits the memory for sizes claimed by a file.

use super::Bytes;
use super::elf::Elf;
use super::notes::Note;
use std::io::Read;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum compression ratio. Debug information compresses to a third or a tenth, so larger claims
/// are false. The floor allows any ratio for small sections.
const MOST_PER_BYTE: u64 = 64;
const FLOOR: u64 = 16 << 20;
/// Maximum decompressed size of all sections of a file.
const MOST_OF_A_FILE: u64 = 4 << 30;
/// Maximum decompressed size of `.gnu_debugdata`, a symbol table: a few megabytes in the largest
/// libraries.
const MOST_OF_MINI_DEBUGINFO: u64 = 256 << 20;
/// Maximum memory of the xz dictionary, in KiB: `xz -9` needs 64 MiB.
const XZ_MEMORY_KIB: u32 = 80 << 10;

/// Maximum length of a name or path, in bytes, far above those of toolchains. A damaged file can
/// contain one as long as the file, with a reference from every address.
pub(super) const LONGEST_TEXT: usize = 64 << 10;

/// Returns the text at the start of `bytes`, up to its zero byte; `None` if that is missing.
pub(super) fn text(bytes: &[u8]) -> Option<&[u8]> {
    let bytes = &bytes[..bytes.len().min(LONGEST_TEXT + 1)];
    let end = memchr::memchr(0, bytes)?;
    Some(&bytes[..end])
}

/// Remaining memory for the sections of a file.
#[derive(Debug)]
pub(super) struct Allowance(AtomicU64);

impl Default for Allowance {
    fn default() -> Allowance {
        Allowance(AtomicU64::new(MOST_OF_A_FILE))
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
    let most = (packed.len() as u64 * MOST_PER_BYTE).clamp(FLOOR, MOST_OF_MINI_DEBUGINFO);
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

/// Returns the bytes of a section of debug information: `.debug_info`, or the old `.zdebug_info`,
/// if `name` is `debug_info`. `None` if there is none.
pub(super) fn read_debug(
    bytes: &Bytes,
    elf: &Elf,
    name: &str,
    loan: &Loan<'_>,
) -> Option<Result<Bytes, Note>> {
    let plain = format!(".{name}");
    if let Some(section) = elf.section(bytes, &plain) {
        let whole = bytes.slice(section.file.clone())?;
        if !section.is_compressed() {
            return Some(Ok(whole));
        }
        let read = compression_header(&whole, elf.is_64)
            .ok_or("truncated compression header")
            .and_then(|packed| inflate(packed, loan));
        return Some(read.map_err(|why| Note::damaged(&plain, why)));
    }
    let old = format!(".z{name}");
    let section = elf.section(bytes, &old)?;
    let whole = bytes.get(section.file.clone())?;
    // "ZLIB", followed by the size in 8 bytes, big-endian.
    let packed = whole.strip_prefix(b"ZLIB").and_then(|rest| {
        let (size, data) = rest.split_first_chunk()?;
        Some(Packed {
            method: COMPRESS_ZLIB,
            size: u64::from_be_bytes(*size),
            data,
        })
    });
    let read = packed
        .ok_or("missing ZLIB header")
        .and_then(|packed| inflate(packed, loan));
    Some(read.map_err(|why| Note::damaged(&old, why)))
}

const COMPRESS_ZLIB: u32 = 1;
const COMPRESS_ZSTD: u32 = 2;

struct Packed<'a> {
    method: u32,
    size: u64,
    data: &'a [u8],
}

/// Reads `Elf32_Chdr` or `Elf64_Chdr`.
fn compression_header(section: &[u8], is_64: bool) -> Option<Packed<'_>> {
    let word = |at: usize| Some(u32::from_le_bytes(*section.get(at..)?.first_chunk()?));
    let method = word(0)?;
    Some(if is_64 {
        Packed {
            method,
            size: u64::from_le_bytes(*section.get(8..)?.first_chunk()?),
            data: section.get(24..)?,
        }
    } else {
        Packed {
            method,
            size: word(4)?.into(),
            data: section.get(12..)?,
        }
    })
}

fn inflate(packed: Packed<'_>, loan: &Loan<'_>) -> Result<Bytes, &'static str> {
    let most = (packed.data.len() as u64).saturating_mul(MOST_PER_BYTE);
    let size = usize::try_from(packed.size).unwrap_or(usize::MAX);
    if packed.size > most.max(FLOOR) || !loan.take(packed.size) {
        return Err("claimed size is too large for its bytes");
    }
    let mut plain = vec![0; size];
    let length = match packed.method {
        COMPRESS_ZLIB => libdeflater::Decompressor::new()
            .zlib_decompress(packed.data, &mut plain)
            .map_err(|_| "cannot decompress it (zlib)")?,
        COMPRESS_ZSTD => zstd::bulk::decompress_to_buffer(packed.data, &mut plain)
            .map_err(|_| "cannot decompress it (zstd)")?,
        _ => return Err("unknown compression method"),
    };
    if length != size {
        return Err("smaller than claimed");
    }
    Ok(Bytes::from(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loan_is_given_back_when_its_sections_are_dropped() {
        let allowance = Allowance::default();
        for _ in 0..1000 {
            let loan = allowance.loan();
            assert!(loan.take(MOST_OF_A_FILE / 2));
            assert!(!loan.take(MOST_OF_A_FILE));
        }
        assert!(allowance.take(MOST_OF_A_FILE));
        assert!(!allowance.loan().take(1));
    }
}
