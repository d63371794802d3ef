//! The branches before the names of a tree's nodes. A node that is all that stands below another
//! is drawn right under it: stacks are deep, and terminals are not wide.

/// A line of a drawn tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line {
    /// A node, by its position.
    Node(usize),
    /// What was left out below a node; `None` below the root.
    Rest(Option<usize>),
}

/// The lines of a tree with the branches before each. Nodes stand in order, each by the position
/// of the one above it and whether something was left out below it.
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
    /// By node: one line stands below it.
    is_alone: Vec<bool>,
    /// By node: lines below it that are not drawn yet.
    left: Vec<usize>,
    root_left: usize,
    root_is_alone: bool,
    indents: Vec<usize>,
    /// By level: more of it comes further down.
    open: Vec<bool>,
    lines: Vec<(Line, String)>,
}

/// Deeper branches are drawn at this level.
const DEEPEST: usize = 40;

impl Drawn {
    fn line(&mut self, line: Line, above: Option<usize>) {
        let (indent, is_chained) = match above {
            None if self.root_is_alone => (0, true),
            None => (1, false),
            Some(above) if self.is_alone[above] => (self.indents[above], true),
            Some(above) => ((self.indents[above] + 1).min(DEEPEST), false),
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
