//! pprofs as dumps, one each. The file name and the manifest of the directory supply missing facts.

use std::collections::BTreeSet;
use std::path::Path;

use super::choice::{DumpScope, choose, mark_defaults, unmatched};
use super::error::InputError;
use super::native::{ListedDump, NativeFile, joined};
use super::options::LookOptions;
use crate::heaps::selector::DumpSelector;
use crate::heaps::trace_findings;
use heaptap_analyze::native::sampled;
use heaptap_base::error::ErrorClass;
use heaptap_base::untrusted::sanitize;
use heaptap_input::{ImportError, PprofInput, read_pprof};
use heaptap_model::profile::{DumpKind, DumpNumbers};
use heaptap_model::stacks::{Dump, Facts, StackProfile, TRACKED_HEAP, View, sum};
use heaptap_results::findings::Finding;
use heaptap_results::lists::join_list;
use heaptap_results::manifest::{self, Manifest, Totals};

/// Opens pprofs.
///
/// # Errors
/// Returns an error if none is readable, or the selected one does not exist.
pub(super) fn open(
    name: &str,
    inputs: &[PprofInput],
    manifest: Option<&Manifest>,
    wanted: &DumpScope,
    options: &LookOptions,
) -> Result<NativeFile, InputError> {
    let mut findings = Vec::new();
    let mut profiles: Vec<StackProfile> = Vec::new();
    let mut listed = Vec::new();
    let mut numbers = DumpNumbers::default();
    let mut flagged = Vec::new();
    let mut unreadable = None;
    for input in inputs {
        let read = match read_pprof(&input.bytes) {
            Some(read) if read.has_names() => read,
            read => {
                let what = match read {
                    Some(_) => "the names of its columns are missing",
                    None => "nothing in it is readable",
                };
                unreadable.get_or_insert(what);
                flagged.push(damage(&input.name, &format!("{what}; it is left out")));
                continue;
            }
        };
        if let Some(what) = &input.damage {
            findings.push(trace_findings::damaged(&input.name, what));
        }
        let is_whole = input.damage.is_none() && read.damage.is_none();
        if let Some(what) = read.damage {
            let what = format!("{what}; the rest was read");
            findings.push(damage(&input.name, &what));
        }
        let mut profile = read.profile;
        for dump in &mut profile.dumps {
            from_file_name(&mut dump.facts, &input.name);
            if dump.facts.number == 0 {
                dump.facts.number = numbers.next(dump.facts.pid, &dump.facts.heap);
            }
            let entry = manifest.and_then(|manifest| entry_of(manifest, &input.name));
            if let Some(entry) = entry {
                from_manifest(&mut dump.facts, entry);
                let is_cumulative = dump.facts.kind == DumpKind::Cumulative;
                if is_whole && is_cumulative && totals(dump) != Some(entry.totals) {
                    findings.push(changed(&input.name));
                }
            }
            let mut labels = manifest
                .zip(entry)
                .map_or_else(Vec::new, |(manifest, entry)| {
                    manifest.labels_of(&entry.id())
                });
            let tracked = manifest.and_then(|manifest| tracked_of(manifest, &input.name));
            if let Some(tracked) = tracked {
                dump.facts.number = tracked.number;
                dump.facts.label.clone_from(&tracked.label);
                dump.facts.time_ns = Some(tracked.time_ns);
                labels.extend(tracked.label.clone());
            }
            listed.push(ListedDump {
                labels,
                facts: dump.facts.clone(),
                totals: totals(dump),
                held: options
                    .errors
                    .then(|| sampled::total(dump, View::Space))
                    .flatten(),
                callsites: dump.values.nodes.len() as u64,
            });
        }
        profiles.push(profile);
    }
    if listed.is_empty() {
        return Err(InputError::Import(ImportError::Damaged {
            name: name.to_owned(),
            what: unreadable.unwrap_or("it contains no profile").to_owned(),
        }));
    }
    findings.extend(flagged);
    findings.extend(manifest.and_then(|manifest| missing(manifest, inputs, wanted)));
    mark_defaults(&mut listed);
    let chosen = choose(name, &listed, manifest, options, wanted)?;
    findings.extend(unmatched(&listed, options));
    let mut place = 0;
    for profile in &mut profiles {
        profile.dumps.retain_mut(|dump| {
            dump.facts.is_default = listed[place].facts.is_default;
            place += 1;
            chosen.binary_search(&(place - 1)).is_ok()
        });
    }
    profiles.retain(|profile| !profile.dumps.is_empty());
    Ok(NativeFile {
        profile: joined(profiles),
        listed: listed.into(),
        findings,
        ..NativeFile::default()
    })
}

