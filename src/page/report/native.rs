//! Information about an input on a page: facts of the recording, warnings, missing symbols,
//! suggested commands.

use std::path::Path;
use std::time::Duration;

use super::process_total::shown_of_each;
use crate::heaps::input::NativeFile;
use heaptap_base::units::{ByteSize, HumanDuration, thousands};
use heaptap_base::untrusted::shell::quoted_path;
use heaptap_model::profile::DumpKind;
use heaptap_model::stacks::{Dump, View, sum};
use heaptap_report::data::header::{
    Command, Fact, MissingLibrary, Part, Symbolization, Warning, Where,
};
use heaptap_report::data::timeline::Timeline;
use heaptap_report::moment;
use heaptap_results::findings::Finding;
use heaptap_results::manifest::{self, DumpId, Manifest};

/// Returns the facts of an input, most important first.
pub(super) fn facts(file: &NativeFile, timeline: Option<&Timeline>) -> Vec<Fact> {
    let mut all = Facts(Vec::new());
    let manifest = file.manifest.as_ref();
    if let Some(device) = manifest.and_then(|manifest| manifest.device.as_ref()) {
        let model = device.model.as_deref().unwrap_or("an unknown device");
        let mut text = model.to_owned();
        if let Some(android) = &device.android {
            text += &format!(", Android {android}");
        }
        if let Some(sdk) = device.sdk {
            text += &format!(" (API {sdk})");
        }
        for more in [&device.build_type, &device.abi].into_iter().flatten() {
            text += &format!(", {more}");
        }
        all.add("Device", text);
        all.add("Serial number", device.serial.clone());
        if let Some(fingerprint) = &device.build_fingerprint {
            all.add("Build", fingerprint.clone());
        }
    } else {
        let system = &file.system;
        if system.sdk > 0 {
            all.add("Android", format!("API {}", system.sdk));
        }
        all.add("Build", system.fingerprint.clone());
        all.add("Machine", system.machine.clone());
    }
    all.add("Tracing service", file.system.tracing_service.clone());
    if let Some(manifest) = manifest {
        of_manifest(&mut all, manifest, span(file, timeline));
    }
    let of_dump = |dump: &Dump| match dump.facts.sampling_interval_bytes {
        0 => None,
        1 => Some("every allocation".to_owned()),
        interval => Some(format!("sampled every {}", ByteSize(interval))),
    };
    let mut intervals: Vec<String> = file.profile.dumps.iter().filter_map(of_dump).collect();
    intervals.sort();
    intervals.dedup();
    all.add("Sampling", intervals.join(", "));
    all.0
}

struct Facts(Vec<Fact>);

impl Facts {
    /// Leaves out unknown values.
    fn add(&mut self, name: &str, value: String) {
        if !value.is_empty() {
            self.0.push(Fact {
                name: name.to_owned(),
                value,
            });
        }
    }
}

/// Returns the time from the first to the last dump or reading, by the device's clock.
fn span(file: &NativeFile, timeline: Option<&Timeline>) -> Duration {
    let dumps = file.profile.dumps.iter();
    let dumps = dumps.filter_map(|dump| Some(dump.facts.time_ns? as f64 / 1e6));
    let readings = timeline.into_iter().flat_map(|of| [of.from_ms, of.to_ms]);
    let ends = |(first, last): (f64, f64), ms: f64| (first.min(ms), last.max(ms));
    let (first, last) = dumps.chain(readings).fold((f64::MAX, f64::MIN), ends);
    Duration::try_from_secs_f64((last - first) / 1000.0).unwrap_or_default()
}

/// Returns the words for the cause of the end in a manifest.
fn ended_by(word: &str) -> &str {
    match word {
        "duration" => "its duration (-d)",
        "done" => "the last requested dump",
        "interrupted" => "Ctrl-C",
        "stopped" => "heaptap stop",
        "size-limit" => "the size limit of the trace",
        "lost" => "a failure on the device",
        other => other,
    }
}

fn of_manifest(all: &mut Facts, manifest: &Manifest, span: Duration) {
    let at = |step: &str| manifest.steps.iter().find(|s| s.step == step).map(|s| s.at);
    let started = at("started").or_else(|| manifest.steps.first().map(|step| step.at));
    if let Some(started) = started {
        all.add("Recorded", moment(started));
        if let Some(ended) = at("trace-complete") {
            let length: Duration = (ended - started).try_into().unwrap_or_default();
            // The clock of a virtual phone can run faster than the host's.
            all.add(
                "For",
                match span > length {
                    true => format!("{}, by the device's clock", HumanDuration(span)),
                    false => HumanDuration(length).to_string(),
                },
            );
        }
    }
    let ended_by = manifest.outcome.ended_by.as_deref().map(ended_by);
    all.add("Ended by", ended_by.unwrap_or_default().to_owned());
    for target in &manifest.targets {
        let mut text = target.name.clone();
        if let Some(pid) = target.pid {
            text += &format!(" ({pid})");
        }
        match target.from_startup {
            Some(true) => text += ", from its start",
            Some(false) => text += ", attached after start",
            None => {}
        }
        all.add("Target", text);
    }
    if let Some(trace) = &manifest.trace {
        all.add(
            "Trace",
            format!(
                "{}, {} bytes, SHA-256 {}",
                trace.file,
                thousands(trace.size),
                trace.sha256
            ),
        );
    }
    all.add(
        "Recorded with",
        format!("{} {}", manifest.tool.name, manifest.tool.version),
    );
}

