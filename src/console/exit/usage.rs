//! Wrong usage: converts clap's errors to heaptap's failures.

use std::borrow::Cow;
use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::{Outcome, hints};
use crate::console::{Console, visible};
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::suggest::{is_slip, nearest};
use heaptap_base::untrusted::shell::quoted;
use heaptap_input::help_missing_file;

/// Returns clap's text with `seen` instead of `typed`. clap can have removed a part that looks like
/// a style; the rest is searched for in quotes, because it can be a part of any word.
fn with_seen(text: &str, typed: &str, seen: &str) -> String {
    if text.contains(typed) {
        return text.replace(typed, seen);
    }
    match &*console::strip_ansi_codes(typed) {
        "" => text.to_owned(),
        left => text.replace(&format!("'{left}'"), &format!("'{seen}'")),
    }
}

/// Maximum number of commands that are listed as taking an option.
const MAX_TAKERS: usize = 3;

/// Returns the commands of `root` that take `option`, if clap does not know it for the typed
/// command.
fn takers(root: &clap::Command, typed: &clap::Command, option: &str) -> Vec<String> {
    let has = |command: &clap::Command, long: &str| takes(command, &format!("--{long}"));
    let shared = |other: &&clap::Command| {
        let longs = typed.get_arguments().filter_map(clap::Arg::get_long);
        longs.filter(|long| has(other, long)).count()
    };
    let all = root.get_subcommands();
    let mut takers: Vec<_> = all.filter(|command| takes(command, option)).collect();
    takers.sort_by_key(|command| std::cmp::Reverse(shared(command)));
    let name = |command: &clap::Command| format!("`heaptap {}`", command.get_name());
    takers.into_iter().map(name).collect()
}

/// Returns true if a command takes an option, by its letter or its name.
fn takes(command: &clap::Command, option: &str) -> bool {
    command
        .get_arguments()
        .any(|arg| match option.strip_prefix("--") {
            Some(long) => arg.get_long() == Some(long),
            None => arg
                .get_short()
                .is_some_and(|short| option == format!("-{short}")),
        })
}

/// Returns true if an argument, as named in an error of clap, is a path that must exist.
fn takes_path(command: &clap::Command, name: &str) -> bool {
    let long = name.split([' ', '=']).next().unwrap_or_default();
    let of_paths = [clap::ValueHint::AnyPath, clap::ValueHint::DirPath];
    command.get_arguments().any(|arg| {
        arg.get_long().is_some_and(|own| long == format!("--{own}"))
            && of_paths.contains(&arg.get_value_hint())
    })
}

fn command_of<'a>(root: &'a clap::Command, typed: &[String]) -> &'a clap::Command {
    let mut found = root;
    for word in typed.iter().skip(1).filter(|word| !word.starts_with('-')) {
        match found.find_subcommand(word) {
            Some(inner) => found = inner,
            // The value of a global option can precede the command.
            None if found.get_name() == root.get_name() => {}
            None => break,
        }
    }
    found
}

/// Returns whether a typed option of a command has its value in the next word.
fn takes_next_word(command: &clap::Command, word: &str) -> bool {
    let is_it = |arg: &&clap::Arg| match word.strip_prefix("--") {
        Some(long) => arg.get_long() == Some(long),
        None => arg
            .get_short()
            .is_some_and(|short| word == format!("-{short}")),
    };
    let mut all = command.get_arguments();
    all.find(is_it)
        .is_some_and(|arg| arg.get_action().takes_values())
}

