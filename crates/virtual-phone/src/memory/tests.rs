//! All reports of a process's memory agree.

use std::sync::Arc;

use super::{Ledger, Row};
use crate::app_actions::AppAction;
use crate::clock::{BootNs, MILLI, SECOND};
use crate::events::lock;
use crate::faults::Faults;
use crate::history::{Event, Request};
use crate::init::main_process;
use crate::java::JavaDumpKind;
use crate::kernel::Kernel;
use crate::packages::APP;
use crate::process::{Process, Role};
use crate::spec::PhoneSpec;
use crate::tracing::{PRIMARY, malloc_info};

/// Returns a phone and one of its processes by name.
fn phone(spec: &str) -> Arc<Kernel> {
    let spec = PhoneSpec::parse(spec).unwrap();
    let faults = Arc::new(Faults::new(&spec.faults));
    Kernel::new(spec, "virtual-1".to_owned(), faults, &[])
}

fn app(kernel: &Kernel) -> Process {
    let state = kernel.state();
    let pid = main_process(&state, APP, 0).unwrap();
    state.processes.get(pid).unwrap().clone()
}

fn at(kernel: &Kernel, process: &Process, moment: BootNs) -> Ledger {
    kernel
        .memory
        .ledger(&kernel.state(), process, moment)
        .unwrap()
}

#[test]
fn rows_mappings_and_totals_agree_in_every_process() {
    for android in 10..=16 {
        let kernel = phone(&format!("android={android},java=2000"));
        let processes: Vec<Process> = kernel.state().processes.iter().cloned().collect();
        let moment = kernel.clock.boot() + 12 * SECOND;
        for process in processes.iter().filter(|p| p.role != Role::Kernel) {
            let ledger = at(&kernel, process, moment);
            let (rows, pages) = (ledger.rows(), ledger.pages());
            let sum = rows.sum();
            let graphics = ledger.graphics.egl + ledger.graphics.gl;
            let name = process.name();
            assert_eq!(sum.pages.rss(), pages.rss() + graphics, "{name}");
            assert_eq!(sum.pages.pss, pages.pss + graphics, "{name}");
            assert_eq!(rows.total_pss(), sum.pages.pss + pages.swap_pss);
            let (anonymous, file, shared) = ledger.resident();
            assert_eq!(anonymous + file + shared, pages.rss());
            let of = rows.summary(android);

            let private: u64 = of.parts.iter().map(|p| p.0).sum();
            let whole = private as i64 + of.private_other + of.system;
            assert_eq!(whole, rows.total_pss() as i64, "{name}");
            for m in &ledger.mappings {
                assert!(m.pages.rss() + m.pages.swap <= m.size_kb(), "{name} {m:?}");
                assert!(m.pages.pss <= m.pages.rss() && m.pages.uss() <= m.pages.pss);
                assert_eq!(m.pages.rss() % 4, 0, "{name} {m:?}");
            }
            let overlap = ledger.mappings.windows(2).find(|w| w[0].end > w[1].start);
            assert_eq!(overlap, None, "{name}");
        }
    }
}

#[test]
fn after_hours_every_app_fits_and_the_figures_of_the_system_add_up() {
    let kernel = phone("android=14,java=2000");
    let state = kernel.state();
    // The clock runs while this is computed.
    let boot = kernel.clock.boot();
    let pss = |hours: u64| -> u64 {
        let moment = boot + hours * 3_600 * SECOND;
        let ledgers = state.processes.iter();
        let ledgers = ledgers.filter_map(|process| kernel.memory.ledger(&state, process, moment));
        ledgers.map(|ledger| ledger.rows().sum().pages.pss).sum()
    };
    let ram = kernel.memory.sum(&state, boot + 3_600 * SECOND);
    assert_eq!(ram.used, pss(1));
    let kernels = ram.kernel() + ram.slab / 3;
    let files = ram.cached - ram.mapped - ram.shmem;
    let taken = ram.used + kernels + ram.zram() + files + ram.buffers;
    let lost = ram.total - taken - ram.free;
    assert!(lost < ram.total / 32, "{ram:?}");
    assert!(ram.free > ram.total / 64, "{ram:?}");
    let (one, two) = (pss(1), pss(2));
    assert!(two < one + one / 10, "{one} kB, then {two} kB");
}

