//! Profiles of tracked Java allocations: parses the lists stored by a recording, applies source
//! names, and sums by callsite. `companion` schedules the fetching of lists.

mod written;

use std::collections::{BTreeSet, HashMap};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;

use self::written::NAMES_CUT;
pub use self::written::Written;
pub(crate) use self::written::{WHAT, is_of_trace};
use super::error::ConvertError;
use super::selection::{Choices, Selection};
use crate::names::r8_mappings::R8Mappings;
use heaptap_base::units::counted;
use heaptap_capture::jdwp::{Allocations, Frame, MAX_LENGTH, MAX_NAME_LENGTH, MethodFrame};
use heaptap_export::allocations::{Place, TrackedFrame, TrackedProfile};
use heaptap_export::gzip::Gzip;
use heaptap_model::profile::DumpNumbers;
use heaptap_model::stacks::TRACKED_HEAP;
use heaptap_results::file_names::is_below;
use heaptap_results::manifest::{self, CompanionFile, JavaAllocations, Manifest, TrackedDump};
use heaptap_results::recorded::Recorded;
use heaptap_results::whole_file::{open_inside, write_named};
use heaptap_symbols::deobfuscate::{MapFile, Retraced, Retracer};

/// Maximum number of entries that a runtime returns: a full list might lack earlier allocations.
const FULL: usize = u16::MAX as usize;
/// Maximum number of lists of a recording.
const LISTED: usize = 1000;
/// Kind of the finding about a missing list.
const UNREAD: &str = "java-allocations-unreadable";
/// A stored list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct List {
    /// Number in the manifest; `None` for the next free one.
    pub(crate) number: Option<u32>,
    pub(crate) file: String,
    pub(crate) pid: u32,
    pub(crate) process: String,
    /// `None` at the end.
    pub(crate) label: Option<String>,
    pub(crate) time_ns: u64,
}

/// Returns the lists among the companion files, in order.
pub(crate) fn lists(files: &[CompanionFile], process_of: impl Fn(u32) -> String) -> Vec<List> {
    let mut lists: Vec<&CompanionFile> = files.iter().filter(|file| file.what == WHAT).collect();
    lists.sort_by_key(|file| (file.number, file.pid));
    let list = |file: &CompanionFile| List {
        number: None,
        file: file.file.clone(),
        pid: file.pid,
        process: process_of(file.pid),
        label: file.label.clone(),
        time_ns: file.time_ns,
    };
    lists.into_iter().map(list).collect()
}

/// Returns the lists in a manifest, which remain unchanged; `None` if nothing was tracked.
pub(crate) fn known(manifest: &Manifest) -> Option<Vec<List>> {
    let tracked = manifest.java_allocations.as_ref()?;
    let list = |dump: &TrackedDump| {
        Some(List {
            number: Some(dump.number),
            file: dump.list.clone()?,
            pid: dump.pid,
            process: dump.process.clone(),
            label: dump.label.clone(),
            time_ns: dump.time_ns,
        })
    };
    let known: Vec<List> = tracked.dumps.iter().filter_map(list).collect();
    (!known.is_empty()).then_some(known)
}

/// The lists of a recording, for rewriting their profiles.
#[derive(Debug)]
pub struct Again {
    directory: PathBuf,
    lists: Vec<List>,
}

impl Again {
    /// Returns the lists of the recording at `input`; `None` if nothing was tracked.
    pub fn new(input: &Path, recorded: &Recorded) -> Option<Again> {
        let directory = match input.is_dir() {
            true => input,
            false => input.parent()?,
        };
        Some(Again {
            directory: directory.to_owned(),
            lists: known(recorded.manifest())?,
        })
    }

    /// Writes the profiles to `output`, with the available names. Blocks. The lists themselves are
    /// not moved.
    ///
    /// # Errors
    /// Returns an error if `output` cannot be written, or if the recording has nothing but lists
    /// and none is selected.
    pub fn write(
        mut self,
        is_all: bool,
        output: &Path,
        selection: &Selection,
        maps: &R8Mappings,
    ) -> Result<Written, ConvertError> {
        let mut choices = Choices::default();
        self.lists.retain(|list| {
            let (pid, process) = (list.pid.into(), &list.process);
            choices.add(pid, process, TRACKED_HEAP, list.time_ns);
            selection.takes_java(pid, process, TRACKED_HEAP, list.time_ns)
        });
        if is_all && self.lists.is_empty() {
            return Err(ConvertError::NoneSelected(choices));
        }
        let written = write(&self.directory, output, self.lists, maps);
        let mut written = written.map_err(|source| ConvertError::Write {
            path: output.to_owned(),
            source,
        })?;
        // Files in a manifest are in its directory.
        for dump in &mut written.section.dumps {
            dump.list = None;
        }
        Ok(written)
    }
}

