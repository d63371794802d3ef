//! `--with java`: a Java heap graph of each process at each label, recorded by a short additional
//! session, as with `dump`. The heaps of all labels form one recording in the directory `java`,
//! which `report`, `leaks`, `diff` and `query` read.
//!
//! Each session first records into its own directory, `java/02-after-login`; interrupted sessions
//! leave it for `stop`. Then its trace is appended to that of the earlier labels (concatenated
//! traces are a trace), and its dumps follow theirs.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use sha2::{Digest as _, Sha256};

use super::at_label::{At, NotTaken};
use crate::heaps::java::{DIRECTORY, manifest_of};
use crate::names::options::NameOptions;
use crate::names::packet_files::{DEOBFUSCATION, PacketFiles, SYMBOLS, join_maps};
use crate::recording::advice::names_collect;
use crate::recording::outcome::{Finished, Recorded};
use crate::recording::plan::Plan;
use heaptap_adb::Device;
use heaptap_base::directory::{self, RAW_TRACE, SYMBOLIZED_TRACE};
use heaptap_base::error::Failure;
use heaptap_base::parallel::lock;
use heaptap_base::units::hex;
use heaptap_capture::config::JavaSpec;
use heaptap_capture::eligibility::{Assessment, DeviceFacts, Scope};
use heaptap_capture::session::{self, Owner, Session, Store};
use heaptap_export::pprof::PprofOptions;
use heaptap_results::file_names::is_below;
use heaptap_results::manifest::{
    self, BoundLabel, JavaDump, Label, LabelledDump, Manifest, MappingFile, Symbolization,
};
use heaptap_results::whole_file::unless_link;
use perfetto_heap::Surveyed;

/// Returns why Java heaps cannot be dumped at any label, before the recording begins; `None` if
/// they might be.
pub(crate) fn impossible(facts: &DeviceFacts, assessment: &Assessment) -> Option<String> {
    let too_old = facts
        .api()
        .and_then(|api| JavaSpec::default().for_sdk(api).err())
        .map(|error| error.to_string());
    let why = too_old.or_else(|| Some(assessment.refusal(Scope::Java)?.to_string()))?;
    Some(format!("`--with java` cannot dump Java heaps here: {why}"))
}

/// Dumps Java heaps for a label. The dump is a separate recording, so the recording code provides
/// this function.
pub(crate) type DumpHeaps = Arc<dyn Fn(HeapsAtLabel) -> Dumping + Send + Sync>;

type Dumping = Pin<Box<dyn Future<Output = Result<Recorded, Failure>> + Send>>;

/// Java heaps to dump at a label, and their destination.
pub(crate) struct HeapsAtLabel {
    pub(crate) device: Device,
    pub(crate) store: Store,
    pub(crate) pids: Vec<u32>,
    pub(crate) output: PathBuf,
    /// Profile options.
    pub(crate) pprof: PprofOptions,
    /// Sources of symbols.
    pub(crate) names: NameOptions,
}

/// Settings shared by the sessions of all labels: they belong to the recording, so they use its
/// store and its symbol sources.
pub(super) struct Heaps {
    store: Store,
    owner: Owner,
    names: NameOptions,
    pprof: PprofOptions,
    /// Partial checksum of the trace of the earlier labels.
    summed: Mutex<Summed>,
    dump: DumpHeaps,
}

/// Length and SHA-256 state of the beginning of a file.
#[derive(Clone, Default)]
pub(super) struct Summed {
    size: u64,
    hash: Sha256,
}

impl Heaps {
    pub(super) fn new(session: &Session, plan: &Plan, dump: DumpHeaps) -> Heaps {
        Heaps {
            store: session.store().clone(),
            owner: Owner::Session(session.id().clone()),
            names: plan.names.clone(),
            pprof: plan.pprof(),
            summed: Mutex::default(),
            dump,
        }
    }

    /// Returns whether the recording's directory is where it was: the user can move it meanwhile.
    pub(super) fn is_in(&self, recording: &Path) -> bool {
        session::owner_of(recording).is_ok_and(|owner| owner.as_ref() == Some(&self.owner))
    }

    /// Returns the advice that adds what a session into `output` left on the device or on the host,
    /// if it left something. A phone that ends with this command keeps nothing.
    pub(super) fn left_advice(&self, output: &Path) -> Option<String> {
        let (all, _) = self.store.list().ok()?;
        let left = all.into_iter().find(|one| one.header.output == output);
        let id = left.filter(|left| !left.in_process)?.header.id;
        Some(format!("run `heaptap stop {id}` to add it"))
    }
}

