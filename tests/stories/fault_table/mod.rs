//! The table of faults: each fault at each step of a recording. In every cell heaptap says what
//! happened, and the command that it names goes on: nothing is lost.
#![expect(clippy::print_stdout, reason = "cells for people")]

mod cell;
pub mod faults;
mod judge;
mod page;
mod report;
mod steps;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use faults::Fault;
use steps::{STEPS, Step};

/// Cells that are walked at the same time; most of them wait.
const AT_ONCE: usize = 6;

/// Walks cells; returns what was seen in each.
fn walk(cells: &[(&Step, Fault)]) -> Vec<Result<cell::Seen, String>> {
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    let Some((step, fault)) = cells.get(n) else {
                        return;
                    };
                    let seen = std::panic::catch_unwind(|| cell::walk(step, *fault));
                    let seen = seen.unwrap_or_else(|panic| {
                        let text = panic.downcast_ref::<String>();
                        Err(text.map_or("panic", String::as_str).to_owned())
                    });
                    let (name, said) = (fault.names().0, &seen);
                    match said {
                        Ok(seen) => println!(
                            "{}:{name} | {} | {} | {} | {}",
                            step.name, seen.exit, seen.says, seen.kept, seen.next
                        ),
                        Err(wrong) => println!("{}:{name} WRONG {wrong}\n", step.name),
                    }
                    found.lock().unwrap().push((n, seen));
                }
            });
        }
    });
    let mut found = found.into_inner().unwrap();
    found.sort_by_key(|(n, _)| *n);
    found.into_iter().map(|(_, seen)| seen).collect()
}

/// Whether a fault can occur at a step.
fn applies(step: &Step, fault: Fault) -> bool {
    let pulls = ["pull", "java-pull"].contains(&step.name);
    let has_request = !step.requests.is_empty();
    let is_command = has_request
        && !["server", "device", "size", "verify", "symbolize"].contains(&step.name)
        && !pulls;
    match fault {
        Fault::PullCut | Fault::PullShort | Fault::PullFlip => pulls,
        // No program removes a file, prints something and succeeds.
        Fault::Nonsense => is_command && step.name != "remove",
        Fault::Refused | Fault::Garbled => has_request,
        // The results are written: a directory that you replace then is yours.
        Fault::NoOutput => step.name != "remove",
        Fault::HostFull => cfg!(target_os = "linux"),
        _ => true,
    }
}

/// Returns the cells of which `is_wanted` holds, as indices of steps and faults.
fn cells(is_wanted: impl Fn(usize, usize) -> bool) -> Vec<(usize, Fault)> {
    let faults = Fault::ALL.iter().enumerate();
    let all = faults.flat_map(|(f, fault)| (0..STEPS.len()).map(move |s| (f, s, *fault)));
    all.filter(|(f, s, fault)| applies(&STEPS[*s], *fault) && is_wanted(*s, *f))
        .map(|(_, s, fault)| (s, fault))
        .collect()
}

/// Walks cells and returns what was seen; fails if one has no good answer.
fn seen(cells: &[(usize, Fault)]) -> Vec<(Fault, usize, cell::Seen)> {
    let walked: Vec<(&Step, Fault)> = cells.iter().map(|(s, f)| (&STEPS[*s], *f)).collect();
    let seen = walk(&walked);
    let wrong: Vec<&String> = seen.iter().filter_map(|seen| seen.as_ref().err()).collect();
    assert!(wrong.is_empty(), "{} of {} cells", wrong.len(), cells.len());
    let with_cells = cells.iter().zip(seen);
    with_cells
        .filter_map(|((step, fault), seen)| Some((*fault, *step, seen.ok()?)))
        .collect()
}

/// Fails if a cell ends as the page has it for no step of the fault; prints cells that end as it has
/// it for another step. Some depend on the moment: a second Ctrl-C that comes late finds the
/// recording ended.
fn compare_with_page(seen: &[(Fault, usize, cell::Seen)]) {
    let cells: Vec<_> = seen.iter().map(|(f, s, seen)| (*f, *s, seen)).collect();
    for difference in page::differences(&cells) {
        println!("{difference}");
    }
    let new: Vec<String> = seen
        .iter()
        .filter(|(fault, _, seen)| !page::knows(*fault, seen))
        .map(|(fault, step, seen)| format!("{}:{} {seen:?}", STEPS[*step].name, fault.names().0))
        .collect();
    assert!(new.is_empty(), "not in the page: {new:#?}");
}

