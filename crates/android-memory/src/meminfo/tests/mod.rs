//! Handwritten texts in every layout.

use super::*;
use heaptap_model::timeline::Source;
use std::collections::HashSet;

/// Android 4.3: no Private Clean, no swap.
const OLD: &str = "\
Applications Memory Usage (kB):
Uptime: 100 Realtime: 200

** MEMINFO in pid 12 [com.example.app] **
                         Shared  Private     Heap     Heap     Heap
                   Pss    Dirty    Dirty     Size    Alloc     Free
                ------   ------   ------   ------   ------   ------
       Native       20        8       18    11296     7927      408
       Dalvik    11976     4696    11916    13388     7454     5934
    Other dev       56       56        0
     .so mmap     2507     2028      620
      Unknown    13094      504    13092
        TOTAL    27653     7292    25646    24684    15381     6342
 
 Objects
               Views:      115         ViewRootImpl:        1
         AppContexts:        6           Activities:        1
    Death Recipients:        0
 
 SQL
         MEMORY_USED:      462
  PAGECACHE_OVERFLOW:       83          MALLOC_SIZE:       62
 
 DATABASES
      pgsz     dbsz   Lookaside(b)          cache  Dbname
         4       48             37        11/22/4  /data/data/com.example.app/databases/my notes.db
                                           0/12/0  (attached) temp
 
 Asset Allocations
    zip:/data/app/base.apk:/assets/font.ttf: 132K
";

/// Android 14: SwapPss, RSS, details, a label that is too wide, pools, native allocations.
const NEW: &str = "\
Applications Memory Usage (in Kilobytes):
Uptime: 277172845 Realtime: 423847246

** MEMINFO in pid 21936 [com.example.app:remote] **
                   Pss  Private  Private  SwapPss      Rss     Heap     Heap     Heap
                 Total    Dirty    Clean    Dirty    Total     Size    Alloc     Free
                ------   ------   ------   ------   ------   ------   ------   ------
  Native Heap    16840    16804        0     6764    19428    34024    25037     5553
  Dalvik Heap     9110     9032        0      136    13164    36444     9111    27333
 Dalvik Other     2345     2300        0       12     4000                           
     .so mmap     1000      100       50        0    30000                           
    .art mmap      700      600       10       30      900                           
    GL mtrack      500      500        0        0      500                           
  Vendor blob       30       -4        0        0       40                           
        TOTAL    37467    29332       60     6942    68032    70468    34148    32886
 
 Dalvik Details
        .Heap     3613     3347      266        0     4000                           
.CompilerMetadata       46       44        0        0       86                           
      .AppJIT       46       44        6        0       86                           
 
 App Summary
                       Pss(KB)                        Rss(KB)
                        ------                         ------
           Java Heap:     9642                          14064
         Native Heap:    16804                          19428
                Code:      200                          30086
               Stack:        0                              0
            Graphics:      500                            500
       Private Other:     2246
              System:     8075
             Unknown:                                    4000
 
           TOTAL PSS:    37467            TOTAL RSS:    68032       TOTAL SWAP PSS:     6942
 
 Objects
               Views:       24         ViewRootImpl:        3
    Death Recipients:        0             WebViews:        0
 
 Native Allocations
                         Count                      Total(kB)
   Bitmap (malloced):        3                           1200
Bitmap (nonmalloced):        1                             20
 
 SQL
         MEMORY_USED:        0
  PAGECACHE_OVERFLOW:        0          MALLOC_SIZE:        0
 
 DATABASES
      pgsz     dbsz   Lookaside(b) cache hits cache misses cache size  Dbname
PER CONNECTION STATS
         4       20             58     5    20     6  /data/user/0/a b.db
                                       0     1     2  (attached) temp
POOL STATS
     cache hits  cache misses    cache size  Dbname
              5            21            26  /data/user/0/a b.db
";

fn only(meminfo: &Meminfo) -> &Process {
    let processes: Vec<&Process> = meminfo.processes().collect();
    assert_eq!(processes.len(), 1);
    processes[0]
}