/// Finished heaps of a label, in a directory of their own.
pub(super) struct SeparateHeaps {
    at: At,
    heaps: Arc<Heaps>,
    finished: Finished,
}

impl SeparateHeaps {
    /// Merges them with those of the other labels. A second stop request does not end this: it is
    /// short, and the recording would be finished meanwhile.
    pub(super) async fn merge(self) -> Result<(), String> {
        let SeparateHeaps {
            at,
            heaps,
            mut finished,
        } = self;
        let output = finished.output.clone();
        let joining = Arc::clone(&heaps);
        let merging = tokio::task::spawn_blocking(move || {
            let mut summed = lock(&joining.summed);
            put(&at, &finished, &mut summed)?;
            end(&mut finished)
        });
        let interrupted = "merging it with the other dumps was interrupted";
        let merged = merging
            .await
            .unwrap_or_else(|_| Err(interrupted.to_owned()));
        merged.map_err(|why| match heaps.left_advice(&output) {
            Some(advice) => format!("{why}; {advice}"),
            None => why,
        })
    }
}

/// Captures the heaps, into a directory of their own.
pub(super) async fn capture(at: &At, heaps: &Arc<Heaps>) -> Result<SeparateHeaps, NotTaken> {
    let directory = at.directory.join(DIRECTORY);
    unless_link(&directory)?;
    // It contains the heaps of all labels, or it belongs to something else.
    if session::owner_of(&directory)?.as_ref() != Some(&heaps.owner) {
        session::claim(&directory, &heaps.owner)
            .map_err(|unclaimed| because(&unclaimed.into_error(&directory).to_string()))?;
    }
    let own = directory.join(at.name());
    let pids: Vec<u32> = at.processes.iter().map(|(pid, _)| *pid).collect();
    let wanted = HeapsAtLabel {
        device: at.device.clone(),
        store: heaps.store.clone(),
        pids: pids.clone(),
        output: own.clone(),
        pprof: heaps.pprof,
        names: heaps.names.clone(),
    };
    let from_ns = session::moment(&at.device).await?.boot_ns;
    let recorded = (heaps.dump)(wanted).await;
    // The app was stopped for its fork, and the child that wrote the heap doubled its memory
    // meanwhile.
    if let Ok(now) = session::moment(&at.device).await {
        for pid in &pids {
            at.ours("java-dump", *pid, from_ns, now.boot_ns);
        }
    }
    let mut finished = match recorded {
        Ok(Recorded::Finished(finished)) => *finished,
        Ok(Recorded::Detached { .. }) => return Err(because("its recording was left running")),
        Err(failure) => {
            let mut advice = failure.help.iter().chain(&failure.hints);
            let advice = advice.find(|text| names_collect(text)).cloned();
            // For example, the directory of the previous dump.
            let kept = failure.hints.iter().filter(|hint| !names_collect(hint));
            let message = kept.fold(failure.message, |all, hint| format!("{all}; {hint}"));
            let why = match heaps.left_advice(&own).or(advice) {
                Some(advice) => format!("{message}; {advice}"),
                None => message,
            };
            return Err(because(&why));
        }
    };
    if finished.manifest.dumps.java.is_empty() {
        // There is nothing to merge; if it stays, `stop` ends it.
        let _ = finished.journal.forget();
        let why = finished
            .manifest
            .warnings
            .first()
            .map(|w| w.message.clone());
        return Err(because(
            &why.unwrap_or_else(|| "the device sent no heap".to_owned()),
        ));
    }
    Ok(SeparateHeaps {
        at: at.clone(),
        heaps: Arc::clone(heaps),
        finished,
    })
}

/// Merges a finished dump with those of the other labels, and records it. Blocks. If that fails,
/// returns the reason. Its directory and its session stay until [`end`], so that `stop` can repeat it.
pub(super) fn put(at: &At, finished: &Finished, summed: &mut Summed) -> Result<(), String> {
    let moment = Moment {
        label: at.label.clone(),
        asked_ns: at.boot_ns,
    };
    let own = finished.output.clone();
    let dumps =
        join(&at.directory.join(DIRECTORY), finished, &moment, summed).map_err(|error| {
            let kept = own.display();
            format!(
                "it remains in {kept}, because it cannot be merged with the other dumps: {error}"
            )
        })?;
    for dump in dumps {
        let pid = u32::try_from(dump.pid).unwrap_or(u32::MAX);
        let file = dump.file.as_deref().unwrap_or(RAW_TRACE);
        at.kept(
            "java-heap",
            pid,
            dump.time_ns,
            format!("{DIRECTORY}/{file}"),
        );
    }
    Ok(())
}

