//! CPU time and executions so far, printed from time to time: a run that is killed has its figures in
//! its log. libFuzzer prints only wall time.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// Longest time between two lines. Until then the time of the run doubles from line to line, so that
/// also a short run that is killed has figures.
const MAX_INTERVAL_MS: u64 = 5000;
const MIN_INTERVAL_MS: u64 = 100;

static START: OnceLock<Instant> = OnceLock::new();
static EXECUTIONS: AtomicU64 = AtomicU64::new(0);
/// Time of the next line since the start.
static NEXT_MS: AtomicU64 = AtomicU64::new(0);

/// Counts one execution.
#[allow(clippy::print_stderr)]
pub fn count() {
    let executions = EXECUTIONS.fetch_add(1, Relaxed) + 1;
    let elapsed = START.get_or_init(Instant::now).elapsed().as_millis() as u64;
    if elapsed >= NEXT_MS.load(Relaxed) {
        let interval = elapsed.clamp(MIN_INTERVAL_MS, MAX_INTERVAL_MS);
        NEXT_MS.store(elapsed + interval, Relaxed);
        let cpu = cpu_ticks().unwrap_or(elapsed / 10) as f64 / 100.0;
        eprintln!("heaptap-fuzz: cpu {cpu} executions {executions}");
    }
}

/// CPU time of this process on Linux: fields 14 and 15 of its `stat`, hundredths of a second.
fn cpu_ticks() -> Option<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some(ticks()? + ticks()?)
}
