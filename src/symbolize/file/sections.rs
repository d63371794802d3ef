//! The bytes of sections, decompressed: zlib and zstd of `SHF_COMPRESSED`, zlib of `.zdebug_*`,
//! xz of `.gnu_debugdata`. Owns the limits on what a claimed size may cost.

use super::Bytes;
use super::elf::Elf;
use super::notes::Note;
use std::io::Read;
use std::sync::atomic::{AtomicU64, Ordering};

/// Debug information shrinks to a third or a tenth; who claims more than this for a byte has
/// made it up. A floor lets small sections be as regular as they like.
const MOST_PER_BYTE: u64 = 64;
const FLOOR: u64 = 16 << 20;
/// What all sections of a file may hold, decompressed.
const MOST_OF_A_FILE: u64 = 4 << 30;
/// `.gnu_debugdata` is a symbol table: a few megabytes of the largest libraries.
const MOST_OF_MINI_DEBUGINFO: u64 = 256 << 20;
/// What xz may use for its dictionary, in KiB: `xz -9` takes 64 MiB.
const XZ_MEMORY_KIB: u32 = 80 << 10;

/// Memory that the sections of a file may still take.
#[derive(Debug)]
pub(super) struct Allowance(AtomicU64);

impl Default for Allowance {
    fn default() -> Allowance {
        Allowance(AtomicU64::new(MOST_OF_A_FILE))
    }
}

impl Allowance {
    fn take(&self, size: u64) -> bool {
        let less = |left: u64| left.checked_sub(size);
        let order = Ordering::Relaxed;
        self.0.fetch_update(order, order, less).is_ok()
    }
}

/// The ELF file in `.gnu_debugdata`; `None` where there is none.
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
                format_args!("{packed} compressed bytes hold more than {most}"),
            ))
        }
        Ok(_) => Ok(Bytes::from(data)),
    })
}
