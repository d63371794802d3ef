//! Names for a Java heap: its classes, arrays and class objects of them, and fields, from maps
//! of any kind. Which map is for a class follows, as in Perfetto, from the APK it was loaded
//! from, else from the app whose heap it is; code of the platform has its names.

use super::app_map::{AppMap, MapSource, Scope};
use super::owner::{Owner, Packages, is_platform};
use super::packets::PacketMap;
use super::retracer::{FieldType, Retracer};
use super::types::Type;
use heaptap_model::heap_graph::{BasicType, FieldRenamer, HeapGraph, OriginalField};
use heaptap_model::names::platform;
use heaptap_model::profile::Recording;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Names all classes and fields of a heap that a map knows; says how many classes each map
/// named. Of several maps for a class, the first that knows it names it.
pub fn name_heap(graph: &mut HeapGraph, recording: &Recording, maps: &[AppMap]) -> Vec<u64> {
    let mut named = vec![0; maps.len()];
    if maps.is_empty() {
        return named;
    }
    let namer = Namer::of(graph, recording, maps);
    for at in 0..graph.classes().len() {
        let class = &graph.classes()[at];
        let choice = namer.choice(class.location.as_deref());
        let Some((name, by)) = namer.type_by(choice, &class.name) else {
            continue;
        };
        let fields: Vec<Option<String>> = class
            .fields
            .iter()
            .map(|field| {
                let of_type = match (&field.type_name, field.basic) {
                    (Some(name), _) => FieldType::Exactly(name),
                    (None, Some(basic)) if basic != BasicType::Object => {
                        FieldType::Exactly(basic.name())
                    }
                    (None, Some(_)) => FieldType::Object,
                    (None, None) => FieldType::Unknown,
                };
                let found = namer.field_by(choice, &class.name, &field.name, of_type);
                found.map(|original| original.name)
            })
            .collect();
        named[by] += 1;
        let class = &mut graph.classes_mut()[at];
        class.deobfuscated = (name != class.name).then_some(name);
        for (field, name) in class.fields.iter_mut().zip(fields) {
            field.deobfuscated = name.filter(|name| *name != field.name);
        }
    }
    graph.contents_mut().rename_fields(&namer);
    named
}

/// Names of the classes that a heap has under minified names; empty if few are, or if a map
/// named any class.
pub fn minified_classes(graph: &HeapGraph) -> Vec<&str> {
    let classes = graph.classes();
    if classes.iter().any(|class| class.deobfuscated.is_some()) {
        return Vec::new();
    }
    minified_among(classes.iter().map(|class| class.name.as_str()))
}

fn minified_among<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let of_app: BTreeSet<&str> = names.filter(|name| !is_of_platform(name)).collect();
    let minified: Vec<&str> = of_app.iter().copied().filter(|n| is_minified(n)).collect();
    // Some libraries are minified by their makers.
    let few = minified.len() < 3 || minified.len() * 10 < of_app.len();
    if few { Vec::new() } else { minified }
}

/// Whether a class is no app's, by its name: an HPROF does not say where it was loaded from.
fn is_of_platform(class: &str) -> bool {
    let is_array = class.starts_with('[') || class.ends_with(']');
    // Dumps list primitive types as classes, and the name of `int` is as short as minified ones.
    is_array || class == "int" || platform::is_platform(class)
}

/// Whether R8 might have made the name: `a`, `b.c`, `x.y.Outer$a1`. `zza` and the like are of
/// Google's libraries.
fn is_minified(class: &str) -> bool {
    let name = class.rsplit(['.', '$']).next().unwrap_or(class);
    let is_short = (1..=3).contains(&name.len()) && !name.starts_with("zz");
    let mut letters = name.bytes();
    let first = letters.next().is_some_and(|b| b.is_ascii_lowercase());
    is_short && first && letters.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
}

/// A map that classes are asked of.
enum Source<'a> {
    File(Retracer<'a>),
    Packets(PacketMap<'a>),
}

impl Source<'_> {
    fn class(&self, obfuscated: &str) -> Option<String> {
        match self {
            Source::File(file) => file.class(obfuscated).map(|class| class.name.to_owned()),
            Source::Packets(map) => map.class(obfuscated).map(|c| c.original.to_owned()),
        }
    }

    fn field(&self, class: &str, field: &str, of_type: FieldType) -> Option<OriginalField> {
        let original = |class: &str, name: &str| OriginalField {
            class: class.to_owned(),
            name: name.to_owned(),
        };
        match self {
            Source::File(file) => {
                let fields = file.field(class, field, of_type);
                // The dump's word for a type may be one that the map does not go by.
                let fields = match fields.is_empty() {
                    true => file.field(class, field, FieldType::Unknown),
                    false => fields,
                };
                let first = fields.first()?;
                Some(original(first.class, first.name))
            }
            Source::Packets(map) => {
                let class = map.class(class)?;
                let first = class.fields(field).first()?;
                Some(original(first.holder, first.name))
            }
        }
    }
}

/// Which maps may name a class, by position, in order: the number of a [`Namer::choices`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Choice(usize);

impl Choice {
    /// Code of the platform.
    const NONE: Choice = Choice(0);
    /// Classes of which only the process tells whose they are.
    const OF_PROCESS: Choice = Choice(1);
    /// Of an app that no map is for.
    const ANYWHERE: Choice = Choice(2);
    /// Whatever there is.
    const ALL: Choice = Choice(3);
}

struct Namer<'a> {
    sources: Vec<Source<'a>>,
    choices: Vec<Vec<usize>>,
    by_package: BTreeMap<String, Choice>,
    /// By the name of a class in the app: that of the first class of that name.
    by_class: HashMap<String, Choice>,
    /// Classes that were asked for as types of fields.
    known: RefCell<HashMap<String, Option<String>>>,
}

