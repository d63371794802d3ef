//! Names for a Java heap from R8 mappings of all kinds: for classes, arrays, class objects and
//! fields. As in Perfetto, the APK that a class was loaded from selects its R8 mapping, otherwise
//! the app that the heap belongs to. Platform code is not obfuscated.

use super::app_map::{AppMap, MapSource, Scope};
use super::choice::packages_for;
use super::lookup::OR;
use super::owner::{Owner, Packages, SeenIn, is_platform, package_in};
use super::packets::PacketMap;
use super::retracer::{FieldType, Retracer};
use super::types::Type;
use heaptap_model::heap_graph::{BasicType, FieldRenamer, HeapGraph, OriginalField};
use heaptap_model::names::platform;
use heaptap_model::profile::Recording;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Maximum number of original names for a field.
const MAX_NAMES: usize = 3;

/// Names all classes and fields of a heap that an R8 mapping has entries for, and returns the
/// number of classes that each R8 mapping named. If several R8 mappings have a class, the first
/// names it.
pub fn name_heap(graph: &mut HeapGraph, recording: &Recording, maps: &[AppMap]) -> Vec<u64> {
    let mut named = vec![0; maps.len()];
    if maps.is_empty() {
        return named;
    }
    let namer = Namer::new(graph, recording, maps);
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

/// Returns the minified class names in a heap; empty if there are few, or if R8 mappings named
/// more: the rest is of a library that is distributed minified.
pub fn minified_classes(graph: &HeapGraph) -> Vec<&str> {
    let (named, others): (Vec<_>, Vec<_>) =
        (graph.classes().iter()).partition(|class| class.deobfuscated.is_some());
    let minified = minified_among(others.iter().map(|class| class.name.as_str()));
    match named.len() < minified.len() {
        true => minified,
        false => Vec::new(),
    }
}

fn minified_among<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let of_app: BTreeSet<&str> = names.filter(|name| !is_of_platform(name)).collect();
    let minified: Vec<&str> = of_app.iter().copied().filter(|n| is_minified(n)).collect();
    // Some libraries are distributed minified.
    let few = minified.len() < 3 || minified.len() * 10 < of_app.len();
    if few { Vec::new() } else { minified }
}

/// Returns whether a class belongs to the platform, by its name: an HPROF does not have locations.
fn is_of_platform(class: &str) -> bool {
    let is_array = class.starts_with('[') || class.ends_with(']');
    // Dumps list primitive types as classes, and `int` is as short as a minified name.
    is_array || class == "int" || platform::is_platform(class)
}

/// Returns whether R8 could have made the name: `a`, `b.c`, `x.y.Outer$a1`. Names such as `zza` are
/// from Google's libraries.
fn is_minified(class: &str) -> bool {
    let name = class.rsplit(['.', '$']).next().unwrap_or(class);
    let is_short = (1..=3).contains(&name.len()) && !name.starts_with("zz");
    let mut letters = name.bytes();
    let first = letters.next().is_some_and(|b| b.is_ascii_lowercase());
    is_short && first && letters.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
}

/// R8 mapping to look classes up in.
enum Source<'a> {
    File(Retracer<'a>),
    Packets(PacketMap<'a>),
}

impl Source<'_> {
    fn class(&self, obfuscated: &str) -> Option<String> {
        match self {
            Source::File(file) => file.class(obfuscated).map(str::to_owned),
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
                // The type in the dump might not be the one in the R8 mapping.
                let fields = match fields.is_empty() {
                    true => file.field(class, field, FieldType::Unknown),
                    false => fields,
                };
                let first = fields.first()?;
                // Fields of different classes can share a name, and a dump has no classes of fields.
                let mut names: Vec<&str> = Vec::new();
                for field in &fields {
                    if !names.contains(&field.name) {
                        names.push(field.name);
                    }
                }
                let more = names.len() > MAX_NAMES;
                names.truncate(MAX_NAMES);
                names.extend(more.then_some("…"));
                Some(original(first.class, &names.join(OR)))
            }
            Source::Packets(map) => {
                let class = map.class(class)?;
                let first = class.fields(field).first()?;
                Some(original(first.holder, first.name))
            }
        }
    }
}

