//! Texts with generated layouts: any choice of columns and rows, with any values. They are written
//! in the device's formats (`%13s %8s …`, `%21s %8d …`) and not by the tested code.

use proptest::prelude::*;

use super::*;

const HEADERS: [(&str, &str); 13] = [
    ("Pss", "Total"),
    ("Pss", "Clean"),
    ("Shared", "Dirty"),
    ("Private", "Dirty"),
    ("Shared", "Clean"),
    ("Private", "Clean"),
    ("SwapPss", "Dirty"),
    ("Swap", "Dirty"),
    ("Rss", "Total"),
    ("Heap", "Size"),
    ("Heap", "Alloc"),
    ("Heap", "Free"),
    ("Vendor", "Thing"),
];

const LABELS: [&str; 9] = [
    "Native Heap",
    "Dalvik Heap",
    ".so mmap",
    "GL mtrack",
    "Vendor's own long name",
    "Unknown",
    ".CompilerMetadata",
    "Größe",
    "TOTAL",
];

#[derive(Debug, Clone)]
struct Made {
    columns: Vec<usize>,
    rows: Vec<(usize, Vec<i64>, usize)>,
    padded: bool,
    objects: Vec<(usize, i64)>,
    zero: char,
}

fn made() -> impl Strategy<Value = Made> {
    let columns = proptest::sample::subsequence((0..HEADERS.len()).collect::<Vec<_>>(), 3..=13);
    let value = prop_oneof![
        8 => 0..500_000i64,
        1 => -5000..0i64,
        1 => any::<i32>().prop_map(i64::from),
    ];
    let rows = proptest::collection::vec(
        (
            0..LABELS.len(),
            proptest::collection::vec(value.clone(), 13),
            1..14usize,
        ),
        1..12,
    );
    let objects = proptest::collection::vec((0..OBJECTS.len(), value), 0..12);
    let zero = proptest::sample::select(vec!['0', '\u{660}', '\u{6f0}']);
    (columns, rows, any::<bool>(), objects, zero).prop_map(
        |(columns, rows, padded, objects, zero)| Made {
            columns,
            rows,
            padded,
            objects,
            zero,
        },
    )
}

const OBJECTS: [&str; 5] = [
    "Views",
    "ViewRootImpl",
    "Proxy Binders",
    "PAGECACHE_OVERFLOW",
    "A very long name of something",
];

fn right(text: &str, width: usize) -> String {
    format!("{text:>width$}")
}

fn cells(cells: impl Iterator<Item = String>) -> String {
    cells.map(|cell| format!(" {}", right(&cell, 8))).collect()
}

fn digits(value: i64, zero: char) -> String {
    let latin = value.to_string();
    let other = |c: char| match c.to_digit(10) {
        Some(digit) => char::from_u32(zero as u32 + digit).unwrap(),
        None => c,
    };
    latin.chars().map(other).collect()
}

fn write(made: &Made) -> String {
    let mut text =
        String::from("Applications Memory Usage (in Kilobytes):\nUptime: 1 Realtime: 2\n\n");
    text += "** MEMINFO in pid 7 [com.example.app] **\n";
    let head = |word: fn(&(&'static str, &'static str)) -> &'static str| {
        let words = made.columns.iter().map(|at| word(&HEADERS[*at]).to_owned());
        format!("{}{}\n", right("", 13), cells(words))
    };
    text += &head(|header| header.0);
    text += &head(|header| header.1);
    text += &head(|_| "------");
    for (label, values, count) in &made.rows {
        let count = (*count).min(made.columns.len());
        text += &right(LABELS[*label], 13);
        let shown = if made.padded {
            made.columns.len()
        } else {
            count
        };
        text += &cells((0..shown).map(|at| match at < count {
            true => digits(values[at], made.zero),
            false => String::new(),
        }));
        text += "\n";
    }
    text += " \n Objects\n";
    for pair in made.objects.chunks(2) {
        for (at, (name, value)) in pair.iter().enumerate() {
            let name = format!("{}:", OBJECTS[*name]);
            text += &format!(
                "{}{:>21} {}",
                if at == 0 { "" } else { " " },
                name,
                right(&digits(*value, made.zero), 8)
            );
        }
        text += "\n";
    }
    text
}

proptest! {
    #[test]
    fn any_layout_gives_its_values(made in made()) {
        let text = write(&made);
        let meminfo = Meminfo::parse(&text);
        prop_assert_eq!(meminfo.unknown().count(), 0);
        let process = meminfo.processes().next().unwrap();
        let table = process.table().unwrap();
        prop_assert_eq!(process.texts().count(), 0, "{}", text);
        let found: Vec<&Row> = table.rows.values().collect();
        prop_assert_eq!(found.len(), made.rows.len());
        for (found, (label, values, count)) in found.iter().zip(&made.rows) {
            prop_assert_eq!(&found.label, LABELS[*label]);
            let count = (*count).min(made.columns.len());
            for (at, (cell, value)) in found.cells.iter().zip(values).enumerate() {
                let wanted = (at < count).then_some(value * 1024);
                prop_assert_eq!(*cell, wanted, "{}", text);
            }
        }
        if !made.objects.is_empty() {
            let objects = process.counts("Objects").unwrap();
            let found: Vec<(&str, i64)> = objects
                .entries()
                .map(|entry| (&entry.name[..], entry.values[0].unwrap()))
                .collect();
            let wanted: Vec<(&str, i64)> =
                made.objects.iter().map(|(name, value)| (OBJECTS[*name], *value)).collect();
            prop_assert_eq!(found, wanted);
        }
    }

    #[test]
    fn a_text_with_anything_in_it_is_read(
        made in made(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), "[ -~\n\r٣,:()*-]{0,12}"), 0..8),
    ) {
        let mut text = write(&made);
        for (at, change) in changes {
            let mut at = at.index(text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            text.insert_str(at, &change);
        }
        look_through(&text);
    }

    #[test]
    fn any_text_is_read(text in "\\PC*") {
        look_through(&text);
    }

    #[test]
    fn lines_of_scripts_are_read(lines in proptest::collection::vec("(4,7,a|oom|proc|cat|ram|time|1),[0-9,N/Aa.]{0,60}", 0..6)) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        look_through(&text);
    }
}
