//! Equal strings and equal arrays of primitives.

use super::equal::{Equal, Same};
use super::parts::Examination;
use crate::fields;
use crate::label::is_primitive;
use heaptap_base::units::hex;
use heaptap_model::heap_graph::{
    BasicType, ClassIndex, ClassKind, HeapGraph, ObjectId, ObjectIndex, PrimitiveArray,
    SharedObjectSet,
};
use heaptap_model::profile::index::Seed;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use std::ops::ControlFlow;

/// Duplicates of one sort.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Duplicates {
    /// Number of objects examined.
    pub count: u64,
    /// Shallow bytes; for strings including their arrays.
    pub bytes: u64,
    /// Number of distinct contents; `None` for bitmaps.
    pub distinct: Option<u64>,
    /// Bytes of all but one object of each content.
    pub wasted_bytes: u64,
    /// Number of objects whose contents are not in the dump.
    pub without_contents: u64,
    /// Contents that waste the most.
    pub groups: Vec<DuplicateGroup>,
}

/// Contents that occur several times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DuplicateGroup {
    /// Number of objects.
    pub count: u64,
    /// Shallow bytes of one object; for a string including its array.
    pub each_bytes: u64,
    /// Bytes of all but one object. Strings that share an array waste only themselves.
    pub wasted_bytes: u64,
    pub class: String,
    /// Number of characters, elements or pixels.
    pub length: u64,
    /// Text, or a summary of the array, cut to `MAX_SHOWN` characters; dimensions of a bitmap.
    pub value: String,
    /// First digits of the SHA-256 of the UTF-8 text or of the array's bytes, in hex; `None` for
    /// bitmaps and for hidden contents, because short ones can be guessed.
    pub hash: Option<String>,
    /// One of the objects.
    #[serde(skip)]
    pub example: ObjectIndex,
    /// ID of the example in the dump.
    #[serde(rename = "example")]
    pub example_id: ObjectId,
    /// Name of a holder of the example, such as `a.B.field`; `None` if only a root holds it.
    pub held_by: Option<String>,
}

/// Maximum number of characters in a value.
pub const MAX_SHOWN: usize = 200;

/// Sort of a class to examine.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    String,
    Array,
}

/// Sums of a range of objects.
#[derive(Default, Clone, Copy)]
struct Sums {
    count: u64,
    bytes: u64,
    without_contents: u64,
    /// Some contents have at least a byte.
    is_filled: bool,
    /// Some contents have a byte other than zero.
    has_values: bool,
}

#[derive(Default)]
pub(super) struct Gathered {
    strings: Equal,
    string_sums: Sums,
    arrays: Equal,
    array_sums: Sums,
}

/// Marks the arrays behind strings. Several strings can share one, as substrings did before Java 7.
pub(super) struct StringArrays<'g> {
    texts: Texts<'g>,
    marks: SharedObjectSet,
}

impl<'g> StringArrays<'g> {
    pub fn new(graph: &'g HeapGraph) -> StringArrays<'g> {
        StringArrays {
            texts: Texts::new(graph),
            marks: SharedObjectSet::new(graph.len()),
        }
    }
}

impl Examination for StringArrays<'_> {
    type Class = ();
    type Found = ();

    fn of_class(&self, class: ClassIndex) -> Option<()> {
        (sort_of(self.texts.graph, class) == Some(Sort::String)).then_some(())
    }

    fn start(&self) {}

    fn add(&self, (): &mut (), string: ObjectIndex, (): ()) {
        if let Some(array) = self.texts.array(string) {
            self.marks.insert(array);
        }
    }
}

/// Equal strings, and equal arrays that are neither behind strings nor apart.
pub(super) struct EqualContents<'s> {
    /// With the arrays that are apart.
    string_arrays: &'s StringArrays<'s>,
    /// Arrays of strings that are counted already.
    counted: SharedObjectSet,
    seed: Seed,
}

