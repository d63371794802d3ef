//! Pages of a Java heap: contents, dominators, and paths from roots. Contains the static pages, for
//! readers without scripts and for print, and the same data for the viewer.

pub mod change;
mod data;
mod leaks;
mod waste;

use super::data::header::{Fact, JavaHeap};
use super::html::{Foreign, Html};
use super::icicle::{self, Node};
use change::Change;
use heaptap_analyze::histogram::{Histogram, Row};
use heaptap_analyze::holders::Holders;
use heaptap_analyze::largest::Large;
use heaptap_analyze::leaks::Leaks;
use heaptap_analyze::paths::Path;
use heaptap_analyze::tree::Tree;
use heaptap_analyze::waste::Waste;
use heaptap_analyze::{label, paths};
use heaptap_model::heap_graph::{Dominators, DumpSource, HeapGraph, SizeModel};
use heaptap_model::units::{ByteSize, counted, thousands};
use std::cmp::Reverse;
use std::collections::VecDeque;

/// Maximum rows of a histogram.
const ROWS: usize = 200;
/// Maximum rows of the list of packages.
const PACKAGES: usize = 60;
/// Maximum nodes of the dominator tree; the viewer has more.
const NODES: usize = 2000;
/// Maximum holders of a class.
const HOLDERS: usize = 300;

/// Computed contents of the page.
pub struct JavaPage<'a> {
    /// Name of the heap: the input and its label.
    pub name: String,
    /// Number among the Java heaps of its process, from 1.
    pub number: u32,
    /// Label of its snapshot.
    pub label: Option<String>,
    /// Milliseconds since 1970; `None` if unknown.
    pub wall_ms: Option<f64>,
    /// Heap graph, for names.
    pub graph: &'a HeapGraph,
    pub dominators: &'a Dominators,
    /// Warnings about the dump, with help.
    pub warnings: Vec<(String, Option<String>)>,
    /// Reachable objects by class.
    pub classes: Histogram,
    /// Reachable objects by package.
    pub packages: Histogram,
    /// Number of unreachable objects and their shallow bytes.
    pub garbage: (u64, u64),
    /// Leaking objects with their holders.
    pub leaks: Leaks,
    pub waste: Waste,
    /// Objects with the largest retained size, with the path to each.
    pub largest: Vec<(Large, Path)>,
    /// Dominator tree merged by class.
    pub tree: Tree,
    /// Holders of the largest classes.
    pub held: Vec<(String, Holders)>,
    /// Changes since the dump that it is compared with.
    pub change: Option<Change>,
    /// Whether the page can contain contents of the heap.
    pub contents: bool,
}

/// Java heap as part of a page.
#[derive(Debug)]
pub struct JavaPart {
    /// Static pages.
    pub(super) body: String,
    /// Section of the data.
    pub(super) data: Vec<u8>,
    /// Entry in the header; the name of the section is set later.
    pub(super) entry: JavaHeap,
}

impl JavaPart {
    /// Returns the name of the heap's process or file.
    pub fn name(&self) -> &str {
        &self.entry.name
    }

    /// Returns the shallow and native bytes of reachable objects.
    pub fn totals(&self) -> (u64, u64) {
        (self.entry.shallow, self.entry.native)
    }
}

