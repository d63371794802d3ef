//! The steps of a recording, each with the request of heaptap at which it is stopped.

/// A step of a recording.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// Name in the command line of the test.
    pub name: &'static str,
    /// Name in the page.
    pub title: &'static str,
    /// From when on its request is waited for.
    pub after: After,
    /// Requests in their order, as parts of their texts; heaptap is stopped at the last one. `ID`
    /// is the session. Without requests, the step is an event.
    pub requests: &'static [&'static [&'static str]],
}

/// Stage of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    Begin,
    /// perfetto is running.
    Started,
    /// A snapshot was requested.
    Label,
    /// The end was requested.
    End,
}

const fn step(
    name: &'static str,
    title: &'static str,
    after: After,
    requests: &'static [&'static [&'static str]],
) -> Step {
    Step {
        name,
        title,
        after,
        requests,
    }
}

use After::{Begin, End, Label, Started};

/// All steps, in the order of a recording.
pub const STEPS: &[Step] = &[
    step("server", "connect to the adb server", Begin, &[&["host:"]]),
    step(
        "device",
        "connect to the device",
        Begin,
        &[&["host:transport"]],
    ),
    step(
        "facts",
        "read facts of the device",
        Begin,
        &[&["@@heaptap getprop"]],
    ),
    step("check", "check the app", Begin, &[&["pm list packages -U"]]),
    step(
        "start",
        "start perfetto (directory claimed, journal written)",
        Begin,
        &[&["shell", "perfetto -c - -o"]],
    ),
    step(
        "active",
        "check that perfetto runs",
        Begin,
        &[
            &["shell", "perfetto -c - -o"],
            &["/proc/$1/cmdline 2>/dev/null ||"],
        ],
    ),
    step(
        "started",
        "note the start in the journal",
        Begin,
        &[&["shell", "perfetto -c - -o"], &["boot_id /proc/uptime"]],
    ),
    step("follow", "begin to follow", Begin, &[&["VmRSS"]]),
    step(
        "sampling",
        "begin to sample memory",
        Begin,
        &[&["every=$1; parts=$2"]],
    ),
    step(
        "log",
        "begin to follow the log",
        Begin,
        &[&["logcat -v threadtime"]],
    ),
    step("recording", "while it records", Started, &[]),
    step(
        "label",
        "label a snapshot",
        Started,
        &[&["killall -USR1 heapprofd"]],
    ),
    step(
        "smaps",
        "read mappings at the label",
        Label,
        &[&["cat /proc/$1/$2", "smaps"]],
    ),
    step(
        "meminfo",
        "read meminfo at the label",
        Label,
        &[&["dumpsys -t 60 meminfo"]],
    ),
    step(
        "java",
        "record the Java heap graph",
        Label,
        &[&["shell", "perfetto -c - -o"]],
    ),
    step(
        "java-pull",
        "fetch the Java heap graph",
        Label,
        &[
            &["shell", "perfetto -c - -o"],
            &["RECV:/data/misc/perfetto-traces"],
        ],
    ),
    step("stop", "signal the end", End, &[&["kill -TERM $1", "ID"]]),
    step(
        "last",
        "read memory at the end",
        End,
        &[&["dumpsys -t 60 meminfo"]],
    ),
    step(
        "size",
        "read the size of the trace",
        End,
        &[&["STA2:", "ID"]],
    ),
    step("pull", "fetch the trace", End, &[&["RECV:", "ID"]]),
    step("hash", "compare the hash", End, &[&["sha256sum", "ID"]]),
    step(
        "verify",
        "compare the size (then rename)",
        End,
        &[&["RECV:", "ID"], &["STA2:", "ID"]],
    ),
    step(
        "symbolize",
        "convert and symbolize",
        End,
        &[&["RECV:/data/app"]],
    ),
    step(
        "remove",
        "remove the device's copy (results written)",
        End,
        &[&["rm -f", "ID"]],
    ),
];
