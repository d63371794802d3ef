//! Keys of a file, except those of steps and budgets.

use super::super::forms;
use super::budgets::BUDGET;
use super::grammar::{Group, NAME, SIZE, STEPS, Shape, TEXT, TIME, key, list, one_of, required};
use super::steps::TRIGGER;

/// Maximum number of runs.
const MAX_RUNS: u64 = 100;

/// The key whose values are variables of the file.
pub(in crate::scenario) const MATRIX: &str = "matrix";
/// Maximum number of combinations of its values.
pub(in crate::scenario) const MAX_CELLS: usize = 100;

const RUNS: Shape = Shape::Number {
    min: 1,
    max: MAX_RUNS,
};

pub(in crate::scenario) static SCENARIO: Group = Group {
    choices: &[],
    keys: &[
        required(
            "version",
            "Version of the language: 1",
            Shape::Number { min: 1, max: 1 },
        ),
        required(
            "name",
            "Stable name; the history of the figures depends on it",
            NAME,
        ),
        required("target", "The app", TARGET),
        key("install", "App to install before the first run", INSTALL),
        key("record", "Options of the recording", RECORD),
        key(
            "conditions",
            "Conditions of the device during a run; its settings are restored",
            CONDITIONS,
        ),
        key(
            "measure",
            "Data to capture at each snapshot [default: native]",
            list(
                &Shape::Word(&[
                    ("native", "native heap profile"),
                    ("java", "Java heap dump"),
                    ("meminfo", "memory by category: dumpsys meminfo"),
                    ("smaps", "memory by mapping: /proc/PID/smaps"),
                    ("gc", "log of garbage collections"),
                ]),
                1,
                5,
            ),
        ),
        key(
            "repeats",
            "Number of runs: a number, or the minimum and maximum [default: 3 to 5]",
            Shape::Either(&RUNS, &Shape::Map(&REPEATS)),
        ),
        key("timeout", "Time limit of one run [default: 15m]", TIME),
        key("setup", "Steps before the first run, not recorded", STEPS),
        required("steps", "Steps of one run, in order", STEPS),
        key(
            "triggers",
            "Steps that run when something happens during a run",
            list(&Shape::Map(&TRIGGER), 1, 20),
        ),
        key(
            "budgets",
            "Limits of figures; a scenario without budgets only measures",
            list(&Shape::Map(&BUDGET), 0, 200),
        ),
        key(
            "keep",
            "Recordings to keep [default: always]",
            Shape::Word(&[
                ("always", "all"),
                (
                    "on-failure",
                    "only if a budget is not within its limit, or a run failed",
                ),
            ]),
        ),
        key(
            MATRIX,
            "Values of variables; each combination is a scenario, and ${NAME} its value",
            Shape::Named {
                name: &forms::VARIABLE,
                of: &list(&Shape::Scalar(&forms::CELL_VALUE), 1, MAX_CELLS),
            },
        ),
        key(
            "devices",
            "Device classes; the first whose conditions are met names the device",
            Shape::Named {
                name: &forms::CLASS_NAME,
                of: &Shape::Map(&DEVICE),
            },
        ),
    ],
};

const TARGET: Shape = Shape::Map(&Group {
    choices: &[one_of(&["name", "package"])],
    keys: &[
        key(
            "name",
            "One process by name, as --name",
            Shape::Scalar(&forms::PROCESS),
        ),
        key(
            "package",
            "All processes of a package, as --package",
            Shape::Scalar(&forms::PACKAGE),
        ),
    ],
});

const INSTALL: Shape = Shape::Map(&Group {
    choices: &[],
    keys: &[
        required(
            "apk",
            "APK, universal .apks, or the files of a split app; relative to the scenario",
            Shape::Either(&TEXT, &list(&TEXT, 1, 100)),
        ),
        key(
            "data",
            "Data of an installed app [default: keep]",
            Shape::Word(&[("keep", "kept"), ("remove", "removed with the app first")]),
        ),
    ],
});

const RECORD: Shape = Shape::Map(&Group {
    choices: &[],
    keys: &[
        key("config", "Preset or config file, as --config", TEXT),
        key(
            "interval",
            "Sampling interval such as 4k; heaptap varies it between runs",
            SIZE,
        ),
        key(
            "heaps",
            "Heaps by name, as --heaps",
            Shape::Either(&TEXT, &list(&TEXT, 1, 64)),
        ),
        key(
            "shmem-size",
            "Buffer between the app and heapprofd, a power of two",
            Shape::Scalar(&forms::SHMEM_SIZE),
        ),
        key(
            "max-file",
            "Maximum size of the file on the device [default: its free space]",
            SIZE,
        ),
        key(
            "no-check",
            "Record although the check of the app fails",
            Shape::Flag,
        ),
    ],
});

const OFF: Shape = Shape::Word(&[("off", "off"), ("keep", "unchanged")]);

const CONDITIONS: Shape = Shape::Map(&Group {
    choices: &[],
    keys: &[
        key("awake", "Keep the screen on", Shape::Flag),
        key("animations", "Animations [default: keep]", OFF),
        key("doze", "Doze, which stops idle apps [default: keep]", OFF),
        key(
            "cool",
            "Time for a hot device to cool down before a run [default: 5m]",
            TIME,
        ),
    ],
});

static REPEATS: Group = Group {
    choices: &[],
    keys: &[
        key("min", "Minimum number of runs [default: 3]", RUNS),
        key("max", "Maximum number of runs [default: 5]", RUNS),
    ],
};

static DEVICE: Group = Group {
    choices: &[],
    keys: &[
        key("model", "Model, with * for any characters: Pixel*", TEXT),
        key("sdk", "API level: >=31", Shape::Scalar(&forms::SDK)),
        key(
            "ram",
            "Memory of the device: <3GiB",
            Shape::Scalar(&forms::RAM),
        ),
    ],
};
