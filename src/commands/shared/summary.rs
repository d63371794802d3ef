//! Terminal summary of a finished recording: memory by callsite, problems with remedies, written
//! files, and suggested commands.

mod companion;
mod tracked;

use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;

use super::java_summary;
use super::missing::{self, Remedy};
use super::paths::near;
use crate::commands::shared::meminfo::size;
use crate::console::table::Table;
use crate::console::wrap::wrap;
use crate::console::{Console, Style};
use crate::heaps::java::DIRECTORY;
use crate::heaps::selector::{LabelError, check_label};
use crate::names::packet_files::{DEOBFUSCATION, SYMBOLS};
use crate::page::report::PAGE;
use heaptap_analyze::native::scope;
use heaptap_base::directory::SYMBOLIZED_TRACE;
use heaptap_base::units::{ByteSize, counted, thousands};
use heaptap_base::untrusted::shell::{quoted_dump, quoted_path};
use heaptap_model::names::could_be_app;
use heaptap_model::profile::DumpKind;
use heaptap_results::findings::is_note;
use heaptap_results::manifest::{self, Manifest};
use heaptap_results::summary::{HeapSummary, NamedFrame, TopCallsite};

/// Callers shown, as far as there is room.
const CALLERS: usize = 3;
/// Number of heaps shown with a table; others show only their totals.
const FULL_HEAPS: usize = 4;
/// Maximum number of heaps shown, tables and totals.
const OTHER_HEAPS: usize = 20;
/// Warnings shown; the manifest has all.
const WARNINGS: usize = 20;
/// Maximum number of dumps in a line; otherwise the first, the labeled and the last.
const DUMPS: usize = 5;

/// Maximum number of names in a grouped message.
const NAMES: usize = 6;

#[derive(Serialize)]
struct Document<'a> {
    output: &'a Path,
    manifest: &'a Manifest,
}

/// Shows a finished recording: as text, or in a JSON mode as one document with its directory and
/// manifest.
pub fn show(
    console: &Console,
    directory: &Path,
    manifest: &Manifest,
    wrote: &Wrote,
    heaps: &[HeapSummary],
    remedy: Remedy<'_>,
) {
    if console.is_json() {
        console.json(&Document {
            output: directory,
            manifest,
        });
    } else if !console.is_quiet() {
        let page = Page {
            console,
            width: console.stdout_width(),
        };
        let blocks = page.heaps(manifest, heaps);
        for block in blocks.into_iter().chain(tracked::block(console, manifest)) {
            for line in block {
                console.laid_out(line);
            }
            console.data("");
        }
    }
    tell(console, directory, manifest, wrote, heaps, remedy);
}

/// Files that a command wrote, other than those in the manifest.
#[derive(Debug, Clone, Default)]
pub struct Wrote {
    /// The trace, fetched from a device, captures and the timeline.
    recording: bool,
    /// Files of packets.
    packets: Vec<&'static str>,
    page: bool,
}

