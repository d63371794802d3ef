//! Reasons for which heapprofd cannot follow a stack to its end, and their remedies. heapprofd stores
//! the reason as the outermost frame, such as `ERROR MEMORY_INVALID`.

use std::collections::BTreeMap;

use heaptap_model::profile::{HeapDump, Tables};

const PREFIX: &str = "ERROR ";

const TABLES: &str = "libraries need unwind tables (.eh_frame, .debug_frame or .gnu_debugdata); do \
    not strip them";

/// Returns the code of an error frame, such as `MEMORY_INVALID`.
pub fn code(function: &str) -> Option<&str> {
    function.strip_prefix(PREFIX)
}

/// Returns why the callers are missing.
pub fn reason(code: &str) -> &'static str {
    match code {
        "MEMORY_INVALID" => "the memory of the stack cannot be read",
        "UNWIND_INFO" => "the library does not have unwind information for the address",
        "UNSUPPORTED" => "the unwind information of the library is not supported",
        "INVALID_MAP" => "the address is outside of all mappings",
        "MAX_FRAME_EXCEEDED" => "the stack has too many frames",
        "REPEATED_FRAME" => "the stack repeats a frame",
        "INVALID_ELF" => "the library cannot be read",
        _ => "unwinding failed",
    }
}

fn remedy(code: &str) -> &'static str {
    match code {
        "MEMORY_INVALID" => {
            "the outermost function of these stacks has wrong unwind tables, or runs on a stack of \
             its own, such as a coroutine"
        }
        "INVALID_MAP" | "INVALID_ELF" => {
            "the callers are not in the code of a library: they are generated code, in an unloaded \
             library, or on a stack of their own, such as a signal handler's. Unwind tables do not \
             help."
        }
        "MAX_FRAME_EXCEEDED" => "only the outermost callers of very deep stacks are missing",
        "REPEATED_FRAME" => {
            "the outermost function of these stacks has wrong unwind tables, as in assembly without \
             .cfi directives"
        }
        _ => TABLES,
    }
}

/// Returns the reason of most failures in a dump with the words before it, and its remedy.
pub fn most_frequent(dump: &HeapDump, tables: &Tables) -> (String, &'static str) {
    let mut failures: BTreeMap<&str, i64> = BTreeMap::new();
    for (callsite, figures) in &dump.samples {
        let outermost = tables.callsite(*callsite).last();
        let name = outermost.map(|frame| tables.string(tables.frame(frame).name));
        if let Some(code) = name.and_then(code) {
            let count = failures.entry(code).or_default();
            // At the maximum, callsites without unreleased memory have no counts.
            *count = count.saturating_add(figures.alloc_objects.max(1));
        }
    }
    let most = failures.iter().max_by_key(|(_, count)| **count);
    most.map_or((String::new(), TABLES), |(code, _)| {
        let words = match failures.len() {
            1 => " because",
            _ => ", mostly because",
        };
        (format!("{words} {}", reason(code)), remedy(code))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_model::profile::{Figures, Frame, StringId};

    #[test]
    fn the_most_frequent_failure_decides_the_remedy() {
        let mut tables = Tables::default();
        let mut callsite = |names: &[&str]| {
            let frames: Vec<u32> = names
                .iter()
                .map(|name| {
                    let name = tables.intern_str(name);
                    let frame = Frame {
                        mapping: None,
                        rel_pc: 0,
                        name,
                        file: StringId::default(),
                        line: 0,
                    };
                    tables.intern_frame(frame).0
                })
                .collect();
            tables.intern_callsite(&frames)
        };
        let stacks = [
            (callsite(&["malloc", "handler", "ERROR INVALID_ELF"]), 60),
            (callsite(&["malloc", "stripped", "ERROR UNWIND_INFO"]), 3),
            (callsite(&["malloc", "main"]), 500),
        ];
        let dump = |stacks: &[(_, i64)]| HeapDump {
            samples: stacks
                .iter()
                .map(|(callsite, alloc_objects)| {
                    let figures = Figures {
                        alloc_objects: *alloc_objects,
                        ..Figures::default()
                    };
                    (*callsite, figures)
                })
                .collect(),
            ..HeapDump::default()
        };
        let (why, help) = most_frequent(&dump(&stacks), &tables);
        assert_eq!(why, ", mostly because the library cannot be read");
        assert!(help.contains("signal handler"), "{help}");
        let (why, help) = most_frequent(&dump(&stacks[1..]), &tables);
        assert!(
            why.starts_with(" because the library does not have"),
            "{why}"
        );
        assert_eq!(help, TABLES);
        // Counters without samples.
        let (why, help) = most_frequent(&HeapDump::default(), &tables);
        assert_eq!((why.as_str(), help), ("", TABLES));
    }
}
