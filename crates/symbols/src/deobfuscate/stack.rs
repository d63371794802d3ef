//! Stack traces: what one frame says of the next. Code that R8 took out of several methods (an
//! *outline*) has a frame of its own, whose line tells which line of its caller it stands for;
//! and where an exception is thrown by code that R8 put in, the frames of that code are left
//! out. Samples of a profile have no such lines: nothing here is for them.

use super::metadata::Rewrite;
use super::retrace::{
    Answer, Chain, Group, Overloads, answer, chains, groups, outermost, partitions,
};
use super::retracer::{Retraced, Retracer, alone, sorted, without_synthesized};

/// A frame of the app.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppFrame<'t> {
    /// Its class.
    pub class: &'t str,
    /// Its method.
    pub method: &'t str,
    /// Its line, where it has one.
    pub line: Option<u32>,
}

impl<'f> Retracer<'f> {
    /// What the frames of a stack trace stand for, top first. `exception` is the class of what
    /// was thrown, as the app has it, where the first frame stands right under it.
    pub fn stack(&self, exception: Option<&str>, frames: &[AppFrame]) -> Vec<Retraced<'f>> {
        let mut carried = None;
        let mut thrown = exception.map(|class| format!("L{};", class.replace('.', "/")));
        frames
            .iter()
            .map(|frame| {
                let step = self.step(frame, carried.take(), thrown.take().as_deref());
                carried = step.carried;
                step.retraced
            })
            .collect()
    }

    fn step(&self, frame: &AppFrame, carried: Option<u32>, thrown: Option<&str>) -> Step<'f> {
        let Some(class) = self.read(frame.class) else {
            return Step::to(Retraced::Unknown);
        };
        let groups = groups(class.methods(frame.method));
        let line = frame.line.unwrap_or(0);
        match answer(&groups, Overloads::ByTypes, line) {
            Answer::Groups(mut found) => {
                let mut line = line;
                if let Some(from) = carried
                    && let [group] = found[..]
                    && let Some(positions) = callsite(group)
                {
                    let known = positions.iter().find(|(at, _)| *at == from);
                    line = known.map_or(from, |(_, to)| *to);
                    if let Some(there) = in_partition(&groups, group, line) {
                        found = vec![there];
                    }
                }
                // An outline's own line is for the next frame, and the frame is no one's.
                let outline = found.iter().all(|group| is_outline(group));
                let chains = found.iter().flat_map(|group| {
                    let left = |chain| shown(group, chain, thrown);
                    chains(group, line).into_iter().map(left)
                });
                Step {
                    retraced: sorted(chains),
                    carried: (outline && line != 0).then_some(line),
                }
            }
            Answer::Outermost(methods) if !methods.is_empty() => {
                Step::to(sorted(methods.into_iter().map(|method| {
                    let outline = method.notes.as_deref().is_some_and(|n| n.outline);
                    if outline { Vec::new() } else { alone(method) }
                })))
            }
            Answer::Outermost(_) | Answer::Nothing => Step::to(Retraced::Class(class.original)),
        }
    }
}

struct Step<'f> {
    retraced: Retraced<'f>,
    /// The line of an outline, for its caller.
    carried: Option<u32>,
}

impl<'f> Step<'f> {
    fn to(retraced: Retraced<'f>) -> Self {
        Step {
            retraced,
            carried: None,
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

/// The first group for a line among the overloads that a group is one of.
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

/// What of a chain is shown: rules on the group leave out inner frames for what was thrown, and
/// an outermost one that only the compiler made is left out too.
fn shown<'a>(group: Group<'_, 'a>, mut chain: Chain<'a>, thrown: Option<&str>) -> Chain<'a> {
    let holds = |rule: &&Rewrite| {
        !rule.unknown_condition && rule.throws.iter().all(|class| Some(&**class) == thrown)
    };
    let rules = group.iter().filter_map(|entry| entry.notes.as_deref());
    let removed: u64 = rules
        .flat_map(|notes| &notes.rewrites)
        .filter(holds)
        .map(|rule| u64::from(rule.remove))
        .sum();
    if is_outline(group) {
        chain.pop();
    }
    // A rule for more frames than there are is wrong, and nothing is left out for it.
    if thrown.is_some() && removed <= chain.len() as u64 {
        chain.drain(..removed as usize);
    }
    without_synthesized(chain)
}