/// Creates the pages of a heap. `number` is unique within a page.
pub fn part(page: &JavaPage<'_>, number: usize) -> JavaPart {
    let mut html = Html::default();
    head(&mut html, page, number);
    if let Some(change) = &page.change {
        let held: Vec<&str> = page.held.iter().map(|(class, _)| class.as_str()).collect();
        change::write(&mut html, change, &held, number);
    }
    leaks::write(&mut html, &page.leaks, number);
    tree(&mut html, page, number);
    largest(&mut html, page, number);
    waste::write(&mut html, &page.waste, page.contents, number);
    classes(&mut html, page, number);
    packages(&mut html, page, number);
    held(&mut html, page, number);
    html.add(format_args!(
        "<h3>Glossary</h3><dl>\
         <dt>shallow</dt><dd>size of the object itself, as counted in the dump</dd>\
         <dt>retained</dt><dd>size freed with the object: everything that only it keeps alive. \
         For a class, an object retained by another object of the class counts once</dd>\
         <dt>native</dt><dd>memory outside the Java heap that is freed with the object, such as \
         the pixels of a Bitmap</dd>\
         <dt>dominates</dt><dd>is on every path from a GC root to the other object</dd></dl>\n"
    ));
    let facts = &page.graph.facts;
    let total = &page.classes.total;
    JavaPart {
        body: html.into_body(),
        data: data::section(page),
        entry: JavaHeap {
            section: String::new(),
            name: process(page).to_owned(),
            number: page.number,
            label: page.label.clone(),
            pid: facts.pid,
            process: facts.process.clone(),
            time_ms: (facts.source == DumpSource::HeapGraph)
                .then(|| (facts.time_ns / 1000) as f64 / 1000.0),
            wall_ms: page.wall_ms,
            objects: total.count,
            shallow: total.shallow_bytes,
            native: total.native_bytes,
            compared_with: page.change.as_ref().map(|change| change.before.clone()),
        },
    }
}

/// Returns the process of the heap, or the file name if it is unknown.
fn process<'a>(page: &'a JavaPage<'_>) -> &'a str {
    match page.graph.facts.process.as_str() {
        "" => page.name.rsplit(['/', '\\']).next().unwrap_or_default(),
        process => process,
    }
}

fn facts(page: &JavaPage<'_>) -> Vec<Fact> {
    let facts = &page.graph.facts;
    let mut all = Vec::new();
    let mut fact = |name: &str, value: String| {
        all.push(Fact {
            name: name.to_owned(),
            value,
        });
    };
    fact("Dump", page.name.clone());
    if let Some(label) = &page.label {
        fact("Label", label.clone());
    }
    if let Some(pid) = facts.pid {
        fact("Process ID", pid.to_string());
    }
    if let Some(when) = page.wall_ms.and_then(super::date) {
        fact("Dumped", when);
    }
    fact(
        "Source",
        match &facts.source {
            DumpSource::HeapGraph => "heap graph of android.java_hprof".to_owned(),
            DumpSource::Hprof { version, id_bytes } => {
                format!("HPROF, {version}, {id_bytes}-byte IDs")
            }
        },
    );
    fact("Sizes", size_model(&facts.source, facts.sizes).to_owned());
    if let Some(reason) = &facts.reason {
        fact("Reason", reason.clone());
    }
    all
}

/// Describes the model of shallow sizes.
fn size_model(source: &DumpSource, sizes: SizeModel) -> &'static str {
    match (source, sizes) {
        (DumpSource::HeapGraph, _) => "as the runtime reports them",
        (_, SizeModel::Dump) => "as in the dump: fields and elements, without array headers",
        (_, SizeModel::Mat) => "as in Eclipse MAT: with headers and alignment",
        (_, SizeModel::Art) => "as in ART: with headers and alignment",
        (_, SizeModel::Hotspot) => "as in HotSpot (jmap -histo)",
    }
}

