//! Garbage collections that heaptap itself causes. `dumpsys meminfo` makes the app collect garbage,
//! which the log shows as `Explicit`: a collection in such a window is attributed to heaptap.

use heaptap_base::parallel::lock;
use std::sync::{Arc, Mutex, MutexGuard};

/// Accuracy of the relation between the device's clocks.
const SLACK_NS: u64 = 100_000_000;
/// Maximum number of remembered windows.
const WINDOWS: usize = 1024;

/// Windows in which collections are attributed to heaptap. Shared by all code that causes them.
#[derive(Debug, Clone, Default)]
pub struct OurWindows(Arc<Mutex<Windows>>);

#[derive(Debug, Default)]
struct Windows {
    all: Vec<Window>,
    next: u64,
}

#[derive(Debug)]
struct Window {
    id: u64,
    pid: u32,
    /// Start and end; `None` while it is open.
    times: Option<(u64, u64)>,
    /// Number of further collections that it explains.
    left: u32,
}

/// An open window. If it is dropped without its times, it does not explain any collection.
#[derive(Debug)]
pub struct OpenWindow {
    windows: OurWindows,
    id: u64,
}

/// Origin of a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    Ours,
    Theirs,
    /// A window is open and its times are not known yet.
    Undecided,
}

impl OurWindows {
    /// Opens a window in which `pid` might run up to `collections` for heaptap.
    pub fn open(&self, pid: u32, collections: u32) -> OpenWindow {
        let mut windows = self.lock();
        let id = windows.next;
        windows.next = windows.next.wrapping_add(1);
        if windows.all.len() >= WINDOWS {
            windows.all.remove(0);
        }
        windows.all.push(Window {
            id,
            pid,
            times: None,
            left: collections,
        });
        OpenWindow {
            windows: self.clone(),
            id,
        }
    }

    /// Returns the origin of an explicit collection, which uses up one collection of the window.
    pub(super) fn whose(&self, pid: u32, boot_ns: u64) -> Whose {
        let mut windows = self.lock();
        let mut undecided = false;
        for window in windows.all.iter_mut().filter(|window| window.pid == pid) {
            match window.times {
                Some((from, until)) => {
                    let within = from.saturating_sub(SLACK_NS) <= boot_ns
                        && boot_ns <= until.saturating_add(SLACK_NS);
                    if within && window.left > 0 {
                        window.left -= 1;
                        return Whose::Ours;
                    }
                }
                None => undecided |= window.left > 0,
            }
        }
        match undecided {
            true => Whose::Undecided,
            false => Whose::Theirs,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Windows> {
        lock(&self.0)
    }
}

impl OpenWindow {
    /// Closes the window, which lasted from `from_ns` to `until_ns`, BOOTTIME.
    pub fn close(self, from_ns: u64, until_ns: u64) {
        let mut windows = self.windows.lock();
        if let Some(window) = windows.all.iter_mut().find(|window| window.id == self.id) {
            window.times = Some((from_ns, until_ns));
        }
    }
}

impl Drop for OpenWindow {
    fn drop(&mut self) {
        let mut windows = self.windows.lock();
        windows
            .all
            .retain(|window| window.id != self.id || window.times.is_some());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_collection_is_ours_once_and_undecided_while_a_window_is_open() {
        let windows = OurWindows::default();
        let at = 1000 * MS;
        assert_eq!(windows.whose(7, at), Whose::Theirs);
        let open = windows.open(7, 1);
        assert_eq!(windows.whose(7, at), Whose::Undecided);
        assert_eq!(windows.whose(8, at), Whose::Theirs);
        open.close(950 * MS, 1100 * MS);
        assert_eq!(windows.whose(7, 2000 * MS), Whose::Theirs);
        assert_eq!(windows.whose(7, at), Whose::Ours);
        assert_eq!(windows.whose(7, at), Whose::Theirs, "one a window");
        drop(windows.open(7, 1));
        assert_eq!(windows.whose(7, at), Whose::Theirs, "nothing came of it");
    }

    #[test]
    fn windows_are_bounded() {
        let windows = OurWindows::default();
        for _ in 0..3 * WINDOWS {
            windows.open(1, 1).close(0, 1);
        }
        assert!(windows.lock().all.len() <= WINDOWS);
    }
}
