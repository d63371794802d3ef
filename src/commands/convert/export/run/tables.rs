//! Directory of Parquet tables during writing.

use super::goal::unless_cancelled;
use super::request::File;
use crate::heaps::input::InputError;
use crate::names::frames::LookupControl;
use heaptap_base::error::Failure;
use heaptap_export::chosen::Chosen;
use heaptap_export::parquet::{self, Files, JavaTables};
use heaptap_model::heap_graph::{Dominators, HeapGraph};
use heaptap_results::destination::unwritable;
use heaptap_results::whole_file::WholeFile;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Tables of one directory.
pub(super) struct Directory {
    files: Written,
    java: Option<JavaTables<Written>>,
}

impl Directory {
    /// Creates the writer without writing a file.
    pub(super) fn new(path: &Path, control: &LookupControl) -> Option<Directory> {
        Some(Directory {
            files: Written {
                control: control.clone(),
                directory: path.to_owned(),
                done: Vec::new(),
            },
            java: None,
        })
    }

    /// Adds the objects and classes of a Java heap.
    pub(super) fn add_java(
        &mut self,
        dump_id: u64,
        graph: &HeapGraph,
        dominators: &Dominators,
    ) -> Result<(), Failure> {
        let mut tables = match self.java.take() {
            Some(tables) => tables,
            None => JavaTables::begin(&mut self.files).map_err(|e| self.unwritable(e))?,
        };
        let added = tables.add(dump_id, graph, dominators);
        self.java = Some(tables);
        added.map_err(|error| self.unwritable(error))
    }

    /// Writes the remaining tables and completes those of Java heaps.
    pub(super) fn write(&mut self, chosen: &Chosen<'_>, java: bool) -> Result<(), Failure> {
        let written = parquet::write(&mut self.files, chosen, java);
        let written = written.and_then(|()| match self.java.take() {
            Some(tables) => tables.finish(&mut self.files),
            None => Ok(()),
        });
        written.map_err(|error| self.unwritable(error))
    }

    /// Returns the written files.
    pub(super) fn into_files(self) -> Vec<File> {
        self.files.done
    }

    fn unwritable(&self, source: io::Error) -> Failure {
        match self.files.control.is_cancelled() {
            true => InputError::Interrupted.into(),
            false => unwritable(self.files.directory.display(), &source),
        }
    }
}

struct Written {
    control: LookupControl,
    directory: PathBuf,
    done: Vec<File>,
}

/// File of a table, with its size so far.
struct TableFile {
    file: WholeFile,
    path: PathBuf,
    bytes: u64,
    control: LookupControl,
}

impl Write for TableFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        unless_cancelled(&self.control)?;
        let written = self.file.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Files for Written {
    type File = TableFile;

    fn create(&mut self, name: &str) -> io::Result<TableFile> {
        let path = self.directory.join(name);
        Ok(TableFile {
            file: WholeFile::named(&path)?,
            path,
            bytes: 0,
            control: self.control.clone(),
        })
    }

    fn finish(&mut self, table: TableFile) -> io::Result<()> {
        table.file.finish()?;
        self.done.push(File {
            path: table.path,
            dump: None,
            view: None,
            bytes: table.bytes,
        });
        Ok(())
    }
}
