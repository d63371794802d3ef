//! A fault: its kind, its value and its occasion, and their syntax.

use std::fmt;

use crate::named::named;

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

#[cfg(test)]
mod tests {
    use super::*;

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
