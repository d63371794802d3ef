//! Keys during a recording: single keys without Enter, read on a plain thread, because a blocked
//! read must not delay the exit. Ctrl-C remains a signal. Dropping [`Keys`] restores the terminal.

use tokio::sync::mpsc;

/// A supported key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Char(char),
    Enter,
    Escape,
    Backspace,
}

/// Keys of the terminal, as long as this lives.
pub(crate) struct Keys {
    receiver: mpsc::UnboundedReceiver<Key>,
    _mode: system::Mode,
}

impl Keys {
    /// Starts reading keys; `None` without a terminal, or if another process uses it.
    pub(crate) fn read() -> Option<Keys> {
        let mode = system::Mode::enter()?;
        let (sender, receiver) = mpsc::unbounded_channel();
        std::thread::Builder::new()
            .name("keys".to_owned())
            .spawn(move || system::read(&sender))
            .ok()?;
        Some(Keys {
            receiver,
            _mode: mode,
        })
    }

    /// Returns the next key; waits forever if there are no more.
    pub(crate) async fn next(&mut self) -> Key {
        match self.receiver.recv().await {
            Some(key) => key,
            None => std::future::pending().await,
        }
    }
}

#[cfg(unix)]
mod system {
    use std::io::{IsTerminal as _, Read as _};

    use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};
    use tokio::sync::mpsc::UnboundedSender;

    use super::Key;

    /// Previous settings of the terminal.
    pub(crate) struct Mode(Termios);

    impl Mode {
        /// Keys at once and without echo; signals as before.
        pub(crate) fn enter() -> Option<Mode> {
            let stdin = std::io::stdin();
            // Changing the terminal from the background would stop this process.
            if !stdin.is_terminal() || tcgetpgrp(&stdin).ok()? != rustix::process::getpgrp() {
                return None;
            }
            let before = tcgetattr(&stdin).ok()?;
            let mut wanted = before.clone();
            wanted
                .local_modes
                .remove(LocalModes::ICANON | LocalModes::ECHO);
            tcsetattr(&stdin, OptionalActions::Drain, &wanted).ok()?;
            Some(Mode(before))
        }
    }

    impl Drop for Mode {
        fn drop(&mut self) {
            // A closed terminal needs no restoring.
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Drain, &self.0);
        }
    }

    pub(crate) fn read(sender: &UnboundedSender<Key>) {
        let mut pending: Vec<u8> = Vec::new();
        for byte in std::io::stdin().lock().bytes() {
            let Ok(byte) = byte else { return };
            let key = match byte {
                b'\r' | b'\n' => Some(Key::Enter),
                0x1b => Some(Key::Escape),
                0x7f | 0x08 => Some(Key::Backspace),
                // Characters beyond ASCII have several bytes.
                0x80.. => {
                    pending.push(byte);
                    let whole = std::str::from_utf8(&pending).ok().map(str::to_owned);
                    if whole.is_some() || pending.len() >= 4 {
                        pending.clear();
                    }
                    whole.and_then(|text| text.chars().next()).map(Key::Char)
                }
                byte if byte.is_ascii_control() => None,
                byte => Some(Key::Char(char::from(byte))),
            };
            if key.is_some_and(|key| sender.send(key).is_err()) {
                return;
            }
        }
    }
}

#[cfg(not(unix))]
mod system {
    use std::io::IsTerminal as _;

    use tokio::sync::mpsc::UnboundedSender;

    use super::Key;

    /// Reading a key changes nothing here.
    pub(crate) struct Mode;

    /// console only reads keys if its output is a terminal too, although nothing is written: either
    /// stream works.
    fn terminal() -> Option<console::Term> {
        [console::Term::stdout(), console::Term::stderr()]
            .into_iter()
            .find(console::Term::is_term)
    }

    impl Mode {
        pub(crate) fn enter() -> Option<Mode> {
            (std::io::stdin().is_terminal() && terminal().is_some()).then_some(Mode)
        }
    }

    pub(crate) fn read(sender: &UnboundedSender<Key>) {
        let Some(terminal) = terminal() else { return };
        while let Ok(key) = terminal.read_key() {
            let key = match key {
                console::Key::Char(c) => Key::Char(c),
                console::Key::Enter => Key::Enter,
                console::Key::Escape => Key::Escape,
                console::Key::Backspace => Key::Backspace,
                _ => continue,
            };
            if sender.send(key).is_err() {
                return;
            }
        }
    }
}