#[test]
fn malloc_info_and_heap_alloc_are_what_the_workload_holds() {
    let kernel = phone("android=14,java=2000");
    let process = app(&kernel);
    let (first, later) = (
        kernel.clock.boot() + SECOND,
        kernel.clock.boot() + 9 * SECOND,
    );
    let total = |moment| {
        let text = malloc_info(&kernel, &process, moment);
        let numbers = |line: &str| {
            let mut words = line.split('"').skip(1).step_by(2);
            Some((
                words.next()?.parse::<u64>().ok()?,
                words.next()?.parse::<u64>().ok()?,
            ))
        };
        let lines = text.lines().filter(|l| l.starts_with("<alloc "));
        lines
            .filter_map(numbers)
            .map(|(size, count)| size * count)
            .sum::<u64>()
    };
    for moment in [first, later] {
        let native = at(&kernel, &process, moment).native;
        let sizes = native.sizes();
        let large = sizes.range(PRIMARY + 1..).map(|(size, count)| size * count);
        assert_eq!(total(moment), native.allocated() - large.sum::<u64>());
    }
    // An earlier time gives the same values again, and no query changes another.
    let before = at(&kernel, &process, first).native;
    assert_eq!(at(&kernel, &process, first).native, before);
    // 120 blocks of 8 to 16 KiB a second are never freed.
    let grown = at(&kernel, &process, later).native.own.bytes - before.own.bytes;
    assert!((8_000_000..16_000_000).contains(&grown), "{grown}");
    // Rounding adds at most a granule per block.
    let own = at(&kernel, &process, later).native.own;
    assert!(own.rounded() - own.bytes < own.count * 16);
}

#[test]
fn the_java_heap_is_the_heap_graph_and_what_passes() {
    let kernel = phone("android=14,java=2000");
    let process = app(&kernel);
    for seconds in [0, 7, 23] {
        let moment = kernel.clock.boot() + seconds * SECOND;
        let java = at(&kernel, &process, moment).java.unwrap();
        let memory = &kernel.memory;
        let inputs = memory.java_inputs(&kernel.state(), &process, moment);
        let truth = inputs.unwrap().truth(JavaDumpKind::HeapGraph, "");
        // The graph counts unrounded bytes, the heap allocated ones.
        let objects = java.live.own() + java.dropped.own() + java.live.zygote() + java.live.image();
        assert!(objects >= truth.shallow_bytes);
        assert!(objects - truth.shallow_bytes < 8 * truth.objects + (1 << 20));
        assert!(java.allocated() <= java.total() && java.total() <= java.limits.growth);
    }
}

#[test]
fn each_collection_leaves_what_the_heap_then_holds() {
    for android in [10, 14, 16] {
        let kernel = phone(&format!("android={android},java=2000"));
        let process = app(&kernel);
        let from = kernel.clock.boot();
        let asked = from + 25 * SECOND + 3;
        let state = kernel.state();
        let event = Event::Collection(Request::Explicit);
        kernel.memory.note(&state, &process, asked, event);
        let to = from + 65 * SECOND;
        let made = kernel.memory.collections(&state, &process, (from, to));
        assert!(made.windows(2).all(|w| w[0].marks < w[1].marks));
        assert!(
            made.iter()
                .all(|c| c.begins <= c.marks && c.marks <= c.ends)
        );
        assert_eq!(made.iter().filter(|c| c.cause == "Explicit").count(), 1);
        assert!(made.len() >= 6, "{}", made.len());
        for c in &made {
            let after = kernel.memory.ledger(&state, &process, c.marks).unwrap();
            let java = after.java.unwrap();
            assert_eq!((c.live, c.total), (java.allocated(), java.total()));
            assert_eq!(c.before - c.live, c.freed_bytes + c.freed_large_bytes);
            let just = kernel.memory.ledger(&state, &process, c.marks - 1).unwrap();
            assert_eq!(c.before, just.java.unwrap().allocated());
        }
        // The list of listeners grows, and with it the live size.
        assert!(made[0].live < made[made.len() - 1].live);
        let again = kernel.memory.collections(&state, &process, (from, to));
        assert_eq!(again, made);
    }
}

