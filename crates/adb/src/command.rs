//! Command lines for the device's shell. [`Command`] is the only way to write one, so that nothing
//! reaches the shell unquoted: the text is fixed at compile time, and arguments are quoted.

use std::fmt;

/// A command line for the device's shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    text: String,
    what: Option<&'static str>,
}

/// Maximum length in characters of a command that messages show whole.
const SHOWN: usize = 60;

impl Command {
    /// Creates a command that runs a program.
    pub fn program(name: &'static str) -> Self {
        Command {
            text: name.to_owned(),
            what: None,
        }
    }

    /// Creates a command that runs a script. The script reads its arguments as `"$1"`, `"$2"`, …
    /// and must not contain `'`.
    pub fn script(text: &'static str) -> Self {
        debug_assert!(!text.contains('\''), "the script is quoted with '");
        Command {
            text: format!("sh -c '{text}' heaptap"),
            what: None,
        }
    }

    /// Sets the description used in messages: "the connection was lost during *reading its
    /// properties*". Give a script a description, because its text does not help a user.
    pub fn called(mut self, what: &'static str) -> Self {
        self.what = Some(what);
        self
    }

    /// Returns the description; without one, the command on one line, shortened if it is long.
    pub fn what(&self) -> String {
        if let Some(what) = self.what {
            return what.to_owned();
        }
        let words: Vec<&str> = self.text.split_whitespace().collect();
        let mut text = words.join(" ");
        if text.chars().count() > SHOWN {
            text = text.chars().take(SHOWN - 1).collect();
            text.push('…');
        }
        format!("`{text}`")
    }

    /// Adds one argument, quoted.
    pub fn arg(mut self, arg: impl AsRef<str>) -> Self {
        self.text.push(' ');
        self.text.push_str(&quote(arg.as_ref()));
        self
    }

    /// Adds several arguments, each quoted.
    pub fn args<S: AsRef<str>>(self, args: impl IntoIterator<Item = S>) -> Self {
        args.into_iter().fold(self, Command::arg)
    }

    /// Returns the command as text for the shell service.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Quotes an argument for a POSIX shell. Drops NUL, which no argument can contain.
fn quote(arg: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_./:@%+=,".contains(&b);
    if !arg.is_empty() && arg.bytes().all(plain) {
        return arg.to_owned();
    }
    let mut quoted = String::with_capacity(arg.len() + 2);
    quoted.push('\'');
    for c in arg.chars() {
        match c {
            '\0' => {}
            '\'' => quoted.push_str("'\\''"),
            c => quoted.push(c),
        }
    }
    quoted.push('\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_quoted() {
        let c = Command::program("ls").args(["-l", "/a b", "it's", "$(reboot)", "", "a\nb"]);
        assert_eq!(c.text(), "ls -l '/a b' 'it'\\''s' '$(reboot)' '' 'a\nb'");
    }

    #[test]
    fn messages_call_a_command_by_its_name_or_its_beginning() {
        assert_eq!(Command::program("id").arg("-u").what(), "`id -u`");
        let script = Command::script("long; script").called("reading its clock");
        assert_eq!(script.what(), "reading its clock");
        assert_eq!(script.text(), "sh -c 'long; script' heaptap");
        let long = Command::program("echo").args(["ä".repeat(200), "b\nc".to_owned()]);
        assert_eq!(long.what().chars().count(), SHOWN + 2);
    }
}
