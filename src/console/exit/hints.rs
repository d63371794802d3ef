//! Answers to options and commands of other tools and of earlier versions of heaptap.

use heaptap_base::untrusted::shell::quoted;

/// Ways to select processes.
const PROCESS: &str = "a process is named with -n NAME, -p PID or --package PKG";

/// A dump is of one moment: a recording has a duration.
const JAVA_FOR_A_TIME: &str = "heaptap record -n NAME --with java -d TIME";

/// Options that commands do not have: the commands (none: every command), the option, and what to type
/// instead: another option with the same value, another command, or a text about options of the same
/// command. The first match is shown.
const OPTIONS: &[(&str, &str, &str)] = &[
    ("check", "--for", "--heap"),
    ("meminfo gc", "--for", "-d"),
    ("meminfo", "--all", "--wide"),
    ("meminfo", "-a", "--wide"),
    (
        "meminfo",
        "--file",
        "name the text alone: heaptap meminfo FILE",
    ),
    ("meminfo", "-f", "name the text alone: heaptap meminfo FILE"),
    ("meminfo", "--allow-gc", "--no-local"),
    ("top", "--all", "use --reachable any"),
    ("top", "--unreachable", "use --reachable no"),
    ("top", "--objects", "use --by object --focus REGEX"),
    ("gc", "--list", "use --by collection"),
    ("query", "-f", "--file"),
    ("query", "--to", "-o"),
    ("query", "--list", "ask for .tables instead of SQL"),
    ("convert", "--to", "--format"),
    ("diff", "--pprof", "use -o FILE.pb.gz"),
    ("symbolize", "--into", "use --whole-trace -o FILE"),
    ("record dump", "--force", "--no-check"),
    ("record", "--all", "use -n '*' for every process"),
    ("record", "--snapshot-every", "-c"),
    ("dump", "--deadline", "--timeout"),
    ("dump", "-d", JAVA_FOR_A_TIME),
    ("dump", "--duration", JAVA_FOR_A_TIME),
    ("open", "--report", "heaptap report INPUT --open"),
    ("report", "--full", "use -l 0"),
    ("", "--process", "-n"),
    ("", "--app", "-n"),
    ("", "--pkg", "--package"),
    ("", "--dump", "--at"),
    ("", "--java", "use --heap java"),
    ("", "--class", "--focus"),
    ("", "--exclude", "--ignore-refs"),
    ("", "--loops", "--rounds"),
    ("", "--per", "--rounds"),
    ("", "--no-pull-libs", "use --pull-libs never"),
    (
        "record convert symbolize stop",
        "--symbolizer-mode",
        "set the variable PERFETTO_SYMBOLIZER_MODE to find or index",
    ),
    ("", "--top", "-l"),
    ("", "--max", "-l"),
    ("", "--count", "-l"),
    ("", "--rows", "-l"),
    ("", "--format", "use --csv or --json"),
    ("", "--overwrite", "--force"),
    ("", "--out", "-o"),
    ("", "--dir", "-o"),
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
    let (.., answer) = OPTIONS.iter().find(|(commands, lacking, _)| {
        *lacking == option && (commands.is_empty() || commands.split(' ').any(|c| c == command))
    })?;
    let mut options = answer.split(' ').filter(|word| word.starts_with('-'));
    match answer.split_once(' ') {
        Some(("heaptap", _)) => Some(format!("use `{answer}`")),
        // An answer that the command does not accept is useless.
        _ if !options.all(takes) => None,
        Some(_) => Some((*answer).to_owned()),
        None => corrected(option, answer, typed).or_else(|| match *answer {
            "-n" => Some(PROCESS.to_owned()),
            _ => Some(format!("use {answer}")),
        }),
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
        for (commands, typed, _) in OPTIONS {
            let named: Vec<&str> = commands.split_whitespace().collect();
            let all: Vec<&str> = match named.is_empty() {
                true => root
                    .get_subcommands()
                    .map(clap::Command::get_name)
                    .collect(),
                false => named.clone(),
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
                assert!(named.is_empty() || !takes(typed), "{name} takes {typed}");
                let line = ["heaptap".to_owned(), (*typed).to_owned()];
                of_option(name, typed, &line, takes).is_some()
            });
            assert!(
                answered.count() >= named.len().max(1),
                "{typed} of {commands}"
            );
        }
    }
}
