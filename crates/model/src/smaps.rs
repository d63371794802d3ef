//! Memory mappings of a process: the kernel's figures for each, and the rows of a trace with their
//! additional facts. The readers own texts and wire formats.

use std::ops::AddAssign;
use std::sync::Arc;

/// A figure of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Field {
    /// Size of the address range.
    Size,
    /// Resident memory.
    Rss,
    /// Resident memory; shared pages count proportionally.
    Pss,
    /// Dirty part of `Pss` (Linux 6.0).
    PssDirty,
    /// Clean pages that other processes have mapped, too.
    SharedClean,
    /// Dirty pages that other processes have mapped, too.
    SharedDirty,
    /// Clean pages of this process alone.
    PrivateClean,
    /// Dirty pages of this process alone: its cost.
    PrivateDirty,
    /// In swap or ZRAM, before compression.
    Swap,
    /// `Swap`, with shared pages counted proportionally (Linux 4.3).
    SwapPss,
    /// Resident memory without a file.
    Anonymous,
    /// Locked in memory.
    Locked,
}

impl Field {
    /// All fields, in display order.
    pub const ALL: [Field; 12] = [
        Field::Size,
        Field::Rss,
        Field::Pss,
        Field::PssDirty,
        Field::SharedClean,
        Field::SharedDirty,
        Field::PrivateClean,
        Field::PrivateDirty,
        Field::Swap,
        Field::SwapPss,
        Field::Anonymous,
        Field::Locked,
    ];

    /// Returns the name in JSON and CSV.
    pub fn name(self) -> &'static str {
        match self {
            Field::Size => "size",
            Field::Rss => "rss",
            Field::Pss => "pss",
            Field::PssDirty => "pss_dirty",
            Field::SharedClean => "shared_clean",
            Field::SharedDirty => "shared_dirty",
            Field::PrivateClean => "private_clean",
            Field::PrivateDirty => "private_dirty",
            Field::Swap => "swap",
            Field::SwapPss => "swap_pss",
            Field::Anonymous => "anonymous",
            Field::Locked => "locked",
        }
    }

    /// Returns the field of a key in the kernel's file.
    pub fn of_kernel(key: &str) -> Option<Field> {
        Some(match key {
            "Size" => Field::Size,
            "Rss" => Field::Rss,
            "Pss" => Field::Pss,
            "Pss_Dirty" => Field::PssDirty,
            "Shared_Clean" => Field::SharedClean,
            "Shared_Dirty" => Field::SharedDirty,
            "Private_Clean" => Field::PrivateClean,
            "Private_Dirty" => Field::PrivateDirty,
            "Swap" => Field::Swap,
            "SwapPss" => Field::SwapPss,
            "Anonymous" => Field::Anonymous,
            "Locked" => Field::Locked,
            _ => return None,
        })
    }
}

const RSS_PARTS: [Field; 4] = [
    Field::SharedClean,
    Field::SharedDirty,
    Field::PrivateClean,
    Field::PrivateDirty,
];

/// Figures of one or several mappings in bytes. Unknown figures are absent, not 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sums {
    bytes: [u64; Field::ALL.len()],
    known: u16,
}

impl Sums {
    /// Returns a figure; `None` if no source has it. RSS is also the sum of its four parts: the
    /// kernel counts each resident page as private or shared, clean or dirty.
    pub fn get(&self, field: Field) -> Option<u64> {
        let at = field as usize;
        match self.known >> at & 1 == 1 {
            true => Some(self.bytes[at]),
            false if field == Field::Rss => RSS_PARTS
                .iter()
                .try_fold(0u64, |sum, part| Some(sum.saturating_add(self.get(*part)?))),
            false => None,
        }
    }

    /// Returns a figure; 0 if no source has it.
    pub fn of(&self, field: Field) -> u64 {
        self.get(field).unwrap_or(0)
    }

    /// Sets a figure.
    pub fn set(&mut self, field: Field, bytes: u64) {
        self.bytes[field as usize] = bytes;
        self.known |= 1 << field as usize;
    }

    /// Returns the private pages, dirty and clean: the memory that is freed when the process ends.
    pub fn private(&self) -> u64 {
        self.of(Field::PrivateDirty)
            .saturating_add(self.of(Field::PrivateClean))
    }