/// Parses a text, reads everything in it, and checks that its unknown lines are those of the text.
fn look_through(text: &str) -> Meminfo {
    let meminfo = Meminfo::parse(text);
    let bare = |line: &str| line.trim_end_matches('\r').to_owned();
    let plain = heaptap_base::text::plain_str(text);
    let lines: HashSet<String> = plain.split('\n').map(bare).collect();
    let of_processes = meminfo.processes().flat_map(Process::texts);
    for line in meminfo.unknown().chain(of_processes.map(|(_, line)| line)) {
        assert!(lines.contains(&bare(line)), "{line:?} in {text:?}");
    }
    for process in meminfo.processes() {
        process.parts(Source::Meminfo);
        process.table().map(Table::sums);
    }
    meminfo.lists().for_each(|list| {
        list.sum();
    });
    meminfo.trouble();
    meminfo
}

/// The numbers of a name, by column.
fn values<'a>(pairs: &'a Pairs, name: &str) -> &'a [Option<i64>] {
    let entry = pairs.entries().find(|entry| entry.name == name);
    &entry.unwrap_or_else(|| panic!("no {name}")).values
}

#[test]
fn dalviks_columns_are_read() {
    let meminfo = Meminfo::parse(OLD);
    let process = only(&meminfo);
    let texts: Vec<_> = process.texts().collect();
    let asset = "    zip:/data/app/base.apk:/assets/font.ttf: 132K";
    assert_eq!(texts, [(Some("Asset Allocations"), asset)]);
    assert_eq!(process.pid, Some(12));
    assert_eq!(meminfo.clocks().map(|c| c.realtime_ms), Some(200));
    let table = process.table().unwrap();
    assert_eq!(
        table.cell("Dalvik", &Column::PrivateDirty),
        Some(11916 * 1024)
    );
    assert_eq!(table.cell("Other dev", &Column::HeapSize), None);
    assert!(table.sums().iter().all(|sum| sum.difference() == 0));
    assert_eq!(process.object("Activities"), Some(1));
    let databases: Vec<&Database> = process.databases().unwrap().lines.values().collect();
    assert_eq!(
        databases[0].name,
        "/data/data/com.example.app/databases/my notes.db"
    );
    assert_eq!(
        (databases[1].page, databases[1].cache[0].as_str()),
        (None, "0/12/0")
    );
    let parts = process.parts(Source::Meminfo).unwrap();
    assert_eq!(parts.native, 18 * 1024);
    assert_eq!(parts.java_heap.unwrap().alloc, 7454 * 1024);
    assert_eq!(parts.system, (27653 - 25646) * 1024);
    assert_eq!((parts.swap, parts.total_rss), (None, None));
}

#[test]
fn todays_columns_are_read() {
    let meminfo = Meminfo::parse(NEW);
    let process = only(&meminfo);
    assert_eq!(process.texts().count(), 0);
    let table = process.table().unwrap();
    assert_eq!(
        table.cell("Vendor blob", &Column::PrivateDirty),
        Some(-4 * 1024)
    );
    let details = process.details().unwrap();
    assert_eq!(
        details.cell(".CompilerMetadata", &Column::Rss),
        Some(86 * 1024)
    );
    for sum in table.sums() {
        assert_eq!(sum.difference(), 0, "{sum:?}");
    }
    let summary = process.summary().unwrap();
    // Pss and Rss.
    assert_eq!(values(summary, "Unknown"), [None, Some(4000)]);
    let allocations = process.counts("Native Allocations").unwrap();
    // Count and total.
    let bitmaps = values(allocations, "Bitmap (nonmalloced)");
    assert_eq!(bitmaps[1], Some(20));
    let databases = process.databases().unwrap();
    assert_eq!(databases.lines.values().count(), 3);
}

#[test]
fn what_the_summary_says_is_what_the_table_gives() {
    let meminfo = Meminfo::parse(NEW);
    let said = only(&meminfo).parts(Source::Meminfo).unwrap();
    assert_eq!(said.java_heap.unwrap().size, 36444 * 1024);
    let mut bare = only(&meminfo).clone();
    bare.sections
        .retain(|section| section.title.as_deref() != Some("App Summary"));
    assert_eq!(bare.parts(Source::Meminfo).unwrap(), said);
}

#[test]
fn without_the_app_heaps_have_no_figures() {
    let local = NEW.replace("34024    25037     5553", "    0        0        0");
    let local = local.split(" \n App Summary").next().unwrap();
    let local = local.split(" \n Dalvik Details").next().unwrap();
    let meminfo = Meminfo::parse(local);
    let parts = only(&meminfo).parts(Source::MeminfoLocal).unwrap();
    assert_eq!(parts.native_heap, None);
    assert_eq!(parts.native, 16804 * 1024);
}

