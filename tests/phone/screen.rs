//! Accepted and refused commands of am, wm and monkey in each release.

use crate::client::{phone, run, text};

const APP: &str = "com.example.app";

/// Exit status and both streams.
fn answer(phone: &virtual_phone::VirtualPhone, command: &str) -> (Option<u8>, String) {
    let ran = run(phone, &format!("{command} 2>&1"));
    (ran.status, ran.text())
}

#[test]
fn old_releases_lack_newer_commands() {
    for (android, command) in [
        (11, "wm user-rotation lock 1"),
        (12, "wm set-user-rotation lock 1"),
        (13, "am compact full com.example.app"),
        (13, "am freeze com.example.app"),
    ] {
        let phone = phone(&format!("android={android},speed=100"));
        let (status, said) = answer(&phone, command);
        assert_eq!(status, Some(255), "{android} {command}: {said}");
        assert!(said.starts_with("Unknown command: "), "{said}");
    }
    let phone = phone("android=14,speed=100");
    assert_eq!(answer(&phone, "am compact full com.example.app").0, Some(0));
}

#[test]
fn an_activity_that_is_not_there_is_not_started() {
    let phone = phone("speed=100");
    let (_, said) = answer(&phone, "am start -W -n com.example.app/.Nothing");
    assert!(said.contains("Error type 3"), "{said}");
    assert!(said.contains("does not exist"), "{said}");
    for class in [".ui.FeedActivity", "com.example.app.ui.FeedActivity"] {
        let (status, said) = answer(&phone, &format!("am start -W -n {APP}/{class}"));
        assert_eq!(status, Some(0), "{said}");
        assert!(
            said.contains("Activity: com.example.app/.ui.FeedActivity"),
            "{said}"
        );
    }
}

#[test]
fn kill_spares_what_is_in_front_and_crash_takes_one_process() {
    let phone = phone("speed=100");
    let before = text(&phone, "pidof com.example.app");
    text(&phone, "am kill com.example.app");
    assert_eq!(text(&phone, "pidof com.example.app"), before);
    text(&phone, "input keyevent HOME; am kill com.example.app");
    assert_eq!(run(&phone, "pidof com.example.app").status, Some(1));
    text(&phone, "am start -n com.example.app/.ui.FeedActivity");
    let service = text(&phone, "pidof com.example.app:service");
    text(&phone, "am crash $(pidof com.example.app)");
    assert_eq!(run(&phone, "pidof com.example.app").status, Some(1));
    assert_eq!(text(&phone, "pidof com.example.app:service"), service);
}

#[test]
fn monkey_turns_the_screen_only_where_it_is_told_to() {
    let phone = phone("speed=100");
    text(&phone, "settings put system accelerometer_rotation 0");
    let turned = |more: &str| {
        let command = format!("monkey -p {APP} -s 7 {more} -v 200");
        text(&phone, &command).matches(":Sending rotation").count()
    };
    // The one at its end.
    assert_eq!(turned(""), 1);
    assert!(turned("--pct-rotation 50") > 50);
    let rotation = text(&phone, "settings get system accelerometer_rotation");
    assert_eq!(rotation, "1\n", "it leaves rotation free");
    let (status, said) = answer(&phone, &format!("monkey -p {APP} --dance 3"));
    assert_eq!(status, Some(255), "{said}");
    assert!(said.contains("Unknown option: --dance"), "{said}");
}

/// Output of `exit-info` for a process, its words joined.
fn exit_of(phone: &virtual_phone::VirtualPhone, pid: &str) -> String {
    let told = text(phone, &format!("dumpsys activity exit-info {APP}"));
    let mut all = told.split("ApplicationExitInfo #");
    let own = format!(" pid={} ", pid.trim());
    all.find(|exit| exit.contains(&own))
        .unwrap_or_else(|| panic!("no {own}in {told}"))
        .to_owned()
}

#[test]
fn every_death_of_an_app_is_remembered_with_its_reason() {
    let phone = phone("speed=100,java=1000,fault=dumpheap-dies@3000");
    let start = "am start -n com.example.app/.ui.FeedActivity";
    let pid = text(&phone, "pidof com.example.app");
    text(&phone, "am broadcast -a com.example.app.RUN_OUT_OF_MEMORY");
    let exit = exit_of(&phone, &pid);
    assert!(exit.contains("reason=4 (APP CRASH(EXCEPTION))"), "{exit}");
    assert!(exit.contains("rss=") && !exit.contains("rss=0KB"), "{exit}");
    let log = text(&phone, "logcat -d -s AndroidRuntime:E");
    let error = "java.lang.OutOfMemoryError: Failed to allocate a ";
    assert!(
        log.contains("FATAL EXCEPTION: main") && log.contains(error),
        "{log}"
    );
    text(&phone, start);
    let pid = text(&phone, "pidof com.example.app");
    text(&phone, &format!("run-as {APP} kill -9 {pid}"));
    let exit = exit_of(&phone, &pid);
    assert!(exit.contains("reason=2 (SIGNALED)"), "{exit}");
    assert!(exit.contains("status=9"), "{exit}");
    text(&phone, start);
    let pid = text(&phone, "pidof com.example.app");
    text(
        &phone,
        "am dumpheap com.example.app /data/local/tmp/x.hprof & sleep 20; kill $!",
    );
    let exit = exit_of(&phone, &pid);
    assert!(exit.contains("reason=5 (APP CRASH(NATIVE))"), "{exit}");
    assert!(exit.contains("status=11"), "{exit}");
}

#[test]
fn a_service_that_hangs_is_given_up_when_it_was_said() {
    let phone = phone("speed=100,java=0,fault=meminfo-hang");
    let told = |command: &str| text(&phone, command);
    let hung = told(&format!("dumpsys -t 2 meminfo {APP}; echo $?"));
    assert_eq!(
        hung,
        "\n*** SERVICE 'meminfo' DUMP TIMEOUT (2000ms) EXPIRED ***\n\n0\n"
    );
    assert!(told(&format!("dumpsys meminfo {APP}")).contains("(10000ms)"));
    let (status, said) = answer(&phone, "dumpsys -t soon meminfo");
    assert_eq!(status, Some(255), "{said}");
}