/// Writes a profile to `output` for each list in `directory`. Blocks.
///
/// # Errors
/// Returns an error if `output` cannot be written.
pub(crate) fn write(
    directory: &Path,
    output: &Path,
    lists: Vec<List>,
    maps: &R8Mappings,
) -> std::io::Result<Written> {
    let mut dumps = Vec::new();
    let mut numbers = DumpNumbers::default();
    let mut warnings = Vec::new();
    let mut names_changed = false;
    let mut read_already: BTreeSet<PathBuf> = BTreeSet::new();
    let mut passed_over: usize = 0;
    for list in lists {
        // A manifest can come from anywhere, and lists can be large: each is read once.
        if read_already.len() >= LISTED || !read_already.insert(PathBuf::from(&list.file)) {
            passed_over += 1;
            continue;
        }
        let warning = |kind: &str, why: String, help: &str| {
            manifest::Warning::new(kind, format!("{}: {why}", list.file))
                .with_help(help)
                .with_pid(u64::from(list.pid))
        };
        let read = match read(directory, &list.file) {
            Ok(read) => read,
            Err(why) => {
                warnings.push(warning(UNREAD, why, "record again"));
                continue;
            }
        };
        let package = list.process.split(':').next().unwrap_or_default();
        let summed = Summed::new(&read, &maps.files_for(package));
        names_changed |= summed.names_changed;
        let short = [
            (read.cut() > 0).then(|| {
                let cut = read.cut();
                let names = counted(cut as u64, "name exceeds", "names exceed");
                format!("{names} {MAX_NAME_LENGTH} characters; truncated")
            }),
            (summed.profile.left_out() > 0).then(|| {
                let left_out = summed.profile.left_out();
                let frames = counted(left_out, "frame exceeds", "frames exceed");
                format!("{frames} the limit of callsites; merged into one")
            }),
        ];
        let short: Vec<String> = short.into_iter().flatten().collect();
        for why in &short {
            let help = "the list file contains everything";
            warnings.push(warning(NAMES_CUT, why.clone(), help));
        }
        let threads: BTreeSet<u16> = read.entries().iter().map(|entry| entry.thread).collect();
        let next = numbers.next(list.pid.into(), TRACKED_HEAP);
        let mut dump = TrackedDump {
            number: list.number.unwrap_or(next),
            label: list.label,
            time_ns: list.time_ns,
            pid: list.pid,
            process: list.process,
            file: None,
            list: Some(list.file),
            objects: read.entries().len() as u64,
            space: summed.space,
            threads: threads.len() as u64,
            full: read.entries().len() >= FULL,
        };
        if !read.entries().is_empty() {
            let name = format!("java_allocations.{}.{}.pb.gz", dump.number, dump.pid);
            let mut comments = comments(&dump);
            comments.extend(short);
            let profile = summed.profile.finish(&comments);
            write_named(&output.join(&name), &Gzip::default().compress(&profile))?;
            dump.file = Some(name);
        }
        dumps.push(dump);
    }
    if passed_over > 0 {
        let message = format!(
            "skipped {passed_over} lists of Java allocations: a recording contains each list once, \
             and {LISTED} at most"
        );
        let help = "check whether the manifest was edited or merged from several";
        warnings.push(manifest::Warning::new(UNREAD, message).with_help(help));
    }
    Ok(Written {
        section: JavaAllocations::tracked(dumps),
        warnings,
        names_changed,
    })
}

/// Reads a stored list; a manifest can come from anywhere, so it only names files of its own
/// directory.
fn read(directory: &Path, file: &str) -> Result<Allocations, String> {
    if !is_below(file) {
        return Err("it is not in the recording directory".to_owned());
    }
    let file = open_inside(directory, file).map_err(|error| error.to_string())?;
    let mut list = Vec::new();
    GzDecoder::new(file)
        .take(MAX_LENGTH as u64)
        .read_to_end(&mut list)
        .map_err(|error| error.to_string())?;
    Allocations::read(&list).map_err(|error| error.to_string())
}