#[test]
fn a_native_process_has_neither_name_nor_pid() {
    let text = NEW.replace("** MEMINFO in pid 21936 [com.example.app:remote] **\n", "");
    let meminfo = look_through(&text);
    let process = only(&meminfo);
    assert_eq!((process.pid, &process.name), (None, &None));
    assert!(process.table().is_some());
}

#[test]
fn a_process_that_is_missing_or_dies_is_told() {
    let none = Meminfo::parse("No process found for: com.example.app\n");
    assert_eq!(none.no_process(), Some("com.example.app"));
    let dying = "Uptime: 1 Realtime: 2\n\n** MEMINFO in pid 3 [a] **\nGot RemoteException!\n";
    let dying = Meminfo::parse(dying);
    assert_eq!(dying.trouble(), Some("Got RemoteException!"));
    assert_eq!(only(&dying).parts(Source::Meminfo), None);
}

#[test]
fn lines_of_windows_are_those_of_others_and_torn_ends_are_read() {
    let crlf = NEW.replace('\n', "\r\n");
    assert_eq!(Meminfo::parse(&crlf), Meminfo::parse(NEW));
    assert_eq!(Meminfo::parse(crlf.trim_end()), Meminfo::parse(NEW));
    for end in ["\r\r\n", "\r", "\n\r"] {
        let odd = NEW.replace('\n', end);
        assert_eq!(Meminfo::parse(&odd), Meminfo::parse(NEW), "{end:?}");
    }
    for end in 0..NEW.len() {
        look_through(&NEW[..end]);
    }
    for (text, unknown) in [
        ("\r\n", &[][..]),
        ("\n", &[]),
        ("a\r\nb", &["a", "b"]),
        ("a\r\nb\n", &["a", "b"]),
        ("a\rb\n", &["a\rb"]),
        ("\r", &[]),
    ] {
        let meminfo = look_through(text);
        assert_eq!(meminfo.unknown().collect::<Vec<_>>(), unknown, "{text:?}");
    }
}

#[test]
fn digits_of_an_apps_locale_are_read() {
    let arabic = NEW.replace(
        "      24         ViewRootImpl:        3",
        "      ٢٤         ViewRootImpl:        ٣",
    );
    let meminfo = Meminfo::parse(&arabic);
    assert_eq!(only(&meminfo).object("ViewRootImpl"), Some(3));
    assert_eq!(only(&meminfo).texts().count(), 0);
}

#[test]
fn columns_go_by_their_headers() {
    let text = "\
Applications Memory Usage (in Kilobytes):
                   Rss   Vendor     Heap
                 Total    Stuff     Size
                ------   ------   ------
  Native Heap        7                 9
";
    let meminfo = Meminfo::parse(text);
    let table = only(&meminfo).table().unwrap();
    assert_eq!(table.cell("Native Heap", &Column::Rss), Some(7 * 1024));
    assert_eq!(
        table.cell("Native Heap", &Column::Other("Vendor Stuff".into())),
        None
    );
    assert_eq!(table.cell("Native Heap", &Column::HeapSize), Some(9 * 1024));
}

/// The whole device, Android 13, with a line added by a vendor.
const PHONE: &str = "\
Applications Memory Usage (in Kilobytes):
Uptime: 3915314 Realtime: 3950084

Total RSS by process:
    524,336K: system (pid 1117)
    445,240K: com.example.app (pid 17043 / activities) state 2 oom 0

Total RSS by OOM adjustment:
  3,059,892K: Native
        179,708K: zygote64 (pid 760)
         -1,000K: odd (pid 7)

Total PSS by process:
    256,555K: system (pid 1117)                                            (   45,000K in swap)
     28,965K: com.example.app (user 10) (pid 17043 / activities)           (        0K in swap)

Total PSS by category:
    189,490K: .so mmap                                                     (    1,234K in swap)

Total RAM: 7,791,836K (status normal)
 Free RAM: 3,359,799K (  209,011K cached pss + 2,498,404K cached kernel +   652,384K free)
