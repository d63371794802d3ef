use super::*;

/// Builder of smaps texts as printed by current devices.
struct Text(String);

impl Text {
    fn new() -> Text {
        Text(String::new())
    }

    fn map(mut self, at: (u64, u64), permissions: &str, name: &str, kb: [u64; 6]) -> Text {
        use std::fmt::Write as _;
        let [rss, pss, shared_clean, private_clean, private_dirty, swap] = kb;
        let size = (at.1 - at.0) / 1024;
        let head = format!("{:x}-{:x} {permissions} 00000000 fe:2d 51", at.0, at.1);
        let head = match name {
            "" => format!("{head} "),
            name => format!("{head:<72} {name}"),
        };
        write!(
            self.0,
            "{head}\n\
             Size:           {size:>8} kB\nKernelPageSize:        4 kB\nMMUPageSize:           4 kB\n\
             Rss:            {rss:>8} kB\nPss:            {pss:>8} kB\nPss_Dirty:      {private_dirty:>8} kB\n\
             Shared_Clean:   {shared_clean:>8} kB\nShared_Dirty:          0 kB\n\
             Private_Clean:  {private_clean:>8} kB\nPrivate_Dirty:  {private_dirty:>8} kB\n\
             Referenced:     {rss:>8} kB\nAnonymous:      {private_dirty:>8} kB\nKSM:                   0 kB\n\
             LazyFree:              0 kB\nAnonHugePages:      2048 kB\nSwap:           {swap:>8} kB\n\
             SwapPss:        {swap:>8} kB\nLocked:                0 kB\nTHPeligible:           0\n\
             VmFlags: rd wr mr mw me ac \n"
        )
        .unwrap();
        self
    }

    fn read(&self) -> Smaps {
        parse(self.0.as_bytes()).unwrap()
    }
}

const LIB: &str = "/data/app/~~Xy1_-a==/com.example.app-Zz9_Q==/lib/arm64/libexample.so";

/// A mapping on each line: addresses, permissions; Rss, Pss, Shared_Clean, Private_Clean, Private_Dirty
/// and Swap in KiB; its name.
fn maps(table: &str) -> Text {
    let lines = table.lines().filter(|line| !line.trim().is_empty());
    lines.fold(Text::new(), |text, line| {
        let mut parts = line.splitn(3, '|').map(str::trim);
        let mut part = || parts.next().expect("three parts");
        let (head, figures, name) = (part(), part(), part());
        let name = if name == "LIB" { LIB } else { name };
        let (range, permissions) = head.split_once(' ').expect("permissions");
        let (start, end) = range.split_once('-').expect("two addresses");
        let address = |digits| u64::from_str_radix(digits, 16).expect("an address");
        let figures: Vec<u64> = figures
            .split_whitespace()
            .map(|figure| figure.parse().expect("a figure"))
            .collect();
        let figures = figures.try_into().expect("six figures");
        text.map(
            (address(start), address(end)),
            permissions.trim(),
            name,
            figures,
        )
    })
}

fn phone() -> Text {
    maps(
        "
        12c00000-32c00000                 rw-p |  9000  9000   0   0  9000 100 | [anon:dalvik-main space (region space)]
        70000000-71000000                 rw-p |   700   100 600   0    40   0 | [anon:dalvik-/system/framework/boot.art]
        b400007000000000-b400007004000000 rw-p | 20000 20000   0   0 20000 500 | [anon:scudo:primary]
        b400007100000000-b400007101000000 rw-p |  3000  3000   0   0  3000   0 | [anon:scudo:secondary]
        7b6c2e3000-7b6c37f000             r-xp |   400   300 200 200     0   0 | LIB
        7b6c37f000-7b6c380000             rw-p |     4     4   0   0     4   0 | LIB
        7b6c380000-7b6c384000             rw-p |    16    16   0   0    16   0 |
        7b6c390000-7b6c394000             rw-p |    12    12   0   0    12   0 |
        7b6d000000-7b6d010000             rw-s |    50    50   0   0    50   0 | /memfd:jit-cache (deleted)
        7b6e000000-7b6e010000             rw-p |    32    32   0   0    32   8 | [anon:stack_and_tls:4711]
        7b6f000000-7b6f010000             rw-s |    64    64   0  64     0   0 | /dev/kgsl-3d0
        7b70000000-7b70010000             r--s |     8     8   0   8     0   0 | /data/a file with blanks.db (deleted)
        ",
    )
}

