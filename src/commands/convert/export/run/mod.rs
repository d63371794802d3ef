//! `convert --format`: an input as files for other tools. Selects dumps and columns, names the
//! files, and gives each its name only once it is complete. `export` defines the formats. `convert`
//! writes gzipped pprofs, and `report` writes pages.

mod error;
mod gather;
mod goal;
mod hprof;
mod request;
#[cfg_attr(not(feature = "parquet"), path = "no_tables.rs")]
mod tables;

pub use error::tables_to_file;
pub use gather::names;
pub use goal::OutputDestination;
pub use request::{ExportRequest, Exported, File, Format};

use crate::heaps::java::ProgressReporter;
use gather::Gathered;
use goal::Sink;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::untrusted::sanitize;
use heaptap_export::chosen::{Chosen, ChosenDump};
use heaptap_export::{csv, folded, json, speedscope, svg};
use heaptap_model::profile::MALLOC_HEAP;
use heaptap_model::stacks::{Measure, StackProfile};
use heaptap_results::findings::Finding;
use std::io::Write;
use std::path::Path;

/// Reads the input and writes the selected data. Blocks. Writes to `stdout` only if the destination
/// is standard output.
///
/// # Errors
/// Returns an error if the input cannot be read or does not contain the selection, or if a file
/// cannot be written.
pub fn export(
    request: &ExportRequest,
    goal: &OutputDestination,
    stdout: &mut (dyn Write + Send),
    progress: &ProgressReporter,
) -> Result<Exported, Failure> {
    if request.format == Format::Hprof {
        return hprof::export(request, goal, stdout, progress);
    }
    let mut tables = match (request.format, goal) {
        (Format::Parquet, OutputDestination::Directory(directory)) => {
            tables::Directory::new(directory, &request.look.control)
        }
        _ => None,
    };
    let mut gathered = gather::gather(request, tables.as_mut(), progress)?;
    progress.begin("writing");
    let profile = std::mem::take(&mut gathered.profile);
    let chosen = choose_columns(&profile, &request.views)?;
    let mut exported = Exported {
        files: Vec::new(),
        dumps: chosen.dumps.len(),
        class: gathered.class,
        findings: std::mem::take(&mut gathered.findings),
    };
    let mut sink = Sink::new(goal, stdout, &request.look.control);
    match (request.format, tables) {
        (Format::Parquet, Some(mut tables)) => {
            tables.write(&chosen, gathered.java)?;
            exported.files = tables.into_files();
        }
        (Format::Parquet, None) => return Err(tables_to_file()),
        (format, _) if format.has_many_files() => {
            let one = match goal {
                OutputDestination::Directory(_) => None,
                OutputDestination::File(..)
                | OutputDestination::Named(_)
                | OutputDestination::Stdout => Some(one_dump(&chosen, &gathered)?),
            };
            write_each(request, &chosen, one, &mut sink, &mut exported)?;
        }
        (format, _) => {
            let name = format!("{}.{}", request.name, format.ending());
            let mut negative = 0;
            let (path, bytes) = sink.write(&name, |out| {
                match format {
                    Format::Csv => csv::write(out, &chosen)?,
                    Format::Json => json::write(out, &chosen)?,
                    _ => negative = speedscope::write(out, &chosen, &request.name)?,
                }
                Ok(())
            })?;
            exported.findings.extend(left_out(negative, format));
            exported.files.push(File {
                path,
                dump: None,
                view: None,
                bytes,
            });
        }
    }
    Ok(exported)
}

