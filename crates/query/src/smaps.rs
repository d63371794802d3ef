//! `profiler_smaps`: what processes had mapped, where the trace holds it, with the columns of
//! Perfetto. Decoded when a query first asks for it.

use std::sync::Arc;

use super::processes::Processes;
use super::table::{Catalog, Cell, Column, Rows, Schema, TableError, View};
use heaptap_model::smaps::{Field, SmapsRow, SmapsRows};

/// Mappings of a trace.
pub trait SmapsSource: Send + Sync {
    /// The processes of which there are any.
    fn pids(&self) -> Vec<u64>;

    /// All of them: process, time, rows, in order of time.
    ///
    /// # Errors
    /// Where the trace can't be read.
    fn read(&self) -> Result<Vec<(u64, u64, SmapsRows)>, TableError>;
}

static SCHEMA: Schema = Schema {
    name: "profiler_smaps",
    module: None,
    about: "Memory mappings of processes, where the trace holds them (`dump --dump-smaps`).",
    columns: &[
        Column::id(),
        Column::int("upid", "the process").indexed(),
        Column::int(
            "ts",
            "when, ns of trace time; equal for all rows of one moment",
        )
        .sorted(),
        Column::text("path", "the file or area, as the kernel writes it").indexed(),
        Column::text("path_trimmed", "the same without ` (deleted)`").indexed(),
        Column::int(
            "aggregate_count",
            "number of mappings that the row stands for",
        ),
        Column::int("is_deleted", "1 where the file is gone"),
        Column::int("size_kb", "address space"),
        Column::int("private_dirty_kb", "dirty pages of this process alone"),
        Column::int("swap_kb", "in swap or ZRAM, before compression"),
        Column::text("file_name", "NULL where not told"),
        Column::int("start_address", "0 where not told"),
        Column::int("module_timestamp", "0 where not told"),
        Column::text("module_debugid", "NULL where not told"),
        Column::text("module_debug_path", "NULL where not told"),
        Column::int("protection_flags", "0 where not told"),
        Column::int(
            "private_clean_resident_kb",
            "clean pages of this process alone",
        ),
        Column::int("shared_dirty_resident_kb", "dirty pages that others share"),
        Column::int("shared_clean_resident_kb", "clean pages that others share"),
        Column::int("locked_kb", "locked in memory"),
        Column::int("proportional_resident_kb", "PSS"),
        Column::int("rss_kb", "resident; 0 where not told"),
        Column::int("anonymous_kb", "of no file; 0 where not told"),
        Column::int("pss_dirty_kb", "PSS of dirty pages; 0 where not told"),
        Column::int("swap_pss_kb", "swap by its share; 0 where not told"),
    ],
};

/// More rows than that are no table.
const MOST_ROWS: usize = 8 << 20;

struct Table(Vec<(u32, u64, SmapsRow)>);

impl Rows for Table {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let (upid, time, mapping) = &self.0[row];
        let kb = |field| Cell::bits(mapping.sums.of(field) / 1024);
        let module = mapping.module.as_deref();
        match column {
            0 => row.into(),
            1 => (*upid).into(),
            2 => Cell::bits(*time),
            3 => mapping.path.as_deref().into(),
            4 => mapping.trimmed().into(),
            5 => Cell::bits(mapping.count),
            6 => Cell::flag(mapping.is_deleted()),
            7 => kb(Field::Size),
            8 => kb(Field::PrivateDirty),
            9 => kb(Field::Swap),
            10 => module.and_then(|m| m.file_name.as_deref()).into(),
            11 => Cell::bits(module.map_or(0, |m| m.start_address)),
            12 => Cell::bits(module.map_or(0, |m| m.timestamp)),
            13 => module.and_then(|m| m.debug_id.as_deref()).into(),
            14 => module.and_then(|m| m.debug_path.as_deref()).into(),
            15 => module.map_or(0, |m| m.protection_flags).into(),
            16 => kb(Field::PrivateClean),
            17 => kb(Field::SharedDirty),
            18 => kb(Field::SharedClean),
            19 => kb(Field::Locked),
            20 => kb(Field::Pss),
            21 => kb(Field::Rss),
            22 => kb(Field::Anonymous),
            23 => kb(Field::PssDirty),
            _ => kb(Field::SwapPss),
        }
    }
}

/// The same under the names that Perfetto gives them elsewhere.
const MAPPINGS: View = View {
    name: "process_memory_mappings",
    module: None,
    about: "`profiler_smaps` with shorter names, `path` without ` (deleted)`.",
    sql: "SELECT id, upid, ts, path_trimmed AS path, aggregate_count, is_deleted, size_kb, \
          rss_kb, anonymous_kb, swap_kb, shared_clean_resident_kb AS shared_clean_kb, \
          shared_dirty_resident_kb AS shared_dirty_kb, \
          private_clean_resident_kb AS private_clean_kb, private_dirty_kb, locked_kb, \
          proportional_resident_kb AS pss_kb, pss_dirty_kb, swap_pss_kb FROM profiler_smaps",
};

/// Adds the table and its view.
pub fn add(catalog: &mut Catalog, source: Arc<dyn SmapsSource>, processes: &Arc<Processes>) {
    let processes = Arc::clone(processes);
    catalog.table(&SCHEMA, move || {
        let mut rows = Vec::new();
        for (pid, time, read) in source.read()? {
            let upid = processes.upid(pid).unwrap_or(0);
            if rows.len().saturating_add(read.rows.len()) > MOST_ROWS {
                return Err(TableError(format!(
                    "the trace holds more than {MOST_ROWS} mappings: ask heaptap smaps for one \
                     process and moment"
                )));
            }
            rows.extend(read.rows.into_iter().map(|row| (upid, time, row)));
        }
        Ok(Arc::new(Table(rows)))
    });
    catalog.view(MAPPINGS);
}
