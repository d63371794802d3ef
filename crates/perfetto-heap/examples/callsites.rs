//! Prints the callsites with most memory at the last dump of a trace.
//!
//! ```console
//! $ cargo run -p perfetto-heap --example callsites -- fixtures/conversions/c_max.pftrace
//! ```
#![allow(clippy::print_stdout, reason = "an example prints")]

use heaptap_base::units::ByteSize;
use heaptap_model::profile::HeapDump;
use heaptap_model::stacks::allocators::is_allocator;
use heaptap_model::stacks::{ProjectOptions, View, project};
use perfetto_heap::{Source, Trace, TraceError};

fn callsites(source: Box<dyn Source>, limit: usize) -> Result<String, TraceError> {
    let mut trace = Trace::open(source)?;
    let mut last: Option<HeapDump> = None;
    trace.read_dumps(|dump| {
        last = Some(dump);
        Ok::<_, TraceError>(())
    })?;
    let Some(dump) = last else {
        return Ok("the trace has no native heap dump\n".to_owned());
    };
    let title = format!("process {}, heap {}\n", dump.pid, dump.heap);
    let profile = project(trace.recording(), &[dump], ProjectOptions::default());
    let (table, dump) = (&profile.table, &profile.dumps[0]);
    let bytes = dump.column(View::Space).unwrap_or_default();
    let mut rows: Vec<_> = dump.values.nodes.iter().zip(bytes).collect();
    rows.sort_by_key(|(_, bytes)| -**bytes);
    let lines = rows.into_iter().take(limit).map(|(node, bytes)| {
        let mut stack: Vec<&str> = table.stack(*node).map(|node| table.name_of(node)).collect();
        // malloc and the hook below it do not identify the owner of the memory.
        if let Some(at) = stack.iter().rposition(|name| is_allocator(name)) {
            stack.drain(..=at);
        }
        let size = ByteSize(u64::try_from(*bytes).unwrap_or(0));
        format!("{size:>10}  {}\n", stack.join(" < "))
    });
    Ok(title + &lines.collect::<String>())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: callsites TRACE")?;
    let trace = std::fs::File::open(path)?;
    print!("{}", callsites(Box::new(trace), 5)?);
    Ok(())
}

/// A field of a message: number and bytes.
#[cfg(test)]
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let tag = u32::from(number) << 3 | 2;
    let mut out = match tag {
        0..0x80 => vec![tag as u8],
        _ => vec![tag as u8 | 0x80, (tag >> 7) as u8],
    };
    out.push(bytes.len() as u8);
    out.extend(bytes);
    out
}

#[test]
fn largest_callsite_comes_first() {
    // Two callsites, 64 and 96 bytes: the worked example of the crate's page, and one more.
    let name = |iid: u8, name: &[u8]| field(5, &[&[8, iid][..], &field(2, name)].concat());
    let interned = [
        name(1, b"main"),
        name(2, b"load"),
        field(6, &[8, 1, 16, 1]),
        field(6, &[8, 2, 16, 2]),
        field(7, &[8, 1, 16, 1]),
        field(7, &[8, 2, 16, 1, 16, 2]),
    ];
    let samples = [field(2, &[8, 1, 16, 64]), field(2, &[8, 2, 16, 96])].concat();
    let dump = field(5, &[&[8, 7][..], &samples].concat());
    let packet = [
        &[80, 1, 104, 1][..],
        &field(12, &interned.concat()),
        &field(37, &dump),
    ];
    let trace = field(1, &packet.concat());
    let text = callsites(Box::new(std::io::Cursor::new(trace)), 5).unwrap();
    let lines: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(lines, ["      96 B  load < main", "      64 B  main"]);
}