#[test]
fn who_sleeps_stands_still_and_who_is_in_the_back_is_swapped_out() {
    let kernel = phone("android=14,java=2000");
    let process = app(&kernel);
    let now = kernel.clock.boot();
    let state = kernel.state();
    kernel
        .memory
        .note(&state, &process, now, Event::Asleep(true));
    let mut frozen = process.clone();
    frozen.frozen = true;
    let seen = |p: &Process, ms| kernel.memory.ledger(&state, p, now + ms * MILLI).unwrap();
    let (early, late) = (seen(&frozen, 2_000), seen(&frozen, 60_000));
    assert_eq!(
        (&early.native.own, early.java),
        (&late.native.own, late.java)
    );
    frozen.oom_score_adj = 905;
    let cached = seen(&frozen, 60_000);
    assert!(cached.pages().swap > 3 * late.pages().swap);
    assert!(cached.pages().rss() < late.pages().rss());
}

#[test]
fn the_second_look_is_quick() {
    let kernel = phone("android=14,java=2000");
    let process = app(&kernel);
    let now = kernel.clock.boot();
    at(&kernel, &process, now + 900 * SECOND);
    let heaps = kernel.memory.heaps_of(&process).unwrap();
    let before = lock(&heaps).ticks_summed();
    at(&kernel, &process, now + 901 * SECOND);
    // The ticks of one second, not those of a quarter of an hour.
    assert!(lock(&heaps).ticks_summed() - before <= 101);
}

#[test]
fn an_activity_that_stays_is_in_every_account_of_native_memory() {
    let kernel = phone("android=14,java=2000");
    let process = app(&kernel);
    let moment = kernel.clock.boot() + 5 * SECOND;
    let told = || {
        let ledger = at(&kernel, &process, moment);
        let text = malloc_info(&kernel, &process, moment);
        let alloc = text.lines().filter_map(|l| {
            let mut words = l.strip_prefix("<alloc ")?.split('"').skip(1).step_by(2);
            Some(words.next()?.parse::<u64>().ok()? * words.next()?.parse::<u64>().ok()?)
        });
        let sums = ledger.rows().row(Row::Native);
        (
            ledger.native,
            alloc.sum::<u64>(),
            sums.pages.uss() + sums.pages.swap,
        )
    };
    let (before, xml_before, dirty_before) = told();
    for _ in 0..20 {
        let mut state = kernel.state();
        state
            .screen
            .deeds
            .note(process.pid, moment - SECOND, AppAction::Destroyed);
    }
    let (after, xml_after, dirty_after) = told();
    let grown = after.own.bytes - before.own.bytes;
    // A picture and its views for each.
    assert_eq!(grown, 20 * ((192 << 10) + 40 * 1_504));
    assert_eq!(after.own.count - before.own.count, 20 * 41);
    // The pictures are too large for the report.
    assert_eq!(xml_after - xml_before, 20 * 40 * 1_504);
    assert_eq!(after.allocated() - before.allocated(), grown);
    assert!(
        (dirty_after - dirty_before) << 10 >= grown,
        "{dirty_before} {dirty_after}"
    );
    // Another app releases its activities.
    let other = {
        let state = kernel.state();
        let pid = main_process(&state, "com.example.browser", 0).unwrap();
        state.processes.get(pid).unwrap().clone()
    };
    let before = at(&kernel, &other, moment).native;
    let deed = AppAction::Destroyed;
    kernel.state().screen.deeds.note(other.pid, moment, deed);
    assert_eq!(at(&kernel, &other, moment).native, before);
}

#[test]
fn the_log_and_a_trace_date_a_collection_alike() {
    let kernel = phone("android=14,java=2000,speed=5000");
    let process = app(&kernel);
    let from = kernel.clock.boot();
    {
        let state = kernel.state();
        let event = Event::Collection(Request::Explicit);
        kernel.memory.note(&state, &process, from + MILLI, event);
    }
    // Two natural collections, of which one may be for native allocations.
    let to = from + 25 * SECOND;
    let made = kernel
        .memory
        .collections(&kernel.state(), &process, (from, to));
    let explicit = made.iter().find(|c| c.cause == "Explicit").unwrap();
    assert_eq!(explicit.begins, from + MILLI);
    assert_eq!(explicit.marks, from + MILLI);
    assert!(explicit.duration() > 0);
    let natural = made.iter().find(|c| c.cause == "Background").unwrap();
    assert_eq!(natural.ends, natural.marks);
    // The line that it wrote at the end.
    while kernel.clock.boot() < to {
        std::thread::yield_now();
    }
    let mut state = kernel.state();
    kernel.memory.log_collections(&mut state);
    let (lines, _) = state.log.after(0);
    let mut lines = lines.iter();
    let line = lines.find(|l| l.pid == process.pid && l.text.starts_with("Explicit "));
    assert_eq!(line.map(|l| l.boot), Some(explicit.ends));
}
