//! Keys of a budget.

use super::super::forms;
use super::grammar::{
    Group, NAME, NOTHING, REGEX, Shape, TEXT, at_most_one, key, one_of, required,
};

pub(super) static BUDGET: Group = Group {
    choices: &[
        one_of(&["native", "java", "leaks", "meminfo", "live-set"]),
        one_of(&["limit", "change"]),
        at_most_one(&["at", "per"], ""),
        // A slope is often around 0: it does not have a share by which it can grow.
        at_most_one(&["per", "change"], "use `limit`"),
    ],
    keys: &[
        required("name", "Stable name, unique in the scenario", NAME),
        key(
            "native",
            "Unreleased native memory in bytes; all of it without further keys",
            NATIVE,
        ),
        key("java", "Java objects of classes", JAVA),
        key("leaks", "Number of Java leaks", Shape::Map(&NOTHING)),
        key("meminfo", "PSS of a row of meminfo in bytes", MEMINFO),
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
            "Label inside a repeat of 4 or more: the figure is its growth per iteration",
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

const NATIVE: Shape = Shape::Map(&Group {
    choices: &[],
    keys: &[
        key("library", "File name of a library: libapp.so", TEXT),
        key(
            "function",
            "Regular expression for functions: ^Cache::",
            REGEX,
        ),
        key("heap", "Name of a heap: libc.malloc", TEXT),
    ],
});

const JAVA: Shape = Shape::Map(&Group {
    choices: &[],
    keys: &[
        required(
            "class",
            "Class name, with * for any characters: com.example.*Activity; the whole heap is `live-set`",
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
});

const MEMINFO: Shape = Shape::Map(&Group {
    choices: &[],
    keys: &[required("row", "Name of the row: Graphics, TOTAL", TEXT)],
});
