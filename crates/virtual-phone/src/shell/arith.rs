//! `$((…))`: integer expressions of sh, 64 bits wide (mksh has 32; scripts that add up
//! nanoseconds must not lose them here without a word, and on phones use `expr` or awk).

/// Looks a variable up and sets one.
pub(crate) trait Variables {
    fn value(&mut self, name: &str) -> String;
    fn assign(&mut self, name: &str, value: i64);
}

/// Nesting that an expression may have.
const MAX_DEPTH: usize = 60;

struct Eval<'a> {
    text: Vec<char>,
    at: usize,
    depth: usize,
    variables: &'a mut dyn Variables,
}

/// Value of an expression.
pub(crate) fn evaluate(text: &str, variables: &mut dyn Variables) -> Result<i64, String> {
    evaluate_at(text, variables, 0)
}

fn evaluate_at(text: &str, variables: &mut dyn Variables, depth: usize) -> Result<i64, String> {
    let mut eval = Eval {
        text: text.chars().collect(),
        at: 0,
        depth,
        variables,
    };
    eval.blanks();
    if eval.at == eval.text.len() {
        return Ok(0);
    }
    let value = eval.comma()?;
    if eval.at < eval.text.len() {
        return Err(format!("{text}: unexpected '{}'", eval.text[eval.at]));
    }
    Ok(value)
}

/// Binary operators by level, loosest first.
const LEVELS: [&[&str]; 10] = [
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<=", ">=", "<", ">"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

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

    fn comma(&mut self) -> Result<i64, String> {
        let mut value = self.assignment()?;
        while self.accept(",") {
            value = self.assignment()?;
        }
        Ok(value)
    }

    fn assignment(&mut self) -> Result<i64, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("expression nested too deeply".to_owned());
        }
        let start = self.at;
        let name = self.name();
        let value = if name.is_empty() {
            self.ternary()?
        } else {
            self.blanks();
            let operator = [
                "=", "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&=", "|=", "^=",
            ]
            .into_iter()
            .find(|o| self.looking_at(o) && !self.looking_at("=="));
            match operator {
                Some(operator) => {
                    self.accept(operator);
                    let right = self.assignment()?;
                    let value = match operator.strip_suffix('=') {
                        Some("") | None => right,
                        Some(binary) => apply(binary, self.variable(&name)?, right)?,
                    };
                    self.variables.assign(&name, value);
                    value
                }
                None => {
                    self.at = start;
                    self.ternary()?
                }
            }
        };
        self.depth -= 1;
        Ok(value)
    }

    fn ternary(&mut self) -> Result<i64, String> {
        let condition = self.binary(0)?;
        if !self.accept("?") {
            return Ok(condition);
        }
        let yes = self.assignment()?;
        if !self.accept(":") {
            return Err("missing ':'".to_owned());
        }
        let no = self.assignment()?;
        Ok(if condition != 0 { yes } else { no })
    }

    fn binary(&mut self, level: usize) -> Result<i64, String> {
        let Some(operators) = LEVELS.get(level) else {
            return self.unary();
        };
        let mut left = self.binary(level + 1)?;
        'next: loop {
            for operator in *operators {
                // `|` is no part of `||`, nor `<` of `<<`.
                let longer = ["||", "&&", "<<", ">>", "<=", ">="];
                let taken = operator.len() == 1 && longer.iter().any(|l| self.looking_at(l));
                let assigns = self.looking_at(&format!("{operator}="))
                    && *operator != "<"
                    && *operator != ">";
                if self.looking_at(operator) && !taken && (!assigns || operator.len() == 2) {
                    self.accept(operator);
                    let right = self.binary(level + 1)?;
                    left = apply(operator, left, right)?;
                    continue 'next;
                }
            }
            return Ok(left);
        }
    }

    fn unary(&mut self) -> Result<i64, String> {
        self.blanks();
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("expression nested too deeply".to_owned());
        }
        let value = if let Some(step) = [("++", 1), ("--", -1)]
            .into_iter()
            .find(|s| self.looking_at(s.0))
        {
            self.accept(step.0);
            let name = self.name();
            self.blanks();
            let value = self.variable(&name)?.wrapping_add(step.1);
            self.variables.assign(&name, value);
            value
        } else if self.accept("-") {
            self.unary()?.wrapping_neg()
        } else if self.accept("+") {
            self.unary()?
        } else if self.accept("!") {
            i64::from(self.unary()? == 0)
        } else if self.accept("~") {
            !self.unary()?
        } else if self.accept("(") {
            let value = self.comma()?;
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
            let value = self.variable(&name)?;
            for (operator, step) in [("++", 1), ("--", -1)] {
                if self.accept(operator) {
                    self.variables.assign(&name, value.wrapping_add(step));
                    break;
                }
            }
            return Ok(value);
        }
        let start = self.at;
        while self
            .text
            .get(self.at)
            .is_some_and(|c| c.is_ascii_alphanumeric() || *c == '#')
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

    /// A variable's value, itself an expression.
    fn variable(&mut self, name: &str) -> Result<i64, String> {
        let text = self.variables.value(name);
        if let Some(value) = number(text.trim()) {
            return Ok(value);
        }
        if self.depth >= MAX_DEPTH {
            return Err("expression nested too deeply".to_owned());
        }
        evaluate_at(&text, self.variables, self.depth + 1)
    }
}

