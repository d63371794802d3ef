//! `profiler_smaps`: memory mappings of processes from the trace, with Perfetto's columns. Decoded
//! when a query first needs the table.

use std::sync::Arc;

use super::once::read_once;
use super::processes::Processes;
use super::table::{Catalog, Cell, Schema, TableError, View, columns, schema};
use heaptap_model::smaps::{Field, SmapsRow, SmapsRows};

/// Source of the memory mappings of a trace.
pub trait SmapsSource: Send + Sync {
    /// Returns all mappings as process, time and rows, in order of time.
    ///
    /// # Errors
    /// Returns an error if the trace cannot be read.
    fn read(&self) -> Result<Vec<(u64, u64, SmapsRows)>, TableError>;
}

static SCHEMA: Schema = schema! {
    "profiler_smaps":
        "Memory mappings of processes, if the trace contains them (`dump --dump-smaps`).";
    id int row: "number of the row";
    upid int indexed: "process";
    ts int sorted: "time of the reading, ns of trace time";
    path text indexed: "file or area, in the kernel's form";
    path_trimmed text indexed: "`path` without ` (deleted)`";
    aggregate_count int: "number of mappings in this row";
    is_deleted int: "1 if the file was deleted";
    size_kb int: "size of the address range";
    private_dirty_kb int: "dirty pages that are private to the process";
    swap_kb int: "pages in swap or ZRAM, uncompressed size";
    file_name text: "file name of the module; NULL if unknown";
    start_address int: "start address; 0 if unknown";
    module_timestamp int: "timestamp of the module; 0 if unknown";
    module_debugid text: "debug ID of the module; NULL if unknown";
    module_debug_path text: "debug path of the module; NULL if unknown";
    protection_flags int: "protection flags; 0 if unknown";
    private_clean_resident_kb int: "clean pages that are private to the process";
    shared_dirty_resident_kb int: "dirty pages shared with other processes";
    shared_clean_resident_kb int: "clean pages shared with other processes";
    locked_kb int: "pages locked in memory";
    proportional_resident_kb int: "PSS";
    rss_kb int: "resident memory; 0 if unknown";
    anonymous_kb int: "anonymous memory; 0 if unknown";
    pss_dirty_kb int: "PSS of dirty pages; 0 if unknown";
    swap_pss_kb int: "proportional share of swap; 0 if unknown";
};

/// Maximum number of rows of the table.
const MAX_ROWS: usize = 8 << 20;

/// Processes, times and mappings.
struct Mappings(Vec<(u32, u64, SmapsRow)>);

fn cell(mappings: &Mappings, row: usize, column: usize) -> Cell<'_> {
    let (upid, time, mapping) = &mappings.0[row];
    let kb = |field| (mapping.sums.of(field) / 1024).into();
    let module = mapping.module.as_deref();
    match column {
        0 => row.into(),
        1 => (*upid).into(),
        2 => (*time).into(),
        3 => mapping.path.as_deref().into(),
        4 => mapping.trimmed().into(),
        5 => mapping.count.into(),
        6 => Cell::flag(mapping.is_deleted()),
        7 => kb(Field::Size),
        8 => kb(Field::PrivateDirty),
        9 => kb(Field::Swap),
        10 => module.and_then(|m| m.file_name.as_deref()).into(),
        11 => module.map_or(0, |m| m.start_address).into(),
        12 => module.map_or(0, |m| m.timestamp).into(),
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
    let read = read_once(move || {
        let mut rows = Vec::new();
        for (pid, time, read) in source.read()? {
            let upid = processes.upid(pid).unwrap_or(0);
            if rows.len().saturating_add(read.rows.len()) > MAX_ROWS {
                return Err(TableError(format!(
                    "the trace has more than {MAX_ROWS} memory mappings; select one process and \
                     time with `heaptap smaps`"
                )));
            }
            rows.extend(read.rows.into_iter().map(|row| (upid, time, row)));
        }
        Ok(Mappings(rows))
    });
    catalog.rows(&SCHEMA, &read, |all| all.0.len(), cell);
    catalog.view(MAPPINGS);
}
