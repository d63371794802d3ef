//! Commands of an action on a device, and the check after each. The only module that knows the
//! differences between releases; a dry run prints these commands.

use std::time::Duration;

use super::action::{Action, Monkey, Trim, TrimLevel};
use super::plan::{Plan, Target};
use crate::session::{LAUNCHER_INTENT, with_user};
use heaptap_adb::Command;
use heaptap_base::error::{ErrorClass, Failure};

/// Facts about a device that affect its commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phone {
    /// Serial that adb uses.
    pub serial: String,
    /// `ro.build.version.sdk`.
    pub sdk: u32,
    /// Activity that the app's icon starts, as `package/.Activity`; `None` if there is none.
    pub launcher: Option<String>,
    /// The screen is upright or upside down at the start; then the first rotation is
    /// sideways.
    pub upright: bool,
}

/// A command and the check after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedCommand {
    pub command: Command,
    /// Check after the command.
    pub(super) check: Check,
    /// Maximum number of repetitions until the app has left the foreground.
    pub(super) at_most: u32,
}

/// Check after a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Check {
    /// The command was not refused.
    Accepted,
    /// The foreground activity was recreated.
    Recreated,
    /// The app is not in the foreground.
    Background,
    /// The app is in the foreground; `anew` requires another activity than before.
    Launched { anew: bool },
    /// The app received the trim request.
    Trimmed(TrimLevel),
    /// The number of events that monkey sent.
    Monkey {
        events: u32,
        seed: u32,
        throttle: Duration,
    },
    /// The processes of the app have ended.
    Ended,
    /// The command was not refused; the app gets a short time to react.
    Input,
    /// Waiting time without a check.
    Wait(Duration),
}

/// Maximum number of BACK presses.
const BACKS: u32 = 8;
/// FLAG_ACTIVITY_NEW_TASK and FLAG_ACTIVITY_RESET_TASK_IF_NEEDED: the flags of a launcher.
const AS_ICON: &str = "0x10200000";
/// FLAG_ACTIVITY_NEW_TASK and FLAG_ACTIVITY_CLEAR_TASK.
const EMPTY_TASK: &str = "0x10008000";

/// SDK levels of Android 12 and 14.
const S: u32 = 31;
const U: u32 = 34;

impl CheckedCommand {
    fn new(command: Command, check: Check) -> CheckedCommand {
        CheckedCommand {
            command,
            check,
            at_most: 1,
        }
    }

    /// Returns a remark about how the command is repeated.
    pub fn note(&self) -> Option<String> {
        (self.at_most > 1).then(|| {
            format!(
                "repeated until the app has left the foreground, at most {} times",
                self.at_most
            )
        })
    }
}

/// Returns the command that rotates the screen and locks the rotation.
pub(super) fn turn(phone: &Phone, to: u32) -> CheckedCommand {
    let word = match phone.sdk {
        S.. => "user-rotation",
        _ => "set-user-rotation",
    };
    let command = Command::program("wm")
        .args([word, "lock"])
        .arg(to.to_string());
    CheckedCommand::new(command, Check::Recreated)
}

/// Returns whether the screen is upright when the action at `place` begins: it was at the start,
/// each rotation changed it, and monkey leaves it to the physical orientation.
pub(super) fn is_upright(plan: &Plan, place: usize, phone: &Phone, round: u32) -> bool {
    let turned = |upright: bool, action: &Action| match action {
        Action::Rotate(times) => upright == (times % 2 == 0),
        Action::Monkey(_) => true,
        _ => upright,
    };
    let all = plan.actions.iter();
    // Two iterations cancel out, so only their parity counts.
    let rounds = match round {
        0..=2 => round.saturating_sub(1),
        more => 1 + more % 2,
    };
    let before = (0..rounds).fold(phone.upright, |upright, _| {
        all.clone().fold(upright, turned)
    });
    all.take(place).fold(before, turned)
}

