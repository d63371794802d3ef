//! Loads a mapping file and asks it for every class once, for benches/mapping.py:
//!
//! ```text
//! load_mapping FILE [LOOKUPS]
//! ```
//!
//! Prints the classes, the seconds that loading took, and on Linux what the process holds:
//! memory of its own, and pages of the file that happen to be mapped. Then, with LOOKUPS, what
//! so many lookups of a method take, each reading another class.

use heaptap_symbols::deobfuscate::{Entry, MapFile, Retraced, Retracer};
use std::convert::Infallible;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let usage = "usage: load_mapping FILE [LOOKUPS]";
    let path = args.next().ok_or(usage)?;
    let lookups: usize = args.next().map_or(Ok(0), |number| number.parse())?;
    let before = held("RssAnon");
    let start = Instant::now();
    let map = MapFile::open(Path::new(&path))?;
    let seconds = start.elapsed().as_secs_f64();
    let survey = map.survey();
    let mut out = std::io::stdout().lock();
    let own = held("RssAnon").saturating_sub(before);
    writeln!(
        out,
        "classes {} bad {} seconds {seconds:.4} own_kib {own} mapped_kib {}",
        survey.classes,
        survey.bad_lines,
        held("RssFile")
    )?;
    if let Some(every) = survey.classes.checked_div(lookups) {
        let mut names: Vec<String> = Vec::new();
        let mut at = 0;
        let Ok(()) = map.entries(|entry| -> Result<(), Infallible> {
            if let Entry::Class { obfuscated, .. } = entry {
                if at % every.max(1) == 0 {
                    names.push(obfuscated.to_owned());
                }
                at += 1;
            }
            Ok(())
        });
        let retracer = Retracer::new(&map);
        let start = Instant::now();
        let methods: usize = names
            .iter()
            .map(
                |name| match retracer.frame(name, "a", None, None).retraced {
                    Retraced::Frames(methods) => methods.len(),
                    _ => 0,
                },
            )
            .sum();
        let micros = start.elapsed().as_secs_f64() * 1e6 / names.len().max(1) as f64;
        writeln!(
            out,
            "{} lookups of {micros:.2} us, {methods} methods",
            names.len()
        )?;
    }
    Ok(())
}

/// A line of what the system says of this process, in KiB; 0 where it says nothing.
fn held(what: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(what));
    let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    number.unwrap_or(0)
}
