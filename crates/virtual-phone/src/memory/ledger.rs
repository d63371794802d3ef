//! Memory of a process at one time, from which all reports are derived, and its graphics memory.

use super::java::JavaHeapState;
use super::mappings::{Mapping, Pages};
use super::native::NativeHeap;
use super::rows::{Graphics, Rows};
use crate::process::Process;

/// Size in kB of a full-screen buffer.
const SCREEN_KB: u64 = 1_080 * 2_400 * 4 / 1_024;
/// GPU memory in kB of every app that draws, besides its pictures: glyphs, layers, shaders.
const GPU_KB: u64 = 5_632;

/// Memory of one process at one time.
#[derive(Debug, Clone)]
pub(crate) struct Ledger {
    pub(crate) native: NativeHeap,
    /// `None` if the process does not run Java.
    pub(crate) java: Option<JavaHeapState>,
    /// Mappings by address.
    pub(crate) mappings: Vec<Mapping>,
    pub(crate) graphics: Graphics,
    /// Number of all threads.
    pub(crate) threads: u64,
    /// Time in nanoseconds that it has run since the phone appeared.
    pub(crate) awake: u64,
    /// Memory of its databases.
    pub(crate) databases_kb: u64,
}

impl Ledger {
    /// Returns the pages of all mappings.
    pub(crate) fn pages(&self) -> Pages {
        let mut sum = Pages::default();
        self.mappings.iter().for_each(|m| sum.add(&m.pages));
        sum
    }

    /// Returns VmSize in kB.
    pub(crate) fn size_kb(&self) -> u64 {
        self.mappings.iter().map(Mapping::size_kb).sum()
    }

    /// Returns RssAnon, RssFile and RssShmem in kB.
    pub(crate) fn resident(&self) -> (u64, u64, u64) {
        let anonymous: u64 = self.mappings.iter().map(Mapping::anonymous_kb).sum();
        let shared: u64 = self.mappings.iter().map(Mapping::shmem_kb).sum();
        let all = self.pages().rss();
        (anonymous, all - anonymous - shared, shared)
    }

    /// Returns its full-screen buffers in kB each.
    pub(crate) fn buffers(&self) -> Vec<u64> {
        vec![SCREEN_KB; (self.graphics.egl / SCREEN_KB) as usize]
    }

    /// Returns the rows of `dumpsys meminfo`.
    pub(crate) fn rows(&self) -> Rows {
        Rows::new(&self.mappings, self.graphics)
    }
}

/// Returns the values of the memtrack HAL: buffers of windows on the screen, and textures.
pub(super) fn graphics(
    process: &Process,
    java: Option<&JavaHeapState>,
    shown: bool,
    trimmed: bool,
) -> Graphics {
    let Some(java) = java else {
        // The compositor holds the screen's own buffers.
        let composer = process.name().ends_with("/surfaceflinger");
        return Graphics {
            egl: if composer { 3 * SCREEN_KB } else { 0 },
            ..Graphics::default()
        };
    };
    let windows = java.live.instances("android.view.ViewRootImpl");
    if windows == 0 {
        return Graphics::default();
    }
    let pictures = (java.live.native() + java.dropped.native()) >> 10;
    let other = match (shown, trimmed) {
        (true, _) => GPU_KB,
        (false, false) => GPU_KB / 2,
        (false, true) => GPU_KB / 8,
    };
    Graphics {
        egl: if shown { windows * 3 * SCREEN_KB } else { 0 },
        gl: pictures + other,
    }
}
