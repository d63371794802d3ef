//! Parsing of `showmap` output: mappings summed by name, as a table, CSV or JSON. Columns are
//! identified by their headings, because versions have different ones.

use serde_json::Value;

use super::mapping::{Form, Mapping, Smaps};
use super::read::{MAX_MAPPINGS, STRANGE_KEPT, SmapsError, set_name};
use heaptap_base::untrusted::sanitize_bytes;
use heaptap_model::smaps::Field;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Figure(Field),
    /// Not interpreted, but summed by heading.
    Other(&'static str),
    Start,
    End,
    Count,
    /// Not read.
    Flags,
    Name,
}

/// Returns the column for a heading of CSV or JSON, ignoring case and blanks.
fn column(heading: &str) -> Option<Column> {
    let heading: String = heading
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '#')
        .map(|c| c.to_ascii_lowercase())
        .take(64)
        .collect();
    Some(match heading.as_str() {
        "virtualsize" | "size" => Column::Figure(Field::Size),
        "rss" => Column::Figure(Field::Rss),
        "pss" => Column::Figure(Field::Pss),
        "sharedclean" => Column::Figure(Field::SharedClean),
        "shareddirty" => Column::Figure(Field::SharedDirty),
        "privateclean" => Column::Figure(Field::PrivateClean),
        "privatedirty" => Column::Figure(Field::PrivateDirty),
        "swap" => Column::Figure(Field::Swap),
        "swappss" => Column::Figure(Field::SwapPss),
        "locked" => Column::Figure(Field::Locked),
        "anonhugepages" => Column::Other("AnonHugePages"),
        "shmempmdmapped" => Column::Other("ShmemPmdMapped"),
        "filepmdmapped" => Column::Other("FilePmdMapped"),
        "sharedhugetlb" => Column::Other("Shared_Hugetlb"),
        "privatehugetlb" => Column::Other("Private_Hugetlb"),
        "startaddr" | "start" => Column::Start,
        "endaddr" | "end" => Column::End,
        "#" | "count" => Column::Count,
        "flags" => Column::Flags,
        "object" => Column::Name,
        _ => return None,
    })
}

/// Parses showmap's output; returns `None` for other texts.
pub(super) fn parse(text: &[u8]) -> Option<Result<Smaps, SmapsError>> {
    let text = text.trim_ascii_start();
    if text.starts_with(b"[") {
        return of_json(text);
    }
    // The headings are in the first lines.
    let head = String::from_utf8_lossy(&text[..text.len().min(8 << 10)]);
    let is_table = |line: &str| {
        let mut words = line.split_whitespace().skip_while(|word| *word == "addr");
        words.next() == Some("size") && words.last() == Some("object")
    };
    if let Some(at) = head.lines().position(is_table) {
        return Some(of_table(&String::from_utf8_lossy(text), at));
    }
    let is_csv = |line: &str| {
        let cells = cells(line);
        cells.len() > 4 && column(&cells[0]).is_some() && cells.iter().any(|c| c == "object")
    };
    let at = head.lines().position(is_csv)?;
    Some(of_csv(&String::from_utf8_lossy(text), at))
}

