//! Reads a dump into a [`HeapGraph`] by combining the results of the index and the passes. Memory
//! is that of the columns: of the file, only the offset of each object is kept, for
//! [`HprofContents`].

use super::classes::{Classes, classes};
use super::contents::HprofContents;
use super::error::HprofError;
use super::filled::FilledFields;
use super::index::{Index, index};
use super::outline::{MAX_DAMAGE, Outline, lacks_array_contents};
use super::passes::{Columns, Dump};
use super::records::Header;
use super::scan::{Parts, Trouble};
use super::sizes::Sizes;
use super::sub_records::root_kind;
use super::{art, held_classes, native};
use heaptap_base::bytes::Bytes;
use heaptap_base::parallel;
use heaptap_model::heap_graph::{
    ClassIndex, ClassKind, DumpFacts, DumpSource, HeapGraph, HeapKind, Ids, Losses, ObjectId,
    ObjectIndex, Positions, Root, RootKind, ShallowSizes, SizeModel,
};
use std::num::NonZero;

/// Options for reading a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Model of shallow sizes; `None` selects the runtime's: [`SizeModel::Dump`] for Android,
    /// [`SizeModel::Hotspot`] for the others.
    pub sizes: Option<SizeModel>,
    /// Number of threads; `None` for the number of processors of the host.
    pub threads: Option<NonZero<usize>>,
    /// Number of a dump, from 1, in a file that has several; `None` for the last one.
    pub dump: Option<u32>,
}

/// Reads a whole dump. Damaged records are left out and listed in [`DumpFacts::losses`].
///
/// # Errors
/// Returns an error if the file has no HPROF header, or more objects than 32 bits can number.
pub fn read(file: Bytes, options: &Options) -> Result<HeapGraph, HprofError> {
    if file.len() as u64 >= Positions::LIMIT {
        return Err(HprofError::TooLarge { what: "bytes" });
    }
    let mut outline = Outline::read(&file, false, options.dump)?;
    let mut threads = options.threads.unwrap_or_else(parallel::threads);
    let (mut index, mut trouble) = index(&parts(&file, &outline, threads), &outline);
    if trouble.crossed {
        outline = Outline::read(&file, true, options.dump)?;
        (index, trouble) = super::index::index(&parts(&file, &outline, threads), &outline);
    }
    if index.ids.inserted() > u64::from(u32::MAX) - 1 {
        return Err(HprofError::TooLarge { what: "objects" });
    }
    let classes = classes(&file, &outline, &mut index);
    let inserted = index.ids.inserted();
    let ids = std::mem::take(&mut index.ids).finish();
    let repeated = inserted - ids.len() as u64;
    if repeated != 0 {
        // Of an object that was dumped twice the last record is used, which requires file order.
        threads = NonZero::<usize>::MIN;
    }
    let sizes = Sizes::new(options.sizes, &file, &outline, &index, &classes);
    let mut columns = Columns::new(ids.len(), &file, &index);
    let mut losses = losses(&file, &outline, &trouble, &classes);
    let (targets, filled) = {
        let dump = Dump {
            outline: &outline,
            classes: &classes,
            sizes: &sizes,
            ids: &ids,
            repeated: repeated != 0,
        };
        let parts = parts(&file, &outline, threads);
        losses.unknown_classes = dump.measure(&parts, &mut columns);
        let references = columns.sum_up()?;
        if references.saturating_add(columns.referents.len()) >= u32::MAX as usize {
            return Err(HprofError::TooLarge { what: "references" });
        }
        let (targets, filled, dangling) = dump.link(&parts, &columns, references);
        losses.dangling_references = dangling;
        (targets, filled)
    };
    let class_of = columns.class_of.iter().map(|&class| (ClassIndex(class), 1));
    losses.partial_objects = classes.count_partial(class_of);
    losses.repeated_objects = repeated;
    losses.malformed += columns.malformed;
    let facts = DumpFacts {
        source: DumpSource::Hprof {
            version: outline.version.clone(),
            id_bytes: outline.id_size.bytes() as u8,
            android: outline.android,
        },
        time_ns: outline.time_ms.saturating_mul(1_000_000),
        sizes: sizes.layouts.model,
        number: outline.number,
        among: outline.among,
        losses,
        ..DumpFacts::default()
    };
    let found = Found {
        outline,
        index,
        classes,
        sizes,
        ids,
        columns,
        targets,
        filled,
        facts,
    };
    Ok(found.into_graph(file))
}

