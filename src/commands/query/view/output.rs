//! Prints rows of a query on stdout: as tables fitted to the terminal, JSON, JSON lines or CSV.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::console::table::cut_end;
use crate::console::{Console, Style};
use heaptap_base::units::hex;
use heaptap_base::untrusted::sanitize;
use heaptap_export::csv::cell;
use heaptap_export::text::escaped_json;
use heaptap_query::{Sink, Value};

/// Output format of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Table,
    Json,
    JsonLines,
    Csv,
}

impl Form {
    pub(super) fn new(console: &Console, csv: bool) -> Form {
        match () {
            () if csv => Form::Csv,
            () if console.is_json_lines() => Form::JsonLines,
            () if console.is_json() => Form::Json,
            () => Form::Table,
        }
    }
}

/// Number of rows that determine the column widths of a table; later rows use these widths.
const FIRST: usize = 1000;
/// Bytes to collect before they are written.
const CHUNK: usize = 1 << 16;
/// Minimum width of a truncated text column.
const NARROWEST: usize = 12;

/// Writer of rows.
pub(super) struct Output {
    console: Console,
    form: Form,
    names: Vec<String>,
    /// Rows of a table whose widths are not known yet.
    first: Vec<Vec<Shown>>,
    layout: Option<Vec<Column>>,
    text: String,
    /// Number of results begun.
    results: usize,
    rows_of_result: u64,
    rows: Arc<AtomicU64>,
}

struct Shown {
    text: String,
    sort: Shape,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Null,
    Number,
    Text,
}

/// Column of a table.
struct Column {
    width: usize,
    is_number: bool,
}

impl Output {
    pub(super) fn new(console: Console, form: Form) -> Output {
        Output {
            console,
            form,
            names: Vec::new(),
            first: Vec::new(),
            layout: None,
            text: String::new(),
            results: 0,
            rows_of_result: 0,
            rows: Arc::default(),
        }
    }

