//! Fault injection. Owns the list of faults, their syntax and the count of their occasions; the
//! code that a fault affects calls [`Faults::strikes`].
//!
//! `KIND[@VALUE][#K]`: VALUE is a number whose meaning depends on the kind (bytes, ms, …). With
//! `#K`, the fault strikes only on the k-th occasion, otherwise on every one. [`draws`] adds faults
//! that a seed chooses.

pub(crate) mod draws;
pub(crate) mod gate;

use std::fmt;
use std::sync::{Arc, Mutex};

use self::draws::Draws;
use self::gate::{Answer, Gate, Gates};
use super::events::lock;
use super::named::named;

macro_rules! fault_kinds {
    ($($(#[doc = $doc:literal])+ $kind:ident = $name:literal,)+) => {
        named! {
            /// The kinds of faults; their docs define VALUE.
            #[non_exhaustive]
            pub enum FaultKind { $($(#[doc = $doc])+ $kind = $name,)+ }
        }

        impl FaultKind {
            /// Returns the effect, as `heaptap virtual-phone --help` lists it.
            pub fn description(self) -> &'static str {
                match self { $(FaultKind::$kind => concat!($($doc),+).trim_ascii(),)+ }
            }
        }
    };
}

fault_kinds! {
    /// The device is listed as offline and refuses every transport; with #K, the K-th device.
    Offline = "offline",
    /// The device is listed as unauthorized and refuses every transport.
    Unauthorized = "unauthorized",
    /// The device is listed with `no permissions (…)`.
    NoPermissions = "no-permissions",
    /// No device is listed at all.
    NoDevice = "no-device",
    /// The device vanishes at a transport, with #K at the K-th: unlisted, connections cut.
    Vanish = "vanish",
    /// As `vanish`, but back after VALUE ms on the host's clock (default 300).
    Blink = "blink",
    /// The device restarts at a transport: its boot ID is new, and it is away for VALUE ms on the
    /// host's clock (default 1000).
    Restart = "restart",
    /// After a restart of the device, Android's services are missing for VALUE ms (phone's clock;
    /// default 15000), although adbd answers.
    LateBoot = "late-boot",
    /// The server restarts at a transport: it cuts all connections, accepts no others for VALUE ms
    /// on the host's clock (default 300), and has new transport IDs.
    ServerRestart = "server-restart",
    /// The server waits VALUE ms (host's clock) before each answer to a request.
    Slow = "slow",
    /// The server sends every byte on its own.
    Fragment = "fragment",
    /// The server accepts connections and never answers.
    Hang = "hang",
    /// The server closes the connection before it answers a request.
    Drop = "drop",
    /// A transport is refused with the text of an adb server that lost the device.
    TransportFail = "transport-fail",
    /// The server reports VALUE (default 40) as its version.
    OldServer = "old-server",
    /// The device does not support shell_v2.
    NoShellV2 = "no-shell-v2",
    /// The device does not support stat_v2.
    NoStatV2 = "no-stat-v2",
    /// A shell's connection is cut after VALUE bytes of its output (default 0).
    ShellCut = "shell-cut",
    /// A shell's connection ends without the exit packet.
    NoExit = "no-exit",
    /// A shell prints nothing for VALUE ms (host's clock; default: forever).
    ShellHang = "shell-hang",
    /// A pull is cut after VALUE bytes (default: half of the file).
    PullCut = "pull-cut",
    /// A pull is answered with FAIL.
    PullFail = "pull-fail",
    /// A pull stops sending after VALUE bytes (default: half of the file) and stays open.
    PullHang = "pull-hang",
    /// A pull ends properly after VALUE bytes (default: half of the file).
    PullShort = "pull-short",
    /// A pull has one byte changed, at VALUE (default: in the middle).
    PullFlip = "pull-flip",
    /// A push is answered with FAIL.
    PushFail = "push-fail",
    /// `stat` reports VALUE bytes (default: 0) too many.
    StatLies = "stat-lies",
    /// The disk is full: no file grows beyond VALUE bytes (default 0).
    DiskFull = "disk-full",
    /// `rm` of a trace is refused.
    RmFail = "rm-fail",
    /// perfetto fails before it starts: exit 1.
    PerfettoFail = "perfetto-fail",
    /// The service rejects the session: exit 0, a pid, no file.
    PerfettoReject = "perfetto-reject",
    /// perfetto prints linker warnings around its pid.
    PerfettoNoise = "perfetto-noise",
    /// perfetto dies VALUE ms (phone's clock; default 0) after its start.
    PerfettoDies = "perfetto-dies",
    /// `linux.ftrace` never starts: another tool has the kernel's tracing.
    FtraceHeld = "ftrace-held",
    /// perfetto ignores INT and TERM.
    PerfettoStuck = "perfetto-stuck",
    /// heapprofd writes no final dumps; the service waits for them until the timeout in the config.
    StopTimeout = "stop-timeout",
    /// Tracing is switched off: persist.traced.enable is 0 and nothing listens.
    TracedOff = "traced-off",
    /// traced dies VALUE ms (phone's clock; default 0) after a session's start.
    TracedDies = "traced-dies",
    /// heapprofd never attaches to anything.
    HeapprofdDead = "heapprofd-dead",
    /// The shared buffer overruns VALUE ms (default 0) after a process is attached.
    Overrun = "overrun",
    /// As `overrun`, with client_error HIT_TIMEOUT as block_client leaves it.
    ClientTimeout = "client-timeout",
    /// The stack's bounds are invalid: client_error INVALID_STACK_BOUNDS.
    BadStack = "bad-stack",
    /// The ring buffer is corrupted VALUE ms (default 0) after a process is attached.
    Corrupt = "corrupt",
    /// heapprofd hits its guardrail VALUE ms (default 30000) after a process is attached.
    Guardrail = "guardrail",
    /// Another session holds every process: rejected_concurrent.
    Rejected = "rejected",
    /// The target dies VALUE ms (phone's clock; default 0) after it is attached.
    TargetDies = "target-dies",
    /// lmkd kills the target VALUE ms (phone's clock; default 0) after it is attached.
    LowMemoryKill = "low-memory-kill",
    /// `dumpsys thermalservice` reports status VALUE (default 3, severe).
    Hot = "hot",
    /// A Java heap dump in a session takes VALUE ms (phone's clock; default 30000).
    JavaDumpSlow = "java-dump-slow",
    /// A Java heap dump in a session lacks its last packet.
    JavaDumpCut = "java-dump-cut",
    /// `am dumpheap` takes VALUE ms (phone's clock; default 30000).
    DumpheapSlow = "dumpheap-slow",
    /// `am dumpheap` never returns; its file stays at VALUE bytes (default 0).
    DumpheapHang = "dumpheap-hang",
    /// `am dumpheap` leaves VALUE bytes (default: half) and reports success.
    DumpheapShort = "dumpheap-short",
    /// The app dies with VALUE bytes (default: half) of `am dumpheap` written.
    DumpheapDies = "dumpheap-dies",
    /// A process accepts a debugger's connection and closes it.
    Debugger = "debugger",
    /// A runtime's list of tracked allocations is cut after VALUE bytes (default 0).
    AllocationsCut = "allocations-cut",
    /// The device vanishes within such a list, and is back after VALUE ms on the host's clock
    /// (default 300).
    AllocationsBlink = "allocations-blink",
    /// `dumpsys meminfo` never answers.
    MeminfoHang = "meminfo-hang",
    /// The app dies while `dumpsys meminfo` asks it.
    MeminfoDies = "meminfo-dies",
    /// The finished trace is cut to VALUE bytes (default: half).
    Truncate = "truncate",
    /// Every second profile packet is lost.
    LosePackets = "lose-packets",
    /// The phone reboots VALUE ms (phone's clock; default 0) after a session's start.
    Reboot = "reboot",
    /// The wall clock jumps by VALUE ms at a session's start.
    ClockJump = "clock-jump",
}

/// One injected fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Kind of the fault.
    pub kind: FaultKind,
    /// VALUE; its meaning depends on the kind.
    pub value: Option<i64>,
    /// Strikes only on the k-th occasion (from 1); `None` strikes on every one.
    pub occasion: Option<u32>,
}

/// Error in the text of a fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// The kind is unknown.
    #[error(
        "{name:?} is not a fault; the faults are {}",
        FaultKind::ALL.iter().map(|k| k.name()).collect::<Vec<_>>().join(", ")
    )]
    Kind {
        /// Name of the kind, as given.
        name: String,
    },
    /// VALUE is not a whole number.
    #[error(
        "{value:?} is not a whole number without a unit. {}: {}",
        kind.name(),
        kind.description().trim_end_matches('.')
    )]
    Value {
        /// Kind of the fault.
        kind: FaultKind,
        /// VALUE, as given.
        value: String,
    },
    /// The occasion is not a whole number from 1.
    #[error("#{occasion} is not an occasion; #1 is the first")]
    Occasion {
        /// The occasion, as given.
        occasion: String,
    },
}

