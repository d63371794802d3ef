//! Arguments of commands that are printed for copying, quoted for the user's shell: pasted, each
//! is one argument, and nothing in it runs. What is printed has no unsafe character itself.

use super::is_unsafe;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::path::Path;

/// A shell that a user pastes a command into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shell {
    /// Any shell of the family of `sh`.
    Sh,
    /// PowerShell of any version.
    PowerShell,
}

impl Shell {
    /// The shell that users of this system have.
    pub const HOST: Shell = match cfg!(windows) {
        true => Shell::PowerShell,
        false => Shell::Sh,
    };

    /// The argument in the shell's quotes if it needs them.
    pub fn quoted(self, arg: impl AsRef<OsStr>) -> String {
        let arg = arg.as_ref();
        if let Some(text) = arg.to_str() {
            if self.is_plain(text) {
                return text.to_owned();
            }
            if !text.contains(is_unsafe) {
                return match self {
                    Shell::Sh => format!("'{}'", text.replace('\'', "'\\''")),
                    Shell::PowerShell => format!("'{}'", doubled(text)),
                };
            }
        }
        match self {
            Shell::Sh => printed(arg),
            Shell::PowerShell => expanded(arg),
        }
    }

    /// The same for a path, which no leading `-` turns into a flag. `-` alone means a stream.
    pub fn path(self, path: impl AsRef<OsStr>) -> String {
        let path = path.as_ref();
        if path == "-" {
            return "-".to_owned();
        }
        if !path.as_encoded_bytes().starts_with(b"-") {
            return self.quoted(path);
        }
        let mut below = OsString::from("./");
        below.push(path);
        self.quoted(below)
    }

    /// Whether the shell takes the text as it is for one argument.
    fn is_plain(self, text: &str) -> bool {
        let fits = |c: char| match c {
            '-' | '_' | '.' | '/' | ':' | '@' | '+' | '=' => true,
            '%' | ',' => self == Shell::Sh,
            '\\' => self == Shell::PowerShell,
            c => c.is_alphanumeric(),
        };
        // zsh looks up `=program`, PowerShell expands `@variable` and takes `-a.b` apart.
        !text.is_empty() && !text.starts_with(['=', '@', '-']) && text.chars().all(fits)
    }
}

/// [`Shell::quoted`] for the shell of this system.
pub fn quoted(arg: impl AsRef<OsStr>) -> String {
    Shell::HOST.quoted(arg)
}

/// [`Shell::path`] for the shell of this system.
pub fn quoted_path(path: impl AsRef<OsStr>) -> String {
    Shell::HOST.path(path)
}

/// One dump of an input, `PATH@WHICH`, for the shell of this system.
pub fn quoted_dump(path: &Path, which: impl Display) -> String {
    let mut dump = path.as_os_str().to_owned();
    dump.push(format!("@{which}"));
    quoted_path(dump)
}

/// For PowerShell, each of the characters that it takes for a single quote twice.
fn doubled(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        out.push(c);
        if matches!(c, '\'' | '\u{2018}'..='\u{201b}') {
            out.push(c);
        }
    }
    out
}

/// For `sh`, an argument of which `printf` writes what can't be printed here. What `$(…)` would
/// cut off, a newline at the end, takes a quote that all but the smallest shells know.
fn printed(arg: &OsStr) -> String {
    let ends_in_newline = arg.as_encoded_bytes().ends_with(b"\n");
    let mut text = String::new();
    let octal = |text: &mut String, bytes: &[u8]| {
        for byte in bytes {
            text.push_str(&format!("\\{byte:03o}"));
        }
    };
    for chunk in arg.as_encoded_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => text.push_str("\\\\"),
                '%' if !ends_in_newline => text.push_str("%%"),
                // A leading one would be a flag of `printf`.
                '-' if text.is_empty() => text.push_str("\\055"),
                // A `!` in double quotes means a line of the history.
                c if matches!(c, '\'' | '!') || is_unsafe(c) => {
                    octal(&mut text, c.encode_utf8(&mut [0; 4]).as_bytes());
                }
                c => text.push(c),
            }
        }
        octal(&mut text, chunk.invalid());
    }
    match ends_in_newline {
        true => format!("$'{text}'"),
        false => format!("\"$(printf '{text}')\""),
    }
}

