//! Builder of dumps for tests: writes the bytes that a runtime would write.

use crate::records::{IdSize, tag};
use heaptap_model::heap_graph::BasicType;

/// A value of a field or static.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Val {
    Ref(u64),
    Bool(bool),
    Char(u16),
    Float(f32),
    Double(f64),
    Byte(i8),
    Short(i16),
    Int(i32),
    Long(i64),
}

impl Val {
    fn basic(self) -> BasicType {
        match self {
            Val::Ref(_) => BasicType::Object,
            Val::Bool(_) => BasicType::Boolean,
            Val::Char(_) => BasicType::Char,
            Val::Float(_) => BasicType::Float,
            Val::Double(_) => BasicType::Double,
            Val::Byte(_) => BasicType::Byte,
            Val::Short(_) => BasicType::Short,
            Val::Int(_) => BasicType::Int,
            Val::Long(_) => BasicType::Long,
        }
    }
}

/// A class to dump.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ClassSpec<'a> {
    pub(crate) id: u64,
    pub(crate) name: &'a str,
    pub(crate) superclass: u64,
    pub(crate) loader: u64,
    pub(crate) instance_bytes: u32,
    pub(crate) statics: &'a [(&'a str, Val)],
    pub(crate) fields: &'a [(&'a str, BasicType)],
}

/// A dump that grows.
#[derive(Debug, Clone)]
pub(crate) struct Dump {
    version: &'static str,
    id_size: IdSize,
    names: Vec<String>,
    loaded: Vec<(u64, u64)>,
    /// Records after names and classes, before segments.
    records: Vec<u8>,
    segments: Vec<Vec<u8>>,
    /// Tag of dump records, and whether the end is written.
    pub(crate) segment_tag: u8,
    pub(crate) ended: bool,
}

/// First ID of the string table, so that no name has the ID of an object.
const FIRST_NAME: u64 = 0x40_0000;

impl Dump {
    pub(crate) fn new(version: &'static str, id_size: IdSize) -> Dump {
        Dump {
            version,
            id_size,
            names: Vec::new(),
            loaded: Vec::new(),
            records: Vec::new(),
            segments: vec![Vec::new()],
            segment_tag: tag::HEAP_DUMP_SEGMENT,
            ended: true,
        }
    }

    /// Creates a dump as Android writes it.
    pub(crate) fn art() -> Dump {
        Dump::new("JAVA PROFILE 1.0.3", IdSize::Four)
    }

    /// Creates a dump as a 64-bit JVM writes it.
    pub(crate) fn hotspot() -> Dump {
        Dump::new("JAVA PROFILE 1.0.2", IdSize::Eight)
    }

    fn put_id(&self, bytes: &mut Vec<u8>, id: u64) {
        match self.id_size {
            IdSize::Four => bytes.extend((id as u32).to_be_bytes()),
            IdSize::Eight => bytes.extend(id.to_be_bytes()),
        }
    }

    fn put_value(&self, bytes: &mut Vec<u8>, value: Val) {
        match value {
            Val::Ref(id) => self.put_id(bytes, id),
            Val::Bool(value) => bytes.push(value.into()),
            Val::Char(value) => bytes.extend(value.to_be_bytes()),
            Val::Float(value) => bytes.extend(value.to_be_bytes()),
            Val::Double(value) => bytes.extend(value.to_be_bytes()),
            Val::Byte(value) => bytes.extend(value.to_be_bytes()),
            Val::Short(value) => bytes.extend(value.to_be_bytes()),
            Val::Int(value) => bytes.extend(value.to_be_bytes()),
            Val::Long(value) => bytes.extend(value.to_be_bytes()),
        }
    }

    /// Returns the ID of a name in the string table.
    pub(crate) fn name(&mut self, text: &str) -> u64 {
        let known = self.names.iter().position(|name| name == text);
        let at = known.unwrap_or_else(|| {
            self.names.push(text.to_owned());
            self.names.len() - 1
        });
        FIRST_NAME + at as u64
    }

    fn sub(&mut self, tag: u8, body: &[u8]) {
        let segment = self.segments.last_mut().expect("there is always one");
        segment.push(tag);
        segment.extend(body);
    }

