//! Stand-in without the feature `parquet`: no tables are written, and no flag requests them.

use super::request::File;
use crate::names::frames::LookupControl;
use heaptap_base::error::Failure;
use heaptap_export::chosen::Chosen;
use heaptap_model::heap_graph::{Dominators, HeapGraph};
use std::path::Path;

pub(super) enum Directory {}

impl Directory {
    pub(super) fn new(_: &Path, _: &LookupControl) -> Option<Directory> {
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
