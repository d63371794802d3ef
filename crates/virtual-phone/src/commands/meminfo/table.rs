//! Table of a process in the layout of each Android release: columns, App Summary, Dalvik Details,
//! objects, databases.

use super::Options;
use crate::memory::{Detail, Ledger, Row, Rows, Sums};
use crate::packages::Package;

/// Heap statistics of the app itself in kB: size, allocated, free.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Heaps {
    pub(super) native: [u64; 3],
    pub(super) dalvik: [u64; 3],
}

impl Heaps {
    pub(super) fn total(&self) -> [u64; 3] {
        let mut sum = self.native;
        for (a, b) in sum.iter_mut().zip(self.dalvik) {
            *a += b;
        }
        sum
    }
}

/// Returns Heap Size, Alloc and Free as the app itself sees them.
pub(super) fn heaps(inside: &Ledger) -> Heaps {
    let native = &inside.native;
    let (size, allocated) = (native.mapped, native.allocated());
    let of = |size: u64, allocated: u64| {
        let (size, allocated) = (size >> 10, allocated >> 10);
        [size, allocated, size.saturating_sub(allocated)]
    };
    Heaps {
        native: of(size, allocated),
        dalvik: inside
            .java
            .map_or([0; 3], |java| of(java.total(), java.allocated())),
    }
}

/// Formats `%13s` and a cell of width 8 for each value; a label that is too long shifts the cells.
fn row(label: &str, cells: &[String]) -> String {
    let mut line = format!("{label:>13}");
    for cell in cells {
        line.push_str(&format!(" {cell:>8}"));
    }
    line.push('\n');
    line
}

/// Returns the numbers of a row in the order of the columns.
fn cells(sums: &Sums, total_pss: u64, android: u32, swap_pss: bool, full: bool) -> Vec<String> {
    let pages = &sums.pages;
    let swap = if swap_pss { pages.swap_pss } else { pages.swap };
    let mut numbers = if full {
        vec![
            total_pss,
            sums.clean_pss,
            pages.shared_dirty,
            pages.private_dirty,
            pages.shared_clean,
            pages.private_clean,
            swap,
        ]
    } else {
        vec![total_pss, pages.private_dirty, pages.private_clean, swap]
    };
    if android >= 11 {
        numbers.push(sums.rss());
    }
    numbers.iter().map(u64::to_string).collect()
}

fn with_heap(mut cells: Vec<String>, heap: Option<[u64; 3]>) -> Vec<String> {
    match heap {
        Some(heap) => cells.extend(heap.iter().map(u64::to_string)),
        None => cells.extend([const { String::new() }; 3]),
    }
    cells
}

/// Returns the table, the details if requested, and the summary.
pub(super) fn table(rows: &Rows, heaps: Heaps, android: u32, options: &Options) -> String {
    let sum = rows.sum();
    let swap_pss = sum.pages.swap_pss > 0;
    let mut out = String::new();
    let rss = android >= 11;
    let swap = if swap_pss { "SwapPss" } else { "Swap" };
    let pick = |full: &[&str], plain: &[&str], rss_word: &str, heap: [&str; 3]| {
        let mut words: Vec<String> = if options.full { full } else { plain }
            .iter()
            .map(|w| (*w).to_owned())
            .collect();
        if rss {
            words.push(rss_word.to_owned());
        }
        words.extend(heap.map(str::to_owned));
        row("", &words)
    };
    out.push_str(&pick(
        &["Pss", "Pss", "Shared", "Private", "Shared", "Private", swap],
        &["Pss", "Private", "Private", swap],
        "Rss",
        ["Heap"; 3],
    ));
    out.push_str(&pick(
        &[
            "Total", "Clean", "Dirty", "Dirty", "Clean", "Clean", "Dirty",
        ],
        &["Total", "Dirty", "Clean", "Dirty"],
        "Total",
        ["Size", "Alloc", "Free"],
    ));
    out.push_str(&pick(
        &["------"; 7],
        &["------"; 4],
        "------",
        ["------"; 3],
    ));
    for which in Row::all() {
        let sums = rows.row(which);
        let heap = match which {
            Row::Native => Some(heaps.native),
            Row::Dalvik => Some(heaps.dalvik),
            _ => None,
        };
        let always = matches!(which, Row::Native | Row::Dalvik | Row::Unknown);
        if sums.is_empty() && !always {
            continue;
        }
        let cells = cells(&sums, sums.pages.pss, android, swap_pss, options.full);
        out.push_str(&row(which.label(), &with_heap(cells, heap)));
    }
    let total = cells(&sum, rows.total_pss(), android, swap_pss, options.full);
    out.push_str(&row("TOTAL", &with_heap(total, Some(heaps.total()))));
    if options.dalvik {
        out.push_str(" \n Dalvik Details\n");
        for (label, sums) in details(rows, android) {
            if !sums.is_empty() {
                let cells = cells(&sums, sums.pages.pss, android, swap_pss, options.full);
                out.push_str(&row(label, &with_heap(cells, None)));
            }
        }
    }
    out.push_str(&summary(rows, android, swap_pss));
    out
}

