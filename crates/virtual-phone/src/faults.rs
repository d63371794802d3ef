//! What goes wrong on request. Owns the list of faults, their spelling and the counting of
//! occurrences; the place where each strikes asks [`Faults::strikes`].
//!
//! `KIND[@VALUE][#K]`: VALUE is a number whose meaning the kind defines (bytes, ms, …); with
//! `#K` only the k-th occasion is hit, without it every one.

use std::sync::Mutex;

use super::events::lock;

macro_rules! fault_kinds {
    ($($(#[doc = $doc:literal])+ $kind:ident = $name:literal,)+) => {
        /// The kinds of faults; the docs of each say what VALUE means.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum FaultKind { $($(#[doc = $doc])+ $kind,)+ }

        impl FaultKind {
            /// Every kind.
            pub const ALL: &'static [FaultKind] = &[$(FaultKind::$kind,)+];

            /// As written in a SPEC.
            pub fn name(self) -> &'static str {
                match self { $(FaultKind::$kind => $name,)+ }
            }

            /// What it does, as docs/virtual-phone.md lists it.
            pub fn description(self) -> &'static str {
                match self { $(FaultKind::$kind => concat!($($doc),+).trim_ascii(),)+ }
            }
        }
    };
}

fault_kinds! {
    /// The device is listed as offline and refuses every transport.
    Offline = "offline",
    /// The device is listed as unauthorized and refuses every transport.
    Unauthorized = "unauthorized",
    /// The device is listed with `no permissions (…)`.
    NoPermissions = "no-permissions",
    /// No device is listed at all.
    NoDevice = "no-device",
    /// The device vanishes after VALUE transports (default 0): unlisted, connections cut.
    Vanish = "vanish",
    /// As `vanish`, but back after VALUE ms on the host's clock (default 300).
    Blink = "blink",
    /// The server waits VALUE ms (host's clock) before each answer to a request.
    Slow = "slow",
    /// The server sends every byte on its own.
    Fragment = "fragment",
    /// The server takes connections and never answers.
    Hang = "hang",
    /// The server closes the connection before it answers a request.
    Drop = "drop",
    /// A transport is refused with the words of an adb server that lost the device.
    TransportFail = "transport-fail",
    /// The server says that its version is VALUE (default 40).
    OldServer = "old-server",
    /// The device lacks the feature shell_v2.
    NoShellV2 = "no-shell-v2",
    /// The device lacks the features stat_v2 and ls_v2.
    NoStatV2 = "no-stat-v2",
    /// A shell's connection is cut after VALUE bytes of its output (default 0).
    ShellCut = "shell-cut",
    /// A shell's connection ends without the exit packet.
    NoExit = "no-exit",
    /// A shell says nothing for VALUE ms (host's clock; default: for ever).
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
    /// `stat` says VALUE bytes (default: 0) too many.
    StatLies = "stat-lies",
    /// The disk is full: no file takes a byte after VALUE bytes (default 0).
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
    /// heapprofd writes no final dumps; the service waits for them as long as the config lets it.
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
    /// A Java heap dump in a session takes VALUE ms (phone's clock; default 30000).
    JavaDumpSlow = "java-dump-slow",
    /// A Java heap dump in a session lacks its last packet.
    JavaDumpCut = "java-dump-cut",
    /// `am dumpheap` takes VALUE ms (phone's clock; default 30000).
    DumpheapSlow = "dumpheap-slow",
    /// `am dumpheap` never returns; its file stays at VALUE bytes (default 0).
    DumpheapHang = "dumpheap-hang",
    /// `am dumpheap` leaves VALUE bytes (default: half) and says that all went well.
    DumpheapShort = "dumpheap-short",
    /// The app dies with VALUE bytes (default: half) of `am dumpheap` written.
    DumpheapDies = "dumpheap-dies",
    /// A process that is asked for its debugger's port takes the connection and closes it.
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

/// One fault, as asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// What.
    pub kind: FaultKind,
    /// Its number; the kind says what it means.
    pub value: Option<i64>,
    /// Only on the k-th occasion (from 1); every one where absent.
    pub occasion: Option<u32>,
}

/// A text that names no fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no fault; write KIND[@VALUE][#K] with one of {}",
    FaultKind::ALL.iter().map(|k| k.name()).collect::<Vec<_>>().join(", ")
)]
pub struct FaultError {
    text: String,
}

impl Fault {
    /// Parses `KIND[@VALUE][#K]`.
    ///
    /// # Errors
    /// Where there is no such kind, or a number is none.
    pub fn parse(text: &str) -> Result<Fault, FaultError> {
        let err = || FaultError {
            text: text.to_owned(),
        };
        let (rest, occasion) = match text.split_once('#') {
            Some((rest, k)) => (
                rest,
                Some(k.parse().ok().filter(|k| *k > 0).ok_or_else(err)?),
            ),
            None => (text, None),
        };
        let (name, value) = match rest.split_once('@') {
            Some((name, value)) => (name, Some(value.parse().map_err(|_| err())?)),
            None => (rest, None),
        };
        let kind = *FaultKind::ALL
            .iter()
            .find(|k| k.name() == name)
            .ok_or_else(err)?;
        Ok(Fault {
            kind,
            value,
            occasion,
        })
    }
}

struct Armed {
    fault: Fault,
    occasions: u32,
    struck: u32,
}

/// The faults of one phone; more can be added while it runs.
#[derive(Default)]
pub struct Faults {
    armed: Mutex<Vec<Armed>>,
}

impl Faults {
    /// Arms `faults`.
    pub fn new(faults: &[Fault]) -> Self {
        let all = Faults::default();
        faults.iter().for_each(|f| all.add(*f));
        all
    }

    /// Arms one more.
    pub fn add(&self, fault: Fault) {
        lock(&self.armed).push(Armed {
            fault,
            occasions: 0,
            struck: 0,
        });
    }

    /// Disarms all of a kind.
    pub fn remove(&self, kind: FaultKind) {
        lock(&self.armed).retain(|a| a.fault.kind != kind);
    }

    /// How often a kind struck.
    pub fn struck(&self, kind: FaultKind) -> u32 {
        let armed = lock(&self.armed);
        let of_kind = armed.iter().filter(|a| a.fault.kind == kind);
        of_kind.map(|a| a.struck).sum()
    }

    /// An occasion for `kind`: whether it strikes, and with which value.
    pub(crate) fn strikes(&self, kind: FaultKind) -> Option<Option<i64>> {
        let mut hit = None;
        for a in lock(&self.armed)
            .iter_mut()
            .filter(|a| a.fault.kind == kind)
        {
            a.occasions += 1;
            if a.fault.occasion.is_none_or(|k| k == a.occasions) {
                a.struck += 1;
                hit = Some(a.fault.value);
            }
        }
        hit
    }

    /// As [`Faults::strikes`], with a value where none was given.
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
    fn what_is_no_fault_is_refused() {
        for text in ["", "pull-cut@x", "pull-cut#0", "pull-cut#", "nothing"] {
            assert!(Fault::parse(text).is_err(), "{text}");
        }
    }
}
