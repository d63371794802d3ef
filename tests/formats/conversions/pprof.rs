//! Reads pprof files and reduces them to the parts that two converters must agree on.

use heaptap_proto::pprof::Profile;
use prost::Message as _;
use std::collections::BTreeMap;
use std::io::Read as _;

/// A stack, leaf first, with one entry for each line of a location.
pub type Stack = Vec<String>;

/// Samples of a profile as a multiset, with columns in a fixed order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// `objects`, `space`, `alloc_objects`, `alloc_space`: those of the heap.
    pub columns: Vec<&'static str>,
    /// Sorted.
    pub samples: Vec<(Stack, Vec<i64>)>,
}

impl View {
    pub fn totals(&self) -> Vec<i64> {
        let mut totals = vec![0i64; self.columns.len()];
        for (_, values) in &self.samples {
            for (total, value) in totals.iter_mut().zip(values) {
                *total = total.wrapping_add(*value);
            }
        }
        totals
    }

    /// Returns the view with mapped stacks.
    pub fn renamed(&self, rename: impl Fn(&Stack) -> Stack) -> View {
        let mut samples: Vec<(Stack, Vec<i64>)> = self
            .samples
            .iter()
            .map(|(stack, values)| (rename(stack), values.clone()))
            .collect();
        samples.sort_unstable();
        View {
            columns: self.columns.clone(),
            samples,
        }
    }

    /// Returns the view without a column.
    pub fn without_column(&self, name: &str) -> View {
        let keep: Vec<usize> = (0..self.columns.len())
            .filter(|&at| self.columns[at] != name)
            .collect();
        let mut samples: Vec<(Stack, Vec<i64>)> = self
            .samples
            .iter()
            .map(|(stack, values)| (stack.clone(), keep.iter().map(|&at| values[at]).collect()))
            .collect();
        samples.sort_unstable();
        View {
            columns: keep.iter().map(|&at| self.columns[at]).collect(),
            samples,
        }
    }

    /// Returns the unreleased memory by stack.
    pub fn held(&self) -> View {
        let mut view = self
            .without_column("alloc_objects")
            .without_column("alloc_space");
        view.samples
            .retain(|(_, values)| values.iter().any(|&value| value != 0));
        view
    }

    /// Adds up equal stacks.
    pub fn merged(&self) -> View {
        let mut sums: BTreeMap<Stack, Vec<i64>> = BTreeMap::new();
        for (stack, values) in &self.samples {
            let sum = sums
                .entry(stack.clone())
                .or_insert_with(|| vec![0; values.len()]);
            for (sum, value) in sum.iter_mut().zip(values) {
                *sum += value;
            }
        }
        View {
            columns: self.columns.clone(),
            samples: sums.into_iter().collect(),
        }
    }
}

/// Reads a profile, gzipped or not.
pub fn read(bytes: &[u8]) -> Profile {
    let mut plain = Vec::new();
    if bytes.starts_with(&[0x1f, 0x8b]) {
        flate2::read::GzDecoder::new(bytes)
            .read_to_end(&mut plain)
            .expect("gzip inflates");
    } else {
        plain.extend_from_slice(bytes);
    }
    Profile::decode(&plain[..]).expect("a pprof")
}

/// Returns the column of a sample type of either converter.
pub fn column(name: &str) -> &'static str {
    match name {
        "objects" | "Unreleased malloc count" | "Unreleased count" => "objects",
        "space" | "Unreleased malloc size" | "Unreleased size" => "space",
        "alloc_objects" | "Total malloc count" | "Total count" | "Total allocation count" => {
            "alloc_objects"
        }
        "alloc_space" | "Total malloc size" | "Total size" | "Total allocation size" => {
            "alloc_space"
        }
        other => panic!("sample type {other}"),
    }
}

const SUFFIXES: [&str; 5] = [
    " [interp]",
    " [jit]",
    " [aot]",
    " [common-frame]",
    " [common-frame-interp]",
];

/// The name of a function as both converters must have it. Demanglers differ, so a mangled name is
/// compared as recorded; a frame without a name stays unnamed, whatever is shown.
fn function_key(name: &str, system_name: &str) -> String {
    if system_name.is_empty() {
        return String::new();
    }
    if system_name.starts_with("_Z") || system_name.starts_with("_R") {
        let suffix = SUFFIXES.iter().find(|s| name.ends_with(**s));
        return format!("{system_name}{}", suffix.unwrap_or(&""));
    }
    name.to_owned()
}

