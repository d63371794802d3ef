//! `SmapsPacket` (field 68): the memory mappings of a process, as written by ART's heap dumps
//! (`dump_smaps`) and Perfetto's own data source: one entry per mapping, or columns for all of
//! them. The first reading keeps positions, processes and times; [`crate::Trace::read_smaps`]
//! decodes one.
//!
//! Columns are all of the same length or absent. Otherwise rows end with the shortest column, as
//! Perfetto reads them. Absent values are unknown; Perfetto's table shows them as 0.

use std::sync::Arc;

use super::framing::TraceError;
use super::packet::{Packet, payload};
use super::reader::{Place, PlaceReader};
use super::wire::{Value, WireError, each};
use heaptap_model::profile::Recording;
use heaptap_model::smaps::{Field, Module, SmapsRow, SmapsRows, SmapsWriter, Sums};

/// Maximum number of mappings of a process; a packet with more is damaged.
const MAX_ROWS: usize = 1 << 17;

/// Memory mappings of a process in a trace, not decoded yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmapsFacts {
    /// Process ID.
    pub pid: u64,
    /// Process name; empty if the trace does not have it.
    pub process: String,
    /// Trace time, ns, as in its packet.
    pub time_ns: u64,
    /// Writer of the mappings.
    pub writer: SmapsWriter,
}

/// Position of mappings in the trace.
#[derive(Debug, Clone)]
pub(super) struct SmapsPlan {
    place: Place,
    /// Index in its packet.
    nth: usize,
    pid: u64,
    writer: SmapsWriter,
    time_ns: u64,
}

/// Mappings of a trace while it is read.
#[derive(Debug, Default)]
pub(super) struct SmapsPlans {
    all: Vec<SmapsPlan>,
    /// Packets that contradict themselves.
    pub(super) errors: u64,
}

impl SmapsPlans {
    /// Records mappings; `nth` is the index in the packet.
    ///
    /// # Errors
    /// Returns an error if the message is not in wire format; fields before that are used.
    pub(super) fn add(
        &mut self,
        message: &[u8],
        place: Place,
        nth: usize,
        time_ns: u64,
    ) -> Result<(), WireError> {
        let (mut pid, mut writer) = (0, SmapsWriter::Unknown);
        let outcome = each(message, |number, value| match number {
            1 => pid = value.number(),
            4 => writer = SmapsWriter::of_number(value.number()),
            _ => {}
        });
        self.errors += u64::from(read(message).damaged);
        self.all.push(SmapsPlan {
            place,
            nth,
            pid,
            writer,
            time_ns,
        });
        outcome
    }

    /// Returns all mappings, in order of their time.
    pub(super) fn finish(mut self) -> Vec<SmapsPlan> {
        self.all.sort_by_key(|plan| plan.time_ns);
        self.all
    }
}

/// Lists the mappings from the first reading.
pub(super) fn list(plans: &[SmapsPlan], recording: &Recording) -> Vec<SmapsFacts> {
    let of_plan = |plan: &SmapsPlan| SmapsFacts {
        pid: plan.pid,
        process: recording
            .processes
            .get(&plan.pid)
            .map(|process| process.name.clone())
            .unwrap_or_default(),
        time_ns: plan.time_ns,
        writer: plan.writer,
    };
    plans.iter().map(of_plan).collect()
}

impl SmapsPlan {
    /// Decodes the mappings; `None` if their packet cannot be read a second time.
    ///
    /// # Errors
    /// Returns an error if the source cannot be read. Damaged mappings are marked.
    pub(super) fn read(&self, reader: &mut PlaceReader) -> Result<Option<SmapsRows>, TraceError> {
        let Some(body) = reader.body(self.place)? else {
            return Ok(None);
        };
        let (packet, _) = Packet::read(body);
        let message = packet.all(payload::SMAPS).nth(self.nth);
        Ok(message.map(read))
    }
}

/// Reads a packet. Columns override entries if a packet has both, as in Perfetto.
fn read(message: &[u8]) -> SmapsRows {
    let mut made = SmapsRows::default();
    let mut packed = None;
    let outcome = each(message, |number, value| match number {
        2 if made.rows.len() < MAX_ROWS => {
            let (row, outcome) = entry(value.bytes());
            made.rows.push(row);
            made.damaged |= outcome.is_err();
        }
        2 => made.damaged = true,
        3 => packed = Some(value.bytes()),
        _ => {}
    });
    made.damaged |= outcome.is_err();
    match packed {
        Some(columns) => {
            let damaged = made.damaged;
            let mut made = columns_of(columns);
            made.damaged |= damaged;
            made
        }
        None => made,
    }
}

