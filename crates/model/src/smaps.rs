//! What the system says of the mappings of a process: the figures that the kernel has of each, and
//! the rows of a trace, with what only such rows have. Texts and wire formats are their readers'.

use std::ops::AddAssign;
use std::sync::Arc;

/// A figure of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Field {
    /// Address space.
    Size,
    /// Resident.
    Rss,
    /// Resident, shared pages by their share.
    Pss,
    /// Of that the dirty ones (Linux 6.0).
    PssDirty,
    /// Clean pages that others have mapped, too.
    SharedClean,
    /// Dirty pages that others have mapped, too.
    SharedDirty,
    /// Clean pages of this process alone.
    PrivateClean,
    /// Dirty pages of this process alone: what it costs.
    PrivateDirty,
    /// In swap or ZRAM, before compression.
    Swap,
    /// The same by its share (Linux 4.3).
    SwapPss,
    /// Resident and of no file.
    Anonymous,
    /// Locked in memory.
    Locked,
}

impl Field {
    /// All of them, in the order they are listed.
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

    /// Its name in JSON and CSV.
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

    /// The field of a line of the kernel's.
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

/// Figures of a mapping or of many, bytes. What no source gave is not 0 but absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sums {
    bytes: [u64; Field::ALL.len()],
    known: u16,
}

impl Sums {
    /// A figure; `None` where no source gave it.
    pub fn get(&self, field: Field) -> Option<u64> {
        let at = field as usize;
        (self.known >> at & 1 == 1).then(|| self.bytes[at])
    }

    /// A figure; 0 where no source gave it.
    pub fn of(&self, field: Field) -> u64 {
        self.bytes[field as usize]
    }

    /// Sets a figure.
    pub fn set(&mut self, field: Field, bytes: u64) {
        self.bytes[field as usize] = bytes;
        self.known |= 1 << field as usize;
    }

    /// Private pages, dirty and clean: what ends with the process.
    pub fn private(&self) -> u64 {
        self.of(Field::PrivateDirty)
            .saturating_add(self.of(Field::PrivateClean))
    }

    /// What is swapped out, by its share where the kernel knows that.
    pub fn swapped(&self) -> u64 {
        self.get(Field::SwapPss).unwrap_or(self.of(Field::Swap))
    }

    /// Private dirty pages and what of them is swapped out: what the process costs whether it
    /// was just squeezed or not.
    pub fn dirty_and_swapped(&self) -> u64 {
        self.of(Field::PrivateDirty).saturating_add(self.swapped())
    }
}

#[allow(
    clippy::suspicious_op_assign_impl,
    reason = "what either side knows is known of the sum"
)]
impl AddAssign<&Sums> for Sums {
    fn add_assign(&mut self, other: &Sums) {
        for (sum, more) in self.bytes.iter_mut().zip(other.bytes) {
            *sum = sum.saturating_add(more);
        }
        self.known |= other.known;
    }
}

/// Who wrote it, and from where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SmapsWriter {
    /// Not told: traces from before the field.
    #[default]
    Unknown,
    /// Read from outside of the process.
    Standalone,
    /// By the child that ART forks to dump the heap: with pages that parent and child share, so
    /// that PSS, private and shared pages mislead.
    ArtPostFork,
    /// By ART before it forked.
    ArtPreFork,
}

impl SmapsWriter {
    /// Whether only sizes, RSS and swap are those of the process.
    pub fn shares_mislead(self) -> bool {
        self == SmapsWriter::ArtPostFork
    }

    /// By the number that Perfetto gives it.
    pub fn of_number(number: u64) -> SmapsWriter {
        match number {
            1 => SmapsWriter::Standalone,
            2 => SmapsWriter::ArtPostFork,
            3 => SmapsWriter::ArtPreFork,
            _ => SmapsWriter::Unknown,
        }
    }

    /// What must be known of its figures; `None` where they are what they seem.
    pub fn remark(self) -> Option<&'static str> {
        self.shares_mislead().then_some(
            "written by the process that ART forks for a heap dump: its pages are shared with the \
             app, so PSS, private and shared pages mislead; sizes, RSS and swap hold",
        )
    }
}

/// What only entries have, and only those of Windows and macOS fill.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Module {
    /// Name of the file.
    pub file_name: Option<String>,
    /// First address.
    pub start_address: u64,
    /// Time stamp of the module.
    pub timestamp: u64,
    /// Identity of its debug file.
    pub debug_id: Option<String>,
    /// Its debug file.
    pub debug_path: Option<String>,
    /// Protection flags.
    pub protection_flags: u32,
}

/// A row of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SmapsRow {
    /// The path as recorded; `None` where it has none.
    pub path: Option<Arc<str>>,
    /// Mappings it stands for.
    pub count: u64,
    /// Its figures, bytes.
    pub sums: Sums,
    /// What only entries have.
    pub module: Option<Box<Module>>,
}

/// What the kernel adds where a file is gone.
const DELETED: &str = " (deleted)";

impl SmapsRow {
    /// The path without the kernel's remark that the file is gone.
    pub fn trimmed(&self) -> Option<&str> {
        let path = self.path.as_deref()?;
        Some(path.strip_suffix(DELETED).unwrap_or(path))
    }

    /// Whether the file is gone.
    pub fn is_deleted(&self) -> bool {
        self.path.as_deref().is_some_and(|p| p.ends_with(DELETED))
    }
}

/// Mappings of a process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SmapsRows {
    /// In order of the packet.
    pub rows: Vec<SmapsRow>,
    /// Rows are sums of mappings with one name.
    pub aggregated: bool,
    /// The packet contradicts itself, or breaks off: there are fewer rows than there were.
    pub damaged: bool,
}
