//! `heaptap licenses`: prints the licenses of the software in the program.

use super::args::Args;
use super::run::{Licenses, licenses};
use crate::console::exit::Outcome;
use crate::console::flags::context::Context;
use heaptap_base::error::{ErrorClass, Failure};

/// Line between texts.
const RULE: &str =
    "--------------------------------------------------------------------------------";

/// Runs the command.
///
/// # Errors
/// Returns an error if the file in the program is damaged, which is a bug.
pub async fn run(ctx: &Context, Args {}: Args) -> Result<Outcome, Failure> {
    let licenses = licenses().map_err(|error| {
        let message = format!("cannot read the licenses in the program: {error}");
        Failure::new(ErrorClass::Bug, "bug", message)
    })?;
    match ctx.console.is_json() {
        true => ctx.console.json(&licenses),
        false => ctx.console.raw(text(&licenses).as_bytes()),
    }
    Ok(Outcome::Done)
}

/// The list of parts, then each text once below the names of its parts.
fn text(licenses: &Licenses) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut lines = vec![
        format!("heaptap {version}: {}", env!("CARGO_PKG_LICENSE")),
        String::new(),
        "heaptap contains this software. The list is the same for all systems: the programs for"
            .to_owned(),
        "Linux, macOS and Windows each contain a part of it. The texts of the licenses follow."
            .to_owned(),
        String::new(),
    ];
    let full = |name: &str, version: &str| format!("{name} {version}").trim_end().to_owned();
    for part in &licenses.parts {
        let name = full(&part.name, &part.version);
        lines.push(format!("  {name}: {}", part.license));
    }
    for (number, text) in licenses.texts.iter().enumerate() {
        lines.extend(["", RULE].map(str::to_owned));
        for part in &licenses.parts {
            if part.texts.contains(&number) {
                lines.push(full(&part.name, &part.version));
            }
        }
        lines.extend([RULE, "", text].map(str::to_owned));
    }
    lines.push(String::new());
    lines.join("\n")
}
