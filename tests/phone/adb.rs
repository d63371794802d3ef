//! A real `adb` against the virtual phone.

use std::process::{Command, Output};

use crate::client::phone;
use crate::judge;
use virtual_phone::VirtualPhone;

/// Runs `adb`; its own directory keeps its keys away from the user's.
fn adb(phone: &VirtualPhone, args: &[&str], stdin: Option<&[u8]>) -> Output {
    use std::io::Write as _;
    use std::process::Stdio;
    let home = std::env::temp_dir();
    let mut child = Command::new(judge::adb())
        .args(["-P", &phone.addr().port().to_string()])
        .args(args)
        .env("HOME", &home)
        .env_remove("ANDROID_SERIAL")
        .env_remove("ADB_SERVER_SOCKET")
        .env_remove("ANDROID_ADB_SERVER_PORT")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("adb runs");
    if let Some(mut pipe) = child.stdin.take() {
        // adb can end before it has read everything.
        let _ = pipe.write_all(stdin.unwrap_or(b""));
    }
    child.wait_with_output().expect("adb ends")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
#[ignore = "needs adb: tests/run.sh runs it"]
fn judged_by_adb_it_lists_runs_pushes_and_pulls() {
    let phone = phone("android=14");
    let list = adb(&phone, &["devices", "-l"], None);
    assert!(out(&list).contains("virtual-1"), "{list:?}");
    assert!(out(&list).contains("model:Pixel_8"), "{list:?}");
    let run = |args: &[&str]| adb(&phone, args, None);
    assert_eq!(out(&run(&["get-state"])).trim(), "device");
    assert!(out(&run(&["shell", "getprop"])).contains("[ro.build.version.sdk]: [34]"));
    assert_eq!(run(&["shell", "exit 3"]).status.code(), Some(3));
    let nothing = run(&["shell", "nosuch"]);
    assert_eq!(nothing.status.code(), Some(127));
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("inaccessible or not found"));
    let bytes: Vec<u8> = (0..200_000u32).map(|i| (i * 7) as u8).collect();
    let echoed = adb(&phone, &["shell", "cat"], Some(&bytes));
    assert_eq!(echoed.stdout, bytes, "stdin and stdout are bytes");
    let directory = tempfile::tempdir().expect("a folder");
    let there = directory.path().join("there");
    let back = directory.path().join("back");
    std::fs::write(&there, &bytes).expect("a file");
    let path = |p: &std::path::Path| p.to_str().expect("UTF-8").to_owned();
    let pushed = run(&["push", &path(&there), "/data/local/tmp/f"]);
    assert!(pushed.status.success(), "{pushed:?}");
    let pulled = run(&["pull", "/data/local/tmp/f", &path(&back)]);
    assert!(pulled.status.success(), "{pulled:?}");
    assert_eq!(std::fs::read(&back).expect("pulled"), bytes);
    assert!(
        !run(&["pull", "/data/data/x", &path(&back)])
            .status
            .success()
    );
    assert!(!run(&["push", &path(&there), "/system/f"]).status.success());
    run(&["shell", "log -t mine hello"]);
    assert!(out(&run(&["logcat", "-d"])).contains("mine"), "logcat");
    assert_eq!(out(&run(&["exec-out", "echo a; echo -n b"])), "a\nb");
    assert!(out(&run(&["shell", "-t", "-t", "echo x"])).contains("x\r\n"));
    assert!(!run(&["root"]).stdout.is_empty());
    assert!(run(&["wait-for-device"]).status.success());
    assert!(out(&run(&["-d", "shell", "echo usb"])).contains("usb"));
    assert!(!run(&["-e", "shell", "echo emulator"]).status.success());
    assert!(out(&run(&["shell", "ls", "/sdcard/"])).contains("Download"));
}

#[test]
#[ignore = "needs adb: tests/run.sh runs it"]
fn judged_by_adb_it_sees_every_state() {
    for (fault, words) in [
        ("offline", "device offline"),
        ("unauthorized", "device unauthorized"),
        ("no-device", "no devices/emulators found"),
    ] {
        let phone = phone(&format!("fault={fault}"));
        let ran = adb(&phone, &["shell", "true"], None);
        assert!(!ran.status.success());
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(said.contains(words), "{fault}: {said}");
    }
    let two = phone("devices=2");
    let ran = adb(&two, &["shell", "true"], None);
    assert!(String::from_utf8_lossy(&ran.stderr).contains("more than one device"));
    let one = adb(
        &two,
        &["-s", "virtual-1-2", "shell", "getprop ro.serialno"],
        None,
    );
    assert_eq!(out(&one).trim(), "virtual-1-2");
}

#[test]
#[ignore = "needs adb: tests/run.sh runs it"]
fn judged_by_adb_kill_server_ends_only_a_phone_that_may_be_ended() {
    let kept = phone("");
    let refused = adb(&kept, &["kill-server"], None);
    drop(refused);
    assert!(adb(&kept, &["devices"], None).status.success());
    let served = phone("killable=yes");
    adb(&served, &["kill-server"], None);
    served.wait();
}
