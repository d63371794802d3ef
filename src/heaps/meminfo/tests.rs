//! Documents of texts, and differences between two.

use super::*;
use android_memory::meminfo::Meminfo;
use heaptap_model::timeline::Source;

const BEFORE: &str = "\
Applications Memory Usage (in Kilobytes):
Uptime: 100 Realtime: 1000

** MEMINFO in pid 7 [com.example.app] **
                   Pss  Private  Private  SwapPss     Heap     Heap     Heap
                 Total    Dirty    Clean    Dirty     Size    Alloc     Free
                ------   ------   ------   ------   ------   ------   ------
  Native Heap     1000      900        0       50     2048     1000     1048
      Ashmem        10       10        0        0                           
        TOTAL     1063      910        0       50     2048     1000     1048
 
 App Summary
                       Pss(KB)
                        ------
           Java Heap:        0
         Native Heap:      900
              System:      153
 
               TOTAL:     1063       TOTAL SWAP PSS:       50
 
 Objects
               Views:       10         ViewRootImpl:        1
          Activities:        1
";

fn document(text: &str) -> Document {
    Document::new(&Meminfo::parse(text), "a".to_owned(), Source::Meminfo)
}

fn grown() -> Document {
    let text = BEFORE
        .replace("pid 7", "pid 9")
        .replace("Realtime: 1000", "Realtime: 3500")
        .replace("1000      900", "1500     1400")
        .replace("      Ashmem        10", "    GL mtrack        10")
        .replace("Activities:        1", "Activities:        4");
    document(&text)
}

#[test]
fn a_document_has_bytes_and_tells_what_does_not_add_up() {
    let document = document(BEFORE);
    let process = &document.processes[0];
    assert_eq!(process.rows[0].values["private_dirty"], 900 << 10);
    let [difference] = &process.differences[..] else {
        panic!("{:?}", process.differences);
    };
    assert_eq!(
        (difference.column.as_str(), difference.rule.as_str()),
        ("pss", "rows-and-swap")
    );
    assert_eq!(difference.device - difference.rows, 3 << 10);
    let total = process
        .summary
        .iter()
        .find(|row| row.label == "TOTAL SWAP PSS")
        .unwrap();
    assert_eq!(total.values["swap"], 50 << 10);
    assert_eq!(
        process
            .figures()
            .iter()
            .filter(|figure| figure.section == "objects")
            .count(),
        3
    );
}

#[test]
fn rows_are_compared_with_their_like() {
    let changes = diff(&document(BEFORE), &grown()).unwrap();
    assert_eq!(changes.between_ms, Some(2500));
    let [process] = &changes.processes[..] else {
        panic!("{changes:?}");
    };
    assert!(process.restarted);
    let growth = |row: &str, column: &str| {
        let found = process
            .rows
            .iter()
            .find(|r| r.row == row && r.column == column);
        found.map(|found| (found.before, found.after, found.growth))
    };
    assert_eq!(
        growth("Native Heap", "private_dirty"),
        Some((Some(900 << 10), Some(1400 << 10), 500 << 10))
    );
    assert_eq!(
        growth("Ashmem", "pss"),
        Some((Some(10 << 10), None, -10 << 10))
    );
    assert_eq!(
        growth("GL mtrack", "pss"),
        Some((None, Some(10 << 10), 10 << 10))
    );
    assert_eq!(growth("Activities", "count"), Some((Some(1), Some(4), 3)));
}

#[test]
fn the_total_of_the_summary_is_one_row_under_both_names() {
    let renamed = BEFORE.replace("    TOTAL:     1063", "TOTAL PSS:     1263");
    let changes = diff(&document(BEFORE), &document(&renamed)).unwrap();
    let rows = changes.processes[0].rows.iter();
    let of_summary = rows.filter(|row| row.section == "summary" && row.column == "pss");
    let totals: Vec<_> = of_summary
        .filter(|row| row.row.starts_with("TOTAL"))
        .collect();
    assert_eq!(totals.len(), 1, "{totals:?}");
    assert_eq!(totals[0].growth, 200 << 10);
}

#[test]
fn other_processes_stand_alone() {
    let mut other = grown();
    other.processes[0].name = Some("com.example.other".to_owned());
    let error = diff(&document(BEFORE), &other).unwrap_err();
    assert!(matches!(error, MeminfoError::NothingInCommon { .. }));
    let mut more = grown();
    more.processes.extend(other.processes);
    let changes = diff(&document(BEFORE), &more).unwrap();
    assert_eq!(changes.alone.len(), 1);
    assert_eq!(changes.alone[0].side, "after");
}

#[test]
fn values_of_one_name_are_compared_once_each() {
    let before = document(BEFORE);
    let mut after = document(BEFORE);
    let rows = &mut after.processes[0].rows;
    let mut second = rows[0].clone();
    assert_eq!(second.label, "Native Heap");
    second.values.insert("pss".to_owned(), 5 << 10);
    rows.push(second);
    let changes = diff(&before, &after).unwrap();
    let rows = changes.processes[0].rows.iter();
    let of_pss = rows
        .filter(|row| (row.section, &*row.row, &*row.column) == ("table", "Native Heap", "pss"));
    let of_pss: Vec<_> = of_pss.map(|row| (row.before, row.after)).collect();
    let kept = (Some(1000 << 10), Some(1000 << 10));
    assert_eq!(of_pss, [kept, (None, Some(5 << 10))]);
}
