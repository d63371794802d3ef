//! Tests of a session against a device scripted by the test, over in-memory streams and
//! with paused time: deadlines, lost connections, which processes are signalled.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::mpsc;

use super::journal::tests::header;
use super::*;
use crate::error::kind;
use crate::testing::{FakePhone, Reply, says};

/// A session that runs on `phone` as pid 7, and its events so far.
struct Fixture {
    session: Session,
    store: Store,
    events: Arc<Mutex<Vec<SessionEvent>>>,
    ask: mpsc::UnboundedSender<Control>,
    controls: Controls,
    directory: tempfile::TempDir,
}

fn running_on(phone: &FakePhone) -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::in_directory(directory.path()).unwrap();
    let header = header();
    let id = header.id.clone();
    let (mut journal, lock) = store.create(header).unwrap();
    journal
        .append(&journal::Entry::Started {
            process: ProcessKey {
                pid: 7,
                start_ticks: 4711,
            },
            boot_ns: 1_000_000_000,
        })
        .unwrap();
    drop(lock);
    let events: Arc<Mutex<Vec<SessionEvent>>> = Arc::default();
    let sink = Arc::clone(&events);
    let (ask, controls) = mpsc::unbounded_channel();
    Fixture {
        session: Session::resume(
            phone.device(),
            store.clone(),
            &id,
            Events::new(move |event| sink.lock().unwrap().push(event)),
        )
        .unwrap(),
        store,
        events,
        ask,
        controls,
        directory,
    }
}

const BOOT: &str = "boot f00d\n";
const GONE: &str = "up 60.00 99.00\nover\n";
const REPORT: &str = "up 5.00 9.00\nstat 7 (perfetto) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 \
                      18 4711 20\nsize 100\nfree /dev/x 9 9 1000 9% /data\nreport\n";

#[tokio::test(start_paused = true)]
async fn a_perfetto_that_never_ends_is_left_for_collect() {
    let phone = FakePhone::new(|_| Reply::Begins("sent\n".to_owned()));
    let mut fixture = running_on(&phone);
    let begun = tokio::time::Instant::now();
    let error = fixture
        .session
        .stop(&mut fixture.controls)
        .await
        .unwrap_err();
    assert!(error.is(&[kind::NOT_FETCHED]), "{error}");
    // The limit of the fixture's journal, plus slack.
    let waited = begun.elapsed();
    assert!((60..90).contains(&waited.as_secs()), "{waited:?}");
    assert!(fixture.session.state().stopping());
}

#[tokio::test(start_paused = true)]
async fn only_the_first_request_to_stop_may_signal_without_looking() {
    let times = Mutex::new(0);
    let phone = FakePhone::new(move |command| {
        if !command.contains("kill -TERM") {
            return says("");
        }
        let mut times = times.lock().unwrap();
        *times += 1;
        match *times {
            1 | 2 => Reply::Lost,
            _ => Reply::Begins("over\n".to_owned()),
        }
    });
    let mut fixture = running_on(&phone);
    let ending = fixture.session.stop(&mut fixture.controls).await.unwrap();
    assert_eq!(ending, Ending::Over);
    let turns: Vec<bool> = phone
        .asked("kill -TERM")
        .iter()
        .map(|command| command.ends_with(" first"))
        .collect();
    assert_eq!(turns, [true, false, false]);
    // Another process that comes later does not either.
    let id = fixture.session.release();
    let (device, store) = (phone.device(), fixture.store.clone());
    let mut later = Session::resume(device, store, &id, Events::new(|_| {})).unwrap();
    later.stop(&mut fixture.controls).await.unwrap();
    assert!(phone.asked("kill -TERM")[3].ends_with(" again"));
}