#[test]
fn a_mapping_keeps_what_the_kernel_says_of_it() {
    let smaps = phone().read();
    assert_eq!(smaps.form, Form::Mappings);
    assert_eq!(smaps.count(), 12);
    assert!(!smaps.cut);
    assert_eq!(smaps.strange_count, 0);
    let file = smaps.mappings.last().unwrap();
    assert_eq!(file.name, "/data/a file with blanks.db");
    assert_eq!(file.permissions, "r--s");
    let heap = &smaps.mappings[2];
    assert_eq!(heap.start, 0xb400007000000000);
    assert_eq!(heap.sums.get(Field::PrivateDirty), Some(20000 << 10));
    assert_eq!(heap.sums.get(Field::Size), Some(64 << 20));
    // Figures that are not interpreted are summed, but page sizes are not.
    assert_eq!(smaps.others["AnonHugePages"], 12 * (2048 << 10));
    assert!(!smaps.others.contains_key("KernelPageSize"));
    assert_eq!(smaps.total().get(Field::Pss), Some(32586 << 10));
}

#[test]
fn kinds_are_meminfos_rows_and_their_sum_is_all() {
    let groups = phone().read().groups(By::Kind);
    let pss = |kind| groups.kind(kind).map(|row| row.sums.of(Field::Pss) >> 10);
    assert_eq!(pss(Kind::NativeHeap), Some(23000));
    assert_eq!(pss(Kind::DalvikHeap), Some(9000));
    assert_eq!(pss(Kind::ArtMmap), Some(100));
    // Two segments of the library and the memory behind it.
    assert_eq!(pss(Kind::SoMmap), Some(320));
    assert_eq!(pss(Kind::Unknown), Some(12));
    assert_eq!(pss(Kind::DalvikOther), Some(50));
    assert_eq!(pss(Kind::Stack), Some(32));
    assert_eq!(pss(Kind::GfxDev), Some(64));
    assert_eq!(pss(Kind::OtherMmap), Some(8));
    assert_eq!(pss(Kind::Cursor), None);
    let rows = groups.rows.iter().filter(|row| row.group.sub.is_none());
    let mut sum = Sums::default();
    for row in rows {
        sum += &row.sums;
    }
    assert_eq!(sum, groups.total);
    let sub = |sub| groups.rows.iter().find(|row| row.group.sub == Some(sub));
    assert_eq!(sub(SubKind::AppJit).unwrap().sums.of(Field::Pss), 50 << 10);
    assert!(sub(SubKind::BootArt).is_some());
}

#[test]
fn parts_are_those_of_the_app_summary() {
    let parts = phone().read().parts().unwrap();
    let kb = |bytes: i64| bytes >> 10;
    assert_eq!(kb(parts.java), 9000 + 40);
    assert_eq!(kb(parts.native), 23000);
    // Private pages of the library and of the JIT.
    assert_eq!(kb(parts.code), 200 + 4 + 16 + 50);
    assert_eq!(kb(parts.stack), 32);
    assert_eq!(kb(parts.graphics), 64);
    assert_eq!(kb(parts.private_other), 12 + 8);
    assert_eq!(kb(parts.total_pss), 32586 + 608);
    let sum = parts.java
        + parts.native
        + parts.code
        + parts.stack
        + parts.graphics
        + parts.private_other
        + parts.system;
    assert_eq!(sum, parts.total_pss);
}

#[test]
fn libraries_have_all_their_segments_and_the_memory_behind_them() {
    let groups = phone().read().groups(By::Library);
    let name = "/data/app/com.example.app/lib/arm64/libexample.so";
    let library = groups
        .rows
        .iter()
        .find(|row| row.group.name == name)
        .unwrap();
    assert_eq!(library.count, 3);
    assert_eq!(library.sums.of(Field::PrivateDirty), 20 << 10);
    assert_eq!(groups.rows[0].group.name, "[anon:scudo:primary]");
    // The same applies to memory named by the linker.
    let named = maps(
        "
        1000-2000 r-xp | 4 4 0 4 0 0 | LIB
        2000-4000 rw-p | 8 8 0 0 8 0 | [anon:.bss]
        5000-6000 rw-p | 4 4 0 0 4 0 | [anon:.bss]
        ",
    )
    .read();
    let groups = named.groups(By::Library);
    assert_eq!(groups.rows.len(), 2);
    assert_eq!(groups.rows[0].count, 2);
    // meminfo counts it as Unknown, and so does this crate.
    assert!(named.groups(By::Kind).kind(Kind::Unknown).is_some());
}

