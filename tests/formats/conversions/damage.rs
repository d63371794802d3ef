//! Hostile and damaged bytes: a clear error or a partial result marked as such, never a panic, and
//! no memory beyond a small multiple of the input.

use super::{fixtures, judge};
use heaptap_base::error::Classified as _;
use heaptap_model::profile::{Health, HeapDump};
use perfetto_heap::{Trace, TraceError};
use std::io::{self, Cursor, Read, Seek, SeekFrom};

fn read(bytes: &[u8]) -> (Vec<HeapDump>, Health) {
    let mut trace = Trace::open(Box::new(Cursor::new(bytes.to_vec()))).expect("memory can be read");
    let mut dumps = Vec::new();
    let health = trace
        .read_dumps(|dump| -> Result<(), TraceError> {
            dumps.push(dump);
            Ok(())
        })
        .expect("memory can be read");
    (dumps, health)
}

/// A file on a disk that fails.
struct Failing;

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("a bad sector"))
    }
}

impl Seek for Failing {
    fn seek(&mut self, _: SeekFrom) -> io::Result<u64> {
        Ok(1000)
    }
}

#[test]
fn a_failing_disk_is_no_damage() {
    let error = Trace::open(Box::new(Failing)).map(drop).unwrap_err();
    assert_eq!(error.kind(), "trace-unreadable");
}

fn load(name: &str) -> Vec<u8> {
    std::fs::read(fixtures().join(name)).expect("a fixture")
}

/// Returns whether the file itself is damaged: it has unreadable bytes, or parts that are
/// missing or contradict each other in a way that no recording produces.
fn is_damaged(health: &Health) -> bool {
    health.damage_count > 0
        || health.reordered_profile_packets > 0
        || health.inconsistent_profile_packets > 0
        || health.adopted_profile_packets > 0
        || health.packets_without_sequence > 0
        || health.ends_early
        || health.repeated_profile_packets > 0
}

#[test]
fn every_prefix_gives_the_dumps_it_holds_and_says_that_it_is_cut() {
    let bytes = load("c_cont.pftrace");
    let (all, health) = read(&bytes);
    assert!(!is_damaged(&health));
    let mut last = 0;
    for cut in 0..bytes.len() {
        let (dumps, health) = read(&bytes[..cut]);
        let whole = dumps.iter().filter(|dump| !dump.unfinished).count();
        assert!(whole >= last, "{cut}: a dump is lost again");
        for (dump, original) in dumps.iter().zip(&all) {
            if !dump.unfinished {
                assert_eq!(dump.totals(), original.totals(), "{cut}");
                assert_eq!(dump.samples.len(), original.samples.len(), "{cut}");
            }
        }
        // The first packets are clock snapshots: such a short prefix is not a recording yet, and
        // the conversion reports that. The last packet contains only statistics.
        let no_more_than_clocks = !is_damaged(&health) && dumps.is_empty() && cut < 500;
        let only_statistics_missing = whole == all.len() && cut > bytes.len() - 140;
        assert!(
            is_damaged(&health) || no_more_than_clocks || only_statistics_missing,
            "{cut}: nothing is said"
        );
        last = whole;
    }
    assert_eq!(last, all.len());
}

/// xorshift64*: mutations are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit
    }
}

fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len());
        let span = random.below(64).min(bytes.len() - at);
        match random.below(7) {
            0 => bytes[at] = random.below(256) as u8,
            1 => bytes[at] ^= 1 << random.below(8),
            2 => bytes[at..at + span].fill(0),
            3 => bytes[at..at + span].fill(0xff),
            4 => drop(bytes.drain(at..at + span)),
            5 => {
                let copy = bytes[at..at + span].to_vec();
                let to = random.below(bytes.len());
                bytes.splice(to..to, copy);
            }
            _ => {
                let other = random.below(bytes.len());
                bytes.swap(at, other);
            }
        }
        if bytes.is_empty() {
            bytes.push(0);
        }
    }
}

#[test]
fn ten_thousand_mutations_neither_panic_nor_hang() {
    let originals = [
        load("c_max.pftrace"),
        load("c_sigusr1.pftrace"),
        load("multi_deflate.pftrace"),
        load("overrun.pftrace"),
    ];
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for round in 0..10_000 {
        let mut bytes = originals[round % originals.len()].clone();
        mutate(&mut bytes, &mut random);
        let (dumps, _) = read(&bytes);
        // Samples come from bytes of the file, so a dump cannot have more.
        let samples: usize = dumps.iter().map(|dump| dump.samples.len()).sum();
        assert!(samples <= 64 * bytes.len(), "round {round}: {samples}");
    }
}

#[test]
fn a_mutated_archive_or_stream_is_an_error_or_a_trace() {
    let directory = tempfile::tempdir().expect("a temporary folder");
    let path = directory.path().join("mutant");
    let originals = [load("c_cont_gz.pftrace"), load("c_cont_bundle.pftrace")];
    let mut random = Random(42);
    for round in 0..400 {
        let mut bytes = originals[round % originals.len()].clone();
        mutate(&mut bytes, &mut random);
        std::fs::write(&path, &bytes).expect("a file");
        // Both are correct; a panic is not.
        let _ = judge::convert(&path);
    }
}

#[test]
fn claims_of_size_cost_nothing() {
    // A packet of a gigabyte, a string of one, ids beyond all bounds, a bundle of nothing.
    let cases: [&[u8]; 5] = [
        &[0x0a, 0xff, 0xff, 0xff, 0xff, 0x03, 0x50, 1],
        &[
            0x0a, 12, 0x62, 8, 0x2a, 0xff, 0xff, 0xff, 0xff, 0x03, 1, 1, 0x50, 1,
        ],
        &[
            0x0a, 22, 0x62, 18, 0x3a, 16, 0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
            0xff, 1, 0x10, 0xff, 0xff, 0xff, 0x7f, 0x50, 1,
        ],
        &[0x0a, 5, 0x92, 0x03, 0, 0x50, 1],
        &[0x0a, 6, 0xaa, 0x08, 1, 0, 0x50, 1],
    ];
    for bytes in cases {
        let (dumps, _) = read(bytes);
        assert!(dumps.is_empty());
    }
}
