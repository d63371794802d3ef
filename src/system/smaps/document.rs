//! Sums of mappings as plain rows: for a table, for JSON, for CSV. What no source gave is null,
//! never 0.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Mapped, Moment};
use crate::memory::smaps::{self, By, Change, Field, Form, Group, Grouped, Sums};
use crate::timeline::Parts;

/// Figures, bytes.
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
    /// When, of whom, from where.
    #[serde(flatten)]
    pub moment: Moment,
    /// What a row stands for: `kind`, `library`, `mapping`.
    pub by: &'static str,
    /// `mappings`, `by-name`, `rollup`: what the source tells apart.
    pub form: &'static str,
    /// Number of mappings.
    pub count: u64,
    /// Sums of all.
    pub total: Figures,
    /// How it divides by the rules of meminfo's App Summary; without what only the graphics
    /// driver counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<Parts>,
    /// The sums.
    pub rows: Vec<Row>,
    /// Sums of figures that are not interpreted, by the kernel's names, bytes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub others: BTreeMap<String, u64>,
    /// Lines that are none of mappings.
    pub strange_lines: u64,
    /// Some of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub strange: Vec<String>,
    /// The text ends within a mapping.
    pub cut: bool,
    /// Other moments of the input.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub others_there: Vec<Moment>,
}

/// What is summed up in a row.
#[derive(Debug, Clone, Serialize)]
pub struct Summed {
    /// The row of meminfo that it counts as.
    pub kind: &'static str,
    /// The row of meminfo's Dalvik Details.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<&'static str>,
    /// It is part of the row before, and not counted again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_part: bool,
    /// The file or area, without what differs from run to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `r-xp`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<String>,
}

/// A sum.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// Of what.
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
    /// Its sums, bytes.
    pub figures: Figures,
    /// The same, for whoever counts.
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

/// Sums up; at most `limit` rows (0: all).
pub fn document(mapped: &Mapped, by: By, limit: usize) -> Document {
    let smaps = &mapped.smaps;
    let groups = smaps.groups(by);
    let limit = if limit == 0 { usize::MAX } else { limit };
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
        rows: groups.rows.iter().take(limit).map(|r| row(by, r)).collect(),
        others: smaps.others.clone(),
        strange_lines: smaps.strange_count,
        strange: smaps.strange.clone(),
        cut: smaps.cut,
        others_there: mapped.others.clone(),
    }
}

/// Two of them compared.
#[derive(Debug, Clone, Serialize)]
pub struct ChangesDocument {
    /// The first.
    pub before: Moment,
    /// The second.
    pub after: Moment,
    /// What a row stands for.
    pub by: &'static str,
    /// By how much the whole changed, bytes; of figures that both sides have.
    pub total: BTreeMap<&'static str, i64>,
    /// What changed, most first.
    pub rows: Vec<ChangeRow>,
    /// Groups that did not change.
    pub unchanged: usize,
    /// Rows left out.
    pub left_out: usize,
}

/// A group before and after.
#[derive(Debug, Clone, Serialize)]
pub struct ChangeRow {
    /// Of what.
    #[serde(flatten)]
    pub of: Summed,
    /// `new`, `gone`, or `changed`.
    pub status: &'static str,
    /// Mappings before.
    pub count_before: u64,
    /// Mappings after.
    pub count_after: u64,
    /// Figures before.
    pub before: Figures,
    /// Figures after.
    pub after: Figures,
    /// By how much each changed, bytes.
    pub delta: BTreeMap<&'static str, i64>,
    /// The change of private dirty pages and swap: what the process costs more.
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

/// What changed from one to the other; at most `limit` rows (0: all).
pub fn changes(before: &Mapped, after: &Mapped, by: By, limit: usize) -> ChangesDocument {
    let all = smaps::changes(&before.smaps, &after.smaps, by);
    let limit = if limit == 0 { usize::MAX } else { limit };
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
