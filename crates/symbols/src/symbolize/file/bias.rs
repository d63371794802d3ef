//! Link-time addresses from those of an unwinder: the load bias of the code.
//!
//! Old unwinders used a load bias of 0 if the address and the file offset of a segment differ. The
//! correct bias can be derived from a file, but a debug-only copy limits this: it keeps the
//! addresses of its segments, but neither offsets nor sizes.

use super::elf::{Elf, Segment};

/// Smallest page size on Android.
const PAGE: u64 = 4096;

/// Returns the link-time address of a frame's `rel_pc`, in code mapped from `offset` in the file by
/// an unwinder that used this load bias. Nothing is ever subtracted: if the unwinder used a larger
/// bias than the file has, the frame is left unchanged, as in Perfetto.
///
/// The device's file can have its segments at other offsets than this one, as `patchelf` moves them.
/// If the unwinder's bias puts the start of the mapping at that of a segment, it is that of the
/// device's file.
pub(super) fn svma(elf: &Elf, rel_pc: u64, offset: u64, load_bias: u64) -> u64 {
    let start = offset.wrapping_add(load_bias);
    let begins_there = |segment: &Segment| {
        let page = segment.address - segment.address % PAGE;
        start == page || start == first_page(segment, segment.address)
    };
    if elf.executable().any(begins_there) {
        return rel_pc;
    }
    let bias = match elf.keeps_code() {
        true => of_kept(elf, offset),
        false => of_debug_only(elf, offset),
    };
    let missing = bias.unwrap_or(0).saturating_sub(load_bias);
    rel_pc.wrapping_add(missing)
}

/// Returns the bias of a file with code: that of its segment, wherever the memory mapping begins in
/// it. `None` if no code is mapped from there, for example if a recording has no offset.
fn of_kept(elf: &Elf, offset: u64) -> Option<u64> {
    let holds = |segment: &&Segment| {
        let end = segment.offset.saturating_add(segment.file_size);
        segment.file_size > 0 && first_page(segment, segment.offset) <= offset && offset < end
    };
    // If two segments share a page, the later one is mapped from there.
    let begun = |segment: &&Segment| segment.offset - segment.offset % PAGE <= offset;
    let segment = elf
        .executable()
        .filter(holds)
        .filter(begun)
        .max_by_key(|segment| segment.offset)
        .or_else(|| elf.executable().find(holds))?;
    segment.address.checked_sub(segment.offset)
}

/// Returns the bias of a debug-only file, assuming that the memory mapping begins at the segment's
/// first page (Perfetto's formula). `None` if the segments loaded before the code overlap it.
fn of_debug_only(elf: &Elf, offset: u64) -> Option<u64> {
    let segment = elf.code_at(offset)?;
    let before = elf
        .loaded()
        .take_while(|other| *other != segment)
        .filter(|other| !other.writable)
        .fold(0u64, |sum, other| sum.saturating_add(other.memory_size));
    let page = first_page(segment, offset);
    if first_page(segment, before) > page {
        return None;
    }
    first_page(segment, segment.address).checked_sub(page)
}

