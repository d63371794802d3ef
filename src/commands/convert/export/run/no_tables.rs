//! Stand-in without the feature `parquet`: no tables are written, and no flag requests them.

use super::File;
use crate::error::Failure;
use crate::export::chosen::Chosen;
use crate::heap_graph::{Dominators, HeapGraph};
use crate::naming::frames::LookupControl;
use std::path::Path;

pub(super) enum Folder {}

impl Folder {
    pub(super) fn new(_: &Path, _: &LookupControl) -> Option<Folder> {
        None
    }

    pub(super) fn add_java(
        &mut self,
        _: u64,
        _: &HeapGraph,
        _: &Dominators,
    ) -> Result<(), Failure> {
        match *self {}
    }

    pub(super) fn write(&mut self, _: &Chosen<'_>, _: bool) -> Result<(), Failure> {
        match *self {}
    }

    pub(super) fn into_files(self) -> Vec<File> {
        match self {}
    }
}
