//! `/proc/PID/status` and related files: the kernel's counts for a process, which cost the kernel
//! almost nothing to write. Kernels before 4.5 do not report the parts of the resident set. Kernel
//! threads and zombies do not have memory.

use heaptap_model::timeline::{Resident, Source};

/// Contents of `/proc/PID/status`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// `R`, `S`, `D`, `Z` …
    pub state: Option<char>,
    /// VmRSS, bytes; absent if the process does not have memory.
    pub rss: Option<u64>,
    /// RssAnon, bytes.
    pub anon: Option<u64>,
    /// RssFile, bytes.
    pub file: Option<u64>,
    /// RssShmem, bytes.
    pub shmem: Option<u64>,
    /// VmSwap, bytes.
    pub swap: Option<u64>,
    /// VmHWM, bytes.
    pub peak: Option<u64>,
}

impl Status {
    /// Parses the text; missing fields stay absent. Returns `None` if the text does not have any
    /// known field.
    pub fn parse(text: &str) -> Option<Status> {
        let mut status = Status::default();
        let mut found = false;
        for line in text.lines() {
            let Some((field, value)) = line.split_once(':') else {
                continue;
            };
            let value = value.trim();
            let mut known = true;
            match field {
                "State" => status.state = value.chars().next(),
                "VmRSS" => status.rss = kilobytes(value),
                "RssAnon" => status.anon = kilobytes(value),
                "RssFile" => status.file = kilobytes(value),
                "RssShmem" => status.shmem = kilobytes(value),
                "VmSwap" => status.swap = kilobytes(value),
                "VmHWM" => status.peak = kilobytes(value),
                "Name" | "Tgid" | "PPid" | "Uid" | "VmSize" | "Threads" => {}
                _ => known = false,
            }
            found |= known;
        }
        found.then_some(status)
    }

    /// Returns whether the process has ended and its parent has not yet collected its exit status.
    pub fn is_dead(&self) -> bool {
        matches!(self.state, Some('Z' | 'X'))
    }

    /// Returns the resident memory; `None` if the process does not have memory.
    pub fn resident(&self, oom_score_adj: Option<i32>) -> Option<Resident> {
        Some(Resident {
            source: Source::Status,
            rss: self.rss?,
            anon: self.anon,
            file: self.file,
            shmem: self.shmem,
            swap: self.swap,
            peak: self.peak,
            oom_score_adj,
        })
    }
}

/// Converts `1234 kB` to bytes.
pub fn kilobytes(value: &str) -> Option<u64> {
    let (number, unit) = value.split_once(char::is_whitespace)?;
    (unit.trim() == "kB")
        .then(|| number.parse::<u64>().ok()?.checked_mul(1024))
        .flatten()
}

/// Returns the first number of `/proc/uptime` in ns of BOOTTIME; its resolution is 10 ms.
pub fn uptime_ns(text: &str) -> Option<u64> {
    seconds_ns(text.split_whitespace().next()?)
}

/// CPU time and start of a process, from `/proc/PID/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticks {
    /// Time on the CPU so far, kernel ticks.
    pub cpu: u64,
    /// Start, ticks after boot; together with the PID it identifies the process.
    pub start: u64,
}

impl Ticks {
    /// Parses a line of `/proc/PID/stat`. The name in field 2 can contain blanks and parentheses.
    pub fn parse(stat: &str) -> Option<Ticks> {
        let (_, rest) = stat.rsplit_once(')')?;
        let mut words = rest.split_whitespace();
        let user: u64 = words.nth(11)?.parse().ok()?;
        let system: u64 = words.next()?.parse().ok()?;
        Some(Ticks {
            cpu: user.saturating_add(system),
            start: words.nth(6)?.parse().ok()?,
        })
    }
}

/// Converts seconds with a fraction to ns: `12.34`, `1700000000.123456789`.
pub fn seconds_ns(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(seconds) || !digits(fraction) {
        return None;
    }
    let nanos: String = fraction
        .chars()
        .chain("000000000".chars())
        .take(9)
        .collect();
    seconds
        .parse::<u64>()
        .ok()?
        .checked_mul(1_000_000_000)?
        .checked_add(nanos.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Name:\te.myapplicatio\nUmask:\t0077\nState:\tS (sleeping)\nTgid:\t4321\n\
        Pid:\t4321\nPPid:\t612\nUid:\t10123\t10123\t10123\t10123\nVmPeak:\t 5000000 kB\n\
        VmSize:\t 4900000 kB\nVmHWM:\t  220000 kB\nVmRSS:\t  180000 kB\nRssAnon:\t   90000 kB\n\
        RssFile:\t   89000 kB\nRssShmem:\t    1000 kB\nVmSwap:\t     512 kB\nThreads:\t42\n";

    #[test]
    fn the_fields_are_read_in_bytes() {
        let status = Status::parse(TEXT).unwrap();
        let resident = status.resident(Some(-900)).unwrap();
        assert_eq!(resident.rss, 180_000 * 1024);
        assert_eq!(resident.anon, Some(90_000 * 1024));
        assert_eq!(resident.file, Some(89_000 * 1024));
        assert_eq!(resident.shmem, Some(1000 * 1024));
        assert_eq!(resident.swap, Some(512 * 1024));
        assert_eq!(resident.peak, Some(220_000 * 1024));
        assert_eq!(resident.oom_score_adj, Some(-900));
    }

    #[test]
    fn an_old_kernel_has_no_parts_and_a_zombie_no_memory() {
        let old = Status::parse("Name:\tx\nVmRSS:\t 4 kB\n").unwrap();
        let resident = old.resident(None).unwrap();
        assert_eq!((resident.rss, resident.anon), (4096, None));
        let zombie = Status::parse("Name:\tx\nState:\tZ (zombie)\n").unwrap();
        assert!(zombie.is_dead() && zombie.resident(None).is_none());
        assert_eq!(Status::parse("cat: /proc/1: No such file"), None);
        assert_eq!(Status::parse(""), None);
    }

    #[test]
    fn numbers_that_make_no_sense_are_absent() {
        let text = "VmRSS:\t99999999999999999999 kB\nVmSwap:\t18446744073709551615 kB\n\
            VmHWM:\t-1 kB\nRssAnon:\t5 pages\nRssFile:\nUid:\tx\n";
        let status = Status::parse(text).unwrap();
        assert_eq!(status, Status::default());
    }

    #[test]
    fn clocks() {
        assert_eq!(uptime_ns("12.34 99.1\n"), Some(12_340_000_000));
        let stat = "77 (a) b c) S 1 2 3 4 5 6 7 8 9 10 120 30 13 14 15 16 17 18 4711 20";
        let ticks = Ticks {
            cpu: 150,
            start: 4711,
        };
        assert_eq!(Ticks::parse(stat), Some(ticks));
        assert_eq!(Ticks::parse("77 (a) S 1 2"), None);
        assert_eq!(
            seconds_ns("1700000000.123456789"),
            Some(1_700_000_000_123_456_789)
        );
        assert_eq!(seconds_ns("7"), Some(7_000_000_000));
        for odd in ["", ".", "1.", ".5", "-1.0", "1.x", "99999999999999.0"] {
            assert_eq!(seconds_ns(odd), None, "{odd}");
        }
    }
}
