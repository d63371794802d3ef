//! Packets: a length, an ID, flags, then a command or the error of a reply. Packets of command
//! 199.1 contain a chunk: four letters, a length, data. All numbers are big-endian.

use std::fmt;

/// Bytes of a packet before its data.
const HEADER: usize = 11;
/// Bytes of a chunk before its data.
const CHUNK_HEADER: usize = 8;
/// Android's command: a chunk for `android.ddm`.
const DDM: (u8, u8) = (199, 1);
/// Flag of a reply.
const REPLY: u8 = 0x80;

/// Maximum length of a packet. 65,535 allocations with stacks of 128 frames, the maximum
/// that a runtime can be set to, have 68 MB.
pub const MAX_LENGTH: usize = 96 << 20;

/// Type of a chunk, as four letters: `REAL`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChunkType(pub [u8; 4]);

impl ChunkType {
    /// Switches allocation tracking: one byte. Does not have an answer.
    pub const REAE: ChunkType = ChunkType(*b"REAE");
    /// Queries whether allocations are tracked; the answer is one byte.
    pub const REAQ: ChunkType = ChunkType(*b"REAQ");
    /// Requests the recent allocations.
    pub const REAL: ChunkType = ChunkType(*b"REAL");
    /// Error answer of the runtime.
    pub const FAIL: ChunkType = ChunkType(*b"FAIL");
}

impl fmt::Display for ChunkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0 {
            match byte {
                b' '..=b'~' => write!(f, "{}", char::from(byte))?,
                _ => f.write_str("?")?,
            }
        }
        Ok(())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    pub kind: ChunkType,
    pub data: Vec<u8>,
}

/// A received packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Packet {
    /// A command of the peer, with its chunk if it is a complete one of DDM.
    Command { id: u32, chunk: Option<Chunk> },
    /// A reply to our command.
    Reply {
        /// ID of that command.
        id: u32,
        /// JDWP error; 0 means none.
        error: u16,
        /// Chunk of the reply; `None` if the reply is empty or does not contain a chunk.
        chunk: Option<Chunk>,
    },
}

impl Packet {
    /// Returns the length of the packet that begins with `bytes`, including its header; `None` if
    /// there are fewer than four bytes.
    pub fn length(bytes: &[u8]) -> Option<u32> {
        Some(u32::from_be_bytes(*bytes.first_chunk()?))
    }

    /// Parses a whole packet; `None` if it is shorter than its header.
    pub fn read(bytes: &[u8]) -> Option<Packet> {
        let (header, data) = bytes.split_at_checked(HEADER)?;
        let [_, _, _, _, i0, i1, i2, i3, flags, high, low] = *header.first_chunk::<HEADER>()?;
        let id = u32::from_be_bytes([i0, i1, i2, i3]);
        Some(if flags & REPLY == 0 {
            Packet::Command {
                id,
                chunk: ((high, low) == DDM).then(|| Chunk::read(data)).flatten(),
            }
        } else {
            Packet::Reply {
                id,
                error: u16::from_be_bytes([high, low]),
                chunk: Chunk::read(data),
            }
        })
    }

    /// Encodes a command with a chunk. The runtime expects the whole packet at once, so it must be
    /// sent in one piece.
    pub fn command(id: u32, kind: ChunkType, data: &[u8]) -> Vec<u8> {
        let chunk = CHUNK_HEADER.saturating_add(data.len());
        let whole = u32::try_from(HEADER.saturating_add(chunk)).unwrap_or(u32::MAX);
        let mut bytes = Vec::with_capacity(HEADER + chunk);
        bytes.extend(whole.to_be_bytes());
        bytes.extend(id.to_be_bytes());
        bytes.extend([0, DDM.0, DDM.1]);
        bytes.extend(kind.0);
        bytes.extend(u32::try_from(data.len()).unwrap_or(u32::MAX).to_be_bytes());
        bytes.extend(data);
        bytes
    }
}

impl Chunk {
    /// Parses the chunk in `data`; `None` if it is missing or incomplete.
    fn read(data: &[u8]) -> Option<Chunk> {
        let (kind, rest) = data.split_first_chunk::<4>()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        Some(Chunk {
            kind: ChunkType(*kind),
            data: rest.get(..length)?.to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_command_is_its_fields() {
        let bytes = Packet::command(7, ChunkType::REAE, &[1]);
        let expected = [
            &[0, 0, 0, 20, 0, 0, 0, 7, 0, 199, 1][..],
            b"REAE",
            &[0, 0, 0, 1, 1],
        ];
        assert_eq!(bytes, expected.concat());
        assert_eq!(Packet::length(&bytes), Some(20));
        let chunk = Some(Chunk {
            kind: ChunkType::REAE,
            data: vec![1],
        });
        assert_eq!(Packet::read(&bytes), Some(Packet::Command { id: 7, chunk }));
    }

    #[test]
    fn replies_may_be_empty_or_hold_half_a_chunk() {
        let header = [0, 0, 0, 11, 0, 0, 0, 9, 0x80, 0, 112];
        let empty = Packet::Reply {
            id: 9,
            error: 112,
            chunk: None,
        };
        assert_eq!(Packet::read(&header), Some(empty.clone()));
        let half = [&header[..], b"REAL", &[0, 0, 0, 9, 1]].concat();
        assert_eq!(Packet::read(&half), Some(empty));
        assert_eq!(Packet::read(&header[..10]), None);
    }

    #[test]
    fn names_of_chunks_are_safe_to_show() {
        assert_eq!(ChunkType(*b"A\x1b[m").to_string(), "A?[m");
    }

    proptest! {
        #[test]
        fn whatever_is_sent_is_read(id: u32, kind: [u8; 4], data: Vec<u8>) {
            let bytes = Packet::command(id, ChunkType(kind), &data);
            prop_assert_eq!(Packet::length(&bytes).map(|l| l as usize), Some(bytes.len()));
            let chunk = Some(Chunk { kind: ChunkType(kind), data });
            prop_assert_eq!(Packet::read(&bytes), Some(Packet::Command { id, chunk }));
        }

        #[test]
        fn any_bytes_are_a_packet_or_none(bytes: Vec<u8>) {
            let read = Packet::read(&bytes);
            prop_assert_eq!(read.is_some(), bytes.len() >= 11);
        }
    }
}