#[test]
fn mappings_that_differ_in_their_address_alone_are_one() {
    let smaps = maps(
        "
        1000-2000 rw-p | 4 4 0 0 4 0 | [anon:scudo:secondary]
        9000-b000 rw-p | 8 8 0 0 8 0 | [anon:scudo:secondary]
        b000-c000 ---p | 0 0 0 0 0 0 | [anon:scudo:secondary]
        ",
    )
    .read();
    let groups = smaps.groups(By::Mapping);
    assert_eq!(groups.rows.len(), 2);
    assert_eq!((groups.rows[0].count, groups.rows[0].start), (2, 0x1000));
    assert_eq!(groups.rows[1].group.permissions, "---p");
}

#[test]
fn what_differs_from_run_to_run_alone_is_no_difference() {
    let run = |random: &str, pid: u32, dirty: u64| {
        let apk = format!("/data/app/~~{random}==/com.example.app-{random}==/base.apk");
        let from_memory = format!(
            "[anon:dalvik-classes2.dex extracted in memory from /data/app/~~{random}==/com.example.app-{random}==/base.apk!classes2.dex]"
        );
        let base = 0x70000000 + u64::from(pid) * 0x1000;
        Text::new()
            .map((base, base + 0x4000), "r--p", &apk, [16, 16, 0, 16, 0, 0])
            .map(
                (base + 0x4000, base + 0x8000),
                "rw-p",
                &from_memory,
                [16, 16, 0, 0, 16, 0],
            )
            .map(
                (base + 0x8000, base + 0x9000),
                "rw-p",
                &format!("[anon:stack_and_tls:{pid}]"),
                [4, 4, 0, 0, 4, 0],
            )
            .map(
                (base + 0x9000, base + 0xa000),
                "rw-s",
                &format!("/dev/ashmem/GFXStats-{pid} (deleted)"),
                [4, 4, 0, 0, 4, 0],
            )
            .map(
                (base + 0xa000, base + 0xf000),
                "rw-p",
                "[anon:scudo:primary]",
                [dirty, dirty, 0, 0, dirty, 0],
            )
            .read()
    };
    let (a, b) = (run("AbC_1-x", 4711, 8), run("Zzz9", 815, 20));
    for by in [By::Kind, By::Library, By::Mapping] {
        let changes = changes(&a, &b, by);
        let names: Vec<String> = changes.rows.iter().map(|c| c.group.label()).collect();
        assert_eq!(changes.rows.len(), 1, "{by:?}: {names:?}");
        assert_eq!(changes.rows[0].delta(Field::PrivateDirty), Some(12 << 10));
        assert_eq!(changes.rows[0].cost(), 12 << 10);
        assert_eq!(changes.total(Field::Pss), Some(12 << 10));
    }
    assert_eq!(changes(&a, &a, By::Mapping).rows, []);
}

#[test]
fn names_are_folded_where_they_are_random_and_kept_where_they_mean_something() {
    for (name, folded) in [
        (
            "/data/app/com.example.app-1/base.apk",
            "/data/app/com.example.app/base.apk",
        ),
        (
            "/mnt/expand/6f9619ff-8b86/app/~~a==/b.c-d==/oat/arm64/base.odex",
            "/mnt/expand/6f9619ff-8b86/app/b.c/oat/arm64/base.odex",
        ),
        (
            "/data/dalvik-cache/arm64/data@app@~~a==@b.c-d==@base.apk@classes.dex",
            "/data/dalvik-cache/arm64/data@app@b.c@base.apk@classes.dex",
        ),
        (
            "/dev/ashmem/shared_memory/7C2E9A40F1B24C0E",
            "/dev/ashmem/shared_memory/N",
        ),
        ("/memfd:jit-cache", "/memfd:jit-cache"),
        (
            "[anon:dalvik-Jit thread pool worker thread 0]",
            "[anon:dalvik-Jit thread pool worker thread 0]",
        ),
        ("[anon:buffer at 0x7fb12c]", "[anon:buffer at 0xN]"),
        (
            "/system/app/Camera2/Camera2.apk",
            "/system/app/Camera2/Camera2.apk",
        ),
        ("/system/lib64/libc++.so", "/system/lib64/libc++.so"),
        ("/dmabuf:1234 é", "/dmabuf:N é"),
        ("", ""),
    ] {
        assert_eq!(stable(name), folded);
        assert_eq!(stable(folded), folded, "twice is once");
    }
}

