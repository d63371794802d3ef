//! Decodes the packets of a dump into a graph: numbers objects by their IDs, sorts their columns
//! accordingly, and adds facts that ART implies but does not write.

use super::classes::{self, Names};
use super::columns::{Carried, Columns, Entry, Objects, Piece, Shape, ShapeIndex};
use super::contents::{FieldList, TraceContents};
use super::native;
use super::references::{self, Found, Known};
use super::tables::{NONE, Tables, UNDEFINED};
use crate::wire::{Fields, WireError};
use heaptap_base::parallel::{self, Pool};
use heaptap_base::units::Allowance;
use heaptap_model::heap_graph::{
    Class, ClassIndex, ClassKind, DumpFacts, HeapGraph, HeapKind, Ids, IdsBuilder, ObjectId,
    ObjectIndex, Positions, ReferenceKind, Referent, Root, RootKind, ShallowSizes,
};
use std::collections::BTreeMap;

/// A `HeapGraph` of a dump.
pub(super) struct Message {
    pub(super) bytes: Box<[u8]>,
    /// Its objects and roots belong to another dump.
    pub(super) foreign: bool,
}

/// The class of objects that are referred to but were never dumped.
const NOT_DUMPED: &str = "[not dumped]";

/// Decodes the chains of a dump.
pub(super) fn decode(chains: Vec<Vec<Message>>) -> HeapGraph {
    let mut facts = DumpFacts::default();
    let bytes = chains.iter().flatten().map(|message| message.bytes.len());
    let mut allowance = Allowance::from_bytes(bytes.sum());
    let mut columns = Columns::default();
    let mut tables = Vec::with_capacity(chains.len());
    let mut shapes = ShapeIndex::default();
    let mut first_class = 0;
    let spare = Pool::default();
    for (number, chain) in chains.iter().enumerate() {
        let mut reading = Reading {
            chain: number as u32,
            columns: &mut columns,
            tables: Tables::default(),
            first_class,
            carried: Carried::default(),
            shapes: &mut shapes,
            facts: &mut facts,
            allowance: &mut allowance,
            paid: 0,
            is_full: false,
            readable: true,
        };
        reading.paid = reading.weight();
        let read = |_: &mut (), (at, message)| (at, message, objects_of(message, &spare));
        parallel::in_order(
            (0..).zip(chain),
            || (),
            read,
            |(at, message, mut objects)| {
                reading.message(at, message, &mut objects);
                spare.put(objects.into_entries());
                true
            },
        );
        first_class += reading.tables.types.len() as u32;
        tables.push(reading.tables);
    }
    let (classes, names, loaders) = classes::build(&tables, &mut allowance, &mut facts.losses);
    let lists = field_lists(&columns, &tables);
    drop(tables);
    let building = Building {
        columns,
        classes,
        names,
        lists,
        facts,
        allowance,
    };
    let mut graph = building.finish(&chains);
    for (class, loader) in loaders {
        graph.classes[class.at()].loader = graph.ids.find(loader);
    }
    graph
}

/// Reads the objects of a message, if they belong to the dump, into one of the spare vectors.
fn objects_of<'a>(message: &'a Message, spare: &Pool<Vec<Option<Entry>>>) -> Objects<'a> {
    let entries = spare.take();
    let bytes: &[u8] = match message.foreign {
        true => &[],
        false => &message.bytes,
    };
    Objects::read(bytes, entries.unwrap_or_default())
}

/// State of the first reading of a chain.
struct Reading<'a> {
    chain: u32,
    columns: &'a mut Columns,
    tables: Tables,
    first_class: u32,
    carried: Carried,
    shapes: &'a mut ShapeIndex,
    facts: &'a mut DumpFacts,
    allowance: &'a mut Allowance,
    /// Memory paid for it, as returned by [`Reading::weight`].
    paid: usize,
    /// The memory limit is reached.
    is_full: bool,
    /// Objects of the message can still be separated.
    readable: bool,
}

