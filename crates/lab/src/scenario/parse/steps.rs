//! Steps, and the labels of their snapshots.

use super::super::check::action_text;
use super::super::forms;
use super::super::problems::{Path, shown};
use super::super::report::Report;
use super::super::shape::{REPEAT, RETRY, STEP_OPTIONS, SUB_STEPS};
use super::super::yaml::{Kind, Node};
use super::super::{Step, What};

/// Labels of the snapshots of all steps, in order.
#[derive(Debug, Default)]
pub(super) struct Labels {
    all: Vec<Label>,
}

#[derive(Debug)]
struct Label {
    name: String,
    /// The label in the file, and its place.
    node: Node,
    path: String,
    /// Number of iterations, inside a `repeat`.
    iterations: Option<u32>,
}

impl Labels {
    /// Returns the iterations of a label: `Some(None)` outside of a `repeat`, `None` if there is
    /// no such label. `round-3` is a label of the third iteration of `round`.
    pub(super) fn find(&self, name: &str) -> Option<Option<u32>> {
        let label = self.all.iter().find(|label| label.name == name);
        match label {
            Some(label) => Some(label.iterations),
            None => self.iteration(name).map(|_| None),
        }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.all.iter().map(|label| label.name.as_str())
    }

    /// Returns the label inside a `repeat` of which this one has the form of an iteration.
    fn repeated(&self, name: &str) -> Option<&Label> {
        let (base, number) = name.rsplit_once('-')?;
        let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        let mut of_repeats = self.all.iter().filter(|label| label.name == base);
        of_repeats.find(|label| is_number && label.iterations.is_some())
    }

    /// Returns the label inside a `repeat` of which this one is an iteration.
    fn iteration(&self, name: &str) -> Option<&Label> {
        let (base, number) = name.rsplit_once('-')?;
        let number: u32 = number
            .parse()
            .ok()
            .filter(|_| !number.starts_with(['0', '+']))?;
        let mut of_repeats = self.all.iter().filter(|label| label.name == base);
        of_repeats.find(|label| label.iterations.is_some_and(|n| (1..=n).contains(&number)))
    }
}

/// Conversion of the steps of one list, with what surrounds them.
struct Converter<'a> {
    labels: Labels,
    report: &'a mut Report,
    /// Whether the steps are recorded, so that snapshots are possible.
    is_recorded: bool,
}

/// Converts the steps under a key of the scenario.
pub(super) fn convert(root: &Node, key: &str, report: &mut Report) -> (Vec<Step>, Labels) {
    let mut converter = Converter {
        labels: Labels::default(),
        report,
        is_recorded: key == "steps",
    };
    let path = Path::Key(&Path::Root, key);
    let steps = match root.get(key) {
        Some(node) => converter.steps(node, &path, &[]),
        None => Vec::new(),
    };
    converter.check_iterations();
    (steps, converter.labels)
}

impl Converter<'_> {
    /// Converts the steps of a list; `repeats` are the iterations of the surrounding ones.
    fn steps(&mut self, list: &Node, path: &Path<'_>, repeats: &[u32]) -> Vec<Step> {
        let steps = list.items().iter().enumerate();
        steps
            .filter_map(|(at, node)| self.step(node, &Path::Index(path, at), repeats))
            .collect()
    }

    fn step(&mut self, node: &Node, path: &Path<'_>, repeats: &[u32]) -> Option<Step> {
        let option = |name| node.get(name).and_then(Node::text);
        Some(Step {
            what: match &node.kind {
                Kind::Map(entries) => {
                    let is_option = |name: &str| STEP_OPTIONS.iter().any(|key| key.name == name);
                    let action =
                        |(key, _): &&(Node, Node)| key.text().is_some_and(|name| !is_option(name));
                    let (key, value) = entries.iter().find(action)?;
                    let name = key.text()?;
                    self.what(name, value, node, path, repeats)?
                }
                _ => What::Act(node.text()?.to_owned()),
            },
            timeout: option("timeout").and_then(|text| forms::time(text).ok()),
            retry: option(RETRY).and_then(|n| n.parse().ok()).unwrap_or(0),
            line: node.line,
            path: path.to_string(),
        })
    }

    fn what(
        &mut self,
        name: &str,
        value: &Node,
        step: &Node,
        path: &Path<'_>,
        repeats: &[u32],
    ) -> Option<What> {
        Some(match name {
            "wait-for" => {
                let text = |key| value.get(key).and_then(Node::text);
                if let Some(activity) = text("activity") {
                    What::WaitForActivity(activity.to_owned())
                } else if let Some(log) = text("log") {
                    What::WaitForLog(log.to_owned())
                } else {
                    What::WaitForQuiet(forms::time(text("quiet")?).ok()?)
                }
            }
            "shell" => What::Shell(super::texts(value)),
            "sleep" => What::Sleep(forms::time(value.text()?).ok()?),
            "snapshot" => {
                let label = value.text()?;
                self.label(label, value, &Path::Key(path, name), repeats);
                What::Snapshot(label.to_owned())
            }
            REPEAT => {
                let times: u32 = value.text()?.parse().ok()?;
                let inner = [repeats, &[times]].concat();
                let path = Path::Key(path, SUB_STEPS);
                What::Repeat {
                    times,
                    steps: self.steps(step.get(SUB_STEPS)?, &path, &inner),
                }
            }
            action => What::Act(action_text(action, value)?),
        })
    }

    /// Adds the label of a snapshot.
    fn label(&mut self, name: &str, node: &Node, path: &Path<'_>, repeats: &[u32]) {
        if !self.is_recorded {
            let message = "the setup is not recorded, so it cannot have snapshots";
            return self.report.add(node, path, message);
        }
        if (forms::LABEL.check)(name).is_err() {
            return;
        }
        if repeats.len() > 1 {
            let message = "a snapshot cannot be in a `repeat` inside another";
            return self.report.add(node, path, message);
        }
        if let Some(first) = self.labels.all.iter().find(|label| label.name == name) {
            let message = format!(
                "the label `{}` occurs twice; first in line {}",
                shown(name),
                first.node.line
            );
            return self.report.add(node, path, message);
        }
        self.labels.all.push(Label {
            name: name.to_owned(),
            node: node.clone(),
            path: path.to_string(),
            iterations: repeats.first().copied(),
        });
    }

    /// Checks that no label is that of an iteration, such as `round-3` of `round`.
    fn check_iterations(&mut self) {
        for label in self
            .labels
            .all
            .iter()
            .filter(|label| label.iterations.is_none())
        {
            if let Some(repeated) = self.labels.repeated(&label.name) {
                let message = format!(
                    "the label `{}` looks like that of an iteration of `{}` in line {}",
                    shown(&label.name),
                    shown(&repeated.name),
                    repeated.node.line
                );
                self.report.add(&label.node, &label.path, message);
            }
        }
    }
}
