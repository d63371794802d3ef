//! Total memory of a process as reported by the device, at the first dump shown on a page: values
//! for comparison with the profile, read at nearly the same time.

use heaptap_base::units::{ByteSize, HumanDuration, SignedSize};
use heaptap_model::profile::DumpKind;
use heaptap_model::stacks::{Dump, StackProfile, View, sum};
use heaptap_model::timeline::Source;
use heaptap_report::data::header::{Part, Where};
use heaptap_report::data::timeline::{Process, Timeline};
use std::collections::HashMap;
use std::time::Duration;

/// Maximum distance to a dump that counts as the same time, in ms.
const SAME_MS: f64 = 500.0;

/// Values measured for the process of a dump, nearest to the dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Measured {
    /// Total, and its kind.
    pub(super) total: i64,
    pub(super) of: &'static str,
    /// Readable time.
    pub(super) at: String,
    /// Readable source.
    pub(super) by: &'static str,
    /// Breakdown; absent if only the total is known.
    pub(super) parts: Option<Divided>,
    /// Resident anonymous pages; absent if unknown.
    pub(super) anon: Option<i64>,
    /// Unreleased bytes of the profile.
    pub(super) held: i64,
}

/// Breakdown by the rules of meminfo's App Summary, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Divided {
    pub(super) java: i64,
    pub(super) native: i64,
    pub(super) code: i64,
    pub(super) stack: i64,
    pub(super) graphics: i64,
    pub(super) other: i64,
    pub(super) system: i64,
    /// Allocated in the native heap as the allocator counts it.
    pub(super) native_alloc: Option<i64>,
}

/// Returns the dump of each heap that the page shows first.
pub(super) fn shown_of_each(profile: &StackProfile) -> Vec<&Dump> {
    let mut shown: Vec<&Dump> = Vec::new();
    let mut places = HashMap::new();
    for dump in &profile.dumps {
        let place = *places.entry(dump.facts.heap_key()).or_insert(shown.len());
        match shown.get_mut(place) {
            Some(known) if known.facts.is_default => {}
            Some(known) => *known = dump,
            None => shown.push(dump),
        }
    }
    shown
}

impl Measured {
    /// At the dump of the heap with the most bytes that the page shows first.
    pub(super) fn at_dump(profile: &StackProfile, timeline: &Timeline) -> Option<Measured> {
        let held = |dump: &Dump| held(dump).unwrap_or(i64::MIN);
        let shown = shown_of_each(profile);
        let dump = *shown.iter().max_by_key(|dump| held(dump))?;
        let same = shown.iter().filter(|of| of.facts.pid == dump.facts.pid);
        let sum = same.filter_map(|dump| self::held(dump));
        let sum = sum.fold(0i64, i64::saturating_add);
        let pid = u32::try_from(dump.facts.pid).ok()?;
        let ms = dump.facts.time_ns? as f64 / 1e6;
        let life = timeline.life(pid, ms)?;
        // The last dump without a label is that of the end.
        let label = dump.facts.label.as_deref();
        let captured = timeline.captured(life, label.unwrap_or_default(), ms);
        let name = match label {
            Some(label) => label.to_owned(),
            None => format!("dump {}", dump.facts.number),
        };
        Measured::new(life, (ms, captured), &name, sum, timeline)
    }

    /// `captured`: row of the capture of the dump's label.
    fn new(
        life: &Process,
        (ms, captured): (f64, Option<usize>),
        name: &str,
        held: i64,
        timeline: &Timeline,
    ) -> Option<Measured> {
        let resident = life.resident.nearest(ms);
        let anon = resident.and_then(|row| life.resident.value("anon", row));
        if let Some(row) = captured.or_else(|| life.parts.nearest(ms)) {
            let value = |column: &str| life.parts.value(column, row);
            let word = timeline.words.get(*life.parts.source.get(row)?)?;
            return Some(Measured {
                total: value("total_pss")?,
                of: "PSS including swapped memory",
                at: moment(
                    name,
                    captured.map_or("read", |_| "captured"),
                    life.parts.ms[row] - ms,
                ),
                by: by(word),
                parts: Some(Divided {
                    java: value("java")?,
                    native: value("native")?,
                    code: value("code")?,
                    stack: value("stack")?,
                    graphics: value("graphics")?,
                    other: value("private_other")?,
                    system: value("system")?,
                    native_alloc: value("native_alloc"),
                }),
                anon,
                held,
            });
        }
        let row = resident?;
        let word = timeline.words.get(*life.resident.source.get(row)?)?;
        Some(Measured {
            total: life.resident.value("rss", row)?,
            of: "resident (RSS)",
            at: moment(name, "read", life.resident.ms[row] - ms),
            by: by(word),
            parts: None,
            anon,
            held,
        })
    }

