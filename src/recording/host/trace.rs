//! Process names for a trace of this host. Only traced_probes writes them, and it is not part of
//! such a recording, so heaptap appends one packet: the trace then has its names in every program
//! that reads it.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use heaptap_proto::perfetto::process_tree::Process;
use heaptap_proto::perfetto::{ProcessTree, Trace, TracePacket};
use prost::Message as _;

use crate::capture::host::Processes;
use crate::trace::DumpScanner;

/// Bytes read at once.
const PIECE: usize = 1 << 20;

/// Result of adding names.
pub(super) struct Appended {
    pub(super) result: io::Result<()>,
    /// Processes of the program that still run.
    pub(super) left: Vec<(u32, String)>,
}

/// Appends the names of the processes that have a profile.
pub(super) fn append_names(trace: &Path, processes: &Processes) -> Appended {
    let left = processes
        .alive()
        .map(|(pid, name)| (pid, name.to_owned()))
        .collect();
    Appended {
        result: append(trace, processes),
        left,
    }
}

fn append(trace: &Path, processes: &Processes) -> io::Result<()> {
    let pids = profiled(trace)?;
    let named = pids.into_iter().filter_map(|pid| {
        let pid = u32::try_from(pid).ok()?;
        Some(Process {
            pid: i32::try_from(pid).ok(),
            cmdline: vec![processes.name(pid)?.to_owned()],
            ..Process::default()
        })
    });
    let tree = ProcessTree {
        processes: named.collect(),
    };
    if tree.processes.is_empty() {
        return Ok(());
    }
    let packet = TracePacket {
        process_tree: Some(tree),
        ..TracePacket::default()
    };
    let bytes = Trace {
        packet: vec![packet],
    }
    .encode_to_vec();
    OpenOptions::new()
        .append(true)
        .open(trace)?
        .write_all(&bytes)
}

/// Returns the processes with a complete dump. Fails for a file that ends within a packet: bytes
/// behind it would be read as a part of that packet.
fn profiled(trace: &Path) -> io::Result<BTreeSet<u64>> {
    let mut file = File::open(trace)?;
    let mut scanner = DumpScanner::default();
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece)? {
            0 => break,
            read => scanner.push(&piece[..read]),
        }
    }
    if scanner.is_lost() || scanner.has_rest() {
        return Err(io::Error::other("the trace ends within a packet"));
    }
    Ok(scanner.dumps().iter().map(|dump| dump.pid).collect())
}