#[test]
fn old_kernels_have_short_addresses_and_fewer_figures() {
    let text = "b6f2e000-b6f30000 rw-p 00000000 00:00 0 \n\
                Name:           [anon:libc_malloc]\n\
                Size:                  8 kB\nRss:                   8 kB\n\
                Pss:                   7 kB\nPrivate_Dirty:         8 kB\nSwap:                  4 kB\n\
                be9b1000-be9d2000 rw-p 00000000 00:00 0          [stack]\r\n\
                Size:                132 kB\r\nRss:                  12 kB\r\n\
                Pss:                  12 kB\r\nPrivate_Dirty:        12 kB\r\nSwap:                  0 kB\r\n";
    let smaps = parse(text.as_bytes()).unwrap();
    assert_eq!(smaps.mappings[0].name, "[anon:libc_malloc]");
    let total = smaps.total();
    assert_eq!(total.get(Field::SwapPss), None, "not reported is not 0");
    assert_eq!(total.swapped(), 4 << 10);
    let groups = smaps.groups(By::Kind);
    assert!(groups.kind(Kind::NativeHeap).is_some() && groups.kind(Kind::Stack).is_some());
    let delta = changes(&smaps, &phone().read(), By::Kind);
    assert_eq!(delta.total(Field::SwapPss), None);
}

#[test]
fn a_rollup_is_one_sum_without_kinds() {
    let text = "12c00000-7fffffffff ---p 00000000 00:00 0           [rollup]\n\
                Rss:              884 kB\nPss:              385 kB\nPrivate_Dirty:     60 kB\n";
    let smaps = parse(text.as_bytes()).unwrap();
    assert_eq!(smaps.form, Form::Rollup);
    assert_eq!(smaps.total().get(Field::Pss), Some(385 << 10));
    assert_eq!(smaps.groups(By::Kind).rows, []);
    assert_eq!(smaps.parts(), None);
}

#[test]
fn junk_is_counted_and_shown_and_a_text_of_junk_alone_is_refused() {
    let mut text = "* daemon started\u{1b}[2J\n".to_owned();
    text += &phone().0;
    text += "cat: /proc/7/smaps: No such process\nNew_Figure:  7 kB\nOdd: seven kB\n";
    let smaps = parse(text.as_bytes()).unwrap();
    assert_eq!(smaps.strange_count, 3);
    assert_eq!(smaps.strange[0], "* daemon started\u{fffd}[2J");
    assert_eq!(smaps.others["New_Figure"], 7 << 10);
    let denied = parse(b"cat: /proc/1/smaps: Permission denied\n").unwrap_err();
    assert!(denied.to_string().contains("Permission denied"), "{denied}");
    assert!(parse(b"").unwrap_err().to_string().contains("empty"));
}

#[test]
fn a_text_that_ends_within_a_mapping_says_so() {
    let text = phone().0;
    assert!(parse(&text.as_bytes()[..text.len() - 60]).unwrap().cut);
    // Without the last line end, and with a part of the last flags, no figure is missing.
    for missing in [1, 20] {
        assert!(!parse(&text.as_bytes()[..text.len() - missing]).unwrap().cut);
    }
    let last = text.rfind("7b70000000-").unwrap();
    let head = text[last..].find('\n').unwrap();
    assert!(parse(&text.as_bytes()[..=last + head]).unwrap().cut);
    // After any of its lines except the last.
    let ends = memchr::memchr_iter(b'\n', &text.as_bytes()[last..]);
    for end in ends {
        let parsed = parse(&text.as_bytes()[..=last + end]).unwrap();
        assert_eq!(parsed.cut, last + end + 1 < text.len(), "{end}");
    }
}

#[test]
fn pieces_of_any_length_make_the_same_of_it() {
    let text = phone().0;
    let whole = parse(text.as_bytes()).unwrap();
    for length in [1, 7, 64, 1000] {
        let mut reader = Reader::default();
        for piece in text.as_bytes().chunks(length) {
            reader.feed(piece).unwrap();
        }
        assert_eq!(reader.finish().unwrap(), whole);
    }
}

