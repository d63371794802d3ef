//! A store on disk: its lock, its files, and appending a recording.

use crate::partition::Partition;
use crate::recording::{Recording, first_bytes};
use crate::rows;
use crate::table::{HASH, SCHEMA, SHA256, Table};
use heaptap_base::directory::sync;
use heaptap_base::{temp_cleanup, unfinished};
use heaptap_tables::{Columns, Table as Writer};
use sha2::{Digest as _, Sha256};
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Directory of this version.
const VERSION: &str = "v1";
const LOCK: &str = ".lock";
/// Prefix of temporary files, which readers skip.
pub(crate) const TEMPORARY: &str = ".heaptap-";
/// A file without rows in each table, so that a reader finds the columns of all.
pub(crate) const EMPTY: &str = "empty";
/// Prefix of compacted files.
pub(crate) const COMPACTED: &str = "c-";

/// Error of a store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The directory has other content.
    #[error("{} is not an archive", .0.display())]
    NotAStore(PathBuf),
    /// A file of the store cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    /// A file cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

pub(crate) fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    |source| StoreError::Read { path, source }
}

pub(crate) fn unwritable(path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    |source| StoreError::Write { path, source }
}

/// A store, locked for this process.
#[derive(Debug)]
pub struct Store {
    /// Directory of the version.
    root: PathBuf,
    /// SHA-256 of the recordings.
    recordings: HashSet<String>,
    /// Hashes in the names of partitions that were used.
    named: HashMap<(Table, PathBuf), HashSet<i64>>,
    _lock: File,
    /// Called at every step that a reader can see, and fails as a crash does.
    #[cfg(test)]
    pub(crate) hook: Option<crate::tests::Hook>,
}

impl Store {
    /// Opens a store, or creates it in a new or empty directory. Waits until no other process has
    /// it open.
    ///
    /// # Errors
    /// Returns an error if the directory has other content, or cannot be read and written.
    pub fn open(directory: &Path) -> Result<Store, StoreError> {
        let root = directory.join(VERSION);
        fs::create_dir_all(directory).map_err(unwritable(directory))?;
        if !root.is_dir() {
            for name in names_in(directory).map_err(unreadable(directory))? {
                // Another process can create the store meanwhile.
                if name != LOCK && name != VERSION {
                    return Err(StoreError::NotAStore(directory.to_owned()));
                }
            }
        }
        let path = directory.join(LOCK);
        let mut options = File::options();
        let lock = options.write(true).create(true).truncate(false).open(&path);
        let lock = lock.map_err(unwritable(directory))?;
        fs4::FileExt::lock(&lock).map_err(unwritable(directory))?;
        let mut store = Store {
            root,
            recordings: HashSet::new(),
            named: HashMap::new(),
            _lock: lock,
            #[cfg(test)]
            hook: None,
        };
        store.write_empty()?;
        store.list()?;
        Ok(store)
    }

    /// Writes a file without rows for each table that has none.
    fn write_empty(&self) -> Result<(), StoreError> {
        let none = Partition {
            app: "none".to_owned(),
            day: Some("none".to_owned()),
            build: "none".to_owned(),
        };
        for table in Table::ALL {
            let path = self.path(table, &none, EMPTY);
            if !path.is_file() {
                self.write(table, &none, EMPTY, |_| Ok(()))?;
            }
        }
        Ok(())
    }

    /// Lists the recordings. Only compacted files have to be read.
    fn list(&mut self) -> Result<(), StoreError> {
        for partition in self.partitions(Table::Recording)? {
            for file in self.files(Table::Recording, &partition)? {
                if file.starts_with(COMPACTED) {
                    let files = [file.as_str()];
                    let rows = self.read_column(Table::Recording, SHA256, &partition, files)?;
                    let hashes = (0..rows.len()).filter_map(|row| rows.text(row, 0));
                    self.recordings.extend(hashes.map(str::to_owned));
                } else if file != EMPTY {
                    self.recordings.insert(file);
                }
            }
        }
        Ok(())
    }

    /// Returns the SHA-256 of all recordings, and unlocks the store. Writers only add recordings.
    pub fn into_recordings(self) -> HashSet<String> {
        self.recordings
    }

