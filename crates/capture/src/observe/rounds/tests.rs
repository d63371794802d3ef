use std::time::Duration;

use super::*;
use crate::observe::PartsOptions;
use heaptap_model::timeline::Parts;

const S: u64 = 1_000_000_000;

fn options(allow_gc: bool) -> Options {
    Options {
        names: vec!["com.example.app".to_owned()],
        pids: vec![(77, "surfaceflinger".to_owned())],
        every: Duration::from_secs(1),
        parts: Some(PartsOptions {
            every: Duration::from_secs(10),
            allow_gc,
        }),
        graphics: true,
        log: true,
    }
}

fn rounds(allow_gc: bool) -> Rounds {
    Rounds::new(&options(allow_gc), None, OurWindows::default())
}

/// Returns the entries that a text of the loop creates.
fn push(rounds: &mut Rounds, text: &str) -> Vec<Entry> {
    let mut entries = Vec::new();
    for line in text.lines() {
        let step = rounds.line(line, &mut |event| {
            if let Event::Seen(entry) = event {
                entries.push(entry);
            }
        });
        assert_eq!(step, Step::On, "{line}");
    }
    entries
}

fn sample(pid: u32, start: u64, rss: u64) -> String {
    format!("s {pid} {start} 0|State: S (sleeping)|VmRSS: {rss} kB|RssAnon: 40 kB\n")
}

fn round(at: u64, body: &str) -> String {
    format!("t {at}.50 1700000{at}.600000\n{body}e {at}.52 2 3 0 1\n")
}

#[test]
fn processes_come_go_and_come_again() {
    let mut rounds = rounds(false);
    let text = format!(
        "b f00d 2000 no\n{}",
        round(100, &format!("n 0 5\n{}", sample(5, 9, 100)))
    );
    let seen = push(&mut rounds, &text);
    assert!(
        matches!(&seen[0].seen, Observation::Unreadable(unread) if unread.source == Source::Dmabuf)
    );
    assert!(
        matches!(&seen[1].seen, Observation::Process(p) if p.name == "com.example.app" && !p.restarted)
    );
    let Observation::Resident(resident) = &seen[2].seen else {
        panic!("{seen:?}");
    };
    assert_eq!((resident.rss, resident.anon), (100 * 1024, Some(40 * 1024)));
    assert_eq!(seen[2].boot_ns, 100 * S + S / 2);
    assert_eq!(seen[2].cost.unwrap().device_ns, 20_000_000);
    assert!(seen[2].cost.unwrap().bytes > 40);

    // It is gone; another one replaces it, even with its index.
    let seen = push(&mut rounds, &round(101, ""));
    assert!(matches!(seen[0].seen, Observation::Gone));
    let seen = push(
        &mut rounds,
        &round(102, &format!("n 0 5\n{}", sample(5, 77, 10))),
    );
    assert!(matches!(&seen[0].seen, Observation::Process(p) if p.restarted));
    let seen = push(&mut rounds, &round(103, &sample(5, 99, 10)));
    assert!(matches!(seen[0].seen, Observation::Gone));
    assert!(matches!(&seen[1].seen, Observation::Process(p) if p.restarted));
    // A second process of the name is not a restart.
    let seen = push(
        &mut rounds,
        &round(
            104,
            &format!("n 0 5 6\n{}{}", sample(5, 99, 1), sample(6, 1, 1)),
        ),
    );
    assert!(matches!(&seen[0].seen, Observation::Process(p) if !p.restarted));
}

#[test]
fn a_zombie_is_gone_and_what_may_not_be_read_is_said_once() {
    let mut rounds = rounds(false);
    push(&mut rounds, &round(100, &sample(77, 1, 5)));
    let zombie = "s 77 1 0|State: Z (zombie)\nh 77\n";
    let seen = push(&mut rounds, &round(101, zombie));
    assert!(matches!(&seen[0].seen, Observation::Unreadable(u) if u.source == Source::Status));
    assert!(matches!(seen[1].seen, Observation::Gone));
    assert!(
        push(&mut rounds, &round(102, "h 77\n")).is_empty(),
        "told once"
    );
}

const TABLE: &str = "** MEMINFO in pid 5 [com.example.app] **
                   Pss  Private  Private  SwapPss      Rss     Heap     Heap     Heap
                 Total    Dirty    Clean    Dirty    Total     Size    Alloc     Free
                ------   ------   ------   ------   ------   ------   ------   ------
  Native Heap    20000    19000        0        0    21000        0        0        0
        TOTAL    20000    19000        0        0    21000        0        0        0
