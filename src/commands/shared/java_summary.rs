//! Terminal summary of a Java heap after its dump: its size, and the classes that retain most.

use std::path::Path;

use super::java::WITH_NATIVE;
use super::paths::near;
use crate::console::table::Table;
use crate::console::{Console, Style};
use crate::recording::conversion::java_summary::JavaSummary;
use heaptap_base::directory::RAW_TRACE;
use heaptap_base::units::{ByteSize, counted, thousands};
use heaptap_base::untrusted::shell::{quoted_dump, quoted_path};
use heaptap_results::manifest::{JavaDump, Manifest};

/// Number of heaps shown with a table; others show only their sizes.
const FULL: usize = 4;

/// Shows the heaps on stdout.
pub(super) fn show(console: &Console, heaps: &[JavaSummary]) {
    if console.is_json() || console.is_quiet() {
        return;
    }
    for (at, heap) in heaps.iter().enumerate() {
        console.data(title(console, &heap.process, heap.pid, "java"));
        for line in sizes(heap) {
            console.data(format_args!("  {line}"));
        }
        if at < FULL && !heap.top.is_empty() {
            console.data("");
            table(heap).show(console);
            if heap.totals.native_space > 0 {
                console.in_style(Style::Dim, WITH_NATIVE);
            }
        }
        console.data("");
    }
}

/// Returns the title of a heap: `com.example.app  pid 4242  libc.malloc`.
pub(super) fn title(console: &Console, process: &str, pid: u64, heap: &str) -> String {
    let (name, pid) = match process {
        "" => (format!("process {pid}"), String::new()),
        name => (name.to_owned(), format!("  pid {pid}")),
    };
    let name = console.styled(Style::Strong, name);
    match heap {
        "" => format!("{name}{pid}"),
        heap => format!("{name}{pid}  {heap}"),
    }
}

fn sizes(heap: &JavaSummary) -> Vec<String> {
    let totals = &heap.totals;
    let reachable = &totals.reachable;
    let native = |bytes: u64| match bytes {
        0 => String::new(),
        bytes => format!(" + {} native", ByteSize(bytes)),
    };
    let mut lines = vec![format!(
        "reachable    {}{} in {} of {}",
        ByteSize(reachable.space),
        native(reachable.native_space),
        counted(reachable.objects, "object", "objects"),
        counted(heap.classes as u64, "class", "classes"),
    )];
    let garbage = totals.objects.saturating_sub(reachable.objects);
    if garbage > 0 {
        lines.push(format!(
            "unreachable  {}{} in {}",
            ByteSize(totals.space.saturating_sub(reachable.space)),
            native(totals.native_space.saturating_sub(reachable.native_space)),
            counted(garbage, "object", "objects"),
        ));
    }
    lines
}

fn table(heap: &JavaSummary) -> Table {
    let mut table = Table::new(&["retained", "shallow", "native", "objects", "class"]);
    for row in &heap.top {
        let native = match row.native_bytes {
            0 => String::new(),
            bytes => ByteSize(bytes).to_string(),
        };
        table.row(
            vec![
                ByteSize(row.retained_bytes).to_string(),
                ByteSize(row.shallow_bytes).to_string(),
                native,
                thousands(row.objects),
            ],
            row.class.clone(),
        );
    }
    table
}

