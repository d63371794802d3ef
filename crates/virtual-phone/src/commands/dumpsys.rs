//! dumpsys: package, meminfo, power, activity; and its timeout for a service.

use super::{Cmd, Done, Halt, refuse};
use crate::clock::{MILLI, SECOND};
use crate::faults::FaultKind;
use crate::packages::{Package, Profiling};
use crate::process::Process;

/// Default timeout for a service in nanoseconds.
const PATIENCE: u64 = 10 * SECOND;
pub(super) fn dumpsys(cmd: &mut Cmd) -> Done {
    let mut args = cmd.args();
    let mut patience = PATIENCE;
    // `-t SECONDS` precedes the service.
    if args.first().is_some_and(|flag| flag == "-t") {
        let number = args.get(1).and_then(|n| n.parse::<u32>().ok());
        let Some(number) = number.filter(|n| *n > 0) else {
            let told = args.get(1).map_or("", String::as_str);
            return refuse(255, format!("Error: invalid timeout value: '{told}'"));
        };
        patience = u64::from(number) * SECOND;
        args.drain(..2);
    }
    let Some((service, rest)) = args.split_first() else {
        return cmd.only("a single service");
    };
    match service.as_str() {
        "package" => package(cmd, rest)?,
        "power" => {
            let on = cmd.kernel.state().screen_on;
            let wake = if on { "Awake" } else { "Asleep" };
            cmd.out(&format!(
                "POWER MANAGER (dumpsys power)\n\nPower Manager State:\n  mDirty=0x0\n  mWakefulness={wake}\n  mWakefulnessChanging=false\n  mIsPowered=true\n  mPlugType=2\n  mBatteryLevel=87\nDisplay Power: state={}\n",
                if on { "ON" } else { "OFF" }
            ))?;
        }
        "activity" => activity(cmd, rest)?,
        "gfxinfo" => super::memory::gfxinfo(cmd, rest)?,
        "meminfo" if cmd.kernel.faults.has_struck(FaultKind::MeminfoHang) => {
            expire(cmd, service, patience)?;
        }
        "meminfo" => super::meminfo::meminfo(cmd, rest)?,
        "battery" => cmd.out(&super::conditions::battery())?,
        "deviceidle" => return super::conditions::deviceidle(cmd, rest),
        "thermalservice" => cmd.out(&super::conditions::thermal(cmd))?,
        "window" => cmd.out(&super::dumpsys_screen::windows(cmd))?,
        other => return refuse(0, format!("Can't find service: {other}")),
    }
    Ok(0)
}

/// Handles a service that never answers: dumpsys waits for its timeout, reports it, and exits with
/// 0.
fn expire(cmd: &Cmd, service: &str, patience: u64) -> Result<(), Halt> {
    cmd.wait(patience / MILLI)?;
    cmd.out(&format!(
        "\n*** SERVICE '{service}' DUMP TIMEOUT ({}ms) EXPIRED ***\n\n",
        patience / MILLI
    ))
}

/// `dumpsys package dexopt`: the compiled code of each package.
fn dexopt(cmd: &Cmd) -> Result<(), Halt> {
    let (spec, all) = (&cmd.kernel.spec, cmd.kernel.state().packages.clone());
    let mut out = "Dexopt state:\n".to_owned();
    for p in all {
        let isa = spec.abi.of_process(p.bits_32).isa();
        out.push_str(&format!(
            "  [{}]\n    path: {}\n      {isa}: [status={}] [reason=install]\n",
            p.name,
            p.apk(),
            p.compiled
        ));
    }
    cmd.out(&out)
}

