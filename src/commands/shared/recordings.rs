//! A command that reads recordings and got only a process: the recordings of that process below the
//! current directory, as commands to paste.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

use crate::console::flags::target::TargetArgs;
use crate::heaps::selector::ProcessFilter;
use heaptap_base::error::Failure;
use heaptap_base::units::counted;
use heaptap_base::untrusted::shell::quoted_path;
use heaptap_results::manifest::{self, Manifest};

/// Maximum depth of directories, and number of directories, that are searched.
const MAX_DEPTH: usize = 4;
const MAX_DIRECTORIES: usize = 2_000;
/// Maximum number of recordings that are listed.
const MAX_LISTED: usize = 5;

/// Returns the failure of a command without an input. It lists the recordings of the named
/// processes, newest first. `java`: the command reads only Java heaps.
pub(crate) fn input_missing(command: &str, target: &TargetArgs, java: bool) -> Failure {
    let filter = target.filter();
    let options = filter.options().join(" ");
    let found = newest_first(Path::new("."), &filter, java);
    if found.is_empty() {
        let kind = if java { " with a Java heap" } else { "" };
        let message = format!(
            "missing INPUT, and no recording{kind} of {filter} is below the current directory"
        );
        let help = match java {
            true => format!("make one: heaptap dump {options}"),
            false => format!("make one: heaptap record {options}"),
        };
        return Failure::usage(message).with_help(help);
    }
    let many = counted(found.len() as u64, "recording is", "recordings are");
    let message = format!("missing INPUT; {many} below the current directory, newest first:");
    let command =
        |directory: &PathBuf| format!("heaptap {command} {} {options}", quoted_path(directory));
    let commands: Vec<String> = found.iter().take(MAX_LISTED).map(command).collect();
    let newest = commands[0].clone();
    let failure = Failure::usage(message).with_help(format!("for the newest: {newest}"));
    failure.with_excerpt(commands)
}

fn newest_first(root: &Path, filter: &ProcessFilter, java: bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![(root.to_owned(), 0)];
    let mut searched = 0;
    while let Some((directory, depth)) = left.pop() {
        searched += 1;
        if searched > MAX_DIRECTORIES {
            break;
        }
        let is_recording = directory.join(manifest::FILE_NAME).is_file();
        if is_recording && let Ok(manifest) = Manifest::read(&directory) {
            let at = manifest.steps.iter().map(|step| step.at).max();
            if has_process(&manifest, filter, java) {
                let name = directory.strip_prefix(root).unwrap_or(&directory);
                let name = if name == Path::new("") { root } else { name };
                found.push((Reverse(at), name.to_owned()));
            }
        }
        // The Java heaps of a recording are in a directory of it.
        if depth == MAX_DEPTH || is_recording && !java {
            continue;
        }
        let entries = std::fs::read_dir(&directory)
            .into_iter()
            .flatten()
            .flatten();
        // Links could lead in circles.
        let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let visible =
            directories.filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'));
        left.extend(visible.map(|entry| (entry.path(), depth + 1)));
    }
    found.sort();
    found.into_iter().map(|(_, directory)| directory).collect()
}

fn has_process(manifest: &Manifest, filter: &ProcessFilter, java: bool) -> bool {
    let dumps = &manifest.dumps;
    let native = dumps
        .native
        .iter()
        .map(|dump| (dump.pid, dump.process.as_str()));
    let of_java = dumps
        .java
        .iter()
        .map(|dump| (dump.pid, dump.process.as_str()));
    let mut all = native.filter(|_| !java).chain(of_java);
    all.any(|(pid, process)| filter.takes(Some(pid), process))
}
