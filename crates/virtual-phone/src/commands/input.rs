//! input, wm, settings, svc, monkey: keys and touches, the display, and settings of a phone.

use super::{Arguments, BadOption, Cmd, Done, refuse};
use crate::foreground;
use crate::packages::APP;
use crate::screen::LAUNCHER;
use crate::state::State;

/// Keys with an effect: their names without `KEYCODE_`, and their numbers.
const KEYS: &str = "\
HOME 3 BACK 4 DPAD_UP 19 DPAD_DOWN 20 DPAD_LEFT 21 DPAD_RIGHT 22 DPAD_CENTER 23 VOLUME_UP 24 \
VOLUME_DOWN 25 POWER 26 CAMERA 27 TAB 61 SPACE 62 ENTER 66 DEL 67 MENU 82 SEARCH 84 PAGE_UP 92 \
PAGE_DOWN 93 ESCAPE 111 APP_SWITCH 187 SLEEP 223 WAKEUP 224 SOFT_SLEEP 276";

fn key(name: &str) -> Option<&'static str> {
    let plain = name.strip_prefix("KEYCODE_").unwrap_or(name);
    let words: Vec<&str> = KEYS.split(' ').collect();
    let found = words.chunks(2).find(|key| key.contains(&plain));
    found.map(|key| key[0])
}

pub(super) fn input(cmd: &mut Cmd) -> Done {
    let args = cmd.args();
    let Some((verb, rest)) = args.split_first() else {
        return invalid("");
    };
    let numbers: Option<Vec<f32>> = rest.iter().map(|a| a.parse().ok()).collect();
    match (verb.as_str(), numbers) {
        ("keyevent", _) => {
            for name in rest.iter().filter(|a| !a.starts_with("--")) {
                match key(name) {
                    Some(known) => press(cmd, known),
                    None if name.parse::<u32>().is_ok_and(|n| n < 320) => {}
                    None => return invalid(verb),
                }
            }
        }
        ("tap", Some(at)) if at.len() == 2 => {}
        ("swipe", Some(at)) if at.len() == 4 || at.len() == 5 => {
            let ms = at.get(4).copied().unwrap_or(300.0);
            cmd.wait(ms.clamp(0.0, 60_000.0) as u64)?;
            // A swipe over a lock screen without a PIN unlocks it.
            unlock(cmd);
        }
        ("text", _) if rest.len() == 1 => {}
        _ => return invalid(verb),
    }
    cmd.kernel.events.notify();
    Ok(0)
}

fn invalid(verb: &str) -> Done {
    const USAGE: &str = "Usage: input [<source>] [-d DISPLAY_ID] <command> [<arg>...]";
    let text = format!("Error: Invalid arguments for command: {verb}\n{USAGE}");
    refuse(255, text)
}

fn press(cmd: &Cmd, key: &str) {
    let (now, android) = (cmd.kernel.clock.now(), cmd.kernel.spec.android);
    let mut state = cmd.kernel.state();
    match key {
        "HOME" => foreground::home(&mut state, now),
        "BACK" => foreground::back(&mut state, android, now),
        "APP_SWITCH" => {
            // The first press shows the list; a second one right after it switches to the previous
            // app.
            let again = state
                .screen
                .recents
                .is_some_and(|at| now.boot.saturating_sub(at) < 3 * crate::clock::SECOND);
            state.screen.recents = (!again).then_some(now.boot);
            if again {
                foreground::previous_app(&mut state, now);
            }
        }
        "POWER" | "SLEEP" | "SOFT_SLEEP" | "WAKEUP" => {
            let on = match key {
                "POWER" => !state.screen_on,
                key => key == "WAKEUP",
            };
            if state.screen_on && !on {
                state.screen.locked = state.screen.locks;
            }
            state.screen_on = on;
        }
        _ => {}
    }
}

fn unlock(cmd: &Cmd) {
    let mut state = cmd.kernel.state();
    if state.screen_on && !state.screen.pin {
        state.screen.locked = false;
    }
}

pub(super) fn wm(cmd: &mut Cmd) -> Done {
    let args = cmd.args();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let android = cmd.kernel.spec.android;
    match words[..] {
        ["dismiss-keyguard"] => unlock(cmd),
        ["set-user-rotation", ref rest @ ..] if android < 12 => return rotation(cmd, rest),
        ["user-rotation", ref rest @ ..] if android >= 12 => return rotation(cmd, rest),
        [other, ..] => return cmd.end(255, &format!("Unknown command: {other}\n")),
        [] => {}
    }
    Ok(0)
}

/// `free` or `lock [0..3]`, which the settings store.
fn rotation(cmd: &Cmd, rest: &[&str]) -> Done {
    let lock = match rest {
        ["free"] => None,
        ["lock"] => Some(cmd.kernel.state().screen.rotation),
        ["lock", n] => match n.parse::<u32>().ok().filter(|n| *n < 4) {
            Some(n) => Some(n),
            None => return refuse(255, format!("Error: rotation can only be 0 to 3: {n}")),
        },
        _ => return refuse(255, "Error: argument needs to be either -d, free or lock."),
    };
    cmd.kernel.change(|state, now| {
        if let Some(n) = lock {
            foreground::set(state, "system", "user_rotation", Some(&n.to_string()), now);
        }
        let automatic = Some(if lock.is_some() { "0" } else { "1" });
        foreground::set(state, "system", "accelerometer_rotation", automatic, now);
    });
    Ok(0)
}

