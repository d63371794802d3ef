//! The grammar of the command line: an option means the same in every command, and each command has
//! exactly the options of this table. The test walks the tree of flags, so that no second name for
//! a process or third letter for a limit gets in.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::path::Path;

use clap::{Arg, Command, ValueHint};
use serde_json::Value;

#[path = "grammar/hints.rs"]
mod hints;
#[path = "common/program.rs"]
mod program;
#[path = "grammar/table.rs"]
mod table;

use table::{COMMANDS, FAMILIES, LETTERS, MAY_DIFFER, MISSING, OUTPUTS, RETIRED, WRONG};

/// A command, by the words that call it, and its options and arguments.
fn commands() -> Vec<(String, Command)> {
    fn walk(prefix: &str, command: &Command, found: &mut Vec<(String, Command)>) {
        let inner: Vec<&Command> = command.get_subcommands().collect();
        if inner.is_empty() {
            found.push((prefix.to_owned(), command.clone()));
        }
        for command in inner {
            let name = format!("{prefix} {}", command.get_name());
            walk(name.trim(), command, found);
        }
    }
    let mut found = Vec::new();
    walk("", &heaptap::cli::tree(), &mut found);
    found
}

/// Options of a command, without its positional arguments.
fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    command
        .get_arguments()
        .filter(|a| a.get_long().is_some() && !matches!(a.get_id().as_str(), "help" | "version"))
}

/// Fails if a rule is broken anywhere.
fn hold(rule: &str, broken: BTreeSet<String>) {
    assert!(
        broken.is_empty(),
        "{rule}, against the grammar:\n{broken:#?}"
    );
}

/// A command and its error.
fn word(command: &str, what: &str) -> String {
    format!("{}:{what}", command.replace(' ', "-"))
}

