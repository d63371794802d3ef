//! Kinds of the inputs of `diff`, determined by their first bytes. Reports missing inputs, pairs
//! that are not comparable, and other captures at labels that have no dump.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::heaps::meminfo::is_meminfo;
use crate::heaps::moments::{self, Capture, KeptFile, Moments};
use crate::heaps::selector::JavaInput;
use crate::heaps::smaps;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::untrusted::sanitize;
use heaptap_base::untrusted::shell::{quoted_dump, quoted_path};
use heaptap_input::{ImportError, STDIN, TextInput, is_directory};
use heaptap_model::timeline::Timeline;
use heaptap_results::timeline;

/// Kind of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Meminfo text or document.
    Meminfo,
    /// Text of memory mappings.
    Mappings,
    /// Anything else, such as heaps and recordings.
    Other,
    /// Known only to the reader: a pipe can be read only once, and damage has its own messages.
    Unknown,
}

impl Kind {
    fn new(path: &Path, of_mappings: bool) -> Kind {
        if is_directory(path) {
            return Kind::Other;
        }
        let input = TextInput::of_regular(path).filter(|_| path != Path::new(STDIN));
        let Some(mut input) = input.filter(|input| !input.head().is_empty()) else {
            return Kind::Unknown;
        };
        // A bug report has both.
        let is_report = input.is_bugreport();
        if is_meminfo(&mut input) && !(is_report && of_mappings) {
            return Kind::Meminfo;
        }
        match smaps::is_text(&mut input) {
            true => Kind::Mappings,
            false => Kind::Other,
        }
    }
}

/// Returns the kind of both inputs.
///
/// # Errors
/// Returns an error if an input is missing or the kinds are not comparable, with an alternative.
pub(super) fn check(before: &OsStr, after: &OsStr, of_mappings: bool) -> Result<Kind, Failure> {
    for typed in [before, after] {
        let path = JavaInput::parse(typed).path;
        if typed != STDIN {
            let name = path.display().to_string();
            std::fs::metadata(&path).map_err(ImportError::unreadable(&name))?;
        }
    }
    let [left, right] = [before, after].map(JavaInput::parse);
    let kinds = [left, right].map(|input| Kind::new(&input.path, of_mappings));
    let kinds = (kinds[0], kinds[1]);
    let (what, help) = match kinds {
        (Kind::Meminfo, Kind::Mappings) | (Kind::Mappings, Kind::Meminfo) => {
            let word = |kind| match kind {
                Kind::Meminfo => "meminfo",
                _ => "memory mappings",
            };
            let [before, after] = [(before, kinds.0), (after, kinds.1)]
                .map(|(typed, kind)| format!("{} ({})", name(typed), word(kind)));
            (
                format!("cannot compare {before} with {after}"),
                "compare two inputs of the same kind".to_owned(),
            )
        }
        (Kind::Mappings, Kind::Other) if !of_mappings => of_one(before, after, "memory mappings"),
        (Kind::Other, Kind::Mappings) if !of_mappings => of_one(after, before, "memory mappings"),
        (Kind::Meminfo, Kind::Other) => of_one(before, after, "meminfo"),
        (Kind::Other, Kind::Meminfo) => of_one(after, before, "meminfo"),
        (left, right) if left == right => return Ok(left),
        _ => return Ok(Kind::Other),
    };
    Err(Failure::new(ErrorClass::Usage, "nothing-in-common", what).with_help(help))
}

fn name(typed: &OsStr) -> String {
    sanitize(&typed.to_string_lossy()).into_owned()
}

/// Returns the message and help for an input of `kind` and one that is not known to be.
fn of_one(one: &OsStr, other: &OsStr, kind: &str) -> (String, String) {
    let help = match kind {
        "meminfo" => format!(
            "compare two meminfo files. A recording made with `heaptap record --with meminfo` has one for each \
             label in its directory meminfo; list them with `heaptap meminfo {}`.",
            quoted_path(other)
        ),
        _ => format!(
            "add `--smaps` to compare it with the memory mappings in {}",
            name(other)
        ),
    };
    (
        format!("{} is {kind}, but {} is not", name(one), name(other)),
        help,
    )
}

