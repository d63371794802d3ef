//! `ProcessStats` (9): the kernel's counts for each process. A packet can omit unchanged figures,
//! so figures are carried forward.

use std::collections::HashMap;

use super::sink::Sink;
use crate::wire::{Fields, WireError, each_message};
use heaptap_model::timeline::{Observation, Resident, Source};

/// Memory of a process's state.
const PROCESS: usize = 400;

/// The last figures of each process, bytes.
#[derive(Debug, Default)]
pub(super) struct ProcessStats {
    last: HashMap<u32, Figures>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Figures {
    rss: Option<u64>,
    anon: Option<u64>,
    file: Option<u64>,
    shmem: Option<u64>,
    swap: Option<u64>,
    peak: Option<u64>,
    oom_score_adj: Option<i32>,
}

impl ProcessStats {
    /// Reads a packet; figures before damage are used.
    pub(super) fn read(
        &mut self,
        message: &[u8],
        now: u64,
        sink: &mut Sink,
    ) -> Result<(), WireError> {
        each_message(message, 1, |process| self.process(process, now, sink))
    }

    fn process(&mut self, message: &[u8], now: u64, sink: &mut Sink) -> Result<(), WireError> {
        let mut pid = 0;
        let mut new = Figures::default();
        let mut fields = Fields::new(message);
        while let Some((number, value)) = fields.next()? {
            let field = match number {
                1 => {
                    // An i32.
                    pid = value.number() as u32;
                    continue;
                }
                3 => &mut new.rss,
                4 => &mut new.anon,
                5 => &mut new.file,
                6 => &mut new.shmem,
                7 => &mut new.swap,
                9 => &mut new.peak,
                10 => {
                    let score = value.number() as i64;
                    new.oom_score_adj = i32::try_from(score).ok();
                    continue;
                }
                _ => continue,
            };
            *field = Some(value.number().saturating_mul(1024));
        }
        if !sink.wants(pid) || new.is_empty() {
            return Ok(());
        }
        if !self.last.contains_key(&pid) && !sink.has_room(PROCESS) {
            return Ok(());
        }
        let known = self.last.entry(pid).or_default();
        known.take(&new);
        // Packets of older devices can omit the sum; the parts are complete then.
        let parts = [known.anon, known.file, known.shmem];
        let sum = || parts.iter().flatten().copied().reduce(u64::saturating_add);
        let Some(rss) = known.rss.or_else(sum) else {
            return Ok(());
        };
        let resident = Resident {
            source: Source::ProcessStats,
            rss,
            anon: known.anon,
            file: known.file,
            shmem: known.shmem,
            swap: known.swap,
            peak: known.peak,
            oom_score_adj: known.oom_score_adj,
        };
        sink.see(now, pid, Observation::Resident(resident));
        Ok(())
    }
}

impl Figures {
    fn is_empty(&self) -> bool {
        let sizes = [
            self.rss, self.anon, self.file, self.shmem, self.swap, self.peak,
        ];
        sizes.iter().all(Option::is_none) && self.oom_score_adj.is_none()
    }

    fn take(&mut self, new: &Figures) {
        for (mine, theirs) in [
            (&mut self.rss, new.rss),
            (&mut self.anon, new.anon),
            (&mut self.file, new.file),
            (&mut self.shmem, new.shmem),
            (&mut self.swap, new.swap),
            (&mut self.peak, new.peak),
        ] {
            *mine = theirs.or(*mine);
        }
        self.oom_score_adj = new.oom_score_adj.or(self.oom_score_adj);
    }
}