";

fn answer(kind: &str, from: u64, text: &str) -> (String, String) {
    let lines: Vec<String> = text
        .lines()
        .map(|line| format!("m {kind} 5 {line}\n"))
        .collect();
    (
        format!(
            "M {kind} 5 {from}.00\n{}",
            lines[..lines.len() / 2].concat()
        ),
        format!(
            "{}N {kind} 5 {}.00\n",
            lines[lines.len() / 2..].concat(),
            from + 1
        ),
    )
}

#[test]
fn what_a_slow_service_says_is_whole_whatever_comes_between() {
    let mut rounds = rounds(false);
    let (begin, end) = answer("p", 100, TABLE);
    push(&mut rounds, &begin);
    push(
        &mut rounds,
        &round(101, &format!("n 0 5\n{}", sample(5, 9, 100))),
    );
    let (other, rest) = answer("g", 101, "Total GPU memory usage:\n  1234 bytes, x");
    push(&mut rounds, &other);
    let seen = push(&mut rounds, &format!("{end}{rest}"));
    let Observation::Parts(parts) = &seen[0].seen else {
        panic!("{seen:?}");
    };
    let Parts {
        native,
        native_heap,
        source,
        ..
    } = parts;
    assert_eq!((*native, *source), (19_000 * 1024, Source::MeminfoLocal));
    assert!(native_heap.is_none(), "zeros that mean nothing");
    assert_eq!(
        (seen[0].boot_ns, seen[0].cost.unwrap().device_ns),
        (100 * S, S)
    );
    assert!(matches!(&seen[1].seen, Observation::Graphics(g) if g.bytes == 1234));
}

#[test]
fn an_app_that_is_asked_collects_for_us() {
    let windows = OurWindows::default();
    let mut rounds = Rounds::new(&options(true), None, windows.clone());
    let (begin, end) = answer("p", 100, TABLE);
    push(&mut rounds, &begin);
    assert_eq!(
        windows.whose(5, 100 * S + 1),
        super::super::own_collections::Whose::Undecided
    );
    let seen = push(&mut rounds, &end);
    assert!(matches!(&seen[0].seen, Observation::HeaptapAction(ours) if ours.until_ns == 101 * S));
    assert_eq!(
        windows.whose(5, 100 * S + 1),
        super::super::own_collections::Whose::Ours
    );
}

#[test]
fn what_cannot_be_read_is_said_once_and_a_process_that_went_is_none() {
    let mut rounds = rounds(false);
    for _ in 0..2 {
        let (begin, end) = answer("p", 100, "No process found for: 5\n.");
        assert!(push(&mut rounds, &(begin + &end)).is_empty());
    }
    let (begin, end) = answer("g", 100, "\nCan't find service: gfxinfo\n");
    let seen = push(&mut rounds, &(begin.clone() + &end));
    assert!(matches!(&seen[0].seen, Observation::Unreadable(u) if u.why.contains("find service")));
    assert!(push(&mut rounds, &(begin + &end)).is_empty());
}

#[test]
fn gfxinfo_without_figures_of_a_process_says_that_it_showed_no_window() {
    let mut rounds = rounds(false);
    let text = "Applications Graphics Acceleration Info:\n** Graphics info for pid 5 [x] **";
    let (begin, end) = answer("g", 100, text);
    let seen = push(&mut rounds, &(begin + &end));
    let Observation::Unreadable(unread) = &seen[0].seen else {
        panic!("{seen:?}");
    };
    assert!(
        unread.why.contains("has not shown a window"),
        "{}",
        unread.why
    );
}

#[test]
fn a_gap_is_what_lies_between_two_connections() {
    let mut rounds = rounds(false);
    push(&mut rounds, &round(100, &sample(77, 1, 5)));
    rounds.line("M p 5 100.00", &mut |_| {});
    rounds.lost("the cable");
    rounds.lost("still");
    let seen = push(&mut rounds, &round(130, &sample(77, 1, 5)));
    assert!(
        matches!(&seen[0].seen, Observation::Gap(gap) if gap.until_ns == 130 * S + S / 2 && gap.why == "the cable")
    );
    assert_eq!(seen[0].boot_ns, 100 * S + S / 2);
    assert!(
        matches!(seen[1].seen, Observation::Resident(_)),
        "no restart"
    );
    assert_eq!(seen.len(), 2);
    // The partial answer from before is discarded.
    assert!(push(&mut rounds, "N p 5 131.00").is_empty());
}

