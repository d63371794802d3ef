//! Answers as llvm-symbolizer does, for comparing the two (`benches/symbolize.py`):
//!
//! ```text
//! symbolize_addresses FILE [THREADS] < addresses
//! ```
//!
//! Reads hexadecimal addresses, one a line, and prints for each a line of JSON in the shape of
//! `llvm-symbolizer --inlines --output-style=JSON --no-demangle`, with what is compared of it:
//! `FunctionName` (the linkage name), `FileName`, `Line`. 0 threads are all cores.

use heaptap_symbols::symbolize::file::{Bytes, SiblingFiles, SourceLine, SymbolFile};
use std::io::{self, BufWriter, Write};
use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next();
    let path = path.ok_or_else(|| io::Error::other("usage: symbolize_addresses FILE [THREADS]"))?;
    let threads = arguments.next().map_or(Ok(0), |text| text.parse());
    let threads = NonZero::new(threads.map_err(io::Error::other)?);
    let threads = threads.map_or_else(std::thread::available_parallelism, Ok)?;
    let bytes = Bytes::map(Path::new(&path))?;
    let file =
        SymbolFile::open(bytes, Arc::new(SiblingFiles::new(&path))).map_err(io::Error::other)?;

    let asked = io::read_to_string(io::stdin())?;
    let address = |line: &str| u64::from_str_radix(line.trim_start_matches("0x"), 16);
    let asked: Result<Vec<u64>, _> = asked.lines().map(address).collect();
    let asked = asked.map_err(io::Error::other)?;
    let mut sorted = asked.clone();
    sorted.sort_unstable();
    sorted.dedup();

    let mut answers = vec![Vec::new(); sorted.len()];
    file.lookup(&sorted, threads, &mut |at, lines| {
        answers[at] = frames(lines);
    });
    let mut out = BufWriter::new(io::stdout().lock());
    for address in asked {
        let found = sorted
            .binary_search(&address)
            .map_err(|at| io::Error::other(at.to_string()))?;
        let frames = match &*answers[found] {
            [] => br#"{"FileName":"","FunctionName":"","Line":0}"#,
            frames => frames,
        };
        write!(out, "{{\"Address\":\"{address:#x}\",\"Symbol\":[")?;
        out.write_all(frames)?;
        out.write_all(b"]}\n")?;
    }
    out.flush()?;
    for note in file.notes() {
        writeln!(io::stderr(), "{path}: {note}")?;
    }
    Ok(())
}

fn frames(lines: &[SourceLine<'_>]) -> Vec<u8> {
    let mut text = Vec::new();
    for line in lines {
        if !text.is_empty() {
            text.push(b',');
        }
        text.extend_from_slice(b"{\"FileName\":");
        string(&mut text, line.file);
        text.extend_from_slice(b",\"FunctionName\":");
        string(&mut text, line.linkage);
        text.extend_from_slice(format!(",\"Line\":{}}}", line.line).as_bytes());
    }
    text
}

fn string(text: &mut Vec<u8>, value: &str) {
    serde_json::to_writer(text, value).expect("text becomes JSON in memory");
}