/// For PowerShell, an argument in which it expands what can't be printed here.
fn expanded(arg: &OsStr) -> String {
    let mut text = String::from("\"");
    for c in arg.to_string_lossy().chars() {
        match c {
            '`' | '$' | '"' | '\u{201c}'..='\u{201e}' => text.extend(['`', c]),
            c if is_unsafe(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    text.push_str(&format!("$([char]0x{unit:x})"));
                }
            }
            c => text.push(c),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const HARD: [&str; 16] = [
        "",
        "my recording",
        "it's",
        "$(reboot) $HOME ${x}",
        "a;b&c|d>e<f",
        "`reboot`",
        "\"quoted\" \\back\\",
        "*?[a]{b,c}~!#^%d%%",
        "-rf",
        "=ls",
        "~",
        "a\nb \x1b[31m\t'c' 100% \\n",
        "-\n-",
        "\u{202e}txt.exe 日本 \u{e0001}",
        "ends\n",
        "it's 100%\n\n",
    ];

    #[cfg(unix)]
    #[test]
    fn sh_gives_each_argument_back() {
        use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
        use std::process::Command;
        let mut all: Vec<OsString> = HARD.iter().map(Into::into).collect();
        all.push(OsString::from_vec(b"no \xff\xfe text".to_vec()));
        for arg in &all {
            let typed = Shell::Sh.quoted(arg);
            assert!(!typed.contains(is_unsafe), "{typed:?}");
            // dash, a common sh, reads no quotes of the sort that a newline at the end takes.
            let shell = match typed.starts_with("$'") {
                true => "bash",
                false => "sh",
            };
            let line = format!("printf '<%s>' {typed} end");
            let Ok(ran) = Command::new(shell).args(["-c", &line]).output() else {
                assert_eq!(shell, "bash", "there is a sh");
                continue;
            };
            let expected = [b"<", arg.as_bytes(), b"><end>"].concat();
            assert_eq!(ran.stdout, expected, "{typed}: {ran:?}");
        }
    }

    /// What PowerShell makes of one quoted argument: its rules for both quotes.
    fn unquoted(typed: &str) -> String {
        let single = |c: char| matches!(c, '\'' | '\u{2018}'..='\u{201b}');
        let double = |c: char| matches!(c, '"' | '\u{201c}'..='\u{201e}');
        let mut rest = typed.chars().peekable();
        let mut text = String::new();
        let first = rest.next().expect("an argument");
        if single(first) {
            while let Some(c) = rest.next() {
                match single(c) {
                    true if rest.next_if(|next| single(*next)).is_some() => text.push(c),
                    true => {
                        assert_eq!(rest.next(), None, "the quotes end too early: {typed}");
                        return text;
                    }
                    false => text.push(c),
                }
            }
            panic!("the quotes do not end: {typed}");
        }
        if !double(first) {
            let stays = |c: char| c.is_alphanumeric() || "-_./:@+=\\".contains(c);
            assert!(typed.chars().all(stays) && first != '@', "{typed}");
            return typed.to_owned();
        }
        let mut units: Vec<u16> = Vec::new();
        while let Some(c) = rest.next() {
            match c {
                '`' => units.extend(
                    rest.next()
                        .expect("escaped")
                        .encode_utf16(&mut [0; 2])
                        .iter(),
                ),
                '$' => {
                    let inner: String = rest.by_ref().take_while(|c| *c != ')').collect();
                    let hex = inner.strip_prefix("([char]0x").expect("a character");
                    units.push(u16::from_str_radix(hex, 16).expect("hexadecimal"));
                }
                c if double(c) => {
                    assert_eq!(rest.next(), None, "the quotes end too early: {typed}");
                    return String::from_utf16(&units).expect("text");
                }
                c => units.extend(c.encode_utf16(&mut [0; 2]).iter()),
            }
        }
        panic!("the quotes do not end: {typed}");
    }

    #[test]
    fn power_shell_gives_each_argument_back() {
        let more = [
            "it\u{2019}s \u{2018}so\u{201b}",
            "@splat",
            "\u{201c}x\u{201d}\n$x",
            "a,b",
        ];
        for arg in HARD.into_iter().chain(more) {
            let typed = Shell::PowerShell.quoted(arg);
            assert!(!typed.contains(is_unsafe), "{typed:?}");
            assert_eq!(unquoted(&typed), arg, "{typed}");
        }
    }

    #[test]
    fn what_needs_no_quotes_has_none() {
        for (shell, arg) in [
            (Shell::Sh, "rec/größe-1_2.pb.gz@after+=,%"),
            (Shell::PowerShell, r"C:\x\y.html"),
        ] {
            assert_eq!(shell.quoted(arg), arg);
        }
        assert_eq!(Shell::Sh.quoted(r"a\b"), r"'a\b'");
        assert_eq!(Shell::PowerShell.quoted("a,b"), "'a,b'");
    }

    #[test]
    fn a_path_is_no_flag() {
        for shell in [Shell::Sh, Shell::PowerShell] {
            assert_eq!(shell.path("-rf@last"), "./-rf@last");
            assert_eq!(shell.path("-a b"), "'./-a b'");
            assert_eq!(shell.path("-"), "-");
            assert_eq!(shell.path("rec"), "rec");
        }
    }
}