    /// Returns a counter of the rows written so far.
    pub(super) fn counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.rows)
    }

    /// Writes the rest after all statements have run.
    pub(super) fn finish(mut self) {
        if self.form == Form::Json {
            // One result is the document itself; several are a list.
            self.text = match self.results {
                0 => "[]".to_owned(),
                1 => std::mem::take(&mut self.text),
                _ => format!("[{}]", self.text),
            };
            self.text.push('\n');
        }
        self.write();
    }

    fn write(&mut self) {
        if !self.text.is_empty() {
            match self.form {
                Form::Json | Form::JsonLines => self.console.json_text(&self.text),
                Form::Csv | Form::Table => self.console.text(&self.text),
            }
            self.text.clear();
        }
    }

    /// Writes the collected text once it is large enough.
    fn flow(&mut self) -> ControlFlow<()> {
        // A document is printed completely or not at all.
        if self.form != Form::Json && self.text.len() >= CHUNK {
            self.write();
            if self.console.stdout_is_closed() {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    fn lay_out(&mut self) {
        let width_of = |text: &str| console::measure_text_width(text);
        let mut columns: Vec<Column> = self
            .names
            .iter()
            .map(|name| Column {
                width: width_of(name),
                is_number: true,
            })
            .collect();
        for row in &self.first {
            for (column, cell) in columns.iter_mut().zip(row) {
                column.width = column.width.max(width_of(&cell.text));
                column.is_number &= cell.sort != Shape::Text;
            }
        }
        if let Some(room) = self.console.stdout_width() {
            fit(&mut columns, room);
        }
        if self.results > 1 {
            self.text.push('\n');
        }
        let names: Vec<Shown> = self
            .names
            .iter()
            .map(|name| Shown {
                text: name.clone(),
                sort: Shape::Text,
            })
            .collect();
        let heading = line(&columns, &names, |cell, _| cell.to_owned());
        let heading = self.console.styled(Style::Strong, heading).to_string();
        let _ = writeln!(self.text, "{}", self.console.cleaned(&heading));
        self.layout = Some(columns);
        for row in std::mem::take(&mut self.first) {
            self.table_row(&row);
        }
    }

    fn table_row(&mut self, row: &[Shown]) {
        let Some(columns) = &self.layout else {
            return;
        };
        let text = line(columns, row, |text, shape| match shape {
            Shape::Null => self.console.styled(Style::Dim, text).to_string(),
            _ => text.to_owned(),
        });
        self.text += &self.console.cleaned(&text);
        self.text.push('\n');
    }

    fn json_row(&mut self, row: &[Value<'_>]) {
        self.text.push('{');
        for (at, (name, value)) in self.names.iter().zip(row).enumerate() {
            if at > 0 {
                self.text.push(',');
            }
            push_json_text(&mut self.text, name);
            self.text.push(':');
            match value {
                Value::Null => self.text += "null",
                Value::Int(number) => {
                    let _ = write!(self.text, "{number}");
                }
                Value::Real(number) => match serde_json::Number::from_f64(*number) {
                    Some(number) => self.text += &number.to_string(),
                    None => self.text += "null",
                },
                Value::Text(text) => {
                    push_json_text(&mut self.text, &String::from_utf8_lossy(text));
                }
                Value::Blob(bytes) => push_json_text(&mut self.text, &hex(bytes)),
            }
        }
        self.text.push('}');
    }

    fn csv_row(&mut self, row: &[Value<'_>]) {
        for (at, value) in row.iter().enumerate() {
            if at > 0 {
                self.text.push(',');
            }
            match value {
                // An empty text has quotes, because it differs from NULL.
                Value::Null => {}
                Value::Text(text) => push_csv(&mut self.text, &String::from_utf8_lossy(text)),
                other => self.text += &plain(other),
            }
        }
        self.text.push('\n');
    }
}

/// Formats a value as text.
fn plain(value: &Value<'_>) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Int(number) => number.to_string(),
        Value::Real(number) => format!("{number:?}"),
        Value::Text(text) => sanitize(&String::from_utf8_lossy(text)).into_owned(),
        Value::Blob(bytes) => format!("x'{}'", hex(bytes)),
    }
}

fn push_json_text(to: &mut String, text: &str) {
    *to += &escaped_json(&serde_json::Value::from(text).to_string());
}

fn push_csv(to: &mut String, text: &str) {
    match text {
        "" => *to += "\"\"",
        text => *to += &cell(text),
    }
}

/// Narrows the widest text columns until all fit, as far as possible.
fn fit(columns: &mut [Column], room: usize) {
    let gaps = 2 * columns.len().saturating_sub(1);
    let mut total: usize = columns.iter().map(|column| column.width).sum();
    total += gaps;
    while total > room {
        let wide = columns.iter_mut().filter(|column| !column.is_number);
        let Some(widest) = wide.max_by_key(|column| column.width) else {
            return;
        };
        if widest.width <= NARROWEST {
            return;
        }
        widest.width -= 1;
        total -= 1;
    }
}

fn line(columns: &[Column], row: &[Shown], style: impl Fn(&str, Shape) -> String) -> String {
    let mut text = String::new();
    for (at, (column, cell)) in columns.iter().zip(row).enumerate() {
        if at > 0 {
            text += "  ";
        }
        let shown = match column.is_number {
            true => cell.text.clone(),
            false => cut_end(&cell.text, column.width),
        };
        let blanks = column
            .width
            .saturating_sub(console::measure_text_width(&shown));
        let blanks = " ".repeat(blanks);
        let styled = style(&shown, cell.sort);
        if column.is_number {
            text += &blanks;
            text += &styled;
        } else {
            text += &styled;
            text += &blanks;
        }
    }
    text.truncate(text.trim_end_matches(' ').len());
    text
}

impl Sink for Output {
    fn columns(&mut self, names: &[&str]) -> ControlFlow<()> {
        self.results += 1;
        self.rows_of_result = 0;
        self.layout = None;
        self.names = match self.form {
            Form::Json | Form::JsonLines => distinct(names),
            Form::Table => names
                .iter()
                .map(|name| sanitize(name).into_owned())
                .collect(),
            Form::Csv => names.iter().map(|name| (*name).to_owned()).collect(),
        };
        match self.form {
            Form::Json => self.text += if self.results > 1 { ",[" } else { "[" },
            Form::Csv => {
                if self.results > 1 {
                    self.text.push('\n');
                }
                let names = std::mem::take(&mut self.names);
                for (at, name) in names.iter().enumerate() {
                    if at > 0 {
                        self.text.push(',');
                    }
                    push_csv(&mut self.text, name);
                }
                self.text.push('\n');
            }
            Form::Table | Form::JsonLines => {}
        }
        ControlFlow::Continue(())
    }

    fn row(&mut self, row: &[Value<'_>]) -> ControlFlow<()> {
        self.rows_of_result += 1;
        self.rows.fetch_add(1, Ordering::Relaxed);
        match self.form {
            Form::Json => {
                self.text += if self.rows_of_result > 1 {
                    ",\n "
                } else {
                    "\n "
                };
                self.json_row(row);
            }
            Form::JsonLines => {
                self.json_row(row);
                self.text.push('\n');
            }
            Form::Csv => self.csv_row(row),
            Form::Table => {
                let cells: Vec<Shown> = row
                    .iter()
                    .map(|value| Shown {
                        text: plain(value),
                        sort: match value {
                            Value::Null => Shape::Null,
                            Value::Int(_) | Value::Real(_) => Shape::Number,
                            Value::Text(_) | Value::Blob(_) => Shape::Text,
                        },
                    })
                    .collect();
                if self.layout.is_some() {
                    self.table_row(&cells);
                } else {
                    self.first.push(cells);
                    if self.first.len() == FIRST {
                        self.lay_out();
                    }
                }
            }
        }
        self.flow()
    }

    fn end(&mut self) -> ControlFlow<()> {
        match self.form {
            Form::Json => self.text += if self.rows_of_result > 0 { "\n]" } else { "]" },
            Form::Table => {
                if self.layout.is_none() {
                    self.lay_out();
                }
            }
            Form::JsonLines | Form::Csv => {}
        }
        if self.form != Form::Json {
            // Print each result before the next one is computed.
            self.write();
        }
        self.flow()
    }
}

/// Makes names unique, because they become JSON keys: `id`, `id_2`, `id_3`.
fn distinct(names: &[&str]) -> Vec<String> {
    let mut all: Vec<String> = Vec::with_capacity(names.len());
    for name in names {
        let mut own = (*name).to_owned();
        let mut number = 1;
        while all.contains(&own) {
            number += 1;
            own = format!("{name}_{number}");
        }
        all.push(own);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(form: Form, results: &[(&[&str], &[&[Value<'_>]])]) -> String {
        let console = Console::from_raw_args(&["heaptap".into(), "--color=never".into()]);
        let mut output = Output::new(console, form);
        let mut text = String::new();
        for (names, rows) in results {
            let _ = output.columns(names);
            for row in *rows {
                let _ = output.row(row);
            }
            // Check the text before `end` would print it.
            if output.form == Form::Table && output.layout.is_none() {
                output.lay_out();
            } else if output.form == Form::Json {
                let _ = output.end();
            }
            text += &std::mem::take(&mut output.text);
        }
        text
    }

    const ROWS: &[&[Value<'_>]] = &[
        &[
            Value::Int(i64::MAX),
            Value::Text(b"a\x1b[2J,\"b\""),
            Value::Null,
        ],
        &[Value::Int(-1), Value::Text(b""), Value::Real(1.0)],
    ];

    #[test]
    fn tables_put_numbers_to_the_right_and_let_no_escape_through() {
        let text = written(Form::Table, &[(&["number", "text", "x"], ROWS)]);
        assert_eq!(
            text,
            "             number  text          x\n\
             9223372036854775807  a\u{fffd}[2J,\"b\"  NULL\n                 \
             -1              1.0\n"
        );
    }

    #[test]
    fn json_keeps_numbers_exact_and_keys_apart() {
        let text = written(Form::Json, &[(&["id", "id", "x"], ROWS)]);
        assert_eq!(
            text,
            "[\n {\"id\":9223372036854775807,\"id_2\":\"a\\u001b[2J,\\\"b\\\"\",\"x\":null},\
             \n {\"id\":-1,\"id_2\":\"\",\"x\":1.0}\n]"
        );
        let empty = written(Form::Json, &[(&["a"], &[]), (&["b"], &[])]);
        assert_eq!(empty, "[],[]");
    }

    #[test]
    fn csv_tells_nothing_from_an_empty_text() {
        let text = written(Form::Csv, &[(&["n", "t,", "x"], ROWS)]);
        assert_eq!(
            text,
            "n,\"t,\",x\n9223372036854775807,\"a\u{fffd}[2J,\"\"b\"\"\",\n-1,\"\",1.0\n"
        );
    }

    #[test]
    fn no_form_lets_a_formula_or_a_control_character_through() {
        let rows: &[&[Value<'_>]] = &[&[
            Value::Text(b"=cmd()"),
            Value::Int(-1),
            Value::Text("\u{9b}2J\u{202e}".as_bytes()),
        ]];
        let names: &[&str] = &["@name", "n", "t"];
        assert_eq!(
            written(Form::Csv, &[(names, rows)]),
            "'@name,n,t\n'=cmd(),-1,\u{fffd}2J\u{fffd}\n"
        );
        assert_eq!(
            written(Form::JsonLines, &[(names, rows)]),
            "{\"@name\":\"=cmd()\",\"n\":-1,\"t\":\"\\u009b2J\\u202e\"}\n"
        );
    }

    #[test]
    fn wide_tables_lose_text_before_numbers() {
        let column = |width, is_number| Column { width, is_number };
        let mut columns = [column(20, true), column(100, false), column(30, false)];
        fit(&mut columns, 80);
        assert_eq!(
            columns.iter().map(|c| c.width).collect::<Vec<_>>(),
            [20, 28, 28]
        );
        fit(&mut columns, 10);
        assert_eq!(
            columns.iter().map(|c| c.width).collect::<Vec<_>>(),
            [20, 12, 12]
        );
    }
}
