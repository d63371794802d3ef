//! Prompt of `query`: lines with history and completion, statements over several lines, and
//! commands that begin with a dot.

use std::borrow::Cow;
use std::path::PathBuf;

use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Editor, Helper};

use super::super::run::Losses;
use super::execution::execute;
use super::output::{Form, Output};
use crate::console::flags::context::Context;
use crate::console::{Console, Style, render};
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::untrusted::sanitize;
use heaptap_capture::session::Store;
use heaptap_query::{Database, Sort, TableInfo, prepass};

const HELP: [&str; 6] = [
    "Statements end with `;` and can span several lines. Ctrl-C cancels a running statement.",
    "  .tables [TEXT]    tables, views, functions and macros whose names contain TEXT",
    "  .schema NAME      columns of a table, with their meanings",
    "  .modules          modules for INCLUDE PERFETTO MODULE",
    "  .help             this help",
    "  .quit             exit; Ctrl-D does the same",
];

const COMMANDS: [&str; 5] = [".tables", ".schema", ".modules", ".help", ".quit"];

const KEYWORDS: [&str; 32] = [
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP BY",
    "ORDER BY",
    "LIMIT",
    "JOIN",
    "LEFT JOIN",
    "USING",
    "ON",
    "AS",
    "AND",
    "OR",
    "NOT",
    "NULL",
    "IS",
    "IN",
    "LIKE",
    "GLOB",
    "BETWEEN",
    "DISTINCT",
    "HAVING",
    "WITH",
    "RECURSIVE",
    "UNION ALL",
    "DESC",
    "COUNT",
    "SUM",
    "MAX",
    "MIN",
    "INCLUDE PERFETTO MODULE",
    "CREATE PERFETTO TABLE",
];

/// Completion of words. Continues the input until a statement is complete.
struct Words {
    known: Vec<String>,
}

impl Words {
    fn new(tables: &[TableInfo], modules: Vec<String>) -> Words {
        let mut known: Vec<String> = modules;
        for table in tables {
            known.push(match table.sort {
                Sort::Function => format!("{}(", table.name),
                Sort::Macro => format!("{}!(", table.name),
                _ => table.name.clone(),
            });
            known.extend(table.columns.iter().map(|column| column.name.clone()));
        }
        known.extend(KEYWORDS.iter().map(|&word| word.to_owned()));
        known.sort();
        known.dedup();
        Words { known }
    }

    /// Returns the start of the word before `end`, and its completions.
    fn fitting(&self, line: &str, end: usize) -> (usize, Vec<String>) {
        let before = &line[..end];
        if before.trim_start().starts_with('.') && !before.trim_start().contains(' ') {
            let start = end - before.trim_start().len();
            let fitting = COMMANDS.iter().filter(|c| c.starts_with(&before[start..]));
            return (start, fitting.map(|&c| c.to_owned()).collect());
        }
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        let start = before
            .char_indices()
            .rev()
            .take_while(|(_, c)| is_part(*c))
            .last()
            .map_or(end, |(at, _)| at);
        let word = before[start..].to_lowercase();
        // In `a.col`, complete the column, unless it is a module.
        let fits = |word: &str| -> Vec<String> {
            let known = self.known.iter();
            let fitting = known.filter(|known| known.to_lowercase().starts_with(word));
            fitting.cloned().collect()
        };
        if word.is_empty() {
            return (start, Vec::new());
        }
        let whole = fits(&word);
        // Lower case can have another length.
        match before[start..].rfind('.').map(|dot| start + dot + 1) {
            Some(column) if whole.is_empty() => (column, fits(&before[column..].to_lowercase())),
            _ => (start, whole),
        }
    }
}

impl Completer for Words {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        end: usize,
        _: &rustyline::Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, fitting) = self.fitting(line, end);
        let pairs = fitting.into_iter().map(|word| Pair {
            display: word.clone(),
            replacement: word,
        });
        Ok((start, pairs.collect()))
    }
}

impl Hinter for Words {
    type Hint = String;
}

impl Highlighter for Words {
    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        Cow::Borrowed(hint)
    }
}

impl Validator for Words {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match is_whole(context.input()) {
            true => ValidationResult::Valid(None),
            false => ValidationResult::Incomplete,
        })
    }
}

impl Helper for Words {}

fn is_whole(typed: &str) -> bool {
    typed.trim_start().starts_with('.') || prepass::is_complete(typed)
}

type Lines = Editor<Words, FileHistory>;