/// Memory until the graph is built, without texts: an object, a reference, values of some objects,
/// a field list, a root, a type, a name of fields, a location.
const OBJECT: usize = 60;
const REFERENCE: usize = 8;
const RARE: usize = 160;
const SHAPED: usize = 16;
const SHAPE: usize = 100;
const ROOT: usize = 40;
const TYPE: usize = 420;
const NAME: usize = 110;
const LOCATION: usize = 60;
/// Memory of an object that is referred to but missing.
const ABSENT: usize = 100;
/// Number of fields of a message between two checks of the memory limit.
const BATCH: usize = 256;

impl Reading<'_> {
    /// Returns the memory of everything read so far.
    fn weight(&self) -> usize {
        let (columns, tables) = (&self.columns, &self.tables);
        columns.len() * OBJECT
            + columns.references as usize * REFERENCE
            + columns.rare.len() * RARE
            + (columns.shaped.len() + columns.internals.len() + columns.sizes.large_count())
                * SHAPED
            + columns.shapes.len() * SHAPE
            + columns.roots.len() * ROOT
            + tables.types.len() * TYPE
            + tables.names.len() * NAME
            + tables.locations() * LOCATION
    }

    /// Takes the memory of everything read since the last call from the allowance.
    fn pay(&mut self, number: u32) {
        let weight = self.weight();
        if !self.is_full && !self.allowance.take(weight - self.paid) {
            self.is_full = true;
            let losses = &mut self.facts.losses;
            losses.malformed += 1;
            losses.note(format!(
                "the rest of packet {number} of the dump exceeds its memory limit"
            ));
        }
        self.paid = weight;
    }

    fn message(&mut self, number: u32, message: &Message, objects: &mut Objects<'_>) {
        self.columns.begin_piece(self.chain, number);
        self.readable = true;
        let mut fields = Fields::new(&message.bytes);
        while !self.is_full && self.batch(number, message.foreign, &mut fields, objects) {
            self.pay(number);
        }
        self.pay(number);
    }

    /// Reads some fields of a message; returns whether there can be more.
    fn batch(
        &mut self,
        number: u32,
        foreign: bool,
        fields: &mut Fields<'_>,
        objects: &mut Objects<'_>,
    ) -> bool {
        for _ in 0..BATCH {
            let (field, value) = match fields.next() {
                Ok(Some(field)) => field,
                Ok(None) => return false,
                // The first reading of the trace has reported it.
                Err(_) => return false,
            };
            let outcome = match field {
                2 if foreign || !self.readable => continue,
                2 => self.columns.add_object(
                    objects,
                    &mut self.tables,
                    self.first_class,
                    &mut self.carried,
                    self.shapes,
                ),
                4 => self.tables.add_name(value.bytes()),
                7 if foreign => continue,
                7 => self.columns.add_root(value.bytes()),
                8 => self.tables.add_location(value.bytes()),
                9 => self.tables.add_type(value.bytes()),
                10 => {
                    self.facts.heap_bytes_allocated = u64::try_from(value.number() as i64).ok();
                    continue;
                }
                _ => continue,
            };
            if let Err(error) = outcome {
                self.readable &= field != 2;
                self.damaged(number, field, error);
            }
        }
        true
    }

    fn damaged(&mut self, packet: u32, field: u32, error: WireError) {
        let what = match field {
            2 => "an object and all objects after it",
            4 => "a field name",
            7 => "roots",
            8 => "a location",
            _ => "a type",
        };
        let losses = &mut self.facts.losses;
        losses.malformed += 1;
        losses.note(format!(
            "cannot read {what} in packet {packet} of the dump: {error}"
        ));
    }
}

/// Returns the field lists of shapes with names numbered over all chains.
fn field_lists(columns: &Columns, tables: &[Tables]) -> Vec<FieldList> {
    let mut first = Vec::with_capacity(tables.len());
    let mut names = 0;
    for one in tables {
        first.push(names);
        names += one.names.len() as u32;
    }
    let list = |shape: &Shape| {
        let chain = shape.chain as usize;
        FieldList::new(shape, |id| match tables[chain].name(id) {
            NONE => NONE,
            name => first[chain] + name,
        })
    };
    columns.shapes.iter().map(list).collect()
}

