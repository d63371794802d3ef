//! Objects and bytes by class in one pass over a dump, without a graph. IDs are not kept, so memory
//! depends on the number of classes.

use super::classes::classes;
use super::error::HprofError;
use super::evidence::Evidence;
use super::id_map::IdMap;
use super::index::{Index, may_be_overhead};
use super::outline::Outline;
use super::read::{Options, losses, read};
use super::scan::{Parts, Trouble, Visitor};
use super::sizes::{Layouts, Sizes};
use super::sub_records::SubRecord;
use heaptap_base::bytes::Bytes;
use heaptap_base::parallel;
use heaptap_model::heap_graph::{BasicType, ClassIndex, HeapGraph, HeapKind, Losses, SizeModel};
use std::ops::Range;

/// Number and shallow size of the objects of each class of a dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    /// Rows with most bytes first, then most objects, then by name. Classes with the same name and
    /// different loaders have a row each; classes without objects have no row.
    pub rows: Vec<HistogramRow>,
    /// Model of the shallow sizes.
    pub sizes: SizeModel,
    /// Number of the dump in its file, from 1.
    pub number: u32,
    /// Number of dumps in the file.
    pub among: u32,
    /// Losses of the dump. References are not followed, so dangling ones are not counted.
    pub losses: Losses,
}

/// A row of a [`Histogram`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistogramRow {
    /// Name of the class as Java writes it.
    pub class: String,
    /// Number of objects.
    pub objects: u64,
    /// Bytes of all of them.
    pub shallow_bytes: u64,
}

/// Counts the objects of a dump. An object that was dumped twice counts twice. [`SizeModel::Art`]
/// builds a graph, with its memory.
///
/// # Errors
/// Returns an error if the file has no HPROF header.
pub fn histogram(file: &Bytes, options: &Options) -> Result<Histogram, HprofError> {
    if options.sizes == Some(SizeModel::Art) {
        // The bytes of strings include arrays that exist only in the dump, which requires a graph.
        return Ok(of_graph(&read(file.clone(), options)?));
    }
    let mut outline = Outline::read(file, false, options.dump)?;
    let threads = options.threads.unwrap_or_else(parallel::threads);
    let mut layouts = Layouts::new(options.sizes, &outline, &sample(file, &outline));
    loop {
        let parts = Parts {
            file,
            id_size: outline.id_size,
            parts: &outline.parts,
            threads,
        };
        let (mut counted, trouble) = count(&parts, layouts, &outline);
        if trouble.crossed && !outline.exact {
            outline = Outline::read(file, true, options.dump)?;
            continue;
        }
        // Sizes of arrays were added up with the layout found in a sample of the dump.
        let told = Layouts::new(options.sizes, &outline, &counted.index.evidence);
        if told != layouts {
            layouts = told;
            continue;
        }
        return Ok(counted.histogram(file, &outline, &trouble, options));
    }
}

/// Returns the rows of classes with their objects and bytes, the largest first.
fn rows_of(counts: impl Iterator<Item = (String, (u64, u64))>) -> Vec<HistogramRow> {
    let rows = counts.filter(|(_, (objects, _))| *objects > 0);
    let mut rows: Vec<HistogramRow> = rows
        .map(|(class, (objects, shallow_bytes))| HistogramRow {
            class,
            objects,
            shallow_bytes,
        })
        .collect();
    rows.sort_by(|a, b| {
        let bytes = b.shallow_bytes.cmp(&a.shallow_bytes);
        let objects = b.objects.cmp(&a.objects);
        bytes.then(objects).then_with(|| a.class.cmp(&b.class))
    });
    rows
}

/// Counts the objects of a graph.
fn of_graph(graph: &HeapGraph) -> Histogram {
    let mut counts = vec![(0u64, 0u64); graph.classes().len()];
    for object in graph.objects() {
        let row = &mut counts[graph.class_of(object).at()];
        row.0 += 1;
        row.1 = row.1.saturating_add(graph.shallow_bytes(object));
    }
    let names = graph.classes().iter().map(|class| class.name.clone());
    Histogram {
        rows: rows_of(names.zip(counts)),
        sizes: graph.facts.sizes,
        number: graph.facts.number,
        among: graph.facts.among,
        losses: graph.facts.losses.clone(),
    }
}

