//! Line wrapping for terminals: lines break between words. Text for copying (a command, a path, an
//! address) is never split, nor are columns and drawings.

/// Narrower terminals wrap lines themselves: there is no space for an indent.
const NARROWEST: usize = 30;

/// Wraps a line that is wider than `columns` between words, and indents the rest by two more than
/// the line. Long words are not split.
pub(crate) fn wrap(line: &str, columns: usize) -> String {
    if columns < NARROWEST {
        return line.to_owned();
    }
    wrap_line(line, columns)
}

/// Splits a text into lines of at most this width, without indentation.
pub(crate) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    filled(inseparable(text), columns)
}

/// Joins parts into lines of at most this width, without splitting parts.
pub(crate) fn filled<'p>(parts: impl IntoIterator<Item = &'p str>, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut used = 0;
    for part in parts {
        let width = console::measure_text_width(part);
        match lines.last_mut() {
            Some(line) if used + 1 + width <= columns => {
                line.push(' ');
                line.push_str(part);
                used += 1 + width;
            }
            // Drop blanks at the start of a new line.
            _ if part.is_empty() => {}
            _ => {
                lines.push(part.to_owned());
                used = width;
            }
        }
    }
    lines
}

fn wrap_line(line: &str, columns: usize) -> String {
    if console::measure_text_width(line) <= columns || is_laid_out(line) {
        return line.to_owned();
    }
    let (begin, text) = line.split_at(begin_of_words(line));
    let mut used = console::measure_text_width(begin);
    let indent = " ".repeat((used + 2).min(columns / 2));
    let mut wrapped = begin.to_owned();
    let mut at_begin = true;
    for part in inseparable(text) {
        let width = console::measure_text_width(part);
        if at_begin && part.is_empty() {
            continue;
        }
        if !at_begin && used + 1 + width > columns {
            wrapped.truncate(wrapped.trim_end_matches(' ').len());
            wrapped.push('\n');
            wrapped.push_str(&indent);
            used = indent.len();
            at_begin = true;
            if part.is_empty() {
                continue;
            }
        }
        if !at_begin {
            wrapped.push(' ');
            used += 1;
        }
        at_begin = false;
        wrapped.push_str(part);
        used += width;
    }
    wrapped
}

/// Returns the start of the first word, after blanks and style marks.
fn begin_of_words(line: &str) -> usize {
    let mut rest = line;
    loop {
        rest = rest.trim_start_matches(' ');
        match rest
            .strip_prefix('\x1b')
            .and_then(|style| style.split_once('m'))
        {
            Some((_, behind)) => rest = behind,
            None => return line.len() - rest.len(),
        }
    }
}

/// Returns whether the positions of words matter: a row of three or more columns, a drawing, or a
/// line that is a command.
fn is_laid_out(line: &str) -> bool {
    let plain = console::strip_ansi_codes(line);
    let text = plain.trim();
    let gaps = text
        .split(' ')
        .fold((0, false), |(gaps, in_gap), word| match word.is_empty() {
            true if in_gap => (gaps, true),
            empty => (gaps + usize::from(empty), empty),
        });
    let is_drawn = text
        .chars()
        .next()
        .is_some_and(|first| ('\u{2500}'..='\u{259f}').contains(&first));
    let is_command = ["adb -", "adb shell ", "go tool "];
    line.contains('\t')
        || gaps.0 >= 2
        || is_drawn
        || is_command.iter().any(|begin| text.starts_with(begin))
}

/// Splits a text at possible breaks, without the blanks there: words, and whole commands.
fn inseparable(text: &str) -> Vec<&str> {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    let has_pairs = text.matches('`').count().is_multiple_of(2);
    let mut in_ticks = false;
    let mut command = Command::default();
    let mut from = 0;
    for word in text.split(' ') {
        let to = from + word.len();
        let plain = console::strip_ansi_codes(word);
        let goes_on = command.takes(&plain);
        match parts.last_mut() {
            // Separator dots end a line, and units follow their number; neither begins a line.
            Some(part) if in_ticks || goes_on || plain == "·" => part.1 = to,
            Some(part) if is_unit(&plain) && ends_in_number(&text[part.0..part.1]) => part.1 = to,
            _ => parts.push((from, to)),
        }
        in_ticks ^= has_pairs && plain.matches('`').count() % 2 == 1;
        from = to + 1;
    }
    let of = |(from, to): (usize, usize)| text.get(from..to);
    parts.into_iter().filter_map(of).collect()
}

fn is_unit(word: &str) -> bool {
    let word = word.trim_end_matches([',', ';', ':', '.', ')']);
    matches!(
        word,
        "B" | "KiB" | "MiB" | "GiB" | "TiB" | "%" | "ms" | "s" | "min" | "h"
    )
}

fn ends_in_number(text: &str) -> bool {
    console::strip_ansi_codes(text).ends_with(|c: char| c.is_ascii_digit())
}

/// State of detecting a command line of heaptap in a sentence without backticks.
#[derive(Debug, Default)]
struct Command {
    /// Number of its words; 0 outside of a command.
    words: usize,
    /// True if the previous word was a flag, which can have a value, or joins two commands.
    expects: bool,
    /// True if it is within shell quotes.
    quoted: bool,
}

