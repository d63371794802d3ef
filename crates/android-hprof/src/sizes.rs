//! Shallow sizes. An HPROF has a size for the instances of each class and the lengths of arrays,
//! but not the memory that an object takes. `docs/internals/analysis.md` compares the models.

use super::classes::Classes;
use super::evidence::{Evidence, aligned};
use super::hotspot::{self, Vm};
use super::id_map::IdMap;
use super::index::Index;
use super::outline::Outline;
use super::sub_records::ClassDump;
use heaptap_base::bytes::Bytes;
use heaptap_model::heap_graph::{BasicType, ClassIndex, SizeModel};

/// Shallow sizes of all objects of a dump.
pub(super) struct Sizes {
    pub(super) layouts: Layouts,
    /// Instance sizes by class; `None` if they vary, or if the dump does not have the class or a
    /// superclass whose fields the size has.
    instances: Vec<Option<u64>>,
    /// Class whose instances contain a stack.
    stack_chunk: Option<StackChunk>,
    /// Sizes of class objects by ID.
    class_objects: IdMap<u64>,
}

#[derive(Debug, Clone, Copy)]
struct StackChunk {
    class: ClassIndex,
    /// Bytes before the stack.
    fields: u64,
    /// Offset of the number of words in an instance's data.
    words_at: usize,
    vm: Vm,
}

impl Sizes {
    pub(super) fn new(
        asked: Option<SizeModel>,
        file: &Bytes,
        outline: &Outline,
        index: &Index,
        classes: &Classes,
    ) -> Sizes {
        let layouts = Layouts::new(asked, outline, &index.evidence);
        let vm = Vm {
            reference: layouts.reference,
            header: layouts.header,
            alignment: layouts.alignment,
            pointer: outline.id_size.bytes() as u64,
            packs: hotspot::packs(classes),
            has_virtual_threads: hotspot::has_virtual_threads(classes),
        };
        let dump = |class: usize| classes.dump(file, outline, ClassIndex(class as u32));
        let mut placed = hotspot::Instances::new(classes, vm);
        let own_bytes = match layouts.model {
            SizeModel::Mat => mat_own_bytes(classes, &layouts),
            SizeModel::Dump | SizeModel::Art | SizeModel::Hotspot => Vec::new(),
        };
        let instance = |class: usize| {
            let said = u64::from(dump(class)?.instance_bytes());
            let index = ClassIndex(class as u32);
            let states_size = matches!(layouts.model, SizeModel::Dump | SizeModel::Art);
            if !states_size && classes.lacks_fields(index) {
                return None;
            }
            Some(match layouts.model {
                SizeModel::Dump => said,
                SizeModel::Art => aligned(said, layouts.alignment),
                SizeModel::Mat => mat_instance(classes, index, &layouts, &own_bytes),
                SizeModel::Hotspot => placed.bytes(index),
            })
        };
        let mut instances: Vec<_> = (0..classes.rows.len()).map(instance).collect();
        let stack_chunk = match layouts.model {
            SizeModel::Hotspot => classes.stack_chunk(outline),
            SizeModel::Dump | SizeModel::Art | SizeModel::Mat => None,
        };
        let stack_chunk = stack_chunk.and_then(|(class, words_at)| {
            let fields = instances[class.at()].take()?;
            Some(StackChunk {
                class,
                fields,
                words_at,
                vm,
            })
        });
        let own = instances.get(classes.class_class.at());
        let own = own.copied().flatten().unwrap_or(0);
        let mut class_objects = IdMap::default();
        for (&id, &class) in &classes.by_id {
            let Some(dump) = dump(class.at()) else {
                continue;
            };
            let overhead: u64 = dump
                .statics()
                .filter(|field| outline.overhead_names.contains_key(&field.name))
                .filter_map(|field| outline.id_size.read(field.value))
                .filter_map(|array| classes.overheads.get(&array))
                .map(|&bytes| u64::from(bytes))
                .sum();
            let statics = static_bytes(&dump, layouts.reference);
            let bytes = match layouts.model {
                SizeModel::Dump | SizeModel::Art => own + statics + overhead,
                SizeModel::Mat => statics,
                SizeModel::Hotspot => {
                    let of_vm = |name| outline.vm_names.contains_key(&name);
                    hotspot::class_object_bytes(own, &dump, of_vm, &vm)
                }
            };
            class_objects.insert(id, aligned(bytes, layouts.alignment));
        }
        Sizes {
            layouts,
            instances,
            stack_chunk,
            class_objects,
        }
    }

    /// Returns the size of every instance of a class; `None` if it depends on the instance.
    #[inline]
    pub(super) fn each_instance(&self, class: ClassIndex) -> Option<u64> {
        self.instances.get(class.at()).copied().flatten()
    }

    /// Returns the size of an instance with its data.
    #[inline]
    pub(super) fn instance(&self, class: ClassIndex, data: &[u8]) -> u64 {
        match self.each_instance(class) {
            Some(bytes) => bytes,
            None => self.varying_instance(class, data),
        }
    }

