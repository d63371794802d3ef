//! Selection and order of the written callsites: those with values and their ancestors, depth
//! first. Other table entries are numbered by first use.

use super::varint::{self, Delta};
use heaptap_model::stacks::{FrameId, Kind, NodeId, StackProfile, StackTable, TextId};

/// Number of entries that are not written.
const NONE: u32 = u32::MAX;

/// Callsites in depth-first order.
#[derive(Debug)]
pub struct Order {
    /// By number; the root is first.
    nodes: Vec<NodeId>,
    /// Number by node; [`NONE`] for omitted ones.
    numbers: Vec<u32>,
}

impl Order {
    /// Returns the callsites of all dumps of a profile.
    pub fn from_profile(profile: &StackProfile) -> Order {
        let table = &profile.table;
        let count = table.node_count();
        let mut used = vec![false; count];
        used[0] = true;
        for dump in &profile.dumps {
            for node in &dump.values.nodes {
                used[node.0 as usize] = true;
            }
        }
        // Parents come before their children. In reverse order, each node marks its parent and puts
        // itself before its siblings, which leaves siblings in order.
        let mut first = vec![NONE; count];
        let mut next = vec![NONE; count];
        for at in (1..count).rev() {
            if used[at] {
                let parent = table.parent(NodeId(at as u32)).0 as usize;
                used[parent] = true;
                next[at] = first[parent];
                first[parent] = at as u32;
            }
        }
        let mut order = Order {
            nodes: Vec::with_capacity(count),
            numbers: vec![NONE; count],
        };
        let mut open = vec![0];
        while let Some(at) = open.pop() {
            order.numbers[at as usize] = order.nodes.len() as u32;
            order.nodes.push(NodeId(at));
            for link in [next[at as usize], first[at as usize]] {
                if link != NONE {
                    open.push(link);
                }
            }
        }
        order
    }

    /// Returns the number of a callsite; `None` if it is omitted.
    pub fn number(&self, node: NodeId) -> Option<u32> {
        let number = *self.numbers.get(node.0 as usize)?;
        (number != NONE).then_some(number)
    }

    /// Returns the number of written callsites, including the root.
    pub fn count(&self) -> usize {
        self.nodes.len()
    }
}

/// Numbers by first use.
struct Numbers {
    of: Vec<u32>,
    used: Vec<u32>,
}

impl Numbers {
    /// Creates an empty numbering. `fixed`: entry 0 keeps its number.
    fn new(count: usize, fixed: bool) -> Numbers {
        let mut numbers = Numbers {
            of: vec![NONE; count],
            used: Vec::new(),
        };
        if fixed && count > 0 {
            numbers.number(0);
        }
        numbers
    }

    fn number(&mut self, id: u32) -> u32 {
        let number = &mut self.of[id as usize];
        if *number == NONE {
            *number = self.used.len() as u32;
            self.used.push(id);
        }
        *number
    }
}

/// Sections of the tables.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) strings: Vec<u8>,
    pub(super) libraries: Vec<u8>,
    pub(super) functions: Vec<u8>,
    pub(super) frames: Vec<u8>,
    pub(super) nodes: Vec<u8>,
    pub(super) counts: super::header::Counts,
}

impl Tables {
    /// Returns the table entries that `order` uses.
    pub(super) fn new(table: &StackTable, order: &Order) -> Tables {
        let mut frames = Numbers::new(table.frames().len(), false);
        let nodes = nodes(table, order, &mut frames);
        let mut functions = Numbers::new(table.functions().len(), false);
        let mut texts = Numbers::new(table.text_count(), true);
        let frame_columns = frame_columns(table, &frames.used, &mut functions, &mut texts);
        let mut libraries = Numbers::new(table.libraries().len(), true);
        let function_columns = function_columns(table, &functions.used, &mut libraries, &mut texts);
        let [mut paths, mut build_ids] = [Delta::default(), Delta::default()];
        for &id in &libraries.used {
            let library = &table.libraries()[id as usize];
            paths.push(texts.number(library.path.0));
            build_ids.push(texts.number(library.build_id.0));
        }
        Tables {
            strings: strings(table, &texts.used),
            libraries: [paths.finish(), build_ids.finish()].concat(),
            functions: function_columns,
            frames: frame_columns,
            nodes,
            counts: super::header::Counts {
                strings: texts.used.len(),
                libraries: libraries.used.len(),
                functions: functions.used.len(),
                frames: frames.used.len(),
                nodes: order.count(),
            },
        }
    }
}

fn nodes(table: &StackTable, order: &Order, frames: &mut Numbers) -> Vec<u8> {
    let mut pops = Vec::with_capacity(order.count());
    let mut ids = Vec::with_capacity(order.count() * 2);
    let mut depths = vec![0u32; order.count()];
    for (at, &node) in order.nodes.iter().enumerate().skip(1) {
        let parent = order.numbers[table.parent(node).0 as usize];
        depths[at] = depths[parent as usize] + 1;
        varint::put(&mut pops, u64::from(depths[at - 1] + 1 - depths[at]));
        let FrameId(frame) = table.frame_of(node).expect("only the root has no frame");
        varint::put(&mut ids, u64::from(frames.number(frame)));
    }
    pops.append(&mut ids);
    pops
}

fn frame_columns(
    table: &StackTable,
    used: &[u32],
    functions: &mut Numbers,
    texts: &mut Numbers,
) -> Vec<u8> {
    let [mut owners, mut files] = [Delta::default(), Delta::default()];
    let [mut lines, mut flags] = [Vec::new(), Vec::new()];
    for &id in used {
        let frame = &table.frames()[id as usize];
        owners.push(functions.number(frame.function.0));
        files.push(texts.number(frame.file.0));
        varint::put(&mut lines, u64::from(frame.line));
        varint::put(&mut flags, u64::from(frame.inlined));
    }
    [owners.finish(), files.finish(), lines, flags].concat()
}

fn function_columns(
    table: &StackTable,
    used: &[u32],
    libraries: &mut Numbers,
    texts: &mut Numbers,
) -> Vec<u8> {
    let [mut names, mut system_names, mut owners] =
        [Delta::default(), Delta::default(), Delta::default()];
    let mut kinds = Vec::new();
    for &id in used {
        let function = &table.functions()[id as usize];
        names.push(texts.number(function.name.0));
        system_names.push(texts.number(function.system_name.0));
        owners.push(libraries.number(function.library.0));
        // The page has no table by class, so allocated classes count as Java code.
        let kind = match function.kind {
            Kind::Class => Kind::Java,
            kind => kind,
        };
        varint::put(&mut kinds, u64::from(kind as u8));
    }
    [
        names.finish(),
        system_names.finish(),
        owners.finish(),
        kinds,
    ]
    .concat()
}

fn strings(table: &StackTable, used: &[u32]) -> Vec<u8> {
    let mut out = Vec::new();
    let texts = || used.iter().map(|&id| table.text_of(TextId(id)));
    for text in texts() {
        let units = match text.is_ascii() {
            true => text.len(),
            false => text.encode_utf16().count(),
        };
        varint::put(&mut out, units as u64);
    }
    for text in texts() {
        out.extend_from_slice(text.as_bytes());
    }
    out
}