/// Relation of file order and ID order.
enum Order {
    /// They are the same.
    Same,
    /// Position in file order, by index.
    Wire(Vec<u32>),
}

impl Order {
    fn new(wire: &[u64], ids: &Ids) -> Order {
        if wire.windows(2).all(|pair| pair[0] < pair[1]) {
            return Order::Same;
        }
        let mut order = vec![0; ids.len()];
        for (at, &id) in (0..).zip(wire) {
            // The last object of an ID stays.
            if let Some(index) = ids.find(ObjectId(id)) {
                order[index.at()] = at;
            }
        }
        Order::Wire(order)
    }

    /// Returns the place in file order of the object with that index.
    fn wire(&self, index: usize) -> u32 {
        match self {
            Order::Same => index as u32,
            Order::Wire(order) => order[index],
        }
    }

    /// Sorts a column by IDs.
    fn arrange<T: Copy>(&self, column: Vec<T>) -> Vec<T> {
        match self {
            Order::Same => column,
            Order::Wire(order) => order.iter().map(|&at| column[at as usize]).collect(),
        }
    }

    /// Returns the index of each object's first reference, in the order of IDs, and the end.
    fn starts(&self, counts: &[u32]) -> Positions {
        let mut starts = Vec::with_capacity(counts.len() + 1);
        let mut end = 0;
        starts.push(end);
        let mut add = |count: u32| {
            end += count;
            starts.push(end);
        };
        match self {
            Order::Same => counts.iter().copied().for_each(&mut add),
            Order::Wire(order) => order.iter().for_each(|&at| add(counts[at as usize])),
        }
        Positions::from(&starts[..])
    }

    /// Returns the mapping from file order to index, for `objects` objects.
    fn indices(&self, objects: usize) -> Indices {
        let Order::Wire(order) = self else {
            return Indices(None);
        };
        let mut inverse = vec![ObjectIndex::NONE; objects];
        for (index, &at) in order.iter().enumerate() {
            inverse[at as usize] = ObjectIndex(index as u32);
        }
        Indices(Some(inverse))
    }
}

/// Indices by file order, if the orders differ.
struct Indices(Option<Vec<ObjectIndex>>);

impl Indices {
    /// Returns `None` for a repeated object: the later one is used.
    fn of(&self, wire: u32) -> Option<ObjectIndex> {
        match &self.0 {
            None => Some(ObjectIndex(wire)),
            Some(inverse) => Some(inverse[wire as usize]).filter(|&i| i != ObjectIndex::NONE),
        }
    }

    /// Sorts values of some objects by index.
    fn sparse<T>(&self, of_wire: Vec<(u32, T)>) -> Vec<(ObjectIndex, T)> {
        let all = of_wire.into_iter();
        let mut all: Vec<(ObjectIndex, T)> = all
            .filter_map(|(wire, what)| Some((self.of(wire)?, what)))
            .collect();
        all.sort_by_key(|entry| entry.0);
        all
    }
}

/// A graph under construction.
struct Building {
    columns: Columns,
    classes: Vec<Class>,
    names: Names,
    lists: Vec<FieldList>,
    facts: DumpFacts,
    allowance: Allowance,
}