/// Another process has the session, whose perfetto does not exist yet.
#[tokio::test(start_paused = true)]
async fn a_recording_that_is_starting_is_stopped_once_it_runs() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::in_directory(directory.path()).unwrap();
    let header = header();
    let id = header.id.clone();
    let perfetto = format!(
        "7 (perfetto) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20\n\
         perfetto\0-o\0{}\0",
        header.remote_path
    );
    let phone = FakePhone::new(move |command| {
        if command.contains("kill -TERM") {
            return Reply::Begins("over\n".to_owned());
        }
        match command {
            _ if command.contains("/proc/uptime") => says("f00d\n5.00 9.00\n"),
            _ if command.contains("ps -A") => says("PID PPID ARGS\n9 8 ps -A\n"),
            _ => says(perfetto.clone()),
        }
    });
    let (mut journal, lock) = store.create(header).unwrap();
    let recorder = phone.clone();
    let recorder = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(10)).await;
        let process = ProcessKey {
            pid: 7,
            start_ticks: 4711,
        };
        let boot_ns = 1_000_000_000;
        let started = journal::Entry::Started { process, boot_ns };
        journal.append(&started).unwrap();
        tokio::time::sleep(Duration::from_secs(10)).await;
        let asked = recorder.asked("kill -TERM").len();
        drop(lock);
        asked
    });
    let (_ask, mut controls) = mpsc::unbounded_channel();
    let device = phone.device();
    let events = Events::new(|_| {});
    let newest = stop_for_another(&device, &store, &id, &mut controls, events).await;
    assert!(newest.unwrap().unwrap().stopping());
    assert_eq!(recorder.await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_second_request_to_stop_gives_up_at_once() {
    let phone = FakePhone::new(|_| Reply::Begins(String::new()));
    let mut fixture = running_on(&phone);
    fixture.ask.send(Control::Stop).unwrap();
    let begun = tokio::time::Instant::now();
    let error = fixture
        .session
        .stop(&mut fixture.controls)
        .await
        .unwrap_err();
    assert!(error.is(&[kind::NOT_FETCHED]), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn following_survives_lost_and_silent_connections() {
    let times = Mutex::new(0);
    let phone = FakePhone::new(move |command| {
        if !command.contains("echo report") {
            return says("");
        }
        let mut times = times.lock().unwrap();
        *times += 1;
        match *times {
            1 => Reply::Lost,
            // The loop ended without its final line: it was killed.
            2 => says(format!("{BOOT}{REPORT}")),
            3 => Reply::Begins(BOOT.to_owned()),
            _ => Reply::Begins(format!("{BOOT}{REPORT}{GONE}")),
        }
    });
    let mut fixture = running_on(&phone);
    let end = fixture.session.follow(&mut fixture.controls).await.unwrap();
    assert_eq!(end, FollowEnd::Over);
    let events = fixture.events.lock().unwrap();
    let count = |what: fn(&SessionEvent) -> bool| events.iter().filter(|e| what(e)).count();
    assert_eq!(
        count(|e| matches!(e, SessionEvent::ConnectionLost { .. })),
        3
    );
    assert_eq!(count(|e| matches!(e, SessionEvent::Reconnected { .. })), 3);
    let last = fixture.session.last.clone().unwrap();
    assert_eq!((last.trace_bytes, last.free_bytes), (100, Some(1_024_000)));
    let bounds = fixture.session.duration_bounds();
    assert_eq!(bounds.at_least, Some(Duration::from_secs(4)));
    // Its process was started at 47.11.
    assert_eq!(bounds.at_most, Some(Duration::from_millis(12_890)));
}

#[tokio::test(start_paused = true)]
async fn snapshots_are_reported_in_the_order_of_their_requests() {
    let (loops, looks) = (Mutex::new(0), Mutex::new(0));
    let phone = FakePhone::new(move |command| {
        if command.contains("echo report") {
            let mut loops = loops.lock().unwrap();
            *loops += 1;
            return Reply::Begins(match *loops {
                1 | 2 => format!("{BOOT}{REPORT}"),
                _ => format!("{BOOT}{GONE}"),
            });
        }
        assert!(command.contains("cmdline"), "{command}");
        let mut looks = looks.lock().unwrap();
        *looks += 1;
        match *looks {
            // The first request is repeated after the next report.
            1 => Reply::Lost,
            // perfetto is gone.
            _ => says(""),
        }
    });
    let mut fixture = running_on(&phone);
    for label in ["one", "two"] {
        let label = label.to_owned();
        fixture.ask.send(Control::Snapshot { label }).unwrap();
    }
    let end = fixture.session.follow(&mut fixture.controls).await.unwrap();
    assert_eq!(end, FollowEnd::Over);
    let events = fixture.events.lock().unwrap();
    let failed = events.iter().filter_map(|event| match event {
        SessionEvent::SnapshotFailed { label, .. } => Some(label.as_str()),
        _ => None,
    });
    assert_eq!(failed.collect::<Vec<_>>(), ["one", "two"]);
}

#[tokio::test(start_paused = true)]
async fn a_label_that_waits_for_the_phone_fails_when_the_recording_ends() {
    let phone = FakePhone::new(|_| Reply::Lost);
    let mut fixture = running_on(&phone);
    let ask = fixture.ask.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(60)).await;
        let label = "late".to_owned();
        ask.send(Control::Snapshot { label }).unwrap();
        tokio::time::sleep(Duration::from_secs(60)).await;
        ask.send(Control::Stop).unwrap();
    });
    let end = fixture.session.follow(&mut fixture.controls).await.unwrap();
    assert_eq!(end, FollowEnd::StopAsked);
    let events = fixture.events.lock().unwrap();
    let failed = events.iter().filter_map(|event| match event {
        SessionEvent::SnapshotFailed { label, why, .. } => Some((label.as_str(), why.as_str())),
        _ => None,
    });
    let failed: Vec<_> = failed.collect();
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert_eq!(failed[0].0, "late");
    assert!(failed[0].1.contains("not recording any more"), "{failed:?}");
}