/// Ends the session of a merged dump, and removes its directory.
pub(super) fn end(merged: &mut Finished) -> Result<(), String> {
    let ended = merged.journal.forget();
    ended.map_err(|error| error.to_string())?;
    remove_merged(&merged.output, &merged.manifest.dumps.java);
    Ok(())
}

fn because(why: &str) -> NotTaken {
    NotTaken::Because(why.to_owned())
}

/// The label and time of a dump.
struct Moment {
    label: String,
    asked_ns: u64,
}

/// Appends a finished dump to those in `directory`. Returns its dumps with their new numbers. Until the
/// manifest is written, the previous state is intact: data after the known size of the trace are ignored.
/// A dump that is already there is not appended again.
fn join(
    directory: &Path,
    finished: &Finished,
    moment: &Moment,
    summed: &mut Summed,
) -> io::Result<Vec<JavaDump>> {
    unless_link(directory)?;
    let from = &finished.output;
    let new = finished.manifest.clone();
    let known = manifest_of(directory).map_err(io::Error::other)?;
    let mut all = known.unwrap_or_else(|| Manifest {
        dumps: manifest::Dumps::default(),
        warnings: Vec::new(),
        labels: Vec::new(),
        trace: None,
        symbolization: None,
        ..new.clone()
    });
    let is_new = |known: &&JavaDump| {
        let key = |dump: &JavaDump| (dump.pid, dump.time_ns);
        known.time_ns.is_some() && new.dumps.java.iter().any(|dump| key(dump) == key(known))
    };
    let known: Vec<JavaDump> = all.dumps.java.iter().filter(is_new).cloned().collect();
    if !known.is_empty() {
        // They were merged by a process that was killed before it ended the session.
        return Ok(known);
    }
    // An app that ended between two labels gets its names from an earlier label.
    join_maps(directory, from)?;
    join_symbolization(&mut all.symbolization, new.symbolization);
    let before = all.trace.as_ref().map_or(0, |trace| trace.size);
    let trace = from.join(RAW_TRACE);
    let whole = match new.outcome.complete {
        true => u64::MAX,
        false => whole_bytes(&trace),
    };
    let trace = File::open(&trace)?.take(whole);
    let sum = append(&directory.join(RAW_TRACE), before, trace, summed)?;
    let size = sum.size;
    let sha256 = hex(&sum.hash.clone().finalize());
    *summed = sum;
    all.trace = Some(manifest::TraceFile::raw(size, sha256));
    // Numbers continue after those of the same process.
    let mut before: BTreeMap<u64, u32> = BTreeMap::new();
    for dump in &all.dumps.java {
        let last = before.entry(dump.pid).or_default();
        *last = dump.number.max(*last);
    }
    let renumbered = |pid: u64, number: u32| {
        let before = before.get(&pid).copied().unwrap_or_default();
        number.saturating_add(before)
    };
    let mut bound = Vec::new();
    let mut added = Vec::new();
    for mut dump in new.dumps.java {
        dump.number = renumbered(dump.pid, dump.number);
        if let Some(file) = &dump.file {
            let name = format!("java_heap_dump.{}.{}.pb.gz", dump.number, dump.pid);
            copy_over(&from.join(file), &directory.join(&name))?;
            dump.file = Some(name);
        }
        let made = dump.time_ns.unwrap_or(moment.asked_ns);
        let lag_ms = made.saturating_sub(moment.asked_ns) / 1_000_000;
        if !moment.label.is_empty() {
            let name = moment.label.clone();
            dump.label = Some(BoundLabel { name, lag_ms });
        }
        bound.push(LabelledDump {
            dump: dump.id(),
            lag_ms,
        });
        added.push(dump);
    }
    all.dumps.java.extend(added.iter().cloned());
    if !moment.label.is_empty() {
        all.labels.push(Label {
            name: moment.label.clone(),
            requested_ns: moment.asked_ns,
            dumps: bound,
        });
    }
    for mut warning in new.warnings {
        for dump in &mut warning.dumps {
            dump.number = renumbered(dump.pid, dump.number);
        }
        all.warnings.push(warning);
    }
    all.outcome.complete &= new.outcome.complete;
    if all.outcome.exit_code == 0 {
        all.outcome.exit_code = new.outcome.exit_code;
    }
    all.write(directory).map_err(io::Error::other)?;
    directory::sync(directory)?;
    Ok(added)
}

