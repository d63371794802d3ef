//! Values of counters as a trace has them, under the names that Perfetto gives them.

/// A counter's value at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counter {
    /// BOOTTIME of the phone, ns.
    pub boot_ns: u64,
    /// The process; `None` where it is about the whole phone.
    pub pid: Option<u32>,
    /// What is counted.
    pub name: &'static str,
    /// How much: bytes, unless the name says otherwise.
    pub value: f64,
}