#[tokio::test(start_paused = true)]
async fn a_perfetto_that_is_starting_writes_its_trace() {
    let path = header().remote_path;
    let list = format!("PID PPID ARGS\n1 0 init\n50 40 perfetto --background-wait -o {path}\n");
    let phone = FakePhone::new(move |command| {
        assert!(command.contains("ps"), "{command}");
        says(list.clone())
    });
    let writer = find_writer(&phone.device(), &path).await;
    assert_eq!(writer.unwrap(), Some(TraceWriter::Starting));
}

#[tokio::test(start_paused = true)]
async fn another_boot_and_another_process_are_not_ours() {
    let rebooted = FakePhone::new(|_| Reply::Begins("boot beef\n".to_owned()));
    let mut fixture = running_on(&rebooted);
    let end = fixture.session.follow(&mut fixture.controls).await.unwrap();
    assert_eq!(end, FollowEnd::Rebooted);

    let reused =
        FakePhone::new(|_| Reply::Begins(format!("{BOOT}{}", REPORT.replace("4711", "9999"))));
    let mut fixture = running_on(&reused);
    let end = fixture.session.follow(&mut fixture.controls).await.unwrap();
    assert_eq!(end, FollowEnd::Over);
    assert!(reused.asked("kill").is_empty(), "no process is signalled");
}

#[tokio::test(start_paused = true)]
async fn a_phone_that_stays_away_is_waited_for_until_the_user_has_enough() {
    let phone = FakePhone::new(|_| Reply::Lost);
    let mut fixture = running_on(&phone);
    let ask = fixture.ask.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(3600)).await;
        ask.send(Control::Stop).unwrap();
    });
    let begun = tokio::time::Instant::now();
    let end = fixture.session.follow(&mut fixture.controls).await.unwrap();
    assert_eq!(end, FollowEnd::StopAsked);
    assert!(begun.elapsed().as_secs() >= 3600);
    let events = fixture.events.lock().unwrap();
    assert_eq!(events.len(), 1, "said once: {events:?}");
}

