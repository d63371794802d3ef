//! `$((…))`: integer expressions of sh with 64 bits (mksh has 32, but scripts that add up
//! nanoseconds must not silently overflow here). Assignments and comparisons are not
//! supported.

/// Maximum nesting of an expression.
const MAX_DEPTH: usize = 60;

struct Eval<'a> {
    text: Vec<char>,
    at: usize,
    depth: usize,
    variable: &'a dyn Fn(&str) -> String,
}

/// Evaluates an expression; `variable` returns the value of a variable.
pub(crate) fn evaluate(text: &str, variable: &dyn Fn(&str) -> String) -> Result<i64, String> {
    let mut eval = Eval {
        text: text.chars().collect(),
        at: 0,
        depth: 0,
        variable,
    };
    eval.blanks();
    if eval.at == eval.text.len() {
        return Ok(0);
    }
    let value = eval.binary(0)?;
    if eval.at < eval.text.len() {
        return Err(format!("{text}: unexpected '{}'", eval.text[eval.at]));
    }
    Ok(value)
}

/// Binary operators by level, lowest precedence first.
const LEVELS: [&[&str]; 2] = [&["+", "-"], &["*", "/", "%"]];

impl Eval<'_> {
    fn blanks(&mut self) {
        while self.text.get(self.at).is_some_and(|c| c.is_whitespace()) {
            self.at += 1;
        }
    }

    fn looking_at(&self, what: &str) -> bool {
        what.chars()
            .enumerate()
            .all(|(i, c)| self.text.get(self.at + i) == Some(&c))
    }

    fn accept(&mut self, what: &str) -> bool {
        let found = self.looking_at(what);
        if found {
            self.at += what.len();
            self.blanks();
        }
        found
    }

    fn binary(&mut self, level: usize) -> Result<i64, String> {
        let Some(operators) = LEVELS.get(level) else {
            return self.unary();
        };
        let mut left = self.binary(level + 1)?;
        loop {
            let operator = operators.iter().find(|o| self.looking_at(o));
            let Some(operator) = operator else {
                return Ok(left);
            };
            self.accept(operator);
            let right = self.binary(level + 1)?;
            left = apply(operator, left, right)?;
        }
    }

    fn unary(&mut self) -> Result<i64, String> {
        self.blanks();
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("expression nested too deeply".to_owned());
        }
        let value = if self.accept("-") {
            self.unary()?.wrapping_neg()
        } else if self.accept("(") {
            let value = self.binary(0)?;
            if !self.accept(")") {
                return Err("missing ')'".to_owned());
            }
            value
        } else {
            self.primary()?
        };
        self.depth -= 1;
        Ok(value)
    }

    fn name(&mut self) -> String {
        let start = self.at;
        let starts = self
            .text
            .get(start)
            .is_some_and(|c| c.is_ascii_alphabetic() || *c == '_');
        while starts
            && self
                .text
                .get(self.at)
                .is_some_and(|c| c.is_ascii_alphanumeric() || *c == '_')
        {
            self.at += 1;
        }
        self.text[start..self.at].iter().collect()
    }

    fn primary(&mut self) -> Result<i64, String> {
        let name = self.name();
        if !name.is_empty() {
            self.blanks();
            let value = (self.variable)(&name);
            return match value.trim() {
                "" => Ok(0),
                value => number(value).ok_or_else(|| format!("{value}: bad number")),
            };
        }
        let start = self.at;
        while self
            .text
            .get(self.at)
            .is_some_and(|c| c.is_ascii_alphanumeric())
        {
            self.at += 1;
        }
        let digits: String = self.text[start..self.at].iter().collect();
        self.blanks();
        number(&digits).ok_or_else(|| match self.text.get(start) {
            None => "unexpected end of expression".to_owned(),
            Some(_) if digits.is_empty() => format!("unexpected '{}'", self.text[start]),
            Some(_) => format!("{digits}: bad number"),
        })
    }
}

fn number(text: &str) -> Option<i64> {
    text.parse().ok()
}

fn apply(operator: &str, l: i64, r: i64) -> Result<i64, String> {
    Ok(match operator {
        "+" => l.wrapping_add(r),
        "-" => l.wrapping_sub(r),
        "*" => l.wrapping_mul(r),
        "/" | "%" if r == 0 => return Err("divisor is zero".to_owned()),
        "/" => l.wrapping_div(r),
        _ => l.wrapping_rem(r),
    })
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
            ("(1+2)*3", 9),
            ("n", 5),
            ("n + 1", 6),
            ("10 % 4 + 2", 4),
            ("-3 - -4", 1),
            ("unset", 0),
            ("", 0),
            ("7 / 2", 3),
        ] {
            assert_eq!(evaluate(text, &vars), Ok(value), "{text}");
        }
        for text in ["1 +", "1 / 0", "(1", "1 2", "x y", "%", "n = 1", "word"] {
            assert!(evaluate(text, &vars).is_err(), "{text}");
        }
        assert!(evaluate(&"(".repeat(10_000), &vars).is_err());
    }
}
