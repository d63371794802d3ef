//! `heap_graph_object_data` and `heap_graph_primitive`: values of fields, texts of strings, arrays
//! of primitives. HPROFs have all of them, heap graphs only the values of a few fields.
//!
//! The ID of an object's data and of the set of its fields is the ID of the object.
//! `heaptap_field` returns the value of one field.

use std::ops::ControlFlow;
use std::sync::Arc;

use rusqlite::types::{Value as SqlValue, ValueRef};

use super::super::functions::{self, FNV, fnv};
use super::super::table::{Catalog, Cell, Scalar, Schema, columns, schema};
use super::field_names::{self, FieldName, KnownNames};
use super::heaps::{Heap, Heaps, LazyHeaps, is_hprof};
use heaptap_model::heap_graph::{
    BasicType, Class, ClassKind, Field, HeapGraph, ObjectIndex, Value,
};

static DATA: Schema = schema! {
    "heap_graph_object_data":
        "Contents of objects: all of them in an HPROF, only a few fields in a heap graph.";
    id int sorted: "object: `heap_graph_object.id`";
    field_set_id int sorted: "primitive fields: `heap_graph_primitive.field_set_id`";
    value_string text: "text of a java.lang.String";
    array_element_type text: "element type of an array of primitives";
    array_element_count int: "number of elements; NULL for an array of objects, as in Perfetto";
    array_data_id int: "ID of the object if the dump has the elements";
    array_data_hash int: "hash of the elements; equal for equal arrays";
};

static PRIMITIVES: Schema = schema! {
    "heap_graph_primitive": "Primitive fields of objects and their values.";
    id int row: "number of the row";
    field_set_id int sorted: "set of the fields of one object";
    field_name text: "field with the class that declares it";
    field_type text: "type, such as int";
    bool_value int: "value of a boolean";
    byte_value int: "value of a byte";
    char_value int: "value of a char, a UTF-16 code unit";
    short_value int: "value of a short";
    int_value int: "value of an int";
    long_value int: "value of a long";
    float_value real: "value of a float";
    double_value real: "value of a double";
    deobfuscated_field_name text: "original name of the field from the R8 mapping";
};

pub(super) fn add(catalog: &mut Catalog, heaps: &LazyHeaps) {
    let data = heaps.model(Data::from_heaps);
    catalog.rows(&DATA, &data, |of| of.rows.len(), data_cell);
    let primitives = heaps.model(Primitives::from_heaps);
    catalog.rows(&PRIMITIVES, &primitives, |of| of.count, primitive_cell);
    let (lazy, known) = (heaps.clone(), KnownNames::default());
    catalog.scalar(Scalar {
        name: "heaptap_field",
        about: "Value of a field of an object in an HPROF, by name or `Class.name`; of an array its \
                `length`.",
        arguments: &["object_id", "name"],
        value: Box::new(move |context| {
            let (object, name) = match (context.get_raw(0), context.get_raw(1)) {
                (ValueRef::Integer(object), ValueRef::Text(name)) => (object, name),
                (ValueRef::Null, ValueRef::Text(_)) => return Ok(SqlValue::Null),
                _ => return Err(functions::failure(FIELD_USAGE)),
            };
            let name = String::from_utf8_lossy(name);
            let heaps = lazy.get().map_err(|error| functions::failure(&error.0))?;
            let Some((heap, object)) = heaps.find_object(object) else {
                return Ok(SqlValue::Null);
            };
            if !heap.graph.contents().has_values() {
                return Err(functions::failure(FIELD_WITHOUT_VALUES));
            }
            match field_value(heap, object, &name) {
                Some(value) => Ok(value),
                None => match known.check(&heaps, &name) {
                    Ok(()) => Ok(SqlValue::Null),
                    Err(message) => Err(functions::failure(&message)),
                },
            }
        }),
    });
}

const FIELD_USAGE: &str = "heaptap_field: write heaptap_field(heap_graph_object.id, 'name')";
const FIELD_WITHOUT_VALUES: &str = "heaptap_field: a heap graph does not contain values; take an \
                                    HPROF with `heaptap dump --hprof`";

