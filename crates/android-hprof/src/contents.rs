//! Contents of objects, read from the file on each request: only the offset of each object is kept.
//! No call allocates more than its result.

use super::classes::{class_dump_at, is_class_pointer};
use super::filled::FilledFields;
use super::id_map::IdMap;
use super::names::java_class_name;
use super::outline::Outline;
use super::records::{Cursor, IdSize};
use super::stacks::Stacks;
use super::strings::{StringFields, text};
use super::sub_records::{ClassDump, SubRecord};
use heaptap_base::bytes::Bytes;
use heaptap_model::heap_graph::{
    AllocationSite, BasicType, ClassIndex, ClassKind, Contents, Field, FieldRenamer, HeapGraph,
    ObjectId, ObjectIndex, Positions, PrimitiveArray, ReferenceField, ThreadFacts, Value, name_of,
};
use std::collections::HashMap;
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, OnceLock};

/// Contents of an HPROF.
pub(super) struct HprofContents {
    file: Bytes,
    outline: Outline,
    offsets: Positions,
    filled: FilledFields,
    /// Offset of the class dump by class.
    dumps: Vec<Option<usize>>,
    /// See [`super::classes::Classes::arrays_of`].
    arrays_of: IdMap<Vec<u64>>,
    /// Marks the classes whose instances refer to their class; empty if there are none.
    held: Arc<OnceLock<Vec<bool>>>,
    stacks: Stacks,
    /// Deobfuscated names of statics, by class.
    renamed: IdMap<Renamed>,
}

/// Names by the ID of the obfuscated name and the type: R8 gives one name to statics of different
/// types.
type Renamed = HashMap<(u64, BasicType), String>;

/// Prefix of the statics that represent fields of `java.lang.Class` itself in dumps of ART 8 and
/// later.
const CLASS_FIELD: &str = "$class$";

/// Returns the value of these bytes, or `None` if they are too few.
fn value(basic: BasicType, bytes: &[u8], id_size: IdSize, graph: &HeapGraph) -> Option<Value> {
    let mut cursor = Cursor::new(bytes, 0);
    Some(match basic {
        BasicType::Object => reference(cursor.id(id_size)?, graph),
        BasicType::Boolean => Value::Boolean(cursor.u1()? != 0),
        BasicType::Char => Value::Char(cursor.u2()?),
        BasicType::Float => Value::Float(f32::from_bits(cursor.u4()?)),
        BasicType::Double => Value::Double(f64::from_bits(cursor.u8()?)),
        BasicType::Byte => Value::Byte(cursor.u1()? as i8),
        BasicType::Short => Value::Short(cursor.u2()? as i16),
        BasicType::Int => Value::Int(cursor.u4()? as i32),
        BasicType::Long => Value::Long(cursor.u8()? as i64),
    })
}

fn reference(id: u64, graph: &HeapGraph) -> Value {
    match graph.find(ObjectId(id)) {
        _ if id == 0 => Value::Null,
        Some(object) => Value::Object(object),
        None => Value::Dangling(ObjectId(id)),
    }
}

