//! Arguments of printed commands, quoted for the user's shell: each pasted text is one argument,
//! and nothing in it is executed. The printed text itself does not have unsafe characters.

use super::is_unsafe;
use crate::host::Host;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::path::Path;

/// A shell that a user pastes a command into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shell {
    /// A shell of the `sh` family.
    Sh,
    /// PowerShell of any version.
    PowerShell,
}

impl Shell {
    /// The usual shell of this system.
    pub const HOST: Shell = match Host::CURRENT {
        Host::Windows => Shell::PowerShell,
        Host::Linux | Host::MacOs => Shell::Sh,
    };

    /// Returns the argument, in the shell's quotes if necessary.
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

    /// Returns a path as an argument that a leading `-` does not turn into a flag. `-` alone means
    /// a stream.
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

    /// Returns whether the shell reads the unquoted text as one argument.
    fn is_plain(self, text: &str) -> bool {
        let fits = |c: char| match c {
            '-' | '_' | '.' | '/' | ':' | '@' | '+' | '=' => true,
            '%' | ',' => self == Shell::Sh,
            '\\' => self == Shell::PowerShell,
            c => c.is_alphanumeric(),
        };
        // zsh looks up `=program`; PowerShell expands `@variable` and splits `-a.b`.
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

/// Returns one dump of an input, `PATH@WHICH`, for the shell of this system.
pub fn quoted_dump(path: &Path, which: impl Display) -> String {
    let mut dump = path.as_os_str().to_owned();
    dump.push(format!("@{which}"));
    quoted_path(dump)
}

/// Doubles each character that PowerShell treats as a single quote.
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

/// Returns an argument for `sh` in which `printf` writes unprintable characters. `$(…)` would
/// remove a newline at the end, which therefore needs a kind of quote that only the smallest shells
/// do not support.
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
                // A `!` in double quotes refers to the history.
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

/// Returns an argument for PowerShell that expands to the unprintable characters.
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
            // dash, a common sh, does not support the quotes for a newline at the end.
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

    /// Interprets one quoted argument by PowerShell's rules for both quotes.
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
