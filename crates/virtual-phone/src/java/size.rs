//! Sizes of a Java heap, computed without filling it. The initial contents are built once; the size
//! of each listener, thumbnail, dropped object and destroyed activity is the difference of two
//! small heaps: their texts have numbers of a fixed width. A test checks that the sums equal those
//! of the heap itself.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::app::build;
use super::heap::{ALIGNMENT, Body, ClassRef, JavaHeap, Space};
use super::inputs::{Inputs, Role};
use super::life::Life;
use super::structures::list_capacity;
use crate::events::lock;

/// Address range of the large object space.
const LARGE: std::ops::Range<u32> = 0x4000_0000..0x6f00_0000;

/// Sizes in bytes as allocated by ART, and object counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sizes([i64; Sizes::KINDS]);

impl Sizes {
    const KINDS: usize = 15;
    const SMALL: usize = 0;
    const LARGE: usize = 1;
    const SMALL_OBJECTS: usize = 2;
    const LARGE_OBJECTS: usize = 3;
    const ZYGOTE: usize = 4;
    const IMAGE: usize = 5;
    const NATIVE: usize = 6;
    /// First index of the classes whose instances the app counts for `dumpsys meminfo`.
    const COUNTED: usize = 7;

    fn get(&self, kind: usize) -> u64 {
        self.0[kind].max(0) as u64
    }

    /// Returns the bytes of the app's own objects outside the large object space.
    pub(crate) fn small(&self) -> u64 {
        self.get(Self::SMALL)
    }

    /// Returns the bytes in the large object space.
    pub(crate) fn large(&self) -> u64 {
        self.get(Self::LARGE)
    }

    /// Returns the number of objects outside the large object space.
    pub(crate) fn small_objects(&self) -> u64 {
        self.get(Self::SMALL_OBJECTS)
    }

    /// Returns the number of objects in the large object space.
    pub(crate) fn large_objects(&self) -> u64 {
        self.get(Self::LARGE_OBJECTS)
    }

    /// Returns the bytes that the zygote allocated before the fork.
    pub(crate) fn zygote(&self) -> u64 {
        self.get(Self::ZYGOTE)
    }

    /// Returns the bytes of the boot image that the heap uses.
    pub(crate) fn image(&self) -> u64 {
        self.get(Self::IMAGE)
    }

    /// Returns the bytes outside the heap that its bitmaps hold.
    pub(crate) fn native(&self) -> u64 {
        self.get(Self::NATIVE)
    }

    /// Returns all bytes that the app allocated after the fork.
    pub(crate) fn own(&self) -> u64 {
        self.small() + self.large()
    }

    /// Returns the number of instances of a class of [`COUNTED`] and of its subclasses.
    pub(crate) fn instances(&self, class: &str) -> u64 {
        let at = COUNTED.iter().position(|c| *c == class);
        at.map_or(0, |at| self.get(Self::COUNTED + at))
    }

    fn from_heap(heap: &JavaHeap) -> Sizes {
        let mut sizes = Sizes::default();
        for object in heap.all() {
            let bytes = heap.bytes(object).next_multiple_of(ALIGNMENT) as i64;
            let of = heap.object(object);
            let kind = match of.space {
                Space::BootImage => Self::IMAGE,
                Space::Zygote => Self::ZYGOTE,
                _ if LARGE.contains(&of.address) => {
                    sizes.0[Self::LARGE_OBJECTS] += 1;
                    Self::LARGE
                }
                _ => {
                    sizes.0[Self::SMALL_OBJECTS] += 1;
                    Self::SMALL
                }
            };
            sizes.0[kind] += bytes;
        }
        sizes.0[Self::NATIVE] = heap.natives().iter().map(|(_, n)| *n as i64).sum();
        // Find the counted superclass of each class once for all of its objects.
        let wanted = COUNTED.map(|name| heap.find_class(name));
        let of_class: Vec<Vec<usize>> = (0..heap.classes.len() as u32)
            .map(|class| {
                let ancestry: Vec<ClassRef> = heap.ancestry(ClassRef(class)).collect();
                let is = |at: &usize| wanted[*at].is_some_and(|c| ancestry.contains(&c));
                (0..COUNTED.len()).filter(is).collect()
            })
            .collect();
        for object in &heap.objects {
            if matches!(object.body, Body::Instance(_)) {
                for at in &of_class[object.class.0 as usize] {
                    sizes.0[Self::COUNTED + at] += 1;
                }
            }
        }
        sizes
    }

    fn minus(self, other: Sizes) -> Sizes {
        self.add(other, -1)
    }

    fn add(mut self, other: Sizes, times: i64) -> Sizes {
        for (a, b) in self.0.iter_mut().zip(other.0) {
            *a += b * times;
        }
        self
    }
}

/// Classes whose instances are counted.
const COUNTED: [&str; Sizes::KINDS - Sizes::COUNTED] = [
    "android.view.View",
    "android.view.ViewRootImpl",
    "android.app.ContextImpl",
    "android.app.Activity",
    "android.content.res.AssetManager",
    "android.os.Binder",
    "android.os.BinderProxy",
    "android.graphics.Bitmap",
];

/// Size of a process's Java heap as a function of its activity.
#[derive(Debug)]
pub(crate) struct Model {
    /// Sizes with one listener, one thumbnail and no garbage.
    base: Sizes,
    grows: Option<Growth>,
}

