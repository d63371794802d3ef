//! A scenario from its file. First the file is checked against the shapes of the language; then
//! its values are converted, and what refers to something else is checked.
//!
//! | module | contents |
//! |---|---|
//! | `steps` | steps, and the labels of their snapshots |
//! | `budgets` | budgets and device classes |

mod budgets;
mod steps;

use std::time::Duration;

use super::actions::Actions;
use super::check::{Check, flag};
use super::matrix::{self, Cell};
use super::problems::{Path, Problems};
use super::report::Report;
use super::shape::{SCENARIO, Shape};
use super::yaml::Node;
use super::{Conditions, Install, Keep, Measure, Record, Repeats, Scenario, Target};
use super::{forms, variables, yaml};

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(15 * 60);
const DEFAULT_COOLING: Duration = Duration::from_secs(5 * 60);
const DEFAULT_REPEATS: Repeats = Repeats { min: 3, max: 5 };

impl Scenario {
    /// Parses a scenario's file into one scenario, or one for each cell of its matrix.
    /// `environment` returns the values of variables; `origin` is the name of the file for errors.
    ///
    /// # Errors
    /// Returns all errors of the file, or the first if it is not YAML. Errors of several cells are
    /// those of the first cell with errors.
    pub fn parse(
        text: &str,
        origin: &str,
        environment: &dyn Fn(&str) -> Option<String>,
        actions: &Actions<'_>,
    ) -> Result<Vec<Scenario>, Problems> {
        let mut root = yaml::parse(text).map_err(|problem| Problems {
            origin: origin.to_owned(),
            list: vec![problem],
        })?;
        let mut report = Report::default();
        matrix::replace(&mut root, environment, &mut report);
        if !report.is_empty() {
            return Err(report.finish(origin));
        }
        let cells = matrix::cells(&root);
        let scenario = |cell: Cell| {
            let variable = |name: &str| {
                let own = cell.iter().find(|(key, _)| key == name);
                own.map_or_else(|| environment(name), |(_, value)| Some(value.clone()))
            };
            let scenario = Scenario::of_cell(root.clone(), origin, &variable, actions)?;
            Ok(scenario.named_after(cell))
        };
        cells.into_iter().map(scenario).collect()
    }

    /// Parses the scenario of one cell of the matrix.
    fn of_cell(
        mut root: Node,
        origin: &str,
        environment: &dyn Fn(&str) -> Option<String>,
        actions: &Actions<'_>,
    ) -> Result<Scenario, Problems> {
        let mut report = Report::default();
        variables::replace(&mut root, &Path::Root, environment, &mut report);
        let mut check = Check {
            actions,
            report: &mut report,
        };
        check.check(&root, &Shape::Map(&SCENARIO), &Path::Root);
        matrix::check(&root, &mut report);
        let scenario = convert(&root, &mut report);
        match scenario {
            Some(scenario) if report.is_empty() => Ok(scenario),
            _ => {
                if report.is_empty() {
                    report.add(&root, &Path::Root, "the scenario is not valid");
                }
                Err(report.finish(origin))
            }
        }
    }
}

/// Converts a checked file. A value that the check refused is left out here.
fn convert(root: &Node, report: &mut Report) -> Option<Scenario> {
    let measure = measure(root);
    let repeats = repeats(root, report);
    let setup = steps::setup(root, report);
    let (steps, triggers, labels) = steps::convert(root, report);
    let devices = budgets::devices(root, report);
    // Without all labels, a reference to one can be right.
    let is_whole = !report.concerns("steps") && !report.concerns("triggers");
    let labels = is_whole.then_some(&labels);
    let budgets = budgets::convert(root, measure, labels, report);
    Some(Scenario {
        name: root.owned_text_of("name")?,
        cell: Vec::new(),
        target: target(root.get("target")?)?,
        install: match root.get("install") {
            Some(node) => Some(install(node)?),
            None => None,
        },
        record: record(root.get("record"))?,
        conditions: conditions(root.get("conditions"))?,
        measure,
        repeats,
        timeout: match root.get("timeout") {
            Some(node) => forms::time(node.text()?).ok()?,
            None => DEFAULT_TIMEOUT,
        },
        setup,
        steps,
        triggers,
        budgets,
        keep: match root.text_of("keep") {
            Some("on-failure") => Keep::OnFailure,
            _ => Keep::Always,
        },
        devices,
    })
}

fn target(node: &Node) -> Option<Target> {
    let name = node.owned_text_of("name").map(Target::Name);
    name.or_else(|| node.owned_text_of("package").map(Target::Package))
}

fn install(node: &Node) -> Option<Install> {
    Some(Install {
        apk: node.get("apk")?.texts(),
        keep_data: node.text_of("data") != Some("remove"),
    })
}

fn record(node: Option<&Node>) -> Option<Record> {
    let Some(node) = node else {
        return Some(Record::default());
    };
    let size = |key| match node.get(key) {
        Some(node) => forms::size(node.text()?).ok().map(Some),
        None => Some(None),
    };
    Some(Record {
        config: node.owned_text_of("config"),
        interval: size("interval")?,
        heaps: node.get("heaps").map(Node::texts).unwrap_or_default(),
        shmem_size: size("shmem-size")?,
        no_check: node.text_of("no-check").and_then(flag) == Some(true),
        max_file: size("max-file")?,
    })
}

fn conditions(node: Option<&Node>) -> Option<Conditions> {
    let value = |key| node.and_then(|node| node.get(key));
    let is_off = |key| value(key).and_then(Node::text) == Some("off");
    Some(Conditions {
        awake: value("awake").and_then(Node::text).and_then(flag) == Some(true),
        no_animations: is_off("animations"),
        no_doze: is_off("doze"),
        cool: match value("cool") {
            Some(node) => forms::time(node.text()?).ok()?,
            None => DEFAULT_COOLING,
        },
    })
}

fn measure(root: &Node) -> Measure {
    let Some(node) = root.get("measure") else {
        return Measure {
            native: true,
            ..Measure::default()
        };
    };
    let words = node.texts();
    let has = |word: &str| words.iter().any(|w| w == word);
    Measure {
        native: has("native"),
        java: has("java"),
        meminfo: has("meminfo"),
        smaps: has("smaps"),
        gc: has("gc"),
    }
}

fn repeats(root: &Node, report: &mut Report) -> Repeats {
    let Some(node) = root.get("repeats") else {
        return DEFAULT_REPEATS;
    };
    let number = |node: &Node| node.text()?.parse::<usize>().ok();
    if let Some(runs) = number(node) {
        return Repeats {
            min: runs,
            max: runs,
        };
    }
    let min = node.get("min").and_then(number);
    let max = node.get("max").and_then(number);
    if let (Some(min), Some(max)) = (min, max)
        && min > max
    {
        let path = Path::Key(&Path::Root, "repeats");
        let message = format!("`min` must not exceed `max`, but {min} exceeds {max}");
        report.add(node, &path, message);
    }
    Repeats {
        min: min.unwrap_or(DEFAULT_REPEATS.min.min(max.unwrap_or(usize::MAX))),
        max: max.unwrap_or(DEFAULT_REPEATS.max.max(min.unwrap_or(0))),
    }
}
