//! Memory of the whole device: RAM and lists. Also merges lists: the device prints separate ones
//! for PSS and RSS, and the processes of each importance.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use android_memory::meminfo::{Fact, Item, List, Measure, Meminfo};

/// The whole device.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PhoneFacts {
    pub lists: Vec<ListFacts>,
    pub ram: Vec<RamFacts>,
    /// Merged lists by process, largest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<Share>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ListFacts {
    /// `pss` or `rss`.
    pub measure: String,
    /// `process`, `OOM adjustment`, `category`.
    pub by: String,
    pub items: Vec<ItemFacts>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ItemFacts {
    /// Process or category.
    pub name: String,
    /// Pid, for a process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    pub bytes: i64,
    /// Swapped out of it, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap: Option<i64>,
    /// Nesting depth.
    #[serde(default)]
    pub depth: usize,
}

/// A line about the device's RAM.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RamFacts {
    /// Name, such as `Free RAM`.
    pub name: String,
    /// First number, in bytes.
    pub bytes: Option<i64>,
    /// Further numbers, by their description.
    pub of: BTreeMap<String, i64>,
    /// The line as printed by the device.
    pub text: String,
}

/// Grouping of the device's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// Processes.
    Process,
    /// By importance, which decides how early a process is killed, with the processes of each.
    Oom,
    /// Kinds of memory.
    Category,
}

impl By {
    /// Returns the heading used by the device.
    fn heading(self) -> &'static str {
        match self {
            By::Process => "process",
            By::Oom => "OOM adjustment",
            By::Category => "category",
        }
    }
}

/// A line of the merged lists, in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Share {
    /// Process, importance or category.
    pub name: String,
    /// Pid, for a process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pss: Option<i64>,
    /// Swapped out of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap: Option<i64>,
    /// RSS; Android 11 and later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rss: Option<i64>,
    /// Importance of a process: `Foreground`, `Cached`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oom: Option<String>,
}

/// Ordered from last killed to first killed.
const IMPORTANCES: [&str; 16] = [
    "Native",
    "System",
    "Persistent",
    "Persistent Service",
    "Foreground",
    "Visible",
    "Perceptible",
    "Perceptible Medium",
    "Perceptible Low",
    "Backup",
    "Heavy Weight",
    "A Services",
    "Home",
    "Previous",
    "B Services",
    "Cached",
];

type Key = (String, Option<u32>);

impl PhoneFacts {
    /// Converts the parsed output.
    pub(super) fn from_meminfo(meminfo: &Meminfo) -> PhoneFacts {
        let mut phone = PhoneFacts {
            lists: meminfo.lists().map(ListFacts::from_list).collect(),
            ram: meminfo
                .facts()
                .map(RamFacts::from_fact)
                .chain(ram_of_scripts(meminfo))
                .collect(),
            processes: Vec::new(),
        };
        phone.processes = phone.shares(By::Process);
        phone
    }

    /// Returns the lines of a list, largest first; importances from last killed to first killed.
    /// Members of groups are left out; for the processes of importances see
    /// [`PhoneFacts::members`].
    pub fn shares(&self, by: By) -> Vec<Share> {
        let top = |item: &&ItemFacts| item.depth == 0;
        let listed = self.join(by, top);
        match by {
            By::Oom => {
                let mut listed = listed;
                // Vendor-specific entries come last.
                listed.sort_by_key(|of| {
                    let known = IMPORTANCES.iter().position(|known| *known == of.name);
                    known.unwrap_or(IMPORTANCES.len())
                });
                listed
            }
            // The lists for scripts only have processes below their importance.
            By::Process if listed.is_empty() => self.join(By::Oom, |item| item.pid.is_some()),
            By::Process => self.with_importance(listed),
            By::Category => listed,
        }
    }

    /// Returns the processes of an importance, largest first.
    pub fn members(&self, importance: &str) -> Vec<Share> {
        let mut members = self.join(By::Oom, |item| item.pid.is_some());
        let importances = self.importances();
        members
            .retain(|of| importances.get(&(of.name.clone(), of.pid)).copied() == Some(importance));
        members
    }

    fn lists(&self, by: By) -> impl Iterator<Item = &ListFacts> {
        self.lists
            .iter()
            .filter(move |list| list.by == by.heading())
    }

    fn join(&self, by: By, wanted: impl Fn(&&ItemFacts) -> bool) -> Vec<Share> {
        let mut joined: BTreeMap<Key, Share> = BTreeMap::new();
        for list in self.lists(by) {
            for item in list.items.iter().filter(&wanted) {
                let share = joined.entry((item.name.clone(), item.pid)).or_default();
                share.name.clone_from(&item.name);
                share.pid = item.pid;
                match list.measure.as_str() {
                    "rss" => share.rss = Some(item.bytes),
                    _ => share.pss = Some(item.bytes),
                }
                share.swap = share.swap.or(item.swap);
            }
        }
        let mut shares = self.with_importance(joined.into_values().collect());
        // PSS adds up to the device's RAM.
        shares.sort_by_key(|of| std::cmp::Reverse((of.pss, of.rss)));
        shares
    }

