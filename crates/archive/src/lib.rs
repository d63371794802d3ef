//! A growing dataset of heap profiles as Parquet files. [`Store::append`] adds a recording,
//! [`Store::compact`] merges small files. `fleet/` in the repository has the questions.
//!
//! # Layout, version 1
//!
//! ```text
//! STORE/v1/TABLE/app=APP/day=DAY/build=BUILD/FILE.parquet    recording, dump, sample, class, leak
//! STORE/v1/TABLE/app=APP/build=BUILD/FILE.parquet            callsite, class_name, leak_name
//! ```
//!
//! `FILE` is the SHA-256 of the recording, or `c-HASH` after compaction. [`Table`] has the columns.
//! Any other column, type or meaning is a new version, in a directory of its own.
//!
//! # Commit protocol
//!
//! - Every row has the `unit` of the file that it was written with. A unit is live if a row of
//!   `recording` has it: the row with the highest `generation` of each `sha256`, then the highest
//!   unit. Readers ignore rows of other units.
//! - Readers list the files of `recording` first, then those of other tables. The units of the listed
//!   recordings remain during one compaction. In the other order, a recording that a compaction moves
//!   in between has no rows.
//! - A writer renames and syncs the names first, then the rows, and the file of `recording` last.
//!   That rename is the commit, of an appended recording as of a compaction.
//! - A compaction keeps the files that it replaced, because a query may have listed them. The next
//!   one removes all files without a live unit.
//! - Names have no units: readers group them by hash. A names file is removed if another one has
//!   all of its hashes.
//! - Temporary files begin with a dot. A lock on `STORE/.lock` admits one writer.
//!
//! # Callsite hash
//!
//! The hash of the root is 0. The hash of a callsite is the first 8 bytes, as a signed big-endian
//! integer, of the SHA-256 of its caller's hash (8 bytes, big-endian), the function's name, a zero
//! byte, the file name of the library, and a zero byte. Names are those that heaptap shows without
//! annotations; lines and build IDs do not matter. Classes and leaks: the same over 8 zero bytes and
//! the class name, or over the leak's signature.

mod callsite;
mod compact;
mod partition;
mod recording;
mod rows;
mod store;
mod table;

pub use callsite::{Callsites, hash_text};
pub use compact::Compacted;
pub use recording::{Callsite, ClassRow, Dump, LeakName, LeakRow, Names, Recording, SampleRow};
pub use store::{Store, StoreError};
pub use table::Table;

#[cfg(test)]
mod tests;
