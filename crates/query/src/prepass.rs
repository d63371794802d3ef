//! Extensions of PerfettoSQL, handled before SQLite gets a statement: `INCLUDE PERFETTO MODULE`,
//! `CREATE PERFETTO TABLE / VIEW / INDEX / FUNCTION / MACRO`, and calls of macros and of such
//! functions. Decides which statements are supported; the contents of modules are in the catalog.
//!
//! Offsets into the typed text are kept through every rewriting, so that an error points to the
//! right position.

mod expand;
mod statement;
mod tokens;

use std::ops::Range;

pub use statement::{Action, Macro, Macros, Prepared, Refusal, Replacing, WorkedCall};

use expand::Rewriting;
use tokens::{Sort, Token, tokens, unquoted};

/// Name of a table until it replaces an existing one, which it might read.
const REPLACEMENT: &str = "\"_replacement\"";

/// Returns the ranges of the statements of a text, without semicolons. Statements of only blanks
/// and comments are left out. An `ORDER BY` after a semicolon belongs to the previous statement:
/// Perfetto's documentation of native heaps has such a query.
pub fn statements(sql: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut open: Option<Range<usize>> = None;
    for token in tokens(sql) {
        if token.is_sign(sql, ';') {
            found.extend(open.take());
        } else {
            if open.is_none() && token.is(sql, "ORDER") {
                open = found.pop();
            }
            let start = open.map_or(token.at.start, |range| range.start);
            open = Some(start..token.at.end);
        }
    }
    found.extend(open);
    found
}

/// Returns whether a partly typed text ends in a finished statement.
pub fn is_complete(sql: &str) -> bool {
    tokens(sql).last().is_none_or(|last| last.is_sign(sql, ';'))
}

/// Statements that SQLite supports and this database does not, with the next step for the user.
const REFUSED: [(&str, &str); 24] = [
    ("INSERT", WRITES),
    ("UPDATE", WRITES),
    ("DELETE", WRITES),
    ("REPLACE", WRITES),
    ("ALTER", WRITES),
    ("BEGIN", WRITES),
    ("COMMIT", WRITES),
    ("END", WRITES),
    ("ROLLBACK", WRITES),
    ("SAVEPOINT", WRITES),
    ("RELEASE", WRITES),
    ("ATTACH", OUTSIDE),
    ("DETACH", OUTSIDE),
    ("VACUUM", OUTSIDE),
    ("ANALYZE", OUTSIDE),
    ("REINDEX", OUTSIDE),
    (
        "PRAGMA",
        "list columns with `.schema` or `SELECT * FROM pragma_table_info('process')`",
    ),
    ("SELECT_RUN_METRIC", METRICS),
    ("RUN_METRIC", METRICS),
    ("DEFINE", METRICS),
    ("IMPORT", METRICS),
    ("COPY", OUTSIDE),
    ("SET", OUTSIDE),
    ("USE", OUTSIDE),
];
const WRITES: &str = "keep rows with `CREATE PERFETTO TABLE name AS SELECT …` or write a database \
                      with `heaptap query INPUT -o FILE`";
const OUTSIDE: &str = "write a database for other tools with `heaptap query INPUT -o FILE`; \
                       queries read only this input";
const METRICS: &str = "compute the numbers of the metric from tables and views, such as \
                       android_heap_graph_stats; `.tables` lists them";

/// Returns the next step for the user of a function that does not exist.
pub(super) fn help_for_function(name: &str) -> &'static str {
    match name.to_uppercase().as_str() {
        "RUN_METRIC" => METRICS,
        "IMPORT" => "use INCLUDE PERFETTO MODULE; tables of modules are always available",
        "CREATE_FUNCTION" | "CREATE_VIEW_FUNCTION" => {
            "use CREATE PERFETTO FUNCTION name(a INT, …) RETURNS type AS SELECT …"
        }
        "EXPERIMENTAL_PROFILE"
        | "CAT_STACKS"
        | "STACK_FROM_STACK_PROFILE_CALLSITE"
        | "STACK_FROM_STACK_PROFILE_FRAME" => {
            "write pprof profiles with `heaptap convert INPUT -o DIR`"
        }
        _ => "`SELECT DISTINCT name FROM pragma_function_list` and `.tables` list functions",
    }
}

