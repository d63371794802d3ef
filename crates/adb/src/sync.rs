//! Files on the device: stat, pull, push. Owns the framing of the sync service.
//!
//! A request is a four-letter ID, a length (u32, little endian) and a path. `STA2` returns 72 bytes
//! with an errno. `STAT` returns 16 bytes, all zero for a path that it cannot read. `RECV` returns
//! `DATA` blocks of at most 64 KiB, then `DONE`. `SEND` receives the same and returns `OKAY`. Both
//! return `FAIL` and a text if the device refuses; `SEND` can do so before it has read everything.

use std::io;
use std::time::{Duration, SystemTime};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};

use super::error::DeviceError;
use super::operation::Operation;
use super::printable::printable;
use super::wire::{Wire, WireError};

/// Maximum number of empty blocks in a row.
const MAX_EMPTY_BLOCKS: u32 = 16;
/// Maximum size of a block in either direction, and of a path.
const MAX_BLOCK: u32 = 64 * 1024;
const MAX_PATH: usize = 1024;

/// Result of `stat` for a remote file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RemoteStat {
    /// Size in bytes (64 bits if the device supports `stat_v2`, otherwise the lower 32 bits).
    pub size: u64,
    /// File type and permissions (`st_mode`).
    pub mode: u32,
    /// Modification time in seconds since the epoch.
    pub mtime: i64,
}

/// Runs `stat` on `path` and follows symbolic links.
pub(super) async fn stat(
    wire: &mut Wire,
    path: &str,
    v2: bool,
) -> Result<Option<RemoteStat>, WireError> {
    let id = if v2 { b"STA2" } else { b"STAT" };
    request(wire, id, path.as_bytes()).await?;
    let answer: [u8; 4] = read(wire).await?;
    if &answer == b"FAIL" {
        return Err(fail(wire).await);
    }
    if &answer != id {
        return Err(unexpected(id, &answer));
    }
    if !v2 {
        let body: [u8; 12] = read(wire).await?;
        let stat = RemoteStat {
            mode: u32_at(&body, 0),
            size: u64::from(u32_at(&body, 4)),
            mtime: i64::from(u32_at(&body, 8)),
        };
        // `STAT` returns zeros if it cannot read the path.
        return Ok((stat.mode != 0).then_some(stat));
    }
    let body: [u8; 68] = read(wire).await?;
    // error, dev 4, ino 12, mode 20, nlink 24, uid 28, gid 32, size 36, atime 44, mtime 52, ctime 60
    match u32_at(&body, 0) {
        0 => Ok(Some(RemoteStat {
            mode: u32_at(&body, 20),
            size: u64_at(&body, 36),
            mtime: u64_at(&body, 52) as i64,
        })),
        2 | 20 => Ok(None),
        errno => Err(WireError::Fail(errno_text(errno))),
    }
}

/// Pulls `path` into `sink`; see [`super::Device::pull`].
pub(super) async fn pull(
    wire: &mut Wire,
    op: Operation<'_>,
    path: &str,
    sink: &mut (dyn FnMut(&[u8]) -> io::Result<()> + Send),
    stall: Duration,
) -> Result<u64, DeviceError> {
    op.within(stall, request(wire, b"RECV", path.as_bytes()))
        .await?;
    let mut received = 0u64;
    let mut empty = 0;
    loop {
        let header: [u8; 8] = op.within(stall, read(wire)).await?;
        let mut left = u32_at(&header, 4);
        match &header[..4] {
            // Empty blocks are not progress, and would postpone the end forever.
            b"DATA" if left == 0 && empty < MAX_EMPTY_BLOCKS => empty += 1,
            b"DATA" if (1..=MAX_BLOCK).contains(&left) => empty = 0,
            b"DATA" => {
                return Err(op.error(WireError::Garbled(format!("a block of {left} bytes"))));
            }
            b"DONE" => return Ok(received),
            b"FAIL" => {
                let text = op.within(stall, fail_text(wire, left)).await?;
                return Err(op.error(WireError::Fail(text)));
            }
            other => return Err(op.error(unexpected(b"DATA", other))),
        }
        while left > 0 {
            let available = op
                .within(stall, async { Ok(wire.reader.fill_buf().await?) })
                .await?;
            let n = available.len().min(left as usize);
            if n == 0 {
                return Err(op.error(WireError::Closed(None)));
            }
            sink(&available[..n]).map_err(DeviceError::Sink)?;
            wire.reader.consume(n);
            left -= n as u32;
            received += n as u64;
        }
    }
}

