//! Failures that several places of an export return.

use heaptap_base::error::{ErrorClass, Failure};

/// Returns the failure of a selection without dumps; `there` lists the available ones.
pub(super) fn none_selected(there: &str) -> Failure {
    let message = "no dump of the input matches the selection";
    Failure::new(ErrorClass::Usage, "none-selected", message)
        .with_help(format!("choose from: {there}"))
}

/// Returns the failure of several dumps for a file that holds one; `there` lists them.
pub(super) fn several_dumps(there: &str) -> Failure {
    let message = "a file of this format holds one dump, but several are selected";
    Failure::new(ErrorClass::Usage, "several-dumps", message).with_help(format!(
        "select one with `--at`, `-p` or `--heap`, or name a directory with `-o`: {there}"
    ))
}

/// Returns the failure of Parquet output to anything but a directory.
pub fn tables_to_file() -> Failure {
    let message =
        "cannot write Parquet to one file or to standard output: it is a directory of tables";
    Failure::new(ErrorClass::Usage, "needs-directory", message)
        .with_help("name a directory with `-o`")
}
