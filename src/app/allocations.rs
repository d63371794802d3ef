//! Java allocations that the runtime itself tracked (`record --java-allocations`): whether a phone
//! has processes that can be asked, the connection to one, and the profiles of the lists that were
//! fetched. When they are fetched is `beside`'s.

use std::collections::{BTreeSet, HashMap};
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use flate2::read::GzDecoder;

use super::convert::write_whole;
use super::manifest::{self, BesideFile, JavaAllocations, TrackedDump};
use super::maps::Maps;
use super::names::NameOptions;
use crate::deobfuscate::{MapFile, Retraced, Retracer};
use crate::device::{DebugStream, Device, DeviceError};
use crate::eligibility::Assessment;
use crate::error::{Classified, ErrorClass};
use crate::export::allocations::{TrackedFrame, TrackedSample, encode};
use crate::export::gzip::Gzip;
use crate::jdwp::{Allocations, Connection, JdwpError, LONGEST, MethodFrame};

/// What lists are called in the folder and the timeline.
pub(super) const WHAT: &str = "java-allocations";
/// What their heap is called in profiles.
const HEAP: &str = "java-allocations";
/// How long a runtime may take to answer. One that another debugger holds never does.
pub(super) const ATTACH: Duration = Duration::from_secs(15);
/// Why nothing is fetched of a target that exited by itself.
pub(super) const GONE: &str = "no target was running";
/// A runtime gives away no more: where so many came, there may have been others before.
const FULL: usize = u16::MAX as usize;

/// Why allocations cannot be tracked.
#[derive(Debug, thiserror::Error)]
pub enum TrackingError {
    /// The phone was lost, or silent.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// No process takes a debugger.
    #[error(
        "cannot track the Java allocations of {targets}: it takes no debugger, and only a debugger \
         may ask a runtime for them"
    )]
    NotDebuggable {
        /// The targets.
        targets: String,
    },
    /// A runtime does not answer.
    #[error("cannot track the Java allocations of {process}: {why}")]
    Unheard {
        /// The process.
        process: String,
        /// Why.
        why: AttachError,
    },
    /// Nobody would hold the connection.
    #[error("Java allocations cannot be tracked by a recording that is left to itself")]
    Detached,
}