/// Writes `bytes` to `path` with `mode`, and stops early if the device refuses.
pub(super) async fn push(
    wire: &mut Wire,
    bytes: &[u8],
    path: &str,
    mode: u32,
) -> Result<(), WireError> {
    check_path(path.as_bytes())?;
    let target = format!("{path},{mode}");
    let header = {
        let Wire { reader, writer } = &mut *wire;
        let sending = async {
            let mut start = b"SEND".to_vec();
            start.extend((target.len() as u32).to_le_bytes());
            start.extend(target.as_bytes());
            writer.write_all(&start).await?;
            for block in bytes.chunks(MAX_BLOCK as usize) {
                let mut header = *b"DATA\0\0\0\0";
                header[4..].copy_from_slice(&(block.len() as u32).to_le_bytes());
                writer.write_all(&header).await?;
                writer.write_all(block).await?;
            }
            let now = SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .map_or(0, |t| t.as_secs() as u32);
            let mut done = *b"DONE\0\0\0\0";
            done[4..].copy_from_slice(&now.to_le_bytes());
            writer.write_all(&done).await?;
            writer.flush().await
        };
        let answer = async {
            let mut header = [0; 8];
            reader.read_exact(&mut header).await?;
            Ok::<_, WireError>(header)
        };
        tokio::pin!(sending, answer);
        // The answer decides; a broken pipe while sending only means that the answer came early.
        tokio::select! {
            biased;
            header = &mut answer => header?,
            _ = &mut sending => answer.await?,
        }
    };
    match &header[..4] {
        b"OKAY" => Ok(()),
        b"FAIL" => Err(WireError::Fail(fail_text(wire, u32_at(&header, 4)).await?)),
        other => Err(unexpected(b"OKAY", other)),
    }
}

async fn request(wire: &mut Wire, id: &[u8; 4], path: &[u8]) -> Result<(), WireError> {
    check_path(path)?;
    let mut request = id.to_vec();
    request.extend((path.len() as u32).to_le_bytes());
    request.extend(path);
    wire.writer.write_all(&request).await?;
    Ok(wire.writer.flush().await?)
}

fn check_path(path: &[u8]) -> Result<(), WireError> {
    if path.len() > MAX_PATH || path.contains(&0) {
        return Err(WireError::Fail(format!(
            "a path must have at most {MAX_PATH} bytes and no NUL"
        )));
    }
    Ok(())
}

async fn read<const N: usize>(wire: &mut Wire) -> Result<[u8; N], WireError> {
    let mut bytes = [0; N];
    wire.reader.read_exact(&mut bytes).await?;
    Ok(bytes)
}

/// Reads the length and text after FAIL.
async fn fail(wire: &mut Wire) -> WireError {
    match read::<4>(wire).await {
        Ok(length) => match fail_text(wire, u32::from_le_bytes(length)).await {
            Ok(text) => WireError::Fail(text),
            Err(error) => error,
        },
        Err(error) => error,
    }
}

/// Reads the text after FAIL: as much as arrives, up to one block.
async fn fail_text(wire: &mut Wire, length: u32) -> Result<String, WireError> {
    let mut text = Vec::new();
    (&mut wire.reader)
        .take(u64::from(length.min(MAX_BLOCK)))
        .read_to_end(&mut text)
        .await?;
    Ok(match printable(&text).trim() {
        "" => "no reason given".to_owned(),
        text => text.to_owned(),
    })
}

fn unexpected(wanted: &[u8], got: &[u8]) -> WireError {
    WireError::Garbled(format!(
        "expected {}, got {:?}",
        printable(wanted),
        printable(got)
    ))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

/// Returns Linux's text for an errno of `stat`; the numbers are the same on every Android device.
fn errno_text(errno: u32) -> String {
    match errno {
        1 => "Operation not permitted".to_owned(),
        13 => "Permission denied".to_owned(),
        36 => "File name too long".to_owned(),
        40 => "Too many levels of symbolic links".to_owned(),
        errno => format!("error {errno}"),
    }
}
