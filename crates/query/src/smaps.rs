//! `profiler_smaps`: memory mappings of processes from the trace, with Perfetto's columns. Decoded
//! when a query first needs the table.

use std::sync::Arc;

use super::processes::Processes;
use super::table::{Catalog, Cell, Column, Rows, Schema, TableError, View};
use heaptap_model::smaps::{Field, SmapsRow, SmapsRows};

/// Source of the memory mappings of a trace.
pub trait SmapsSource: Send + Sync {
    /// Returns all mappings as process, time and rows, in order of time.
    ///
    /// # Errors
    /// Returns an error if the trace cannot be read.
    fn read(&self) -> Result<Vec<(u64, u64, SmapsRows)>, TableError>;
}

static SCHEMA: Schema = Schema {
    name: "profiler_smaps",
    module: None,
    about: "Memory mappings of processes, if the trace contains them (`dump --dump-smaps`).",
    columns: &[
        Column::id(),
        Column::int("upid", "process").indexed(),
        Column::int("ts", "time of the reading, ns of trace time").sorted(),
        Column::text("path", "file or area, in the kernel's form").indexed(),
        Column::text("path_trimmed", "`path` without ` (deleted)`").indexed(),
        Column::int("aggregate_count", "number of mappings in this row"),
        Column::int("is_deleted", "1 if the file was deleted"),
        Column::int("size_kb", "size of the address range"),
        Column::int(
            "private_dirty_kb",
            "dirty pages that are private to the process",
        ),
        Column::int("swap_kb", "pages in swap or ZRAM, uncompressed size"),
        Column::text("file_name", "file name of the module; NULL if unknown"),
        Column::int("start_address", "start address; 0 if unknown"),
        Column::int("module_timestamp", "timestamp of the module; 0 if unknown"),
        Column::text("module_debugid", "debug ID of the module; NULL if unknown"),
        Column::text(
            "module_debug_path",
            "debug path of the module; NULL if unknown",
        ),
        Column::int("protection_flags", "protection flags; 0 if unknown"),
        Column::int(
            "private_clean_resident_kb",
            "clean pages that are private to the process",
        ),
        Column::int(
            "shared_dirty_resident_kb",
            "dirty pages shared with other processes",
        ),
        Column::int(
            "shared_clean_resident_kb",
            "clean pages shared with other processes",
        ),
        Column::int("locked_kb", "pages locked in memory"),
        Column::int("proportional_resident_kb", "PSS"),
        Column::int("rss_kb", "resident memory; 0 if unknown"),
        Column::int("anonymous_kb", "anonymous memory; 0 if unknown"),
        Column::int("pss_dirty_kb", "PSS of dirty pages; 0 if unknown"),
        Column::int("swap_pss_kb", "proportional share of swap; 0 if unknown"),
    ],
};

/// Maximum number of rows of the table.
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

/// The same rows with the column names that Perfetto uses elsewhere.
const MAPPINGS: View = View {
    name: "process_memory_mappings",
    module: None,
    about: "`profiler_smaps` with shorter column names; `path` does not contain ` (deleted)`.",
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
                    "the trace has more than {MOST_ROWS} memory mappings; select one process and \
                     time with `heaptap smaps`"
                )));
            }
            rows.extend(read.rows.into_iter().map(|row| (upid, time, row)));
        }
        Ok(Arc::new(Table(rows)))
    });
    catalog.view(MAPPINGS);
}
