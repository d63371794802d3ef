//! Check of a file against the shapes of the language: unknown and missing keys, wrong types, and
//! invalid values, each with its place.

use super::actions::Actions;
use super::forms::{Form, Numbers};
use super::problems::{Path, nearest_name, shown, suggestion};
use super::report::Report;
use super::shape::{
    Group, Key, MONKEY, MONKEY_EVENTS, REPEAT, RETRY, STEP_ACTIONS, STEP_OPTIONS, SUB_STEPS, Shape,
};
use super::yaml::{Kind, Node, Written};

pub(super) struct Check<'a> {
    pub(super) actions: &'a Actions<'a>,
    pub(super) report: &'a mut Report,
}

impl Check<'_> {
    /// Checks a value and all below it.
    pub(super) fn check(&mut self, node: &Node, shape: &Shape, path: &Path<'_>) {
        if node.is_unset() {
            return;
        }
        match (shape, &node.kind) {
            (Shape::Scalar(form), Kind::Scalar(text, written)) => {
                self.scalar(node, text, *written, form, path);
            }
            (Shape::Number { min, max }, Kind::Scalar(text, written)) => {
                let number = match written {
                    Written::Quoted => None,
                    _ => text.parse().ok().filter(|n: &u64| (min..=max).contains(&n)),
                };
                if number.is_none() {
                    self.wrong_type(node, shape, path);
                }
            }
            (Shape::Flag, Kind::Scalar(text, written)) => {
                if *written == Written::Quoted || flag(text).is_none() {
                    self.wrong_type(node, shape, path);
                }
            }
            (Shape::Word(words), Kind::Scalar(text, _)) => {
                let mut names = words.iter().map(|(word, _)| *word);
                if node.is_null() {
                    self.wrong_type(node, shape, path);
                } else if !names.clone().any(|word| word == text) {
                    let message = format!("must be {}, not {}", expected(shape), found(node));
                    let near = nearest_name(text, names.by_ref());
                    let help = near.map(|near| format!("did you mean `{near}`?"));
                    self.report.push(node, path, message, help);
                }
            }
            (Shape::List { of, min, max }, Kind::List(items)) => {
                if items.len() < *min {
                    self.report.add(node, path, "the list is empty");
                } else if items.len() > *max {
                    let message = format!("the list has {} items; the limit is {max}", items.len());
                    self.report.add(node, path, message);
                    return;
                }
                for (at, item) in items.iter().enumerate() {
                    self.check(item, of, &Path::Index(path, at));
                }
            }
            (Shape::Map(group), Kind::Map(_)) => self.map(node, group, path),
            (Shape::Map(group), _) if node.is_null() && group.may_be_empty() => {}
            (Shape::Named { name, of }, Kind::Map(entries)) => {
                if entries.is_empty() {
                    self.report.add(node, path, "the map is empty");
                }
                for (key, value) in entries {
                    let text = key.text().unwrap_or_default();
                    let path = Path::Key(path, text);
                    // A key is text, even one that looks like a number.
                    self.scalar(key, text, Written::Quoted, name, &path);
                    self.check(value, of, &path);
                }
            }
            (Shape::Either(scalar, other), kind) => match kind {
                Kind::Scalar(..) if node.is_null() => self.wrong_type(node, shape, path),
                Kind::Scalar(..) => self.check(node, scalar, path),
                _ if fits(other, kind) => self.check(node, other, path),
                _ => self.wrong_type(node, shape, path),
            },
            (Shape::Step, Kind::Map(_)) => self.step(node, path),
            (Shape::Step, Kind::Scalar(text, _)) if !node.is_null() => {
                self.word(node, text, path);
            }
            (Shape::Refused(reason), _) => self.report.add(node, path, *reason),
            _ => self.wrong_type(node, shape, path),
        }
    }

    fn wrong_type(&mut self, node: &Node, shape: &Shape, path: &Path<'_>) {
        let message = format!("must be {}, not {}", expected(shape), found(node));
        self.report.add(node, path, message);
    }

    fn scalar(&mut self, node: &Node, text: &str, written: Written, form: &Form, path: &Path<'_>) {
        let is_text = written != Written::Plain
            || match form.numbers {
                Numbers::Accepted => !node.is_null(),
                Numbers::Refused => !node.is_null() && flag(text).is_none() && !is_number(text),
            };
        if is_text {
            if let Err(message) = (form.check)(text) {
                self.report.add(node, path, message);
            }
            return;
        }
        let message = format!("must be {}, not {}", form.expected, found(node));
        let is_mended = !node.is_null() && (form.check)(text).is_ok();
        let help = is_mended.then(|| format!("write it in quotes: \"{}\"", shown(text)));
        self.report.push(node, path, message, help);
    }

    fn map(&mut self, node: &Node, group: &Group, path: &Path<'_>) {
        let entries = node.entries();
        // Keys that are not missing but misspelled.
        let mut misspelled = Vec::new();
        for (key, value) in entries {
            let name = key.text().unwrap_or_default();
            let path = Path::Key(path, name);
            match group.key(name) {
                Some(known) => self.check(value, &known.shape, &path),
                None => misspelled.extend(self.unknown_key(key, group.names(), &path)),
            }
        }
        for key in group.keys.iter().filter(|key| key.required) {
            if node.get(key.name).is_none() && !misspelled.contains(&key.name) {
                let message = format!("`{}` is missing", key.name);
                self.report.add_with_help(node, path, message, key.doc);
            }
        }
        for choice in group.choices {
            let present = |key: &&(Node, Node)| {
                let name = key.0.text();
                name.is_some_and(|name| choice.keys.contains(&name))
            };
            let mut present = entries.iter().filter(present).map(|(key, _)| key);
            let first = present.next();
            if let (Some(first), Some(second)) = (first, present.next()) {
                let names = [first, second].map(|key| key.text().unwrap_or_default());
                let message = format!("`{}` and `{}` exclude each other", names[0], names[1]);
                let help = (!choice.help.is_empty()).then(|| choice.help.to_owned());
                self.report.push(second, path, message, help);
            }
            let is_misspelled = choice.keys.iter().any(|key| misspelled.contains(key));
            if first.is_none() && choice.required && !is_misspelled {
                let message = format!("{} is missing", one_of(choice.keys.iter().copied()));
                self.report.add(node, path, message);
            }
        }
    }

    /// Reports an unknown key; returns the name that it resembles.
    fn unknown_key<'n>(
        &mut self,
        key: &Node,
        names: impl Iterator<Item = &'n str> + Clone,
        path: &Path<'_>,
    ) -> Option<&'n str> {
        if self.report.is_full() {
            return None;
        }
        let word = key.text().unwrap_or_default();
        let help = match names.clone().next() {
            Some(_) => suggestion(word, names.clone()),
            None => "the map must be empty".to_owned(),
        };
        self.report.add_with_help(key, path, "unknown key", help);
        nearest_name(word, names)
    }

    /// Checks a step that is a word: an action with its value, as typed after `provoke`.
    fn word(&mut self, node: &Node, text: &str, path: &Path<'_>) {
        let name = text.split(':').next().unwrap_or_default().trim();
        if self.actions.has(name) {
            self.action(node, text, path);
        } else if STEP_ACTIONS.iter().any(|key| key.name == name) {
            let message = format!("`{name}` must have a value: `{name}: …`");
            self.report.add(node, path, message);
        } else if !self.report.is_full() {
            let message = format!("`{}` is not an action", shown(name));
            let help = suggestion(name, self.actions.names().chain(names_of(&STEP_ACTIONS)));
            self.report.add_with_help(node, path, message, help);
        }
    }

    fn step(&mut self, node: &Node, path: &Path<'_>) {
        let own = |name: &str| -> Option<&'static Key> {
            let mut keys = STEP_ACTIONS.iter().chain(&STEP_OPTIONS);
            keys.find(|key| key.name == name)
        };
        let is_option = |name: &str| STEP_OPTIONS.iter().any(|key| key.name == name);
        let mut first: Option<&str> = None;
        let mut all_known = true;
        for (key, value) in node.entries() {
            let name = key.text().unwrap_or_default();
            let path = Path::Key(path, name);
            if let Some(known) = own(name) {
                self.check(value, &known.shape, &path);
            } else if self.actions.has(name) {
                self.action_value(value, name, &path);
            } else {
                all_known = false;
                let own = names_of(&STEP_ACTIONS).chain(names_of(&STEP_OPTIONS));
                self.unknown_key(key, self.actions.names().chain(own), &path);
                continue;
            }
            match first {
                _ if is_option(name) => {}
                None => first = Some(name),
                Some(first) => {
                    let message = format!("a step has one action, not `{first}` and `{name}`");
                    let help = "begin the second step with `- `";
                    self.report.add_with_help(key, &path, message, help);
                }
            }
        }
        if first.is_none() && all_known {
            let message = match node.get(SUB_STEPS) {
                Some(_) => "`steps` must have `repeat` in the same step",
                None => "the action is missing",
            };
            self.report.add(node, path, message);
        }
        self.repeat_options(node, first, path);
    }

    /// Checks the options that depend on the action.
    fn repeat_options(&mut self, node: &Node, action: Option<&str>, path: &Path<'_>) {
        let (steps, retry) = (node.entry(SUB_STEPS), node.entry(RETRY));
        match (action, steps, retry) {
            (Some(REPEAT), None, _) => {
                let message = "`repeat` must have `steps` in the same step";
                self.report.add(node, path, message);
            }
            (Some(REPEAT), _, Some((key, _))) => {
                let message = "a `repeat` cannot be retried, because its labels are taken";
                let help = "use `retry` at the steps in it";
                self.report
                    .add_with_help(key, &Path::Key(path, RETRY), message, help);
            }
            (Some(action), Some((key, _)), _) if action != REPEAT => {
                let message = format!("`{action}` does not have steps, only `repeat` does");
                self.report.add(key, &Path::Key(path, SUB_STEPS), message);
            }
            _ => {}
        }
    }

    /// Checks the value of an action of `provoke`.
    fn action_value(&mut self, node: &Node, name: &str, path: &Path<'_>) {
        if matches!(node.kind, Kind::Map(_)) {
            if name != MONKEY {
                let message = format!("`{name}` does not accept a map");
                return self.report.add(node, path, message);
            }
            let before = self.report.len();
            self.map(node, &MONKEY_EVENTS, path);
            if self.report.len() > before {
                return;
            }
        }
        match action_text(name, node) {
            Some(text) => self.action(node, &text, path),
            // A variable in it is not set.
            None if node.items().iter().any(Node::is_unset) => {}
            None => self.report.add(node, path, "must be a list of numbers"),
        }
    }

    fn action(&mut self, node: &Node, text: &str, path: &Path<'_>) {
        let checked = match text.contains(char::is_control) {
            true => Err("contains a control character".to_owned()),
            false => (self.actions.check)(text),
        };
        if let Err(message) = checked {
            self.report.add(node, path, message);
        }
    }
}