/// Reads a few parts for evidence of the runtime's object layout.
fn sample(file: &Bytes, outline: &Outline) -> Evidence {
    const MAX_COUNT: usize = 8;
    let step = outline.parts.len().div_ceil(MAX_COUNT).max(1);
    let some: Vec<Range<usize>> = outline.parts.iter().step_by(step).cloned().collect();
    let parts = Parts {
        file,
        id_size: outline.id_size,
        parts: &some,
        threads: parallel::threads(),
    };
    let layouts = Layouts::new(None, outline, &Evidence::default());
    count(&parts, layouts, outline).0.index.evidence
}

fn count(parts: &Parts<'_>, layouts: Layouts, outline: &Outline) -> (Counted, Trouble) {
    let (workers, trouble) = parts.each(|| Counter {
        counted: Counted::default(),
        id_bytes: outline.id_size.bytes(),
        layouts,
        tallies: Vec::new(),
        by_class: IdMap::default(),
        last: None,
        odd_is_overhead: outline.may_have_overheads(),
        stack_chunk: outline.stack_chunk(parts.file),
    });
    let mut all = Counted::default();
    for worker in workers {
        all.merge(worker.finish());
    }
    all.index.classes.sort_unstable_by_key(|class| class.0);
    (all, trouble)
}

#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    instances: u64,
    arrays: u64,
    array_bytes: u64,
    /// Bytes of the instances' data, for classes that are missing in the dump.
    data_bytes: u64,
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.instances += other.instances;
        self.arrays += other.arrays;
        self.array_bytes = self.array_bytes.saturating_add(other.array_bytes);
        self.data_bytes = self.data_bytes.saturating_add(other.data_bytes);
    }

    fn array(&mut self, bytes: u64) {
        self.arrays += 1;
        self.array_bytes = self.array_bytes.saturating_add(bytes);
    }
}

#[derive(Default)]
struct Counted {
    /// Index without IDs.
    index: Index,
    classes: IdMap<Tally>,
    primitive: [Tally; 12],
    /// Offsets of the instances that contain a stack: only their data states their size.
    stack_chunks: Vec<usize>,
}

impl Counted {
    fn merge(&mut self, other: Counted) {
        self.index.merge(other.index);
        for (class, tally) in other.classes {
            self.classes.entry(class).or_default().add(tally);
        }
        self.stack_chunks.extend(other.stack_chunks);
        for (ours, theirs) in self.primitive.iter_mut().zip(other.primitive) {
            ours.add(theirs);
        }
    }

    fn histogram(
        &mut self,
        file: &Bytes,
        outline: &Outline,
        trouble: &Trouble,
        options: &Options,
    ) -> Histogram {
        let classes = classes(file, outline, &mut self.index);
        let sizes = Sizes::new(options.sizes, file, outline, &self.index, &classes);
        let mut losses = losses(file, outline, trouble, &classes);
        let tallies = self.classes.iter();
        let instances =
            tallies.filter_map(|(id, tally)| Some((*classes.by_id.get(id)?, tally.instances)));
        losses.partial_objects = classes.count_partial(instances);
        let chunk_bytes = |class: ClassIndex| {
            let chunks = self.stack_chunks.iter();
            let chunks = chunks.filter_map(|&at| match SubRecord::at(file, at, outline.id_size)? {
                SubRecord::Instance(chunk) => Some(sizes.instance(class, chunk.data)),
                _ => None,
            });
            chunks.fold(0, u64::saturating_add)
        };
        let stack_chunk = classes.stack_chunk(outline).map(|(class, _)| class);
        for &length in self.index.overheads.values() {
            let bytes = sizes
                .layouts
                .primitive_array(length.into(), BasicType::Byte);
            self.primitive[BasicType::Byte as usize].array(bytes);
        }
        // Objects and bytes by class.
        let mut rows = vec![(0u64, 0u64); classes.rows.len()];
        let mut add = |class: ClassIndex, objects: u64, bytes: u64| {
            if let Some(row) = rows.get_mut(class.at()) {
                row.0 += objects;
                row.1 = row.1.saturating_add(bytes);
            }
        };
        for (id, tally) in &self.classes {
            let Some(&class) = classes.by_id.get(id) else {
                continue;
            };
            if classes.dumps[class.at()].is_none() {
                losses.unknown_classes += tally.instances;
            }
            let bytes = match sizes.each_instance(class) {
                Some(bytes) => tally.instances.saturating_mul(bytes),
                None if stack_chunk == Some(class) => chunk_bytes(class),
                None => tally.data_bytes,
            };
            add(class, tally.instances, bytes);
            add(class, tally.arrays, tally.array_bytes);
        }
        for (&class, tally) in classes.primitive.iter().zip(&self.primitive) {
            add(class, tally.arrays, tally.array_bytes);
        }
        for &class in classes.by_id.values() {
            if let Some(dump) = classes.dump(file, outline, class) {
                add(classes.class_class, 1, sizes.class_object(&dump));
            }
        }
        let names = classes.rows.into_iter().map(|class| class.name);
        Histogram {
            rows: rows_of(names.zip(rows)),
            sizes: sizes.layouts.model,
            number: outline.number,
            among: outline.among,
            losses,
        }
    }
}