#[tokio::test(start_paused = true)]
async fn a_boot_id_that_is_missing_is_no_restart() {
    let phone = FakePhone::new(|_| Reply::Begins(format!("boot \n{REPORT}{GONE}")));
    let mut fixture = running_on(&phone);
    let end = fixture.session.follow(&mut fixture.controls).await.unwrap();
    assert_eq!(end, FollowEnd::Over);
}

#[tokio::test(start_paused = true)]
async fn a_trace_that_perfetto_still_writes_is_not_fetched() {
    let remote = Arc::new(Mutex::new(String::new()));
    let path = Arc::clone(&remote);
    let phone = FakePhone::new(move |command| {
        if command.contains("cmdline") {
            let stat = REPORT.lines().nth(1).unwrap().replace("stat ", "");
            return says(format!("{stat}\nperfetto\0-o\0{}\0", path.lock().unwrap()));
        }
        assert!(command.contains("boot_id"), "{command}");
        says("f00d\n60.00 99.00\n".to_owned())
    });
    let mut fixture = running_on(&phone);
    remote
        .lock()
        .unwrap()
        .clone_from(&fixture.session.header().remote_path);
    let goal = fixture.directory.path().join("raw-trace");
    let error = fixture
        .session
        .pull(&goal, &mut fixture.controls)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("still writing"), "{error}");
    assert!(!goal.exists());
}

/// A session whose output is `before` in the directory of the fixture, with a trace and a heap file that
/// were fetched there.
fn fetched(fixture: &mut Fixture) -> (std::path::PathBuf, [Contents; 2]) {
    let before = fixture.directory.path().join("before");
    std::fs::create_dir(&before).unwrap();
    let contents = [("raw-trace", "trace"), ("app.hprof", "heap")].map(|(name, text)| {
        let path = before.join(name);
        std::fs::write(&path, text).unwrap();
        let sha256 = heaptap_base::bytes::sha256_of(&path).unwrap();
        let size = text.len() as u64;
        Contents { size, sha256 }
    });
    let [trace, heap] = contents.clone();
    let moved = journal::Entry::Moved {
        output: before.clone(),
        pulled: Some(trace),
        files: [("app.hprof".to_owned(), heap)].into(),
    };
    fixture.session.append(moved).unwrap();
    (before, contents)
}

#[test]
fn a_move_that_fails_removes_only_its_own_copies() {
    let mut fixture = running_on(&FakePhone::new(|_| Reply::Lost));
    let (before, _) = fetched(&mut fixture);
    let after = fixture.directory.path().join("after");
    // Moved by hand.
    std::fs::create_dir(&after).unwrap();
    std::fs::rename(before.join("raw-trace"), after.join("raw-trace")).unwrap();
    // In the way of the heap file.
    std::fs::create_dir_all(after.join("app.hprof/x")).unwrap();
    fixture.session.move_output(&after).unwrap_err();
    assert!(after.join("raw-trace").exists());
    assert!(before.join("app.hprof").exists());
    std::fs::remove_dir_all(after.join("app.hprof")).unwrap();
    fixture.session.move_output(&after).unwrap();
    assert!(after.join("app.hprof").exists());
    assert_eq!(fixture.session.header().output, after);
}

#[tokio::test]
async fn an_older_copy_of_a_heap_file_is_known_as_such() {
    let mut fixture = running_on(&FakePhone::new(|_| Reply::Lost));
    let (before, [_, heap]) = fetched(&mut fixture);
    // A process was killed before the newer copy got its name.
    let newer = journal::Entry::PulledFile {
        name: "app.hprof".to_owned(),
        size: 9,
        sha256: "ab".to_owned(),
    };
    fixture.session.append(newer).unwrap();
    let state = fixture.session.state().clone();
    let copies = state.copies("app.hprof").cloned().collect();
    let goal = before.join("app.hprof");
    let kept = fixture.session.kept(&goal, copies).await.unwrap();
    assert_eq!(kept.map(|kept| kept.contents), Some(heap));
    let unknown = state.files["app.hprof"].clone();
    let kept = fixture.session.kept(&goal, vec![unknown]).await.unwrap();
    assert!(kept.is_none() && !goal.exists(), "it is set aside");
}