impl Wrote {
    /// The manifest and its profiles, with packet files.
    pub fn packets(packets: &[&'static str]) -> Wrote {
        Wrote {
            packets: packets.to_vec(),
            ..Wrote::default()
        }
    }

    /// All files of a recording; `page`: including a page.
    pub fn recording(packets: &[&'static str], page: bool) -> Wrote {
        Wrote {
            recording: true,
            packets: packets.to_vec(),
            page,
        }
    }
}

/// Prints messages about a finished recording to stderr, in every mode: warnings and notes, written
/// files, and suggested commands.
pub fn tell(
    console: &Console,
    directory: &Path,
    manifest: &Manifest,
    wrote: &Wrote,
    heaps: &[HeapSummary],
    remedy: Remedy<'_>,
) {
    let is_note = |w: &&manifest::Warning| is_note(&w.kind);
    let warnings = grouped(manifest.warnings.iter().filter(|w| !is_note(w)));
    for warning in warnings.iter().take(WARNINGS) {
        console.warn_with_help(&warning.message, warning.help.as_deref());
    }
    let left = warnings.len().saturating_sub(WARNINGS);
    if left > 0 {
        console.complain(format_args!(
            "… and {}, in {}",
            counted(left as u64, "more warning", "more warnings"),
            manifest::FILE_NAME
        ));
    }
    let notes = grouped(manifest.warnings.iter().filter(is_note));
    let notes = notes.into_iter().map(|note| note.message);
    let from = tracked::note(manifest);
    for note in notes.chain(hooked_late(manifest)).chain(from) {
        console.note(note);
    }
    if let Some(names) = &manifest.symbolization {
        missing::tell(console, names, remedy, manifest::FILE_NAME);
    }
    console.say(written(directory, manifest, wrote));
    console.next(&next_commands(directory, manifest, heaps, wrote.page));
}

/// Groups items whose messages have the same cause, but different names before it. Returns names,
/// cause and first item of each group. `parts` splits a message into both.
pub(super) fn by_cause<'a, T>(
    items: impl IntoIterator<Item = &'a T>,
    parts: impl Fn(&'a T) -> (&'a str, &'a str),
    is_same: impl Fn(&T, &T) -> bool,
) -> Vec<(Vec<&'a str>, &'a str, &'a T)> {
    let mut groups: Vec<(Vec<&str>, &str, &T)> = Vec::new();
    for item in items {
        let (who, what) = parts(item);
        let mut known = groups.iter_mut();
        match known.find(|(_, cause, first)| *cause == what && is_same(first, item)) {
            Some((names, _, _)) => names.push(who),
            None => groups.push((vec![who], what, item)),
        }
    }
    groups
}

/// A message on its own line.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    message: String,
    help: Option<String>,
}

/// Groups warnings by cause: a message about several processes (`NAME: …`) becomes one line with
/// all names.
fn grouped<'a>(warnings: impl IntoIterator<Item = &'a manifest::Warning>) -> Vec<Said> {
    let parts = |warning: &'a manifest::Warning| {
        let parts = warning.message.split_once(": ");
        let parts = parts.filter(|_| warning.pid.is_some());
        parts.unwrap_or(("", &warning.message))
    };
    let is_same =
        |a: &manifest::Warning, b: &manifest::Warning| (&a.kind, &a.help) == (&b.kind, &b.help);
    by_cause(warnings, parts, is_same)
        .into_iter()
        .map(|(mut names, what, warning)| {
            names.dedup();
            let more = names.len().saturating_sub(NAMES);
            names.truncate(NAMES);
            let more = match more {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let message = match names.as_slice() {
                [""] => what.to_owned(),
                [one] => format!("{one}: {what}"),
                names => {
                    let what = what.replacen("no samples: it ", "no samples: each ", 1);
                    format!("{}{more}: {what}", names.join(", "))
                }
            };
            Said {
                message,
                help: warning.help.clone(),
            }
        })
        .collect()
}

/// Returns a note about processes that were running before profiling: most of most recordings.
fn hooked_late(manifest: &Manifest) -> Option<String> {
    if manifest.host.is_some() {
        // The library waits for its session before the program's main function.
        return None;
    }
    let mut late: Vec<&manifest::Dump> = Vec::new();
    for dump in &manifest.dumps.native {
        let hooked = !dump.flags.from_startup && dump.file.is_some();
        if hooked && late.iter().all(|d| d.pid != dump.pid) {
            late.push(dump);
        }
    }
    let who = match late.as_slice() {
        [] => return None,
        [one] if one.process.is_empty() => format!("process {}", one.pid),
        [one] => one.process.clone(),
        several => format!("{} processes", several.len()),
    };
    let (they, them) = match late.len() {
        1 => ("it", "it"),
        _ => ("they", "them"),
    };
    let how = match late.iter().any(|dump| could_be_app(&dump.process)) {
        true => "use `--launch --no-running`".to_owned(),
        false => format!("restart {them} during a recording with `--no-running`"),
    };
    Some(format!(
        "{who}: attached after {they} started; earlier allocations are missing. To record them, \
         {how}."
    ))
}

struct Page<'a> {
    console: &'a Console,
    width: Option<usize>,
}

