//! Writes a store of generated recordings, and the answers to the questions of `fleet/`, which it
//! counts while it writes: `generate_fleet STORE COUNT ANSWERS.json [--compact]`.
//!
//! Two apps, ten builds, 40 phones of three device classes. The last build has a function that
//! grew and a new leak on phones with little memory, and a class that doubled; one phone holds
//! more than the others. Shapes are those of a real recording: 1,650 callsites in three dumps, 85
//! frames deep, and 1,770 classes.

use heaptap_archive::{
    Callsites, ClassRow, Dump, LeakName, LeakRow, Names, Recording, SampleRow, Store, hash_text,
};
use heaptap_model::stacks::{Frame, Function, Kind, Library, NodeId, StackTable, TextId};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The app that is asked about, and the builds that are compared.
pub const APP: &str = "com.example.feed";
pub const FROM: &str = "103";
pub const TO: &str = "104";
/// Builds 95 to 104: their texts are not in the order of their numbers.
const FIRST_BUILD: usize = 95;
const BUILDS: usize = 10;
const PHONES: usize = 40;
const DEVICE_CLASSES: [&str; 3] = ["low-ram", "mid", "high"];
/// The phone that holds more than others.
const OUTLIER: usize = 7;

/// Size of each recording.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub callsites: usize,
    pub dumps: usize,
    pub depth: usize,
    pub classes: usize,
}

/// Shape of a recording of a real program.
pub const REAL: Shape = Shape {
    callsites: 1_650,
    dumps: 3,
    depth: 85,
    classes: 1_770,
};

/// A callsite, and what it allocates.
struct Site {
    callsite: i64,
    leaf: String,
    library: String,
    stack: String,
    /// Mean number of unreleased samples, and bytes of each.
    mean: f64,
    bytes: i64,
    /// It allocates only at the start.
    steady: bool,
    /// It grew in the last build, on phones with little memory.
    grew: bool,
}

fn sites(shape: Shape, app: &str, names: &mut Names) -> Vec<Site> {
    let mut rng = fastrand::Rng::with_seed(app.len() as u64);
    let words = [
        "Decode", "Cache", "Layout", "Bitmap", "Parse", "Queue", "Render", "Fetch",
    ];
    let mut table = StackTable::default();
    let frame = |table: &mut StackTable, name: &str, library: usize| {
        let path = format!("/data/app/~~x==/{app}/lib/arm64/lib{library}.so");
        let path = table.text(&path);
        let build_id = TextId::default();
        let library = table.library(Library { path, build_id });
        let function = Function {
            name: table.text(name),
            system_name: TextId::default(),
            library,
            kind: match name {
                "malloc" => Kind::Allocator,
                _ => Kind::Plain,
            },
        };
        let function = table.function(function);
        let file = TextId::default();
        table.frame(Frame {
            function,
            file,
            line: 0,
            inlined: false,
        })
    };
    let mut nodes = Vec::new();
    let mut path = vec![NodeId::ROOT];
    for at in 0..shape.callsites {
        // Stacks share their beginning with the one before.
        path.truncate(rng.usize(1..=path.len().min(shape.depth / 2 + 1)));
        while path.len() < shape.depth - 1 {
            let word = words[rng.usize(..words.len())];
            let name = format!("feed::{word}Stage::run{}(int)", rng.usize(..400));
            let frame = frame(&mut table, &name, rng.usize(..12));
            path.push(table.child(path[path.len() - 1], frame));
        }
        let name = match at {
            0 => "feed::Cache::put(Key const&)".to_owned(),
            at => format!("feed::{}::make{}(long)", words[at % words.len()], at % 600),
        };
        let leaf = frame(&mut table, &name, at % 12);
        let leaf = table.child(path[path.len() - 1], leaf);
        let malloc = frame(&mut table, "malloc", 99);
        nodes.push(table.child(leaf, malloc));
    }
    let callsites = Callsites::from_table(&table);
    let sites = nodes.into_iter().enumerate().map(|(at, node)| {
        let text = callsites.describe(node);
        let callsite = callsites.hash(node);
        names.callsites.insert(callsite, text.clone());
        Site {
            callsite,
            leaf: text.leaf,
            library: text.library,
            stack: text.stack,
            mean: 2.0 + 400.0 / (at as f64 + 4.0),
            bytes: [4096, 4096, 4096, 4096, 9000, 16_400, 65_552][rng.usize(..7)],
            steady: at % 5 < 3,
            grew: at == 0,
        }
    });
    sites.collect()
}

