//! docs/reference/cli.md is generated from the flags. After a change of flags: `UPDATE_DOCS=1 cargo
//! test --test commands cli_reference`.

use std::fmt::Write as _;
use std::path::Path;

use clap::{Arg, ArgAction, Command};

fn reference() -> String {
    let mut root = heaptap::cli::tree();
    root.build();
    let mut text = String::from(
        "# Command line\n\n\
         Made from the flags themselves (`UPDATE_DOCS=1 cargo test --test commands cli_reference`).\n\
         Exit codes and kinds of errors: [errors.md](errors.md). Configs and inputs: [formats.md](formats.md).\n\n\
         Durations take `250us`, `500ms`, `10s`, `2m`, `1h` or sums such as `1m30s`; sizes `4096`, `64k`, `256mb`, `8MiB`\n\
         (k = 1024).\n\n\
         | command | what it does |\n|---|---|\n",
    );
    let commands: Vec<&Command> = root
        .get_subcommands()
        .filter(|c| c.get_name() != "help")
        .collect();
    for command in &commands {
        let name = command.get_name();
        let about = command.get_about().map(ToString::to_string);
        let _ = writeln!(
            text,
            "| [`{name}`](#heaptap-{name}) | {} |",
            about.expect("every command says what it does")
        );
    }
    text.push_str("\n## Global options\n");
    options(&mut text, root.get_arguments());
    for command in commands {
        section(&mut text, "heaptap", command);
    }
    text
}

fn section(text: &mut String, parent: &str, command: &Command) {
    let name = format!("{parent} {}", command.get_name());
    let _ = writeln!(text, "\n## {name}\n");
    let inner = || command.get_subcommands().filter(|c| c.get_name() != "help");
    if parent.contains(' ')
        && let Some(about) = command.get_long_about().or_else(|| command.get_about())
    {
        let _ = writeln!(text, "{about}\n");
    }
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let _ = writeln!(text, "```text\n{usage}\n```");
    if inner().next().is_none() {
        options(text, command.get_arguments().filter(|a| !a.is_global_set()));
    }
    if let Some(after) = command.get_before_help() {
        let after = after.to_string();
        let after = after
            .trim_start_matches("Examples:\n")
            .trim_start_matches("Example:\n");
        let _ = writeln!(text, "\n```text");
        for line in after.lines() {
            let _ = writeln!(text, "{}", line.strip_prefix("  ").unwrap_or(line));
        }
        let _ = writeln!(text, "```");
    }
    for command in inner() {
        section(text, &name, command);
    }
}

fn options<'a>(text: &mut String, arguments: impl Iterator<Item = &'a Arg>) {
    let shown: Vec<&Arg> = arguments
        .filter(|a| !a.is_hide_set() && !matches!(a.get_id().as_str(), "help" | "version"))
        .collect();
    if shown.is_empty() {
        return;
    }
    text.push_str("\n| option | meaning |\n|---|---|\n");
    for argument in shown {
        let help = argument
            .get_long_help()
            .or_else(|| argument.get_help())
            .map(ToString::to_string)
            .unwrap_or_else(|| panic!("{} has help", argument.get_id()));
        // A cell is one line.
        let help = help.replace("\n- ", "<br>- ");
        let help = help.replace("\n\n", ". ").replace('\n', " ");
        let choices: Vec<String> = argument
            .get_possible_values()
            .iter()
            .filter(|v| !v.is_hide_set() && argument.get_action().takes_values())
            .map(|v| format!("`{}`", v.get_name()))
            .collect();
        let choices = if choices.is_empty() {
            String::new()
        } else {
            format!(" ({})", choices.join(", "))
        };
        let defaults = argument.get_default_values().iter();
        let defaults: Vec<_> = defaults.map(|value| value.to_string_lossy()).collect();
        let default = match defaults.join(",") {
            value if takes_no_default(argument, &value, &help) => String::new(),
            value => format!(" [default: {value}]"),
        };
        let _ = writeln!(
            text,
            "| {} | {}{choices}{default} |",
            spelled(argument),
            help.replace('|', "\\|")
        );
    }
}

fn takes_no_default(argument: &Arg, value: &str, help: &str) -> bool {
    let is_shown = !argument.is_hide_default_value_set() && argument.get_action().takes_values();
    value.is_empty() || !is_shown || help.contains("[default:")
}

fn spelled(argument: &Arg) -> String {
    let mut names = Vec::new();
    if let Some(short) = argument.get_short() {
        names.push(format!("-{short}"));
    }
    for long in argument
        .get_long()
        .into_iter()
        .chain(argument.get_visible_aliases().unwrap_or_default())
    {
        names.push(format!("--{long}"));
    }
    let value = argument
        .get_value_names()
        .filter(|_| argument.get_action().takes_values())
        .map(|names| names.join(" "));
    if names.is_empty() {
        return format!("`{}`", value.unwrap_or_default());
    }
    let mut text = names.join("`, `");
    if let Some(value) = value {
        if argument.is_require_equals_set() {
            text.push_str(&format!("[={value}]"));
        } else {
            text.push_str(&format!(" {}", value.replace('|', "\\|")));
        }
    }
    if matches!(argument.get_action(), ArgAction::Count) {
        text.push_str(" …");
    }
    format!("`{text}`")
}

#[test]
fn the_page_is_what_the_flags_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/cli.md");
    let expected = reference();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &expected).expect("docs/ can be written");
    }
    let page = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        page == expected,
        "docs/reference/cli.md is behind the flags: UPDATE_DOCS=1 cargo test --test commands cli_reference"
    );
}

#[test]
fn every_command_has_an_example_and_every_option_help() {
    let mut root = heaptap::cli::tree();
    root.build();
    for command in root.get_subcommands().filter(|c| c.get_name() != "help") {
        let after = command.get_before_help().map(ToString::to_string);
        assert!(
            after.is_some_and(|a| a.contains(&format!("heaptap {}", command.get_name()))),
            "{} has an example",
            command.get_name()
        );
    }
    root.debug_assert();
}