impl<'s> EqualContents<'s> {
    pub fn new(string_arrays: &'s StringArrays<'s>, apart: &[ObjectIndex]) -> EqualContents<'s> {
        for &array in apart {
            string_arrays.marks.insert(array);
        }
        EqualContents {
            string_arrays,
            counted: SharedObjectSet::new(string_arrays.texts.graph.len()),
            seed: Seed::default(),
        }
    }

    fn hash(&self, (kind, bytes): Content<'_>) -> u64 {
        self.seed.number(self.seed.bytes(bytes) ^ kind)
    }

    /// Sums up what was found. Returns true if the dump was stripped of the contents of strings or arrays.
    pub fn sum_up(&self, parts: Vec<Gathered>, limit: usize) -> (Duplicates, Duplicates, bool) {
        let StringArrays { texts, .. } = self.string_arrays;
        let Texts { graph, .. } = *texts;
        let parts = parts.into_iter().reduce(|mut all, part| {
            let hash = |content: Content<'_>| self.hash(content);
            all.strings.merge(part.strings, hash, |o| texts.content(o));
            let of = |o| array_content(graph, o);
            all.arrays.merge(part.arrays, hash, of);
            all.string_sums.add(part.string_sums);
            all.array_sums.add(part.array_sums);
            all
        });
        let Some(whole) = parts else {
            let none = Sums::default().without_contents();
            return (none.clone(), none, false);
        };
        let (of_strings, of_arrays) = (whole.string_sums, whole.array_sums);
        let strings = match of_strings.is_stripped() {
            true => of_strings.without_contents(),
            false => duplicates_of(graph, &whole.strings, of_strings, limit, Some(texts)),
        };
        let arrays = match of_arrays.is_stripped() {
            true => of_arrays.without_contents(),
            false => duplicates_of(graph, &whole.arrays, of_arrays, limit, None),
        };
        let is_stripped = of_strings.is_stripped() || of_arrays.is_stripped();
        (strings, arrays, is_stripped)
    }
}

impl Examination for EqualContents<'_> {
    type Class = Sort;
    type Found = Gathered;

    fn of_class(&self, class: ClassIndex) -> Option<Sort> {
        sort_of(self.string_arrays.texts.graph, class)
    }

    fn start(&self) -> Gathered {
        Gathered::default()
    }

    fn add(&self, all: &mut Gathered, object: ObjectIndex, sort: Sort) {
        let StringArrays { texts, marks } = self.string_arrays;
        let Texts { graph, .. } = *texts;
        match sort {
            Sort::String => {
                let array = texts.array(object);
                let new_array = array.is_some_and(|array| self.counted.insert(array));
                all.string_sums.count += 1;
                all.string_sums.add_bytes(graph.shallow_bytes(object));
                if let Some(array) = array.filter(|_| new_array) {
                    all.string_sums.add_bytes(graph.shallow_bytes(array));
                }
                match array.and_then(|array| texts.content_in(object, array)) {
                    Some(content) => {
                        let same = Same::one(object, new_array);
                        let of = |other| texts.content(other);
                        if all.strings.put(same, content, self.hash(content), of) {
                            all.string_sums.add_content(content.1);
                        }
                    }
                    None => all.string_sums.without_contents += 1,
                }
            }
            Sort::Array if marks.contains(object) => {}
            Sort::Array => {
                all.array_sums.count += 1;
                all.array_sums.add_bytes(graph.shallow_bytes(object));
                match array_content(graph, object) {
                    Some(content) => {
                        let same = Same::one(object, true);
                        let of = |other| array_content(graph, other);
                        if all.arrays.put(same, content, self.hash(content), of) {
                            all.array_sums.add_content(content.1);
                        }
                    }
                    None => all.array_sums.without_contents += 1,
                }
            }
        }
    }
}

/// Returns the sort of a class's objects, if they are of interest.
fn sort_of(graph: &HeapGraph, class: ClassIndex) -> Option<Sort> {
    match graph.class(class).kind {
        ClassKind::String => Some(Sort::String),
        _ => {
            let element = graph.class(class).name.strip_suffix("[]")?;
            is_primitive(element).then_some(Sort::Array)
        }
    }
}

