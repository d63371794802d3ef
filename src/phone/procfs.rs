//! /proc, made on each look from the table of processes.

use super::access::may_inspect;
use super::clock::{MILLI, SECOND};
use super::files::{Body, Entry};
use super::fs::{DIRECTORY, Errno, FileData, LINK, REGULAR, Stat};
use super::kernel::{Cred, Kernel, State};
use super::process::{Process, Role};

const PID_FILES: [&str; 14] = [
    "attr",
    "cgroup",
    "cmdline",
    "comm",
    "exe",
    "maps",
    "mem",
    "oom_score_adj",
    "smaps",
    "smaps_rollup",
    "stat",
    "statm",
    "status",
    "task",
];

/// Files and directories of /proc itself that are made, not stored.
const ROOT_FILES: [&str; 6] = ["loadavg", "meminfo", "self", "sys", "uptime", "version"];

/// What `ls /proc` shows beside stored nodes.
pub(crate) fn names(state: &State) -> Vec<String> {
    let pids = state.processes.iter().map(|p| p.pid.to_string());
    pids.chain(ROOT_FILES.map(str::to_owned)).collect()
}

fn entry(kernel: &Kernel, uid: u32, mode: u32, body: Body) -> Entry {
    let kind = match body {
        Body::Directory(_) => DIRECTORY,
        Body::Link(_) => LINK,
        _ => REGULAR,
    };
    Entry {
        stat: Stat {
            mode: kind | mode,
            uid,
            gid: uid,
            // Files of /proc are empty to stat.
            size: 0,
            inode: 4_026_531_840,
            mtime: (kernel.clock.real() / SECOND) as i64,
        },
        label: "proc",
        body,
    }
}

fn text(kernel: &Kernel, uid: u32, mode: u32, text: impl Into<Vec<u8>>) -> Entry {
    entry(kernel, uid, mode, Body::File(FileData::new(text.into(), 0)))
}

/// What is at a path below /proc.
pub(crate) fn lookup(
    kernel: &Kernel,
    state: &State,
    cred: &Cred,
    parts: &[String],
) -> Result<Entry, Errno> {
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let dir = |names: &[&str]| {
        let names = names.iter().map(|n| (*n).to_owned()).collect();
        Ok(entry(kernel, 0, 0o555, Body::Directory(names)))
    };
    match parts[..] {
        ["uptime"] => {
            let up = kernel.clock.boot() / (10 * MILLI);
            let line = format!("{}.{:02} {}.31\n", up / 100, up % 100, up / 100 * 6);
            Ok(text(kernel, 0, 0o444, line))
        }
        ["loadavg"] => Ok(text(kernel, 0, 0o440, "2.31 2.14 1.97 1/3121 9121\n")),
        ["version"] => Ok(text(
            kernel,
            0,
            0o440,
            format!("Linux version {} (build@host)\n", kernel_release(kernel)),
        )),
        ["meminfo"] => Ok(text(kernel, 0, 0o444, meminfo())),
        ["sys"] => dir(&["kernel"]),
        ["sys", "kernel"] => dir(&["random", "ostype", "osrelease"]),
        ["sys", "kernel", "random"] => dir(&["boot_id"]),
        ["sys", "kernel", "random", "boot_id"] => {
            Ok(text(kernel, 0, 0o444, format!("{}\n", state.boot_id)))
        }
        ["sys", "kernel", "ostype"] => Ok(text(kernel, 0, 0o444, "Linux\n")),
        ["sys", "kernel", "osrelease"] => Ok(text(
            kernel,
            0,
            0o444,
            format!("{}\n", kernel_release(kernel)),
        )),
        [pid, ref rest @ ..] => {
            let pid = pid.parse().map_err(|_| Errno::NoEntry)?;
            let process = state.processes.get(pid).ok_or(Errno::NoEntry)?;
            process_entry(kernel, cred, process, rest)
        }
        [] => Err(Errno::NoEntry),
    }
}

