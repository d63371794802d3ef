//! The grammar of a heap dump's sub-records: roots, classes, instances, arrays, and ART's heap
//! marks. They have no length of their own, so a reader cannot continue after an unknown one.
//! Borrows from the file, never panics, allocates nothing.
//!
//! ```text
//! root        u1 tag, id, and by tag: the JNI reference's id; u4 thread; u4 thread, u4 frame
//! 20 class    id, u4 stack, ids of superclass, loader, signers, protection domain, 2 reserved;
//!             u4 bytes of an instance; u2 n constants (u2, type, value); u2 n statics (name,
//!             type, value); u2 n own fields (name, type)
//! 21 instance id, u4 stack, class, u4 bytes, values: the class's own fields first, Object's last
//! 22 objects  id, u4 stack, u4 n, array class, n ids
//! 23 values   id, u4 stack, u4 n, u1 type, n values; C3 the same without the values
//! FE heap     u4 heap, name: heap of the objects that follow
//! ```

use super::records::{
    Cursor, Damage, DamageKind, IdSize, RECORD_HEADER_BYTES, Record, may_begin_record, tag,
};
use heaptap_model::heap_graph::{BasicType, HeapKind, RootKind};

/// Tags of sub-records that are not roots.
#[allow(missing_docs)]
pub mod sub_tag {
    pub const CLASS: u8 = 0x20;
    pub const INSTANCE: u8 = 0x21;
    pub const OBJECT_ARRAY: u8 = 0x22;
    pub const PRIMITIVE_ARRAY: u8 = 0x23;
    pub const PRIMITIVE_ARRAY_NODATA: u8 = 0xc3;
    pub const HEAP_DUMP_INFO: u8 = 0xfe;
}

/// A sub-record of a heap dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SubRecord<'a> {
    /// A root.
    Root(RootRecord),
    /// A class.
    Class(ClassDump<'a>),
    /// An object of a class.
    Instance(Instance<'a>),
    /// An array of references.
    ObjectArray(ObjectArray<'a>),
    /// An array of primitives.
    PrimitiveArray(PrimitiveArrayRecord<'a>),
    /// The heap of the objects that follow, until the end of the segment.
    Heap {
        /// 0 default, `A` app, `Z` zygote, `I` image.
        heap: u32,
        /// ID of the name in the string table.
        name: u64,
    },
}

/// A root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RootRecord {
    /// See [`root_kind`].
    pub tag: u8,
    /// ID of the object.
    pub id: u64,
    /// Serial number of the thread, if the tag has one.
    pub thread: Option<u32>,
    /// Number of the frame in the thread's stack, if the tag has one and the dump knows it.
    pub frame: Option<u32>,
    /// Number of the stack of a thread object.
    pub stack: Option<u32>,
}

/// An object of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instance<'a> {
    /// ID of the object.
    pub id: u64,
    /// Number of the stack that allocated the object.
    pub stack: u32,
    /// ID of the class.
    pub class: u64,
    /// Values of fields: the class's own, then its superclass's, packed.
    pub data: &'a [u8],
}

/// An array of references.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectArray<'a> {
    /// ID of the array.
    pub id: u64,
    /// Number of the stack that allocated the array.
    pub stack: u32,
    /// ID of the array class.
    pub class: u64,
    /// IDs of the elements.
    pub elements: &'a [u8],
}

/// An array of primitives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrimitiveArrayRecord<'a> {
    /// ID of the array.
    pub id: u64,
    /// Number of the stack that allocated the array.
    pub stack: u32,
    /// Number of elements.
    pub length: u32,
    /// Type of the elements; never [`BasicType::Object`].
    pub element: BasicType,
    /// Values, big-endian; `None` if the dump left them out (tag C3).
    pub data: Option<&'a [u8]>,
}

/// A class, parsed on request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassDump<'a> {
    /// All bytes after the tag.
    body: &'a [u8],
    id_size: IdSize,
    constants_at: usize,
    statics_at: usize,
    fields_at: usize,
}

/// Tags of roots and their kinds.
const ROOTS: [(u8, RootKind); 16] = [
    (0xff, RootKind::Unknown),
    (0x01, RootKind::JniGlobal),
    (0x02, RootKind::JniLocal),
    (0x03, RootKind::JavaFrame),
    (0x04, RootKind::NativeStack),
    (0x05, RootKind::StickyClass),
    (0x06, RootKind::ThreadBlock),
    (0x07, RootKind::MonitorUsed),
    (0x08, RootKind::ThreadObject),
    (0x89, RootKind::InternedString),
    (0x8a, RootKind::Finalizing),
    (0x8b, RootKind::Debugger),
    (0x8c, RootKind::ReferenceCleanup),
    (0x8d, RootKind::VmInternal),
    (0x8e, RootKind::JniMonitor),
    (0x90, RootKind::Unreachable),
];

