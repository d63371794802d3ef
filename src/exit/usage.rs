//! Wrong usage in our own words: what clap says, as a failure like any other.

use std::borrow::Cow;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::Outcome;
use crate::console::{Console, visible};
use crate::error::{ErrorClass, Failure};
use crate::near::nearest;
use crate::untrusted::shell::quoted;

/// What clap says with `seen` in place of what was typed. It may have left out what it takes for a
/// style: what is left is looked for as clap quotes it, since it may be a part of any word.
fn with_seen(text: &str, typed: &str, seen: &str) -> String {
    if text.contains(typed) {
        return text.replace(typed, seen);
    }
    match &*console::strip_ansi_codes(typed) {
        "" => text.to_owned(),
        left => text.replace(&format!("'{left}'"), &format!("'{seen}'")),
    }
}

/// Commands that are named as those which take a flag.
const MOST_TAKERS: usize = 3;

/// Whether clap's suggestion is worth asking: it calls names alike that share a few letters.
fn is_near(typed: Option<&ContextValue>, suggested: &str) -> bool {
    let Some(ContextValue::String(typed)) = typed else {
        return true;
    };
    let (typed, suggested) = (
        typed.trim_start_matches('-'),
        suggested.trim_start_matches('-'),
    );
    let is_begun = typed.len() > 1 && suggested.starts_with(typed);
    is_begun || nearest(typed, [suggested]).is_some()
}

/// The commands of `root` that take `flag`, where clap knows no such flag.
fn takers(root: &clap::Command, flag: &str) -> Vec<String> {
    let is_it = |arg: &clap::Arg| !arg.is_hide_set() && arg.get_long() == flag.strip_prefix("--");
    root.get_subcommands()
        .filter(|command| command.get_arguments().any(is_it))
        .map(|command| format!("`heaptap {}`", command.get_name()))
        .collect()
}

/// Help and version are data; anything else that clap says is wrong usage of a command of `root`.
pub(crate) fn show(
    console: &Console,
    error: &clap::Error,
    root: &clap::Command,
) -> Result<Outcome, Failure> {
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
    // What was typed stands in clap's text as it is: its line ends are none of clap's.
    let mut text = error.render().to_string();
    for (_, value) in error.context() {
        let typed = match value {
            ContextValue::String(typed) => std::slice::from_ref(typed),
            ContextValue::Strings(typed) => typed,
            _ => continue,
        };
        for typed in typed {
            if let Cow::Owned(seen) = visible(typed) {
                text = with_seen(&text, typed, &seen);
            }
        }
    }
    let mut message = String::new();
    let mut usage = None;
    for block in text.split("\n\n") {
        let block = block.trim();
        if let Some(line) = block.strip_prefix("Usage: ") {
            usage = Some(line.to_owned());
        } else if message.is_empty() {
            message = block.trim_start_matches("error: ").to_owned();
        }
    }
    // Clap lists what is missing in lines of their own.
    let mut lines = message.lines().map(str::to_owned);
    let message = lines.next().unwrap_or_default();
    let excerpt = lines.collect();
    let mut help = Vec::new();
    for (kind, typed) in [
        (
            ContextKind::SuggestedSubcommand,
            ContextKind::InvalidSubcommand,
        ),
        (ContextKind::SuggestedArg, ContextKind::InvalidArg),
        (ContextKind::SuggestedValue, ContextKind::InvalidValue),
    ] {
        match error.get(kind) {
            Some(ContextValue::String(name)) if is_near(error.get(typed), name) => {
                help.push(format!("did you mean `{name}`?"))
            }
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
        && help.is_empty()
        && let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg)
        && flag.starts_with("--")
    {
        let takers = takers(root, flag);
        // More of them say nothing of what is meant.
        if (1..=MOST_TAKERS).contains(&takers.len()) {
            help.push(format!("{flag} is an option of {}", takers.join(" and ")));
        }
    }
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg)
        && !word.starts_with('-')
        && usage
            .as_ref()
            .is_some_and(|u| u.starts_with("heaptap record"))
    {
        help.push(match word.contains('=') {
            // `--virtual` takes its value only behind `=`.
            true => format!("a virtual phone is named with --virtual={}", quoted(word)),
            false => format!(
                "a process is named with -n: heaptap record -n {}",
                quoted(word)
            ),
        });
    }
    if let Some(usage) = usage {
        help.push(format!("usage: {usage}"));
    }
    help.push("`--help` explains each option".to_owned());
    let hints = help.split_off(1);
    let mut failure = Failure::new(ErrorClass::Usage, "usage", message).with_excerpt(excerpt);
    failure.help = help.pop();
    failure.hints = hints;
    Err(failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_typed_is_made_visible() {
        let text = "error: unrecognized subcommand 'e'\n\nUsage: heaptap [OPTIONS] <COMMAND>";
        assert_eq!(
            with_seen(text, "\u{1b}[31me", "\\u{1b}[31me"),
            "error: unrecognized subcommand '\\u{1b}[31me'\n\nUsage: heaptap [OPTIONS] <COMMAND>"
        );
        // What stands there as it was typed is not looked for a second time.
        assert_eq!(
            with_seen("'a\nb' and 'a'", "a\nb", "a\\nb"),
            "'a\\nb' and 'a'"
        );
        assert_eq!(with_seen(text, "\u{1b}[31m", "x"), text);
    }
}
