//! Labels and dumps: which dump a snapshot's label belongs to.

use std::collections::BTreeMap;

use heaptap_capture::session::Label;

/// The facts about a dump that binding needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DumpMoment<'a> {
    pub pid: u64,
    pub heap: &'a str,
    /// Time of the dump, BOOTTIME in ns; `None` if no clock is known.
    pub made_ns: Option<u64>,
}

/// A label and the dumps it is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    pub label: Label,
    /// Index of the dump and the time from the request to it in ns; at most one for each process
    /// and heap.
    pub dumps: Vec<(usize, u64)>,
}

/// Binds each label, per process and heap, to the first dump that was not made before the request
/// was sent. Several labels can share a dump; other dumps remain without a label.
pub fn bind(labels: &[Label], dumps: &[DumpMoment<'_>]) -> Vec<Binding> {
    let mut series: BTreeMap<(u64, &str), Vec<(u64, usize)>> = BTreeMap::new();
    for (index, dump) in dumps.iter().enumerate() {
        if let Some(made) = dump.made_ns {
            let of_heap = series.entry((dump.pid, dump.heap)).or_default();
            of_heap.push((made, index));
        }
    }
    for of_heap in series.values_mut() {
        of_heap.sort_unstable();
    }
    labels
        .iter()
        .map(|label| {
            let first_after = |of_heap: &Vec<(u64, usize)>| {
                let at = of_heap.partition_point(|(made, _)| !label.may_be_of(*made));
                let lag = |made: u64| made.saturating_sub(label.boot_ns);
                of_heap.get(at).map(|(made, index)| (*index, lag(*made)))
            };
            let mut bound: Vec<(usize, u64)> = series.values().filter_map(first_after).collect();
            bound.sort_unstable();
            Binding {
                label: label.clone(),
                dumps: bound,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(label: &str, boot_ns: u64) -> Label {
        Label {
            label: label.to_owned(),
            boot_ns,
            sent_ns: None,
        }
    }

    fn dump(pid: u64, heap: &str, made_ns: u64) -> DumpMoment<'_> {
        DumpMoment {
            pid,
            heap,
            made_ns: Some(made_ns),
        }
    }

    #[test]
    fn a_label_goes_to_the_first_dump_after_it_in_each_heap() {
        let dumps = [
            dump(1, "libc.malloc", 100),
            dump(1, "libc.malloc", 200),
            dump(1, "art", 210),
            dump(2, "libc.malloc", 150),
            dump(2, "libc.malloc", 300),
            DumpMoment {
                pid: 3,
                heap: "libc.malloc",
                made_ns: None,
            },
        ];
        let bound = bind(
            &[label("a", 101), label("b", 200), label("late", 301)],
            &dumps,
        );
        assert_eq!(bound[0].dumps, [(1, 99), (2, 109), (3, 49)]);
        assert_eq!(bound[1].dumps, [(1, 0), (2, 10), (4, 100)]);
        assert_eq!(bound[2].dumps, []);
    }

    #[test]
    fn a_dump_is_never_that_of_a_request_sent_later() {
        // Requested at 100; a periodic dump ended at 119, while the request was in transit; the
        // device clock read 120 right before the signal.
        let dumps = [dump(1, "h", 119), dump(1, "h", 120), dump(1, "h", 300)];
        let sent = Label {
            sent_ns: Some(120),
            ..label("x", 100)
        };
        assert_eq!(
            bind(std::slice::from_ref(&sent), &dumps)[0].dumps,
            [(1, 20)]
        );
        // Without a sending time, the time of the request is the lower bound.
        assert_eq!(bind(&[label("x", 100)], &dumps)[0].dumps, [(0, 19)]);
        // The dump for a request is as late as the reading at least, and taken then.
        assert_eq!(bind(&[sent], &dumps[1..])[0].dumps, [(0, 20)]);
    }

    #[test]
    fn the_order_of_dumps_in_the_trace_does_not_matter() {
        let dumps = [dump(1, "h", 300), dump(1, "h", 100), dump(1, "h", 200)];
        assert_eq!(bind(&[label("x", 150)], &dumps)[0].dumps, [(2, 50)]);
    }
}
