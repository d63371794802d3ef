//! Writer of a heap as `android.java_hprof` does: HeapGraph messages of about 400 kB, without the
//! data that each Android release omits. Owns the numbers of types, fields and locations.

use std::collections::HashMap;

use prost::Message as _;

use super::app::build;
use super::heap::{Body, CLASS, ClassRef, FieldDef, JavaHeap, Kind, Obj, RootKind, Type};
use super::inputs::Inputs;
use crate::strings::Strings;
use heaptap_proto::perfetto::{
    HeapGraph, HeapGraphObject, HeapGraphRoot, HeapGraphType, InternedString, heap_graph_object,
};

/// Maximum size of a message in bytes; a message that reaches it is closed.
const MESSAGE_LIMIT: usize = 400_000;

/// Android release with superclass, fields and kind of types, and with differences as IDs.
const TYPES: u32 = 12;
/// Android release with sizes of native registries.
const NATIVES: u32 = 13;
/// Android release with heaps, allocated bytes, and objects that only the runtime holds.
const HEAPS: u32 = 15;
/// Android release with identity and size of bitmaps, and the version of the app.
const BITMAPS: u32 = 16;

fn interned(strings: &Strings) -> Vec<InternedString> {
    let numbered = strings.all.iter().zip(1..);
    let interned = numbered.map(|(text, iid)| InternedString {
        iid: Some(iid),
        str: Some(text.as_bytes().to_vec()),
    });
    interned.collect()
}

struct Writer<'a> {
    heap: &'a JavaHeap,
    inputs: &'a Inputs,
    android: u32,
    fields: Strings,
    locations: Strings,
    /// Types in the order of their first use: a class, and whether it is for its instances or its
    /// class object.
    types: Vec<(ClassRef, bool)>,
    type_ids: HashMap<(ClassRef, bool), u64>,
    messages: Vec<HeapGraph>,
    bytes: usize,
}

/// Encodes the heap of `inputs` as messages of a dump; omits objects of ignored types.
pub(crate) fn messages(inputs: &Inputs, ignored: &[String]) -> Vec<HeapGraph> {
    let (heap, _) = build(inputs, None);
    let mut writer = Writer {
        heap: &heap,
        inputs,
        android: inputs.android,
        fields: Strings::from(1),
        locations: Strings::from(1),
        types: Vec::new(),
        type_ids: HashMap::new(),
        messages: Vec::new(),
        bytes: 0,
    };
    writer.open();
    writer.roots();
    writer.objects(ignored);
    writer.tables();
    writer.messages
}

/// Returns an object's ID: its address in units of four bytes.
fn id(heap: &JavaHeap, object: Obj) -> u64 {
    u64::from(heap.object(object).address) / 4
}

fn field_name(class: &str, field: &FieldDef) -> String {
    format!("{} {class}.{}", field.type_name, field.name)
}

