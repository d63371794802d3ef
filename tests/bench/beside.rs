//! Companion data of recordings, and memory commands without a recording: compares the figures of
//! the real tracing service, and of the loop on the real shell, with the kernel's.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::process::Command;

use heaptap_model::timeline::{Entry, Observation, Source, Timeline};
use perfetto_heap::{MemoryWanted, Trace};
use serde_json::Value;

use crate::judge;
use crate::phone::{Ended, Phone, SOON, until};
use crate::{PATIENCE, TARGET, assert_collected, exit, json};

/// A native program that maps 64 MiB, touches the part that is fed to it, and then waits.
const HOG: &str = "com.example.idle";
const HOG_SCRIPT: &str = "
mkfifo -m 666 /tmp/feed
drop=
setpriv --reuid 10125 --regid 10125 --clear-groups true 2>/dev/null &&
    drop='setpriv --reuid 10125 --regid 10125 --clear-groups'
exec $drop mksh -c 'exec -a com.example.idle dd bs=64M count=1 iflag=fullblock of=/dev/null' \\
    0<>/tmp/feed >/dev/null 2>&1 &";
const MIB: u64 = 1 << 20;
const FED: u64 = 32 * MIB;
/// Lag of the kernel's counters of resident pages: a batch of pages for each CPU.
const LAG: u64 = MIB;
/// traced_probes cannot start its ftrace on kernels without tracefs; perfetto waits 30 s.
const SLOW_SOURCE: std::time::Duration = std::time::Duration::from_secs(150);

/// It waits nearly as long for the end, unless configured.
const QUICK_STOP: &str = "
buffers { size_kb: 8192 fill_policy: RING_BUFFER }
data_source_stop_timeout_ms: 1000
";

const COLLECTION: &str = "I art     : Background concurrent copying GC freed 1234(56KB) \
    AllocSpace objects, 0(0B) LOS objects, 50% free, 2048KB/4096KB, paused 100us,20us total 10.000ms";

struct Hog {
    pid: u32,
}

impl Hog {
    fn start(phone: &Phone) -> Hog {
        phone.on(&["mksh", "-c", HOG_SCRIPT]);
        let mut pid = None;
        until("the hog", SOON, || {
            // Before it has its name it is a shell, and before it reads, it is still growing.
            let pids = phone.shell(&format!("pidof {HOG}")).stdout;
            pid = pids.trim().parse().ok();
            pid.is_some_and(|pid| phone.on(&["cat", &format!("/proc/{pid}/comm")]) == "dd\n")
                && pid.is_some_and(|pid| kernel(phone, pid, "status")["VmData"] > 64 * MIB)
        });
        Hog {
            pid: pid.expect("just seen"),
        }
    }

    /// Makes it touch as much more, and waits until it has.
    fn feed(&self, phone: &Phone) {
        let before = self.status(phone)["RssAnon"];
        phone.on(&["mksh", "-c", &format!("head -c {FED} /dev/zero >/tmp/feed")]);
        until("the memory", SOON, || {
            self.status(phone)["RssAnon"] + LAG >= before + FED
        });
    }

    fn status(&self, phone: &Phone) -> BTreeMap<String, u64> {
        kernel(phone, self.pid, "status")
    }
}

/// Sizes of a process as the kernel reports them, in bytes.
fn kernel(phone: &Phone, pid: u32, file: &str) -> BTreeMap<String, u64> {
    sizes(&phone.on(&["cat", &format!("/proc/{pid}/{file}")]))
}

fn sizes(text: &str) -> BTreeMap<String, u64> {
    let sizes = text.lines().filter_map(|line| {
        let (key, value) = line.split_once(':')?;
        let kib: u64 = value.trim().strip_suffix(" kB")?.parse().ok()?;
        Some((key.to_owned(), kib * 1024))
    });
    sizes.collect()
}

