//! Prints the garbage collections in a log: runtime, reason, live bytes afterwards, pauses.
//!
//! ```console
//! $ cargo run -p android-memory --example collections -- fixtures/gclog/gc_forms.log
//! ```
#![allow(clippy::print_stdout, reason = "an example prints")]

use android_memory::gc::{Event, milliseconds, parse_event, parse_line};
use heaptap_base::units::ByteSize;

fn collections(log: &str) -> String {
    let mut text = String::new();
    for line in log.lines().filter_map(parse_line) {
        let Some(Event::Collection(logged)) = parse_event(&line) else {
            continue;
        };
        let collection = logged.collection;
        let live = collection.live.map(|bytes| ByteSize(bytes).to_string());
        let pauses: Vec<String> = collection
            .pauses
            .iter()
            .copied()
            .map(milliseconds)
            .collect();
        text += &format!(
            "{:?} {}: live {}, paused {}\n",
            logged.runtime,
            collection.reason,
            live.as_deref().unwrap_or("unknown"),
            match pauses.is_empty() {
                true => "unknown".to_owned(),
                false => pauses.join(" + "),
            },
        );
    }
    text
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: collections LOG")?;
    print!("{}", collections(&std::fs::read_to_string(path)?));
    Ok(())
}

#[test]
fn collection_of_dalvik_is_read() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fixtures/gclog/gc_forms.log"
    );
    let text = collections(&std::fs::read_to_string(path).unwrap());
    let first = "Dalvik GC_CONCURRENT: live 3.5 MiB, paused 2.00 ms + 2.00 ms";
    assert_eq!(text.lines().next(), Some(first));
}
