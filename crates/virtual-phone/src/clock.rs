//! The phone's clocks. Time on the phone runs `speed` times as fast as the host's; the boot
//! clock, the monotonic clock and the wall clock differ as they do on a phone that slept.
//!
//! The phone is a part of the host: if the host stops (a paused virtual machine, a process without
//! CPU time), the phone's clocks stop, too. Otherwise a phone at ten times the host's speed would
//! skip 20 s in a pause of 2 s, and a fault in its third second would strike before a recording
//! could begin.

use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::events::lock;

/// Nanoseconds since the phone booted, sleep included (CLOCK_BOOTTIME).
pub(crate) type BootNs = u64;

/// Nanoseconds in a second.
pub(crate) const SECOND: u64 = 1_000_000_000;
/// Nanoseconds in a millisecond.
pub(crate) const MILLI: u64 = 1_000_000;

/// Uptime of the phone when it appears.
const UPTIME_AT_START: u64 = 11_842 * SECOND + 337_101_442;
/// The part of it in sleep, by which the monotonic clock lags.
const SLEPT: u64 = 1_907 * SECOND + 21_000_318;
/// Tick of the coarse clocks at 250 Hz.
const COARSE_TICK: u64 = 4 * MILLI;

/// Interval for counting the host's time.
const COUNT_INTERVAL: Duration = Duration::from_millis(10);
/// Maximum time between two counts; the host was paused for the rest of a longer gap.
const MAX_GAP: Duration = Duration::from_millis(50);

/// The host's time without its pauses, counted by a separate thread.
struct RunningTime {
    counted: Mutex<Counted>,
}

struct Counted {
    total: Duration,
    last: Instant,
}

impl Counted {
    /// Returns the counted time until `now`.
    fn until(&self, now: Instant) -> Duration {
        self.total + now.saturating_duration_since(self.last).min(MAX_GAP)
    }

    fn count(&mut self, now: Instant) {
        self.total = self.until(now);
        self.last = now;
    }
}

impl RunningTime {
    /// Returns the count that all phones share. It goes on until the last one drops it.
    fn shared() -> Arc<RunningTime> {
        static SHARED: Mutex<Weak<RunningTime>> = Mutex::new(Weak::new());
        let mut shared = lock(&SHARED);
        shared.upgrade().unwrap_or_else(|| {
            let running = RunningTime::start();
            *shared = Arc::downgrade(&running);
            running
        })
    }

    /// Counts from now on, until the value is dropped.
    fn start() -> Arc<RunningTime> {
        let running = Arc::new(RunningTime {
            counted: Mutex::new(Counted {
                total: Duration::ZERO,
                last: Instant::now(),
            }),
        });
        let counting = Arc::downgrade(&running);
        let thread = move || {
            while let Some(running) = counting.upgrade() {
                lock(&running.counted).count(Instant::now());
                drop(running);
                std::thread::sleep(COUNT_INTERVAL);
            }
        };
        std::thread::Builder::new()
            .name("virtual-phone-clock".to_owned())
            .spawn(thread)
            .expect("a thread for the phone's clock");
        running
    }

    fn now(&self) -> Duration {
        lock(&self.counted).until(Instant::now())
    }
}

struct Base {
    /// Whether the clocks stand still.
    is_held: bool,
    host: Duration,
    boot: u64,
    real: u64,
    slept: u64,
}

/// All clocks of one phone.
pub(crate) struct Clock {
    speed: f64,
    running: Arc<RunningTime>,
    base: Mutex<Base>,
}

impl Clock {
    pub(crate) fn new(speed: f64) -> Self {
        let real = host_time();
        let running = RunningTime::shared();
        Clock {
            speed,
            base: Mutex::new(Base {
                is_held: false,
                host: running.now(),
                boot: UPTIME_AT_START,
                real,
                slept: SLEPT,
            }),
            running,
        }
    }

    /// Stops the clocks until a client first needs the phone: the memory of apps that have run for
    /// hours takes seconds to compute.
    pub(crate) fn hold(&self) {
        lock(&self.base).is_held = true;
    }

    /// Lets held clocks run.
    pub(crate) fn release(&self) {
        let mut base = lock(&self.base);
        if base.is_held {
            base.is_held = false;
            base.host = self.running.now();
            base.real = host_time();
        }
    }