    /// Starts a new segment for the next sub-records.
    pub(crate) fn segment(&mut self) -> &mut Dump {
        self.segments.push(Vec::new());
        self
    }

    /// Writes a LOAD_CLASS record alone.
    pub(crate) fn load_class(&mut self, id: u64, name: &str) -> &mut Dump {
        let name = self.name(name);
        self.loaded.push((id, name));
        self
    }

    /// Writes a class with its LOAD_CLASS.
    pub(crate) fn class(&mut self, class: &ClassSpec<'_>) -> &mut Dump {
        self.load_class(class.id, class.name);
        let mut body = Vec::new();
        self.put_id(&mut body, class.id);
        body.extend(0u32.to_be_bytes());
        for id in [class.superclass, class.loader, 0, 0, 0, 0] {
            self.put_id(&mut body, id);
        }
        body.extend(class.instance_bytes.to_be_bytes());
        body.extend(0u16.to_be_bytes());
        body.extend((class.statics.len() as u16).to_be_bytes());
        for &(name, value) in class.statics {
            let name = self.name(name);
            self.put_id(&mut body, name);
            body.push(value.basic() as u8);
            self.put_value(&mut body, value);
        }
        body.extend((class.fields.len() as u16).to_be_bytes());
        for &(name, basic) in class.fields {
            let name = self.name(name);
            self.put_id(&mut body, name);
            body.push(basic as u8);
        }
        self.sub(0x20, &body);
        self
    }

    /// Writes an instance: values of its class's fields, then its superclass's, and so on.
    pub(crate) fn instance(&mut self, id: u64, class: u64, values: &[Val]) -> &mut Dump {
        self.instance_from(id, class, 0, values)
    }

    /// Writes an instance that the stack of that number allocated.
    pub(crate) fn instance_from(
        &mut self,
        id: u64,
        class: u64,
        stack: u32,
        values: &[Val],
    ) -> &mut Dump {
        let mut data = Vec::new();
        for &value in values {
            self.put_value(&mut data, value);
        }
        let mut body = Vec::new();
        self.put_id(&mut body, id);
        body.extend(stack.to_be_bytes());
        self.put_id(&mut body, class);
        body.extend((data.len() as u32).to_be_bytes());
        body.extend(data);
        self.sub(0x21, &body);
        self
    }

    /// Writes an array of references.
    pub(crate) fn objects(&mut self, id: u64, class: u64, elements: &[u64]) -> &mut Dump {
        let mut body = Vec::new();
        self.put_id(&mut body, id);
        body.extend(0u32.to_be_bytes());
        body.extend((elements.len() as u32).to_be_bytes());
        self.put_id(&mut body, class);
        for &element in elements {
            self.put_id(&mut body, element);
        }
        self.sub(0x22, &body);
        self
    }

    /// Writes an array of primitives from its big-endian bytes.
    pub(crate) fn array(&mut self, id: u64, element: BasicType, data: &[u8]) -> &mut Dump {
        let length = (data.len() / element.bytes(8)) as u32;
        self.array_without_data(0x23, id, element, length);
        let segment = self.segments.last_mut().expect("there is always one");
        segment.extend(data);
        self
    }

    /// Writes an array whose values were left out.
    pub(crate) fn nodata(&mut self, id: u64, element: BasicType, length: u32) -> &mut Dump {
        self.array_without_data(0xc3, id, element, length)
    }

    /// Writes the header of an array.
    pub(crate) fn array_without_data(
        &mut self,
        tag: u8,
        id: u64,
        element: BasicType,
        length: u32,
    ) -> &mut Dump {
        let mut body = Vec::new();
        self.put_id(&mut body, id);
        body.extend(0u32.to_be_bytes());
        body.extend(length.to_be_bytes());
        body.push(element as u8);
        self.sub(tag, &body);
        self
    }

    /// Writes an array of characters.
    pub(crate) fn chars(&mut self, id: u64, text: &str) -> &mut Dump {
        let data: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        self.array(id, BasicType::Char, &data)
    }

    /// Writes a root whose tag has nothing but an ID.
    pub(crate) fn root(&mut self, tag: u8, id: u64) -> &mut Dump {
        self.root_of(tag, id, &[])
    }

