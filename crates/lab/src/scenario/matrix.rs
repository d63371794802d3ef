//! The matrix of a scenario: values of variables, of which each combination is a scenario of its
//! own. Its values can have variables of the environment, and no variables of the matrix.

use super::Scenario;
use super::forms::MAX_NAME_CHARS;
use super::problems::{Path, shown};
use super::report::Report;
use super::shape::{MATRIX, MAX_CELLS};
use super::variables::{self, Environment};
use super::yaml::{Kind, Node};

/// Values of the variables of one combination, in the order of the file.
pub(super) type Cell = Vec<(String, String)>;

/// Replaces the variables of the environment in the matrix.
pub(super) fn replace(root: &mut Node, environment: &Environment<'_>, report: &mut Report) {
    if let Kind::Map(entries) = &mut root.kind {
        let matrix = entries
            .iter_mut()
            .find(|(key, _)| key.text() == Some(MATRIX));
        if let Some((_, matrix)) = matrix {
            let path = Path::Key(&Path::Root, MATRIX);
            variables::replace(matrix, &path, environment, report);
        }
    }
}

/// Returns the combinations in the order of the file; one without values if there is no matrix. A
/// matrix that [`check`] refuses has only the first combination.
pub(super) fn cells(root: &Node) -> Vec<Cell> {
    let Some(matrix) = root.get(MATRIX) else {
        return vec![Vec::new()];
    };
    let is_valid = number_of_cells(matrix) <= MAX_CELLS;
    let mut cells: Vec<Cell> = vec![Vec::new()];
    for (key, values) in matrix.entries() {
        let values = values.items().iter().filter_map(Node::text);
        let values: Vec<&str> = values.take(if is_valid { MAX_CELLS } else { 1 }).collect();
        let key = key.text().unwrap_or_default();
        let with_values = |cell: &Cell| -> Vec<Cell> {
            let with = |value: &&str| {
                let mut cell = cell.clone();
                cell.push((key.to_owned(), (*value).to_owned()));
                cell
            };
            values.iter().map(with).collect()
        };
        // A variable without values is an error of the file, which needs a cell to be found.
        if !values.is_empty() {
            cells = cells.iter().flat_map(with_values).collect();
        }
    }
    cells
}

fn number_of_cells(matrix: &Node) -> usize {
    let sizes = matrix.entries().iter().map(|(_, list)| list.items().len());
    sizes.fold(1, |cells, size| cells.saturating_mul(size.max(1)))
}

/// Checks what concerns several values; the shape of the matrix is checked before.
pub(super) fn check(root: &Node, report: &mut Report) {
    let Some(matrix) = root.get(MATRIX) else {
        return;
    };
    let path = Path::Key(&Path::Root, MATRIX);
    let cells = number_of_cells(matrix);
    if cells > MAX_CELLS {
        let message = format!("the matrix has {cells} combinations; the limit is {MAX_CELLS}");
        report.add(matrix, &path, message);
    }
    let longest = longest_name(root, matrix);
    if longest > MAX_NAME_CHARS {
        let message = format!(
            "the names of its scenarios have up to {longest} characters; the limit is \
             {MAX_NAME_CHARS}"
        );
        report.add(matrix, &path, message);
    }
    for (key, values) in matrix.entries() {
        let path = Path::Key(&path, key.text().unwrap_or_default());
        for (at, value) in values.items().iter().enumerate() {
            let is_same = |other: &&Node| other.text() == value.text();
            let earlier = values.items().iter().take(at).find(is_same);
            if let (Some(first), Kind::Scalar(text, _)) = (earlier, &value.kind) {
                let message = format!(
                    "`{}` occurs twice; first in line {}",
                    shown(text),
                    first.line
                );
                report.add(value, &Path::Index(&path, at), message);
            }
        }
    }
}

/// Returns the length of the longest name of a cell.
fn longest_name(root: &Node, matrix: &Node) -> usize {
    let length = |node: &Node| node.text().map_or(0, str::len);
    let of_value = |(key, values): &(Node, Node)| {
        let longest = values.items().iter().map(length).max().unwrap_or(0);
        // `,` or `[`, and `=`.
        length(key) + longest + 2
    };
    let name = root.get("name").map_or(0, length);
    name + matrix.entries().iter().map(of_value).sum::<usize>() + 1
}

impl Scenario {
    /// Adds the values of a cell to the name: `login[locale=ar-EG]`.
    pub(super) fn named_after(mut self, cell: Cell) -> Scenario {
        let values: Vec<String> = cell.iter().map(|(k, v)| format!("{k}={v}")).collect();
        if !values.is_empty() {
            self.name = format!("{}[{}]", self.name, values.join(","));
        }
        self.cell = cell;
        self
    }
}