fn first_page(segment: &Segment, at: u64) -> u64 {
    at - at % segment.align.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbolize::file::facts::Machine;
    use object::elf::PT_LOAD;

    /// Loaded segments: executable, offset, address, size in the file and in memory.
    fn file(segments: &[(bool, u64, u64, u64, u64)], align: u64) -> Elf {
        let segments = segments
            .iter()
            .map(|&(executable, offset, address, file_size, size)| Segment {
                kind: PT_LOAD,
                executable,
                writable: false,
                offset,
                address,
                file_size,
                memory_size: size,
                align,
            });
        Elf {
            machine: Machine::Arm64,
            is_64: true,
            segments: segments.collect(),
            sections: Vec::new(),
        }
    }

    #[test]
    fn a_file_with_its_code_tells_its_bias_wherever_the_mapping_begins() {
        let plain = file(&[(true, 0, 0, 0x9000, 0x9000)], 0x1000);
        // lld: each segment a page further in memory than in the file.
        let lld = file(
            &[
                (false, 0, 0, 0x4690, 0x4690),
                (true, 0x4690, 0x5690, 0x9000, 0x9000),
            ],
            0x1000,
        );
        let based = file(
            &[
                (false, 0, 0x20_0000, 0x68c, 0x68c),
                (true, 0x690, 0x20_1690, 0x1b0, 0x1b0),
            ],
            0x1000,
        );
        let large_pages = file(
            &[
                (false, 0, 0, 0x4690, 0x4690),
                (true, 0x4690, 0x1_4690, 0x9000, 0x9000),
            ],
            0x1_0000,
        );
        let fixed = file(&[(true, 0, 0x40_0000, 0x2898, 0x2898)], 0x1000);
        // Lower addresses than offsets do not occur in practice.
        let wrapping = file(&[(true, 0x8000, 0x1000, 0x1000, 0x1000)], 0x1000);
        for (name, elf, offset, load_bias, missing) in [
            ("plain", &plain, 0, 0, 0),
            ("plain, split by mprotect", &plain, 0x3000, 0, 0),
            ("lld", &lld, 0x4000, 0, 0x1000),
            ("lld, right already", &lld, 0x4000, 0x1000, 0),
            ("lld, too large", &lld, 0x4000, 0x3000, 0),
            ("lld, split by mprotect", &lld, 0x8000, 0, 0x1000),
            ("lld, split, right already", &lld, 0x8000, 0x1000, 0),
            ("lld, no offset", &lld, 0, 0, 0),
            ("lld, behind the code", &lld, 0xe000, 0, 0),
            ("lld, wrapped", &lld, 0u64.wrapping_sub(0x1000), 0, 0),
            ("based", &based, 0, 0, 0x20_1000),
            ("based, half", &based, 0, 0x20_0000, 0x1000),
            ("based, wrapped", &based, u64::MAX - 0xfff, 0, 0),
            ("64 KiB, mapped by 64", &large_pages, 0, 0, 0x1_0000),
            ("64 KiB, mapped by 4", &large_pages, 0x4000, 0, 0x1_0000),
            ("64 KiB, split", &large_pages, 0x8000, 0, 0x1_0000),
            ("wrapping", &wrapping, 0x8000, 0, 0),
            // The device's file has the code two pages further behind, as `patchelf` leaves it.
            (
                "not position-independent, moved",
                &fixed,
                0x2000,
                0x3f_e000,
                0,
            ),
            ("not position-independent", &fixed, 0, 0x40_0000, 0),
            ("lld, moved", &lld, 0x5000, 0, 0),
        ] {
            assert_eq!(
                svma(elf, 0x1234, offset, load_bias),
                0x1234 + missing,
                "{name}"
            );
        }
    }

    #[test]
    fn a_debug_only_file_is_taken_at_its_first_page() {
        // Offsets and sizes in the file as `objcopy --only-keep-debug` leaves them.
        let lld = file(
            &[
                (false, 0, 0, 0x300, 0x4690),
                (true, 0x690, 0x5690, 0, 0x9000),
            ],
            0x1000,
        );
        let based = file(
            &[
                (false, 0, 0x20_0000, 0x200, 0x68c),
                (true, 0x690, 0x20_1690, 0, 0x1b0),
            ],
            0x1000,
        );
        for (name, elf, offset, load_bias, missing) in [
            ("lld", &lld, 0x4000, 0, 0x1000),
            ("lld, right already", &lld, 0x4000, 0x1000, 0),
            ("lld, no offset", &lld, 0, 0, 0),
            ("lld, wrapped", &lld, 0u64.wrapping_sub(0x1000), 0, 0),
            ("based", &based, 0, 0, 0x20_1000),
        ] {
            let found = of_debug_only(elf, offset).unwrap_or(0);
            assert_eq!(found.saturating_sub(load_bias), missing, "{name}");
        }
    }
}