/// Returns the help for an option that a command does not have.
fn help_of_option(
    root: &clap::Command,
    command: &clap::Command,
    option: &str,
    typed: &[String],
) -> Option<String> {
    let globals = |name: &str| takes(root, name);
    let has = |name: &str| takes(command, name) || globals(name);
    if takes(command, "--host") && !typed.iter().any(|word| word == "--") {
        let mut words = typed.iter().skip_while(|word| *word != "--host").skip(1);
        let mut program = words.next();
        while let Some(word) = program.filter(|word| word.starts_with('-')) {
            if takes_next_word(command, word) {
                words.next();
            }
            program = words.next();
        }
        // The option is the program's.
        if let Some(program) = program {
            let line = with_added(typed, "--", program)?;
            return Some(format!("a program and its arguments follow --: {line}"));
        }
    }
    if let Some(help) = hints::of_option(command.get_name(), option, typed, has) {
        return Some(help);
    }
    let long = option.strip_prefix("--")?;
    let all = command.get_arguments().chain(root.get_arguments());
    let names = all
        .filter(|arg| !arg.is_hide_set())
        .filter_map(clap::Arg::get_long);
    let is_near = |name: &&str| is_slip(long, name) || long.len() >= 4 && name.starts_with(long);
    if let Some(name) = nearest(long, names.filter(is_near)) {
        return Some(format!("did you mean --{name}?"));
    }
    let takers = takers(root, command, option);
    // A longer list would not be helpful.
    (1..=MAX_TAKERS)
        .contains(&takers.len())
        .then(|| format!("{option} is an option of {}", takers.join(" and ")))
}

/// Returns the typed option of `command` that requires the `missing` one: the last option of the
/// shortest line that lacks it.
fn option_that_needs(
    root: &clap::Command,
    command: &clap::Command,
    line: &[OsString],
    missing: &str,
) -> Option<String> {
    let lacks = |end: &usize| {
        let error = root.clone().try_get_matches_from(&line[..*end]).err();
        let names = error
            .as_ref()
            .map(|error| error.get(ContextKind::InvalidArg));
        match names.flatten() {
            Some(ContextValue::Strings(names)) => names.iter().any(|name| name == missing),
            _ => false,
        }
    };
    let end = (1..=line.len()).find(lacks)?;
    let mut words = line[..end].iter().rev().map(|word| word.to_string_lossy());
    let option = words.find(|word| word.starts_with('-'))?;
    let option = option.split('=').next()?;
    takes(command, option).then(|| option.to_owned())
}

/// Returns the help for an unknown command.
fn help_of_command(parent: &clap::Command, typed: &str) -> Option<String> {
    let names = || parent.get_subcommands().map(clap::Command::get_name);
    hints::of_command(typed).or_else(|| {
        let near = nearest(typed, names().filter(|name| is_slip(typed, name)));
        let begun = || names().find(|name| typed.len() >= 3 && name.starts_with(typed));
        let name = near.or_else(begun)?;
        let before = match parent.get_name() {
            "heaptap" => String::new(),
            parent => format!("{parent} "),
        };
        Some(format!("did you mean `heaptap {before}{name}`?"))
    })
}

/// Returns the typed line with the word `added` before the word `before`.
fn with_added(typed: &[String], added: &str, before: &str) -> Option<String> {
    let mut places = typed.iter().enumerate().filter(|(_, word)| *word == before);
    let (at, _) = places.next()?;
    // It could be the value of an option.
    if places.next().is_some() {
        return None;
    }
    let (begin, rest) = typed.split_at(at);
    let words = begin.iter().map(String::as_str).chain([added]);
    let words = words.chain(rest.iter().map(String::as_str));
    Some(hints::line_of(words))
}

/// Returns the help for an unexpected word.
fn help_of_word(command: &clap::Command, word: &str, typed: &[String]) -> Option<String> {
    let name = command.get_name();
    if word.contains('=') && word.starts_with("android") {
        // `--virtual` takes its value only after `=`.
        return Some(format!(
            "a virtual phone is named with --virtual={}",
            quoted(word)
        ));
    }
    let takes_words = command.get_positionals().any(|word| !word.is_last_set());
    // A surplus file is no class.
    let is_path = word.contains(['/', '\\', '@']) || std::path::Path::new(word).exists();
    if takes_words && takes(command, "--focus") && !is_path {
        let line = with_added(typed, "--focus", word)?;
        return Some(format!(
            "functions and classes are selected with --focus: {line}"
        ));
    }
    if is_path && ["paths", "query", "top"].contains(&name) {
        return Some(format!(
            "`heaptap {name}` reads one input; `heaptap diff` compares two, and `heaptap report` \
             shows several"
        ));
    }
    if is_path && takes_words && takes(command, "--output") {
        let line = with_added(typed, "-o", word)?;
        return Some(format!("an output is named with -o: {line}"));
    }
    (takes(command, "-n") && !takes_words).then(|| {
        let option = if word.parse::<u32>().is_ok() {
            "-p"
        } else {
            "-n"
        };
        format!(
            "a process is named with {option}: heaptap {name} {option} {}",
            quoted(word)
        )
    })
}

