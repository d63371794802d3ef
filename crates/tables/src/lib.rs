//! Parquet files as plain tables of integers, texts and flags. [`Table`] writes one, [`Columns`]
//! holds one in memory.

mod pages;
mod read;
mod write;

pub use read::{Columns, row_count};
pub use write::{
    Cell, Coding, Column, Holds, Schema, Table, always, maybe, unless_empty, unless_zero,
};
