//! A trace after its first reading, while names can still be added to its frames: symbols and R8
//! mappings are added here, before the tables are sealed and the first dump is read.

use super::clocks::Clocks;
use super::dumps::DumpPlan;
use super::framing::{Source, TraceError, Window};
use super::iids::ScopeId;
use super::interning::lost_frame;
use super::java::JavaPlan;
use super::memory;
use super::order::arrange;
use super::packet::{Packet, payload};
use super::profile_packet::{Header, each_part, each_sample};
use super::reader::PlaceReader;
use super::smaps::SmapsPlan;
use super::survey::Survey;
use heaptap_model::profile::{CallsiteId, FrameId, Health, NameMaps, Recording, Tables};
use heaptap_model::stacks::LOST_CALLSTACK;
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
    /// Metadata of processes without a dump at that time.
    pub(super) graphless: Vec<JavaPlan>,
    pub(super) smaps: Vec<SmapsPlan>,
    pub(super) memory: memory::Places,
    pub(super) reader: PlaceReader,
    whole_bytes: u64,
}

impl Surveyed {
    /// Reads everything except samples. Frames get the symbols of the trace;
    /// [`Surveyed::name_maps`] returns its original names of classes.
    ///
    /// # Errors
    /// Returns an error if the source cannot be read; damage in it is not an error.
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
        recording.has_names = !name_maps.is_empty();
        symbols.apply(&mut recording);
        recording.started_ns = recording.started_ns.or(clocks.first_trace_time());
        let (java, graphless) = java.finish();
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
            java,
            graphless,
            smaps: smaps.finish(),
            memory,
            reader,
            whole_bytes,
        })
    }

    /// Returns the current mappings, frames and names.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Returns the recording for adding symbols and names.
    pub fn recording_mut(&mut self) -> &mut Recording {
        &mut self.recording
    }

    /// Returns the loss and damage found by the first reading.
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// Returns the processes with Java heap dumps in the trace.
    pub fn java_pids(&self) -> BTreeSet<u64> {
        self.java.iter().map(|plan| plan.pid).collect()
    }

    /// Returns the bytes of the source up to the packet within which it breaks off, or all of them.
    /// Appended data must directly follow these.
    pub fn whole_bytes(&self) -> u64 {
        self.whole_bytes
    }

    /// Returns the trace's original names of classes and members.
    pub fn name_maps(&self) -> &Arc<NameMaps> {
        &self.name_maps
    }

    /// Returns the processes in which each frame was sampled. Reads all samples.
    ///
    /// # Errors
    /// Returns an error if the source cannot be read.
    pub fn frames_by_process(&mut self) -> Result<HashMap<FrameId, BTreeSet<u64>>, TraceError> {
        seen_in(&self.dumps, &self.recording.tables, &mut self.reader)
    }
}

/// Returns the processes in which each frame was sampled. Reads all samples, so it is called only
/// if deobfuscation needs it.
fn seen_in(
    dumps: &DumpPlan,
    tables: &Tables,
    reader: &mut PlaceReader,
) -> Result<HashMap<FrameId, BTreeSet<u64>>, TraceError> {
    let mut seen: HashMap<FrameId, BTreeSet<u64>> = HashMap::new();
    // A callstack is repeated in every dump of its process.
    let mut visited: HashSet<(CallsiteId, u64)> = HashSet::new();
    for entry in &dumps.entries {
        let Some(body) = reader.body(entry.place)? else {
            continue;
        };
        let (packet, _) = Packet::read(body);
        for message in packet.all(payload::PROFILE_PACKET) {
            // Damage is reported when the dumps are read.
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