fn comments(dump: &TrackedDump) -> Vec<String> {
    let mut comments = vec![
        format!(
            "heaptap {}: pid {}{}{}, heap {TRACKED_HEAP}",
            env!("CARGO_PKG_VERSION"),
            dump.pid,
            if dump.process.is_empty() { "" } else { ", " },
            dump.process
        ),
        "allocations as tracked by the runtime: exact, not sampled; frees are unknown; the \
         innermost frame is the class, and the label `thread` is the thread ID"
            .to_owned(),
    ];
    comments.push(match dump.full {
        true => format!(
            "the last {} allocations; older ones are missing",
            dump.objects
        ),
        false => "all allocations since tracking began".to_owned(),
    });
    comments
}

/// Limits for naming the frames of a list. Apps never reach them, but a malicious list could name
/// twelve million frames by names of many kilobytes, each of them several source frames.
struct Room {
    /// Distinct frames of the list.
    frames: usize,
    /// Bytes of their names, each counted as often as it is created.
    bytes: usize,
    /// Frames of all stacks together.
    places: usize,
}

impl Room {
    /// Limits for some hundred thousand frames and names, and for the maximum number and depth of
    /// stacks that a runtime stores.
    const WHOLE: Room = Room {
        frames: 1 << 18,
        bytes: 256 << 20,
        places: 1 << 24,
    };

    fn is_for_names(&self) -> bool {
        self.frames > 0 && self.bytes > 0
    }

    fn take_names(&mut self, named: &[TrackedFrame]) {
        self.frames = self.frames.saturating_sub(1);
        for frame in named {
            let bytes = frame.name.len() + frame.system_name.len() + frame.file.len();
            self.bytes = self.bytes.saturating_sub(bytes + size_of::<TrackedFrame>());
        }
    }

    fn take_places(&mut self, places: usize) -> bool {
        let left = self.places.checked_sub(places);
        self.places = left.unwrap_or(self.places);
        left.is_some()
    }
}

/// All allocations of a list, merged by class, thread and callsite; largest first.
struct Summed {
    profile: TrackedProfile,
    space: u64,
    /// True if an R8 mapping contained a class or a frame.
    names_changed: bool,
}

impl Summed {
    fn new(read: &Allocations, files: &[&MapFile]) -> Summed {
        Summed::within(read, files, Room::WHOLE)
    }

    fn within(read: &Allocations, files: &[&MapFile], mut room: Room) -> Summed {
        // By number: names can be long, and there are many frames.
        let mut sums: HashMap<(u16, u16, &[Frame]), (u64, u64)> = HashMap::new();
        let mut classes: HashMap<u16, Option<&str>> = HashMap::new();
        for entry in read.entries() {
            classes.entry(entry.class).or_insert(read.class_of(entry));
            let key = (entry.class, entry.thread, read.frames_of(entry));
            let sum = sums.entry(key).or_default();
            sum.0 += 1;
            sum.1 += u64::from(entry.bytes);
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_unstable_by(|(a, of_a), (b, of_b)| of_b.1.cmp(&of_a.1).then_with(|| a.cmp(b)));
        let retracers: Vec<Retracer<'_>> = files.iter().map(|file| Retracer::new(file)).collect();
        let namer = Namer { retracers };
        let mut profile = TrackedProfile::new();
        // The line of an outline belongs to the key of its caller.
        type Named = (Vec<Place>, Option<u32>);
        let mut at_hand: HashMap<(Frame, Option<u32>), Named> = HashMap::new();
        let mut space: u64 = 0;
        let mut class_places: HashMap<u16, Place> = HashMap::new();
        let mut names_changed = false;
        for ((class, thread, frames), (objects, bytes)) in sums {
            let class = *class_places.entry(class).or_insert_with(|| {
                let descriptor = classes.get(&class).copied().flatten();
                let named = namer.class(descriptor);
                names_changed |= named.is_changed();
                profile.place(&named)
            });
            let mut stack = vec![class];
            let mut outline_line = None;
            for (at, frame) in frames.iter().enumerate() {
                let key = (*frame, outline_line.take());
                if !at_hand.contains_key(&key) && room.is_for_names() {
                    let (named, outline_line) = namer.frames(&read.named(*frame), key.1);
                    room.take_names(&named);
                    names_changed |= named.iter().any(TrackedFrame::is_changed);
                    let places = named.iter().map(|f| profile.place(f)).collect();
                    at_hand.insert(key, (places, outline_line));
                }
                let places = at_hand.get(&key).map(|(places, line)| {
                    outline_line = *line;
                    places
                });
                if !room.take_places(places.map_or(1, Vec::len)) {
                    // One frame represents the rest of the stack.
                    stack.push(profile.left_out_place((frames.len() - at) as u64));
                    break;
                }
                match places {
                    Some(places) => stack.extend(places),
                    None => stack.push(profile.left_out_place(1)),
                }
            }
            profile.add(stack, thread, objects, bytes);
            space = space.saturating_add(bytes);
        }
        Summed {
            profile,
            space,
            names_changed,
        }
    }
}

/// Source names.
struct Namer<'f> {
    retracers: Vec<Retracer<'f>>,
}

