//! The typed options: a command that does less for one kind of input refuses the options that would
//! have no effect, and the next command repeats those that still apply.

use std::ffi::{OsStr, OsString};

use clap::parser::ValueSource;
use clap::{ArgMatches, ValueEnum};

use serde::de::DeserializeOwned;

use crate::console::flags::conflicts::conflict;
use heaptap_base::error::Failure;
use heaptap_base::untrusted::shell::quoted;

/// Returns the value of another type that has the same name; `None` if none has it.
pub fn of_same_name<T: DeserializeOwned>(typed: impl ValueEnum) -> Option<T> {
    let value = typed.to_possible_value()?;
    serde_json::from_value(value.get_name().into()).ok()
}

/// Options of the command line, without those of every command.
#[derive(Debug, Clone, Default)]
pub struct TypedOptions {
    /// Long names, without dashes, and their values.
    options: Vec<(String, Vec<OsString>)>,
    /// All options that the command has, with dashes.
    known: Vec<String>,
}

impl TypedOptions {
    /// Extracts the options from the matches of `tree`.
    pub fn new(tree: &clap::Command, matches: &ArgMatches) -> TypedOptions {
        let (mut command, mut matches) = (tree, matches);
        while let Some((name, inner)) = matches.subcommand()
            && let Some(found) = command.find_subcommand(name)
        {
            (command, matches) = (found, inner);
        }
        let values = |argument: &clap::Arg| -> Vec<OsString> {
            let raw = matches.get_raw(argument.get_id().as_str());
            let raw = raw.filter(|_| argument.get_action().takes_values());
            raw.into_iter().flatten().map(OsStr::to_owned).collect()
        };
        let options = command
            .get_arguments()
            .filter(|argument| !argument.is_global_set())
            .filter(|argument| {
                let id = argument.get_id().as_str();
                matches.try_contains_id(id).is_ok()
                    && matches.value_source(id) == Some(ValueSource::CommandLine)
            })
            .filter_map(|argument| Some((argument.get_long()?.to_owned(), values(argument))))
            .collect();
        let long = |argument: &clap::Arg| Some(format!("--{}", argument.get_long()?));
        let short = |argument: &clap::Arg| Some(format!("-{}", argument.get_short()?));
        let all = command.get_arguments().chain(tree.get_arguments());
        let known = all.flat_map(|argument| [long(argument), short(argument)]);
        TypedOptions {
            options,
            known: known.flatten().collect(),
        }
    }

    /// Removes advice that names options which the command does not have: errors of several commands
    /// share their help.
    pub fn keep_own_advice(&self, failure: &mut Failure) {
        let is_own = |text: &&str| {
            let mut spans = text.split('`').skip(1).step_by(2);
            spans.all(|span| {
                let option = span.split([' ', '=', '[']).next().unwrap_or_default();
                // `-agentlib:hprof` and the like are options of other programs.
                let is_ours = option.starts_with("--") || option.len() == 2;
                !(option.starts_with('-') && is_ours)
                    || self.known.iter().any(|known| known == option)
            })
        };
        let own = |help: String| {
            let steps = help.split("; ").filter_map(|step| {
                let kept: Vec<&str> = step.split(", or ").filter(is_own).collect();
                (!kept.is_empty()).then(|| kept.join(", or "))
            });
            Some(steps.collect::<Vec<_>>().join("; ")).filter(|help| !help.is_empty())
        };
        failure.help = failure.help.take().and_then(own);
        failure.hints.retain(|hint| is_own(&hint.as_str()));
    }

    /// Returns the first of these options that was typed.
    pub fn first_of<'a>(&self, options: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
        let typed = |name: &&str| self.options.iter().any(|(typed, _)| typed == name);
        options.into_iter().find(typed)
    }

    /// Returns the options as typed, but `without` some, for a command to copy. Begins with a space.
    pub fn again(&self, without: &[&str]) -> String {
        let kept = self.options.iter();
        let kept = kept.filter(|(name, _)| !without.contains(&name.as_str()));
        let mut again = String::new();
        for (name, values) in kept {
            match values.as_slice() {
                [] => again += &format!(" --{name}"),
                values => {
                    again.extend(
                        values
                            .iter()
                            .map(|value| format!(" --{name}={}", quoted(value))),
                    );
                }
            }
        }
        again
    }

    /// Refuses every option but `allowed`, as one that does not apply to `subject`.
    ///
    /// # Errors
    /// Returns an error if another option was typed.
    pub fn only(&self, subject: &str, allowed: &[&str]) -> Result<(), Failure> {
        let other = |(name, _): &&(String, _)| !allowed.contains(&name.as_str());
        let Some((other, _)) = self.options.iter().find(other) else {
            return Ok(());
        };
        let message = format!("`--{other}` does not apply to {subject}");
        Err(conflict(message, "leave out the option"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(line: &str) -> TypedOptions {
        let tree = crate::cli::tree();
        let matches = tree.clone().try_get_matches_from(line.split(' '));
        TypedOptions::new(&tree, &matches.unwrap())
    }

    #[test]
    fn a_command_repeats_options_with_their_values() {
        let options = typed("heaptap top a --tree -p 7 -p 8 --focus x.* --json -l 3");
        let again = options.again(&["tree", "limit"]);
        assert_eq!(again, " --focus='x.*' --pid=7 --pid=8");
        assert_eq!(typed("heaptap top a --json").again(&[]), "");
    }

    #[test]
    fn advice_names_options_of_the_command() {
        let of = |line: &str, help: &str| {
            let mut failure = conflict("x", help);
            failure.hints = vec![
                "add `--force`".to_owned(),
                "run `heaptap x -o y`".to_owned(),
            ];
            typed(line).keep_own_advice(&mut failure);
            (failure.help, failure.hints.len())
        };
        let full = "free space, or write elsewhere with `-o`; then try `-s SERIAL`";
        let kept = "free space; then try `-s SERIAL`";
        assert_eq!(of("heaptap apps", full), (Some(kept.to_owned()), 1));
        assert_eq!(of("heaptap report a", full), (Some(full.to_owned()), 2));
        assert_eq!(of("heaptap apps", "name another with `-o`").0, None);
        let other = "write it with `-agentlib:hprof=format=b`";
        assert_eq!(of("heaptap apps", other).0.as_deref(), Some(other));
    }

    #[test]
    fn options_that_do_not_apply_are_refused() {
        let options = typed("heaptap diff a b --json -q -l 3 --at 2 --view space");
        assert!(options.only("texts", &["limit", "at", "view"]).is_ok());
        let error = options.only("texts", &["limit", "at"]).unwrap_err();
        assert_eq!(error.message, "`--view` does not apply to texts");
        assert!(typed("heaptap diff a b --json").only("texts", &[]).is_ok());
        let inner = typed("heaptap hprof conv a.hprof b.hprof --compat");
        assert!(inner.only("a text", &[]).is_err());
    }
}
