//! Steps and triggers, and the labels of their snapshots and dumps.

use super::super::check::action_text;
use super::super::problems::{Path, shown};
use super::super::report::Report;
use super::super::shape::{REPEAT, RETRY, STEP_OPTIONS, SUB_STEPS};
use super::super::yaml::{Kind, Node};
use super::super::{Condition, DumpKind, Step, Trigger, What, forms};

/// Labels of the snapshots and dumps of all steps, in order.
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
    /// A snapshot has all measured data, a dump only the Java heap.
    is_dump: bool,
}

impl Labels {
    /// Returns whether a label, or the one of which it is an iteration, is that of a dump.
    pub(super) fn is_dump(&self, name: &str) -> bool {
        let mut same = self.all.iter().filter(|label| label.name == name);
        let label = same.next().or_else(|| self.iteration(name));
        label.is_some_and(|label| label.is_dump)
    }

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
    part: Part,
}

/// The part of a scenario that has the steps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Not recorded.
    Setup,
    Steps,
    Trigger,
}

/// Converts the setup.
pub(super) fn setup(root: &Node, report: &mut Report) -> Vec<Step> {
    Converter::new(Part::Setup, report).of_key(root, "setup")
}

/// Converts the steps of a run, and the triggers.
pub(super) fn convert(root: &Node, report: &mut Report) -> (Vec<Step>, Vec<Trigger>, Labels) {
    let mut converter = Converter::new(Part::Steps, report);
    let steps = converter.of_key(root, "steps");
    converter.part = Part::Trigger;
    let list = root.get("triggers").map(Node::items).unwrap_or_default();
    let path = Path::Key(&Path::Root, "triggers");
    let triggers = list.iter().enumerate();
    let triggers = triggers
        .filter_map(|(at, node)| converter.trigger(node, &Path::Index(&path, at)))
        .collect();
    converter.check_iterations();
    (steps, triggers, converter.labels)
}

impl<'a> Converter<'a> {
    fn new(part: Part, report: &'a mut Report) -> Self {
        Converter {
            labels: Labels::default(),
            report,
            part,
        }
    }

    fn of_key(&mut self, root: &Node, key: &str) -> Vec<Step> {
        let path = Path::Key(&Path::Root, key);
        let list = root.get(key);
        list.map_or_else(Vec::new, |list| self.steps(list, &path, &[]))
    }

    fn trigger(&mut self, node: &Node, path: &Path<'_>) -> Option<Trigger> {
        let times = match node.get("times") {
            Some(times) => times.text()?.parse().ok()?,
            None => 1,
        };
        let condition = if let Some(pattern) = node.owned_text_of("log") {
            Condition::Log(pattern)
        } else if let Some(name) = node.owned_text_of("perfetto") {
            Condition::Perfetto(name)
        } else if let Some(excess) = node.get("meminfo") {
            Condition::Meminfo {
                row: excess.owned_text_of("row")?,
                over: forms::size(excess.get("over")?.text()?).ok()?,
            }
        } else {
            if times > 1 && node.get("oom").is_some() {
                let message = "an app reports only its first OutOfMemoryError";
                let node = node.get("times").unwrap_or(node);
                self.report.add(node, &Path::Key(path, "times"), message);
            }
            Condition::OutOfMemory
        };
        let list = node.get(SUB_STEPS)?;
        let repeats: &[u32] = if times > 1 { &[times] } else { &[] };
        Some(Trigger {
            condition,
            steps: self.steps(list, &Path::Key(path, SUB_STEPS), repeats),
            times,
            line: node.line,
            path: path.to_string(),
        })
    }

    /// Converts the steps of a list; `repeats` are the iterations of the surrounding ones.
    fn steps(&mut self, list: &Node, path: &Path<'_>, repeats: &[u32]) -> Vec<Step> {
        let steps = list.items().iter().enumerate();
        steps
            .filter_map(|(at, node)| self.step(node, &Path::Index(path, at), repeats))
            .collect()
    }

    fn step(&mut self, node: &Node, path: &Path<'_>, repeats: &[u32]) -> Option<Step> {
        let step = Step {
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
            timeout: node
                .text_of("timeout")
                .and_then(|text| forms::time(text).ok()),
            retry: node
                .text_of(RETRY)
                .and_then(|n| n.parse().ok())
                .unwrap_or(0),
            line: node.line,
            path: path.to_string(),
        };
        let is_quick = matches!(
            step.what,
            What::Snapshot(_) | What::Dump { .. } | What::Shell(_)
        );
        if self.part == Part::Trigger && !is_quick {
            let message = "the steps of a trigger are `snapshot`, `dump` and `shell`, because \
                           those of the run go on meanwhile";
            self.report.add(node, path, message);
        }
        Some(step)
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
                if let Some(activity) = value.owned_text_of("activity") {
                    What::WaitForActivity(activity)
                } else if let Some(log) = value.owned_text_of("log") {
                    What::WaitForLog(log)
                } else {
                    What::WaitForQuiet(forms::time(value.text_of("quiet")?).ok()?)
                }
            }
            "shell" => What::Shell(value.texts()),
            "sleep" => What::Sleep(forms::time(value.text()?).ok()?),
            "snapshot" => {
                let label = value.text()?;
                self.label(label, value, &Path::Key(path, name), repeats, false);
                What::Snapshot(label.to_owned())
            }
            "dump" => {
                let path = Path::Key(path, name);
                let labelled = |word| Some((word, value.get(word)?));
                let map = labelled("java").or_else(|| labelled("hprof"));
                // The label of a word is the word.
                let (word, node) = map.unwrap_or((value.text().unwrap_or_default(), value));
                let label = node.text()?;
                self.label(label, node, &path, repeats, true);
                What::Dump {
                    kind: match word {
                        "hprof" => DumpKind::Hprof,
                        _ => DumpKind::Java,
                    },
                    label: label.to_owned(),
                }
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

    /// Adds the label of a snapshot or dump.
    fn label(&mut self, name: &str, node: &Node, path: &Path<'_>, repeats: &[u32], is_dump: bool) {
        if self.part == Part::Setup {
            let message = "the setup is not recorded, so it cannot have snapshots and dumps";
            return self.report.add(node, path, message);
        }
        if (forms::LABEL.check)(name).is_err() {
            return;
        }
        if repeats.len() > 1 {
            let message = "a label cannot be in a `repeat` inside another";
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
            is_dump,
        });
    }

    /// Checks that no label is that of an iteration, such as `round-3` of `round`.
    fn check_iterations(&mut self) {
        let labels = self.labels.all.iter();
        for label in labels.filter(|label| label.iterations.is_none()) {
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