DMA-BUF:   183,008K (   18,008K mapped +   165,000K unmapped)
 Used RAM: 4,059,695K (2,771,419K used pss + 1,288,276K kernel)
 Lost RAM:   -72,330K
     ZRAM:        12K physical used for         0K in swap (4,194,300K total swap)
   Tuning: 256 (large 512), oom   322,560K, restore limit   107,520K (high-end-gfx)
";

#[test]
fn the_whole_phone_is_read() {
    let meminfo = Meminfo::parse(PHONE);
    let lists: Vec<&List> = meminfo.lists().collect();
    assert_eq!(lists.len(), 4);
    let rss: Vec<&Item> = lists[0].items.values().collect();
    assert_eq!(
        (rss[1].name(), rss[1].pid()),
        ("com.example.app", Some(17043))
    );
    let oom: Vec<&Item> = lists[1].items.values().collect();
    assert_eq!(
        (oom[0].depth, oom[1].depth, oom[2].bytes),
        (0, 1, -1_024_000)
    );
    assert_eq!(lists[1].sum(), 3_059_892 * 1024);
    let pss: Vec<&Item> = lists[2].items.values().collect();
    assert_eq!(
        (lists[2].measure, pss[0].swap()),
        (Measure::Pss, Some(45_000 * 1024))
    );
    assert_eq!(lists[3].items.values().next().unwrap().name(), ".so mmap");
    let facts: Vec<&Fact> = meminfo.facts().collect();
    assert_eq!(facts.len(), 7);
    assert_eq!(facts[4].bytes(), Some(-72_330 * 1024));
    let free: Vec<(i64, &str)> = facts[1].amounts().skip(1).collect();
    assert_eq!(free[0], (209_011 * 1024, "cached pss"));
    assert_eq!(free[2], (652_384 * 1024, "free"));
    assert_eq!(meminfo.unknown().count(), 0);
}

/// The whole device, Android 4.4.
const OLD_PHONE: &str = "\
Applications Memory Usage (kB):
Uptime: 3915 Realtime: 3950

Total PSS by process:
    57904 kB: com.android.systemui (pid 611)
     1234 kB: com.example.app (pid 700 / activities)

Total PSS by OOM adjustment:
    62444 kB: System
            62444 kB: system (pid 463)

Total RAM: 1009512 kB
 Free RAM: 519412 kB (131308 cached pss + 247312 cached + 140792 free)
 Used RAM: 400000 kB (300000 used pss + 20000 buffers + 30000 shmem + 50000 slab)
 Lost RAM: 90100 kB
   Tuning: 128 (large 256), oom 122880 kB, restore limit 40960 kB (high-end-gfx)
";

#[test]
fn the_old_phone_is_read() {
    let meminfo = Meminfo::parse(OLD_PHONE);
    let lists: Vec<&List> = meminfo.lists().collect();
    assert_eq!(lists[0].items.values().next().unwrap().bytes, 57904 * 1024);
    assert_eq!(lists[1].items.values().next().unwrap().depth, 0);
    assert_eq!(lists[1].items.values().nth(1).unwrap().depth, 2);
    assert_eq!(meminfo.unknown().count(), 0);
    let free = meminfo.facts().nth(1).unwrap();
    assert_eq!(free.amounts().nth(3), Some((140_792 * 1024, "free")));
}