/// R8 mappings that apply to a class, in order: an index into [`Namer::choices`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Choice(usize);

impl Choice {
    /// Code of the platform.
    const NONE: Choice = Choice(0);
    /// Classes whose owner is known only from the process.
    const OF_PROCESS: Choice = Choice(1);
    /// Classes of an app without an R8 mapping of its own.
    const ANYWHERE: Choice = Choice(2);
}

struct Namer<'a> {
    sources: Vec<Source<'a>>,
    choices: Vec<Vec<usize>>,
    by_package: BTreeMap<String, Choice>,
    /// By class name in the app: the choices of the classes with that name.
    by_class: HashMap<String, Vec<Choice>>,
    /// Cached names of field types.
    known: RefCell<HashMap<String, Option<String>>>,
}

impl<'a> Namer<'a> {
    fn new(graph: &HeapGraph, recording: &Recording, maps: &[AppMap<'a>]) -> Namer<'a> {
        let sources = maps.iter().map(|map| match map.source {
            MapSource::File(file) => Source::File(Retracer::new(file)),
            MapSource::Packets(map) => Source::Packets(PacketMap::new(map)),
        });
        let mut of_package: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        let mut claimed = BTreeSet::new();
        let mut anywhere = Vec::new();
        for (at, map) in maps.iter().enumerate() {
            match &map.scope {
                // Packets without a package apply to heap graphs of all packages.
                Scope::Package(package) if !package.is_empty() => {
                    of_package.entry(package.clone()).or_default().push(at);
                    claimed.extend(map.source.claims().then_some(package.as_str()));
                }
                Scope::Package(_) | Scope::Unclaimed => anywhere.push(at),
            }
        }
        // Before the packets of their packages.
        let dumped = BTreeSet::from([graph.facts.pid.unwrap_or(0)]);
        for &at in anywhere.iter().filter(|&&at| maps[at].source.claims()) {
            let source = maps[at].source;
            for package in packages_for(recording, &SeenIn::new(), &dumped, source, &claimed) {
                of_package.entry(package).or_default().push(at);
            }
        }
        for maps in of_package.values_mut() {
            maps.sort_unstable();
        }
        let mut of_process = Vec::new();
        for package in packages_of(graph, recording) {
            of_process.extend(of_package.get(&package).into_iter().flatten());
        }
        if of_process.is_empty() {
            of_process = (0..maps.len()).collect();
        } else {
            of_process.extend(&anywhere);
        }
        let mut choices = vec![Vec::new(), of_process, anywhere.clone()];
        let mut by_package = BTreeMap::new();
        for (package, mut own) in of_package {
            own.extend(
                anywhere
                    .iter()
                    .filter(|at| !own.contains(at))
                    .copied()
                    .collect::<Vec<_>>(),
            );
            by_package.insert(package, Choice(choices.len()));
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
            let of_name = namer.by_class.entry(class.name.clone()).or_default();
            if !of_name.contains(&choice) {
                of_name.push(choice);
            }
        }
        namer
    }

    fn choice(&self, location: Option<&str>) -> Choice {
        let Some(location) = location else {
            return Choice::OF_PROCESS;
        };
        match Owner::from_path(location) {
            Owner::Package(package) => {
                let known = self.by_package.get(package).copied();
                known.unwrap_or(Choice::ANYWHERE)
            }
            _ if is_platform(location) => Choice::NONE,
            _ => Choice::OF_PROCESS,
        }
    }

    /// Returns the name of a class, array or class object, and the R8 mapping that has it.
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
        // Only references are without the name of their type.
        let of_type = type_name.map_or(FieldType::Object, FieldType::Exactly);
        let unlisted = [Choice::OF_PROCESS, Choice::ANYWHERE];
        // If several classes have that name, the declaring one is unknown.
        let choices = self
            .by_class
            .get(class)
            .map_or(&unlisted[..], Vec::as_slice);
        let mut choices = choices.iter();
        choices.find_map(|&choice| self.field_by(choice, class, field, of_type))
    }

    fn type_name(&self, name: &str) -> Option<String> {
        if let Some(known) = self.known.borrow().get(name) {
            return known.clone();
        }
        let choice = self.by_class.get(name).and_then(|all| all.first().copied());
        let found = self.type_by(choice.unwrap_or(Choice::OF_PROCESS), name);
        let found = found.map(|(name, _)| name);
        self.known
            .borrow_mut()
            .insert(name.to_owned(), found.clone());
        found
    }
}

/// Returns the packages of the process that the heap belongs to, most likely first.
fn packages_of(graph: &HeapGraph, recording: &Recording) -> Vec<String> {
    let packages = Packages::from_recording(recording);
    let by_pid = graph.facts.pid.map(|pid| packages.of_process(pid));
    let known = by_pid.unwrap_or_default();
    if !known.is_empty() {
        return known.into_iter().map(str::to_owned).collect();
    }
    let named = package_in(&graph.facts.process);
    named.map(str::to_owned).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::super::file::MapFile;
    use super::*;
    use heaptap_model::heap_graph::{Class, DumpFacts, GraphBuilder, NoContents};

    #[test]
    fn a_field_whose_name_several_share_has_all_their_names() {
        let text =
            "x.App -> a:\n    int count -> a\n    x.Cache cache -> a\n    x.View root -> a\n";
        let bytes = heaptap_base::bytes::Bytes::from(text.as_bytes().to_vec());
        let file = MapFile::from_bytes(bytes, "m.txt".as_ref()).unwrap();
        let source = Source::File(Retracer::new(&file));
        let name = |of_type| source.field("a", "a", of_type).map(|field| field.name);
        assert_eq!(name(FieldType::Exactly("int")).unwrap(), "count");
        assert_eq!(name(FieldType::Object).unwrap(), "cache | root");
    }

    #[test]
    fn fields_are_named_by_the_mappings_of_their_app_only() {
        let text = "x.Cache -> c.b:\n    java.lang.Object entries -> a\n";
        let bytes = heaptap_base::bytes::Bytes::from(text.as_bytes().to_vec());
        let file = MapFile::from_bytes(bytes, "m.txt".as_ref()).unwrap();
        let class = |app: &str| Class {
            name: "c.b".to_owned(),
            location: Some(format!("/data/app/~~x==/{app}-y==/base.apk")),
            ..Class::default()
        };
        let name = |apps: &[&str]| {
            let classes = apps.iter().map(|app| class(app)).collect();
            let (builder, facts) = (GraphBuilder::default(), DumpFacts::default());
            let graph = builder.finish(classes, Vec::new(), Box::new(NoContents), facts, false);
            let map = AppMap {
                scope: Scope::Package("com.other".to_owned()),
                source: MapSource::File(&file),
            };
            let namer = Namer::new(&graph.unwrap(), &Recording::default(), &[map]);
            let field = FieldRenamer::field(&namer, "c.b", "a", None);
            field.map(|field| field.name)
        };
        assert_eq!(name(&["com.example.app"]), None);
        assert_eq!(name(&["com.other"]).as_deref(), Some("entries"));
        // Which of them has the field is unknown.
        let both = ["com.example.app", "com.other"];
        assert_eq!(name(&both).as_deref(), Some("entries"));
    }

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

    #[test]
    fn classes_that_a_map_lacks_count_only_if_it_named_fewer() {
        let minified = |named: usize| {
            let class = |name: String, deobfuscated| Class {
                name,
                deobfuscated,
                ..Class::default()
            };
            let mut classes: Vec<Class> = (0..named)
                .map(|n| class(format!("n.a{n}"), Some(format!("app.Screen{n}"))))
                .collect();
            classes.extend(["x.a", "x.b", "x.c"].map(|name| class(name.to_owned(), None)));
            let (builder, facts) = (GraphBuilder::default(), DumpFacts::default());
            let graph = builder.finish(classes, Vec::new(), Box::new(NoContents), facts, false);
            minified_classes(&graph.unwrap()).len()
        };
        assert_eq!([0, 2, 3, 20].map(minified), [3, 3, 0, 0]);
    }
}