    /// Writes a root with further numbers: thread, frame.
    pub(crate) fn root_of(&mut self, tag: u8, id: u64, numbers: &[u32]) -> &mut Dump {
        let mut body = Vec::new();
        self.put_id(&mut body, id);
        if tag == 0x01 {
            self.put_id(&mut body, 0);
        }
        for number in numbers {
            body.extend(number.to_be_bytes());
        }
        self.sub(tag, &body);
        self
    }

    /// Writes the heap of the objects that follow.
    pub(crate) fn heap(&mut self, heap: u8, name: &str) -> &mut Dump {
        let name = self.name(name);
        let mut body = u32::from(heap).to_be_bytes().to_vec();
        self.put_id(&mut body, name);
        self.sub(0xfe, &body);
        self
    }

    /// Writes bytes among the sub-records.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> &mut Dump {
        let segment = self.segments.last_mut().expect("there is always one");
        segment.extend(bytes);
        self
    }

    /// Writes a top-level record.
    pub(crate) fn record(&mut self, tag: u8, body: &[u8]) -> &mut Dump {
        put_record(&mut self.records, tag, body, body.len() as u32);
        self
    }

    /// Writes a stack of frames (index of the class among the loaded ones, method, source, line),
    /// the innermost first. The IDs of frames derive from the number of the stack.
    pub(crate) fn stack(
        &mut self,
        serial: u32,
        thread: u32,
        frames: &[(u32, &str, &str, i32)],
    ) -> &mut Dump {
        let mut ids = Vec::new();
        for (at, &(class, method, source, line)) in frames.iter().enumerate() {
            let id = u64::from(serial) * 100 + at as u64;
            let names = [method, "()V", source].map(|name| self.name(name));
            let mut body = Vec::new();
            self.put_id(&mut body, id);
            for name in names {
                self.put_id(&mut body, name);
            }
            body.extend(class.to_be_bytes());
            body.extend(line.to_be_bytes());
            self.record(tag::FRAME, &body);
            self.put_id(&mut ids, id);
        }
        let mut body = Vec::new();
        for number in [serial, thread, frames.len() as u32] {
            body.extend(number.to_be_bytes());
        }
        body.extend(ids);
        self.record(tag::TRACE, &body)
    }

    /// Returns the file up to its segments.
    pub(crate) fn front(&self) -> Vec<u8> {
        let mut file = self.version.as_bytes().to_vec();
        file.push(0);
        file.extend((self.id_size.bytes() as u32).to_be_bytes());
        file.extend(1_700_000_000_000u64.to_be_bytes());
        for (at, name) in self.names.iter().enumerate() {
            let mut body = Vec::new();
            self.put_id(&mut body, FIRST_NAME + at as u64);
            body.extend(name.as_bytes());
            put_record(&mut file, tag::UTF8, &body, body.len() as u32);
        }
        for (at, &(class, name)) in self.loaded.iter().enumerate() {
            let mut body = (at as u32 + 1).to_be_bytes().to_vec();
            self.put_id(&mut body, class);
            body.extend(0u32.to_be_bytes());
            self.put_id(&mut body, name);
            put_record(&mut file, tag::LOAD_CLASS, &body, body.len() as u32);
        }
        file.extend(&self.records);
        file
    }

    /// Returns the whole file.
    pub(crate) fn finish(&self) -> Vec<u8> {
        self.finish_with(|_, bytes| bytes)
    }

    /// Returns the whole file, with declared lengths of the dump records chosen by `claim`.
    pub(crate) fn finish_with(&self, claim: impl Fn(usize, u32) -> u32) -> Vec<u8> {
        let mut file = self.front();
        for (at, segment) in self.segments.iter().enumerate() {
            let claimed = claim(at, segment.len() as u32);
            put_record(&mut file, self.segment_tag, segment, claimed);
        }
        if self.ended {
            put_record(&mut file, tag::HEAP_DUMP_END, &[], 0);
        }
        file
    }
}

/// Appends a top-level record that declares that length.
pub(crate) fn put_record(file: &mut Vec<u8>, tag: u8, body: &[u8], claimed: u32) {
    file.push(tag);
    file.extend(0u32.to_be_bytes());
    file.extend(claimed.to_be_bytes());
    file.extend(body);
}