pub(crate) fn kernel_release(kernel: &Kernel) -> &'static str {
    match kernel.spec.android {
        10 => "4.9.185-perf",
        11 => "4.19.113-perf",
        12 => "5.10.66-android12-9",
        13 => "5.10.149-android13-4",
        14 => "5.15.137-android14-11",
        15 => "6.1.99-android14-11",
        _ => "6.6.77-android15-8",
    }
}

fn meminfo() -> String {
    "MemTotal:        7831084 kB\nMemFree:          214512 kB\nMemAvailable:    3120448 kB\n\
     Buffers:            5120 kB\nCached:          2890240 kB\nSwapTotal:       3145724 kB\n\
     SwapFree:        2411008 kB\n"
        .to_owned()
}

fn process_entry(kernel: &Kernel, cred: &Cred, p: &Process, rest: &[&str]) -> Result<Entry, Errno> {
    let file = |mode: u32, contents: Vec<u8>| Ok(text(kernel, p.uid, mode, contents));
    // What ptrace may read is refused at open, not by mode.
    let inspected = |contents: String| {
        if may_inspect(cred, p) {
            file(0o444, contents.into_bytes())
        } else {
            file(0o000, Vec::new())
        }
    };
    match rest {
        [] => {
            let names = PID_FILES.map(str::to_owned).to_vec();
            Ok(entry(kernel, p.uid, 0o555, Body::Directory(names)))
        }
        ["cmdline"] => file(0o444, p.cmdline()),
        ["comm"] => file(0o644, format!("{}\n", p.comm()).into_bytes()),
        ["stat"] => file(0o444, stat_line(p).into_bytes()),
        ["statm"] => file(
            0o444,
            format!("{} {} 2600 5 0 20000 0\n", p.vsz_kb / 4, p.rss_kb / 4).into_bytes(),
        ),
        ["status"] => file(0o444, status(p).into_bytes()),
        ["oom_score_adj"] => file(0o644, format!("{}\n", p.oom_score_adj).into_bytes()),
        ["cgroup"] => {
            let freezer = if p.frozen { "/frozen" } else { "" };
            file(
                0o444,
                format!("0::/uid_{}/pid_{}{freezer}\n", p.uid, p.pid).into_bytes(),
            )
        }
        ["attr"] => Ok(entry(
            kernel,
            p.uid,
            0o555,
            Body::Directory(vec!["current".to_owned()]),
        )),
        ["attr", "current"] => file(0o444, format!("u:r:{}:s0\0", p.domain).into_bytes()),
        ["task"] => Ok(entry(
            kernel,
            p.uid,
            0o555,
            Body::Directory(vec![p.pid.to_string()]),
        )),
        ["task", tid, rest @ ..] if tid.parse() == Ok(p.pid) => {
            process_entry(kernel, cred, p, rest)
        }
        ["exe"] => {
            if may_inspect(cred, p) {
                Ok(entry(kernel, p.uid, 0o777, Body::Link(executable(p))))
            } else {
                Err(Errno::Access)
            }
        }
        ["maps"] => inspected(maps(p)),
        ["smaps"] => inspected(smaps(p)),
        ["smaps_rollup"] => inspected(rollup(p)),
        ["mem"] => inspected(String::new()),
        _ => Err(Errno::NoEntry),
    }
}

fn executable(p: &Process) -> String {
    match p.role {
        Role::Native | Role::Command => p.name().to_owned(),
        _ if p.bits_32 => "/system/bin/app_process32".to_owned(),
        _ => "/system/bin/app_process64".to_owned(),
    }
}

fn stat_line(p: &Process) -> String {
    // Start time is in ticks of 10 ms; 20 fields of no interest stand at plausible values.
    format!(
        "{} ({}) {} {} {} 0 0 -1 1077936448 52342 0 12 0 {} {} 0 0 20 0 {} 0 {} {} {} \
         18446744073709551615 0 0 0 0 0 0 0 4612 1073775864 0 0 0 17 2 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
        p.pid,
        p.comm(),
        p.state(),
        p.ppid,
        p.ppid,
        p.rss_kb / 300,
        p.rss_kb / 900,
        threads(p),
        p.started / (10 * MILLI),
        p.vsz_kb * 1024,
        p.rss_kb / 4,
    )
}