/// Why there is no connection to a runtime.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The phone has none for us.
    #[error("{0}")]
    Device(#[from] DeviceError),
    /// It said something else.
    #[error("{0}")]
    Jdwp(#[from] JdwpError),
    /// The phone does not list it.
    #[error("it takes no debugger")]
    NotDebuggable,
    /// It says nothing.
    #[error("its runtime does not answer within {} s", ATTACH.as_secs())]
    Silent,
}

impl AttachError {
    /// Whether the connection to the phone may be what failed.
    pub(super) fn is_connection(&self) -> bool {
        match self {
            AttachError::Device(error) => error.is_connection(),
            AttachError::Jdwp(JdwpError::Closed | JdwpError::Io(_)) => true,
            AttachError::Jdwp(_) | AttachError::NotDebuggable | AttachError::Silent => false,
        }
    }
}

impl Classified for TrackingError {
    fn class(&self) -> ErrorClass {
        match self {
            TrackingError::Device(error) => error.class(),
            TrackingError::NotDebuggable { .. } => ErrorClass::NotEligible,
            TrackingError::Unheard { .. } => ErrorClass::Device,
            TrackingError::Detached => ErrorClass::Usage,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            TrackingError::Device(error) => error.kind(),
            TrackingError::NotDebuggable { .. } => "not-debuggable",
            TrackingError::Unheard { .. } => "debugger-in-the-way",
            TrackingError::Detached => "tracking-detached",
        }
    }

    fn help(&self) -> Option<String> {
        Some(match self {
            TrackingError::Device(error) => return error.help(),
            TrackingError::NotDebuggable { .. } => {
                "use a debug build of the app (android:debuggable) or a userdebug phone; from \
                 Android 12 on --java-allocations=heap does without, and `heaptap dump` shows what \
                 the Java heap holds"
                    .to_owned()
            }
            TrackingError::Unheard { .. } => {
                "a process has one debugger at a time: close Android Studio (or its debugger and \
                 profiler, or whatever else is connected by JDWP) and try again; bring the app to \
                 the front if it was in the back for long: a frozen one does not answer"
                    .to_owned()
            }
            TrackingError::Detached => {
                "record without --detach; or by --java-allocations=heap (Android 12)".to_owned()
            }
        })
    }
}

/// Connects to a runtime.
pub(super) async fn attach(
    device: &Device,
    pid: u32,
) -> Result<Connection<DebugStream>, AttachError> {
    let connecting = async {
        let stream = device.debugger(pid, ATTACH).await?;
        Ok(Connection::open(stream).await?)
    };
    let connected = tokio::time::timeout(ATTACH, connecting).await;
    connected.unwrap_or(Err(AttachError::Silent))
}

/// Whether the allocations of at least one process that runs can be tracked, tried out: before
/// anything is recorded. Where nothing runs yet, that is left to the time when it does.
///
/// # Errors
/// Where none takes a debugger, or none of those that do answers.
pub(super) async fn check(device: &Device, assessment: &Assessment) -> Result<(), TrackingError> {
    let running: Vec<(u32, &str)> = assessment
        .targets
        .iter()
        .flat_map(|target| &target.processes)
        .map(|found| (found.process.pid, found.process.name.as_str()))
        .collect();
    if running.is_empty() {
        return Ok(());
    }
    let mut list = device.debuggable(ATTACH).await?;
    let debuggable = tokio::time::timeout(ATTACH, list.next());
    let debuggable = debuggable.await.unwrap_or_else(|_| {
        Err(DeviceError::Deadline {
            serial: device.serial().to_owned(),
            what: "the list of debuggable processes".to_owned(),
            after: ATTACH,
        })
    })?;
    let mut unheard = None;
    for (pid, name) in &running {
        if !debuggable.contains(pid) {
            continue;
        }
        match attach(device, *pid).await {
            Ok(_) => return Ok(()),
            Err(why) => {
                unheard.get_or_insert(TrackingError::Unheard {
                    process: format!("{name} ({pid})"),
                    why,
                });
            }
        }
    }
    Err(unheard.unwrap_or_else(|| {
        let names: BTreeSet<&str> = running.iter().map(|(_, name)| *name).collect();
        let names: Vec<&str> = names.into_iter().collect();
        TrackingError::NotDebuggable {
            targets: names.join(", "),
        }
    }))
}

/// What the lists of a recording became.
pub(super) struct Written {
    pub(super) section: JavaAllocations,
    pub(super) warnings: Vec<manifest::Warning>,
}

impl Written {
    /// Whether any profile was written.
    pub(super) fn any(&self) -> bool {
        self.section.dumps.iter().any(|dump| dump.file.is_some())
    }

    /// Says so where nobody fetched what belongs to the end: who held the connections was killed,
    /// or did not wait.
    pub(super) fn note_end(&mut self, beside: &manifest::Beside) {
        let lists = self.section.dumps.iter();
        let fetched = lists.clone().any(|dump| dump.label.is_none());
        let mut missed = beside.missed.iter();
        if fetched || missed.any(|missed| missed.what == WHAT && missed.label.is_none()) {
            return;
        }
        self.warnings.push(manifest::Warning {
            kind: "java-allocations-end".to_owned(),
            message: "the allocations before the end were not fetched: heaptap did not follow the \
                      recording to its end; the runtime may track on until the app ends"
                .to_owned(),
            help: Some(
                "record again; the next recording switches tracking off at its end".to_owned(),
            ),
            pid: None,
            dumps: Vec::new(),
        });
    }

    /// What the exit code tells: of a recording without any profile that it is empty, of one whose
    /// last list is missing that it is incomplete; `other` is what the trace asks for.
    pub(super) fn class(
        &self,
        other: Option<ErrorClass>,
        beside: Option<&manifest::Beside>,
    ) -> Option<ErrorClass> {
        if !self.any() {
            let other = other.filter(|class| *class != ErrorClass::Empty);
            return ErrorClass::first_of(other.into_iter().chain([ErrorClass::Empty]));
        }
        let missed = beside.is_some_and(|beside| {
            let missed = beside.missed.iter();
            missed
                .clone()
                .any(|missed| missed.what == WHAT && missed.why != GONE)
        });
        let missing = (missed || !self.warnings.is_empty()).then_some(ErrorClass::Incomplete);
        // A trace without samples is what was asked for.
        let other = other.filter(|class| *class != ErrorClass::Empty);
        ErrorClass::first_of(other.into_iter().chain(missing))
    }
}

/// Writes a profile for each list in `folder`.
///
/// # Errors
/// Where the folder cannot be written.
pub(super) fn write(
    folder: &Path,
    files: &[BesideFile],
    process_of: impl Fn(u32) -> String,
    names: &NameOptions,
) -> std::io::Result<Written> {
    let maps = Maps::open_what_opens(names);
    let mut dumps = Vec::new();
    let mut warnings = Vec::new();
    let mut lists: Vec<&BesideFile> = files.iter().filter(|file| file.what == WHAT).collect();
    lists.sort_by_key(|file| (file.number, file.pid));
    for list in lists {
        let read = read(&folder.join(&list.file));
        let read = match read {
            Ok(read) => read,
            Err(why) => {
                warnings.push(manifest::Warning {
                    kind: "java-allocations-unread".to_owned(),
                    message: format!("{}: {why}", list.file),
                    help: Some("record again".to_owned()),
                    pid: Some(list.pid.into()),
                    dumps: Vec::new(),
                });
                continue;
            }
        };
        let process = process_of(list.pid);
        let package = process.split(':').next().unwrap_or_default();
        let files = maps.files_for(package);
        let samples = samples(&read, &files);
        let threads: BTreeSet<u16> = read.entries().iter().map(|entry| entry.thread).collect();
        let mut dump = TrackedDump {
            index: u32::try_from(dumps.len()).unwrap_or(u32::MAX),
            label: list.label.clone(),
            time_ns: list.time_ns,
            pid: list.pid,
            process,
            file: None,
            list: list.file.clone(),
            objects: read.entries().len() as u64,
            space: samples.iter().map(|sample| sample.bytes).sum(),
            threads: threads.len() as u64,
            full: read.entries().len() >= FULL,
        };
        if !samples.is_empty() {
            let name = format!("java_allocations.{}.{}.pb.gz", dump.index, dump.pid);
            let profile = encode(&samples, None, &comments(&dump));
            write_whole(&folder.join(&name), &Gzip::default().compress(&profile))?;
            dump.file = Some(name);
        }
        dumps.push(dump);
    }
    Ok(Written {
        section: JavaAllocations::tracked(dumps),
        warnings,
    })
}

/// A list as it was kept.
fn read(path: &Path) -> Result<Allocations, String> {
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let mut list = Vec::new();
    GzDecoder::new(file)
        .take(LONGEST as u64)
        .read_to_end(&mut list)
        .map_err(|error| error.to_string())?;
    Allocations::read(&list).map_err(|error| error.to_string())
}

fn comments(dump: &TrackedDump) -> Vec<String> {
    let mut comments = vec![
        format!(
            "heaptap {}: pid {}, {}, heap {HEAP}",
            env!("CARGO_PKG_VERSION"),
            dump.pid,
            dump.process
        ),
        "allocations as the runtime tracked them: exact, none sampled; what was freed is not \
         known; the innermost frame is the class, the label `thread` the thread's id"
            .to_owned(),
    ];
    comments.push(match dump.full {
        true => format!(
            "the last {} allocations: older ones are missing",
            dump.objects
        ),
        false => "all allocations since tracking was switched on".to_owned(),
    });
    comments
}

/// A class, the thread that allocated it, and where.
type Place<'a> = (Option<&'a str>, u16, Vec<MethodFrame<'a>>);

/// Allocations of one class by one thread in one place, together; the largest first.
fn samples(read: &Allocations, files: &[&MapFile]) -> Vec<TrackedSample> {
    let mut sums: HashMap<Place<'_>, (u64, u64)> = HashMap::new();
    for entry in read.entries() {
        let key = (
            read.class_of(entry),
            entry.thread,
            read.stack_of(entry).collect(),
        );
        let sum = sums.entry(key).or_default();
        sum.0 += 1;
        sum.1 += u64::from(entry.bytes);
    }
    let retracers: Vec<Retracer<'_>> = files.iter().map(|file| Retracer::new(file)).collect();
    let namer = Namer { retracers };
    let mut samples: Vec<TrackedSample> = sums
        .into_iter()
        .map(|((class, thread, stack), (objects, bytes))| TrackedSample {
            class: namer.class(class),
            frames: stack.iter().flat_map(|frame| namer.frames(frame)).collect(),
            thread,
            objects,
            bytes,
        })
        .collect();
    samples.sort_by(|a, b| {
        let key = |of: &TrackedSample| (std::cmp::Reverse(of.bytes), of.thread);
        let names = |of: &TrackedSample| -> Vec<(String, u32)> {
            let frames = std::iter::once(&of.class).chain(&of.frames);
            frames
                .map(|frame| (frame.name.clone(), frame.line))
                .collect()
        };
        key(a).cmp(&key(b)).then_with(|| names(a).cmp(&names(b)))
    });
    samples
}

/// Names as the source has them.
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

    /// What a frame of the app is in the source: several where calls were inlined.
    fn frames(&self, frame: &MethodFrame<'_>) -> Vec<TrackedFrame> {
        let class = java_type(frame.class);
        let method = frame.method.unwrap_or(UNKNOWN);
        let recorded = format!("{class}.{method}");
        for map in &self.retracers {
            let answered = map.frame(&class, method, frame.line);
            let file = |of: &str| map.source_file(of, frame.file);
            match answered {
                Retraced::Unknown => {}
                Retraced::Class(original) => {
                    return vec![TrackedFrame {
                        name: format!("{original}.{method}"),
                        file: file(original),
                        system_name: recorded,
                        line: 0,
                    }];
                }
                Retraced::Frames(chains) => {
                    // Several are guesses at one call: the first of them, as they are sorted.
                    let chain = chains.into_iter().next().unwrap_or_default();
                    return chain
                        .into_iter()
                        .map(|of| TrackedFrame {
                            name: format!("{}.{}", of.method.class, of.method.name),
                            system_name: recorded.clone(),
                            file: file(of.method.class),
                            line: of.line.unwrap_or(0),
                        })
                        .collect();
                }
            }
        }
        vec![TrackedFrame {
            name: recorded,
            system_name: String::new(),
            file: frame.file.unwrap_or_default().to_owned(),
            line: frame.line.unwrap_or(0),
        }]
    }
}

