//! Scripts on the phone: the shell's language, signals, hang-ups.

use std::io::{Read as _, Write as _};

use crate::client::{feed, host, open, phone, read_shell, run, text};

#[test]
fn options_that_the_phone_lacks_are_refused() {
    let phone = phone("speed=100");
    for script in [
        "head -1 /proc/meminfo",
        "tail -n +2 /proc/meminfo",
        "id -g",
        "df -h /data",
    ] {
        let script = format!("{script} >/dev/null 2>&1; echo $?");
        assert_eq!(text(&phone, &script), "1\n", "{script}");
    }
}

#[test]
fn the_shell_speaks_posix() {
    let phone = phone("speed=100");
    for (script, expected) in [
        ("echo a b  c", "a b c\n"),
        ("x='1  2'; echo $x; echo \"$x\"", "1 2\n1  2\n"),
        (
            "for i in 1 2 3; do [ $i = 2 ] && continue; echo $i; done",
            "1\n3\n",
        ),
        (
            "i=0; while [ $i -lt 3 ]; do i=$((i+1)); done; echo $i",
            "3\n",
        ),
        (
            "f() { x=in; echo $1 $#; return 4; }; x=out; f a b; echo $? $x",
            "a 2\n4 in\n",
        ),
        ("case abc in a*c) echo yes;; *) echo no;; esac", "yes\n"),
        (
            "echo ${u:-default}; p=/a/b.c; echo ${p##*/} ${p%.*}",
            "default\nb.c /a/b\n",
        ),
        ("echo one two | { read a b; echo $b $a; }", "two one\n"),
        (
            "{ echo a; echo b; } | while read l; do echo \"<$l>\"; done",
            "<a>\n<b>\n",
        ),
        ("(exit 3); echo $?; ! true; echo $?", "3\n1\n"),
        ("false || echo or; true && echo and", "or\nand\n"),
        ("echo err >&2; echo out", "out\n"),
        (
            "echo x >/data/local/tmp/f; echo y >>/data/local/tmp/f; cat </data/local/tmp/f",
            "x\ny\n",
        ),
        ("cd /data/local/tmp; : >a1; ls; echo a*", "a1\nf\na*\n"),
        (
            "set -- x 'y z'; echo $#; for a in \"$@\"; do echo $a; done; shift; echo $1",
            "2\nx\ny z\ny z\n",
        ),
        ("trap 'echo got' USR1; kill -USR1 $$; echo on", "got\non\n"),
        (
            "sleep 50 >/dev/null & kill $!; [ -d /proc/$! ] || echo gone",
            "gone\n",
        ),
        ("echo $(echo a; echo b)x", "a bx\n"),
        (
            "cd /data/local/tmp; { echo a; echo b; echo c; } >l; tail -n 1 l; head -n 2 l",
            "c\na\nb\n",
        ),
        ("echo foo | grep o", "foo\n"),
        ("sh -c 'echo $0 $1' name arg", "name arg\n"),
        ("exec id -u; echo never", "2000\n"),
        ("x=$(exit 7); echo $?", "7\n"),
        ("dd if=/dev/zero bs=2 count=2 2>/dev/null", "\0\0\0\0"),
        (
            "echo abcdef >/data/local/tmp/d; dd if=/data/local/tmp/d bs=2 skip=2 2>/dev/null",
            "ef\n",
        ),
    ] {
        assert_eq!(run(&phone, script).text(), expected, "{script}");
    }
    // A lone command whose words expand to nothing is expanded once.
    run(&phone, "$(echo x >>/data/local/tmp/once)");
    assert_eq!(text(&phone, "cat /data/local/tmp/once"), "x\n");
    let wrong = run(&phone, "if true; then");
    assert_eq!(wrong.status, Some(1));
    assert!(wrong.err.contains("syntax error"), "{wrong:?}");
    assert_eq!(run(&phone, "kill -9 $$").status, Some(137));
}

#[test]
fn scripts_that_never_end_well_do_end() {
    let phone = phone("speed=100");
    for script in [
        "f() { f; }; f",
        "x=$(yes)",
        ":(){ :|:& };:",
        "while true; do sh -c 'exit 1' || break; done",
        "sh -c 'sh -c \"sh -c true\"'",
    ] {
        let script = format!("sh -c '{}' >/dev/null 2>&1", script.replace('\'', "'\\''"));
        assert!(run(&phone, &script).status.is_some(), "{script}");
    }
    assert_eq!(text(&phone, "echo alive"), "alive\n");
}

