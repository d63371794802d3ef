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
use sha2::{Digest as _, Sha256};

use heaptap_base::units::hex;
use heaptap_capture::host::Processes;
use heaptap_results::manifest::TraceFile;
use perfetto_heap::DumpScanner;

/// Bytes read at once.
const PIECE: usize = 1 << 20;

/// Appends the names of the processes that have a profile. Returns the file as it then is, because
/// a trace can be large and is read once for both.
///
/// # Errors
/// Returns an error if the file cannot be read or written, or ends within a packet: bytes behind it
/// would be read as a part of that packet.
pub(super) fn append_names(trace: &Path, processes: &Processes) -> io::Result<TraceFile> {
    let (pids, mut size, mut hash) = profiled(trace)?;
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
    if !tree.processes.is_empty() {
        let packet = TracePacket {
            process_tree: Some(tree),
            ..TracePacket::default()
        };
        let bytes = Trace {
            packet: vec![packet],
        }
        .encode_to_vec();
        let mut file = OpenOptions::new().append(true).open(trace)?;
        file.write_all(&bytes)?;
        size += bytes.len() as u64;
        hash.update(&bytes);
    }
    Ok(TraceFile::raw(size, hex(&hash.finalize())))
}

/// Returns the processes with a complete dump, the size of the file, and its hash so far.
fn profiled(trace: &Path) -> io::Result<(BTreeSet<u64>, u64, Sha256)> {
    let mut file = File::open(trace)?;
    let mut scanner = DumpScanner::default();
    let mut hash = Sha256::new();
    let mut size = 0;
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece)? {
            0 => break,
            read => {
                scanner.push(&piece[..read]);
                hash.update(&piece[..read]);
                size += read as u64;
            }
        }
    }
    if scanner.is_lost() || scanner.has_rest() {
        return Err(io::Error::other("the trace ends within a packet"));
    }
    let pids = scanner.dumps().iter().map(|dump| dump.pid).collect();
    Ok((pids, size, hash))
}