/// Converts findings of reading, and warnings of the recording. `place_of`: position of a dump on
/// the page, if it is shown.
pub(super) fn warnings(
    findings: &[Finding],
    manifest: Option<&Manifest>,
    place_of: impl Fn(&DumpId) -> Option<usize>,
) -> Vec<Warning> {
    let mut all: Vec<Warning> = findings
        .iter()
        .map(|finding| Warning {
            kind: Some(finding.kind.to_owned()),
            message: finding.message.clone(),
            help: finding.help.clone(),
            dumps: Vec::new(),
        })
        .collect();
    for warning in manifest.iter().flat_map(|manifest| &manifest.warnings) {
        let dumps: Vec<usize> = warning.dumps.iter().filter_map(&place_of).collect();
        match all
            .iter_mut()
            .find(|known| known.message == warning.message)
        {
            Some(known) => known.dumps = dumps,
            None => all.push(Warning {
                kind: Some(warning.kind.clone()),
                message: warning.message.clone(),
                help: warning.help.clone(),
                dumps,
            }),
        }
    }
    all
}

/// Names that are missing.
pub(super) fn symbolization(of: &manifest::Symbolization) -> Symbolization {
    Symbolization {
        frames_named: of.frames_named,
        frames_unnamed: of.frames_unnamed,
        frames_with_lines: of.frames_with_lines,
        leaf_share_unnamed: of.leaf_share_unnamed,
        share_unnamed: of.share_unnamed,
        missing: of
            .libraries_missing
            .iter()
            .map(|library| MissingLibrary {
                path: library.path.clone(),
                build_id: library.build_id.clone(),
                frames: library.frames,
                share: library.share,
            })
            .collect(),
    }
}

/// Returns the memory by category, as far as known from this input: unreleased bytes at the
/// shown dump of each heap.
pub(super) fn went(file: Option<&NativeFile>, mut java: Option<(u64, u64)>) -> Where {
    let mut parts = Vec::new();
    let mut add = |name: &str, bytes: Option<u64>, how: String| {
        parts.push(Part {
            name: name.to_owned(),
            bytes: bytes.map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX)),
            how,
        });
    };
    match file {
        Some(file) => {
            let mut held = None;
            let mut heaps: Vec<&str> = Vec::new();
            for dump in shown_of_each(&file.profile) {
                let kind = dump.facts.kind;
                if [DumpKind::AllocationsOnly, DumpKind::Difference].contains(&kind) {
                    continue;
                }
                if let Some(column) = dump.column(View::Space) {
                    let sum = u64::try_from(sum(column)).unwrap_or(0);
                    if kind == DumpKind::JavaHeap {
                        java.get_or_insert((sum, 0));
                        continue;
                    }
                    held = Some(held.unwrap_or(0u64).saturating_add(sum));
                    heaps.push(&dump.facts.heap);
                }
            }
            heaps.retain(|heap| !heap.is_empty());
            heaps.sort_unstable();
            heaps.dedup();
            let how = match held {
                Some(_) => format!(
                    "sampled: unreleased at the last dump of {}",
                    in_words(&heaps)
                ),
                None => "no sampled heap reports frees".to_owned(),
            };
            add("native", held, how);
        }
        None => add("native", None, "not sampled: `heaptap record`".to_owned()),
    }
    match java {
        Some((shallow, native)) => {
            let how = "reachable objects of the last Java heap dump";
            let how = match native {
                0 => how.to_owned(),
                // A part of the other rows, so it does not have its own row.
                native => format!(
                    "{how}, which own {} of native or graphics memory",
                    ByteSize(native)
                ),
            };
            add("java", Some(shallow), how);
        }
        None => add("java", None, "not dumped: `heaptap dump`".to_owned()),
    }
    add(
        "graphics",
        None,
        "not part of a heap; run `heaptap meminfo -n PROCESS`, or record with `heaptap record --with \
         meminfo`"
            .to_owned(),
    );
    add(
        "unseen",
        None,
        "see below for what this profile does not include".to_owned(),
    );
    Where {
        total: None,
        of: None,
        at: None,
        parts,
    }
}

fn in_words(heaps: &[&str]) -> String {
    match heaps {
        [] => "each heap".to_owned(),
        heaps => heaps.join(", "),
    }
}

/// Returns suggested commands for the last component of an input.
pub(super) fn commands(input: &Path, file: Option<&NativeFile>, has_java: bool) -> Vec<Command> {
    let input = quoted_path(input);
    let mut all = Vec::new();
    let mut add = |what: &str, command: String| {
        all.push(Command {
            what: what.to_owned(),
            command,
        });
    };
    if let Some(file) = file {
        add("as a table", format!("heaptap top {input}"));
        if file.listed.len() > 1 {
            add("what grows", format!("heaptap leaks {input}"));
        }
        add(
            "with SQL",
            format!("heaptap query {input} \"select * from heap_profile_allocation\""),
        );
        if file
            .symbolization
            .as_ref()
            .is_some_and(|s| s.frames_unnamed > 0)
        {
            add(
                "look for the missing symbols again",
                format!("heaptap symbolize {input} --symbols DIR"),
            );
        }
    }
    if has_java {
        let java = if file.is_some() { " --heap java" } else { "" };
        add(
            "leaking Java objects",
            format!("heaptap leaks{java} {input}"),
        );
        add(
            "paths to a class",
            format!("heaptap paths {input} --focus CLASS"),
        );
    }
    all
}
