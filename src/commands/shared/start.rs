//! Starts of recordings and dumps that end before any progress: a printed config, or a session in the
//! background.

use serde_json::json;

use crate::console::Console;
use crate::console::exit::Outcome;
use heaptap_capture::session::SessionId;

/// Prints the config that would be sent (`--print-config`).
pub(crate) fn print_config(console: &Console, text: &str) -> Outcome {
    match console.is_json() {
        true => console.json(&json!({ "config": text })),
        false => console.text(text),
    }
    Outcome::Done
}

/// Prints a detached session: `what` it does in the background, and the `commands` of heaptap that
/// continue it.
pub(crate) fn detached(
    console: &Console,
    what: &str,
    session: &SessionId,
    output: &str,
    commands: &[String],
) {
    if console.is_json() {
        return console.json(&json!({ "session": session, "output": output, "detached": true }));
    }
    console.data(session);
    console.say(format_args!("{what} in the background; continue with:"));
    for command in commands {
        console.say(format_args!("  heaptap {command}"));
    }
}
