//! Memory of the whole phone: processes, categories of processes and kinds of memory by size, and
//! free memory.

use super::observation::{Options, Seen, is_native, look, name};
use super::{Cmd, Halt};
use crate::memory::{Ledger, Row};
use crate::process::{Process, Role};

/// Categories of processes, from the last to be killed to the first: minimum score and label.
const KINDS: [(i32, &str); 16] = [
    (-1_000, "Native"),
    (-900, "System"),
    (-800, "Persistent"),
    (-700, "Persistent Service"),
    (0, "Foreground"),
    (100, "Visible"),
    (200, "Perceptible"),
    (225, "Perceptible Medium"),
    (250, "Perceptible Low"),
    (300, "Backup"),
    (400, "Heavy Weight"),
    (500, "A Services"),
    (600, "Home"),
    (700, "Previous"),
    (800, "B Services"),
    (900, "Cached"),
];

fn kind(process: &Process) -> usize {
    let score = match process.role {
        Role::SystemServer => -900,
        Role::App { .. } => process.oom_score_adj,
        _ => -1_000,
    };
    KINDS
        .iter()
        .rposition(|(least, _)| score >= *least)
        .unwrap_or(0)
}

/// Formats `%,9dK`.
pub(super) fn kilobytes(kb: u64) -> String {
    let digits = kb.to_string();
    let mut text = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(c);
    }
    format!("{text:>9}K")
}

/// A line of a list with its sub-items.
#[derive(Debug, Clone, Default)]
struct Item {
    label: String,
    pss: u64,
    swap: u64,
    rss: u64,
    below: Vec<Item>,
}

impl Item {
    fn size(&self, rss: bool) -> u64 {
        if rss { self.rss } else { self.pss }
    }
}

fn item(process: &Process, ledger: &Ledger, android: u32) -> Item {
    let rows = ledger.rows();
    let sum = rows.sum();
    let name = name(process);
    let windows = ledger.java.is_some_and(|j| {
        j.live.instances("android.app.Activity") > 0 && process.oom_score_adj < 900
    });
    let activities = if windows { " / activities" } else { "" };
    let user = match process.uid / 100_000 {
        0 => String::new(),
        user if android >= 12 => format!(" (user {user})"),
        _ => String::new(),
    };
    Item {
        label: format!("{name} (pid {}{activities}){user}", process.pid),
        pss: rows.total_pss(),
        swap: sum.pages.swap_pss,
        rss: sum.pages.rss(),
        below: Vec::new(),
    }
}

fn list(out: &mut String, items: &[Item], options: &Options, rss: bool, depth: usize) {
    let mut sorted: Vec<&Item> = items.iter().filter(|i| i.size(rss) > 0).collect();
    sorted.sort_by_key(|i| std::cmp::Reverse(i.size(rss)));
    for item in sorted {
        let prefix = " ".repeat(2 + 4 * depth);
        let size = kilobytes(item.size(rss));
        if options.swap && !rss {
            let swap = kilobytes(item.swap);
            let label = &item.label;
            out.push_str(&format!("{prefix}{size}: {label:<60} ({swap} in swap)\n"));
        } else {
            out.push_str(&format!("{prefix}{size}: {}\n", item.label));
        }
        list(out, &item.below, options, rss, depth + 1);
    }
}

pub(super) fn print(cmd: &Cmd, seen: &[Seen], options: &Options, whole: bool) -> Result<(), Halt> {
    let android = cmd.kernel.spec.android;
    let all = seen.iter().map(|s| (s.process.clone(), s.ledger.clone()));
    let mut all: Vec<(Process, Ledger)> = all.collect();
    if whole {
        let natives = cmd.kernel.state().processes.select(is_native);
        for process in natives {
            let seen = look(cmd, process, options, false)?;
            all.extend(seen.map(|seen| (seen.process, seen.ledger)));
        }
    }
    let mut kinds: Vec<Item> = KINDS
        .iter()
        .map(|(_, label)| Item {
            label: (*label).to_owned(),
            ..Item::default()
        })
        .collect();
    let categories = categories(&all);
    let mut processes = Vec::new();
    for (process, ledger) in &all {
        let item = item(process, ledger, android);
        let of = &mut kinds[kind(process)];
        of.pss += item.pss;
        of.swap += item.swap;
        of.rss += item.rss;
        of.below.push(item.clone());
        processes.push(item);
    }
    let mut out = String::new();
    for rss in [true, false] {
        if rss && android < 11 {
            continue;
        }
        let word = if rss { "RSS" } else { "PSS" };
        for (by, items) in [
            ("process", &processes),
            ("OOM adjustment", &kinds),
            ("category", &categories),
        ] {
            out.push_str(&format!("\nTotal {word} by {by}:\n"));
            list(&mut out, items, options, rss, 0);
        }
    }
    cmd.out(&out)?;
    if whole {
        cmd.out(&tail(cmd, &all))?;
    }
    Ok(())
}

