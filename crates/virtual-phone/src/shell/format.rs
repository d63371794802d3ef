//! The formats of `printf` and the escapes of `echo`.

/// Resolves the backslash escapes of `echo -e` and `printf`. The second value is whether `\c` ended
/// the text.
pub(crate) fn unescape(text: &str) -> (String, bool) {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('a') => out.push('\u{7}'),
            Some('b') => out.push('\u{8}'),
            Some('e') => out.push('\u{1b}'),
            Some('\\') => out.push('\\'),
            Some('c') => return (out, true),
            Some(digit @ '0'..='7') => {
                let mut value = digit.to_digit(8).unwrap_or(0);
                for _ in 0..3 {
                    let Some(d) = chars.peek().and_then(|c| c.to_digit(8)) else {
                        break;
                    };
                    value = value * 8 + d;
                    chars.next();
                }
                out.extend(char::from_u32(value & 0xff));
            }
            Some('x') => {
                let mut value = 0;
                for _ in 0..2 {
                    let Some(d) = chars.peek().and_then(|c| c.to_digit(16)) else {
                        break;
                    };
                    value = value * 16 + d;
                    chars.next();
                }
                out.extend(char::from_u32(value));
            }
            Some(other) => {
                out.push('\\');
                out.push(other);
            }
            None => out.push('\\'),
        }
    }
    (out, false)
}

/// Maximum field width of a `printf`.
const MAX_WIDTH: usize = 4096;

/// Formats `printf FORMAT ARG…`: the format is repeated while arguments remain.
pub(crate) fn format_printf(format: &str, args: &[String]) -> String {
    let mut out = String::new();
    let mut args = args.iter();
    loop {
        let before = args.len();
        let mut chars = format.chars().peekable();
        let mut literal = String::new();
        while let Some(c) = chars.next() {
            if c != '%' {
                literal.push(c);
                if c == '\\' {
                    literal.extend(chars.next());
                }
                continue;
            }
            out.push_str(&unescape(&std::mem::take(&mut literal)).0);
            let mut flags = String::new();
            while let Some(c) = chars.next_if(|c| "-0".contains(*c)) {
                flags.push(c);
            }
            let mut digits = String::new();
            while let Some(c) = chars.next_if(char::is_ascii_digit) {
                digits.push(c);
            }
            let width = digits.parse::<usize>().map_or(0, |n| n.min(MAX_WIDTH));
            let mut arg = || args.next().cloned().unwrap_or_default();
            let text = match chars.next() {
                Some('%') => "%".to_owned(),
                Some('s') => arg(),
                Some('d') => arg().trim().parse::<i64>().unwrap_or(0).to_string(),
                Some(other) => format!("%{other}"),
                None => "%".to_owned(),
            };
            let pad = width.saturating_sub(text.chars().count());
            if flags.contains('-') {
                out.push_str(&text);
                out.extend(std::iter::repeat_n(' ', pad));
            } else if flags.contains('0') {
                let sign = usize::from(text.starts_with('-'));
                out.push_str(&text[..sign]);
                out.extend(std::iter::repeat_n('0', pad));
                out.push_str(&text[sign..]);
            } else {
                out.extend(std::iter::repeat_n(' ', pad));
                out.push_str(&text);
            }
        }
        out.push_str(&unescape(&literal).0);
        if args.len() == 0 || args.len() == before {
            return out;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printf_formats() {
        let args = |a: &[&str]| a.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            format_printf("%s=%d\\n", &args(&["a", "7", "b", "8"])),
            "a=7\nb=8\n"
        );
        assert_eq!(
            format_printf("%05d|%-4s|%4s|%%", &args(&["-42", "ab", "cd"])),
            "-0042|ab  |  cd|%"
        );
        assert_eq!(format_printf("plain", &[]), "plain");
        assert_eq!(format_printf("\\055", &[]), "-");
    }
}