impl Page<'_> {
    /// Returns one block of lines for each heap.
    fn heaps(&self, manifest: &Manifest, heaps: &[HeapSummary]) -> Vec<Vec<String>> {
        let dumps = manifest.dumps.native.iter();
        let rejected: BTreeSet<(u64, &str)> = dumps
            .filter(|dump| dump.flags.rejected_concurrent)
            .map(|dump| (dump.pid, dump.heap.as_str()))
            .collect();
        // A warning explains heaps that were not recorded.
        let was_recorded = |heap: &&HeapSummary| {
            heap.callsites > 0 || !rejected.contains(&(heap.pid, heap.heap.as_str()))
        };
        let heaps: Vec<&HeapSummary> = heaps.iter().filter(was_recorded).collect();
        let mut blocks: Vec<Vec<String>> = heaps
            .iter()
            .take(FULL_HEAPS)
            .map(|heap| self.heap(manifest, heap))
            .collect();
        let others = heaps.get(FULL_HEAPS..).unwrap_or_default();
        if !others.is_empty() {
            let shown = others.iter().take(OTHER_HEAPS);
            let mut block: Vec<String> = shown
                .map(|heap| format!("{}  {}", self.title(heap), headline(heap)))
                .collect();
            if let Some(left) = others.len().checked_sub(OTHER_HEAPS + 1) {
                block.push(format!(
                    "… and {}",
                    counted(left as u64 + 1, "more heap", "more heaps")
                ));
            }
            blocks.push(block);
        }
        blocks
    }

    fn title(&self, heap: &HeapSummary) -> String {
        java_summary::title(self.console, &heap.process, heap.pid, &heap.heap)
    }

    fn heap(&self, manifest: &Manifest, heap: &HeapSummary) -> Vec<String> {
        let mut block = vec![self.title(heap)];
        let totals = &heap.totals;
        let sampled = if heap.is_sampled() { "sampled " } else { "" };
        let mut line = |what: &str, bytes: i64, count: i64, more: &str| {
            let plural = if count == 1 { "" } else { "s" };
            block.push(format!(
                "  {what:<10}  {:>10}  in {} {sampled}allocation{plural}{more}",
                size(bytes),
                thousands(count)
            ));
        };
        match heap.kind {
            DumpKind::Cumulative | DumpKind::JavaHeap | DumpKind::Difference => {
                line("unreleased", totals.space, totals.objects, "");
                line("allocated", totals.alloc_space, totals.alloc_objects, "");
            }
            DumpKind::AtMaximum => line(
                "unreleased",
                totals.space,
                totals.objects,
                ", when the heap was largest",
            ),
            DumpKind::AllocationsOnly => line(
                "allocated",
                totals.alloc_space,
                totals.alloc_objects,
                "; frees are unknown",
            ),
        }
        if heap.dumps > 1 {
            let series = format!("  {}", self.series(manifest, heap));
            block.extend(match self.width {
                Some(width) => wrap(&series, width).lines().map(str::to_owned).collect(),
                None => vec![series],
            });
        }
        if heap.top.is_empty() {
            let why = if heap.callsites == 0 {
                "no samples"
            } else {
                "everything was freed"
            };
            block.push(format!("  {why}"));
            return block;
        }
        block.push(String::new());
        let width = self.width.map(|width| width.saturating_sub(2));
        let table = self.table(heap).lines(self.console, width);
        block.extend(table.into_iter().map(|line| format!("  {line}")));
        block
    }

    /// Returns the unreleased bytes at each dump, as far as they fit on a line.
    fn series(&self, manifest: &Manifest, heap: &HeapSummary) -> String {
        let mine: Vec<&manifest::Dump> = manifest
            .dumps
            .native
            .iter()
            .filter(|d| d.pid == heap.pid && d.heap == heap.heap)
            .collect();
        let last = mine.len().saturating_sub(1);
        let few = mine.len() <= DUMPS;
        let mut shown: Vec<String> = mine
            .iter()
            .enumerate()
            .filter(|(at, dump)| few || *at == 0 || *at == last || dump.label.is_some())
            .map(|(at, dump)| {
                let bytes = dump.totals.space.unwrap_or(dump.totals.alloc_space);
                let name = match &dump.label {
                    Some(label) => label.name.clone(),
                    None if at == 0 => "first".to_owned(),
                    None if at == last => "last".to_owned(),
                    None => return size(bytes),
                };
                format!("{name} {}", size(bytes))
            })
            .collect();
        if shown.len() > 2 * DUMPS {
            let left = shown.len() - 2 * DUMPS;
            shown.splice(DUMPS..DUMPS + left, [format!("({left} more)")]);
        }
        format!("{} dumps: {}", mine.len(), shown.join(", "))
    }

    fn table(&self, heap: &HeapSummary) -> Table {
        let frees = heap.knows_frees();
        let of = |site: &TopCallsite| {
            if frees {
                (site.figures.space, site.figures.objects)
            } else {
                (site.figures.alloc_space, site.figures.alloc_objects)
            }
        };
        let total = if frees {
            heap.totals.space
        } else {
            heap.totals.alloc_space
        };
        let held = if frees { "unreleased" } else { "allocated" };
        let counted = if heap.is_sampled() {
            "sampled"
        } else {
            "allocations"
        };
        let mut table = Table::new(&[held, "share", counted, "callsite"]).of_code();
        let mut rest = total;
        for site in &heap.top {
            let (bytes, count) = of(site);
            rest = rest.saturating_sub(bytes);
            let name = |frame: &NamedFrame| {
                let mut name = short(&frame.function);
                if frame.recursive {
                    name.push_str(" (recursive)");
                }
                name
            };
            let cells = vec![size(bytes), share(bytes, total), thousands(count)];
            table.row(cells, site.frames.first().map(name).unwrap_or_default());
            table.style(Style::Strong);
            // As in `top`, frames of the runtime are left out.
            let callers = site.frames.iter().skip(1);
            let callers = callers.filter(|frame| !frame.allocates_for_callers());
            let callers: Vec<String> = callers.map(name).take(CALLERS).collect();
            if !callers.is_empty() {
                table.remark(format!("← {}", callers.join(" ← ")));
            }
        }
        if rest > 0 && heap.callsites > heap.top.len() {
            let cells = vec![size(rest), share(rest, total), String::new()];
            table.row(cells, "in other callsites");
        }
        table
    }
}

