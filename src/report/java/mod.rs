//! The page of a Java heap: what it holds, who retains it, and by which way a root reaches it.

mod leaks;
mod waste;

use super::html::{Foreign, Html};
use super::icicle::{self, Node};
use crate::analyze::histogram::{Histogram, Row};
use crate::analyze::holders::Holders;
use crate::analyze::largest::Large;
use crate::analyze::leaks::Leaks;
use crate::analyze::paths::Path;
use crate::analyze::tree::Tree;
use crate::analyze::waste::Waste;
use crate::analyze::{label, paths};
use crate::heap_graph::{DumpSource, HeapGraph};
use crate::units::{ByteSize, thousands};
use std::cmp::Reverse;

/// Rows of a histogram that are shown.
const ROWS: usize = 200;
/// Rows of the list of packages.
const PACKAGES: usize = 60;
/// Nodes of the dominator tree that are shown.
const NODES: usize = 4000;

/// What the page shows: all of it computed, nothing looked up.
pub struct JavaPage<'a> {
    /// What the heap is called: the input and its label.
    pub name: String,
    /// The heap itself, for names.
    pub graph: &'a HeapGraph,
    /// What the user should know of the dump, with what to do about it.
    pub warnings: Vec<(String, Option<String>)>,
    /// Reachable objects by class.
    pub classes: Histogram,
    /// Reachable objects by package.
    pub packages: Histogram,
    /// Objects that no root reaches: how many, and their shallow bytes.
    pub garbage: (u64, u64),
    /// Objects that should be gone, and what holds them.
    pub leaks: Leaks,
    /// Memory that holds what is already there, or nothing.
    pub waste: Waste,
    /// The objects that retain most, with the way to each.
    pub largest: Vec<(Large, Path)>,
    /// The dominator tree merged by class.
    pub tree: Tree,
    /// Who holds the classes of which there is most.
    pub held: Vec<(String, Holders)>,
}

/// The page, a whole HTML file.
pub fn render(page: &JavaPage<'_>) -> String {
    let mut html = Html::default();
    head(&mut html, page);
    leaks::write(&mut html, &page.leaks);
    tree(&mut html, page);
    largest(&mut html, page);
    waste::write(&mut html, &page.waste);
    classes(&mut html, page);
    packages(&mut html, page);
    held(&mut html, page);
    html.add(format_args!(
        "<h2 id=\"words\">What the words mean</h2><dl>\
         <dt>shallow</dt><dd>the object alone, as the dump sizes it</dd>\
         <dt>retained</dt><dd>what would be free if the object were: all that only it keeps \
         alive. Of a class, objects that another of the class retains count once</dd>\
         <dt>native</dt><dd>memory outside the Java heap that the object frees when it goes, \
         such as the pixels of a Bitmap</dd>\
         <dt>dominates</dt><dd>every path from a root leads through it</dd></dl>\n"
    ));
    html.into_page(&format!("Java heap of {}", page.name))
}

fn head(html: &mut Html, page: &JavaPage<'_>) {
    let facts = &page.graph.facts;
    let file = page.name.rsplit(['/', '\\']).next().unwrap_or_default();
    let process = match facts.process.as_str() {
        "" => file,
        process => process,
    };
    html.add(format_args!(
        "<h1>Java heap of {}</h1>\n<nav><a href=\"#leaks\">Leaks</a> \
         <a href=\"#tree\">Who retains it</a> \
         <a href=\"#largest\">Largest objects</a> <a href=\"#waste\">Waste</a> <a href=\"#classes\">Classes</a> \
         <a href=\"#packages\">Packages</a> <a href=\"#held\">Who holds what</a></nav>\n",
        Foreign(process)
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
            "native, owned by them",
        );
    }
    tile(html, thousands(total.count), "reachable objects");
    if page.garbage.0 > 0 {
        tile(
            html,
            ByteSize(page.garbage.1).to_string(),
            "garbage, not collected yet",
        );
    }
    html.add(format_args!("</div>\n<dl>"));
    let mut fact = |name: &str, value: String| {
        html.add(format_args!("<dt>{name}</dt><dd>{value}</dd>"));
    };
    fact("dump", Foreign(&page.name).to_string());
    if let Some(pid) = facts.pid {
        fact("process id", pid.to_string());
    }
    match &facts.source {
        DumpSource::HeapGraph => fact("source", "heap graph of android.java_hprof".to_owned()),
        DumpSource::Hprof { version, id_bytes } => fact(
            "source",
            format!("HPROF, {}, ids of {id_bytes} bytes", Foreign(version)),
        ),
    }
    if let Some(reason) = &facts.reason {
        fact("dumped for", Foreign(reason).to_string());
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

fn tree(html: &mut Html, page: &JavaPage<'_>) {
    html.add(format_args!(
        "<h2 id=\"tree\">Who retains it</h2>\n<p class=\"note\">The dominator tree by class: \
         below each class what only its objects keep alive, Java and native bytes together. \
         Point at a box for its figures; unfold the list below it.</p>\n"
    ));
    // Only the largest are shown, each with those above it.
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
            // What is large is unfolded as far as it stays so.
            let is_large = node.sums.retained.total_bytes() >= total / 10;
            let unfolded = if is_large { " open" } else { "" };
            html.add(format_args!("<details{unfolded}><summary>{line}</summary>"));
            open.push((node.below.iter(), depth + 1));
        } else {
            html.add(format_args!("<div class=\"leaf\">{line}</div>\n"));
        }
    }
}

