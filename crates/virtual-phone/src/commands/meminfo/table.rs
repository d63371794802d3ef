//! Table of a process in the layout of each Android release: columns, App Summary, Dalvik Details,
//! objects, databases.

use super::observation::Options;
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

/// Columns before those of the heap: the words above them, and whether only `-a` prints them.
const COLUMNS: [(&str, &str, bool); 8] = [
    ("Pss", "Total", false),
    ("Pss", "Clean", true),
    ("Shared", "Dirty", true),
    ("Private", "Dirty", false),
    ("Shared", "Clean", true),
    ("Private", "Clean", false),
    ("Swap", "Dirty", false),
    ("Rss", "Total", false),
];

/// Columns of the table of one process.
struct Layout {
    android: u32,
    swap_pss: bool,
    full: bool,
}

impl Layout {
    /// Formats `%13s` and a cell of width 8 for each shown column; a label that is too long shifts
    /// the cells.
    fn row(&self, label: &str, cells: [String; 8], heap: [String; 3]) -> String {
        let shown = |(above, _, full): (&str, &str, bool)| {
            (self.full || !full) && (above != "Rss" || self.android >= 11)
        };
        let cells = COLUMNS.into_iter().zip(cells);
        let cells = cells.filter(|(column, _)| shown(*column));
        let cells = cells.map(|(_, cell)| cell).chain(heap);
        let cells: String = cells.map(|cell| format!(" {cell:>8}")).collect();
        format!("{label:>13}{cells}\n")
    }

    fn head(&self) -> String {
        let swap = if self.swap_pss { "SwapPss" } else { "Swap" };
        let above = COLUMNS.map(|(word, ..)| word.replace("Swap", swap));
        let below = COLUMNS.map(|(_, word, _)| word.to_owned());
        let rows = [
            (above, ["Heap"; 3]),
            (below, ["Size", "Alloc", "Free"]),
            (COLUMNS.map(|_| "------".to_owned()), ["------"; 3]),
        ];
        let rows = rows.into_iter();
        rows.map(|(cells, heap)| self.row("", cells, heap.map(str::to_owned)))
            .collect()
    }

    fn sums(&self, label: &str, sums: &Sums, total_pss: u64, heap: Option<[u64; 3]>) -> String {
        let pages = &sums.pages;
        let cells = [
            total_pss,
            sums.clean_pss,
            pages.shared_dirty,
            pages.private_dirty,
            pages.shared_clean,
            pages.private_clean,
            if self.swap_pss {
                pages.swap_pss
            } else {
                pages.swap
            },
            sums.pages.rss(),
        ];
        let heap = heap.map(|heap| heap.map(|kb| kb.to_string()));
        self.row(
            label,
            cells.map(|kb| kb.to_string()),
            heap.unwrap_or_default(),
        )
    }
}

/// Returns the table, the details if requested, and the summary.
pub(super) fn table(rows: &Rows, heaps: Heaps, android: u32, options: &Options) -> String {
    let sum = rows.sum();
    let layout = Layout {
        android,
        swap_pss: sum.pages.swap_pss > 0,
        full: options.full,
    };
    let mut out = layout.head();
    for which in Row::ALL {
        let sums = rows.row(which);
        let heap = match which {
            Row::Native => Some(heaps.native),
            Row::Dalvik => Some(heaps.dalvik),
            _ => None,
        };
        if !sums.is_empty() || heap.is_some() || which == Row::Unknown {
            out.push_str(&layout.sums(which.name(), &sums, sums.pages.pss, heap));
        }
    }
    out.push_str(&layout.sums("TOTAL", &sum, rows.total_pss(), Some(heaps.total())));
    if options.dalvik {
        out.push_str(" \n Dalvik Details\n");
        for (label, sums) in details(rows, android) {
            if !sums.is_empty() {
                out.push_str(&layout.sums(label, &sums, sums.pages.pss, None));
            }
        }
    }
    out + &summary(rows, &layout)
}

/// Returns the details in the order of the release.
fn details(rows: &Rows, android: u32) -> Vec<(&'static str, Sums)> {
    let of = |detail: Detail| (detail.name(), rows.detail(detail));
    if android >= 11 {
        return Detail::ALL.map(of).into();
    }
    let mut jit = rows.detail(Detail::ZygoteJit);
    jit.pages.add(&rows.detail(Detail::AppJit).pages);
    let first = [Detail::Heap, Detail::Los, Detail::LinearAlloc, Detail::Gc];
    let last = [Detail::Zygote, Detail::NonMoving, Detail::IndirectRef];
    let first = first.into_iter().map(of).chain([(".JITCache", jit)]);
    first.chain(last.map(of)).collect()
}

fn pair(label: &str, value: impl std::fmt::Display) -> String {
    format!("{label:>21} {value:>8}")
}