/// Copies a complete and synced file. Replaces one that a failed merge left.
fn copy_over(from: &Path, goal: &Path) -> io::Result<()> {
    let _ = std::fs::remove_file(goal);
    // Not every file system has hard links.
    match std::fs::hard_link(from, goal) {
        Ok(()) => Ok(()),
        Err(_) => directory::copy_file(from, goal),
    }
}

/// Removes the directories of dumps that were merged in `directory`, whose session a process ended before
/// it was killed.
pub(super) fn remove_left(directory: &Path) {
    let Ok(Some(merged)) = manifest_of(directory) else {
        return;
    };
    let key = |dump: &JavaDump| (dump.pid, dump.time_ns);
    let is_merged = |dump: &JavaDump| {
        let mut all = merged.dumps.java.iter();
        dump.time_ns.is_some() && all.any(|one| key(one) == key(dump))
    };
    // The manifest can come from anywhere.
    let is_inside = |dump: &JavaDump| dump.file.as_deref().is_none_or(is_below);
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let from = entry.path();
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.split_once('-'));
        let is_part = number.is_some_and(|(number, _)| number.parse::<u32>().is_ok());
        // It is the user's, belongs to a session, or its owner is not known.
        if !is_part
            || !entry.file_type().is_ok_and(|kind| kind.is_dir())
            || !matches!(session::owner_of(&from), Ok(None))
        {
            continue;
        }
        if let Ok(part) = Manifest::read(&from)
            && !part.dumps.java.is_empty()
            && part
                .dumps
                .java
                .iter()
                .all(|dump| is_merged(dump) && is_inside(dump))
        {
            remove_merged(&from, &part.dumps.java);
        }
    }
}

/// Removes the directory of merged dumps, but only heaptap's files: other files keep it.
fn remove_merged(from: &Path, dumps: &[JavaDump]) {
    let others = [
        RAW_TRACE,
        SYMBOLS,
        DEOBFUSCATION,
        SYMBOLIZED_TRACE,
        manifest::FILE_NAME,
    ];
    let profiles = dumps.iter().filter_map(|dump| dump.file.as_deref());
    for name in profiles.chain(others) {
        let _ = std::fs::remove_file(from.join(name));
    }
    let _ = std::fs::remove_dir(from);
}

/// Adds the mapping files of a label to those of the labels before.
fn join_symbolization(all: &mut Option<Symbolization>, new: Option<Symbolization>) {
    let Some(known) = all else {
        *all = new;
        return;
    };
    for map in new.into_iter().flat_map(|new| new.mappings) {
        let same =
            |known: &&mut MappingFile| (&known.path, &known.packages) == (&map.path, &map.packages);
        match known.mappings.iter_mut().find(same) {
            Some(known) => {
                known.frames += map.frames;
                known.heap_classes += map.heap_classes;
            }
            None => known.mappings.push(map),
        }
    }
}

/// Appends the collected symbols to the trace of all labels, after the last label. Blocks.
///
/// # Errors
/// Returns an error if the directory cannot be written.
pub(crate) fn put_names(recording: &Path) -> io::Result<()> {
    let directory = recording.join(DIRECTORY);
    match directory.join(DEOBFUSCATION).is_file() {
        true => PacketFiles::new(&directory).finish(
            &directory.join(RAW_TRACE),
            u64::MAX,
            &mut Vec::new(),
        ),
        false => Ok(()),
    }
}

/// Returns the number of bytes before a packet that breaks off at the end of a trace: readers look for
/// its rest in what follows it.
fn whole_bytes(trace: &Path) -> u64 {
    let opened = heaptap_input::open(trace)
        .ok()
        .and_then(|mut traces| traces.pop());
    let read = opened.and_then(|trace| Surveyed::read(trace.source).ok());
    read.map_or(u64::MAX, |surveyed| surveyed.whole_bytes())
}