/// Writes a file for each dump and column, or only the file of dump `one`.
fn write_each(
    request: &ExportRequest,
    chosen: &Chosen<'_>,
    one: Option<usize>,
    sink: &mut Sink<'_>,
    exported: &mut Exported,
) -> Result<(), Failure> {
    let dumps = chosen.dumps.iter().enumerate();
    for (_, dump) in dumps.filter(|(at, _)| one.is_none_or(|one| one == *at)) {
        let default = |at: &&usize| **at == dump.dump.default_measure;
        let columns: Vec<usize> = match one {
            None => dump.columns.clone(),
            // The default column if all are selected, otherwise the only selected one.
            Some(_) => match (&dump.columns[..], dump.columns.iter().find(default)) {
                (_, Some(&default)) if request.views.is_empty() => vec![default],
                (&[only], _) => vec![only],
                (_, _) => {
                    let message = "a file of this format holds one view, but several are selected";
                    return Err(Failure::new(ErrorClass::Usage, "several-views", message)
                        .with_help("select one with `--view`, or name a directory with `-o`"));
                }
            },
        };
        for column in columns {
            let measure = &dump.dump.measures[column];
            let name = file_name(dump, measure, request.format);
            let (path, bytes) = sink.write(&name, |out| match request.format {
                Format::Svg => svg::write(out, chosen.table, dump, column, &request.name),
                _ => folded::write(out, chosen.table, dump, column),
            })?;
            let values = &dump.dump.values.columns[column];
            let negative = values.iter().filter(|value| **value < 0).count() as u64;
            if request.format == Format::Svg {
                exported.findings.extend(left_out(negative, Format::Svg));
            }
            exported.files.push(File {
                path,
                dump: Some(dump.dump.facts.number),
                view: Some(measure.name.clone()),
                bytes,
            });
        }
    }
    exported.findings.extend(one.and_then(|one| {
        let view = exported.files.first().and_then(|file| file.view.as_deref());
        others_left_out(chosen, one, view.unwrap_or_default())
    }));
    exported.dumps = one.map_or(exported.dumps, |_| 1);
    Ok(())
}

/// Returns a finding that names the written dump if several were possible.
fn others_left_out(chosen: &Chosen<'_>, one: usize, view: &str) -> Option<Finding> {
    let (dump, count) = (&chosen.dumps[one], chosen.dumps.len());
    (count > 1).then(|| {
        let message = format!(
            "wrote 1 of {count} dumps: {}, {view}",
            sanitize(&dump.title())
        );
        Finding::new("one-dump-written", None, message)
            .with_help("select another with `--at`, or name a directory with `-o` for all")
            .with_pid(Some(dump.dump.facts.pid).filter(|&pid| pid != 0))
    })
}

/// Returns a finding if a format left out negative numbers.
fn left_out(negative: u64, format: Format) -> Option<Finding> {
    (negative > 0).then(|| {
        let message = format!(
            "left out {negative} negative values, which {} cannot show",
            match format {
                Format::Svg => "a flamegraph",
                _ => "speedscope",
            }
        );
        Finding::new("negative-left-out", None, message)
            .with_help("use `--format json`, `csv`, `parquet` or `folded`")
    })
}

/// Returns the dumps with the selected columns. Leaves out dumps without any of them.
fn choose_columns<'a>(profile: &'a StackProfile, views: &[String]) -> Result<Chosen<'a>, Failure> {
    let mut chosen = Chosen::all(profile);
    if views.is_empty() {
        return Ok(chosen);
    }
    let is_wanted = |measure: &Measure| views.contains(&measure.name);
    let measures = chosen.measures();
    let unknown = views
        .iter()
        .find(|view| !measures.iter().any(|m| m.name == **view));
    if let Some(view) = unknown {
        let mut there: Vec<String> = measures.iter().map(|m| m.name.clone()).collect();
        there.dedup();
        let message = format!("no dump has the view {view}");
        return Err(Failure::new(ErrorClass::Usage, "no-such-view", message)
            .with_help(format!("choose from: {}", there.join(", "))));
    }
    for dump in &mut chosen.dumps {
        let measures = &dump.dump.measures;
        dump.columns.retain(|&at| is_wanted(&measures[at]));
    }
    chosen.dumps.retain(|dump| !dump.columns.is_empty());
    Ok(chosen)
}

/// Returns the dump to write to a single file: the default one, preferring the malloc heap.
fn one_dump(chosen: &Chosen<'_>, gathered: &Gathered) -> Result<usize, Failure> {
    let facts = |at: usize| &chosen.dumps[at].dump.facts;
    let mut left: Vec<usize> = (0..chosen.dumps.len()).collect();
    let differ = |two: &[usize]| facts(two[0]).pid != facts(two[1]).pid;
    if gathered.was_named && left.len() > 1 || left.windows(2).any(differ) {
        let titles = left.iter().map(|&at| chosen.dumps[at].title());
        return Err(error::several_dumps(&titles.collect::<Vec<_>>().join(", ")));
    }
    if left.iter().any(|&at| facts(at).heap == MALLOC_HEAP) {
        left.retain(|&at| facts(at).heap == MALLOC_HEAP);
    }
    let last = left
        .into_iter()
        .max_by_key(|&at| (facts(at).is_default, facts(at).number));
    Ok(last.expect("an empty selection was refused"))
}