    fn with_importance(&self, mut shares: Vec<Share>) -> Vec<Share> {
        let importances = self.importances();
        for share in shares.iter_mut().filter(|share| share.pid.is_some()) {
            let key = (share.name.clone(), share.pid);
            share.oom = importances.get(&key).map(|of| (*of).to_owned());
        }
        shares
    }

    /// Returns the importance of each process.
    fn importances(&self) -> BTreeMap<Key, &str> {
        let mut found = BTreeMap::new();
        for list in self.lists(By::Oom) {
            let mut above = None;
            for item in &list.items {
                match (item.depth, above) {
                    (0, _) => above = Some(item.name.as_str()),
                    (_, Some(importance)) => {
                        found.insert((item.name.clone(), item.pid), importance);
                    }
                    _ => {}
                }
            }
        }
        found
    }
}

impl ListFacts {
    fn from_list(list: &List) -> ListFacts {
        let item = |item: &Item| ItemFacts {
            name: item.name().to_owned(),
            pid: item.pid(),
            bytes: item.bytes,
            swap: item.swap(),
            depth: item.depth,
        };
        ListFacts {
            measure: match list.measure {
                Measure::Pss => "pss".to_owned(),
                Measure::Rss => "rss".to_owned(),
            },
            by: list.by.clone(),
            items: list.items.values().map(item).collect(),
        }
    }
}

impl RamFacts {
    fn from_fact(fact: &Fact) -> RamFacts {
        // The first amount is that of the line itself.
        let parts = fact.amounts().skip(1).filter(|(_, name)| !name.is_empty());
        RamFacts {
            name: fact.name.clone(),
            bytes: fact.bytes(),
            of: parts
                .map(|(bytes, name)| (name.to_owned(), bytes))
                .collect(),
            text: fact.text.clone(),
        }
    }
}

/// Reads the device's RAM from the lines of `-c`.
fn ram_of_scripts(meminfo: &Meminfo) -> Vec<RamFacts> {
    let names: [(&str, &[&str]); 3] = [
        ("ram", &["Total RAM", "Free RAM", "Used RAM"]),
        ("lostram", &["Lost RAM"]),
        ("zram", &["ZRAM", "ZRAM swap total", "ZRAM swap free"]),
    ];
    let mut ram = Vec::new();
    for (kind, names) in names {
        let numbers = meminfo.numbers(kind).unwrap_or_default();
        ram.extend(names.iter().zip(numbers).map(|(name, bytes)| RamFacts {
            name: (*name).to_owned(),
            bytes: Some(bytes),
            of: BTreeMap::new(),
            text: String::new(),
        }));
    }
    ram
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heaps::meminfo::Document;
    use heaptap_model::timeline::Source;

    const TEXT: &str = "Applications Memory Usage (in Kilobytes):\nUptime: 1 Realtime: 2\n\n\
        Total RSS by process:\n    300,000K: com.a (pid 7 / activities)\n     90,000K: com.b (pid 8)\n\n\
        Total PSS by process:\n    200,000K: com.a (pid 7 / activities)                        (    1,024K in swap)\n     \
        50,000K: com.b (pid 8)                        (    2,048K in swap)\n\n\
        Total PSS by OOM adjustment:\n    200,000K: Foreground                        (    1,024K in swap)\n        \
        200,000K: com.a (pid 7 / activities)                        (    1,024K in swap)\n     \
        50,000K: Cached                        (    2,048K in swap)\n         \
        50,000K: com.b (pid 8)                        (    2,048K in swap)\n\n\
        Total PSS by category:\n    100,000K: Native                        (        0K in swap)\n";

    #[test]
    fn lists_of_pss_rss_and_importance_make_one() {
        let meminfo = Meminfo::parse(TEXT);
        let document = Document::new(&meminfo, "a".to_owned(), Source::Meminfo);
        let phone = document.phone.unwrap();
        let processes = phone.shares(By::Process);
        let first = &processes[0];
        assert_eq!((first.name.as_str(), first.pid), ("com.a", Some(7)));
        assert_eq!(first.pss, Some(200_000 * 1024));
        assert_eq!(first.rss, Some(300_000 * 1024));
        assert_eq!(first.swap, Some(1 << 20));
        assert_eq!(first.oom.as_deref(), Some("Foreground"));
        let kinds: Vec<String> = phone
            .shares(By::Oom)
            .into_iter()
            .map(|of| of.name)
            .collect();
        assert_eq!(kinds, ["Foreground", "Cached"]);
        let cached = phone.members("Cached");
        assert_eq!((cached.len(), cached[0].pid), (1, Some(8)));
        assert_eq!(phone.shares(By::Category)[0].name, "Native");
        assert_eq!(phone.processes, processes);
    }
}