impl Building {
    fn finish(mut self, chains: &[Vec<Message>]) -> HeapGraph {
        self.facts.losses.malformed += self.columns.malformed;
        let dumped = self.columns.len();
        let references = self.columns.references as usize;
        // Neither needs the other.
        let (unnamed, ((mut order, mut ids), mut targets)) = parallel::both(
            || self.unnamed(),
            || (self.number(), vec![ObjectIndex::NONE; references]),
        );
        self.facts.losses.unnamed_references += unnamed;
        self.facts.losses.repeated_objects += (dumped - ids.len()) as u64;
        self.add_kinds();
        let mut found = self.references(chains, &ids, &mut targets);
        if found.iter().any(|found| !found.missing.is_empty()) {
            // Objects that were never dumped get an index, and all objects are renumbered.
            let all = found.iter_mut();
            let mut absent: Vec<u64> = Vec::new();
            for found in all {
                self.facts.losses.dangling_references += found.dangling;
                absent.append(&mut found.missing);
            }
            absent.sort_unstable();
            absent.dedup();
            let room = absent.iter().take_while(|_| self.allowance.take(ABSENT));
            let room = room.count();
            absent.truncate(room);
            self.add_absent(&absent);
            (order, ids) = self.number();
            found = self.references(chains, &ids, &mut targets);
        }
        let referents = found.into_iter().flat_map(|found| found.referents);
        self.assemble(dumped, order, ids, targets, referents.collect())
    }

    fn number(&self) -> (Order, Ids) {
        let mut ids = IdsBuilder::new();
        for &id in &self.columns.ids {
            ids.insert(ObjectId(id));
        }
        let ids = ids.finish();
        (Order::new(&self.columns.ids, &ids), ids)
    }

    /// Adds the kinds of references that types before Android 12 do not have: an object with a
    /// referent is a reference, and the name of its class has its kind; most are weak.
    fn add_kinds(&mut self) {
        let is_kindless = |class: &Class| class.kind == ClassKind::Unknown;
        if !self.classes.iter().all(is_kindless) {
            return;
        }
        let is_referent = self.names.referents();
        for &(wire, shape) in &self.columns.shaped {
            if self.lists[shape.0 as usize]
                .referent(&is_referent)
                .is_some()
            {
                let class = &mut self.classes[self.columns.classes[wire as usize] as usize];
                class.kind = classes::kind_of_reference(&class.name);
            }
        }
    }

    fn add_absent(&mut self, ids: &[u64]) {
        let class = self.classes.len() as u32;
        self.classes.push(Class {
            name: NOT_DUMPED.to_owned(),
            ..Class::default()
        });
        let columns = &mut self.columns;
        columns.ids.extend(ids);
        let objects = columns.ids.len();
        columns.classes.resize(objects, class);
        ids.iter().for_each(|_| columns.sizes.push(0));
        columns.heaps.resize(objects, HeapKind::Unknown);
        columns.counts.resize(objects, 0);
    }

    fn references(
        &self,
        chains: &[Vec<Message>],
        ids: &Ids,
        targets: &mut [ObjectIndex],
    ) -> Vec<Found> {
        let is_referent = self.names.referents();
        let positions = self.names.positions_of_referent(&is_referent);
        let classes = self.classes.iter().enumerate();
        let referents: Vec<_> = classes
            .map(|(at, class)| {
                let kind = ReferenceKind::of_class(class.kind)?;
                Some((kind, positions.get(at).copied().flatten()))
            })
            .collect();
        let lists = self.lists.iter();
        let by_list: Vec<_> = lists.map(|list| list.referent(&is_referent)).collect();
        let shaped = self.columns.shaped.iter();
        let shaped: Vec<_> = shaped
            .map(|&(wire, shape)| (wire, by_list[shape.0 as usize]))
            .collect();
        let pieces = self.columns.pieces.iter().filter(|piece| piece.count > 0);
        let pieces: Vec<(Piece, &[u8])> = pieces
            .map(|&piece| {
                let message = &chains[piece.chain as usize][piece.message as usize];
                (piece, &message.bytes[..])
            })
            .collect();
        let known = Known {
            ids,
            classes: &self.columns.classes,
            referents: &referents,
            shaped: &shaped,
        };
        references::read(&pieces, &known, targets)
    }

