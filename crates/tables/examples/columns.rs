//! Writes a table of three rows, and prints what a reader finds in it.
//!
//! ```console
//! $ cargo run -p heaptap-tables --example columns -- table.parquet
//! ```

use heaptap_tables::{Columns, Holds, Schema, Table, always, maybe};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

const SCHEMA: Schema = Schema {
    name: "example",
    version: 1,
    level: 3,
};

fn columns(path: &Path) -> io::Result<String> {
    let columns = [always("name", Holds::Text), maybe("bytes", Holds::Int)];
    let mut table = Table::new(File::create(path)?, SCHEMA, "size", columns.to_vec())?;
    table.row(&["cache".into(), 4096u64.into()])?;
    table.row(&["stack".into(), 8192u64.into()])?;
    table.row(&["unknown".into(), None::<u64>.into()])?;
    table.finish()?;
    let mut read = Columns::new(&columns);
    read.append(File::open(path)?)?;
    let names = columns.map(|column| column.name);
    Ok(format!("{} rows: {}", read.len(), names.join(", ")))
}

fn main() -> io::Result<()> {
    let path = std::env::args()
        .nth(1)
        .unwrap_or("table.parquet".to_owned());
    writeln!(io::stdout().lock(), "{}", columns(Path::new(&path))?)
}

#[test]
fn three_rows_are_read_back() {
    let directory = tempfile::tempdir().unwrap();
    let text = columns(&directory.path().join("table.parquet")).unwrap();
    assert_eq!(text, "3 rows: name, bytes");
}
