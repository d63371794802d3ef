//! Writes an HTML page about the native heaps of a trace.
//!
//! ```console
//! $ cargo run -p heaptap-report --example page -- fixtures/conversions/c_cont.pftrace > /tmp/page.html
//! ```

use heaptap_model::stacks::{ProjectOptions, project};
use heaptap_report::Report;
use heaptap_report::data::header::Header;
use perfetto_heap::{Source, Trace, TraceError};
use std::io::{self, Write};

fn page(title: &str, source: Box<dyn Source>, out: &mut dyn Write) -> Result<(), TraceError> {
    let mut trace = Trace::open(source)?;
    let mut dumps = Vec::new();
    trace.read_dumps(|dump| {
        dumps.push(dump);
        Ok::<_, TraceError>(())
    })?;
    let report = Report {
        header: Header {
            title: title.to_owned(),
            ..Header::default()
        },
        native: Some(project(
            trace.recording(),
            &dumps,
            ProjectOptions::default(),
        )),
        inputs: Vec::new(),
        java: Vec::new(),
    };
    Ok(report.write(out)?)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: page TRACE > HTML")?;
    let trace = std::fs::File::open(&path)?;
    page(&path, Box::new(trace), &mut io::stdout().lock())?;
    Ok(())
}

#[test]
fn page_begins_as_html() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fixtures/conversions/c_max.pftrace"
    );
    let trace = std::fs::File::open(path).unwrap();
    let mut html = Vec::new();
    page("A <b>bold</b> title", Box::new(trace), &mut html).unwrap();
    let html = String::from_utf8(html).unwrap();
    assert_eq!(html.lines().next(), Some("<!doctype html>"));
    assert!(html.contains("A &lt;b&gt;bold"));
}
