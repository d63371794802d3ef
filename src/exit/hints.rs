//! Answers to options and commands of other tools and of earlier versions of heaptap.

use crate::untrusted::shell::quoted;

/// An option that a command does not have, and its answer.
struct OptionHint {
    /// Commands of the hint, as typed; empty for every command.
    commands: &'static [&'static str],
    typed: &'static str,
    answer: Answer,
}

/// What to type instead.
#[derive(Clone, Copy)]
enum Answer {
    /// This option instead of the typed one, with the same value.
    Option(&'static str),
    /// This text, which names options of the same command.
    Words(&'static str),
    /// Another command.
    Command(&'static str),
}

const fn of_all(typed: &'static str, answer: Answer) -> OptionHint {
    OptionHint {
        commands: &[],
        typed,
        answer,
    }
}

const fn of(commands: &'static [&'static str], typed: &'static str, answer: Answer) -> OptionHint {
    OptionHint {
        commands,
        typed,
        answer,
    }
}

/// Ways to select processes.
const PROCESS: &str = "a process is named with -n NAME, -p PID or --package PKG";

/// A dump is of one moment: a recording has a duration.
const JAVA_FOR_A_TIME: &str = "heaptap record -n NAME --with java -d TIME";

/// The hints for options. The first match is shown.
const OPTIONS: &[OptionHint] = &[
    of(&["check"], "--for", Answer::Option("--heap")),
    of(&["meminfo", "gc"], "--for", Answer::Option("-d")),
    of(&["meminfo"], "--all", Answer::Option("--wide")),
    of(&["meminfo"], "-a", Answer::Option("--wide")),
    of(
        &["meminfo"],
        "--file",
        Answer::Words("name the text alone: heaptap meminfo FILE"),
    ),
    of(
        &["meminfo"],
        "-f",
        Answer::Words("name the text alone: heaptap meminfo FILE"),
    ),
    of(&["meminfo"], "--allow-gc", Answer::Option("--no-local")),
    of(&["top"], "--all", Answer::Words("use --reachable any")),
    of(
        &["top"],
        "--unreachable",
        Answer::Words("use --reachable no"),
    ),
    of(
        &["top"],
        "--objects",
        Answer::Words("use --by object --focus REGEX"),
    ),
    of(&["gc"], "--list", Answer::Words("use --by collection")),
    of(&["query"], "-f", Answer::Option("--file")),
    of(&["query"], "--to", Answer::Option("-o")),
    of(
        &["query"],
        "--list",
        Answer::Words("ask for .tables instead of SQL"),
    ),
    of(&["convert"], "--to", Answer::Option("--format")),
    of(&["diff"], "--pprof", Answer::Words("use -o FILE.pb.gz")),
    of(
        &["symbolize"],
        "--into",
        Answer::Words("use --whole-trace -o FILE"),
    ),
    of(&["record", "dump"], "--force", Answer::Option("--no-check")),
    of(
        &["record"],
        "--all",
        Answer::Words("use -n '*' for every process"),
    ),
    of(&["record"], "--snapshot-every", Answer::Option("-c")),
    of(&["dump"], "--deadline", Answer::Option("--timeout")),
    of(&["dump"], "-d", Answer::Command(JAVA_FOR_A_TIME)),
    of(&["dump"], "--duration", Answer::Command(JAVA_FOR_A_TIME)),
    of(
        &["open"],
        "--report",
        Answer::Command("heaptap report INPUT --open"),
    ),
    of(&["report"], "--full", Answer::Words("use -l 0")),
    of_all("--process", Answer::Option("-n")),
    of_all("--app", Answer::Option("-n")),
    of_all("--pkg", Answer::Option("--package")),
    of_all("--dump", Answer::Option("--at")),
    of_all("--java", Answer::Words("use --heap java")),
    of_all("--class", Answer::Option("--focus")),
    of_all("--exclude", Answer::Option("--ignore-refs")),
    of_all("--loops", Answer::Option("--rounds")),
    of_all("--per", Answer::Option("--rounds")),
    of_all("--no-pull-libs", Answer::Words("use --pull-libs never")),
    of(
        &["record", "convert", "symbolize", "stop"],
        "--symbolizer-mode",
        Answer::Words("set the variable PERFETTO_SYMBOLIZER_MODE to find or index"),
    ),
    of_all("--top", Answer::Option("-l")),
    of_all("--max", Answer::Option("-l")),
    of_all("--count", Answer::Option("-l")),
    of_all("--rows", Answer::Option("-l")),
    of_all("--format", Answer::Words("use --csv or --json")),
    of_all("--overwrite", Answer::Option("--force")),
    of_all("--out", Answer::Option("-o")),
    of_all("--dir", Answer::Option("-o")),
];

/// The hints for commands: the typed word, and heaptap's commands for it.
const COMMANDS: &[(&str, &[&str])] = &[
    ("collect", &["stop"]),
    ("deobfuscate", &["symbolize --only java"]),
    ("reconcile", &["meminfo INPUT --reconcile"]),
    ("profile", &["record"]),
    ("start", &["record"]),
    ("capture", &["record"]),
    ("trace", &["record"]),
    ("ps", &["apps"]),
    ("packages", &["apps"]),
    ("list", &["apps", "devices", "status"]),
    ("ls", &["apps", "devices", "status"]),
    ("sessions", &["status"]),
    ("fetch", &["stop"]),
    ("pull", &["stop"]),
    ("heapdump", &["dump"]),
    ("jmap", &["dump"]),
    ("heap", &["dump"]),
    ("compare", &["diff"]),
    ("export", &["convert"]),
    ("traceconv", &["convert"]),
    ("flamegraph", &["convert --format svg"]),
    ("heap_profile", &["record"]),
    ("analyze", &["top"]),
    ("show", &["top"]),
    ("ui", &["open"]),
    ("view", &["open"]),
    ("mem", &["meminfo"]),
    ("dumpsys", &["meminfo"]),
    ("hprof-conv", &["hprof conv"]),
];

/// Returns the answer to an unknown command.
pub(super) fn of_command(typed: &str) -> Option<String> {
    let (_, answers) = COMMANDS.iter().find(|(word, _)| *word == typed)?;
    let quoted: Vec<String> = answers.iter().map(|a| format!("`heaptap {a}`")).collect();
    let (last, others) = quoted.split_last()?;
    Some(match others.is_empty() {
        true => format!("use {last}"),
        false => format!("use {} or {last}", others.join(", ")),
    })
}

/// Returns the answer to an unknown option. `typed` is the whole command line, and `takes` returns
/// whether the command has an option.
pub(super) fn of_option(
    command: &str,
    option: &str,
    typed: &[String],
    takes: impl Fn(&str) -> bool,
) -> Option<String> {
    let fits = |hint: &&OptionHint| {
        hint.typed == option && (hint.commands.is_empty() || hint.commands.contains(&command))
    };
    let hint = OPTIONS.iter().find(fits)?;
    match hint.answer {
        Answer::Words(words) => {
            // An answer that the command does not accept is useless.
            let mut options = words.split(' ').filter(|word| word.starts_with('-'));
            options.all(takes).then(|| words.to_owned())
        }
        Answer::Command(command) => Some(format!("use `{command}`")),
        Answer::Option(answer) if !takes(answer) => None,
        Answer::Option(answer) => match corrected(option, answer, typed) {
            Some(line) => Some(line),
            None if answer == "-n" => Some(PROCESS.to_owned()),
            None => Some(format!("use {answer}")),
        },
    }
}

/// The command line with `answer` in the place of `option`.
fn corrected(option: &str, answer: &str, typed: &[String]) -> Option<String> {
    let with_value = format!("{option}=");
    let at = typed
        .iter()
        .position(|word| word == option || word.starts_with(&with_value))?;
    let mut words: Vec<String> = typed[..at].to_vec();
    let mut rest = typed[at + 1..].to_vec();
    let value = match typed[at].strip_prefix(&with_value) {
        Some(value) => Some(value.to_owned()),
        None if rest.first().is_some_and(|word| !word.starts_with('-')) => Some(rest.remove(0)),
        None => None,
    };
    let is_pid = answer == "-n" && value.as_ref().is_some_and(|v| v.parse::<u32>().is_ok());
    words.push(if is_pid { "-p" } else { answer }.to_owned());
    words.extend(value);
    words.extend(rest);
    Some(line_of(words.iter().map(String::as_str)))
}

/// Returns a command line of these words.
pub(super) fn line_of<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let shown = words.map(|word| match word.contains(NEEDS_QUOTES) {
        true => quoted(word),
        false => word.to_owned(),
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// Characters that a shell takes for its own.
const NEEDS_QUOTES: fn(char) -> bool = |c| !(c.is_alphanumeric() || "-_./:=@,+%".contains(c));

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(command: &str, option: &str, line: &str) -> Option<String> {
        let typed: Vec<String> = line.split(' ').map(str::to_owned).collect();
        of_option(command, option, &typed, |_| true)
    }

    #[test]
    fn an_option_of_before_is_answered_with_the_line_corrected() {
        for (command, option, line, answer) in [
            (
                "top",
                "--process",
                "heaptap top rec --process x",
                "heaptap top rec -n x",
            ),
            (
                "top",
                "--process",
                "heaptap top --process=7 rec",
                "heaptap top -p 7 rec",
            ),
            (
                "top",
                "--dump",
                "heaptap top rec --dump last",
                "heaptap top rec --at last",
            ),
            (
                "query",
                "--to",
                "heaptap query rec --to x.db",
                "heaptap query rec -o x.db",
            ),
            (
                "record",
                "--force",
                "heaptap record -n x --force",
                "heaptap record -n x --no-check",
            ),
            ("top", "--java", "heaptap top rec --java", "use --heap java"),
            (
                "dump",
                "-d",
                "heaptap dump -n x -d 4s",
                "use `heaptap record -n NAME --with java -d TIME`",
            ),
        ] {
            assert_eq!(
                hint(command, option, line).as_deref(),
                Some(answer),
                "{line}"
            );
        }
        assert_eq!(hint("top", "--nonsense", "heaptap top --nonsense"), None);
        let typed = [
            "heaptap".to_owned(),
            "doctor".to_owned(),
            "--top".to_owned(),
        ];
        assert_eq!(of_option("doctor", "--top", &typed, |_| false), None);
    }

    #[test]
    fn a_command_of_other_tools_is_answered() {
        assert_eq!(of_command("collect").as_deref(), Some("use `heaptap stop`"));
        let list = of_command("ls").unwrap();
        assert_eq!(
            list,
            "use `heaptap apps`, `heaptap devices` or `heaptap status`"
        );
        assert_eq!(of_command("nonsense"), None);
    }

    #[test]
    fn every_answer_is_a_command_or_an_option_that_there_is() {
        let root = crate::cli::tree();
        for (word, answers) in COMMANDS {
            for answer in *answers {
                let mut command = &root;
                for name in answer
                    .split(' ')
                    .take_while(|name| name.starts_with(|c: char| c.is_ascii_lowercase()))
                {
                    let found = command.find_subcommand(name);
                    command = found.unwrap_or_else(|| panic!("{word}: no {answer}"));
                }
            }
            assert!(root.find_subcommand(word).is_none(), "{word} is a command");
        }
        for hint in OPTIONS {
            let all: Vec<&str> = match hint.commands {
                [] => root
                    .get_subcommands()
                    .map(clap::Command::get_name)
                    .collect(),
                named => named.to_vec(),
            };
            let answered = all.iter().filter(|name| {
                let command = root.find_subcommand(name).expect("a command");
                let takes = |option: &str| {
                    let both = command.get_arguments().chain(root.get_arguments());
                    both.into_iter().any(|arg| match option.strip_prefix("--") {
                        Some(long) => arg.get_long() == Some(long),
                        None => arg.get_short() == option.chars().nth(1),
                    })
                };
                assert!(
                    hint.commands.is_empty() || !takes(hint.typed),
                    "{name} takes {}",
                    hint.typed
                );
                let typed = ["heaptap".to_owned(), hint.typed.to_owned()];
                of_option(name, hint.typed, &typed, takes).is_some()
            });
            let wanted = hint.commands.len().max(1);
            assert!(
                answered.count() >= wanted,
                "{} of {:?}",
                hint.typed,
                hint.commands
            );
        }
    }
}