/// The lines of the companion data; each is complete, including the last.
fn timeline(phone: &Phone) -> Vec<Entry> {
    let text = fs::read_to_string(phone.work().join("out/memory.jsonl")).unwrap_or_default();
    let (timeline, strange) = Timeline::parse(&text);
    assert_eq!(strange, 0, "{text}");
    timeline.entries
}

/// Anonymous memory of `pid` by `source`, in chronological order.
fn anon(entries: &[Entry], pid: u32, source: Source) -> Vec<(u64, u64)> {
    let of = |entry: &Entry| match &entry.seen {
        Observation::Resident(seen) if entry.pid == pid && seen.source == source => {
            assert!(seen.rss >= seen.anon.unwrap_or(0), "{entry:?}");
            Some((entry.boot_ns, seen.anon.expect("this kernel tells")))
        }
        _ => None,
    };
    entries.iter().filter_map(of).collect()
}

/// Number of samples of `pid` from the loop.
fn samples(phone: &Phone, pid: u32) -> usize {
    anon(&timeline(phone), pid, Source::Status).len()
}

fn count(entries: &[Entry], holds: impl Fn(&Observation) -> bool) -> usize {
    entries.iter().filter(|entry| holds(&entry.seen)).count()
}

/// Processes of the loops on the phone; none must remain after heaptap ends.
fn loops(phone: &Phone) -> BTreeSet<u32> {
    // Processes can end while they are inspected. The loop's shell is the first process of its
    // session; its background processes are not.
    let script = "for f in /proc/[0-9]*; do
        grep -qs '[d]mabuf=no' $f/cmdline && read -r stat <$f/stat || continue
        set -- ${stat##*\\)}; [ $4 = ${f##*/} ] && echo ${f##*/}
    done 2>/dev/null; true";
    let pids = phone.on(&["mksh", "-c", script]);
    pids.lines().filter_map(|pid| pid.parse().ok()).collect()
}

fn boot_ns(phone: &Phone) -> u64 {
    let text = phone.on(&["cat", "/proc/uptime"]);
    let seconds: f64 = text
        .split(' ')
        .next()
        .and_then(|s| s.parse().ok())
        .expect("a clock");
    (seconds * 1e9) as u64
}

#[test]
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn figures_of_the_real_service_and_of_the_loop_are_the_kernels() {
    let phone = Phone::boot("figures");
    let hog = Hog::start(&phone);
    let before = hog.status(&phone);
    let mut run = phone.heaptap(&["record", "-n", HOG, "--with", "meminfo", "-o", "out"]);
    until("the first samples", PATIENCE, || {
        assert!(!run.ended(), "{}", run.said());
        run.said().contains("Ctrl-C: end") && samples(&phone, hog.pid) >= 2
    });
    assert_eq!(loops(&phone).len(), 1, "one loop over one connection");
    hog.feed(&phone);
    let fed_ns = boot_ns(&phone);
    let after = hog.status(&phone);
    // Samples of the loop; the service samples as often.
    let seen = samples(&phone, hog.pid);
    until("samples of what it took", PATIENCE, || {
        samples(&phone, hog.pid) >= seen + 4
    });
    run.signal("INT");
    let ended = run.end(PATIENCE);
    assert_eq!(ended.code(), Some(exit::NO_SAMPLES), "{ended:?}");
    assert_collected(&phone, &ended);
    until("the loop's end", SOON, || loops(&phone).is_empty());

    let beside = timeline(&phone);
    let traced = traced(&phone);
    for (entries, source, own) in [
        (&beside, Source::Status, "the loop"),
        (&traced, Source::ProcessStats, "the service"),
    ] {
        let figures = anon(entries, hog.pid, source);
        let words = format!("{own}: {figures:?}, {before:?}, {after:?}");
        let (first, last) = (
            figures.first().expect(&words),
            figures.last().expect(&words),
        );
        assert!(first.1.abs_diff(before["RssAnon"]) <= LAG, "{words}");
        assert!(last.1.abs_diff(after["RssAnon"]) <= LAG, "{words}");
        assert!(
            figures.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1 + LAG),
            "{words}"
        );
        // On the device clock, all later samples include the memory touched before.
        let later = figures.iter().filter(|figure| figure.0 > fed_ns);
        assert!(later.clone().count() >= 2, "{words}");
        assert!(
            later
                .clone()
                .all(|figure| figure.1 + LAG >= before["RssAnon"] + FED),
            "{words}"
        );
    }
    // The trace also contains and names other processes.
    let app = traced.iter().find_map(|entry| match &entry.seen {
        Observation::Process(process) if process.name == TARGET => Some(entry.pid),
        _ => None,
    });
    let app = app.expect("it runs");
    assert!(!anon(&traced, app, Source::ProcessStats).is_empty());
    assert_eq!(anon(&beside, app, Source::Status), [], "not asked for");
    let total = sizes(&phone.on(&["cat", "/proc/meminfo"]))["MemTotal"];
    for (entries, source) in [(&beside, Source::Status), (&traced, Source::SysStats)] {
        let system = entries.iter().filter_map(|entry| match &entry.seen {
            Observation::System(system) if system.source == source => Some(system),
            _ => None,
        });
        let mut some = false;
        for system in system {
            some = true;
            assert_eq!(system.total, Some(total), "{system:?}");
            assert!(
                system.available <= system.total && system.free < system.total,
                "{system:?}"
            );
        }
        assert!(some, "{source:?}");
    }

    // This phone has no meminfo. heaptap reports it during the recording, at its end, and in the
    // manifest.
    let manifest = manifest(&phone);
    assert_eq!(
        manifest["companion"]["files"],
        serde_json::json!([]),
        "{manifest:#}"
    );
    let missed = &manifest["companion"]["missed"][0];
    let words = missed["why"].as_str().expect("why");
    assert!(words.contains("Can't find service: meminfo"), "{missed}");
    assert!(
        ended.words().contains("cannot read meminfo-local"),
        "{ended:?}"
    );
}