impl Namer<'_> {
    fn class(&self, descriptor: Option<&str>) -> TrackedFrame {
        let name = java_type(descriptor);
        let written = self.retracers.iter().map(|map| map.type_name(&name));
        let written = written.into_iter().find(|written| *written != name);
        TrackedFrame {
            system_name: written.as_ref().map_or_else(String::new, |_| name.clone()),
            name: written.unwrap_or(name),
            file: String::new(),
            line: 0,
        }
    }

    /// Returns the source frames of a frame of the app: several if calls were inlined, none for an
    /// outline. The line of an outline is for the frame that called it.
    fn frames(
        &self,
        frame: &MethodFrame<'_>,
        outline_line: Option<u32>,
    ) -> (Vec<TrackedFrame>, Option<u32>) {
        let class = java_type(frame.class);
        let method = frame.method.unwrap_or(UNKNOWN);
        let recorded = format!("{class}.{method}");
        for map in &self.retracers {
            let answered = map.frame(&class, method, frame.line, outline_line);
            let file = |of: &str| map.source_file(of, frame.file);
            match answered.retraced {
                Retraced::Unknown => {}
                Retraced::Class(original) => {
                    let named = TrackedFrame {
                        name: format!("{original}.{method}"),
                        file: file(original),
                        system_name: recorded,
                        line: 0,
                    };
                    return (vec![named], None);
                }
                Retraced::Frames(chains) => {
                    // Several chains are guesses about one call: use the first in sort order.
                    let chain = chains.into_iter().next().unwrap_or_default();
                    let named = chain.into_iter().map(|of| TrackedFrame {
                        name: format!("{}.{}", of.method.class, of.method.name),
                        system_name: recorded.clone(),
                        file: file(of.method.class),
                        line: of.line.unwrap_or(0),
                    });
                    return (named.collect(), answered.outline_line);
                }
            }
        }
        let named = TrackedFrame {
            name: recorded,
            system_name: String::new(),
            file: frame.file.unwrap_or_default().to_owned(),
            line: frame.line.unwrap_or(0),
        };
        (vec![named], None)
    }
}

/// Replacement for a name that is missing from the list.
const UNKNOWN: &str = "(unknown)";
/// Deeper arrays are written unchanged.
const DIMENSIONS: usize = 255;

/// Converts a descriptor to the Java type: `[Ljava/lang/String;` is `java.lang.String[]`.
fn java_type(descriptor: Option<&str>) -> String {
    let Some(descriptor) = descriptor else {
        return UNKNOWN.to_owned();
    };
    let element = descriptor.trim_start_matches('[');
    let depth = descriptor.len().saturating_sub(element.len());
    let name = match element {
        "B" => "byte".to_owned(),
        "C" => "char".to_owned(),
        "D" => "double".to_owned(),
        "F" => "float".to_owned(),
        "I" => "int".to_owned(),
        "J" => "long".to_owned(),
        "S" => "short".to_owned(),
        "Z" => "boolean".to_owned(),
        element => match element.strip_prefix('L').and_then(|e| e.strip_suffix(';')) {
            Some(class) => class.replace('/', "."),
            None => return descriptor.to_owned(),
        },
    };
    match depth {
        0 => name,
        1..=DIMENSIONS => name + &"[]".repeat(depth),
        _ => descriptor.to_owned(),
    }
}

#[cfg(test)]
mod tests;