impl Command {
    /// Returns whether `word` continues the command of the previous words.
    fn takes(&mut self, word: &str) -> bool {
        let goes_on = match self.words {
            0 => false,
            1 => !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '-'),
            _ if self.quoted => true,
            _ if matches!(word, "" | "·") || word.starts_with('(') => false,
            // The argument of the subcommand, or the value of a flag.
            2 => true,
            _ => self.expects || is_argument(word),
        };
        if !goes_on {
            *self = Command::default();
            self.words = usize::from(word == "heaptap");
            return false;
        }
        let joins = matches!(word, "&&" | "|");
        self.words = match word {
            "heaptap" if self.expects => 1,
            _ => self.words + 1,
        };
        // `\'` is a quote that begins and ends nothing.
        self.quoted ^= word.replace("\\'", "").matches('\'').count() % 2 == 1;
        self.expects = joins || word.starts_with('-');
        if word.ends_with([',', ';', ':', ')']) && !self.quoted {
            *self = Command::default();
        }
        true
    }
}

/// Returns whether a word looks like an argument, not like a word of a sentence.
fn is_argument(word: &str) -> bool {
    let inner = word.trim_end_matches(['.', ',', ';', ':', ')']);
    matches!(word, "&&" | "|")
        || inner.starts_with(['-', '\'', '"'])
        || inner.contains(['/', '=', '@', '*', '.'])
        || inner.chars().any(|c| c.is_ascii_digit())
        || inner.len() > 1 && inner.chars().all(|c| c.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_break_between_words() {
        let text = "  \x1b[36mhelp\x1b[0m: one two three four five six seven";
        assert_eq!(
            wrap(text, 30),
            "  \x1b[36mhelp\x1b[0m: one two three four\n    five six seven"
        );
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(wrapped("of 1,024.5 KiB", 11), ["of", "1,024.5 KiB"]);
        let word = "x".repeat(50);
        assert_eq!(
            wrap(&format!("a {word} b"), 40),
            format!("a\n  {word}\n  b")
        );
        assert_eq!(wrap(text, 20), text, "too narrow to do better");
        assert_eq!(wrap(text, 200), text);
    }

    #[test]
    fn an_indent_is_kept_inside_of_a_style() {
        let line = "\x1b[2m   keeps 980 B in 29 objects and a few words more\x1b[0m";
        assert_eq!(
            wrap(line, 32),
            "\x1b[2m   keeps 980 B in 29 objects and\n     a few words more\x1b[0m"
        );
    }

    #[test]
    fn commands_are_not_broken() {
        for (text, whole) in [
            (
                "help: record with `heaptap record -n com.example.app --launch` next time",
                "`heaptap record -n com.example.app --launch`",
            ),
            (
                "Java heaps were recorded beside: heaptap leaks rec/java looks for leaks there",
                "heaptap leaks rec/java",
            ),
            (
                "next: \x1b[36mheaptap top rec --tree · heaptap top rec --by library\x1b[0m",
                "heaptap top rec --by library",
            ),
            (
                "it is there: heaptap diff 'my recording@a' 'my recording@b' --by library tells all",
                "heaptap diff 'my recording@a' 'my recording@b' --by library",
            ),
            (
                "then heaptap dump -n com.example.app -o out && heaptap leaks out shows what leaks",
                "heaptap dump -n com.example.app -o out && heaptap leaks out",
            ),
        ] {
            let wrapped = wrap(text, 40);
            assert!(wrapped.lines().count() > 1, "{wrapped}");
            assert!(wrapped.contains(whole), "{wrapped}");
            for line in wrapped.lines().filter(|line| !line.contains("heaptap")) {
                assert!(console::measure_text_width(line) <= 40, "{wrapped}");
            }
        }
        // The word of the sentence ends the command.
        let text =
            "connect it, then: heaptap stop k3v9xq2m (or forget it, which loses what it has)";
        assert_eq!(
            wrap(text, 40),
            "connect it, then: heaptap stop k3v9xq2m\n  (or forget it, which loses what it\n  has)"
        );
        let line = "  adb -s emulator-5554 shell am force-stop com.example.app";
        assert_eq!(wrap(line, 40), line);
        let lone = "a ` that has no other one, and yet more than forty columns of text";
        assert_eq!(wrap(lone, 40).lines().count(), 2);
    }

    #[test]
    fn columns_and_drawings_stay_as_they_are() {
        for line in [
            "  12.8 MiB   12.8 MiB   100 %  com.example.app.ui.FeedView.onDraw base.odex",
            "├ class com.example.app.ui.Navigator  in use: a class stays as long as its loader",
            "a\tb and more words than would fit into forty columns of a terminal",
        ] {
            assert_eq!(wrap(line, 40), line);
        }
        // A heading with remarks behind two blanks is a sentence.
        assert_eq!(
            wrap(
                "rec@after  com.example.app (6201) · libc.malloc · @5 of 7",
                40
            ),
            "rec@after  com.example.app (6201) ·\n  libc.malloc · @5 of 7"
        );
        assert_eq!(
            wrap(
                "words up to the edge of the terminal  and two blanks there",
                38
            ),
            "words up to the edge of the terminal\n  and two blanks there"
        );
    }
}