fn manifest(phone: &Phone) -> Value {
    let text = fs::read_to_string(phone.work().join("out/manifest.json")).expect("a manifest");
    serde_json::from_str(&text).expect("of JSON")
}

/// The memory that the trace tells of.
fn traced(phone: &Phone) -> Vec<Entry> {
    let trace = File::open(phone.work().join("out/raw-trace")).expect("collected");
    let mut trace = Trace::open(Box::new(trace)).expect("readable");
    let traced = trace.memory(&MemoryWanted::default()).expect("readable");
    assert_eq!(traced.loss, Default::default());
    traced.timeline.entries
}

/// `tests/run.sh` runs tests by the names of their judges, but without the bench; so this one has
/// another name.
#[test]
#[ignore = "needs the bench and HEAPTAP_PERFETTO_PYTHON: tests/bench/bench.sh test"]
fn perfetto_protos_tell_the_figures_of_a_trace() {
    let python = judge::perfetto_protos();
    let phone = Phone::boot("protos");
    let hog = Hog::start(&phone);
    let mut run = phone.heaptap(&["record", "-n", HOG, "--with", "meminfo", "-o", "out"]);
    until("the first samples", PATIENCE, || {
        assert!(!run.ended(), "{}", run.said());
        run.said().contains("Ctrl-C: end") && samples(&phone, hog.pid) >= 4
    });
    run.signal("INT");
    let ended = run.end(PATIENCE);
    assert_eq!(ended.code(), Some(exit::NO_SAMPLES), "{ended:?}");
    let script = "
import sys
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace
trace = Trace()
trace.ParseFromString(open(sys.argv[1], 'rb').read())
for packet in trace.packet:
    for p in packet.process_stats.processes:
        if p.HasField('vm_rss_kb'):
            print(packet.timestamp, p.pid, p.vm_rss_kb, p.rss_anon_kb, p.rss_file_kb, p.vm_hwm_kb)
";
    let trace = phone.work().join("out/raw-trace");
    let judged = Command::new(python)
        .args(["-c", script])
        .arg(trace)
        .output();
    let judged = judged.expect("Python runs");
    assert!(judged.status.success(), "{judged:?}");
    let text = String::from_utf8_lossy(&judged.stdout).into_owned();
    let theirs: BTreeSet<&str> = text.lines().collect();
    let ours: BTreeSet<String> = traced(&phone)
        .iter()
        .filter_map(|entry| match &entry.seen {
            Observation::Resident(r) if r.source == Source::ProcessStats => {
                let kib = |bytes: Option<u64>| bytes.unwrap_or(0) / 1024;
                Some(format!(
                    "{} {} {} {} {} {}",
                    entry.boot_ns,
                    entry.pid,
                    r.rss / 1024,
                    kib(r.anon),
                    kib(r.file),
                    kib(r.peak)
                ))
            }
            _ => None,
        })
        .collect();
    let ours: BTreeSet<&str> = ours.iter().map(String::as_str).collect();
    assert!(!theirs.is_empty());
    assert_eq!(ours, theirs);
}

