//! Indexes over columns of virtual tables, built when first needed and then kept. They map a
//! value to its rows and list all rows in order of their values.

use std::cmp::Ordering;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use super::stop::Stop;
use super::table::{Cell, Rows, TableError};

/// Rows of a table in order of a column or of the hashes of its values, nulls first; rows with
/// equal values ascend.
pub(super) struct Index {
    rows: Vec<u32>,
    nulls: usize,
    distinct: usize,
    /// First position of each number's rows, for a dense range of numbers that starts at `lowest`;
    /// one entry more than numbers.
    starts: Option<(i64, Vec<u32>)>,
    /// Hashes of the values, for rows in order of their hashes; without nulls.
    hashes: Option<Vec<u32>>,
}

/// Returns a hash that is the same for equal cells.
fn hash(cell: &Cell<'_>) -> u32 {
    let mut hasher = DefaultHasher::new();
    match cell {
        Cell::Null => {}
        // Equal numbers of both types have the same hash; 0.0 and -0.0 are equal.
        Cell::Int(number) => ((*number as f64) + 0.0).to_bits().hash(&mut hasher),
        Cell::Real(number) => (number + 0.0).to_bits().hash(&mut hasher),
        Cell::Text(text) => text.hash(&mut hasher),
    }
    hasher.finish() as u32
}

/// Compares cells as SQLite does: null, then numbers, then text by its bytes.
pub(super) fn compare(a: &Cell<'_>, b: &Cell<'_>) -> Ordering {
    let rank = |cell: &Cell<'_>| match cell {
        Cell::Null => 0,
        Cell::Int(_) | Cell::Real(_) => 1,
        Cell::Text(_) => 2,
    };
    match (a, b) {
        (Cell::Int(a), Cell::Int(b)) => a.cmp(b),
        (Cell::Real(a), Cell::Real(b)) => a.total_cmp(b),
        (Cell::Int(a), Cell::Real(b)) => (*a as f64).total_cmp(b),
        (Cell::Real(a), Cell::Int(b)) => a.total_cmp(&(*b as f64)),
        (Cell::Text(a), Cell::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
        _ => rank(a).cmp(&rank(b)),
    }
}

impl Index {
    /// Builds the index. Reads the column twice if its values are integers in a dense range,
    /// otherwise as often as sorting needs.
    ///
    /// # Errors
    /// Returns an error if the statement is to end.
    pub(super) fn build(table: &dyn Rows, column: usize, stop: &Stop) -> Result<Index, TableError> {
        let len = table.len();
        let numbers = table.numbers(column);
        let cell = |row: usize| match &numbers {
            Some(numbers) if numbers[row] == u32::MAX => Cell::Null,
            Some(numbers) => Cell::Int(numbers[row].into()),
            None => table.cell(row, column),
        };
        let mut bounds: Option<(i64, i64)> = None;
        let mut nulls = 0;
        let mut whole = true;
        for row in 0..len {
            stop.check_at(row)?;
            match cell(row) {
                Cell::Int(value) => {
                    let (low, high) = bounds.unwrap_or((value, value));
                    bounds = Some((low.min(value), high.max(value)));
                }
                Cell::Null => nulls += 1,
                Cell::Real(_) | Cell::Text(_) => {
                    whole = false;
                    break;
                }
            }
        }
        if whole {
            let (low, high) = bounds.unwrap_or((0, -1));
            let span = i128::from(high) - i128::from(low) + 1;
            // Four bytes a number: at most four times the size of the rows themselves.
            if span <= len as i128 * 4 + 1024 {
                return Index::by_counting(len, cell, low, span as usize, nulls, stop);
            }
            return Ok(Index::by_sorting_numbers(table, column));
        }
        Ok(Index::by_sorting(table, column))
    }