/// Adds the other captures at the labels to a failure to find a dump: Java heaps, mappings and
/// meminfo.
pub(super) fn explain(failure: Failure, inputs: [&OsString; 2]) -> Failure {
    if !matches!(failure.kind, "no-such-dump" | "no-heap") {
        return failure;
    }
    let [before, after] = inputs.map(|typed| JavaInput::parse(typed));
    let of = |input: &JavaInput, timeline: &Timeline, what: &str| -> Option<KeptFile> {
        input.which.as_ref()?;
        let mut kept = moments::kept(&input.path, timeline, what);
        let captures: Vec<Capture> = kept.iter().map(|file| file.capture.clone()).collect();
        let found = Moments::of_directory(&input.path).find(input.which.as_ref(), &captures);
        let at = found.ok()?.last().copied()?;
        (at < kept.len()).then(|| kept.swap_remove(at))
    };
    let timelines = [&before, &after].map(|input| match input.path.is_dir() {
        true => timeline::beside(&input.path).timeline,
        false => Timeline::default(),
    });
    let both = |what: &str| {
        let [of_before, of_after] = &timelines;
        of(&before, of_before, what).zip(of(&after, of_after, what))
    };
    let mut ways = Vec::new();
    if both("smaps").is_some() {
        let [left, right] = inputs.map(quoted_path);
        ways.push(format!(
            "memory mappings (`heaptap diff {left} {right} --smaps`)"
        ));
    }
    if let Some((left, right)) = both("java-heap") {
        let of = |input: &JavaInput, file: &KeptFile| {
            let directory = file.path.parent().unwrap_or(&input.path);
            match &input.which {
                Some(which) => quoted_dump(directory, which),
                None => quoted_path(directory),
            }
        };
        let (left, right) = (of(&before, &left), of(&after, &right));
        ways.push(format!("Java heaps (`heaptap diff {left} {right}`)"));
    }
    if let Some((left, right)) = both("meminfo") {
        let (left, right) = (quoted_path(&left.path), quoted_path(&right.path));
        ways.push(format!("meminfo (`heaptap diff {left} {right}`)"));
    }
    if ways.is_empty() {
        return failure;
    }
    let ways = format!("both snapshots have {}", ways.join(", "));
    let help = match &failure.help {
        Some(help) => format!("{help}; {ways}"),
        None => ways,
    };
    failure.with_help(help)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPPINGS: &str = "70000000-70001000 rw-p 00000000 00:00 0 [heap]\nRss: 4 kB\nPss: 4 kB\n";
    const MEMINFO: &str = "Applications Memory Usage (in Kilobytes):\nUptime: 1 Realtime: 1\n";

    #[test]
    fn two_that_do_not_go_together_are_told_what_they_are() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.into_os_string()
        };
        let mappings = file("sm1", MAPPINGS);
        let meminfo = file("before", MEMINFO);
        let heap = file("heap", "JAVA PROFILE 1.0.2\0");
        let gone = directory.path().join("nothere").into_os_string();
        let told = |before: &OsStr, after: &OsStr, of_mappings: bool| {
            let told = check(before, after, of_mappings);
            told.map_err(|failure| (failure.message, failure.help.unwrap_or_default()))
        };
        for (before, after, message, help) in [
            (&meminfo, &mappings, "sm1 (memory mappings)", "same kind"),
            (&mappings, &meminfo, "before (meminfo)", "same kind"),
            (&mappings, &heap, "sm1 is memory mappings, but", "--smaps"),
            (&heap, &meminfo, "before is meminfo, but", "heaptap meminfo"),
        ] {
            let (said, way) = told(before, after, false).unwrap_err();
            assert!(
                said.contains(message) && way.contains(help),
                "{said}: {way}"
            );
        }
        assert_eq!(told(&mappings, &heap, true), Ok(Kind::Other));
        assert_eq!(told(&heap, &heap, false), Ok(Kind::Other));
        assert_eq!(told(&mappings, &mappings, false), Ok(Kind::Mappings));
        assert_eq!(
            check(&meminfo, &gone, false).unwrap_err().class,
            ErrorClass::BadInput
        );
        let (said, _) = told(&meminfo, &gone, false).unwrap_err();
        assert!(said.contains("nothere"), "{said}");
    }
}