    /// Native memory of the process outside the profile.
    pub(super) fn native_unseen(&self) -> Option<i64> {
        let unseen = self.parts?.native.saturating_sub(self.held);
        (unseen > 0).then_some(unseen)
    }

    /// Returns the memory by category from these values; `java` has the reachable objects of a heap
    /// dump.
    pub(super) fn went(&self, java: Option<(u64, u64)>) -> Where {
        let mut parts = Vec::new();
        let mut add = |name: &str, bytes: i64, how: String| {
            parts.push(Part {
                name: name.to_owned(),
                bytes: Some(bytes),
                how,
            });
        };
        let by = self.by;
        let held = size(self.held);
        let objects = match java {
            Some((shallow, _)) => format!(
                "; reachable objects of the last Java heap dump: {}",
                ByteSize(shallow)
            ),
            None => String::new(),
        };
        match self.parts {
            Some(of) => {
                add(
                    "native",
                    of.native,
                    format!(
                        "private dirty pages of the native heap, from {by}; {held} of it sampled"
                    ),
                );
                add(
                    "java",
                    of.java,
                    format!("private dirty pages of the Java heap and of .art, from {by}{objects}"),
                );
                add(
                    "graphics",
                    of.graphics,
                    format!("Gfx dev, EGL mtrack and GL mtrack, from {by}"),
                );
                add(
                    "code",
                    of.code,
                    format!("private pages of libraries, dex, apk and fonts, from {by}"),
                );
                add("stack", of.stack, format!("thread stacks, from {by}"));
                add(
                    "other",
                    of.other,
                    format!("other private memory: mapped files, ashmem, unnamed pages, from {by}"),
                );
                add(
                    "system",
                    of.system,
                    format!("its share of shared pages, and swapped memory, from {by}"),
                );
            }
            None => {
                add(
                    "native",
                    self.held,
                    "sampled: unreleased at this dump".to_owned(),
                );
                let mut known = self.held;
                if let Some((shallow, _)) = java {
                    let shallow = i64::try_from(shallow).unwrap_or(i64::MAX);
                    known = known.saturating_add(shallow);
                    add(
                        "java",
                        shallow,
                        "reachable objects of the last Java heap dump".to_owned(),
                    );
                }
                if let Some(anon) = self.anon {
                    let files = self.total.saturating_sub(anon);
                    known = known.saturating_add(files);
                    add(
                        "other",
                        files,
                        format!("file pages and shared memory, from {by}"),
                    );
                }
                let rest = self.total.saturating_sub(known);
                if rest > 0 {
                    add(
                        "unseen",
                        rest,
                        "resident, but in none of the other rows; see below for what this profile \
                         does not include"
                            .to_owned(),
                    );
                }
            }
        }
        Where {
            total: u64::try_from(self.total).ok(),
            of: Some(self.of.to_owned()),
            at: Some(self.at.clone()),
            parts,
        }
    }
}

/// Bytes with their sign.
fn size(bytes: i64) -> String {
    SignedSize(bytes).to_string()
}

/// Returns the unreleased bytes of a dump; `None` if its heap does not report frees.
fn held(dump: &Dump) -> Option<i64> {
    if ![DumpKind::Cumulative, DumpKind::AtMaximum].contains(&dump.facts.kind) {
        return None;
    }
    dump.column(View::Space).map(sum)
}

fn moment(name: &str, verb: &str, apart_ms: f64) -> String {
    if apart_ms.abs() <= SAME_MS {
        return name.to_owned();
    }
    let apart = Duration::try_from_secs_f64(apart_ms.abs() / 1000.0).unwrap_or_default();
    let side = if apart_ms < 0.0 { "before" } else { "after" };
    format!("{name}, {verb} {} {side} it", HumanDuration(apart))
}

/// Returns the readable name of a source.
fn by(word: &str) -> &'static str {
    let all = [
        (Source::Status, "/proc/PID/status"),
        (Source::MeminfoLocal, "dumpsys meminfo --local"),
        (Source::Meminfo, "dumpsys meminfo"),
        (Source::Smaps, "smaps"),
        (Source::ProcessStats, "the trace's process_stats"),
    ];
    let found = all.into_iter().find(|(source, _)| source.word() == word);
    found.map_or("the device", |(_, words)| words)
}
