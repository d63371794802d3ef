//! Answers of adb servers and devices.

use super::talker::{Talker, on_paused_clock};
use heaptap_adb::scripted::{Scripted, Step, say};
use heaptap_adb::{Command, parse_list};
use heaptap_capture::conditions;
use heaptap_capture::config::Targets;
use heaptap_capture::eligibility::{
    AssessOptions, Evidence, ListOptions, PreflightFacts, Startup, absent_target, assess,
    decide_device, empty_targets, explain, facts, list_apps, read_log, resolve_each,
};
use heaptap_capture::observe::{
    Options, OurWindows, PartsOptions, follow_lines, observe, read_ring,
};
use heaptap_capture::session;
use heaptap_model::timeline::Timeline;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(5);
const APP: &str = "com.example.app";

/// Bytes as all that a server sends, in pieces of one byte and as a whole: every operation ends and
/// stores no more than was sent.
pub fn adb(bytes: &[u8]) {
    let Some((&head, bytes)) = bytes.split_first() else {
        return;
    };
    let script = |connections: usize| {
        let mut step = vec![say(bytes)];
        if head & 1 == 1 {
            step.push(Step::Hang);
        }
        // The first connection of a device asks for its features.
        let mut scripts = vec![step; connections];
        if head & 2 == 2 && connections > 1 {
            scripts[0] = vec![say(b"OKAY0011shell_v2,stat_v2 ")];
        }
        let script = Scripted::new(scripts);
        match head & 4 {
            0 => script,
            _ => script.byte_by_byte(),
        }
    };
    on_paused_clock(async {
        let command = Command::program("id");
        if let Ok(output) = script(3)
            .phone()
            .run_with_stdin(&command, b"in", SOON)
            .await
        {
            assert!(output.stdout.len() + output.stderr.len() <= 3 * bytes.len());
        }
        let _ = script(3).phone().stat("/x", SOON).await;
        let mut stored = 0;
        let mut store = |piece: &[u8]| {
            stored += piece.len();
            Ok(())
        };
        let pulled = script(3).phone().pull("/x", &mut store, SOON).await;
        assert!(stored <= bytes.len());
        if let Ok(length) = pulled {
            assert_eq!(length, stored as u64);
        }
        let _ = script(3).phone().push(&[7; 300], "/x", 0o644, SOON).await;
        let _ = script(1).server().version().await;
        let _ = script(1).server().devices().await;
        if let Ok(mut tracker) = script(1).server().track().await {
            while let Ok(Ok(_)) = tokio::time::timeout(SOON, tracker.next()).await {}
        }
        if let Ok(mut shell) = script(3).phone().spawn(&command, SOON).await {
            while let Ok(Ok(_)) = tokio::time::timeout(SOON, shell.next()).await {}
        }
        let _ = script(3).phone().debuggable(SOON).await;
        let _ = script(3).phone().debugger(7, SOON).await;
        let _ = script(4).phone().wait_ready(SOON).await;
    });
    parse_list(&String::from_utf8_lossy(bytes));
}

/// Bytes as a device that is checked: `check`, `apps`, `doctor`, and the causes of an empty
/// recording.
pub fn eligibility(bytes: &[u8]) {
    let talker = Talker::new(bytes);
    on_paused_clock(async {
        let device = talker.device();
        let Ok(facts) = facts(&device).await else {
            return;
        };
        decide_device(&facts);
        let targets = Targets {
            names: vec!["com.example.*".to_owned()],
            pids: vec![1000],
            packages: vec![APP.to_owned()],
        };
        let options = AssessOptions {
            user: None,
            startup: Startup::Allowed,
        };
        let log = read_log(&device, None).await.unwrap_or_default();
        if let Ok(assessment) = assess(&device, &facts, &targets, &options).await {
            let preflight = assessment.preflight_facts(&facts);
            let json = serde_json::to_string(&preflight).expect("plain data");
            let again: PreflightFacts = serde_json::from_str(&json).expect("it was written");
            let again = serde_json::to_string(&again).expect("plain data");
            assert_eq!(again, json);
            for java in [false, true] {
                let evidence = Evidence {
                    preflight: Some(&preflight),
                    packages: &[],
                    heaps: &[],
                    java,
                    log: &log,
                };
                for empty in empty_targets(&preflight, &[]) {
                    explain(&empty, &evidence);
                }
            }
        }
        let _ = absent_target(&device, &facts, &targets, None).await;
        let _ = resolve_each(&device, &facts, &targets, Some(10)).await;
        let options = ListOptions {
            filter: None,
            all: true,
            user: None,
        };
        let _ = list_apps(&device, &facts, &options).await;
    });
}

/// Bytes as a device that records: its boot, processes and traces, the app to start, conditions, and
/// what perfetto and heaptap's scripts print.
pub fn session_answers(bytes: &[u8]) {
    session::every_reader(bytes);
    let talker = Talker::new(bytes);
    on_paused_clock(async {
        let device = talker.device();
        let _ = session::moment(&device).await;
        if let Ok(traces) = session::remote_traces(&device).await {
            for trace in traces.iter().take(4) {
                let _ = session::find_writer(&device, &trace.path).await;
            }
        }
        let _ = session::launcher_activity(&device, APP, None).await;
        if let (Ok(one), Ok(two)) = (
            conditions::read(&device, APP).await,
            conditions::read(&device, APP).await,
        ) {
            two.kills_since(&one);
            assert!(two.kills_since(&two).is_empty());
        }
        let _ = session::relax_selinux(&device, true, "/data/x").await;
    });
}

/// Bytes as what a device prints while memory and log of an app are followed: every entry is
/// written and read back.
pub fn observation(bytes: &[u8]) {
    let talker = Talker::new(bytes);
    on_paused_clock(async {
        let device = talker.device();
        let options = Options {
            names: vec![APP.to_owned()],
            pids: vec![(7, "native".to_owned())],
            every: Duration::from_secs(1),
            parts: Some(PartsOptions {
                every: Duration::from_secs(2),
                allow_gc: true,
            }),
            graphics: true,
            log: true,
        };
        let mut entries = Vec::new();
        let stop = tokio::time::sleep(Duration::from_secs(20));
        let seen = |event| {
            if let heaptap_capture::observe::Event::Seen(entry) = event {
                entries.push(entry);
            }
        };
        let _ = observe(&device, None, &options, OurWindows::default(), stop, seen).await;
        let mut count = 0;
        let lines = follow_lines(&device, &[7, 8], 0, |_| count += 1);
        let _ = tokio::time::timeout(Duration::from_secs(20), lines).await;
        if let Ok(ring) = read_ring(&device, &[7, 8], (0, u64::MAX)).await {
            entries.extend(ring.entries);
        }
        let text: String = entries.iter().map(|entry| entry.line()).collect();
        let (read, strange) = Timeline::parse(&text);
        assert_eq!((read.entries.len(), strange), (entries.len(), 0));
    });
}
