//! The line of a process for `--checkin`.

use super::table::{self, Heaps};
use super::{Cmd, Seen, name};
use crate::memory::{Row, Sums};
use crate::packages;

/// Version of the line's format.
const VERSION: u32 = 4;

/// Returns the eight numbers of a row or a sum.
fn numbers(sums: &Sums) -> [u64; 8] {
    let pages = &sums.pages;
    [
        pages.pss,
        sums.clean_pss,
        pages.shared_dirty,
        pages.shared_clean,
        pages.private_dirty,
        pages.private_clean,
        pages.swap,
        pages.swap_pss,
    ]
}

pub(super) fn line(cmd: &Cmd, seen: &Seen, local: bool) -> String {
    let inside = seen.inside.as_ref().filter(|_| !local);
    let heaps: Heaps = inside.map(table::heaps).unwrap_or_default();
    let rows = seen.ledger.rows();
    let mut fields = vec![
        VERSION.to_string(),
        seen.process.pid.to_string(),
        name(&seen.process),
    ];
    let total = heaps.total();
    for (part, sum) in total.iter().enumerate() {
        fields.push(heaps.native[part].to_string());
        fields.push(heaps.dalvik[part].to_string());
        fields.push("N/A".to_owned());
        fields.push(sum.to_string());
    }
    let sum = rows.sum();
    let (native, dalvik) = (rows.row(Row::Native), rows.row(Row::Dalvik));
    let swap_pss = sum.pages.swap_pss > 0;
    let (native, dalvik, all) = (numbers(&native), numbers(&dalvik), numbers(&sum));
    for kind in 0..8 {
        if kind == 7 && !swap_pss {
            fields.extend(["N/A"; 4].map(str::to_owned));
            continue;
        }
        // The total of Pss includes swapped-out memory.
        let total = match kind {
            0 => rows.total_pss(),
            _ => all[kind],
        };
        fields.push(native[kind].to_string());
        fields.push(dalvik[kind].to_string());
        fields.push((all[kind] - native[kind] - dalvik[kind]).to_string());
        fields.push(total.to_string());
    }
    let named = Row::ALL.iter();
    let named = named.filter(|r| !matches!(r, Row::Native | Row::Dalvik | Row::Unknown));
    for row in named {
        fields.push(row.label().to_owned());
        let cells = numbers(&rows.row(*row));
        for (kind, n) in cells.iter().enumerate() {
            fields.push(match kind == 7 && !swap_pss {
                true => "N/A".to_owned(),
                false => n.to_string(),
            });
        }
    }
    let Some(inside) = inside else {
        return format!("{},\n", fields.join(","));
    };
    let android = cmd.kernel.spec.android;
    let package = packages::of_process(&cmd.kernel.state().packages, &seen.process);
    let counted = table::counted(inside, package.as_ref(), android);
    // Parcels and web views are not part of the line.
    let left_out = ["Parcel memory:", "Parcel count:", "WebViews:"];
    let objects = counted.objects.iter();
    let objects = objects.filter(|(label, _)| !left_out.contains(label));
    fields.extend(objects.map(|(_, n)| n.to_string()));
    let sql = [
        counted.memory_used,
        counted.memory_used,
        counted.overflow,
        counted.malloc,
    ];
    fields.extend(sql.map(|n| n.to_string()));
    for db in &counted.databases {
        fields.push(db.name.clone());
        fields.extend([db.page, db.size, db.lookaside].map(|n| n.to_string()));
        if android >= 16 {
            fields.extend([db.hits, db.misses, db.cache].map(|n| n.to_string()));
        } else {
            let cache = format!("{}/{}/{}", db.hits, db.misses, db.cache);
            fields.extend([cache.clone(), cache]);
        }
    }
    format!("{}\n", fields.join(","))
}
