//! Packet files next to a trace: `symbols`, `deobfuscation-packets`, and `symbolized-trace`, which
//! is the trace followed by both. Decides their names, and never writes through a link; `export`
//! writes their contents.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs::File;
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::r8_mappings::{UsedMap, write_known, write_packets};
use heaptap_base::directory::SYMBOLIZED_TRACE;
pub use heaptap_base::directory::{DEOBFUSCATION, SYMBOLS};
use heaptap_export::packets::{Written, write_symbols};
use heaptap_input::ImportError;
use heaptap_model::profile::{FrameId, NameMaps, Recording};
use heaptap_results::findings;
use heaptap_results::manifest::{self, Manifest};
use heaptap_results::whole_file::{WholeFile, open_inside};
use perfetto_heap::{Surveyed, TraceError};

/// The files of a directory while they are written.
#[derive(Debug)]
pub struct PacketFiles {
    directory: PathBuf,
    symbols: Option<WholeFile>,
    deobfuscation: Option<WholeFile>,
}

impl PacketFiles {
    /// Prepares the files of a directory; nothing is written yet.
    pub fn new(directory: &Path) -> PacketFiles {
        PacketFiles {
            directory: directory.to_owned(),
            symbols: None,
            deobfuscation: None,
        }
    }

    /// Adds the symbols of the frames that `chosen` selects.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be written.
    pub fn add_symbols(
        &mut self,
        recording: &Recording,
        chosen: impl Fn(FrameId) -> bool,
    ) -> io::Result<Written> {
        let mut lazy = Lazy {
            goal: self.directory.join(SYMBOLS),
            file: &mut self.symbols,
        };
        let written = write_symbols(recording, chosen, &mut lazy);
        if written.is_err() {
            // A part of them would be mistaken for all.
            self.symbols = None;
        }
        written
    }

    /// Adds the R8 mappings that named something, for their apps. Existing mappings of other apps
    /// are kept; they are only read if there is something to add.
    ///
    /// # Errors
    /// Returns an error if the existing mappings cannot be read, or the directory cannot be
    /// written.
    pub fn keep_maps(&mut self, maps: &[UsedMap]) -> io::Result<()> {
        let maps: Vec<UsedMap> = maps.iter().filter(|map| map.named_any()).cloned().collect();
        if maps.is_empty() {
            return Ok(());
        }
        let known = known_maps_io(&self.directory)?;
        let mut packages: BTreeSet<&str> = BTreeSet::new();
        for map in &maps {
            match map.packages.is_empty() {
                true => packages.insert(""),
                false => {
                    packages.extend(map.packages.iter().map(String::as_str));
                    true
                }
            };
        }
        let mut lazy = Lazy {
            goal: self.directory.join(DEOBFUSCATION),
            file: &mut self.deobfuscation,
        };
        let keeps = |package: &str, _: &str| !packages.contains(package);
        let known = write_known(&known, keeps, &mut lazy);
        let written = known.and_then(|()| write_packets(&maps, &mut lazy));
        if written.is_err() {
            self.deobfuscation = None;
        }
        written.map(drop)
    }

    /// Renames the mapping file to its final name, for a directory without a trace.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be written.
    pub fn finish_maps(self, written: &mut Vec<&'static str>) -> io::Result<()> {
        if let Some(file) = self.deobfuscation {
            file.finish()?;
            written.push(DEOBFUSCATION);
        }
        Ok(())
    }

    /// Renames the files to their final names, and writes the symbolized trace: after the first
    /// `bytes` of `raw`, because readers look for the end of a truncated packet in the following
    /// data. Adds the names of the files to `written`.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be written.
    pub fn finish(self, raw: &Path, bytes: u64, written: &mut Vec<&'static str>) -> io::Result<()> {
        for (name, file) in [(SYMBOLS, self.symbols), (DEOBFUSCATION, self.deobfuscation)] {
            if let Some(file) = file {
                file.finish()?;
                written.push(name);
            }
        }
        let parts: Vec<&str> = [SYMBOLS, DEOBFUSCATION]
            .into_iter()
            .filter(|name| is_own_file(&self.directory.join(name)))
            .collect();
        if parts.is_empty() {
            return Ok(());
        }
        let mut whole = WholeFile::named(&self.directory.join(SYMBOLIZED_TRACE))?;
        let raw = File::open(raw)?.take(bytes);
        append(raw, &mut whole)?;
        for part in parts {
            append(
                open_inside(&self.directory, part)?.take(u64::MAX),
                &mut whole,
            )?;
        }
        whole.finish()?;
        written.push(SYMBOLIZED_TRACE);
        Ok(())
    }
}