/// Returns the kind of root of a tag, or `None` if the tag is not a root.
pub fn root_kind(tag: u8) -> Option<RootKind> {
    let root = ROOTS.iter().find(|root| root.0 == tag);
    root.map(|root| root.1)
}

/// Returns the tag of a kind of root.
pub(crate) fn root_tag(kind: RootKind) -> u8 {
    let root = ROOTS.iter().find(|root| root.1 == kind);
    root.map_or(0xff, |root| root.0)
}

/// Names and numbers of ART's heaps, by [`HeapKind`].
pub(crate) const HEAPS: [(&str, u32); 4] = [
    ("default", 0),
    ("app", 0x41),
    ("zygote", 0x5a),
    ("image", 0x49),
];

/// Returns ART's heap of that number.
pub fn heap_kind(heap: u32) -> HeapKind {
    match heap {
        0x41 => HeapKind::App,
        0x5a => HeapKind::Zygote,
        0x49 => HeapKind::BootImage,
        _ => HeapKind::Unknown,
    }
}

/// The sub-records of a dump record, each with its offset in the file. Ends after the first
/// unreadable one.
#[derive(Debug, Clone)]
pub struct SubRecords<'a> {
    file: &'a [u8],
    at: usize,
    declared_end: usize,
    id_size: IdSize,
    failed: bool,
}

impl<'a> SubRecords<'a> {
    /// Returns the sub-records of `record`, which is one of `file`.
    pub fn new(file: &'a [u8], record: &Record<'_>, id_size: IdSize) -> SubRecords<'a> {
        let body = record.body_range();
        SubRecords::within(file, body.start, body.end, id_size)
    }

    /// Returns the sub-records that begin in a part of the file.
    pub fn within(file: &'a [u8], at: usize, end: usize, id_size: IdSize) -> SubRecords<'a> {
        SubRecords {
            file,
            at,
            declared_end: end.min(file.len()),
            id_size,
            failed: false,
        }
    }

    /// Returns the offset of the next sub-record. At the end this is the end of the record, or of
    /// the last sub-record if that crossed it: the next top-level record begins there.
    #[inline]
    pub fn at(&self) -> usize {
        self.at
    }

    /// Checks a sub-record that ends past its record. Some writers count wrong, so its own length
    /// is used, unless that leads to invalid data and the record's end does not.
    #[cold]
    fn overruns(&mut self, at: usize) -> Option<Damage> {
        let end = self.at;
        if may_begin_record(self.file, end) || !may_begin_record(self.file, self.declared_end) {
            return None;
        }
        Some(self.fail(at, DamageKind::Overrun))
    }

    #[cold]
    fn fail(&mut self, at: usize, kind: DamageKind) -> Damage {
        self.failed = true;
        self.at = self.declared_end;
        Damage {
            at: at as u64,
            kind,
        }
    }
}

