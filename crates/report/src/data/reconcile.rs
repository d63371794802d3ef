//! The figures of a process at a moment side by side, in words: the profile's, the allocator's and
//! the system's, with what lies between them.

use serde::{Deserialize, Serialize};

use android_memory::reconcile::Table;

/// Moments that a page has; of more, the last ones.
const MOST: usize = 24;

/// The figures of a process at a moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reconciled {
    /// The label; `end` for the recording's.
    pub at: String,
    /// The process; empty where not known.
    pub process: String,
    /// Its id; 0 where not known.
    pub pid: u32,
    /// From what the program asked for to what the process takes.
    pub rows: Vec<Figure>,
    /// What lies between them.
    pub differences: Vec<FigureDifference>,
    /// What could not be had.
    pub missing: Vec<Missing>,
}

/// A figure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figure {
    /// What it is called.
    pub name: String,
    /// Bytes.
    pub bytes: i64,
    /// In words, with its reach where it is sampled.
    pub amount: String,
    /// When it was read, where that is seconds from the moment: `4.5 s before`.
    pub apart: Option<String>,
    /// Who says it, and what one must know to read it.
    pub remark: String,
}

/// What lies between two figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FigureDifference {
    /// The first.
    pub from: String,
    /// The second.
    pub to: String,
    /// How much more the second is, in words.
    pub amount: String,
    /// What it means.
    pub about: String,
    /// What makes it, the surest first.
    pub causes: Vec<Cause>,
}

/// What makes a difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// In a sentence.
    pub about: String,
    /// What usually helps.
    pub remedy: Option<String>,
}

/// A figure that could not be had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// Which.
    pub figure: String,
    /// Why.
    pub why: String,
    /// What would be needed.
    pub help: Option<String>,
}

impl Reconciled {
    /// Those of a page, of tables in order of time: the last first, and how many were left out.
    /// A table of one figure compares nothing.
    pub fn of_all(tables: &[Table]) -> (Vec<Reconciled>, usize) {
        let told: Vec<&Table> = tables
            .iter()
            .filter(|table| !table.differences.is_empty())
            .collect();
        let shown = told.iter().rev().take(MOST);
        let shown: Vec<Reconciled> = shown.map(|table| Reconciled::of(table)).collect();
        let left_out = told.len().saturating_sub(shown.len());
        (shown, left_out)
    }

    fn of(table: &Table) -> Reconciled {
        let rows = table.rows.iter().map(|row| Figure {
            name: row.name.clone(),
            bytes: row.bytes,
            amount: row.amount(),
            apart: row.apart(),
            remark: row.remark(),
        });
        let differences = table.differences.iter().map(|difference| FigureDifference {
            from: table.name_of(difference.from).to_owned(),
            to: table.name_of(difference.to).to_owned(),
            amount: difference.amount(),
            about: difference.about.clone(),
            causes: difference
                .causes
                .iter()
                .map(|cause| Cause {
                    about: cause.words(),
                    remedy: cause.remedy.clone(),
                })
                .collect(),
        });
        let missing = table.missing.iter().map(|missing| Missing {
            figure: missing.figure.label().to_owned(),
            why: missing.why.clone(),
            help: missing.help.clone(),
        });
        Reconciled {
            at: table.label.clone().unwrap_or_else(|| "end".to_owned()),
            process: table.process.clone(),
            pid: table.pid,
            rows: rows.collect(),
            differences: differences.collect(),
            missing: missing.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use android_memory::reconcile::{At, NativeResident, ReconcileInput};
    use heaptap_model::timeline::HeapCells;

    #[test]
    fn the_last_moment_comes_first_and_what_compares_nothing_is_left_out() {
        let at = |second: u64| ReconcileInput {
            process: "a.b".to_owned(),
            boot_ns: Some(second * 1_000_000_000),
            label: Some(format!("l{second}")),
            native_heap: Some(At {
                value: HeapCells {
                    size: 9 << 20,
                    alloc: 4 << 20,
                    free: 5 << 20,
                },
                source: "dumpsys meminfo".to_owned(),
                boot_ns: Some((second + 5) * 1_000_000_000),
            }),
            native_resident: Some(At {
                value: NativeResident {
                    resident: 6 << 20,
                    ..NativeResident::default()
                },
                source: "smaps".to_owned(),
                boot_ns: Some(second * 1_000_000_000),
            }),
            ..ReconcileInput::default()
        };
        let mut tables: Vec<Table> = (0..30).map(|second| Table::of(&at(second))).collect();
        tables.push(Table::of(&ReconcileInput::default()));
        let (shown, left_out) = Reconciled::of_all(&tables);
        assert_eq!((shown.len(), left_out), (24, 6));
        assert_eq!(shown[0].at, "l29");
        let alloc = &shown[0].rows[0];
        assert_eq!(alloc.amount, "4.0 MiB");
        assert_eq!(alloc.apart.as_deref(), Some("5.0 s after"));
        assert_eq!(shown[0].differences[0].amount, "+5.0 MiB");
    }
}