/// Returns the first non-static field of an object with this name.
pub(super) fn field(
    contents: &dyn Contents,
    graph: &HeapGraph,
    object: ObjectIndex,
    name: &str,
) -> Option<Value> {
    let mut found = None;
    contents.fields(graph, object, &mut |field| {
        if field.name == Some(name) && !field.is_static {
            found = Some(field.value);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    found
}

impl HprofContents {
    pub(super) fn new(
        file: Bytes,
        outline: Outline,
        offsets: Positions,
        filled: FilledFields,
        dumps: Vec<Option<usize>>,
        arrays_of: IdMap<Vec<u64>>,
        threads: Vec<(u32, ObjectIndex, Option<u32>)>,
    ) -> HprofContents {
        let stacks = Stacks::new(&outline, threads);
        HprofContents {
            file,
            outline,
            offsets,
            filled,
            dumps,
            arrays_of,
            held: Arc::default(),
            stacks,
            renamed: IdMap::default(),
        }
    }

    /// Returns the cell for the classes whose instances refer to their class, which the graph tells once
    /// it has these contents.
    pub(super) fn held_classes(&self) -> Arc<OnceLock<Vec<bool>>> {
        Arc::clone(&self.held)
    }

    // Most callers want one sort of record; inlined, the others are not read.
    #[inline(always)]
    fn record(&self, object: ObjectIndex) -> Option<SubRecord<'_>> {
        let at = self.offsets.get(object.at());
        SubRecord::at(&self.file, at, self.outline.id_size)
    }

    /// Returns whether the instances of a class refer to it.
    #[inline]
    fn is_held(&self, class: ClassIndex) -> bool {
        let held = self.held.get().and_then(|held| held.get(class.at()));
        held == Some(&true)
    }

    fn class_dump(&self, class: ClassIndex) -> Option<ClassDump<'_>> {
        let at = self.dumps.get(class.at()).copied().flatten()?;
        class_dump_at(&self.file, &self.outline, at)
    }

    /// Visits the values of fields through superclasses.
    fn instance(
        &self,
        graph: &HeapGraph,
        class: ClassIndex,
        data: &[u8],
        visit: &mut dyn FnMut(Field<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let id_size = self.outline.id_size;
        let mut at = 0;
        for declared_in in graph.ancestry(class) {
            for field in &graph.class(declared_in).fields {
                let basic = field.basic.unwrap_or(BasicType::Object);
                let Some(value) = value(basic, &data[at..], id_size, graph) else {
                    return ControlFlow::Continue(());
                };
                at += basic.bytes(id_size.bytes());
                visit(Field {
                    name: Some(field.deobfuscated.as_deref().unwrap_or(&field.name)),
                    element: None,
                    type_name: field.type_name.as_deref(),
                    declared_in: Some(declared_in),
                    is_static: false,
                    recorded: field.deobfuscated.as_ref().map(|_| field.name.as_str()),
                    value,
                })?;
            }
        }
        ControlFlow::Continue(())
    }

    /// Visits the statics of a class object and its other references.
    fn class_object(
        &self,
        graph: &HeapGraph,
        class: ClassIndex,
        dump: &ClassDump<'_>,
        visit: &mut dyn FnMut(Field<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let renamed = self.renamed.get(&u64::from(class.0));
        let mut has_class_fields = false;
        for field in dump.statics() {
            if self.outline.noise.contains_key(&field.name) {
                continue;
            }
            let Some(value) = value(field.basic, field.value, self.outline.id_size, graph) else {
                continue;
            };
            let raw = self.outline.strings.get(&self.file, field.name);
            let plain = renamed.and_then(|names| names.get(&(field.name, field.basic)));
            let name = plain.or(raw.as_ref()).map(String::as_str);
            let own = name.and_then(|name| name.strip_prefix(CLASS_FIELD));
            has_class_fields |= own.is_some();
            let basic = field.basic;
            visit(Field {
                name: own.or(name),
                element: None,
                type_name: (basic != BasicType::Object).then(|| basic.name()),
                declared_in: own.is_none().then_some(class),
                is_static: own.is_none(),
                recorded: plain.and(raw.as_deref()),
                value,
            })?;
        }
        let others = [
            ("<superclass>", dump.superclass(), has_class_fields),
            ("<loader>", dump.loader(), has_class_fields),
            ("<signers>", dump.signers(), false),
            ("<protection domain>", dump.protection_domain(), false),
        ];
        let arrays = self.arrays_of.get(&dump.id()).into_iter().flatten();
        let arrays = arrays.map(|&array| ("<array class>", array, false));
        for (name, id, told) in others.into_iter().chain(arrays) {
            if id != 0 && !told {
                visit(Field {
                    name: Some(name),
                    ..Field::from_value(reference(id, graph))
                })?;
            }
        }
        ControlFlow::Continue(())
    }

    fn thread_name(&self, graph: &HeapGraph, serial: u32) -> Option<String> {
        let name = match self.stacks.thread(serial) {
            Some((thread, _)) => match field(self, graph, thread, "name") {
                Some(Value::Object(name)) => self.thread_text(graph, name),
                _ => None,
            },
            None => None,
        };
        let started = || {
            let started = &self.outline.stacks.started;
            let at = started.partition_point(|thread| thread.0 < serial);
            let &(_, name) = started.get(at).filter(|thread| thread.0 == serial)?;
            self.outline.strings.get(&self.file, name)
        };
        let name = name.filter(|name| !name.is_empty()).or_else(started);
        name.or_else(|| self.unnamed_thread(graph, self.stacks.thread(serial)?.0))
    }

    /// Returns the name for a thread without one, as most virtual threads are: `virtual thread #42`.
    fn unnamed_thread(&self, graph: &HeapGraph, thread: ObjectIndex) -> Option<String> {
        let number = field(self, graph, thread, "tid")?.integer()?;
        let class = graph.class_of(thread);
        // The other class stands for virtual threads in a VM without them.
        let mut kinds = ["java.lang.VirtualThread", "java.lang.BaseVirtualThread"].iter();
        let is_virtual = kinds.any(|kind| graph.is_a(class, kind));
        let kind = if is_virtual {
            "virtual thread"
        } else {
            "thread"
        };
        Some(format!("{kind} #{number}"))
    }

    fn frame(&self, id: &[u8]) -> String {
        self.stacks.frame_of(&self.file, &self.outline, id)
    }

    /// Returns the name of a thread: a string, or before Java 9 an array of its characters.
    fn thread_text(&self, graph: &HeapGraph, name: ObjectIndex) -> Option<String> {
        let chars = || text(StringFields::default(), self.primitive_array(graph, name)?);
        let name = self.string(graph, name).or_else(chars)?;
        Some(String::from_utf8_lossy(name_of(name.as_bytes())).into_owned())
    }
}

impl Contents for HprofContents {
    fn fields(
        &self,
        graph: &HeapGraph,
        object: ObjectIndex,
        visit: &mut dyn FnMut(Field<'_>) -> ControlFlow<()>,
    ) {
        let id_size = self.outline.id_size;
        let flow = match self.record(object) {
            Some(SubRecord::Instance(instance)) => {
                self.instance(graph, graph.class_of(object), instance.data, visit)
            }
            Some(SubRecord::Class(dump)) => match graph.class_behind(object) {
                Some(class) => self.class_object(graph, class, &dump, visit),
                None => ControlFlow::Continue(()),
            },
            Some(SubRecord::ObjectArray(array)) => {
                let mut elements = id_size.each(array.elements).zip(0..);
                elements.try_for_each(|(id, element)| {
                    visit(Field {
                        element: Some(element),
                        ..Field::from_value(reference(id, graph))
                    })
                })
            }
            Some(SubRecord::PrimitiveArray(array)) => {
                let bytes = array.data.unwrap_or(&[]);
                let width = array.element.bytes(id_size.bytes());
                let mut elements = bytes.chunks_exact(width).zip(0..);
                elements.try_for_each(|(bytes, element)| {
                    let Some(value) = value(array.element, bytes, id_size, graph) else {
                        return ControlFlow::Break(());
                    };
                    visit(Field {
                        element: Some(element),
                        type_name: Some(array.element.name()),
                        ..Field::from_value(value)
                    })
                })
            }
            Some(SubRecord::Root(_) | SubRecord::Heap { .. }) | None => ControlFlow::Continue(()),
        };
        let class = graph.class_of(object);
        if flow.is_continue()
            && self.is_held(class)
            && let Some(class) = graph.class(class).object
        {
            // This is the last field, so the visitor's answer makes no difference.
            let _last = visit(Field {
                name: Some("<class>"),
                ..Field::from_value(Value::Object(class))
            });
        }
    }

    fn reference_fields(
        &self,
        graph: &HeapGraph,
        class: ClassIndex,
        most: usize,
    ) -> Box<[ReferenceField]> {
        let fields = graph.ancestry(class).flat_map(|class| {
            let declaring = graph.class(class);
            declaring.fields.iter().map(move |field| (declaring, field))
        });
        let id_bytes = self.outline.id_size.bytes();
        let mut end = 0usize;
        let references = fields.zip(0..).filter_map(|((declaring, field), place)| {
            let basic = field.basic.unwrap_or(BasicType::Object);
            let offset = end;
            end = end.saturating_add(basic.bytes(id_bytes));
            let is_reference =
                basic == BasicType::Object && !is_class_pointer(&declaring.name, &field.name);
            is_reference.then_some(ReferenceField { place, offset })
        });
        references.take(most).collect()
    }

    fn filled_fields(&self, object: ObjectIndex, fields: &[ReferenceField]) -> Option<u64> {
        let SubRecord::Instance(instance) = self.record(object)? else {
            return None;
        };
        let mut filled = 0;
        for (bit, field) in fields.iter().take(64).enumerate() {
            let bytes = instance.data.get(field.offset..);
            // The offsets ascend, so an instance that is cut short does not have the others either.
            let Some(id) = bytes.and_then(|bytes| self.outline.id_size.read(bytes)) else {
                break;
            };
            filled |= u64::from(id != 0) << bit;
        }
        Some(filled)
    }

    fn known_filled_fields(
        &self,
        class: ClassIndex,
        object: ObjectIndex,
        references: usize,
    ) -> Option<u64> {
        // The reference to the class is not in a field.
        match self.is_held(class) {
            true => None,
            false => self.filled.get(class, object, references),
        }
    }

    fn has_values(&self) -> bool {
        true
    }

    fn release(&self, objects: Range<usize>) {
        let offset = |at| match at {
            0 => 0,
            at if at < self.offsets.len() => self.offsets.get(at),
            _ => self.file.len(),
        };
        let (start, end) = (offset(objects.start), offset(objects.end));
        self.file.release(start.min(end)..start.max(end));
    }

    fn primitive_array(&self, _: &HeapGraph, object: ObjectIndex) -> Option<PrimitiveArray<'_>> {
        match self.record(object)? {
            SubRecord::PrimitiveArray(array) => Some(PrimitiveArray {
                element: array.element,
                length: array.length,
                bytes: array.data,
            }),
            _ => None,
        }
    }

    fn object_array_length(&self, _: &HeapGraph, object: ObjectIndex) -> Option<u32> {
        match self.record(object)? {
            SubRecord::ObjectArray(array) => {
                let length = array.elements.len() / self.outline.id_size.bytes();
                u32::try_from(length).ok()
            }
            _ => None,
        }
    }

    fn element_of(
        &self,
        graph: &HeapGraph,
        array: ObjectIndex,
        target: ObjectIndex,
    ) -> Option<u32> {
        let Some(SubRecord::ObjectArray(array)) = self.record(array) else {
            return None;
        };
        let id = graph.id(target).0;
        let at = self.outline.id_size.position(array.elements, id)?;
        u32::try_from(at).ok()
    }

    fn string(&self, graph: &HeapGraph, object: ObjectIndex) -> Option<String> {
        if graph.class(graph.class_of(object)).kind != ClassKind::String {
            return None;
        }
        let mut fields = StringFields::default();
        let mut array = None;
        self.fields(graph, object, &mut |field| {
            match field.name {
                Some("value") => array = Some(field.value),
                Some("offset") => fields.offset = field.value.integer(),
                Some("count") => fields.count = field.value.integer(),
                Some("coder") => fields.coder = field.value.integer(),
                _ => {}
            }
            ControlFlow::Continue(())
        });
        match array? {
            Value::Object(array) => text(fields, self.primitive_array(graph, array)?),
            // Some versions of ART write no array for the empty string.
            Value::Dangling(_) if fields.count == Some(0) => Some(String::new()),
            _ => None,
        }
    }

    fn allocated_at(&self, graph: &HeapGraph, object: ObjectIndex) -> Option<AllocationSite> {
        let stack = match self.record(object)? {
            SubRecord::Instance(instance) => instance.stack,
            SubRecord::ObjectArray(array) => array.stack,
            SubRecord::PrimitiveArray(array) => array.stack,
            SubRecord::Class(class) => class.stack(),
            SubRecord::Root(_) | SubRecord::Heap { .. } => return None,
        };
        let (thread, ids) = self.stacks.ids(&self.file, &self.outline, stack)?;
        if ids.len() == 0 {
            return None;
        }
        let name = self.thread_name(graph, thread);
        Some(AllocationSite {
            thread: name.unwrap_or_else(|| thread.to_string()),
            frames: ids.map(|id| self.frame(id)).collect(),
        })
    }

    fn thread(&self, graph: &HeapGraph, serial: u32) -> Option<ThreadFacts> {
        let known = self.stacks.thread(serial);
        let name = self.thread_name(graph, serial);
        if known.is_none() && name.is_none() {
            return None;
        }
        Some(ThreadFacts {
            name,
            object: known.map(|(object, _)| object),
        })
    }

    fn thread_frame(&self, serial: u32, frame: u32) -> Option<String> {
        let (_, stack) = self.stacks.thread(serial)?;
        let (_, mut ids) = self.stacks.ids(&self.file, &self.outline, stack?)?;
        ids.nth(frame as usize).map(|id| self.frame(id))
    }

    fn identity_hash(&self, graph: &HeapGraph, object: ObjectIndex) -> Option<u32> {
        let word = field(self, graph, object, "shadow$_monitor_")?.integer()? as u32;
        // ART's lock word: two bits of state; if they are 2, the rest is the hash.
        (word >> 30 == 2).then_some(word & 0x0fff_ffff)
    }

    fn rename_fields(&mut self, renamer: &dyn FieldRenamer) {
        let names: IdMap<u64> = self
            .outline
            .loaded
            .iter()
            .map(|c| (c.class, c.name))
            .collect();
        let mut renamed: IdMap<Renamed> = IdMap::default();
        for class in (0..self.dumps.len() as u32).map(ClassIndex) {
            let Some(dump) = self.class_dump(class) else {
                continue;
            };
            let text = |id: u64| self.outline.strings.get(&self.file, id);
            let Some(declaring) = names.get(&dump.id()).and_then(|&name| text(name)) else {
                continue;
            };
            let declaring = java_class_name(&declaring);
            for field in dump.statics() {
                let Some(name) = text(field.name) else {
                    continue;
                };
                let basic = field.basic;
                let type_name = (basic != BasicType::Object).then(|| basic.name());
                if let Some(plain) = renamer.field(&declaring, &name, type_name) {
                    let of_class = renamed.entry(class.0.into()).or_default();
                    of_class.insert((field.name, basic), plain.name);
                }
            }
        }
        self.renamed = renamed;
    }
}
