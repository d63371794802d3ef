//! Sites of allocations, by heap, with the frames of their stacks and the mapped files.

use std::sync::Arc;

/// A mapped file of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MappingDef {
    pub(crate) path: String,
    pub(crate) build_id: Vec<u8>,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// File offset of the ELF file: nonzero inside an APK.
    pub(crate) start_offset: u64,
    pub(crate) exact_offset: u64,
    pub(crate) load_bias: u64,
}

/// A frame of a stack.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FrameDef {
    pub(crate) mapping: usize,
    pub(crate) function: Arc<str>,
    pub(crate) rel_pc: u64,
}

/// Lifetime of a site's allocations.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Life {
    Forever,
    /// A number of milliseconds, evenly distributed from the first to the second.
    Millis(u64, u64),
}

/// Times at which a site allocates.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Phase {
    Always,
    /// Only during this many milliseconds after the start of the process.
    First(u64),
    /// In the first part of each period, both in milliseconds.
    Burst {
        period: u64,
        on: u64,
    },
    /// This many for each activity that replaces another one; all of the same size. The time
    /// depends on the actions on the process, not on the clock.
    Activity(u64),
}

#[derive(Debug, Clone)]
pub(crate) struct Site {
    pub(crate) name: Arc<str>,
    /// Frames, root first.
    pub(crate) frames: Vec<u32>,
    pub(crate) stack: Arc<[Arc<str>]>,
    pub(crate) per_second: f64,
    pub(crate) size: (u64, u64),
    pub(crate) life: Life,
    pub(crate) phase: Phase,
}

/// A heap: `libc.malloc` and others.
#[derive(Debug, Clone)]
pub(crate) struct HeapDef {
    pub(crate) name: &'static str,
    pub(crate) sites: Vec<Site>,
    /// The first sites that allocate once each, in turn: their number, and how many allocate per
    /// tick.
    pub(crate) in_turn: Option<(usize, usize)>,
}

impl Site {
    pub(super) fn leaks_always(&self) -> bool {
        matches!((&self.life, &self.phase), (Life::Forever, Phase::Always))
    }
}
