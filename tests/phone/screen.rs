//! What am, wm and monkey of each release take and refuse.

use crate::client::{phone, run, text};

const APP: &str = "com.example.app";

/// Exit status and both streams.
fn answer(phone: &heaptap::phone::VirtualPhone, command: &str) -> (Option<u8>, String) {
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