impl<'a> SubRecord<'a> {
    /// Returns the sub-record at an offset of the file, if it can be read.
    #[inline]
    pub fn at(file: &'a [u8], at: usize, id_size: IdSize) -> Option<SubRecord<'a>> {
        SubRecord::read(&mut Cursor::new(file, at), id_size).ok()
    }

    #[inline(always)]
    fn read(cursor: &mut Cursor<'a>, size: IdSize) -> Result<SubRecord<'a>, DamageKind> {
        const CUT: DamageKind = DamageKind::CutShort;
        let tag = cursor.u1().ok_or(CUT)?;
        Ok(match tag {
            sub_tag::INSTANCE => {
                let id = cursor.id(size).ok_or(CUT)?;
                let stack = cursor.u4().ok_or(CUT)?;
                let class = cursor.id(size).ok_or(CUT)?;
                let bytes = cursor.u4().ok_or(CUT)? as usize;
                SubRecord::Instance(Instance {
                    id,
                    stack,
                    class,
                    data: cursor.take(bytes).ok_or(CUT)?,
                })
            }
            sub_tag::OBJECT_ARRAY => {
                let id = cursor.id(size).ok_or(CUT)?;
                let stack = cursor.u4().ok_or(CUT)?;
                let length = cursor.u4().ok_or(CUT)? as usize;
                let class = cursor.id(size).ok_or(CUT)?;
                let bytes = length.checked_mul(size.bytes()).ok_or(CUT)?;
                SubRecord::ObjectArray(ObjectArray {
                    id,
                    stack,
                    class,
                    elements: cursor.take(bytes).ok_or(CUT)?,
                })
            }
            sub_tag::PRIMITIVE_ARRAY | sub_tag::PRIMITIVE_ARRAY_NODATA => {
                let id = cursor.id(size).ok_or(CUT)?;
                let stack = cursor.u4().ok_or(CUT)?;
                let length = cursor.u4().ok_or(CUT)?;
                let code = cursor.u1().ok_or(CUT)?;
                let element = match BasicType::of_code(code) {
                    Some(BasicType::Object) | None => return Err(DamageKind::UnknownType(code)),
                    Some(element) => element,
                };
                let data = if tag == sub_tag::PRIMITIVE_ARRAY {
                    let bytes = (length as usize).checked_mul(element.bytes(size.bytes()));
                    Some(bytes.and_then(|bytes| cursor.take(bytes)).ok_or(CUT)?)
                } else {
                    None
                };
                SubRecord::PrimitiveArray(PrimitiveArrayRecord {
                    id,
                    stack,
                    length,
                    element,
                    data,
                })
            }
            sub_tag::CLASS => SubRecord::Class(ClassDump::read(cursor, size)?),
            sub_tag::HEAP_DUMP_INFO => SubRecord::Heap {
                heap: cursor.u4().ok_or(CUT)?,
                name: cursor.id(size).ok_or(CUT)?,
            },
            tag => SubRecord::Root(read_root(tag, cursor, size)?),
        })
    }
}

/// Returns whether the sub-records from the dump record at an offset on read well if arrays of
/// primitives have no contents, and at least one lacks them.
pub(crate) fn lacks_array_contents(file: &[u8], at: usize, id_size: IdSize) -> bool {
    const MAX_RECORDS: usize = 1 << 16;
    let mut cursor = Cursor::new(file, at);
    let mut lacking = 0;
    for _ in 0..MAX_RECORDS {
        let before = cursor;
        let read = match cursor.u1() {
            None | Some(tag::HEAP_DUMP_END) => break,
            // No sub-record has these tags.
            Some(tag::HEAP_DUMP | tag::HEAP_DUMP_SEGMENT) => {
                cursor.take(RECORD_HEADER_BYTES - 1).is_some()
            }
            Some(sub_tag::PRIMITIVE_ARRAY) => {
                let length = cursor.take(id_size.bytes() + 4).and_then(|_| cursor.u4());
                lacking += u32::from(length > Some(0));
                cursor.u1().and_then(BasicType::of_code).is_some()
            }
            Some(_) => {
                cursor = before;
                SubRecord::read(&mut cursor, id_size).is_ok()
            }
        };
        if !read {
            return false;
        }
    }
    lacking > 0
}

fn read_root(tag: u8, cursor: &mut Cursor<'_>, size: IdSize) -> Result<RootRecord, DamageKind> {
    const CUT: DamageKind = DamageKind::CutShort;
    if root_kind(tag).is_none() {
        return Err(DamageKind::UnknownSubRecord(tag));
    }
    let id = cursor.id(size).ok_or(CUT)?;
    let (mut thread, mut frame, mut stack) = (None, None, None);
    let known = |number: u32| Some(number).filter(|&number| number != u32::MAX);
    match tag {
        0x01 => {
            cursor.id(size).ok_or(CUT)?;
        }
        0x02 | 0x03 | 0x8e => {
            thread = Some(cursor.u4().ok_or(CUT)?);
            frame = known(cursor.u4().ok_or(CUT)?);
        }
        0x08 => {
            thread = Some(cursor.u4().ok_or(CUT)?);
            stack = known(cursor.u4().ok_or(CUT)?);
        }
        0x04 | 0x06 => thread = Some(cursor.u4().ok_or(CUT)?),
        _ => {}
    }
    Ok(RootRecord {
        tag,
        id,
        thread,
        frame,
        stack,
    })
}

impl<'a> Iterator for SubRecords<'a> {
    type Item = Result<(usize, SubRecord<'a>), Damage>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let at = self.at;
        if at >= self.declared_end || self.failed {
            return None;
        }
        let mut cursor = Cursor::new(self.file, at);
        match SubRecord::read(&mut cursor, self.id_size) {
            Ok(record) => {
                self.at = cursor.at();
                if self.at > self.declared_end
                    && let Some(damage) = self.overruns(at)
                {
                    return Some(Err(damage));
                }
                Some(Ok((at, record)))
            }
            Err(kind) => Some(Err(self.fail(at, kind))),
        }
    }
}

/// A static of a class, or a constant of its pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Static<'a> {
    /// ID of the name in the string table; for a constant, its index in the pool.
    pub name: u64,
    /// Type of the value.
    pub basic: BasicType,
    /// Value, big-endian.
    pub value: &'a [u8],
}

/// A field that a class declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnField {
    /// ID of the name in the string table.
    pub name: u64,
    /// Type of the field.
    pub basic: BasicType,
}