    /// Returns the number of references without a name although their class should give one.
    fn unnamed(&self) -> u64 {
        let by_class = self.names.counts();
        let mut unnamed = 0;
        let mut shaped = self.columns.shaped.iter().peekable();
        let mut internals = self.columns.internals.iter().peekable();
        let objects = self.columns.classes.iter().zip(&self.columns.counts);
        for (wire, (&class, &count)) in (0..).zip(objects) {
            let internal = internals.next_if(|i| i.0 == wire).map_or(0, |i| i.1);
            let own = count - internal;
            let missing = match shaped.next_if(|s| s.0 == wire) {
                Some((_, shape)) => self.lists[shape.0 as usize].unnamed(own),
                None => by_class[class as usize].map_or(0, |names| own.saturating_sub(names)),
            };
            unnamed += u64::from(missing);
        }
        unnamed
    }

    /// Sorts everything by IDs.
    fn assemble(
        self,
        dumped: usize,
        order: Order,
        ids: Ids,
        mut targets: Vec<ObjectIndex>,
        referents: Vec<(u32, u32, ReferenceKind)>,
    ) -> HeapGraph {
        let Building {
            columns,
            classes,
            names,
            lists,
            facts,
            ..
        } = self;
        let objects = columns.ids.len();
        let indices = order.indices(objects);
        let placeholders = (dumped as u32..objects as u32).filter_map(|wire| indices.of(wire));
        let placeholders = placeholders.collect();
        // Neither needs the other.
        let (first_named, (starts, class_of, shallow)) = parallel::both(
            || first_named(&columns.counts[..dumped], &targets, &indices, ids.len()),
            || {
                let class_of = order.arrange(columns.classes);
                let shallow = sizes(&order, &classes, &class_of, &columns.sizes);
                let class_of = class_of.into_iter().map(ClassIndex).collect();
                (order.starts(&columns.counts), class_of, shallow)
            },
        );
        let mut referents: Vec<Referent> = referents
            .into_iter()
            .filter_map(|(wire, number, kind)| {
                let place = &mut targets[number as usize];
                let target = std::mem::replace(place, ObjectIndex::NONE);
                let owner = indices.of(wire).filter(|_| target != ObjectIndex::NONE)?;
                Some(Referent {
                    owner,
                    target,
                    kind,
                })
            })
            .collect();
        referents.sort_by_key(|referent| referent.owner);
        let targets = match &order {
            Order::Same => targets,
            Order::Wire(order) => rows(order, &columns.counts, &targets),
        };
        let contents = TraceContents {
            names,
            shapes: lists,
            shaped: indices.sparse(columns.shaped),
            internals: indices.sparse(columns.internals),
            rare: indices.sparse(columns.rare),
        };
        let sizes = contents.rare.iter();
        let registries: BTreeMap<ObjectIndex, i64> = sizes
            .filter_map(|(object, rare)| Some((*object, rare.registry_size?)))
            .collect();
        let mut graph = HeapGraph {
            ids,
            class_of,
            shallow,
            native: Vec::new(),
            heaps: order.arrange(columns.heaps),
            only_heap: HeapKind::Unknown,
            starts,
            targets,
            referents,
            classes,
            roots: Vec::new(),
            placeholders,
            class_objects: Vec::new(),
            first_named,
            contents: Box::new(contents),
            facts,
        };
        count_unknown_classes(&mut graph);
        add_roots(&mut graph, &columns.roots);
        add_class_objects(&mut graph);
        graph.native = native::native_bytes(&graph, &registries);
        if graph.heaps.iter().all(|&heap| heap == HeapKind::Unknown) {
            graph.heaps = Vec::new();
        }
        graph
    }
}

/// Returns the order in which a dump first names its objects: each as itself, then its targets.
fn first_named(
    counts: &[u32],
    targets: &[ObjectIndex],
    indices: &Indices,
    objects: usize,
) -> Vec<u32> {
    let mut places = vec![u32::MAX; objects];
    let mut next = 0;
    let mut name = |object: ObjectIndex| {
        if let Some(place) = places.get_mut(object.at())
            && *place == u32::MAX
        {
            *place = next;
            next += 1;
        }
    };
    let mut rest = targets;
    for (wire, &count) in (0..).zip(counts) {
        let (own, others) = rest.split_at(count as usize);
        rest = others;
        name(indices.of(wire).unwrap_or(ObjectIndex::NONE));
        own.iter().copied().for_each(&mut name);
    }
    places
}

