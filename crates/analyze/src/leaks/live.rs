//! State that the platform holds in the dump: activities and services that are alive, the main
//! thread, the Android version, and objects watched by the app's own LeakCanary.

use std::collections::{BTreeMap, BTreeSet};

use super::kinds::{ByName, Kind, Kinds, is_instance};
use crate::lookup;
use heaptap_model::heap_graph::{Device, HeapGraph, ObjectIndex, RootKind, Value};

/// Platform state; `None` for values that the dump does not contain.
#[derive(Debug, Default)]
pub(super) struct Live {
    /// Whether verdicts may have texts of the app.
    pub texts: bool,
    /// Activities with a record in `ActivityThread.mActivities`.
    pub activities: Option<BTreeSet<ObjectIndex>>,
    /// Services in `ActivityThread.mServices`.
    pub services: Option<BTreeSet<ObjectIndex>>,
    pub main_thread: Option<ObjectIndex>,
    /// Queue of the main thread's looper.
    pub main_queue: Option<ObjectIndex>,
    /// Device, by the statics of `Build`, otherwise by the trace.
    pub device: Device,
    /// Objects that LeakCanary watches.
    pub watched: BTreeMap<ObjectIndex, Watched>,
}

/// Contents of a `KeyedWeakReference`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Watched {
    /// Whether LeakCanary found the object retained (`retainedUptimeMillis` is set); `None` if the
    /// dump does not contain numbers.
    pub retained: Option<bool>,
    /// Reason given by the app for watching the object.
    pub description: Option<String>,
}

/// Maximum number of links to follow in a chain.
const MAX_LINKS: usize = 100_000;

impl Live {
    /// Reads the platform state. `texts` includes the app's descriptions of watched objects and the
    /// names of its threads.
    pub fn new(graph: &HeapGraph, names: &ByName<'_>, kinds: &Kinds, texts: bool) -> Live {
        let mut live = Live {
            texts,
            ..Live::default()
        };
        if let Some(thread) = activity_thread(graph, names, kinds) {
            let class = "android.app.ActivityThread";
            live.activities = lookup::get(graph, thread, class, "mActivities")
                .and_then(Value::object)
                .and_then(|map| map_values(graph, map))
                .map(|records| {
                    let activity = |&record: &ObjectIndex| {
                        lookup::any(graph, record, "activity").and_then(Value::object)
                    };
                    records.iter().filter_map(activity).collect()
                });
            live.services = lookup::get(graph, thread, class, "mServices")
                .and_then(Value::object)
                .and_then(|map| map_values(graph, map))
                .map(|services| services.into_iter().collect());
        }
        let looper = names
            .find("android.os.Looper")
            .and_then(|looper| lookup::of_class(graph, looper, "sMainLooper"))
            .and_then(Value::object);
        let of_looper = |name| lookup::any(graph, looper?, name).and_then(Value::object);
        live.main_thread = of_looper("mThread").or_else(|| thread_named_main(graph));
        live.main_queue = of_looper("mQueue");
        live.device = device(graph, names);
        live.watched = watched(graph, kinds);
        if !texts {
            live.watched.values_mut().for_each(|w| w.description = None);
        }
        live
    }
}

fn device(graph: &HeapGraph, names: &ByName<'_>) -> Device {
    let traced = &graph.facts.device;
    let of = |class, field| lookup::of_class(graph, names.find(class)?, field);
    let text = |field| lookup::platform_text(graph, of("android.os.Build", field)?.object()?);
    let traced_text = |text: &Option<String>| lookup::plain_text(text.as_ref()?);
    Device {
        sdk: of("android.os.Build$VERSION", "SDK_INT")
            .and_then(Value::integer)
            .or(traced.sdk),
        manufacturer: text("MANUFACTURER").or_else(|| traced_text(&traced.manufacturer)),
        build: text("ID").or_else(|| traced_text(&traced.build)),
    }
}

