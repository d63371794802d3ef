//! Open databases of an app: one line each, with or without separate cache statistics (since
//! Android 14), and pools.

use super::line::{self, Lines};
use super::number;

/// A database or a pool of connections to it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Database {
    /// Name or path.
    pub name: String,
    /// Page size, bytes.
    pub page: Option<i64>,
    /// Database size, bytes.
    pub size: Option<i64>,
    /// Lookaside memory, bytes.
    pub lookaside: Option<i64>,
    /// Hits, misses and size of the statement cache as printed: `151/32/18`, `1k/21/3`, or three
    /// columns.
    pub cache: Vec<String>,
    /// True if the figures are those of a connection pool.
    pub pool: bool,
}

/// Databases of a process.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Databases {
    /// One value per database; headers and headings are unknown lines.
    pub lines: Lines<Database>,
}

/// Columns where the fields before the cache end.
const ENDS: [usize; 3] = [10, 19, 34];

impl Databases {
    pub(super) fn read(lines: &[&str]) -> Databases {
        let mut databases = Databases::default();
        let mut pool = false;
        for raw in lines {
            pool = (pool || raw.trim() == "POOL STATS") && raw.trim() != "PER CONNECTION STATS";
            match database(raw) {
                Some(mut found) => {
                    found.pool = pool;
                    databases.lines.push(found);
                }
                None => databases.lines.text(raw),
            }
        }
        databases
    }

    /// Returns lines that are neither a database nor a header.
    pub(super) fn unknown(&self) -> Vec<&str> {
        let header = |line: &str| {
            line.ends_with("Dbname") || matches!(line.trim(), "PER CONNECTION STATS" | "POOL STATS")
        };
        self.lines.unknown().filter(|line| !header(line)).collect()
    }
}

/// Returns whether a word is a cache in one field: `151/32/18`.
fn is_cache(word: &str) -> bool {
    let number = |part: &str| {
        let part = part.strip_suffix('k').unwrap_or(part);
        number::integer(part).is_some()
    };
    word.split('/').count() == 3 && word.split('/').all(number)
}

fn database(text: &str) -> Option<Database> {
    let words = line::words(text);
    let mut found = Database::default();
    let mut fields = Vec::new();
    for word in words.iter().take(6) {
        if is_cache(word.text) {
            found.cache.push(word.text.to_owned());
            break;
        }
        match number::integer(word.text) {
            Some((value, _)) => fields.push((value, word)),
            None => break,
        }
    }
    if found.cache.is_empty() {
        // Three columns of cache statistics; the columns before them can be blank.
        let cache = fields.split_off(fields.len().checked_sub(3)?);
        found.cache = cache.iter().map(|(_, word)| word.text.to_owned()).collect();
    }
    let used = fields.len() + found.cache.len();
    let last = words.get(used.checked_sub(1)?)?;
    let rest = text.get(last.from + last.text.len()..)?;
    found.name = rest
        .strip_prefix("  ")
        .or(rest.strip_prefix(' '))?
        .to_owned();
    if found.name.trim().is_empty() {
        return None;
    }
    let mut places = [None; 3];
    let all = fields.len() == 3;
    for (at, (value, word)) in fields.into_iter().enumerate() {
        let place = match all {
            true => Some(at),
            false => ENDS.iter().position(|end| *end == word.end),
        };
        *places.get_mut(place?)? = Some(value);
    }
    let [page, size, lookaside] = places;
    found.page = bytes(page)?;
    found.size = bytes(size)?;
    found.lookaside = lookaside;
    Some(found)
}

/// Converts kB to bytes: `Some(None)` for a blank field, `None` on overflow.
fn bytes(kb: Option<i64>) -> Option<Option<i64>> {
    match kb {
        Some(kb) => number::bytes(kb).map(Some),
        None => Some(None),
    }
}
