//! Mapping files as packets of a trace: those that were used, and those that a trace held before.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::PathBuf;

use super::{Origin, UsedMap};
use crate::deobfuscate::{Entry, MapFile};
use crate::export::deobfuscation_packets::{MapWriter, WrittenMap};
use crate::profile::NameMaps;

/// What was written of a mapping file for a package.
#[derive(Debug, Clone)]
pub struct WrittenPackage {
    /// The file.
    pub path: PathBuf,
    /// Who named it.
    pub origin: Origin,
    /// The app it is of; empty where nobody said and the trace does not tell: then it is for
    /// Java heap dumps alone.
    pub package: String,
    /// How much it was.
    pub written: WrittenMap,
}

/// Writes maps as packets, each once for each of its packages. One that is for no package in
/// particular is left out, unless `nameless` is set.
///
/// # Errors
/// Where `out` fails.
pub fn write_packets(
    maps: &[UsedMap],
    nameless: bool,
    out: &mut dyn Write,
) -> io::Result<Vec<WrittenPackage>> {
    let none = BTreeSet::from([String::new()]);
    let mut all = Vec::new();
    for used in maps {
        let packages = match used.packages.is_empty() && nameless {
            true => &none,
            false => &used.packages,
        };
        for package in packages {
            all.push(WrittenPackage {
                path: used.map.file.path().to_owned(),
                origin: used.map.origin.clone(),
                package: package.clone(),
                written: write_map(&used.map.file, package, out)?,
            });
        }
    }
    Ok(all)
}

/// Writes the names that packets hold once more: those of the classes for which `keeps` holds, by
/// package and minified name.
///
/// # Errors
/// Where `out` fails.
pub fn write_known(
    known: &NameMaps,
    keeps: impl Fn(&str, &str) -> bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    for (package, map) in known.iter() {
        let mut writer = MapWriter::new(package, out);
        let classes = (0..map.class_count()).map(|at| map.class(at));
        for class in classes.filter(|class| keeps(package, class.obfuscated)) {
            writer.class(class.obfuscated, class.original)?;
            for member in class.members() {
                match member.is_method {
                    true => writer.method(member.obfuscated, member.original, member.lines)?,
                    false => writer.field(member.obfuscated, member.original)?,
                }
            }
        }
        writer.finish()?;
    }
    Ok(())
}

fn write_map(file: &MapFile, package: &str, out: &mut dyn Write) -> io::Result<WrittenMap> {
    let mut writer = MapWriter::new(package, out);
    file.entries(|entry| match entry {
        Entry::Class {
            obfuscated,
            original,
        } => writer.class(obfuscated, original),
        Entry::Field {
            obfuscated,
            original,
        } => writer.field(obfuscated, &original),
        Entry::Method {
            obfuscated,
            original,
            lines,
        } => writer.method(obfuscated, &original, lines),
    })?;
    writer.finish()
}