fn names_of<'a>(keys: &'static [Key]) -> impl Iterator<Item = &'a str> + Clone {
    keys.iter().map(|key| key.name)
}

/// Returns the text form of an action: `rotate:2`, `monkey:50,seed=7`. Returns `None` if the value
/// does not have one.
pub(super) fn action_text(name: &str, value: &Node) -> Option<String> {
    let value = match &value.kind {
        _ if value.is_null() => return Some(name.to_owned()),
        Kind::Scalar(..) => value.text()?.to_owned(),
        Kind::List(items) => {
            let numbers = items.iter().map(Node::text);
            numbers.collect::<Option<Vec<_>>>()?.join(",")
        }
        Kind::Map(_) => {
            let mut text = value.get("events")?.text()?.to_owned();
            for option in ["seed", "throttle"] {
                if let Some(value) = value.get(option) {
                    text.push_str(&format!(",{option}={}", value.text()?));
                }
            }
            text
        }
    };
    Some(format!("{name}:{value}"))
}

/// Parses `true` or `false`.
pub(super) fn flag(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// Returns whether YAML takes a word without quotes for a number.
fn is_number(text: &str) -> bool {
    let digits = text.trim_start_matches(['+', '-']);
    let prefixed = |prefix, radix| {
        let digits: Option<&str> = digits.strip_prefix(prefix);
        digits.is_some_and(|digits| u128::from_str_radix(digits, radix).is_ok())
    };
    let begins = digits
        .trim_start_matches('.')
        .starts_with(|c: char| c.is_ascii_digit());
    prefixed("0x", 16) || prefixed("0o", 8) || (begins && text.parse::<f64>().is_ok())
}

fn fits(shape: &Shape, kind: &Kind) -> bool {
    match kind {
        Kind::Scalar(..) => false,
        Kind::List(_) => matches!(shape, Shape::List { .. }),
        Kind::Map(_) => matches!(shape, Shape::Map(_) | Shape::Named { .. }),
    }
}

/// Returns what a value must be, with an article.
fn expected(shape: &Shape) -> String {
    match shape {
        Shape::Scalar(form) => form.expected.to_owned(),
        Shape::Number { min, max } if min == max => format!("the number {min}"),
        Shape::Number { min, max } => format!("a whole number from {min} to {max}"),
        Shape::Flag => "`true` or `false`".to_owned(),
        Shape::Word(words) => one_of(words.iter().map(|(word, _)| *word)),
        Shape::List {
            of: Shape::Step, ..
        } => "a list of steps".to_owned(),
        Shape::List { .. } => "a list".to_owned(),
        Shape::Map(group) => match group.keys {
            [] => "an empty map".to_owned(),
            [only] => format!("a map with the key `{}`", only.name),
            [a, b, ..] => format!("a map with keys such as `{}` and `{}`", a.name, b.name),
        },
        Shape::Named { .. } => "a map by device class".to_owned(),
        Shape::Either(Shape::Refused(_), other) => expected(other),
        Shape::Either(scalar, other) => format!("{}, or {}", expected(scalar), expected(other)),
        Shape::Step => "an action, or a map with an action".to_owned(),
        Shape::Refused(reason) => (*reason).to_owned(),
    }
}

/// Returns what a value is, with an article.
fn found(node: &Node) -> String {
    match &node.kind {
        Kind::List(_) => "a list".to_owned(),
        Kind::Map(_) => "a map".to_owned(),
        _ if node.is_null() => "an empty value".to_owned(),
        Kind::Scalar(text, Written::Plain) if is_number(text) => format!("the number {text}"),
        Kind::Scalar(text, Written::Plain) if flag(text).is_some() => format!("`{text}`"),
        Kind::Scalar(text, _) => format!("the text `{}`", shown(text)),
    }
}

/// Returns `a`, `b` or `c`.
fn one_of<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let mut words: Vec<String> = words.map(|word| format!("`{word}`")).collect();
    match (words.pop(), words.is_empty()) {
        (Some(last), false) => format!("{} or {last}", words.join(", ")),
        (last, _) => last.unwrap_or_default(),
    }
}