impl Fault {
    /// Parses `KIND[@VALUE][#K]`.
    ///
    /// # Errors
    /// Returns an error if the kind is unknown or a number is invalid.
    pub fn parse(text: &str) -> Result<Fault, FaultError> {
        let cut = |text, sign| match str::split_once(text, sign) {
            Some((before, after)) => (before, Some(after)),
            None => (text, None),
        };
        let (rest, occasion) = cut(text, '#');
        let (name, value) = cut(rest, '@');
        let kind = name.parse().map_err(|()| FaultError::Kind {
            name: name.to_owned(),
        })?;
        let value = value.map(|value| {
            value.parse::<i64>().map_err(|_| FaultError::Value {
                kind,
                value: value.to_owned(),
            })
        });
        let value = value.transpose()?;
        let occasion = occasion.map(|k| {
            let parsed = k.parse::<u32>().ok().filter(|k| *k > 0);
            parsed.ok_or_else(|| FaultError::Occasion {
                occasion: k.to_owned(),
            })
        });
        let occasion = occasion.transpose()?;
        Ok(Fault {
            kind,
            value,
            occasion,
        })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        if let Some(value) = self.value {
            write!(f, "@{value}")?;
        }
        self.occasion.map_or(Ok(()), |k| write!(f, "#{k}"))
    }
}

