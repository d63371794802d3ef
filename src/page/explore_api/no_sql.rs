//! `sql` in builds without SQL.

use crate::heaps::java::facts::HeapFacts;
use heaptap_explore::Explorer;
use heaptap_model::heap_graph::OutOfMemory;

/// There is no database.
pub(super) enum HeapSql {}

/// A statement failed.
pub(super) struct SqlProblem(pub String);

impl HeapSql {
    pub(super) fn open(
        _: &Explorer,
        _: &HeapFacts,
        _: Option<OutOfMemory>,
    ) -> Result<HeapSql, SqlProblem> {
        let why = "this build does not contain SQL; build with the feature `sql`";
        Err(SqlProblem(why.to_owned()))
    }

    pub(super) fn run(&self, _: &str) -> Result<(), SqlProblem> {
        match *self {}
    }
}
