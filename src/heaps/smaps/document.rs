//! Sums of mappings as plain rows: for a table, for JSON, for CSV. A missing value is null, never
//! 0.

use std::collections::BTreeMap;

use serde::Serialize;

use super::moment::{Mapped, Moment};
use android_memory::smaps::{self, By, Change, Field, Form, Group, Grouped, Sums};
use heaptap_model::timeline::Parts;

/// Values in bytes.
pub type Figures = BTreeMap<&'static str, u64>;

fn figures(sums: &Sums) -> Figures {
    let known = Field::ALL.into_iter();
    known
        .filter_map(|field| Some((field.name(), sums.get(field)?)))
        .collect()
}

/// Mappings of a process, summed up.
#[derive(Debug, Clone, Serialize)]
pub struct Document {
    /// Time, process and source.
    #[serde(flatten)]
    pub moment: Moment,
    /// Meaning of a row: `kind`, `library`, `mapping`.
    pub by: &'static str,
    /// Level of detail in the source: `mappings`, `by-name`, `rollup`.
    pub form: &'static str,
    /// Number of mappings.
    pub count: u64,
    /// Sums of all.
    pub total: Figures,
    /// Breakdown by the rules of meminfo's App Summary, without memory that only the graphics
    /// driver counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<Parts>,
    /// Number of rows before the limit.
    pub rows_total: usize,
    pub rows: Vec<Row>,
    /// Sums of uninterpreted values, by the kernel's names, in bytes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub others: BTreeMap<String, u64>,
    /// Number of unparsed lines.
    pub unknown_lines: u64,
    /// Examples of such lines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "unknown_line_examples")]
    pub strange: Vec<String>,
    /// True if the text ends within a mapping.
    #[serde(rename = "truncated")]
    pub cut: bool,
    /// Other captures of the input.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_captures: Vec<Moment>,
}

/// Group of a row.
#[derive(Debug, Clone, Serialize)]
pub struct Summed {
    /// Row of meminfo that it counts as.
    pub kind: &'static str,
    /// Row of meminfo's Dalvik Details.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<&'static str>,
    /// True if it is part of the previous row, and not counted again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_part: bool,
    /// File or area, without parts that differ between runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `r-xp`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<String>,
}

/// A group with its sums.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    #[serde(flatten)]
    pub of: Summed,
    /// Offset in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Address of the only mapping, or of the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// Number of mappings.
    pub count: u64,
    /// Sums in bytes.
    pub figures: Figures,
    /// The same, for calculations.
    #[serde(skip)]
    pub sums: Sums,
}

fn word(by: By) -> &'static str {
    match by {
        By::Kind => "kind",
        By::Library => "library",
        By::Mapping => "mapping",
    }
}

fn summed(by: By, group: &Group) -> Summed {
    Summed {
        kind: group.kind.label(),
        part: group.sub.map(smaps::SubKind::label),
        is_part: by == By::Kind && group.sub.is_some(),
        name: (by != By::Kind).then(|| group.name.clone()),
        permissions: (!group.permissions.is_empty()).then(|| group.permissions.clone()),
    }
}

fn row(by: By, grouped: &Grouped) -> Row {
    let group = &grouped.group;
    let is_mapping = by == By::Mapping;
    Row {
        of: summed(by, group),
        offset: is_mapping.then_some(group.offset),
        start: (is_mapping && grouped.start > 0).then(|| format!("{:x}", grouped.start)),
        count: grouped.count,
        figures: figures(&grouped.sums),
        sums: grouped.sums,
    }
}

/// Sums up; at most `limit` rows.
pub fn document(mapped: &Mapped, by: By, limit: usize) -> Document {
    let smaps = &mapped.smaps;
    let groups = smaps.groups(by);
    Document {
        moment: mapped.moment.clone(),
        by: word(by),
        form: match smaps.form {
            Form::Mappings => "mappings",
            Form::ByName => "by-name",
            Form::Rollup => "rollup",
        },
        count: groups.count,
        total: figures(&groups.total),
        parts: smaps.parts(),
        rows_total: groups.rows.len(),
        rows: groups.rows.iter().take(limit).map(|r| row(by, r)).collect(),
        others: smaps.others.clone(),
        unknown_lines: smaps.strange_count,
        strange: smaps.strange.clone(),
        cut: smaps.cut,
        other_captures: mapped.others.clone(),
    }
}

/// Two of them compared.
#[derive(Debug, Clone, Serialize)]
pub struct ChangesDocument {
    /// First capture.
    pub before: Moment,
    /// Second capture.
    pub after: Moment,
    /// Meaning of a row.
    pub by: &'static str,
    /// Total changes in bytes, of values in both captures.
    pub total: BTreeMap<&'static str, i64>,
    /// Changes, largest first.
    pub rows: Vec<ChangeRow>,
    /// Groups that did not change.
    pub unchanged: usize,
    /// Rows left out.
    pub left_out: usize,
}

/// A group before and after.
#[derive(Debug, Clone, Serialize)]
pub struct ChangeRow {
    #[serde(flatten)]
    pub of: Summed,
    /// `new`, `gone`, or `changed`.
    pub status: &'static str,
    /// Mappings before.
    pub count_before: u64,
    /// Mappings after.
    pub count_after: u64,
    pub before: Figures,
    pub after: Figures,
    /// Differences in bytes.
    pub delta: BTreeMap<&'static str, i64>,
    /// Change of private dirty pages and swap: the additional cost of the process.
    pub cost: i64,
}

fn deltas(get: impl Fn(Field) -> Option<i64>) -> BTreeMap<&'static str, i64> {
    let all = Field::ALL.into_iter();
    all.filter_map(|field| Some((field.name(), get(field)?)))
        .collect()
}

fn change_row(by: By, change: &Change) -> ChangeRow {
    ChangeRow {
        of: summed(by, &change.group),
        status: match (&change.before, &change.after) {
            (None, _) => "new",
            (_, None) => "gone",
            _ => "changed",
        },
        count_before: change.count.0,
        count_after: change.count.1,
        before: change.before.as_ref().map(figures).unwrap_or_default(),
        after: change.after.as_ref().map(figures).unwrap_or_default(),
        delta: deltas(|field| change.delta(field)),
        cost: change.cost(),
    }
}

/// Returns the changes between two captures; at most `limit` rows.
pub fn changes(before: &Mapped, after: &Mapped, by: By, limit: usize) -> ChangesDocument {
    let all = smaps::changes(&before.smaps, &after.smaps, by);
    ChangesDocument {
        before: before.moment.clone(),
        after: after.moment.clone(),
        by: word(by),
        total: deltas(|field| all.total(field)),
        rows: all
            .rows
            .iter()
            .take(limit)
            .map(|c| change_row(by, c))
            .collect(),
        unchanged: all.unchanged,
        left_out: all.rows.len().saturating_sub(limit),
    }
}
