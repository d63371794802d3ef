//! Small readers of both forms of a Java heap dump, for the tests only: heap graphs from the
//! generated messages, HPROF from its grammar, each implementing only its own format.

use std::collections::{BTreeMap, BTreeSet};

use heaptap_proto::perfetto as pb;

/// An object of a dump.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Object {
    pub class: String,
    pub bytes: u64,
    /// Field and target; the field's name is empty if the dump does not have it.
    pub references: Vec<(String, u64)>,
}

/// One dump of one process.
#[derive(Debug, Default)]
pub struct Dump {
    pub pid: u64,
    pub timestamp: u64,
    pub sequence: u32,
    pub complete: bool,
    pub objects: BTreeMap<u64, Object>,
    pub roots: BTreeMap<u64, i32>,
    pub types: BTreeMap<String, pb::HeapGraphType>,
    pub registries: BTreeMap<u64, i64>,
    pub bitmaps: usize,
    pub zygote: BTreeSet<u64>,
    pub allocated: Option<i64>,
    pub packets: u64,
}

/// The dumps of a trace, by process and time.
pub fn heap_graphs(trace: &pb::Trace) -> Vec<Dump> {
    let mut sequences: BTreeMap<u32, Vec<&pb::TracePacket>> = BTreeMap::new();
    for packet in trace.packet.iter().filter(|p| p.heap_graph.is_some()) {
        let sequence = packet.trusted_packet_sequence_id();
        sequences.entry(sequence).or_default().push(packet);
    }
    sequences
        .values()
        .map(|packets| heap_graph(packets))
        .collect()
}

fn heap_graph(packets: &[&pb::TracePacket]) -> Dump {
    let graphs: Vec<&pb::HeapGraph> = packets
        .iter()
        .filter_map(|p| p.heap_graph.as_ref())
        .collect();
    let strings = |all: Vec<&pb::InternedString>| -> BTreeMap<u64, String> {
        let text = |s: &pb::InternedString| String::from_utf8(s.str().to_vec()).expect("UTF-8");
        all.iter().map(|s| (s.iid(), text(s))).collect()
    };
    let fields = strings(graphs.iter().flat_map(|g| &g.field_names).collect());
    let locations = strings(graphs.iter().flat_map(|g| &g.location_names).collect());
    let types: BTreeMap<u64, &pb::HeapGraphType> = graphs
        .iter()
        .flat_map(|g| &g.types)
        .map(|t| (t.id(), t))
        .collect();
    // A truncated dump lacks its names.
    let name = |id: &u64| fields.get(id).cloned().unwrap_or_default();
    for one in types.values().filter(|t| t.location_id.is_some()) {
        assert!(locations.contains_key(&one.location_id()), "{one:?}");
    }
    let mut dump = Dump {
        pid: graphs[0].pid() as u64,
        timestamp: packets[0].timestamp(),
        sequence: packets[0].trusted_packet_sequence_id(),
        complete: graphs.last().is_some_and(|g| !g.continued()),
        allocated: graphs[0].heap_bytes_allocated,
        packets: graphs.len() as u64,
        types: types
            .values()
            .map(|t| (t.class_name().to_owned(), (*t).clone()))
            .collect(),
        ..Dump::default()
    };
    let mut before = 0;
    let mut heap = pb::heap_graph_object::HeapType::Unknown;
    for (i, (packet, graph)) in packets.iter().zip(&graphs).enumerate() {
        assert_eq!((graph.index(), graph.pid() as u64), (i as u64, dump.pid));
        assert_eq!(
            packet.timestamp(),
            dump.timestamp,
            "one time for all packets"
        );
        for root in &graph.roots {
            dump.roots.extend(
                root.object_ids
                    .iter()
                    .map(|id| (*id, root.root_type() as i32)),
            );
        }
        for object in &graph.objects {
            use pb::heap_graph_object::Identifier;
            let id = match object.identifier.as_ref().expect("an id") {
                Identifier::Id(id) => *id,
                Identifier::IdDelta(delta) => before + delta,
            };
            before = id;
            if object.heap_type_delta.is_some() {
                heap = object.heap_type_delta();
            }
            if heap == pb::heap_graph_object::HeapType::Zygote {
                dump.zygote.insert(id);
            }
            if let Some(size) = object.native_allocation_registry_size_field {
                dump.registries.insert(id, size);
            }
            dump.bitmaps += usize::from(object.width.is_some());
            let of = types.get(&object.type_id());
            let base = object.reference_field_id_base();
            let mut names = Vec::new();
            if !object.reference_field_id.is_empty() {
                assert_eq!(
                    object.reference_field_id.len(),
                    object.reference_object_id.len()
                );
                names.extend(object.reference_field_id.iter().map(name));
            } else if let Some(of) = of {
                let mut at = Some(*of);
                while let Some(one) = at {
                    names.extend(one.reference_field_id.iter().map(name));
                    at = types
                        .get(&one.superclass_id())
                        .copied()
                        .filter(|_| one.superclass_id.is_some());
                }
            }
            names.resize(object.reference_object_id.len(), String::new());
            let targets = object.reference_object_id.iter();
            let targets = targets.map(|id| if *id == 0 { 0 } else { id + base });
            let internals = object.runtime_internal_object_id.iter();
            let decoded = Object {
                class: of.map_or_else(String::new, |t| t.class_name().to_owned()),
                bytes: match object.self_size() {
                    0 => of.map_or(0, |t| t.object_size()),
                    size => size,
                },
                references: names
                    .into_iter()
                    .zip(targets)
                    .chain(internals.map(|id| ("runtimeInternalObjects".to_owned(), *id)))
                    .filter(|(_, target)| *target != 0)
                    .collect(),
            };
            assert!(dump.objects.insert(id, decoded).is_none(), "{id} twice");
        }
    }
    dump
}

