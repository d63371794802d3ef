//! A trace after its first reading, while names may still be added to its frames: symbols and
//! mapping files come in here, before the tables are sealed and the first dump leaves.

use super::TraceError;
use super::clocks::Clocks;
use super::dumps::DumpPlan;
use super::framing::{Source, Window};
use super::iids::ScopeId;
use super::interning::{LOST_CALLSTACK, lost_frame};
use super::java::JavaPlan;
use super::memory;
use super::order::arrange;
use super::packet::{Packet, payload};
use super::profile_packet::{Header, each_part, each_sample};
use super::reader::PlaceReader;
use super::smaps::SmapsPlan;
use super::survey::Survey;
use heaptap_model::profile::{CallsiteId, FrameId, Health, NameMaps, Recording, Tables};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// A trace after its first reading, not sealed yet.
pub struct Surveyed {
    pub(super) recording: Recording,
    name_maps: Arc<NameMaps>,
    pub(super) health: Health,
    pub(super) clocks: Clocks,
    pub(super) dumps: DumpPlan,
    pub(super) java: Vec<JavaPlan>,
    pub(super) smaps: Vec<SmapsPlan>,
    pub(super) memory: memory::Places,
    pub(super) reader: PlaceReader,
    whole_bytes: u64,
}

impl Surveyed {
    /// Reads everything but samples. Frames get the symbols that the trace holds; its maps of
    /// renamed classes are handed out by [`Surveyed::name_maps`].
    ///
    /// # Errors
    /// Where the source can't be read; damage in it is no error.
    pub fn read(source: Box<dyn Source>) -> Result<Surveyed, TraceError> {
        let (survey, window) = Survey::read(Window::new(source)?)?;
        let Survey {
            mut recording,
            mut health,
            clocks,
            mut interning,
            mut entries,
            java,
            smaps,
            memory,
            symbols,
            name_maps,
            whole_bytes,
            ..
        } = survey;
        let reader = PlaceReader::new(window);
        let runs = arrange(
            &mut entries,
            |scope| interning.has_no_callstacks(scope),
            &mut health,
        );
        let tables = &mut recording.tables;
        for run in &runs.scopes {
            interning.settle(run, tables, &mut health);
        }
        let mut own: Vec<ScopeId> = entries.iter().filter_map(|e| e.own_tables).collect();
        own.sort_unstable();
        own.dedup();
        for scope in own {
            interning.settle(&[scope], tables, &mut health);
        }
        let lost = lost_frame(tables, LOST_CALLSTACK);
        let lost_callstack = tables.intern_callsite(&[lost.0]);
        let callstacks = interning.into_callstacks();
        symbols.apply(&mut recording);
        recording.started_ns = recording.started_ns.or(clocks.first_trace_time());
        Ok(Surveyed {
            recording,
            name_maps: Arc::new(name_maps),
            health,
            clocks,
            dumps: DumpPlan {
                entries,
                runs,
                callstacks,
                lost_callstack,
            },
            java: java.finish(),
            smaps: smaps.finish(),
            memory,
            reader,
            whole_bytes,
        })
    }

    /// Mappings, frames and names as they stand.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// The same, to add symbols and names to.
    pub fn recording_mut(&mut self) -> &mut Recording {
        &mut self.recording
    }

    /// Loss and damage as far as the first reading found them.
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// The processes of which the trace holds Java heap dumps.
    pub fn java_pids(&self) -> BTreeSet<u64> {
        self.java.iter().map(JavaPlan::pid).collect()
    }

    /// Bytes of the source up to where it breaks off inside a packet; all of them where it does
    /// not. What is appended to a trace has to stand right behind these.
    pub fn whole_bytes(&self) -> u64 {
        self.whole_bytes
    }

    /// What the trace itself says of renamed classes and members.
    pub fn name_maps(&self) -> &Arc<NameMaps> {
        &self.name_maps
    }

    /// The processes in which each frame was sampled. Reads all samples.
    ///
    /// # Errors
    /// Where the source can't be read.
    pub fn frames_by_process(&mut self) -> Result<HashMap<FrameId, BTreeSet<u64>>, TraceError> {
        seen_in(&self.dumps, &self.recording.tables, &mut self.reader)
    }
}

/// The processes in which each frame was sampled. Reads all samples, so it is asked only where
/// deobfuscation needs it.
fn seen_in(
    dumps: &DumpPlan,
    tables: &Tables,
    reader: &mut PlaceReader,
) -> Result<HashMap<FrameId, BTreeSet<u64>>, TraceError> {
    let mut seen: HashMap<FrameId, BTreeSet<u64>> = HashMap::new();
    // A callstack stands in every dump of its process.
    let mut visited: HashSet<(CallsiteId, u64)> = HashSet::new();
    for entry in &dumps.entries {
        let Some(body) = reader.body(entry.place)? else {
            continue;
        };
        let (packet, _) = Packet::read(body);
        for message in packet.all(payload::PROFILE_PACKET) {
            // Damage is told when the dumps are read.
            let _ = each_part(message, |part| {
                let pid = Header::read(part).0.pid;
                let _ = each_sample(part, |sample| {
                    let mut scopes = entry.own_tables.iter().chain([&entry.scope]);
                    let site = scopes.find_map(|&s| dumps.callstacks.get(s, sample.callstack));
                    let Some(site) = site.filter(|&site| visited.insert((site, pid))) else {
                        return;
                    };
                    for frame in tables.callsite(site) {
                        seen.entry(frame).or_default().insert(pid);
                    }
                });
            });
        }
    }
    Ok(seen)
}
