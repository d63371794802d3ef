//! HotSpot's layout of instances and class objects, so that shallow sizes match `jmap -histo`. A
//! dump names the fields of each class, but not their offsets, and not the fields that the VM adds
//! to some of its own classes.
//!
//! Since JDK 15 a field takes the smallest gap that fits, including gaps of superclasses; larger
//! primitives come first, references last. Before JDK 15 a class begins where its superclass ends,
//! rounded up to the width of a reference, and only the gap before the first 8-byte field is
//! filled.

use super::classes::{Classes, STACK_CHUNK};
use super::evidence::aligned;
use super::sub_records::ClassDump;
use heaptap_model::heap_graph::{BasicType, Class, ClassIndex};

/// Bytes kept free around `@Contended` fields.
const CONTENDED_PADDING: u64 = 128;
/// More gaps than any class has, because small fields fill gaps first; further gaps are not filled.
const MAX_GAPS: usize = 16;

/// Layout parameters of a VM.
#[derive(Debug, Clone, Copy)]
pub(super) struct Vm {
    /// Bytes of a reference.
    pub(super) reference: u64,
    /// Bytes of an object's header.
    pub(super) header: u64,
    /// Alignment of sizes.
    pub(super) alignment: u64,
    /// Bytes of a pointer.
    pub(super) pointer: u64,
    /// The VM is JDK 15 or later.
    pub(super) packs: bool,
    /// The VM has virtual threads, since JDK 19: classes got other hidden fields. Verified with JDK
    /// 17, 21 and 25.
    pub(super) has_virtual_threads: bool,
}

/// Returns whether the VM is JDK 15 or later, which introduced hidden classes and their data.
pub(super) fn packs(classes: &Classes) -> bool {
    let class = classes.rows.get(classes.class_class.at());
    class.is_some_and(|class| declares(class, "classData"))
}

/// Returns whether the VM has virtual threads: the fields that they do not need are in a holder.
pub(super) fn has_virtual_threads(classes: &Classes) -> bool {
    let mut threads = classes.rows.iter().filter(|class| class.name == THREAD);
    threads.any(|class| declares(class, "holder"))
}

const THREAD: &str = "java.lang.Thread";

/// Returns the bytes of a stack chunk whose fields take `fields` bytes and whose stack takes
/// `words`: after the stack comes a bitmap with a bit for each place of a reference.
pub(super) fn stack_chunk_bytes(fields: u64, words: u64, vm: &Vm) -> u64 {
    let bitmap = (words * (8 / vm.reference)).div_ceil(64);
    aligned(fields + (words + bitmap) * 8, vm.alignment)
}

fn declares(class: &Class, field: &str) -> bool {
    class.fields.iter().any(|own| own.name == field)
}

/// A field that the VM adds.
#[derive(Debug, Clone, Copy)]
enum Injected {
    Pointer,
    Reference,
    Bytes(u64),
}

/// Returns the fields that the VM adds to its own classes (`javaClasses.hpp` calls them injected
/// fields). What a class declares tells its version.
fn injected(class: &Class, vm: &Vm) -> &'static [Injected] {
    use Injected::{Bytes, Pointer, Reference};
    match class.name.as_str() {
        "java.lang.Class" => {
            // klass, array_klass, oop_size, static_oop_field_count, then references: two, of which
            // JDK 19 added init_lock, and protection_domain and signers before JDK 25.
            const ALL: [Injected; 8] = [
                Pointer,
                Pointer,
                Bytes(4),
                Bytes(4),
                Reference,
                Reference,
                Reference,
                Reference,
            ];
            match (declares(class, "signers"), vm.has_virtual_threads) {
                (true, _) => &ALL[..6],
                (false, false) => &ALL[..7],
                (false, true) => &ALL,
            }
        }
        "java.lang.ClassLoader" | "java.lang.Module" | "java.lang.invoke.MemberName" => &[Pointer],
        "java.lang.invoke.ResolvedMethodName" if declares(class, "vmholder") => &[Pointer],
        "java.lang.invoke.ResolvedMethodName" => &[Reference, Pointer],
        // jvmti_thread_state, jvmti_VTMS_transition_disable_count, jvmti_is_in_VTMS_transition,
        // jfr_epoch.
        THREAD if vm.has_virtual_threads => &[Pointer, Bytes(4), Bytes(1), Bytes(2)],
        "java.lang.invoke.MethodHandleNatives$CallSiteContext" => &[Pointer, Bytes(8)],
        "java.lang.StackFrameInfo" => &[Bytes(2)],
        "java.lang.InternalError" => &[Bytes(1)],
        // cont, pc, maxThawingSize, flags.
        STACK_CHUNK => &[Reference, Pointer, Bytes(4), Bytes(1)],
        _ => &[],
    }
}

