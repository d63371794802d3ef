//! heaptap's own tables over native heaps. They contain named stacks with separate frames for
//! inlined functions, the memory of each dump by stack, and sums over trees and functions; with
//! Perfetto's tables these take long statements. Names and numbers are those of heaptap's pprof
//! files.

mod dumps;
mod profile;
mod sums;
mod tree;

use std::sync::{Arc, OnceLock};

use super::native::NativeHeaps;
use super::processes::Processes;
use super::table::{Catalog, View};
use heaptap_model::stacks::StackProfile;
use profile::Stacks;

/// Adds the tables and views for the native heaps of a trace.
pub fn add(catalog: &mut Catalog, heaps: &Arc<NativeHeaps>, processes: &Arc<Processes>) {
    let of = Arc::clone(heaps);
    add_tables(
        catalog,
        Stacks {
            facts: heaps.facts().collect(),
            processes: Arc::clone(processes),
            profile: OnceLock::new(),
            make: Box::new(move || of.stack_profile()),
        },
    );
}

/// Adds the tables and views for stacks with names: those of pprof files.
pub fn add_profile(catalog: &mut Catalog, profile: StackProfile, processes: &Arc<Processes>) {
    let facts = profile.dumps.iter().map(|dump| dump.facts.clone());
    add_tables(
        catalog,
        Stacks {
            facts: facts.collect(),
            processes: Arc::clone(processes),
            profile: OnceLock::from(profile),
            make: Box::new(StackProfile::default),
        },
    );
}

fn add_tables(catalog: &mut Catalog, stacks: Stacks) {
    let stacks = Arc::new(stacks);
    dumps::add(catalog, &stacks);
    let tree = tree::add(catalog, &stacks);
    sums::add(catalog, &stacks, tree);
    catalog.view(View {
        name: "heaptap_live",
        module: None,
        about: "Unreleased memory in the last dump of each process and heap, by callstack.",
        sql: "SELECT d.id AS dump_id, d.ts, d.upid, d.process, d.heap_name, s.stack_id, s.size, s.count, \
              s.alloc_size, s.alloc_count, n.name, n.library, n.source_file, n.line_number, \
              n.stack \
              FROM heaptap_dump d \
              JOIN heaptap_sample s ON s.dump_id = d.id \
              JOIN heaptap_stack n ON n.id = s.stack_id \
              WHERE d.is_last AND COALESCE(s.size, s.alloc_size) <> 0",
    });
}
