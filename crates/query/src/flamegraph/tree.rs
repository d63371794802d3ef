//! Frames merged into a tree, laid out from the root down.

use std::sync::Arc;

/// Figures of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Figures {
    pub(super) count: i64,
    pub(super) size: i64,
    pub(super) alloc_count: i64,
    pub(super) alloc_size: i64,
}

impl Figures {
    pub(super) fn add(&mut self, other: Figures) {
        self.count = self.count.saturating_add(other.count);
        self.size = self.size.saturating_add(other.size);
        self.alloc_count = self.alloc_count.saturating_add(other.alloc_count);
        self.alloc_size = self.alloc_size.saturating_add(other.alloc_size);
    }
}

/// What a frame is called and where it is, as numbers of texts; in the texts of a [`Layout`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Label {
    pub(super) name: u32,
    pub(super) map_name: u32,
    pub(super) source_file: Option<u32>,
    pub(super) line: Option<u32>,
}

/// A tree without figures: frames after those above them, and the texts of their labels.
#[derive(Debug, Default)]
pub(super) struct Layout {
    pub(super) parents: Vec<Option<u32>>,
    pub(super) labels: Vec<Label>,
    pub(super) texts: Vec<String>,
}

impl Layout {
    fn name(&self, node: u32) -> &str {
        &self.texts[self.labels[node as usize].name as usize]
    }
}

/// A frame in its row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    node: u32,
    /// The row above.
    pub(super) parent: Option<u32>,
    pub(super) depth: u32,
    pub(super) line: Option<u32>,
    pub(super) own: Figures,
    pub(super) sums: Figures,
}

/// A tree with figures, in rows: each frame before those below it, and these at once after it.
pub(super) struct Flamegraph {
    layout: Arc<Layout>,
    frames: Vec<Frame>,
}

/// The order of frames that are side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// As in the layout.
    Given,
    /// The widest first.
    Widest,
}

impl Flamegraph {
    /// Sums up figures, one for each frame of the layout. With a focus, stacks that have it in no
    /// name, whatever its case, are left out.
    pub(super) fn of(
        layout: Arc<Layout>,
        mut own: Vec<Figures>,
        focus: Option<&str>,
        order: Order,
    ) -> Flamegraph {
        let nodes = layout.parents.len();
        let parent = |node: usize| layout.parents[node].map(|parent| parent as usize);
        let mut kept = vec![true; nodes];
        if let Some(focus) = focus {
            let focus = focus.to_lowercase();
            // At or below a frame that matches.
            for node in 0..nodes {
                let above = parent(node).is_some_and(|above| kept[above]);
                kept[node] = above || layout.name(node as u32).to_lowercase().contains(&focus);
                if !kept[node] {
                    own[node] = Figures::default();
                }
            }
            // And what leads there.
            for node in (0..nodes).rev() {
                if let Some(above) = parent(node)
                    && kept[node]
                {
                    kept[above] = true;
                }
            }
        }
        let mut sums = own.clone();
        for node in (0..nodes).rev() {
            if let Some(above) = parent(node) {
                let sum = sums[node];
                sums[above].add(sum);
            }
        }
        let frames = rows(&layout, &kept, &own, &sums, order);
        Flamegraph { layout, frames }
    }

    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }

    pub(super) fn frame(&self, row: usize) -> &Frame {
        &self.frames[row]
    }

    fn label(&self, row: usize) -> Label {
        self.layout.labels[self.frames[row].node as usize]
    }

    pub(super) fn name(&self, row: usize) -> &str {
        &self.layout.texts[self.label(row).name as usize]
    }

    pub(super) fn map_name(&self, row: usize) -> &str {
        &self.layout.texts[self.label(row).map_name as usize]
    }

    pub(super) fn source_file(&self, row: usize) -> Option<&str> {
        let file = self.label(row).source_file?;
        Some(&self.layout.texts[file as usize])
    }
}

/// No node.
const NONE: u32 = u32::MAX;

/// Lays out what is kept. Children are linked lists, so that neither a frame with a million
/// children nor a stack of a million frames takes more than its place.
fn rows(
    layout: &Layout,
    kept: &[bool],
    own: &[Figures],
    sums: &[Figures],
    order: Order,
) -> Vec<Frame> {
    let nodes = (0..kept.len() as u32).filter(|&node| kept[node as usize]);
    let mut nodes: Vec<u32> = nodes.collect();
    if order == Order::Widest {
        nodes.sort_by_key(|&node| std::cmp::Reverse(sums[node as usize].size.unsigned_abs()));
    }
    let mut first_child = vec![NONE; kept.len()];
    let mut next = vec![NONE; kept.len()];
    let mut first_root = NONE;
    // The last first, so that each list is in order.
    for &node in nodes.iter().rev() {
        let list = match layout.parents[node as usize] {
            Some(parent) => &mut first_child[parent as usize],
            None => &mut first_root,
        };
        next[node as usize] = std::mem::replace(list, node);
    }
    let mut frames = Vec::with_capacity(nodes.len());
    // Rows of those above, and whom to go on with after each.
    let mut above: Vec<(u32, u32)> = Vec::new();
    let mut node = first_root;
    loop {
        if node == NONE {
            match above.pop() {
                Some((_, beside)) => node = beside,
                None => break,
            }
            continue;
        }
        let at = node as usize;
        let row = frames.len() as u32;
        frames.push(Frame {
            node,
            parent: above.last().map(|&(row, _)| row),
            depth: above.len() as u32,
            line: layout.labels[at].line,
            own: own[at],
            sums: sums[at],
        });
        above.push((row, next[at]));
        node = first_child[at];
    }
    frames
}