impl Sums {
    /// Notes contents that differ from those before.
    fn add_content(&mut self, bytes: &[u8]) {
        self.is_filled |= !bytes.is_empty();
        self.has_values = self.has_values || bytes.iter().any(|&byte| byte != 0);
    }

    /// Returns whether all contents were replaced by zeros, as `hprof strip` does.
    fn is_stripped(&self) -> bool {
        self.is_filled && !self.has_values
    }

    /// The sums without a comparison of contents.
    fn without_contents(&self) -> Duplicates {
        Duplicates {
            count: self.count,
            bytes: self.bytes,
            without_contents: self.count,
            distinct: Some(0),
            ..Duplicates::default()
        }
    }

    fn add_bytes(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    fn add(&mut self, other: Sums) {
        self.count += other.count;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.without_contents += other.without_contents;
        self.is_filled |= other.is_filled;
        self.has_values |= other.has_values;
    }
}

fn duplicates_of(
    graph: &HeapGraph,
    equal: &Equal,
    sums: Sums,
    limit: usize,
    texts: Option<&Texts<'_>>,
) -> Duplicates {
    let measure = |same: Same| {
        let own = graph.shallow_bytes(same.first);
        let array = texts.and_then(|texts| texts.array(same.first));
        let array = array.map_or(0, |array| graph.shallow_bytes(array));
        let others = u64::from(same.count) - 1;
        let arrays = u64::from(same.arrays).saturating_sub(1);
        (
            own.saturating_add(array),
            others
                .saturating_mul(own)
                .saturating_add(arrays.saturating_mul(array)),
        )
    };
    let mut all: Vec<(u64, u64, Same)> = equal
        .repeated()
        .map(|same| {
            let (each, wasted) = measure(same);
            (wasted, each, same)
        })
        .collect();
    let wasted_bytes = all
        .iter()
        .fold(0, |sum: u64, row| sum.saturating_add(row.0));
    // The order of equal entries must not depend on hashes.
    all.sort_unstable_by_key(|&(wasted, _, same)| (std::cmp::Reverse(wasted), same.first));
    all.truncate(limit);
    let groups = all
        .into_iter()
        .map(|(wasted_bytes, each_bytes, same)| {
            let (class, length, value, hash) = describe(graph, same.first, texts.is_some());
            DuplicateGroup {
                count: same.count.into(),
                each_bytes,
                wasted_bytes,
                class,
                length,
                value,
                hash: Some(hash),
                example: same.first,
                example_id: graph.id(same.first),
                held_by: None,
            }
        })
        .collect();
    Duplicates {
        count: sums.count,
        bytes: sums.bytes,
        distinct: Some(equal.len() as u64),
        wasted_bytes,
        without_contents: sums.without_contents,
        groups,
    }
}

fn describe(graph: &HeapGraph, object: ObjectIndex, string: bool) -> (String, u64, String, String) {
    let class = graph.class(graph.class_of(object)).shown().to_owned();
    if string {
        let text = graph.contents().string(graph, object);
        let text = text.as_deref().unwrap_or_default();
        let length = text.chars().count() as u64;
        let shown = text.chars().take(MAX_SHOWN).collect();
        return (class, length, shown, hash_of(text.as_bytes()));
    }
    let array = graph.contents().primitive_array(graph, object);
    let length = array.map_or(0, |array| array.length.into());
    let hash = array.and_then(|array| array.bytes).map(hash_of);
    let shown = array.map(in_words).unwrap_or_default();
    (class, length, shown, hash.unwrap_or_default())
}

fn hash_of(content: &[u8]) -> String {
    hex(&Sha256::digest(content)[..8])
}

/// Summarizes the contents of an array.
pub(super) fn in_words(array: PrimitiveArray<'_>) -> String {
    let Some(bytes) = array.bytes else {
        return String::new();
    };
    if bytes.is_empty() {
        return "empty".to_owned();
    }
    let mut parts = bytes.chunks(4096);
    if parts.all(|part| part.iter().fold(0, |all, byte| all | byte) == 0) {
        return "all zero".to_owned();
    }
    let text = bytes.iter().all(|b| (0x20..0x7f).contains(b));
    if array.element == BasicType::Byte && text {
        let text: String = bytes
            .iter()
            .take(MAX_SHOWN)
            .map(|&b| char::from(b))
            .collect();
        return format!("\"{text}\"");
    }
    let width = array.element.bytes(8);
    let mut shown: Vec<String> = bytes
        .chunks_exact(width)
        .take(8)
        .map(|element| of_element(array.element, element))
        .collect();
    if bytes.len() / width > shown.len() {
        shown.push("…".to_owned());
    }
    shown.join(" ")
}

fn of_element(element: BasicType, bytes: &[u8]) -> String {
    let mut wide = [0; 8];
    wide[8 - bytes.len()..].copy_from_slice(bytes);
    let bits = u64::from_be_bytes(wide);
    let shift = 64 - 8 * bytes.len() as u32;
    match element {
        BasicType::Boolean => (bits != 0).to_string(),
        BasicType::Byte => format!("{bits:02x}"),
        BasicType::Char => match char::from_u32(bits as u32) {
            Some(c) if !c.is_control() => c.to_string(),
            _ => format!("\\u{bits:04x}"),
        },
        BasicType::Float => f32::from_bits(bits as u32).to_string(),
        BasicType::Double => f64::from_bits(bits).to_string(),
        BasicType::Object | BasicType::Short | BasicType::Int | BasicType::Long => {
            ((bits << shift) as i64 >> shift).to_string()
        }
    }
}

type Content<'g> = (u64, &'g [u8]);

