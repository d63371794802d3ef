//! Tests of logcat lines in each format, and of omitted lines.

use super::*;

fn parsed(text: &str) -> LogLine<'_> {
    parse_line(text).unwrap()
}

#[test]
fn each_format_gives_what_it_prints() {
    for (text, format, pid, tag) in [
        (
            "I/art     ( 2345): hello",
            Format::Brief,
            Some(2345),
            Some("art"),
        ),
        (
            "I/a(b) c(10123: 2345): hello",
            Format::Brief,
            Some(2345),
            Some("a(b) c"),
        ),
        (
            "01-02 03:04:05.678 I/art     ( 2345): hello",
            Format::Time,
            Some(2345),
            Some("art"),
        ),
        (
            "01-02 03:04:05.678: I/art(2345): hello",
            Format::Time,
            Some(2345),
            Some("art"),
        ),
        (
            "01-02 03:04:05.678  2345  2350 I art     : hello",
            Format::Threadtime,
            Some(2345),
            Some("art"),
        ),
        (
            "01-02 03:04:05.678 10123  2345  2350 I art     : hello",
            Format::Threadtime,
            Some(2345),
            Some("art"),
        ),
        (
            "2026-01-02 03:04:05.678901 +0100 u0_a1  2345  2350 I art     : hello",
            Format::Threadtime,
            Some(2345),
            Some("art"),
        ),
        (
            "         1773748800.123  2345  2350 I art     : hello",
            Format::Threadtime,
            Some(2345),
            Some("art"),
        ),
        (
            "   123.456  2345  2350 I art     : hello",
            Format::Threadtime,
            Some(2345),
            Some("art"),
        ),
        (
            "I( 2345) hello  (art)",
            Format::Process,
            Some(2345),
            Some("art"),
        ),
        ("I( 2345: 2350) hello", Format::Thread, Some(2345), None),
        (
            "I(10123: 2345: 2350) hello",
            Format::Thread,
            Some(2345),
            None,
        ),
        ("I/art     : hello", Format::Tag, None, Some("art")),
        ("hello", Format::Raw, None, None),
        (
            "01-02 03:04:05.678 2345-2350/com.example.app I/art: hello",
            Format::Studio,
            Some(2345),
            Some("art"),
        ),
        (
            "01-02 03:04:05.678 2345-2350/? I/art: hello",
            Format::Studio,
            Some(2345),
            Some("art"),
        ),
        (
            "2026-01-02 03:04:05.678  2345-2350  art                     com.example.app          I  hello",
            Format::Studio,
            Some(2345),
            Some("art"),
        ),
        (
            "\x1b[38;5;75m01-02 03:04:05.678  2345  2350 I art     : hello\x1b[0m\r\n",
            Format::Threadtime,
            Some(2345),
            Some("art"),
        ),
        (
            ",I/art     ( 2345): hello\r\r\n",
            Format::Brief,
            Some(2345),
            Some("art"),
        ),
        (
            "[+1,733 ms] I/art     ( 2345): hello",
            Format::Brief,
            Some(2345),
            Some("art"),
        ),
    ] {
        let line = parsed(text);
        assert_eq!(
            (line.format, line.pid, line.tag, line.message),
            (format, pid, tag, "hello"),
            "{text}"
        );
        let timed = !matches!(
            format,
            Format::Brief | Format::Process | Format::Thread | Format::Tag | Format::Raw
        );
        assert_eq!(line.time.is_some(), timed, "{text}");
        assert_eq!(line.level, (format != Format::Raw).then_some('I'), "{text}");
    }
    assert_eq!(parsed("I/art( root: 2345): x").pid, Some(2345));
    for text in [
        "I(2345: x) hello",
        "01-02 03:04:05.678  2345  x I art: hello",
    ] {
        assert_eq!(parsed(text).format, Format::Raw, "{text}");
    }
    assert_eq!(
        parsed("01-02 03:04:05.678 5-6/com.example I/art: x").package,
        Some("com.example")
    );
    for text in [
        "",
        "  \r\n",
        "--------- beginning of main",
        "--------- switch to system\r",
    ] {
        assert_eq!(parse_line(text), None);
    }
}

#[test]
fn the_message_of_a_long_line_stands_below_its_head() {
    let mut splitter = Splitter::default();
    let mut found = Vec::new();
    for text in [
        "--------- beginning of main",
        "[ 09-11 12:52:56.962   188:  189 I/art ]",
        "one",
        "",
        "I/two: still the body",
        "",
        "[ 2026-09-11 12:52:57.000 10123: 190: 191 W/a b ]\r",
        "three\r",
        "09-11 12:52:58.000   7   8 I x: four",
        "five",
    ] {
        if let Row::Line(line) = splitter.line(text) {
            found.push((
                line.pid,
                line.tag.map(str::to_owned),
                line.message.to_owned(),
            ));
        }
    }
    let row =
        |pid, tag: Option<&str>, message: &str| (pid, tag.map(str::to_owned), message.to_owned());
    assert_eq!(
        found,
        [
            row(Some(188), Some("art"), "one"),
            row(Some(188), Some("art"), "I/two: still the body"),
            row(Some(190), Some("a b"), "three"),
            row(Some(7), Some("x"), "four"),
            row(None, None, "five"),
        ]
    );
}

#[test]
fn chatty_says_what_was_left_out() {
    let line = parsed(
        "01-02 03:04:05.678  5  6 I chatty  : uid=1000(system) Binder:5_1 identical 3 lines",
    );
    assert_eq!(chatty(&line), Some(Chatty::Identical(3)));
    let line = parsed("01-02 03:04:05.678  5  6 I chatty  : uid=1000 expire 1 line");
    assert_eq!(chatty(&line), Some(Chatty::Expired(1)));
    assert_eq!(chatty(&parsed("I/chatty(5): identical 3")), None);
    assert_eq!(chatty(&parsed("I/other(5): identical 3 lines")), None);
}