/// Cursor over tokens.
struct Reader<'a> {
    sql: &'a str,
    tokens: &'a [Token],
    next: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<&'a Token> {
        self.tokens.get(self.next)
    }

    /// Skips the next token if it is that keyword.
    fn takes(&mut self, word: &str) -> bool {
        let is = self.peek().is_some_and(|token| token.is(self.sql, word));
        self.next += usize::from(is);
        is
    }

    fn is_at(&self, sign: char) -> bool {
        let next = self.peek();
        next.is_some_and(|token| token.is_sign(self.sql, sign))
    }

    fn takes_sign(&mut self, sign: char) -> bool {
        let is = self.is_at(sign);
        self.next += usize::from(is);
        is
    }

    /// Returns the offset of the next token.
    fn offset(&self) -> usize {
        match self.peek() {
            Some(token) => token.at.start,
            None => self.tokens.last().map_or(0, |last| last.at.end),
        }
    }

    fn wants(&mut self, word: &str) -> Result<(), Refusal> {
        if self.takes(word) {
            return Ok(());
        }
        Err(Refusal::new(self.offset(), format!("expected {word}")))
    }

    fn name(&mut self, what: &str) -> Result<String, Refusal> {
        match self.peek() {
            Some(token) if matches!(token.sort, Sort::Word | Sort::Quoted) => {
                self.next += 1;
                Ok(unquoted(token.text(self.sql)))
            }
            _ => Err(Refusal::new(self.offset(), format!("expected {what}"))),
        }
    }

    /// Skips `(…)` with nested brackets and returns the range of its contents.
    fn brackets(&mut self) -> Result<Range<usize>, Refusal> {
        let offset = self.offset();
        if !self.takes_sign('(') {
            return Err(Refusal::new(offset, "expected `(`"));
        }
        let from = self.next;
        let mut depth = 1;
        while let Some(token) = self.peek() {
            self.next += 1;
            depth += i32::from(token.is_sign(self.sql, '('));
            depth -= i32::from(token.is_sign(self.sql, ')'));
            if depth == 0 {
                return Ok(from..self.next - 1);
            }
        }
        Err(Refusal::new(offset, "this `(` is not closed"))
    }
}

/// Prepares a statement for SQLite.
///
/// # Errors
/// Returns an error if the statement is not supported or cannot be parsed.
pub fn prepare(sql: &str, statement: &Range<usize>, macros: &Macros) -> Result<Prepared, Refusal> {
    let mut all = tokens(&sql[statement.clone()]);
    for token in &mut all {
        token.at.start += statement.start;
        token.at.end += statement.start;
    }
    let reader = Reader {
        sql,
        tokens: &all,
        next: 0,
    };
    let first = reader.offset();
    let Some(word) = reader.peek().map(|token| token.text(sql).to_uppercase()) else {
        return Err(Refusal::new(first, "the statement is empty"));
    };
    match word.as_str() {
        "SELECT" | "WITH" | "VALUES" | "EXPLAIN" | "(" => {
            let mut rewriting = Rewriting::new(sql, macros);
            rewriting.tokens(&all)?;
            Ok(rewriting.finish(Action::Read))
        }
        "INCLUDE" => include(reader),
        "CREATE" => create(reader, macros),
        "DROP" => drop(reader),
        word => Err(refused(first, word)),
    }
}

fn refused(offset: usize, word: &str) -> Refusal {
    if word == "." {
        return Refusal::new(offset, "a command such as .tables must be on its own line")
            .with_help(
                "list tables and views with `SELECT name FROM sqlite_master`; commands do not \
             support JSON and CSV",
            );
    }
    let help = REFUSED.iter().find(|(known, _)| *known == word);
    let (message, help) = match help {
        Some((_, help)) => (format!("{word} is not supported"), (*help).to_owned()),
        None => (
            format!(
                "unknown statement `{}`",
                heaptap_base::untrusted::sanitize(word)
            ),
            "use SELECT, WITH, VALUES, EXPLAIN, INCLUDE PERFETTO MODULE, DROP, or \
             CREATE PERFETTO TABLE, VIEW, INDEX, FUNCTION or MACRO"
                .to_owned(),
        ),
    };
    Refusal::new(offset, message).with_help(help)
}

