//! How the memory of a process divides, by the rules of App Summary: from the summary where
//! there is one, else computed from the table as the phone computes it. And whether the rows of
//! the table add up to the device's own total.

use super::process::Process;
use super::table::{Column, Table};
use crate::memory::timeline::{HeapCells, Parts, Source};

/// How a total comes from its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// The sum of the rows.
    Rows,
    /// The sum of the rows and of what is swapped out of the process (SwapPss): the total PSS
    /// since Android 8.
    RowsAndSwap,
}

/// The rows of a column beside the device's own total. Bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sum {
    /// The column.
    pub column: Column,
    /// What adds up.
    pub rule: Rule,
    /// The sum by this rule.
    pub rows: i64,
    /// What the device says.
    pub device: i64,
}

impl Sum {
    /// What the device counts beyond the rows.
    pub fn difference(&self) -> i64 {
        self.device.saturating_sub(self.rows)
    }
}

impl Table {
    /// Each column's rows beside the device's total; by the rule that holds, where one does.
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

    /// Private pages of a row, dirty and clean; 0 where there is no such row.
    fn private(&self, label: &str) -> i64 {
        let clean = self.cell(label, &Column::PrivateClean).unwrap_or(0);
        self.dirty(label).saturating_add(clean)
    }

    fn dirty(&self, label: &str) -> i64 {
        self.cell(label, &Column::PrivateDirty).unwrap_or(0)
    }

    /// Size, Alloc and Free of a heap; `None` where they are blank or all 0, as they are where
    /// the app was not asked.
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

/// Names of the row of the native heap, newest first.
pub(super) const NATIVE: [&str; 2] = ["Native Heap", "Native"];
/// Names of the row of the Java heap, newest first.
pub(super) const DALVIK: [&str; 2] = ["Dalvik Heap", "Dalvik"];
const CODE: [&str; 6] = [
    ".so mmap",
    ".jar mmap",
    ".apk mmap",
    ".ttf mmap",
    ".dex mmap",
    ".oat mmap",
];
const GRAPHICS: [&str; 3] = ["Gfx dev", "EGL mtrack", "GL mtrack"];
/// Code that was compiled in the app, which the summary counts as code since Android 11; part
/// of Dalvik Other, and told apart in Dalvik Details only.
const JIT: [&str; 2] = [".ZygoteJIT", ".AppJIT"];

fn sum<'a>(labels: impl IntoIterator<Item = &'a str>, of: impl Fn(&str) -> i64) -> i64 {
    labels.into_iter().map(of).fold(0, i64::saturating_add)
}

impl Process {
    /// How the memory divides; `None` where the text has neither summary nor table.
    pub fn parts(&self, source: Source) -> Option<Parts> {
        let table = self.table();
        let mut parts = match self.summed() {
            Some(parts) => parts,
            None => self.computed(table?)?,
        };
        parts.source = source;
        if let Some(table) = table {
            parts.native_heap = table.heap(&NATIVE);
            parts.java_heap = table.heap(&DALVIK);
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

    /// From App Summary.
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

    /// From the table, as the phone computes its summary.
    fn computed(&self, table: &Table) -> Option<Parts> {
        let total_pss = table.total_of(&Column::Pss)?;
        let private = table.total_of(&Column::PrivateDirty)?;
        let clean = table.total_of(&Column::PrivateClean).unwrap_or(0);
        let private = private.saturating_add(clean);
        let dirty = |label: &str| table.dirty(label);
        let both = |label: &str| table.private(label);
        let jit = self.details().map_or(0, |details| {
            // Before Android 11 neither the rows nor the rule exist.
            sum(JIT, |label| details.private(label))
        });
        let java = sum(DALVIK, dirty).saturating_add(both(".art mmap"));
        let native = sum(NATIVE, dirty);
        let code = sum(CODE, both).saturating_add(jit);
        let stack = dirty("Stack");
        let graphics = sum(GRAPHICS, both);
        let named = [java, native, code, stack, graphics];
        let named = named.into_iter().fold(0, i64::saturating_add);
        Some(Parts {
            source: Source::Meminfo,
            java,
            native,
            code,
            stack,
            graphics,
            private_other: private.saturating_sub(named),
            system: total_pss.saturating_sub(private),
            total_pss,
            total_rss: None,
            swap: None,
            native_heap: None,
            java_heap: None,
        })
    }
}
