//! `malloc_info` of a process: the blocks of its native heap by size, in the format of the
//! allocator of its Android release. Derived from memory accounting.

use crate::clock::BootNs;
use crate::kernel::Kernel;
use crate::process::Process;

/// Maximum "small" size of jemalloc in bytes; larger sizes up to a chunk are "large".
const SMALL: u64 = 14 << 10;
const CHUNK: u64 = 1 << 21;
/// Maximum size of a block of Scudo's primary allocator in bytes: the report leaves out larger ones.
pub(crate) const PRIMARY: u64 = 64 << 10;

/// Returns the XML that `am dumpheap -m` writes.
pub(crate) fn malloc_info(kernel: &Kernel, process: &Process, now: BootNs) -> String {
    let ledger = kernel.memory.ledger(&kernel.state(), process, now);
    let sizes = ledger.map(|l| l.native.sizes()).unwrap_or_default();
    if kernel.spec.android >= 11 {
        let mut text = "<malloc version=\"scudo-1\">\n".to_owned();
        for (size, count) in sizes.range(..=PRIMARY) {
            text.push_str(&format!("<alloc size=\"{size}\" count=\"{count}\"/>\n"));
        }
        text.push_str("</malloc>\n");
        return text;
    }
    let sum = |from: u64, to: u64| -> u64 {
        let range = sizes.range(from..to);
        range.map(|(size, count)| size * count).sum()
    };
    let small = sum(0, SMALL + 1);
    format!(
        "<malloc version=\"jemalloc-1\"><heap nr=\"0\"><allocated-large>{}</allocated-large>\
         <allocated-huge>{}</allocated-huge><allocated-bins>{small}</allocated-bins>\
         <bins-total>{small}</bins-total></heap></malloc>",
        sum(SMALL + 1, CHUNK),
        sum(CHUNK, u64::MAX),
    )
}