pub(super) fn settings(cmd: &mut Cmd) -> Done {
    let mut args = cmd.args();
    super::packages::take_user(&mut args);
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let set = |space: &str, key: &str, value: Option<&str>| {
        let change = |state: &mut State, now| foreground::set(state, space, key, value, now);
        cmd.kernel.change(change)
    };
    let spaces = ["system", "secure", "global"];
    match words[..] {
        [_, space, ..] if !spaces.contains(&space) => {}
        ["get", space, key] => {
            let state = cmd.kernel.state();
            let text = format!("{}\n", state.screen.setting(space, key).unwrap_or("null"));
            drop(state);
            return cmd.answer(&text);
        }
        ["put", space, key, value, ..] => {
            set(space, key, Some(value));
            return Ok(0);
        }
        ["delete", space, key] => {
            let had = set(space, key, None);
            return cmd.answer(&format!("Deleted {} rows\n", u8::from(had)));
        }
        ["list", space] => {
            let settings = cmd.kernel.state().screen.settings.clone();
            let of = settings.iter().filter(|((s, _), _)| s == space);
            let text: String = of
                .map(|((_, key), value)| format!("{key}={value}\n"))
                .collect();
            return cmd.answer(&text);
        }
        _ => {}
    }
    refuse(255, "Invalid command or arguments")
}

/// `svc power stayon usb`.
pub(super) fn svc(cmd: &mut Cmd) -> Done {
    if cmd.args() != ["power", "stayon", "usb"] {
        return cmd.only("power stayon usb");
    }
    let key = "stay_on_while_plugged_in";
    let change = |state: &mut State, now| foreground::set(state, "global", key, Some("2"), now);
    cmd.kernel.change(change);
    Ok(0)
}

/// Percentages of the kinds of events that monkey sends.
const EVENTS: [u32; 5] = [40, 25, 20, 10, 5];

/// Options of `monkey`, which precede the count.
const MONKEY: &str = "-v --ignore-crashes --ignore-timeouts --ignore-security-exceptions -p: -s: \
    --throttle: --pct-syskeys: --pct-rotation:";

/// `monkey -p PKG -s SEED --throttle MS … COUNT`: events that depend only on the seed. At the end
/// it frees the rotation, whatever its state before.
pub(super) fn monkey(cmd: &mut Cmd) -> Done {
    const USAGE: &str =
        "usage: monkey [-p ALLOWED_PACKAGE [-p ALLOWED_PACKAGE] ...]\n              COUNT";
    let args = Arguments::split(&cmd.args(), MONKEY).or_else(|bad| match bad {
        BadOption::Unknown(option) => {
            refuse(255, format!("** Error: Unknown option: {option}\n{USAGE}"))
        }
        BadOption::NoValue(_) => refuse(255, USAGE),
    })?;
    let count = match &args.rest[..] {
        [count] => count.parse::<u64>().ok(),
        _ => None,
    };
    let (Some(name), Some(count)) = (args.value("-p"), count) else {
        return refuse(255, USAGE);
    };
    let verbose = args.has("-v");
    let found = super::activity::package_of(cmd, name);
    let Some((package, main)) = found.and_then(|p| p.activity.map(|a| (p, a))) else {
        return cmd.end(252, "** No activities found to run, monkey aborted.\n");
    };
    let seed = args.number("-s").unwrap_or(0);
    let throttle = args.number("--throttle").unwrap_or(0);
    if verbose {
        let shares = EVENTS.iter().enumerate();
        let shares: String = shares
            .map(|(n, share)| format!("//   {n}: {share}.0%\n"))
            .collect();
        cmd.out(&format!(
            ":Monkey: seed={seed} count={count}\n:AllowPackage: {name}\n// Event percentages:\n{shares}:Switch: #Intent;action=android.intent.action.MAIN;category=android.intent.category.LAUNCHER;launchFlags=0x10200000;component={name}/{name}{main};end\n"
        ))?;
    }
    let start = || {
        let start =
            |state: &mut State, now| foreground::start(state, &package, 0, main, false, now);
        cmd.kernel.change(start);
    };
    start();
    let began = cmd.kernel.clock.boot();
    let mut random = fastrand::Rng::with_seed(seed);
    let turns = u32::try_from(args.number("--pct-rotation").unwrap_or(0)).unwrap_or(100);
    for sent in 0..count {
        if verbose && sent > 0 && sent % 100 == 0 {
            cmd.out(&format!("    // Sending event #{sent}\n"))?;
        }
        let kind = random.u32(..100);
        if kind >= 100u32.saturating_sub(turns) {
            let degree = random.u32(..4);
            let persist = random.bool();
            if verbose {
                cmd.out(&format!(
                    ":Sending rotation degree={degree}, persist={persist}\n"
                ))?;
            }
            rotation(cmd, &["lock", ["0", "1", "2", "3"][degree as usize % 4]])?;
            if !persist {
                rotation(cmd, &["free"])?;
            }
        } else if kind < 2 && name == APP {
            press(cmd, "BACK");
        } else if foreground::front(&cmd.kernel.state()).is_none_or(|t| t.package == LAUNCHER) {
            start();
        }
        // Time that the app takes for an event, and the requested pause.
        cmd.wait(throttle + 4)?;
    }
    rotation(cmd, &["free"])?;
    let elapsed = (cmd.kernel.clock.boot() - began) / crate::clock::MILLI;
    cmd.out(&format!("Events injected: {count}\n"))?;
    if verbose {
        cmd.out(":Sending rotation degree=0, persist=false\n:Dropped: keys=0 pointers=0 trackballs=0 flips=0 rotations=0\n")?;
    }
    cmd.out(&format!(
        "## Network stats: elapsed time={elapsed}ms (0ms mobile, 0ms wifi, {elapsed}ms not connected)\n"
    ))?;
    if verbose {
        cmd.out("// Monkey finished\n")?;
    }
    Ok(0)
}
