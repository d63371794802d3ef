//! `--with java`: a Java heap graph of each process at each label, by a short session of its own
//! beside the one that runs, as `dump` records it. The heaps of all labels stand in one
//! recording in the folder `java`, where `report`, `leaks`, `diff` and `query` look for them.
//!
//! Each session records into a folder of its own first, `java/02-after-login`, which a session
//! that was cut off leaves for `collect`; then its trace is appended to that of the labels
//! before (traces one behind the other are a trace), and its dumps follow theirs.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest as _, Sha256};

use super::at_label::{At, NotTaken};
use crate::config::JavaSpec;
use crate::device::Device;
use crate::eligibility::{Assessment, DeviceFacts, Scope};
use crate::error::Failure;
use crate::export::pprof::PprofOptions;
use crate::folder::{RAW_TRACE, SYMBOLIZED_TRACE};
use crate::heaps::java::FOLDER;
use crate::naming::names::NameOptions;
use crate::naming::packet_files::{DEOBFUSCATION, PacketFiles, SYMBOLS, join_maps};
use crate::recording::outcome::{Finished, Recorded};
use crate::recording::plan::Plan;
use crate::results::manifest::{
    self, BoundLabel, JavaDump, Label, LabelledDump, Manifest, MappingFile, Symbolization,
};
use crate::results::whole_file::unless_link;
use crate::session::{self, Owner, Session, Store};
use crate::units::hex;

/// Why no Java heap will be taken at any label, told before anything is recorded; `None` where
/// one may be.
pub(crate) fn impossible(facts: &DeviceFacts, assessment: &Assessment) -> Option<String> {
    let too_old = facts
        .api()
        .and_then(|api| JavaSpec::default().for_sdk(api).err())
        .map(|error| error.to_string());
    let why = too_old.or_else(|| Some(assessment.refusal(Scope::Java)?.to_string()))?;
    Some(format!("--with java takes no Java heap here: {why}"))
}

/// Dumps Java heaps for a label. It is a recording of its own, so whoever runs recordings gives
/// it.
pub(crate) type DumpHeaps = Arc<dyn Fn(HeapsAtLabel) -> Dumping + Send + Sync>;

type Dumping = Pin<Box<dyn Future<Output = Result<Recorded, Failure>> + Send>>;

/// Which heaps are wanted at a label, and where they go.
pub(crate) struct HeapsAtLabel {
    pub(crate) device: Device,
    pub(crate) store: Store,
    /// The processes.
    pub(crate) pids: Vec<u32>,
    /// The folder.
    pub(crate) output: PathBuf,
    /// How profiles are written.
    pub(crate) pprof: PprofOptions,
    /// Where names come from.
    pub(crate) names: NameOptions,
}

/// What the sessions of all labels have in common: they are the recording's own, so they stand
/// in its store, and name frames as it does.
pub(super) struct Heaps {
    store: Store,
    owner: Owner,
    names: NameOptions,
    pprof: PprofOptions,
    /// The trace of the labels before, as far as it is summed up.
    summed: Mutex<Summed>,
    dump: DumpHeaps,
}

/// A file's beginning, and its SHA-256, to be gone on with.
#[derive(Clone, Default)]
pub(super) struct Summed {
    size: u64,
    hash: Sha256,
}

impl Heaps {
    pub(super) fn of(session: &Session, plan: &Plan, dump: DumpHeaps) -> Heaps {
        Heaps {
            store: session.store().clone(),
            owner: Owner::Session(session.id().clone()),
            names: plan.names.clone(),
            pprof: plan.pprof(),
            summed: Mutex::default(),
            dump,
        }
    }
}

/// Takes it.
pub(super) async fn capture(at: &At, heaps: &Arc<Heaps>) -> Result<(), NotTaken> {
    let folder = at.folder.join(FOLDER);
    unless_link(&folder)?;
    // The heaps of all labels stand there: it is the recording's own, or somebody else's.
    if session::owner_of(&folder)?.as_ref() != Some(&heaps.owner) {
        session::claim(&folder, &heaps.owner)
            .map_err(|unclaimed| because(&unclaimed.into_error(folder.clone()).to_string()))?;
    }
    let own = folder.join(at.name());
    let pids: Vec<u32> = at.processes.iter().map(|(pid, _)| *pid).collect();
    let wanted = HeapsAtLabel {
        device: at.device.clone(),
        store: heaps.store.clone(),
        pids: pids.clone(),
        output: own,
        pprof: heaps.pprof,
        names: heaps.names.clone(),
    };
    let from_ns = session::moment(&at.device).await?.boot_ns;
    let recorded = (heaps.dump)(wanted).await;
    // The app stood still for its fork, and the child that wrote the heap doubled it meanwhile.
    if let Ok(now) = session::moment(&at.device).await {
        for pid in &pids {
            at.ours("java-dump", *pid, from_ns, now.boot_ns);
        }
    }
    let finished = match recorded {
        Ok(Recorded::Finished(finished)) => *finished,
        Ok(Recorded::Detached { .. }) => return Err(because("it was left running")),
        Err(failure) => return Err(because(&failure.message)),
    };
    if finished.manifest.dumps.java.is_empty() {
        let why = finished
            .manifest
            .warnings
            .first()
            .map(|w| w.message.clone());
        return Err(because(&why.unwrap_or_else(|| "no heap came".to_owned())));
    }
    let (at, heaps) = (at.clone(), Arc::clone(heaps));
    let putting = move || {
        let mut summed = heaps.summed.lock().unwrap_or_else(PoisonError::into_inner);
        put(&at, finished, &mut summed)
    };
    match tokio::task::spawn_blocking(putting).await {
        Ok(put) => put.map_err(|why| because(&why)),
        Err(_) => Err(because("putting it to the others was interrupted")),
    }
}