impl<'a> Namer<'a> {
    fn of(graph: &HeapGraph, recording: &Recording, maps: &[AppMap<'a>]) -> Namer<'a> {
        let sources = maps.iter().map(|map| match map.source {
            MapSource::File(file) => Source::File(Retracer::new(file)),
            MapSource::Packets(map) => Source::Packets(PacketMap::new(map)),
        });
        let mut of_package: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let mut anywhere = Vec::new();
        for (at, map) in maps.iter().enumerate() {
            match &map.scope {
                // Packets of no package are meant for heap graphs of any.
                Scope::Package(package) if !package.is_empty() => {
                    of_package.entry(package).or_default().push(at);
                }
                Scope::Package(_) | Scope::Unclaimed => anywhere.push(at),
            }
        }
        let mut of_process = Vec::new();
        for package in packages_of(graph, recording) {
            of_process.extend(of_package.get(&*package).into_iter().flatten());
        }
        if of_process.is_empty() {
            of_process = (0..maps.len()).collect();
        } else {
            of_process.extend(&anywhere);
        }
        let all = (0..maps.len()).collect();
        let mut choices = vec![Vec::new(), of_process, anywhere.clone(), all];
        let mut by_package = BTreeMap::new();
        for (package, mut own) in of_package {
            own.extend(&anywhere);
            by_package.insert(package.to_owned(), Choice(choices.len()));
            choices.push(own);
        }
        let mut namer = Namer {
            sources: sources.collect(),
            choices,
            by_package,
            by_class: HashMap::new(),
            known: RefCell::default(),
        };
        for class in graph.classes() {
            let choice = namer.choice(class.location.as_deref());
            namer.by_class.entry(class.name.clone()).or_insert(choice);
        }
        namer
    }

    fn choice(&self, location: Option<&str>) -> Choice {
        let Some(location) = location else {
            return Choice::OF_PROCESS;
        };
        match Owner::of(location) {
            Owner::Package(package) => {
                let known = self.by_package.get(package).copied();
                known.unwrap_or(Choice::ANYWHERE)
            }
            _ if is_platform(location) => Choice::NONE,
            _ => Choice::OF_PROCESS,
        }
    }

    /// What a class, an array or a class object is called, and which map says so.
    fn type_by(&self, choice: Choice, name: &str) -> Option<(String, usize)> {
        let found = Cell::new(None);
        let renamed = Type::parse(name).written(|class| {
            let mut maps = self.choices[choice.0].iter();
            match maps.find_map(|&at| Some((self.sources[at].class(class)?, at))) {
                Some((name, at)) => {
                    found.set(Some(at));
                    name
                }
                None => class.to_owned(),
            }
        });
        Some((renamed, found.get()?))
    }

    fn field_by(
        &self,
        choice: Choice,
        class: &str,
        field: &str,
        of_type: FieldType,
    ) -> Option<OriginalField> {
        let mut maps = self.choices[choice.0].iter();
        maps.find_map(|&at| self.sources[at].field(class, field, of_type))
    }
}

impl FieldRenamer for Namer<'_> {
    fn field(&self, class: &str, field: &str, type_name: Option<&str>) -> Option<OriginalField> {
        let choice = self.by_class.get(class).copied();
        let of_type = type_name.map_or(FieldType::Unknown, FieldType::Exactly);
        let choice = choice.unwrap_or(Choice::OF_PROCESS);
        let found = self.field_by(choice, class, field, of_type);
        // Which of several classes of that name declares it is not known.
        let any = || self.field_by(Choice::ALL, class, field, of_type);
        found.or_else(|| any().filter(|_| choice != Choice::NONE))
    }

    fn type_name(&self, name: &str) -> Option<String> {
        if let Some(known) = self.known.borrow().get(name) {
            return known.clone();
        }
        let choice = self.by_class.get(name).copied();
        let found = self.type_by(choice.unwrap_or(Choice::OF_PROCESS), name);
        let found = found.map(|(name, _)| name);
        self.known
            .borrow_mut()
            .insert(name.to_owned(), found.clone());
        found
    }
}

/// The packages of the process whose heap it is, most likely first.
fn packages_of(graph: &HeapGraph, recording: &Recording) -> Vec<String> {
    let packages = Packages::of(recording);
    let by_pid = graph.facts.pid.map(|pid| packages.of_process(pid));
    let known = by_pid.unwrap_or_default();
    if !known.is_empty() {
        return known.into_iter().map(str::to_owned).collect();
    }
    // `com.example.app:service`
    let name = graph.facts.process.split(':').next().unwrap_or_default();
    match name.contains('.') && !name.contains('/') {
        true => vec![name.to_owned()],
        false => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minified_classes_of_apps_below_org_are_seen_and_those_of_android_are_not() {
        let app = [
            "org.example.app.a",
            "org.example.app.b",
            "org.example.app.c",
        ];
        assert_eq!(minified_among(app.into_iter()), app);
        let platform = [
            "android.util.a",
            "org.apache.http.a",
            "org.json.a",
            "org.w3c.dom.a",
            "org.xml.sax.a",
            "org.xmlpull.v1.a",
            "org.ccil.cowan.tagsoup.a",
            "a[]",
            "int",
        ];
        assert!(minified_among(platform.into_iter()).is_empty());
    }

    #[test]
    fn a_few_minified_classes_among_many_are_of_a_library() {
        let few = ["lib.a", "lib.b"];
        assert!(minified_among(few.into_iter()).is_empty());
        let more: Vec<String> = (0..40)
            .map(|n| format!("org.example.app.Screen{n}"))
            .collect();
        let names = more.iter().map(String::as_str);
        assert!(minified_among(names.chain(["lib.a", "lib.b", "lib.c"])).is_empty());
    }
}