fn threads(p: &Process) -> u32 {
    match p.role {
        Role::App { .. } => 38,
        Role::SystemServer => 212,
        Role::Zygote => 9,
        Role::Native => 4,
        Role::Kernel | Role::Command => 1,
    }
}

fn status(p: &Process) -> String {
    let state = match p.state() {
        'T' => "T (stopped)",
        'I' => "I (idle)",
        _ => "S (sleeping)",
    };
    let mut text = format!(
        "Name:\t{}\nUmask:\t0077\nState:\t{state}\nTgid:\t{pid}\nNgid:\t0\nPid:\t{pid}\n\
         PPid:\t{}\nTracerPid:\t0\nUid:\t{u}\t{u}\t{u}\t{u}\nGid:\t{u}\t{u}\t{u}\t{u}\n\
         FDSize:\t256\nGroups:\t\n",
        p.comm(),
        p.ppid,
        pid = p.pid,
        u = p.uid,
    );
    if p.role != Role::Kernel {
        let (anon, file) = (p.rss_kb * 55 / 100, p.rss_kb * 44 / 100);
        text.push_str(&format!(
            "VmPeak:\t{:>8} kB\nVmSize:\t{:>8} kB\nVmHWM:\t{:>8} kB\nVmRSS:\t{:>8} kB\n\
             RssAnon:\t{anon:>8} kB\nRssFile:\t{file:>8} kB\nRssShmem:\t{:>8} kB\n\
             VmSwap:\t{:>8} kB\n",
            p.vsz_kb + 1024,
            p.vsz_kb,
            p.rss_kb + p.rss_kb / 20,
            p.rss_kb,
            p.rss_kb - anon - file,
            p.rss_kb / 8,
        ));
    }
    text.push_str(&format!(
        "Threads:\t{}\nSigQ:\t0/28411\nSigPnd:\t{:016x}\nShdPnd:\t{:016x}\nSigBlk:\t{:016x}\n\
         SigIgn:\t{:016x}\nSigCgt:\t{:016x}\nvoluntary_ctxt_switches:\t4711\n",
        threads(p),
        0,
        signal_mask(&p.pending),
        0,
        signal_mask(&p.ignored),
        signal_mask(&p.caught),
    ));
    text
}

/// Signal N is bit N - 1.
fn signal_mask<'a>(signals: impl IntoIterator<Item = &'a u8>) -> u64 {
    signals
        .into_iter()
        .filter(|signal| (1..=64).contains(*signal))
        .fold(0, |mask, signal| mask | 1 << (signal - 1))
}

fn maps(p: &Process) -> String {
    format!(
        "12c00000-32c00000 rw-p 00000000 00:00 0                                  [anon:dalvik-main space (region space)]\n\
         b400007a00000000-b400007a04000000 rw-p 00000000 00:00 0                  [anon:scudo:primary]\n\
         7b6c2e3000-7b6c37f000 r-xp 00051000 fe:2d 51                             /apex/com.android.runtime/lib64/bionic/libc.so\n\
         5f3a1c2000-5f3a1c6000 r-xp 00002000 fe:07 2116                           {}\n",
        executable(p)
    )
}

fn smaps(p: &Process) -> String {
    maps(p)
        .lines()
        .map(|line| {
            format!(
                "{line}\nSize:{:>18} kB\nRss:{:>19} kB\nPss:{:>19} kB\nPrivate_Dirty:{:>9} kB\n",
                65_536,
                p.rss_kb / 4,
                p.rss_kb / 5,
                p.rss_kb / 6
            )
        })
        .collect()
}

fn rollup(p: &Process) -> String {
    format!(
        "12c00000-7fffffffff ---p 00000000 00:00 0                                [rollup]\n\
         Rss:{:>20} kB\nPss:{:>20} kB\nPrivate_Dirty:{:>10} kB\nSwap:{:>19} kB\n",
        p.rss_kb,
        p.rss_kb * 7 / 10,
        p.rss_kb / 2,
        p.rss_kb / 8
    )
}
