//! Forms of single values: names, labels, sizes, times, comparisons. Each has a parser, which the
//! check of a file and the conversion share, and a pattern for the JSON Schema.

use std::time::Duration;

use heaptap_base::units::{ByteSize, parse_time};
use heaptap_base::untrusted::is_unsafe;
use regex::{Regex, RegexBuilder};

use super::problems::shown;

/// The class of devices that no other class takes.
pub const DEFAULT_CLASS: &str = "default";
/// The moment at the end of a recording.
pub const END: &str = "end";

/// A comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compare {
    Less,
    LessOrEqual,
    Equal,
    GreaterOrEqual,
    Greater,
}

impl Compare {
    /// Returns whether `value` compares so with `wanted`.
    pub fn holds(self, value: u64, wanted: u64) -> bool {
        match self {
            Compare::Less => value < wanted,
            Compare::LessOrEqual => value <= wanted,
            Compare::Equal => value == wanted,
            Compare::GreaterOrEqual => value >= wanted,
            Compare::Greater => value > wanted,
        }
    }
}

/// Maximum length of a name or label.
pub(super) const MAX_NAME_CHARS: usize = 64;
/// Maximum length of the name of a process, because heapprofd compares no more.
const MAX_PROCESS_CHARS: usize = 511;
/// Maximum duration of anything.
const MAX_TIME: Duration = Duration::from_secs(24 * 3600);
/// Maximum size of a compiled regular expression.
const MAX_REGEX_BYTES: usize = 1 << 20;

/// Form of a scalar.
#[derive(Debug)]
pub(super) struct Form {
    /// With its article: `a time such as `30s``.
    pub expected: &'static str,
    /// Returns an error with the cause if the text does not have the form.
    pub check: fn(&str) -> Result<(), String>,
    /// Regular expression (ECMA 262) for the JSON Schema; it accepts no less than `check`.
    pub pattern: &'static str,
    pub numbers: Numbers,
}

/// Numbers without quotes in place of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Numbers {
    Refused,
    Accepted,
}

pub(super) static NAME: Form = Form {
    expected: "a name of letters, digits, `.`, `_` and `-`",
    check: name,
    pattern: "^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$",
    numbers: Numbers::Refused,
};

pub(super) static CLASS_NAME: Form = Form {
    check: |text| match text {
        DEFAULT_CLASS => Err("`default` stands for all other devices".to_owned()),
        _ => name(text),
    },
    ..NAME
};

pub(super) static CLASS_OR_DEFAULT: Form = Form {
    expected: "a device class, or `default`",
    ..NAME
};

pub(super) static LABEL: Form = Form {
    expected: "a label of letters, digits, `.`, `_` and `-`",
    check: label,
    ..NAME
};

pub(super) static MOMENT: Form = Form {
    expected: "the label of a snapshot, or `end`",
    ..NAME
};

pub(super) static VARIABLE: Form = Form {
    expected: "the name of a variable, such as `locale`",
    check: |text| match super::variables::is_name(text) && text.len() <= MAX_NAME_CHARS {
        true => Ok(()),
        false => Err(format!(
            "`{}` is not the name of a variable: use letters, digits and `_`",
            shown(text)
        )),
    },
    pattern: "^[A-Za-z_][A-Za-z0-9_]{0,63}$",
    numbers: Numbers::Refused,
};

/// A value that is a part of the name of a scenario.
pub(super) static CELL_VALUE: Form = Form {
    expected: "a value of letters, digits, `.`, `_` and `-`",
    check: name,
    numbers: Numbers::Accepted,
    ..NAME
};

pub(super) static TEXT: Form = Form {
    expected: "text",
    check: not_empty,
    pattern: "\\S",
    numbers: Numbers::Refused,
};

pub(super) static ARGUMENT: Form = Form {
    expected: "a word",
    check: |text| match text.contains('\0') {
        true => Err("a word must not contain NUL".to_owned()),
        false => Ok(()),
    },
    pattern: "",
    numbers: Numbers::Accepted,
};

pub(super) static PROCESS: Form = Form {
    expected: "the name of a process, such as `com.example.app`",
    check: process,
    pattern: "^[A-Za-z0-9._:/@][A-Za-z0-9._:/@-]*$",
    numbers: Numbers::Refused,
};