/// What stands for a name that the list does not have.
const UNKNOWN: &str = "(unknown)";
/// Deeper arrays are written as they came.
const DIMENSIONS: usize = 255;

/// A descriptor as the source writes the type: `[Ljava/lang/String;` is `java.lang.String[]`.
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
mod tests {
    use super::*;

    #[test]
    fn an_end_that_nobody_fetched_is_told_once() {
        let written = || Written {
            section: JavaAllocations::tracked(Vec::new()),
            warnings: Vec::new(),
        };
        let mut alone = written();
        alone.note_end(&manifest::Beside::default());
        assert_eq!(alone.warnings[0].kind, "java-allocations-end");
        let mut told = written();
        let missed = manifest::BesideMissed {
            what: WHAT.to_owned(),
            label: None,
            number: 1,
            why: GONE.to_owned(),
        };
        told.note_end(&manifest::Beside {
            missed: vec![missed],
            ..manifest::Beside::default()
        });
        assert!(told.warnings.is_empty());
    }

    #[test]
    fn descriptors_are_types_of_the_source() {
        for (descriptor, name) in [
            (Some("Ljava/lang/String;"), "java.lang.String"),
            (Some("[B"), "byte[]"),
            (Some("[[Lcom/example/Feed$1;"), "com.example.Feed$1[][]"),
            (Some("null"), "null"),
            (Some("L;;"), ";"),
            (None, "(unknown)"),
        ] {
            assert_eq!(java_type(descriptor), name);
        }
        let deep = "[".repeat(100_000) + "I";
        assert_eq!(java_type(Some(&deep)), deep);
    }