struct Armed {
    fault: Fault,
    occasions: u32,
    struck: u32,
}

/// The faults of a phone; more can be added at run time. The phones of a server share the list, and
/// each has its own draws.
#[derive(Default)]
pub struct Faults {
    armed: Arc<Mutex<Vec<Armed>>>,
    gates: Arc<Gates>,
    draws: Option<Arc<Draws>>,
}

impl Faults {
    /// Creates the list with `faults` armed.
    pub fn new(faults: &[Fault]) -> Self {
        let all = Faults::default();
        faults.iter().for_each(|f| all.add(*f));
        all
    }

    /// Returns the faults of one phone, which shares this list.
    pub(crate) fn with_draws(&self, draws: Option<Arc<Draws>>) -> Faults {
        Faults {
            armed: Arc::clone(&self.armed),
            gates: Arc::clone(&self.gates),
            draws,
        }
    }

    /// Arms one more fault.
    pub fn add(&self, fault: Fault) {
        lock(&self.armed).push(Armed {
            fault,
            occasions: 0,
            struck: 0,
        });
    }

    /// Disarms all faults of a kind.
    pub fn remove(&self, kind: FaultKind) {
        lock(&self.armed).retain(|a| a.fault.kind != kind);
    }

    /// Closes a gate for the next request that contains all `parts`, such as `shell` and `perfetto`,
    /// `RECV:PATH` or `host:version`.
    pub fn close_gate(&self, parts: &[&str]) -> Gate {
        self.gates.close(parts)
    }

    /// Waits at the gate that stops `request`, and returns the answer.
    pub(crate) fn pass(&self, request: &str) -> Answer {
        self.gates.pass(request)
    }

    /// Returns the number of times that a kind has struck.
    pub fn struck(&self, kind: FaultKind) -> u32 {
        let armed = lock(&self.armed);
        let of_kind = armed.iter().filter(|a| a.fault.kind == kind);
        of_kind.map(|a| a.struck).sum()
    }

    /// Returns the drawn faults that have struck, in order.
    pub(crate) fn drawn(&self) -> Vec<Fault> {
        let draws = self.draws.as_ref();
        draws.map_or_else(Vec::new, |draws| draws.struck())
    }

    /// Ends the draws.
    pub(crate) fn end_draws(&self) {
        if let Some(draws) = &self.draws {
            draws.end();
        }
    }

    /// Counts an occasion for `kind`. Returns the fault's value if it strikes.
    pub(crate) fn strikes(&self, kind: FaultKind) -> Option<Option<i64>> {
        let drawn = self.draws.as_ref().and_then(|draws| draws.draw(kind));
        let mut hit = drawn.map(Some);
        let mut armed = lock(&self.armed);
        for a in armed.iter_mut().filter(|a| a.fault.kind == kind) {
            a.occasions += 1;
            if a.fault.occasion.is_none_or(|k| k == a.occasions) {
                a.struck += 1;
                hit = Some(a.fault.value);
            }
        }
        hit
    }

    /// Counts an occasion like [`Faults::strikes`], of a kind without a value.
    pub(crate) fn has_struck(&self, kind: FaultKind) -> bool {
        self.strikes(kind).is_some()
    }

    /// Counts an occasion like [`Faults::strikes`], with a default for the value.
    pub(crate) fn value(&self, kind: FaultKind, default: u64) -> Option<u64> {
        self.strikes(kind)
            .map(|v| v.map_or(default, |v| v.max(0) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_strikes_on_its_occasion() {
        let faults = Faults::new(&[Fault::parse("pull-cut@100#2").expect("valid")]);
        assert_eq!(faults.strikes(FaultKind::PullCut), None);
        assert_eq!(faults.strikes(FaultKind::PullCut), Some(Some(100)));
        assert_eq!(faults.strikes(FaultKind::PullCut), None);
        assert_eq!(faults.strikes(FaultKind::NoExit), None);
        assert_eq!(faults.struck(FaultKind::PullCut), 1);
    }

    #[test]
    fn a_fault_is_written_as_it_is_parsed() {
        for text in ["pull-cut@100#2", "vanish", "slow@5", "no-exit#3"] {
            assert_eq!(Fault::parse(text).expect("valid").to_string(), text);
        }
    }

    #[test]
    fn what_is_no_fault_is_refused() {
        for text in ["", "pull-cut@x", "pull-cut#0", "pull-cut#", "nothing"] {
            assert!(Fault::parse(text).is_err(), "{text}");
        }
        let error = |text| Fault::parse(text).expect_err("refused").to_string();
        assert_eq!(
            error("vanish@20s"),
            "\"20s\" is not a whole number without a unit. vanish: The device vanishes at a \
             transport, with #K at the K-th: unlisted, connections cut"
        );
        assert!(
            error("vanihs@20").starts_with("\"vanihs\" is not a fault; the faults are offline")
        );
    }
}
