//! How a failure looks: `error: … / help: …` for people, one JSON object for programs.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use serde::Serialize;

use super::console::{Console, Style};
use super::exit::Outcome;
use crate::error::{ErrorClass, Failure};
use crate::untrusted::shell::quoted;

#[derive(Serialize)]
struct Document<'a> {
    error: ErrorDocument<'a>,
}

#[derive(Serialize)]
struct ErrorDocument<'a> {
    code: u8,
    kind: &'a str,
    message: &'a str,
    help: Option<&'a str>,
}

/// Shows `failure` in words on stderr, and in a JSON mode as the document on stdout as well.
pub(super) fn failure(console: &Console, failure: &Failure) {
    if console.is_json() {
        console.json(&Document {
            error: ErrorDocument {
                code: failure.class.exit_code(),
                kind: failure.kind,
                message: &failure.message,
                help: failure.help.as_deref(),
            },
        });
    }
    console.complain(format_args!(
        "{}: {}",
        console.on_stderr(Style::Error, "error"),
        failure.message
    ));
    if let Some(help) = &failure.help {
        let label = console.on_stderr(Style::Help, "help");
        let mut lines = help.lines();
        if let Some(first) = lines.next() {
            console.complain(format_args!("{label}: {first}"));
        }
        for line in lines {
            console.complain(format_args!("      {line}"));
        }
    }
}

/// Help and version are data; anything else that clap says is wrong usage.
pub(super) fn usage(console: &Console, error: &clap::Error) -> Result<Outcome, Failure> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            console.clap_text(&error.render(), true);
            return Ok(Outcome::Done);
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand if !console.is_json() => {
            console.clap_text(&error.render(), false);
            return Ok(Outcome::Ended(ErrorClass::Usage));
        }
        _ => {}
    }
    let text = error.render().to_string();
    let mut message = Vec::new();
    let mut usage = None;
    for block in text.split("\n\n") {
        let block = block.trim();
        if let Some(line) = block.strip_prefix("error: ") {
            message.push(line.to_owned());
        } else if let Some(line) = block.strip_prefix("Usage: ") {
            usage = Some(line.to_owned());
        } else if message.is_empty() {
            message.push(block.to_owned());
        }
    }
    let mut help = Vec::new();
    for kind in [
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedArg,
        ContextKind::SuggestedValue,
    ] {
        match error.get(kind) {
            Some(ContextValue::String(name)) => help.push(format!("did you mean `{name}`?")),
            Some(ContextValue::Strings(names)) if !names.is_empty() => {
                help.push(format!("did you mean `{}`?", names.join("` or `")));
            }
            _ => {}
        }
    }
    if let Some(ContextValue::StyledStrs(more)) = error.get(ContextKind::Suggested) {
        help.extend(more.iter().map(ToString::to_string));
    }
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg)
        && !word.starts_with('-')
        && usage
            .as_ref()
            .is_some_and(|u| u.starts_with("heaptap record"))
    {
        help.push(format!(
            "a process is named with -n: heaptap record -n {}",
            quoted(word)
        ));
    }
    if let Some(usage) = usage {
        help.push(format!("usage: {usage}"));
    }
    help.push("`--help` explains each option".to_owned());
    Err(Failure::new(ErrorClass::Usage, "usage", message.join("\n")).with_help(help.join("\n")))
}