/// Reads and runs statements until the end of input. Reports missing data of Java heaps after each
/// statement.
pub(super) async fn converse(
    ctx: &Context,
    mut database: Database,
    losses: &Losses,
    form: Form,
) -> Result<(), Failure> {
    let console = &ctx.console;
    console.say("type `.help` for help; statements end with `;`, Ctrl-D exits");
    let history = history_file();
    let mut lines = Some(editor(&database, history.as_ref()).map_err(failed)?);
    while let Some(mut editor) = lines.take() {
        let asked = tokio::task::spawn_blocking(move || {
            let line = editor.readline("heaptap> ");
            (editor, line)
        });
        let (mut editor, line) = asked.await.map_err(|error| {
            Failure::new(
                ErrorClass::Bug,
                "no-prompt",
                format!("the prompt failed: {error}"),
            )
        })?;
        let typed = match line {
            Ok(typed) => typed,
            // Discard the typed line.
            Err(ReadlineError::Interrupted) => {
                lines = Some(editor);
                continue;
            }
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(failed(error)),
        };
        if !typed.trim().is_empty() {
            // Failing to save the history is not an error.
            let _ = editor.add_history_entry(typed.trim());
            if let Some(file) = &history {
                let _ = editor.append_history(file);
            }
        }
        if let Some(command) = typed.trim().strip_prefix('.') {
            match dot(console, &database, command) {
                Ok(true) => {}
                Ok(false) => break,
                Err(failure) => render::in_words(console, &failure),
            }
            lines = Some(editor);
            continue;
        }
        let output = Output::new(console.clone(), form);
        let rows = output.counter();
        let began = std::time::Instant::now();
        let (back, ran) = execute(ctx, database, typed, output, None).await?;
        database = back;
        match ran {
            Ok(()) => {
                let rows = rows.load(std::sync::atomic::Ordering::Relaxed);
                console.say(console.on_stderr(
                    Style::Dim,
                    format_args!(
                        "{} in {:.2} s",
                        heaptap_base::units::counted(rows, "row", "rows"),
                        began.elapsed().as_secs_f64()
                    ),
                ));
            }
            Err(failure) => render::in_words(console, &failure),
        }
        console.findings(&losses.take());
        if let Some(helper) = editor.helper_mut() {
            *helper = words(&database);
        }
        lines = Some(editor);
    }
    Ok(())
}

fn failed(error: ReadlineError) -> Failure {
    Failure::new(
        ErrorClass::Usage,
        "no-prompt",
        format!("cannot open a prompt in this terminal: {error}"),
    )
    .with_help("pass the statements: `heaptap query INPUT \"SELECT …\"`")
}

fn words(database: &Database) -> Words {
    let tables = database.tables().unwrap_or_else(|_| Vec::new());
    Words::new(&tables, database.modules().map(str::to_owned).collect())
}

fn editor(database: &Database, history: Option<&PathBuf>) -> Result<Lines, ReadlineError> {
    let config = Config::builder()
        .history_ignore_space(true)
        .completion_type(CompletionType::List)
        .build();
    let mut editor = Lines::with_config(config)?;
    editor.set_helper(Some(words(database)));
    if let Some(file) = history {
        // The file does not exist the first time.
        let _ = editor.load_history(file);
    }
    Ok(editor)
}

/// Returns the path of the history, next to the journals of sessions.
fn history_file() -> Option<PathBuf> {
    let store = Store::of_user().ok()?;
    Some(store.directory().parent()?.join("query-history"))
}

/// Part of a text with statements and commands.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// A command without its dot.
    Command(String),
    /// Statements, with empty lines for the preceding parts, so that errors show the line in the
    /// whole text.
    Statements(String),
}

/// Splits a text into parts. A command must begin its line, and no statement can be open there.
pub(super) fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut open = String::new();
    for (number, line) in text.split_inclusive('\n').enumerate() {
        match line.trim().strip_prefix('.') {
            Some(command) if prepass::is_complete(&open) => {
                if !open.trim().is_empty() {
                    pieces.push(Piece::Statements(std::mem::take(&mut open)));
                }
                pieces.push(Piece::Command(command.to_owned()));
                open = "\n".repeat(number + 1);
            }
            _ => open += line,
        }
    }
    if !open.trim().is_empty() {
        pieces.push(Piece::Statements(open));
    }
    pieces
}

/// Runs a command. Returns whether to continue.
///
/// # Errors
/// Returns an error if there is no such command or table.
pub(super) fn dot(console: &Console, database: &Database, typed: &str) -> Result<bool, Failure> {
    let typed = typed.trim_end_matches(';');
    let (command, rest) = typed.split_once(char::is_whitespace).unwrap_or((typed, ""));
    let rest = rest.trim();
    match command {
        "quit" | "exit" | "q" => return Ok(false),
        "help" | "h" => HELP.iter().for_each(|line| console.laid_out(line)),
        "modules" => {
            for module in database.modules() {
                console.data(module);
            }
        }
        "tables" => {
            let all = database.tables()?;
            // Wildcards as in SQLite's own shell.
            let wanted = rest.trim_matches(['%', '*']);
            let shown = || all.iter().filter(|table| table.name.contains(wanted));
            if shown().next().is_none() {
                let message = format!("no table has `{}` in its name", sanitize(wanted));
                return Err(Failure::new(ErrorClass::Usage, "sql", message)
                    .with_help("list the tables with `.tables`"));
            }
            list(console, shown());
        }
        "schema" => {
            let all = database.tables()?;
            let wanted = rest.trim_matches('"');
            match all
                .iter()
                .rev()
                .find(|table| table.name.eq_ignore_ascii_case(wanted))
            {
                Some(table) => schema(console, table),
                None => {
                    let message = format!("cannot find the table `{}`", sanitize(wanted));
                    return Err(Failure::new(ErrorClass::Usage, "sql", message)
                        .with_help("list the tables with `.tables`"));
                }
            }
        }
        other => {
            let message = format!("unknown command `.{}`", sanitize(other));
            return Err(Failure::new(ErrorClass::Usage, "sql", message)
                .with_help("list the commands with `.help`"));
        }
    }
    Ok(true)
}