/// Decimal, `0x…`, `0…` (octal) and `base#digits`.
fn number(text: &str) -> Option<i64> {
    if let Some((base, digits)) = text.split_once('#') {
        return i64::from_str_radix(digits, base.parse().ok().filter(|b| (2..=36).contains(b))?)
            .ok();
    }
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return i64::from_str_radix(hex, 16).ok();
    }
    text.parse().ok()
}

fn apply(operator: &str, l: i64, r: i64) -> Result<i64, String> {
    Ok(match operator {
        "||" => i64::from(l != 0 || r != 0),
        "&&" => i64::from(l != 0 && r != 0),
        "|" => l | r,
        "^" => l ^ r,
        "&" => l & r,
        "==" => i64::from(l == r),
        "!=" => i64::from(l != r),
        "<=" => i64::from(l <= r),
        ">=" => i64::from(l >= r),
        "<" => i64::from(l < r),
        ">" => i64::from(l > r),
        "<<" => l.wrapping_shl(r as u32),
        ">>" => l.wrapping_shr(r as u32),
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
    use std::collections::BTreeMap;

    impl Variables for BTreeMap<String, String> {
        fn value(&mut self, name: &str) -> String {
            self.get(name).cloned().unwrap_or_default()
        }

        fn assign(&mut self, name: &str, value: i64) {
            self.insert(name.to_owned(), value.to_string());
        }
    }

    #[test]
    fn expressions_have_c_precedence() {
        let mut vars = BTreeMap::from([("n".to_owned(), "5".to_owned())]);
        for (text, value) in [
            ("1 + 2 * 3", 7),
            ("(1+2)*3", 9),
            ("n", 5),
            ("n = n + 1", 6),
            ("n++", 6),
            ("n", 7),
            ("n += 3", 10),
            ("10 % 4 == 2 && !0", 1),
            ("1 << 4 | 1", 17),
            ("5 > 3 ? 10 : 20", 10),
            ("-3 - -4", 1),
            ("0x10", 16),
            ("unset", 0),
            ("", 0),
            ("7 / 2", 3),
            ("1 <= 1", 1),
        ] {
            assert_eq!(evaluate(text, &mut vars), Ok(value), "{text}");
        }
        for text in ["1 +", "1 / 0", "(1", "1 2", "x y", "%"] {
            assert!(evaluate(text, &mut vars).is_err(), "{text}");
        }
        assert!(evaluate(&"(".repeat(10_000), &mut vars).is_err());
        vars.insert("loop".to_owned(), "loop".to_owned());
        assert!(evaluate("loop", &mut vars).is_err());
    }
}
