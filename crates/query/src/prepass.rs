//! What PerfettoSQL adds to SQL, taken off before SQLite sees a statement: `INCLUDE PERFETTO
//! MODULE`, `CREATE PERFETTO TABLE / VIEW / INDEX / FUNCTION / MACRO`, calls of macros and of
//! such functions. Owns which statements there are; what a module holds is the catalog's.
//!
//! Offsets into the text that was typed are kept through every rewriting, so that an error
//! points to the place that is meant.

mod expand;
mod tokens;

use std::collections::BTreeMap;
use std::ops::Range;

use expand::Rewriting;
use tokens::{Sort, Token, tokens, unquoted};

/// A statement refused or not understood before SQLite saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Why, for people.
    pub message: String,
    /// What to do instead.
    pub help: Option<String>,
    /// Where in the text.
    pub offset: usize,
}

impl Refusal {
    fn new(offset: usize, message: impl Into<String>) -> Refusal {
        Refusal {
            message: message.into(),
            help: None,
            offset,
        }
    }

    fn with_help(mut self, help: impl Into<String>) -> Refusal {
        self.help = Some(help.into());
        self
    }
}

/// A macro, or a function in SQL: both stand for a piece of SQL with arguments put in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Macro {
    /// Names of its arguments.
    pub arguments: Vec<String>,
    /// Its text, where `$name` stands for an argument.
    pub body: String,
    /// Called as `name(…)` and standing for a `SELECT` in brackets; else `name!(…)`.
    pub is_function: bool,
    /// It has no text: what it gives is worked out when it is called.
    pub is_worked: bool,
}

/// A call of a macro that has to be worked out before the statement runs, which reads what it
/// gives from a temporary table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkedCall {
    /// The macro, in lower case.
    pub name: String,
    /// Its arguments, calls in them replaced.
    pub arguments: Vec<String>,
    /// The table.
    pub table: String,
}

/// Macros and functions by their names in lower case.
pub type Macros = BTreeMap<String, Macro>;

/// What a statement does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Gives rows and changes nothing.
    Read,
    /// Makes a temporary table, view or index.
    Create {
        /// Where an older one is to be replaced.
        replacing: Option<Replacing>,
        /// It is a view: what it calls is read whenever it is.
        is_view: bool,
    },
    /// Drops a temporary table, view or index.
    Drop,
    /// Wants the tables of a module.
    Include(String),
    /// Defines a macro or function.
    Define(String, Macro),
}

/// What to run around a statement whose result takes the place of an older one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacing {
    /// Before it; empty for nothing.
    pub before: String,
    /// After it; empty for nothing.
    pub after: String,
}

/// What a table is called until it takes the place of an older one, which it may be made of.
const REPLACEMENT: &str = "\"_replacement\"";

/// A statement for SQLite.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// What it does.
    pub action: Action,
    /// What SQLite is to run; empty for [`Action::Include`] and [`Action::Define`].
    pub sql: String,
    /// What has to be worked out before, in order.
    pub worked: Vec<WorkedCall>,
    origin: Vec<(usize, usize, bool)>,
}

impl Prepared {
    /// Where in the typed text an offset into [`Prepared::sql`] comes from.
    pub fn origin_of(&self, offset: usize) -> usize {
        let piece = self.origin.iter().rev().find(|piece| piece.0 <= offset);
        match piece {
            Some(&(start, from, true)) => from + (offset - start),
            Some(&(_, from, false)) => from,
            None => 0,
        }
    }
}

/// The statements of a text: where each stands, without its semicolon. Those of nothing but
/// blanks and comments are left out. An `ORDER BY` behind a semicolon belongs to the statement
/// before: Perfetto's documentation of native heaps has one.
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

/// Whether a text that is being typed ends in a finished statement.
pub fn is_complete(sql: &str) -> bool {
    tokens(sql).last().is_none_or(|last| last.is_sign(sql, ';'))
}