/// Returns the commands for each repetition of the action at `place`.
pub(super) fn of(
    plan: &Plan,
    place: usize,
    phone: &Phone,
    round: u32,
) -> Result<Vec<Vec<CheckedCommand>>, Failure> {
    let Some(action) = plan.actions.get(place) else {
        return Ok(Vec::new());
    };
    let target = &plan.target;
    let start = || start_as_icon(phone, target);
    let home = || CheckedCommand::new(press("KEYCODE_HOME"), Check::Background);
    let one = |checked: CheckedCommand| Ok(vec![vec![checked]]);
    let input =
        |args: Vec<String>| CheckedCommand::new(Command::program("input").args(args), Check::Input);
    let repeated = |times: u32, commands: Vec<CheckedCommand>| Ok(vec![commands; times as usize]);
    let process = &target.process;
    match action {
        Action::Rotate(times) => {
            let first = u32::from(is_upright(plan, place, phone, round));
            let turns = (0..*times).map(|n| vec![turn(phone, (first + n) % 2)]);
            Ok(turns.collect())
        }
        Action::HomeAndBack(times) => repeated(*times, vec![home(), start()?]),
        Action::SwitchApps(times) => {
            let settings = start_of(target).args(["-a", "android.settings.SETTINGS"]);
            let other = CheckedCommand::new(settings, Check::Background);
            repeated(*times, vec![other, start()?])
        }
        Action::RestartActivity(times) => {
            let mut back = CheckedCommand::new(press("KEYCODE_BACK"), Check::Background);
            back.at_most = BACKS;
            let anew = self::start(phone, target, EMPTY_TASK, true)?;
            repeated(*times, vec![back, anew])
        }
        Action::Trim(Trim::Level(level)) => {
            let ask = trim(target, *level);
            match level.is_for_background() {
                true => Ok(vec![vec![home(), ask, start()?]]),
                false => one(ask),
            }
        }
        Action::Trim(Trim::All) => {
            let levels = TrimLevel::ALL.into_iter().map(|level| match level {
                // The system sends it by itself on HOME, and refuses to send it again.
                TrimLevel::Hidden => home(),
                level => trim(target, level),
            });
            Ok(vec![levels.chain([start()?]).collect()])
        }
        Action::Monkey(monkey) => {
            let seed = monkey.seed.unwrap_or(plan.seed).wrapping_add(round - 1);
            one(self::monkey(target, monkey, seed))
        }
        Action::DeepLink(uri) => {
            let open = start_of(target).args(["-a", "android.intent.action.VIEW", "-d"]);
            let open = open.args([uri, "-p", &target.package]);
            one(CheckedCommand::new(open, Check::Launched { anew: false }))
        }
        Action::Tap(at) => one(input(
            ["tap".to_owned(), at.x.to_string(), at.y.to_string()].into(),
        )),
        Action::Swipe(swipe) => {
            let (from, to) = (swipe.from, swipe.to);
            let mut args = vec!["swipe".to_owned()];
            args.extend([from.x, from.y, to.x, to.y].map(|n| n.to_string()));
            args.push(swipe.takes.as_millis().to_string());
            // The command itself runs as long as the finger moves.
            one(input(args))
        }
        Action::Key(key) => one(input(vec!["keyevent".to_owned(), key.code()])),
        Action::Text(text) => one(input(vec!["text".to_owned(), text.replace(' ', "%s")])),
        Action::Wait(long) => one(CheckedCommand::new(sleep(*long), Check::Wait(*long))),
        Action::Start => one(start()?),
        Action::Home => one(home()),
        Action::ForceStop => {
            let stop = of_one_user(Command::program("am").arg("force-stop"), target.user);
            one(CheckedCommand::new(stop.arg(&target.package), Check::Ended))
        }
        Action::Kill => {
            let kill = of_one_user(Command::program("am").arg("kill"), target.user);
            let kill = CheckedCommand::new(kill.arg(&target.package), Check::Ended);
            Ok(vec![vec![home(), kill]])
        }
        Action::Crash => {
            let crash = match target.user {
                Some(_) => with_user(Command::program("am").arg("crash"), target.user),
                None => Command::script(CRASH).called("crashing the app"),
            };
            one(CheckedCommand::new(crash.arg(process), Check::Ended))
        }
        // Before Android 14 it expects UIDs, in a different order of arguments.
        Action::Compact if phone.sdk < U => {
            let message = format!(
                "{} does not support {action}: it needs Android 14",
                phone.serial
            );
            Err(
                Failure::new(ErrorClass::Device, "not-on-this-android", message)
                    .with_help(SEE_THE_LIST),
            )
        }
        Action::Compact => {
            let compact = Command::program("am").args(["compact", "full"]);
            // This subcommand expects its option last.
            let compact = with_user(compact.arg(process), target.user);
            one(CheckedCommand::new(compact, Check::Accepted))
        }
    }
}

