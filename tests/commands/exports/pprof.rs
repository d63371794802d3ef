//! pprofs, decoded by prost: the reference for all other formats.

use crate::exports::read::{Numbers, dump_of, put};
use heaptap_model::names::demangle;
use heaptap_proto::pprof::Profile;
use prost::Message as _;
use std::io::Read as _;
use std::path::Path;

/// Adds the numbers of a gzipped pprof.
pub fn add(numbers: &mut Numbers, file: &Path) {
    let dump = dump_of(file);
    let packed = std::fs::read(file).expect("it can be read");
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(&packed[..])
        .read_to_end(&mut plain)
        .expect("gzip inflates");
    let profile = Profile::decode(&plain[..]).expect("a pprof");
    let text = |id: i64| profile.string_table[id as usize].as_str();
    let location = |id: u64| profile.location.iter().find(|l| l.id == id).expect("there");
    let function = |id: u64| profile.function.iter().find(|f| f.id == id).expect("there");
    for sample in &profile.sample {
        let mut names = Vec::new();
        for &id in &sample.location_id {
            // Inlined functions first, because the stack has its leaf first.
            let lines = location(id).line.iter();
            // Symbols of the trace are as it has them; other formats demangle them.
            names.extend(lines.map(|line| demangle(text(function(line.function_id).name))));
        }
        names.reverse();
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        for (kind, &value) in profile.sample_type.iter().zip(&sample.value) {
            put(numbers, &dump, text(kind.r#type), &names, value);
        }
    }
}