/// Stores R8 mappings in the directory of a recording without a trace: HPROFs cannot contain them,
/// and the mapping file might be missing later. Mappings that named nothing leave the stored ones
/// unchanged. Returns errors as findings.
pub fn keep_maps(
    manifest: &mut Manifest,
    maps: &[UsedMap],
    directory: &Path,
    written: &mut Vec<&'static str>,
) -> Option<manifest::Warning> {
    if !maps.iter().any(UsedMap::named_any) {
        return None;
    }
    let names = manifest.symbolization.get_or_insert_default();
    names.mappings = maps.iter().map(UsedMap::in_manifest).collect();
    let mut files = PacketFiles::new(directory);
    let kept = files.keep_maps(maps);
    let error = kept.and_then(|()| files.finish_maps(written)).err()?;
    Some(findings::packets_unwritten(&error).into_warning())
}

/// Merges the Java names stored in the directory `from` into those of `directory`. For classes in
/// both, `from` has priority.
///
/// # Errors
/// Returns an error if one of them cannot be read, or `directory` cannot be written.
pub fn join_maps(directory: &Path, from: &Path) -> io::Result<()> {
    if !is_own_file(&from.join(DEOBFUSCATION)) {
        return Ok(());
    }
    let (known, new) = (known_maps_io(directory)?, known_maps_io(from)?);
    let mut named: BTreeSet<(&str, &str)> = BTreeSet::new();
    for (package, map) in new.iter() {
        let classes = (0..map.class_count()).map(|at| map.class(at).obfuscated);
        named.extend(classes.map(|class| (package, class)));
    }
    let mut whole = WholeFile::named(&directory.join(DEOBFUSCATION))?;
    let keeps = |package: &str, class: &str| !named.contains(&(package, class));
    write_known(&known, keeps, &mut whole)?;
    append(open_inside(from, DEOBFUSCATION)?.take(u64::MAX), &mut whole)?;
    // `from` is removed after this.
    whole.flushed()?.sync_all()?;
    whole.finish()
}

/// As [`known_maps`], for rewriting them.
fn known_maps_io(directory: &Path) -> io::Result<Arc<NameMaps>> {
    known_maps::<Box<dyn Error + Send + Sync>>(directory).map_err(io::Error::other)
}

/// Returns the Java names stored by a recording; empty if there are none. `path` is its directory
/// or a file in it.
///
/// # Errors
/// Returns an error if they exist but cannot be read.
pub fn known_maps<E: From<ImportError> + From<TraceError>>(
    path: &Path,
) -> Result<Arc<NameMaps>, E> {
    let directory = match path.is_dir() {
        true => Some(path),
        // In any other directory, a file of that name does not belong to the recording.
        false => path
            .parent()
            .filter(|of| of.join(manifest::FILE_NAME).is_file()),
    };
    let packets = directory.map(|directory| directory.join(DEOBFUSCATION));
    let Some(packets) = packets.filter(|packets| is_own_file(packets)) else {
        return Ok(Arc::default());
    };
    let Some(packets) = heaptap_input::open(&packets)?.pop() else {
        return Ok(Arc::default());
    };
    Ok(Arc::clone(Surveyed::read(packets.source)?.name_maps()))
}

fn append(mut from: io::Take<File>, to: &mut WholeFile) -> io::Result<()> {
    // For file-to-file copies, the system can share the bytes.
    io::copy(&mut from, to.flushed()?)?;
    Ok(())
}

/// Returns whether a directory has a regular file of this name, not a link.
pub(crate) fn is_own_file(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file())
}

/// Removes the symbolized trace, which can be recreated and is as large as the trace. Returns
/// whether space was freed.
pub fn make_room(directory: &Path) -> bool {
    std::fs::remove_file(directory.join(SYMBOLIZED_TRACE)).is_ok()
}

/// A file that is opened when its first byte is written.
struct Lazy<'a> {
    goal: PathBuf,
    file: &'a mut Option<WholeFile>,
}

