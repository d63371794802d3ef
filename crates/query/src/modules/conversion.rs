//! Functions of the module `time.conversion`. They are not SQL: an argument can be an aggregate or
//! a window function, which a subquery would compute over its own row.

use crate::functions::failure;
use crate::table::{Catalog, Scalar};
use rusqlite::types::Value;

/// Names of both directions of a unit, and its nanoseconds.
const UNITS: [(&str, &str, i64); 7] = [
    ("time_from_ns", "time_to_ns", 1),
    ("time_from_us", "time_to_us", 1_000),
    ("time_from_ms", "time_to_ms", 1_000_000),
    ("time_from_s", "time_to_s", 1_000_000_000),
    ("time_from_min", "time_to_min", 60_000_000_000),
    ("time_from_hours", "time_to_hours", 3_600_000_000_000),
    ("time_from_days", "time_to_days", 86_400_000_000_000),
];

/// Adds the module.
pub(super) fn add(catalog: &mut Catalog) {
    catalog.module("time.conversion");
    let mut add = |name, about, convert: Box<dyn Fn(i64) -> Option<i64> + Send>| {
        catalog.scalar(Scalar {
            name,
            about,
            arguments: &["time"],
            value: Box::new(move |context| {
                let time: Option<i64> = context.get(0)?;
                let Some(time) = time else {
                    return Ok(Value::Null);
                };
                let converted = convert(time).map(Value::Integer);
                converted.ok_or_else(|| failure(&format!("{name}: the time is too large")))
            }),
        });
    };
    for (from, to, nanoseconds) in UNITS {
        add(
            from,
            "Nanoseconds of a time in the unit of the name. Module `time.conversion`.",
            Box::new(move |time| time.checked_mul(nanoseconds)),
        );
        add(
            to,
            "Whole units of the name in a time in nanoseconds. Module `time.conversion`.",
            Box::new(move |time| Some(time / nanoseconds)),
        );
    }
}
