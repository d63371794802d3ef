//! Functions that allocate memory for others. Their caller matters: the terminal's summary skips
//! them, and profiles tell viewers to do so (`drop_frames`).

use std::sync::LazyLock;

/// Names as recorded or demangled, without parameters.
const NAMES: [&str; 24] = [
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "memalign",
    "aligned_alloc",
    "posix_memalign",
    "valloc",
    "pvalloc",
    "malloc_default",
    "__libc_malloc",
    "__libc_calloc",
    "__libc_realloc",
    "__libc_memalign",
    "_Znwm",
    "_Znam",
    "_Znwj",
    "_Znaj",
    "__rust_alloc",
    "__rust_alloc_zeroed",
    "__rust_realloc",
    "__rdl_alloc",
    "__rdl_alloc_zeroed",
    "__rg_alloc",
];
const PREFIXES: [&str; 16] = [
    "operator new",
    "scudo::",
    "scudo_",
    "je_",
    "Scudo",
    "std::allocator",
    "std::__1::allocator",
    "std::__ndk1::allocator",
    "std::__1::__libcpp_allocate",
    "std::__ndk1::__libcpp_allocate",
    "__gnu_cxx::new_allocator",
    "__rustc::__r",
    "<alloc::alloc::Global",
    "<alloc::raw_vec::",
    "alloc::raw_vec::",
    "alloc::alloc::",
];

/// Returns whether a function, with or without its parameters, is an allocator.
pub fn is_allocator(function: &str) -> bool {
    NAMES.contains(&function) || PREFIXES.iter().any(|p| function.starts_with(p))
}

/// Returns the allocators as pprof's `drop_frames`: a regular expression over whole names without
/// their parameters. Viewers remove matching frames and their callees from the leaf of a stack.
pub fn drop_frames() -> &'static str {
    static PATTERN: LazyLock<String> = LazyLock::new(|| {
        let names = NAMES.iter().map(|name| (*name).to_owned());
        let prefixes = PREFIXES.iter().map(|prefix| format!("{prefix}.*"));
        let all: Vec<String> = names.chain(prefixes).collect();
        all.join("|")
    });
    &PATTERN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocators_are_told_from_their_callers() {
        for function in [
            "malloc",
            "operator new(unsigned long)",
            "je_malloc",
            "_Znwm",
            "__rustc::__rust_alloc",
            "<alloc::alloc::Global as core::alloc::Allocator>::allocate",
            "alloc::raw_vec::RawVec<T,A>::grow_one",
        ] {
            assert!(is_allocator(function), "{function}");
        }
        for function in [
            "malloc_stats",
            "my_malloc",
            "Cache::operator new",
            "strdup",
            "alloc::vec::Vec<T>::with_capacity",
            "",
        ] {
            assert!(!is_allocator(function), "{function}");
        }
    }

    #[test]
    fn the_pattern_needs_no_escaping() {
        let special = |c: char| "\\.+*?()[]{}^$|".contains(c);
        for name in NAMES.iter().chain(&PREFIXES) {
            assert!(!name.contains(special), "{name}");
        }
        assert!(drop_frames().contains("malloc|calloc|"));
        assert!(drop_frames().ends_with("alloc::alloc::.*"));
    }
}