/// Returns whether a field is `@Contended`: such fields form a group with padding around it.
fn is_contended(class: &Class, field: &str, vm: &Vm) -> bool {
    match class.name.as_str() {
        THREAD => !vm.has_virtual_threads && field.starts_with("threadLocalRandom"),
        "java.util.concurrent.ForkJoinPool" => {
            field == "ctl" || vm.has_virtual_threads && field == "parallelism"
        }
        "java.util.concurrent.ForkJoinPool$WorkQueue" => match field {
            "top" | "source" | "nsteals" => true,
            "phase" | "access" | "stackPred" | "parking" => vm.has_virtual_threads,
            _ => false,
        },
        "java.util.concurrent.SubmissionPublisher$BufferedSubscription" => {
            matches!(field, "demand" | "waiting")
        }
        _ => false,
    }
}

/// Returns whether a class is `@Contended`: padding is around the fields that it declares.
fn is_contended_class(class: &Class) -> bool {
    matches!(
        class.name.as_str(),
        "java.util.concurrent.ConcurrentHashMap$CounterCell"
            | "java.util.concurrent.atomic.Striped64$Cell"
            | "java.util.concurrent.Exchanger$Node"
            | "java.util.concurrent.SubmissionPublisher$BufferedSubscription"
    )
}

/// Fields placed so far.
#[derive(Debug, Clone, Default)]
struct Placed {
    end: u64,
    /// Offset and size in bytes of each gap before the end.
    gaps: Vec<(u64, u64)>,
}

impl Placed {
    /// Puts a field into the smallest gap that fits, or at the end.
    fn put(&mut self, bytes: u64) {
        let fits = |&(at, free): &(u64, u64)| aligned(at, bytes) + bytes <= at + free;
        let gaps = self.gaps.iter().enumerate();
        let best = gaps.filter(|gap| fits(gap.1)).min_by_key(|gap| gap.1.1);
        let best = best.map(|(index, &gap)| (index, gap));
        if let Some((index, (at, free))) = best {
            let start = aligned(at, bytes);
            self.gaps.swap_remove(index);
            self.gap(at, start);
            self.gap(start + bytes, at + free);
            return;
        }
        let start = aligned(self.end, bytes);
        self.gap(self.end, start);
        self.end = start + bytes;
    }

    fn gap(&mut self, from: u64, to: u64) {
        if from < to && self.gaps.len() < MAX_GAPS {
            self.gaps.push((from, to - from));
        }
    }

    /// Places primitives by descending width, then references.
    fn put_all(&mut self, mut primitives: Vec<u64>, references: u64, vm: &Vm) {
        primitives.sort_unstable_by(|a, b| b.cmp(a));
        primitives.into_iter().for_each(|bytes| self.put(bytes));
        (0..references).for_each(|_| self.put(vm.reference));
    }
}

/// Bytes of the instances of classes. Each class is laid out once, after its superclass: a hostile
/// dump has thousands of classes below one with 65,535 fields.
pub(super) struct Instances<'a> {
    classes: &'a Classes,
    vm: Vm,
    placed: Vec<Option<Placed>>,
}

