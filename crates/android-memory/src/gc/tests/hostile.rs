//! Random and hostile texts do not cause a panic, and lines in a known form are parsed back.

use proptest::prelude::*;

use super::super::art::CAUSES;
use super::super::*;

/// Returns words of the grammar in any order.
fn soup() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "I/",
        "art",
        "(",
        "123",
        "):",
        ":",
        " ",
        "  ",
        "01-02 03:04:05.678",
        "1773748800.123",
        "[ ",
        " ]",
        "GC freed ",
        "Explicit ",
        "7(3MB)",
        "AllocSpace objects",
        ", ",
        "12% free",
        "25MB/38MB",
        "paused ",
        "1ms",
        "+",
        ",",
        "total ",
        "GC_CONCURRENT",
        " freed ",
        "<1K",
        "K",
        "999999999999999999999",
        "-",
        "\u{1b}[0m",
        "\u{1b}[",
        "é",
        "WaitForGcToComplete blocked ",
        " on ",
        " for ",
        "Failed to allocate a ",
        " byte allocation with ",
        "(VmSize ",
        " kB",
        "java.lang.OutOfMemoryError",
        "Throwing OutOfMemoryError",
        "\"",
        "LOS objects",
        "\r",
        ",",
        "external ",
        "Clamp target GC heap from ",
        "identical ",
        "lines",
        "chatty",
        "12-34/",
    ]);
    prop::collection::vec(words, 0..24).prop_map(|words| words.concat())
}

fn read(text: &str) {
    let mut splitter = Splitter::default();
    let mut axis = Axis::default();
    for row in text.split('\n') {
        if let Row::Line(line) = splitter.line(row) {
            parse_event(&line);
            chatty(&line);
            line.time.map(|time| axis.ns(time));
        }
    }
    parse_message(Some("art"), text);
}

fn pretty_size(bytes: u64) -> String {
    match bytes {
        0..10_240 => format!("{bytes}B"),
        10_240..10_485_760 => format!("{}KB", bytes >> 10),
        10_485_760..10_737_418_240 => format!("{}MB", bytes >> 20),
        _ => format!("{}GB", bytes >> 30),
    }
}

fn pretty_duration(us: u64) -> String {
    match us {
        0 => "0".to_owned(),
        1..1_000 => format!("{us}us"),
        1_000..1_000_000 => format!("{}.{:03}ms", us / 1_000, us % 1_000),
        _ => format!("{}.{:03}s", us / 1_000_000, us / 1_000 % 1_000),
    }
}

proptest! {
    #[test]
    fn no_text_breaks_the_parser(text in ".{0,200}", soup in soup()) {
        read(&text);
        read(&soup);
    }

    #[test]
    fn what_art_prints_is_known_but_for_its_rounding(
        reason in prop::sample::select(&CAUSES[..]),
        collector in "[a-z]{1,8}( [a-z+]{1,9}){0,3}",
        objects in any::<Option<u64>>(),
        freed in 0u64..1 << 40,
        large in (any::<u64>(), 0u64..1 << 40),
        heap in (0u64..1 << 36, 0u64..1 << 36),
        pauses in prop::collection::vec(0u64..30_000_000, 0..4),
        total in 0u64..90_000_000,
        sampled in any::<bool>(),
        format in 0..5,
    ) {
        let first = match objects {
            Some(count) => format!("{count}({}) AllocSpace objects", pretty_size(freed)),
            None => format!("{} AllocSpace bytes", pretty_size(freed)),
        };
        let mark = if sampled { " (sampled)" } else { "" };
        let paused: Vec<String> = pauses.iter().copied().map(pretty_duration).collect();
        let message = format!(
            "{reason} {collector}{mark} GC freed {first}, {}({}) LOS objects, 33% free, {}/{}, \
             paused {} total {}",
            large.0, pretty_size(large.1), pretty_size(heap.0), pretty_size(heap.1),
            paused.join(","), pretty_duration(total),
        );
        let text = match format {
            0 => format!("I/some.tag(  123): {message}"),
            1 => format!("01-02 03:04:05.678 I/some.tag(10123:  123): {message}"),
            2 => format!("\u{1b}[38;5;40m   1773748800.123  123   124 I some.tag: {message}\u{1b}[0m\r"),
            3 => format!("I(  123) {message}  (some.tag)"),
            _ => message.clone(),
        };
        let line = parse_line(&text).expect("a line");
        prop_assert_eq!(line.message, &message);
        prop_assert_eq!(line.pid, (format < 4).then_some(123));
        let Some(Event::Collection(logged)) = parse_event(&line) else {
            panic!("{text}");
        };
        let Logged { collection, steps, .. } = *logged;
        prop_assert_eq!(collection.reason, reason);
        prop_assert_eq!(collection.collector, collector);
        prop_assert_eq!(collection.freed_objects, objects);
        let within = |printed: u64, step: u64, real: u64| printed <= real && real - printed < step;
        prop_assert!(within(collection.freed_bytes.unwrap() as u64, steps.freed, freed));
        prop_assert!(within(collection.freed_large.unwrap().1 as u64, steps.large, large.1));
        prop_assert_eq!(collection.freed_large.unwrap().0, large.0);
        prop_assert!(within(collection.live.unwrap(), steps.live, heap.0));
        prop_assert!(within(collection.total.unwrap(), steps.total, heap.1));
        prop_assert_eq!(collection.pauses.len(), pauses.len());
        for (read, real) in collection.pauses.iter().zip(&pauses) {
            prop_assert!(within(*read / 1000, 1000, *real));
        }
        prop_assert!(within(collection.duration.unwrap() / 1000, 1000, total));
    }
}