/// Results of all passes.
struct Found {
    outline: Outline,
    index: Index,
    classes: Classes,
    sizes: Sizes,
    ids: Ids,
    columns: Columns,
    targets: Vec<ObjectIndex>,
    filled: FilledFields,
    facts: DumpFacts,
}

impl Found {
    fn into_graph(mut self, file: Bytes) -> HeapGraph {
        let ids = &self.ids;
        let find = |id: u64| ids.find(ObjectId(id)).filter(|_| id != 0);
        let mut class_objects = Vec::with_capacity(self.index.classes.len());
        for (&id, &class) in &self.classes.by_id {
            let Some(dump) = self.classes.dump(&file, &self.outline, class) else {
                continue;
            };
            let row = &mut self.classes.rows[class.at()];
            row.object = find(id);
            row.loader = find(dump.loader());
            let varies = matches!(row.kind, ClassKind::Array | ClassKind::Class);
            let bytes = self.sizes.each_instance(class);
            row.instance_bytes = bytes.filter(|_| !varies);
            class_objects.extend(row.object.map(|object| (object, class)));
        }
        class_objects.sort_unstable();
        class_objects.dedup_by_key(|c| c.0);
        let mut roots = Vec::with_capacity(self.index.roots.len());
        let mut threads = Vec::new();
        for root in &self.index.roots {
            let Some(object) = find(root.id) else {
                self.facts.losses.dangling_roots += 1;
                continue;
            };
            let kind = root_kind(root.tag).unwrap_or_default();
            if kind == RootKind::ThreadObject {
                threads.extend(root.thread().map(|serial| (serial, object, root.stack())));
            }
            roots.push(Root {
                object,
                kind,
                thread: root.thread(),
                frame: root.frame(),
            });
        }
        roots.sort_by_key(|root| root.object);
        let columns = self.columns;
        let (starts, class_of) = (columns.starts, columns.class_of);
        let (offsets, (starts, class_of)) = parallel::both(
            || columns.offsets.into_positions(),
            || {
                let starts = Positions::from(&starts[..]);
                (starts, class_of.into_iter().map(ClassIndex).collect())
            },
        );
        let contents = HprofContents::new(
            file,
            self.outline,
            offsets,
            self.filled,
            self.classes.dumps,
            self.classes.arrays_of,
            threads,
        );
        let held = contents.held_classes();
        let heaps = columns.heaps.into_iter();
        let heaps = heaps
            .map(|number| HeapKind::of_number(number.into()))
            .collect();
        let mut graph = HeapGraph {
            ids: self.ids,
            class_of,
            shallow: ShallowSizes::new(columns.shallow, columns.large),
            native: Vec::new(),
            heaps,
            only_heap: columns.only_heap,
            starts,
            targets: self.targets,
            referents: columns.referents,
            classes: self.classes.rows,
            roots,
            placeholders: Vec::new(),
            class_objects,
            first_named: Vec::new(),
            contents: Box::new(contents),
            facts: self.facts,
        };
        graph.native = native::sizes(&graph);
        if graph.facts.sizes == SizeModel::Art {
            art::settle(&mut graph);
        }
        // Only this line fills it.
        let _filled = held.set(held_classes::hold(&mut graph));
        graph
    }
}

fn parts<'a>(file: &'a Bytes, outline: &'a Outline, threads: NonZero<usize>) -> Parts<'a> {
    Parts {
        file,
        id_size: outline.id_size,
        parts: &outline.parts,
        threads,
    }
}

pub(super) fn losses(
    file: &[u8],
    outline: &Outline,
    trouble: &Trouble,
    classes: &Classes,
) -> Losses {
    let mut damage: Vec<String> = outline.damage.iter().map(ToString::to_string).collect();
    damage.extend(trouble.damage.iter().map(ToString::to_string));
    if classes.names_cut {
        damage.push("its class names and fields exceed the memory limit; some are cut".to_owned());
    }
    damage.truncate(MAX_DAMAGE);
    let truncated = outline.truncated || trouble.cut_short;
    Losses {
        truncated,
        malformed: outline.malformed + trouble.malformed,
        contents_cut: !trouble.damage.is_empty() && lacks_array_contents(file),
        damage,
        bytes_behind: outline.bytes_behind,
        another_behind: Header::read(&file[file.len() - outline.bytes_behind as usize..]).is_ok(),
        zeros_at_end: truncated && file.ends_with(&[0; 1024]),
        missing_supers: classes
            .missing_supers
            .iter()
            .take(MAX_DAMAGE)
            .cloned()
            .collect(),
        ..Losses::default()
    }
}
