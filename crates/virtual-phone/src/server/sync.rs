//! The service `sync:`: stat, pull and push.

use std::io;
use std::sync::Arc;

use super::wire::Wire;
use crate::access::Cred;
use crate::faults::FaultKind;
use crate::faults::gate::Answer;
use crate::fs::{Errno, Stat};
use crate::io::{Fd, WriteError};
use crate::kernel::Kernel;

/// Maximum length of a path in adbd.
const MAX_PATH: usize = 1024;
/// Maximum length of a data block.
const MAX_DATA: usize = 64 << 10;

/// Serves requests until QUIT or the end of the connection.
pub(super) fn serve(kernel: &Arc<Kernel>, wire: &Wire) -> io::Result<()> {
    wire.okay()?;
    let cred = Cred::shell();
    loop {
        let (id, length) = header(wire)?;
        if &id == b"QUIT" {
            return Ok(());
        }
        if length > MAX_PATH {
            return fail(wire, "path too long");
        }
        let mut path = vec![0; length];
        wire.read_exact(&mut path)?;
        let path = String::from_utf8_lossy(&path).into_owned();
        let name = String::from_utf8_lossy(&id).into_owned();
        kernel.note_request(&name, &path);
        match kernel.faults.pass(&format!("{name}:{path}")) {
            Answer::Serve => {}
            Answer::Refuse => return fail(wire, "I/O error"),
            other => return wire.give(other),
        }
        match &id {
            b"STAT" => {
                let entry = kernel.entry(&cred, "/", &path, false).ok();
                let stat = entry.map(|e| kernel.told_stat(e.stat)).unwrap_or_default();
                let values = [stat.mode, stat.size as u32, stat.mtime as u32];
                let values = values.iter().flat_map(|value| value.to_le_bytes());
                wire.write(&b"STAT".iter().copied().chain(values).collect::<Vec<u8>>())?;
            }
            b"STA2" | b"LST2" => {
                let entry = kernel.entry(&cred, "/", &path, &id == b"STA2");
                let stat = entry.map(|e| kernel.told_stat(e.stat));
                let mut reply = id.to_vec();
                stat2(&mut reply, stat);
                wire.write(&reply)?;
            }
            b"RECV" => receive(kernel, wire, &cred, &path)?,
            b"SEND" => {
                // `path,mode`, with a decimal mode.
                let Some((path, mode)) = path.rsplit_once(',') else {
                    return fail(wire, "missing , in ID_SEND_V1");
                };
                send(kernel, wire, &cred, path, mode.parse().unwrap_or(0o644))?;
            }
            other => return fail(wire, &format!("unknown command {other:02x?}")),
        }
    }
}

fn header(wire: &Wire) -> io::Result<([u8; 4], usize)> {
    let mut bytes = [0; 8];
    wire.read_exact(&mut bytes)?;
    let [a, b, c, d, length @ ..] = bytes;
    Ok(([a, b, c, d], u32::from_le_bytes(length) as usize))
}

fn fail(wire: &Wire, text: &str) -> io::Result<()> {
    let mut reply = b"FAIL".to_vec();
    reply.extend_from_slice(&(text.len() as u32).to_le_bytes());
    reply.extend_from_slice(text.as_bytes());
    wire.write(&reply)
}

/// Appends the 68 bytes that follow the ID in stat v2.
fn stat2(reply: &mut Vec<u8>, stat: Result<Stat, Errno>) {
    let error = stat.as_ref().map_or_else(|errno| errno.number(), |_| 0);
    let stat = stat.unwrap_or_default();
    reply.extend_from_slice(&error.to_le_bytes());
    let device: u64 = if error == 0 { 0xfd05 } else { 0 };
    reply.extend_from_slice(&device.to_le_bytes());
    reply.extend_from_slice(&stat.inode.to_le_bytes());
    for value in [stat.mode, u32::from(error == 0), stat.uid, stat.gid] {
        reply.extend_from_slice(&value.to_le_bytes());
    }
    reply.extend_from_slice(&stat.size.to_le_bytes());
    for _ in 0..3 {
        reply.extend_from_slice(&stat.mtime.to_le_bytes());
    }
}