fn activity_thread(graph: &HeapGraph, names: &ByName<'_>, kinds: &Kinds) -> Option<ObjectIndex> {
    let class = names.find("android.app.ActivityThread")?;
    let current = lookup::of_class(graph, class, "sCurrentActivityThread");
    if let Some(thread) = current.and_then(Value::object) {
        return Some(thread);
    }
    let mut all = graph.objects().filter(|&object| {
        kinds.of_class(graph.class_of(object)) == Some(Kind::ActivityThread)
            && is_instance(graph, object)
    });
    let only = all.next()?;
    all.next().is_none().then_some(only)
}

/// Returns the values of an `ArrayMap` or a `HashMap`; `None` for other objects or missing
/// contents.
pub(super) fn map_values(graph: &HeapGraph, map: ObjectIndex) -> Option<Vec<ObjectIndex>> {
    if let Some(array) = lookup::any(graph, map, "mArray") {
        let elements = match array {
            Value::Object(array) => lookup::elements(graph, array),
            Value::Null => Vec::new(),
            _ => return None,
        };
        // Even slots contain keys, odd slots values.
        let values = elements.into_iter().filter(|(at, _)| at % 2 == 1);
        return Some(values.map(|(_, value)| value).collect());
    }
    let table = match lookup::any(graph, map, "table")? {
        Value::Object(table) => lookup::elements(graph, table),
        Value::Null => Vec::new(),
        _ => return None,
    };
    let mut values = Vec::new();
    let mut links = 0;
    for (_, first) in table {
        let mut node = Some(first);
        while let Some(entry) = node {
            links += 1;
            if links > MAX_LINKS {
                return None;
            }
            values.extend(lookup::any(graph, entry, "value").and_then(Value::object));
            node = lookup::any(graph, entry, "next").and_then(Value::object);
        }
    }
    Some(values)
}

fn thread_named_main(graph: &HeapGraph) -> Option<ObjectIndex> {
    graph
        .roots()
        .iter()
        .filter(|root| root.kind == RootKind::ThreadObject)
        .map(|root| root.object)
        .find(|&thread| thread_name(graph, thread).as_deref() == Some("main"))
}

/// Returns the name of a `java.lang.Thread`.
pub(super) fn thread_name(graph: &HeapGraph, thread: ObjectIndex) -> Option<String> {
    let name = lookup::get(graph, thread, "java.lang.Thread", "name")?.object()?;
    if let Some(text) = graph.contents().string(graph, name) {
        return Some(text);
    }
    // A `char[]` before Android 6 and Java 8.
    let array = graph.contents().primitive_array(graph, name)?;
    let bytes = array.bytes?;
    let units = bytes
        .chunks_exact(2)
        .take(256)
        .map(|unit| u16::from_be_bytes([unit[0], unit[1]]));
    let text = char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER));
    Some(text.collect())
}

fn watched(graph: &HeapGraph, kinds: &Kinds) -> BTreeMap<ObjectIndex, Watched> {
    let mut all = BTreeMap::new();
    for referent in graph.referents() {
        if kinds.of_class(graph.class_of(referent.owner)) != Some(Kind::Watched) {
            continue;
        }
        let since = lookup::any(graph, referent.owner, "retainedUptimeMillis");
        // Until 2.0, the description is in `name`.
        let text = |name| {
            let text = lookup::any(graph, referent.owner, name)?.object()?;
            let text = graph.contents().string(graph, text)?;
            Some(text).filter(|text| !text.is_empty())
        };
        let description = text("description").or_else(|| text("name"));
        // Version 1 has no time: it dumps the heap because an object is retained.
        let of_version_1 = since.is_none() && graph.contents().has_values();
        let retained = since.and_then(Value::integer).map(|ms| ms != -1);
        let found = Watched {
            retained: retained.or(of_version_1.then_some(true)),
            description,
        };
        let slot = all.entry(referent.target).or_insert_with(|| found.clone());
        if slot.retained != Some(true) {
            *slot = found;
        }
    }
    all
}
