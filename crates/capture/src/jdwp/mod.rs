//! What a debugger and a Java runtime say to each other on a phone: JDWP's handshake and packets,
//! in them the chunks of Android's own command (DDM), and the answer to the one that asks for
//! recent allocations. Knows no devices: it speaks over any stream of bytes.
//!
//! | file | owns |
//! |---|---|
//! | `packet` | packets and chunks: bytes to values and back |
//! | `connection` | one connection: the handshake, questions and their answers |
//! | `allocations` | the answer to `REAL`: who allocated what |

mod allocations;
mod connection;
mod packet;

pub use allocations::{Allocation, Allocations, Frame, LONGEST_NAME, Malformed, MethodFrame};
pub use connection::{Connection, HANDSHAKE, JdwpError};
pub use packet::{Chunk, ChunkType, LONGEST, Packet};