/// Parses `INCLUDE PERFETTO MODULE a.b.c`, `a.b.*` for all modules below `a.b`, or `*`.
fn include(mut reader: Reader<'_>) -> Result<Prepared, Refusal> {
    reader.takes("INCLUDE");
    reader.wants("PERFETTO")?;
    reader.wants("MODULE")?;
    let offset = reader.offset();
    let mut module = match reader.takes_sign('*') {
        true => "*".to_owned(),
        false => reader.name("a module name")?,
    };
    while reader.takes_sign('.') {
        module.push('.');
        if reader.takes_sign('*') {
            module.push('*');
            break;
        }
        module += &reader.name("the rest of the module name")?;
    }
    end(&reader)?;
    let action = Action::Include(module);
    Ok(Prepared::written(action, String::new(), offset))
}

fn end(reader: &Reader<'_>) -> Result<(), Refusal> {
    match reader.peek() {
        None => Ok(()),
        Some(token) => Err(Refusal::new(
            token.at.start,
            "expected the end of the statement",
        )),
    }
}

fn create(mut reader: Reader<'_>, macros: &Macros) -> Result<Prepared, Refusal> {
    reader.takes("CREATE");
    let mut replace = false;
    if reader.takes("OR") {
        reader.wants("REPLACE")?;
        replace = true;
    }
    let perfetto = reader.takes("PERFETTO");
    if !perfetto && !reader.takes("TEMP") {
        reader.takes("TEMPORARY");
    }
    let offset = reader.offset();
    let what = reader.name("TABLE, VIEW, INDEX, FUNCTION or MACRO")?;
    match what.to_uppercase().as_str() {
        kind @ ("TABLE" | "VIEW") => create_from_select(reader, kind, replace, macros),
        "INDEX" => create_index(reader, replace),
        "FUNCTION" if perfetto => define(reader, true),
        "MACRO" if perfetto => define(reader, false),
        "VIRTUAL" => {
            let mut tokens = reader.tokens.iter();
            let using = tokens.find(|token| token.is(reader.sql, "USING"));
            let module = using.and_then(|_| tokens.next());
            let name = module.map_or("VIRTUAL TABLE", |token| token.text(reader.sql));
            let offset = module.map_or(offset, |token| token.at.start);
            let name = heaptap_base::untrusted::sanitize(name).to_uppercase();
            Err(
                Refusal::new(offset, format!("{name} is not supported")).with_help(
                    "join heap_profile and heap_profile_allocation on ts; profiles do not have \
                 slices to span",
                ),
            )
        }
        other => Err(Refusal::new(
            offset,
            format!(
                "CREATE {} is not supported",
                heaptap_base::untrusted::sanitize(other)
            ),
        )
        .with_help("use CREATE PERFETTO TABLE, VIEW, INDEX, FUNCTION or MACRO")),
    }
}

/// Returns a name in quotes, as SQL for SQLite.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Parses `TABLE name [(columns)] AS SELECT …`.
fn create_from_select(
    mut reader: Reader<'_>,
    kind: &str,
    replace: bool,
    macros: &Macros,
) -> Result<Prepared, Refusal> {
    let unless = if reader.takes("IF") {
        reader.wants("NOT")?;
        reader.wants("EXISTS")?;
        "IF NOT EXISTS "
    } else {
        ""
    };
    let offset = reader.offset();
    let name = reader.name("a name")?;
    if reader.is_at('(') {
        // Perfetto checks these types; SQLite derives types from the SELECT.
        reader.brackets()?;
    }
    if !reader.takes("AS") {
        return Err(Refusal::new(
            reader.offset(),
            format!(
                "expected AS SELECT …: a {} is created from a query",
                kind.to_lowercase()
            ),
        ));
    }
    let mut rewriting = Rewriting::new(reader.sql, macros);
    let name = quoted(&name);
    let is_view = kind == "VIEW";
    let (made, replacing) = match (replace, is_view) {
        (false, _) => (name.as_str(), None),
        (true, true) => {
            let before = format!("DROP VIEW IF EXISTS temp.{name}");
            let after = String::new();
            (name.as_str(), Some(Replacing { before, after }))
        }
        (true, false) => {
            let before = String::new();
            let after = format!(
                "DROP TABLE IF EXISTS temp.{name}; ALTER TABLE temp.{REPLACEMENT} RENAME TO {name}"
            );
            (REPLACEMENT, Some(Replacing { before, after }))
        }
    };
    let head = format!("CREATE TEMP {kind} {unless}{made} AS ");
    rewriting.insert(&head, offset);
    rewriting.tokens(&reader.tokens[reader.next..])?;
    Ok(rewriting.finish(Action::Create { replacing, is_view }))
}

