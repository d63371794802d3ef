//! Reader for one Parquet file that [`Table`](crate::Table) wrote: the whole file as columns.

use crate::pages::{Measured, Pages};
use crate::write::{Cell, Column, Values, as_io, fields};
use heaptap_base::error::catch_panic;
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{BoolType, ByteArrayType, DataType, Int64Type};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::serialized_reader::SerializedPageReader;
use std::cmp::Ordering;
use std::fs::File;
use std::io;
use std::sync::Arc;

/// Returns the number of rows of a file, from its footer.
///
/// # Errors
/// Returns an error if the file is not a Parquet file.
pub fn row_count(file: File) -> io::Result<u64> {
    let rows = without_panics(|| footer(&file))?.file_metadata().num_rows();
    Ok(u64::try_from(rows).unwrap_or(0))
}

/// Rows that files of any size can have. A page of equal values takes a few bytes, so their number
/// alone is not a sign of damage.
const ALWAYS_ROWS: u64 = 1 << 21;
/// Rows that files can have for each of their bytes beyond that.
const ROWS_PER_BYTE: u64 = 16;

/// Rows of a table in memory, by column.
#[derive(Debug, Clone)]
pub struct Columns {
    schema: Vec<Column>,
    /// Values in the order of the rows; a null has a placeholder.
    data: Vec<Values>,
    /// Whether each row has a value; empty for columns without nulls.
    defined: Vec<Vec<bool>>,
    rows: usize,
    /// Sizes of the files that were read.
    bytes: u64,
}

impl Columns {
    /// Creates an empty table.
    pub fn new(schema: &[Column]) -> Columns {
        let empty = schema.iter().map(|column| Values::from_holds(column.holds));
        Columns {
            data: empty.collect(),
            defined: vec![Vec::new(); schema.len()],
            schema: schema.to_vec(),
            rows: 0,
            bytes: 0,
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Adds all rows of a file with exactly these columns.
    ///
    /// # Errors
    /// Returns an error if the file is not a Parquet file, is damaged, has other columns, or claims more
    /// rows than its size explains.
    pub fn append(&mut self, file: File) -> io::Result<()> {
        let all: Vec<usize> = (0..self.schema.len()).collect();
        self.append_columns(file, &self.schema.clone(), &all)
    }

    /// Adds all rows of a file with exactly the columns of `schema`, but only these of its columns,
    /// which are those of this table. The others are not read.
    ///
    /// # Errors
    /// Returns an error if the file is not a Parquet file, is damaged, has other columns, or claims more
    /// rows than its size explains. The table is of no use then.
    pub fn append_columns(
        &mut self,
        file: File,
        schema: &[Column],
        columns: &[usize],
    ) -> io::Result<()> {
        without_panics(|| self.append_groups(file, schema, columns))
    }

    fn append_groups(
        &mut self,
        file: File,
        schema: &[Column],
        columns: &[usize],
    ) -> io::Result<()> {
        debug_assert_eq!(columns.len(), self.data.len(), "a column for each");
        let footer = footer(&file)?;
        let found = footer.file_metadata().schema_descr();
        // The readers of columns panic if the type or the nullability is another one.
        if found.root_schema().get_fields() != fields(schema)? {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the table has other columns",
            ));
        }
        self.bytes += file.metadata()?.len();
        let groups = footer.row_groups().iter();
        let claimed = groups
            .map(|group| u64::try_from(group.num_rows()).unwrap_or(0))
            .fold(self.rows as u64, u64::saturating_add);
        if claimed > ALWAYS_ROWS + ROWS_PER_BYTE * self.bytes {
            let what = format!("{} bytes claim to be {claimed} rows", self.bytes);
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let pages = Arc::new(Pages(file));
        for group in footer.row_groups() {
            let rows = usize::try_from(group.num_rows()).unwrap_or(0);
            for (into, &from) in columns.iter().enumerate() {
                let from = group.column(from);
                let is_nullable = self.schema[into].nullable;
                let defined = is_nullable.then_some(&mut self.defined[into]);
                match &mut self.data[into] {
                    Values::Ints(values) => read::<Int64Type>(&pages, from, rows, defined, values)?,
                    Values::Texts(values) => {
                        read::<ByteArrayType>(&pages, from, rows, defined, values)?;
                    }
                    Values::Bools(values) => read::<BoolType>(&pages, from, rows, defined, values)?,
                }
            }
            self.rows += rows;
        }
        Ok(())
    }

    /// Adds the rows of a table with the same columns for which `keep` is true.
    pub fn extend_from(&mut self, other: &Columns, keep: impl Fn(usize) -> bool) {
        let rows: Vec<usize> = (0..other.rows).filter(|&row| keep(row)).collect();
        for (column, (into, from)) in self.data.iter_mut().zip(&other.data).enumerate() {
            match (into, from) {
                (Values::Ints(into), Values::Ints(from)) => {
                    into.extend(rows.iter().map(|&row| from[row]))
                }
                (Values::Bools(into), Values::Bools(from)) => {
                    into.extend(rows.iter().map(|&row| from[row]));
                }
                (Values::Texts(into), Values::Texts(from)) => {
                    into.extend(rows.iter().map(|&row| from[row].clone()));
                }
                _ => debug_assert!(false, "the columns are the same"),
            }
            let defined = &other.defined[column];
            let kept = rows.iter().filter_map(|&row| defined.get(row));
            self.defined[column].extend(kept);
        }
        self.rows += rows.len();
    }

    /// Returns a value.
    pub fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        if self.defined[column].get(row) == Some(&false) {
            return Cell::Null;
        }
        match &self.data[column] {
            Values::Ints(values) => Cell::Int(values[row]),
            // The schema of the file has only UTF-8 texts.
            Values::Texts(values) => values[row].as_utf8().map_or(Cell::Null, Cell::Text),
            Values::Bools(values) => Cell::Bool(values[row]),
        }
    }

