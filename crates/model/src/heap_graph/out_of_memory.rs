//! The OutOfMemoryError at which a heap was dumped.

/// An OutOfMemoryError at which a heap was dumped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OutOfMemory {
    /// Bytes of the allocation that failed.
    pub allocation_bytes: u64,
    /// Bytes free in the heap.
    pub free_bytes: u64,
    /// Bytes that could still have been allocated, in all.
    pub free_until_oom_bytes: u64,
    /// The error's message.
    pub message: String,
    /// Where it was thrown, the throwing frame first.
    pub stack: Vec<ThrownFrame>,
}

/// A frame of the stack at which the error was thrown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThrownFrame {
    /// The method, without return type and parameters: `com.example.Cache.grow`.
    pub method: String,
    /// The source file; empty where not known.
    pub file: String,
    /// The line; 0 where not known.
    pub line: u32,
}
