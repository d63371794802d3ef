//! Data of a report for the viewer in the page: names, callsites, values of all dumps, in a compact
//! form. `viewer/README.md` specifies the format; `viewer/src` reads it.
//!
//! | file | owns |
//! |---|---|
//! | `header` | metadata, as JSON |
//! | `order` | selection and order of the written callsites; the tables |
//! | `values` | rows of columns, differences from the previous dump |
//! | `varint` | integers |
//! | `timeline`, `words` | memory over time, in columns |
//! | `reconcile` | values of the profile, the allocator and the system side by side |
//! | `fold` | summing of the smallest callsites, if there are too many |
//! | `blocks` | compression, base64, the elements of the page |
//! | `decode` | decoder for tests |

pub(super) mod blocks;
#[cfg(any(test, feature = "decode"))]
mod decode;
mod fold;
pub mod header;
mod order;
pub mod reconcile;
pub mod timeline;
mod values;
mod varint;
mod words;

#[cfg(test)]
mod tests;

#[cfg(any(test, feature = "decode"))]
pub use decode::{Data, from_page};
pub use fold::{MAX_COUNT, Reduction, list_from};

use header::{Counts, DerivedMeasure, Header, MAGIC, Section};
use order::Order;
pub(crate) use timeline::milliseconds;
use values::Rows;

use heaptap_base::parallel;
use heaptap_model::profile::DumpFlags;
use heaptap_model::stacks::{Dump, StackProfile};
use std::collections::HashMap;

/// Data of a page.
#[derive(Debug)]
pub struct Encoded {
    /// Complete header.
    pub header: Header,
    /// Encoded data, including the header.
    pub bytes: Vec<u8>,
}

/// Sections of the native heaps, with what the header says of them.
#[derive(Debug)]
pub(crate) struct NativeSections {
    counts: Counts,
    /// Names and bytes of those of the tables.
    tables: Vec<(String, Vec<u8>)>,
    /// By dump.
    dumps: Vec<StoredDump>,
}

/// Values of a dump as they are stored.
#[derive(Debug)]
struct StoredDump {
    callsites: usize,
    base: Option<usize>,
    rows: usize,
    /// By measure.
    derived: Vec<Option<DerivedMeasure>>,
    section: Vec<u8>,
}

impl NativeSections {
    /// Encodes native heaps after [`outline`] has filled in `header`.
    pub(crate) fn new(profile: &StackProfile, header: &Header) -> NativeSections {
        let order = Order::from_profile(profile);
        let (tables, dumps) = parallel::both(
            || order::Tables::new(&profile.table, &order),
            || dumps(profile, &order, header),
        );
        NativeSections {
            counts: tables.counts,
            tables: vec![
                ("strings".to_owned(), tables.strings),
                ("libraries".to_owned(), tables.libraries),
                ("functions".to_owned(), tables.functions),
                ("frames".to_owned(), tables.frames),
                ("nodes".to_owned(), tables.nodes),
            ],
            dumps,
        }
    }
}

/// Encodes the data of a page. `header` contains all metadata, including what [`outline`] fills in
/// for native heaps. Counts and sections are added here. `java` contains the sections of the Java
/// heaps in the header.
pub(crate) fn encode(
    native: Option<NativeSections>,
    mut header: Header,
    java: Vec<Vec<u8>>,
) -> Encoded {
    let mut sections: Vec<(String, Vec<u8>)> = Vec::new();
    if let Some(native) = native {
        debug_assert_eq!(header.dumps.len(), native.dumps.len());
        header.counts = native.counts;
        sections = native.tables;
        for (at, (entry, stored)) in header.dumps.iter_mut().zip(native.dumps).enumerate() {
            for (measure, derived) in entry.measures.iter_mut().zip(stored.derived) {
                measure.derived = derived;
            }
            entry.callsites = stored.callsites;
            entry.base = stored.base;
            entry.rows = stored.rows;
            sections.push((format!("dump.{at}"), stored.section));
        }
    }
    for (at, section) in java.into_iter().enumerate() {
        sections.push((java_section(at), section));
    }
    let mut offset = 0;
    header.sections = sections
        .iter()
        .map(|(name, bytes)| {
            let section = Section {
                name: name.clone(),
                offset,
                length: bytes.len(),
            };
            offset += bytes.len();
            section
        })
        .collect();
    let text = serde_json::to_vec(&header).expect("its keys are strings");
    let mut data = Vec::with_capacity(8 + text.len() + offset);
    data.extend_from_slice(MAGIC);
    let length = u32::try_from(text.len()).expect("a header is far below 4 GiB");
    data.extend_from_slice(&length.to_le_bytes());
    data.extend_from_slice(&text);
    for (_, bytes) in sections {
        data.extend_from_slice(&bytes);
    }
    Encoded {
        header,
        bytes: data,
    }
}

/// Fills in the header's dumps and series, without the positions of their values. `inputs` contains
/// the indexes of the dumps at which another input begins.
pub fn outline(profile: &StackProfile, inputs: &[usize], header: &mut Header) {
    let (series, of_dump) = series(profile, inputs);
    header.series = series;
    let dumps = profile.dumps.iter().zip(of_dump);
    header.dumps = dumps.map(|(dump, series)| entry(dump, series)).collect();
}

/// Returns the section name of the Java heap at `at`.
pub fn java_section(at: usize) -> String {
    format!("java.{at}")
}

