//! Compares heaptap's profiles of a recording with the converter's.

use super::differences::Kind;
use super::pprof::{self, View};
use heaptap::names::options::NameOptions;
use heaptap::names::r8_mappings::R8Mappings;
use heaptap_export::gzip::Gzip;
use heaptap_export::pprof::{Pprof, PprofOptions};
use heaptap_model::profile::{Health, HeapDump, Recording};
use perfetto_heap::{Surveyed, TraceError};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// A dump of heaptap and its profile.
pub struct Ours {
    pub dump: HeapDump,
    pub view: View,
    /// With the tables of the dump.
    pub recording: Arc<Recording>,
}

/// A profile of the converter.
pub struct Reference {
    pub number: u32,
    pub pid: u64,
    pub heap: String,
    pub view: View,
}

/// Converts all traces of an input; fails if a profile is invalid.
pub fn convert(path: &Path) -> Result<(Vec<Ours>, Vec<Health>), String> {
    let traces = heaptap_input::open(path).map_err(|error| error.to_string())?;
    let mut gzip = Gzip::default();
    let mut all = Vec::new();
    let mut healths = Vec::new();
    for trace in traces {
        let mut trace = Surveyed::read(trace.source).map_err(|error| error.to_string())?;
        let maps = R8Mappings::open_what_opens(&NameOptions::default());
        maps.name(&mut trace).map_err(|error| error.to_string())?;
        let mut trace = trace.seal();
        let recording = Arc::clone(trace.recording());
        let writer = Pprof::new(Arc::clone(&recording), PprofOptions::default());
        let health = trace.read_dumps(|dump| -> Result<(), TraceError> {
            let profile = pprof::read(&gzip.compress(&writer.encode(&dump, &[])));
            let faults = pprof::faults(&profile);
            assert!(faults.is_empty(), "{}: {faults:?}", path.display());
            let view = pprof::view(&profile);
            let recording = Arc::clone(&recording);
            all.push(Ours {
                dump,
                view,
                recording,
            });
            Ok(())
        });
        healths.push(health.map_err(|error| error.to_string())?);
    }
    Ok((all, healths))
}

/// Returns the converter's profiles in a directory, in its order; empty if the directory does not
/// exist.
pub fn references(directory: &Path) -> Vec<Reference> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten() {
        let path = entry.expect("the folder can be read").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let Some(rest) = name
            .strip_prefix("heap_dump.")
            .and_then(|rest| rest.strip_suffix(".pb.gz"))
        else {
            continue;
        };
        let mut parts = rest.splitn(3, '.');
        let mut next = || parts.next().expect("number, pid and heap in the name");
        let number = next().parse().expect("a number");
        let pid = next().parse().expect("a pid");
        let heap = next().to_owned();
        let bytes = std::fs::read(&path).expect("a readable file");
        let profile = pprof::read(&bytes);
        // The converter failed on this one and wrote only the header.
        if profile.sample_type.is_empty() {
            continue;
        }
        found.push(Reference {
            number,
            pid,
            heap,
            view: pprof::view(&profile),
        });
    }
    found.sort_by_key(|reference| reference.number);
    found
}

/// Parts of a view to compare.
fn reduce(view: &View, kind: Option<&Kind>) -> View {
    match kind {
        Some(Kind::Merged) => view.merged(),
        Some(Kind::Names) => {
            view.renamed(|stack| vec![String::new(); usize::from(stack.is_empty())])
        }
        Some(Kind::FreesOfNothing { .. }) => view.without_column("alloc_objects"),
        _ => view.clone(),
    }
}

/// Returns all differences that the rows do not allow. `whole`: the converter's profiles of an
/// undamaged recording.
pub fn judge(
    ours: &[Ours],
    references: &[Reference],
    kind: Option<&Kind>,
    whole: impl Fn(&str) -> Vec<Reference>,
) -> Vec<String> {
    let mut faults = Vec::new();
    if let Some(Kind::Instead { times, of }) = kind {
        let originals = whole(of);
        let expected = (0..*times).flat_map(|_| &originals).map(|r| &r.view);
        if !expected.eq(ours.iter().map(|o| &o.view)) {
            faults.push(format!("not {times} times {of}"));
        }
        return faults;
    }
    let mut matched = vec![false; ours.len()];
    let mut next: HashMap<(u64, &str), usize> = HashMap::new();
    let values: &[(usize, i64, i64)] = match kind {
        Some(Kind::Values(values)) => values,
        _ => &[],
    };
    for &(at, held, allocated) in values {
        matched[at] = true;
        let totals = ours[at].dump.totals();
        if (totals.space, totals.alloc_space) != (held, allocated) {
            faults.push(format!("dump {at} has {totals:?}"));
        }
    }
    let mut unlike = 0;
    for reference in references {
        let key = (reference.pid, reference.heap.as_str());
        let start = next.get(&key).copied().unwrap_or(0);
        let goal = reduce(&reference.view, kind);
        let found = (start..ours.len()).find(|&at| {
            let dump = &ours[at].dump;
            (dump.pid, dump.heap.as_str()) == key && reduce(&ours[at].view, kind) == goal
        });
        match found {
            Some(at) => {
                matched[at] = true;
                next.insert(key, at + 1);
            }
            None if unlike < values.len() => unlike += 1,
            None => faults.push(format!(
                "no dump of ours is the converter's {} of {} {}: {:?}",
                reference.number,
                reference.pid,
                reference.heap,
                reference.view.totals()
            )),
        }
    }
    let extra: Vec<usize> = (0..ours.len())
        .filter(|&at| !matched[at] && !is_no_news(ours, at))
        .collect();
    let allowed = match kind {
        Some(
            Kind::Kept { extra }
            | Kind::KeptWhole { extra, .. }
            | Kind::KeptHeld { extra, .. }
            | Kind::FreesOfNothing { extra },
        ) => *extra,
        _ => 0,
    };
    if extra.len() != allowed {
        let list: Vec<_> = extra
            .iter()
            .map(|&at| (at, ours[at].view.totals()))
            .collect();
        faults.push(format!(
            "{} dumps beyond the converter's: {list:?}",
            extra.len()
        ));
    }
    if let Some(Kind::KeptWhole { of, .. } | Kind::KeptHeld { of, .. }) = kind {
        let originals = whole(of);
        let compared = |view: &View| match kind {
            Some(Kind::KeptHeld { .. }) => view.held(),
            _ => view.clone(),
        };
        for at in extra {
            let ours = compared(&ours[at].view);
            if !originals.iter().any(|r| compared(&r.view) == ours) {
                faults.push(format!("dump {at} is none of {of}"));
            }
        }
    }
    faults
}

/// Returns whether the converter omits a dump: without samples, equal to the previous one, or with
/// the time of the next.
fn is_no_news(ours: &[Ours], at: usize) -> bool {
    let dump = &ours[at].dump;
    let same = |o: &&Ours| o.dump.pid == dump.pid && o.dump.heap == dump.heap;
    let before = ours[..at].iter().rev().find(same);
    let after = ours[at + 1..].iter().find(same);
    ours[at].view.samples.is_empty()
        || before.is_some_and(|o| o.view == ours[at].view)
        || after.is_some_and(|o| o.dump.raw_time_ns == dump.raw_time_ns)
}