    fn elapsed(&self, base: &Base) -> u64 {
        if base.is_held {
            return 0;
        }
        let ran = self.running.now().saturating_sub(base.host);
        (ran.as_nanos() as f64 * self.speed) as u64
    }

    /// CLOCK_BOOTTIME.
    pub(crate) fn boot(&self) -> BootNs {
        let base = lock(&self.base);
        base.boot + self.elapsed(&base)
    }

    /// Returns the boot clock when the phone appeared or last rebooted.
    pub(crate) fn appeared(&self) -> BootNs {
        lock(&self.base).boot
    }

    /// CLOCK_REALTIME, nanoseconds since the epoch.
    pub(crate) fn real(&self) -> u64 {
        let base = lock(&self.base);
        base.real + self.elapsed(&base)
    }

    /// Returns the current time on both clocks.
    pub(crate) fn now(&self) -> Now {
        Now {
            boot: self.boot(),
            real: self.real(),
        }
    }

    /// Returns all clocks at a time of the boot clock.
    pub(crate) fn at(&self, boot: BootNs) -> ClockValues {
        let base = lock(&self.base);
        let monotonic = boot.saturating_sub(base.slept);
        let real = (base.real + boot).saturating_sub(base.boot);
        ClockValues {
            boot,
            monotonic,
            monotonic_coarse: monotonic / COARSE_TICK * COARSE_TICK,
            monotonic_raw: monotonic + monotonic / 41_000,
            real,
            real_coarse: real / COARSE_TICK * COARSE_TICK,
        }
    }

    /// Returns the host's time until the phone's boot clock shows `boot`.
    pub(crate) fn until(&self, boot: BootNs) -> Duration {
        let ahead = boot.saturating_sub(self.boot());
        Duration::from_nanos((ahead as f64 / self.speed).ceil() as u64)
    }

    /// Moves the wall clock, as a phone does when it gets the network's time.
    pub(crate) fn jump(&self, by_ns: i64) {
        let mut base = lock(&self.base);
        base.real = base.real.saturating_add_signed(by_ns);
    }

    /// Restarts the boot clock.
    pub(crate) fn reboot(&self) {
        let mut base = lock(&self.base);
        base.real += self.elapsed(&base) + 25 * SECOND;
        base.host = self.running.now();
        base.boot = 25 * SECOND;
        base.slept = 0;
    }
}

/// The host's wall clock, nanoseconds since the epoch.
fn host_time() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_nanos() as u64)
}

/// A time on both clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    pub(crate) boot: BootNs,
    pub(crate) real: u64,
}

/// A time on every clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClockValues {
    pub(crate) boot: u64,
    pub(crate) monotonic: u64,
    pub(crate) monotonic_coarse: u64,
    pub(crate) monotonic_raw: u64,
    pub(crate) real: u64,
    pub(crate) real_coarse: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_of_the_host_is_not_counted() {
        let start = Instant::now();
        let mut counted = Counted {
            total: Duration::ZERO,
            last: start,
        };
        let at = |ms| start + Duration::from_millis(ms);
        counted.count(at(10));
        assert_eq!(counted.until(at(25)), Duration::from_millis(25));
        // Paused from 25 to 2025 ms: time continues from there and never decreases.
        assert_eq!(counted.until(at(2_025)), Duration::from_millis(60));
        counted.count(at(2_025));
        assert_eq!(counted.until(at(2_026)), Duration::from_millis(61));
    }

    #[test]
    fn a_held_clock_stands_still_until_it_is_released() {
        let clock = Clock::new(1_000.0);
        clock.hold();
        let before = clock.boot();
        std::thread::sleep(Duration::from_millis(30));
        assert_eq!(clock.boot(), before);
        clock.release();
        while clock.boot() < before + SECOND {
            std::thread::sleep(clock.until(before + SECOND));
        }
    }

    #[test]
    fn a_phone_at_a_hundred_times_the_speed_is_a_hundred_times_as_old() {
        let (clock, host) = (Clock::new(100.0), Instant::now());
        while clock.boot() < clock.appeared() + 30 * SECOND {
            std::thread::sleep(clock.until(clock.appeared() + 30 * SECOND));
        }
        assert!(host.elapsed() >= Duration::from_millis(300));
    }
}