    /// Returns whether the store has a recording.
    pub fn contains(&self, sha256: &str) -> bool {
        self.recordings.contains(sha256)
    }

    /// Number of recordings.
    pub fn len(&self) -> usize {
        self.recordings.len()
    }

    /// Returns whether there are no recordings.
    pub fn is_empty(&self) -> bool {
        self.recordings.is_empty()
    }

    /// Adds a recording. Returns false if the store has it already.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written; the store then does not have the recording.
    pub fn append(&mut self, recording: &Recording) -> Result<bool, StoreError> {
        if self.contains(&recording.sha256) {
            return Ok(false);
        }
        let partition = Partition {
            app: recording.app.clone(),
            day: Some(recording.day.clone()),
            build: recording.build.clone(),
        };
        let file = &recording.sha256;
        // A recording that was left half-written in another partition must stay invisible.
        let unit = unit(&partition, [file.as_str()]);
        self.append_names(recording, &partition.of_names())?;
        for table in Table::ROWS {
            if !rows::has(recording, table) {
                self.remove_uncommitted(table, &partition, file)?;
                continue;
            }
            self.write(table, &partition, file, |out| {
                rows::write(out, table, recording, unit)
            })?;
        }
        self.write(Table::Recording, &partition, file, |out| {
            rows::write_recording(out, recording, unit)
        })?;
        self.recordings.insert(file.clone());
        Ok(true)
    }