/// Makes the phone answer `dumpsys meminfo` of `pid` like Android 14. Returns the answer.
pub fn fake_meminfo(phone: &Phone, pid: u32, name: &str) -> String {
    let recorded = include_str!("../../fixtures/meminfo/synthetic_api34_a.txt");
    let text = recorded.replace("pid 4355 [com.example.app]", &format!("pid {pid} [{name}]"));
    assert_ne!(text, recorded);
    let directory = phone.file("/data/fake/meminfo");
    fs::create_dir(&directory).expect("new");
    fs::write(directory.join(pid.to_string()), &text).expect("writable");
    // With --local the system prints only the table.
    let table = text.split(" \n Dalvik Details").next().expect("a table");
    fs::write(directory.join(format!("{pid}.local")), table).expect("writable");
    text
}

#[test]
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn collections_and_samples_survive_a_killed_adbd() {
    let phone = Phone::boot("beside");
    let hog = Hog::start(&phone);
    let text = fake_meminfo(&phone, hog.pid, HOG);
    fs::create_dir(phone.file("/data/fake/log")).expect("new");
    let log = phone.file(&format!("/data/fake/log/{}", hog.pid));
    fs::write(&log, "").expect("writable");
    let collect = |phone: &Phone| {
        let pid = hog.pid;
        let line = format!(
            "print -r -- \"${{EPOCHREALTIME%???}}  {pid}  {pid} {COLLECTION}\" >>/data/fake/log/{pid}"
        );
        phone.on(&["mksh", "-c", &line]);
    };
    let collections = |phone: &Phone| {
        count(&timeline(phone), |s| {
            matches!(s, Observation::Collection(_))
        })
    };
    let config = phone.write("config.txtproto", QUICK_STOP);
    let mut run = phone.heaptap(&[
        "record",
        "-n",
        HOG,
        "--with",
        "meminfo,gc",
        "--config",
        &config,
        "-o",
        "out",
    ]);
    until("samples", SLOW_SOURCE, || {
        assert!(!run.ended(), "{}", run.said());
        run.said().contains("Ctrl-C: end") && samples(&phone, hog.pid) >= 2
    });
    collect(&phone);
    until("the first collection", SOON, || collections(&phone) == 1);
    let first = loops(&phone);
    assert_eq!(first.len(), 1, "{first:?}");

    fs::write(phone.file("/data/fake/no-respawn"), "").expect("writable");
    phone.signal("KILL", "adbd");
    until("the loss", SOON, || !phone.shell("true").status.success());
    // The app continues, and so does its log.
    collect(&phone);
    fs::remove_file(phone.file("/data/fake/no-respawn")).expect("just written");
    until("what happened meanwhile", PATIENCE, || {
        collections(&phone) >= 2
    });
    let seen = samples(&phone, hog.pid);
    until("more samples", PATIENCE, || {
        samples(&phone, hog.pid) >= seen + 2
    });
    until("the end of the loop that lost its connection", SOON, || {
        let now = loops(&phone);
        now.len() == 1 && now.is_disjoint(&first)
    });
    run.signal("INT");
    let ended = run.end(SLOW_SOURCE);
    assert_eq!(ended.code(), Some(exit::NO_SAMPLES), "{ended:?}");
    assert_collected(&phone, &ended);

    let entries = timeline(&phone);
    assert_eq!(collections(&phone), 2, "each once: {entries:#?}");
    assert_eq!(
        count(&entries, |s| matches!(s, Observation::Gap(_))),
        1,
        "{entries:#?}"
    );
    let restarted = |s: &Observation| matches!(s, Observation::Process(p) if p.restarted);
    assert_eq!(count(&entries, restarted), 0, "{entries:#?}");
    assert_eq!(
        count(&entries, |s| matches!(s, Observation::Gone)),
        0,
        "{entries:#?}"
    );
    let live = |s: &Observation| matches!(s, Observation::Collection(c) if c.live == Some(2 * MIB) && !c.ours);
    assert_eq!(count(&entries, live), 2, "{entries:#?}");
    let parts: Vec<_> = entries
        .iter()
        .filter_map(|entry| match &entry.seen {
            Observation::Parts(parts) if parts.source == Source::MeminfoLocal => Some(parts),
            _ => None,
        })
        .collect();
    assert!(!parts.is_empty(), "{entries:#?}");
    assert!(
        parts
            .iter()
            .all(|p| p.native == 15959 << 10 && p.total_pss == 316_778 << 10)
    );
    let kept = fs::read_to_string(phone.work().join("out/meminfo/01-end.txt"));
    // The shell's echo ends the text, even if its last newline is missing.
    assert_eq!(kept.expect("taken at the end").trim_end(), text.trim_end());
}

