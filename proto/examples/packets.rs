//! Counts the packets of a Perfetto trace by content.
//!
//! ```console
//! $ cargo run -p heaptap-proto --example packets -- fixtures/conversions/c_max.pftrace
//! ```
#![allow(clippy::print_stdout, reason = "an example prints")]

use heaptap_proto::perfetto::Trace;
use prost::Message as _;
use std::collections::BTreeMap;

fn packets(bytes: &[u8]) -> Result<String, prost::DecodeError> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for packet in Trace::decode(bytes)?.packet {
        let holds = [
            (
                packet.profile_packet.is_some(),
                "native heap (ProfilePacket)",
            ),
            (packet.heap_graph.is_some(), "Java heap (HeapGraph)"),
            (
                packet.interned_data.is_some(),
                "names, frames and callstacks",
            ),
            (packet.trace_config.is_some(), "config"),
        ];
        let known = holds.iter().find(|(holds, _)| *holds);
        *counts
            .entry(known.map_or("other", |(_, name)| name))
            .or_default() += 1;
    }
    let lines = counts
        .iter()
        .map(|(name, count)| format!("{count:>4}  {name}\n"));
    Ok(lines.collect())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: packets TRACE")?;
    print!("{}", packets(&std::fs::read(path)?)?);
    Ok(())
}

#[test]
fn packets_of_a_trace_are_counted() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../fixtures/conversions/c_max.pftrace"
    );
    let text = packets(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(text.lines().next(), Some("   1  config"));
}