/// Parses `INDEX name ON table(columns)` for a table that a statement created.
fn create_index(mut reader: Reader<'_>, replace: bool) -> Result<Prepared, Refusal> {
    let offset = reader.offset();
    let name = reader.name("an index name")?;
    reader.wants("ON")?;
    let table = reader.name("a table name")?;
    let columns = reader.brackets()?;
    end(&reader)?;
    let mut columns = reader.tokens[columns].iter();
    let mut list = String::new();
    for token in columns.by_ref() {
        list += token.text(reader.sql);
        list.push(' ');
    }
    let sql = format!(
        "CREATE INDEX temp.{} ON {} ({})",
        quoted(&name),
        quoted(&table),
        list.trim_end()
    );
    let action = Action::Create {
        replacing: replace.then(|| Replacing {
            before: format!("DROP INDEX IF EXISTS temp.{}", quoted(&name)),
            after: String::new(),
        }),
        is_view: false,
    };
    Ok(Prepared::written(action, sql, offset))
}

/// Parses `FUNCTION name(argument TYPE, …) RETURNS type AS SELECT …`, or a macro in the same form.
fn define(mut reader: Reader<'_>, is_function: bool) -> Result<Prepared, Refusal> {
    let offset = reader.offset();
    let name = reader.name("a name")?;
    let inside = reader.brackets()?;
    let mut arguments = Vec::new();
    let mut at_start = true;
    let mut depth = 0;
    for token in &reader.tokens[inside] {
        depth += i32::from(token.is_sign(reader.sql, '('));
        depth -= i32::from(token.is_sign(reader.sql, ')'));
        if depth == 0 && token.is_sign(reader.sql, ',') {
            at_start = true;
        } else if at_start {
            arguments.push(unquoted(token.text(reader.sql)).to_lowercase());
            at_start = false;
        }
    }
    reader.wants("RETURNS")?;
    // A type, or TABLE with its columns.
    reader.name("a type")?;
    let returns_table = reader.is_at('(');
    if returns_table {
        reader.brackets()?;
    }
    if reader.takes("DELEGATES") {
        return Err(
            Refusal::new(offset, "functions that delegate are not supported")
                .with_help("write the body of the function as AS SELECT …"),
        );
    }
    reader.wants("AS")?;
    let body = match (reader.peek(), reader.tokens.last()) {
        (Some(first), Some(last)) => reader.sql[first.at.start..last.at.end].to_owned(),
        _ => {
            return Err(Refusal::new(
                reader.offset(),
                "expected a function or macro body",
            ));
        }
    };
    let defined = Macro {
        arguments,
        body,
        is_function,
        returns_table,
        is_worked: false,
    };
    let action = Action::Define(name.to_lowercase(), defined);
    Ok(Prepared::written(action, String::new(), offset))
}

/// Parses `DROP TABLE [IF EXISTS] name` for something that a statement created.
fn drop(mut reader: Reader<'_>) -> Result<Prepared, Refusal> {
    reader.takes("DROP");
    reader.takes("PERFETTO");
    let offset = reader.offset();
    let kind = reader.name("TABLE, VIEW or INDEX")?.to_uppercase();
    if !matches!(kind.as_str(), "TABLE" | "VIEW" | "INDEX") {
        let kind = heaptap_base::untrusted::sanitize(&kind).into_owned();
        return Err(
            Refusal::new(offset, format!("DROP {kind} is not supported")).with_help(
                "drop a TABLE, VIEW or INDEX, or replace a function or macro with \
             CREATE OR REPLACE PERFETTO",
            ),
        );
    }
    let unless = if reader.takes("IF") {
        reader.wants("EXISTS")?;
        "IF EXISTS "
    } else {
        ""
    };
    let offset = reader.offset();
    let name = reader.name("a name")?;
    if kind == "INDEX" && reader.takes("ON") {
        // Names of indexes are unique without their table.
        reader.name("a table name")?;
    }
    end(&reader)?;
    let sql = format!("DROP {kind} {unless}temp.{}", quoted(&name));
    Ok(Prepared::written(Action::Drop, sql, offset))
}

#[cfg(test)]
mod tests;