#[tokio::test(start_paused = true)]
async fn an_end_that_was_seen_is_known_to_later_processes() {
    let phone = FakePhone::new(|_| Reply::Begins(format!("{BOOT}{REPORT}{GONE}")));
    let mut fixture = running_on(&phone);
    fixture.session.follow(&mut fixture.controls).await.unwrap();
    fixture.session.note_over().unwrap();
    let lasted = fixture.session.duration_bounds();
    assert!(lasted.at_least.is_some() && lasted.at_most.is_some());
    let id = fixture.session.id().clone();
    drop(fixture.session);
    let events = Events::new(|_| {});
    let resumed = Session::resume(phone.device(), fixture.store, &id, events).unwrap();
    assert_eq!(resumed.duration_bounds(), lasted);
    assert_eq!(resumed.state().over, Some(lasted));
}

#[test]
fn help_of_an_unwritable_result_fits_its_cause() {
    use heaptap_base::error::Classified as _;
    let help = |kind: io::ErrorKind| {
        let path = std::path::Path::new("out/app.hprof");
        let error = CaptureError::keep(&header().id, path, kind.into());
        error.help().unwrap()
    };
    let full = help(io::ErrorKind::StorageFull);
    assert!(full.contains("free space there and run"), "{full}");
    let denied = help(io::ErrorKind::PermissionDenied);
    assert!(
        denied.contains("make the directory writable and run"),
        "{denied}"
    );
    for help in [full, denied] {
        assert!(!help.contains("trace"), "a heap file is none: {help}");
    }
}

/// A device that is short of memory cannot start `cat`, but its shell runs on.
#[cfg(target_os = "linux")]
#[test]
fn scripts_of_a_device_without_programs_do_not_answer() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    // It reads the boot ID, and nothing after that.
    let cat = directory.path().join("cat");
    std::fs::write(
        &cat,
        "#!/bin/sh\ncase \"$1\" in *boot_id) echo f00d;; *) exit 1;; esac\n",
    )
    .unwrap();
    std::fs::set_permissions(&cat, std::fs::Permissions::from_mode(0o755)).unwrap();
    let run = |path: &std::path::Path, script: &str, pid: &str, ticks: &str, boot_id: &str| {
        let mut shell = std::process::Command::new("/bin/sh");
        shell.args(["-c", script, "sh", pid, ticks, boot_id, "/x", "first"]);
        let output = shell.env("PATH", path).output().unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        (stdout.trim().to_owned(), output.status.code().unwrap())
    };
    let own = std::process::id().to_string();
    let silent = (String::new(), 1);
    let over = ("over".to_owned(), 0);
    for path in [std::path::Path::new("/nowhere"), directory.path()] {
        assert_eq!(run(path, stop::STOP, &own, "1", "f00d"), silent);
        assert_eq!(run(path, probe::PROCESS, &own, "1", "f00d"), silent);
        assert_eq!(run(path, probe::PROCESS, "none", "1", "f00d").1, 0);
    }
    assert_eq!(run(directory.path(), stop::STOP, "none", "1", "f00d"), over);

    // A zombie has no command line. It is over, and so is another process with the PID.
    let path = std::path::Path::new("/usr/bin:/bin");
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let mut zombie = std::process::Command::new("/bin/sh");
    let mut zombie = zombie.args(["-c", "exit"]).spawn().unwrap();
    let pid = zombie.id().to_string();
    let stat = loop {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        if stat.contains(") Z ") {
            break stat;
        }
        std::thread::yield_now();
    };
    let ticks = probe::start_ticks(&stat).unwrap().to_string();
    assert_eq!(run(path, stop::STOP, &pid, &ticks, boot_id.trim()), over);
    assert_eq!(run(path, stop::STOP, &own, "1", boot_id.trim()), over);
    zombie.wait().unwrap();
}
