//! Plans of the virtual table: which column finds the rows of a query, at which cost, and how a plan
//! is written into the numbers that SQLite keeps.

use std::ffi::c_int;

use rusqlite::vtab::IndexConstraintOp as Op;

use super::super::table::{Access, Schema};

/// Plan for finding rows, encoded in `idxNum`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Plan {
    /// Column by which rows are found or sorted.
    pub(super) column: Option<u8>,
    /// `=`; with `null`, it is `IS`, which also finds nulls.
    pub(super) equal: bool,
    pub(super) null: bool,
    /// Bound of the range; `true` if the bound itself is included.
    pub(super) lower: Option<bool>,
    pub(super) upper: Option<bool>,
    pub(super) descending: bool,
    /// Arguments of a function come first; `idxStr` lists their columns up to a semicolon.
    pub(super) called: bool,
}

impl Plan {
    pub(super) fn encode(self) -> c_int {
        let bound = |bound: Option<bool>| bound.map_or(0, |included| 1 + c_int::from(included));
        c_int::from(self.column.map_or(0, |column| column + 1))
            | c_int::from(self.equal) << 8
            | c_int::from(self.null) << 9
            | bound(self.lower) << 10
            | bound(self.upper) << 12
            | c_int::from(self.descending) << 14
            | c_int::from(self.called) << 15
    }

    pub(super) fn decode(number: c_int) -> Plan {
        let flag = |at: u32| number >> at & 1 == 1;
        let bound = |at: u32| match number >> at & 3 {
            0 => None,
            bits => Some(bits == 2),
        };
        Plan {
            column: (number & 0xff)
                .checked_sub(1)
                .and_then(|c| u8::try_from(c).ok()),
            equal: flag(8),
            null: flag(9),
            lower: bound(10),
            upper: bound(12),
            descending: flag(14),
            called: flag(15),
        }
    }
}

/// Comparison that a plan can use.
pub(super) struct Usable {
    pub(super) at: usize,
    pub(super) column: usize,
    pub(super) op: Op,
    /// The value differs between calls: neither a literal nor a list of values.
    pub(super) varies: bool,
}

/// Plan with its cost.
pub(super) struct Choice {
    pub(super) plan: Plan,
    /// Comparisons that it uses, in the order of the cursor's values.
    pub(super) used: Vec<(usize, &'static str)>,
    pub(super) unique: bool,
    pub(super) cost: f64,
    pub(super) rows: f64,
}

/// Cost of a full scan in addition to its rows. It is high enough that a plan by key wins even in
/// the smallest table, so that plans do not depend on the number of rows.
const OPENING: f64 = 8.0;

/// Number of rows of a function's result, for estimates before it is called.
pub(super) const GUESSED_ROWS: f64 = 1000.0;

/// Returns the cheapest plan for the comparisons.
pub(super) fn choose(
    schema: &Schema,
    len: f64,
    rows_per_value: impl Fn(usize) -> f64,
    usable: &[Usable],
) -> Choice {
    let mut best = Choice {
        plan: Plan::default(),
        used: Vec::new(),
        unique: false,
        cost: len + OPENING,
        rows: len.max(1.0),
    };
    for (at, column) in schema.columns.iter().enumerate() {
        let finding = match column.access {
            Access::Scan | Access::Argument => continue,
            Access::Row => 1.0,
            Access::Own | Access::Indexed | Access::Sorted => len.max(2.0).log2(),
        };
        let of = |op: Op| usable.iter().find(|u| u.column == at && u.op == op);
        let plan = Plan {
            column: u8::try_from(at).ok(),
            ..Plan::default()
        };
        let equal = of(Op::SQLITE_INDEX_CONSTRAINT_EQ).map(|u| (u, "="));
        let equal = equal.or(of(Op::SQLITE_INDEX_CONSTRAINT_IS).map(|u| (u, " IS ")));
        let choice = if let Some((equal, sign)) = equal {
            let unique = column.access == Access::Row;
            let rows = if unique { 1.0 } else { rows_per_value(at) };
            Choice {
                plan: Plan {
                    equal: true,
                    null: equal.op == Op::SQLITE_INDEX_CONSTRAINT_IS,
                    ..plan
                },
                used: vec![(equal.at, sign)],
                unique,
                cost: finding + rows,
                rows,
            }
        } else if column.access == Access::Own {
            continue;
        } else if let Some(null) = of(Op::SQLITE_INDEX_CONSTRAINT_ISNULL) {
            let rows = rows_per_value(at);
            Choice {
                plan: Plan { null: true, ..plan },
                used: vec![(null.at, " IS NULL")],
                unique: false,
                cost: finding + rows,
                rows,
            }
        } else {
            let greater = of(Op::SQLITE_INDEX_CONSTRAINT_GE).map(|u| (u, true));
            let greater = greater.or(of(Op::SQLITE_INDEX_CONSTRAINT_GT).map(|u| (u, false)));
            let less = of(Op::SQLITE_INDEX_CONSTRAINT_LE).map(|u| (u, true));
            let less = less.or(of(Op::SQLITE_INDEX_CONSTRAINT_LT).map(|u| (u, false)));
            let mut used = Vec::new();
            used.extend(
                greater
                    .as_ref()
                    .map(|(u, included)| (u.at, if *included { ">=" } else { ">" })),
            );
            used.extend(
                less.as_ref()
                    .map(|(u, included)| (u.at, if *included { "<=" } else { "<" })),
            );
            let rows = match used.len() {
                0 => continue,
                1 => len / 4.0,
                _ => len / 16.0,
            };
            Choice {
                plan: Plan {
                    lower: greater.map(|(_, included)| included),
                    upper: less.map(|(_, included)| included),
                    ..plan
                },
                used,
                unique: false,
                cost: finding + rows,
                rows: rows.max(1.0),
            }
        };
        if choice.cost < best.cost {
            best = choice;
        }
    }
    if best.plan.equal {
        return best;
    }
    // SQLite makes automatic indexes for its own tables only. A loop over another column would
    // repeat the scan, so the first lookup builds an index. Its share of the cost is a guess: the
    // number of lookups is unknown here.
    let other = usable.iter().find(|u| {
        let is_scanned = schema.columns[u.column].access == Access::Scan;
        is_scanned && u.varies && u.op == Op::SQLITE_INDEX_CONSTRAINT_EQ
    });
    let cost = len.max(2.0).log2() + len / 32.0;
    match other {
        Some(equal) if cost < best.cost => Choice {
            plan: Plan {
                column: u8::try_from(equal.column).ok(),
                equal: true,
                ..Plan::default()
            },
            used: vec![(equal.at, "=")],
            unique: false,
            cost,
            rows: rows_per_value(equal.column),
        },
        _ => best,
    }
}