/// Properties of an option that must be the same in every command.
fn sameness(arg: &Arg) -> [(&'static str, String); 5] {
    let values = arg.get_value_names().unwrap_or_default().join(" ");
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let first = help.split(['[', ';']).next().unwrap_or_default().trim();
    [
        ("letter", format!("{:?}", arg.get_short())),
        ("value", values),
        ("type", format!("{:?}", arg.get_value_parser().type_id())),
        ("help", first.to_owned()),
        ("action", format!("{:?}", arg.get_action())),
    ]
}

#[test]
fn an_option_is_the_same_in_every_command() {
    type Seen = BTreeMap<String, (String, BTreeMap<&'static str, String>)>;
    let mut seen = Seen::new();
    let mut differ = BTreeSet::new();
    for (name, command) in commands() {
        for option in options(&command) {
            let long = option.get_long().unwrap_or_default();
            let is: BTreeMap<_, _> = sameness(option).into();
            let (_, first) = seen
                .entry(long.to_owned())
                .or_insert_with(|| (name.clone(), is.clone()));
            for (aspect, value) in &is {
                let may_differ = MAY_DIFFER
                    .iter()
                    .any(|(of, aspects, _)| *of == long && aspects.contains(aspect));
                if first[aspect] != *value && !may_differ {
                    differ.insert(format!("--{long}:{aspect}"));
                }
            }
        }
    }
    hold("same", differ);
}

#[test]
fn a_letter_is_one_option() {
    let mut longs: BTreeMap<char, BTreeSet<String>> = BTreeMap::new();
    let globals = heaptap::cli::tree();
    let all = commands();
    let every = all.iter().flat_map(|(_, command)| options(command));
    for option in every.chain(options(&globals)) {
        if let Some(short) = option.get_short() {
            let long = option.get_long().unwrap_or_default().to_owned();
            longs.entry(short).or_default().insert(long);
        }
    }
    let mut wrong = BTreeSet::new();
    for (letter, longs) in longs {
        let right = LETTERS.iter().find(|(of, _)| *of == letter);
        for long in longs {
            if right.is_none_or(|(_, right)| *right != long) {
                wrong.insert(format!("-{letter}:{long}"));
            }
        }
    }
    hold("letter", wrong);
}

#[test]
fn each_command_has_the_options_of_the_table() {
    let mut wrong = BTreeSet::new();
    let all = commands();
    for (name, command) in &all {
        let Some(row) = COMMANDS.iter().find(|row| row.command == name.as_str()) else {
            wrong.insert(word(name, "command"));
            continue;
        };
        let mut expected: BTreeSet<&str> = row.own.split_whitespace().collect();
        for family in row.families.chars() {
            let found = FAMILIES.iter().find(|(letter, _)| *letter == family);
            let (_, options) = found.expect("a family of the table");
            expected.extend(options.split_whitespace());
        }
        let has: BTreeSet<&str> = options(command)
            .filter_map(Arg::get_long)
            .filter(|long| !RETIRED.contains(long))
            .collect();
        for extra in has.difference(&expected) {
            wrong.insert(word(name, &format!("+{extra}")));
        }
        for missing in expected.difference(&has) {
            wrong.insert(word(name, &format!("-{missing}")));
        }
    }
    for row in COMMANDS {
        if !all.iter().any(|(name, _)| name == row.command) {
            wrong.insert(word(row.command, "missing"));
        }
    }
    hold("table", wrong);
}

#[test]
fn bare_words_are_those_of_the_table() {
    let mut wrong = BTreeSet::new();
    for row in COMMANDS {
        // Commands that read no file.
        let takes_names = ["check", "record", "dump"].contains(&row.command);
        if takes_names != row.words.split(' ').any(|word| word == "NAME") {
            wrong.insert(word(row.command, "NAME"));
        }
    }
    for (name, command) in commands() {
        let words: Vec<String> = command
            .get_positionals()
            .map(|a| a.get_value_names().unwrap_or_default().join(" "))
            .collect();
        let row = COMMANDS.iter().find(|row| row.command == name.as_str());
        if row.is_none_or(|row| row.words.split_whitespace().ne(words.iter())) {
            wrong.insert(word(&name, &words.join(",")));
        }
    }
    hold("words", wrong);
}

/// Output of `-h`, at 80 columns.
fn short_help(command: &[&str]) -> String {
    let mut typed = vec!["heaptap"];
    typed.extend(command);
    typed.push("-h");
    let mut root = heaptap::cli::short_tree().term_width(80);
    let error = root
        .try_get_matches_from_mut(typed)
        .expect_err("help is an error of clap's");
    error.render().to_string()
}

#[test]
fn short_help_fits_a_screen_and_begins_with_examples() {
    let mut wrong = BTreeSet::new();
    for (name, _) in commands() {
        let help = short_help(&name.split(' ').collect::<Vec<_>>());
        let lines: Vec<&str> = help.lines().collect();
        if lines.len() > 40 {
            wrong.insert(word(&name, "lines"));
        }
        if lines.iter().any(|line| line.chars().count() > 80) {
            wrong.insert(word(&name, "columns"));
        }
        let example = lines
            .iter()
            .position(|line| line.trim_start().starts_with(&format!("heaptap {name}")));
        let option = lines.iter().position(|line| {
            let line = line.trim_start();
            line.starts_with("--") || (line.starts_with('-') && line.contains(", --"))
        });
        if example.is_none() || option.is_some_and(|option| option < example.unwrap_or(usize::MAX))
        {
            wrong.insert(word(&name, "example"));
        }
    }
    hold("help", wrong);
}

#[test]
fn the_list_of_commands_fits_a_screen_and_has_each_once() {
    let help = heaptap::cli::tree()
        .term_width(80)
        .render_help()
        .to_string();
    let mut wrong = BTreeSet::new();
    if help.lines().count() > 45 {
        wrong.insert("lines".to_owned());
    }
    if help.lines().any(|line| line.chars().count() > 80) {
        wrong.insert("columns".to_owned());
    }
    for command in heaptap::cli::tree().get_subcommands() {
        let name = command.get_name();
        let rows = help.lines().filter(|line| {
            let row = line.strip_prefix("  ").unwrap_or_default();
            row.split("  ").next() == Some(name)
        });
        let also = help.lines().filter(|line| {
            line.strip_prefix("Also: ")
                .and_then(|line| line.split('.').next())
                .is_some_and(|names| names.split(", ").any(|also| also == name))
        });
        if rows.count() + also.count() != 1 {
            wrong.insert(name.to_owned());
        }
    }
    hold("root", wrong);
}

/// Words of a command line, split as a shell does, up to a pipe, a comment or the next command.
/// `None` if the command line is incomplete.
fn words_of(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    let mut quote = None;
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(q), _) if c == q => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '\\') => word.get_or_insert_default().push(chars.next()?),
            (None, ' ') => words.extend(word.take()),
            (None, '|' | '>' | ';' | '&' | '#') if word.is_none() => break,
            (None, ';') => break,
            (None, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

/// The commands of an example; an explanation follows two spaces.
fn example(line: &str) -> &str {
    let line = line.trim().trim_start_matches("$ ");
    line.split("  ").next().unwrap_or_default()
}

#[test]
fn every_example_parses() {
    let mut lines: Vec<(String, String)> = Vec::new();
    let mut root = heaptap::cli::tree();
    root.build();
    for (name, _) in commands() {
        let mut command = &root;
        for word in name.split(' ') {
            command = command.find_subcommand(word).expect("a command");
        }
        let examples = command.get_before_long_help().map(ToString::to_string);
        for line in examples.unwrap_or_default().lines() {
            let line = line.trim();
            if line.starts_with("heaptap ") {
                lines.push((name.clone(), line.split("  ").next().unwrap().to_owned()));
            }
        }
    }
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = vec![directory.join("README.md")];
    for part in ["docs", "docs/guide", "docs/reference", "docs/internals"] {
        for entry in std::fs::read_dir(directory.join(part)).expect("docs/") {
            let path = entry.expect("an entry").path();
            if path.extension().is_some_and(|ending| ending == "md") {
                pages.push(path);
            }
        }
    }
    for page in pages {
        let text = std::fs::read_to_string(&page).expect("a page");
        let mut is_code = false;
        let name = page.file_name().unwrap().to_string_lossy().into_owned();
        for line in text.lines() {
            if line.starts_with("```") {
                is_code = !is_code;
            }
            let line = example(line);
            if is_code && line.starts_with("heaptap ") && !line.ends_with('\\') {
                lines.push((name.clone(), line.to_owned()));
            }
        }
    }
    assert!(lines.len() > 150, "{}", lines.len());
    let mut wrong = Vec::new();
    for (place, line) in lines {
        let is_form = line.contains(['<', '[', '…']);
        let Some(words) = words_of(&line).filter(|_| !is_form) else {
            continue;
        };
        if let Err(error) = heaptap::cli::tree().try_get_matches_from(&words)
            && error.use_stderr()
            // A path that has to exist.
            && !error.to_string().contains("No such file")
        {
            let first = error.to_string();
            let first = first.lines().next().unwrap_or_default().to_owned();
            wrong.push(format!("{place}: {line}: {first}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The options of each command, by the words that call it, and of its group; with those of every
/// command.
fn typed_options() -> hints::Known {
    let root = heaptap::cli::tree();
    let names = |command: &Command| -> BTreeSet<String> {
        let long = |arg: &Arg| arg.get_long().map(|long| format!("--{long}"));
        let short = |arg: &Arg| arg.get_short().map(|short| format!("-{short}"));
        let all = command.get_arguments();
        all.flat_map(|arg| long(arg).into_iter().chain(short(arg)))
            .collect()
    };
    let mut known = hints::Known::new();
    for (name, command) in commands() {
        let all = names(&command).into_iter().chain(names(&root));
        let all: BTreeSet<String> = all.chain(["--help".into(), "--version".into()]).collect();
        let group = name.split(' ').next().unwrap_or_default().to_owned();
        known.entry(group).or_default().extend(all.iter().cloned());
        known.insert(name, all);
    }
    known
}

#[test]
fn messages_advise_only_options_of_their_command() {
    let known = typed_options();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut wrong = BTreeSet::new();
    let mut check = |place: &str, own: Option<&BTreeSet<String>>, text: &str| {
        for (of, option) in hints::advised(text) {
            let has = match (&of, own) {
                (Some(of), _) => known.get(of).is_none_or(|has| has.contains(&option)),
                (None, Some(own)) => own.contains(&option),
                // Several commands print it; those without the option leave it out.
                (None, None) => known.values().any(|has| has.contains(&option)),
            };
            // Of the recording that lacks it.
            let is_told = text.contains("is missing in this snapshot");
            if !has && !is_told {
                wrong.insert(format!("{place}: {option}: {text}"));
            }
        }
    };
    for part in ["src", "crates"] {
        for source in hints::sources(&directory.join(part)) {
            let place = source
                .strip_prefix(directory)
                .expect("in it")
                .display()
                .to_string();
            let place = place.replace('\\', "/");
            if ["/tests", "virtual-phone", "/examples/"]
                .iter()
                .any(|no| place.contains(no))
            {
                continue;
            }
            let command = place
                .strip_prefix("src/commands/")
                .and_then(|rest| rest.split('/').next());
            let own = command.and_then(|command| known.get(&command.replace('_', "-")));
            let text = std::fs::read_to_string(&source).expect("UTF-8");
            for literal in hints::literals(&text) {
                check(&place, own, &literal);
            }
        }
    }
    // As printed, whichever module has the text.
    let mut printed = 0;
    let snapshots = directory.join("tests/commands/snapshots");
    for entry in std::fs::read_dir(snapshots).expect("snapshots") {
        let text = std::fs::read_to_string(entry.expect("an entry").path()).expect("UTF-8");
        let mut own = None;
        for line in text.lines() {
            if let Some(typed) = line.strip_prefix("$ ") {
                let mut words = typed
                    .split(' ')
                    .skip_while(|word| *word != "heaptap")
                    .skip(1);
                own = words.next().and_then(|word| known.get(word));
            } else if let Some(own) = own {
                let is_message = ["error:", "help:", "warning:", "note:"];
                if is_message
                    .iter()
                    .any(|label| line.trim_start().starts_with(label))
                {
                    printed += 1;
                    check("printed", Some(own), line);
                }
            }
        }
    }
    assert!(printed > 100, "{printed}");
    hold("hints", wrong);
}

/// Options of Perfetto's two scripts, with a value if the option takes one.
const HEAP_PROFILE: &str = "-i 4096|--interval 4096|-d 30000|--duration 30000|-n app|--name app|\
    -p 1|--pid 1|--shmem-size 8388608|--block-client|--block-client-timeout 1000|--no-block-client|\
    --idle-allocations|--dump-at-max|--disable-selinux|--no-versions|--no-running|--no-startup|\
    --no-start|-c 5000|--continuous-dump 5000|--heaps libc.malloc|--all-heaps|\
    --no-android-tree-symbolization|--disable-fork-teardown|--simpleperf|--print-config|\
    --traceconv-binary t|--no-annotations|-o out|--output out";
const JAVA_HEAP_DUMP: &str = "-o out|--output out|-p 1|--pid 1|-n app|--name app|-b 256mb|\
    --buffer-size 256mb|-c 5000|--continuous-dump 5000|--no-versions|--dump-smaps|--print-config|\
    --stop-when-done|--no-stop-when-done|--wait-for-oom|--wait-for-oom --oom-wait-seconds 60";

#[test]
fn perfettos_options_are_taken() {
    for (command, options) in [("record", HEAP_PROFILE), ("dump", JAVA_HEAP_DUMP)] {
        for option in options.split('|') {
            let typed = ["heaptap", command].into_iter().chain(option.split(' '));
            let parsed = heaptap::cli::tree().try_get_matches_from(typed);
            assert!(parsed.is_ok(), "{command} {option}: {parsed:?}");
        }
    }
}

#[test]
fn a_time_has_a_unit() {
    use clap::error::ErrorKind;
    // Perfetto's scripts define the units of their bare numbers.
    let perfettos = ["block-client-timeout", "oom-wait-seconds"];
    let mut found = 0;
    for (name, command) in commands() {
        for option in options(&command) {
            let long = option.get_long().unwrap_or_default();
            let is_time = option
                .get_value_names()
                .is_some_and(|names| names.iter().any(|name| name == "TIME"));
            if !is_time || perfettos.contains(&long) {
                continue;
            }
            found += 1;
            let refused = |value: &str| {
                let typed = ["heaptap".to_owned()]
                    .into_iter()
                    .chain(name.split(' ').map(str::to_owned))
                    .chain([format!("--{long}={value}")]);
                let parsed = heaptap::cli::tree().try_get_matches_from(typed);
                parsed.is_err_and(|error| error.kind() == ErrorKind::ValueValidation)
            };
            assert!(refused("10"), "{name} --{long} 10");
            assert!(!refused("10s"), "{name} --{long} 10s");
        }
    }
    assert!(found > 8, "{found}");
}

/// An address at which an adb server would listen, and what tells whether it was asked.
fn silent_server() -> (TcpListener, String) {
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    server.set_nonblocking(true).expect("a socket");
    let address = server.local_addr().expect("an address").to_string();
    (server, address)
}

/// The exit code of a line of the table, and its error.
fn failure(line: &str, server: &str) -> (Option<i32>, Value) {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let fixture = |name: &str| fixtures.join(name).display().to_string();
    // The first scenario, as `run --init` prints it.
    let scenario = concat!(env!("CARGO_TARGET_TMPDIR"), "/grammar.yaml");
    let first = heaptap_lab::scenario::first_scenario("com.example.app");
    std::fs::write(scenario, first).expect("a scenario");
    let words = line.split(' ').map(|word| match word {
        "SCENARIO" => scenario.to_owned(),
        "T" => fixture("conversions/c_cont.pftrace"),
        "H" => fixture("hprof/android-a.hprof.gz"),
        "SQL" => "SELECT 1".to_owned(),
        word => word.to_owned(),
    });
    let output = program::heaptap()
        .args(words)
        .args(["--json", "--adb-server", server])
        .current_dir(env!("CARGO_TARGET_TMPDIR"))
        .output()
        .expect("heaptap runs");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output.status.code(), document["error"].clone())
}

/// Returns whether an error has one line without a full stop, except for two sentences and an
/// indented excerpt, and at most two lines of help.
fn is_well_formed(error: &Value) -> bool {
    let text = |key: &str| error[key].as_str().unwrap_or_default();
    let mut lines = text("message").lines();
    let first = lines.next().unwrap_or_default();
    !first.is_empty()
        && (!first.ends_with('.') || first.contains(". "))
        && !text("message").contains("os error")
        && lines.all(|line| line.starts_with("  "))
        && text("help").lines().count() <= 2
}

#[test]
fn a_missing_file_is_told_before_a_device_is_asked() {
    let (server, address) = silent_server();
    let mut wrong = BTreeSet::new();
    for line in MISSING {
        let (code, error) = failure(line, &address);
        let message = error["message"].as_str().unwrap_or_default();
        let is_told = code == Some(8) && message.contains("nope") && is_well_formed(&error);
        if !is_told || server.accept().is_ok() {
            wrong.insert(format!("{line}: {code:?} {error}"));
        }
    }
    for (name, command) in commands() {
        for arg in command.get_arguments() {
            let values = arg.get_value_names().unwrap_or_default().join(" ");
            let label = arg.get_long().unwrap_or(&values);
            let hint = arg.get_value_hint();
            let is_path = [ValueHint::AnyPath, ValueHint::FilePath, ValueHint::DirPath];
            if !is_path.contains(&hint) || OUTPUTS.contains(&label) || RETIRED.contains(&label) {
                continue;
            }
            let typed = match arg.get_long() {
                Some(long) => format!(" --{long} nope"),
                None => " nope".to_owned(),
            };
            let has_line = |line: &&str| {
                let rest = line.strip_prefix(name.as_str());
                rest.is_some_and(|rest| rest.contains(&typed))
            };
            if !MISSING.iter().any(has_line) {
                wrong.insert(word(&name, label));
            }
        }
    }
    hold("missing files", wrong);
}

#[test]
fn a_failure_is_one_line_and_its_help_two_at_most() {
    let (server, address) = silent_server();
    let mut wrong = BTreeSet::new();
    for line in WRONG {
        let (code, error) = failure(line, &address);
        if code != Some(2) || !is_well_formed(&error) || server.accept().is_ok() {
            wrong.insert(format!("{line}: {code:?} {error}"));
        }
    }
    hold("failures", wrong);
}
