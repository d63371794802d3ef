//! Writer for one Parquet file: rows go in, row groups of columns come out. Wraps the parquet
//! crate; the caller defines the tables.

use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use std::io::{self, Write};
use std::sync::Arc;

/// Rows in a row group: DuckDB reads groups of this size in parallel.
const GROUP_ROWS: usize = 122_880;

/// Format that a table belongs to, written into the metadata of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schema {
    /// Name, such as `heaptap-profile`.
    pub name: &'static str,
    pub version: u32,
    /// Level of zstd: higher for files that are written once and read often.
    pub level: i32,
}

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    Int,
    Text,
    Bool,
}

/// Column of a table.
#[derive(Debug, Clone)]
pub struct Column {
    pub name: String,
    pub holds: Holds,
    pub nullable: bool,
    pub coding: Coding,
}

/// Encoding of the values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// Dictionary, for values that repeat.
    Dictionary,
    /// Differences, for nearly distinct integers that count upwards.
    Differences,
    /// The values themselves, for similar neighbors: zstd sees their bytes.
    Plain,
}

impl Column {
    /// Marks a column of IDs that count upwards.
    pub fn counting_up(self) -> Column {
        Column {
            coding: Coding::Differences,
            ..self
        }
    }

    /// Marks a column whose neighbors are similar, but rarely equal.
    pub fn plain(self) -> Column {
        Column {
            coding: Coding::Plain,
            ..self
        }
    }
}

/// Creates a column without nulls.
pub fn always(name: &str, holds: Holds) -> Column {
    let name = name.to_owned();
    Column {
        name,
        holds,
        nullable: false,
        coding: Coding::Dictionary,
    }
}

/// Creates a column that can hold nulls.
pub fn maybe(name: &str, holds: Holds) -> Column {
    Column {
        nullable: true,
        ..always(name, holds)
    }
}

/// Value of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cell<'a> {
    Int(i64),
    Text(&'a str),
    Bool(bool),
    Null,
}

impl From<u32> for Cell<'_> {
    fn from(number: u32) -> Self {
        Cell::Int(i64::from(number))
    }
}

impl From<u64> for Cell<'_> {
    /// Object IDs keep their 64 bits, regardless of the sign.
    fn from(number: u64) -> Self {
        Cell::Int(number as i64)
    }
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(text: &'a str) -> Self {
        Cell::Text(text)
    }
}

impl<'a, T: Into<Cell<'a>>> From<Option<T>> for Cell<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Cell::Null, Into::into)
    }
}

/// Returns a text, or null if it is empty.
pub fn unless_empty(text: &str) -> Cell<'_> {
    match text {
        "" => Cell::Null,
        text => Cell::Text(text),
    }
}

/// Returns a number, or null if it is 0.
pub fn unless_zero(number: u64) -> Cell<'static> {
    match number {
        0 => Cell::Null,
        number => number.into(),
    }
}

/// Values of a column.
#[derive(Debug, Clone)]
pub(crate) enum Values {
    Ints(Vec<i64>),
    Texts(Vec<ByteArray>),
    Bools(Vec<bool>),
}

impl Values {
    /// Creates a column without values.
    pub(crate) fn from_holds(holds: Holds) -> Values {
        match holds {
            Holds::Int => Values::Ints(Vec::new()),
            Holds::Text => Values::Texts(Vec::new()),
            Holds::Bool => Values::Bools(Vec::new()),
        }
    }
}

/// Rows of a column that are not written yet.
struct Buffer {
    values: Values,
    /// Whether each row has a value; used only for columns that can hold nulls.
    defined: Vec<i16>,
    column: Column,
}

/// Table that is being written.
pub struct Table<W: Write + Send> {
    file: SerializedFileWriter<W>,
    buffers: Vec<Buffer>,
    rows: usize,
}

