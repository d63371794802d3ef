//! Which entries of a method answer, and with which lines: the rules of R8's retrace, on the
//! entries of one name in the app, in order of the file.
//!
//! * A *group* is a run of entries with one range of lines: the innermost inlined call first,
//!   the method that really is there last (the *outermost*). An entry without a range is alone.
//! * A *partition* is a run of groups with one outermost method: an overload.
//!
//! Where a line is known, the first group of each partition that holds it answers; where none
//! does, all entries without a range. Where it is not known, the first group of each partition
//! that holds line 0, else its first entry without a range; where there is none of either, the
//! outermost method of each partition, without lines. A profile knows no lines, and asks for
//! the outermost methods alone.

use super::class::{LineRange, Method, OriginalLines, Signature};

/// Inlined calls at one position, at most: outer ones beyond are left out.
const DEEPEST: usize = 256;
/// Answers for one position, at most.
pub(super) const MOST: usize = 256;

/// A run of entries, innermost first.
pub(super) type Group<'m, 'a> = &'m [Method<'a>];

/// The method that really is there.
pub(super) fn outermost<'m, 'a>(group: Group<'m, 'a>) -> &'m Method<'a> {
    group.last().expect("a group has an entry")
}

/// The entries of one name, cut into groups.
pub(super) fn groups<'m, 'a>(entries: &'m [Method<'a>]) -> Vec<Group<'m, 'a>> {
    let together = |a: &Method, b: &Method| a.lines.is_some() && a.lines == b.lines;
    entries.chunk_by(together).collect()
}

/// How far overloads are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overloads {
    /// By class, name and types: R8's way.
    ByTypes,
    /// By class and name alone: what packets can tell, and profiles show.
    ByName,
}

impl Overloads {
    fn same(self, a: &Method, b: &Method) -> bool {
        a.name == b.name
            && a.holder == b.holder
            && (self == Overloads::ByName || a.signature == b.signature)
    }
}

/// Groups, cut into partitions.
pub(super) fn partitions<'g, 'm, 'a>(
    groups: &'g [Group<'m, 'a>],
    overloads: Overloads,
) -> impl Iterator<Item = &'g [Group<'m, 'a>]> {
    groups.chunk_by(move |a, b| overloads.same(outermost(a), outermost(b)))
}

/// What answers for a position.
#[derive(Debug)]
pub(super) enum Answer<'m, 'a> {
    /// One group for each alternative.
    Groups(Vec<Group<'m, 'a>>),
    /// Methods alone: lines are not to be had.
    Outermost(Vec<&'m Method<'a>>),
    /// No entry is for this line.
    Nothing,
}

/// What answers for a line; 0 is no line.
pub(super) fn answer<'m, 'a>(
    groups: &[Group<'m, 'a>],
    overloads: Overloads,
    line: u32,
) -> Answer<'m, 'a> {
    let rangeless = |group: &Group| group[0].lines.is_none();
    let holds = |group: &Group| group[0].lines.is_some_and(|lines| lines.holds(line));
    let mut found: Vec<Group> = partitions(groups, overloads)
        .filter_map(|partition| {
            let held = partition.iter().find(|group| holds(group));
            let free = || partition.iter().find(|group| rangeless(group));
            held.or_else(|| (line == 0).then(free).flatten())
        })
        .copied()
        .collect();
    if found.is_empty() && line != 0 {
        found.extend(groups.iter().filter(|group| rangeless(group)));
    }
    if !found.is_empty() {
        return Answer::Groups(found);
    }
    if line != 0 {
        return Answer::Nothing;
    }
    Answer::Outermost(
        partitions(groups, overloads)
            .map(|partition| outermost(partition[0]))
            .collect(),
    )
}

/// A method in the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceMethod<'a> {
    /// The class it was written in.
    pub class: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its types; where the map does not say, `None`.
    pub signature: Option<Signature<'a>>,
    /// Made by the compiler. A profile shows it all the same: its bytes are real.
    pub synthesized: bool,
}

impl<'a> SourceMethod<'a> {
    pub(super) fn of(method: &Method<'a>) -> Self {
        SourceMethod {
            class: method.holder,
            name: method.name,
            signature: method.signature,
            synthesized: method.notes.as_deref().is_some_and(|n| n.synthesized),
        }
    }
}

/// The distinct outermost methods of all groups: what a profile shows.
pub(super) fn methods<'a>(groups: &[Group<'_, 'a>]) -> Vec<SourceMethod<'a>> {
    let mut found: Vec<SourceMethod> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for partition in partitions(groups, Overloads::ByTypes) {
        let mut method = SourceMethod::of(outermost(partition[0]));
        method.synthesized = partition
            .iter()
            .any(|group| SourceMethod::of(outermost(group)).synthesized);
        let types = method.signature.map(|s| (s.returns, s.parameters));
        if seen.insert((method.class, method.name, types)) {
            found.push(method);
        }
    }
    found
}