#[test]
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn meminfo_of_one_process_is_asked_once_and_again_and_again() {
    let phone = Phone::boot("meminfo");
    let absent = phone
        .heaptap(&["meminfo", "-n", TARGET, "--json"])
        .end(SOON);
    assert_eq!(absent.code(), Some(exit::DEVICE_FAILED), "{absent:?}");
    assert!(
        absent.words().contains("Can't find service: meminfo"),
        "{absent:?}"
    );

    let hog = Hog::start(&phone);
    fake_meminfo(&phone, hog.pid, HOG);
    let pid = hog.pid.to_string();
    for more in [&[][..], &["--wide"], &["--local"]] {
        let mut args = vec!["meminfo", "-n", HOG, "--json"];
        args.extend(more);
        let told = phone.heaptap(&args).end(SOON);
        assert_eq!(told.code(), Some(exit::DONE), "{told:?}");
        let process = &json(&told)["processes"][0];
        assert_eq!(process["pid"], hog.pid, "{told:?}");
        assert_eq!(process["parts"]["native"], 15959 << 10, "{told:?}");
        assert_eq!(process["differences"], serde_json::json!([]), "{told:?}");
    }

    let mut run = phone.heaptap(&["meminfo", "-n", HOG, "--every", "1s", "--json-lines"]);
    let entries = |text: &str| -> Vec<Entry> {
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        Timeline::parse(whole).0.entries
    };
    let sampled = |text: &str| anon(&entries(text), hog.pid, Source::Status);
    until("samples", PATIENCE, || {
        assert!(!run.ended(), "{}", run.said());
        sampled(&run.wrote()).len() >= 2
    });
    let before = loops(&phone);
    assert_eq!(before.len(), 1, "{before:?}");
    phone.signal("KILL", "adbd");
    let seen = sampled(&run.wrote()).len();
    until("samples after the loss", PATIENCE, || {
        sampled(&run.wrote()).len() >= seen + 2
    });
    run.signal("INT");
    let ended = run.end(PATIENCE);
    assert_eq!(ended.code(), Some(exit::DONE), "{ended:?}");
    let figures = sampled(&ended.stdout);
    let now = hog.status(&phone)["RssAnon"];
    assert!(
        figures.iter().all(|figure| figure.1.abs_diff(now) <= LAG),
        "{figures:?}"
    );
    let restarted = |s: &Observation| matches!(s, Observation::Process(p) if p.restarted);
    assert_eq!(count(&entries(&ended.stdout), restarted), 0, "{ended:?}");
    until("the loops' end", SOON, || loops(&phone).is_empty());

    // A process that has exited is reported by its pid.
    phone.on(&["kill", "-KILL", &pid]);
    until("its end", SOON, || {
        !phone.shell(&format!("pidof {HOG}")).status.success()
    });
    let gone = phone.heaptap(&["meminfo", "-n", HOG, "--json"]).end(SOON);
    assert_eq!(gone.code(), Some(exit::NOT_ELIGIBLE), "{gone:?}");
}

