//! dmabuf_dump and `dumpsys gfxinfo`: other formats of memory accounting.

use super::{Cmd, Done, Halt, refuse};
use crate::clock::MILLI;
use crate::memory::{Ledger, has_java};
use crate::process::{Pid, Process, Role};

/// Returns every process with its own memory.
fn everyone(cmd: &Cmd) -> Vec<(Process, Ledger)> {
    let state = cmd.kernel.state();
    let now = cmd.kernel.clock.boot();
    let seen = |p: &Process| Some((p.clone(), cmd.kernel.memory.ledger(&state, p, now)?));
    state.processes.iter().filter_map(seen).collect()
}

/// Returns the lines of a process in `dmabuf_dump`; `None` if it does not have buffers.
fn of_process(process: &Process, ledger: &Ledger) -> Option<String> {
    let buffers = ledger.buffers();
    if buffers.is_empty() {
        return None;
    }
    let mut out = format!("{:>16}:{:<5}\n", process.comm(), process.pid);
    out.push_str(&format!(
        "{:>22} {:>16} {:>16} {:>16} {:>16}\n",
        "Name", "Rss", "Pss", "nr_procs", "Inode"
    ));
    let (mut rss, mut pss) = (0, 0);
    for (n, kb) in buffers.iter().enumerate() {
        // Both the app and the compositor have the buffer.
        let inode = u64::from(process.pid) * 8 + n as u64;
        out.push_str(&format!(
            "{:>22} {kb:>13} kB {:>13} kB {:>16} {inode:>16}\n",
            "<unknown>",
            kb / 2,
            2
        ));
        rss += kb;
        pss += kb / 2;
    }
    out.push_str(&format!(
        "{:>22} {rss:>13} kB {pss:>13} kB {:>16} {:>16}\n",
        "PROCESS TOTAL", "", ""
    ));
    Some(out)
}

pub(super) fn dmabuf_dump(cmd: &mut Cmd) -> Done {
    if !cmd.cred.is_root() {
        return refuse(1, "Failed to read dmabuf info: Permission denied");
    }
    let wanted = cmd.args().iter().find_map(|a| a.parse::<Pid>().ok());
    let all = everyone(cmd);
    let mut all_rss = 0;
    let mut out = String::new();
    for (process, ledger) in &all {
        if wanted.is_some_and(|pid| pid != process.pid) {
            continue;
        }
        all_rss += ledger.buffers().iter().sum::<u64>();
        out.push_str(&of_process(process, ledger).unwrap_or_default());
    }
    if wanted.is_none() {
        let pss = all_rss / 2;
        out.push_str(&format!(
            "----------------------\ndmabuf total: {pss} kB kernel_rss: 0 kB userspace_rss: {all_rss} kB userspace_pss: {pss} kB\n"
        ));
    }
    cmd.answer(&out)
}

/// `dumpsys gfxinfo [PACKAGE]`: each of its processes that draws.
pub(super) fn gfxinfo(cmd: &Cmd, rest: &[String]) -> Result<(), Halt> {
    let wanted = rest
        .iter()
        .find(|a| !a.starts_with('-') && *a != "framestats");
    let now = cmd.kernel.clock.boot();
    let clock = cmd.kernel.clock.at(now);
    cmd.out(&format!(
        "Applications Graphics Acceleration Info:\nUptime: {} Realtime: {}\n",
        clock.monotonic / MILLI,
        clock.boot / MILLI
    ))?;
    let mut found = false;
    for (process, ledger) in everyone(cmd) {
        let package = match &process.role {
            Role::App { package, .. } => package.clone(),
            _ => continue,
        };
        let meant = wanted
            .is_none_or(|w| *w == package || *w == process.name() || *w == process.pid.to_string());
        if !meant || !has_java(&process) {
            continue;
        }
        found = true;
        cmd.out(&graphics_of(&process, &ledger))?;
    }
    match wanted {
        Some(name) if !found => cmd.out(&format!("No process found for: {name}\n")),
        _ => Ok(()),
    }
}

fn graphics_of(process: &Process, ledger: &Ledger) -> String {
    let windows = ledger
        .java
        .map_or(0, |j| j.live.instances("android.view.ViewRootImpl"));
    let frames = ledger.awake / (16 * MILLI) / 4;
    let mut out = format!(
        "\n** Graphics info for pid {} [{}] **\n\nStats since: {}ns\nTotal frames rendered: {frames}\n\
         Janky frames: {} ({:.2}%)\n50th percentile: 6ms\n90th percentile: 11ms\n95th percentile: 14ms\n99th percentile: 29ms\n",
        process.pid,
        process.name(),
        process.started,
        frames / 190,
        if frames == 0 { 0.0 } else { 100.0 / 190.0 },
    );
    if windows == 0 {
        return out;
    }
    let texture = ledger.graphics.gl * 1_024;
    let megabytes = |bytes: u64| bytes as f64 / 1_048_576.0;
    let fonts = 90 * 1_024;
    out.push_str(&format!(
        "\nFont Cache (CPU):\n  Size: {:.2} kB \n  Glyph Count: 91 \nCPU Caches:\nTotal CPU memory usage:\n  {fonts} bytes, {:.2} KB\n\
         GPU Caches:\n  Image:\n    Texture: {:.2} MB\nOther Caches:\n                         Current / Maximum\n  Layers Total           0.00 KB (numLayers = 0)\n\
         Total GPU memory usage:\n  {texture} bytes, {:.2} MB ({:.2} MB is purgeable)\n\n",
        fonts as f64 / 1_024.0,
        fonts as f64 / 1_024.0,
        megabytes(texture),
        megabytes(texture),
        megabytes(texture / 9),
    ));
    let buffers = ledger.buffers();
    out.push_str("GraphicBufferAllocator buffers:\n    Handle |        Size |     W (Stride) x H | Layers |   Format |      Usage | Requestor\n");
    for (n, kb) in buffers.iter().enumerate() {
        out.push_str(&format!(
            "0xb400007{n:03x} | {kb:>7}.00 KiB | 1080 (1080) x 2400 |      1 |        1 | 0x     b00 | VRI\n"
        ));
    }
    out.push_str(&format!(
        "Total allocated by GraphicBufferAllocator (estimate): {}.00 KB\n\n",
        buffers.iter().sum::<u64>()
    ));
    out.push_str(&format!(
        "View hierarchy:\n\n  {}/android.view.ViewRootImpl@5d1f6a7\n  {} views, 14.52 kB of render nodes\n\n\
         Total ViewRootImpl   : {windows}\nTotal attached Views : {}\nTotal RenderNode     : 14.52 kB (used) / 28.40 kB (capacity)\n\n",
        process.name(),
        ledger.java.map_or(0, |j| j.live.instances("android.view.View")),
        ledger.java.map_or(0, |j| j.live.instances("android.view.View")),
    ));
    out
}
