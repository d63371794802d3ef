//! A runtime's own tracking of allocations: each allocation of ART's heap since tracking was
//! switched on, with class, thread and the Java part of its stack; at most the last 65,535 of them.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use super::allocations::{Allocation, TICK};
use super::live::LiveHeaps;
use super::site::Site;
use crate::clock::BootNs;
use crate::history::History;
use crate::image::renamed;
use crate::numbers::hash;
use crate::process::Pid;

/// Maximum number of allocations that ART returns.
pub(crate) const MAX_COUNT: usize = u16::MAX as usize;
/// Maximum number of frames of a stack that ART stores.
const DEPTH: usize = 16;

/// A frame as recorded by the runtime.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct JavaFrame {
    /// Descriptor of the class.
    pub(crate) class: String,
    pub(crate) method: String,
    pub(crate) file: String,
    pub(crate) line: i16,
}

/// One callsite of ART's heap.
#[derive(Debug)]
pub(crate) struct TrackedSite {
    /// Descriptor of the allocated class.
    pub(crate) class: &'static str,
    /// Frames, innermost first.
    pub(crate) frames: Vec<JavaFrame>,
}

/// One allocation.
#[derive(Debug, Clone)]
pub(crate) struct Tracked {
    pub(crate) site: Arc<TrackedSite>,
    pub(crate) bytes: u32,
}

/// Processes that track allocations, and the time when they started.
pub(crate) type Trackers = BTreeMap<(Pid, BootNs), BootNs>;

/// Actual contents of one answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrackedTruth {
    /// PID of the process.
    pub pid: u32,
    /// Name of the process.
    pub process: String,
    /// Time of the request on the phone's boot clock, in nanoseconds.
    pub boot_ns: u64,
    /// Number of allocations in it.
    pub entries: u64,
    /// Whether it lacks allocations since tracking was switched on.
    pub forgotten: bool,
    /// Allocations and bytes by class and stack (`Class.method`, innermost first, with the
    /// runtime's names).
    pub sites: BTreeMap<(String, Vec<String>), (u64, u64)>,
}

impl TrackedTruth {
    pub(crate) fn add(&mut self, allocation: &Tracked) {
        let frames = allocation.site.frames.iter();
        let stack = frames.map(|f| format!("{}.{}", dotted(&f.class), f.method));
        let key = (dotted(allocation.site.class), stack.collect());
        let sums = self.sites.entry(key).or_default();
        sums.0 += 1;
        sums.1 += u64::from(allocation.bytes);
        self.entries += 1;
    }
}

/// Converts `Lcom/example/Feed;` to `com.example.Feed` and `[B` to `byte[]`.
fn dotted(descriptor: &str) -> String {
    match descriptor {
        "[B" => "byte[]".to_owned(),
        class => class
            .trim_start_matches('L')
            .trim_end_matches(';')
            .replace('/', "."),
    }
}

/// Returns the class that a site of ART's heap allocates.
fn class_of(site: &str) -> &'static str {
    match site {
        "strings" => "Ljava/lang/String;",
        "views" => "Landroid/widget/TextView;",
        "boxed numbers" => "Ljava/lang/Long;",
        _ => "[B",
    }
}

/// Returns the lines of methods by `Class.method`, with the names after and before R8.
fn lines() -> &'static BTreeMap<String, (u32, u32)> {
    static LINES: OnceLock<BTreeMap<String, (u32, u32)>> = OnceLock::new();
    LINES.get_or_init(|| {
        let mut lines = BTreeMap::new();
        let range = |text: &str| {
            let (from, to) = text.split_once(':')?;
            Some((from.parse::<u32>().ok()?, to.parse::<u32>().ok()?))
        };
        for (class, member) in renamed() {
            let Some((left, residual)) = member else {
                continue;
            };
            // `1:14:void onBind(int):31:44`, one frame of it.
            let Some((method, original)) = left.split_once("):") else {
                continue;
            };
            let mut parts = method.splitn(3, ':');
            let (from, to) = (parts.next(), parts.next());
            let (Some(from), Some(to), Some(rest)) = (from, to, parts.next()) else {
                continue;
            };
            let name = rest.split('(').next().unwrap_or(rest);
            let name = name.rsplit(' ').next().unwrap_or(name);
            if let Some(after) = range(&format!("{from}:{to}")) {
                let key = format!("{}.{residual}", class.1);
                lines.entry(key).or_insert(after);
            }
            // If nothing was renamed, the compiled code has the lines of the sources.
            if let Some(before) = range(original) {
                lines.insert(format!("{}.{name}", class.0), before);
            }
        }
        lines
    })
}