impl Write for Lazy<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.file.is_none() {
            *self.file = Some(WholeFile::named(&self.goal)?);
        }
        self.file.as_mut().map_or(Ok(0), |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), WholeFile::flush)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::r8_mappings::{GivenMap, Origin};
    use heaptap_export::deobfuscation_packets::MapWriter;
    use heaptap_symbols::deobfuscate::MapFile;

    fn listed(directory: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).unwrap();
        let names = entries.map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    /// Packets of classes: package, minified name, name.
    fn packets(classes: &[(&str, &str, &str)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (package, obfuscated, original) in classes {
            let mut writer = MapWriter::new(package, &mut bytes);
            writer.class(obfuscated, original).unwrap();
            writer.finish().unwrap();
        }
        bytes
    }

    fn kept(directory: &Path) -> Vec<(String, String, String)> {
        let maps = known_maps_io(directory).unwrap();
        let mut all = Vec::new();
        for (package, map) in maps.iter() {
            for class in (0..map.class_count()).map(|at| map.class(at)) {
                let names = [package, class.obfuscated, class.original];
                all.push(names.map(str::to_owned).into());
            }
        }
        all
    }

    #[test]
    fn names_of_an_app_that_ended_stay_when_others_are_added() {
        let (directory, from) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        join_maps(directory.path(), from.path()).unwrap();
        assert_eq!(listed(directory.path()), [""; 0], "there is nothing to add");
        let add = |classes: &[(&str, &str, &str)]| {
            std::fs::write(from.path().join(DEOBFUSCATION), packets(classes)).unwrap();
            join_maps(directory.path(), from.path()).unwrap();
        };
        let of = |classes: &[(&str, &str, &str)]| -> Vec<(String, String, String)> {
            let owned = |c: &(&str, &str, &str)| (c.0.into(), c.1.into(), c.2.into());
            classes.iter().map(owned).collect()
        };
        // Entries without a package are mappings of an unnamed app.
        let both = [
            ("", "a", "Old"),
            ("", "b", "Other"),
            ("one", "a", "Activity"),
            ("two", "a", "Service"),
        ];
        add(&both);
        assert_eq!(kept(directory.path()), of(&both));
        add(&[("", "a", "New"), ("one", "a", "Activity")]);
        let mut all = kept(directory.path());
        all.sort();
        assert_eq!(
            all,
            of(&[
                ("", "a", "New"),
                ("", "b", "Other"),
                ("one", "a", "Activity"),
                ("two", "a", "Service"),
            ])
        );
        assert_eq!(listed(directory.path()), [DEOBFUSCATION]);
    }

    #[test]
    fn names_that_cannot_be_read_matter_only_where_others_are_added() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("mapping.txt"), "com.example.App -> a:\n").unwrap();
        std::fs::write(path(DEOBFUSCATION), "damaged").unwrap();
        let mut used = UsedMap {
            map: GivenMap {
                package: None,
                file: Arc::new(MapFile::open(&path("mapping.txt")).unwrap()),
                origin: Origin::Given,
            },
            packages: BTreeSet::new(),
            frames_named: 0,
            classes_named: 0,
        };
        let keep = |used: &UsedMap| {
            PacketFiles::new(directory.path()).keep_maps(std::slice::from_ref(used))
        };
        keep(&used).unwrap();
        used.classes_named = 1;
        keep(&used).unwrap_err();
        let kept = std::fs::read(path(DEOBFUSCATION)).unwrap();
        assert_eq!(kept, b"damaged", "what cannot be read is not replaced");
    }

    #[test]
    fn the_whole_trace_is_the_trace_and_what_is_behind_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("raw-trace"), "trace, cut").unwrap();
        let finished = |files: PacketFiles, bytes| {
            let mut written = Vec::new();
            files
                .finish(&path("raw-trace"), bytes, &mut written)
                .unwrap();
            written
        };
        let files = || PacketFiles::new(directory.path());
        assert_eq!(finished(files(), 99), [""; 0]);
        assert_eq!(listed(directory.path()), ["raw-trace"]);
        std::fs::write(path(DEOBFUSCATION), " renamed").unwrap();
        std::fs::write(path(SYMBOLS), " symbols").unwrap();
        assert_eq!(finished(files(), 99), [SYMBOLIZED_TRACE]);
        let whole = || std::fs::read_to_string(path(SYMBOLIZED_TRACE)).unwrap();
        assert_eq!(whole(), "trace, cut symbols renamed");
        assert_eq!(finished(files(), 5), [SYMBOLIZED_TRACE]);
        assert_eq!(whole(), "trace symbols renamed");
    }
}