/// A row that is being parsed.
#[derive(Default)]
struct Row {
    mapping: Mapping,
    others: Vec<(&'static str, u64)>,
}

impl Row {
    fn set(&mut self, column: Column, cell: &str) -> Option<()> {
        let cell = cell.trim();
        let number = || cell.parse::<u64>().ok();
        let mapping = &mut self.mapping;
        match column {
            Column::Figure(field) => mapping.sums.set(field, number()?.saturating_mul(1024)),
            Column::Other(name) => self.others.push((name, number()?.saturating_mul(1024))),
            Column::Start => mapping.start = address(cell)?,
            Column::End => mapping.end = address(cell)?,
            Column::Count => mapping.count = number()?,
            Column::Flags => {}
            Column::Name => set_name(mapping, object(cell)),
        }
        Some(())
    }
}

/// Returns the kernel's name of a mapping: showmap writes `[anon]` if there is none, and marks the
/// memory behind a library.
fn object(cell: &str) -> &str {
    match cell {
        "[anon]" => "",
        named => named.strip_suffix(" [bss]").unwrap_or(named),
    }
}

fn address(cell: &str) -> Option<u64> {
    match cell {
        "" => Some(0),
        cell => u64::from_str_radix(cell.strip_prefix("0x").unwrap_or(cell), 16).ok(),
    }
}

/// Adds a row; returns an error if no process has that many.
fn add(smaps: &mut Smaps, row: Row) -> Result<(), SmapsError> {
    if smaps.mappings.len() >= MAX_MAPPINGS {
        return Err(SmapsError::TooMany);
    }
    for (name, bytes) in row.others {
        let sum = smaps.others.entry(name.to_owned()).or_default();
        *sum = sum.saturating_add(bytes);
    }
    smaps.mappings.push(Mapping {
        count: row.mapping.count.max(1),
        ..row.mapping
    });
    Ok(())
}

fn strange(smaps: &mut Smaps, line: &str) {
    smaps.strange_count += 1;
    if smaps.strange.len() < STRANGE_KEPT {
        smaps.strange.push(sanitize_bytes(line.as_bytes()));
    }
}

fn finished(mut smaps: Smaps) -> Result<Smaps, SmapsError> {
    if smaps.mappings.is_empty() {
        let first_line = smaps.strange.first().cloned();
        return Err(SmapsError::NotSmaps {
            // At most the total, as of a process that ends.
            first_line: first_line.unwrap_or_else(|| "the table of showmap has no rows".to_owned()),
        });
    }
    let each = smaps.mappings.iter().all(|mapping| mapping.end > 0);
    smaps.form = match each {
        true => Form::Mappings,
        false => Form::ByName,
    };
    Ok(smaps)
}

/// Parses the table. The second heading line names the columns. Of two `clean dirty` pairs, the
/// first one is shared.
fn of_table(text: &str, heading: usize) -> Result<Smaps, SmapsError> {
    let mut smaps = Smaps::default();
    let mut lines = text.lines();
    let names = lines.nth(heading).unwrap_or_default();
    let mut columns = Vec::new();
    let (mut clean, mut dirty, mut mapped, mut large, mut addresses) = (0, 0, 0, 0, 0);
    let nth = |count: &mut u32| {
        *count += 1;
        *count == 1
    };
    for name in names.split_whitespace() {
        columns.push(match name {
            "clean" if nth(&mut clean) => Some(Column::Figure(Field::SharedClean)),
            "clean" => Some(Column::Figure(Field::PrivateClean)),
            "dirty" if nth(&mut dirty) => Some(Column::Figure(Field::SharedDirty)),
            "dirty" => Some(Column::Figure(Field::PrivateDirty)),
            "PmdMapped" if nth(&mut mapped) => Some(Column::Other("ShmemPmdMapped")),
            "PmdMapped" => Some(Column::Other("FilePmdMapped")),
            "Hugetlb" if nth(&mut large) => Some(Column::Other("Shared_Hugetlb")),
            "Hugetlb" => Some(Column::Other("Private_Hugetlb")),
            "HugePages" | "hugepages" => Some(Column::Other("AnonHugePages")),
            "addr" if nth(&mut addresses) => Some(Column::Start),
            "addr" => Some(Column::End),
            name => column(name),
        });
    }
    // The last column is the name, which can contain blanks.
    columns.pop();
    let mut rules = 0;
    'lines: for line in lines {
        if line.trim_start().starts_with("----") {
            rules += 1;
            continue;
        }
        // After the second rule come the repeated heading and the total.
        if rules > 1 || line.trim().is_empty() {
            continue;
        }
        let mut row = Row::default();
        let mut rest = line;
        for column in &columns {
            rest = rest.trim_start();
            let end = rest.find(' ').unwrap_or(rest.len());
            let (cell, after) = rest.split_at(end);
            rest = after;
            let set = match column {
                Some(column) => row.set(*column, cell),
                None => cell.parse::<u64>().ok().map(|_| ()),
            };
            if set.is_none() {
                strange(&mut smaps, line);
                continue 'lines;
            }
        }
        row.set(Column::Name, rest);
        add(&mut smaps, row)?;
    }
    smaps.cut = rules < 2;
    finished(smaps)
}

/// Splits a line of CSV into cells, which can be quoted.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut quoted = false;
    let mut chars = line.trim_end().chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                if let Some(cell) = cells.last_mut() {
                    cell.push('"');
                }
            }
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            c => {
                if let Some(cell) = cells.last_mut() {
                    cell.push(c);
                }
            }
        }
    }
    cells
}

fn of_csv(text: &str, heading: usize) -> Result<Smaps, SmapsError> {
    let mut smaps = Smaps::default();
    let mut lines = text.lines().skip(heading);
    let names = cells(lines.next().unwrap_or_default());
    let columns: Vec<Option<Column>> = names.iter().map(|name| column(name)).collect();
    let name_at = columns.iter().position(|c| *c == Some(Column::Name));
    for line in lines {
        if line.trim().is_empty() {
            continue;
        }
        let cells = cells(line);
        let name = name_at.and_then(|at| cells.get(at)).map(String::as_str);
        // The total at the end.
        if name == Some("TOTAL") {
            continue;
        }
        let mut row = Row::default();
        let set = cells.len() >= columns.len()
            && columns
                .iter()
                .zip(&cells)
                .all(|(column, cell)| column.is_none_or(|column| row.set(column, cell).is_some()));
        match set {
            true => add(&mut smaps, row)?,
            false => strange(&mut smaps, line),
        }
    }
    finished(smaps)
}

fn of_json(text: &[u8]) -> Option<Result<Smaps, SmapsError>> {
    let rows = match serde_json::from_slice(text).ok()? {
        Value::Array(rows) => rows,
        _ => return None,
    };
    let is_ours = |row: &Value| row.get("object").is_some() && row.get("PSS").is_some();
    if !rows.first().is_some_and(is_ours) {
        return None;
    }
    let mut smaps = Smaps::default();
    for row in &rows {
        let Value::Object(cells) = row else {
            strange(&mut smaps, &row.to_string());
            continue;
        };
        if cells.get("object").and_then(Value::as_str) == Some("TOTAL") {
            continue;
        }
        let mut made = Row::default();
        let set = cells.iter().all(|(name, cell)| {
            let text = match cell {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            column(name).is_none_or(|column| made.set(column, &text).is_some())
        });
        match set {
            true => {
                if let Err(error) = add(&mut smaps, made) {
                    return Some(Err(error));
                }
            }
            false => strange(&mut smaps, &row.to_string()),
        }
    }
    Some(finished(smaps))
}