#[test]
fn another_boot_ends_it() {
    let mut rounds = Rounds::new(
        &options(false),
        Some("f00d".to_owned()),
        OurWindows::default(),
    );
    assert_eq!(rounds.line("b f00d 2000 no", &mut |_| {}), Step::On);
    assert_eq!(rounds.line("b beef 2000 no", &mut |_| {}), Step::Rebooted);
}

#[test]
fn the_cost_adds_up_over_connections() {
    let mut rounds = rounds(false);
    push(&mut rounds, &round(100, ""));
    rounds.lost("x");
    push(&mut rounds, &round(101, ""));
    let Some(Entry {
        seen: Observation::Cost(spent),
        ..
    }) = rounds.last()
    else {
        panic!();
    };
    assert_eq!(spent.cpu_ns, 2 * 6 * TICK_NS);
    assert_eq!((spent.rounds, spent.since_ns), (2, 100 * S + S / 2));
    assert_eq!(spent.bytes, 2 * round(100, "").len() as u64);
}

#[test]
fn lines_that_make_no_sense_do_no_harm() {
    let mut rounds = rounds(false);
    for line in [
        "",
        " ",
        "t",
        "t x y",
        "t 99999999999999999999.0 1",
        "n",
        "n 9 5",
        "n 0 x -1 99999999999",
        "s",
        "s x",
        "s 5",
        "s 5 x y z",
        "s 5 9 0|",
        "s 5 9 0|VmRSS: 99999999999999999999 kB",
        "s 5 9 0|\u{0}|:|: kB",
        "y",
        "y|",
        "y|MemTotal: 1",
        "M",
        "M p",
        "M p x 1",
        "M q 5 1.0",
        "M p 5 x",
        "m",
        "m p 5",
        "m p 6 t 1.0 2.0",
        "N",
        "N p 5",
        "N p 6 9.9",
        "e",
        "e x",
        "e 1.0 x",
        "b",
        "h",
        "h x",
        "\u{feff}t 1.0 2.0",
        "|",
        "t|1",
        "m|p 5 x",
    ] {
        rounds.line(line, &mut |_| {});
    }
    // Text of an app is never a line of the loop.
    rounds.line("M p 5 1.00", &mut |_| {});
    rounds.line("m p 5 t 999.00 999.00", &mut |_| {});
    rounds.line("m p 5 N p 5 999.00", &mut |_| {});
    assert_eq!(rounds.boot_ns(), 0);
    for pid in 0..10_000 {
        rounds.line(&format!("s {pid} 1 0|VmRSS: 1 kB"), &mut |_| {});
        rounds.line(&format!("M p {pid} 1.00"), &mut |_| {});
        rounds.line(&format!("h {pid}"), &mut |_| {});
    }
    assert!(rounds.followed.len() <= PROCESSES);
    assert!(rounds.answers.len() <= 3 * PROCESSES);
    for _ in 0..100 {
        rounds.line(&format!("m p 1 {}", "x".repeat(60_000)), &mut |_| {});
    }
    assert!(
        rounds
            .answers
            .values()
            .all(|answer| answer.text.len() <= MAX_TEXT_LENGTH)
    );
}

/// Words that a device might print in place of a number or a name.
const ODD: [&str; 15] = [
    "",
    "0",
    "-1",
    "5",
    "77",
    "4294967295",
    "18446744073709551615",
    "18446744073.9999999999",
    "99999999999999999999.5",
    "p",
    "g",
    "d",
    "|VmRSS: 18446744073709551615 kB",
    "|State: Z",
    "App Summary",
];

proptest::proptest! {
    #[test]
    fn no_line_is_too_odd(
        lines in proptest::collection::vec(
            ("[btnshyMmNex]", proptest::collection::vec(0..ODD.len(), 0..6), ".{0,20}"),
            0..40,
        ),
        allow_gc: bool,
    ) {
        let mut rounds = rounds(allow_gc);
        let mut known = 0usize;
        for (word, odd, tail) in lines {
            let odd: Vec<&str> = odd.into_iter().map(|at| ODD[at]).collect();
            let line = format!("{word} {}{tail}", odd.join(" "));
            rounds.line(&line, &mut |event| {
                if let Event::Seen(entry) = event {
                    // Every entry can be written and read again.
                    let again: Entry = serde_json::from_str(entry.line().trim_end()).unwrap();
                    assert_eq!(again, entry);
                    known += 1;
                }
            });
        }
        assert!(rounds.pids().len() <= PROCESSES && known <= 40 * 4 * PROCESSES);
    }
}
