//! pprof of a Java heap: a class tree with one sample per node. Its stack is the path to the root.
//!
//! | sample types | when |
//! |---|---|
//! | `objects/count`, `space/bytes`, `native_space/bytes`, default `space` | by default |
//! | `Total allocation count/count`, `Total allocation size/bytes` | [`SampleNames::Perfetto`] |
//!
//! `space` of a node `[native] Class` is native bytes, as in Perfetto's converter. `native_space`
//! is native bytes only. All locations are in a mapping `JAVA` that is marked as having functions,
//! so that tools do not look for a file of that name.

use super::pprof::SampleNames;
use super::pprof::field;
use super::wire::{put_bytes, put_number, put_varint, signed, varint_len};
use heaptap_analyze::class_tree::{self, ClassTree, Merge, Node, Over};
use heaptap_model::heap_graph::{HeapGraph, RootKind};
use heaptap_model::profile::interned::Texts;
use std::collections::HashMap;

/// Metadata of a profile.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JavaProfile {
    /// Names of sample types.
    pub sample_names: SampleNames,
    /// Time of the dump in ns since 1970, if known.
    pub wall_time_ns: Option<u64>,
    /// Comments, written unchanged.
    pub comments: Vec<String>,
}

/// Maximum number of location IDs in all samples together. Larger profiles are not usable.
const MAX_STEPS: u64 = 64 << 20;

/// Returns a tree of a heap's objects that fits into a profile, and a description of the necessary
/// reductions, if any.
pub fn tree_for_profile(graph: &HeapGraph, over: Over<'_>) -> (ClassTree, Option<String>) {
    fitted(ClassTree::new(graph, over, Merge::Flamegraph))
}

/// Reduces a [`Merge::Flamegraph`] tree until it fits into a profile, and describes how, if it does
/// not.
pub fn fitted(tree: ClassTree) -> (ClassTree, Option<String>) {
    if class_tree::steps(&tree.depths()) <= MAX_STEPS {
        return (tree, None);
    }
    let tree = tree.folded();
    let folded = "chains of objects of one class are folded into one frame because of their length";
    let depths = tree.depths();
    if class_tree::steps(&depths) <= MAX_STEPS {
        return (tree, Some(folded.to_owned()));
    }
    let depth = class_tree::depth_within(&depths, MAX_STEPS);
    let why = format!("{folded}; deeper objects are counted at a depth of {depth} frames");
    (tree.cut(&depths, depth), Some(why))
}

/// Encodes a class tree as an uncompressed profile.
pub fn encode(tree: &ClassTree, about: &JavaProfile) -> Vec<u8> {
    let mut strings = Texts::default();
    let mut out = Vec::with_capacity(tree.nodes.len() * 48 + 4096);
    let columns: &[(&str, &str)] = match about.sample_names {
        SampleNames::Pprof => &[
            ("objects", "count"),
            ("space", "bytes"),
            ("native_space", "bytes"),
        ],
        SampleNames::Perfetto => &[
            ("Total allocation count", "count"),
            ("Total allocation size", "bytes"),
        ],
    };
    let mut message = Vec::new();
    for (name, unit) in columns {
        message.clear();
        put_number(&mut message, 1, strings.id(name).into());
        put_number(&mut message, 2, strings.id(unit).into());
        put_bytes(&mut out, field::SAMPLE_TYPE, &message);
    }
    let frames = samples(tree, columns.len(), &mut out);
    message.clear();
    put_number(&mut message, 1, MAPPING);
    put_number(&mut message, 5, strings.id("JAVA").into());
    put_number(&mut message, 7, 1);
    put_bytes(&mut out, field::MAPPING, &message);
    let mut line = Vec::new();
    for (id, node) in (1..).zip(&frames) {
        line.clear();
        put_number(&mut line, 1, id);
        message.clear();
        put_number(&mut message, 1, id);
        put_number(&mut message, 2, MAPPING);
        put_bytes(&mut message, 4, &line);
        put_bytes(&mut out, field::LOCATION, &message);
        message.clear();
        put_number(&mut message, 1, id);
        put_number(&mut message, 2, strings.id(&tree.name(node)).into());
        put_bytes(&mut out, field::FUNCTION, &message);
    }
    if let Some(time) = about.wall_time_ns {
        put_number(&mut out, field::TIME_NANOS, time);
    }
    if !about.comments.is_empty() {
        message.clear();
        for comment in &about.comments {
            put_varint(&mut message, strings.id(comment).into());
        }
        put_bytes(&mut out, field::COMMENT, &message);
    }
    // `space`, or Perfetto's name for it.
    put_number(
        &mut out,
        field::DEFAULT_SAMPLE_TYPE,
        strings.id(columns[1].0).into(),
    );
    for id in 0..strings.len() as u32 {
        put_bytes(&mut out, field::STRING, strings.get(id).as_bytes());
    }
    out
}

const MAPPING: u64 = 1;

/// Writes a sample for each node. Returns a node for each frame, in order of frame IDs.
fn samples(tree: &ClassTree, columns: usize, out: &mut Vec<u8>) -> Vec<Node> {
    let mut frames: Vec<Node> = Vec::new();
    // IDs of frames that are only a class, by its name; 0 if there is none yet.
    let mut plain = vec![0u64; tree.names.len()];
    let mut others: HashMap<(u32, Option<RootKind>, bool), u64> = HashMap::new();
    // Range in `out` of the stack of each node: a child's stack is its own frame followed by that
    // of its parent.
    let mut stacks: Vec<(usize, usize)> = Vec::with_capacity(tree.nodes.len());
    for node in &tree.nodes {
        let known = match (node.root, node.is_native) {
            (None, false) => &mut plain[node.name as usize],
            (root, is_native) => others.entry((node.name, root, is_native)).or_default(),
        };
        if *known == 0 {
            frames.push(*node);
            *known = frames.len() as u64;
        }
        let id = *known;
        let (from, length) = node
            .parent
            .map_or((0, 0), |parent| stacks[parent.0 as usize]);
        let native = if node.is_native { node.bytes } else { 0 };
        let values = [node.count, node.bytes, native].map(|number| signed(number) as u64);
        let values = &values[..columns];
        let values_length: usize = values.iter().map(|&value| varint_len(value)).sum();
        let own = varint_len(id);
        let stack_length = own + length;
        let sample_length = 1 + varint_len(stack_length as u64) + stack_length + 2 + values_length;
        put_varint(out, u64::from(field::SAMPLE) << 3 | 2);
        put_varint(out, sample_length as u64);
        put_varint(out, 1 << 3 | 2);
        put_varint(out, stack_length as u64);
        stacks.push((out.len(), stack_length));
        put_varint(out, id);
        out.extend_from_within(from..from + length);
        // Three values take 30 bytes at most, so their length takes one.
        out.push(2 << 3 | 2);
        out.push(values_length as u8);
        for &value in values {
            put_varint(out, value);
        }
    }
    frames
}