/// Converts an error of clap. Help and version are data; the rest is wrong usage of a command of
/// `root`.
pub(crate) fn show(
    console: &Console,
    error: &clap::Error,
    root: &clap::Command,
    line: &[OsString],
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
    // clap's text contains typed values verbatim, including their line endings.
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
    // clap lists missing arguments on separate lines.
    let mut lines = message.lines().map(str::to_owned);
    let message = lines.next().unwrap_or_default();
    let mut excerpt: Vec<String> = lines.collect();
    let typed: Vec<String> = line
        .iter()
        .enumerate()
        .map(|(at, word)| match at {
            0 => "heaptap".to_owned(),
            _ => word.to_string_lossy().into_owned(),
        })
        .collect();
    let command = command_of(root, &typed);
    let word = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        _ => None,
    };
    let mut is_input_missing = false;
    let (message, help) = match error.kind() {
        // A word for a command can have become the value of an option.
        ErrorKind::MissingSubcommand => {
            excerpt.clear();
            let line = usage.as_deref().unwrap_or("heaptap");
            let before = line.split(['[', '<']).next().unwrap_or_default().trim();
            let help = format!("`{before} -h` lists the commands");
            ("a command is missing".to_owned(), Some(help))
        }
        ErrorKind::InvalidSubcommand => {
            let word = word(ContextKind::InvalidSubcommand).unwrap_or_default();
            (
                format!("unknown command {}", visible(word)),
                help_of_command(command, word),
            )
        }
        ErrorKind::UnknownArgument => {
            let word = word(ContextKind::InvalidArg).unwrap_or_default();
            let (what, help) = match word.starts_with('-') {
                true => ("option", help_of_option(root, command, word, &typed)),
                false => ("word", help_of_word(command, word, &typed)),
            };
            let what = match what {
                "word" => "unexpected word",
                _ => "unknown option",
            };
            (format!("{what} {}", visible(word)), help)
        }
        ErrorKind::InvalidValue => {
            let wrong = word(ContextKind::InvalidValue).unwrap_or_default();
            let near = word(ContextKind::SuggestedValue).filter(|near| is_slip(wrong, near));
            (message, near.map(|near| format!("did you mean `{near}`?")))
        }
        ErrorKind::ValueValidation => {
            let name = word(ContextKind::InvalidArg).unwrap_or_default();
            let name = name.split([' ', '=', '[']).next().unwrap_or_default();
            let value = visible(word(ContextKind::InvalidValue).unwrap_or_default());
            let cause = message.split_once("': ").map_or("", |(_, cause)| cause);
            // Errors of the standard library.
            let cause = match cause {
                "invalid digit found in string" | "cannot parse integer from empty string" => {
                    "it is not a whole number"
                }
                "number too large to fit in target type" => "it is too large",
                cause => cause,
            };
            let what = match name.starts_with('-') {
                true if value.trim().is_empty() => format!("{name} \"{value}\""),
                true => format!("{name} {value}"),
                false if value.trim().is_empty() => format!("\"{value}\""),
                false => value.into_owned(),
            };
            let (cause, help) = match cause.split_once("; ") {
                Some((cause, help)) => (cause, Some(help.to_owned())),
                None => (cause, None),
            };
            (format!("cannot use {what}: {cause}"), help)
        }
        ErrorKind::MissingRequiredArgument => {
            let names = match error.get(ContextKind::InvalidArg) {
                Some(ContextValue::Strings(names)) => names.as_slice(),
                _ => &[],
            };
            is_input_missing = names.iter().any(|name| name.starts_with(['<', '[']));
            let needed_by = match names {
                [name] if name.starts_with("--") => option_that_needs(root, command, line, name),
                _ => None,
            };
            let names = names.iter().map(|name| name.replace(['<', '>', '.'], ""));
            let names = names.collect::<Vec<_>>().join(", ");
            excerpt.clear();
            match needed_by {
                Some(option) => (
                    format!("`{option}` requires `{names}`"),
                    Some(format!("add `{names}`, or omit `{option}`")),
                ),
                // A process is an alternative to an input.
                None if names == "INPUT" && takes_name(command) => (
                    "missing -n NAME or INPUT".to_owned(),
                    Some(
                        "name a process with `-n NAME` (`heaptap apps` lists packages), or pass a \
                         recording or file"
                            .to_owned(),
                    ),
                ),
                None if names == "--host" => {
                    let line = with_added(&typed, "--host", "--");
                    let help = line.map(|line| format!("to record a program of this host: {line}"));
                    (format!("missing {names}"), help)
                }
                None => (format!("missing {names}"), None),
            }
        }
        _ => (message, None),
    };
    if error.kind() == ErrorKind::ValueValidation
        && let Some(name) = word(ContextKind::InvalidArg)
        && takes_path(command, name)
    {
        let path = word(ContextKind::InvalidValue).unwrap_or_default();
        let message = format!("cannot read {}: no such file or directory", visible(path));
        let help = help_missing_file(std::path::Path::new(path));
        return Err(
            Failure::new(ErrorClass::BadInput, "input-unreadable", message).with_help(help),
        );
    }
    let help = help.unwrap_or_else(|| match (usage, is_input_missing) {
        (Some(mut usage), true) => {
            if takes_name(command) && !usage.contains("--name") {
                let name = command.get_name();
                usage = usage.replacen(name, &format!("{name} -n <NAME>"), 1);
            }
            // The example of another use would do something else.
            let options = || typed.iter().filter(|word| word.starts_with("--"));
            let is_alike =
                |example: &String| options().all(|option| example.contains(option.as_str()));
            match first_example(command).filter(is_alike) {
                Some(example) => format!("usage: {usage}, such as `{example}`"),
                None => format!("usage: {usage}"),
            }
        }
        _ => match help_command(root, &typed) {
            line if line == "heaptap -h" => format!("`{line}` lists the commands"),
            line => format!("`{line}` lists its options"),
        },
    });
    Err(Failure::usage(message)
        .with_excerpt(excerpt)
        .with_help(help))
}

