//! Guard for mapped files that are cut short while they are read. On Unix a read beyond the new end
//! raises SIGBUS, which ends a process. This guard makes such a read find zeros and records the
//! file, so that the command can end with an error and keep the data it has read. On Windows a
//! mapped file cannot be cut short.

use memmap2::Mmap;
use std::path::Path;

#[cfg(unix)]
pub(super) use unix::Guarded;
#[cfg(unix)]
pub use unix::cut_short;

/// A map of a file.
#[cfg(not(unix))]
pub(super) struct Guarded(Mmap);

#[cfg(not(unix))]
impl Guarded {
    pub(super) fn new(map: Mmap, _: &Path) -> std::io::Result<Guarded> {
        Ok(Guarded(map))
    }

    pub(super) fn map(&self) -> &Mmap {
        &self.0
    }
}

/// Returns the files that became shorter while they were mapped: none on this system.
#[cfg(not(unix))]
pub fn cut_short() -> Vec<std::path::PathBuf> {
    Vec::new()
}

#[cfg(unix)]
mod unix {
    use super::{Mmap, Path};
    use crate::parallel::lock;
    use libc::{c_int, c_void, siginfo_t};
    use std::io;
    use std::path::PathBuf;
    use std::ptr;
    use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
    use std::sync::{Mutex, MutexGuard, OnceLock};

    /// A slot for the range of a map, where the signal handler finds it. Slots are never freed but
    /// reused, because the handler can read any of them at any time.
    struct Place {
        /// 0 while the slot is unused.
        start: AtomicUsize,
        end: AtomicUsize,
        is_cut: AtomicBool,
        next: *const Place,
    }

    // SAFETY: `next` is set before other threads see the slot, and its target is never freed.
    unsafe impl Sync for Place {}

    static PLACES: AtomicPtr<Place> = AtomicPtr::new(ptr::null_mut());

    /// The slot of each mapped file.
    struct Files {
        free: Vec<&'static Place>,
        mapped: Vec<(&'static Place, PathBuf)>,
        /// Files that were cut short and are no longer mapped.
        cut: Vec<PathBuf>,
    }

    static FILES: Mutex<Files> = Mutex::new(Files {
        free: Vec::new(),
        mapped: Vec::new(),
        cut: Vec::new(),
    });

    fn files() -> MutexGuard<'static, Files> {
        lock(&FILES)
    }

    /// The previous handler of the signal; `None` if the signal cannot be handled.
    static BEFORE: OnceLock<Option<libc::sigaction>> = OnceLock::new();

    /// A map of a file that is registered with the handler.
    pub(in crate::bytes) struct Guarded {
        map: Mmap,
        place: &'static Place,
    }

    impl Guarded {
        /// Guards a map of a whole file.
        ///
        /// # Errors
        /// Returns an error if the signal cannot be handled.
        pub(in crate::bytes) fn new(map: Mmap, path: &Path) -> io::Result<Guarded> {
            if BEFORE.get_or_init(handle).is_none() {
                return Err(io::Error::other("cannot handle SIGBUS"));
            }
            let mut files = files();
            let place = files.free.pop().unwrap_or_else(new_place);
            files.mapped.push((place, path.to_owned()));
            let start = map.as_ptr() as usize;
            place.is_cut.store(false, Ordering::SeqCst);
            place.end.store(start + map.len(), Ordering::SeqCst);
            place.start.store(start, Ordering::SeqCst);
            Ok(Guarded { map, place })
        }

        pub(in crate::bytes) fn map(&self) -> &Mmap {
            &self.map
        }
    }

    impl Drop for Guarded {
        fn drop(&mut self) {
            // Cleared before the range is unmapped and possibly reused.
            self.place.start.store(0, Ordering::SeqCst);
            let mut files = files();
            let is_this = |(place, _): &(&Place, _)| ptr::eq(*place, self.place);
            if let Some(at) = files.mapped.iter().position(is_this) {
                let (place, path) = files.mapped.swap_remove(at);
                if place.is_cut.load(Ordering::SeqCst) {
                    files.cut.push(path);
                }
                files.free.push(place);
            }
        }
    }

    /// Returns the files that became shorter while they were mapped, if their missing part was
    /// read.
    pub fn cut_short() -> Vec<PathBuf> {
        let files = files();
        let mapped = files.mapped.iter();
        let cut = mapped.filter(|(place, _)| place.is_cut.load(Ordering::SeqCst));
        let mut all: Vec<PathBuf> = cut.map(|(_, path)| path.clone()).collect();
        all.extend(files.cut.iter().cloned());
        all.sort();
        all.dedup();
        all
    }

    fn new_place() -> &'static Place {
        // Only the holder of `FILES` creates one.
        let place = Box::leak(Box::new(Place {
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            is_cut: AtomicBool::new(false),
            next: PLACES.load(Ordering::SeqCst),
        }));
        PLACES.store(place, Ordering::SeqCst);
        place
    }

    /// Installs the signal handler; returns the previous one.
    fn handle() -> Option<libc::sigaction> {
        // SAFETY: both are plain data for which zeros are valid, and `on_bus` does only what a
        // handler can safely do: it reads atomics and calls `mmap` and `sigaction`.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            let mut before: libc::sigaction = std::mem::zeroed();
            let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = on_bus;
            action.sa_sigaction = handler as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            let set = libc::sigaction(libc::SIGBUS, &action, &mut before);
            (set == 0).then_some(before)
        }
    }

    extern "C" fn on_bus(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        // SAFETY: the kernel passes valid signal information to a handler with SA_SIGINFO.
        let address = unsafe { (*info).si_addr() } as usize;
        if !replaced(address) {
            pass_on(signal, info, context);
        }
    }

    /// Maps zeros over a map from an address to its end; returns `false` if no map contains the
    /// address.
    fn replaced(address: usize) -> bool {
        let mut next: *const Place = PLACES.load(Ordering::SeqCst);
        // SAFETY: slots are never freed.
        while let Some(place) = unsafe { next.as_ref() } {
            let start = place.start.load(Ordering::SeqCst);
            let end = place.end.load(Ordering::SeqCst);
            if start != 0 && (start..end).contains(&address) {
                place.is_cut.store(true, Ordering::SeqCst);
                // SAFETY: reads a constant of the system.
                let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
                let from = address - address % page;
                let flags = libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_FIXED;
                let to = from as *mut c_void;
                // SAFETY: the range is in a map that is read only, and that exists because a thread
                // reads from it. Its pages there are gone, so nothing is lost.
                let put = unsafe { libc::mmap(to, end - from, libc::PROT_READ, flags, -1, 0) };
                return put != libc::MAP_FAILED;
            }
            next = place.next;
        }
        false
    }

    /// Passes the signal to the previous handler.
    fn pass_on(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        if let Some(Some(before)) = BEFORE.get() {
            // SAFETY: the system returned this handler for this signal. If it is not a function of
            // this kind, the failed instruction runs again, fails again, and then ends the process.
            unsafe {
                libc::sigaction(signal, before, ptr::null_mut());
                let is_function = before.sa_flags & libc::SA_SIGINFO != 0
                    && before.sa_sigaction != libc::SIG_DFL
                    && before.sa_sigaction != libc::SIG_IGN;
                if is_function {
                    let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) =
                        std::mem::transmute(before.sa_sigaction);
                    handler(signal, info, context);
                }
            }
        }
    }
}