    #[test]
    fn a_debugger_in_the_way_is_told_with_its_remedy() {
        let error = TrackingError::Unheard {
            process: "com.example.app (42)".to_owned(),
            why: AttachError::Silent,
        };
        assert_eq!(error.class(), ErrorClass::Device);
        assert!(error.to_string().contains("does not answer"), "{error}");
        assert!(error.help().unwrap().contains("Android Studio"));
    }

    #[test]
    fn a_mapping_file_gives_names_lines_and_inlined_calls() {
        let text = "com.example.Feed -> a.a:\n\
                    # {\"id\":\"sourceFile\",\"fileName\":\"Feed.kt\"}\n    \
                    1:3:void helper():7:9 -> a\n    \
                    1:3:void bind(int):21:21 -> a\n\
                    com.example.Row -> a.b:\n";
        let bytes = text.as_bytes().to_vec();
        let file = MapFile::from_bytes(bytes.into(), Path::new("mapping.txt")).unwrap();
        let namer = Namer {
            retracers: vec![Retracer::new(&file)],
        };
        assert_eq!(namer.class(Some("[La/b;")).name, "com.example.Row[]");
        let frame = MethodFrame {
            class: Some("La/a;"),
            method: Some("a"),
            file: Some("SourceFile"),
            line: Some(2),
            native: false,
        };
        let frames = namer.frames(&frame);
        let told: Vec<(&str, &str, u32)> = frames
            .iter()
            .map(|f| (f.name.as_str(), f.file.as_str(), f.line))
            .collect();
        assert_eq!(
            told,
            [
                ("com.example.Feed.helper", "Feed.kt", 8),
                ("com.example.Feed.bind", "Feed.kt", 21)
            ]
        );
        assert_eq!(frames[0].system_name, "a.a.a");
        let other = MethodFrame {
            class: Some("Ljava/lang/Long;"),
            method: Some("valueOf"),
            file: Some("Long.java"),
            line: Some(12),
            native: false,
        };
        let frames = namer.frames(&other);
        assert_eq!(frames[0].name, "java.lang.Long.valueOf");
        assert_eq!((frames[0].file.as_str(), frames[0].line), ("Long.java", 12));
    }
}
