//! A command on the device: its input, output and exit code. Owns the framing of the shell
//! services.
//!
//! With `shell_v2`, both directions are packets of ID (u8), length (u32, little endian) and
//! payload: 0 stdin, 1 stdout, 2 stderr, 3 exit code (one byte), 4 close stdin. Other IDs are
//! skipped. A stream that ends before packet 3 counts as lost, even after output.
//!
//! Devices without `shell_v2` run the command through `exec:`, which merges stderr into stdout and
//! does not return the exit code. Therefore the command line prints the exit code on a line after
//! the command's output.

use tokio::io::{AsyncBufReadExt, AsyncWriteExt};

use super::error::DeviceError;
use super::operation::Operation;
use super::wire::{Wire, WireError};

/// Result of a completed command. A connection that ends before the exit packet returns
/// [`DeviceError::Lost`] instead.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Output {
    /// Standard output, byte for byte.
    pub stdout: Vec<u8>,
    /// Standard error, byte for byte.
    pub stderr: Vec<u8>,
    /// Exit code of the shell.
    pub exit: u8,
}

#[cfg(any(test, feature = "scripted"))]
impl Output {
    /// Creates the output of a successful command.
    pub fn said(stdout: &str, stderr: &str) -> Output {
        Output {
            stdout: stdout.into(),
            stderr: stderr.into(),
            exit: 0,
        }
    }
}

/// Maximum payload of a stdin packet; adbd accepts up to 64 KiB.
const STDIN_PACKET: usize = 32 * 1024;

/// One event of a running command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShellEvent {
    /// Bytes of standard output.
    Stdout(Vec<u8>),
    /// Bytes of standard error.
    Stderr(Vec<u8>),
    /// The command ended with this exit code; no event follows.
    Exit(u8),
}

/// A running command with open stdin. Dropping it closes the connection; the device then sends
/// SIGHUP to the command.
pub struct Shell {
    pub(super) wire: Wire,
    pub(super) framing: Framing,
    pub(super) serial: String,
    pub(super) what: String,
}

/// Framing of the command's output.
pub(super) enum Framing {
    Packets(Packets),
    Marked(Marked),
}

impl Shell {
    /// Returns the next event. Do not call it again after [`ShellEvent::Exit`]. It waits while the
    /// command prints nothing, so callers set their own time limits. Cancel-safe.
    ///
    /// # Errors
    /// Returns [`DeviceError::Lost`] if the connection ends before the exit packet.
    pub async fn next(&mut self) -> Result<ShellEvent, DeviceError> {
        let op = Operation {
            serial: &self.serial,
            what: &self.what,
        };
        next_event(&mut self.wire.reader, &mut self.framing)
            .await
            .map_err(|e| op.error(e))
    }

    /// Writes bytes to the command's stdin. Not cancel-safe.
    ///
    /// # Errors
    /// Returns [`DeviceError::Lost`] if the connection ends.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), DeviceError> {
        feed(&mut self.wire.writer, &self.framing, bytes)
            .await
            .map_err(|e| self.op().error(e))
    }

    /// Closes the command's stdin.
    ///
    /// # Errors
    /// Returns [`DeviceError::Lost`] if the connection ends, and [`DeviceError::Refused`] on
    /// devices without `shell_v2`, because their protocol cannot close stdin.
    pub async fn close_stdin(&mut self) -> Result<(), DeviceError> {
        match self.framing {
            Framing::Packets(_) => close(&mut self.wire.writer)
                .await
                .map_err(|e| self.op().error(e)),
            Framing::Marked(_) => Err(self.op().error(WireError::Fail(
                "its adbd does not support shell_v2, so stdin cannot be closed".to_owned(),
            ))),
        }
    }

    /// Writes `stdin`, closes it, and collects all output until the exit code. Reads and writes at
    /// the same time, so that neither side blocks the other.
    pub(super) async fn finish(
        &mut self,
        stdin: &[u8],
        limit: usize,
    ) -> Result<Output, DeviceError> {
        let op = Operation {
            serial: &self.serial,
            what: &self.what,
        };
        let packets = matches!(self.framing, Framing::Packets(_));
        let (reader, writer) = (&mut self.wire.reader, &mut self.wire.writer);
        let feeding = async {
            // A command might end without reading its stdin: only its exit code counts.
            if packets {
                let _ = match feed_packets(writer, stdin).await {
                    Ok(()) => close(writer).await,
                    error => error,
                };
            } else if !stdin.is_empty() {
                let _ = writer.write_all(stdin).await;
            }
        };
        let framing = &mut self.framing;
        let collecting = async {
            let mut output = Output::default();
            loop {
                match next_event(reader, framing).await? {
                    ShellEvent::Stdout(bytes) => output.stdout.extend_from_slice(&bytes),
                    ShellEvent::Stderr(bytes) => output.stderr.extend_from_slice(&bytes),
                    ShellEvent::Exit(code) => {
                        output.exit = code;
                        return Ok(output);
                    }
                }
                if output.stdout.len() + output.stderr.len() > limit {
                    return Err(WireError::Garbled(format!(
                        "more than {} of output",
                        heaptap_base::units::ByteSize(limit as u64)
                    )));
                }
            }
        };
        tokio::pin!(feeding, collecting);
        let result = tokio::select! {
            result = &mut collecting => result,
            () = &mut feeding => collecting.await,
        };
        result.map_err(|e| op.error(e))
    }

    fn op(&self) -> Operation<'_> {
        Operation {
            serial: &self.serial,
            what: &self.what,
        }
    }
}