pub(super) static PACKAGE: Form = Form {
    expected: "the name of a package, such as `com.example.app`",
    check: package,
    pattern: "^[A-Za-z][A-Za-z0-9_]*(\\.[A-Za-z0-9_]+)*$",
    numbers: Numbers::Refused,
};

pub(super) static ACTIVITY: Form = Form {
    expected: "an activity such as `.MainActivity`",
    check: activity,
    pattern: "^[^\\s\"'`;&|()]+$",
    numbers: Numbers::Refused,
};

pub(super) static REGEX: Form = Form {
    expected: "a regular expression",
    check: |text| regex(text).map(drop),
    pattern: ".",
    numbers: Numbers::Refused,
};

pub(super) static TIME: Form = Form {
    expected: "a time with its unit, such as `30s`",
    check: |text| time(text).map(drop),
    pattern: "^\\s*([0-9.]+\\s*(us|ms|s|m|min|h|US|MS|S|M|MIN|H)\\s*)+$",
    numbers: Numbers::Refused,
};

/// A time of an action, whose own parser checks it.
pub(super) static THROTTLE: Form = Form {
    expected: "a time such as `50ms`",
    check: |text| match text.contains(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != ' ')
    {
        true => Err(format!("`{}` is not a time", shown(text))),
        false => Ok(()),
    },
    pattern: "^[0-9A-Za-z. ]+$",
    numbers: Numbers::Accepted,
};

pub(super) static SIZE: Form = Form {
    expected: "a size such as `8MiB`",
    check: |text| size(text).map(drop),
    pattern: "^\\s*[0-9.]+\\s*[A-Za-z]*\\s*$",
    numbers: Numbers::Accepted,
};

pub(super) static SHMEM_SIZE: Form = Form {
    expected: "a size such as `8MiB`",
    check: |text| match size(text)?.is_power_of_two() {
        true => Ok(()),
        false => Err("shared memory must be a power of two, such as `8MiB`".to_owned()),
    },
    ..SIZE
};

/// A size or a count; the figure of the budget decides which.
pub(super) static AMOUNT: Form = Form {
    expected: "a size such as `12MiB`, or a count",
    check: |text| match bytes(text).is_ok() || count(text).is_ok() {
        true => Ok(()),
        false => bytes(text).map(drop),
    },
    ..SIZE
};

pub(super) static PERCENT: Form = Form {
    expected: "a share such as `2%`",
    check: |text| percent(text).map(drop),
    pattern: "^\\s*[0-9]+(\\.[0-9]+)?\\s*%\\s*$",
    numbers: Numbers::Refused,
};

pub(super) static SDK: Form = Form {
    expected: "an API level such as `>=31`",
    check: |text| sdk(text).map(drop),
    pattern: "^\\s*(<|<=|=|==|>=|>)?\\s*[0-9]+\\s*$",
    numbers: Numbers::Accepted,
};

pub(super) static RAM: Form = Form {
    expected: "a comparison with a size, such as `<3GiB`",
    check: |text| ram(text).map(drop),
    pattern: "^\\s*(<|<=|=|==|>=|>)\\s*[0-9.]+\\s*[A-Za-z]*\\s*$",
    numbers: Numbers::Refused,
};

fn name(text: &str) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if !text.chars().all(fits) || text.starts_with(['.', '-']) || text.is_empty() {
        return Err(format!(
            "`{}` must have only letters, digits, `.`, `_` and `-`, and begin with a letter, \
             digit or `_`",
            shown(text)
        ));
    }
    match text.len() <= MAX_NAME_CHARS {
        true => Ok(()),
        false => Err(format!(
            "a name must not exceed {MAX_NAME_CHARS} characters"
        )),
    }
}

/// As for `heaptap snapshot --label`: `PATH@LABEL` must find the snapshot.
fn label(text: &str) -> Result<(), String> {
    if matches!(text, END | "last" | "all") {
        return Err(format!(
            "`{text}` is not a valid label: it has a meaning in PATH@LABEL"
        ));
    }
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return Err("a label must not be a number: PATH@N selects the N-th dump".to_owned());
    }
    if text.contains("..") {
        return Err("a label must not contain `..`".to_owned());
    }
    name(text)
}

fn not_empty(text: &str) -> Result<(), String> {
    if let Some(odd) = text.chars().find(|c| is_unsafe(*c)) {
        return Err(format!(
            "contains the control character {}",
            odd.escape_unicode()
        ));
    }
    match text.trim().is_empty() {
        true => Err("is empty".to_owned()),
        false => Ok(()),
    }
}

