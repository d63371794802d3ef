//! The tables of docs/internals/architecture.md: crates and modules, and what each may import.

use std::collections::{BTreeMap, BTreeSet};

/// The page.
pub const PAGE: &str = include_str!("../../docs/internals/architecture.md");

/// Headings of the tables of docs/internals/architecture.md.
pub const CRATES: &str = "Crates";
pub const MODULES: &str = "Modules of the program";

/// The table of docs/internals/architecture.md below `heading`: crates or modules of the program,
/// and their permitted imports.
pub fn table(heading: &str) -> BTreeMap<String, BTreeSet<String>> {
    let text = PAGE
        .split("\n## ")
        .find(|section| section.starts_with(heading))
        .expect("the section is there");
    let names = |cell: &str| -> Vec<String> {
        cell.split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect()
    };
    let rows: Vec<(Vec<String>, String)> = text
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            assert_eq!(cells.len(), 3, "a row has three cells: {line}");
            (names(cells[0]), cells[2].to_owned())
        })
        .collect();
    let all: BTreeSet<String> = rows.iter().flat_map(|(names, _)| names.clone()).collect();
    let mut table = BTreeMap::new();
    for (modules, allowed) in rows {
        // Text in brackets is an explanation.
        let allowed = allowed.split('(').next().unwrap_or_default().trim();
        let set: BTreeSet<String> = if allowed == "all" {
            all.clone()
        } else if let Some(except) = allowed.strip_prefix("all but") {
            let except = names(except);
            all.iter()
                .filter(|n| !except.contains(n))
                .cloned()
                .collect()
        } else if allowed == "nothing of ours" {
            BTreeSet::new()
        } else {
            names(allowed).into_iter().collect()
        };
        for module in modules {
            table.insert(module, set.clone());
        }
    }
    table
}
