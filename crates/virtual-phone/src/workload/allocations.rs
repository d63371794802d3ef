//! The allocations of a process over time: pure functions of seed and time.

use std::collections::BTreeMap;

use super::code::Builder;
use super::site::{FrameDef, HeapDef, Life, MappingDef, Phase, Site};
use crate::clock::{BootNs, MILLI};
use crate::numbers::{hash, mix};
use crate::packages::{APP, Package};
use crate::process::{Process, Role};
use crate::spec::{AppState, PhoneSpec};

/// Interval of allocations in nanoseconds.
pub(crate) const TICK: u64 = 10 * MILLI;

/// All allocations of a process.
#[derive(Debug, Clone)]
pub(crate) struct Workload {
    pub(crate) mappings: Vec<MappingDef>,
    pub(crate) frames: Vec<FrameDef>,
    pub(crate) heaps: Vec<HeapDef>,
    seed: u64,
    /// Time after the start of the process in ms at which leaks end.
    leaks_until_ms: u64,
}

/// Size in bytes at which an app no longer grows: all apps, each as large, fit into the phone.
const MAX_LEAKED: u64 = 160 << 20;

/// The same for the app that is made to leak.
const MAX_LEAKED_BY_APP: u64 = 1 << 30;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Allocation {
    pub(crate) site: usize,
    pub(crate) size: u64,
    /// Tick at which it is freed.
    pub(crate) freed_at: Option<u64>,
}

impl Workload {
    /// Builds the workload of `process` of a package on a phone that appeared at `appeared`.
    pub(crate) fn build(
        spec: &PhoneSpec,
        package: Option<Package>,
        process: &Process,
        appeared: BootNs,
    ) -> Workload {
        let name = process.name();
        let heavy = spec.app == AppState::Heavy && name == APP;
        let percent = package.as_ref().map_or(100, |p| p.memory_percent);
        let mut builder = Builder::new(spec, package, process);
        let mut heaps = match &process.role {
            Role::App { .. } if heavy => builder.heavy(spec.sites as usize),
            Role::App { .. } if name.contains(':') => builder.heaps("service"),
            Role::App { .. } => builder.heaps("app"),
            _ => builder.heaps("daemon"),
        };
        // The only app that keeps its activities.
        if name == APP
            && let Some(malloc) = heaps.first_mut()
        {
            malloc.sites.extend(builder.activity());
        }
        for site in heaps.iter_mut().flat_map(|heap| &mut heap.sites) {
            let (low, high) = site.size;
            site.size = (low * percent / 100, high * percent / 100);
        }
        let most = if name == APP {
            MAX_LEAKED_BY_APP
        } else {
            MAX_LEAKED
        };
        let leaks = heaps.iter().flat_map(|heap| &heap.sites);
        let leaks = leaks.filter(|site| site.leaks_always());
        let rate = leaks.map(|site| site.per_second * (site.size.0 + site.size.1) as f64 / 2.0);
        // A process does not run from its start until the phone appears.
        let paused = appeared.saturating_sub(process.started) / MILLI;
        let leaks_until_ms = most as f64 / rate.sum::<f64>() * 1_000.0;
        let leaks_until_ms = (leaks_until_ms as u64).saturating_add(paused);
        Workload {
            leaks_until_ms,
            mappings: builder.mappings,
            frames: builder.frames,
            heaps,
            seed: mix(&[spec.seed, hash(name)]),
        }
    }

    /// Returns the allocations of one heap during a tick of a process that started at `started`.
    pub(crate) fn allocations(
        &self,
        heap: usize,
        tick: u64,
        started: BootNs,
        out: &mut Vec<Allocation>,
    ) {
        out.clear();
        self.in_turn(heap, tick, started, out);
        let HeapDef { sites, in_turn, .. } = &self.heaps[heap];
        let turns = in_turn.map_or(0, |(turns, _)| turns);
        for (index, site) in sites.iter().enumerate().skip(turns) {
            self.allocations_at(heap, (index, site), tick, started, out);
        }
    }

    /// Returns the allocations during a tick of the sites that take turns.
    pub(crate) fn in_turn(
        &self,
        heap: usize,
        tick: u64,
        started: BootNs,
        out: &mut Vec<Allocation>,
    ) {
        let HeapDef { sites, in_turn, .. } = &self.heaps[heap];
        let since = (tick * TICK).saturating_sub(started) / TICK;
        if let Some((turns, per_tick)) = *in_turn {
            let from = since as usize * per_tick % turns;
            let now = sites.iter().enumerate().take(turns).skip(from);
            for (index, site) in now.take(per_tick) {
                self.allocate(heap, index, site, tick, 1, out);
            }
        }
    }

    /// Returns the allocations during a tick of one site, by its index in its heap, unless the site
    /// takes turns.
    pub(crate) fn allocations_at(
        &self,
        heap: usize,
        (index, site): (usize, &Site),
        tick: u64,
        started: BootNs,
        out: &mut Vec<Allocation>,
    ) {
        let since = (tick * TICK).saturating_sub(started) / TICK;
        let ms = TICK / MILLI;
        let count = match site.phase {
            Phase::Activity(_) => 0,
            Phase::First(limit) if since * ms >= limit => 0,
            Phase::Always if since * ms >= self.leaks_until_ms && site.leaks_always() => 0,
            Phase::Burst { period, on } if since * ms % period >= on => 0,
            _ => {
                let rate = site.per_second * ms as f64 / 1_000.0;
                ((since + 1) as f64 * rate) as u64 - (since as f64 * rate) as u64
            }
        };
        if count > 0 {
            self.allocate(heap, index, site, tick, count, out);
        }
    }

    /// Returns the allocations of one heap for each activity that replaces another one: indexes of
    /// the sites, number of blocks, and size of each.
    pub(crate) fn of_an_activity(
        &self,
        heap: usize,
    ) -> impl Iterator<Item = (usize, u64, u64)> + '_ {
        let sites = self.heaps[heap].sites.iter().enumerate();
        sites.filter_map(|(index, site)| match site.phase {
            Phase::Activity(blocks) => Some((index, blocks, site.size.0)),
            _ => None,
        })
    }

    fn allocate(
        &self,
        heap: usize,
        index: usize,
        site: &Site,
        tick: u64,
        count: u64,
        out: &mut Vec<Allocation>,
    ) {
        let seed = mix(&[self.seed, heap as u64, index as u64, tick]);
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..count {
            let size = random.u64(site.size.0..=site.size.1);
            let freed_at = match site.life {
                Life::Forever => None,
                Life::Millis(from, to) => Some(tick + 1 + random.u64(from..=to) * MILLI / TICK),
            };
            out.push(Allocation {
                site: index,
                size,
                freed_at,
            });
        }
    }
}

/// Pending frees by tick.
#[derive(Debug, Default)]
pub(crate) struct Due(BTreeMap<u64, Vec<(usize, u64, u64)>>);

impl Due {
    /// Adds the free of an allocation: its site, true and sampled size.
    pub(crate) fn add(&mut self, tick: u64, site: usize, size: u64, sampled: u64) {
        self.0.entry(tick).or_default().push((site, size, sampled));
    }

    /// Takes the frees up to and including `tick`.
    pub(crate) fn take(&mut self, tick: u64) -> Vec<(usize, u64, u64)> {
        let mut all = Vec::new();
        while let Some(entry) = self.0.first_entry().filter(|e| *e.key() <= tick) {
            all.extend(entry.remove());
        }
        all
    }
}
