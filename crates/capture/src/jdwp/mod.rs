//! Protocol between a debugger and a Java runtime on a device: JDWP's handshake and packets, the
//! chunks of Android's own command (DDM) inside them, and the answer with recent allocations.
//! Independent of devices: it works over any byte stream.
//!
//! | file | owns |
//! |---|---|
//! | `packet` | packets and chunks: parsing and encoding |
//! | `connection` | one connection: the handshake, requests and their answers |
//! | `allocations` | the answer to `REAL`: recent allocations |

mod allocations;
mod connection;
mod packet;

pub use allocations::{Allocation, Allocations, Frame, MAX_NAME_LENGTH, Malformed, MethodFrame};
pub use connection::{Connection, HANDSHAKE, JdwpError};
pub use packet::{Chunk, ChunkType, MAX_LENGTH, Packet};