#[test]
fn lines_and_numbers_beyond_all_bounds_do_no_harm() {
    let mut text = format!("1000-2000 rw-p 0 0:0 0 {}\n", "x".repeat(1 << 20));
    for _ in 0..3 {
        text += &format!("Rss: {} kB\n", u64::MAX);
        text += "2000-1000 rw-p 0 0:0 0\n";
    }
    let smaps = parse(text.as_bytes()).unwrap();
    assert_eq!(smaps.total().of(Field::Rss), u64::MAX);
    assert!(smaps.mappings[0].name.len() <= 8 << 10);
}

const SHOWMAP: &str = "\
 virtual                     shared   shared  private  private
    size      RSS      PSS    clean    dirty    clean    dirty     swap  swapPSS   # object
-------- -------- -------- -------- -------- -------- -------- -------- -------- ---- ------------------------------
     168      164       29      136       12        0       16        0        0    2 /system/lib64/libc.so
    2048     1500     1500        0        0        0     1500        4        2    3 [anon:scudo:primary]
-------- -------- -------- -------- -------- -------- -------- -------- -------- ---- ------------------------------
 virtual                     shared   shared  private  private
    size      RSS      PSS    clean    dirty    clean    dirty     swap  swapPSS   # object
-------- -------- -------- -------- -------- -------- -------- -------- -------- ---- ------------------------------
    2216     1664     1529      136       12        0     1516        4        2    5 TOTAL
";

#[test]
fn showmaps_table_csv_and_json_are_the_same() {
    let table = parse(SHOWMAP.as_bytes()).unwrap();
    assert_eq!(table.form, Form::ByName);
    assert!(!table.cut);
    assert_eq!((table.mappings.len(), table.count()), (2, 5));
    let total = table.total();
    for (field, kb) in [
        (Field::Size, 2216),
        (Field::Rss, 1664),
        (Field::Pss, 1529),
        (Field::SharedClean, 136),
        (Field::SharedDirty, 12),
        (Field::PrivateClean, 0),
        (Field::PrivateDirty, 1516),
        (Field::Swap, 4),
        (Field::SwapPss, 2),
    ] {
        assert_eq!(total.get(field), Some(kb << 10), "{field:?}");
    }
    assert_eq!(total.get(Field::Anonymous), None);
    let csv = "\"virtual size\",\"RSS\",\"PSS\",\"shared clean\",\"shared dirty\",\"private clean\",\"private dirty\",\"swap\",\"swapPSS\",\"#\",\"object\"\n\
               168,164,29,136,12,0,16,0,0,2,\"/system/lib64/libc.so\"\n\
               2048,1500,1500,0,0,0,1500,4,2,3,\"[anon:scudo:primary]\"\n\
               2216,1664,1529,136,12,0,1516,4,2,5,\"TOTAL\"\n";
    assert_eq!(parse(csv.as_bytes()).unwrap().mappings, table.mappings);
    let json = r#"[{"virtual size":168,"RSS":164,"PSS":29,"shared clean":136,"shared dirty":12,
        "private clean":0,"private dirty":16,"swap":0,"swapPSS":0,"count":2,"object":"/system/lib64/libc.so"},
        {"virtual size":2048,"RSS":1500,"PSS":1500,"shared clean":0,"shared dirty":0,"private clean":0,
        "private dirty":1500,"swap":4,"swapPSS":2,"count":3,"object":"[anon:scudo:primary]"},
        {"virtual size":2216,"RSS":1664,"PSS":1529,"shared clean":136,"shared dirty":12,
        "private clean":0,"private dirty":1516,"swap":4,"swapPSS":2,"count":5,"object":"TOTAL"}]"#;
    assert_eq!(parse(json.as_bytes()).unwrap().mappings, table.mappings);
}

#[test]
fn a_showmap_of_no_mappings_says_so() {
    let json = r#"[{"virtual size":0,"RSS":0,"PSS":0,"object":"TOTAL"}]"#;
    let csv = "\"virtual size\",\"RSS\",\"PSS\",\"swap\",\"object\"\n0,0,0,0,\"TOTAL\"\n";
    for text in [json, csv] {
        let error = parse(text.as_bytes()).unwrap_err().to_string();
        assert!(
            error.ends_with("the table of showmap has no rows"),
            "{error}"
        );
    }
}