/// Draws a count with this mean; its variance is the mean, as that of samples.
fn draw(rng: &mut fastrand::Rng, mean: f64) -> i64 {
    let normal: f64 = (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0;
    (mean + normal * mean.sqrt()).round().max(0.0) as i64
}

/// Sums of one app, for the answers.
#[derive(Default)]
struct Counted {
    /// Recordings by device class and build.
    recordings: BTreeMap<(String, String), i64>,
    /// Bytes by device class, build, and leaf with library.
    functions: BTreeMap<(String, String, (String, String)), i64>,
    /// Objects and retained bytes by device class, build and class.
    classes: BTreeMap<(String, String, String), (i64, i64)>,
    /// Bytes by build and callsite.
    callsites: BTreeMap<(usize, i64), i64>,
    /// Recordings and bytes of the last build by device class and phone.
    phones: BTreeMap<(String, String), (i64, i64)>,
    /// Recordings and phones of the last build with the new leak.
    leaks: (i64, BTreeSet<String>),
}

/// Writes `count` recordings, and returns the answers.
///
/// # Errors
/// Returns an error if the store cannot be written.
pub fn generate(
    store: &mut Store,
    count: usize,
    shape: Shape,
) -> Result<Value, heaptap_archive::StoreError> {
    let mut rng = fastrand::Rng::with_seed(20_261_123);
    let mut apps: Vec<(Recording, Vec<Site>)> = ["com.example.mail", APP]
        .map(|app| {
            let mut recording = Recording {
                app: app.to_owned(),
                ..Recording::default()
            };
            let sites = sites(shape, app, &mut recording.names);
            for class in 0..shape.classes {
                let name = class_name(class);
                recording.names.classes.insert(hash_text(&name), name);
            }
            for leak in ["old", "new"] {
                let class = format!("{app}.{leak}.DetailActivity");
                let path = "com.example.Holder.listeners".to_owned();
                let name = LeakName { class, path };
                recording.names.leaks.insert(hash_text(leak), name);
            }
            (recording, sites)
        })
        .into();
    let mut counted = Counted::default();
    for number in 0..count {
        let (recording, sites) = &mut apps[number % 2];
        let build = number / 2 % BUILDS;
        let phone = number / (2 * BUILDS) % PHONES;
        one(recording, sites, (number, build, phone), shape, &mut rng);
        if recording.app == APP {
            counted.add(recording, sites, build);
        }
        store.append(recording)?;
    }
    Ok(counted.answers(&apps[1].1))
}

fn class_name(class: usize) -> String {
    format!("com.example.model.Row{class}")
}

/// Fills the rows of a recording.
fn one(
    recording: &mut Recording,
    sites: &[Site],
    (number, build, phone): (usize, usize, usize),
    shape: Shape,
    rng: &mut fastrand::Rng,
) {
    let is_new = build == BUILDS - 1;
    let device_class = DEVICE_CLASSES[phone % 3];
    let grows = is_new && device_class == "low-ram";
    recording.sha256 = (0..4).map(|_| format!("{:016x}", rng.u64(..))).collect();
    recording.build = (FIRST_BUILD + build).to_string();
    recording.day = format!("2026-01-{:02}", build + 1);
    recording.started_ms = Some(1_767_225_600_000 + number as i64 * 60_000);
    recording.phone = Some(format!("phone-{phone}"));
    recording.model = Some(format!("Model {}", phone % 10));
    recording.sdk = Some(34);
    recording.device_class = device_class.to_owned();
    recording.scenario = Some("scroll".to_owned());
    recording.verdict = Some("within".to_owned());
    recording.complete = true;
    recording.heaptap = "generated".to_owned();
    recording.dumps.clear();
    let factor = match phone {
        OUTLIER => 1.6,
        phone => 1.0 + (phone % 9) as f64 * 0.002,
    };
    // Unreleased and all samples of each callsite so far.
    let mut counts = vec![(0_i64, 0_i64); sites.len()];
    for at in 0..shape.dumps {
        let mut samples = Vec::with_capacity(sites.len());
        for (site, count) in sites.iter().zip(&mut counts) {
            let grown = if site.grew && grows { 1.5 } else { 1.0 };
            // Most callsites allocate at the start, and keep it.
            if at == 0 {
                *count = (draw(rng, site.mean * factor * grown), 0);
                count.1 = count.0;
            } else if !site.steady {
                *count = (
                    draw(rng, site.mean * factor * grown),
                    count.1 + draw(rng, site.mean),
                );
                count.1 = count.1.max(count.0);
            }
            let (live_n, alloc_n) = *count;
            if alloc_n > 0 {
                samples.push(SampleRow {
                    callsite: site.callsite,
                    alloc: Some((alloc_n * site.bytes, alloc_n)),
                    live: Some((live_n * site.bytes, live_n)),
                });
            }
        }
        let sum = |value: fn(&SampleRow) -> Option<(i64, i64)>| {
            let values = samples.iter().filter_map(value);
            Some(values.fold((0, 0), |sum, (bytes, n)| (sum.0 + bytes, sum.1 + n)))
        };
        recording.dumps.push(Dump {
            number: at as u32 + 1,
            label: Some(format!("round-{}", at + 1)),
            pid: 4321,
            process: recording.app.clone(),
            heap: "libc.malloc".to_owned(),
            kind: "cumulative".to_owned(),
            time_ns: Some(1_000_000_000 * (at as u64 + 1)),
            interval_bytes: 4096,
            is_last: at + 1 == shape.dumps,
            alloc: sum(|row| row.alloc),
            live: sum(|row| row.live),
            samples,
            ..Dump::default()
        });
    }
    let classes = (0..shape.classes).map(|class| {
        let doubled = if class == 3 && is_new { 2 } else { 1 };
        let objects = (doubled * (1 + 20_000 / (class + 1) + rng.usize(..3))) as u64;
        ClassRow {
            class: hash_text(&class_name(class)),
            objects,
            shallow_bytes: objects * 24,
            native_bytes: 0,
            retained_bytes: objects * (24 + class as u64 % 5 * 8),
        }
    });
    let classes = classes.collect();
    let leak = |leak: &str| LeakRow {
        leak: hash_text(leak),
        certainty: "confirmed",
        known: false,
        objects: 1,
        retained_bytes: 4096,
    };
    let mut leaks = vec![leak("old")];
    if grows && rng.u8(..10) < 3 {
        leaks.push(leak("new"));
    }
    recording.dumps.push(Dump {
        number: 1,
        pid: 4321,
        heap: "java".to_owned(),
        kind: "java".to_owned(),
        interval_bytes: 1,
        is_last: true,
        classes,
        leaks,
        ..Dump::default()
    });
}

impl Counted {
    fn add(&mut self, recording: &Recording, sites: &[Site], build: usize) {
        let device_class = recording.device_class.clone();
        let phone = recording.phone.clone().unwrap_or_default();
        let group = (device_class.clone(), recording.build.clone());
        *self.recordings.entry(group).or_insert(0) += 1;
        let of_callsite: BTreeMap<i64, &Site> =
            sites.iter().map(|site| (site.callsite, site)).collect();
        let is_new = recording.build == TO;
        let is_compared = is_new || recording.build == FROM;
        for dump in recording.dumps.iter().filter(|dump| dump.is_last) {
            for row in &dump.samples {
                let bytes = row.live.map_or(0, |live| live.0);
                *self.callsites.entry((build, row.callsite)).or_insert(0) += bytes;
                if is_compared {
                    let site = of_callsite[&row.callsite];
                    let function = (site.leaf.clone(), site.library.clone());
                    let key = (device_class.clone(), recording.build.clone(), function);
                    *self.functions.entry(key).or_insert(0) += bytes;
                }
            }
            for row in dump.classes.iter().filter(|_| is_compared) {
                let name = recording.names.classes[&row.class].clone();
                let key = (device_class.clone(), recording.build.clone(), name);
                let sums = self.classes.entry(key).or_insert((0, 0));
                sums.0 += row.objects as i64;
                sums.1 += row.retained_bytes as i64;
            }
            if is_new && dump.heap != "java" {
                let sums = self.phones.entry((device_class.clone(), phone.clone()));
                let sums = sums.or_insert((0, 0));
                sums.0 += 1;
                sums.1 += dump.live.map_or(0, |live| live.0);
            }
        }
        let has_new = |dump: &Dump| dump.leaks.iter().any(|row| row.leak == hash_text("new"));
        if recording.dumps.iter().any(has_new) {
            self.leaks.0 += 1;
            self.leaks.1.insert(phone);
        }
    }

    fn recordings(&self, device_class: &str, build: &str) -> f64 {
        let key = (device_class.to_owned(), build.to_owned());
        self.recordings.get(&key).copied().unwrap_or(0) as f64
    }

    fn answers(&self, sites: &[Site]) -> Value {
        json!({
            "grew": self.grew(),
            "classes": self.classes(),
            "top": self.top(sites),
            "outliers": self.outliers(),
            "leaks": match self.leaks.0 {
                0 => json!([]),
                n => json!([[
                    format!("{APP}.new.DetailActivity"),
                    "com.example.Holder.listeners",
                    n,
                    self.leaks.1.len(),
                ]]),
            },
        })
    }

    fn grew(&self) -> Vec<Value> {
        let mut rows = Vec::new();
        let keys: BTreeSet<_> = self
            .functions
            .keys()
            .map(|(class, _, f)| (class, f))
            .collect();
        for (device_class, function) in keys {
            let mean = |build: &str| {
                let key = (device_class.clone(), build.to_owned(), function.clone());
                let bytes = self.functions.get(&key).copied().unwrap_or(0);
                bytes as f64 / self.recordings(device_class, build)
            };
            let (before, after) = (mean(FROM), mean(TO));
            if after > before {
                let numbers = [before, after, after - before].map(|value| value.round() as i64);
                rows.push((device_class, function, numbers));
            }
        }
        rows.sort_by_key(|(class, function, numbers)| (-numbers[2], *class, *function));
        rows.truncate(20);
        let row = |(class, function, numbers): (&String, &(String, String), [i64; 3])| {
            json!([
                class, function.0, function.1, numbers[0], numbers[1], numbers[2]
            ])
        };
        rows.into_iter().map(row).collect()
    }

    fn classes(&self) -> Vec<Value> {
        let mut rows = Vec::new();
        let keys: BTreeSet<_> = self
            .classes
            .keys()
            .map(|(class, _, name)| (class, name))
            .collect();
        for (device_class, name) in keys {
            let means = |build: &str| {
                let key = (device_class.clone(), build.to_owned(), name.clone());
                let (objects, bytes) = self.classes.get(&key).copied().unwrap_or((0, 0));
                let n = self.recordings(device_class, build);
                (objects as f64 / n, bytes as f64 / n)
            };
            let (before, after) = (means(FROM), means(TO));
            if after.0 > before.0 {
                let numbers = [before.0, after.0, after.1].map(|value| value.round() as i64);
                rows.push((device_class, name, numbers));
            }
        }
        rows.sort_by_key(|(class, name, numbers)| (numbers[0] - numbers[1], *class, *name));
        rows.truncate(20);
        let row = |(class, name, numbers): (&String, &String, [i64; 3])| {
            json!([class, name, numbers[0], numbers[1], numbers[2]])
        };
        rows.into_iter().map(row).collect()
    }

    fn top(&self, sites: &[Site]) -> Vec<Value> {
        let mut found = Vec::new();
        for build in 0..BUILDS {
            let name = (FIRST_BUILD + build).to_string();
            let all: f64 = DEVICE_CLASSES
                .iter()
                .map(|class| self.recordings(class, &name))
                .sum();
            let rows = self.callsites.iter().filter(|((of, _), _)| *of == build);
            let mut rows: Vec<(i64, i64)> = rows
                .map(|((_, callsite), bytes)| (-bytes, *callsite))
                .collect();
            rows.sort_unstable();
            for (place, (bytes, callsite)) in (1..).zip(rows.into_iter().take(5)) {
                let site = sites.iter().find(|site| site.callsite == callsite);
                let Some(site) = site else { continue };
                let mean = (-bytes as f64 / all).round() as i64;
                found.push(json!([
                    name,
                    place,
                    site.leaf,
                    site.library,
                    mean,
                    site.stack
                ]));
            }
        }
        found
    }

    fn outliers(&self) -> Vec<Value> {
        let mut rows = Vec::new();
        for device_class in DEVICE_CLASSES {
            let phones = self
                .phones
                .iter()
                .filter(|((class, _), _)| class == device_class);
            let phones: Vec<(&String, i64, f64)> = phones
                .map(|((_, phone), (n, bytes))| (phone, *n, *bytes as f64 / *n as f64))
                .collect();
            let middle = median(phones.iter().map(|phone| phone.2));
            let spread = 1.4826 * median(phones.iter().map(|phone| (phone.2 - middle).abs()));
            for (phone, n, bytes) in phones {
                let deviations = (bytes - middle) / spread;
                if spread > 0.0 && (bytes - middle).abs() > 5.0 * spread {
                    let row = json!([
                        device_class,
                        phone,
                        n,
                        bytes.round() as i64,
                        middle.round() as i64,
                        deviations.round() as i64,
                    ]);
                    rows.push((deviations.abs(), phone, row));
                }
            }
        }
        rows.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
        rows.into_iter().map(|row| row.2).collect()
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[n / 2],
        n => (values[n / 2 - 1] + values[n / 2]) / 2.0,
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [store, count, answers, rest @ ..] = &args[..] else {
        return Err("usage: generate_fleet STORE COUNT ANSWERS.json [--compact]".into());
    };
    let mut store = Store::open(Path::new(store))?;
    let known = generate(&mut store, count.parse()?, REAL)?;
    std::fs::write(answers, serde_json::to_vec_pretty(&known)?)?;
    if rest.iter().any(|arg| arg == "--compact") {
        // The second one removes what the first one replaced.
        store.compact()?;
        store.compact()?;
    }
    Ok(())
}
