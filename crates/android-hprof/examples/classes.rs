//! Prints the classes of a heap dump whose objects retain most memory.
//!
//! ```console
//! $ gunzip -c fixtures/hprof/android-a.hprof.gz > /tmp/android-a.hprof
//! $ cargo run -p android-hprof --example classes -- /tmp/android-a.hprof
//! ```
#![allow(clippy::print_stdout, reason = "an example prints")]

use android_hprof::{HprofError, Options, read};
use heaptap_base::bytes::Bytes;
use heaptap_model::heap_graph::{Dominators, Follow};
use std::cmp::Reverse;

fn classes(dump: Bytes, limit: usize) -> Result<String, HprofError> {
    let graph = read(dump, &Options::default())?;
    let dominators = Dominators::compute(&graph, Follow::default());
    let retained = dominators.retained_by_class(&graph);
    let mut rows: Vec<_> = graph.classes().iter().zip(retained).collect();
    rows.sort_by_key(|(class, retained)| (Reverse(retained.bytes), &class.name));
    let mut text = format!(
        "{} objects, {} reachable\n",
        graph.len(),
        dominators.order().len()
    );
    for (class, retained) in rows.into_iter().take(limit) {
        text += &format!("{:>9}  {}\n", retained.bytes, class.name);
    }
    Ok(text)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: classes HPROF")?;
    print!("{}", classes(Bytes::map(path.as_ref())?, 5)?);
    Ok(())
}

#[test]
fn class_of_a_rooted_object_is_listed() {
    // The worked example of the crate's page: a class and one object of it, which is a root.
    let mut dump = b"JAVA PROFILE 1.0.2\0".to_vec();
    dump.extend([0, 0, 0, 4]);
    dump.extend([0; 8]);
    dump.extend([0x01, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 9]);
    dump.extend(b"Box");
    dump.extend([
        0x02, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 9,
    ]);
    let class = [&[0x20, 0, 0, 0, 2][..], &[0; 28], &[0, 0, 0, 12], &[0; 6]].concat();
    let object = [0x21, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0];
    let root = [0x01, 0, 0, 0, 3, 0, 0, 0, 0];
    let body = [&class[..], &object, &root].concat();
    dump.extend([0x0c, 0, 0, 0, 0, 0, 0, 0, body.len() as u8]);
    dump.extend(body);
    let text = classes(Bytes::from(dump), 1).unwrap();
    assert_eq!(text.lines().next(), Some("2 objects, 1 reachable"));
}