/// State of keyboard input: idle, or typing a label.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Typing {
    #[default]
    Idle,
    /// A label, as typed so far.
    Label(String),
}

/// Result of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pressed {
    /// Nothing except a change of the typed text.
    Nothing,
    /// A complete label; empty for the default one.
    Label(String),
    /// Rejected for this reason.
    Refused(&'static str),
}

/// Answer to a key without a meaning.
const KEYS: &str = "keys: s and Enter take a snapshot, Ctrl-C ends the recording";
/// The same without snapshots.
const ONE_KEY: &str = "keys: Ctrl-C ends the recording";

/// Longest label that is taken.
const MAX_LABEL_LENGTH: usize = 60;

impl Typing {
    /// Cancels the typed label; returns whether there was one.
    pub(crate) fn cancel(&mut self) -> bool {
        std::mem::take(self) != Typing::Idle
    }

    /// Handles a key. `takes` contains the reason if a label would have no effect now.
    pub(crate) fn take(&mut self, key: Key, takes: Result<(), &'static str>) -> Pressed {
        match (&mut *self, key, takes) {
            (Typing::Idle, Key::Char('s' | 'S'), Ok(())) => {
                *self = Typing::Label(String::new());
            }
            (Typing::Idle, Key::Char('s' | 'S'), Err(why)) => return Pressed::Refused(why),
            // Arrows and function keys arrive as capitals, digits and signs behind an Escape.
            (Typing::Idle, Key::Char(c), takes) if c.is_lowercase() || c == '?' => {
                return Pressed::Refused(if takes.is_ok() { KEYS } else { ONE_KEY });
            }
            (Typing::Idle, _, _) => {}
            (Typing::Label(text), Key::Enter, takes) => {
                let text = std::mem::take(text);
                *self = Typing::Idle;
                return match takes {
                    Ok(()) => Pressed::Label(text.trim().to_owned()),
                    Err(why) => Pressed::Refused(why),
                };
            }
            (Typing::Label(_), Key::Escape, _) => *self = Typing::Idle,
            (Typing::Label(text), Key::Backspace, _) => {
                text.pop();
            }
            (Typing::Label(text), Key::Char(c), _) => {
                if text.chars().count() < MAX_LABEL_LENGTH {
                    text.push(c);
                }
            }
        }
        Pressed::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(c: char) -> Key {
        match c {
            '\n' => Key::Enter,
            '\x1b' => Key::Escape,
            '\x08' => Key::Backspace,
            c => Key::Char(c),
        }
    }

    #[test]
    fn s_asks_for_a_label_and_enter_takes_it() {
        let mut typing = Typing::default();
        let mut type_in = |keys: &str| {
            let pressed = keys.chars().map(|c| typing.take(key(c), Ok(())));
            pressed
                .filter_map(|pressed| match pressed {
                    Pressed::Label(label) => Some(label),
                    Pressed::Nothing | Pressed::Refused(_) => None,
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(type_in("xs\x08logim\x08n ü\n"), ["login ü"]);
        assert_eq!(type_in("s\n"), [""]);
        assert_eq!(type_in("sabc\x1bx\n"), Vec::<String>::new());
        assert_eq!(type_in("ss\n"), ["s"]);
    }

    #[test]
    fn a_key_that_can_do_nothing_says_so_at_once_and_asks_for_no_label() {
        let why = "periodic dumps are off";
        let mut typing = Typing::default();
        for c in ['s', 'S'] {
            assert_eq!(typing.take(key(c), Err(why)), Pressed::Refused(why));
            assert_eq!(typing, Typing::Idle);
        }
        assert_eq!(typing.take(key('x'), Err(why)), Pressed::Refused(ONE_KEY));
        assert_eq!(typing.take(key('x'), Ok(())), Pressed::Refused(KEYS));
        for c in "\n\x1b\x08[A~1".chars() {
            assert_eq!(typing.take(key(c), Ok(())), Pressed::Nothing, "{c:?}");
        }
        // The recording came to its end over the typing.
        assert_eq!(typing.take(key('s'), Ok(())), Pressed::Nothing);
        assert_eq!(typing.take(key('\n'), Err(why)), Pressed::Refused(why));
    }

    #[test]
    fn a_label_is_given_up_once() {
        let mut typing = Typing::default();
        assert!(!typing.cancel());
        typing.take(key('s'), Ok(()));
        assert!(typing.cancel());
        assert!(!typing.cancel());
        let enter = typing.take(Key::Enter, Ok(()));
        assert_eq!(enter, Pressed::Nothing, "no snapshot is left to take");
    }
}