impl<W: Write + Send> Table<W> {
    /// Begins a file. `name` is the table name, for readers that show the schema only.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn new(out: W, schema: Schema, name: &str, columns: Vec<Column>) -> io::Result<Table<W>> {
        let root = Type::group_type_builder(name)
            .with_fields(fields(&columns)?)
            .build()
            .map_err(as_io)?;
        let known = [
            ("heaptap.schema", schema.name.to_owned()),
            ("heaptap.version", schema.version.to_string()),
            ("heaptap.table", name.to_owned()),
        ];
        let known = known.map(|(key, value)| KeyValue::new(key.to_owned(), value));
        let level = ZstdLevel::try_new(schema.level).map_err(as_io)?;
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(level))
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .set_created_by(concat!("heaptap ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_key_value_metadata(Some(known.to_vec()));
        for column in &columns {
            let path = parquet::schema::types::ColumnPath::from(column.name.as_str());
            let encoding = match column.coding {
                Coding::Dictionary => continue,
                Coding::Differences => Encoding::DELTA_BINARY_PACKED,
                Coding::Plain => Encoding::PLAIN,
            };
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, encoding);
        }
        let file = SerializedFileWriter::new(out, Arc::new(root), Arc::new(properties.build()));
        let buffer = |column: Column| Buffer {
            values: Values::from_holds(column.holds),
            defined: Vec::new(),
            column,
        };
        Ok(Table {
            file: file.map_err(as_io)?,
            buffers: columns.into_iter().map(buffer).collect(),
            rows: 0,
        })
    }

    /// Adds a row with a cell for each column.
    ///
    /// # Errors
    /// Returns an error if a cell does not fit its column, or the file cannot be written.
    pub fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        debug_assert_eq!(cells.len(), self.buffers.len(), "a cell for each column");
        for (buffer, cell) in self.buffers.iter_mut().zip(cells) {
            if buffer.column.nullable {
                let there = !matches!(cell, Cell::Null);
                buffer.defined.push(i16::from(there));
            }
            match (&mut buffer.values, *cell) {
                (Values::Ints(values), Cell::Int(value)) => values.push(value),
                (Values::Texts(values), Cell::Text(text)) => {
                    values.push(ByteArray::from(text.as_bytes().to_vec()));
                }
                (Values::Bools(values), Cell::Bool(value)) => values.push(value),
                (_, Cell::Null) if buffer.column.nullable => {}
                (_, cell) => {
                    let column = &buffer.column;
                    return Err(io::Error::other(format!(
                        "{cell:?} is not a value of {column:?}"
                    )));
                }
            }
        }
        self.rows += 1;
        if self.rows == GROUP_ROWS {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        self.rows = 0;
        let mut group = self.file.next_row_group().map_err(as_io)?;
        for buffer in &mut self.buffers {
            let Some(mut column) = group.next_column().map_err(as_io)? else {
                return Err(io::Error::other("a column is missing"));
            };
            let defined = buffer.column.nullable.then_some(buffer.defined.as_slice());
            let written = match &mut buffer.values {
                Values::Ints(values) => {
                    let written = column.typed::<Int64Type>();
                    let written = written.write_batch(values, defined, None);
                    values.clear();
                    written
                }
                Values::Texts(values) => {
                    let written = column.typed::<ByteArrayType>();
                    let written = written.write_batch(values, defined, None);
                    values.clear();
                    written
                }
                Values::Bools(values) => {
                    let written = column.typed::<BoolType>();
                    let written = written.write_batch(values, defined, None);
                    values.clear();
                    written
                }
            };
            written.map_err(as_io)?;
            buffer.defined.clear();
            column.close().map_err(as_io)?;
        }
        group.close().map_err(as_io)?;
        Ok(())
    }

    /// Writes the remaining rows and the footer, and returns the file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.flush()?;
        self.file.into_inner().map_err(as_io)
    }
}

/// Returns the columns as Parquet has them: names, types and nullability.
pub(crate) fn fields(columns: &[Column]) -> io::Result<Vec<Arc<Type>>> {
    let fields = columns.iter().map(|column| field(column).map(Arc::new));
    fields.collect::<Result<_, _>>().map_err(as_io)
}

fn field(column: &Column) -> Result<Type, ParquetError> {
    let (physical, logical) = match column.holds {
        Holds::Int => (Physical::INT64, None),
        Holds::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Holds::Bool => (Physical::BOOLEAN, None),
    };
    let repetition = match column.nullable {
        true => Repetition::OPTIONAL,
        false => Repetition::REQUIRED,
    };
    Type::primitive_type_builder(&column.name, physical)
        .with_repetition(repetition)
        .with_logical_type(logical)
        .build()
}

/// Returns the underlying I/O error if there is one.
pub(crate) fn as_io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(source) => io::Error::other(source),
        },
        error => io::Error::other(error),
    }
}