fn summary(rows: &Rows, layout: &Layout) -> String {
    let of = rows.summary(layout.android);
    let sum = rows.sum();
    let total = rows.total_pss();
    // Older releases have no column for Rss.
    let has_rss = layout.android >= 11;
    let row = |label: &str, pss: String, rss: String| match has_rss {
        true => format!("{} {}\n", pair(label, pss), pair("", rss)),
        false => format!("{}\n", pair(label, pss)),
    };
    let mut out = " \n App Summary\n".to_owned();
    for (pss, rss) in [("Pss(KB)", "Rss(KB)"), ("------", "------")] {
        out.push_str(&row("", pss.to_owned(), rss.to_owned()));
    }
    let labels = ["Java Heap:", "Native Heap:", "Code:", "Stack:", "Graphics:"];
    for (label, (pss, rss)) in labels.into_iter().zip(of.parts) {
        out.push_str(&row(label, pss.to_string(), rss.to_string()));
    }
    for (label, kb) in [("Private Other:", of.private_other), ("System:", of.system)] {
        out.push_str(&format!("{}\n", pair(label, kb)));
    }
    let swap = match layout.swap_pss {
        true => pair("TOTAL SWAP PSS:", sum.pages.swap_pss),
        false => pair("TOTAL SWAP (KB):", sum.pages.swap),
    };
    if has_rss {
        out.push_str(&row("Unknown:", String::new(), of.unknown_rss.to_string()));
        let (pss, rss) = (
            pair("TOTAL PSS:", total),
            pair("TOTAL RSS:", sum.pages.rss()),
        );
        return out + &format!(" \n{pss} {rss} {swap}\n");
    }
    out + &format!(" \n{} {swap}\n", pair("TOTAL:", total))
}

/// Returns the app's objects on its heap after a collection, and its databases.
pub(super) fn objects(inside: &Ledger, package: Option<&Package>, android: u32) -> String {
    let count = |class: &str| inside.java.map_or(0, |j| j.live.instances(class));
    let assets = count("android.content.res.AssetManager").max(1);
    let local = count("android.os.Binder").max(3);
    let proxies = count("android.os.BinderProxy") + 11;
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
    let mut out = " \n Objects\n".to_owned();
    for two in objects.chunks(2) {
        let line: Vec<String> = two.iter().map(|(label, n)| pair(label, n)).collect();
        out.push_str(&format!("{}\n", line.join(" ")));
    }
    if android >= 16
        && let Some(java) = inside.java
    {
        out.push_str(&format!(
            " \n Native Allocations\n{} {}\n{} {}\n{} {}\n",
            pair("", "Count"),
            pair("", "Total(kB)"),
            pair("", "------"),
            pair("", "------"),
            pair("Bitmap (nonmalloced):", count("android.graphics.Bitmap")),
            pair("", java.live.native() >> 10)
        ));
    }
    let used = inside.databases_kb;
    out.push_str(&format!(
        " \n SQL\n{}\n{} {}\n",
        pair("MEMORY_USED:", used),
        pair("PAGECACHE_OVERFLOW:", used / 4),
        pair("MALLOC_SIZE:", used.min(46))
    ));
    match package.filter(|p| !p.system && used > 0) {
        None => out + " \n",
        Some(app) => out + &database(inside, app, android),
    }
}

/// Returns the database of an app and its fonts.
fn database(inside: &Ledger, app: &Package, android: u32) -> String {
    let seconds = inside.awake / 1_000_000_000;
    let (hits, misses) = (seconds * 17, 24 + seconds / 4);
    let name = format!("/data/user/0/{}/databases/feed.db", app.name);
    let left =
        |page: &str, size: &str, lookaside: &str| format!("  {page:>8} {size:>8} {lookaside:>14}");
    let (head, row) = (left("pgsz", "dbsz", "Lookaside(b)"), left("4", "264", "59"));
    let text = match android {
        ..=15 => {
            let cache = format!("{hits}/{misses}/9");
            format!(
                "{head} {:>14}  Dbname\n{row} {cache:>14}  {name}\n",
                "cache"
            )
        }
        _ => format!(
            "{head} cache hits cache misses cache size  Dbname\nPER CONNECTION STATS\n\
             {row} {hits:>5} {misses:>5} {:>5}  {name}\nPOOL STATS\n  {:>13} {:>13} {:>13}  Dbname\n\
             \x20 {hits:>13} {misses:>13} {:>13}  {name}\n",
            9,
            "cache hits",
            "cache misses",
            "cache size",
            hits + misses,
        ),
    };
    format!(
        " \n DATABASES\n{text} \n Asset Allocations\n    zip:{}:/assets/fonts/inter.ttf: 76K\n",
        app.apk()
    )
}
