//! Frames of stack traces, where a frame affects the next. Code that R8 extracted from several
//! methods (an *outline*) has a frame of its own, whose line selects a line of its caller. Samples
//! of a profile do not have such lines and do not use this.

use super::retrace::{
    Answer, Chain, Group, Overloads, answer, chains, groups, outermost, partitions,
};
use super::retracer::{Retraced, Retracer, alone, sorted, without_synthesized};

/// Source frames of a frame of a stack trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceFrame<'f> {
    pub retraced: Retraced<'f>,
    /// Line of an outline, for its caller.
    pub outline_line: Option<u32>,
}

impl<'f> From<Retraced<'f>> for TraceFrame<'f> {
    fn from(retraced: Retraced<'f>) -> Self {
        TraceFrame {
            retraced,
            outline_line: None,
        }
    }
}

impl<'f> Retracer<'f> {
    /// Returns the source frames of one frame. Without a line, or with line 0, it is a frame of a
    /// stack trace without lines. `outline_line` is from the frame that it called.
    pub fn frame(
        &self,
        class: &str,
        method: &str,
        line: Option<u32>,
        outline_line: Option<u32>,
    ) -> TraceFrame<'f> {
        let Some(class) = self.read(class) else {
            return Retraced::Unknown.into();
        };
        let groups = groups(class.methods(method));
        let line = line.unwrap_or(0);
        match answer(&groups, Overloads::ByTypes, line) {
            Answer::Groups(mut found) => {
                let mut line = line;
                if let Some(from) = outline_line
                    && let [group] = found[..]
                    && let Some(positions) = callsite(group)
                {
                    let known = positions.iter().find(|(at, _)| *at == from);
                    line = known.map_or(from, |(_, to)| *to);
                    if let Some(there) = in_partition(&groups, group, line) {
                        found = vec![there];
                    }
                }
                // The line of an outline is for the next frame, and the outline itself is not
                // shown.
                let outline = found.iter().all(|group| is_outline(group));
                let chains = found.iter().flat_map(|group| {
                    let left = |chain| shown(group, chain);
                    chains(group, line).into_iter().map(left)
                });
                TraceFrame {
                    retraced: sorted(chains),
                    outline_line: (outline && line != 0).then_some(line),
                }
            }
            Answer::Outermost(methods) if !methods.is_empty() => {
                let chains = methods.into_iter().map(|method| {
                    let outline = method.notes.as_deref().is_some_and(|n| n.outline);
                    if outline { Vec::new() } else { alone(method) }
                });
                sorted(chains).into()
            }
            Answer::Outermost(_) | Answer::Nothing => Retraced::Class(class.original).into(),
        }
    }
}

fn is_outline(group: Group) -> bool {
    let notes = outermost(group).notes.as_deref();
    notes.is_some_and(|notes| notes.outline)
}

fn callsite<'m>(group: Group<'m, '_>) -> Option<&'m [(u32, u32)]> {
    outermost(group).notes.as_deref()?.callsite.as_deref()
}

/// Returns the first group for a line among the overloads in the same partition.
fn in_partition<'m, 'a>(
    groups: &[Group<'m, 'a>],
    of: Group<'m, 'a>,
    line: u32,
) -> Option<Group<'m, 'a>> {
    let mut partitions = partitions(groups, Overloads::ByTypes);
    let partition = partitions.find(|p| p.iter().any(|group| std::ptr::eq(*group, of)))?;
    let holds = |group: &&Group| group[0].lines.is_some_and(|lines| lines.holds(line));
    partition.iter().find(holds).copied()
}

/// Returns the visible part of a chain: without an outline, and without an outermost frame that the
/// compiler generated.
fn shown<'a>(group: Group, mut chain: Chain<'a>) -> Chain<'a> {
    if is_outline(group) {
        chain.pop();
    }
    without_synthesized(chain)
}