impl<'a> Instances<'a> {
    pub(super) fn new(classes: &'a Classes, vm: Vm) -> Instances<'a> {
        Instances {
            classes,
            vm,
            placed: vec![None; classes.rows.len()],
        }
    }

    /// Returns the bytes of an instance of a class.
    pub(super) fn bytes(&mut self, class: ClassIndex) -> u64 {
        let mut chain: Vec<ClassIndex> = Vec::new();
        for class in self.classes.ancestry(class) {
            // A cycle of superclasses repeats a class.
            if self.placed[class.at()].is_some() || chain.contains(&class) {
                break;
            }
            chain.push(class);
        }
        for &class in chain.iter().rev() {
            let superclass = self.classes.rows[class.at()].superclass;
            let superclass = superclass.and_then(|class| self.placed[class.at()].clone());
            let mut placed = superclass.unwrap_or(Placed {
                end: self.vm.header,
                gaps: Vec::new(),
            });
            own_fields(self.classes, class, &self.vm, &mut placed);
            self.placed[class.at()] = Some(placed);
        }
        let placed = self.placed[class.at()].as_ref();
        aligned(
            placed.map_or(self.vm.header, |placed| placed.end),
            self.vm.alignment,
        )
    }
}

/// Places the fields that a class declares behind those of its superclasses.
fn own_fields(classes: &Classes, class: ClassIndex, vm: &Vm, placed: &mut Placed) {
    let row = &classes.rows[class.at()];
    let (mut primitives, mut references) = (Vec::new(), 0);
    let (mut apart, mut references_apart) = (Vec::new(), 0);
    for field in &row.fields {
        let contended = vm.packs && is_contended(row, &field.name, vm);
        match (field.basic, contended) {
            (None | Some(BasicType::Object), false) => references += 1,
            (None | Some(BasicType::Object), true) => references_apart += 1,
            (Some(basic), false) => primitives.push(basic.bytes(8) as u64),
            (Some(basic), true) => apart.push(basic.bytes(8) as u64),
        }
    }
    for field in injected(row, vm) {
        match *field {
            Injected::Pointer => primitives.push(vm.pointer),
            Injected::Reference => references += 1,
            Injected::Bytes(bytes) => primitives.push(bytes),
        }
    }
    if !vm.packs {
        if !primitives.is_empty() || references > 0 {
            placed.gaps.clear();
            placed.end = aligned(placed.end, vm.reference);
        }
        placed.put_all(primitives, references, vm);
        return;
    }
    let padded = is_contended_class(row);
    if padded {
        // The VM does not fill the gap before the first field, either.
        let widest = primitives.iter().copied().max().unwrap_or(vm.reference);
        placed.gaps.clear();
        placed.end = aligned(placed.end + CONTENDED_PADDING, widest);
    }
    placed.put_all(primitives, references, vm);
    let has_group = !apart.is_empty() || references_apart > 0;
    if has_group {
        placed.gaps.clear();
        placed.end += CONTENDED_PADDING;
        placed.put_all(apart, references_apart, vm);
    }
    if padded || has_group {
        placed.gaps.clear();
        // Subclasses begin after the padding, not in it.
        placed.end = aligned(placed.end + CONTENDED_PADDING, vm.alignment);
    }
}

/// Returns the bytes of a class object: those of any `java.lang.Class`, then its statics,
/// references first.
pub(super) fn class_object_bytes(
    own: u64,
    dump: &ClassDump<'_>,
    of_vm: impl Fn(u64) -> bool,
    vm: &Vm,
) -> u64 {
    let mut placed = Placed {
        end: own,
        gaps: Vec::new(),
    };
    let mut primitives = Vec::new();
    for field in dump.statics().filter(|field| !of_vm(field.name)) {
        match field.basic {
            BasicType::Object => placed.put(vm.reference),
            basic => primitives.push(basic.bytes(8) as u64),
        }
    }
    primitives.sort_unstable_by(|a, b| b.cmp(a));
    for bytes in primitives {
        // The gap before the first 8-byte static stays free.
        placed.gaps.clear();
        placed.put(bytes);
    }
    aligned(placed.end, vm.alignment)
}
