//! Command lines for the device's shell. The only way to make one, so that nothing reaches
//! that shell unquoted: the text is fixed at compile time, arguments are quoted.

use std::fmt;

/// A command line for the device's shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    text: String,
}

impl Command {
    /// A program and its arguments.
    pub fn program(name: &'static str) -> Self {
        Command {
            text: name.to_owned(),
        }
    }

    /// A script; arguments reach it as `"$1"`, `"$2"`, … The script itself holds no `'`.
    pub fn script(text: &'static str) -> Self {
        debug_assert!(!text.contains('\''), "the script is quoted with '");
        Command {
            text: format!("sh -c '{text}' heaptap"),
        }
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

    /// The command as a string for the shell service.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Quotes for a POSIX shell. NUL, which no argument can hold, is dropped.
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
}
