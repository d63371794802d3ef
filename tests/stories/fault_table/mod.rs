//! The table of faults: each fault at each step of a recording. In every cell heaptap says what
//! happened, and the command that it names goes on: nothing is lost.
#![expect(clippy::print_stdout, reason = "cells for people")]

mod cell;
mod faults;
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
    match fault {
        Fault::PullCut | Fault::PullShort | Fault::PullFlip => pulls,
        Fault::Nonsense => !["server", "device", "recording", "size", "pull", "java-pull", "verify", "symbolize"].contains(&step.name),
        Fault::Refused | Fault::Garbled => step.name != "recording",
        _ => true,
    }
}

#[test]
#[ignore = "takes long: all cells, or HEAPTAP_FAULTS=STEP:FAULT"]
fn every_cell() {
    let wanted = std::env::var("HEAPTAP_FAULTS").unwrap_or_else(|_| "all".to_owned());
    let (step, fault) = wanted.split_once(':').unwrap_or(("all", "all"));
    let is = |wanted: &str, name: &str| wanted == "all" || wanted.split(',').any(|w| w == name);
    let cells: Vec<(&Step, Fault)> = Fault::ALL
        .iter()
        .flat_map(|fault| STEPS.iter().map(move |step| (step, *fault)))
        .filter(|(s, f)| is(step, s.name) && is(fault, f.names().0) && applies(s, *f))
        .collect();
    let seen = walk(&cells);
    let wrong = seen.iter().filter(|seen| seen.is_err()).count();
    assert_eq!(wrong, 0, "of {} cells", cells.len());
}
