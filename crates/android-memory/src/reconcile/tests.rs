use super::*;
use crate::malloc_info;
use heaptap_model::timeline::HeapCells;

const MIB: u64 = 1 << 20;

fn at<T>(value: T, second: u64) -> At<T> {
    At {
        value,
        source: "a source".to_owned(),
        boot_ns: Some(second * 1_000_000_000),
    }
}

fn input() -> ReconcileInput {
    ReconcileInput {
        process: "com.example.app".to_owned(),
        pid: 7,
        heaps: vec![
            at(
                Profiled {
                    heap: "com.android.art".to_owned(),
                    unreleased: 3 << 20,
                    interval: 4096,
                    ..Profiled::default()
                },
                10,
            ),
            at(
                Profiled {
                    heap: "libc.malloc".to_owned(),
                    unreleased: 40 << 20,
                    range: Some((39 << 20, 41 << 20)),
                    interval: 4096,
                    ..Profiled::default()
                },
                10,
            ),
        ],
        malloc_info: Some(at(
            malloc_info::parse(
                b"<malloc version=\"scudo-1\"><alloc size=\"1048576\" count=\"44\"/></malloc>",
            )
            .unwrap(),
            10,
        )),
        native_heap: Some(at(
            HeapCells {
                size: 90 * MIB,
                alloc: 50 * MIB,
                free: 40 * MIB,
            },
            11,
        )),
        native_resident: Some(at(
            NativeResident {
                resident: 60 * MIB,
                by_shares: false,
                private_dirty: 58 * MIB,
                swapped: Some(20 * MIB),
            },
            11,
        )),
        resident: Some(at(200 * MIB, 30)),
        elsewhere: vec![
            Area {
                name: ".so mmap".to_owned(),
                bytes: 30 * MIB,
            },
            Area {
                name: "Dalvik Heap".to_owned(),
                bytes: 80 * MIB,
            },
            Area {
                name: "Cursor".to_owned(),
                bytes: 0,
            },
        ],
        ..ReconcileInput::default()
    }
}

fn bytes(table: &Table, from: Figure, to: Figure) -> i64 {
    table.difference(from, to).unwrap().bytes
}

fn kinds(table: &Table, from: Figure, to: Figure) -> Vec<CauseKind> {
    let causes = &table.difference(from, to).unwrap().causes;
    causes.iter().map(|cause| cause.kind).collect()
}

#[test]
fn every_pair_of_neighbours_has_its_difference_and_its_causes() {
    let table = Table::from_input(&input());
    let (profiled, alloc) = (Figure::Profiled, Figure::HeapAlloc);
    let (resident, all) = (Figure::NativeResident, Figure::ProcessResident);
    assert_eq!(bytes(&table, profiled, alloc), 10 << 20);
    assert_eq!(bytes(&table, Figure::MallocInfo, alloc), 6 << 20);
    assert_eq!(bytes(&table, alloc, Figure::HeapSize), 40 << 20);
    assert_eq!(bytes(&table, alloc, resident), 10 << 20);
    assert_eq!(bytes(&table, resident, all), 140 << 20);
    assert_eq!(
        kinds(&table, profiled, alloc),
        [
            CauseKind::BeforeRecording,
            CauseKind::Sampling,
            CauseKind::Rounding,
            CauseKind::ThreadCaches
        ]
    );
    assert_eq!(
        kinds(&table, alloc, resident),
        [CauseKind::Swap, CauseKind::Fragmentation]
    );
    // 60 resident and 20 swapped, 50 live.
    let causes = &table.difference(alloc, resident).unwrap().causes;
    assert_eq!(causes[0].bytes, Some(-(20 << 20)));
    assert_eq!(causes[1].bytes, Some(30 << 20));
    let sum: i64 = causes.iter().filter_map(|cause| cause.bytes).sum();
    assert_eq!(sum, bytes(&table, alloc, resident));
    assert!(causes[1].remedy.as_ref().unwrap().contains("M_PURGE"));
    assert_eq!(
        kinds(&table, resident, all),
        [CauseKind::NotMalloc, CauseKind::Moments]
    );
    let about = &table.difference(resident, all).unwrap().causes[0].about;
    assert!(
        about.contains("Dalvik Heap 80.0 MiB, .so mmap 30.0 MiB"),
        "{about}"
    );
    assert_eq!(table.elsewhere.len(), 2);
}