    #[cold]
    fn varying_instance(&self, class: ClassIndex, data: &[u8]) -> u64 {
        let Some(chunk) = self.stack_chunk.filter(|chunk| chunk.class == class) else {
            return self.layouts.unknown_instance(data.len());
        };
        let words = data
            .get(chunk.words_at..)
            .and_then(|data| data.first_chunk());
        let words = words.map_or(0, |bytes| i32::from_be_bytes(*bytes).max(0));
        hotspot::stack_chunk_bytes(chunk.fields, words as u64, &chunk.vm)
    }

    /// Returns the size of a class object.
    pub(super) fn class_object(&self, dump: &ClassDump<'_>) -> u64 {
        self.class_objects.get(&dump.id()).copied().unwrap_or(0)
    }
}

/// Sizes of arrays, and a runtime's object layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layouts {
    pub(super) model: SizeModel,
    /// Bytes of a reference in memory.
    pub(super) reference: u64,
    /// Bytes before an object's fields.
    pub(super) header: u64,
    /// Bytes before the elements of an array of references.
    array_header: u64,
    /// Alignment of sizes; 1 if they are not rounded.
    alignment: u64,
}

impl Layouts {
    /// Returns the requested model, or the one that matches the dump's own runtime.
    pub(super) fn new(asked: Option<SizeModel>, outline: &Outline, evidence: &Evidence) -> Layouts {
        let id_bytes = outline.id_size.bytes() as u64;
        let default = match outline.android {
            true => SizeModel::Dump,
            false => SizeModel::Hotspot,
        };
        let model = asked.unwrap_or(default);
        let compressed = id_bytes == 8 && evidence.compressed_references > 0;
        let reference = if compressed { 4 } else { id_bytes };
        let object_alignment = match evidence.id_bits.trailing_zeros() {
            bits @ 3..=8 => 1 << bits,
            9.. => 256,
            _ => 8,
        };
        match model {
            SizeModel::Dump => Layouts {
                model,
                reference: id_bytes,
                header: 0,
                array_header: 0,
                alignment: 1,
            },
            SizeModel::Mat => Layouts {
                model,
                reference,
                header: id_bytes + reference,
                array_header: aligned(id_bytes + reference + 4, reference),
                alignment: object_alignment,
            },
            SizeModel::Art => Layouts {
                model,
                reference: 4,
                header: 8,
                array_header: 12,
                alignment: 8,
            },
            SizeModel::Hotspot => {
                let header = match () {
                    () if id_bytes == 4 => 8,
                    () if evidence.compact_header > 0 => 8,
                    () if evidence.compressed_class == 0 && evidence.wide_class > 0 => 16,
                    () => 12,
                };
                Layouts {
                    model,
                    reference,
                    header,
                    // Before JDK 23, elements begin at a multiple of 8, whatever their width.
                    array_header: match header == 16 && evidence.packed_arrays == 0 {
                        true => 24,
                        false => header + 4,
                    },
                    alignment: object_alignment,
                }
            }
        }
    }

    /// Returns the size of an instance of a class that is missing in the dump, from its data.
    #[inline]
    pub(super) fn unknown_instance(&self, data: usize) -> u64 {
        aligned(self.header + data as u64, self.alignment)
    }

    /// Returns the size of an array of references.
    #[inline]
    pub(super) fn object_array(&self, length: u64) -> u64 {
        let header = match self.model {
            SizeModel::Hotspot => aligned(self.array_header, self.reference),
            _ => self.array_header,
        };
        let elements = length.saturating_mul(self.reference);
        aligned(header.saturating_add(elements), self.alignment)
    }

    /// Returns the size of an array of primitives.
    #[inline]
    pub(super) fn primitive_array(&self, length: u64, element: BasicType) -> u64 {
        let width = element.bytes(8) as u64;
        let header = match self.model {
            SizeModel::Hotspot | SizeModel::Art if width == 8 => aligned(self.array_header, 8),
            _ => self.array_header,
        };
        let elements = length.saturating_mul(width);
        aligned(header.saturating_add(elements), self.alignment)
    }
}

/// Returns the bytes of all statics of a class.
pub(super) fn static_bytes(dump: &ClassDump<'_>, reference: u64) -> u64 {
    dump.statics()
        .map(|field| match field.basic {
            BasicType::Object => reference,
            basic => basic.bytes(8) as u64,
        })
        .sum()
}

/// Returns by class the bytes of the fields that it declares, as Eclipse MAT counts them: rounded
/// up to the width of a reference.
fn mat_own_bytes(classes: &Classes, layouts: &Layouts) -> Vec<u64> {
    let own = classes.rows.iter().map(|row| {
        let own = row.fields.iter().map(|field| match field.basic {
            None | Some(BasicType::Object) => layouts.reference,
            Some(basic) => basic.bytes(8) as u64,
        });
        aligned(own.sum(), layouts.reference)
    });
    own.collect()
}

/// Returns the size of an instance by Eclipse MAT's rules: the declared fields of each class of the
/// hierarchy except `java.lang.Object`.
fn mat_instance(classes: &Classes, class: ClassIndex, layouts: &Layouts, own: &[u64]) -> u64 {
    let ancestry = classes.ancestry(class);
    let declaring = ancestry.take_while(|class| classes.rows[class.at()].superclass.is_some());
    let fields: u64 = declaring.map(|class| own[class.at()]).sum();
    aligned(layouts.header + fields, layouts.alignment)
}