fn head(html: &mut Html, page: &JavaPage<'_>, number: usize) {
    let at = match &page.label {
        Some(label) => format!(" at {}", Foreign(label)),
        None => String::new(),
    };
    let grew = match page.change {
        Some(_) => format!("<a href=\"#grew{number}\">Growth</a> "),
        None => String::new(),
    };
    html.add(format_args!(
        "<h2 id=\"java{number}\">Java heap of {}{at}</h2>\n<nav aria-label=\"Java heap {}\">{grew}\
         <a href=\"#leaks{number}\">Leaks</a> \
         <a href=\"#tree{number}\">Dominator tree</a> \
         <a href=\"#largest{number}\">Largest objects</a> <a href=\"#waste{number}\">Waste</a> \
         <a href=\"#classes{number}\">Classes</a> <a href=\"#packages{number}\">Packages</a> \
         <a href=\"#held{number}\">Paths to roots</a></nav>\n",
        Foreign(process(page)),
        number + 1
    ));
    let total = &page.classes.total;
    let tile = |html: &mut Html, figure: String, what: &str| {
        html.add(format_args!(
            "<div class=\"tile\"><b>{figure}</b>{what}</div>"
        ));
    };
    html.add(format_args!("<div class=\"tiles\">"));
    tile(
        html,
        ByteSize(total.shallow_bytes).to_string(),
        "reachable Java objects",
    );
    if total.native_bytes > 0 {
        tile(
            html,
            ByteSize(total.native_bytes).to_string(),
            "native memory they own",
        );
    }
    tile(html, thousands(total.count), "reachable objects");
    if page.garbage.0 > 0 {
        tile(
            html,
            ByteSize(page.garbage.1).to_string(),
            "unreachable, not yet collected",
        );
    }
    html.add(format_args!("</div>\n<dl>"));
    for fact in facts(page) {
        html.add(format_args!(
            "<dt>{}</dt><dd>{}</dd>",
            fact.name,
            Foreign(&fact.value)
        ));
    }
    html.add(format_args!("</dl>\n"));
    for (message, help) in &page.warnings {
        html.add(format_args!("<p class=\"warn\">{}", Foreign(message)));
        if let Some(help) = help {
            html.add(format_args!("<br>{}", Foreign(help)));
        }
        html.add(format_args!("</p>\n"));
    }
}