/// Contents of an HPROF of ART.
#[derive(Debug, Default)]
pub struct Hprof {
    pub strings: BTreeMap<u32, String>,
    /// Class names by id.
    pub names: BTreeMap<u32, String>,
    pub classes: BTreeMap<u32, Class>,
    pub instances: BTreeMap<u32, Instance>,
    /// Class and elements.
    pub arrays: BTreeMap<u32, (u32, Vec<u32>)>,
    /// Type and bytes.
    pub primitives: BTreeMap<u32, (u8, Vec<u8>)>,
    /// Tags of roots by object.
    pub roots: BTreeMap<u32, BTreeSet<u8>>,
    /// Heap of each object, by its letter.
    pub heaps: BTreeMap<u32, u8>,
    pub segments: usize,
    pub ended: bool,
}

#[derive(Debug, Default)]
pub struct Class {
    pub superclass: u32,
    pub loader: u32,
    pub instance_bytes: u32,
    /// Name, type and value.
    pub statics: Vec<(String, u8, u64)>,
    pub fields: Vec<(String, u8)>,
}

#[derive(Debug, Default)]
pub struct Instance {
    pub class: u32,
    pub data: Vec<u8>,
}

struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, n: usize) -> &'a [u8] {
        let (head, rest) = self.0.split_at(n);
        self.0 = rest;
        head
    }

    fn number(&mut self, bytes: usize) -> u64 {
        self.take(bytes)
            .iter()
            .fold(0, |n, b| n << 8 | u64::from(*b))
    }

    fn u1(&mut self) -> u8 {
        self.number(1) as u8
    }

    fn u4(&mut self) -> u32 {
        self.number(4) as u32
    }
}

/// Bytes of a type by its code.
pub fn width(code: u8) -> usize {
    match code {
        4 | 8 => 1,
        5 | 9 => 2,
        2 | 6 | 10 => 4,
        7 | 11 => 8,
        other => panic!("type {other}"),
    }
}

impl Hprof {
    pub fn read(bytes: &[u8]) -> Hprof {
        let mut at = Cursor(bytes);
        assert_eq!(at.take(19), b"JAVA PROFILE 1.0.3\0");
        assert_eq!(at.u4(), 4, "ART's ids have four bytes on every phone");
        at.number(8);
        let mut dump = Hprof::default();
        while !at.0.is_empty() {
            assert!(!dump.ended, "nothing comes after the end");
            let tag = at.u1();
            at.u4();
            let length = at.u4() as usize;
            let mut body = Cursor(at.take(length));
            match tag {
                0x01 => {
                    let id = body.u4();
                    let text = String::from_utf8(body.0.to_vec()).expect("UTF-8");
                    dump.strings.insert(id, text);
                }
                0x02 => {
                    body.u4();
                    let class = body.u4();
                    body.u4();
                    let name = dump.strings[&body.u4()].clone();
                    dump.names.insert(class, name);
                }
                0x05 => assert_eq!(body.0, [0; 12]),
                0x1c => {
                    dump.segments += 1;
                    dump.segment(body);
                }
                0x2c => dump.ended = true,
                other => panic!("record {other:#x}"),
            }
        }
        dump
    }

