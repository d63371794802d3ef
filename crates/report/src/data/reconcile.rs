//! Values of a process at one time side by side, as text: those of the profile, the allocator and
//! the system, with their differences.

use serde::{Deserialize, Serialize};

use android_memory::reconcile::Table;

/// Maximum number of tables in a page; the last ones are kept.
const MAX_COUNT: usize = 24;

/// Values of a process at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reconciled {
    /// Label; `end` for the end of the recording.
    pub at: String,
    /// Process name; empty if unknown.
    pub process: String,
    /// Process ID; 0 if unknown.
    pub pid: u32,
    /// Values, from what the program requested to what the process uses.
    pub rows: Vec<Figure>,
    pub differences: Vec<FigureDifference>,
    /// Values that are not available.
    pub missing: Vec<Missing>,
}

/// Value in the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figure {
    pub name: String,
    pub bytes: i64,
    /// Amount as text, with its sampling error if it is sampled.
    pub amount: String,
    /// Time of the reading relative to the label, if it differs by seconds: `4.5 s before`.
    pub apart: Option<String>,
    /// Source and meaning.
    pub remark: String,
}

/// Difference between two values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FigureDifference {
    /// Name of the first value.
    pub from: String,
    /// Name of the second value.
    pub to: String,
    /// Second value minus first, as text.
    pub amount: String,
    /// Meaning.
    pub about: String,
    /// Causes, most certain first.
    pub causes: Vec<Cause>,
}

/// Cause of a difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// Description as a sentence.
    pub about: String,
    /// Usual remedy.
    pub remedy: Option<String>,
}

/// Value that is not available.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// Name of the value.
    pub figure: String,
    /// Reason.
    pub why: String,
    /// Help for obtaining the value.
    pub help: Option<String>,
}

impl Reconciled {
    /// Returns the tables of a page from tables in chronological order, last first, and the number
    /// of omitted ones. A table with one value compares nothing and does not count.
    pub fn of_all(tables: &[Table]) -> (Vec<Reconciled>, usize) {
        let told: Vec<&Table> = tables
            .iter()
            .filter(|table| !table.differences.is_empty())
            .collect();
        let shown = told.iter().rev().take(MAX_COUNT);
        let shown: Vec<Reconciled> = shown.map(|table| Reconciled::from_table(table)).collect();
        let left_out = told.len().saturating_sub(shown.len());
        (shown, left_out)
    }

    fn from_table(table: &Table) -> Reconciled {
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
        let mut tables: Vec<Table> = (0..30)
            .map(|second| Table::from_input(&at(second)))
            .collect();
        tables.push(Table::from_input(&ReconcileInput::default()));
        let (shown, left_out) = Reconciled::of_all(&tables);
        assert_eq!((shown.len(), left_out), (24, 6));
        assert_eq!(shown[0].at, "l29");
        let alloc = &shown[0].rows[0];
        assert_eq!(alloc.amount, "4.0 MiB");
        assert_eq!(alloc.apart.as_deref(), Some("5.0 s after"));
        assert_eq!(shown[0].differences[0].amount, "+5.0 MiB");
    }
}