/// Puts a finished dump to those of the other labels, and notes it. Blocks; why not, where that
/// fails: it stands by itself then.
pub(super) fn put(at: &At, finished: Finished, summed: &mut Summed) -> Result<(), String> {
    let moment = Moment {
        label: at.label.clone(),
        asked_ns: at.boot_ns,
    };
    let own = finished.output.clone();
    let dumps = join(&at.folder.join(FOLDER), finished, &moment, summed).map_err(|error| {
        let kept = own.display();
        format!("it stands by itself in {kept}, since it could not be put to the others: {error}")
    })?;
    for dump in dumps {
        let pid = u32::try_from(dump.pid).unwrap_or(u32::MAX);
        let file = dump.file.as_deref().unwrap_or(RAW_TRACE);
        at.kept("java-heap", pid, dump.time_ns, format!("{FOLDER}/{file}"));
    }
    Ok(())
}

fn because(why: &str) -> NotTaken {
    NotTaken::Because(why.to_owned())
}

/// What a heap was taken for.
struct Moment {
    label: String,
    asked_ns: u64,
}

/// Puts a finished dump behind those that stand in `folder`; its own folder is gone then. Gives
/// its dumps as they stand there now. Until the manifest is written, what stood there before is
/// whole: what is behind the trace's known size is nobody's.
fn join(
    folder: &Path,
    mut finished: Finished,
    moment: &Moment,
    summed: &mut Summed,
) -> io::Result<Vec<JavaDump>> {
    unless_link(folder)?;
    let from = finished.output.clone();
    finished.journal.forget().map_err(io::Error::other)?;
    let new = finished.manifest;
    let mut all = match Manifest::read(folder) {
        Ok(manifest) => manifest,
        Err(_) if !folder.join(manifest::FILE_NAME).exists() => Manifest {
            dumps: manifest::Dumps::default(),
            warnings: Vec::new(),
            labels: Vec::new(),
            trace: None,
            symbolization: None,
            ..new.clone()
        },
        Err(error) => return Err(io::Error::other(error)),
    };
    // An app that ended between two labels is named by what an earlier one kept.
    join_maps(folder, &from)?;
    join_symbolization(&mut all.symbolization, new.symbolization);
    let before = all.trace.as_ref().map_or(0, |trace| trace.size);
    let sum = append(
        &folder.join(RAW_TRACE),
        before,
        &from.join(RAW_TRACE),
        summed,
    )?;
    let size = sum.size;
    let sha256 = hex(&sum.hash.clone().finalize());
    *summed = sum;
    all.trace = Some(manifest::TraceFile {
        file: RAW_TRACE.to_owned(),
        size,
        sha256,
    });
    // Numbers go on where those of the same process end.
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
            std::fs::rename(from.join(file), folder.join(&name))?;
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
    all.write(folder).map_err(io::Error::other)?;
    // Ours alone: what else somebody put there keeps the folder.
    for name in [
        RAW_TRACE,
        SYMBOLS,
        DEOBFUSCATION,
        SYMBOLIZED_TRACE,
        manifest::FILE_NAME,
    ] {
        let _ = std::fs::remove_file(from.join(name));
    }
    let _ = std::fs::remove_dir(&from);
    Ok(added)
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

/// Puts the names that were kept behind the trace of all labels, once the last one is there.
/// Blocks.
///
/// # Errors
/// Where the folder cannot be written.
pub(crate) fn put_names(recording: &Path) -> io::Result<()> {
    let folder = recording.join(FOLDER);
    match folder.join(DEOBFUSCATION).is_file() {
        true => {
            PacketFiles::new(&folder).finish(&folder.join(RAW_TRACE), u64::MAX, &mut Vec::new())
        }
        false => Ok(()),
    }
}

/// Copies `from` behind the first `before` bytes of `to`. Sums up the whole; what of it
/// `summed` has is not read again.
fn append(to: &Path, before: u64, from: &Path, summed: &Summed) -> io::Result<Summed> {
    unless_link(to)?;
    let mut goal = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(to)?;
    if goal.metadata()?.len() < before {
        return Err(io::Error::other(
            "the trace of the labels before is cut off",
        ));
    }
    goal.set_len(before)?;
    goal.seek(SeekFrom::Start(before))?;
    io::copy(&mut File::open(from)?, &mut goal)?;
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
    fn a_trace_that_grows_is_summed_up_as_one_that_is_read_whole() {
        let dir = tempfile::tempdir().unwrap();
        let (goal, from) = (dir.path().join("goal"), dir.path().join("from"));
        let mut summed = Summed::default();
        let mut whole = Vec::new();
        for part in [&b"one"[..], b"", b"three"] {
            std::fs::write(&from, part).unwrap();
            let before = whole.len() as u64;
            whole.extend_from_slice(part);
            // What an interrupted label left behind the known size is nobody's.
            if before > 0 {
                let mut file = OpenOptions::new().append(true).open(&goal).unwrap();
                file.write_all(b"rest").unwrap();
            }
            let sum = append(&goal, before, &from, &summed).unwrap();
            assert_eq!(std::fs::read(&goal).unwrap(), whole);
            assert_eq!(sum.size, whole.len() as u64);
            let expected = hex(&Sha256::digest(&whole));
            assert_eq!(hex(&sum.hash.clone().finalize()), expected);
            // Another process that takes the next label has to read the whole.
            let afresh = append(&goal, before, &from, &Summed::default()).unwrap();
            assert_eq!(hex(&afresh.hash.finalize()), expected);
            summed = sum;
        }
        let cut = append(&goal, 100, &from, &summed);
        assert!(cut.is_err());
    }
}
