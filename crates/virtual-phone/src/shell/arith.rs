//! `$((…))`: sums and products of integers with 64 bits (mksh has 32, but scripts that add up
//! nanoseconds must not silently overflow here).

/// Evaluates an expression; `variable` returns the value of a variable. Nothing is 0, so that `-1`
/// is a difference.
pub(super) fn evaluate(text: &str, variable: &dyn Fn(&str) -> String) -> Result<i64, String> {
    for operators in [['+', '-'], ['*', '/']] {
        let Some(at) = text.rfind(operators) else {
            continue;
        };
        let left = evaluate(&text[..at], variable)?;
        let right = evaluate(&text[at + 1..], variable)?;
        return match &text[at..=at] {
            "+" => Ok(left.wrapping_add(right)),
            "-" => Ok(left.wrapping_sub(right)),
            "*" => Ok(left.wrapping_mul(right)),
            _ if right == 0 => Err("divisor is zero".to_owned()),
            _ => Ok(left.wrapping_div(right)),
        };
    }
    let word = text.trim();
    let value = match word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        true => variable(word),
        false => word.to_owned(),
    };
    match value.trim() {
        "" => Ok(0),
        value => value.parse().map_err(|_| format!("{value}: bad number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_have_c_precedence() {
        let vars = |name: &str| match name {
            "n" => "5".to_owned(),
            "word" => "n".to_owned(),
            _ => String::new(),
        };
        for (text, value) in [
            ("1 + 2 * 3", 7),
            ("n + 1", 6),
            ("10 - 3 - 2", 5),
            ("n - n / 2", 3),
            ("-3 - 1", -4),
            ("unset", 0),
            ("", 0),
        ] {
            assert_eq!(evaluate(text, &vars), Ok(value), "{text}");
        }
        for text in ["1 / 0", "(1", "1 2", "%", "word"] {
            assert!(evaluate(text, &vars).is_err(), "{text}");
        }
    }
}
