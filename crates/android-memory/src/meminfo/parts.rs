//! Division of a process's memory by the rules of App Summary. Uses the summary if there is one;
//! otherwise computes it from the table as the device does. Also compares the sums of the rows with
//! the device's total.

use super::process::Process;
use super::table::{Column, Table};
use crate::division::{Division, Part};
use heaptap_model::timeline::{HeapCells, Parts, Source};

/// Rule by which a total follows from its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// The sum of the rows.
    Rows,
    /// The sum of the rows and of the process's swapped memory (SwapPss): the total PSS since
    /// Android 8.
    RowsAndSwap,
}

/// Sum of the rows of a column and the device's total, bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sum {
    pub column: Column,
    /// Rule used for the sum.
    pub rule: Rule,
    /// Sum by this rule.
    pub rows: i64,
    /// Total printed by the device.
    pub device: i64,
}

impl Sum {
    /// Returns the device's total minus the sum of the rows.
    pub fn difference(&self) -> i64 {
        self.device.saturating_sub(self.rows)
    }
}

impl Table {
    /// Returns the sum and the device's total for each column. Uses the rule that matches, if one
    /// does.
    pub fn sums(&self) -> Vec<Sum> {
        let Some(total) = self.total() else {
            return Vec::new();
        };
        let swap = self.total_of(&Column::SwapPss);
        let columns = self.headings.columns.iter().map(|heading| &heading.column);
        columns
            .filter_map(|column| {
                let device = self.value(total, column)?;
                let rows = self.sum_of(column)?;
                let with_swap = rows.saturating_add(swap.unwrap_or(0));
                let swapped = *column == Column::Pss && swap.is_some();
                let (rule, rows) = match swapped && (device == with_swap || device != rows) {
                    true => (Rule::RowsAndSwap, with_swap),
                    false => (Rule::Rows, rows),
                };
                Some(Sum {
                    column: column.clone(),
                    rule,
                    rows,
                    device,
                })
            })
            .collect()
    }

    /// Returns Size, Alloc and Free of a heap. Returns `None` if they are blank or all 0, as when
    /// the app was not queried.
    pub fn heap(&self, labels: &[&str]) -> Option<HeapCells> {
        let row = labels.iter().find_map(|label| self.row(label))?;
        let cell = |column| u64::try_from(self.value(row, &column)?).ok();
        let cells = HeapCells {
            size: cell(Column::HeapSize)?,
            alloc: cell(Column::HeapAlloc)?,
            free: cell(Column::HeapFree)?,
        };
        (cells.size != 0 || cells.alloc != 0 || cells.free != 0).then_some(cells)
    }
}

/// Names of the native heap row, newest first.
pub const NATIVE_HEAP: [&str; 2] = ["Native Heap", "Native"];
/// Names of the Java heap row, newest first.
const DALVIK_HEAP: [&str; 2] = ["Dalvik Heap", "Dalvik"];

impl Process {
    /// Divides the memory into parts; `None` if the text has neither a summary nor a table.
    pub fn parts(&self, source: Source) -> Option<Parts> {
        let table = self.table();
        let mut parts = match self.summed() {
            Some(parts) => parts,
            None => self.computed(table?)?,
        };
        parts.source = source;
        if let Some(table) = table {
            parts.native_heap = table.heap(&NATIVE_HEAP);
            parts.java_heap = table.heap(&DALVIK_HEAP);
            let rss = table.total_of(&Column::Rss);
            let rss = rss.and_then(|rss| u64::try_from(rss).ok());
            parts.total_rss = parts.total_rss.or(rss);
            let swap = table
                .total_of(&Column::SwapPss)
                .or(table.total_of(&Column::Swap));
            let swap = swap.and_then(|swap| u64::try_from(swap).ok());
            parts.swap = parts.swap.or(swap);
        }
        Some(parts)
    }

    /// Reads the parts from App Summary.
    fn summed(&self) -> Option<Parts> {
        let summary = self.summary()?;
        let bytes = |name: &str| super::number::bytes(summary.value(name)?);
        let size = |name: &str| u64::try_from(bytes(name)?).ok();
        Some(Parts {
            source: Source::Meminfo,
            java: bytes("Java Heap")?,
            native: bytes("Native Heap")?,
            code: bytes("Code")?,
            stack: bytes("Stack")?,
            graphics: bytes("Graphics")?,
            private_other: bytes("Private Other")?,
            system: bytes("System")?,
            total_pss: bytes("TOTAL PSS").or(bytes("TOTAL"))?,
            total_rss: size("TOTAL RSS"),
            swap: size("TOTAL SWAP PSS").or(size("TOTAL SWAP (KB)")),
            native_heap: None,
            java_heap: None,
        })
    }

    /// Computes the parts from the table, as the device computes its summary.
    fn computed(&self, table: &Table) -> Option<Parts> {
        let total_pss = table.total_of(&Column::Pss)?;
        let dirty = table.total_of(&Column::PrivateDirty)?;
        let clean = table.total_of(&Column::PrivateClean).unwrap_or(0);
        let mut division = Division::default();
        for row in table.parts() {
            let cell = |column| table.value(row, &column).unwrap_or(0);
            division.add(
                Part::of_row(&row.label),
                cell(Column::PrivateDirty),
                cell(Column::PrivateClean),
            );
        }
        // Neither the rows nor the rule exist before Android 11.
        for row in self.details().into_iter().flat_map(Table::parts) {
            let Some(part) = Part::of_detail(&row.label) else {
                continue;
            };
            let cell = |column| table.value(row, &column).unwrap_or(0);
            division.add(
                Some(part),
                cell(Column::PrivateDirty),
                cell(Column::PrivateClean),
            );
        }
        let private = dirty.saturating_add(clean);
        Some(division.parts(Source::Meminfo, private, total_pss))
    }
}
