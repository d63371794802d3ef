//! The whole device: its RAM, then its memory by process, by importance and by category.

use crate::commands::shared::meminfo::size;
use crate::console::columns::Columns;
use crate::console::flags::typed::of_same_name;
use crate::console::table::{Table, show_fitting};
use crate::console::{Console, Style};
use crate::heaps::meminfo::{By, PhoneFacts, Share};

/// Default number of lines of a list.
const PROCESSES: usize = 20;
const CATEGORIES: usize = 10;

/// Selection of lists and their lengths.
pub(super) struct Lists {
    by: Option<By>,
    limit: Option<usize>,
}

impl Lists {
    pub(super) fn from_args(args: &super::Args) -> Lists {
        Lists {
            by: args.by.and_then(of_same_name),
            limit: args.rows.limit,
        }
    }

    /// Returns the maximum number of lines of a list. A list that is selected alone has no limit by
    /// default.
    fn most(&self, usual: usize) -> usize {
        match (self.limit, self.by) {
            (Some(limit), _) => limit,
            (None, Some(_)) => usize::MAX,
            (None, None) => usual,
        }
    }

    pub(super) fn show(&self, console: &Console, phone: &PhoneFacts) {
        show_ram(console, phone);
        for by in [By::Process, By::Oom, By::Category] {
            if self.by.is_some_and(|wanted| wanted != by) {
                continue;
            }
            let shares = phone.shares(by);
            if shares.is_empty() {
                if self.by.is_some() {
                    console.say("the device did not print this list");
                }
                continue;
            }
            match by {
                By::Process => self.list(console, "process", &shares, PROCESSES),
                By::Oom if self.by.is_some() => self.importances(console, phone, &shares),
                By::Oom => self.list(console, "importance (OOM adjustment)", &shares, usize::MAX),
                By::Category => self.list(console, "category", &shares, CATEGORIES),
            }
        }
    }

    fn list(&self, console: &Console, what: &str, shares: &[Share], usual: usize) {
        let most = self.most(usual);
        let columns = columns(shares);
        let mut table = columns.table(what);
        for share in shares.iter().take(most) {
            add(&mut table, &columns, share, "");
        }
        finish(console, &mut table, shares.len().saturating_sub(most));
    }

    /// Shows each importance level with its processes.
    fn importances(&self, console: &Console, phone: &PhoneFacts, shares: &[Share]) {
        let most = self.most(PROCESSES);
        let columns = columns(shares);
        let mut table = columns.table("importance (OOM adjustment), its processes");
        let mut more = 0;
        for share in shares {
            add(&mut table, &columns, share, "");
            table.style(Style::Strong);
            let mut members = phone.members(&share.name);
            more += members.len().saturating_sub(most);
            for member in members.iter_mut().take(most) {
                member.oom = None;
                add(&mut table, &columns, member, "  ");
            }
        }
        finish(console, &mut table, more);
    }
}

fn finish(console: &Console, table: &mut Table, more: usize) {
    console.data("");
    show_fitting(console, table, &["swapped", "RSS"]);
    if more > 0 {
        let more = format!("… and {more} more (`-l 0`, `--json` and `--csv` show all)");
        console.in_style(Style::Dim, more);
    }
}

/// Heading and figures of a column.
type Column = (&'static str, fn(&Share) -> Option<i64>);

/// Returns the columns of figures that the device reports.
fn columns(shares: &[Share]) -> Columns<'static, Share> {
    let all: [Column; 3] = [
        ("PSS", |share| share.pss),
        ("swapped", |share| share.swap),
        ("RSS", |share| share.rss),
    ];
    all.into_iter()
        .fold(Columns::new(), |columns, (heading, of)| {
            let is_there = shares.iter().any(|share| of(share).is_some());
            let cell = move |share: &Share| of(share).map(size).unwrap_or_default();
            columns.with_if(is_there, heading, cell)
        })
}

fn add(table: &mut Table, columns: &Columns<'_, Share>, share: &Share, indent: &str) {
    table.row(columns.values(share), share.name.as_str());
    table.lead(indent);
    if let Some(pid) = share.pid {
        let oom = share.oom.as_deref();
        let oom = oom.map_or_else(String::new, |oom| format!(", {oom}"));
        table.remark(format!("pid {pid}{oom}"));
    }
}

fn show_ram(console: &Console, phone: &PhoneFacts) {
    let width = phone.ram.iter().map(|line| line.name.chars().count()).max();
    let width = width.unwrap_or(0).min(32);
    for line in &phone.ram {
        let bytes = line.bytes.map(size).unwrap_or_default();
        let mut of: Vec<(&String, &i64)> = line.of.iter().collect();
        of.sort_by_key(|(_, bytes)| std::cmp::Reverse(**bytes));
        let parts: Vec<String> = of
            .iter()
            .map(|(name, bytes)| format!("{} {name}", size(**bytes)))
            .collect();
        // Contains limits of Java heaps in MiB and other values, not bytes.
        let text = match line.name.as_str() {
            "Tuning" => line.text.clone(),
            _ if parts.is_empty() => bytes,
            _ => format!("{bytes}: {}", parts.join(", ")),
        };
        console.data(format_args!("{:>width$}  {text}", line.name));
    }
}