    fn by_counting<'a>(
        len: usize,
        cell: impl Fn(usize) -> Cell<'a>,
        low: i64,
        span: usize,
        nulls: usize,
        stop: &Stop,
    ) -> Result<Index, TableError> {
        let mut starts = vec![0u32; span + 1];
        let place = |row| match cell(row) {
            Cell::Int(value) => Some(value.wrapping_sub(low) as usize),
            _ => None,
        };
        for row in 0..len {
            stop.check_at(row)?;
            if let Some(at) = place(row) {
                starts[at] += 1;
            }
        }
        let mut sum = nulls as u32;
        let mut distinct = usize::from(nulls > 0);
        for start in &mut starts {
            let count = *start;
            distinct += usize::from(count > 0);
            *start = sum;
            sum += count;
        }
        let mut rows = vec![0u32; len];
        let mut next = starts.clone();
        let mut next_null = 0;
        for row in 0..len {
            stop.check_at(row)?;
            match place(row) {
                Some(at) => {
                    rows[next[at] as usize] = row as u32;
                    next[at] += 1;
                }
                None => {
                    rows[next_null] = row as u32;
                    next_null += 1;
                }
            }
        }
        Ok(Index {
            rows,
            nulls,
            distinct,
            starts: Some((low, starts)),
            hashes: None,
        })
    }

    fn by_sorting_numbers(table: &dyn Rows, column: usize) -> Index {
        let key = |row| match table.cell(row, column) {
            Cell::Int(value) => Some(value),
            _ => None,
        };
        let mut keyed: Vec<(Option<i64>, u32)> =
            (0..table.len()).map(|row| (key(row), row as u32)).collect();
        keyed.sort_unstable();
        let changes = keyed.windows(2).filter(|pair| pair[0].0 != pair[1].0);
        Index {
            distinct: changes.count() + usize::from(!keyed.is_empty()),
            nulls: keyed.partition_point(|(key, _)| key.is_none()),
            rows: keyed.into_iter().map(|(_, row)| row).collect(),
            starts: None,
            hashes: None,
        }
    }

    fn by_sorting(table: &dyn Rows, column: usize) -> Index {
        let cell = |row: u32| table.cell(row as usize, column);
        let mut rows: Vec<u32> = (0..table.len() as u32).collect();
        rows.sort_by(|&a, &b| compare(&cell(a), &cell(b)));
        let changes = rows
            .windows(2)
            .filter(|pair| compare(&cell(pair[0]), &cell(pair[1])) != Ordering::Equal);
        Index {
            distinct: changes.count() + usize::from(!rows.is_empty()),
            nulls: rows.partition_point(|&row| cell(row) == Cell::Null),
            rows,
            starts: None,
            hashes: None,
        }
    }

    /// Builds an index that finds equal values only. Reads the column once, so that its cells can
    /// be slow.
    ///
    /// # Errors
    /// Returns an error if the statement is to end.
    pub(super) fn by_hash(
        table: &dyn Rows,
        column: usize,
        stop: &Stop,
    ) -> Result<Index, TableError> {
        let mut rows = Vec::new();
        let mut keyed = Vec::new();
        for row in 0..table.len() {
            stop.check_at(row)?;
            match table.cell(row, column) {
                Cell::Null => rows.push(row as u32),
                cell => keyed.push((hash(&cell), row as u32)),
            }
        }
        keyed.sort_unstable();
        let nulls = rows.len();
        rows.extend(keyed.iter().map(|&(_, row)| row));
        let hashes: Vec<u32> = keyed.into_iter().map(|(hash, _)| hash).collect();
        let changes = hashes.windows(2).filter(|pair| pair[0] != pair[1]);
        Ok(Index {
            distinct: changes.count() + usize::from(!hashes.is_empty()) + usize::from(nulls > 0),
            rows,
            nulls,
            starts: None,
            hashes: Some(hashes),
        })
    }

    /// Returns all rows in order.
    pub(super) fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// Returns the number of distinct values.
    pub(super) fn distinct(&self) -> usize {
        self.distinct
    }

    /// Returns the part of [`Index::rows`] within bounds, without nulls; with other rows of the
    /// same hash, if the index is by hash.
    pub(super) fn between(
        &self,
        table: &dyn Rows,
        column: usize,
        wanted: &Bounds<'_>,
    ) -> Range<usize> {
        if let (Some((low, starts)), Some(key)) = (&self.starts, wanted.exactly()) {
            let at = key
                .checked_sub(*low)
                .and_then(|at| usize::try_from(at).ok());
            return match at {
                Some(at) if at + 1 < starts.len() => starts[at] as usize..starts[at + 1] as usize,
                _ => 0..0,
            };
        }
        if let (Some(hashes), Some((value, _))) = (&self.hashes, &wanted.lower) {
            let wanted = hash(value);
            let first = hashes.partition_point(|&hash| hash < wanted);
            let behind = hashes.partition_point(|&hash| hash <= wanted);
            return self.nulls + first..self.nulls + behind;
        }
        wanted.within(self.nulls..self.rows.len(), |at| {
            table.cell(self.rows[at] as usize, column)
        })
    }

    /// Returns the part of [`Index::rows`] that is null.
    pub(super) fn nulls(&self) -> Range<usize> {
        0..self.nulls
    }
}

/// Lower and upper bound of a value, each with a flag that includes the bound itself.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bounds<'a> {
    pub(super) lower: Option<(Cell<'a>, bool)>,
    pub(super) upper: Option<(Cell<'a>, bool)>,
}

impl<'a> Bounds<'a> {
    /// Returns bounds that match exactly one value.
    pub(super) fn only(value: Cell<'a>) -> Bounds<'a> {
        Bounds {
            lower: Some((value.clone(), true)),
            upper: Some((value, true)),
        }
    }

    /// Returns the integer that the bounds match, if they match exactly one.
    pub(super) fn exactly(&self) -> Option<i64> {
        match (&self.lower, &self.upper) {
            (Some((Cell::Int(a), true)), Some((Cell::Int(b), true))) if a == b => Some(*a),
            _ => None,
        }
    }

    /// Returns the part of the positions `all`, ascending by their cells, within the bounds.
    pub(super) fn within<'c>(
        &self,
        all: Range<usize>,
        cell: impl Fn(usize) -> Cell<'c>,
    ) -> Range<usize> {
        let first = |from: usize, is_before: &dyn Fn(&Cell<'c>) -> bool| {
            let (mut low, mut high) = (from, all.end);
            while low < high {
                let middle = low + (high - low) / 2;
                if is_before(&cell(middle)) {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            low
        };
        let start = match &self.lower {
            None => all.start,
            Some((value, included)) => first(all.start, &|cell| match compare(cell, value) {
                Ordering::Less => true,
                Ordering::Equal => !included,
                Ordering::Greater => false,
            }),
        };
        let end = match &self.upper {
            None => all.end,
            Some((value, included)) => first(start, &|cell| match compare(cell, value) {
                Ordering::Less => true,
                Ordering::Equal => *included,
                Ordering::Greater => false,
            }),
        };
        start..end
    }
}
