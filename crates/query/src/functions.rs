//! Functions of PerfettoSQL that SQLite does not have and queries on profiles use. Functions of
//! tables are next to them.

use regex::Regex;
use rusqlite::functions::{Aggregate, Context, FunctionFlags};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error};

use heaptap_model::names;

pub(super) const FLAGS: FunctionFlags = FunctionFlags::SQLITE_UTF8
    .union(FunctionFlags::SQLITE_DETERMINISTIC)
    .union(FunctionFlags::SQLITE_INNOCUOUS);

/// Registers the functions with a connection.
pub(super) fn add(connection: &Connection) -> Result<(), Error> {
    connection.create_scalar_function("demangle", 1, FLAGS, |context| {
        let Some(name) = text(context, 0) else {
            return Ok(None);
        };
        let found = names::demangle(&name);
        Ok((*found != *name).then(|| found.into_owned()))
    })?;
    connection.create_scalar_function("hash", -1, FLAGS, |context| Ok(hash(context)))?;
    connection.create_scalar_function("regexp", 2, FLAGS, |context| {
        let Some(subject) = text(context, 1) else {
            return Ok(None);
        };
        Ok(Some(pattern(context, 0)?.is_match(&subject)))
    })?;
    connection.create_scalar_function("regexp_extract", 2, FLAGS, |context| {
        let Some(subject) = text(context, 0) else {
            return Ok(None);
        };
        let pattern = pattern(context, 1)?;
        let found = pattern.captures(&subject).and_then(|found| {
            // The first group if there is one, otherwise the whole match.
            found.get(usize::from(found.len() > 1))
        });
        Ok(found.map(|found| found.as_str().to_owned()))
    })?;
    connection.create_scalar_function("str_split", 3, FLAGS, |context| {
        let (Some(subject), Some(separator)) = (text(context, 0), text(context, 1)) else {
            return Ok(None);
        };
        let at: i64 = context.get(2)?;
        if separator.is_empty() {
            return Err(failure("str_split: the separator is empty"));
        }
        let Ok(at) = usize::try_from(at) else {
            return Err(failure("str_split: the position is negative"));
        };
        let part = subject.split(&*separator).nth(at);
        Ok(part.map(str::to_owned))
    })?;
    type Number = fn(f64) -> f64;
    let numbers: [(&str, Number); 3] = [("ln", f64::ln), ("exp", f64::exp), ("sqrt", f64::sqrt)];
    for (name, function) in numbers {
        connection.create_scalar_function(name, 1, FLAGS, move |context| {
            let value: Option<f64> = context.get(0)?;
            Ok(value.map(function).filter(|value| value.is_finite()))
        })?;
    }
    connection.create_scalar_function("reverse", 1, FLAGS, |context| {
        Ok(text(context, 0).map(|text| text.chars().rev().collect::<String>()))
    })?;
    for (name, arguments, whole) in PERCENTILES {
        let aggregate = Percentile { name, whole };
        connection.create_aggregate_function(name, arguments, FLAGS, aggregate)?;
    }
    Ok(())
}

/// Aggregates of SQLite's extension, with their number of arguments and the second argument that
/// stands for all values; the median does not have one.
const PERCENTILES: [(&str, i32, f64); 4] = [
    ("median", 1, 100.0),
    ("percentile", 2, 100.0),
    ("percentile_cont", 2, 1.0),
    ("percentile_disc", 2, 1.0),
];

struct Percentile {
    name: &'static str,
    whole: f64,
}

/// Values that are not NULL, and the wanted fraction of them.
#[derive(Default)]
struct Values {
    values: Vec<f64>,
    fraction: Option<f64>,
}

/// Maximum number of values of a percentile: they are not part of SQLite's own memory limit.
const MAX_VALUES: usize = 1 << 25;

impl Aggregate<Values, Option<f64>> for Percentile {
    fn init(&self, _: &mut Context<'_>) -> Result<Values, Error> {
        Ok(Values::default())
    }

    fn step(&self, context: &mut Context<'_>, values: &mut Values) -> Result<(), Error> {
        let number = |at| {
            let number = context.get::<Option<f64>>(at);
            number.map_err(|_| failure(&format!("{}: an argument is not a number", self.name)))
        };
        let fraction = match context.len() {
            1 => 0.5,
            _ => number(1)?.unwrap_or(-1.0) / self.whole,
        };
        let is_same = *values.fraction.get_or_insert(fraction) == fraction;
        if !is_same || !(0.0..=1.0).contains(&fraction) {
            let (name, whole) = (self.name, self.whole);
            let message =
                format!("{name}: the second argument must be one number from 0 to {whole}");
            return Err(failure(&message));
        }
        if values.values.len() >= MAX_VALUES {
            return Err(failure(&format!("{}: too many values", self.name)));
        }
        values.values.extend(number(0)?);
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, values: Option<Values>) -> Result<Option<f64>, Error> {
        let mut known = values.unwrap_or_default();
        let values = &mut known.values;
        let (Some(last), Some(fraction)) = (values.len().checked_sub(1), known.fraction) else {
            return Ok(None);
        };
        values.sort_unstable_by(f64::total_cmp);
        let place = fraction * last as f64;
        let below = values[place as usize];
        let above = values[last.min(place as usize + 1)];
        Ok(Some(match self.name {
            "percentile_disc" => below,
            _ => below + (above - below) * place.fract(),
        }))
    }
}

pub(super) fn failure(message: &str) -> Error {
    Error::UserFunctionError(message.into())
}

fn text(context: &Context<'_>, at: usize) -> Option<String> {
    match context.get_raw(at) {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
        ValueRef::Text(text) | ValueRef::Blob(text) => {
            Some(String::from_utf8_lossy(text).into_owned())
        }
    }
}

/// Limit for the size of a compiled pattern.
const MAX_PATTERN_BYTES: usize = 1 << 20;

fn pattern(context: &Context<'_>, at: usize) -> Result<std::sync::Arc<Regex>, Error> {
    context.get_or_create_aux(at as i32, |value| {
        let text = value.as_str().map_err(|_| "the pattern is not text")?;
        let built = regex::RegexBuilder::new(text)
            .size_limit(MAX_PATTERN_BYTES)
            .build();
        built.map_err(|error| {
            let message: Box<dyn std::error::Error + Send + Sync> = error.to_string().into();
            message
        })
    })
}

/// Start of FNV-1a hashes.
pub(crate) const FNV: u64 = 0xcbf2_9ce4_8422_2325;

/// Continues a 64-bit FNV-1a hash.
pub(crate) fn fnv(start: u64, bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(start, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Returns the FNV-1a hash of all arguments, each with its type. Equal arguments give equal
/// numbers, but the numbers differ from Perfetto's.
fn hash(context: &Context<'_>) -> i64 {
    let mut hash = FNV;
    let mut take = |sort: u8, bytes: &[u8]| {
        hash = fnv(hash, std::iter::once(&sort).chain(bytes).copied());
    };
    for at in 0..context.len() {
        match context.get_raw(at) {
            ValueRef::Null => take(0, &[]),
            ValueRef::Integer(number) => take(1, &number.to_le_bytes()),
            ValueRef::Real(number) => take(2, &number.to_le_bytes()),
            ValueRef::Text(text) => take(3, text),
            ValueRef::Blob(bytes) => take(4, bytes),
        }
    }
    hash as i64
}