fn basic_type(cursor: &mut Cursor<'_>) -> Result<BasicType, DamageKind> {
    let code = cursor.u1().ok_or(DamageKind::CutShort)?;
    BasicType::of_code(code).ok_or(DamageKind::UnknownType(code))
}

impl<'a> ClassDump<'a> {
    fn read(cursor: &mut Cursor<'a>, id_size: IdSize) -> Result<ClassDump<'a>, DamageKind> {
        const CUT: DamageKind = DamageKind::CutShort;
        let mut ahead = *cursor;
        let from = ahead.at();
        ahead.take(id_size.bytes() * 7 + 8).ok_or(CUT)?;
        let constants_at = ahead.at() - from;
        for _ in 0..ahead.u2().ok_or(CUT)? {
            ahead.u2().ok_or(CUT)?;
            let bytes = basic_type(&mut ahead)?.bytes(id_size.bytes());
            ahead.take(bytes).ok_or(CUT)?;
        }
        let statics_at = ahead.at() - from;
        for _ in 0..ahead.u2().ok_or(CUT)? {
            ahead.id(id_size).ok_or(CUT)?;
            let bytes = basic_type(&mut ahead)?.bytes(id_size.bytes());
            ahead.take(bytes).ok_or(CUT)?;
        }
        let fields_at = ahead.at() - from;
        for _ in 0..ahead.u2().ok_or(CUT)? {
            ahead.id(id_size).ok_or(CUT)?;
            basic_type(&mut ahead)?;
        }
        let bytes = ahead.at() - from;
        Ok(ClassDump {
            body: cursor.take(bytes).ok_or(CUT)?,
            id_size,
            constants_at,
            statics_at,
            fields_at,
        })
    }

    /// Returns a cursor after this many IDs and numbers, which are known to exist.
    fn number_at(&self, ids: usize, numbers: usize) -> Cursor<'a> {
        Cursor::new(self.body, ids * self.id_size.bytes() + numbers * 4)
    }

    fn id_at(&self, ids: usize, numbers: usize) -> u64 {
        self.number_at(ids, numbers)
            .id(self.id_size)
            .expect("the header of a class was complete when it was read")
    }

    /// Returns the ID of the class object.
    pub fn id(&self) -> u64 {
        self.id_at(0, 0)
    }

    /// Returns the number of the stack that loaded the class.
    pub fn stack(&self) -> u32 {
        self.number_at(1, 0)
            .u4()
            .expect("the header of a class was complete when it was read")
    }

    /// Returns the ID of the superclass; 0 if there is none.
    pub fn superclass(&self) -> u64 {
        self.id_at(1, 1)
    }

    /// Returns the ID of the loader; 0 for the boot loader.
    pub fn loader(&self) -> u64 {
        self.id_at(2, 1)
    }

    /// Returns the ID of the signers.
    pub fn signers(&self) -> u64 {
        self.id_at(3, 1)
    }

    /// Returns the ID of the protection domain.
    pub fn protection_domain(&self) -> u64 {
        self.id_at(4, 1)
    }

    /// Returns the bytes of an instance as stated in the dump: see `docs/internals/analysis.md` for what
    /// they count.
    pub fn instance_bytes(&self) -> u32 {
        self.number_at(7, 1)
            .u4()
            .expect("the header of a class was complete when it was read")
    }

    /// Returns the constants of the pool; neither ART nor HotSpot writes any.
    pub fn constants(&self) -> impl Iterator<Item = Static<'a>> + use<'a> {
        self.values(self.constants_at, |cursor, _| cursor.u2().map(u64::from))
    }

    /// Returns the statics in the dump's order.
    pub fn statics(&self) -> impl Iterator<Item = Static<'a>> + use<'a> {
        self.values(self.statics_at, |cursor, size| cursor.id(size))
    }

    fn values(
        &self,
        at: usize,
        name: fn(&mut Cursor<'a>, IdSize) -> Option<u64>,
    ) -> impl Iterator<Item = Static<'a>> + use<'a> {
        let size = self.id_size;
        let mut cursor = Cursor::new(self.body, at);
        let count = cursor.u2().unwrap_or(0);
        (0..count).map_while(move |_| {
            let name = name(&mut cursor, size)?;
            let basic = basic_type(&mut cursor).ok()?;
            let value = cursor.take(basic.bytes(size.bytes()))?;
            Some(Static { name, basic, value })
        })
    }

    /// Returns the instance fields that the class itself declares.
    pub fn fields(&self) -> impl Iterator<Item = OwnField> + use<'a> {
        let size = self.id_size;
        let mut cursor = Cursor::new(self.body, self.fields_at);
        let count = cursor.u2().unwrap_or(0);
        (0..count).map_while(move |_| {
            let name = cursor.id(size)?;
            let basic = basic_type(&mut cursor).ok()?;
            Some(OwnField { name, basic })
        })
    }
}
