//! The console: data on stdout, messages on stderr, optional colors, and the only place that
//! removes control characters from device output.
//!
//! Output is line-based: newlines inside a line come from outside, like other control characters,
//! and are made visible. heaptap prints its own lines one by one. A style is marked with a random
//! number of each run, so that text from outside cannot set one.
//!
//! Writing never fails for the caller: if a reader exits (`| head`), the remaining output is
//! dropped; other errors of stdout are reported at the end of the run.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt::{self, Display, Write as _};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget};
use serde::Serialize;

use super::redraw;
use super::wrap::{wrap, wrapped};
use heaptap_base::parallel::lock;
use heaptap_base::untrusted::{ci, is_unsafe};
use heaptap_export::text::put_document;
use heaptap_results::findings::{Finding, is_note};

/// Meaning of a piece of text, which determines its appearance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Headings and names that matter.
    Strong,
    /// Less important text.
    Dim,
    /// Went well.
    Good,
    Warn,
    Error,
    /// `help:` and commands to type.
    Help,
}

impl Style {
    const ALL: [Style; 6] = [
        Style::Strong,
        Style::Dim,
        Style::Good,
        Style::Warn,
        Style::Error,
        Style::Help,
    ];

    fn sequence(self) -> &'static str {
        match self {
            Style::Strong => "\x1b[1m",
            Style::Dim => "\x1b[2m",
            Style::Good => "\x1b[32m",
            Style::Warn => "\x1b[33m",
            Style::Error => "\x1b[1;31m",
            Style::Help => "\x1b[36m",
        }
    }
}

/// Maximum number of suggested commands.
const NEXT_COMMANDS: usize = 3;

const RESET: &str = "\x1b[0m";

/// Prefix of style marks until the text is printed. It looks like an escape sequence, so that text
/// width is measured without it.
static SEAL: LazyLock<String> = LazyLock::new(|| {
    let drawn = RandomState::new().build_hasher().finish();
    let four = |at: u32| (drawn >> (16 * at)) % 10_000;
    format!("\x1b[{};{};{};{};", four(0), four(1), four(2), four(3))
});

/// Returns the escape sequence for the mark at the start of a text, and the rest of the text.
fn sealed(text: &str) -> Option<(&'static str, &str)> {
    let (mark, rest) = text.strip_prefix(SEAL.as_str())?.split_once('m')?;
    match mark {
        "0" => Some((RESET, rest)),
        mark => {
            let style = Style::ALL.get(mark.parse::<usize>().ok()?.checked_sub(1)?)?;
            Some((style.sequence(), rest))
        }
    }
}

/// Text with a style, which is dropped without colors.
#[derive(Debug, Clone)]
pub struct Styled<T> {
    style: Option<Style>,
    text: T,
}

impl<T: Display> Display for Styled<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.style {
            None => self.text.fmt(f),
            Some(style) => {
                let seal = SEAL.as_str();
                write!(f, "{seal}{}m", style as usize + 1)?;
                self.text.fmt(f)?;
                write!(f, "{seal}0m")
            }
        }
    }
}

/// Verbosity and format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Json,
    JsonLines,
}

#[derive(Debug, Clone, Copy)]
struct Settings {
    form: Form,
    quiet: bool,
    verbose: u8,
    stdout_color: bool,
    stderr_color: bool,
    progress: bool,
    /// Text for stdout goes to stderr: stdout belongs to another program.
    stdout_is_foreign: bool,
    /// A CI system reads the output, and obeys commands in it.
    ci_listens: bool,
}

/// State of stdout.
#[derive(Debug, Default)]
enum Stdout {
    #[default]
    Open,
    /// The reader has exited.
    Gone,
    /// Writing failed.
    Failed(io::Error),
}

/// The console. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Console {
    settings: Settings,
    stdout: Arc<Mutex<Stdout>>,
    /// Set after the single document of `--json` was printed.
    documented: Arc<AtomicBool>,
    bars: MultiProgress,
}