impl Writer<'_> {
    fn open(&mut self) {
        if let Some(last) = self.messages.last_mut() {
            last.continued = Some(true);
        }
        let first = self.messages.is_empty();
        self.bytes = 0;
        self.messages.push(HeapGraph {
            pid: Some(self.inputs.pid as i32),
            index: Some(self.messages.len() as u64),
            continued: Some(false),
            heap_bytes_allocated: (first && self.android >= HEAPS)
                .then(|| self.heap.allocated_bytes() as i64),
            ..HeapGraph::default()
        });
    }

    /// Returns the message for the next `bytes`.
    fn room(&mut self, bytes: usize) -> &mut HeapGraph {
        if self.bytes > 0 && self.bytes + bytes > MESSAGE_LIMIT {
            self.open();
        }
        self.bytes += bytes;
        self.messages.last_mut().expect("one is always open")
    }

    fn roots(&mut self) {
        let roots = self.heap.roots.iter();
        let roots = roots.map(|r| (r.kind, id(self.heap, r.object)));
        let mut roots: Vec<(RootKind, u64)> = roots.collect();
        if self.android < HEAPS {
            // Only these references show that a class loader holds its classes.
            let classes = self.heap.internals.iter().flat_map(|(_, held)| held);
            roots.extend(classes.map(|c| (RootKind::RootStickyClass, id(self.heap, *c))));
        }
        roots.sort_unstable();
        for group in roots.chunk_by(|a, b| a.0 == b.0) {
            for part in group.chunks(4_096) {
                let root = HeapGraphRoot {
                    object_ids: part.iter().map(|(_, id)| *id).collect(),
                    root_type: Some(group[0].0 as i32),
                };
                self.room(root.encoded_len() + 4).roots.push(root);
            }
        }
    }

    fn type_id(&mut self, class: ClassRef, of_class: bool) -> u64 {
        let next = self.types.len() as u64 + 1;
        let id = *self.type_ids.entry((class, of_class)).or_insert(next);
        if id == next {
            self.types.push((class, of_class));
            // Field names of a class need those of its superclasses.
            if self.android >= TYPES
                && let Some(above) = self.heap.class(class).superclass
                && !of_class
            {
                self.type_id(above, false);
            }
        }
        id
    }

    fn objects(&mut self, ignored: &[String]) {
        let mut before = 0;
        let mut space = None;
        let heap = self.heap;
        for object in heap.all() {
            let class = self.heap.object(object).class;
            if ignored.iter().any(|i| **i == *self.heap.class(class).name) {
                continue;
            }
            let at = id(self.heap, object);
            let mut written = self.object(object);
            written.identifier = Some(if self.android >= TYPES && before > 0 && at > before {
                heap_graph_object::Identifier::IdDelta(at - before)
            } else {
                heap_graph_object::Identifier::Id(at)
            });
            before = at;
            let here = self.heap.object(object).space;
            if self.android >= HEAPS && space != Some(here) {
                space = Some(here);
                written.heap_type_delta = Some(here as i32);
            }
            self.room(written.encoded_len() + 4).objects.push(written);
        }
    }

    fn object(&mut self, object: Obj) -> HeapGraphObject {
        let heap = self.heap;
        let of = heap.object(object);
        let mut fields = Vec::new();
        let mut targets = Vec::new();
        let mut fixed_size = false;
        let type_id = match &of.body {
            Body::Class(class) => {
                let name = heap.class(*class).name.clone();
                for (field, value) in heap.class_values(*class) {
                    if field.kind == Type::Object {
                        fields.push(self.fields.id(&field_name("java.lang.Class", field)));
                        targets.push(value.object());
                    }
                }
                for (field, value) in &heap.class(*class).statics {
                    if field.kind == Type::Object {
                        fields.push(self.fields.id(&field_name(&name, field)));
                        targets.push(value.object());
                    }
                }
                self.type_id(*class, true)
            }
            Body::Instance(_) => {
                fixed_size = true;
                for (class, field, value) in heap.values(object) {
                    if field.kind != Type::Object {
                        continue;
                    }
                    if self.android < TYPES {
                        let name = field_name(&heap.class(class).name, field);
                        fields.push(self.fields.id(&name));
                    }
                    targets.push(value.object());
                }
                self.type_id(of.class, false)
            }
            Body::References(items) => {
                targets.extend(items);
                if self.android < TYPES {
                    // Elements do not have fields: the name is empty.
                    fields = vec![self.fields.id(""); items.len()];
                }
                self.type_id(of.class, false)
            }
            Body::String(_) | Body::Primitives(..) => self.type_id(of.class, false),
        };
        let ids: Vec<u64> = targets
            .iter()
            .map(|t| t.map_or(0, |t| id(heap, t)))
            .collect();
        // One below the smallest ID, so that no reference becomes 0.
        let smallest = ids.iter().copied().filter(|id| *id > 0).min();
        let base = smallest.filter(|_| self.android >= TYPES).map(|id| id - 1);
        let size = (self.android < TYPES || !fixed_size).then(|| heap.bytes(object));
        HeapGraphObject {
            type_id: Some(type_id),
            self_size: size,
            reference_field_id_base: base,
            reference_field_id: fields,
            reference_object_id: ids
                .iter()
                .map(|id| if *id == 0 { 0 } else { id - base.unwrap_or(0) })
                .collect(),
            runtime_internal_object_id: self.internals(object),
            ..self.extras(object)
        }
    }

    /// Returns the classes that a loader holds.
    fn internals(&self, object: Obj) -> Vec<u64> {
        let held = self
            .heap
            .held(object)
            .iter()
            .filter(|_| self.android >= HEAPS);
        held.map(|c| id(self.heap, *c)).collect()
    }

    /// Returns the additional data of newer releases for an object.
    fn extras(&self, object: Obj) -> HeapGraphObject {
        let heap = self.heap;
        let long = |field| heap.field(object, field)?.number();
        let int = |field| long(field).map(|n| n as u32);
        let mut extras = HeapGraphObject::default();
        match &*heap.class(heap.object(object).class).name {
            "libcore.util.NativeAllocationRegistry" if self.android >= NATIVES => {
                extras.native_allocation_registry_size_field = long("size");
            }
            "android.graphics.Bitmap" if self.android >= BITMAPS => {
                extras.bitmap_id = long("mId");
                extras.bitmap_source_id = long("mSourceId");
                extras.width = int("mWidth");
                extras.height = int("mHeight");
            }
            "android.content.pm.ApplicationInfo" if self.android >= BITMAPS => {
                extras.application_info_long_version_code = long("longVersionCode");
            }
            _ => {}
        }
        extras
    }

    /// Writes names and types: the end of a dump.
    fn tables(&mut self) {
        let mut types = Vec::new();
        // Types name fields, and this can be the first use of a superclass's fields.
        for at in 0..self.types.len() {
            let (class, of_class) = self.types[at];
            types.push(self.class_type(at as u64 + 1, class, of_class));
        }
        for name in interned(&self.fields) {
            self.room(name.encoded_len() + 4).field_names.push(name);
        }
        for name in interned(&self.locations) {
            self.room(name.encoded_len() + 4).location_names.push(name);
        }
        for one in types {
            self.room(one.encoded_len() + 4).types.push(one);
        }
    }

    fn class_type(&mut self, type_id: u64, class: ClassRef, of_class: bool) -> HeapGraphType {
        let heap = self.heap;
        let of = heap.class(class);
        let location = (!of.location.is_empty()).then(|| self.locations.id(&of.location));
        let mut written = HeapGraphType {
            id: Some(type_id),
            location_id: location,
            class_name: Some(if of_class {
                format!("java.lang.Class<{}>", of.name)
            } else {
                of.name.to_string()
            }),
            ..HeapGraphType::default()
        };
        if self.android < TYPES {
            return written;
        }
        written.classloader_id = Some(of.loader.map_or(0, |l| id(heap, l)));
        if of_class {
            written.kind = Some(Kind::Class as i32);
            written.object_size = Some(u64::from(heap.class(CLASS).instance_bytes));
            return written;
        }
        written.kind = Some(of.kind as i32);
        written.object_size = Some(u64::from(of.instance_bytes));
        written.superclass_id = of.superclass.map(|c| self.type_ids[&(c, false)]);
        let names: Vec<String> = of
            .fields
            .iter()
            .filter(|f| f.kind == Type::Object)
            .map(|f| field_name(&of.name, f))
            .collect();
        written.reference_field_id = names.iter().map(|n| self.fields.id(n)).collect();
        written
    }
}