/// Returns suggested commands for the Java heaps of a directory, each with a description. If the
/// directory also has native heaps, leaves out commands already suggested for those.
pub(super) fn next_commands(
    directory: &Path,
    manifest: &Manifest,
    beside_native: bool,
) -> Vec<(String, String)> {
    let with_file: Vec<&JavaDump> = manifest
        .dumps
        .java
        .iter()
        .filter(|dump| dump.file.is_some())
        .collect();
    let Some(last) = main_dump(&with_file) else {
        return Vec::new();
    };
    let near = near(directory);
    let place = quoted_path(near);
    // A conversion written elsewhere is only a profile; the trace or the HPROF contains the heap.
    let file = last.file.as_deref().unwrap_or_default();
    if file.ends_with(".pb.gz") && !directory.join(RAW_TRACE).is_file() {
        let file = quoted_path(near.join(file));
        return vec![(
            "what retains the Java heap, as a flame graph in the browser:".to_owned(),
            format!("go tool pprof -symbolize=none -http=: {file}"),
        )];
    }
    let of_process = of_process(&with_file);
    let java = if beside_native { " --heap java" } else { "" };
    let mut next = vec![(
        "destroyed activities and other leaks, with their paths from GC roots:".to_owned(),
        format!("heaptap leaks {place}{of_process}{java}"),
    )];
    let first = with_file.iter().find(|dump| dump.pid == last.pid);
    if let Some(first) = first.filter(|first| first.number != last.number) {
        next.push((
            "what grew from the first dump to the last:".to_owned(),
            format!(
                "heaptap diff {} {}{of_process}{java}",
                quoted_dump(near, first.number),
                quoted_dump(near, last.number)
            ),
        ));
    }
    next.push((
        "retained sizes by class, package or object:".to_owned(),
        format!("heaptap top {place}{of_process}{java}"),
    ));
    if !beside_native {
        next.push((
            "everything on one page:".to_owned(),
            format!("heaptap report {place}{of_process}"),
        ));
    }
    next
}

/// Returns a directory of Java heaps as an argument of commands that analyze one process: with the
/// process to look at first, if there are several.
pub(crate) fn java_place(directory: &Path) -> String {
    let place = quoted_path(near(directory));
    let Ok(manifest) = Manifest::read(directory) else {
        return place;
    };
    let dumps = manifest.dumps.java.iter();
    let dumps: Vec<&JavaDump> = dumps.filter(|dump| dump.has_heap()).collect();
    format!("{place}{}", of_process(&dumps))
}

/// Returns the last dump of the process to look at first: that of the first dump, which is the app's
/// own if its services are dumped too. If it was started again, the dump is of the newest process.
fn main_dump<'a>(dumps: &[&'a JavaDump]) -> Option<&'a JavaDump> {
    let process = &dumps.first()?.process;
    let of_it = dumps.iter().rev().find(|dump| dump.process == *process);
    of_it.copied()
}

/// Returns the flag that selects the process to look at first, if there are several.
fn of_process(dumps: &[&JavaDump]) -> String {
    match main_dump(dumps) {
        Some(last) if dumps.iter().any(|dump| dump.pid != last.pid) => {
            format!(" -p {}", last.pid)
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_results::manifest::{JAVA_HEAP, JavaKind};

    #[test]
    fn the_commands_name_the_process_of_several() {
        let dump = |pid: u64, number: u32| JavaDump {
            kind: JavaKind::Hprof,
            number,
            label: None,
            time_ns: None,
            time: None,
            pid,
            process: format!("app{pid}"),
            heap: JAVA_HEAP.to_owned(),
            file: Some(format!("{number}.{pid}.hprof")),
            dominators: None,
            malloc_info: None,
            original: None,
            reason: None,
            totals: None,
            flags: Default::default(),
            complete: true,
        };
        let mut manifest = Manifest::default();
        manifest.dumps.java = vec![dump(7, 1), dump(7, 2)];
        let commands = |manifest: &Manifest| -> Vec<String> {
            let next = next_commands(Path::new("out"), manifest, false);
            next.into_iter().map(|(_, command)| command).collect()
        };
        assert_eq!(commands(&manifest)[1], "heaptap diff out@1 out@2");
        manifest.dumps.java.extend([dump(9, 1), dump(9, 2)]);
        for command in commands(&manifest) {
            assert!(command.contains(" -p 7"), "{command}");
        }
        assert_eq!(commands(&manifest)[1], "heaptap diff out@1 out@2 -p 7");
        // Started again: the process that runs.
        manifest.dumps.java[2].process = "app7".to_owned();
        manifest.dumps.java[3].process = "app7".to_owned();
        assert_eq!(commands(&manifest)[1], "heaptap diff out@1 out@2 -p 9");
        let directory = tempfile::tempdir().unwrap();
        let place = quoted_path(near(directory.path()));
        assert_eq!(java_place(directory.path()), place);
        manifest.write(directory.path()).unwrap();
        assert_eq!(java_place(directory.path()), format!("{place} -p 9"));
    }
}
