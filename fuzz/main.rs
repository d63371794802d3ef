//! `heaptap-fuzz TARGET [libFuzzer's options and corpora]`: fuzzes one target of `targets`. A panic,
//! a result that contradicts itself, a hang or too much memory is a find. `heaptap-fuzz --list`
//! prints the targets and the lengths of their inputs.
#![no_main]

#[path = "../tests/memory_bounds/counting.rs"]
mod counting;
mod effort;
mod targets;

// Has libFuzzer and its `main`.
use libfuzzer_sys as _;

use counting::Counting;
use heaptap_base::error::is_contained;
use std::ffi::{CStr, c_char, c_int};
use std::sync::OnceLock;
use targets::{TARGETS, Target};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The name of the target for the processes that libFuzzer starts itself, as for `-merge`.
const VARIABLE: &str = "HEAPTAP_FUZZ_TARGET";

static TARGET: OnceLock<&Target> = OnceLock::new();

/// Takes the target's name from the arguments, which libFuzzer reads afterwards.
///
/// # Safety
///
/// libFuzzer calls it once with the arguments of `main`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn LLVMFuzzerInitialize(
    count: *mut c_int,
    arguments: *mut *mut *mut c_char,
) -> c_int {
    let name = match std::env::var(VARIABLE) {
        Ok(name) => name,
        // SAFETY: as of this function.
        Err(_) => unsafe { take_first(count, arguments) },
    };
    if name == "--list" {
        list();
        end(0);
    }
    let Some(target) = TARGETS.iter().find(|target| target.name == name) else {
        complain(&name);
        end(2);
    };
    // SAFETY: before any thread is started.
    unsafe { std::env::set_var(VARIABLE, target.name) };
    let _ = TARGET.set(target);
    // A panic that heaptap would catch is a find as well. libFuzzer stores the input.
    let show = std::panic::take_hook();
    let name = target.name;
    std::panic::set_hook(Box::new(move |panic| {
        // `heaptap_tables` catches panics of the crate `parquet` on purpose.
        let is_ours = (panic.location()).is_some_and(|place| place.file().starts_with("crates/"));
        if name == "archive" && is_contained() && !is_ours {
            return;
        }
        show(panic);
        std::process::abort();
    }));
    0
}

/// Removes the first argument; an empty text without any.
///
/// # Safety
///
/// `count` and `arguments` are those of `main`.
unsafe fn take_first(count: *mut c_int, arguments: *mut *mut *mut c_char) -> String {
    // SAFETY: `main` has `*count` arguments and a null pointer after them.
    unsafe {
        if *count < 2 {
            return String::new();
        }
        let first = CStr::from_ptr(*(*arguments).add(1));
        for at in 1..*count as usize {
            *(*arguments).add(at) = *(*arguments).add(at + 1);
        }
        *count -= 1;
        first.to_string_lossy().into_owned()
    }
}

#[allow(clippy::print_stdout)]
fn list() {
    for target in TARGETS {
        println!(
            "{} {} {} {}",
            target.name, target.max_len, target.sources, target.covers
        );
    }
}

#[allow(clippy::print_stderr)]
fn complain(name: &str) {
    eprintln!("error: `{name}` is not a target\nhelp: run `fuzz/run.sh list`");
}

#[allow(clippy::exit)]
fn end(code: i32) -> ! {
    std::process::exit(code);
}

/// What libfuzzer-sys calls with each input.
#[allow(improper_ctypes_definitions, reason = "libfuzzer-sys is Rust, too")]
#[unsafe(no_mangle)]
pub extern "C" fn rust_fuzzer_test_input(bytes: &[u8]) -> i32 {
    let target = TARGET.get().expect("LLVMFuzzerInitialize was called");
    let before = counting::restart();
    (target.run)(bytes);
    let used = counting::peak() - before;
    effort::count();
    let most = counting::limit(bytes.len());
    assert!(
        used <= most,
        "{}: {} KiB of memory for {} bytes, at most {} KiB",
        target.name,
        used >> 10,
        bytes.len(),
        most >> 10
    );
    0
}
