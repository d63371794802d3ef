//! Flame graph of one column of one dump as a static SVG, which does not run or load anything and
//! opens in every browser and word processor. Icicle layout: callers on top, largest first. Each
//! box has a title (the tooltip) with name, library, bytes and share.
//!
//! Colors distinguish libraries (Okabe-Ito hues, lightened so that black text stays readable); no
//! information depends on color alone.

use super::by_name::ByName;
use super::chosen::{ChosenDump, measure_title};
use super::text::{named, xml};
use heaptap_base::units::{ByteSize, thousands};
use heaptap_model::names::basename;
use heaptap_model::stacks::{Measure, StackTable, Unit};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::{self, Write};

/// Width of the picture in CSS pixels.
const WIDTH: f64 = 1200.0;
/// Margin around the boxes.
const MARGIN: f64 = 10.0;
/// Height of a row.
const ROW: f64 = 17.0;
/// Height above the first row: title, subtitle, legend.
const HEAD: f64 = 70.0;
/// Minimum width of a box; narrower ones are drawn as one gray box with their neighbors.
const NARROWEST: f64 = 0.5;
/// Width of a character of the monospaced font.
const CHARACTER: f64 = 6.6;
/// Maximum depth, because browsers refuse taller pictures. The picture mentions omitted frames.
const MAX_DEPTH: usize = 1500;

/// Colors of libraries, largest first; the last one is for all others.
const COLOURS: [&str; 8] = [
    "#f2c166", "#8fd0f2", "#7fd1b5", "#f2e88a", "#8ab8dc", "#eba07a", "#e3b3cd", "#d0d0d0",
];

/// Writes a column of a dump. `subtitle` names its source. Negative values, which only profiles of
/// differences have, have no width and are omitted.
///
/// # Errors
/// Returns an error if `out` cannot be written.
pub fn write(
    out: &mut impl Write,
    table: &StackTable,
    dump: &ChosenDump<'_>,
    column: usize,
    subtitle: &str,
) -> io::Result<()> {
    let tree = ByName::new(table, dump, column);
    let measure = &dump.dump.measures[column];
    let boxes = Boxes::from_tree(&tree);
    let height = HEAD + (boxes.rows as f64) * ROW + 2.0 * MARGIN;
    let title = format!("{}: {}", dump.title(), measure_title(measure));
    let whole = amount(measure, boxes.total);
    write!(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-labelledby=\"t d\" \
         font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"11\">\n\
         <title id=\"t\">{}</title>\n<desc id=\"d\">{}</desc>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"{MARGIN}\" y=\"22\" font-size=\"15\" font-weight=\"bold\">{}</text>\n\
         <text x=\"{MARGIN}\" y=\"40\" fill=\"#444444\">{}</text>\n",
        xml(&title),
        xml(&format!(
            "flame graph of {whole}, callers on top; {subtitle}"
        )),
        xml(&title),
        xml(&format!("{whole} in total; {subtitle}")),
    )?;
    let colours = Colours::new(table, &tree, &boxes);
    colours.put_legend(out)?;
    for one in &boxes.list {
        put_box(out, table, &tree, &colours, measure, one, boxes.total)?;
    }
    if boxes.deeper {
        let y = HEAD + (boxes.rows as f64) * ROW + MARGIN;
        writeln!(
            out,
            "<text x=\"{MARGIN}\" y=\"{y}\" fill=\"#444444\">frames deeper than \
             {MAX_DEPTH} are not drawn</text>"
        )?;
    }
    out.write_all(b"</svg>\n")
}

/// Box to draw.
struct Drawn {
    /// Node; 0 is the root.
    node: u32,
    x: f64,
    width: f64,
    depth: usize,
    /// For nodes too narrow to be drawn alone, of which this is the first: their number and total
    /// value.
    merged: Option<(usize, i64)>,
}

/// All boxes, callers before callees.
struct Boxes {
    list: Vec<Drawn>,
    total: i64,
    rows: usize,
    deeper: bool,
}

impl Boxes {
    fn from_tree(tree: &ByName) -> Boxes {
        // In a difference, shrunk nodes do not have a width.
        let weights = weights(tree);
        let total = weights[0];
        let mut boxes = Boxes {
            list: Vec::new(),
            total,
            rows: 1,
            deeper: false,
        };
        let scale = match total {
            0 => 0.0,
            total => (WIDTH - 2.0 * MARGIN) / total as f64,
        };
        let mut todo = vec![Drawn {
            node: 0,
            x: MARGIN,
            width: WIDTH - 2.0 * MARGIN,
            depth: 0,
            merged: None,
        }];
        while let Some(one) = todo.pop() {
            boxes.rows = boxes.rows.max(one.depth + 1);
            let (node, depth, mut x) = (one.node, one.depth + 1, one.x);
            let is_merged = one.merged.is_some();
            boxes.list.push(one);
            if is_merged {
                continue;
            }
            let mut children: Vec<u32> = tree
                .children(node)
                .filter(|&child| weights[child as usize] > 0)
                .collect();
            if depth > MAX_DEPTH {
                boxes.deeper |= !children.is_empty();
                continue;
            }
            children.sort_by_key(|&child| (Reverse(weights[child as usize]), child));
            for (at, &child) in children.iter().enumerate() {
                let width = weights[child as usize] as f64 * scale;
                if width < NARROWEST {
                    let rest = &children[at..];
                    let sum = rest.iter().fold(0i64, |sum, &child| {
                        sum.saturating_add(weights[child as usize])
                    });
                    let width = sum as f64 * scale;
                    if width >= NARROWEST {
                        todo.push(Drawn {
                            node: child,
                            x,
                            width,
                            depth,
                            merged: Some((rest.len(), sum)),
                        });
                    }
                    break;
                }
                todo.push(Drawn {
                    node: child,
                    x,
                    width,
                    depth,
                    merged: None,
                });
                x += width;
            }
        }
        boxes
    }
}