/// Returns the references of objects in another order.
fn rows(order: &[u32], counts: &[u32], targets: &[ObjectIndex]) -> Vec<ObjectIndex> {
    let mut starts = Vec::with_capacity(counts.len());
    let mut end = 0usize;
    for &count in counts {
        starts.push(end as u32);
        end += count as usize;
    }
    let mut rows = Vec::with_capacity(targets.len());
    for &at in order {
        let start = starts[at as usize] as usize;
        rows.extend_from_slice(&targets[start..start + counts[at as usize] as usize]);
    }
    rows
}

/// Returns the sizes in the order of IDs; objects without their own have that of their class.
fn sizes(order: &Order, classes: &[Class], class_of: &[u32], own: &ShallowSizes) -> ShallowSizes {
    let of_class: Vec<u64> = classes
        .iter()
        .map(|class| class.instance_bytes.unwrap_or(0))
        .collect();
    let size = |(index, &class): (usize, &u32)| match own.get(ObjectIndex(order.wire(index))) {
        0 => of_class[class as usize],
        bytes => bytes,
    };
    class_of.iter().enumerate().map(size).collect()
}

/// Counts objects of types that are not defined.
fn count_unknown_classes(graph: &mut HeapGraph) {
    let undefined = |class: &Class| class.name == UNDEFINED;
    if graph.classes.iter().any(undefined) {
        let classes = graph.objects().map(|o| graph.class(graph.class_of(o)));
        graph.facts.losses.unknown_classes +=
            classes.filter(|class| undefined(class)).count() as u64;
    }
}

/// Adds the roots of the dump, then the objects that ART never collects: those of the zygote's heap
/// and the boot image.
fn add_roots(graph: &mut HeapGraph, listed: &[(u64, RootKind)]) {
    let root = |object, kind| Root {
        object,
        kind,
        thread: None,
        frame: None,
    };
    for &(id, kind) in listed {
        match graph.ids.find(ObjectId(id)) {
            Some(object) => graph.roots.push(root(object, kind)),
            None => graph.facts.losses.dangling_roots += 1,
        }
    }
    let heaps = (0..).zip(&graph.heaps);
    let kept = heaps.filter(|(_, heap)| matches!(heap, HeapKind::Zygote | HeapKind::BootImage));
    let kept = kept.map(|(object, _)| root(ObjectIndex(object), RootKind::VmInternal));
    graph.roots.extend(kept);
    graph.roots.sort_by_key(|root| root.object);
    graph.roots.dedup();
}

/// Links class objects to the classes they represent, and takes from them the superclasses that
/// types before Android 12 do not have.
fn add_class_objects(graph: &mut HeapGraph) {
    if graph.classes.iter().all(|class| class.superclass.is_none()) {
        // Android 11 has types for classes with instances only, and a superclass often has none.
        let missing = classes::without_types(&graph.classes);
        graph.classes.extend(missing);
    }
    let stands_for = classes::stands_for(&graph.classes);
    if stands_for.iter().all(Option::is_none) {
        return;
    }
    for object in graph.objects() {
        if let Some(class) = stands_for[graph.class_of(object).at()] {
            graph.class_objects.push((object, class));
        }
    }
    let mut supers = Vec::new();
    for &(object, class) in &graph.class_objects {
        let superclass = || native::field_of(graph, object, "java.lang.Class", "superClass");
        if graph.classes[class.at()].superclass.is_none()
            && let Some(superclass) = superclass().and_then(|of| graph.class_behind(of))
        {
            supers.push((class, superclass));
        }
    }
    for (class, superclass) in supers {
        graph.classes[class.at()].superclass = Some(superclass);
    }
    for &(object, class) in &graph.class_objects {
        graph.classes[class.at()].object.get_or_insert(object);
    }
}
