//! Compaction: small files of a partition become one sorted file. The crate's documentation has the
//! commit protocol.

use crate::partition::Partition;
use crate::store::{COMPACTED, EMPTY, Store, StoreError, TEMPORARY};
use crate::store::{unit, unreadable, unwritable};
use crate::table::{FILE, GENERATION, HASH, SHA256, Table, UNIT};
use heaptap_tables::{Cell, Columns, row_count};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::{self, File};
use std::io;

/// Number of rows of samples and classes above which a file is not merged with others; together
/// they are in memory once.
const MAX_ROWS: u64 = 2_000_000;

/// Result of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Compacted {
    /// Files that were written.
    pub written: u64,
    /// Files of earlier compactions and of interrupted writers that were removed.
    pub removed: u64,
    /// Files that were replaced; the next compaction removes them.
    pub replaced: u64,
}

/// Live rows of `recording` in a partition.
struct Live {
    rows: Columns,
    /// Row numbers by file, of the recordings that are live in it.
    files: BTreeMap<String, Vec<usize>>,
}

impl Store {
    /// Merges small files. Removes files that an earlier compaction replaced.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or written. The store then has the same
    /// recordings as before.
    pub fn compact(&mut self) -> Result<Compacted, StoreError> {
        let mut done = Compacted::default();
        let mut partitions = BTreeSet::new();
        for table in Table::ROWS.into_iter().chain([Table::Recording]) {
            partitions.extend(self.partitions(table)?);
        }
        for partition in &partitions {
            let live = self.live(partition)?;
            self.remove_replaced(partition, &live, &mut done)?;
            for group in self.groups(partition, &live)? {
                self.merge(partition, &live, &group, &mut done)?;
            }
        }
        for table in Table::NAMES {
            for partition in self.partitions(table)? {
                self.merge_names(table, &partition, &mut done)?;
            }
        }
        Ok(done)
    }

    /// Reads the rows of `recording`, and finds the live ones.
    fn live(&self, partition: &Partition) -> Result<Live, StoreError> {
        let listed: BTreeSet<String> = self
            .files(Table::Recording, partition)?
            .into_iter()
            .collect();
        let names = listed.iter().map(String::as_str);
        let rows = self.read(Table::Recording, partition, names)?;
        let mut best: HashMap<&str, (i64, i64, usize)> = HashMap::new();
        for row in 0..rows.len() {
            let sha256 = rows.text(row, SHA256).unwrap_or_default();
            let value = |column| rows.int(row, column).unwrap_or_default();
            let rank = (value(GENERATION), value(UNIT), row);
            let known = best.entry(sha256).or_insert(rank);
            *known = rank.max(*known);
        }
        let mut files: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (_, _, row) in best.into_values() {
            let file = rows.text(row, FILE).unwrap_or_default();
            // It becomes a path.
            if !listed.contains(file) {
                let directory = self.path(Table::Recording, partition, EMPTY);
                let damage = io::Error::new(
                    io::ErrorKind::InvalidData,
                    "a recording names a file that does not exist",
                );
                return Err(unreadable(directory.parent().unwrap_or(&directory))(damage));
            }
            files.entry(file.to_owned()).or_default().push(row);
        }
        // In the order of the file: the same rows make the same file.
        files.values_mut().for_each(|rows| rows.sort_unstable());
        Ok(Live { rows, files })
    }

    /// Removes files without a live unit, those of `recording` last: until they are gone, the rows
    /// of other tables must not become live.
    fn remove_replaced(
        &self,
        partition: &Partition,
        live: &Live,
        done: &mut Compacted,
    ) -> Result<(), StoreError> {
        for table in Table::ROWS.into_iter().chain([Table::Recording]) {
            for file in self.files(table, partition)? {
                if file != EMPTY && !live.files.contains_key(&file) {
                    self.remove(table, partition, &file, done)?;
                }
            }
            self.remove_temporary(table, partition)?;
        }
        Ok(())
    }

    fn remove(
        &self,
        table: Table,
        partition: &Partition,
        file: &str,
        done: &mut Compacted,
    ) -> Result<(), StoreError> {
        let path = self.path(table, partition, file);
        fs::remove_file(&path).map_err(unwritable(&path))?;
        self.step().map_err(unwritable(&path))?;
        done.removed += 1;
        Ok(())
    }

    /// Removes what a killed process left: the lock keeps others away.
    fn remove_temporary(&self, table: Table, partition: &Partition) -> Result<(), StoreError> {
        let (directory, names) = self.listed(table, partition)?;
        for name in names {
            if name.to_string_lossy().starts_with(TEMPORARY) {
                let path = directory.join(name);
                fs::remove_file(&path).map_err(unwritable(&path))?;
            }
        }
        Ok(())
    }

