//! Output of failures: `error: … / help: …` as text, one JSON object for programs.

use serde_json::{Value, json};

use crate::console::{Console, Style};
use heaptap_base::error::Failure;

/// Returns a failure as the document of `--json`.
pub(crate) fn document(failure: &Failure) -> Value {
    json!({ "error": {
        "code": failure.class.exit_code(),
        "kind": failure.kind,
        "message": below(&failure.message, &failure.excerpt),
        "help": failure.help.as_ref().map(|help| below(help, &failure.hints)),
    } })
}

/// Shows `failure` in words on stderr, and in a JSON mode as the document on stdout as well.
pub(crate) fn failure(console: &Console, failure: &Failure) {
    if console.is_json() {
        console.json(&document(failure));
    }
    in_words(console, failure);
}

fn below(first: &str, rest: &[String]) -> String {
    let lines = std::iter::once(first).chain(rest.iter().map(String::as_str));
    lines.collect::<Vec<_>>().join("\n")
}

/// Shows `failure` in words on stderr.
pub(crate) fn in_words(console: &Console, failure: &Failure) {
    let label = console.on_stderr(Style::Error, "error");
    console.complain(format_args!("{label}: {}", failure.message));
    for line in &failure.excerpt {
        console.complain(line);
    }
    if let Some(help) = &failure.help {
        let label = console.on_stderr(Style::Help, "help");
        console.complain(format_args!("{label}: {help}"));
        for hint in &failure.hints {
            console.complain(format_args!("      {hint}"));
        }
    }
}
