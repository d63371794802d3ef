//! Converts log lines into entries: collections by the device's own clock, with those that heaptap
//! caused marked. A collection in an open window waits until its origin is known.

use super::clock::Clock;
use super::own_collections::{OurWindows, Whose};
use android_memory::gc::{self, Event};
use heaptap_model::timeline::{Entry, Observation, Source};

/// Maximum time that a collection waits for its origin, ns: no query that causes one takes longer.
const UNDECIDED_NS: u64 = 120_000_000_000;
/// Maximum number of waiting collections.
const HELD: usize = 256;

/// Converter of log lines into entries.
#[derive(Debug)]
pub(super) struct Collections {
    windows: OurWindows,
    held: Vec<Entry>,
}

impl Collections {
    pub(super) fn new(windows: OurWindows) -> Collections {
        Collections {
            windows,
            held: Vec::new(),
        }
    }

    /// Returns the entry of a line, if it is about a collection of `pid` with a known origin.
    pub(super) fn line(&mut self, pid: u32, text: &str, clock: &Clock) -> Option<Entry> {
        let line = gc::parse_line(text).filter(|line| line.pid.is_none_or(|of| of == pid))?;
        let Some(Event::Collection(logged)) = gc::parse_event(&line) else {
            return None;
        };
        let mut collection = logged.collection;
        collection.source = Some(Source::Log);
        let was_asked_for = matches!(collection.reason.as_str(), "Explicit" | "GC_EXPLICIT");
        let entry = Entry {
            boot_ns: clock.boot_ns_of(line.time?)?,
            pid,
            cost: None,
            seen: Observation::Collection(collection),
        };
        match was_asked_for {
            true => self.decide(entry),
            false => Some(entry),
        }
    }

    fn decide(&mut self, entry: Entry) -> Option<Entry> {
        match self.windows.whose(entry.pid, entry.boot_ns) {
            Whose::Ours => Some(ours(entry)),
            Whose::Undecided if self.held.len() < HELD => {
                self.held.push(entry);
                None
            }
            Whose::Theirs | Whose::Undecided => Some(entry),
        }
    }

    /// Returns collections whose origin is known by now; all of them if `now_ns` is `None`.
    pub(super) fn settle(&mut self, now_ns: Option<u64>) -> Vec<Entry> {
        let mut settled = Vec::new();
        for entry in std::mem::take(&mut self.held) {
            let late = now_ns.is_none_or(|now| now.saturating_sub(entry.boot_ns) > UNDECIDED_NS);
            match self.windows.whose(entry.pid, entry.boot_ns) {
                Whose::Ours => settled.push(ours(entry)),
                Whose::Undecided if !late => self.held.push(entry),
                Whose::Theirs | Whose::Undecided => settled.push(entry),
            }
        }
        settled
    }
}

fn ours(mut entry: Entry) -> Entry {
    if let Observation::Collection(collection) = &mut entry.seen {
        collection.ours = true;
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "1700000000.500  4321  4330 I e.myapplicatio: Explicit concurrent copying \
        GC freed 1000(48KB) AllocSpace objects, 0(0B) LOS objects, 49% free, 5MB/11MB, paused \
        52us,30us total 20.1ms";

    fn clock() -> Clock {
        let mut clock = Clock::default();
        clock.round(0, 1_699_999_000_000_000_000);
        clock
    }

    #[test]
    fn a_collection_waits_for_its_window_and_is_ours_then() {
        let windows = OurWindows::default();
        let mut collections = Collections::new(windows.clone());
        let entry = collections.line(4321, LINE, &clock()).unwrap();
        assert_eq!(entry.boot_ns, 1_000_500_000_000);
        let Observation::Collection(seen) = &entry.seen else {
            panic!("{entry:?}");
        };
        assert_eq!((seen.live, seen.ours), (Some(5 << 20), false));
        assert_eq!(
            collections.line(1, LINE, &clock()),
            None,
            "of another process"
        );
        assert_eq!(collections.line(4321, "no line", &clock()), None);

        let open = windows.open(4321, 1);
        assert_eq!(collections.line(4321, LINE, &clock()), None);
        assert!(collections.settle(Some(0)).is_empty());
        open.close(1_000_000_000_000, 1_001_000_000_000);
        let settled = collections.settle(Some(0));
        assert!(matches!(&settled[0].seen, Observation::Collection(c) if c.ours));
        assert!(collections.settle(None).is_empty());
    }

    #[test]
    fn one_that_nobody_decides_is_the_apps_own() {
        let windows = OurWindows::default();
        let mut collections = Collections::new(windows.clone());
        let open = windows.open(4321, 1);
        assert_eq!(collections.line(4321, LINE, &clock()), None);
        let settled = collections.settle(None);
        assert!(matches!(&settled[0].seen, Observation::Collection(c) if !c.ours));
        drop(open);
    }
}
