//! `--save FILE`: stores unmodified device output, without overwriting files.

use std::path::Path;

use super::Console;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_results::overwrite::{self, Replace};
use heaptap_results::whole_file;

/// Checks whether the file can be written, before the device is queried.
pub(crate) fn check(file: Option<&Path>, force: bool) -> Result<(), Failure> {
    let Some(file) = file else {
        return Ok(());
    };
    overwrite::check(file, [], Replace::of_force(force))?;
    Ok(())
}

/// Writes it: all of it, or nothing.
pub(crate) fn write(console: &Console, file: &Path, text: &[u8]) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(
            ErrorClass::HostWrite,
            "host-write",
            format!("cannot write {}: {error}", file.display()),
        )
        .with_help("name a file in a writable directory with free space")
    };
    whole_file::write_typed(file, text).map_err(failed)?;
    console.say(format_args!("wrote {}", file.display()));
    Ok(())
}
