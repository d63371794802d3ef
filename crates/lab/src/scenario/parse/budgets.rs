//! Budgets and device classes.

use std::collections::HashMap;

use super::super::problems::{Path, shown, suggestion};
use super::super::report::Report;
use super::super::yaml::{Kind, Node};
use super::super::{Budget, DeviceClass, Figure, JavaMeasure, Limit, Measure};
use super::super::{DEFAULT_CLASS, END, forms};
use super::steps::Labels;
use crate::results::Unit;
use crate::verdict::MIN_ROUNDS;

/// Converts the device classes.
pub(super) fn devices(root: &Node, report: &mut Report) -> Vec<DeviceClass> {
    let Some(devices) = root.get("devices") else {
        return Vec::new();
    };
    let path = Path::Key(&Path::Root, "devices");
    let class = |(key, node): &(Node, Node)| {
        let name = key.text()?;
        if matches!(&node.kind, Kind::Map(entries) if entries.is_empty()) || node.is_null() {
            let path = Path::Key(&path, name);
            report.add(
                node,
                &path,
                "a device class must have `model`, `sdk` or `ram`",
            );
        }
        Some(DeviceClass {
            name: name.to_owned(),
            model: node.owned_text_of("model"),
            sdk: node.text_of("sdk").and_then(|text| forms::sdk(text).ok()),
            ram: node.text_of("ram").and_then(|text| forms::ram(text).ok()),
        })
    };
    devices.entries().iter().filter_map(class).collect()
}

/// Converts the budgets. References to labels are not checked without `labels`.
pub(super) fn convert(
    root: &Node,
    measure: Measure,
    labels: Option<&Labels>,
    report: &mut Report,
) -> Vec<Budget> {
    let path = Path::Key(&Path::Root, "budgets");
    let mut converter = Converter {
        root,
        measure,
        labels,
        report,
        names: HashMap::new(),
    };
    let list = root.get("budgets").map(Node::items).unwrap_or_default();
    let budgets = list.iter().enumerate();
    budgets
        .filter_map(|(at, node)| converter.budget(node, &Path::Index(&path, at)))
        .collect()
}

struct Converter<'a> {
    root: &'a Node,
    measure: Measure,
    labels: Option<&'a Labels>,
    report: &'a mut Report,
    /// Names with the lines of their budgets.
    names: HashMap<String, usize>,
}