fn package(cmd: &Cmd, rest: &[String]) -> Result<(), Halt> {
    if rest.first().is_some_and(|word| word == "dexopt") {
        return dexopt(cmd);
    }
    if rest.first().is_some_and(|word| word == "installs") {
        let state = cmd.kernel.state();
        let ids = state.installs.keys().map(|id| format!("  Session {id}:\n"));
        let sessions: String = ids.collect();
        drop(state);
        return cmd.out(&format!("Active install sessions:\n{sessions}\n"));
    }
    let wanted = rest.iter().rev().find(|a| !a.starts_with('-'));
    let all = cmd.kernel.state().packages.clone();
    let shown: Vec<&Package> = all
        .iter()
        .filter(|p| wanted.is_none_or(|w| p.name == *w))
        .collect();
    if shown.is_empty() {
        return cmd.out(&format!(
            "Unable to find package: {}\n",
            wanted.map_or("", String::as_str)
        ));
    }
    let android = cmd.kernel.spec.android;
    let mut out = String::new();
    for (name, main) in shown.iter().filter_map(|p| Some((p.name, p.activity?))) {
        out.push_str(&format!("Activity Resolver Table:\n  Non-Data Actions:\n      android.intent.action.MAIN:\n        7c1a2b {name}/{main} filter 2f3a\n\n"));
    }
    out.push_str("Packages:\n");
    for p in shown {
        let mut flags = vec!["HAS_CODE", "ALLOW_CLEAR_USER_DATA", "ALLOW_BACKUP"];
        if p.debuggable() {
            flags.insert(0, "DEBUGGABLE");
        }
        if p.system {
            flags.insert(0, "SYSTEM");
        }
        let flags = flags.join(" ");
        let mut private = "PRIVATE_FLAG_ACTIVITIES_RESIZE_MODE_RESIZEABLE_VIA_SDK_VERSION ALLOW_AUDIO_PLAYBACK_CAPTURE PRIVATE_FLAG_ALLOW_NATIVE_HEAP_POINTER_TAGGING".to_owned();
        // Real release builds do not print shell=true; only newer ones print this line.
        if android >= 12 && p.profiling != Profiling::Closed {
            private.push_str(" ]\n    privateFlagsExt=[ PRIVATE_FLAG_EXT_PROFILEABLE");
        }
        let uid_key = if android >= 14 { "appId" } else { "userId" };
        let abi = cmd.kernel.spec.abi.of_process(p.bits_32).name();
        out.push_str(&format!(
            "  Package [{}] (9f3c{}):\n    {uid_key}={}\n",
            p.name, p.appid, p.appid
        ));
        if let Some(shared) = p.shared_user {
            out.push_str(&format!(
                "    sharedUser=SharedUserSetting{{b1d6c2e {shared}/{}}}\n",
                p.appid
            ));
        }
        out.push_str(&format!(
            "    pkg=Package{{8e3d1f0 {name}}}\n    codePath={code}\n    resourcePath={code}\n    primaryCpuAbi={abi}\n    secondaryCpuAbi=null\n    versionCode={version} minSdk=26 targetSdk=33\n    versionName=1.{version}\n    splits=[base]\n    flags=[ {flags} ]\n    pkgFlags=[ {flags} ]\n    privatePkgFlags=[ {private} ]\n    privateFlags=[ {private} ]\n    dataDir=/data/user/0/{name}\n    installerPackageName={installer}\n    signatures=PackageSignatures{{1c2d version:2, signatures:[a1b2c3d4], past signatures:[]}}\n",
            name = p.name,
            code = p.code_path(),
            version = p.version,
            installer = p.installer.unwrap_or("null"),
        ));
        for user in p.users {
            out.push_str(&format!(
                "    User {user}: ceDataInode=13{} installed=true hidden=false suspended=false stopped=false notLaunched=false enabled=0\n",
                p.appid
            ));
        }
        out.push('\n');
    }
    cmd.out(&out)
}

fn activity(cmd: &Cmd, rest: &[String]) -> Result<(), Halt> {
    match rest.first().map(String::as_str) {
        Some("activities") => cmd.out(&super::dumpsys_screen::activities(cmd)),
        Some("top") => cmd.out(&super::dumpsys_screen::top(cmd)),
        Some("processes") => {
            let wanted = rest.get(1);
            let is_wanted = |p: &Process| wanted.is_none_or(|w| p.name().starts_with(w.as_str()));
            let state = cmd.kernel.state();
            let apps = state
                .processes
                .select(|p| p.app().is_some() && is_wanted(p));
            drop(state);
            let mut out = "ACTIVITY MANAGER RUNNING PROCESSES (dumpsys activity processes)\n  All known processes:\n".to_owned();
            for p in apps {
                let proc_state = match p.oom_score_adj {
                    i32::MIN..=-700 => 0,
                    -699..=0 => 2,
                    1..=250 => 6,
                    251..=899 => 12,
                    _ => 16,
                };
                out.push_str(&format!(
                    "  *APP* UID {uid} ProcessRecord{{{pid:x}a1 {pid}:{name}/{user}}}\n    pid={pid}\n    curAdj={adj} setAdj={adj}\n    curProcState={proc_state} mRepProcState={proc_state} setProcState={proc_state}\n    isFrozen={frozen}\n",
                    uid = p.uid,
                    pid = p.pid,
                    name = p.name(),
                    user = crate::process::user_name(p.uid),
                    adj = p.oom_score_adj,
                    frozen = p.frozen,
                ));
            }
            cmd.out(&out)
        }
        Some("exit-info") if cmd.kernel.spec.android >= 11 => {
            cmd.out(&super::dumpsys_screen::exits(cmd, rest.get(1)))
        }
        _ => {
            let top = cmd.kernel.state().foreground.clone();
            cmd.out(&format!(
                "ACTIVITY MANAGER (dumpsys activity)\n  mFocusedApp={top}\n"
            ))
        }
    }
}