fn receive(kernel: &Kernel, wire: &Wire, cred: &Cred, path: &str) -> io::Result<()> {
    let data = match kernel.open_read(cred, "/", path) {
        Ok(Fd::File { data, .. }) => data,
        Ok(_) => return fail(wire, "read failed: Is a directory"),
        Err(errno) => return fail(wire, &format!("open failed: {}", errno.text())),
    };
    if kernel.faults.has_struck(FaultKind::PullFail) {
        return fail(wire, "read failed: I/O error");
    }
    let half = data.len() / 2;
    let cut = kernel.faults.value(FaultKind::PullCut, half);
    let hang = kernel.faults.value(FaultKind::PullHang, half);
    let short = kernel.faults.value(FaultKind::PullShort, half);
    let flip = kernel.faults.value(FaultKind::PullFlip, half);
    let end = [cut, hang, short].into_iter().flatten().min();
    let mut at = 0u64;
    loop {
        let limit = end.map_or(MAX_DATA as u64, |e| {
            e.saturating_sub(at).min(MAX_DATA as u64)
        });
        let mut bytes = data.read_at(at, limit as usize);
        if bytes.is_empty() {
            break;
        }
        if let Some(flip) = flip
            && (at..at + bytes.len() as u64).contains(&flip)
        {
            bytes[(flip - at) as usize] ^= 0x55;
        }
        at += bytes.len() as u64;
        let mut block = b"DATA".to_vec();
        let cut_inside = cut.is_some() && end == Some(at);
        // A cut connection ends inside a block.
        let claimed = (bytes.len() + usize::from(cut_inside)).min(MAX_DATA) as u32;
        block.extend_from_slice(&claimed.to_le_bytes());
        block.extend_from_slice(&bytes);
        wire.write(&block)?;
    }
    if cut.is_some() {
        return Err(io::Error::other("cut"));
    }
    if hang.is_some() {
        wire.silence(None);
        return Err(io::Error::other("hung"));
    }
    wire.write(b"DONE\0\0\0\0")
}

fn send(kernel: &Kernel, wire: &Wire, cred: &Cred, path: &str, mode: u32) -> io::Result<()> {
    let refused = kernel.faults.has_struck(FaultKind::PushFail);
    let is_directory = matches!(
        kernel.entry(cred, "/", path, true).map(|e| e.body),
        Ok(crate::fs::Body::Directory(_))
    );
    let opened = if refused {
        Err("couldn't create file: I/O error".to_owned())
    } else if is_directory {
        Err("couldn't create file: Is a directory".to_owned())
    } else {
        make_parents(kernel, cred, path);
        // adbd removes a file before replacing it.
        let _ = kernel.remove(cred, "/", path);
        kernel
            .open_write(cred, "/", path, mode & 0o777, false)
            .map_err(|e| format!("couldn't create file: {}", e.text()))
    };
    let mut error = opened.as_ref().err().cloned();
    let mut at = 0;
    let mut block = vec![0; MAX_DATA];
    loop {
        let (id, length) = header(wire)?;
        match &id {
            b"DATA" if length <= MAX_DATA => {
                wire.read_exact(&mut block[..length])?;
                if let Ok(Fd::File { data, .. }) = &opened
                    && error.is_none()
                {
                    match kernel.write_file(data, at, &block[..length]) {
                        Ok(()) => at += length as u64,
                        Err(WriteError::Full) => {
                            error = Some("write failed: No space left on device".to_owned());
                        }
                        Err(_) => error = Some("write failed: I/O error".to_owned()),
                    }
                }
            }
            b"DONE" => break,
            _ => return fail(wire, "invalid data message"),
        }
    }
    match error {
        Some(text) => fail(wire, &text),
        None => wire.write(b"OKAY\0\0\0\0"),
    }
}

/// Creates the directories of a pushed file, if permitted, as adbd does.
fn make_parents(kernel: &Kernel, cred: &Cred, path: &str) {
    let parts: Vec<&str> = path.split('/').collect();
    for end in 2..parts.len() {
        let dir = parts[..end].join("/");
        // Errors are ignored: if a directory is missing, opening the file fails.
        let _ = kernel.make_directory(cred, "/", &dir);
    }
}