impl Converter<'_> {
    fn budget(&mut self, node: &Node, path: &Path<'_>) -> Option<Budget> {
        if let Some(name) = node.get("name")
            && let Some(text) = name.text()
            && let Some(first) = self.names.insert(text.to_owned(), name.line)
        {
            let message = format!("`{}` occurs twice; first in line {first}", shown(text));
            self.report.add(name, &Path::Key(path, "name"), message);
        }
        self.moments(node, path);
        let (figure, key) = figure(node)?;
        self.source(key, node, path, &figure);
        let limit = self.limit(node, figure.unit(), path);
        Some(Budget {
            name: node.owned_text_of("name")?,
            limit: limit?,
            figure,
            at: node.owned_text_of("at").unwrap_or_else(|| END.to_owned()),
            per: node.owned_text_of("per"),
            line: node.line,
        })
    }

    /// Checks the references to labels.
    fn moments(&mut self, node: &Node, path: &Path<'_>) {
        let Some(labels) = self.labels else {
            return;
        };
        for key in ["at", "per"] {
            let Some((node, label)) = node.get(key).and_then(|node| Some((node, node.text()?)))
            else {
                continue;
            };
            let path = Path::Key(path, key);
            match (labels.find(label), key) {
                (_, "at") if label == END => {}
                (Some(_), "at") => {}
                (Some(Some(times)), _) if times as usize >= MIN_ROUNDS => {}
                (Some(Some(times)), _) => {
                    let message = format!(
                        "growth needs at least {MIN_ROUNDS} iterations, and `{}` has {times}",
                        shown(label)
                    );
                    let help = format!("repeat it {MIN_ROUNDS} times or more");
                    self.report.add_with_help(node, &path, message, help);
                }
                (Some(None), _) => {
                    let message = format!(
                        "the label `{}` is not in a `repeat` of {MIN_ROUNDS} or more",
                        shown(label)
                    );
                    self.report.add(node, &path, message);
                }
                (None, _) => {
                    let message = format!("no snapshot or dump has the label `{}`", shown(label));
                    let end = (key == "at").then_some(END);
                    let help = suggestion(label, labels.names().chain(end));
                    self.report.add_with_help(node, &path, message, help);
                }
            }
        }
    }

    /// Checks that the data of the figure is captured.
    fn source(&mut self, key: &Node, budget: &Node, path: &Path<'_>, figure: &Figure) {
        let of_key = |key| budget.get(key).map(|node| (Path::Key(path, key), node));
        if let Some((path, node)) = of_key("at").or_else(|| of_key("per"))
            && let Some(label) = node.text()
            && label != END
        {
            let Some(labels) = self.labels else {
                return;
            };
            if labels.is_dump(label) {
                if !matches!(figure, Figure::Java { .. } | Figure::Leaks) {
                    let message = format!("the dump `{}` has only the Java heap", shown(label));
                    let help = "use the label of a snapshot";
                    self.report.add_with_help(node, &path, message, help);
                }
                return;
            }
        }
        let (word, is_measured) = match figure {
            Figure::Native { .. } => ("native", self.measure.native),
            Figure::Java { .. } | Figure::Leaks => ("java", self.measure.java),
            Figure::Meminfo { .. } => ("meminfo", self.measure.meminfo),
            Figure::LiveSet => ("gc", self.measure.gc),
        };
        // A list with errors has no reliable contents.
        if is_measured || self.report.concerns("measure") {
            return;
        }
        // Not the whole list: several budgets can each lack a word.
        let message = format!("needs `{word}` in `measure`");
        let help = match self.root.get("measure") {
            Some(_) => format!("add `{word}` to the list"),
            None => format!("write the list `measure`, with `native` and `{word}`"),
        };
        self.report.add_with_help(key, path, message, help);
    }

    fn limit(&mut self, node: &Node, unit: Unit, path: &Path<'_>) -> Option<Limit> {
        if let Some(change) = node.get("change") {
            return forms::percent(change.text()?).ok().map(Limit::Change);
        }
        let limit = node.get("limit")?;
        let path = Path::Key(path, "limit");
        let mut values = Vec::new();
        if let Some(text) = limit.text() {
            let value = self.amount(text, unit, limit, &path);
            values.extend(value.map(|value| (DEFAULT_CLASS.to_owned(), value)));
        }
        for (key, node) in limit.entries() {
            let (class, text) = (key.text()?, node.text()?);
            let path = Path::Key(&path, class);
            let classes = self.root.get("devices").map_or(&[][..], Node::entries);
            let names = classes.iter().filter_map(|(key, _)| key.text());
            let mut names = names.filter(|name| *name != DEFAULT_CLASS);
            if class != DEFAULT_CLASS && !names.clone().any(|name| name == class) {
                let help = match names.next() {
                    Some(first) => suggestion(
                        class,
                        std::iter::once(first).chain(names).chain([DEFAULT_CLASS]),
                    ),
                    None => "add it to `devices`".to_owned(),
                };
                self.report
                    .add_with_help(key, &path, "unknown device class", help);
            }
            let value = self.amount(text, unit, node, &path);
            values.extend(value.map(|value| (class.to_owned(), value)));
        }
        values.sort_by_key(|(class, _)| class == DEFAULT_CLASS);
        Some(Limit::Value(values))
    }

    /// Parses a limit in the unit of its figure.
    fn amount(&mut self, text: &str, unit: Unit, node: &Node, path: &Path<'_>) -> Option<f64> {
        let amount = match unit {
            Unit::Bytes => forms::bytes(text).map(|bytes| bytes as f64),
            Unit::Objects | Unit::Leaks => forms::count(text),
        };
        // The check has reported what is neither a size nor a count.
        let is_amount = forms::bytes(text).is_ok() || forms::count(text).is_ok();
        match amount {
            Err(message) if is_amount => {
                self.report.add(node, path, message);
                None
            }
            amount => amount.ok(),
        }
    }
}

/// Returns the figure with the key that names it.
fn figure(node: &Node) -> Option<(Figure, &Node)> {
    node.entries().iter().find_map(|(key, value)| {
        let figure = match key.text()? {
            "native" => Figure::Native {
                library: value.owned_text_of("library"),
                function: value.owned_text_of("function"),
                heap: value.owned_text_of("heap"),
            },
            "java" => Figure::Java {
                class: value.owned_text_of("class").unwrap_or_default(),
                measure: match value.text_of("measure") {
                    Some("shallow") => JavaMeasure::Shallow,
                    Some("retained") => JavaMeasure::Retained,
                    _ => JavaMeasure::Instances,
                },
            },
            "leaks" => Figure::Leaks,
            "meminfo" => Figure::Meminfo {
                row: value.owned_text_of("row").unwrap_or_default(),
            },
            "live-set" => Figure::LiveSet,
            _ => return None,
        };
        Some((figure, key))
    })
}