/// Returns the next event. Cancel-safe: bytes are consumed from the buffer only after they are
/// counted.
async fn next_event<R: AsyncBufReadExt + Unpin>(
    reader: &mut R,
    framing: &mut Framing,
) -> Result<ShellEvent, WireError> {
    loop {
        if let Framing::Marked(marked) = framing
            && let Some(event) = marked.pending()
        {
            return Ok(event);
        }
        let available = reader.fill_buf().await?;
        if available.is_empty() {
            return match framing {
                Framing::Packets(_) => Err(WireError::Closed(None)),
                Framing::Marked(marked) => marked.end().ok_or(WireError::Closed(None)),
            };
        }
        match framing {
            Framing::Packets(packets) => {
                let (taken, event) = packets.take(available);
                reader.consume(taken);
                if let Some(event) = event {
                    return event;
                }
            }
            Framing::Marked(marked) => {
                let taken = available.len();
                marked.push(available);
                reader.consume(taken);
            }
        }
    }
}

async fn feed<W: AsyncWriteExt + Unpin>(
    writer: &mut W,
    framing: &Framing,
    bytes: &[u8],
) -> Result<(), WireError> {
    match framing {
        Framing::Packets(_) => feed_packets(writer, bytes).await,
        Framing::Marked(_) => Ok(writer.write_all(bytes).await?),
    }
}

async fn feed_packets<W: AsyncWriteExt + Unpin>(
    writer: &mut W,
    bytes: &[u8],
) -> Result<(), WireError> {
    for chunk in bytes.chunks(STDIN_PACKET) {
        let mut packet = Vec::with_capacity(5 + chunk.len());
        packet.push(0);
        packet.extend_from_slice(&(chunk.len() as u32).to_le_bytes());
        packet.extend_from_slice(chunk);
        writer.write_all(&packet).await?;
    }
    Ok(writer.flush().await?)
}

async fn close<W: AsyncWriteExt + Unpin>(writer: &mut W) -> Result<(), WireError> {
    writer.write_all(&[4, 0, 0, 0, 0]).await?;
    Ok(writer.flush().await?)
}

/// Parser of shell v2 packets from pieces of any size. Passes each piece of a payload on at once,
/// so a length of 4 GiB does not use memory.
#[derive(Default)]
pub(super) struct Packets {
    header: [u8; 5],
    have: usize,
    left: usize,
}

impl Packets {
    /// Parses the next bytes of the stream. Returns the number of consumed bytes and the event in
    /// them.
    fn take(&mut self, input: &[u8]) -> (usize, Option<Result<ShellEvent, WireError>>) {
        let mut at = 0;
        if self.have < 5 {
            let n = (5 - self.have).min(input.len());
            self.header[self.have..self.have + n].copy_from_slice(&input[..n]);
            self.have += n;
            at = n;
            if self.have < 5 {
                return (at, None);
            }
            let length: [u8; 4] = std::array::from_fn(|i| self.header[i + 1]);
            self.left = u32::from_le_bytes(length) as usize;
            if self.header[0] == 3 && self.left == 0 {
                let empty = WireError::Garbled("an exit packet without a code".to_owned());
                return (at, Some(Err(empty)));
            }
        }
        let payload = &input[at..at + self.left.min(input.len() - at)];
        self.left -= payload.len();
        at += payload.len();
        if self.left == 0 {
            self.have = 0;
        }
        let event = match (self.header[0], payload) {
            (_, []) => None,
            (1, bytes) => Some(Ok(ShellEvent::Stdout(bytes.to_vec()))),
            (2, bytes) => Some(Ok(ShellEvent::Stderr(bytes.to_vec()))),
            (3, [code, ..]) => Some(Ok(ShellEvent::Exit(*code))),
            _ => None,
        };
        (at, event)
    }
}

/// Parser of `exec:` output that ends with a mark and the exit code.
pub(super) struct Marked {
    mark: Vec<u8>,
    held: Vec<u8>,
}