/// Sizes of single additions.
#[derive(Debug)]
struct Growth {
    listener: Sizes,
    thumbnail: Sizes,
    destroyed: Sizes,
    /// Additional objects of the first dropped objects.
    first_garbage: Sizes,
    /// A dropped builder and its text.
    builder: Sizes,
    /// A pair of objects that refer to each other.
    pair: Sizes,
}

fn slots_bytes(slots: usize) -> i64 {
    (12 + 4 * slots as u64).next_multiple_of(ALIGNMENT) as i64
}

/// Models shared by heaps, by release, renaming, kind of process, presence of a window, background
/// objects and running apps.
type Shared = BTreeMap<(u32, bool, u8, bool, u32, usize), Arc<Model>>;

/// Maximum number of cached models.
const MAX_SHARED: usize = 256;

impl Model {
    /// Returns a model like [`Model::from_inputs`], measured once for all heaps of a kind: those of two
    /// other apps differ only in the letters of their names.
    pub(crate) fn shared(inputs: &Inputs) -> Arc<Model> {
        static SHARED: Mutex<Shared> = Mutex::new(BTreeMap::new());
        let key = (
            inputs.android,
            inputs.obfuscated,
            inputs.role as u8,
            inputs.has_activity,
            inputs.background,
            inputs.neighbours.len(),
        );
        if let Some(known) = lock(&SHARED).get(&key) {
            return known.clone();
        }
        let model = Arc::new(Model::from_inputs(inputs));
        let mut shared = lock(&SHARED);
        if shared.len() >= MAX_SHARED {
            shared.clear();
        }
        shared.insert(key, model.clone());
        model
    }

    /// Measures the heaps of `inputs`.
    pub(crate) fn from_inputs(inputs: &Inputs) -> Model {
        let life = Life {
            listeners: 1,
            thumbnails: 1,
            garbage: 0,
            destroyed: 0,
        };
        let measured = |inputs: &Inputs, life: Life| {
            let inputs = Inputs {
                life,
                ..inputs.clone()
            };
            Sizes::from_heap(&build(&inputs, None).0)
        };
        let base = measured(inputs, life);
        if inputs.role != Role::Example {
            return Model { base, grows: None };
        }
        let small = Inputs {
            background: 0,
            ..inputs.clone()
        };
        let zero = measured(&small, life);
        let more = |life: Life| measured(&small, life).minus(zero);
        let garbage = |garbage| more(Life { garbage, ..life });
        let destroyed = |destroyed| more(Life { destroyed, ..life });
        let builder = garbage(2).minus(garbage(1));
        let pair = garbage(6).minus(garbage(5)).minus(builder);
        let grows = Growth {
            listener: more(Life {
                listeners: 2,
                ..life
            }),
            thumbnail: more(Life {
                thumbnails: 2,
                ..life
            }),
            destroyed: destroyed(2).minus(destroyed(1)),
            first_garbage: garbage(1).minus(builder).minus(pair),
            builder,
            pair,
        };
        Model {
            base,
            grows: Some(grows),
        }
    }

    /// Returns the sizes of reachable objects and of garbage.
    pub(crate) fn at(&self, life: &Life) -> (Sizes, Sizes) {
        let Some(grows) = &self.grows else {
            return (self.base, Sizes::default());
        };
        let entries = life.listeners as usize + life.destroyed as usize;
        let slots = slots_bytes(list_capacity(entries)) - slots_bytes(list_capacity(1));
        let mut live = self
            .base
            .add(grows.listener, i64::from(life.listeners) - 1)
            .add(grows.thumbnail, i64::from(life.thumbnails) - 1)
            .add(grows.destroyed, life.destroyed.into());
        live.0[Sizes::SMALL] += slots;
        let dropped = Sizes::default()
            .add(grows.first_garbage, (life.garbage > 0).into())
            .add(grows.builder, life.garbage.into())
            .add(grows.pair, life.garbage.div_ceil(5).into());
        (live, dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destroyed_screen_holds_the_picture_that_the_native_heap_keeps() {
        let model = Model::from_inputs(&Inputs::for_tests(14, false));
        let native = |destroyed| {
            let life = Life {
                listeners: 1,
                thumbnails: 1,
                garbage: 0,
                destroyed,
            };
            model.at(&life).0.native()
        };
        // The registry adds a few bytes to the pixels of each.
        let kib = (native(3) - native(0)) >> 10;
        assert_eq!(kib, 3 * 192);
    }

    #[test]
    fn sums_are_those_of_the_heap() {
        for (android, obfuscated) in [(10, false), (14, false), (16, true)] {
            let inputs = Inputs::for_tests(android, obfuscated);
            let model = Model::from_inputs(&inputs);
            for (listeners, thumbnails, garbage, destroyed) in [
                (40, 24, 25, 0),
                (1, 1, 0, 0),
                (67, 31, 1, 0),
                (512, 96, 6, 0),
                (1_203, 96, 325, 0),
                (40, 0, 3, 0),
                (40, 24, 25, 3),
                (45, 24, 25, 120),
            ] {
                let life = Life {
                    listeners,
                    thumbnails,
                    garbage,
                    destroyed,
                };
                let inputs = Inputs {
                    life,
                    ..inputs.clone()
                };
                let whole = Sizes::from_heap(&build(&inputs, None).0);
                let (live, dropped) = model.at(&life);
                assert_eq!(live.add(dropped, 1), whole, "{android} {life:?}");
            }
        }
    }
}