#[test]
fn showmaps_newer_columns_are_found_by_their_headings() {
    let text = "\
 virtual                     shared   shared  private  private                   Anon      Shmem     File      Shared   Private
    size      RSS      PSS    clean    dirty    clean    dirty     swap  swapPSS HugePages PmdMapped PmdMapped Hugetlb  Hugetlb    Locked    # object
-------- -------- -------- -------- -------- -------- -------- -------- -------- --------- --------- --------- -------- -------- -------- ---- ------------------------------
      40       40       20        0        0        0       40        0        0        8         0         0        0        0       12    1 a name with blanks
       x       40       20        0        0        0       40        0        0        8         0         0        0        0       12    1 torn
-------- -------- -------- -------- -------- -------- -------- -------- -------- --------- --------- --------- -------- -------- -------- ---- ------------------------------
";
    let smaps = parse(text.as_bytes()).unwrap();
    assert_eq!(smaps.mappings.len(), 1);
    assert_eq!(smaps.mappings[0].name, "a name with blanks");
    assert_eq!(smaps.mappings[0].sums.get(Field::Locked), Some(12 << 10));
    assert_eq!(smaps.others["AnonHugePages"], 8 << 10);
    assert_eq!(smaps.strange_count, 1);
}

#[test]
fn showmaps_names_are_those_of_the_kernel() {
    let text = "\
 virtual                     shared   shared  private  private
    size      RSS      PSS    clean    dirty    clean    dirty     swap  swapPSS   #  object
-------- -------- -------- -------- -------- -------- -------- -------- -------- ---- ------------------------------
    2048     1024     1024        0        0        0     1024        0        0    3 [anon]
      16       16       16        0        0        0       16        0        0    1 /system/lib64/libc.so [bss]
-------- -------- -------- -------- -------- -------- -------- -------- -------- ---- ------------------------------
    2064     1040     1040        0        0        0     1040        0        0    4 TOTAL
";
    let kinds: Vec<Kind> = parse(text.as_bytes())
        .unwrap()
        .classified()
        .map(|row| row.1)
        .collect();
    assert_eq!(kinds, [Kind::Unknown, Kind::SoMmap]);
}

#[test]
fn processes_of_a_text_are_found_one_by_one() {
    let table = |kb: u64| {
        format!(
            " virtual                     shared   shared  private  private\n    \
             size      RSS      PSS    clean    dirty    clean    dirty     swap  swapPSS   #  object\n\
             -------- -------- --------\n {kb} {kb} {kb} 0 0 0 {kb} 0 0 1 [anon]\n\
             -------- -------- --------\n    size  RSS  PSS # object\n-------- --------\n \
             {kb} {kb} {kb} 0 0 0 {kb} 0 0 1 TOTAL\n"
        )
    };
    let smaps = |kb: u64| {
        let map = |text: Text, at| text.map((at, at + 0x4000), "rw-p", "", [kb, kb, 0, 0, kb, 0]);
        map(map(Text::new(), 0x12c0_0000), 0x70_0000_0000).0
    };
    let (a, b) = (table(8), table(16));
    let (c, d) = (smaps(9000), smaps(400));
    let name = |name: &str| Some(name.to_owned());
    for (text, expected) in [
        (a.clone(), vec![(None, None)]),
        (c.clone(), vec![(None, None)]),
        (format!("{a}{b}"), vec![(None, None); 2]),
        (format!("{c}{d}{c}"), vec![(None, None); 3]),
        (
            format!("==> /proc/7/smaps <==\n{c}\n==> /proc/8/smaps <==\n{d}"),
            vec![(Some(7), None), (Some(8), None)],
        ),
        (
            format!(
                "------ SHOW MAP 7 (init) (su root showmap -q 7) ------\n{a}\
                 ------ SHOW MAP 9 (gone) (su root showmap -q 9) ------\n\
                 ------ SHOW MAP 8: com.example.app (showmap -q 8) ------\n{b}"
            ),
            vec![(Some(7), name("init")), (Some(8), name("com.example.app"))],
        ),
    ] {
        let found = split(text.as_bytes());
        let ids: Vec<_> = found
            .iter()
            .map(|part| (part.pid, part.name.clone()))
            .collect();
        assert_eq!(ids, expected, "{text}");
        let sums = found
            .iter()
            .map(|part| parse(&text.as_bytes()[part.bytes.clone()]).unwrap());
        let sums: Vec<u64> = sums.map(|part| part.total().of(Field::Size)).collect();
        assert!(expected.len() < 2 || text.contains("rw-p") || sums == [8 << 10, 16 << 10]);
        assert!(
            found
                .windows(2)
                .all(|pair| pair[0].bytes.end <= pair[1].bytes.start)
        );
    }
}