/// Returns the details in the order of the release.
fn details(rows: &Rows, android: u32) -> Vec<(&'static str, Sums)> {
    if android >= 11 {
        let all = Detail::all();
        return all.map(|(d, label)| (label, rows.detail(d))).collect();
    }
    let jit = [Detail::ZygoteJit, Detail::AppJit].map(|d| rows.detail(d));
    let mut both = jit[0];
    both.pages.add(&jit[1].pages);
    vec![
        (".Heap", rows.detail(Detail::Heap)),
        (".LOS", rows.detail(Detail::Los)),
        (".LinearAlloc", rows.detail(Detail::LinearAlloc)),
        (".GC", rows.detail(Detail::Gc)),
        (".JITCache", both),
        (".Zygote", rows.detail(Detail::Zygote)),
        (".NonMoving", rows.detail(Detail::NonMoving)),
        (".IndirectRef", rows.detail(Detail::IndirectRef)),
    ]
}

fn pair(label: &str, value: impl std::fmt::Display) -> String {
    format!("{label:>21} {value:>8}")
}

fn summary(rows: &Rows, android: u32, swap_pss: bool) -> String {
    let of = rows.summary(android);
    let sum = rows.sum();
    let (total, swap) = (rows.total_pss(), &sum.pages);
    let mut out = " \n App Summary\n".to_owned();
    let parts = [
        ("Java Heap:", of.java),
        ("Native Heap:", of.native),
        ("Code:", of.code),
        ("Stack:", of.stack),
        ("Graphics:", of.graphics),
    ];
    let (swap_label, swap) = match swap_pss {
        true => ("TOTAL SWAP PSS:", swap.swap_pss),
        false => ("TOTAL SWAP (KB):", swap.swap),
    };
    if android >= 11 {
        for words in [("Pss(KB)", "Rss(KB)"), ("------", "------")] {
            out.push_str(&format!("{} {}\n", pair("", words.0), pair("", words.1)));
        }
        for (label, (pss, rss)) in parts {
            out.push_str(&format!("{} {}\n", pair(label, pss), pair("", rss)));
        }
    } else {
        out.push_str(&format!(
            "{}\n{}\n",
            pair("", "Pss(KB)"),
            pair("", "------")
        ));
        for (label, (pss, _)) in parts {
            out.push_str(&format!("{}\n", pair(label, pss)));
        }
    }
    out.push_str(&format!("{}\n", pair("Private Other:", of.private_other)));
    out.push_str(&format!("{}\n", pair("System:", of.system)));
    if android >= 11 {
        let unknown = pair("", of.unknown_rss);
        out.push_str(&format!("{} {unknown}\n \n", pair("Unknown:", "")));
        out.push_str(&format!(
            "{} {} {}\n",
            pair("TOTAL PSS:", total),
            pair("TOTAL RSS:", sum.rss()),
            pair(swap_label, swap)
        ));
    } else {
        out.push_str(&format!(
            " \n{} {}\n",
            pair("TOTAL:", total),
            pair(swap_label, swap)
        ));
    }
    out
}