fn totals(ended: &Ended) -> BTreeMap<String, u64> {
    assert_eq!(ended.code(), Some(exit::DONE), "{ended:?}");
    let total = &json(ended)["total"];
    serde_json::from_value(total.clone()).expect("numbers by name")
}

#[test]
#[ignore = "needs the bench: tests/bench/bench.sh test"]
fn mappings_add_up_to_the_kernels_own_sums() {
    let phone = Phone::boot("smaps");
    let hog = Hog::start(&phone);
    hog.feed(&phone);
    let ask = |more: &[&str]| {
        let mut args = vec!["smaps", "-n", HOG, "--json"];
        args.extend(more);
        phone.heaptap(&args).end(SOON)
    };
    if phone.shell("id -u").stdout.trim() == "2000" {
        let refused = ask(&[]);
        assert_eq!(refused.code(), Some(exit::NOT_ELIGIBLE), "{refused:?}");
        assert!(refused.words().contains("Permission denied"), "{refused:?}");
    }
    fs::write(phone.file("/data/fake/adb-root"), "").expect("writable");
    let rollup = kernel(&phone, hog.pid, "smaps_rollup");
    let asked = ask(&["--save", "hog.smaps"]);
    assert_eq!(json(&asked)["method"], "shell", "{asked:?}");
    let sums = totals(&asked);
    for (ours, theirs) in [
        ("rss", "Rss"),
        ("private_dirty", "Private_Dirty"),
        ("shared_dirty", "Shared_Dirty"),
        ("anonymous", "Anonymous"),
        ("swap", "Swap"),
        ("locked", "Locked"),
    ] {
        assert_eq!(sums[ours], rollup[theirs], "{ours}: {sums:?}, {rollup:?}");
    }
    // The number of processes that share clean library pages varies.
    let clean = sums["shared_clean"] + sums["private_clean"];
    assert_eq!(clean, rollup["Shared_Clean"] + rollup["Private_Clean"]);
    assert!(
        (sums["private_dirty"]..=sums["rss"]).contains(&sums["pss"]),
        "{sums:?}"
    );
    assert!(sums["anonymous"] >= FED, "{sums:?}");
    // heaptap reads the kernel's own sum, and a saved file like the live output.
    let of_file = |file: &str| phone.heaptap(&["smaps", file, "--json"]).end(SOON);
    assert_eq!(totals(&of_file("hog.smaps")), sums);
    let text = phone.on(&["cat", &format!("/proc/{}/smaps_rollup", hog.pid)]);
    let sum = totals(&of_file(&phone.write("hog.rollup", &text)));
    assert_eq!(sum["rss"], sums["rss"]);
    // Every grouping adds up to the same memory.
    for by in ["kind", "library", "mapping"] {
        let grouped = ask(&["--by", by, "-l", "0"]);
        let rows = json(&grouped)["rows"].as_array().expect("rows").clone();
        let rss = |row: &Value| row["figures"]["rss"].as_u64().unwrap_or(0);
        assert_eq!(
            rows.iter().map(rss).sum::<u64>(),
            sums["rss"],
            "{grouped:?}"
        );
    }
}