/// Parses the kernel's smaps of the test process itself. The sums match its own rollup as far as
/// the process is idle, and no line is unknown.
#[cfg(target_os = "linux")]
#[test]
fn the_kernel_of_this_machine_is_understood() {
    let Ok(text) = std::fs::read("/proc/self/smaps") else {
        return;
    };
    let smaps = parse(&text).unwrap();
    assert_eq!(smaps.strange, Vec::<String>::new());
    assert!(
        smaps
            .mappings
            .iter()
            .any(|m| m.name == "[heap]" || m.name.starts_with("[stack"))
    );
    let total = smaps.total();
    let of = |field| total.get(field).unwrap();
    assert_eq!(
        of(Field::Rss),
        of(Field::SharedClean)
            + of(Field::SharedDirty)
            + of(Field::PrivateClean)
            + of(Field::PrivateDirty)
    );
    let sizes: u64 = smaps.mappings.iter().map(|m| m.end - m.start).sum();
    assert_eq!(of(Field::Size), sizes);
}

mod any {
    use super::*;
    use proptest::prelude::*;

    /// Returns mappings with any name and size, some of them adjacent to the previous one.
    fn mapping() -> impl Strategy<Value = (u64, String, [u64; 6])> {
        let name = prop_oneof![
            Just(String::new()),
            Just("[anon:.bss]".to_owned()),
            Just(LIB.to_owned()),
            Just("[anon:scudo:primary]".to_owned()),
            "\\[anon:dalvik-[a-z ]{1,20}\\]",
            "/[a-z@~./ 0-9-]{0,30}(\\.so|\\.art|\\.vdex| \\(deleted\\))?",
        ];
        let figures = proptest::array::uniform6(0..1u64 << 30);
        (0..3u64, name, figures)
    }

    proptest! {
        #[test]
        fn sums_of_kinds_libraries_and_mappings_are_the_sum_of_all(
            mappings in proptest::collection::vec(mapping(), 1..40)
        ) {
            let mut text = Text::new();
            let mut at = 0x1000_0000;
            for (gap, name, figures) in mappings {
                let start = at + gap * 0x1000;
                at = start + 0x4000;
                text = text.map((start, at), "rw-p", name.trim(), figures);
            }
            let smaps = text.read();
            for by in [By::Kind, By::Library, By::Mapping] {
                let groups = smaps.groups(by);
                let mut sum = Sums::default();
                let mut count = 0;
                let is_whole = |row: &&Grouped| by != By::Kind || row.group.sub.is_none();
                for row in groups.rows.iter().filter(is_whole) {
                    sum += &row.sums;
                    count += row.count;
                }
                prop_assert_eq!(sum, groups.total);
                prop_assert_eq!(count, smaps.count());
                prop_assert!(changes(&smaps, &smaps, by).rows.is_empty());
            }
            let parts = smaps.parts().unwrap();
            let sum = parts.java + parts.native + parts.code + parts.stack + parts.graphics
                + parts.private_other + parts.system;
            prop_assert_eq!(sum, parts.total_pss);
        }

        #[test]
        fn any_text_is_read_alike_in_any_pieces(
            lines in proptest::collection::vec(prop_oneof![
                "[0-9a-f]{1,17}-[0-9a-f]{1,17} [rwxps-]{4} [0-9a-f]{1,9} fe:2d [0-9]{1,20} .{0,20}",
                "(Rss|Pss|Swap|Size|New_One): +[0-9]{1,21} kB",
                "(Name|VmFlags|THPeligible): .{0,20}",
                ".{0,40}",
            ], 0..30),
            length in 1..50usize,
        ) {
            let text = lines.join("\n");
            let mut whole = Reader::default();
            whole.feed(text.as_bytes()).unwrap();
            let mut pieces = Reader::default();
            for piece in text.as_bytes().chunks(length) {
                pieces.feed(piece).unwrap();
            }
            prop_assert_eq!(whole.finish(), pieces.finish());
            let _ = parse(text.as_bytes());
        }

        #[test]
        fn folded_names_stay_as_they_are(name in "(/data/app/|/dev/ashmem/|\\[anon:)?.{0,60}") {
            let once = stable(&name).into_owned();
            prop_assert_eq!(stable(&once), once.as_str());
        }
    }
}