impl Console {
    /// Reads the flags that determine the output format before the rest is parsed: usage errors
    /// must already have the requested format.
    pub(crate) fn from_raw_args(typed: &[OsString]) -> Self {
        let words = || {
            typed
                .iter()
                .skip(1)
                .take_while(|a| a.as_os_str() != "--")
                .filter_map(|a| a.to_str())
        };
        let has = |flag: &str| words().any(|a| a == flag);
        // Short flags can share a word.
        let short = |letter: char| -> usize {
            let flags = words().filter_map(|a| a.strip_prefix('-'));
            let flags = flags.flat_map(|flags| flags.chars().take_while(|c| "qvh".contains(*c)));
            flags.filter(|flag| *flag == letter).count()
        };
        let mut color = None;
        let mut previous = "";
        for word in words() {
            if let Some(value) = word.strip_prefix("--color=") {
                color = Some(value);
            } else if previous == "--color" {
                color = Some(word);
            }
            previous = word;
        }
        let wants_color = |terminal: bool, supported: bool| match color {
            Some("always") => true,
            Some("never") => false,
            _ => {
                let no_color = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
                let dumb = std::env::var_os("TERM").is_some_and(|v| v == "dumb");
                terminal && supported && !no_color && !dumb
            }
        };
        let stderr_terminal = io::stderr().is_terminal();
        let quiet = has("--quiet") || short('q') > 0;
        let progress = stderr_terminal && !quiet && !has("--no-progress") && redraw::is_possible();
        let target = if progress {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        Console {
            settings: Settings {
                form: if has("--json") {
                    Form::Json
                } else if has("--json-lines") {
                    Form::JsonLines
                } else {
                    Form::Text
                },
                quiet,
                verbose: {
                    let long = words().filter(|a| *a == "--verbose").count();
                    u8::try_from(short('v') + long).unwrap_or(u8::MAX)
                },
                // Asking also switches a Windows console to understand the sequences of stdout.
                stdout_color: wants_color(
                    io::stdout().is_terminal(),
                    console::Term::stdout().features().colors_supported(),
                ),
                stderr_color: wants_color(
                    stderr_terminal,
                    console::Term::stderr().features().colors_supported(),
                ),
                progress,
                stdout_is_foreign: false,
                ci_listens: ci::is_listening(|name| std::env::var(name).ok()),
            },
            stdout: Arc::default(),
            documented: Arc::default(),
            bars: MultiProgress::with_draw_target(target),
        }
    }

    /// Returns a console that leaves stdout to another program: its text goes to stderr. A JSON
    /// document still goes to stdout.
    pub fn beside_program(&self) -> Console {
        let mut console = self.clone();
        console.settings.stdout_is_foreign = true;
        console.settings.stdout_color = console.settings.stderr_color;
        console
    }

    /// Returns whether stdout contains JSON (a document or lines), not text.
    pub fn is_json(&self) -> bool {
        self.settings.form != Form::Text
    }

    /// Returns whether stdout contains the events of a long command as JSON lines.
    pub fn is_json_lines(&self) -> bool {
        self.settings.form == Form::JsonLines
    }

    /// Returns the number of `-v` flags.
    pub fn verbosity(&self) -> u8 {
        self.settings.verbose
    }

    /// Returns whether a status line and progress bars are shown.
    pub fn shows_progress(&self) -> bool {
        self.settings.progress
    }

    /// Returns the width of the terminal on stdout, in columns; `None` without a terminal.
    pub fn stdout_width(&self) -> Option<usize> {
        if self.settings.stdout_is_foreign {
            return stderr_width();
        }
        let (_, columns) = console::Term::stdout().size_checked()?;
        (io::stdout().is_terminal() && columns > 0).then_some(usize::from(columns))
    }

    /// `text` in `style`, for stdout.
    pub fn styled<T: Display>(&self, style: Style, text: T) -> Styled<T> {
        Styled {
            style: self.settings.stdout_color.then_some(style),
            text,
        }
    }

    /// `text` in `style`, for stderr.
    pub fn on_stderr<T: Display>(&self, style: Style, text: T) -> Styled<T> {
        Styled {
            style: self.settings.stderr_color.then_some(style),
            text,
        }
    }

    /// Prints a line of data to stdout; nothing in a JSON mode, where stdout contains only the
    /// document. On a terminal, wraps it between words.
    pub fn data(&self, line: impl Display) {
        self.print(line, self.stdout_width());
    }

    /// Prints a line of data in a style.
    pub fn in_style(&self, style: Style, line: impl Display) {
        self.data(self.styled(style, line));
    }

    /// Prints the heading of a section, after an empty line.
    pub fn section(&self, style: Style, heading: impl Display) {
        self.data("");
        self.in_style(style, heading);
    }

    /// Prints a line of data to stdout without wrapping, for text that programs read or users copy.
    pub fn laid_out(&self, line: impl Display) {
        self.print(line, None);
    }

    /// Prints a line of data with hanging indentation after `lead`.
    pub fn hanging(&self, lead: impl Display, text: impl Display) {
        let (lead, text) = (lead.to_string(), text.to_string());
        let Some(columns) = self.stdout_width() else {
            return self.laid_out(format_args!("{lead}{text}"));
        };
        let width = |text: &String| console::measure_text_width(text);
        let indent = width(&lead);
        let parts = wrapped(&text, columns.saturating_sub(indent));
        let has_room = parts.iter().all(|part| indent + width(part) <= columns);
        let (parts, indent) = match has_room {
            true => (parts, indent),
            // A word is wider than the space after the lead: indent all words less.
            false => {
                let indent = indent.min(4);
                self.laid_out(lead.trim_end());
                (wrapped(&text, columns.saturating_sub(indent)), indent)
            }
        };
        let mut begin = if has_room { lead } else { " ".repeat(indent) };
        for part in parts {
            self.laid_out(format_args!("{begin}{part}"));
            begin = " ".repeat(indent);
        }
    }

    /// Returns a line as printed to stdout, for callers that draw it themselves.
    pub fn cleaned(&self, line: &str) -> String {
        clean(line, self.settings.stdout_color)
    }

    fn print(&self, line: impl Display, columns: Option<usize>) {
        if self.is_json() {
            return;
        }
        if self.settings.stdout_is_foreign {
            return self.tell(line, columns);
        }
        let text = self.cleaned(&line.to_string());
        match columns {
            Some(columns) => self.write_stdout(&wrap(&text, columns)),
            None => self.write_stdout(&text),
        }
    }

    /// Prints the document of `--json`, or one event of `--json-lines`, to stdout. Only one
    /// document is printed: a later failure during cleanup goes to stderr.
    pub fn json(&self, value: &impl Serialize) {
        if self.documented.swap(true, Ordering::Relaxed) && !self.is_json_lines() {
            return;
        }
        let is_pretty = !self.is_json_lines();
        self.with_stdout(|out| match self.settings.ci_listens {
            true => put_document(&mut CiJson(out), value, is_pretty),
            false => put_document(out, value, is_pretty),
        });
    }

    /// Prints one event of `--json-lines`; nothing in other formats.
    pub fn event(&self, value: &impl Serialize) {
        if self.is_json_lines() {
            self.json(value);
        }
    }

    /// Bytes of a file on stdout as they are (a trace, a page): not cleaned, no line end added.
    pub fn raw(&self, bytes: &[u8]) {
        self.with_stdout(|out| out.write_all(bytes));
    }

    /// Prints whole lines of a text that programs read (CSV, folded stacks, a config) to stdout: not
    /// cleaned, except of commands to a CI system.
    pub fn text(&self, lines: &str) {
        self.raw(self.without_commands(lines).as_bytes());
    }

    /// Prints a part of a JSON text to stdout.
    pub fn json_text(&self, part: &str) {
        match self.settings.ci_listens {
            true => self.raw(ci::escaped_json(part).as_bytes()),
            false => self.raw(part.as_bytes()),
        }
    }

    fn without_commands<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.settings.ci_listens {
            true => ci::broken_up(text),
            false => Cow::Borrowed(text),
        }
    }

