//! Activity of the synthetic apps and daemons: the callsites that allocate, with their stacks, as
//! declared in `sources.txt`, and the many callsites of the heavy app.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use super::code::Builder;
use super::site::{FrameDef, HeapDef, Life, Phase, Site};
use crate::numbers::mix;

/// A site in the table.
struct Row {
    name: &'static str,
    frames: Vec<&'static str>,
    per_second: f64,
    size: (u64, u64),
    life: Life,
    phase: Phase,
}

/// Contents of `sources.txt`.
#[derive(Default)]
struct Table {
    /// Parts of stacks by name.
    parts: BTreeMap<&'static str, Vec<&'static str>>,
    /// Owner, name and sites of each heap.
    heaps: Vec<(&'static str, &'static str, Vec<Row>)>,
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| parse(include_str!("sources.txt")))
}

fn parse(text: &'static str) -> Table {
    let mut table = Table::default();
    let mut part = "";
    let lines = text.lines();
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(frame) = line.strip_prefix("  ") {
            let frames = match frame.strip_prefix('@') {
                Some(name) => table.parts[name].clone(),
                None => vec![frame],
            };
            let site = table.heaps.last_mut().and_then(|heap| heap.2.last_mut());
            match site {
                Some(site) => site.frames.extend(frames),
                None => table.parts.entry(part).or_default().extend(frames),
            }
        } else if let Some(name) = line.strip_prefix('@') {
            part = name;
        } else if let Some(heap) = line.strip_prefix("= ") {
            let (owner, heap) = heap.split_once(' ').expect("a heap has an owner");
            table.heaps.push((owner, heap, Vec::new()));
        } else {
            let heap = table.heaps.last_mut().expect("sites follow their heap");
            let row = row(line).unwrap_or_else(|| panic!("{line:?} is not a site"));
            heap.2.push(row);
        }
    }
    table
}

/// Parses `NAME: RATE MIN-MAX LIFE [PHASE]`.
fn row(line: &'static str) -> Option<Row> {
    let (name, rest) = line.split_once(": ")?;
    let mut words = rest.split(' ');
    let range = |text: &str| {
        let (from, to) = text.split_once('-')?;
        Some((from.parse().ok()?, to.parse().ok()?))
    };
    Some(Row {
        name,
        frames: Vec::new(),
        per_second: words.next()?.parse().ok()?,
        size: range(words.next()?)?,
        life: match words.next()? {
            "forever" => Life::Forever,
            span => {
                let (from, to) = range(span.strip_suffix("ms")?)?;
                Life::Millis(from, to)
            }
        },
        phase: match words.collect::<Vec<_>>()[..] {
            [] => Phase::Always,
            ["first", ms] => Phase::First(ms.parse().ok()?),
            ["burst", period, on] => Phase::Burst {
                period: period.parse().ok()?,
                on: on.parse().ok()?,
            },
            ["activity", count] => Phase::Activity(count.parse().ok()?),
            _ => return None,
        },
    })
}

impl Builder {
    /// Returns the heaps of `app` (an ordinary app), `service` or `daemon`.
    pub(crate) fn heaps(&mut self, owner: &str) -> Vec<HeapDef> {
        let own = table().heaps.iter().filter(|heap| heap.0 == owner);
        own.map(|(_, name, rows)| {
            let sites = rows.iter().map(|row| {
                let Row {
                    size, life, phase, ..
                } = *row;
                self.site(row.name, &row.frames, row.per_second, size, life, phase)
            });
            HeapDef {
                name,
                sites: sites.collect(),
                in_turn: None,
            }
        })
        .collect()
    }

    /// Returns the sites whose allocations outside the Java heap live as long as an activity: the
    /// pixels of its header, the render data of its views.
    pub(crate) fn activity(&mut self) -> Vec<Site> {
        let heaps = self.heaps("activity").into_iter();
        heaps.flat_map(|heap| heap.sites).collect()
    }

    /// Returns the heaps of an app with `count` callsites in a tree of calls.
    pub(crate) fn heavy(&mut self, count: usize) -> Vec<HeapDef> {
        let mut heaps = self.heaps("app");
        let mut part = |name: &str| -> Vec<u32> {
            let frames = table().parts[name].iter();
            frames.map(|f| self.frame(f, None, 0)).collect()
        };
        let (root, leaf) = (part("worker"), part("new"));
        let mapping = self.mapping("libscene");
        let (size, base) = {
            let m = &self.mappings[mapping];
            (m.end - m.start, m.exact_offset)
        };
        // A tree with ten branches per level: its paths are the callsites.
        let mut nodes: BTreeMap<(u64, u64), u32> = BTreeMap::new();
        let leaves: Vec<Arc<str>> = (0..5_000)
            .map(|n| {
                let name = format!("Leaf{n}");
                format!("_ZN6engine5scene{}{name}5SpawnEv", name.len()).into()
            })
            .collect();
        let mut sites = Vec::with_capacity(count);
        for index in 0..count {
            let mut frames = root.clone();
            let mut rest = index;
            let mut node = 0u64;
            for level in 0..12u64 {
                node = mix(&[node, level, (rest % 10) as u64]) % 4_000;
                rest /= 10;
                let frame = match nodes.get(&(node, level)) {
                    Some(frame) => *frame,
                    None => {
                        let name = format!("Node{node}");
                        let length = name.len();
                        let frame = self.add(FrameDef {
                            mapping,
                            function: format!("_ZN6engine5scene{length}{name}6UpdateEf").into(),
                            rel_pc: ((mix(&[node, level]) % size) & !3) + base,
                        });
                        nodes.insert((node, level), frame);
                        frame
                    }
                };
                frames.push(frame);
            }
            // The last call differs for each site, so that no two are the same.
            frames.push(self.frames.len() as u32);
            self.frames.push(FrameDef {
                mapping,
                function: leaves[index % leaves.len()].clone(),
                rel_pc: index as u64 * 4 % size + base,
            });
            frames.extend(&leaf);
            let site = self.named_site(
                "scene".into(),
                frames,
                0.0,
                (4_096, 4_608),
                Life::Millis(900, 1_100),
                Phase::Always,
            );
            sites.push(site);
        }
        let per_tick = count.div_ceil(100);
        let malloc = &mut heaps[0];
        sites.append(&mut malloc.sites);
        malloc.sites = sites;
        malloc.in_turn = Some((count, per_tick));
        heaps
    }
}
