//! /proc, generated on each access from the table of processes.

use super::access::{Cred, may_inspect};
use super::clock::{MILLI, SECOND};
use super::fs::{Body, DIRECTORY, Entry, Errno, FileData, REGULAR, Stat};
use super::kernel::Kernel;
use super::memory::{Backing, Ledger, Mapping, Pages};
use super::process::{Process, Role};
use super::state::State;

const PID_FILES: &str = "attr cmdline environ maps oom_score_adj smaps smaps_rollup stat status";

/// Generated files and directories of /proc itself.
const ROOT_FILES: [&str; 3] = ["meminfo", "sys", "uptime"];

/// Returns the generated names in `ls /proc`, in addition to those of stored nodes.
pub(crate) fn names(state: &State) -> Vec<String> {
    let pids = state.processes.iter().map(|p| p.pid.to_string());
    pids.chain(ROOT_FILES.map(str::to_owned)).collect()
}

fn entry(kernel: &Kernel, uid: u32, mode: u32, body: Body) -> Entry {
    let kind = match body {
        Body::Directory(_) => DIRECTORY,
        _ => REGULAR,
    };
    Entry {
        stat: Stat {
            mode: kind | mode,
            uid,
            gid: uid,
            // Files of /proc have size 0 in stat.
            size: 0,
            inode: 4_026_531_840,
            mtime: (kernel.clock.real() / SECOND) as i64,
        },
        label: "proc",
        body,
    }
}

fn text(kernel: &Kernel, uid: u32, mode: u32, text: String) -> Entry {
    let data = FileData::new(text.into_bytes(), 0);
    entry(kernel, uid, mode, Body::File(data))
}

fn directory(kernel: &Kernel, uid: u32, names: &str) -> Entry {
    let names = names.split(' ').map(str::to_owned).collect();
    entry(kernel, uid, 0o555, Body::Directory(names))
}

/// Returns the entry at a path below /proc.
pub(crate) fn lookup(
    kernel: &Kernel,
    state: &State,
    cred: &Cred,
    parts: &[String],
) -> Result<Entry, Errno> {
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let dir = |names| Ok(directory(kernel, 0, names));
    match parts[..] {
        ["uptime"] => {
            let up = kernel.clock.boot() / (10 * MILLI);
            let line = format!("{}.{:02} {}.31\n", up / 100, up % 100, up / 100 * 6);
            Ok(text(kernel, 0, 0o444, line))
        }
        ["meminfo"] => Ok(text(kernel, 0, 0o444, meminfo(kernel, state))),
        ["sys"] => dir("kernel"),
        ["sys", "kernel"] => dir("random"),
        ["sys", "kernel", "random"] => dir("boot_id"),
        ["sys", "kernel", "random", "boot_id"] => {
            Ok(text(kernel, 0, 0o444, format!("{}\n", state.boot_id)))
        }
        [pid, ref rest @ ..] => {
            let pid = pid.parse().map_err(|_| Errno::NoEntry)?;
            let process = state.processes.get(pid).ok_or(Errno::NoEntry)?;
            process_entry(kernel, state, cred, process, rest)
        }
        [] => Err(Errno::NoEntry),
    }
}

/// Formats fields of meminfo and smaps.
fn fields(fields: &[(&str, u64)]) -> String {
    let lines = fields.iter().map(|(name, kb)| {
        let name = format!("{name}:");
        format!("{name:<16}{kb:>8} kB\n")
    });
    lines.collect()
}

fn meminfo(kernel: &Kernel, state: &State) -> String {
    let ram = kernel.memory.ram(state);
    fields(&[
        ("MemTotal", ram.total),
        ("MemFree", ram.free),
        ("MemAvailable", ram.available()),
        ("Buffers", ram.buffers),
        ("Cached", ram.cached),
        ("SwapCached", 1_204),
        ("Active", ram.used * 2 / 3 + ram.cached / 2),
        ("Inactive", ram.used / 3 + ram.cached / 2),
        ("Mapped", ram.mapped),
        ("Shmem", ram.shmem),
        ("Slab", ram.slab),
        ("SReclaimable", ram.slab / 3),
        ("SUnreclaim", ram.slab - ram.slab / 3),
        ("KernelStack", ram.stacks),
        ("PageTables", ram.tables),
        ("SwapTotal", ram.swap_total),
        ("SwapFree", ram.swap_total - ram.swap_used),
        ("VmallocUsed", ram.vmalloc),
    ])
}