    /// Returns the swapped memory, counted proportionally if the kernel has that figure.
    pub fn swapped(&self) -> u64 {
        self.get(Field::SwapPss).unwrap_or(self.of(Field::Swap))
    }

    /// Returns the private dirty pages and their swapped part: the cost of the process, independent
    /// of recent swapping.
    pub fn dirty_and_swapped(&self) -> u64 {
        self.of(Field::PrivateDirty).saturating_add(self.swapped())
    }
}

#[allow(
    clippy::suspicious_op_assign_impl,
    reason = "a figure of either side is a figure of the sum"
)]
impl AddAssign<&Sums> for Sums {
    fn add_assign(&mut self, other: &Sums) {
        for (sum, more) in self.bytes.iter_mut().zip(other.bytes) {
            *sum = sum.saturating_add(more);
        }
        self.known |= other.known;
    }
}

/// Writer of the mappings, and its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SmapsWriter {
    /// Unknown: traces from before the field existed.
    #[default]
    Unknown,
    /// A reader outside the process.
    Standalone,
    /// The child process that ART forks to dump the heap. Parent and child share pages, so PSS,
    /// private and shared pages are misleading.
    ArtPostFork,
    /// ART before it forked.
    ArtPreFork,
}

impl SmapsWriter {
    /// Returns whether only sizes, RSS and swap are accurate for the process.
    pub fn shares_mislead(self) -> bool {
        self == SmapsWriter::ArtPostFork
    }

    /// Returns the writer of a number in Perfetto's format.
    pub fn of_number(number: u64) -> SmapsWriter {
        match number {
            1 => SmapsWriter::Standalone,
            2 => SmapsWriter::ArtPostFork,
            3 => SmapsWriter::ArtPreFork,
            _ => SmapsWriter::Unknown,
        }
    }

    /// Returns a warning about the figures; `None` if they are accurate.
    pub fn remark(self) -> Option<&'static str> {
        self.shares_mislead().then_some(
            "written by the process that ART forks for a heap dump; it shares pages with the app, \
             so only sizes, RSS and swap are accurate",
        )
    }
}

/// Facts that only separate entries have, and only those of Windows and macOS.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Module {
    pub file_name: Option<String>,
    /// First address.
    pub start_address: u64,
    /// Time stamp of the module.
    pub timestamp: u64,
    /// Identity of the debug file.
    pub debug_id: Option<String>,
    /// Path of the debug file.
    pub debug_path: Option<String>,
    /// Protection flags.
    pub protection_flags: u32,
}

/// A row of memory mappings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SmapsRow {
    /// Path as recorded, if any.
    pub path: Option<Arc<str>>,
    /// Number of mappings in the row.
    pub count: u64,
    /// Figures in bytes.
    pub sums: Sums,
    /// Facts that only separate entries have.
    pub module: Option<Box<Module>>,
}

/// Suffix that the kernel adds to the path of a deleted file.
const DELETED: &str = " (deleted)";

impl SmapsRow {
    /// Returns the path without the kernel's suffix for deleted files.
    pub fn trimmed(&self) -> Option<&str> {
        let path = self.path.as_deref()?;
        Some(path.strip_suffix(DELETED).unwrap_or(path))
    }

    /// Returns whether the file was deleted.
    pub fn is_deleted(&self) -> bool {
        self.path.as_deref().is_some_and(|p| p.ends_with(DELETED))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SmapsRows {
    /// Rows in order of the packet.
    pub rows: Vec<SmapsRow>,
    /// Rows are sums of mappings with the same name.
    pub aggregated: bool,
    /// The packet contradicts itself or breaks off, so rows are missing.
    pub damaged: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rss_is_known_once_its_four_parts_are() {
        let mut sums = Sums::default();
        for (field, bytes) in RSS_PARTS.into_iter().zip([1, 2, 4, 8]) {
            assert_eq!(sums.get(Field::Rss), None);
            sums.set(field, bytes);
        }
        assert_eq!(sums.get(Field::Rss), Some(15));
        sums.set(Field::Rss, 20);
        assert_eq!(sums.get(Field::Rss), Some(20));
    }
}