    fn segment(&mut self, mut at: Cursor<'_>) {
        let mut heap = 0;
        while !at.0.is_empty() {
            let tag = at.u1();
            match tag {
                0xfe => {
                    heap = at.u4() as u8;
                    assert!(self.strings.contains_key(&at.u4()));
                }
                0x20 => {
                    let id = self.class(&mut at);
                    self.heaps.insert(id, heap);
                }
                0x21 => {
                    let id = at.u4();
                    at.u4();
                    let class = at.u4();
                    let length = at.u4() as usize;
                    let data = at.take(length).to_vec();
                    self.heaps.insert(id, heap);
                    let instance = Instance { class, data };
                    assert!(self.instances.insert(id, instance).is_none());
                }
                0x22 => {
                    let id = at.u4();
                    at.u4();
                    let (length, class) = (at.u4(), at.u4());
                    let items = (0..length).map(|_| at.u4()).collect();
                    self.heaps.insert(id, heap);
                    assert!(self.arrays.insert(id, (class, items)).is_none());
                }
                0x23 => {
                    let id = at.u4();
                    at.u4();
                    let (length, kind) = (at.u4() as usize, at.u1());
                    let data = at.take(length * width(kind)).to_vec();
                    self.heaps.insert(id, heap);
                    assert!(self.primitives.insert(id, (kind, data)).is_none());
                }
                root => {
                    self.roots.entry(at.u4()).or_default().insert(root);
                    match root {
                        0x01 | 0x04 => drop(at.u4()),
                        0x02 | 0x03 | 0x08 | 0x8e => drop(at.number(8)),
                        0x05 | 0x07 | 0x89 | 0x8d => {}
                        other => panic!("sub-record {other:#x}"),
                    }
                }
            }
        }
    }

    fn class(&mut self, at: &mut Cursor<'_>) -> u32 {
        let id = at.u4();
        at.u4();
        let (superclass, loader) = (at.u4(), at.u4());
        at.take(16);
        let instance_bytes = at.u4();
        assert_eq!(at.number(2), 0, "ART has no constants");
        let count = at.number(2);
        let statics = (0..count)
            .map(|_| {
                let name = self.strings[&at.u4()].clone();
                let kind = at.u1();
                (name, kind, at.number(width(kind)))
            })
            .collect();
        let count = at.number(2);
        let fields = (0..count)
            .map(|_| (self.strings[&at.u4()].clone(), at.u1()))
            .collect();
        let class = Class {
            superclass,
            loader,
            instance_bytes,
            statics,
            fields,
        };
        assert!(self.classes.insert(id, class).is_none());
        id
    }

    /// Fields of an instance: name, type, value; the most specific class first.
    pub fn fields(&self, instance: &Instance) -> Vec<(String, u8, u64)> {
        let mut at = Cursor(&instance.data);
        let mut all = Vec::new();
        let mut class = instance.class;
        while class != 0 {
            let of = &self.classes[&class];
            for (name, kind) in &of.fields {
                all.push((name.clone(), *kind, at.number(width(*kind))));
            }
            class = of.superclass;
        }
        assert!(at.0.is_empty(), "all of an instance's data is fields");
        all
    }

    /// The text of a string object.
    pub fn text(&self, id: u32) -> String {
        let fields = self.fields(&self.instances[&id]);
        let value = |name: &str| {
            let found = fields.iter().find(|(n, _, _)| n == name);
            found.expect("String has it").2 as u32
        };
        let (kind, data) = &self.primitives[&value("value")];
        let text = match kind {
            8 => String::from_utf8(data.clone()).expect("ASCII"),
            _ => {
                let units: Vec<u16> = data
                    .chunks(2)
                    .map(|c| u16::from_be_bytes([c[0], c[1]]))
                    .collect();
                String::from_utf16(&units).expect("UTF-16")
            }
        };
        assert_eq!(value("count") as usize, text.encode_utf16().count());
        text
    }

    /// Returns whether ART invents the id: for the characters of a string, the tables of a class,
    /// or objects known only to the runtime.
    pub fn made_up(&self, id: u32) -> bool {
        let is_string = |id: u32| {
            let of = self.instances.get(&id).map(|i| &self.names[&i.class]);
            of.is_some_and(|name| name == "java.lang.String")
        };
        !id.is_multiple_of(8)
            || is_string(id.wrapping_sub(16)) && self.primitives.contains_key(&id)
            || is_string(id.wrapping_sub(8))
                && self
                    .primitives
                    .get(&id)
                    .is_some_and(|(_, data)| data.is_empty())
    }
}