    /// Removes rows of an interrupted writer, whose unit is that of the recording: they would become
    /// live with it.
    fn remove_uncommitted(
        &self,
        table: Table,
        partition: &Partition,
        file: &str,
    ) -> Result<(), StoreError> {
        let path = self.path(table, partition, file);
        let remove = || match fs::remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
            Ok(()) => {
                sync(path.parent().unwrap_or(&path))?;
                self.step()
            }
        };
        remove().map_err(unwritable(&path))
    }

    /// Writes the names that the partition does not have.
    fn append_names(
        &mut self,
        recording: &Recording,
        partition: &Partition,
    ) -> Result<(), StoreError> {
        let names = &recording.names;
        for table in Table::NAMES {
            let key = (table, partition.path());
            if !self.named.contains_key(&key) {
                let known = self.hashes(table, partition)?;
                self.named.insert(key.clone(), known);
            }
            let known = &self.named[&key];
            let mut new = rows::named(table, names);
            new.retain(|hash| !known.contains(hash));
            if new.is_empty() {
                continue;
            }
            let file = self.free_name(table, partition, &recording.sha256);
            self.write(table, partition, &file, |out| {
                rows::write_names(out, table, names, &new)
            })?;
            self.named.entry(key).or_default().extend(new);
        }
        Ok(())
    }

    /// Returns a name that no file has: other recordings rely on the names that an interrupted attempt has
    /// written.
    fn free_name(&self, table: Table, partition: &Partition, file: &str) -> String {
        let numbered = (2..).map(|number: u32| format!("{file}-{number}"));
        let mut names = std::iter::once(file.to_owned()).chain(numbered);
        let free = names.find(|name| !self.path(table, partition, name).exists());
        free.expect("there are fewer files than numbers")
    }

    /// Returns the hashes that a partition has names for.
    fn hashes(&self, table: Table, partition: &Partition) -> Result<HashSet<i64>, StoreError> {
        let files = self.files(table, partition)?;
        let files = files.iter().map(String::as_str);
        let rows = self.read_column(table, HASH, partition, files)?;
        let hashes = (0..rows.len()).filter_map(|row| rows.int(row, 0));
        Ok(hashes.collect())
    }

    pub(crate) fn path(&self, table: Table, partition: &Partition, file: &str) -> PathBuf {
        let partition = match table.is_of_names() {
            true => partition.of_names().path(),
            false => partition.path(),
        };
        let directory = self.root.join(table.name()).join(partition);
        directory.join(format!("{file}.parquet"))
    }

    pub(crate) fn partitions(&self, table: Table) -> Result<Vec<Partition>, StoreError> {
        let directory = self.root.join(table.name());
        Partition::list(&directory, !table.is_of_names()).map_err(unreadable(&directory))
    }

    /// Returns the directory of a partition and all names in it; none if it does not exist.
    pub(crate) fn listed(
        &self,
        table: Table,
        partition: &Partition,
    ) -> Result<(PathBuf, Vec<OsString>), StoreError> {
        let mut directory = self.path(table, partition, EMPTY);
        directory.pop();
        match names_in(&directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok((directory, Vec::new())),
            Err(error) => Err(unreadable(&directory)(error)),
            Ok(names) => Ok((directory, names)),
        }
    }

    /// Returns the names of the files of a partition without their ending, sorted.
    pub(crate) fn files(
        &self,
        table: Table,
        partition: &Partition,
    ) -> Result<Vec<String>, StoreError> {
        let (_, names) = self.listed(table, partition)?;
        let mut files: Vec<String> = names
            .into_iter()
            .filter_map(|name| Some(name.to_str()?.strip_suffix(".parquet")?.to_owned()))
            .filter(|name| !name.starts_with('.'))
            .collect();
        files.sort();
        Ok(files)
    }

    /// Reads files of a partition.
    pub(crate) fn read<'a>(
        &self,
        table: Table,
        partition: &Partition,
        files: impl IntoIterator<Item = &'a str>,
    ) -> Result<Columns, StoreError> {
        let mut rows = Columns::new(&table.columns());
        for file in files {
            let path = self.path(table, partition, file);
            let read = File::open(&path).and_then(|file| rows.append(file));
            read.map_err(unreadable(&path))?;
        }
        Ok(rows)
    }

    /// Reads one column of files of a partition.
    fn read_column<'a>(
        &self,
        table: Table,
        column: usize,
        partition: &Partition,
        files: impl IntoIterator<Item = &'a str>,
    ) -> Result<Columns, StoreError> {
        let columns = table.columns();
        let mut rows = Columns::new(&columns[column..=column]);
        for file in files {
            let path = self.path(table, partition, file);
            let read =
                File::open(&path).and_then(|file| rows.append_columns(file, &columns, &[column]));
            read.map_err(unreadable(&path))?;
        }
        Ok(rows)
    }

    /// Does nothing outside of tests.
    pub(crate) fn step(&self) -> io::Result<()> {
        #[cfg(test)]
        if let Some(hook) = &self.hook {
            hook.call()?;
        }
        Ok(())
    }

    /// Writes a file: under a temporary name, synced, then renamed, and the directory synced.
    pub(crate) fn write(
        &self,
        table: Table,
        partition: &Partition,
        file: &str,
        rows: impl FnOnce(&mut Writer<File>) -> io::Result<()>,
    ) -> Result<(), StoreError> {
        let path = self.path(table, partition, file);
        let write = || {
            let directory = path.parent().unwrap_or(&path);
            create_synced(directory)?;
            let create = || unfinished::file_in(directory, TEMPORARY);
            let temporary = temp_cleanup::tracked(create, |file| file.path())?;
            let out = temporary.as_file().try_clone()?;
            let mut out = Writer::new(out, SCHEMA, table.name(), table.columns())?;
            rows(&mut out)?;
            out.finish()?.sync_all()?;
            self.step()?;
            unfinished::replace(temporary.into_temp_path(), &path)?;
            sync(directory)?;
            self.step()
        };
        write().map_err(unwritable(&path))
    }
}

/// Returns the names in a directory. An entry that cannot be read is an error: a compaction removes
/// files that others do not refer to.
fn names_in(directory: &Path) -> io::Result<Vec<OsString>> {
    let entries = fs::read_dir(directory)?;
    entries.map(|entry| Ok(entry?.file_name())).collect()
}

/// Creates a directory, and syncs the entries of those that are new.
fn create_synced(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    if let Some(parent) = directory.parent() {
        create_synced(parent)?;
        match fs::create_dir(directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => sync(parent)?,
        }
    }
    Ok(())
}

/// Returns the unit of a file that is written for these recordings or from these files.
pub(crate) fn unit<'a>(partition: &Partition, of: impl IntoIterator<Item = &'a str>) -> i64 {
    let mut digest = Sha256::new();
    digest.update(partition.path().to_string_lossy().as_bytes());
    for file in of {
        digest.update([0]);
        digest.update(file);
    }
    first_bytes(&digest.finalize())
}
