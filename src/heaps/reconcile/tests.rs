use std::path::Path;

use super::*;
use android_memory::reconcile::Missing;
use heaptap_model::timeline::{Entry, Kept, Observation, Resident, Source, Timeline};
use heaptap_results::manifest::{Companions, JavaAllocations, Manifest, Session};

const MIB: i64 = 1 << 20;
const MOMENT_NS: u64 = 100_000_000_000;
const TEXT: &str = "\
** MEMINFO in pid 7 [com.example.app] **
                   Pss  Private  Private  SwapPss      Rss     Heap     Heap     Heap
                 Total    Dirty    Clean    Dirty    Total     Size    Alloc     Free
                ------   ------   ------   ------   ------   ------   ------   ------
  Native Heap    10240    10240        0        0    20480    30720    20480    10240
     .so mmap     1024      512      512        0    10240
   EGL mtrack    30720    30720        0        0    30720
    GL mtrack    10240    10240        0        0    10240
      Unknown     1024     1024        0        0     1024
        TOTAL    53248    52736      512        0    72704    30720    20480    10240
";

/// Returns a directory with a complete meminfo of a label (or of the end), and samples of the
/// kernel's value.
fn directory(label: &str, samples: &[(u64, u64)]) -> (tempfile::TempDir, Timeline) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("01.txt"), TEXT).unwrap();
    let entry = |boot_ns, seen| Entry {
        boot_ns,
        pid: 7,
        cost: None,
        seen,
    };
    let kept = Kept {
        what: "meminfo".to_owned(),
        file: "01.txt".to_owned(),
        label: label.to_owned(),
        number: 1,
    };
    let mut entries = vec![entry(MOMENT_NS, Observation::Captured(kept))];
    for (boot_ns, rss) in samples {
        let resident = Resident::new(Source::Status, *rss);
        entries.push(entry(*boot_ns, Observation::Resident(resident)));
    }
    (dir, Timeline { entries })
}

fn only(directory: &Path, timeline: &Timeline) -> Table {
    let mut moments = of_directory(directory, &[], timeline);
    assert_eq!(moments.len(), 1);
    moments.remove(0).table
}

/// The RSS of a table of such samples: value and source.
fn rss(samples: &[(u64, u64)]) -> (i64, String) {
    let (dir, timeline) = directory("", samples);
    let table = only(dir.path(), &timeline);
    assert!(
        table
            .elsewhere
            .iter()
            .all(|area| !area.name.contains("mtrack")),
        "{:?}",
        table.elsewhere
    );
    let row = table.figure(Figure::ProcessResident).unwrap();
    (row.bytes, row.remark())
}

#[test]
fn the_kernels_rss_goes_before_meminfos_sum_of_the_same_moment() {
    let vm_rss = 33 << 20;
    let (bytes, remark) = rss(&[
        (MOMENT_NS - 20_000_000_000, 1 << 20),
        (MOMENT_NS + 800_000_000, vm_rss),
    ]);
    assert_eq!(bytes, 33 * MIB);
    assert!(
        remark.starts_with("/proc/PID/status: all resident pages"),
        "{remark}"
    );
}

#[test]
fn meminfos_rss_is_that_of_the_process_once_drivers_memory_is_out_of_it() {
    // 71 MiB with 40 MiB of graphics.
    for samples in [&[][..], &[(MOMENT_NS - 20_000_000_000, 1 << 20)]] {
        let (bytes, remark) = rss(samples);
        assert_eq!(bytes, 31 * MIB);
        assert!(
            remark.starts_with("dumpsys meminfo: TOTAL RSS, without"),
            "{remark}"
        );
    }
}

/// Returns the missing value, with its advice, for a directory with this manifest.
fn missing(label: &str, manifest: &Manifest, figure: Figure) -> Missing {
    let (dir, timeline) = directory(label, &[]);
    let text = serde_json::to_vec(manifest).unwrap();
    std::fs::write(dir.path().join("manifest.json"), text).unwrap();
    let table = only(dir.path(), &timeline);
    let found = table.missing.into_iter().find(|m| m.figure == figure);
    found.unwrap()
}

fn recorded(with: &[&str], snapshots_by: Option<&str>) -> Manifest {
    Manifest {
        session: Some(Session {
            id: String::new(),
            remote_path: String::new(),
            boot_id: None,
            snapshots_by: snapshots_by.map(str::to_owned),
        }),
        companion: Some(Companions {
            with: with.iter().map(|&word| word.to_owned()).collect(),
            ..Companions::default()
        }),
        ..Manifest::default()
    }
}

#[test]
fn what_was_done_is_not_advised() {
    let both = ["meminfo", "smaps"];
    let of_label = missing("a", &recorded(&both, None), Figure::Profiled);
    let help = of_label.help.unwrap();
    assert!(help.contains("--snapshots"), "{help}");
    let caused = recorded(&both, Some("signal"));
    assert_eq!(missing("a", &caused, Figure::Profiled).help, None);
    assert_eq!(missing("a", &caused, Figure::MallocInfo).help, None);
    let end = missing("", &recorded(&both, None), Figure::Profiled);
    assert_eq!(end.help, None);
    assert!(end.why.contains("no dump of this process"), "{}", end.why);

    let without = recorded(&["meminfo"], Some("signal"));
    let help = missing("a", &without, Figure::MallocInfo).help.unwrap();
    assert!(help.contains("smaps"), "{help}");
}

#[test]
fn a_recording_of_java_allocations_is_said_to_be_one() {
    let manifest = Manifest {
        java_allocations: Some(JavaAllocations::tracked(Vec::new())),
        ..recorded(&["meminfo"], None)
    };
    for label in ["", "a"] {
        let told = missing(label, &manifest, Figure::Profiled);
        assert!(told.why.contains("Java allocations"), "{}", told.why);
        assert!(told.help.unwrap().contains("without `--java-allocations`"));
    }
}
