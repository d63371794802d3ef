//! What becomes of a mapped file that is cut short while it is read. On Unix whoever reads behind
//! its new end gets SIGBUS, which ends a process. Here such a read finds zeros instead, and the
//! file is remembered, so that the command can end with an error and keep what it read. On
//! Windows a file that is mapped cannot be cut short.

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

/// Files that became shorter while they were mapped; here none can.
#[cfg(not(unix))]
pub fn cut_short() -> Vec<std::path::PathBuf> {
    Vec::new()
}

#[cfg(unix)]
mod unix {
    use super::{Mmap, Path};
    use libc::{c_int, c_void, siginfo_t};
    use std::io;
    use std::path::PathBuf;
    use std::ptr;
    use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
    use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

    /// A place for the range of a map, where the handler of the signal finds it. Places are never
    /// freed, but used again: the handler may look at any at any time.
    struct Place {
        /// 0 while it stands for no map.
        start: AtomicUsize,
        end: AtomicUsize,
        is_cut: AtomicBool,
        next: *const Place,
    }

    // SAFETY: `next` is set before others see the place, and what it refers to is never freed.
    unsafe impl Sync for Place {}

    static PLACES: AtomicPtr<Place> = AtomicPtr::new(ptr::null_mut());

    /// Which place stands for which file.
    struct Files {
        free: Vec<&'static Place>,
        mapped: Vec<(&'static Place, PathBuf)>,
        /// Those that were cut short and are mapped no more.
        cut: Vec<PathBuf>,
    }

    static FILES: Mutex<Files> = Mutex::new(Files {
        free: Vec::new(),
        mapped: Vec::new(),
        cut: Vec::new(),
    });

    fn files() -> MutexGuard<'static, Files> {
        FILES.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What handled the signal before; `None` where it cannot be handled.
    static BEFORE: OnceLock<Option<libc::sigaction>> = OnceLock::new();

    /// A map of a file, of which the handler knows.
    pub(in crate::bytes) struct Guarded {
        map: Mmap,
        place: &'static Place,
    }

    impl Guarded {
        /// Guards a map of a whole file.
        ///
        /// # Errors
        /// Where the signal can't be handled.
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
            // Before the range is unmapped, and may become somebody else's.
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

    /// Files that became shorter while they were mapped, as far as what is gone was read.
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
        // Only who holds `FILES` makes one.
        let place = Box::leak(Box::new(Place {
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            is_cut: AtomicBool::new(false),
            next: PLACES.load(Ordering::SeqCst),
        }));
        PLACES.store(place, Ordering::SeqCst);
        place
    }

    /// Has the signal handled here; what was there before.
    fn handle() -> Option<libc::sigaction> {
        // SAFETY: both are plain data that zeros are right for, and `on_bus` keeps to what a
        // handler may do: it reads atomics and calls `mmap` and `sigaction`.
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
        // SAFETY: the kernel gives a handler with SA_SIGINFO what the signal is about.
        let address = unsafe { (*info).si_addr() } as usize;
        if !replaced(address) {
            pass_on(signal, info, context);
        }
    }

    /// Puts zeros into a map from an address to its end; `false` where no map has the address.
    fn replaced(address: usize) -> bool {
        let mut next: *const Place = PLACES.load(Ordering::SeqCst);
        // SAFETY: places are never freed.
        while let Some(place) = unsafe { next.as_ref() } {
            let start = place.start.load(Ordering::SeqCst);
            let end = place.end.load(Ordering::SeqCst);
            if start != 0 && (start..end).contains(&address) {
                place.is_cut.store(true, Ordering::SeqCst);
                // SAFETY: asks for a number of the system.
                let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
                let from = address - address % page;
                let flags = libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_FIXED;
                let to = from as *mut c_void;
                // SAFETY: the range lies in a map that is read only, and alive, since a thread
                // reads in it. Its pages there are gone, so nothing is lost.
                let put = unsafe { libc::mmap(to, end - from, libc::PROT_READ, flags, -1, 0) };
                return put != libc::MAP_FAILED;
            }
            next = place.next;
        }
        false
    }

    /// Leaves the signal to whatever handled it before.
    fn pass_on(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        if let Some(Some(before)) = BEFORE.get() {
            // SAFETY: it is what the system gave for this signal. Should it be no function of
            // this kind, the instruction that failed fails again, and then ends the process.
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