/// Statements that SQLite knows and this database does not do, with what to do instead.
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
        "`.schema` lists columns; `SELECT * FROM pragma_table_info('process')` too",
    ),
    ("SELECT_RUN_METRIC", METRICS),
    ("RUN_METRIC", METRICS),
    ("DEFINE", METRICS),
    ("IMPORT", METRICS),
    ("COPY", OUTSIDE),
    ("SET", OUTSIDE),
    ("USE", OUTSIDE),
];
const WRITES: &str = "a profile is only read: `CREATE PERFETTO TABLE name AS SELECT …` keeps rows \
                      until the end, `--to FILE` writes a database";
const OUTSIDE: &str =
    "queries see this input alone; `--to FILE` writes a database to use elsewhere";
const METRICS: &str = "metrics are not there: their numbers come from the tables";

/// What a cursor over tokens needs.
struct Reader<'a> {
    sql: &'a str,
    tokens: &'a [Token],
    next: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<&'a Token> {
        self.tokens.get(self.next)
    }

    /// Takes the next token if it is that keyword.
    fn takes(&mut self, word: &str) -> bool {
        let is = self.peek().is_some_and(|token| token.is(self.sql, word));
        self.next += usize::from(is);
        is
    }

    fn takes_sign(&mut self, sign: char) -> bool {
        let is = self
            .peek()
            .is_some_and(|token| token.is_sign(self.sql, sign));
        self.next += usize::from(is);
        is
    }

    /// Where the next token stands.
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
        Err(Refusal::new(
            self.offset(),
            format!("{word} is expected here"),
        ))
    }

    fn name(&mut self, what: &str) -> Result<String, Refusal> {
        match self.peek() {
            Some(token) if matches!(token.sort, Sort::Word | Sort::Quoted) => {
                self.next += 1;
                Ok(unquoted(token.text(self.sql)))
            }
            _ => Err(Refusal::new(
                self.offset(),
                format!("{what} is expected here"),
            )),
        }
    }

    /// Passes over `(…)`, brackets inside it too; what it held.
    fn brackets(&mut self) -> Result<Range<usize>, Refusal> {
        let offset = self.offset();
        if !self.takes_sign('(') {
            return Err(Refusal::new(offset, "`(` is expected here"));
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
        Err(Refusal::new(offset, "this `(` is never closed"))
    }
}

/// Makes a statement ready for SQLite.
///
/// # Errors
/// Where it is none that this database does, or none that can be understood.
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
        return Err(Refusal::new(first, "there is no statement here"));
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
        return Refusal::new(
            offset,
            "a command such as .tables stands on a line of its own",
        )
        .with_help(
            "commands give text, not JSON or CSV; \
                 `SELECT name FROM sqlite_master` lists tables and views",
        );
    }
    let help = REFUSED.iter().find(|(known, _)| *known == word);
    let (message, help) = match help {
        Some((_, help)) => (format!("{word} is not done here"), (*help).to_owned()),
        None => (
            format!(
                "`{}` begins no statement",
                heaptap_model::untrusted::sanitize(word)
            ),
            "statements are SELECT, WITH, VALUES, EXPLAIN, INCLUDE PERFETTO MODULE, \
             CREATE PERFETTO TABLE, VIEW, INDEX, FUNCTION or MACRO, DROP"
                .to_owned(),
        ),
    };
    Refusal::new(offset, message).with_help(help)
}

/// `INCLUDE PERFETTO MODULE a.b.c`, where `a.b.*` is all of them.
fn include(mut reader: Reader<'_>) -> Result<Prepared, Refusal> {
    reader.takes("INCLUDE");
    reader.wants("PERFETTO")?;
    reader.wants("MODULE")?;
    let offset = reader.offset();
    let mut module = reader.name("the name of a module")?;
    while reader.takes_sign('.') {
        module.push('.');
        if reader.takes_sign('*') {
            module.push('*');
            break;
        }
        module += &reader.name("the rest of the module's name")?;
    }
    end(&reader)?;
    Ok(Prepared {
        action: Action::Include(module),
        sql: String::new(),
        worked: Vec::new(),
        origin: vec![(0, offset, false)],
    })
}