/// Returns the value of each node including descendants, without negative values.
fn weights(tree: &ByName) -> Vec<i64> {
    let mut weights = vec![0i64; tree.nodes.len()];
    for at in (0..tree.nodes.len()).rev() {
        let below = tree.children(at as u32).fold(0i64, |sum, child| {
            sum.saturating_add(weights[child as usize])
        });
        weights[at] = tree.nodes[at].own.max(0).saturating_add(below);
    }
    weights
}

/// Colors of the largest libraries.
struct Colours<'a> {
    by_library: HashMap<&'a str, &'static str>,
    legend: Vec<(&'a str, &'static str)>,
}

impl<'a> Colours<'a> {
    fn new(table: &'a StackTable, tree: &ByName, boxes: &Boxes) -> Colours<'a> {
        let mut widths: HashMap<&str, f64> = HashMap::new();
        for one in boxes
            .list
            .iter()
            .filter(|b| b.node != 0 && b.merged.is_none())
        {
            let library = basename(table.text_of(tree.nodes[one.node as usize].library));
            *widths.entry(library).or_default() += one.width;
        }
        let mut all: Vec<(&str, f64)> = widths.into_iter().collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        let legend = all.into_iter().map(|(library, _)| library).zip(COLOURS);
        let legend: Vec<_> = legend.take(COLOURS.len() - 1).collect();
        Colours {
            by_library: legend.iter().copied().collect(),
            legend,
        }
    }

    fn of_library(&self, library: &str) -> &'static str {
        let known = self.by_library.get(library).copied();
        known.unwrap_or(COLOURS[COLOURS.len() - 1])
    }

    fn put_legend(&self, out: &mut impl Write) -> io::Result<()> {
        let mut x = MARGIN;
        for (library, colour) in &self.legend {
            let name = shortened(named(library), 24);
            let width = name.chars().count() as f64 * CHARACTER + 26.0;
            if x + width > WIDTH - MARGIN {
                break;
            }
            writeln!(
                out,
                "<rect x=\"{x:.1}\" y=\"50\" width=\"11\" height=\"11\" fill=\"{colour}\" \
                 stroke=\"#666666\" stroke-width=\"0.5\"/><text x=\"{:.1}\" y=\"60\">{}</text>",
                x + 15.0,
                xml(&name)
            )?;
            x += width;
        }
        Ok(())
    }
}

fn put_box(
    out: &mut impl Write,
    table: &StackTable,
    tree: &ByName,
    colours: &Colours<'_>,
    measure: &Measure,
    one: &Drawn,
    total: i64,
) -> io::Result<()> {
    let node = &tree.nodes[one.node as usize];
    let path = table.text_of(node.library);
    let y = HEAD + one.depth as f64 * ROW;
    let (name, fill, value) = match (one.node, one.merged) {
        (0, _) => ("all".to_owned(), "#e8e8e8", total),
        (_, Some((count, sum))) => (format!("{count} more"), "#c8c8c8", sum),
        (_, None) => (
            named(table.text_of(node.name)).to_owned(),
            colours.of_library(basename(path)),
            node.total,
        ),
    };
    let mut title = vec![name.clone(), amount(measure, value)];
    if total > 0 {
        title[1] += &format!(", {:.2} %", value as f64 * 100.0 / total as f64);
    }
    if one.merged.is_none() && node.own != 0 && one.node != 0 {
        title.push(format!("own: {}", amount(measure, node.own)));
    }
    if one.merged.is_none() && !path.is_empty() {
        title.push(path.to_owned());
    }
    let title: Vec<String> = title.iter().map(|line| xml(line)).collect();
    write!(
        out,
        "<g><title>{}</title><rect x=\"{:.2}\" y=\"{y}\" width=\"{:.2}\" height=\"{}\" \
         fill=\"{fill}\" stroke=\"#ffffff\" stroke-width=\"0.4\"/>",
        title.join("&#10;"),
        one.x,
        one.width,
        ROW - 1.0
    )?;
    let room = ((one.width - 6.0) / CHARACTER) as usize;
    if room >= 3 {
        let text = shortened(&name, room);
        let (x, y) = (one.x + 3.0, y + 12.0);
        write!(out, "<text x=\"{x:.2}\" y=\"{y}\">{}</text>", xml(&text))?;
    }
    out.write_all(b"</g>\n")
}

/// Formats a number with its unit.
fn amount(measure: &Measure, value: i64) -> String {
    let sign = if value < 0 { "-" } else { "" };
    let size = value.unsigned_abs();
    match &measure.unit {
        Unit::Bytes if size >= 1024 => {
            format!("{sign}{} ({sign}{} B)", ByteSize(size), thousands(size))
        }
        Unit::Bytes => format!("{sign}{size} B"),
        Unit::Count => format!("{sign}{}", thousands(size)),
        Unit::Other(unit) => format!("{sign}{} {unit}", thousands(size)),
    }
}

/// Cuts a text to `most` characters, including a final `…`.
fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept = text.chars().take(most.saturating_sub(1));
    kept.chain(['…']).collect()
}
