//! Keys of a step.

use super::super::forms;
use super::grammar::{
    Group, Key, LABEL, NAME, NOTHING, REGEX, SIZE, STEPS, Shape, TEXT, TIME, key, list, one_of,
    required,
};

/// Maximum number of iterations of a `repeat`.
const MAX_ITERATIONS: u64 = 10_000;

/// What a step can do, besides the actions of `provoke`.
pub(in crate::scenario) static STEP_ACTIONS: [Key; 6] = [
    key("wait-for", "Waits for a state of the app", WAIT_FOR),
    key(
        "shell",
        "Runs a command on the device: a list of words",
        Shape::Either(
            &Shape::Refused(
                "must be a list of words such as [input, tap], because each word is quoted by \
                 itself",
            ),
            &list(&Shape::Scalar(&forms::ARGUMENT), 1, 200),
        ),
    ),
    key("sleep", "Does nothing for a time", TIME),
    key("snapshot", "Takes a snapshot with this label", LABEL),
    key(
        "dump",
        "Dumps the Java heap; the map has the label, which otherwise is the word",
        Shape::Either(
            &Shape::Word(&[
                ("java", "heap graph, as `heaptap dump`"),
                ("hprof", "HPROF with values, as `heaptap dump --hprof`"),
            ]),
            &DUMP,
        ),
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
pub(in crate::scenario) const REPEAT: &str = "repeat";
pub(in crate::scenario) const SUB_STEPS: &str = "steps";
pub(in crate::scenario) const RETRY: &str = "retry";

pub(in crate::scenario) static STEP_OPTIONS: [Key; 3] = [
    key(SUB_STEPS, "Steps of a repeat", STEPS),
    key("timeout", "Time limit of the step", TIME),
    key(
        RETRY,
        "Number of further attempts if the step fails [default: 0]",
        Shape::Number { min: 0, max: 20 },
    ),
];

const DUMP: Shape = Shape::Map(&Group {
    choices: &[one_of(&["java", "hprof"])],
    keys: &[
        key("java", "Label of a heap graph", LABEL),
        key("hprof", "Label of an HPROF", LABEL),
    ],
});

/// Keys of a trigger.
pub(super) static TRIGGER: Group = Group {
    choices: &[one_of(&["log", "oom", "meminfo", "perfetto"])],
    keys: &[
        key(
            "log",
            "Line of the device's log: a regular expression",
            REGEX,
        ),
        key(
            "oom",
            "OutOfMemoryError of the app; from Android 14, `dump: java` is the heap at the error",
            Shape::Map(&NOTHING),
        ),
        key(
            "meminfo",
            "PSS of a row of meminfo above a size, every 5 s",
            EXCESS,
        ),
        key(
            "perfetto",
            "Trigger of Perfetto with this name, such as by `trigger_perfetto NAME`",
            NAME,
        ),
        required(SUB_STEPS, "Steps: snapshot, dump and shell", STEPS),
        key(
            "times",
            "Maximum number of times in a run; labels then get -1, -2 and so on [default: 1]",
            Shape::Number { min: 1, max: 1_000 },
        ),
    ],
};

const EXCESS: Shape = Shape::Map(&Group {
    choices: &[],
    keys: &[
        required("row", "Name of the row: Graphics, TOTAL", TEXT),
        required("over", "Size: 400MiB", SIZE),
    ],
});

const WAIT_FOR: Shape = Shape::Map(&Group {
    choices: &[one_of(&["activity", "log", "quiet"])],
    keys: &[
        key(
            "activity",
            "Activity in the foreground: a class name, or its end such as .MainActivity",
            Shape::Scalar(&forms::ACTIVITY),
        ),
        key("log", "Line of the app's log: a regular expression", REGEX),
        key("quiet", "Time for which the app has been idle", TIME),
    ],
});

/// The action whose value can be a map.
pub(in crate::scenario) const MONKEY: &str = "monkey";

pub(in crate::scenario) static MONKEY_EVENTS: Group = Group {
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
