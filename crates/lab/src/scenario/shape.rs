//! The language of scenarios as data: keys, their values and descriptions. The check of a file and
//! the JSON Schema both follow it.

use super::forms::{self, Form};

/// Shape of a value.
#[derive(Debug)]
pub(super) enum Shape {
    Scalar(&'static Form),
    /// A whole number.
    Number {
        min: u64,
        max: u64,
    },
    Flag,
    /// One of these words, with descriptions.
    Word(&'static [(&'static str, &'static str)]),
    List {
        of: &'static Shape,
        min: usize,
        max: usize,
    },
    /// A map with these keys only.
    Map(&'static Group),
    /// A map with names as keys.
    Named {
        name: &'static Form,
        of: &'static Shape,
    },
    /// A scalar, or the list or map behind it.
    Either(&'static Shape, &'static Shape),
    Step,
    /// A value that is refused with this reason; for keys that people expect.
    Refused(&'static str),
}

/// The keys of a map.
#[derive(Debug)]
pub(super) struct Group {
    /// With its article: `an app`.
    pub what: &'static str,
    pub keys: &'static [Key],
    /// Sets of keys that exclude each other.
    pub choices: &'static [Choice],
}

#[derive(Debug)]
pub(super) struct Choice {
    pub keys: &'static [&'static str],
    /// One of the keys is required.
    pub required: bool,
}

#[derive(Debug)]
pub(super) struct Key {
    pub name: &'static str,
    pub doc: &'static str,
    pub required: bool,
    pub shape: Shape,
}

impl Group {
    pub(super) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> + Clone {
        self.keys.iter().map(|key| key.name)
    }

    /// Returns whether a map without keys is valid.
    pub(super) fn may_be_empty(&self) -> bool {
        let required = self.choices.iter().any(|choice| choice.required);
        !required && self.keys.iter().all(|key| !key.required)
    }
}

const fn key(name: &'static str, doc: &'static str, shape: Shape) -> Key {
    Key {
        name,
        doc,
        required: false,
        shape,
    }
}

const fn required(name: &'static str, doc: &'static str, shape: Shape) -> Key {
    Key {
        name,
        doc,
        required: true,
        shape,
    }
}

const MAX_STEPS: usize = 500;
/// Maximum number of iterations of a `repeat`.
pub(super) const MAX_ITERATIONS: u64 = 10_000;
const MAX_RUNS: u64 = 100;

const TIME: Shape = Shape::Scalar(&forms::TIME);
const TEXT: Shape = Shape::Scalar(&forms::TEXT);
const STEPS: Shape = Shape::List {
    of: &Shape::Step,
    min: 1,
    max: MAX_STEPS,
};
const RUNS: Shape = Shape::Number {
    min: 1,
    max: MAX_RUNS,
};

pub(super) static SCENARIO: Group = Group {
    what: "a scenario",
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
            Shape::Scalar(&forms::NAME),
        ),
        required("target", "The app", Shape::Map(&TARGET)),
        key(
            "install",
            "App to install before the first run",
            Shape::Map(&INSTALL),
        ),
        key("record", "Options of the recording", Shape::Map(&RECORD)),
        key(
            "measure",
            "Data to capture at each snapshot [default: native]",
            Shape::List {
                of: &Shape::Word(&[
                    ("native", "native heap profile"),
                    ("java", "Java heap dump"),
                    ("meminfo", "memory by category: dumpsys meminfo"),
                    ("smaps", "memory by mapping: /proc/PID/smaps"),
                    ("gc", "log of garbage collections"),
                ]),
                min: 1,
                max: 5,
            },
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
            "budgets",
            "Limits of figures; a scenario without budgets only measures",
            Shape::List {
                of: &Shape::Map(&BUDGET),
                min: 0,
                max: 200,
            },
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
            "devices",
            "Device classes; the first whose conditions are met names the device",
            Shape::Named {
                name: &forms::CLASS_NAME,
                of: &Shape::Map(&DEVICE),
            },
        ),
    ],
};

static TARGET: Group = Group {
    what: "`name: PROCESS` or `package: PACKAGE`",
    choices: &[Choice {
        keys: &["name", "package"],
        required: true,
    }],
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
};

static INSTALL: Group = Group {
    what: "an app to install",
    choices: &[],
    keys: &[
        required(
            "apk",
            "APK file, or the files of a split app; relative to the scenario",
            Shape::Either(
                &TEXT,
                &Shape::List {
                    of: &TEXT,
                    min: 1,
                    max: 100,
                },
            ),
        ),
        key(
            "data",
            "Data of an installed app [default: keep]",
            Shape::Word(&[("keep", "kept"), ("remove", "removed with the app first")]),
        ),
    ],
};

static RECORD: Group = Group {
    what: "options of the recording",
    choices: &[],
    keys: &[
        key("config", "Preset or config file, as --config", TEXT),
        key(
            "interval",
            "Sampling interval such as 4k; heaptap varies it between runs",
            Shape::Scalar(&forms::SIZE),
        ),
        key(
            "heaps",
            "Heaps by name, as --heaps",
            Shape::Either(
                &TEXT,
                &Shape::List {
                    of: &TEXT,
                    min: 1,
                    max: 64,
                },
            ),
        ),
        key(
            "shmem-size",
            "Buffer between the app and heapprofd, a power of two",
            Shape::Scalar(&forms::SHMEM_SIZE),
        ),
        key(
            "no-check",
            "Record although the check of the app fails",
            Shape::Flag,
        ),
    ],
};

static REPEATS: Group = Group {
    what: "`min` and `max`",
    choices: &[],
    keys: &[
        key("min", "Minimum number of runs [default: 3]", RUNS),
        key("max", "Maximum number of runs [default: 5]", RUNS),
    ],
};

static DEVICE: Group = Group {
    what: "conditions for a device",
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

static BUDGET: Group = Group {
    what: "a budget",
    choices: &[
        Choice {
            keys: &["native", "java", "leaks", "meminfo", "live-set"],
            required: true,
        },
        Choice {
            keys: &["limit", "change"],
            required: true,
        },
        Choice {
            keys: &["at", "per"],
            required: false,
        },
    ],
    keys: &[
        required(
            "name",
            "Stable name, unique in the scenario",
            Shape::Scalar(&forms::NAME),
        ),
        key(
            "native",
            "Unreleased native memory in bytes; all of it without further keys",
            Shape::Map(&NATIVE),
        ),
        key("java", "Java objects of classes", Shape::Map(&JAVA)),
        key("leaks", "Number of Java leaks", Shape::Map(&NOTHING)),
        key(
            "meminfo",
            "PSS of a row of meminfo in bytes",
            Shape::Map(&MEMINFO),
        ),
        key(
            "live-set",
            "Java heap in use after the last garbage collection in bytes",
            Shape::Map(&NOTHING),
        ),
        key(
            "at",
            "Label of the snapshot at which the figure is read [default: end]",
            Shape::Scalar(&forms::MOMENT),
        ),
        key(
            "per",
            "Label inside a repeat: the figure is its growth per iteration",
            Shape::Scalar(&forms::MOMENT),
        ),
        key(
            "limit",
            "Limit: a size such as 12MiB, or a count; or one for each device class",
            Shape::Either(
                &Shape::Scalar(&forms::AMOUNT),
                &Shape::Named {
                    name: &forms::CLASS_OR_DEFAULT,
                    of: &Shape::Scalar(&forms::AMOUNT),
                },
            ),
        ),
        key(
            "change",
            "Accepted growth over the baseline: 2%",
            Shape::Scalar(&forms::PERCENT),
        ),
    ],
};

static NATIVE: Group = Group {
    what: "native allocations",
    choices: &[],
    keys: &[
        key("library", "File name of a library: libapp.so", TEXT),
        key(
            "function",
            "Regular expression for functions: ^Cache::",
            Shape::Scalar(&forms::REGEX),
        ),
        key("heap", "Name of a heap: libc.malloc", TEXT),
    ],
};

static JAVA: Group = Group {
    what: "Java objects",
    choices: &[],
    keys: &[
        required(
            "class",
            "Class name, with * for any characters: com.example.*Activity",
            TEXT,
        ),
        key(
            "measure",
            "Figure of the objects [default: instances]",
            Shape::Word(&[
                ("instances", "number of objects"),
                ("shallow", "own size in bytes"),
                ("retained", "size in bytes that is freed with them"),
            ]),
        ),
    ],
};

static MEMINFO: Group = Group {
    what: "a row of meminfo",
    choices: &[],
    keys: &[required("row", "Name of the row: Graphics, TOTAL", TEXT)],
};

static NOTHING: Group = Group {
    what: "an empty map",
    choices: &[],
    keys: &[],
};

/// What a step can do, besides the actions of `provoke`.
pub(super) static STEP_ACTIONS: [Key; 5] = [
    key(
        "wait-for",
        "Waits for a state of the app",
        Shape::Map(&WAIT_FOR),
    ),
    key(
        "shell",
        "Runs a command on the device: a list of words",
        Shape::Either(
            &Shape::Refused(
                "must be a list of words such as [input, tap], because each word is quoted by \
                 itself",
            ),
            &Shape::List {
                of: &Shape::Scalar(&forms::ARGUMENT),
                min: 1,
                max: 200,
            },
        ),
    ),
    key("sleep", "Does nothing for a time", TIME),
    key(
        "snapshot",
        "Takes a snapshot with this label",
        Shape::Scalar(&forms::LABEL),
    ),
    key(
        REPEAT,
        "Repeats the steps in `steps`; their labels get -1, -2 and so on",
        Shape::Number {
            min: 1,
            max: MAX_ITERATIONS,
        },
    ),
];

/// The action that needs [`SUB_STEPS`].
pub(super) const REPEAT: &str = "repeat";
pub(super) const SUB_STEPS: &str = "steps";
pub(super) const RETRY: &str = "retry";

/// Options of a step.
pub(super) static STEP_OPTIONS: [Key; 3] = [
    key(SUB_STEPS, "Steps of a repeat", STEPS),
    key("timeout", "Time limit of the step", TIME),
    key(
        RETRY,
        "Number of further attempts if the step fails [default: 0]",
        Shape::Number { min: 0, max: 20 },
    ),
];

static WAIT_FOR: Group = Group {
    what: "`activity`, `log` or `quiet`",
    choices: &[Choice {
        keys: &["activity", "log", "quiet"],
        required: true,
    }],
    keys: &[
        key(
            "activity",
            "Activity in the foreground: a class name, or its end such as .MainActivity",
            Shape::Scalar(&forms::ACTIVITY),
        ),
        key(
            "log",
            "Line of the app's log: a regular expression",
            Shape::Scalar(&forms::REGEX),
        ),
        key("quiet", "Time for which the app has been idle", TIME),
    ],
};

/// The action whose value can be a map.
pub(super) const MONKEY: &str = "monkey";

pub(super) static MONKEY_EVENTS: Group = Group {
    what: "random events",
    choices: &[],
    keys: &[
        required(
            "events",
            "Number of events",
            Shape::Number {
                min: 1,
                max: 10_000_000,
            },
        ),
        key(
            "seed",
            "Seed; equal seeds send equal events",
            Shape::Number {
                min: 0,
                max: u32::MAX as u64,
            },
        ),
        key(
            "throttle",
            "Pause after each event [default: 100ms]",
            Shape::Scalar(&forms::THROTTLE),
        ),
    ],
};
