//! `heaptap man`: writes man pages into a directory.

use std::io::{self, Write as _};
use std::path::Path;

use serde::Serialize;

use super::args::Args;
use super::pages::{Page, pages};
use crate::console::exit::Outcome;
use crate::console::flags::context::Context;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_results::whole_file::WholeFile;

/// Document of `--json`.
#[derive(Debug, Serialize)]
struct ManPages {
    /// The directory.
    output: String,
    /// Names of the files.
    files: Vec<String>,
}

/// Writes the pages of `tree`, the commands of the program.
///
/// # Errors
/// Returns an error if the directory cannot be written.
pub async fn run(ctx: &Context, args: Args, tree: clap::Command) -> Result<Outcome, Failure> {
    let directory = &args.output;
    let files = written(directory, tree).map_err(|error| {
        let message = format!("cannot write {}: {error}", directory.display());
        Failure::new(ErrorClass::HostWrite, "host-write", message)
            .with_help("name a writable directory with free space")
    })?;
    if ctx.console.is_json() {
        let output = directory.to_string_lossy().into_owned();
        ctx.console.json(&ManPages { output, files });
    } else {
        let place = directory.display();
        ctx.console
            .say(format_args!("wrote {} man pages to {place}", files.len()));
    }
    Ok(Outcome::Done)
}

fn written(directory: &Path, tree: clap::Command) -> io::Result<Vec<String>> {
    std::fs::create_dir_all(directory)?;
    let mut names = Vec::new();
    for Page { name, text } in pages(tree)? {
        let mut file = WholeFile::named(&directory.join(&name))?;
        file.write_all(&text)?;
        file.finish()?;
        names.push(name);
    }
    Ok(names)
}