    /// Groups the files that become one each: those that are small.
    fn groups(&self, partition: &Partition, live: &Live) -> Result<Vec<Vec<String>>, StoreError> {
        let mut groups = Vec::new();
        let mut group: Vec<String> = Vec::new();
        let mut sum = 0;
        for file in live.files.keys() {
            let mut rows = 0;
            for table in [Table::Sample, Table::Class] {
                let path = self.path(table, partition, file);
                match File::open(&path).and_then(row_count) {
                    Ok(count) => rows += count,
                    // It has no rows of this table.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(unreadable(&path)(error)),
                }
            }
            if rows > MAX_ROWS / 2 {
                continue;
            }
            if sum + rows > MAX_ROWS {
                groups.push(std::mem::take(&mut group));
                sum = 0;
            }
            group.push(file.clone());
            sum += rows;
        }
        groups.push(group);
        groups.retain(|group| group.len() > 1);
        Ok(groups)
    }

    /// Merges files into one. The file of `recording` commits it.
    fn merge(
        &self,
        partition: &Partition,
        live: &Live,
        group: &[String],
        done: &mut Compacted,
    ) -> Result<(), StoreError> {
        let unit = unit(partition, group.iter().map(String::as_str));
        let name = format!("{COMPACTED}{unit:016x}");
        for table in Table::ROWS {
            let mut there = Vec::new();
            for file in group.iter().map(String::as_str) {
                let path = self.path(table, partition, file);
                if path.try_exists().map_err(unreadable(&path))? {
                    there.push(file);
                }
            }
            if there.is_empty() {
                continue;
            }
            let mut rows = self.read(table, partition, there.iter().copied())?;
            rows.fill(UNIT, unit);
            self.write_sorted(table, partition, &name, &rows)?;
            done.written += 1;
            done.replaced += there.len() as u64;
        }
        let rows = &live.rows;
        let columns = Table::Recording.columns().len();
        let merged: Vec<usize> = group
            .iter()
            .flat_map(|file| live.files[file].clone())
            .collect();
        let newest = merged.iter().filter_map(|&row| rows.int(row, GENERATION));
        let generation = newest.max().unwrap_or(0) + 1;
        self.write(Table::Recording, partition, &name, |out| {
            for &row in &merged {
                let cells: Vec<Cell<'_>> = (0..columns)
                    .map(|column| match column {
                        UNIT => Cell::Int(unit),
                        GENERATION => Cell::Int(generation),
                        FILE => name.as_str().into(),
                        column => rows.cell(row, column),
                    })
                    .collect();
                out.row(&cells)?;
            }
            Ok(())
        })?;
        done.written += 1;
        done.replaced += group.len() as u64;
        Ok(())
    }

    fn write_sorted(
        &self,
        table: Table,
        partition: &Partition,
        name: &str,
        rows: &Columns,
    ) -> Result<(), StoreError> {
        let columns = table.columns().len();
        self.write(table, partition, name, |out| {
            let mut cells = Vec::with_capacity(columns);
            for row in rows.order(table.order()) {
                cells.clear();
                cells.extend((0..columns).map(|column| rows.cell(row, column)));
                out.row(&cells)?;
            }
            Ok(())
        })
    }

    /// Merges the names of a partition, or removes files whose names another file has.
    fn merge_names(
        &mut self,
        table: Table,
        partition: &Partition,
        done: &mut Compacted,
    ) -> Result<(), StoreError> {
        self.remove_temporary(table, partition)?;
        let files = self.files(table, partition)?;
        let files: Vec<&str> = files
            .iter()
            .map(String::as_str)
            .filter(|f| *f != EMPTY)
            .collect();
        if files.len() < 2 {
            return Ok(());
        }
        let rows = self.read(table, partition, files.iter().copied())?;
        let mut all = HashSet::new();
        let mut distinct = Columns::new(&table.columns());
        let hash = |row: usize| rows.int(row, HASH).unwrap_or_default();
        let is_first: Vec<bool> = (0..rows.len()).map(|row| all.insert(hash(row))).collect();
        // Ids of the names, so that the file is the same however often it is written.
        let mut ids: Vec<String> = all.iter().map(|hash| format!("{hash:016x}")).collect();
        ids.sort_unstable();
        let whole = unit(partition, ids.iter().map(String::as_str));
        let name = format!("{COMPACTED}{whole:016x}");
        if files.contains(&name.as_str()) {
            for file in files.into_iter().filter(|file| *file != name) {
                self.remove(table, partition, file, done)?;
            }
            return Ok(());
        }
        distinct.extend_from(&rows, |row| is_first[row]);
        self.write_sorted(table, partition, &name, &distinct)?;
        done.written += 1;
        done.replaced += files.len() as u64;
        Ok(())
    }
}