    /// Returns whether only problems are printed.
    pub fn is_quiet(&self) -> bool {
        self.settings.quiet
    }

    /// Prints a message to stderr; nothing with `-q`.
    pub fn say(&self, line: impl Display) {
        if !self.settings.quiet {
            self.complain(line);
        }
    }

    /// Words on stderr that only `-v` shows.
    pub fn detail(&self, text: impl Display) {
        if self.settings.verbose > 0 {
            self.complain(self.on_stderr(Style::Dim, text));
        }
    }

    /// `warning: …` on stderr, also with `-q`.
    pub fn warn(&self, text: impl Display) {
        self.complain(format_args!(
            "{}: {text}",
            self.on_stderr(Style::Warn, "warning")
        ));
    }

    /// Prints a warning, followed by its help.
    pub fn warn_with_help(&self, text: impl Display, help: Option<&str>) {
        self.warn(text);
        if let Some(help) = help {
            let label = self.on_stderr(Style::Help, "help");
            self.complain(format_args!("   {label}: {help}"));
        }
    }

    /// Prints each finding by its kind: as a note, or as a warning with its help.
    pub fn findings<'a>(&self, findings: impl IntoIterator<Item = &'a Finding>) {
        for finding in findings {
            self.finding(finding, &finding.message);
        }
    }

    /// Prints a finding by its kind, with another message.
    pub fn finding(&self, finding: &Finding, message: impl Display) {
        match is_note(finding.kind) {
            true => self.note(message),
            false => self.warn_with_help(message, finding.help.as_deref()),
        }
    }

    /// `note: …` on stderr.
    pub fn note(&self, text: impl Display) {
        let label = self.on_stderr(Style::Dim, "note");
        self.say(format_args!("   {label}: {text}"));
    }

    /// Prints notes below the last table, if there are any.
    pub fn footnotes(&self, notes: &[&str]) {
        if !notes.is_empty() {
            self.data("");
        }
        for note in notes {
            self.in_style(Style::Dim, note);
        }
    }

    /// Prints the first suggested commands: each on its own line below its heading, for copying.
    pub fn next(&self, commands: &[(impl Display, String)]) {
        if commands.is_empty() {
            return;
        }
        self.say("");
        self.say(self.on_stderr(Style::Strong, "next:"));
        for (what, command) in commands.iter().take(NEXT_COMMANDS) {
            self.say(format_args!("  {what}"));
            if !self.settings.quiet {
                let command = self.on_stderr(Style::Help, command);
                self.tell(format_args!("    {command}"), None);
            }
        }
    }

    /// Prints a message to stderr, also with `-q`. On a terminal, wraps it between words.
    pub fn complain(&self, line: impl Display) {
        self.tell(line, stderr_width());
    }

    fn tell(&self, line: impl Display, columns: Option<usize>) {
        let mut text = clean(&line.to_string(), self.settings.stderr_color);
        if let Some(columns) = columns {
            text = wrap(&text, columns);
        }
        let text = self.without_commands(&text);
        // If stderr is closed, nothing can be done.
        let _ = self.bars.suspend(|| {
            io::stderr()
                .lock()
                .write_all(format!("{text}\n").as_bytes())
        });
    }

    /// Returns a status line at the bottom of the terminal; invisible if progress is off. Set its
    /// text with [`Console::set_status`], and remove it with `finish_and_clear`.
    pub fn status(&self) -> ProgressBar {
        self.bars.add(status_bar())
    }

    /// Returns a status line above another one.
    pub fn status_above(&self, other: &ProgressBar) -> ProgressBar {
        self.bars.insert_before(other, status_bar())
    }

    /// Sets the sanitized text of a status line or a progress bar.
    pub fn set_status(&self, bar: &ProgressBar, text: impl Display) {
        bar.set_message(clean(&text.to_string(), self.settings.stderr_color));
    }

    /// Returns a progress bar over `total` bytes.
    pub fn bytes_bar(&self, total: u64, what: &str) -> ProgressBar {
        let bar = ProgressBar::new(total);
        if let Ok(style) = indicatif::ProgressStyle::with_template(
            "{msg} [{bar:30}] {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {eta}",
        ) {
            bar.set_style(style.progress_chars("=> "));
        }
        let bar = self.bars.add(bar);
        self.set_status(&bar, what);
        bar
    }

    /// Returns whether stdout was closed or failed, so that streaming commands can end.
    pub fn stdout_is_closed(&self) -> bool {
        !matches!(*self.lock(), Stdout::Open)
    }

    pub(crate) fn clap_color(&self) -> clap::ColorChoice {
        if self.settings.stdout_color {
            clap::ColorChoice::Always
        } else {
            clap::ColorChoice::Never
        }
    }

    /// Help and version, as clap laid them out.
    pub(crate) fn clap_text(&self, text: &clap::builder::StyledStr, to_stdout: bool) {
        if to_stdout {
            let text = if self.settings.stdout_color {
                text.ansi().to_string()
            } else {
                text.to_string()
            };
            self.raw(format!("{}\n", text.trim_end()).as_bytes());
        } else {
            for line in text.to_string().trim_end().lines() {
                self.complain(line);
            }
        }
    }

    /// Flushes stdout; returns the error that prevented writing, if any.
    pub(crate) fn finish(&self) -> Option<io::Error> {
        self.with_stdout(|out| out.flush());
        match std::mem::replace(&mut *self.lock(), Stdout::Gone) {
            Stdout::Failed(error) => Some(error),
            Stdout::Open | Stdout::Gone => None,
        }
    }

    fn write_stdout(&self, text: &str) {
        let text = self.without_commands(text);
        self.with_stdout(|out| {
            out.write_all(text.as_bytes())?;
            out.write_all(b"\n")
        });
    }

    fn with_stdout(&self, write: impl FnOnce(&mut io::StdoutLock<'_>) -> io::Result<()>) {
        if self.stdout_is_closed() {
            return;
        }
        let result = self.bars.suspend(|| write(&mut io::stdout().lock()));
        if let Err(error) = result {
            self.fail_stdout(error);
        }
    }

    fn fail_stdout(&self, error: io::Error) {
        *self.lock() = if error.kind() == io::ErrorKind::BrokenPipe {
            Stdout::Gone
        } else {
            Stdout::Failed(error)
        };
    }

    fn lock(&self) -> MutexGuard<'_, Stdout> {
        lock(&self.stdout)
    }
}

