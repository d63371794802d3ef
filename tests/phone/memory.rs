//! Memory data of the phone: `dumpsys meminfo` in the layouts of its releases, /proc and its
//! permissions, the log of collections.

#![allow(
    clippy::unwrap_used,
    reason = "a text that lacks what is looked for fails the test"
)]

use crate::client::{open, phone, run, text};

const APP: &str = "com.example.app";

/// Label and numbers of a line.
fn cells(line: &str) -> (String, Vec<i64>) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let numbers = words.iter().rev().map_while(|w| w.parse().ok());
    let mut numbers: Vec<i64> = numbers.collect();
    numbers.reverse();
    let label = words[..words.len() - numbers.len()].join(" ");
    (label, numbers)
}

fn row(text: &str, label: &str) -> Vec<i64> {
    let found = text.lines().map(cells).find(|(l, _)| l == label);
    found.unwrap_or_else(|| panic!("no {label} in {text}")).1
}

/// A number after a word, in kB.
fn after(text: &str, word: &str) -> i64 {
    let line = text.lines().find_map(|l| l.trim().strip_prefix(word));
    let line = line.unwrap_or_else(|| panic!("no {word} in {text}"));
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// Rows of the table, between its headings and TOTAL.
fn table(text: &str) -> Vec<(String, Vec<i64>)> {
    let rows = text.lines().skip_while(|l| !l.contains("------")).skip(1);
    rows.map(cells).take_while(|(l, _)| l != "TOTAL").collect()
}

#[test]
fn every_release_has_its_columns_and_rows_add_up() {
    for (android, columns, pss) in [
        (10, 7, "TOTAL:"),
        (11, 8, "TOTAL PSS:"),
        (16, 8, "TOTAL PSS:"),
    ] {
        let phone = phone(&format!("android={android},speed=20,java=1000"));
        let out = text(&phone, &format!("dumpsys meminfo {APP}"));
        assert!(
            out.starts_with("Applications Memory Usage (in Kilobytes):\nUptime: "),
            "{out}"
        );
        assert!(out.contains(&format!("[{APP}] **\n")));
        let total = row(&out, "TOTAL");
        assert_eq!(total.len(), columns, "{out}");
        let rows = table(&out);
        for column in 0..columns {
            // Only the first two rows have heap cells.
            let wide = rows.iter().filter(|(_, r)| r.len() > column);
            let sum: i64 = wide.map(|(_, r)| r[column]).sum();
            let swap = if column == 0 { total[3] } else { 0 };
            assert_eq!(sum + swap, total[column], "column {column} of {out}");
        }
        assert_eq!(after(&out, pss), total[0], "{out}");
        let parts = [
            "Java Heap:",
            "Native Heap:",
            "Code:",
            "Stack:",
            "Graphics:",
            "Private Other:",
            "System:",
        ];
        let summary = out.split("App Summary").nth(1).unwrap();
        let sum: i64 = parts.iter().map(|p| after(summary, p)).sum();
        assert_eq!(sum, total[0], "{out}");
        assert_eq!(after(summary, "Native Heap:"), row(&out, "Native Heap")[1]);
        assert_eq!(out.contains("OpenSSL Sockets:"), android < 16);
        assert_eq!(out.contains(" Native Allocations\n"), android >= 16);
        assert_eq!(out.contains("Rss(KB)"), android >= 11);
    }
}

#[test]
fn options_change_what_is_told() {
    let phone = phone("android=14,speed=20,java=1000");
    let all = text(&phone, &format!("dumpsys meminfo -a {APP}"));
    assert_eq!(row(&all, "TOTAL").len(), 11);
    assert!(all.contains("\n Dalvik Details\n        .Heap "), "{all}");
    let local = text(&phone, &format!("dumpsys meminfo --local {APP}"));
    assert_eq!(row(&local, "Native Heap")[5..], [0, 0, 0]);
    assert!(!local.contains("Objects"));
    let none = text(&phone, "dumpsys meminfo com.example.nothing");
    assert_eq!(none, "No process found for: com.example.nothing\n");
    let native = text(&phone, "dumpsys meminfo surfaceflinger");
    assert_eq!(row(&native, "Native Heap")[5..], [0, 0, 0]);
    let two = text(&phone, "dumpsys meminfo com.example.chat");
    assert!(
        two.contains("Total PSS by process:") && !two.contains("Total RAM:"),
        "{two}"
    );
}

#[test]
fn the_whole_phone_is_listed_by_process_kind_and_category() {
    let old = phone("android=10,speed=20,java=1000");
    assert!(!text(&old, "dumpsys meminfo").contains("Total RSS"));
    let phone = phone("android=14,speed=20,java=1000");
    let out = text(&phone, "dumpsys meminfo");
    let heads = [
        "Total RSS by process:",
        "Total RSS by OOM adjustment:",
        "Total RSS by category:",
        "Total PSS by process:",
        "Total PSS by OOM adjustment:",
        "Total PSS by category:",
        "Total RAM: ",
    ];
    let places: Vec<usize> = heads.iter().map(|h| out.find(h).unwrap()).collect();
    assert!(places.is_sorted(), "{out}");
    assert!(out.contains(" (pid 1204)\n") && out.contains("/ activities)"));
    let kb = |line: &str| {
        line.trim()
            .split('K')
            .next()
            .unwrap()
            .replace(',', "")
            .parse::<i64>()
            .unwrap()
    };
    let section = |head: &str| {
        let lines = out.split(head).nth(1).unwrap().lines().skip(1);
        lines.take_while(|l| !l.is_empty()).collect::<Vec<_>>()
    };
    let processes: i64 = section("Total PSS by process:").iter().map(|l| kb(l)).sum();
    // Those of the kinds are indented four columns less than those of their processes.
    let kinds = section("Total PSS by OOM adjustment:");
    let kinds = kinds.iter().filter(|l| l.find("K: ") == Some(11));
    let outer: i64 = kinds.map(|l| kb(l)).sum();
    assert_eq!(processes, outer, "{out}");
}

#[test]
fn the_full_form_collects_and_says_so_in_the_log() {
    let phone = phone("android=13,speed=20,java=1000");
    let pid = text(&phone, &format!("pidof {APP}"));
    let pid = pid.trim();
    let explicit = |out: &str| out.matches("Explicit concurrent copying GC freed ").count();
    text(&phone, &format!("dumpsys meminfo --local {APP}"));
    let log = format!("logcat -d -v threadtime -v epoch --pid={pid}");
    assert_eq!(explicit(&text(&phone, &log)), 0);
    let out = text(&phone, &format!("dumpsys meminfo {APP}; {log}"));
    assert_eq!(explicit(&out), 1, "{out}");
    assert!(out.contains(" I com.example.ap: Explicit"), "{out}");
    // Only the user of a debuggable app can signal it.
    assert_ne!(run(&phone, &format!("kill -10 {pid}")).status, Some(0));
    let out = text(
        &phone,
        &format!("run-as {APP} kill -10 {pid}; sleep 1; {log}"),
    );
    assert!(out.contains("SIGUSR1 forcing GC (no HPROF)"), "{out}");
    assert_eq!(explicit(&out), 2, "{out}");
}

#[test]
fn proc_agrees_with_itself_and_keeps_what_ptrace_may_see() {
    let phone = phone("android=14,speed=1,java=1000,build=userdebug,app=idle");
    let pid = text(&phone, &format!("pidof {APP}"));
    let pid = pid.trim();
    let status = text(&phone, &format!("cat /proc/{pid}/status"));
    let rss = after(&status, "VmRSS:");
    let parts = ["RssAnon:", "RssFile:", "RssShmem:"];
    assert_eq!(parts.iter().map(|p| after(&status, p)).sum::<i64>(), rss);
    let ps = text(&phone, "ps -A -o PID,RSS");
    assert!(
        ps.lines()
            .any(|line| cells(line).1 == [pid.parse::<i64>().unwrap(), rss])
    );
    for name in ["smaps", "smaps_rollup", "maps"] {
        let refused = run(&phone, &format!("cat /proc/{pid}/{name}"));
        assert_eq!(
            refused.err,
            format!("cat: /proc/{pid}/{name}: Permission denied\n")
        );
        let own = text(&phone, &format!("run-as {APP} cat /proc/{pid}/{name}"));
        assert_eq!(
            own,
            text(&phone, &format!("su root cat /proc/{pid}/{name}"))
        );
    }
    let smaps = text(&phone, &format!("su root cat /proc/{pid}/smaps"));
    let sum = |word: &str| {
        let lines = smaps.lines().filter_map(|l| l.strip_prefix(word));
        lines
            .map(|l| l.trim().trim_end_matches(" kB").parse::<i64>().unwrap())
            .sum::<i64>()
    };
    assert_eq!(sum("Rss:"), rss);
    let rollup = text(&phone, &format!("su root cat /proc/{pid}/smaps_rollup"));
    for word in ["Rss:", "Pss:", "Private_Dirty:", "Swap:", "SwapPss:"] {
        assert_eq!(sum(word), after(&rollup, word), "{word}");
    }
    let maps = text(&phone, &format!("su root cat /proc/{pid}/maps"));
    assert_eq!(maps.lines().count(), smaps.matches("\nSize:").count());
}

#[test]
fn graphics_are_those_of_meminfo() {
    let phone = phone("android=14,speed=1,java=1000,build=userdebug");
    let gfx = text(&phone, &format!("dumpsys gfxinfo {APP}"));
    let meminfo = text(&phone, &format!("dumpsys meminfo --local {APP}"));
    let line = gfx.split("Total GPU memory usage:\n").nth(1).unwrap();
    let bytes: i64 = line.split_whitespace().next().unwrap().parse().unwrap();
    // A thumbnail can have been added in between.
    let gl = row(&meminfo, "GL mtrack")[0];
    assert!((bytes / 1024 - gl).abs() <= 2 * 65, "{bytes} {gl}");
    let pid = text(&phone, &format!("pidof {APP}"));
    let buffers = text(&phone, &format!("su root dmabuf_dump {}", pid.trim()));
    let total = buffers
        .lines()
        .find(|l| l.contains("PROCESS TOTAL"))
        .unwrap();
    let kb = total.split_whitespace().nth(2).unwrap();
    assert_eq!(
        kb.parse::<i64>().unwrap(),
        row(&meminfo, "EGL mtrack")[0],
        "{buffers}"
    );
    assert_eq!(run(&phone, "dmabuf_dump").status, Some(1));
}

#[test]
fn the_log_is_followed_from_a_moment_on() {
    use std::io::{BufRead, BufReader};
    let phone = phone("android=14,speed=20,java=1000");
    let lines = "log -t mark one; log -p w -t mark two; log -t other three";
    text(&phone, lines);
    let last = text(&phone, "logcat -d -v epoch -s mark:W");
    let line = last.lines().nth(1).unwrap();
    let epoch = line.split_whitespace().next().unwrap();
    assert!(epoch.split_once('.').unwrap().1.len() == 3, "{line}");
    let words = |out: &str| {
        let lines = out.lines().skip(1).map(|l| l.split(": ").last().unwrap());
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let since = format!("logcat -d -T {epoch} mark:W other:* '*:S'");
    assert_eq!(words(&text(&phone, &since)), ["two", "three"]);
    let two = text(&phone, "logcat -t 2 -s mark other");
    assert_eq!(words(&two), ["two", "three"], "{two}");
    let mut follower = open(&phone, &format!("logcat -T {epoch} -s mark:W"));
    text(&phone, "log -p w -t mark four");
    let mut seen = String::new();
    let mut reader = BufReader::new(&mut follower);
    while !seen.contains("four") {
        assert_ne!(reader.read_line(&mut seen).unwrap(), 0, "{seen}");
    }
    assert!(seen.contains("two") && !seen.contains("one\n"), "{seen}");
    let refused = run(&phone, "logcat -d -v nonsense");
    assert_eq!(
        (refused.status, refused.err.as_str()),
        (Some(1), "Invalid parameter \"nonsense\" to -v\n")
    );
}

#[test]
fn an_app_that_hangs_or_dies_leaves_meminfo_its_words() {
    let phone = phone("android=14,speed=50,java=1000,fault=meminfo-dies#1");
    let dead = text(&phone, &format!("dumpsys meminfo {APP}"));
    assert!(dead.ends_with("Got RemoteException!\n"), "{dead}");
    assert_eq!(text(&phone, &format!("pidof {APP} || echo gone")), "gone\n");
    text(&phone, "am start -n com.example.app/.ui.FeedActivity");
    let fresh = text(&phone, &format!("dumpsys meminfo {APP}"));
    assert!(fresh.contains("Objects"), "{fresh}");
    let stopped = "run-as com.example.app sh -c 'kill -STOP $(pidof com.example.app)'";
    let out = text(&phone, &format!("{stopped}; dumpsys meminfo {APP}"));
    assert!(
        out.contains("Got IoException! java.io.IOException: Timeout"),
        "{out}"
    );
}
