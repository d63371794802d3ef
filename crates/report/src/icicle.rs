//! Tree of sizes as a static picture: SVG rows of boxes, the root on top, each box as wide as its
//! share. Boxes too narrow to see are merged. Tooltips contain the exact values.

use super::html::{Attribute, Html};
use heaptap_model::units::ByteSize;

/// Node of the tree; children come after their parents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) name: String,
    /// Bytes of the node and its descendants.
    pub(super) bytes: u64,
    /// Objects of the node and its descendants.
    pub(super) count: u64,
    /// Index of the parent, smaller than its own; `None` in the first row.
    pub(super) parent: Option<usize>,
}

/// Width of the picture in its own units.
const WIDTH: f64 = 1200.0;
/// Height of a row.
const ROW: f64 = 17.0;
/// Minimum width of a box; narrower ones and their descendants are not drawn.
const NARROWEST: f64 = 1.5;
/// Maximum number of rows; deeper nodes are in the tables only.
const DEEPEST: usize = 60;
/// Pastel fills with sufficient contrast for dark text, chosen by name so that a class has one
/// color.
const FILLS: [&str; 8] = [
    "#f2c79b", "#f5d98f", "#cfe3a0", "#a9dcc3", "#a8d3ea", "#b9c4f0", "#dcbdea", "#f0b8c4",
];

/// Draws the tree.
pub(super) fn draw(html: &mut Html, label: &str, nodes: &[Node]) {
    let total: u64 = nodes
        .iter()
        .filter(|n| n.parent.is_none())
        .map(|n| n.bytes)
        .fold(0, u64::saturating_add);
    if total == 0 {
        return;
    }
    let scale = WIDTH / total as f64;
    // Start and depth of each node, and the start of its next child. Children come after their
    // parents, so one pass suffices.
    let mut starts = vec![0.0f64; nodes.len()];
    let mut depths = vec![usize::MAX; nodes.len()];
    let mut next = vec![0.0f64; nodes.len()];
    let mut next_root = 0.0;
    let mut boxes = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        let width = node.bytes as f64 * scale;
        let (start, depth) = match node.parent {
            None => {
                let start = next_root;
                next_root += width;
                (start, 0)
            }
            Some(parent) => {
                if parent >= at || depths[parent] == usize::MAX {
                    continue;
                }
                let start = next[parent];
                next[parent] += width;
                (start, depths[parent] + 1)
            }
        };
        starts[at] = start;
        next[at] = start;
        if width >= NARROWEST && depth < DEEPEST {
            depths[at] = depth;
            boxes.push((at, start, width, depth));
        }
    }
    let rows = boxes.iter().map(|b| b.3 + 1).max().unwrap_or(1);
    let height = rows as f64 * ROW;
    html.add(format_args!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">\n",
        Attribute(label)
    ));
    for (at, x, width, depth) in boxes {
        let node = &nodes[at];
        let y = depth as f64 * ROW;
        let percent = node.bytes as f64 * 100.0 / total as f64;
        html.add(format_args!(
            "<g><title>{}: {} ({percent:.1}%), {} objects</title><rect x=\"{x:.1}\" y=\"{y}\" \
             width=\"{width:.1}\" height=\"{ROW}\" fill=\"{}\"/>",
            Attribute(&node.name),
            ByteSize(node.bytes),
            node.count,
            fill(&node.name),
        ));
        // About six units per character. Text that does not fit is omitted rather than cut within a
        // word.
        let room = ((width - 6.0) / 6.0) as usize;
        if room >= 4 {
            let text = short(&node.name, room);
            html.add(format_args!(
                "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                x + 3.0,
                y + ROW - 5.0,
                Attribute(&text)
            ));
        }
        html.add(format_args!("</g>\n"));
    }
    html.add(format_args!("</svg>\n"));
}

/// Shortens the name to at most `room` characters: removes its package first, then cuts.
fn short(name: &str, room: usize) -> String {
    if name.chars().count() <= room {
        return name.to_owned();
    }
    let class = name.split(['<', ' ']).next().unwrap_or(name);
    let simple = match class.rfind('.') {
        Some(dot) => &name[dot + 1..],
        None => name,
    };
    match simple.chars().count() <= room {
        true => simple.to_owned(),
        false => simple.chars().take(room - 1).chain(['…']).collect(),
    }
}

/// Chooses a fill by the FNV-1a hash of the name.
fn fill(name: &str) -> &'static str {
    let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    FILLS[hash as usize % FILLS.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, bytes: u64, parent: Option<usize>) -> Node {
        Node {
            name: name.to_owned(),
            bytes,
            count: 1,
            parent,
        }
    }

    #[test]
    fn boxes_are_as_wide_as_their_share_and_stand_below_their_parents() {
        let nodes = [
            node("a.Root", 750, None),
            node("b.Other", 250, None),
            node("a.Left", 250, Some(0)),
            node("a.Right<x>", 500, Some(0)),
            node("too.Small", 1, Some(3)),
        ];
        let mut html = Html::default();
        draw(&mut html, "by size", &nodes);
        let page = html.into_body();
        for rect in [
            "x=\"0.0\" y=\"0\" width=\"900.0\"",
            "x=\"900.0\" y=\"0\" width=\"300.0\"",
            "x=\"0.0\" y=\"17\" width=\"300.0\"",
            "x=\"300.0\" y=\"17\" width=\"600.0\"",
        ] {
            assert!(page.contains(rect), "{rect}: {page}");
        }
        assert!(!page.contains("too.Small"));
        assert!(page.contains("a.Right&lt;x&gt;"));
        assert_eq!(short("com.example.Activity", 10), "Activity");
        assert_eq!(short("com.example.Activity", 5), "Acti…");
    }

    #[test]
    fn nothing_is_drawn_of_nothing_and_a_tree_out_of_order_does_no_harm() {
        let mut html = Html::default();
        draw(&mut html, "empty", &[]);
        draw(&mut html, "zero", &[node("a", 0, None)]);
        let hostile = [node("a", u64::MAX, Some(1)), node("b", u64::MAX, None)];
        draw(&mut html, "hostile", &hostile);
        assert!(html.into_body().matches("<rect").count() == 1);
    }
}