fn headline(heap: &HeapSummary) -> String {
    if heap.knows_frees() {
        format!("unreleased {}", size(heap.totals.space))
    } else {
        format!("allocated {}", size(heap.totals.alloc_space))
    }
}

/// Returns a line with the files written to the directory.
fn written(directory: &Path, manifest: &Manifest, wrote: &Wrote) -> String {
    let mut parts = Vec::new();
    if let Some(trace) = manifest.trace.as_ref().filter(|_| wrote.recording) {
        parts.push(format!("{} ({})", trace.file, ByteSize(trace.size)));
    }
    for name in [SYMBOLIZED_TRACE, SYMBOLS, DEOBFUSCATION] {
        if wrote.packets.contains(&name) {
            parts.push(name.to_owned());
        }
    }
    let native = manifest.dumps.native.iter().filter_map(|d| d.file.as_ref());
    let java = &manifest.dumps.java;
    let java_files = java
        .iter()
        .flat_map(|d| [&d.file, &d.dominators].into_iter().flatten());
    let (hprofs, profiles): (Vec<&String>, Vec<&String>) = native
        .chain(java_files)
        .chain(tracked::profiles(manifest))
        .partition(|file| file.ends_with(".hprof"));
    let malloc: Vec<&String> = java.iter().filter_map(|d| d.malloc_info.as_ref()).collect();
    let files = hprofs.into_iter().chain(malloc);
    let listed = parts.len();
    parts.extend(files.cloned());
    match profiles.len() {
        0 if parts.len() > listed => {}
        0 => parts.push("no profile".to_owned()),
        n => parts.push(counted(n as u64, "profile (.pb.gz)", "profiles (.pb.gz)")),
    }
    if wrote.recording {
        parts.extend(companion::files(manifest));
    }
    parts.push(manifest::FILE_NAME.to_owned());
    if wrote.page {
        parts.push(PAGE.to_owned());
    }
    format!("wrote {}: {}", near(directory).display(), parts.join(", "))
}

/// Returns commands, each with a description, the most useful first: the page, growth and leaks
/// before the tables, whose first rows are shown already.
fn next_commands(
    directory: &Path,
    manifest: &Manifest,
    heaps: &[HeapSummary],
    has_page: bool,
) -> Vec<(String, String)> {
    let place = quoted_path(near(directory));
    let native = NativeCommands::new(directory, manifest, heaps, &place);
    let is_native = native.is_some();
    let native = native.unwrap_or_default();
    let tracked = tracked::commands(directory, manifest);
    let java_place = java_summary::java_place(&directory.join(DIRECTORY));
    let beside_native = !manifest.dumps.native.is_empty() || !tracked.is_empty();
    let mut java = java_summary::next_commands(directory, manifest, beside_native).into_iter();
    let mut growth = native.growth.into_iter();
    let mut next = Vec::new();
    if has_page {
        next.push((
            "everything, in the browser:".to_owned(),
            format!("heaptap open {}", quoted_path(near(directory).join(PAGE))),
        ));
    }
    next.extend(growth.next());
    next.extend(companion::java_command(manifest, &java_place));
    next.extend(java.next());
    next.extend(growth);
    next.extend(native.top);
    next.extend(tracked);
    next.extend(java);
    if is_native && !has_page {
        next.push((
            "everything on one page, with flame graphs:".to_owned(),
            format!("heaptap report {place} --open"),
        ));
    }
    next.extend(companion::commands(manifest, &place));
    next.extend(native.pprof);
    next
}

/// Commands for the first native heap that has callsites, each with a description.
#[derive(Default)]
struct NativeCommands {
    growth: Vec<(String, String)>,
    top: Option<(String, String)>,
    pprof: Option<(String, String)>,
}