#[test]
fn a_hang_up_ends_what_is_not_daemonised() {
    let phone = phone("speed=50");
    let cut = open(&phone, "while true; do sleep 1; done");
    drop(cut);
    let kept = open(
        &phone,
        "(trap '' HUP; sleep 3; echo done >/data/local/tmp/kept) </dev/null >/dev/null 2>&1 & sleep 0.5",
    );
    let ran = read_shell(kept);
    assert_eq!(ran.status, Some(0));
    let mut trapped = open(
        &phone,
        "trap 'echo hup >/data/local/tmp/hup' HUP; echo go; sleep 1",
    );
    let mut ready = [0; 8];
    trapped.read_exact(&mut ready).expect("`go` in a packet");
    trapped.flush().expect("open");
    drop(trapped);
    text(
        &phone,
        "n=0; while [ $n -lt 100 ] && [ ! -s /data/local/tmp/kept ]; do n=$((n+1)); sleep 0.2; done",
    );
    assert_eq!(text(&phone, "cat /data/local/tmp/kept"), "done\n");
    text(
        &phone,
        "n=0; while [ $n -lt 100 ] && [ ! -s /data/local/tmp/hup ]; do n=$((n+1)); sleep 0.2; done",
    );
    assert_eq!(text(&phone, "cat /data/local/tmp/hup"), "hup\n");
    let left = text(&phone, "ps -A -o ARGS");
    assert!(!left.contains("while true"), "{left}");
}

#[test]
fn the_answer_waits_for_all_who_hold_stdout() {
    let phone = phone("speed=100");
    let ran = run(&phone, "(sleep 1; echo late) & echo first");
    assert_eq!(ran.text(), "first\nlate\n");
    assert_eq!(ran.status, Some(0));
}

#[test]
fn the_programs_answer_as_on_phones() {
    let phone = phone("android=14");
    assert_eq!(
        text(
            &phone,
            "getprop ro.build.version.sdk; getprop no.such; getprop no.such x"
        ),
        "34\n\nx\n"
    );
    assert_eq!(
        text(&phone, "pm list packages -U -i --user 0 com.example.app"),
        "package:com.example.app  installer=null uid:10234\npackage:com.example.app.demo  installer=com.android.vending uid:10245\n"
    );
    assert_eq!(run(&phone, "pm path com.none").status, Some(1));
    assert!(text(&phone, "pm path com.example.app").starts_with("package:/data/app/"));
    assert!(
        text(&phone, "ps -A -o PID,UID,NAME | grep com.example.app")
            .contains("com.example.app:service")
    );
    assert_eq!(
        text(&phone, "cat /proc/$(pidof com.example.app)/cmdline"),
        "com.example.app\0"
    );
    assert_eq!(run(&phone, "pidof nothing").status, Some(1));
    assert_eq!(
        text(&phone, "am get-current-user; id -u; getenforce"),
        "0\n2000\nEnforcing\n"
    );
    let of_user = "run-as com.example.work --user 10 id -u";
    assert_eq!(text(&phone, of_user), "1010240\n");
    assert_eq!(run(&phone, "run-as com.example.work id -u").status, Some(1));
    assert!(text(&phone, "dumpsys package com.example.app").contains("DEBUGGABLE"));
    assert!(text(&phone, "dumpsys package com.example.none").contains("Unable to find"));
    assert!(text(&phone, "df /data/misc/perfetto-traces").contains("/data\n"));
    let before = text(&phone, "pidof com.example.app");
    text(&phone, "am force-stop com.example.app");
    assert_eq!(run(&phone, "pidof com.example.app").status, Some(1));
    text(&phone, "am start -n com.example.app/.ui.FeedActivity");
    assert_ne!(text(&phone, "pidof com.example.app"), before);
    let hosts = text(&phone, "cat /system/etc/hosts");
    assert_eq!(
        text(&phone, "stat -c %s /system/etc/hosts").trim(),
        hosts.len().to_string()
    );
    assert_eq!(
        feed(&phone, "sha256sum", b"abc").text(),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  -\n"
    );
    let clocks = text(&phone, "date +%s; cat /proc/uptime");
    assert_eq!(clocks.lines().count(), 2, "{clocks}");
}

#[test]
fn the_server_answers_hosts() {
    let phone = phone("android=13,serial=abc:5555");
    assert_eq!(host(&phone, "host:version"), Ok("0029".to_owned()));
    assert_eq!(
        host(&phone, "host:devices"),
        Ok("abc:5555\tdevice\n".to_owned())
    );
    assert_eq!(
        host(&phone, "host-serial:abc:5555:get-state"),
        Ok("device".to_owned())
    );
    assert!(host(&phone, "host-serial:abc:5555:features").is_ok_and(|f| f.contains("shell_v2")));
    assert_eq!(
        host(&phone, "host-serial:none:get-state"),
        Err("device 'none' not found".to_owned())
    );
    assert_eq!(
        host(&phone, "host:kill"),
        Err("this server is embedded: it can't be killed".to_owned())
    );
    assert!(host(&phone, "host:nonsense").is_err());
    phone.unplug(0);
    assert_eq!(host(&phone, "host:devices"), Ok(String::new()));
    phone.plug_in(0);
    assert!(host(&phone, "host:devices-l").is_ok_and(|l| l.contains("transport_id:2")));
}