fn bytes_of(kb: u64) -> u64 {
    kb.saturating_mul(1024)
}

fn entry(message: &[u8]) -> (SmapsRow, Result<(), WireError>) {
    let mut row = SmapsRow {
        count: 1,
        ..SmapsRow::default()
    };
    let mut module = Module::default();
    let outcome = each(message, |number, value| {
        let field = match number {
            2 => Field::Size,
            3 => Field::PrivateDirty,
            4 => Field::Swap,
            11 => Field::PrivateClean,
            12 => Field::SharedDirty,
            13 => Field::SharedClean,
            14 => Field::Locked,
            15 => Field::Pss,
            other => {
                match other {
                    1 => row.path = Some(value.text().into()),
                    5 => module.file_name = Some(value.text()),
                    6 => module.start_address = value.number(),
                    7 => module.timestamp = value.number(),
                    8 => module.debug_id = Some(value.text()),
                    9 => module.debug_path = Some(value.text()),
                    10 => module.protection_flags = value.number() as u32,
                    _ => {}
                }
                return;
            }
        };
        row.sums.set(field, bytes_of(value.number()));
    });
    if module != Module::default() {
        row.module = Some(Box::new(module));
    }
    (row, outcome)
}

/// Columns of the figures by field number.
const COLUMNS: [(u32, Field); 12] = [
    (4, Field::Size),
    (5, Field::Rss),
    (6, Field::Anonymous),
    (7, Field::Swap),
    (8, Field::SharedClean),
    (9, Field::SharedDirty),
    (10, Field::PrivateClean),
    (11, Field::PrivateDirty),
    (12, Field::Locked),
    (13, Field::Pss),
    (14, Field::PssDirty),
    (15, Field::SwapPss),
];

/// Adds the numbers of a column; returns whether all of them were readable.
fn take(column: &mut Vec<u64>, value: Value<'_>) -> bool {
    let mut whole = true;
    let outcome = value.numbers(|number| match column.len() < MAX_ROWS {
        true => column.push(number),
        false => whole = false,
    });
    whole && outcome.is_ok()
}

