//! The order of Perfetto's rows, from an independent reader of the packets: an object gets its row
//! at its first appearance, as itself or as the target of a reference.

use prost::Message;
use std::collections::HashMap;
use std::path::Path;

#[derive(Clone, PartialEq, Message)]
struct Trace {
    #[prost(message, repeated, tag = "1")]
    packet: Vec<Packet>,
}

#[derive(Clone, PartialEq, Message)]
struct Packet {
    #[prost(uint64, tag = "8")]
    timestamp: u64,
    #[prost(uint32, tag = "10")]
    sequence: u32,
    #[prost(message, optional, tag = "56")]
    graph: Option<Graph>,
}

#[derive(Clone, PartialEq, Message)]
struct Graph {
    #[prost(int32, tag = "1")]
    pid: i32,
    #[prost(message, repeated, tag = "2")]
    objects: Vec<Object>,
    #[prost(bool, tag = "5")]
    continued: bool,
}

#[derive(Clone, PartialEq, Message)]
struct Object {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(uint64, repeated, tag = "4")]
    field_ids: Vec<u64>,
    #[prost(uint64, repeated, tag = "5")]
    references: Vec<u64>,
    #[prost(uint64, tag = "6")]
    base: u64,
    #[prost(uint64, tag = "7")]
    delta: u64,
    #[prost(uint64, repeated, tag = "10")]
    internal: Vec<u64>,
}

/// Rows of the objects and references of a trace with one dump.
#[derive(Default)]
pub struct Rows {
    /// Object ids by row.
    pub objects: Vec<u64>,
    /// By object id.
    pub row_of: HashMap<u64, usize>,
    /// Owners in order of the references' rows, with the first row and the number of rows.
    pub owners: Vec<(u64, usize, usize)>,
}

impl Rows {
    fn object(&mut self, id: u64) {
        let next = self.objects.len();
        if *self.row_of.entry(id).or_insert(next) == next {
            self.objects.push(id);
        }
    }

    pub fn read(path: &Path) -> Rows {
        let mut bytes = std::fs::read(path).expect("a trace");
        if bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
            bytes = zstd::stream::decode_all(&bytes[..]).expect("zstd inflates");
        }
        let trace = Trace::decode(&bytes[..]).expect("a trace");
        let mut rows = Rows::default();
        let mut last: HashMap<u32, u64> = HashMap::new();
        let mut references = 0;
        for packet in trace.packet {
            let Some(graph) = packet.graph else { continue };
            let last = last.entry(packet.sequence).or_default();
            for object in graph.objects {
                let id = match object.delta {
                    0 => object.id,
                    delta => last.wrapping_add(delta),
                };
                if !object.field_ids.is_empty() && object.field_ids.len() != object.references.len()
                {
                    continue;
                }
                *last = id;
                rows.object(id);
                for reference in &object.references {
                    if *reference != 0 {
                        rows.object(reference.wrapping_add(object.base));
                    }
                }
                for internal in &object.internal {
                    rows.object(*internal);
                }
                let count = object.references.len() + object.internal.len();
                if count > 0 {
                    rows.owners.push((id, references, count));
                }
                references += count;
            }
            if !graph.continued {
                *last = 0;
            }
        }
        rows
    }
}