/// Help for actions that a device does not support.
pub(super) const SEE_THE_LIST: &str =
    "run `heaptap provoke --list` for the requirements of each action";

/// Delay after an input before the app is checked.
pub(super) const AFTER_INPUT: Duration = Duration::from_millis(300);

/// Returns the command that starts the app like its icon, or with an empty task.
fn start(
    phone: &Phone,
    target: &Target,
    flags: &str,
    anew: bool,
) -> Result<CheckedCommand, Failure> {
    let Some(component) = &phone.launcher else {
        let message = format!(
            "cannot start an activity of {} on {}: its icon does not start an activity",
            target.package, phone.serial
        );
        let failure = Failure::new(ErrorClass::NotEligible, "no-activity", message);
        return Err(failure.with_help(
            "choose another user with `--user`, or open an app without an icon with `deep-link`",
        ));
    };
    let command = start_of(target)
        .args(LAUNCHER_INTENT)
        .args(["-f", flags, "-n", component]);
    Ok(CheckedCommand::new(command, Check::Launched { anew }))
}

fn start_of(target: &Target) -> Command {
    with_user(Command::program("am").args(["start", "-W"]), target.user)
}

/// Returns the command that starts the app like its icon.
pub(super) fn start_as_icon(phone: &Phone, target: &Target) -> Result<CheckedCommand, Failure> {
    start(phone, target, AS_ICON, false)
}

fn trim(target: &Target, level: TrimLevel) -> CheckedCommand {
    let command = with_user(Command::program("am").arg("send-trim-memory"), target.user);
    let command = command.arg(&target.process).arg(level.word());
    CheckedCommand::new(command, Check::Trimmed(level))
}

/// By name, `am` would crash the last process of the package, whichever that is.
const CRASH: &str = r#"p=$(pidof -s "$1") || exit 0; exec am crash "$p""#;

/// monkey prints its PID first: it continues if the cable is pulled, and must be ended then.
const MONKEY: &str = r#"echo heaptap-monkey $$; exec monkey "$@""#;

fn monkey(target: &Target, monkey: &Monkey, seed: u32) -> CheckedCommand {
    let events = monkey.events;
    let command = Command::script(MONKEY)
        .called("sending random events")
        .args(["-p", &target.package, "-s"])
        .arg(seed.to_string())
        .arg("--throttle")
        .arg(monkey.throttle.as_millis().to_string())
        .args([
            "--pct-syskeys",
            "0",
            // It rotates the screen only if this is set.
            "--pct-rotation",
            "2",
            "--ignore-crashes",
            "--ignore-timeouts",
            "--ignore-security-exceptions",
            "-v",
        ])
        .arg(events.to_string());
    let check = Check::Monkey {
        events,
        seed,
        throttle: monkey.throttle,
    };
    CheckedCommand::new(command, check)
}

pub(super) fn sleep(long: Duration) -> Command {
    let seconds = format!("{}.{:03}", long.as_secs(), long.subsec_millis());
    Command::program("sleep").arg(seconds)
}

pub(super) fn press(key: &str) -> Command {
    Command::program("input").args(["keyevent", key])
}