    /// Returns an integer; `None` for null and for other columns.
    pub fn int(&self, row: usize, column: usize) -> Option<i64> {
        match self.cell(row, column) {
            Cell::Int(value) => Some(value),
            _ => None,
        }
    }

    /// Returns a text; `None` for null and for other columns.
    pub fn text(&self, row: usize, column: usize) -> Option<&str> {
        match self.cell(row, column) {
            Cell::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Sets a column of integers without nulls to one value.
    pub fn fill(&mut self, column: usize, value: i64) {
        if let Values::Ints(values) = &mut self.data[column] {
            values.fill(value);
        }
    }

    /// Returns the rows in the order of these columns, the first one first. Nulls come first.
    pub fn order(&self, by: &[usize]) -> Vec<usize> {
        let mut rows: Vec<usize> = (0..self.rows).collect();
        rows.sort_by(|&a, &b| {
            let each = by.iter().map(|&column| self.compare(column, a, b));
            each.fold(Ordering::Equal, Ordering::then)
        });
        rows
    }

    fn compare(&self, column: usize, a: usize, b: usize) -> Ordering {
        let defined = &self.defined[column];
        let there = |row: usize| defined.get(row).copied().unwrap_or(true);
        let values = || match &self.data[column] {
            Values::Ints(values) => values[a].cmp(&values[b]),
            Values::Texts(values) => values[a].data().cmp(values[b].data()),
            Values::Bools(values) => values[a].cmp(&values[b]),
        };
        there(a).cmp(&there(b)).then_with(values)
    }
}

/// Runs readers of the crate `parquet`, which panic on some damaged files: on negative offsets, and
/// on values whose dictionary is missing.
fn without_panics<T>(read: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    catch_panic(read).unwrap_or_else(|panic| {
        let what = format!("the file is damaged: {panic}");
        Err(io::Error::new(io::ErrorKind::InvalidData, what))
    })
}

fn footer(file: &File) -> io::Result<ParquetMetaData> {
    ParquetMetaDataReader::new()
        .parse_and_finish(file)
        .map_err(as_io)
}

/// Reads a column of a row group, with placeholders for nulls.
fn read<T: DataType>(
    pages: &Arc<Pages>,
    column: &ColumnChunkMetaData,
    rows: usize,
    defined: Option<&mut Vec<bool>>,
    into: &mut Vec<T::T>,
) -> io::Result<()> {
    let descriptor = column.column_descr_ptr();
    let pages = SerializedPageReader::new(Arc::clone(pages), column, rows, None).map_err(as_io)?;
    let mut reader = ColumnReaderImpl::<T>::new(descriptor, Box::new(Measured(pages)));
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let mut read = 0;
    while read < rows {
        let (more, _, _) = reader
            .read_records(rows - read, Some(&mut levels), None, &mut values)
            .map_err(as_io)?;
        if more == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        read += more;
    }
    match defined {
        None => into.append(&mut values),
        Some(defined) => {
            let mut values = values.into_iter();
            for level in levels {
                defined.push(level > 0);
                let value = (level > 0).then(|| values.next()).flatten();
                into.push(value.unwrap_or_default());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::{Holds, Schema, Table, always, maybe};
    use parquet::file::metadata::{
        ColumnChunkMetaDataBuilder, ParquetMetaDataWriter, RowGroupMetaData,
        RowGroupMetaDataBuilder,
    };
    use std::io::{Seek as _, Write as _};

    const SCHEMA: Schema = Schema {
        name: "test",
        version: 1,
        level: 3,
    };

    fn columns() -> Vec<Column> {
        vec![
            always("n", Holds::Int),
            maybe("text", Holds::Text),
            maybe("live", Holds::Int),
            always("flag", Holds::Bool),
        ]
    }

    fn file(rows: &[(i64, Option<&str>, Option<i64>, bool)]) -> File {
        let out = tempfile::tempfile().unwrap();
        let mut table = Table::new(out, SCHEMA, "t", columns()).unwrap();
        for &(n, text, live, flag) in rows {
            let live = live.map_or(Cell::Null, Cell::Int);
            let row = [Cell::Int(n), text.into(), live, Cell::Bool(flag)];
            table.row(&row).unwrap();
        }
        let mut file = table.finish().unwrap();
        file.rewind().unwrap();
        file
    }

    #[test]
    fn files_are_read_back_appended_and_ordered() {
        let mut read = Columns::new(&columns());
        read.append(file(&[
            (3, Some("c"), None, true),
            (1, None, Some(-7), false),
        ]))
        .unwrap();
        read.append(file(&[])).unwrap();
        read.append(file(&[(1, Some("b"), Some(0), true)])).unwrap();
        assert_eq!(read.len(), 3);
        assert_eq!(read.text(0, 1), Some("c"));
        assert_eq!(read.cell(0, 2), Cell::Null);
        assert_eq!(read.int(1, 2), Some(-7));
        assert_eq!(read.cell(1, 1), Cell::Null);
        assert_eq!(read.int(2, 2), Some(0));
        assert_eq!(read.cell(2, 3), Cell::Bool(true));
        assert_eq!(read.order(&[0, 1]), [1, 2, 0]);
        assert_eq!(read.order(&[2]), [0, 1, 2]);
        let mut part = Columns::new(&columns());
        part.extend_from(&read, |row| row != 1);
        assert_eq!(
            (part.len(), part.text(1, 1), part.int(1, 2)),
            (2, Some("b"), Some(0))
        );
        assert_eq!(part.cell(0, 2), Cell::Null);
        read.fill(0, 9);
        assert_eq!(read.int(1, 0), Some(9));
        assert_eq!(row_count(file(&[(1, None, None, true)])).unwrap(), 1);
    }

    /// A file whose text column has no logical type: its bytes can be anything.
    fn bytes_as_text() -> File {
        use parquet::schema::types::Type;
        let mut all = fields(&columns()).unwrap();
        let bytes = Type::primitive_type_builder("text", parquet::basic::Type::BYTE_ARRAY);
        let bytes = bytes.with_repetition(parquet::basic::Repetition::OPTIONAL);
        all[1] = bytes.build().unwrap().into();
        let root = Type::group_type_builder("t").with_fields(all);
        let out = tempfile::tempfile().unwrap();
        let root = root.build().unwrap().into();
        let file = parquet::file::writer::SerializedFileWriter::new(out, root, Default::default());
        let mut file = file.unwrap().into_inner().unwrap();
        file.rewind().unwrap();
        file
    }

    #[test]
    fn some_columns_of_a_file_are_read() {
        let all = columns();
        let mut read = Columns::new(&[all[2].clone(), all[0].clone()]);
        for _ in 0..2 {
            let file = file(&[(3, Some("c"), None, true), (1, None, Some(-7), false)]);
            read.append_columns(file, &all, &[2, 0]).unwrap();
        }
        assert_eq!(read.len(), 4);
        assert_eq!((read.int(2, 0), read.int(2, 1)), (None, Some(3)));
        assert_eq!((read.int(3, 0), read.int(3, 1)), (Some(-7), Some(1)));
        let rest = read
            .append_columns(file(&[]), &all[1..], &[1, 0])
            .unwrap_err();
        assert_eq!(rest.to_string(), "the table has other columns");
    }

    #[test]
    fn rows_of_several_groups_are_read() {
        let rows: Vec<_> = (0..300_000)
            .map(|n| (n, None, (n % 3 == 0).then_some(n), false))
            .collect();
        let mut read = Columns::new(&columns());
        read.append(file(&rows)).unwrap();
        assert_eq!(read.len(), 300_000);
        assert_eq!(read.int(299_998, 0), Some(299_998));
        assert_eq!(read.int(299_997, 2), Some(299_997));
        assert_eq!(read.int(299_998, 2), None);
    }

    /// A file whose row group has other properties in the footer.
    fn regrouped(change: impl Fn(RowGroupMetaData) -> RowGroupMetaDataBuilder) -> File {
        let mut file = file(&[(1, None, None, true)]);
        let metadata = footer(&file).unwrap();
        let group = change(metadata.row_group(0).clone());
        let groups = vec![group.build().unwrap()];
        let metadata = metadata.into_builder().set_row_groups(groups).build();
        // The last footer counts.
        file.seek(io::SeekFrom::End(0)).unwrap();
        let writer = ParquetMetaDataWriter::new(&mut file, &metadata);
        writer.finish().unwrap();
        file.rewind().unwrap();
        file
    }

    /// A file whose first column has another place or size in the footer.
    fn misplaced(
        change: impl Fn(ColumnChunkMetaDataBuilder) -> ColumnChunkMetaDataBuilder,
    ) -> File {
        regrouped(|group| {
            let mut columns = group.columns().to_vec();
            columns[0] = change(columns[0].clone().into_builder()).build().unwrap();
            group.into_builder().set_column_metadata(columns)
        })
    }

    #[test]
    fn equal_rows_are_read_but_not_more_than_files_can_have() {
        let equal = vec![(7, Some("a"), None, true); 300_000];
        let small = file(&equal);
        let bytes = small.metadata().unwrap().len();
        assert!(ROWS_PER_BYTE * bytes < 300_000, "{bytes}");
        let mut read = Columns::new(&columns());
        read.append(small).unwrap();
        assert_eq!((read.int(299_999, 0), read.len()), (Some(7), 300_000));

        let claims = |rows| regrouped(|group| group.into_builder().set_num_rows(rows));
        let error = read.append(claims(1 << 40)).unwrap_err().to_string();
        assert!(error.contains("claim to be 1099511927776 rows"), "{error}");
        // Many files do not claim more than one does.
        let error = read.append(claims(1 << 21)).unwrap_err().to_string();
        assert!(error.contains("claim to be 2397152 rows"), "{error}");
    }

    /// A file in which the first page of the text column has another byte in its header: `at` bytes
    /// after the beginning of the struct with this field.
    fn page_patched(is_dictionary: bool, field: u8, at: usize, byte: u8) -> File {
        use std::io::Read as _;
        let mut file = file(&[(1, Some("abc"), None, true)]);
        let column = footer(&file).unwrap().row_group(0).columns()[1].clone();
        let offset = match is_dictionary {
            true => column.dictionary_page_offset().unwrap(),
            false => column.data_page_offset(),
        };
        let mut bytes = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut bytes).unwrap();
        let header = &mut bytes[offset as usize..];
        let found = header.iter().position(|&b| b == field).unwrap();
        header[found + at] = byte;
        file.rewind().unwrap();
        file.write_all(&bytes).unwrap();
        file.rewind().unwrap();
        file
    }

    #[test]
    fn pages_that_claim_more_values_than_they_hold_are_refused() {
        const DATA: u8 = 0x2c;
        const DICTIONARY: u8 = 0x4c;
        let read = |file| Columns::new(&columns()).append(file);
        let error = read(page_patched(true, DICTIONARY, 2, 2 * 63)).unwrap_err();
        assert!(error.to_string().contains("7 bytes claim to be 63 values"));
        for encoding in [6, 7] {
            let error = read(page_patched(false, DATA, 4, 2 * encoding)).unwrap_err();
            assert!(error.to_string().contains("is encoded as DELTA_"));
        }
        read(page_patched(false, DATA, 4, 2 * 8)).unwrap();
    }

    #[test]
    fn columns_at_negative_offsets_are_refused() {
        let read = |file| Columns::new(&columns()).append(file);
        read(misplaced(|column| column)).unwrap();
        for file in [
            misplaced(|column| column.set_dictionary_page_offset(Some(-1))),
            misplaced(|column| {
                column
                    .set_dictionary_page_offset(None)
                    .set_data_page_offset(-4)
            }),
            misplaced(|column| column.set_total_compressed_size(-1)),
        ] {
            let error = read(file).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
    }

    #[test]
    fn other_tables_and_damaged_files_are_refused() {
        let mut other = Columns::new(&columns()[..2]);
        let error = other.append(file(&[(1, None, None, true)])).unwrap_err();
        assert_eq!(error.to_string(), "the table has other columns");
        // Files with the same names, but another type or nullability.
        for (at, change) in [
            (0, always("n", Holds::Text)),
            (0, maybe("n", Holds::Int)),
            (1, always("text", Holds::Text)),
            (2, always("live", Holds::Int)),
        ] {
            let mut other = columns();
            other[at] = change;
            let mut other = Columns::new(&other);
            let error = other.append(file(&[(1, None, None, true)])).unwrap_err();
            assert_eq!(error.to_string(), "the table has other columns");
            assert!(other.is_empty());
        }
        let bytes = Columns::new(&columns())
            .append(bytes_as_text())
            .unwrap_err();
        assert_eq!(bytes.to_string(), "the table has other columns");
        let mut text = tempfile::tempfile().unwrap();
        text.write_all(b"PAR1 but nothing more").unwrap();
        assert!(Columns::new(&columns()).append(text).is_err());
    }
}
