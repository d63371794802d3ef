//! Field names by which each sort of collection stores its elements. Names differ between releases;
//! the first one that an object has is used.

/// Storage of a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// One slot per element.
    List,
    /// Buckets; several elements can share one.
    Table,
    /// Always as large as needed.
    Exact,
    /// Ring between two indexes.
    Ring,
    /// A separate object for each element; only emptiness can be determined.
    Linked,
}

/// Sort of collection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// Class; also applies to its subclasses.
    pub class: &'static str,
    pub form: Form,
    /// Field with the number of elements.
    pub size: &'static [&'static str],
    /// Field with the array of slots.
    pub slots: &'static [&'static str],
    /// Number of slots per element.
    pub per_element: u32,
}

const fn shape(
    class: &'static str,
    form: Form,
    size: &'static [&'static str],
    slots: &'static [&'static str],
) -> Shape {
    Shape {
        class,
        form,
        size,
        slots,
        per_element: 1,
    }
}

const fn pairs(
    class: &'static str,
    size: &'static [&'static str],
    slots: &'static [&'static str],
) -> Shape {
    Shape {
        per_element: 2,
        ..shape(class, Form::List, size, slots)
    }
}

/// Known collections. Sets based on a map are counted by that map.
pub(super) const SHAPES: &[Shape] = &[
    shape(
        "java.util.ArrayList",
        Form::List,
        &["size"],
        &["elementData", "array"],
    ),
    shape(
        "java.util.Vector",
        Form::List,
        &["elementCount"],
        &["elementData"],
    ),
    shape(
        "java.util.concurrent.CopyOnWriteArrayList",
        Form::Exact,
        &[],
        &["array", "elements"],
    ),
    shape("java.util.HashMap", Form::Table, &["size"], &["table"]),
    shape(
        "java.util.Hashtable",
        Form::Table,
        &["count", "size"],
        &["table"],
    ),
    shape(
        "java.util.WeakHashMap",
        Form::Table,
        &["size", "elementCount"],
        &["table", "elementData"],
    ),
    // The size is the sum of `baseCount` and `counterCells`.
    shape(
        "java.util.concurrent.ConcurrentHashMap",
        Form::Table,
        &["baseCount"],
        &["table"],
    ),
    pairs("java.util.IdentityHashMap", &["size"], &["table"]),
    shape(
        "java.util.PriorityQueue",
        Form::List,
        &["size"],
        &["queue", "elements"],
    ),
    shape(
        "java.util.ArrayDeque",
        Form::Ring,
        &["head", "tail"],
        &["elements"],
    ),
    shape("java.util.LinkedList", Form::Linked, &["size"], &[]),
    shape("java.util.TreeMap", Form::Linked, &["size"], &[]),
    pairs("android.util.ArrayMap", &["mSize"], &["mArray"]),
    shape("android.util.ArraySet", Form::List, &["mSize"], &["mArray"]),
    shape(
        "android.util.SparseArray",
        Form::List,
        &["mSize"],
        &["mValues"],
    ),
    shape(
        "android.util.LongSparseArray",
        Form::List,
        &["mSize"],
        &["mValues"],
    ),
    shape(
        "android.util.SparseIntArray",
        Form::List,
        &["mSize"],
        &["mValues"],
    ),
    shape(
        "android.util.SparseBooleanArray",
        Form::List,
        &["mSize"],
        &["mValues"],
    ),
    shape(
        "android.util.SparseLongArray",
        Form::List,
        &["mSize"],
        &["mValues"],
    ),
    pairs(
        "androidx.collection.SimpleArrayMap",
        &["size", "mSize"],
        &["array", "mArray"],
    ),
    shape(
        "androidx.collection.ArraySet",
        Form::List,
        &["_size", "size", "mSize"],
        &["array", "mArray"],
    ),
    shape(
        "androidx.collection.SparseArrayCompat",
        Form::List,
        &["size", "mSize"],
        &["values", "mValues"],
    ),
    shape(
        "androidx.collection.LongSparseArray",
        Form::List,
        &["size", "mSize"],
        &["values", "mValues"],
    ),
    shape(
        "kotlin.collections.ArrayDeque",
        Form::List,
        &["size"],
        &["elementData"],
    ),
];
