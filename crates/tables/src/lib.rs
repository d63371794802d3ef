//! Parquet files as plain tables of integers, texts and flags. [`Table`] writes one, [`Columns`]
//! holds one in memory.

mod pages;
mod read;
mod write;

pub use read::{Columns, row_count};
pub use write::{
    Cell, Coding, Column, Holds, Schema, Table, always, maybe, unless_empty, unless_zero,
};

use parquet::errors::ParquetError;
use std::io;

/// Returns the underlying I/O error if there is one.
fn as_io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(source) => io::Error::other(source),
        },
        error => io::Error::other(error),
    }
}