impl JavaFrame {
    /// Returns the frame of a function in a stack; `None` if it is not Java.
    fn new(path: &str, function: &str) -> Option<JavaFrame> {
        let java = [".oat", ".odex", ".vdex"];
        if !java.iter().any(|end| path.ends_with(end)) && !path.contains("jit-cache") {
            return None;
        }
        let (class, method) = function.rsplit_once('.')?;
        let simple = class.rsplit('.').next().unwrap_or(class);
        let file = match class.strip_prefix("com.example.app.") {
            Some(_) => format!("{simple}.kt"),
            None if class.contains('.') && simple.len() == 1 => "SourceFile".to_owned(),
            None => format!("{simple}.java"),
        };
        let (from, to) = lines().get(function).copied().unwrap_or((20, 400));
        let width = u64::from(to.saturating_sub(from)) + 1;
        let line = u64::from(from) + hash(function) % width;
        Some(JavaFrame {
            class: format!("L{};", class.replace('.', "/")),
            method: method.to_owned(),
            file,
            line: i16::try_from(line).unwrap_or(i16::MAX),
        })
    }
}

impl LiveHeaps {
    /// Returns the allocations on ART's heap after `since` and up to `until`, the newest first, at
    /// most [`MAX_COUNT`] of them; and whether there were more.
    pub(crate) fn tracked(
        &self,
        history: &History,
        since: BootNs,
        until: BootNs,
    ) -> (Vec<Tracked>, bool) {
        let workload = &self.workload;
        let Some(place) = workload
            .heaps
            .iter()
            .position(|h| h.name == "com.android.art")
        else {
            return (Vec::new(), false);
        };
        let sites = &workload.heaps[place].sites;
        let sites: Vec<Arc<TrackedSite>> =
            sites.iter().map(|s| Arc::new(self.site_of(s))).collect();
        let mut found = Vec::new();
        let mut out: Vec<Allocation> = Vec::new();
        for (from, to) in history.spans(until).into_iter().rev() {
            let first = from.div_ceil(TICK).max(since / TICK + 1);
            for tick in (first..=to / TICK).rev() {
                workload.allocations(place, tick, self.started, &mut out);
                for allocation in out.drain(..).rev() {
                    if found.len() == MAX_COUNT {
                        return (found, true);
                    }
                    found.push(Tracked {
                        site: sites[allocation.site].clone(),
                        bytes: u32::try_from(allocation.size).unwrap_or(u32::MAX),
                    });
                }
            }
        }
        (found, false)
    }

    fn site_of(&self, site: &Site) -> TrackedSite {
        let frames = site.frames.iter().rev();
        let frames = frames.filter_map(|id| {
            let frame = &self.workload.frames[*id as usize];
            let path = &self.workload.mappings[frame.mapping].path;
            JavaFrame::new(path, &frame.function)
        });
        TrackedSite {
            class: class_of(&site.name),
            frames: frames.take(DEPTH).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SECOND;

    fn heaps(words: &str, started: BootNs) -> LiveHeaps {
        let (spec, package, process) = super::super::live::tests::app(words, started);
        LiveHeaps::new(&spec, package, &process, 0)
    }

    #[test]
    fn what_is_tracked_is_what_the_heap_gets_the_newest_first() {
        let started = 77 * SECOND + 3;
        let heaps = heaps("android=11", started);
        let history = History::for_tests(started);
        let (from, to) = (started + SECOND, started + 5 * SECOND);
        let (all, more) = heaps.tracked(&history, from, to);
        assert!(!more);
        let flow = heaps.flow("com.android.art", 1 << 40);
        let expected = flow.small.0 * 4.0;
        assert!((all.len() as f64 - expected).abs() < expected / 50.0);
        // Two halves are the whole.
        let middle = from + 2 * SECOND;
        let (late, _) = heaps.tracked(&history, middle, to);
        let (early, _) = heaps.tracked(&history, from, middle);
        assert_eq!(late.len() + early.len(), all.len());
        let bytes = |of: &[Tracked]| of.iter().map(|a| u64::from(a.bytes)).collect::<Vec<_>>();
        assert_eq!([bytes(&late), bytes(&early)].concat(), bytes(&all));
        // The limit keeps the newest.
        let (last, more) = heaps.tracked(&history, started, started + 30 * SECOND);
        assert!(more);
        assert_eq!(last.len(), MAX_COUNT);
        for site in all.iter().map(|a| &a.site) {
            assert!(!site.frames.is_empty() && site.frames.iter().all(|f| f.line > 0));
        }
    }

    #[test]
    fn frames_have_the_lines_that_a_mapping_file_answers_for() {
        let usual = JavaFrame::new(
            "/x/base.odex",
            "com.example.app.feed.FeedAdapter.onBindViewHolder",
        );
        let usual = usual.unwrap();
        assert!((31..=44).contains(&usual.line), "{usual:?}");
        assert_eq!(usual.file, "FeedAdapter.kt");
        let renamed = JavaFrame::new("/x/base.odex", "a.a.b").unwrap();
        assert_eq!((&*renamed.class, &*renamed.file), ("La/a;", "SourceFile"));
        assert!((1..=14).contains(&renamed.line), "{renamed:?}");
        assert_eq!(JavaFrame::new("/x/libart.so", "art::gc.x"), None);
    }
}