/// Returns the dumps as they are stored.
fn dumps(profile: &StackProfile, order: &Order, header: &Header) -> Vec<StoredDump> {
    let mut all = Vec::with_capacity(profile.dumps.len());
    // The last dump of each series with its rows, with which the next one is compared.
    let mut last: Vec<Option<(usize, Vec<String>, Rows)>> = vec![None; header.series.len()];
    for (at, dump) in profile.dumps.iter().enumerate() {
        let stored = values::stored_order(&dump.measures);
        let rows = Rows::new(dump, &stored, order);
        let names: Vec<String> = stored
            .iter()
            .map(|&at| dump.measures[at].name.clone())
            .collect();
        let series = header.dumps[at].series;
        let changed = match &last[series] {
            Some((base, same, before)) if *same == names => {
                let changed = rows.minus(before);
                (changed.nodes.len() < rows.nodes.len()).then_some((*base, changed))
            }
            _ => None,
        };
        let (base, written) = match &changed {
            Some((base, changed)) => (Some(*base), changed),
            None => (None, &rows),
        };
        let facts = &dump.facts;
        let mut times = vec![1];
        let intervals = [
            facts.sampling_interval_bytes,
            facts.orig_sampling_interval_bytes,
        ];
        for interval in intervals.map(|interval| i64::try_from(interval).unwrap_or(0)) {
            if interval > 1 && !times.contains(&interval) {
                times.push(interval);
            }
        }
        let (section, derived) = written.encode(&times);
        all.push(StoredDump {
            callsites: rows.nodes.len(),
            base,
            rows: written.nodes.len(),
            derived,
            section,
        });
        last[series] = Some((at, names, rows));
    }
    all
}

/// Returns the header entry of a dump, without the position of its values.
fn entry(dump: &Dump, series: usize) -> header::Dump {
    let facts = &dump.facts;
    let stored = values::stored_order(&dump.measures);
    let measures = stored
        .iter()
        .map(|&at| values::measure(&dump.measures[at], total(&dump.values.columns[at])));
    header::Dump {
        number: facts.number,
        label: facts.label.clone(),
        series,
        pid: facts.pid,
        process: facts.process.clone(),
        heap: facts.heap.clone(),
        time_ms: facts.time_ns.map(milliseconds),
        wall_ms: facts.wall_time_ns.map(milliseconds),
        interval: facts.sampling_interval_bytes,
        orig_interval: facts.orig_sampling_interval_bytes,
        counts_samples: dump.counts_samples(),
        kind: facts.kind,
        flags: flag_names(facts.flags),
        unfinished: facts.unfinished,
        callsites: 0,
        measures: measures.collect(),
        default_measure: stored
            .iter()
            .position(|&at| at == dump.default_measure)
            .unwrap_or(0),
        base: None,
        rows: 0,
    }
}

/// Returns the sum of a column, saturated at the end only, because the stored order of callsites
/// differs.
fn total(column: &[i64]) -> i64 {
    let sum: i128 = column.iter().map(|value| i128::from(*value)).sum();
    sum.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

fn flag_names(flags: DumpFlags) -> Vec<String> {
    let all = [
        ("from_startup", flags.from_startup),
        ("rejected_concurrent", flags.rejected_concurrent),
        ("disconnected", flags.disconnected),
        ("buffer_overran", flags.buffer_overran),
        ("buffer_corrupted", flags.buffer_corrupted),
        ("hit_guardrail", flags.hit_guardrail),
        ("client_error", flags.client_error != 0),
    ];
    all.into_iter()
        .filter(|(_, is_set)| *is_set)
        .map(|(name, _)| name.to_owned())
        .collect()
}

/// Returns the series, each with the dumps of one heap in one run of a process, and the series of
/// each dump. A process ID with another name, with a new start of profiling, or in another input is
/// another run.
pub fn series(profile: &StackProfile, inputs: &[usize]) -> (Vec<header::Series>, Vec<usize>) {
    let mut all: Vec<header::Series> = Vec::new();
    let mut of_dump = Vec::with_capacity(profile.dumps.len());
    let mut of_input = 0;
    // The last series of each heap, of each of its starts, and of the heaps with one name of the
    // processes with one name.
    let (mut of_heap, mut of_start, mut of_name) = (HashMap::new(), HashMap::new(), HashMap::new());
    for (at, dump) in profile.dumps.iter().enumerate() {
        let facts = &dump.facts;
        if inputs.contains(&at) {
            of_input = all.len();
        }
        let name = (&facts.process, &facts.heap);
        let heap = (facts.pid, name);
        let is_own = |number: &usize| *number >= of_input;
        let known: Option<usize> = match facts.start_ns {
            None => of_heap.get(&heap).copied(),
            // An unknown start can be the same.
            start => {
                let started = |start| of_start.get(&(heap, start)).copied();
                started(start).max(started(None))
            }
        };
        let known = known.filter(is_own);
        let named = of_name.get(&name).copied();
        let before = named.filter(|number| !facts.process.is_empty() && is_own(number));
        let number = known.unwrap_or(all.len());
        if known.is_none() {
            let entry = header::Series {
                pid: facts.pid,
                process: facts.process.clone(),
                heap: facts.heap.clone(),
                start_ms: facts.start_ns.map(milliseconds),
                from_startup: facts.flags.from_startup,
                after: before,
                dumps: Vec::new(),
                shown: at,
            };
            all.push(entry);
            of_heap.insert(heap, number);
            of_start.insert((heap, facts.start_ns), number);
            of_name.insert(name, number);
        }
        let own = &mut all[number];
        own.dumps.push(at);
        if facts.is_default || !profile.dumps[own.shown].facts.is_default {
            own.shown = at;
        }
        of_dump.push(number);
    }
    (all, of_dump)
}