/// Returns the value of a field of an object by `name` or `Class.name`, the field of the most
/// derived class first; of an array only its `length`. `None` if it has no such field.
fn field_value(heap: &Heap, object: ObjectIndex, name: &str) -> Option<SqlValue> {
    let graph = &heap.graph;
    let contents = graph.contents();
    if graph.class(graph.class_of(object)).is_array() {
        let length = || match contents.primitive_array(graph, object) {
            Some(array) => Some(array.length),
            None => contents.object_array_length(graph, object),
        };
        let length = (name == field_names::LENGTH).then(length).flatten();
        return length.map(|length| SqlValue::Integer(length.into()));
    }
    let wanted = FieldName::parse(name);
    let mut found = None;
    contents.fields(graph, object, &mut |field| {
        let class = field.declared_in.map(|class| graph.class(class));
        if field.name.is_some_and(|name| wanted.is(class, name)) {
            found = Some(field.value);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    Some(match found? {
        Value::Null | Value::Dangling(_) => SqlValue::Null,
        Value::Object(target) => match contents.string(graph, target) {
            Some(text) => SqlValue::Text(text),
            None => SqlValue::Integer(heap.row(target) as i64),
        },
        Value::Boolean(flag) => SqlValue::Integer(flag.into()),
        Value::Char(number) => SqlValue::Integer(number.into()),
        Value::Float(number) => SqlValue::Real(number.into()),
        Value::Double(number) => SqlValue::Real(number),
        Value::Byte(number) => SqlValue::Integer(number.into()),
        Value::Short(number) => SqlValue::Integer(number.into()),
        Value::Int(number) => SqlValue::Integer(number.into()),
        Value::Long(number) => SqlValue::Integer(number),
    })
}

/// Kind of data that an object has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    None,
    Fields,
    Text,
    Array,
}

/// Returns the kind of data, from the class alone if that is enough.
fn sort(graph: &HeapGraph, object: ObjectIndex) -> Sort {
    if !is_hprof(graph) {
        return match primitives(graph, object) {
            0 => Sort::None,
            _ => Sort::Fields,
        };
    }
    let class = graph.class(graph.class_of(object));
    if class.kind == ClassKind::String {
        return Sort::Text;
    }
    if class.is_array() {
        let of_primitives = graph.contents().primitive_array(graph, object).is_some();
        return if of_primitives {
            Sort::Array
        } else {
            Sort::None
        };
    }
    match primitives(graph, object) {
        0 => Sort::None,
        _ => Sort::Fields,
    }
}

/// Returns whether an object has a row in `heap_graph_object_data`.
pub(super) fn has_data(heap: &Heap, object: ObjectIndex) -> bool {
    sort(&heap.graph, object) != Sort::None
}

fn is_reference(value: Value) -> bool {
    matches!(value, Value::Null | Value::Object(_) | Value::Dangling(_))
}

/// Returns the number of primitive fields of an object.
fn primitives(graph: &HeapGraph, object: ObjectIndex) -> u32 {
    let of_class = graph.class(graph.class_of(object));
    if of_class.is_array() {
        return 0;
    }
    let mut count = 0;
    if is_hprof(graph) && graph.class_behind(object).is_none() {
        for class in graph.ancestry(graph.class_of(object)) {
            let fields = graph.class(class).fields.iter();
            let basic = fields.filter(|field| field.basic.is_some_and(|b| b != BasicType::Object));
            count += basic.count() as u32;
        }
        return count;
    }
    graph.contents().fields(graph, object, &mut |field| {
        count += u32::from(!is_reference(field.value));
        ControlFlow::Continue(())
    });
    count
}

/// Rows of objects with contents, ascending.
struct Data {
    heaps: Arc<Heaps>,
    rows: Vec<u32>,
}

impl Data {
    fn from_heaps(heaps: Arc<Heaps>) -> Data {
        let rows = 0..heaps.objects();
        let rows = rows.filter(|&row| {
            let (heap, object) = heaps.object(row);
            has_data(heap, object)
        });
        let rows = rows.map(|row| row as u32).collect();
        Data { heaps, rows }
    }
}

fn data_cell(of: &Data, row: usize, column: usize) -> Cell<'_> {
    let id = of.rows[row];
    let (heap, object) = of.heaps.object(id as usize);
    let graph = &heap.graph;
    let array = || graph.contents().primitive_array(graph, object);
    match column {
        // Objects without primitive fields also get a set; it has no rows.
        0 | 1 => id.into(),
        2 => graph.contents().string(graph, object).into(),
        3 => array().map(|array| array.element.name()).into(),
        4 => array().map(|array| array.length).into(),
        5 => array().and_then(|array| array.bytes).map(|_| id).into(),
        _ => {
            let bytes = array().and_then(|array| array.bytes);
            bytes.map(|bytes| fnv(FNV, bytes.iter().copied())).into()
        }
    }
}

/// Primitive fields of all objects.
struct Primitives {
    heaps: Arc<Heaps>,
    /// Rows of objects with primitive fields, and the row of the first field; ascending.
    firsts: Vec<(u32, u32)>,
    count: usize,
}

impl Primitives {
    fn from_heaps(heaps: Arc<Heaps>) -> Primitives {
        let mut firsts = Vec::new();
        let mut count = 0u32;
        for row in 0..heaps.objects() {
            let (heap, object) = heaps.object(row);
            let fields = primitives(&heap.graph, object);
            if fields > 0 {
                firsts.push((row as u32, count));
                // Fields beyond the largest row number are left out.
                count = count.saturating_add(fields);
            }
        }
        Primitives {
            heaps,
            firsts,
            count: count as usize,
        }
    }

    fn field<T>(
        &self,
        row: usize,
        of: impl FnOnce(&HeapGraph, ObjectIndex, &Field<'_>) -> T,
    ) -> Option<T> {
        let behind = self.firsts.partition_point(|first| first.1 as usize <= row);
        let (object_row, first) = self.firsts[behind - 1];
        let (heap, object) = self.heaps.object(object_row as usize);
        let graph = &heap.graph;
        let mut before = row - first as usize;
        let (mut of, mut found) = (Some(of), None);
        graph.contents().fields(graph, object, &mut |field| {
            if is_reference(field.value) {
                return ControlFlow::Continue(());
            }
            if before > 0 {
                before -= 1;
                return ControlFlow::Continue(());
            }
            found = of.take().map(|of| of(graph, object, &field));
            ControlFlow::Break(())
        });
        found
    }

    fn set(&self, row: usize) -> u32 {
        let behind = self.firsts.partition_point(|first| first.1 as usize <= row);
        self.firsts[behind - 1].0
    }
}

/// Returns the class of a field: that of a class object for statics.
fn class_of<'a>(graph: &'a HeapGraph, owner: ObjectIndex, field: &Field<'_>) -> Option<&'a Class> {
    let class = match field.is_static {
        true => graph.class_behind(owner),
        false => field.declared_in,
    };
    class.map(|class| graph.class(class))
}

/// Returns the recorded name of a field, with its class.
pub(super) fn recorded_name(
    graph: &HeapGraph,
    owner: ObjectIndex,
    field: &Field<'_>,
) -> Option<String> {
    let name = field.recorded.or(field.name)?;
    Some(match class_of(graph, owner, field) {
        Some(class) => format!("{}.{name}", class.name),
        None => name.to_owned(),
    })
}

/// Returns the original name of a field, with its class, if an R8 mapping changes it.
pub(super) fn original_name(
    graph: &HeapGraph,
    owner: ObjectIndex,
    field: &Field<'_>,
) -> Option<String> {
    let class = class_of(graph, owner, field)?;
    field.recorded.or(class.deobfuscated.as_deref())?;
    Some(format!("{}.{}", class.shown(), field.name?))
}

fn primitive_cell(of: &Primitives, row: usize, column: usize) -> Cell<'_> {
    let value = || of.field(row, |_, _, field| field.value);
    match column {
        0 => row.into(),
        1 => of.set(row).into(),
        2 => of.field(row, recorded_name).flatten().into(),
        3 => value().map(|value| value.basic_type().name()).into(),
        12 => of.field(row, original_name).flatten().into(),
        _ => match (column, value()) {
            (4, Some(Value::Boolean(flag))) => Cell::flag(flag),
            (5, Some(Value::Byte(number))) => Cell::Int(number.into()),
            (6, Some(Value::Char(number))) => Cell::Int(number.into()),
            (7, Some(Value::Short(number))) => Cell::Int(number.into()),
            (8, Some(Value::Int(number))) => Cell::Int(number.into()),
            (9, Some(Value::Long(number))) => Cell::Int(number),
            (10, Some(Value::Float(number))) => Cell::Real(number.into()),
            (11, Some(Value::Double(number))) => Cell::Real(number),
            _ => Cell::Null,
        },
    }
}