/// Levels of the list that unfolds; browsers do not like elements nested deeper by much.
const DEEPEST: usize = 100;

fn picture(html: &mut Html, tree: &Tree, is_shown: &[bool]) {
    // In the order of sizes, which is not that of the nodes.
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

fn largest(html: &mut Html, page: &JavaPage<'_>) {
    html.add(format_args!(
        "<h2 id=\"largest\">Largest objects</h2>\n<p class=\"note\">Single objects that retain \
         most, and the shortest way from a root to each.</p>\n"
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

/// A way from a root, one step a line.
fn way(html: &mut Html, graph: &HeapGraph, path: &Path) {
    match &path.root {
        Some(root) => html.add(format_args!("<pre>root: {}\n", Foreign(&root.to_string()))),
        None => html.add(format_args!("<pre>no root reaches it\n")),
    }
    for step in shortened(&path.steps) {
        let step = match step {
            Ok(step) => step,
            Err(left_out) => {
                html.add(format_args!("  … {left_out} more\n"));
                continue;
            }
        };
        if let Some(link) = &step.link {
            html.add(format_args!("  ↓ {}\n", Foreign(&link.to_string())));
        }
        html.add(format_args!(
            "{}\n",
            Foreign(&label::object_name(graph, step.object))
        ));
    }
    html.add(format_args!("</pre>\n"));
}

/// Steps of a way that are shown: of a long list the beginning and the end tell enough.
const STEPS: usize = 40;

/// The steps of a way that are shown, and in the middle how many are not.
fn shortened<T>(steps: &[T]) -> impl Iterator<Item = Result<&T, usize>> {
    let left_out = steps.len().saturating_sub(STEPS);
    let (head, tail) = match left_out {
        0 => (steps, &steps[..0]),
        _ => (&steps[..STEPS / 2], &steps[STEPS / 2 + left_out..]),
    };
    let gap = (left_out > 0).then_some(Err(left_out));
    head.iter().map(Ok).chain(gap).chain(tail.iter().map(Ok))
}

fn classes(html: &mut Html, page: &JavaPage<'_>) {
    html.add(format_args!("<h2 id=\"classes\">Classes</h2>\n"));
    sums(html, "class", &page.classes, ROWS);
}

fn packages(html: &mut Html, page: &JavaPage<'_>) {
    html.add(format_args!("<h2 id=\"packages\">Packages</h2>\n"));
    sums(html, "package", &page.packages, PACKAGES);
}

fn sums(html: &mut Html, what: &str, histogram: &Histogram, most: usize) {
    let mut rows: Vec<&Row> = histogram.rows.iter().collect();
    rows.sort_by_key(|row| (Reverse(row.sums.retained.total_bytes()), &row.name));
    let left_out = rows.len().saturating_sub(most);
    let caption = match left_out {
        0 => "By retained size.".to_owned(),
        n => format!(
            "The {most} that retain most; {} more are left out.",
            thousands(n as u64)
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

fn held(html: &mut Html, page: &JavaPage<'_>) {
    if page.held.is_empty() {
        return;
    }
    html.add(format_args!(
        "<h2 id=\"held\">Who holds what</h2>\n<p class=\"note\">For the classes with most bytes: \
         all ways to roots, merged by class, from the objects outwards.</p>\n"
    ));
    for (class, holders) in &page.held {
        html.add(format_args!("<h3>{}</h3>\n", Foreign(paths::short(class))));
        let mut open: Vec<(std::slice::Iter<'_, usize>, usize)> = match holders.nodes.first() {
            Some(first) => vec![(first.holders.iter(), 0)],
            None => continue,
        };
        while let Some((more, depth)) = open.last_mut() {
            let depth = *depth;
            let Some(&at) = more.next() else {
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
            if node.holders.is_empty() || depth >= DEEPEST {
                html.add(format_args!("<div class=\"leaf\">{line}</div>\n"));
            } else {
                let unfolded = if depth < 3 { " open" } else { "" };
                html.add(format_args!("<details{unfolded}><summary>{line}</summary>"));
                open.push((node.holders.iter(), depth + 1));
            }
        }
    }
}