#[test]
fn lines_for_scripts_are_read() {
    let categories = "Dalvik Other,5,0,1,0,4,0,0,0,.so mmap,7,1,2,3,1,2,0,0";
    let line = format!(
        "4,321,com.example.app,900,800,N/A,1700,700,600,N/A,1300,200,200,N/A,400,\
         100,200,30,335,1,2,1,4,10,20,3,33,5,6,7,18,90,180,6,276,0,0,2,2,0,0,0,0,5,5,0,10,\
         {categories},11,1,4,2,18,0,21,44,1,2,329,329,82,46,/data/a.db,4,20,58,5/20/6,5/20/6"
    );
    let text = format!("time,100,200\n{line}\n");
    let meminfo = look_through(&text);
    assert_eq!(meminfo.clocks().map(|clocks| clocks.realtime_ms), Some(200));
    let process = only(&meminfo);
    assert_eq!(process.pid, Some(321));
    let table = process.table().unwrap();
    assert_eq!(
        table.cell("Native Heap", &Column::HeapAlloc),
        Some(700 * 1024)
    );
    assert_eq!(
        table.cell(".so mmap", &Column::PrivateClean),
        Some(2 * 1024)
    );
    assert_eq!(
        table.cell("Unknown", &Column::Pss),
        Some((30 - 5 - 7) * 1024)
    );
    let pss = table
        .sums()
        .into_iter()
        .find(|sum| sum.column == Column::Pss)
        .unwrap();
    assert_eq!((pss.rule, pss.difference()), (Rule::RowsAndSwap, -5 * 1024));
    assert_eq!(process.object("Activities"), Some(2));
    assert_eq!(process.object("OpenSSL Sockets"), Some(2));
    assert_eq!(
        process.counts("SQL").unwrap().value("MALLOC_SIZE"),
        Some(46)
    );
    let database = process.databases().unwrap().lines.values().next().unwrap();
    assert_eq!(
        (database.size, database.cache[0].as_str()),
        (Some(20 * 1024), "5/20/6")
    );
    assert!(process.parts(Source::Meminfo).is_some());
    // Without the app, only a comma follows the categories.
    let local = format!("{},\n", line.split(",11,1,4,2").next().unwrap());
    let meminfo = look_through(&local);
    assert_eq!(only(&meminfo).object("Views"), None);
}

#[test]
fn the_phone_for_scripts_lists_residents_first() {
    let text = "\
version,1
time,100,200
oom,fore,900
proc,fore,com.example.app,321,900,12,a
cat,Native,500,N/A
oom,fore,400
proc,fore,com.example.app,321,400,12,e
cat,Native,100,7
ram,7791836,3359799,4059695
lostram,-5
";
    let meminfo = Meminfo::parse(text);
    let lists: Vec<&List> = meminfo.lists().collect();
    let measures: Vec<Measure> = lists.iter().map(|list| list.measure).collect();
    assert_eq!(
        measures,
        [Measure::Rss, Measure::Rss, Measure::Pss, Measure::Pss]
    );
    let process = lists[0].items.values().nth(1).unwrap();
    assert_eq!(
        (process.name(), process.pid(), process.depth),
        ("com.example.app", Some(321), 1)
    );
    assert_eq!(process.swap(), Some(12 * 1024));
    assert_eq!(
        lists[3].items.values().next().unwrap().swap(),
        Some(7 * 1024)
    );
    assert_eq!(meminfo.numbers("ram").unwrap()[0], 7_791_836 * 1024);
}

mod layouts;
mod samples;

/// Every row has as many cells as there are columns, and blanks as wide as the headers, but a short
/// text must not allocate gigabytes.
#[test]
fn tables_and_blocks_wider_than_any_are_text() {
    let columns = 4000;
    let wide = format!(
        "** MEMINFO in pid 1 [a] **\n      {}\n      {}\n{}",
        "Pss ".repeat(columns),
        "--- ".repeat(columns),
        "row 1\n".repeat(1000)
    );
    let far = format!(
        "** MEMINFO in pid 1 [a] **\n Objects\n  Views:{}1\n{}",
        " ".repeat(1 << 20),
        "  a: 1\n".repeat(1000)
    );
    let headed = format!(
        "** MEMINFO in pid 1 [a] **\n App Summary\n {}\n{}",
        "Pss(KB) ".repeat(100),
        "  a: 1\n".repeat(1000)
    );
    for text in [wide, far, headed] {
        let meminfo = look_through(&text);
        let process = meminfo.processes().next().unwrap();
        assert!(process.table().is_none());
        for section in &process.sections {
            if let Body::Counts(pairs) | Body::Summary(pairs) = &section.body {
                assert!(pairs.headings.is_empty());
            }
        }
    }
}

#[test]
fn details_count_once_and_lines_beyond_all_phones_are_text() {
    let twice = format!(
        "{NEW} Dalvik Details\n        .Heap        1        1        1        1        1\n"
    );
    let meminfo = look_through(&twice);
    let process = meminfo.processes().next().unwrap();
    assert!(
        process
            .texts()
            .any(|(title, _)| title == Some("Dalvik Details"))
    );
    for end in ["", "\n"] {
        let long = format!("{OLD}{}{end}", "x\r\n".repeat(1 << 18).trim_end());
        let meminfo = look_through(&long);
        assert_eq!(meminfo.processes().count(), 1);
    }
}
