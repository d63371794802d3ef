//! Paths of partitions: `app=APP/day=DAY/build=BUILD`, with values escaped as Hive does.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// App, day and build of rows; names have no day.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Partition {
    pub app: String,
    pub day: Option<String>,
    pub build: String,
}

impl Partition {
    /// Returns the same without the day: the partition of its names.
    pub(crate) fn of_names(&self) -> Partition {
        Partition {
            day: None,
            ..self.clone()
        }
    }

    /// Returns the directory in a table's directory.
    pub(crate) fn path(&self) -> PathBuf {
        let mut path = PathBuf::from(format!("app={}", escape(&self.app)));
        if let Some(day) = &self.day {
            path.push(format!("day={}", escape(day)));
        }
        path.push(format!("build={}", escape(&self.build)));
        path
    }

    /// Returns the partitions of a table, with their directories.
    pub(crate) fn list(table: &Path, has_day: bool) -> io::Result<Vec<Partition>> {
        let mut found = Vec::new();
        for (app, directory) in values(table, "app=")? {
            let days = match has_day {
                true => values(&directory, "day=")?,
                false => vec![(String::new(), directory)],
            };
            for (day, directory) in days {
                for (build, _) in values(&directory, "build=")? {
                    found.push(Partition {
                        app: app.clone(),
                        day: has_day.then(|| day.clone()),
                        build,
                    });
                }
            }
        }
        found.sort();
        Ok(found)
    }
}

/// Returns the values of a level of directories. Other entries are not of the archive.
fn values(directory: &Path, key: &str) -> io::Result<Vec<(String, PathBuf)>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let value = name.to_str().and_then(|name| name.strip_prefix(key));
        if let Some(value) = value
            && entry.file_type()?.is_dir()
        {
            found.push((unescape(value), entry.path()));
        }
    }
    Ok(found)
}

/// Escapes a value: bytes other than letters, digits, `.`, `_` and `-` as `%` and two digits.
/// An empty value is `unknown`.
fn escape(value: &str) -> String {
    let value = match value {
        "" => "unknown",
        value => value,
    };
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte.is_ascii_alphanumeric() || b"._-".contains(&byte) {
            true => out.push(char::from(byte)),
            false => _ = write!(out, "%{byte:02X}"),
        }
    }
    out
}

fn unescape(value: &str) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some(first) = rest.chars().next() {
        let code = rest
            .strip_prefix('%')
            .and_then(|hex| hex.get(..2))
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match code {
            Some(byte) => {
                bytes.push(byte);
                rest = &rest[3..];
            }
            None => {
                let (now, later) = rest.split_at(first.len_utf8());
                bytes.extend(now.bytes());
                rest = later;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_one_directory_each_and_come_back() {
        for value in ["com.example.app", "1.0 (7)/..\\=", "ü%", "..", "%zz", "007"] {
            let escaped = escape(value);
            assert!(!escaped.contains(['/', '\\', '=', ' ']), "{escaped}");
            assert_eq!(unescape(&escaped), value);
        }
        assert_eq!(escape("a b"), "a%20b");
        let partition = Partition {
            app: "../x".to_owned(),
            day: Some("2026-01-31".to_owned()),
            build: String::new(),
        };
        let path = partition.path();
        assert_eq!(path, Path::new("app=..%2Fx/day=2026-01-31/build=unknown"));
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join(path)).unwrap();
        fs::create_dir_all(directory.path().join("other/day=1/build=2")).unwrap();
        let listed = Partition::list(directory.path(), true).unwrap();
        assert_eq!(listed.len(), 1);
        assert_eq!((&*listed[0].app, &*listed[0].build), ("../x", "unknown"));
    }
}
