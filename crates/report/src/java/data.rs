//! Section of a Java heap in the page's data: tables by class, the largest objects of the dominator
//! tree, suspects with their paths. `viewer/README.md` describes it.

use super::super::data::header::Fact;
use super::change::{Change, Sizes};
use super::leaks::{named, referred};
use super::{JavaPage, facts, nearest, process};
use heaptap_analyze::histogram::{Histogram, Row};
use heaptap_analyze::holders::Holders;
use heaptap_analyze::label;
use heaptap_analyze::leaks::Certainty;
use heaptap_analyze::tree::Tree;
use heaptap_model::heap_graph::{ClassIndex, Dominators, HeapGraph, ObjectIndex};
use heaptap_model::profile::index::FastHash;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::HashMap;

/// Maximum number of objects with their own row in the dominator tree.
const OBJECTS: usize = 20_000;
/// Maximum number of classes below one object that have a row for its remaining objects.
const CLASSES: usize = 6;
/// Maximum number of nodes in the tree by class.
const NODES: usize = 30_000;

#[derive(Serialize)]
struct Section {
    name: String,
    facts: Vec<Fact>,
    warnings: Vec<Warning>,
    strings: Vec<String>,
    histogram: Table,
    packages: Table,
    dominators: Objects,
    tree: Classes,
    suspects: Vec<Suspect>,
    largest: Vec<Largest>,
    unheld: Vec<Unheld>,
    notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<Changes>,
}

#[derive(Serialize)]
struct Warning {
    kind: Option<String>,
    message: String,
    help: Option<String>,
}

#[derive(Serialize, Default)]
struct Table {
    name: Vec<u32>,
    count: Vec<u64>,
    shallow: Vec<u64>,
    native: Vec<u64>,
    retained: Vec<u64>,
}

#[derive(Serialize, Default)]
struct Objects {
    pop: Vec<u32>,
    label: Vec<u32>,
    id: Vec<Option<String>>,
    count: Vec<u64>,
    shallow: Vec<u64>,
    retained: Vec<u64>,
    below: Vec<u64>,
    left_out: u64,
}

#[derive(Serialize, Default)]
struct Classes {
    pop: Vec<u32>,
    label: Vec<u32>,
    count: Vec<u64>,
    bytes: Vec<u64>,
}

#[derive(Serialize)]
struct Suspect {
    class: u32,
    what: &'static str,
    certainty: &'static str,
    of_platform: bool,
    count: usize,
    retained: u64,
    advice: u32,
    root: u32,
    path: Vec<SuspectStep>,
}

#[derive(Serialize)]
struct SuspectStep {
    class: u32,
    status: &'static str,
    reason: u32,
    reference: u32,
    suspect: bool,
    #[serde(skip_serializing_if = "heaptap_model::units::is_zero")]
    left_out: u64,
}

#[derive(Serialize)]
struct Largest {
    label: u32,
    id: String,
    retained: u64,
    root: u32,
    path: Vec<Step>,
}

#[derive(Serialize)]
struct Step {
    class: u32,
    reference: u32,
    #[serde(skip_serializing_if = "heaptap_model::units::is_zero")]
    left_out: u64,
}

#[derive(Serialize)]
struct Unheld {
    class: u32,
    count: u64,
    what: &'static str,
}

#[derive(Serialize)]
struct Changes {
    since: String,
    headline: String,
    of_two_kinds: bool,
    name: Vec<u32>,
    status: Vec<&'static str>,
    before: Columns,
    after: Columns,
    held: Vec<Held>,
}

#[derive(Serialize, Default)]
struct Columns {
    count: Vec<u64>,
    shallow: Vec<u64>,
    native: Vec<u64>,
    retained: Vec<u64>,
}

impl Columns {
    fn push(&mut self, sizes: Sizes) {
        self.count.push(sizes.count);
        self.shallow.push(sizes.shallow);
        self.native.push(sizes.native);
        self.retained.push(sizes.retained);
    }
}

#[derive(Serialize, Default)]
struct Held {
    class: u32,
    pop: Vec<u32>,
    label: Vec<u32>,
    count: Vec<u64>,
    root: Vec<u32>,
}