fn end(reader: &Reader<'_>) -> Result<(), Refusal> {
    match reader.peek() {
        None => Ok(()),
        Some(token) => Err(Refusal::new(
            token.at.start,
            "the end of the statement is expected here",
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
            let module = reader
                .tokens
                .iter()
                .position(|token| token.is(reader.sql, "USING"));
            let module = module.and_then(|at| reader.tokens.get(at + 1));
            let name = module.map_or("VIRTUAL TABLE", |token| token.text(reader.sql));
            let offset = module.map_or(offset, |token| token.at.start);
            let name = heaptap_model::untrusted::sanitize(name).to_uppercase();
            Err(Refusal::new(offset, format!("{name} is not done here")).with_help(
                "profiles have no slices to span: join heap_profile and heap_profile_allocation \
                 on ts",
            ))
        }
        other => Err(Refusal::new(
            offset,
            format!(
                "CREATE {} is not done here",
                heaptap_model::untrusted::sanitize(other)
            ),
        )
        .with_help("there are CREATE PERFETTO TABLE, VIEW, INDEX, FUNCTION and MACRO")),
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// `TABLE name [(columns)] AS SELECT …`.
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
    if reader
        .peek()
        .is_some_and(|token| token.is_sign(reader.sql, '('))
    {
        // The types that Perfetto checks; SQLite takes them from the SELECT.
        reader.brackets()?;
    }
    if !reader.takes("AS") {
        return Err(Refusal::new(
            reader.offset(),
            format!(
                "AS SELECT … is expected here: a {} holds what a query gives",
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

/// `INDEX name ON table(columns)`, of a table that a statement made.
fn create_index(mut reader: Reader<'_>, replace: bool) -> Result<Prepared, Refusal> {
    let offset = reader.offset();
    let name = reader.name("the name of an index")?;
    reader.wants("ON")?;
    let table = reader.name("the name of a table")?;
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
    Ok(Prepared {
        action: Action::Create {
            replacing: replace.then(|| Replacing {
                before: format!("DROP INDEX IF EXISTS temp.{}", quoted(&name)),
                after: String::new(),
            }),
            is_view: false,
        },
        sql,
        worked: Vec::new(),
        origin: vec![(0, offset, false)],
    })
}

/// `FUNCTION name(argument TYPE, …) RETURNS type AS SELECT …`, or a macro alike.
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
    // A type, or TABLE and its columns.
    reader.name("a type")?;
    if reader
        .peek()
        .is_some_and(|token| token.is_sign(reader.sql, '('))
    {
        reader.brackets()?;
    }
    if reader.takes("DELEGATES") {
        return Err(Refusal::new(
            offset,
            "functions that delegate are not done here",
        ));
    }
    reader.wants("AS")?;
    let body = match (reader.peek(), reader.tokens.last()) {
        (Some(first), Some(last)) => reader.sql[first.at.start..last.at.end].to_owned(),
        _ => return Err(Refusal::new(reader.offset(), "its text is expected here")),
    };
    let defined = Macro {
        arguments,
        body,
        is_function,
        is_worked: false,
    };
    Ok(Prepared {
        action: Action::Define(name.to_lowercase(), defined),
        sql: String::new(),
        worked: Vec::new(),
        origin: vec![(0, offset, false)],
    })
}

/// `DROP TABLE [IF EXISTS] name`, of what a statement made.
fn drop(mut reader: Reader<'_>) -> Result<Prepared, Refusal> {
    reader.takes("DROP");
    reader.takes("PERFETTO");
    let offset = reader.offset();
    let kind = reader.name("TABLE, VIEW or INDEX")?.to_uppercase();
    if !matches!(kind.as_str(), "TABLE" | "VIEW" | "INDEX") {
        let kind = heaptap_model::untrusted::sanitize(&kind).into_owned();
        return Err(Refusal::new(
            offset,
            format!("DROP {kind} is not done here"),
        ));
    }
    let unless = if reader.takes("IF") {
        reader.wants("EXISTS")?;
        "IF EXISTS "
    } else {
        ""
    };
    let offset = reader.offset();
    let name = reader.name("a name")?;
    end(&reader)?;
    Ok(Prepared {
        action: Action::Drop,
        sql: format!("DROP {kind} {unless}temp.{}", quoted(&name)),
        worked: Vec::new(),
        origin: vec![(0, offset, false)],
    })
}

#[cfg(test)]
mod tests;