fn process(text: &str) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._:-/@".contains(c);
    // A leading `-` can look like an option.
    let begins = !text.is_empty() && !text.starts_with('-');
    match begins && text.len() <= MAX_PROCESS_CHARS && text.chars().all(fits) {
        true => Ok(()),
        false => Err(format!("`{}` is not the name of a process", shown(text))),
    }
}

fn package(text: &str) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let part = |part: &str| !part.is_empty() && part.chars().all(fits);
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic());
    match begins && text.len() <= MAX_PROCESS_CHARS && text.split('.').all(part) {
        true => Ok(()),
        false => Err(format!("`{}` is not the name of a package", shown(text))),
    }
}

fn activity(text: &str) -> Result<(), String> {
    let fits = |c: char| c.is_alphanumeric() || "._$/".contains(c);
    match !text.is_empty() && text.len() <= MAX_PROCESS_CHARS && text.chars().all(fits) {
        true => Ok(()),
        false => Err(format!("`{}` is not the name of an activity", shown(text))),
    }
}

/// Compiles a regular expression of the file; its size is limited.
pub(super) fn regex(text: &str) -> Result<Regex, String> {
    not_empty(text)?;
    let built = RegexBuilder::new(text)
        .size_limit(MAX_REGEX_BYTES)
        .nest_limit(50)
        .build();
    built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "the regular expression is too large".to_owned(),
        error => {
            // The cause is in the last line, below a picture of the expression.
            let text = error.to_string();
            let cause = text.lines().last().unwrap_or_default();
            let cause = cause.trim_start_matches("error: ");
            format!("not a regular expression: {}", shown(cause))
        }
    })
}

pub(super) fn time(text: &str) -> Result<Duration, String> {
    match parse_time(text)? {
        Duration::ZERO => Err("must be longer than 0".to_owned()),
        long if long > MAX_TIME => Err("must not exceed 24 hours".to_owned()),
        time => Ok(time),
    }
}

/// Parses a size above 0.
pub(super) fn size(text: &str) -> Result<u64, String> {
    match bytes(text)? {
        0 => Err("must be larger than 0".to_owned()),
        bytes => Ok(bytes),
    }
}

pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let size = ByteSize::parse(text).map(|size| size.0);
    size.map_err(|error| error.to_string())
}

/// Parses a number that is not negative: `2`, `0.5`.
pub(super) fn count(text: &str) -> Result<f64, String> {
    let fits = |c: char| c.is_ascii_digit() || c == '.';
    let number = text.trim().parse::<f64>().ok();
    let number = number.filter(|n| n.is_finite() && text.trim().chars().all(fits));
    number.ok_or_else(|| format!("`{}` is not a count such as 2", shown(text)))
}

/// Parses `2%` as 0.02.
pub(super) fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim().strip_suffix('%');
    let share = number.and_then(|number| count(number).ok());
    let share = share.filter(|share| *share <= 1_000.0);
    share.map(|share| share / 100.0).ok_or_else(|| {
        format!(
            "`{}` is not a share such as `2%`, up to `1000%`",
            shown(text)
        )
    })
}

pub(super) fn sdk(text: &str) -> Result<(Compare, u64), String> {
    let (compare, number) = comparison(text);
    let number = number.parse().ok().filter(|level| *level <= 10_000);
    number
        .map(|level| (compare.unwrap_or(Compare::Equal), level))
        .ok_or_else(|| format!("`{}` is not an API level such as `>=31`", shown(text)))
}

pub(super) fn ram(text: &str) -> Result<(Compare, u64), String> {
    match comparison(text) {
        (Some(compare), number) => Ok((compare, size(number)?)),
        (None, _) => Err(format!(
            "`{}` must begin with `<`, `<=`, `>=` or `>`",
            shown(text)
        )),
    }
}

fn comparison(text: &str) -> (Option<Compare>, &str) {
    let text = text.trim();
    for (sign, compare) in [
        ("<=", Compare::LessOrEqual),
        (">=", Compare::GreaterOrEqual),
        ("==", Compare::Equal),
        ("=", Compare::Equal),
        ("<", Compare::Less),
        (">", Compare::Greater),
    ] {
        if let Some(number) = text.strip_prefix(sign) {
            return (Some(compare), number.trim());
        }
    }
    (None, text)
}