/// Returns memory by rows over all processes.
fn categories(all: &[(Process, Ledger)]) -> Vec<Item> {
    let tables: Vec<_> = all.iter().map(|(_, ledger)| ledger.rows()).collect();
    let sum = |row: Row| {
        let mut item = Item::default();
        for table in &tables {
            let sums = table.row(row);
            item.pss += sums.pages.pss;
            item.swap += sums.pages.swap_pss;
            item.rss += sums.pages.rss();
        }
        let label = match row {
            Row::Native => "Native",
            Row::Dalvik => "Dalvik",
            other => other.name(),
        };
        item.label = label.to_owned();
        item
    };
    Row::ALL.map(sum).into()
}

/// Returns the lines below the lists: the phone's memory as a whole.
fn tail(cmd: &Cmd, all: &[(Process, Ledger)]) -> String {
    let kernel = &cmd.kernel;
    let (ram, limits) = {
        let state = kernel.state();
        let ram = kernel.memory.ram(&state);
        (ram, crate::memory::limits(&state))
    };
    let pss: u64 = all.iter().map(|(_, l)| l.rows().total_pss()).sum();
    let cached: u64 = all
        .iter()
        .filter(|(p, _)| p.oom_score_adj >= 900 && p.role != Role::SystemServer)
        .map(|(_, l)| l.rows().total_pss())
        .sum();
    let swapped: u64 = all.iter().map(|(_, l)| l.pages().swap_pss).sum();
    let cached_kernel = ram.cached - ram.mapped - ram.shmem + ram.buffers + ram.slab / 3;
    let free = cached + cached_kernel + ram.free;
    let used = (pss - cached) + ram.kernel();
    let lost = ram.total as i64
        - (pss - swapped) as i64
        - ram.free as i64
        - cached_kernel as i64
        - ram.kernel() as i64
        - ram.zram() as i64;
    let large = (limits.growth * 2) >> 20;
    let growth = limits.growth >> 20;
    let status = match ram.available() * 100 / ram.total {
        0..=4 => "critical",
        5..=8 => "low",
        9..=12 => "moderate",
        _ => "normal",
    };
    let kb = kilobytes;
    let mut out = format!(
        "\nTotal RAM: {} (status {status})\n Free RAM: {} ({} cached pss + {} cached kernel + {} free)\n",
        kb(ram.total),
        kb(free),
        kb(cached),
        kb(cached_kernel),
        kb(ram.free)
    );
    let graphics = ram.graphics;
    if kernel.spec.android >= 12 {
        out.push_str(&format!(
            "DMA-BUF: {} ({} mapped + {} unmapped)\nDMA-BUF Heaps: {}\nDMA-BUF Heaps pool: {}\n",
            kb(graphics),
            kb(graphics / 8),
            kb(graphics - graphics / 8),
            kb(graphics),
            kb(graphics / 5)
        ));
    } else {
        out.push_str(&format!(
            "      ION: {} ({} mapped + {} unmapped + {} pools)\n",
            kb(graphics + graphics / 5),
            kb(graphics / 8),
            kb(graphics - graphics / 8),
            kb(graphics / 5)
        ));
    }
    let lost = match lost {
        ..0 => format!("{:>9}K", lost),
        lost => kb(lost as u64),
    };
    out.push_str(&format!(
        " Used RAM: {} ({} used pss + {} kernel)\n Lost RAM: {lost}\n\
         \u{20}    ZRAM: {} physical used for {} in swap ({} total swap)\n\
         \u{20}  Tuning: {growth} (large {large}), oom   322,560K, restore limit   107,520K (high-end-gfx)\n",
        kb(used),
        kb(pss - cached),
        kb(ram.kernel()),
        kb(ram.zram()),
        kb(ram.swap_used),
        kb(ram.swap_total)
    ));
    out
}