#[test]
fn the_page_has_an_answer_in_every_cell() {
    let all = cells(|_, _| true);
    let empty: Vec<String> = all
        .iter()
        .filter(|(step, fault)| !page::has(*fault, *step))
        .map(|(step, fault)| format!("{}:{}", STEPS[*step].name, fault.names().0))
        .collect();
    assert!(empty.is_empty(), "{empty:?}");
}

/// Every eighth cell, so that each step and each fault has some; and all of the start, which is undone
/// or not, depending on what reached the device.
#[test]
fn a_part_of_the_table_that_has_every_step_and_every_fault() {
    let part = cells(|step, fault| {
        (step + 3 * fault) % 8 == 0 || fault_is_rare(fault) || STEPS[step].name == "start"
    });
    for (number, step) in STEPS.iter().enumerate() {
        assert!(part.iter().any(|(s, _)| *s == number), "{}", step.name);
    }
    for fault in Fault::ALL {
        let is_here = part.iter().any(|(_, f)| f == fault);
        assert!(is_here || !cfg!(target_os = "linux"), "{fault:?}");
    }
    compare_with_page(&seen(&part));
}

/// Whether a fault has so few cells that all are walked.
fn fault_is_rare(fault: usize) -> bool {
    let fault = Fault::ALL[fault];
    matches!(fault, Fault::PullCut | Fault::PullShort | Fault::PullFlip)
}

#[test]
#[ignore = "takes long: all cells, or HEAPTAP_FAULTS=STEP:FAULT; UPDATE_DOCS=1 writes the page"]
fn every_cell() {
    let wanted = std::env::var("HEAPTAP_FAULTS").unwrap_or_else(|_| "all".to_owned());
    let (step, fault) = wanted.split_once(':').unwrap_or(("all", "all"));
    let is = |wanted: &str, name: &str| wanted == "all" || wanted.split(',').any(|w| w == name);
    let part = cells(|s, f| is(step, STEPS[s].name) && is(fault, Fault::ALL[f].names().0));
    let seen = seen(&part);
    if std::env::var_os("UPDATE_DOCS").is_some() && wanted == "all" {
        let of = |(fault, step, seen): (Fault, usize, cell::Seen)| ((fault.names().0, step), seen);
        page::write(&seen.into_iter().map(of).collect());
        return;
    }
    compare_with_page(&seen);
}

/// Walks one cell by its names.
fn cell_of(step: &str, fault: Fault) -> cell::Seen {
    let step = STEPS.iter().find(|s| s.name == step).expect("a step");
    cell::walk(step, fault).unwrap_or_else(|wrong| panic!("{wrong}"))
}

#[test]
fn a_journal_that_becomes_unwritable_leaves_a_recording_that_a_named_command_fetches() {
    for (step, fault) in [
        ("start", Fault::HostFull),
        ("recording", Fault::HostFull),
        ("recording", Fault::NoState),
        ("symbolize", Fault::NoState),
    ] {
        if cfg!(target_os = "linux") || fault != Fault::HostFull {
            let seen = cell_of(step, fault);
            assert_eq!(seen.exit, "11", "{seen:?}");
            assert!(seen.next.starts_with("heaptap stop ID"), "{seen:?}");
        }
    }
}

#[test]
fn a_journal_that_cannot_be_removed_is_a_warning_with_the_command_that_removes_it() {
    let seen = cell_of("remove", Fault::NoState);
    assert_eq!(
        (&*seen.exit, &*seen.next),
        ("0", "heaptap stop ID"),
        "{seen:?}"
    );
}

#[test]
fn a_trace_that_a_pulled_cable_keeps_on_the_device_is_removed_by_the_named_command() {
    for step in ["symbolize", "remove"] {
        let seen = cell_of(step, Fault::CableOut);
        assert_eq!(
            (&*seen.exit, &*seen.next),
            ("0", "heaptap stop ID"),
            "{seen:?}"
        );
    }
}

#[test]
fn a_java_heap_that_stays_on_the_device_is_reported_with_the_command_that_fetches_it() {
    let seen = cell_of("java-pull", Fault::Refused);
    assert_eq!(
        (&*seen.exit, &*seen.next),
        ("0", "heaptap stop ID"),
        "{seen:?}"
    );
}

#[test]
fn a_java_heap_whose_directory_is_gone_is_collected_with_its_recording() {
    let seen = cell_of("java", Fault::NoOutput);
    assert_eq!(seen.next, "heaptap stop ID -o DIR", "{seen:?}");
}