/// Prints the tables with their descriptions, on one line each if the terminal is wide enough,
/// otherwise on two.
fn list<'t>(console: &Console, tables: impl Iterator<Item = &'t TableInfo>) {
    let tables: Vec<&TableInfo> = tables.collect();
    let widest = tables.iter().map(|table| table.about.chars().count()).max();
    let whole = NAME_COLUMNS + SORT_COLUMNS + 4 + widest.unwrap_or(0);
    let is_narrow = console
        .stdout_width()
        .is_some_and(|columns| columns < whole);
    for table in tables {
        let sort = match table.sort {
            Sort::Table => "table",
            Sort::View => "view",
            Sort::Function => "function",
            Sort::Macro => "macro",
            Sort::Temporary => "temp",
        };
        let name = sanitize(&table.name);
        let blanks = " ".repeat(NAME_COLUMNS.saturating_sub(name.len()));
        let name = console.styled(Style::Strong, name);
        let about = console.styled(Style::Dim, table.about);
        match is_narrow {
            true => {
                console.data(format_args!("{name}  {sort}"));
                console.data(format_args!("    {about}"));
            }
            false => console.data(format_args!(
                "{name}{blanks}  {sort:<SORT_COLUMNS$}  {about}"
            )),
        }
    }
}

/// Width of the names of tables in a list, in columns.
const NAME_COLUMNS: usize = 48;
const SORT_COLUMNS: usize = 8;

fn schema(console: &Console, table: &TableInfo) {
    console.in_style(Style::Strong, sanitize(&table.name));
    if !table.about.is_empty() {
        console.data(table.about);
    }
    if let Some(module) = table.module {
        console.data(format_args!("from the module {module}"));
    }
    for column in &table.columns {
        let argument = if column.hidden { "argument  " } else { "" };
        console.data(format_args!(
            "  {:<28}  {:<8}  {argument}{}",
            sanitize(&column.name),
            column.kind,
            console.styled(Style::Dim, column.about)
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitting(line: &str) -> (usize, Vec<String>) {
        let words = Words {
            known: [
                "heap_profile",
                "heap_profile_allocation",
                "size",
                "android.memory.x",
                "ORDER BY",
            ]
            .map(str::to_owned)
            .to_vec(),
        };
        words.fitting(line, line.len())
    }

    #[test]
    fn words_are_completed_where_they_stand() {
        let both = vec![
            "heap_profile".to_owned(),
            "heap_profile_allocation".to_owned(),
        ];
        assert_eq!(fitting("SELECT * FROM Heap_"), (14, both));
        assert_eq!(fitting("SELECT a.si"), (9, vec!["size".to_owned()]));
        assert_eq!(
            fitting("INCLUDE PERFETTO MODULE android.m"),
            (24, vec!["android.memory.x".to_owned()])
        );
        assert_eq!(fitting("é ord"), (3, vec!["ORDER BY".to_owned()]));
        assert_eq!(fitting(" .ta"), (1, vec![".tables".to_owned()]));
        assert_eq!(fitting("SELECT ").1, Vec::<String>::new());
    }

    #[test]
    fn commands_stand_between_statements() {
        let statements = |text: &str| Piece::Statements(text.to_owned());
        let command = |text: &str| Piece::Command(text.to_owned());
        assert_eq!(pieces(".tables\n"), [command("tables")]);
        assert_eq!(
            pieces("SELECT 1;\n  .schema t\n.help\nSELECT\n.5;"),
            [
                statements("SELECT 1;\n"),
                command("schema t"),
                command("help"),
                statements("\n\n\nSELECT\n.5;")
            ]
        );
        assert_eq!(pieces("SELECT 1\n.help"), [statements("SELECT 1\n.help")]);
        assert_eq!(pieces(" \n"), []);
    }

    #[test]
    fn statements_go_on_until_they_are_whole() {
        assert!(is_whole(""));
        assert!(is_whole(".tables heap"));
        assert!(is_whole("SELECT 1;"));
        assert!(!is_whole("SELECT ';"));
        assert!(!is_whole("SELECT 1"));
    }
}
