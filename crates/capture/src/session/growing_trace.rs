//! Reads the new end of a running session's trace file for a scanner.

use std::time::Duration;

use super::probe::{self, QUICK};
use crate::error::CaptureError;
use android_memory::status::uptime_ns;
use heaptap_adb::{Command, Device, ShellEvent};
use perfetto_heap::DumpScanner;

/// Interval between two reads.
pub(super) const LOOK: Duration = Duration::from_millis(150);
/// `dd` skips whole blocks of this size without reading them.
const BLOCK: u64 = 64 << 10;

/// Maximum length of the lines before the bytes of the file, without which a program was missing.
const MAX_HEAD: usize = 4 << 10;

/// `$1` trace file, `$2` blocks to skip, `$3` perfetto's pid.
const LOOK_AT: &str = include_str!("../scripts/trace_so_far.sh").trim_ascii_end();

/// Result of one read.
pub(super) struct Look {
    /// BOOTTIME of the read, ns.
    pub(super) boot_ns: u64,
    /// Perfetto was running.
    pub(super) alive: bool,
}

/// Scans the trace file at `path`, which perfetto with this PID writes, from `at` on. `at` then is
/// the end of what was scanned, even after an error.
pub(super) async fn look(
    device: &Device,
    (path, pid): (&str, u32),
    at: &mut u64,
    scan: &mut DumpScanner,
) -> Result<Look, CaptureError> {
    let skip = *at / BLOCK;
    let command = Command::script(LOOK_AT)
        .called("reading the trace so far")
        .arg(path)
        .arg(skip.to_string())
        .arg(pid.to_string());
    let mut shell = device.spawn(&command, QUICK).await?;
    let mut head = Vec::new();
    let mut position = skip * BLOCK;
    let mut look = Look {
        boot_ns: 0,
        alive: true,
    };
    loop {
        let mut bytes = match shell.next().await? {
            ShellEvent::Stdout(bytes) => bytes,
            ShellEvent::Stderr(_) => continue,
            ShellEvent::Exit(_) => return Ok(look),
        };
        // Two lines precede the bytes of the file.
        if look.boot_ns == 0 {
            head.append(&mut bytes);
            let mut lines = head.splitn(3, |b| *b == b'\n');
            let (Some(uptime), Some(state), Some(rest)) =
                (lines.next(), lines.next(), lines.next())
            else {
                if head.len() > MAX_HEAD {
                    return Err(probe::no_answer(device, "reading the trace so far").into());
                }
                continue;
            };
            let uptime = String::from_utf8_lossy(uptime);
            look.boot_ns = uptime_ns(&uptime)
                .ok_or_else(|| CaptureError::unexpected_answer(device, "uptime", &uptime))?;
            look.alive = state == b"alive";
            bytes = rest.to_vec();
        }
        let known = usize::try_from(at.saturating_sub(position)).unwrap_or(usize::MAX);
        position += bytes.len() as u64;
        if let Some(new) = bytes.get(known..) {
            scan.push(new);
            *at += new.len() as u64;
        }
    }
}