impl NativeCommands {
    /// `place` is the quoted directory.
    fn new(
        directory: &Path,
        manifest: &Manifest,
        heaps: &[HeapSummary],
        place: &str,
    ) -> Option<NativeCommands> {
        let heap = heaps.iter().find(|h| !h.top.is_empty())?;
        let mine: Vec<&manifest::Dump> = manifest
            .dumps
            .native
            .iter()
            .filter(|d| d.pid == heap.pid && d.heap == heap.heap && d.file.is_some())
            .collect();
        let &last = mine.last()?;
        let several = manifest.dumps.native.iter().any(|d| d.pid != heap.pid);
        let process = match several {
            true => format!(" -p {}", heap.pid),
            false => String::new(),
        };
        let what = match heap.kind {
            DumpKind::Cumulative | DumpKind::JavaHeap | DumpKind::Difference => {
                "where the memory went:"
            }
            DumpKind::AtMaximum => "where the memory was at the maximum:",
            DumpKind::AllocationsOnly => "callsites that allocated most:",
        };
        let whole: Vec<&manifest::Dump> = mine.iter().copied().filter(|d| d.complete).collect();
        let mine = if whole.len() > 1 { whole } else { mine };
        let last = mine.last().copied().unwrap_or(last);
        let growth = match heap.kind {
            DumpKind::Cumulative | DumpKind::JavaHeap | DumpKind::Difference => {
                growth_commands(directory, &mine, last, place, &process)
            }
            DumpKind::AtMaximum | DumpKind::AllocationsOnly => Vec::new(),
        };
        let pprof = last.file.as_ref().map(|file| {
            let file = quoted_path(near(directory).join(file));
            (
                "the same data in other tools:".to_owned(),
                format!("go tool pprof -symbolize=none -http=: {file}"),
            )
        });
        Some(NativeCommands {
            growth,
            top: Some((what.to_owned(), format!("heaptap top {place}{process}"))),
            pprof,
        })
    }
}

/// Returns the commands that compare the dumps of one heap.
fn growth_commands(
    directory: &Path,
    mine: &[&manifest::Dump],
    last: &manifest::Dump,
    place: &str,
    process: &str,
) -> Vec<(String, String)> {
    let mut next = Vec::new();
    let is_series = mine.len() > 2;
    if is_series {
        next.push((
            "growth from dump to dump, and leaks:".to_owned(),
            format!("heaptap leaks {place}{process}"),
        ));
    }
    // Labels mark the dumps worth comparing. Without labels, `leaks` compares a series.
    let labelled: Vec<&manifest::Dump> =
        mine.iter().copied().filter(|d| d.label.is_some()).collect();
    let pair = match labelled.as_slice() {
        [from, .., to] => Some((*from, *to)),
        [from] if from.number != last.number => Some((*from, last)),
        _ if mine.len() == 2 => Some((mine[0], last)),
        _ => None,
    };
    let Some((from, to)) = pair else {
        return next;
    };
    let name = |dump: &manifest::Dump, other: &str| {
        dump.label
            .as_ref()
            .map_or(other.to_owned(), |l| format!("{:?}", l.name))
    };
    let side = |dump: &manifest::Dump| {
        let named = |dump: &manifest::Dump| dump.label.as_ref().map(|label| label.name.clone());
        // A repeated label selects the last one.
        let later = |other: &&&manifest::Dump| other.number > dump.number;
        let is_last = |name: &String| {
            let mut later = mine.iter().filter(later);
            later.all(|other| named(other).as_ref() != Some(name))
        };
        // A manifest from elsewhere can have labels that are not accepted here; labels with
        // dots are still found.
        let is_taken =
            |name: &String| matches!(check_label(name), Ok(()) | Err(LabelError::Stretch));
        let which = named(dump).filter(|name| is_last(name) && is_taken(name));
        let which = which.unwrap_or_else(|| dump.number.to_string());
        quoted_dump(near(directory), &which)
    };
    next.push((
        format!(
            "growth from {} to {}:",
            name(from, "the first dump"),
            name(to, "the last")
        ),
        format!("heaptap diff {} {}{process}", side(from), side(to)),
    ));
    next
}

fn share(part: i64, total: i64) -> String {
    if total <= 0 {
        return String::new();
    }
    let percent = part as f64 * 100.0 / total as f64;
    if part > 0 && percent < 0.05 {
        return "<0.1%".to_owned();
    }
    format!("{percent:.1}%")
}

/// Returns a function without its parameters and template arguments; the profile has the full name.
fn short(function: &str) -> String {
    let short = scope::shortened(function).nth(scope::WITHOUT_PARAMETERS);
    short.unwrap_or_default().into_owned()
}

#[cfg(test)]
mod tests;