/// Standard output of a console, which reports at the end why it could not be written.
pub struct ConsoleWriter(pub Console);

impl io::Write for ConsoleWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.0.stdout_is_closed() {
            self.0.raw(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Escapes commands to a CI system in JSON. Its parts are whole characters.
struct CiJson<W>(W);

impl<W: io::Write> io::Write for CiJson<W> {
    fn write(&mut self, json: &[u8]) -> io::Result<usize> {
        let text = std::str::from_utf8(json).map_err(io::Error::other)?;
        self.0.write_all(ci::escaped_json(text).as_bytes())?;
        Ok(json.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Makes the control characters of a line visible, including newlines; keeps tabs and, with
/// `colors`, heaptap's own styles. Device output can then not begin a line, move the cursor, set a
/// title or change the writing direction.
fn clean(line: &str, colors: bool) -> String {
    let mut cleaned = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        if let Some((sequence, behind)) = sealed(rest) {
            if colors {
                cleaned.push_str(sequence);
            }
            rest = behind;
            continue;
        }
        if is_unsafe(c) && c != '\t' {
            push_visible(&mut cleaned, c);
        } else {
            cleaned.push(c);
        }
        rest = &rest[c.len_utf8()..];
    }
    cleaned
}

/// Appends an unsafe character as its number.
fn push_visible(to: &mut String, c: char) {
    // Writing to a String cannot fail.
    let _ = write!(to, "\\u{{{:x}}}", u32::from(c));
}

/// Sanitizes text for a table column: as wide as printed, without tabs.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\t' => shown.push(' '),
            c if is_unsafe(c) => push_visible(&mut shown, c),
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// Returns the width of the terminal on stderr, in columns; `None` without a terminal.
fn stderr_width() -> Option<usize> {
    let (_, columns) = console::Term::stderr().size_checked()?;
    (io::stderr().is_terminal() && columns > 0).then_some(usize::from(columns))
}

fn status_bar() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = indicatif::ProgressStyle::with_template("{msg}") {
        bar.set_style(style);
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_of_a_device_are_made_visible() {
        let evil = "com.evil\x1b]0;title\x07\x1b[2J\u{202e}\r\n\u{9b}A\u{0}";
        let seen = "com.evil\\u{1b}]0;title\\u{7}\\u{1b}[2J\\u{202e}\\u{d}\\u{a}\\u{9b}A\\u{0}";
        for colors in [true, false] {
            assert_eq!(clean(evil, colors), seen);
        }
        assert_eq!(visible(evil), seen);
        assert!(matches!(visible("com.example"), Cow::Borrowed(_)));
    }

    #[test]
    fn only_our_own_styles_reach_a_terminal() {
        let coloured = Console::from_raw_args(&["heaptap".into(), "--color=always".into()]);
        let ours = format!(
            "a {}\t",
            coloured.styled(Style::Error, "name\x1b[1;31mä\x1b[0m")
        );
        assert_eq!(
            clean(&ours, true),
            "a \x1b[1;31mname\\u{1b}[1;31mä\\u{1b}[0m\x1b[0m\t"
        );
        assert_eq!(clean(&ours, false), "a name\\u{1b}[1;31mä\\u{1b}[0m\t");
        let nested = coloured.styled(Style::Dim, coloured.styled(Style::Strong, "x"));
        assert_eq!(
            clean(&nested.to_string(), true),
            "\x1b[2m\x1b[1mx\x1b[0m\x1b[0m"
        );
        assert_eq!(console::measure_text_width(&nested.to_string()), 1);
    }

    #[test]
    fn the_form_is_known_before_the_rest_is_parsed() {
        let of = |words: &[&str]| {
            Console::from_raw_args(&words.iter().map(Into::into).collect::<Vec<_>>())
        };
        assert!(of(&["heaptap", "nonsense", "--json"]).is_json());
        assert!(!of(&["heaptap", "record", "--", "--json"]).is_json());
        assert!(of(&["heaptap", "devices", "--json-lines"]).is_json_lines());
        assert_eq!(of(&["heaptap", "-vv", "--verbose"]).verbosity(), 3);
        let both = of(&["heaptap", "-qv"]);
        assert_eq!((both.verbosity(), both.is_quiet()), (1, true));
        let first = of(&["heaptap", "top", "-ql", "5", "-vnq"]);
        assert_eq!((first.verbosity(), first.is_quiet()), (1, true));
        assert!(!of(&["heaptap", "top", "-nq"]).is_quiet());
        assert!(of(&["heaptap", "--color", "always"]).settings.stdout_color);
        assert!(!of(&["heaptap", "--color=never"]).settings.stderr_color);
    }
}