/// Returns whether `-n` of a command names a process on the device; elsewhere it is a filter.
fn takes_name(command: &clap::Command) -> bool {
    ["meminfo", "smaps", "gc", "provoke"].contains(&command.get_name())
}

/// Returns the first example of the help of a command, without its description.
fn first_example(command: &clap::Command) -> Option<String> {
    let examples = command.get_before_help()?.to_string();
    let line = examples.lines().nth(1)?.trim();
    line.split("  ").next().map(str::to_owned)
}

fn help_command(root: &clap::Command, typed: &[String]) -> String {
    let mut found = root;
    let mut line = "heaptap".to_owned();
    for word in typed.iter().skip(1).filter(|word| !word.starts_with('-')) {
        if let Some(inner) = found.find_subcommand(word) {
            found = inner;
            line = format!("{line} {word}");
        }
    }
    format!("{line} -h")
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
        // A value found verbatim is not searched for a second time.
        assert_eq!(
            with_seen("'a\nb' and 'a'", "a\nb", "a\\nb"),
            "'a\\nb' and 'a'"
        );
        assert_eq!(with_seen(text, "\u{1b}[31m", "x"), text);
    }

    #[test]
    fn the_option_that_requires_a_missing_one_is_found() {
        for (line, missing, option) in [
            (
                "heaptap dump -n a --bitmaps=png -o x",
                "--hprof",
                Some("--bitmaps"),
            ),
            ("heaptap gc -d 3s x", "--follow", Some("-d")),
            ("heaptap top x --depth 3", "--tree", Some("--depth")),
            ("heaptap -q report", "<INPUT>...", None),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let root = crate::cli::tree();
            let command = command_of(&root, &words);
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            let found = option_that_needs(&root, command, &words, missing);
            assert_eq!(found.as_deref(), option, "{line}");
        }
    }
}
