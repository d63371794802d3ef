//! The phone's clocks. Time on the phone runs `speed` times as fast as the host's; the boot
//! clock, the monotonic clock and the wall clock differ as they do on a phone that slept.

use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::events::lock;

/// Nanoseconds since the phone booted, sleep included (CLOCK_BOOTTIME).
pub(crate) type BootNs = u64;

/// Nanoseconds in a second.
pub(crate) const SECOND: u64 = 1_000_000_000;
/// Nanoseconds in a millisecond.
pub(crate) const MILLI: u64 = 1_000_000;

/// How long the phone has been up when it appears.
const UPTIME_AT_START: u64 = 11_842 * SECOND + 337_101_442;
/// The part of it that the phone spent asleep: the monotonic clock lags by this.
const SLEPT: u64 = 1_907 * SECOND + 21_000_318;
/// Tick of the coarse clocks at 250 Hz.
const COARSE_TICK: u64 = 4 * MILLI;

struct Base {
    host: Instant,
    boot: u64,
    real: u64,
    slept: u64,
}

/// All clocks of one phone.
pub(crate) struct Clock {
    speed: f64,
    base: Mutex<Base>,
}

impl Clock {
    pub(crate) fn new(speed: f64) -> Self {
        let real = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |d| d.as_nanos() as u64);
        Clock {
            speed,
            base: Mutex::new(Base {
                host: Instant::now(),
                boot: UPTIME_AT_START,
                real,
                slept: SLEPT,
            }),
        }
    }

    fn elapsed(&self, base: &Base) -> u64 {
        (base.host.elapsed().as_nanos() as f64 * self.speed) as u64
    }

    /// CLOCK_BOOTTIME.
    pub(crate) fn boot(&self) -> BootNs {
        let base = lock(&self.base);
        base.boot + self.elapsed(&base)
    }

    /// The boot clock when the phone appeared, or came back from a reboot.
    pub(crate) fn appeared(&self) -> BootNs {
        lock(&self.base).boot
    }

    /// CLOCK_REALTIME, nanoseconds since the epoch.
    pub(crate) fn real(&self) -> u64 {
        let base = lock(&self.base);
        base.real + self.elapsed(&base)
    }

    /// Now, on both clocks.
    pub(crate) fn now(&self) -> Now {
        Now {
            boot: self.boot(),
            real: self.real(),
        }
    }

    /// Every clock for one moment of the boot clock.
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

    /// How long the host has to wait until the phone's boot clock shows `boot`.
    pub(crate) fn until(&self, boot: BootNs) -> Duration {
        let ahead = boot.saturating_sub(self.boot());
        Duration::from_nanos((ahead as f64 / self.speed).ceil() as u64)
    }

    /// Moves the wall clock, as a phone does that finds the network's time.
    pub(crate) fn jump(&self, by_ns: i64) {
        let mut base = lock(&self.base);
        base.real = base.real.saturating_add_signed(by_ns);
    }

    /// Starts the boot clock again.
    pub(crate) fn reboot(&self) {
        let mut base = lock(&self.base);
        base.real += self.elapsed(&base) + 25 * SECOND;
        base.host = Instant::now();
        base.boot = 25 * SECOND;
        base.slept = 0;
    }
}

/// A moment on both clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    pub(crate) boot: BootNs,
    pub(crate) real: u64,
}

/// One moment on every clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClockValues {
    pub(crate) boot: u64,
    pub(crate) monotonic: u64,
    pub(crate) monotonic_coarse: u64,
    pub(crate) monotonic_raw: u64,
    pub(crate) real: u64,
    pub(crate) real_coarse: u64,
}
