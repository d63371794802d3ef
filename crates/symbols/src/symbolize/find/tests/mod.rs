//! One fixture for each kind of place: small trees in a temporary directory, with ELF files that
//! contain only what a search reads.

mod archives;
mod companions;
mod order;
mod places;
pub(in crate::symbolize) mod sample_files;
mod servers;
mod trees;

use super::{Finder, Found, Place, Places};
use sample_files::library;
use std::path::Path;

/// Returns places with only these `--symbols` roots.
fn symbols(roots: &[impl AsRef<Path>]) -> Places {
    Places {
        symbols: roots.iter().map(|root| root.as_ref().to_owned()).collect(),
        ..Places::default()
    }
}

fn find(places: Places, path: &str, build_id: &[u8]) -> Found {
    Finder::new(places).find(&library(path, build_id))
}

/// Returns the paths of the candidates below `root`, with forward slashes.
fn paths(found: &Found, root: &Path) -> Vec<String> {
    let root = format!("{}/", root.display()).replace('\\', "/");
    let candidates = found.candidates.iter();
    let paths = candidates.map(|c| c.path.replace('\\', "/").replacen(&root, "", 1));
    paths.collect()
}

fn places_of(found: &Found) -> Vec<Place> {
    found.candidates.iter().map(|c| c.place).collect()
}

fn reasons(found: &Found) -> Vec<&'static str> {
    found.attempts.iter().map(|a| a.why_not.word()).collect()
}
