//! Frames merged into a tree and laid out from the root down.

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
    /// leaves out stacks without that text in a name; case is ignored.
    ///
    /// # Errors
    /// Returns an error if the statement is to end.
    pub(super) fn of(
        layout: Arc<Layout>,
        mut own: Vec<Figures>,
        focus: Option<&str>,
        order: Order,
        stop: &Stop,
    ) -> Result<Flamegraph, TableError> {
        let nodes = layout.parents.len();
        let parent = |node: usize| layout.parents[node].map(|parent| parent as usize);
        let mut kept = vec![true; nodes];
        if let Some(focus) = focus {
            let focus = focus.to_lowercase();
            // Keep frames at or below a match.
            for node in 0..nodes {
                stop.check_at(node)?;
                let above = parent(node).is_some_and(|above| kept[above]);
                kept[node] = above || layout.name(node as u32).to_lowercase().contains(&focus);
                if !kept[node] {
                    own[node] = Figures::default();
                }
            }
            // Keep the frames above them, too.
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
            stop.check_at(node)?;
            if let Some(above) = parent(node) {
                let sum = sums[node];
                sums[above].add(sum);
            }
        }
        let frames = rows(&layout, &kept, &own, &sums, order, stop)?;
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

const NONE: u32 = u32::MAX;

/// Lays out the kept frames. Children are linked lists, so that the space is linear even for a
/// frame with a million children or a stack of a million frames.
fn rows(
    layout: &Layout,
    kept: &[bool],
    own: &[Figures],
    sums: &[Figures],
    order: Order,
    stop: &Stop,
) -> Result<Vec<Frame>, TableError> {
    let nodes = (0..kept.len() as u32).filter(|&node| kept[node as usize]);
    let mut nodes: Vec<u32> = nodes.collect();
    if order == Order::Widest {
        nodes.sort_by_key(|&node| std::cmp::Reverse(sums[node as usize].size.unsigned_abs()));
    }
    let mut first_child = vec![NONE; kept.len()];
    let mut next = vec![NONE; kept.len()];
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