fn process_entry(
    kernel: &Kernel,
    state: &State,
    cred: &Cred,
    p: &Process,
    rest: &[&str],
) -> Result<Entry, Errno> {
    let ledger = || kernel.memory.ledger(state, p, kernel.clock.boot());
    let file = |mode: u32, contents: String| Ok(text(kernel, p.uid, mode, contents));
    // Files that require ptrace permission are refused at open, not by mode.
    let inspected = |contents: &dyn Fn() -> String| match may_inspect(cred, p) {
        true => file(0o444, contents()),
        false => file(0o000, String::new()),
    };
    match rest {
        [] => Ok(directory(kernel, p.uid, PID_FILES)),
        ["cmdline"] => file(0o444, p.cmdline()),
        ["stat"] => file(0o444, stat_line(p, ledger().as_ref())),
        ["status"] => file(0o444, status(p, ledger().as_ref())),
        ["oom_score_adj"] => file(0o644, format!("{}\n", p.oom_score_adj)),
        ["attr"] => Ok(directory(kernel, p.uid, "current")),
        ["attr", "current"] => file(0o444, format!("u:r:{}:s0\0", p.domain)),
        ["environ"] => inspected(&|| p.environ()),
        ["maps"] => inspected(&|| maps(ledger().as_ref())),
        ["smaps"] => inspected(&|| smaps(ledger().as_ref())),
        ["smaps_rollup"] => inspected(&|| rollup(ledger().as_ref())),
        _ => Err(Errno::NoEntry),
    }
}

fn stat_line(p: &Process, ledger: Option<&Ledger>) -> String {
    // The start time is in ticks of 10 ms; unused fields have plausible values.
    let size = ledger.map_or(0, |l| l.size_kb() * 1024);
    let rss = ledger.map_or(0, |l| l.pages().rss() / 4);
    let (user, system) = cpu_ticks(p, ledger);
    format!(
        "{} ({}) {} {} {} 0 0 -1 1077936448 {} 0 12 0 {user} {system} 0 0 20 0 {} 0 {} {size} {rss} \
         18446744073709551615 0 0 0 0 0 0 0 4612 1073775864 0 0 0 17 2 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
        p.pid,
        p.comm(),
        p.state(),
        p.ppid,
        p.ppid,
        rss * 3 / 2,
        ledger.map_or(1, |l| l.threads),
        p.started / (10 * MILLI),
    )
}

/// Returns the ticks of 10 ms that a process has used in its own code and in the kernel: a share of
/// its time awake, plus its start.
fn cpu_ticks(p: &Process, ledger: Option<&Ledger>) -> (u64, u64) {
    let awake = ledger.map_or(0, |l| l.awake) / (10 * MILLI);
    let start = match p.role {
        Role::App { .. } | Role::SystemServer => 61,
        _ => 2,
    };
    let share = match p.role {
        Role::App { .. } if p.oom_score_adj <= 0 => 11,
        Role::App { .. } | Role::SystemServer => 4,
        _ => 1,
    };
    (start + awake * share / 100, start / 3 + awake * share / 300)
}

fn status(p: &Process, ledger: Option<&Ledger>) -> String {
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
    if let Some(ledger) = ledger {
        let pages = ledger.pages();
        let (size, rss) = (ledger.size_kb(), pages.rss());
        let (anon, file, shmem) = ledger.resident();
        let with = |permission| -> u64 {
            let mappings = ledger.mappings.iter();
            let those = mappings.filter(|m| m.permissions.contains(permission));
            those.map(Mapping::size_kb).sum()
        };
        let (data, code) = (with('w'), with('x'));
        text.push_str(&format!(
            "VmPeak:\t{:>8} kB\nVmSize:\t{size:>8} kB\nVmLck:\t{:>8} kB\nVmPin:\t{:>8} kB\n\
             VmHWM:\t{:>8} kB\nVmRSS:\t{rss:>8} kB\n\
             RssAnon:\t{anon:>8} kB\nRssFile:\t{file:>8} kB\nRssShmem:\t{shmem:>8} kB\n\
             VmData:\t{data:>8} kB\nVmStk:\t{:>8} kB\nVmExe:\t{:>8} kB\nVmLib:\t{code:>8} kB\n\
             VmPTE:\t{:>8} kB\nVmSwap:\t{:>8} kB\n",
            size + 1024,
            0,
            0,
            rss + rss / 20,
            8_192,
            28,
            rss / 96,
            pages.swap,
        ));
    }
    text.push_str(&format!(
        "Threads:\t{}\nSigQ:\t0/28411\nSigPnd:\t{:016x}\nShdPnd:\t{:016x}\nSigBlk:\t{:016x}\n\
         SigIgn:\t{:016x}\nSigCgt:\t{:016x}\nvoluntary_ctxt_switches:\t4711\n",
        ledger.map_or(1, |l| l.threads),
        0,
        signal_mask(&p.pending),
        0,
        signal_mask(&p.ignored),
        signal_mask(&p.caught),
    ));
    text
}