/// Counts of one thread.
struct Counter {
    counted: Counted,
    id_bytes: usize,
    layouts: Layouts,
    tallies: Vec<Tally>,
    /// Index into `tallies` by class.
    by_class: IdMap<u32>,
    /// Class of the last object and its index.
    last: Option<(u64, u32)>,
    odd_is_overhead: bool,
    /// ID of HotSpot's class of stacks.
    stack_chunk: Option<u64>,
}

impl Counter {
    #[inline]
    fn tally(&mut self, class: u64) -> &mut Tally {
        let place = match self.last {
            Some((last, place)) if last == class => place,
            _ => {
                let next = self.tallies.len() as u32;
                let place = *self.by_class.entry(class).or_insert(next);
                if place == next {
                    self.tallies.push(Tally::default());
                }
                self.last = Some((class, place));
                place
            }
        };
        &mut self.tallies[place as usize]
    }

    fn finish(mut self) -> Counted {
        let tallies = &self.tallies;
        let classes = self.by_class.iter();
        self.counted.classes = classes.map(|(&c, &at)| (c, tallies[at as usize])).collect();
        let classes = self.by_class.keys();
        self.counted.index.used = classes.map(|&class| (class, 0)).collect();
        self.counted
    }
}

impl Visitor for Counter {
    fn begin(&mut self) {
        self.counted.index.evidence.begin();
    }

    #[inline]
    fn visit(&mut self, at: usize, heap: HeapKind, record: SubRecord<'_>) {
        let layouts = self.layouts;
        match record {
            SubRecord::Instance(instance) => {
                self.counted.index.evidence.object(instance.id);
                if self.stack_chunk == Some(instance.class) {
                    self.counted.stack_chunks.push(at);
                }
                let tally = self.tally(instance.class);
                tally.instances += 1;
                tally.data_bytes += layouts.unknown_instance(instance.data.len());
            }
            SubRecord::ObjectArray(array) => {
                self.counted.index.evidence.object_array(&array);
                let length = array.elements.len() / self.id_bytes;
                let bytes = layouts.object_array(length as u64);
                self.tally(array.class).array(bytes);
            }
            SubRecord::PrimitiveArray(array) => {
                let index = &mut self.counted.index;
                if self.odd_is_overhead && may_be_overhead(&array) {
                    index.overheads.insert(array.id, array.length);
                    return;
                }
                index.evidence.primitive_array(&array);
                index.primitive_arrays |= 1 << array.element as u8;
                let bytes = layouts.primitive_array(array.length.into(), array.element);
                self.counted.primitive[array.element as usize].array(bytes);
            }
            SubRecord::Class(class) => {
                self.counted.index.classes.push((at, class.id(), heap));
            }
            SubRecord::Root(_) | SubRecord::Heap { .. } => {}
        }
    }
}
