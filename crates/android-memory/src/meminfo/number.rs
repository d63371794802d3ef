//! Integers as printed by the device. They can be negative, have the separators of the system form,
//! or be in the digits of the app's locale. Android 8 and older use the locale for objects and
//! summaries.

/// Zeros of the scripts whose digits an Android locale can use, Latin first.
const ZEROS: [char; 12] = [
    '0', '\u{660}', '\u{6f0}', '\u{966}', '\u{9e6}', '\u{a66}', '\u{ae6}', '\u{c66}', '\u{e50}',
    '\u{f20}', '\u{1040}', '\u{17e0}',
];

/// Digits of a number, identified by the zero of the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digits(char);

impl Digits {
    fn new(c: char) -> Option<(Digits, u8)> {
        ZEROS.into_iter().find_map(|zero| {
            let digit = (c as u32).checked_sub(zero as u32)?;
            (digit < 10).then_some((Digits(zero), digit as u8))
        })
    }
}

/// Parses a whole token as an integer.
pub fn integer(token: &str) -> Option<(i64, Digits)> {
    let unmarked = token.trim_start_matches(['\u{61c}', '\u{200e}', '\u{200f}']);
    let (negative, digits) = match unmarked.strip_prefix(['-', '\u{2212}']) {
        Some(rest) => (true, rest),
        None => (false, unmarked),
    };
    let mut script = None;
    let mut value: i64 = 0;
    for c in digits.chars() {
        let (of, digit) = Digits::new(c)?;
        if *script.get_or_insert(of) != of {
            return None;
        }
        let digit = i64::from(digit);
        value = value.checked_mul(10)?;
        value = match negative {
            true => value.checked_sub(digit)?,
            false => value.checked_add(digit)?,
        };
    }
    Some((value, script?))
}

/// Converts a number of kB to bytes.
pub fn bytes(kb: i64) -> Option<i64> {
    kb.checked_mul(1024)
}

/// Parses an integer that can have `,` between groups, as in the system form with US rules.
pub fn grouped(token: &str) -> Option<i64> {
    if !token.contains(',') {
        return integer(token).map(|(value, _)| value);
    }
    let digits = token.trim_start_matches('-');
    let mut groups = digits.split(',');
    let first = groups.next()?;
    let whole = (1..=3).contains(&first.len()) && groups.all(|group| group.len() == 3);
    whole.then_some(())?;
    integer(&token.replace(',', "")).map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_every_script_are_read() {
        for zero in ZEROS {
            let digit = |c: char| match c.to_digit(10) {
                Some(digit) => char::from_u32(zero as u32 + digit).unwrap(),
                None => c,
            };
            for number in [0, 7, 1234567890, -45, i64::MAX, i64::MIN] {
                let text: String = number.to_string().chars().map(digit).collect();
                assert_eq!(integer(&text), Some((number, Digits(zero))));
            }
        }
        assert_eq!(integer("\u{61c}-٣").map(|n| n.0), Some(-3));
        for token in ["", "-", "1٢", "9223372036854775808", "12K", "+1", "1,2"] {
            assert_eq!(integer(token), None, "{token}");
        }
    }

    #[test]
    fn groups_have_three_digits() {
        assert_eq!(grouped("1,234,567"), Some(1_234_567));
        assert_eq!(grouped("-12,345"), Some(-12_345));
        assert_eq!(grouped("0"), Some(0));
        assert_eq!(grouped("1,23"), None);
        assert_eq!(grouped(",123"), None);
    }

    #[test]
    fn kilobytes_that_no_size_holds_are_none() {
        assert_eq!(bytes(-3), Some(-3072));
        assert_eq!(bytes(i64::MAX), None);
    }
}
