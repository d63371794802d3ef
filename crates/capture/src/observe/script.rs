//! The loop that runs on the device while the connection exists. One round reads the
//! kernel's files with the shell's own `read`, which does not start a process. Services are queried
//! in the background, so that a slow one does not delay samples. Every line is one write and
//! begins with a word of the loop. Output of services and apps follows such a word, so it
//! cannot be mistaken for a line of the loop.
//!
//! | line | meaning |
//! |---|---|
//! | `b BOOT UID DMABUF` | the boot, the shell's user, if `dmabuf_dump` exists |
//! | `t UPTIME EPOCH` | a round begins; both clocks |
//! | `n INDEX PID…` | processes of the name with this number, if they were searched |
//! | `s PID START ADJ\|FIELD…` | a process: start in ticks, oom_score_adj, lines of its status |
//! | `h PID` | a process that exists but that the shell cannot read |
//! | `y\|FIELD…` | lines of /proc/meminfo |
//! | `M KIND PID UPTIME` | the output of a service begins |
//! | `m KIND PID TEXT` | a line of it |
//! | `N KIND PID UPTIME` | its end |
//! | `e UPTIME TICKS…` | the round ends; CPU time of the loop: utime, stime, cutime, cstime |

use std::time::Duration;

use super::options::Options;
use heaptap_adb::Command;

/// `$1` seconds between rounds, `$2` and `$3` between queries for meminfo and graphics (0:
/// never), `$4` flags of meminfo, `$5` pids, the rest names.
///
/// Names are searched if one is missing, and in every fifth round: `pidof` reads the
/// command line of every process. A background query starts only after the previous one has ended.
const LOOP: &str = include_str!("../scripts/observe.sh").trim_ascii_end();

/// Returns the loop with its arguments.
pub(super) fn command(options: &Options) -> Command {
    let seconds = |period: Option<Duration>| match period {
        // The shell only counts whole seconds.
        Some(period) => period.as_secs().max(1),
        None => 0,
    };
    let pids: Vec<String> = options
        .pids
        .iter()
        .map(|(pid, _)| pid.to_string())
        .collect();
    let parts = options.parts.map(|parts| parts.every);
    let graphics = parts.filter(|_| options.graphics).map(|every| every * 3);
    let flags = match options.parts {
        Some(parts) if parts.allow_gc => "",
        _ => "--local",
    };
    Command::script(LOOP)
        .called("observing memory")
        .arg(format!("{}", options.every.as_secs_f64()))
        .arg(seconds(parts).to_string())
        .arg(seconds(graphics).to_string())
        .arg(flags)
        .arg(pids.join(" "))
        .args(&options.names)
}

#[cfg(test)]
mod tests {
    use super::super::options::PartsOptions;
    use super::*;

    #[test]
    fn arguments_stand_where_the_script_has_them() {
        let options = Options {
            names: vec!["com.example.app".to_owned(), "it's".to_owned()],
            pids: vec![(7, "x".to_owned()), (8, "y".to_owned())],
            every: Duration::from_millis(500),
            parts: Some(PartsOptions {
                every: Duration::from_secs(10),
                allow_gc: false,
            }),
            graphics: true,
            log: false,
        };
        let command = command(&options);
        let (_, arguments) = command.text().rsplit_once("done' heaptap ").unwrap();
        assert_eq!(
            arguments,
            "0.5 10 30 --local '7 8' com.example.app 'it'\\''s'"
        );
    }
}
