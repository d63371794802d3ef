//! Prints the objects of a heap dump that retain most memory, each with its path from a GC root.
//!
//! ```console
//! $ gunzip -c fixtures/hprof/android-a.hprof.gz > /tmp/android-a.hprof
//! $ cargo run -p heaptap-explore --example largest -- /tmp/android-a.hprof
//! ```
#![allow(clippy::print_stdout, reason = "an example prints")]

use android_hprof::{HprofError, Options, read};
use heaptap_base::bytes::Bytes;
use heaptap_explore::{Explorer, ObjectList, ObjectQuery, ObjectSort, Page, Size};
use heaptap_model::heap_graph::Follow;

fn largest(dump: Bytes, limit: usize) -> Result<String, HprofError> {
    let graph = read(dump, &Options::default())?;
    let explorer = Explorer::new(graph, Follow::default(), true);
    let query = ObjectQuery {
        list: ObjectList::Top,
        sort: ObjectSort::Retained,
        reverse: false,
        page: Page::new(0, limit),
    };
    let mut text = String::new();
    for row in explorer.objects(&query).rows {
        let bytes = row.retained.map_or(0, Size::total_bytes);
        let object = explorer.find(&row.id);
        let root = object.and_then(|object| explorer.path(object, 1).root);
        let root = root.unwrap_or_default();
        text += &format!("{bytes:>10}  {} {} ({root})\n", row.name, row.id);
    }
    Ok(text)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: largest HPROF")?;
    print!("{}", largest(Bytes::map(path.as_ref())?, 5)?);
    Ok(())
}

#[test]
fn what_is_not_a_dump_has_a_reason() {
    assert!(largest(Bytes::from(b"not a dump".to_vec()), 5).is_err());
}