/// Adds the user; without one these commands would affect all users.
fn of_one_user(command: Command, user: Option<u32>) -> Command {
    let user = user.map_or_else(|| "current".to_owned(), |user| user.to_string());
    command.arg("--user").arg(user)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(sdk: u32, action: &str) -> Vec<Vec<String>> {
        let target = Target::parse("com.example.app", Some(10)).unwrap();
        let action: Action = action.parse().unwrap();
        let plan = Plan::new(target, vec![action]);
        let phone = Phone {
            serial: "S".to_owned(),
            sdk,
            launcher: Some("com.example.app/.Main".to_owned()),
            upright: true,
        };
        let all = of(&plan, 0, &phone, 1).unwrap();
        let text = |d: &CheckedCommand| d.command.text().to_owned();
        all.iter()
            .map(|each| each.iter().map(text).collect())
            .collect()
    }

    #[test]
    fn the_screen_turns_in_the_words_of_each_release() {
        let first = |sdk| lines(sdk, "rotate:2")[0].clone();
        assert_eq!(first(29), ["wm set-user-rotation lock 1"]);
        assert_eq!(first(30), ["wm set-user-rotation lock 1"]);
        assert_eq!(first(31), ["wm user-rotation lock 1"]);
        assert_eq!(lines(34, "rotate:3").concat()[1], "wm user-rotation lock 0");
    }

    #[test]
    fn no_turn_is_to_where_the_screen_is() {
        let target = Target::parse("a", None).unwrap();
        for (written, rounds) in [
            ("rotate:1", 5),
            ("rotate:3 rotate:1 rotate:1", 4),
            ("rotate:2", 3),
        ] {
            let actions = written.split(' ').map(|a| a.parse().unwrap()).collect();
            let plan = Plan::new(target.clone(), actions);
            for upright in [true, false] {
                let phone = Phone {
                    serial: "S".to_owned(),
                    sdk: 34,
                    launcher: None,
                    upright,
                };
                let mut last = if upright { "0" } else { "1" }.to_owned();
                for round in 1..=rounds {
                    for place in 0..plan.actions.len() {
                        for checked in of(&plan, place, &phone, round).unwrap().concat() {
                            let to = checked
                                .command
                                .text()
                                .rsplit(' ')
                                .next()
                                .unwrap()
                                .to_owned();
                            assert_ne!(to, last, "{written}, round {round}");
                            last = to;
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn what_a_user_wrote_reaches_no_shell_unquoted() {
        let link = &lines(34, "deep-link:a:$(reboot)'&x=1")[0][0];
        assert!(link.contains(r"-d 'a:$(reboot)'\''&x=1' -p"), "{link}");
        assert_eq!(lines(34, "text:it's;id")[0][0], r"input text 'it'\''s;id'");
        assert_eq!(lines(34, "text:a b")[0][0], "input text a%sb");
    }

    #[test]
    fn trims_rise_and_those_for_the_background_come_behind_home() {
        let all = lines(34, "trim:all").concat();
        let words: Vec<&str> = all
            .iter()
            .filter_map(|l| l.split(' ').next_back())
            .collect();
        assert_eq!(
            words,
            [
                "RUNNING_MODERATE",
                "RUNNING_LOW",
                "RUNNING_CRITICAL",
                "KEYCODE_HOME",
                "BACKGROUND",
                "MODERATE",
                "COMPLETE",
                "com.example.app/.Main",
            ]
        );
        assert!(all[0].starts_with("am send-trim-memory --user 10 com.example.app "));
    }

    #[test]
    fn a_later_round_has_a_later_seed_and_old_phones_lack_compact() {
        let target = Target::parse("a", None).unwrap();
        let action: Action = "monkey:9,seed=7".parse().unwrap();
        let plan = Plan::new(target, vec![action, Action::Compact, Action::Start]);
        let mut phone = Phone {
            serial: "S".to_owned(),
            sdk: 30,
            launcher: None,
            upright: false,
        };
        let second = of(&plan, 0, &phone, 2).unwrap();
        assert!(
            second[0][0]
                .command
                .text()
                .contains(" -s 8 --throttle 100 ")
        );
        assert!(of(&plan, 1, &phone, 1).is_err());
        phone.sdk = 34;
        assert!(of(&plan, 1, &phone, 1).is_ok());
        assert!(of(&plan, 2, &phone, 1).is_err());
    }
}