/// Reduces a profile to its view.
pub fn view(profile: &Profile) -> View {
    let text = |id: i64| profile.string_table[id as usize].as_str();
    let functions: BTreeMap<u64, String> = profile
        .function
        .iter()
        .map(|f| (f.id, function_key(text(f.name), text(f.system_name))))
        .collect();
    let locations: BTreeMap<u64, Vec<&str>> = profile
        .location
        .iter()
        .map(|l| {
            let lines = l.line.iter();
            let names = lines.map(|line| functions[&line.function_id].as_str());
            (l.id, names.collect())
        })
        .collect();
    let mut order: Vec<(&'static str, usize)> = profile
        .sample_type
        .iter()
        .enumerate()
        .map(|(at, ty)| (column(text(ty.r#type)), at))
        .collect();
    order.sort_unstable();
    let mut samples: Vec<(Stack, Vec<i64>)> = profile
        .sample
        .iter()
        .map(|sample| {
            let stack = sample
                .location_id
                .iter()
                .flat_map(|id| locations[id].iter().map(|name| (*name).to_owned()))
                .collect();
            let values = order.iter().map(|&(_, at)| sample.value[at]).collect();
            (stack, values)
        })
        .collect();
    samples.sort_unstable();
    View {
        columns: order.into_iter().map(|(name, _)| name).collect(),
        samples,
    }
}

/// Returns all errors that make a profile invalid or unusable (the rules of Go's reader, and more).
pub fn faults(profile: &Profile) -> Vec<String> {
    let mut faults = Vec::new();
    let strings = profile.string_table.len() as i64;
    if profile.string_table.first().map(String::as_str) != Some("") {
        faults.push("string 0 is not empty".to_owned());
    }
    let mut check = |id: i64, what: &str| {
        if !(0..strings).contains(&id) {
            faults.push(format!("{what}: no string {id}"));
        }
    };
    for ty in profile.sample_type.iter().chain(&profile.period_type) {
        check(ty.r#type, "type");
        check(ty.unit, "unit");
    }
    check(profile.default_sample_type, "default type");
    profile.comment.iter().for_each(|&c| check(c, "comment"));
    for m in &profile.mapping {
        check(m.filename, "mapping");
        check(m.build_id, "build id");
    }
    for f in &profile.function {
        check(f.name, "function");
        check(f.system_name, "function");
        check(f.filename, "function");
    }
    let unique = |ids: Vec<u64>, what: &str, faults: &mut Vec<String>| {
        let mut sorted = ids.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.len() != ids.len() || sorted.first() == Some(&0) {
            faults.push(format!("{what} ids are not unique and nonzero"));
        }
        sorted
    };
    let mappings = unique(
        profile.mapping.iter().map(|m| m.id).collect(),
        "mapping",
        &mut faults,
    );
    let functions = unique(
        profile.function.iter().map(|f| f.id).collect(),
        "function",
        &mut faults,
    );
    let locations = unique(
        profile.location.iter().map(|l| l.id).collect(),
        "location",
        &mut faults,
    );
    for l in &profile.location {
        if l.mapping_id != 0 && mappings.binary_search(&l.mapping_id).is_err() {
            faults.push(format!("location {}: no mapping {}", l.id, l.mapping_id));
        }
        let m = profile.mapping.iter().find(|m| m.id == l.mapping_id);
        if let Some(m) = m
            && l.address != 0
            && !(m.memory_start..m.memory_limit).contains(&l.address)
        {
            faults.push(format!("location {}: address outside its mapping", l.id));
        }
        if l.line.is_empty() {
            faults.push(format!("location {}: no line", l.id));
        }
        for line in &l.line {
            if functions.binary_search(&line.function_id).is_err() {
                faults.push(format!("location {}: no function", l.id));
            }
        }
    }
    let mut used = std::collections::BTreeSet::new();
    for s in &profile.sample {
        if s.value.len() != profile.sample_type.len() || s.location_id.is_empty() {
            faults.push("a sample without its values or locations".to_owned());
        }
        for id in &s.location_id {
            used.insert(*id);
            if locations.binary_search(id).is_err() {
                faults.push(format!("a sample: no location {id}"));
            }
        }
    }
    if used.len() != locations.len() {
        faults.push("locations that no sample refers to".to_owned());
    }
    faults
}