/// Counts of the app itself.
pub(super) struct Counted {
    pub(super) objects: Vec<(&'static str, u64)>,
    pub(super) memory_used: u64,
    pub(super) overflow: u64,
    pub(super) malloc: u64,
    pub(super) databases: Vec<Database>,
}

/// An open database of the app.
pub(super) struct Database {
    pub(super) name: String,
    pub(super) page: u64,
    pub(super) size: u64,
    pub(super) lookaside: u64,
    pub(super) hits: u64,
    pub(super) misses: u64,
    pub(super) cache: u64,
}

/// Returns the app's objects on its heap after a collection, and its databases.
pub(super) fn counted(inside: &Ledger, package: Option<&Package>, android: u32) -> Counted {
    let java = inside.java;
    let count = |class: &str| java.map_or(0, |j| j.live.instances(class));
    let assets = count("android.content.res.AssetManager").max(1);
    let (local, proxies) = (
        count("android.os.Binder").max(3),
        count("android.os.BinderProxy") + 11,
    );
    let mut objects = vec![
        ("Views:", count("android.view.View")),
        ("ViewRootImpl:", count("android.view.ViewRootImpl")),
        ("AppContexts:", count("android.app.ContextImpl")),
        ("Activities:", count("android.app.Activity")),
        ("Assets:", 4 + assets * 3),
        ("AssetManagers:", assets),
        ("Local Binders:", local),
        ("Proxy Binders:", proxies),
        ("Parcel memory:", (local + proxies) / 6),
        ("Parcel count:", (local + proxies) * 2 / 3),
        ("Death Recipients:", proxies / 8),
    ];
    if android <= 15 {
        objects.push(("OpenSSL Sockets:", 0));
    }
    objects.push(("WebViews:", 0));
    let used = inside.databases_kb;
    let seconds = inside.awake / 1_000_000_000;
    let databases = package.filter(|p| !p.system && used > 0).map(|p| Database {
        name: format!("/data/user/0/{}/databases/feed.db", p.name),
        page: 4,
        size: 264,
        lookaside: 59,
        hits: seconds * 17,
        misses: 24 + seconds / 4,
        cache: 9,
    });
    Counted {
        objects,
        memory_used: used,
        overflow: used / 4,
        malloc: used.min(46),
        databases: databases.into_iter().collect(),
    }
}

pub(super) fn objects(inside: &Ledger, package: Option<&Package>, android: u32) -> String {
    let counted = counted(inside, package, android);
    let mut out = " \n Objects\n".to_owned();
    for two in counted.objects.chunks(2) {
        let line: Vec<String> = two.iter().map(|(label, n)| pair(label, n)).collect();
        out.push_str(&format!("{}\n", line.join(" ")));
    }
    if android >= 16
        && let Some(java) = inside.java
    {
        let bitmaps = java.live.instances("android.graphics.Bitmap");
        let kb = java.live.native() >> 10;
        out.push_str(" \n Native Allocations\n");
        for words in [("Count", "Total(kB)"), ("------", "------")] {
            out.push_str(&format!("{} {}\n", pair("", words.0), pair("", words.1)));
        }
        out.push_str(&format!(
            "{} {}\n",
            pair("Bitmap (nonmalloced):", bitmaps),
            pair("", kb)
        ));
    }
    out.push_str(&format!(
        " \n SQL\n{}\n{} {}\n",
        pair("MEMORY_USED:", counted.memory_used),
        pair("PAGECACHE_OVERFLOW:", counted.overflow),
        pair("MALLOC_SIZE:", counted.malloc)
    ));
    out.push_str(&databases(&counted.databases, android));
    if let Some(package) = package.filter(|p| !p.system && !counted.databases.is_empty()) {
        out.push_str(&format!(
            " \n Asset Allocations\n    zip:{}:/assets/fonts/inter.ttf: 76K\n",
            package.apk()
        ));
    }
    out
}

fn databases(all: &[Database], android: u32) -> String {
    if all.is_empty() {
        return " \n".to_owned();
    }
    let mut out = " \n DATABASES\n".to_owned();
    if android <= 15 {
        out.push_str(&line(["pgsz", "dbsz", "Lookaside(b)", "cache"], "Dbname"));
        for db in all {
            let cache = format!("{}/{}/{}", db.hits, db.misses, db.cache);
            let cells = [db.page, db.size, db.lookaside].map(|n| n.to_string());
            let [page, size, lookaside] = &cells;
            out.push_str(&line([page, size, lookaside, &cache], &db.name));
        }
        return out;
    }
    out.push_str(&format!(
        "  {:>8} {:>8} {:>14} {:>5} {:>5} {:>5}  Dbname\nPER CONNECTION STATS\n",
        "pgsz", "dbsz", "Lookaside(b)", "cache hits", "cache misses", "cache size"
    ));
    for db in all {
        out.push_str(&format!(
            "  {:>8} {:>8} {:>14} {:>5} {:>5} {:>5}  {}\n",
            db.page, db.size, db.lookaside, db.hits, db.misses, db.cache, db.name
        ));
    }
    out.push_str(&format!(
        "POOL STATS\n  {:>13} {:>13} {:>13}  Dbname\n",
        "cache hits", "cache misses", "cache size"
    ));
    for db in all {
        out.push_str(&format!(
            "  {:>13} {:>13} {:>13}  {}\n",
            db.hits,
            db.misses,
            db.hits + db.misses,
            db.name
        ));
    }
    out
}

fn line(cells: [&str; 4], name: &str) -> String {
    let [page, size, lookaside, cache] = cells;
    format!("  {page:>8} {size:>8} {lookaside:>14} {cache:>14}  {name}\n")
}