/// The arrays behind strings.
struct Texts<'g> {
    graph: &'g HeapGraph,
    /// By class, whether its objects have the characters of strings.
    is_array: Vec<bool>,
    /// Whether strings are ranges of arrays, as in Dalvik, ART 5 and Java 6.
    are_parts: bool,
}

impl<'g> Texts<'g> {
    fn new(graph: &'g HeapGraph) -> Texts<'g> {
        let classes = graph.classes();
        let are_parts = classes.iter().any(|class| {
            let declares = |name| class.fields.iter().any(|field| field.name == name);
            class.kind == ClassKind::String && declares("offset") && declares("count")
        });
        let is_array = |name: &str| matches!(name, "byte[]" | "char[]");
        Texts {
            graph,
            is_array: classes.iter().map(|class| is_array(&class.name)).collect(),
            are_parts,
        }
    }

    /// Returns the array behind a string: the only object that it refers to.
    fn array(&self, string: ObjectIndex) -> Option<ObjectIndex> {
        let mut targets = self.graph.references(string).iter().copied();
        targets.find(|&target| {
            target != ObjectIndex::NONE && self.is_array[self.graph.class_of(target).at()]
        })
    }

    fn content(&self, string: ObjectIndex) -> Option<Content<'g>> {
        self.content_in(string, self.array(string)?)
    }

    fn content_in(&self, string: ObjectIndex, array: ObjectIndex) -> Option<Content<'g>> {
        let (kind, bytes) = array_content(self.graph, array)?;
        if !self.are_parts {
            return Some((kind, bytes));
        }
        let (mut offset, mut count) = (None, None);
        fields::visit(self.graph, string, |field| {
            match field.name {
                Some("offset") => offset = field.value.integer(),
                Some("count") => count = field.value.integer(),
                _ => {}
            }
            ControlFlow::Continue(())
        });
        let from = usize::try_from(offset?).ok()?.checked_mul(2)?;
        let len = usize::try_from(count?).ok()?.checked_mul(2)?;
        Some((kind, bytes.get(from..from.checked_add(len)?)?))
    }
}

fn array_content(graph: &HeapGraph, array: ObjectIndex) -> Option<Content<'_>> {
    let array = graph.contents().primitive_array(graph, array)?;
    Some((array.element as u64, array.bytes?))
}
