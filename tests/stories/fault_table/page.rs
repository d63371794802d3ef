//! docs/reference/faults.md: the tables of all cells, written and read again.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use super::cell::Seen;
use super::faults::Fault;
use super::steps::STEPS;

const BEGIN: &str =
    "<!-- written by UPDATE_DOCS=1 cargo test --test stories fault_table -- --ignored -->\n";
const END: &str = "<!-- end -->\n";

/// What was seen, by the name of the fault and the index of the step.
pub type Cells = BTreeMap<(&'static str, usize), Seen>;

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/reference/faults.md")
}

fn read() -> String {
    std::fs::read_to_string(path()).expect("the page exists")
}

/// Returns the page with these cells between its marks.
fn with_tables(page: &str, cells: &Cells) -> String {
    let (before, rest) = page.split_once(BEGIN).expect("a mark");
    let (_, after) = rest.split_once(END).expect("an end mark");
    format!("{before}{BEGIN}{}{END}{after}", tables(cells))
}

/// Writes the cells to the page.
pub fn write(cells: &Cells) {
    std::fs::write(path(), with_tables(&read(), cells)).expect("docs/ can be written");
}

/// Returns a list of the tables, with links.
fn contents() -> String {
    let mut text = String::from("\nFaults:\n\n");
    for fault in Fault::ALL {
        let (_, title) = fault.names();
        let words = title.to_lowercase().replace(' ', "-");
        let kept = |c: &char| c.is_alphanumeric() || matches!(c, '-' | '_');
        let anchor: String = words.chars().filter(kept).collect();
        let _ = writeln!(text, "- [{title}](#{anchor})");
    }
    text
}

#[test]
fn the_page_lists_its_tables() {
    assert!(read().contains(&contents()), "add\n{}", contents());
}

fn tables(cells: &Cells) -> String {
    let mut text = contents();
    text += "\n|Step|heaptap is about to|\n|-|-|\n";
    for (n, step) in STEPS.iter().enumerate() {
        let _ = writeln!(text, "|{}|{}|", n + 1, step.title);
    }
    for fault in Fault::ALL {
        let (name, title) = fault.names();
        let _ = write!(
            text,
            "\n### {title}\n\n|Steps|heaptap reports|Exit|Kept|Continue with|\n|-|-|-|-|-|\n"
        );
        for (steps, row) in rows(cells, name) {
            let _ = writeln!(text, "|{}|{row}|", ranges(&steps));
        }
    }
    text.push('\n');
    text
}

/// Returns the rows of a fault with their steps, in the order of the steps.
fn rows(cells: &Cells, fault: &str) -> Vec<(Vec<usize>, String)> {
    let mut rows: Vec<(Vec<usize>, String)> = Vec::new();
    for ((name, step), seen) in cells {
        if *name != fault {
            continue;
        }
        let row = row(seen);
        match rows.iter_mut().find(|(_, other)| *other == row) {
            Some((steps, _)) => steps.push(*step),
            None => rows.push((vec![*step], row)),
        }
    }
    rows
}

fn code(command: &str) -> String {
    match command.starts_with("heaptap") {
        true => format!("`{command}`"),
        false => command.to_owned(),
    }
}

fn row(seen: &Seen) -> String {
    let text = seen.says.replace('|', "\\|");
    format!("{text}|{}|{}|{}", seen.exit, seen.kept, code(&seen.next))
}

/// Writes steps as numbers from 1: `1–3, 5`.
fn ranges(steps: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for step in steps {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == *step => *last = *step,
            _ => parts.push((*step, *step)),
        }
    }
    let part = |(first, last): &(usize, usize)| match first == last {
        true => (first + 1).to_string(),
        false => format!("{}–{}", first + 1, last + 1),
    };
    parts.iter().map(part).collect::<Vec<_>>().join(", ")
}

/// Returns the row of the page for a step of a fault.
fn row_of(page: &str, fault: Fault, step: usize) -> Option<String> {
    let heading = format!("### {}\n", fault.names().1);
    let table = page.split_once(&heading)?.1;
    let table = table.split("\n### ").next()?;
    table.lines().find_map(|line| {
        let (steps, row) = line.strip_prefix('|')?.split_once('|')?;
        let is_in = steps.split(", ").any(|part| {
            let (first, last) = part.split_once('–').unwrap_or((part, part));
            let bounds = first.parse::<usize>().ok().zip(last.parse().ok());
            bounds.is_some_and(|(first, last)| (first..=last).contains(&(step + 1)))
        });
        is_in.then(|| row.trim_end_matches('|').to_owned())
    })
}

/// Returns whether a row of the fault has this exit code and command.
pub fn knows(fault: Fault, seen: &Seen) -> bool {
    (0..STEPS.len()).any(|step| {
        let row = row_of(&read(), fault, step).unwrap_or_default();
        let mut texts: Vec<&str> = row.split('|').collect();
        let next = code(&seen.next);
        // `row_of` leaves out an empty command.
        if next.is_empty() {
            texts.push("");
        }
        // The data that arrived until then decide between these.
        let is_loss = |exit: &str| ["0", "6", "7"].contains(&exit);
        matches!(texts[..], [.., exit, _, command]
            if command == next && (exit == seen.exit || is_loss(exit) && is_loss(&seen.exit)))
    })
}

/// Returns whether the page says what heaptap reports in a cell, and what is kept.
pub fn has(fault: Fault, step: usize) -> bool {
    let row = row_of(&read(), fault, step).unwrap_or_default();
    let texts: Vec<&str> = row.split('|').take(3).collect();
    matches!(texts[..], [says, exit, kept]
        if (!says.is_empty() || exit == "killed") && !kept.is_empty())
}

/// Returns the cells that differ from the page, for people.
pub fn differences(cells: &[(Fault, usize, &Seen)]) -> Vec<String> {
    let page = read();
    let mut wrong = Vec::new();
    for (fault, step, seen) in cells {
        let (is, was) = (row(seen), row_of(&page, *fault, *step).unwrap_or_default());
        // The data that arrived before a loss depend on the moment.
        let is_loss = |row: &str| {
            ["|6|results|", "|7|results|"]
                .iter()
                .any(|end| row.contains(end))
        };
        let is_like = is_loss(&is) && is_loss(&format!("{was}|"));
        if is.trim_end_matches('|') != was && !is_like {
            let (name, step) = (fault.names().0, STEPS[*step].name);
            wrong.push(format!("{step}:{name} is\n  {is}\nthe page has\n  {was}"));
        }
    }
    wrong
}

#[test]
fn steps_are_written_as_ranges_and_found_again() {
    assert_eq!(ranges(&[0, 1, 2, 4, 22, 23]), "1–3, 5, 23–24");
    let seen = Seen {
        says: "`x`: y".to_owned(),
        exit: "10".to_owned(),
        kept: "trace on the device".to_owned(),
        next: "heaptap stop ID".to_owned(),
    };
    let mut cells = Cells::new();
    for step in [0, 1, 5] {
        cells.insert(("kill", step), seen.clone());
    }
    let page = with_tables(&format!("# Page\n{BEGIN}old\n{END}rest\n"), &cells);
    assert!(
        page.starts_with("# Page\n") && page.ends_with("rest\n"),
        "{page}"
    );
    for (step, is_there) in [(0, true), (1, true), (2, false), (5, true)] {
        let row = row_of(&page, Fault::Kill, step);
        assert_eq!(row.is_some(), is_there, "{step}: {page}");
        assert!(row.is_none_or(|found| found == super::page::row(&seen)));
    }
    assert_eq!(row_of(&page, Fault::HangUp, 0), None);
}
