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
#[allow(missing_docs)]
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

impl RootKind {
    /// Returns the kind of a `HeapGraphRoot.root_type`; `Unknown` for other numbers.
    pub fn of_heap_graph(number: u64) -> RootKind {
        use RootKind::*;
        const ALL: [RootKind; 15] = [
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
        ];
        ALL.get(number as usize).copied().unwrap_or(Unknown)
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
        use RootKind::*;
        match self {
            Unknown => "ROOT_UNKNOWN",
            JniGlobal => "ROOT_JNI_GLOBAL",
            JniLocal => "ROOT_JNI_LOCAL",
            JavaFrame => "ROOT_JAVA_FRAME",
            NativeStack => "ROOT_NATIVE_STACK",
            StickyClass => "ROOT_STICKY_CLASS",
            ThreadBlock => "ROOT_THREAD_BLOCK",
            MonitorUsed => "ROOT_MONITOR_USED",
            ThreadObject => "ROOT_THREAD_OBJECT",
            InternedString => "ROOT_INTERNED_STRING",
            Finalizing => "ROOT_FINALIZING",
            Debugger => "ROOT_DEBUGGER",
            ReferenceCleanup => "ROOT_REFERENCE_CLEANUP",
            VmInternal => "ROOT_VM_INTERNAL",
            JniMonitor => "ROOT_JNI_MONITOR",
            Unreachable => "ROOT_UNREACHABLE",
        }
    }

    /// Returns the name for messages, such as `JNI global`.
    pub fn in_words(self) -> &'static str {
        use RootKind::*;
        match self {
            Unknown => "unknown root",
            JniGlobal => "JNI global",
            JniLocal => "JNI local",
            JavaFrame => "Java frame",
            NativeStack => "native stack",
            StickyClass => "system class",
            ThreadBlock => "thread block",
            MonitorUsed => "monitor in use",
            ThreadObject => "thread",
            InternedString => "interned string",
            Finalizing => "finalizing",
            Debugger => "debugger",
            ReferenceCleanup => "reference cleanup",
            VmInternal => "VM internal",
            JniMonitor => "JNI monitor",
            Unreachable => "unreachable",
        }
    }
}

impl fmt::Display for RootKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