/// Copies `from` to `to`, after its first `before` bytes. Returns the checksum of the result
/// without reading the part covered by `summed`.
fn append(to: &Path, before: u64, mut from: impl Read, summed: &Summed) -> io::Result<Summed> {
    unless_link(to)?;
    let mut goal = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(to)?;
    if goal.metadata()?.len() < before {
        return Err(io::Error::other(
            "the trace of the earlier labels is truncated",
        ));
    }
    goal.set_len(before)?;
    goal.seek(SeekFrom::Start(before))?;
    io::copy(&mut from, &mut goal)?;
    goal.flush()?;
    goal.sync_all()?;
    let mut sum = match summed.size == before {
        true => summed.clone(),
        false => Summed::default(),
    };
    goal.seek(SeekFrom::Start(sum.size))?;
    let mut block = vec![0; 1 << 20];
    loop {
        let read = goal.read(&mut block)?;
        if read == 0 {
            return Ok(sum);
        }
        sum.hash.update(&block[..read]);
        sum.size = sum.size.saturating_add(read as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapping_files_of_all_labels_are_listed_once_for_each_app() {
        let map = |path: &str, package: &str, heap_classes| MappingFile {
            path: path.to_owned(),
            packages: vec![package.to_owned()],
            origin: "given".to_owned(),
            variant: String::new(),
            classes: 9,
            frames: 0,
            heap_classes,
        };
        let of = |mappings: &[MappingFile]| {
            Some(Symbolization {
                mappings: mappings.to_vec(),
                ..Symbolization::default()
            })
        };
        let mut all = None;
        join_symbolization(&mut all, None);
        assert_eq!(all, None);
        let (one, two) = (map("m", "one", 1), map("m", "two", 2));
        join_symbolization(&mut all, of(&[one.clone(), two.clone()]));
        join_symbolization(&mut all, None);
        assert_eq!(all, of(&[one.clone(), two.clone()]));
        join_symbolization(&mut all, of(&[one, map("other", "two", 3)]));
        let expected = of(&[map("m", "one", 2), two, map("other", "two", 3)]);
        assert_eq!(all, expected);
    }

    #[test]
    fn what_follows_a_packet_that_breaks_off_is_not_its_rest() {
        let dir = tempfile::tempdir().unwrap();
        let trace = dir.path().join(RAW_TRACE);
        let packets = std::fs::read("fixtures/conversions/no_target.pftrace").unwrap();
        std::fs::write(&trace, &packets).unwrap();
        assert_eq!(whole_bytes(&trace), packets.len() as u64);
        // A packet claims four bytes more than there are.
        std::fs::write(&trace, [&packets[..], &[0x0a, 0x06, 0x40, 0x05]].concat()).unwrap();
        assert_eq!(whole_bytes(&trace), packets.len() as u64);
        // Nothing of it can be taken for packets.
        std::fs::write(&trace, [0; 9]).unwrap();
        assert_eq!(whole_bytes(&trace), u64::MAX);
    }

    #[test]
    fn a_trace_that_grows_is_summed_up_as_one_that_is_read_whole() {
        let dir = tempfile::tempdir().unwrap();
        let (goal, from) = (dir.path().join("goal"), dir.path().join("from"));
        let mut summed = Summed::default();
        let mut whole = Vec::new();
        for part in [&b"one"[..], b"", b"three"] {
            std::fs::write(&from, part).unwrap();
            let before = whole.len() as u64;
            whole.extend_from_slice(part);
            // Data of an interrupted label after the known size are ignored.
            if before > 0 {
                let mut file = OpenOptions::new().append(true).open(&goal).unwrap();
                file.write_all(b"rest").unwrap();
            }
            let open = || File::open(&from).unwrap();
            let sum = append(&goal, before, open(), &summed).unwrap();
            assert_eq!(std::fs::read(&goal).unwrap(), whole);
            assert_eq!(sum.size, whole.len() as u64);
            let expected = hex(&Sha256::digest(&whole));
            assert_eq!(hex(&sum.hash.clone().finalize()), expected);
            // Another process that captures the next label has to read the whole file.
            let afresh = append(&goal, before, open(), &Summed::default()).unwrap();
            assert_eq!(hex(&afresh.hash.finalize()), expected);
            summed = sum;
        }
        let cut = append(&goal, 100, File::open(&from).unwrap(), &summed);
        assert!(cut.is_err());
    }
}