fn columns_of(message: &[u8]) -> SmapsRows {
    let mut strings: Vec<Arc<str>> = Vec::new();
    let (mut names, mut counts) = (Vec::new(), None);
    let mut columns: [Vec<u64>; COLUMNS.len()] = Default::default();
    let mut made = SmapsRows::default();
    let outcome = each(message, |number, value| {
        made.damaged |= !match number {
            1 if strings.len() < MAX_ROWS => {
                strings.push(value.text().into());
                true
            }
            1 => false,
            2 => take(&mut names, value),
            3 => take(counts.get_or_insert_default(), value),
            number => match COLUMNS.iter().position(|column| column.0 == number) {
                Some(at) => take(&mut columns[at], value),
                None => true,
            },
        };
    });
    made.damaged |= outcome.is_err();
    made.aggregated = counts.is_some();
    // The column that every row has: names, or counts with one string per row.
    let key = counts.as_ref().unwrap_or(&names);
    let lengths = columns.iter().map(Vec::len).filter(|length| *length > 0);
    let length = lengths.clone().fold(key.len(), usize::min);
    made.damaged |= lengths.clone().any(|other| other != key.len());
    made.damaged |= made.aggregated && key.len() != strings.len();
    made.damaged |= made.aggregated && !names.is_empty();
    made.rows
        .reserve_exact(length.min(strings.len().max(names.len())));
    for at in 0..length {
        let name = match made.aggregated {
            true => at,
            false => usize::try_from(names[at]).unwrap_or(usize::MAX),
        };
        let Some(path) = strings.get(name) else {
            made.damaged = true;
            break;
        };
        let mut sums = Sums::default();
        for ((_, field), column) in COLUMNS.iter().zip(&columns) {
            if let Some(kb) = column.get(at) {
                sums.set(*field, bytes_of(*kb));
            }
        }
        made.rows.push(SmapsRow {
            path: Some(Arc::clone(path)),
            count: counts.as_ref().map_or(1, |counts| counts[at]),
            sums,
            module: None,
        });
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Trace;
    use crate::made::{bytes, number, varint};
    use android_memory::smaps::{Form, Smaps};

    fn column(field: u32, numbers: &[u64]) -> Vec<u8> {
        let packed: Vec<u8> = numbers.iter().flat_map(|value| varint(*value)).collect();
        bytes(field, &packed)
    }

    fn open(packets: &[Vec<u8>]) -> Trace {
        let trace: Vec<u8> = packets
            .iter()
            .flat_map(|smaps| {
                let packet = [number(8, 77), number(10, 1), bytes(68, smaps)].concat();
                bytes(1, &packet)
            })
            .collect();
        Trace::open(Box::new(std::io::Cursor::new(trace))).unwrap()
    }

    #[test]
    fn entries_come_with_what_they_say_and_no_more() {
        let path = "/memfd:jit-cache (deleted)";
        let mapping = [
            bytes(1, path.as_bytes()),
            number(2, 64),
            number(3, 20),
            number(15, 21),
            number(6, 0x1000),
        ]
        .concat();
        let packet = [
            number(1, 7),
            bytes(2, &mapping),
            bytes(2, &[]),
            number(4, 2),
        ]
        .concat();
        let mut trace = open(&[packet]);
        assert_eq!(
            trace.smaps(),
            [SmapsFacts {
                pid: 7,
                process: String::new(),
                time_ns: 77,
                writer: SmapsWriter::ArtPostFork,
            }]
        );
        let made = trace.read_smaps(0).unwrap();
        assert!(!made.damaged && !made.aggregated);
        let row = &made.rows[0];
        assert_eq!(
            (row.trimmed(), row.is_deleted()),
            (Some("/memfd:jit-cache"), true)
        );
        assert_eq!(row.sums.get(Field::PrivateDirty), Some(20 << 10));
        assert_eq!(row.sums.get(Field::Rss), None);
        assert_eq!(made.rows[1].path, None);
        let smaps = Smaps::of_rows(&made);
        assert_eq!(smaps.mappings[0].end, 0x1000 + (64 << 10));
        assert_eq!(trace.health().smaps_errors, 0);
    }

    #[test]
    fn columns_by_mapping_and_by_name() {
        let table = [bytes(1, b""), bytes(1, b"/a.so"), bytes(1, b"[heap]")].concat();
        let by_mapping = [
            &table[..],
            &column(2, &[1, 2, 1, 0]),
            &column(4, &[10, 20, 30, 40]),
            &column(13, &[1, 2, 3, 300]),
        ]
        .concat();
        let by_name = [&table[..], &column(3, &[0, 2, 1]), &column(5, &[0, 5, 6])].concat();
        let packet = |columns: &[u8]| [number(1, 9), bytes(3, columns), number(4, 3)].concat();
        let mut trace = open(&[packet(&by_mapping), packet(&by_name)]);
        let mappings = trace.read_smaps(0).unwrap();
        let names: Vec<&str> = mappings
            .rows
            .iter()
            .map(|r| r.path.as_deref().unwrap())
            .collect();
        assert_eq!(names, ["/a.so", "[heap]", "/a.so", ""]);
        assert_eq!(mappings.rows[3].sums.get(Field::Pss), Some(300 << 10));
        assert!(!mappings.damaged);
        let sums = trace.read_smaps(1).unwrap();
        assert!(sums.aggregated && !sums.damaged);
        assert_eq!(sums.rows[1].count, 2);
        assert_eq!(sums.rows[2].sums.get(Field::Rss), Some(6 << 10));
        assert_eq!(Smaps::of_rows(&sums).form, Form::ByName);
        assert_eq!(trace.health().smaps_errors, 0);
    }

    #[test]
    fn columns_of_unequal_length_end_with_the_shortest_and_are_counted() {
        let table = [bytes(1, b""), bytes(1, b"/a.so")].concat();
        let short = [&table[..], &column(2, &[1, 1, 1]), &column(4, &[10, 20])].concat();
        let wrong = [&table[..], &column(2, &[1, 9, 1]), &column(4, &[1, 2, 3])].concat();
        let cut = [&table[..], &column(2, &[1, 1]), &bytes(4, &[1, 0x80])].concat();
        let packet = |columns: &[u8]| bytes(3, columns);
        let mut trace = open(&[packet(&short), packet(&wrong), packet(&cut)]);
        let rows: Vec<usize> = (0..3)
            .map(|at| {
                let made = trace.read_smaps(at).unwrap();
                assert!(made.damaged);
                made.rows.len()
            })
            .collect();
        assert_eq!(rows, [2, 1, 1]);
        assert_eq!(trace.health().smaps_errors, 3);
    }
}