/// Returns a finding about profiles of the manifest that are missing from the directory, unless
/// only existing dumps are selected.
fn missing(manifest: &Manifest, inputs: &[PprofInput], wanted: &DumpScope) -> Option<Finding> {
    let names = inputs.iter().map(|input| Path::new(&input.name));
    let there: BTreeSet<_> = names.filter_map(Path::file_name).collect();
    let is_there = |file: &String| {
        let name = Path::new(file).file_name();
        name.is_some_and(|name| there.contains(name))
    };
    let files = manifest
        .dumps
        .native
        .iter()
        .filter_map(|dump| dump.file.as_ref());
    let gone: Vec<&String> = files.filter(|file| !is_there(file)).collect();
    let needs_all = match wanted {
        DumpScope::All | DumpScope::Default => true,
        DumpScope::These(all) => all.iter().any(DumpSelector::is_last),
    };
    let class = needs_all.then_some(ErrorClass::Incomplete);
    (!gone.is_empty()).then(|| {
        let message = format!(
            "profiles listed in manifest.json are missing from the directory: {}",
            join_list(gone.iter().map(|file| sanitize(file).into_owned()))
        );
        Finding::new("profile-missing", class, message)
            .with_help("copy the directory again from its source")
    })
}

/// Returns a finding about a profile that differs from the manifest of its directory.
fn changed(name: &str) -> Finding {
    let message = format!("{name}: its totals differ from those of the dump in manifest.json");
    Finding::new("profile-changed", ErrorClass::BadInput, message)
        .with_help("copy the directory again from its source")
}

fn damage(name: &str, what: &str) -> Finding {
    let message = format!("{name}: {what}");
    Finding::new("pprof-damaged", ErrorClass::BadInput, message)
        .with_help("write it again with the tool that created it, or copy it again")
}

/// Parses `heap_dump.<n>.<pid>.<heap>.pb.gz`, named by recordings and Perfetto's converter, and
/// `java_allocations.<n>.<pid>.pb.gz`, which has its own numbers.
fn from_file_name(facts: &mut Facts, path: &str) {
    let file = Path::new(path).file_name().unwrap_or_default();
    let file = file.to_string_lossy();
    let stem = file.strip_suffix(".gz").unwrap_or(&file);
    let stem = stem.strip_suffix(".pb");
    let native = stem
        .and_then(|stem| stem.strip_prefix("heap_dump."))
        .and_then(|rest| {
            let mut parts = rest.splitn(3, '.');
            let number = parts.next()?.parse::<u32>().ok()?;
            Some((number, parts.next()?.parse::<u64>().ok()?, parts.next()?))
        });
    let tracked = stem
        .and_then(|stem| stem.strip_prefix("java_allocations."))
        .and_then(|rest| rest.split_once('.'))
        .and_then(|(number, pid)| Some((number.parse().ok()?, pid.parse().ok()?, TRACKED_HEAP)));
    let parts = native.or(tracked);
    if let Some((number, pid, heap)) = parts {
        facts.number = number;
        if facts.pid == 0 {
            facts.pid = pid;
        }
        if facts.heap.is_empty() {
            facts.heap = heap.to_owned();
        }
    }
}

fn entry_of<'a>(manifest: &'a Manifest, path: &str) -> Option<&'a manifest::Dump> {
    let file = Path::new(path).file_name()?.to_str()?;
    let mut native = manifest.dumps.native.iter();
    native.find(|dump| dump.file.as_deref() == Some(file))
}

fn tracked_of<'a>(manifest: &'a Manifest, path: &str) -> Option<&'a manifest::TrackedDump> {
    let file = Path::new(path).file_name()?.to_str()?;
    let mut dumps = manifest.java_allocations.iter().flat_map(|of| &of.dumps);
    dumps.find(|dump| dump.file.as_deref() == Some(file))
}

fn from_manifest(facts: &mut Facts, entry: &manifest::Dump) {
    facts.number = entry.number;
    facts.label = entry.label.as_ref().map(|label| label.name.clone());
    facts.pid = entry.pid;
    facts.process.clone_from(&entry.process);
    facts.heap.clone_from(&entry.heap);
    facts.time_ns = entry.time_ns;
    facts.sampling_interval_bytes = entry.sampling_interval_bytes;
    facts.unfinished = !entry.complete;
    facts.flags = entry.flags;
}

/// Returns the sums of a dump; `None` if it does not have allocations.
fn totals(dump: &Dump) -> Option<Totals> {
    let sum = |view| dump.column(view).map(sum);
    Some(Totals {
        space: sum(View::Space),
        objects: sum(View::Objects),
        alloc_space: sum(View::AllocSpace)?,
        alloc_objects: sum(View::AllocObjects)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_tell_number_process_and_heap_of_either_kind() {
        let told = |name: &str| {
            let mut facts = Facts::default();
            from_file_name(&mut facts, name);
            (facts.number, facts.pid, facts.heap)
        };
        let is = |number, pid, heap: &str| (number, pid, heap.to_owned());
        assert_eq!(
            told("out/heap_dump.3.42.libc.malloc.pb.gz"),
            is(3, 42, "libc.malloc")
        );
        assert_eq!(
            told("out/java_allocations.4.42.pb.gz"),
            is(4, 42, TRACKED_HEAP)
        );
        for other in [
            "java_allocations.4.pb",
            "java_allocations.4.x.pb.gz",
            "a.4.2.pb",
        ] {
            assert_eq!(told(other), is(0, 0, ""), "{other}");
        }
    }
}