/// Returns a name such as `heap_dump.2.2050.libc.malloc.space.folded` or
/// `java_heap_dump.3.2050.space.svg`.
fn file_name(dump: &ChosenDump<'_>, measure: &Measure, format: Format) -> String {
    let facts = &dump.dump.facts;
    let mut name = match facts.heap.as_str() {
        heaptap_results::manifest::JAVA_HEAP => "java_heap_dump".to_owned(),
        _ => "heap_dump".to_owned(),
    };
    name += &format!(".{}", facts.number);
    if facts.pid != 0 {
        name += &format!(".{}", facts.pid);
    }
    if !facts.heap.is_empty() && facts.heap != heaptap_results::manifest::JAVA_HEAP {
        name += &format!(".{}", heaptap_results::file_names::file_name(&facts.heap));
    }
    name += &format!(".{}", heaptap_results::file_names::file_name(&measure.name));
    format!("{name}.{}", format.ending())
}

/// Endings of input files. Package and heap names contain dots, too.
const ENDINGS: [&str; 6] = [
    ".gz",
    ".zst",
    ".pftrace",
    ".perfetto-trace",
    ".hprof",
    ".pb",
];

/// Returns the name of an input without its directory and endings, as part of a file name. For a
/// directory, returns its name.
pub fn stem(path: &Path) -> String {
    let absolute = std::path::absolute(path);
    let path = absolute.as_deref().unwrap_or(path);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if path.is_dir() {
        return heaptap_results::file_names::file_name(&name);
    }
    let ending = |name: &str| {
        let lower = name.to_ascii_lowercase();
        let ending = ENDINGS.iter().find(|ending| lower.ends_with(**ending));
        ending.map(|ending| ending.len())
    };
    let mut stem = &*name;
    while let Some(length) = ending(stem) {
        stem = &stem[..stem.len() - length];
    }
    match stem.trim_matches('.') {
        "" => "trace".to_owned(),
        _ => heaptap_results::file_names::file_name(stem),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_keeps_all_of_its_name_but_the_endings() {
        for (path, name) in [
            ("x/com.example.app.hprof", "com.example.app"),
            ("com.example.other.HPROF.gz", "com.example.other"),
            (
                "heap_dump.0.7890.libc.malloc.pb.gz",
                "heap_dump.0.7890.libc.malloc",
            ),
            ("mine.pftrace.zst", "mine"),
            ("mine.perfetto-trace", "mine"),
            ("raw-trace", "raw-trace"),
            (".pftrace", "trace"),
            ("..gz", "trace"),
            ("con.hprof", "_con"),
            ("a?b.pftrace", "a_b"),
            ("größe.pb", "größe"),
        ] {
            assert_eq!(stem(Path::new(path)), name, "{path}");
        }
        let directory = tempfile::tempdir().expect("a folder");
        let directory = directory.path().join("com.example.gz");
        std::fs::create_dir(&directory).expect("made");
        assert_eq!(stem(&directory), "com.example.gz");
    }

    #[test]
    fn it_is_told_which_of_several_dumps_is_written() {
        let dump = |number| heaptap_model::stacks::Dump {
            facts: heaptap_model::stacks::Facts {
                number,
                heap: "libc.malloc".to_owned(),
                ..Default::default()
            },
            ..Default::default()
        };
        let mut profile = StackProfile::default();
        profile.dumps.push(dump(1));
        assert_eq!(
            others_left_out(&Chosen::all(&profile), 0, "space"),
            None,
            "it is the only one"
        );
        profile.dumps.extend([dump(2), dump(3)]);
        let told = others_left_out(&Chosen::all(&profile), 2, "space");
        assert_eq!(
            told.expect("there are others").message,
            "wrote 1 of 3 dumps: libc.malloc @3, space"
        );
    }
}
