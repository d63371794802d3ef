//! Roots: objects from which the collector starts, and their kinds.

use super::ids::ObjectIndex;
use std::fmt;

/// A root entry of the dump. An object can have several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Root {
    pub object: ObjectIndex,
    pub kind: RootKind,
    /// Serial number of the root's thread, if the dump has it (HPROF).
    pub thread: Option<u32>,
    /// Number of the frame in that thread's stack, 0 at the top, if the dump has it.
    pub frame: Option<u32>,
}

/// The kinds of root of `HeapGraphRoot.Type` and HPROF, which are the same list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum RootKind {
    #[default]
    Unknown,
    JniGlobal,
    JniLocal,
    JavaFrame,
    NativeStack,
    StickyClass,
    ThreadBlock,
    MonitorUsed,
    ThreadObject,
    InternedString,
    Finalizing,
    Debugger,
    ReferenceCleanup,
    VmInternal,
    JniMonitor,
    /// HPROF only: kept although nothing reaches it (tag 0x90).
    Unreachable,
}

/// The kinds by their number, with their names and words.
const KINDS: [(RootKind, &str, &str); 16] = [
    (RootKind::Unknown, "ROOT_UNKNOWN", "unknown root"),
    (RootKind::JniGlobal, "ROOT_JNI_GLOBAL", "JNI global"),
    (RootKind::JniLocal, "ROOT_JNI_LOCAL", "JNI local"),
    (RootKind::JavaFrame, "ROOT_JAVA_FRAME", "Java frame"),
    (RootKind::NativeStack, "ROOT_NATIVE_STACK", "native stack"),
    (RootKind::StickyClass, "ROOT_STICKY_CLASS", "system class"),
    (RootKind::ThreadBlock, "ROOT_THREAD_BLOCK", "thread block"),
    (RootKind::MonitorUsed, "ROOT_MONITOR_USED", "monitor in use"),
    (RootKind::ThreadObject, "ROOT_THREAD_OBJECT", "thread"),
    (
        RootKind::InternedString,
        "ROOT_INTERNED_STRING",
        "interned string",
    ),
    (RootKind::Finalizing, "ROOT_FINALIZING", "finalizing"),
    (RootKind::Debugger, "ROOT_DEBUGGER", "debugger"),
    (
        RootKind::ReferenceCleanup,
        "ROOT_REFERENCE_CLEANUP",
        "reference cleanup",
    ),
    (RootKind::VmInternal, "ROOT_VM_INTERNAL", "VM internal"),
    (RootKind::JniMonitor, "ROOT_JNI_MONITOR", "JNI monitor"),
    (RootKind::Unreachable, "ROOT_UNREACHABLE", "unreachable"),
];

const _: () = {
    let mut at = 0;
    while at < KINDS.len() {
        assert!(KINDS[at].0 as usize == at, "the kinds are in their order");
        at += 1;
    }
};

impl RootKind {
    /// Returns the kind of a `HeapGraphRoot.root_type`; `Unknown` for other numbers.
    pub fn of_heap_graph(number: u64) -> RootKind {
        let of_trace = &KINDS[..RootKind::Unreachable as usize];
        let known = of_trace.get(number as usize);
        known.map_or(RootKind::Unknown, |&(kind, ..)| kind)
    }

    /// Returns the rank of the root as an explanation of why an object is alive: 0 explains most.
    /// An object held by a frame can be gone a moment later. The zygote's objects and interned
    /// strings are roots by the hundred thousand, whether the app uses them or not. An object that
    /// waits for its finalizer is almost gone.
    pub fn rank(self) -> u8 {
        use RootKind::*;
        match self {
            ThreadObject | JniGlobal | StickyClass | ThreadBlock | Debugger => 0,
            JavaFrame | JniLocal | NativeStack | MonitorUsed | JniMonitor => 1,
            Unknown | InternedString | VmInternal => 2,
            Finalizing | ReferenceCleanup | Unreachable => 3,
        }
    }

    /// Returns Perfetto's name, such as `ROOT_JNI_GLOBAL`.
    pub fn name(self) -> &'static str {
        KINDS[self as usize].1
    }

    /// Returns the name for messages, such as `JNI global`.
    pub fn in_words(self) -> &'static str {
        KINDS[self as usize].2
    }
}

impl fmt::Display for RootKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
