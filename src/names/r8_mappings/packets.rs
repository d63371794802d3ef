//! Mapping files as packets of a trace: those that were used, and those that a trace held before.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::PathBuf;

use serde::{Serialize, Serializer};

use super::used::{Origin, UsedMap};
use heaptap_export::deobfuscation_packets::{MapWriter, WrittenMap};
use heaptap_model::profile::NameMaps;
use heaptap_symbols::deobfuscate::{Entry, MapFile};

/// Written data of an R8 mapping for a package.
#[derive(Debug, Clone, Serialize)]
pub struct WrittenPackage {
    #[serde(rename = "file")]
    pub path: PathBuf,
    #[serde(serialize_with = "put_word")]
    pub origin: Origin,
    /// Its app; empty if unknown, in which case it only applies to Java heap dumps.
    pub package: String,
    /// Amount of data.
    #[serde(flatten)]
    pub written: WrittenMap,
}

fn put_word<S: Serializer>(origin: &Origin, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(origin.word())
}

/// Writes mappings as packets, once for each of their packages, or for none.
///
/// # Errors
/// Returns an error if writing to `out` fails.
pub fn write_packets(maps: &[UsedMap], out: &mut dyn Write) -> io::Result<Vec<WrittenPackage>> {
    let none = BTreeSet::from([String::new()]);
    let mut all = Vec::new();
    for used in maps {
        let packages = match used.packages.is_empty() {
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

/// Writes the names of packets again: those of the classes selected by `keeps`, by package and
/// minified name.
///
/// # Errors
/// Returns an error if writing to `out` fails.
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