impl Marked {
    /// Creates a parser. `mark` must not occur in the command's output.
    pub(super) fn new(mark: &str) -> Self {
        Marked {
            mark: mark.as_bytes().to_vec(),
            held: Vec::new(),
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
    }

    /// Returns output that cannot be the beginning of the mark.
    fn pending(&mut self) -> Option<ShellEvent> {
        let certain = (0..self.held.len())
            .find(|&at| {
                let tail = &self.held[at..];
                if tail.len() >= self.mark.len() {
                    tail.starts_with(&self.mark)
                } else {
                    self.mark.starts_with(tail)
                }
            })
            .unwrap_or(self.held.len());
        (certain > 0).then(|| ShellEvent::Stdout(self.held.drain(..certain).collect()))
    }

    /// Returns the exit code if the stream ended with the mark, the code and a newline.
    fn end(&mut self) -> Option<ShellEvent> {
        let code = self.held.strip_prefix(self.mark.as_slice())?;
        let code = std::str::from_utf8(code).ok()?.strip_suffix('\n')?;
        code.trim_end().parse().ok().map(ShellEvent::Exit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packet(id: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![id];
        packet.extend((payload.len() as u32).to_le_bytes());
        packet.extend(payload);
        packet
    }

    /// Feeds `stream` in pieces of `sizes`, in turn; returns the output joined per channel.
    fn read(stream: &[u8], sizes: &[usize]) -> (Vec<u8>, Vec<u8>, Option<u8>) {
        let mut packets = Packets::default();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut sizes = sizes.iter().cycle();
        let mut at = 0;
        while at < stream.len() {
            let size = (*sizes.next().unwrap()).min(stream.len() - at);
            let mut piece = &stream[at..at + size];
            at += size;
            while !piece.is_empty() {
                let (taken, event) = packets.take(piece);
                assert!(taken > 0, "no progress");
                piece = &piece[taken..];
                match event {
                    Some(Ok(ShellEvent::Stdout(b))) => out.extend(b),
                    Some(Ok(ShellEvent::Stderr(b))) => err.extend(b),
                    Some(Ok(ShellEvent::Exit(code))) => return (out, err, Some(code)),
                    Some(Err(_)) => return (out, err, None),
                    None => {}
                }
            }
        }
        (out, err, None)
    }

    proptest! {
        #[test]
        fn packets_cut_anywhere_give_the_same(
            parts in proptest::collection::vec((prop_oneof![Just(1u8), Just(2), 5..=255u8], proptest::collection::vec(any::<u8>(), 0..50)), 0..8),
            code in any::<u8>(),
            sizes in proptest::collection::vec(1usize..20, 1..5),
        ) {
            let mut stream = Vec::new();
            let (mut out, mut err) = (Vec::new(), Vec::new());
            for (id, payload) in &parts {
                stream.extend(packet(*id, payload));
                match id {
                    1 => out.extend(payload),
                    2 => err.extend(payload),
                    _ => {}
                }
            }
            stream.extend(packet(3, &[code]));
            prop_assert_eq!(read(&stream, &sizes), (out, err, Some(code)));
        }

        #[test]
        fn garbage_never_stalls(stream in proptest::collection::vec(any::<u8>(), 0..300), size in 1usize..40) {
            let _ = read(&stream, &[size]);
        }

        #[test]
        fn a_mark_is_found_however_it_is_cut(
            output in "[a#\n]{0,40}",
            code in any::<u8>(),
            size in 1usize..12,
        ) {
            let mut marked = Marked::new("\n#aa#a:");
            let stream = format!("{output}\n#aa#a:{code}\n");
            let mut out = Vec::new();
            for piece in stream.as_bytes().chunks(size) {
                marked.push(piece);
                while let Some(ShellEvent::Stdout(bytes)) = marked.pending() {
                    out.extend(bytes);
                }
            }
            // The mark itself in the output would end it early; a real mark is random.
            prop_assume!(!output.contains("\n#aa#a:"));
            prop_assert_eq!(marked.end(), Some(ShellEvent::Exit(code)));
            prop_assert_eq!(out, output.into_bytes());
        }
    }

    #[test]
    fn an_exit_packet_without_a_code_is_no_exit() {
        assert_eq!(read(&packet(3, b""), &[1]), (vec![], vec![], None));
    }

    #[test]
    fn a_stream_without_the_mark_was_lost() {
        for stream in [
            "",
            "output",
            "output\n#aa#a:",
            "\n#aa#a:12",
            "\n#aa#a:300\n",
            "\n#aa#a:x\n",
        ] {
            let mut marked = Marked::new("\n#aa#a:");
            marked.push(stream.as_bytes());
            while marked.pending().is_some() {}
            assert_eq!(marked.end(), None, "{stream:?}");
        }
    }
}