/// Returns the mask of signals: signal N is bit N - 1.
fn signal_mask<'a>(signals: impl IntoIterator<Item = &'a u8>) -> u64 {
    signals
        .into_iter()
        .filter(|signal| (1..=64).contains(*signal))
        .fold(0, |mask, signal| mask | 1 << (signal - 1))
}

/// Formats a line of maps; names start in column 74 if the addresses leave room for that.
fn maps_line(m: &Mapping) -> String {
    let device = match m.backing {
        Backing::File => "fe:2d",
        Backing::Shared => "00:01",
        Backing::Anonymous => "00:00",
    };
    let line = format!(
        "{:08x}-{:08x} {} {:08x} {device} {}",
        m.start, m.end, m.permissions, m.offset, m.inode
    );
    if m.name.is_empty() {
        return format!("{line} \n");
    }
    format!("{line:<72} {}\n", m.name)
}

fn maps(ledger: Option<&Ledger>) -> String {
    let mappings = ledger.map_or(&[][..], |l| &l.mappings);
    mappings.iter().map(maps_line).collect()
}

/// Formats the fields of smaps and its rollup that describe pages.
fn pages(pages: &Pages, anonymous: u64) -> String {
    fields(&[
        ("Rss", pages.rss()),
        ("Pss", pages.pss),
        ("Shared_Clean", pages.shared_clean),
        ("Shared_Dirty", pages.shared_dirty),
        ("Private_Clean", pages.private_clean),
        ("Private_Dirty", pages.private_dirty),
        ("Referenced", pages.rss()),
        ("Anonymous", anonymous),
        ("LazyFree", 0),
        ("AnonHugePages", 0),
        ("ShmemPmdMapped", 0),
        ("Shared_Hugetlb", 0),
        ("Private_Hugetlb", 0),
        ("Swap", pages.swap),
        ("SwapPss", pages.swap_pss),
        ("Locked", 0),
    ])
}

fn smaps(ledger: Option<&Ledger>) -> String {
    let mut text = String::new();
    for m in ledger.map_or(&[][..], |l| &l.mappings) {
        text.push_str(&maps_line(m));
        text.push_str(&format!(
            "Size:           {:>8} kB\nKernelPageSize: {:>8} kB\nMMUPageSize:    {:>8} kB\n",
            m.size_kb(),
            4,
            4
        ));
        text.push_str(&pages(&m.pages, m.anonymous_kb()));
        let flags: String = [('r', " rd"), ('w', " wr"), ('x', " ex")]
            .iter()
            .filter(|(c, _)| m.permissions.contains(*c))
            .map(|(_, f)| *f)
            .collect();
        text.push_str(&format!("VmFlags:{flags} mr mw me ac \n"));
    }
    text
}

fn rollup(ledger: Option<&Ledger>) -> String {
    let Some(ledger) = ledger else {
        return String::new();
    };
    let ends = (ledger.mappings.first(), ledger.mappings.last());
    let (start, end) = match ends {
        (Some(first), Some(last)) => (first.start, last.end),
        _ => (0, 0),
    };
    let line = format!("{start:08x}-{end:08x} ---p 00000000 00:00 0");
    let (anonymous, ..) = ledger.resident();
    format!("{line:<72} [rollup]\n{}", pages(&ledger.pages(), anonymous))
}