/// A frame in the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceFrame<'a> {
    /// Its method.
    pub method: SourceMethod<'a>,
    /// Its line, where it is known.
    pub line: Option<u32>,
}

/// One way in which a frame may have come about: inlined calls innermost first, the method that
/// was really called last.
pub type Chain<'a> = Vec<SourceFrame<'a>>;

/// The chains of a group for a line in it; 0 where no line is known. Several where the
/// innermost call's line may be one of several.
pub(super) fn chains<'a>(group: Group<'_, 'a>, line: u32) -> Vec<Chain<'a>> {
    let mut chain: Chain = Vec::new();
    let mut innermost = None;
    for (depth, entry) in group.iter().take(DEEPEST).enumerate() {
        let line = match source_line(entry, line) {
            SourceLine::One(line) => line,
            SourceLine::Several(range) if depth == 0 => {
                innermost = Some(range);
                Some(range.first)
            }
            SourceLine::Several(range) => Some(nearest(entry, range, line)),
        };
        let method = SourceMethod::of(entry);
        chain.push(SourceFrame { method, line });
    }
    let Some(range) = innermost else {
        return vec![chain];
    };
    (range.first..=range.last)
        .take(MOST)
        .map(|line| {
            let mut chain = chain.clone();
            chain[0].line = Some(line);
            chain
        })
        .collect()
}

enum SourceLine {
    One(Option<u32>),
    Several(LineRange),
}

fn source_line(entry: &Method, line: u32) -> SourceLine {
    let known = |line: u32| (line != 0).then_some(line);
    match (entry.original, entry.lines) {
        (OriginalLines::Same, _) => SourceLine::One(known(line)),
        (OriginalLines::Line(original), _) => SourceLine::One(known(original)),
        (OriginalLines::Range(_), None) if line == 0 => SourceLine::One(None),
        (OriginalLines::Range(original), Some(lines)) if lines.span() == original.span() => {
            let offset = line.saturating_sub(lines.first);
            SourceLine::One(known(original.first.saturating_add(offset)))
        }
        (OriginalLines::Range(original), _) => SourceLine::Several(original),
    }
}

/// The line of a call around an inlined one, where the entry does not say which: as far into
/// its range as the frame's is into its own.
fn nearest(entry: &Method, original: LineRange, line: u32) -> u32 {
    let first = entry.lines.map_or(line, |lines| lines.first);
    let offset = line.saturating_sub(first);
    original.first.saturating_add(offset).min(original.last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &'static str, lines: Option<(u32, u32)>) -> Method<'static> {
        Method {
            obfuscated: "f",
            holder: "x.A",
            name,
            signature: None,
            lines: lines.map(|(first, last)| LineRange { first, last }),
            original: OriginalLines::Same,
            notes: None,
        }
    }

    #[test]
    fn entries_of_one_range_are_a_group_and_those_without_stand_alone() {
        let entries = [
            entry("i", Some((1, 1))),
            entry("m", Some((1, 1))),
            entry("m", Some((2, 2))),
            entry("q", None),
            entry("q", None),
        ];
        let groups = groups(&entries);
        let sizes: Vec<usize> = groups.iter().map(|group| group.len()).collect();
        assert_eq!(sizes, [2, 1, 1, 1]);
        let partitions: Vec<usize> = partitions(&groups, Overloads::ByTypes)
            .map(<[_]>::len)
            .collect();
        assert_eq!(partitions, [2, 2]);
    }

    #[test]
    fn an_overload_between_two_others_is_not_lost() {
        let entries = [
            entry("p", Some((1, 1))),
            entry("q", Some((2, 2))),
            entry("p", Some((3, 3))),
        ];
        let names: Vec<&str> = methods(&groups(&entries)).iter().map(|m| m.name).collect();
        assert_eq!(names, ["p", "q"]);
    }

    #[test]
    fn a_range_of_all_lines_gives_no_more_answers_than_anyone_reads() {
        let mut wide = entry("f", Some((1, 9)));
        wide.original = OriginalLines::Range(LineRange {
            first: 0,
            last: u32::MAX,
        });
        assert_eq!(chains(&[wide], 3).len(), MOST);
        let deep = vec![entry("f", Some((1, 1))); 10_000];
        assert_eq!(chains(&deep, 1)[0].len(), DEEPEST);
    }
}
