//! The OutOfMemoryError that caused a heap dump.

use crate::profile::CallsiteId;

/// An OutOfMemoryError that caused a heap dump.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OutOfMemory {
    /// Bytes of the allocation that failed.
    pub allocation_bytes: u64,
    /// Bytes free in the heap.
    pub free_bytes: u64,
    /// Bytes that could still have been allocated in total.
    pub free_until_oom_bytes: u64,
    pub message: String,
    /// Stack that threw the error, the throwing frame first.
    pub stack: Vec<ThrownFrame>,
    /// The same stack in the tables of the recording.
    pub callsite: Option<CallsiteId>,
}

/// A frame of the stack that threw the error.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThrownFrame {
    /// The method, without return type and parameters: `com.example.Cache.grow`.
    pub method: String,
    /// Source file; empty if unknown.
    pub file: String,
    /// Line number; 0 if unknown.
    pub line: u32,
}
