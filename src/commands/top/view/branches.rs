//! Branches in front of the names of tree nodes. An only child is drawn directly below its parent
//! without indent, because stacks are deep and terminals are narrow.

/// Line of a drawn tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line {
    /// A node, by its position.
    Node(usize),
    /// The remainder below a node; `None` means below the root.
    Rest(Option<usize>),
}

/// Returns the lines of a tree with their branches. Each node has the position of its parent, and
/// whether nodes were left out below it. Nodes are in depth-first order.
pub(super) fn lines(nodes: &[(Option<usize>, bool)], root_rest: bool) -> Vec<(Line, String)> {
    let mut below = vec![0usize; nodes.len()];
    let mut below_root = usize::from(root_rest);
    for (at, (above, rest)) in nodes.iter().enumerate() {
        below[at] += usize::from(*rest);
        match above {
            Some(above) => below[*above] += 1,
            None => below_root += 1,
        }
    }
    let mut drawn = Drawn {
        is_alone: below.iter().map(|count| *count == 1).collect(),
        left: below,
        root_left: below_root,
        root_is_alone: below_root == 1,
        indents: vec![0; nodes.len()],
        open: Vec::new(),
        lines: Vec::with_capacity(nodes.len()),
    };
    // Nodes whose subtree is not complete yet.
    let mut path: Vec<usize> = Vec::new();
    for (at, (above, _)) in nodes.iter().enumerate() {
        while let Some(last) = path.pop_if(|last| Some(*last) != *above) {
            if nodes[last].1 {
                drawn.line(Line::Rest(Some(last)), Some(last));
            }
        }
        drawn.line(Line::Node(at), *above);
        path.push(at);
    }
    while let Some(last) = path.pop() {
        if nodes[last].1 {
            drawn.line(Line::Rest(Some(last)), Some(last));
        }
    }
    if root_rest {
        drawn.line(Line::Rest(None), None);
    }
    drawn.lines
}

struct Drawn {
    /// By node: whether exactly one line is below it.
    is_alone: Vec<bool>,
    /// By node: number of lines below it that are not drawn yet.
    left: Vec<usize>,
    root_left: usize,
    root_is_alone: bool,
    indents: Vec<usize>,
    /// By level: whether more of it follows.
    open: Vec<bool>,
    lines: Vec<(Line, String)>,
}

/// Maximum level of branches; deeper ones are drawn at this level.
const MAX_DEPTH: usize = 40;

impl Drawn {
    fn line(&mut self, line: Line, above: Option<usize>) {
        let (indent, is_chained) = match above {
            None if self.root_is_alone => (0, true),
            None => (1, false),
            Some(above) if self.is_alone[above] => (self.indents[above], true),
            Some(above) => ((self.indents[above] + 1).min(MAX_DEPTH), false),
        };
        let left = match above {
            None => &mut self.root_left,
            Some(above) => &mut self.left[above],
        };
        *left -= 1;
        let is_last = *left == 0;
        if let Line::Node(at) = line {
            self.indents[at] = indent;
        }
        let mut lead = String::new();
        let whole = if is_chained { indent } else { indent - 1 };
        for level in 0..whole {
            let is_open = self.open.get(level).copied().unwrap_or(false);
            lead.push_str(if is_open { "│ " } else { "  " });
        }
        if !is_chained {
            lead.push_str(if is_last { "└ " } else { "├ " });
            self.open.truncate(whole);
            self.open.resize(whole, false);
            self.open.push(!is_last);
        }
        self.lines.push((line, lead));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_stay_at_their_level_and_branches_are_drawn() {
        // 0 → 1 → { 2 → 3, 4 → { 5, 6, more }, more }
        let nodes = [
            (None, false),
            (Some(0), true),
            (Some(1), false),
            (Some(2), false),
            (Some(1), true),
            (Some(4), false),
            (Some(4), false),
        ];
        let drawn: Vec<String> = lines(&nodes, true)
            .into_iter()
            .map(|(line, lead)| match line {
                Line::Node(at) => format!("{lead}{at}"),
                Line::Rest(_) => format!("{lead}more"),
            })
            .collect();
        assert_eq!(
            drawn,
            [
                "├ 0",
                "│ 1",
                "│ ├ 2",
                "│ │ 3",
                "│ ├ 4",
                "│ │ ├ 5",
                "│ │ ├ 6",
                "│ │ └ more",
                "│ └ more",
                "└ more"
            ]
        );
    }

    #[test]
    fn a_root_with_one_line_below_it_takes_no_room() {
        let nodes = [(None, false), (Some(0), true), (Some(1), false)];
        let leads: Vec<String> = lines(&nodes, false)
            .into_iter()
            .map(|(_, lead)| lead)
            .collect();
        assert_eq!(leads, ["", "", "├ ", "└ "]);
    }

    #[test]
    fn an_empty_tree_has_no_lines() {
        assert!(lines(&[], false).is_empty());
    }
}
