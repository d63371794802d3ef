//! Sums of memory mappings: by meminfo row, by file or named area, and by mapping.

use std::collections::HashMap;

use serde::Deserialize;

use super::kind::{Kind, SubKind};
use super::mapping::{Form, Mapping, Smaps};
use super::names::{library_name, stable};
use heaptap_model::smaps::{Field, Sums};

/// Grouping of the sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// Rows of meminfo, each followed by its rows of Dalvik Details.
    #[default]
    Kind,
    /// Files with all their segments, and named areas.
    Library,
    /// Mappings; those that differ only in their address are combined.
    Mapping,
}

/// Key of a group; equal in two runs for the same memory.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Group {
    /// Row of meminfo.
    pub kind: Kind,
    /// Row of meminfo's Dalvik Details.
    pub sub: Option<SubKind>,
    /// File or area; empty when grouped by kind.
    pub name: String,
    /// `r-xp`; empty unless grouped by mapping.
    pub permissions: String,
    /// Offset in the file, bytes; 0 unless grouped by mapping.
    pub offset: u64,
}

impl Group {
    /// Returns the display name.
    pub fn label(&self) -> String {
        match (self.name.is_empty(), self.sub) {
            (true, Some(sub)) => format!("{} {}", self.kind.label(), sub.label()),
            (true, None) => self.kind.label().to_owned(),
            (false, _) => self.name.clone(),
        }
    }
}

/// A group with its sums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grouped {
    pub group: Group,
    /// Number of mappings.
    pub count: u64,
    /// Address of the first mapping; 0 if the source does not have one.
    pub start: u64,
    /// Sums, bytes.
    pub sums: Sums,
}

/// Sums of all memory mappings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Groups {
    /// By kind in meminfo's order, each followed by its parts. Otherwise the largest first.
    pub rows: Vec<Grouped>,
    /// Sum of all mappings. When grouped by kind, rows with `sub` are part of the row before and
    /// not counted again.
    pub total: Sums,
    /// Number of mappings.
    pub count: u64,
}

impl Groups {
    /// Returns a row of meminfo; `None` if no mapping counts in it.
    pub fn kind(&self, kind: Kind) -> Option<&Grouped> {
        let mut rows = self.rows.iter();
        rows.find(|row| row.group.kind == kind && row.group.sub.is_none())
    }
}

impl Smaps {
    /// Sums the mappings. A single sum of a process (`smaps_rollup`) has no rows.
    pub fn groups(&self, by: By) -> Groups {
        let mut groups = Groups {
            total: self.total(),
            count: self.count(),
            ..Groups::default()
        };
        if self.form == Form::Rollup {
            return groups;
        }
        let mut places: HashMap<Group, usize> = HashMap::new();
        let rows = &mut groups.rows;
        let mut add = |group: Group, mapping: &Mapping| {
            let place = *places.entry(group).or_insert_with_key(|group| {
                rows.push(Grouped {
                    group: group.clone(),
                    count: 0,
                    start: mapping.start,
                    sums: Sums::default(),
                });
                rows.len() - 1
            });
            let row = &mut rows[place];
            row.count = row.count.saturating_add(mapping.count);
            row.sums += &mapping.sums;
        };
        // The library that owns a mapping directly behind it.
        let mut library: Option<(u64, String)> = None;
        for (mapping, kind, sub) in self.classified() {
            let mut group = Group {
                kind,
                sub: None,
                name: String::new(),
                permissions: String::new(),
                offset: 0,
            };
            let behind = library.take_if(|(end, _)| *end == mapping.start && mapping.end > 0);
            let is_bss = matches!(mapping.name.as_str(), "" | "[anon:.bss]");
            match by {
                By::Kind => {
                    if sub.is_some() {
                        let part = Group {
                            sub,
                            ..group.clone()
                        };
                        add(part, mapping);
                    }
                }
                By::Library => {
                    group.name = match (&behind, is_bss) {
                        (Some((_, name)), true) => name.clone(),
                        _ => library_name(&mapping.name).into_owned(),
                    };
                    if let (Some(_), true) = (&behind, is_bss) {
                        group.kind = Kind::SoMmap;
                    }
                    let is_library = group.kind == Kind::SoMmap && !is_bss;
                    library = is_library.then(|| (mapping.end, group.name.clone()));
                }
                By::Mapping => {
                    group.sub = sub;
                    group.name = match mapping.name.as_str() {
                        "" => library_name("").into_owned(),
                        name => stable(name).into_owned(),
                    };
                    group.permissions.clone_from(&mapping.permissions);
                    group.offset = mapping.offset;
                }
            }
            add(group, mapping);
        }
        match by {
            By::Kind => rows.sort_by(|a, b| a.group.cmp(&b.group)),
            _ => rows.sort_by(|a, b| {
                let size = |row: &Grouped| {
                    let pss = row.sums.of(Field::Pss).saturating_add(row.sums.swapped());
                    (pss, row.sums.of(Field::Rss), row.sums.of(Field::Size))
                };
                let by_name = || a.group.cmp(&b.group);
                size(b).cmp(&size(a)).then_with(by_name)
            }),
        }
        groups
    }
}