/// Unique numbered texts.
struct Strings {
    all: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Strings {
    fn number(&mut self, text: &str) -> u32 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let number = self.all.len() as u32;
        self.all.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

/// Returns the section as JSON.
pub(super) fn section(page: &JavaPage<'_>) -> Vec<u8> {
    let mut strings = Strings {
        all: Vec::new(),
        numbers: HashMap::new(),
    };
    strings.number("");
    let warnings = page.warnings.iter().map(|(message, help)| Warning {
        kind: None,
        message: message.clone(),
        help: help.clone(),
    });
    let unheld = page.leaks.unheld.iter().map(|unheld| Unheld {
        class: strings.number(&unheld.class),
        count: unheld.count,
        what: unheld.kind.leaked(),
    });
    let unheld = unheld.collect();
    let section = Section {
        name: process(page).to_owned(),
        facts: facts(page),
        warnings: warnings.collect(),
        histogram: table(&page.classes, &mut strings),
        packages: table(&page.packages, &mut strings),
        dominators: objects(page.graph, page.dominators, &mut strings),
        tree: classes(&page.tree, &mut strings),
        suspects: suspects(page, &mut strings),
        largest: largest(page, &mut strings),
        change: page
            .change
            .as_ref()
            .map(|of| changes(of, &page.held, &mut strings)),
        unheld,
        notes: page.leaks.untold.clone(),
        strings: strings.all,
    };
    serde_json::to_vec(&section).expect("its keys are strings")
}

fn table(histogram: &Histogram, strings: &mut Strings) -> Table {
    let mut rows: Vec<&Row> = histogram.rows.iter().collect();
    rows.sort_by_key(|row| (Reverse(row.sums.shallow_bytes), &row.name));
    let mut table = Table::default();
    for row in rows {
        table.name.push(strings.number(&row.name));
        table.count.push(row.sums.count);
        table.shallow.push(row.sums.shallow_bytes);
        table.native.push(row.sums.native_bytes);
        table.retained.push(row.sums.retained.total_bytes());
    }
    table
}

/// Row of the dominator tree under construction.
struct Object {
    label: u32,
    id: Option<String>,
    count: u64,
    shallow: u64,
    retained: u64,
    below: u64,
    children: Vec<usize>,
}

/// Objects of one class without a row of their own, directly below one row.
#[derive(Default, Clone, Copy)]
struct Small {
    count: u64,
    shallow: u64,
    retained: u64,
    below: u64,
}

impl Small {
    fn add(&mut self, other: Small) {
        self.count += other.count;
        self.shallow = self.shallow.saturating_add(other.shallow);
        self.retained = self.retained.saturating_add(other.retained);
        self.below += other.below;
    }

    fn row(self, label: u32) -> Object {
        Object {
            label,
            id: None,
            count: self.count,
            shallow: self.shallow,
            retained: self.retained,
            below: self.below,
            children: Vec::new(),
        }
    }
}

fn objects(graph: &HeapGraph, dominators: &Dominators, strings: &mut Strings) -> Objects {
    let least = least_shown(dominators);
    let mut rows: Vec<Object> = Vec::new();
    let mut tops: Vec<usize> = Vec::new();
    // Objects without a row, by the number of the row above them (from 1; 0 is the virtual root)
    // and, in the low 32 bits, their class.
    let mut small: HashMap<u64, Small, FastHash> = HashMap::default();
    // Rows that dominate the current object, and the ends of their subtrees.
    let mut line: Vec<(usize, usize)> = Vec::new();
    let mut skipped = 0;
    for (at, (object, retained)) in dominators.iter().enumerate() {
        if at < skipped {
            continue;
        }
        while line.last().is_some_and(|&(_, end)| end <= at) {
            line.pop();
        }
        let above = line.last().map(|&(row, _)| row);
        let shallow = own_bytes(graph, object);
        let end = at + retained.count as usize;
        let below = retained.count.saturating_sub(1);
        if retained.total_bytes() < least || rows.len() >= OBJECTS {
            skipped = end;
            let row = above.map_or(0, |above| above as u64 + 1);
            let key = row << 32 | u64::from(graph.class_of(object).0);
            small.entry(key).or_default().add(Small {
                count: 1,
                shallow,
                retained: retained.total_bytes(),
                below,
            });
            continue;
        }
        let row = rows.len();
        rows.push(Object {
            label: strings.number(&label::object_name(graph, object)),
            id: Some(graph.id(object).to_string()),
            count: 1,
            shallow,
            retained: retained.total_bytes(),
            below,
            children: Vec::new(),
        });
        match above {
            Some(above) => rows[above].children.push(row),
            None => tops.push(row),
        }
        line.push((row, end));
    }
    let shown = rows.len() as u64;
    let mut small: Vec<(u64, Small)> = small.into_iter().collect();
    small.sort_unstable_by_key(|(key, small)| (key >> 32, Reverse(small.retained), *key));
    for classes in small.chunk_by(|a, b| a.0 >> 32 == b.0 >> 32) {
        let above = ((classes[0].0 >> 32) as usize).checked_sub(1);
        let mut rest = Small::default();
        for (at, (key, small)) in classes.iter().enumerate() {
            if at >= CLASSES && classes.len() > CLASSES + 1 {
                rest.add(*small);
                continue;
            }
            let label = strings.number(label::class_name(graph, ClassIndex(*key as u32)));
            add(&mut rows, &mut tops, above, small.row(label));
        }
        if rest.count > 0 {
            let label = strings.number("(other classes)");
            add(&mut rows, &mut tops, above, rest.row(label));
        }
    }
    let total = dominators.total().count;
    in_preorder(rows, tops, total.saturating_sub(shown))
}

fn add(rows: &mut Vec<Object>, tops: &mut Vec<usize>, above: Option<usize>, row: Object) {
    let at = rows.len();
    rows.push(row);
    match above {
        Some(above) => rows[above].children.push(at),
        None => tops.push(at),
    }
}

/// Returns the minimum retained size for an object to have a row.
fn least_shown(dominators: &Dominators) -> u64 {
    if dominators.order().len() <= OBJECTS {
        return 0;
    }
    // The largest sizes so far: all objects' would need much memory.
    let mut sizes: Vec<u64> = Vec::with_capacity(2 * OBJECTS);
    let mut least = 0;
    for (_, retained) in dominators.iter() {
        let size = retained.total_bytes();
        if size < least {
            continue;
        }
        if sizes.len() == 2 * OBJECTS {
            least = nth_largest(&mut sizes);
            sizes.truncate(OBJECTS);
        }
        sizes.push(size);
    }
    nth_largest(&mut sizes)
}

/// Returns the size with number [`OBJECTS`] and moves the larger ones before it.
fn nth_largest(sizes: &mut [u64]) -> u64 {
    *sizes
        .select_nth_unstable_by_key(OBJECTS - 1, |size| Reverse(*size))
        .1
}

fn own_bytes(graph: &HeapGraph, object: ObjectIndex) -> u64 {
    let shallow = graph.shallow_bytes(object);
    shallow.saturating_add(graph.native_bytes(object))
}

/// Sorts rows into depth-first order, largest first on each level.
fn in_preorder(mut rows: Vec<Object>, tops: Vec<usize>, left_out: u64) -> Objects {
    let mut objects = Objects {
        left_out,
        ..Objects::default()
    };
    let by_size = |rows: &[Object], mut children: Vec<usize>| {
        // The last one is popped first.
        children.sort_by_key(|&at| (rows[at].retained, Reverse(at)));
        children
    };
    let mut before = 0;
    let mut open: Vec<(usize, u32)> = by_size(&rows, tops).into_iter().map(|at| (at, 1)).collect();
    while let Some((at, depth)) = open.pop() {
        objects.pop.push(before + 1 - depth);
        before = depth;
        let children = std::mem::take(&mut rows[at].children);
        let row = &mut rows[at];
        objects.label.push(row.label);
        objects.id.push(row.id.take());
        objects.count.push(row.count);
        objects.shallow.push(row.shallow);
        objects.retained.push(row.retained);
        objects.below.push(row.below);
        let children = by_size(&rows, children);
        open.extend(children.into_iter().map(|child| (child, depth + 1)));
    }
    objects
}

fn classes(tree: &Tree, strings: &mut Strings) -> Classes {
    let size = |at: usize| tree.nodes[at].sums.retained.total_bytes();
    let mut order: Vec<usize> = (0..tree.nodes.len()).collect();
    order.sort_by_key(|&at| (Reverse(size(at)), at));
    order.truncate(NODES);
    let mut is_shown = vec![false; tree.nodes.len()];
    for at in order {
        is_shown[at] = true;
    }
    let mut classes = Classes::default();
    let mut before = 0;
    let mut open: Vec<(usize, u32)> = tree.tops.iter().rev().map(|&at| (at, 1)).collect();
    while let Some((at, depth)) = open.pop() {
        if !is_shown[at] {
            continue;
        }
        let node = &tree.nodes[at];
        classes.pop.push(before + 1 - depth);
        before = depth;
        classes.label.push(strings.number(&node.name));
        classes.count.push(node.sums.retained.count);
        classes.bytes.push(size(at));
        open.extend(node.below.iter().rev().map(|&below| (below, depth + 1)));
    }
    classes
}

fn suspects(page: &JavaPage<'_>, strings: &mut Strings) -> Vec<Suspect> {
    let groups = page.leaks.groups.iter();
    let suspect = groups.map(|group| Suspect {
        class: strings.number(&group.class),
        what: group.what(),
        certainty: page_certainty(group.certainty),
        of_platform: group.library.is_some(),
        count: group.leaks.len(),
        retained: group.kept.total(),
        advice: strings.number(&group.advice),
        root: strings.number(&group.root),
        path: group
            .path
            .iter()
            .map(|step| SuspectStep {
                class: strings.number(&named(step)),
                status: step.status.name(),
                reason: strings.number(&step.reason),
                reference: referred(step).map_or(0, |text| strings.number(&text)),
                left_out: step.left_out,
                suspect: step.suspect,
            })
            .collect(),
    });
    suspect.collect()
}

/// Returns the word of the page's format for a certainty.
fn page_certainty(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Certain => "certain",
        other => other.name(),
    }
}

fn largest(page: &JavaPage<'_>, strings: &mut Strings) -> Vec<Largest> {
    let all = page.largest.iter();
    let largest = all.map(|(large, path)| Largest {
        label: strings.number(&label::object_name(page.graph, large.object)),
        id: page.graph.id(large.object).to_string(),
        retained: large.retained.total_bytes(),
        root: match &path.root {
            Some(root) => strings.number(&root.to_string()),
            None => 0,
        },
        path: path
            .steps
            .iter()
            .map(|step| Step {
                class: strings.number(&label::object_name(page.graph, step.object)),
                reference: step.reference().map_or(0, |text| strings.number(&text)),
                left_out: step.left_out,
            })
            .collect(),
    });
    largest.collect()
}

/// Returns the changes with the holders of classes that grew.
fn changes(change: &Change, held: &[(String, Holders)], strings: &mut Strings) -> Changes {
    let grown = |class: &str| change.classes.iter().any(|row| row.name == class);
    let mut all = Changes {
        since: change.before.clone(),
        headline: change.headline(),
        of_two_kinds: change.of_two_kinds,
        name: Vec::new(),
        status: Vec::new(),
        before: Columns::default(),
        after: Columns::default(),
        held: Vec::new(),
    };
    for row in &change.classes {
        all.name.push(strings.number(&row.name));
        all.status.push(row.status);
        all.before.push(row.before);
        all.after.push(row.after);
    }
    let of_grown = held.iter().filter(|(class, _)| grown(class));
    all.held = of_grown
        .map(|(class, holders)| self::held(class, holders, strings))
        .collect();
    all
}

fn held(class: &str, holders: &Holders, strings: &mut Strings) -> Held {
    let mut held = Held {
        class: strings.number(class),
        ..Held::default()
    };
    let mut before = 0;
    let is_shown = nearest(holders);
    let first = holders.nodes.first().map(|first| &first.holders[..]);
    let first = first.unwrap_or_default().iter().rev();
    let mut open: Vec<(usize, u32)> = first.map(|&at| (at, 1)).collect();
    while let Some((at, depth)) = open.pop() {
        if !is_shown[at] {
            continue;
        }
        let node = &holders.nodes[at];
        held.pop.push(before + 1 - depth);
        before = depth;
        held.label.push(match &node.link {
            Some(link) => strings.number(&link.to_string()),
            None => strings.number(&node.name),
        });
        held.count.push(node.count);
        held.root.push(match node.roots.first() {
            Some((reason, _)) => strings.number(&reason.to_string()),
            None => 0,
        });
        open.extend(node.holders.iter().rev().map(|&next| (next, depth + 1)));
    }
    held
}
