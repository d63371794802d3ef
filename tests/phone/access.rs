//! Permissions of uid 2000, by version and build, as one table.

use crate::client::{phone, run, text};

/// Whether a command succeeds on user and on userdebug builds, and the first Android with it.
struct Row {
    what: &'static str,
    command: &'static str,
    user: bool,
    userdebug: bool,
    /// Android releases that differ: below this one, all builds refuse it.
    since: u32,
    /// Text of the refusal.
    refusal: &'static str,
}

const fn row(
    what: &'static str,
    command: &'static str,
    user: bool,
    userdebug: bool,
    since: u32,
    refusal: &'static str,
) -> Row {
    Row {
        what,
        command,
        user,
        userdebug,
        since,
        refusal,
    }
}

const TABLE: &[Row] = &[
    row("own process", "sleep 100 & kill $!", true, true, 10, ""),
    row(
        "another app's process",
        "kill $(pidof com.example.app)",
        false,
        false,
        10,
        "Operation not permitted",
    ),
    row(
        "a daemon",
        "kill -9 $(pidof surfaceflinger)",
        false,
        false,
        10,
        "Operation not permitted",
    ),
    row(
        "heapprofd's dump signal",
        "killall -USR1 traced",
        false,
        false,
        10,
        "Operation not permitted",
    ),
    row(
        "the same as root",
        "su root killall -USR1 traced_probes",
        false,
        true,
        10,
        "su: inaccessible or not found",
    ),
    row(
        "setenforce",
        "setenforce 0",
        false,
        false,
        10,
        "Permission denied",
    ),
    row(
        "setenforce as root",
        "su root setenforce 0 && [ $(getenforce) = Permissive ]",
        false,
        true,
        10,
        "su: inaccessible",
    ),
    row(
        "a read-only property",
        "setprop ro.debuggable 1",
        false,
        false,
        10,
        "Failed to set property",
    ),
    row(
        "a property of others",
        "setprop persist.sys.timezone UTC",
        false,
        false,
        10,
        "Failed to set property",
    ),
    row(
        "its own properties",
        "setprop debug.mine 1 && [ $(getprop debug.mine) = 1 ]",
        true,
        true,
        10,
        "",
    ),
    row(
        "the tracing switch",
        "setprop persist.traced.enable 1",
        true,
        true,
        10,
        "",
    ),
    row(
        "malloc_debug",
        "setprop libc.debug.malloc.options backtrace",
        false,
        true,
        10,
        "Failed to set property",
    ),
    row(
        "run-as a debuggable app",
        "run-as com.example.app id",
        true,
        true,
        10,
        "",
    ),
    row(
        "run-as a release app",
        "run-as com.example.closed id",
        false,
        false,
        10,
        "not debuggable",
    ),
    row(
        "run-as a missing app",
        "run-as com.example.none id",
        false,
        false,
        10,
        "unknown package",
    ),
    row(
        "smaps of an app",
        "cat /proc/$(pidof com.example.app)/smaps",
        false,
        false,
        10,
        "Permission denied",
    ),
    row(
        "maps of an app",
        "cat /proc/$(pidof com.example.app)/maps",
        false,
        false,
        10,
        "Permission denied",
    ),
    row(
        "smaps by run-as",
        "run-as com.example.app cat /proc/$(pidof com.example.app)/smaps",
        true,
        true,
        10,
        "",
    ),
    row(
        "smaps as root",
        "su root cat /proc/$(pidof com.example.app)/smaps",
        false,
        true,
        10,
        "su: inaccessible",
    ),
    row(
        "status of an app",
        "cat /proc/$(pidof com.example.app)/status",
        true,
        true,
        10,
        "",
    ),
    row(
        "cmdline of a daemon",
        "cat /proc/$(pidof surfaceflinger)/cmdline",
        true,
        true,
        10,
        "",
    ),
    row(
        "packages.list",
        "cat /data/system/packages.list",
        false,
        false,
        10,
        "Permission denied",
    ),
    row(
        "packages.list as root",
        "su root cat /data/system/packages.list",
        false,
        true,
        10,
        "su: inaccessible",
    ),
    row(
        "an app's files",
        "ls /data/data/com.example.app/",
        false,
        false,
        10,
        "Permission denied",
    ),
    row(
        "a file in /data/local/tmp",
        "echo x >/data/local/tmp/x && rm /data/local/tmp/x",
        true,
        true,
        10,
        "",
    ),
    row(
        "a file in /system",
        "echo x >/system/x",
        false,
        false,
        10,
        "Read-only file system",
    ),
    row(
        "a file of its own among the traces",
        "echo x >/data/misc/perfetto-traces/x",
        false,
        false,
        10,
        "Permission denied",
    ),
    row(
        "reading a trace",
        "cat /data/misc/perfetto-traces/made >/dev/null",
        true,
        true,
        10,
        "",
    ),
    row(
        "removing a trace",
        "rm /data/misc/perfetto-traces/made",
        true,
        true,
        11,
        "Permission denied",
    ),
    row(
        "a config in perfetto-configs",
        "echo x >/data/misc/perfetto-configs/c",
        true,
        true,
        12,
        "",
    ),
    row(
        "perfetto outside its folder",
        "echo 'buffers { size_kb: 64 }' | perfetto --txt -c - -o /data/local/tmp/t",
        false,
        false,
        10,
        "Permission denied",
    ),
    row(
        "the app type",
        "simpleperf_app_runner com.example.app --show-app-type",
        true,
        true,
        12,
        "not found",
    ),
    row(
        "setting the clock",
        "date -s 1200",
        false,
        false,
        10,
        "not permitted",
    ),
    row("its own maps", "cat /proc/$$/maps", true, true, 10, ""),
];

#[test]
fn the_shell_may_do_what_a_real_one_may() {
    let mut wrong = Vec::new();
    for android in 10..=16 {
        for (build, permitted) in [("user", 0), ("userdebug", 1), ("eng", 1)] {
            for row in TABLE {
                let phone = phone(&format!("android={android},build={build},speed=1000"));
                if row.what.contains("a trace") {
                    text(
                        &phone,
                        "echo 'buffers { size_kb: 64 } duration_ms: 10' | perfetto --txt -c - -o /data/misc/perfetto-traces/made 2>/dev/null",
                    );
                }
                let expected = [row.user, row.userdebug][permitted] && android >= row.since;
                let ran = run(&phone, row.command);
                let refused = row.refusal.is_empty() || ran.err.contains(row.refusal);
                if (ran.status == Some(0)) != expected || (!expected && !refused) {
                    wrong.push(format!("{android} {build} {}: {ran:?}", row.what));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn neither_root_nor_shell_overwrites_the_other_s_trace() {
    let phone = phone("build=userdebug,speed=1000");
    let command = "perfetto --txt -c - -o /data/misc/perfetto-traces/t";
    let config = b"buffers { size_kb: 64 } duration_ms: 10";
    let feed = |c: &str| crate::client::feed(&phone, c, config);
    assert_eq!(feed(command).status, Some(0));
    let by_root = feed(&format!("su root {command}"));
    assert_eq!(by_root.status, Some(1), "{by_root:?}");
    assert!(by_root.err.contains("created by another user"));
    text(&phone, "rm /data/misc/perfetto-traces/t");
    assert_eq!(feed(&format!("su root {command}")).status, Some(0));
    assert_eq!(feed(command).status, Some(1));
    let read = run(&phone, "cat /data/misc/perfetto-traces/t");
    assert!(
        read.err.contains("Permission denied"),
        "0600 and root's: {read:?}"
    );
}