#[test]
fn figures_read_more_than_two_seconds_apart_say_so_each() {
    let mut input = input();
    input.boot_ns = Some(11_000_000_000);
    input.heaps[1].boot_ns = Some(6_500_000_000);
    let table = Table::from_input(&input);
    let apart = |figure| table.figure(figure).unwrap().apart_ms;
    assert_eq!(apart(Figure::Profiled), Some(-4500));
    assert_eq!(apart(Figure::MallocInfo), None);
    assert_eq!(apart(Figure::HeapAlloc), None);
    assert_eq!(apart(Figure::ProcessResident), Some(19_000));
    assert!(
        Table::from_input(&ReconcileInput {
            boot_ns: None,
            ..input
        })
        .rows
        .iter()
        .all(|row| row.apart_ms.is_none())
    );
}

#[test]
fn a_profile_from_the_start_lacks_only_what_came_before_heapprofd() {
    let mut input = input();
    input.heaps[1].value.from_startup = true;
    let table = Table::from_input(&input);
    let kinds = kinds(&table, Figure::Profiled, Figure::HeapAlloc);
    assert_eq!(kinds[0], CauseKind::BeforeZygoteInit);
    assert_eq!(table.rows[0].figure, Figure::Profiled);
    assert_eq!(table.rows[1].figure, Figure::OtherHeaps);
}

#[test]
fn a_profile_above_the_allocator_is_not_said_to_lack_anything() {
    let mut input = input();
    input.heaps[1].value.unreleased = 52 << 20;
    input.heaps[1].value.range = Some((50 << 20, 54 << 20));
    let table = Table::from_input(&input);
    let (from, to) = (Figure::Profiled, Figure::HeapAlloc);
    assert_eq!(bytes(&table, from, to), -(2 << 20));
    assert_eq!(kinds(&table, from, to), [CauseKind::Sampling]);
}

#[test]
fn without_meminfo_the_profile_is_held_to_malloc_info_and_nothing_is_made_up() {
    let input = ReconcileInput {
        native_heap: None,
        native_resident: None,
        missing: vec![Missing {
            figure: Figure::HeapAlloc,
            why: "not read".to_owned(),
            help: None,
        }],
        ..input()
    };
    let table = Table::from_input(&input);
    assert_eq!(bytes(&table, Figure::Profiled, Figure::MallocInfo), 4 << 20);
    assert_eq!(table.differences.len(), 1);
    assert_eq!(table.missing.len(), 1);
    let json = serde_json::to_string(&table).unwrap();
    assert_eq!(serde_json::from_str::<Table>(&json).unwrap(), table);
    assert_eq!(
        Table::from_input(&ReconcileInput::default()).differences,
        []
    );
}

#[test]
fn memory_never_touched_makes_residence_smaller_than_what_is_live() {
    let mut input = input();
    input.native_resident = Some(at(
        NativeResident {
            resident: 30 * MIB,
            by_shares: true,
            private_dirty: 30 * MIB,
            swapped: None,
        },
        11,
    ));
    let table = Table::from_input(&input);
    assert_eq!(
        kinds(&table, Figure::HeapAlloc, Figure::NativeResident),
        [CauseKind::Pages, CauseKind::Shares]
    );
    assert!(table.figure(Figure::NativeSwapped).is_none());
    assert_eq!(
        table.figure(Figure::NativeResident).unwrap().name,
        "Native Heap PSS"
    );
}
