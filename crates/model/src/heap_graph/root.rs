//! Roots: why the collector starts at an object.

use super::ids::ObjectIndex;
use std::fmt;

/// A root entry of the dump. An object may have several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Root {
    /// The object.
    pub object: ObjectIndex,
    /// Why.
    pub kind: RootKind,
    /// Serial number of the thread whose root it is, where the dump says (HPROF).
    pub thread: Option<u32>,
    /// Number of the frame in that thread's stack, 0 at the top, where the dump says.
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
    /// By the number in `HeapGraphRoot.root_type`; what is not known there is `Unknown`.
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

    /// How much such a root tells people of why an object is alive: 0 the most. What a frame holds
    /// may be gone a moment later; the zygote's objects and interned strings are roots by the
    /// hundred thousand, whoever uses them; what waits for its finalizer is as good as gone.
    pub fn rank(self) -> u8 {
        use RootKind::*;
        match self {
            ThreadObject | JniGlobal | StickyClass | ThreadBlock | Debugger => 0,
            JavaFrame | JniLocal | NativeStack | MonitorUsed | JniMonitor => 1,
            Unknown | InternedString | VmInternal => 2,
            Finalizing | ReferenceCleanup | Unreachable => 3,
        }
    }

    /// Perfetto's name, such as `ROOT_JNI_GLOBAL`.
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

    /// For people, such as `JNI global`.
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
