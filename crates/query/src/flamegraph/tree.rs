//! Frames merged into a tree and laid out from the root down.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::stop::Stop;
use crate::table::TableError;
use heaptap_model::profile::interned::Texts;

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

/// Name and location of a frame, as numbers of texts of a [`Layout`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Label {
    pub(super) name: u32,
    pub(super) map_name: u32,
    pub(super) source_file: Option<u32>,
    pub(super) line: Option<u32>,
}

/// Tree without figures, parents before children, with the texts of its labels.
#[derive(Debug, Default)]
pub(super) struct Layout {
    pub(super) parents: Vec<Option<u32>>,
    pub(super) labels: Vec<Label>,
    pub(super) texts: Texts,
}

impl Layout {
    fn name(&self, node: u32) -> &str {
        self.texts.get(self.labels[node as usize].name)
    }
}

/// Frame in its row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    node: u32,
    /// Row of the frame above.
    pub(super) parent: Option<u32>,
    pub(super) depth: u32,
    pub(super) line: Option<u32>,
    pub(super) own: Figures,
    pub(super) sums: Figures,
}

/// Tree with figures, in rows: a frame is directly followed by all frames below it.
pub(super) struct Flamegraph {
    layout: Arc<Layout>,
    frames: Vec<Frame>,
}

/// Order of frames with the same parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// The order of the layout.
    Given,
    /// Largest cumulative size first.
    Widest,
}

impl Flamegraph {
    /// Computes cumulative figures from the figures of each frame of the layout. With a focus,
    /// leaves out frames unless they, a frame above or a frame below have that text in their name;
    /// case is ignored. Frames above keep their own figures.
    ///
    /// # Errors
    /// Returns an error if the statement is to end.
    pub(super) fn new(
        layout: Arc<Layout>,
        mut own: Vec<Figures>,
        focus: Option<&str>,
        order: Order,
        stop: &Stop,
    ) -> Result<Flamegraph, TableError> {
        let nodes = layout.parents.len();
        let parent = |node: usize| layout.parents[node].map(|parent| parent as usize);
        let mut kept = vec![true; nodes];
        let whole = cumulative(&layout, &own, stop)?;
        if let Some(focus) = focus {
            let focus = focus.to_lowercase();
            // Keep frames at or below a match.
            for node in 0..nodes {
                stop.check_at(node)?;
                let above = parent(node).is_some_and(|above| kept[above]);
                kept[node] = above || layout.name(node as u32).to_lowercase().contains(&focus);
            }
            // Keep the frames above them, too.
            for node in (0..nodes).rev() {
                match parent(node) {
                    Some(above) if kept[node] => kept[above] = true,
                    _ if kept[node] => {}
                    _ => own[node] = Figures::default(),
                }
            }
        }
        let focused = match focus {
            None => None,
            Some(_) => Some(cumulative(&layout, &own, stop)?),
        };
        let mut nodes: Vec<u32> = (0..nodes as u32)
            .filter(|&node| kept[node as usize])
            .collect();
        if order == Order::Widest {
            // As without a focus.
            nodes.sort_by_key(|&node| Reverse(whole[node as usize].size.unsigned_abs()));
        }
        let sums = focused.unwrap_or(whole);
        let frames = rows(&layout, &nodes, &own, &sums, stop)?;
        Ok(Flamegraph { layout, frames })
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
        self.layout.texts.get(self.label(row).name)
    }

    pub(super) fn map_name(&self, row: usize) -> &str {
        self.layout.texts.get(self.label(row).map_name)
    }

    pub(super) fn source_file(&self, row: usize) -> Option<&str> {
        let file = self.label(row).source_file?;
        Some(self.layout.texts.get(file))
    }
}

/// Returns the figures of each frame with those of all frames below it.
fn cumulative(layout: &Layout, own: &[Figures], stop: &Stop) -> Result<Vec<Figures>, TableError> {
    let mut sums = own.to_vec();
    for node in (0..own.len()).rev() {
        stop.check_at(node)?;
        if let Some(above) = layout.parents[node] {
            let sum = sums[node];
            sums[above as usize].add(sum);
        }
    }
    Ok(sums)
}

const NONE: u32 = u32::MAX;

/// Lays out the frames `nodes`, in which those of the same parent are in order. Children are linked lists, so that the space is linear even for a
/// frame with a million children or a stack of a million frames.
fn rows(
    layout: &Layout,
    nodes: &[u32],
    own: &[Figures],
    sums: &[Figures],
    stop: &Stop,
) -> Result<Vec<Frame>, TableError> {
    let mut first_child = vec![NONE; own.len()];
    let mut next = vec![NONE; own.len()];
    let mut first_root = NONE;
    // Back to front, so that each list is in order.
    for (at, &node) in nodes.iter().rev().enumerate() {
        stop.check_at(at)?;
        let list = match layout.parents[node as usize] {
            Some(parent) => &mut first_child[parent as usize],
            None => &mut first_root,
        };
        next[node as usize] = std::mem::replace(list, node);
    }
    let mut frames = Vec::with_capacity(nodes.len());
    // Row of each frame above, and the node that follows it under the same parent.
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
        stop.check_at(frames.len())?;
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
    Ok(frames)
}