fn tree(html: &mut Html, page: &JavaPage<'_>, number: usize) {
    html.add(format_args!(
        "<h3 id=\"tree{number}\">Dominator tree</h3>\n<p class=\"note\">Below each class is what \
         only its objects keep alive, Java and native bytes together. \
         Point at a box for its values, or unfold the list.</p>\n"
    ));
    // Only the largest nodes are shown, each with its ancestors.
    let mut order: Vec<usize> = (0..page.tree.nodes.len()).collect();
    let size = |at: usize| page.tree.nodes[at].sums.retained.total_bytes();
    order.sort_by_key(|&at| (Reverse(size(at)), at));
    order.truncate(NODES);
    let mut is_shown = vec![false; page.tree.nodes.len()];
    for at in order {
        is_shown[at] = true;
    }
    picture(html, &page.tree, &is_shown);
    let total = page
        .classes
        .total
        .shallow_bytes
        .saturating_add(page.classes.total.native_bytes);
    let mut open: Vec<(std::slice::Iter<'_, usize>, usize)> = vec![(page.tree.tops.iter(), 0)];
    while let Some((below, depth)) = open.last_mut() {
        let depth = *depth;
        let Some(&at) = below.find(|&&at| is_shown[at]) else {
            open.pop();
            if !open.is_empty() {
                html.add(format_args!("</details>\n"));
            }
            continue;
        };
        let node = &page.tree.nodes[at];
        let line = format!(
            "<span class=\"size\">{}</span>{} <span class=\"note\">× {}</span>",
            ByteSize(node.sums.retained.total_bytes()),
            Foreign(&node.name),
            thousands(node.sums.count)
        );
        let has_more = node.below.iter().any(|&below| is_shown[below]);
        if has_more && depth < DEEPEST {
            // Large nodes are expanded as deep as they remain large.
            let is_large = node.sums.retained.total_bytes() >= total / 10;
            let unfolded = if is_large { " open" } else { "" };
            html.add(format_args!("<details{unfolded}><summary>{line}</summary>"));
            open.push((node.below.iter(), depth + 1));
        } else {
            html.add(format_args!("<div class=\"leaf\">{line}</div>\n"));
        }
    }
}

/// Maximum nesting of the expandable list, because browsers handle much deeper elements badly.
const DEEPEST: usize = 100;

fn picture(html: &mut Html, tree: &Tree, is_shown: &[bool]) {
    // In order of size, which is not that of the nodes.
    let mut nodes: Vec<Node> = Vec::new();
    let mut open: Vec<(usize, Option<usize>)> =
        tree.tops.iter().rev().map(|&at| (at, None)).collect();
    while let Some((at, parent)) = open.pop() {
        if !is_shown[at] {
            continue;
        }
        let node = &tree.nodes[at];
        let number = nodes.len();
        nodes.push(Node {
            name: node.name.clone(),
            bytes: node.sums.retained.total_bytes(),
            count: node.sums.retained.count,
            parent,
        });
        open.extend(node.below.iter().rev().map(|&below| (below, Some(number))));
    }
    icicle::draw(html, "The dominator tree by class", &nodes);
}

fn largest(html: &mut Html, page: &JavaPage<'_>, number: usize) {
    html.add(format_args!(
        "<h3 id=\"largest{number}\">Largest objects</h3>\n\
         <p class=\"note\">Objects with the largest retained size, and the shortest path from \
         a GC root to each.</p>\n"
    ));
    for (large, path) in &page.largest {
        let object = large.object;
        html.add(format_args!(
            "<details><summary><span class=\"size\">{}</span>{} \
             <span class=\"note\">{}, {} objects</span></summary>\n",
            ByteSize(large.retained.total_bytes()),
            Foreign(&label::object_name(page.graph, object)),
            page.graph.id(object),
            thousands(large.retained.count)
        ));
        way(html, page.graph, path);
        html.add(format_args!("</details>\n"));
    }
}

/// Writes a path from a root, one step per line.
fn way(html: &mut Html, graph: &HeapGraph, path: &Path) {
    match &path.root {
        Some(root) => html.add(format_args!("<pre>root: {}\n", Foreign(&root.to_string()))),
        None => html.add(format_args!("<pre>unreachable from GC roots\n")),
    }
    for step in shortened(&path.steps) {
        let step = match step {
            Ok(step) => step,
            Err(left_out) => {
                html.add(format_args!("  … {left_out} more\n"));
                continue;
            }
        };
        left_out(html, step.left_out);
        if let Some(reference) = step.reference() {
            html.add(format_args!("  ↓ {}\n", Foreign(&reference)));
        }
        html.add(format_args!(
            "{}\n",
            Foreign(&label::object_name(graph, step.object))
        ));
    }
    html.add(format_args!("</pre>\n"));
}

/// Writes the number of omitted steps of a path, if any.
fn left_out(html: &mut Html, steps: u64) {
    if steps > 0 {
        html.add(format_args!("  … {} more\n", thousands(steps)));
    }
}

/// Maximum number of steps shown of a path: start and end are sufficient for a long list.
const STEPS: usize = 40;

/// Returns the steps to show, with the number of omitted ones in the middle.
fn shortened<T>(steps: &[T]) -> impl Iterator<Item = Result<&T, usize>> {
    let left_out = steps.len().saturating_sub(STEPS);
    let (head, tail) = match left_out {
        0 => (steps, &steps[..0]),
        _ => (&steps[..STEPS / 2], &steps[STEPS / 2 + left_out..]),
    };
    let gap = (left_out > 0).then_some(Err(left_out));
    head.iter().map(Ok).chain(gap).chain(tail.iter().map(Ok))
}

fn classes(html: &mut Html, page: &JavaPage<'_>, number: usize) {
    html.add(format_args!("<h3 id=\"classes{number}\">Classes</h3>\n"));
    sums(html, "class", &page.classes, ROWS);
}

fn packages(html: &mut Html, page: &JavaPage<'_>, number: usize) {
    html.add(format_args!("<h3 id=\"packages{number}\">Packages</h3>\n"));
    sums(html, "package", &page.packages, PACKAGES);
}

fn sums(html: &mut Html, what: &str, histogram: &Histogram, most: usize) {
    let mut rows: Vec<&Row> = histogram.rows.iter().collect();
    rows.sort_by_key(|row| (Reverse(row.sums.retained.total_bytes()), &row.name));
    let left_out = rows.len().saturating_sub(most);
    let caption = match left_out {
        0 => "By retained size.".to_owned(),
        n => format!(
            "The {most} largest by retained size; {} not shown.",
            counted(n as u64, "more is", "more are")
        ),
    };
    let has_native = histogram.total.native_bytes > 0;
    let mut headings = vec![what, "#objects", "#shallow"];
    if has_native {
        headings.push("#native");
    }
    headings.push("#retained");
    let rows = rows.into_iter().take(most).map(|row| {
        let mut cells = vec![
            Foreign(&row.name).to_string(),
            thousands(row.sums.count),
            ByteSize(row.sums.shallow_bytes).to_string(),
        ];
        if has_native {
            cells.push(ByteSize(row.sums.native_bytes).to_string());
        }
        cells.push(ByteSize(row.sums.retained.total_bytes()).to_string());
        cells
    });
    html.table(&caption, &headings, rows);
}

/// Returns which holders of a class are shown: those nearest to its objects, so that a holder with
/// many holders of its own cannot displace others.
fn nearest(holders: &Holders) -> Vec<bool> {
    let mut is_shown = vec![false; holders.nodes.len()];
    let first = (!holders.nodes.is_empty()).then_some(0);
    let mut queue: VecDeque<usize> = first.into_iter().collect();
    // The first node contains the objects themselves.
    for _ in 0..=HOLDERS {
        let Some(at) = queue.pop_front() else {
            break;
        };
        is_shown[at] = true;
        queue.extend(&holders.nodes[at].holders);
    }
    is_shown
}

fn held(html: &mut Html, page: &JavaPage<'_>, number: usize) {
    if page.held.is_empty() {
        return;
    }
    html.add(format_args!(
        "<h3 id=\"held{number}\">Paths to roots</h3>\n<p class=\"note\">All paths from objects to \
         GC roots, merged by class. Shown for the largest classes{}.</p>\n",
        match page.change {
            Some(_) => " and those that grew the most",
            None => "",
        }
    ));
    for (at, (class, holders)) in page.held.iter().enumerate() {
        html.add(format_args!(
            "<h4 id=\"held{number}-{at}\">{}</h4>\n",
            Foreign(paths::short(class))
        ));
        let mut open: Vec<(std::slice::Iter<'_, usize>, usize)> = match holders.nodes.first() {
            Some(first) => vec![(first.holders.iter(), 0)],
            None => continue,
        };
        let is_shown = nearest(holders);
        while let Some((more, depth)) = open.last_mut() {
            let depth = *depth;
            let Some(&at) = more.find(|&&at| is_shown[at]) else {
                open.pop();
                if !open.is_empty() {
                    html.add(format_args!("</details>\n"));
                }
                continue;
            };
            let node = &holders.nodes[at];
            let link = match &node.link {
                Some(link) => link.to_string(),
                None => node.name.clone(),
            };
            let mut line = format!(
                "<span class=\"size\">{}</span>{}",
                thousands(node.count),
                Foreign(&link)
            );
            if let Some((reason, _)) = node.roots.first() {
                line.push_str(&format!(
                    " <span class=\"note\">{}</span>",
                    Foreign(&reason.to_string())
                ));
            }
            let is_last = !node.holders.iter().any(|&next| is_shown[next]);
            if is_last || depth >= DEEPEST {
                html.add(format_args!("<div class=\"leaf\">{line}</div>\n"));
            } else {
                let unfolded = if depth < 3 { " open" } else { "" };
                html.add(format_args!("<details{unfolded}><summary>{line}</summary>"));
                open.push((node.holders.iter(), depth + 1));
            }
        }
        let left_out = holders.nodes.len().saturating_sub(HOLDERS);
        if left_out > 0 {
            html.add(format_args!(
                "<p class=\"note\">About {} not shown.</p>\n",
                counted(left_out as u64, "more is", "more are")
            ));
        }
    }
}
