//! The format of the output: as typed, or else by the name of the output.

use std::path::Path;

use clap::ValueEnum;

use super::args::{Args, Format};
use super::export::run as export;
use crate::console::flags::typed::of_same_name;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::suggest::nearest;
use heaptap_base::untrusted::sanitize;
use heaptap_base::untrusted::shell::quoted_path;

/// Endings of databases, which `query` writes.
const DATABASES: [&str; 3] = ["db", "sqlite", "sqlite3"];

/// Endings of common files that `convert` does not write. No package name is likely to end so.
const OTHER_FILES: [&str; 25] = [
    "bmp", "doc", "docx", "gif", "gz", "htm", "jpeg", "jpg", "log", "md", "pdf", "pftrace", "png",
    "stacks", "tar", "tgz", "tsv", "txt", "webp", "xls", "xlsx", "xml", "yaml", "zip", "zst",
];

/// Returns the format: as typed, or else by the ending of the output.
///
/// # Errors
/// Returns an error if the ending is of a file, but of no format.
pub(super) fn format(args: &Args) -> Result<Format, Failure> {
    let (Some(output), None) = (&args.output, args.format) else {
        return Ok(args.format.unwrap_or_default());
    };
    let name = output.to_string_lossy().to_ascii_lowercase();
    let is_directory = name.ends_with(std::path::is_separator) || output.is_dir();
    if !is_directory
        && !is_one_file(output)
        && let Some((ending, meant)) = unknown_ending(&name)
    {
        return Err(refused(output, &ending, meant));
    }
    Ok(by_ending(&name).unwrap_or_default())
}

/// Returns whether an output is standard output or has the name of a single pprof.
pub(super) fn is_one_file(output: &Path) -> bool {
    let name = output.to_string_lossy().to_ascii_lowercase();
    let endings = [".pb.gz", ".pb", ".pprof"];
    let ends_so = endings.iter().any(|ending| name.ends_with(ending));
    output == Path::new("-") || ends_so && !output.is_dir()
}

/// Returns the format whose files have the ending of a name, in lower case. Profiles do not have an
/// ending of their own.
fn by_ending(name: &str) -> Option<Format> {
    let of_name = endings().filter(|(_, ending)| name.ends_with(&format!(".{ending}")));
    // The longest: speedscope files are JSON, too.
    let longest = of_name.max_by_key(|(_, ending)| ending.len());
    longest.map(|(format, _)| format)
}

/// Returns the formats with their endings.
fn endings() -> impl Iterator<Item = (Format, &'static str)> {
    let all = Format::value_variants().iter().copied();
    all.filter_map(|format| match of_same_name::<export::Format>(format) {
        Some(known) => Some((format, known.ending())),
        None if format == Format::Html => Some((format, "html")),
        None => None,
    })
}

/// Returns the ending of a name if it is of no format, and the ending that is probably meant.
/// Directories have dots, too: `rec-1.2`, `com.example.app`.
fn unknown_ending(name: &str) -> Option<(String, Option<&'static str>)> {
    let file = name.rsplit(std::path::is_separator).next()?;
    let (stem, ending) = file.rsplit_once('.')?;
    let meant = |part: &str| {
        let first = |ending: &'static str| ending.split('.').next().unwrap_or(ending);
        let near = nearest(part, endings().map(|(_, ending)| first(ending)))?;
        let mut all = endings().map(|(_, ending)| ending);
        all.find(|ending| first(ending) == near)
    };
    if let Some(format) = by_ending(file) {
        let (_, part) = stem.rsplit_once('.')?;
        let is_misspelled = format == Format::Json && meant(part) == Some("speedscope.json");
        return is_misspelled.then(|| (format!("{part}.json"), Some("speedscope.json")));
    }
    let could_be_file = !stem.is_empty() && ending.starts_with(char::is_alphabetic);
    let is_file = could_be_file && (!is_package(file) || OTHER_FILES.contains(&ending));
    is_file.then(|| (ending.to_owned(), meant(ending)))
}

/// Returns whether a name could be that of a package: three or more parts that begin with a letter.
fn is_package(name: &str) -> bool {
    let is_part = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_alphabetic())
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    name.split('.').count() > 2 && name.split('.').all(is_part)
}

fn refused(output: &Path, ending: &str, meant: Option<&str>) -> Failure {
    let typed = output.to_string_lossy();
    let message = format!(
        "cannot write to {}: no format has the ending .{}",
        sanitize(&typed),
        sanitize(ending)
    );
    if DATABASES.contains(&ending) {
        return Failure::new(ErrorClass::Usage, "bad-value", message).with_help(format!(
            "write a database with `heaptap query INPUT -o {}`",
            quoted_path(output)
        ));
    }
    let the = match meant {
        Some(meant) => {
            let stem = &typed[..typed.len() - ending.len()];
            format!("did you mean {}{meant}? The", sanitize(stem))
        }
        None => "the".to_owned(),
    };
    let known: Vec<String> = endings().map(|(_, ending)| format!(".{ending}")).collect();
    Failure::new(ErrorClass::Usage, "bad-value", message).with_help(format!(
        "{the} known endings are {}; for a directory of pprofs, end the name with `/`",
        known.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_directories_and_formats_stay_and_others_are_refused() {
        for name in [
            "rec",
            "rec-1.2",
            "com.example.app",
            "com.example.svc",
            "com.example.db",
            "a.b/rec",
            "rec.2",
            "rec.json",
            "rec.after.json",
            "x.speedscope.json",
            "z.html",
            "x.folded",
            "x.svg",
            "x.hprof",
            ".hidden",
        ] {
            assert_eq!(unknown_ending(name), None, "{name}");
        }
        for (name, ending, meant) in [
            ("z.htm", "htm", Some("html")),
            ("com.example.app.htm", "htm", Some("html")),
            ("z.txt", "txt", None),
            ("z.sqlite", "sqlite", None),
            ("rec.old", "old", None),
            ("x.foo", "foo", None),
            ("z.foldd", "foldd", Some("folded")),
            ("a/z.cvs", "cvs", Some("csv")),
            ("z.speedscope", "speedscope", Some("speedscope.json")),
            (
                "z.speedscop.json",
                "speedscop.json",
                Some("speedscope.json"),
            ),
        ] {
            let found = unknown_ending(name);
            assert_eq!(found, Some((ending.to_owned(), meant)), "{name}");
        }
    }
}
