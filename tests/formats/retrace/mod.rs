//! Deobfuscation: the observed answers of R8's retrace, and real mapping files.

mod cases;
mod names;
mod real_maps;

use heaptap_base::bytes::Bytes;
use heaptap_symbols::deobfuscate::{Chain, FieldType, MapFile, Retraced, Retracer};
use std::path::Path;

/// A mapping of these lines, of version 2.2 of the format unless they begin with a `#`.
fn map(lines: &str) -> MapFile {
    let version = "# {\"id\":\"com.android.tools.r8.mapping\",\"version\":\"2.2\"}\n";
    let text = if lines.starts_with('#') {
        lines.to_owned()
    } else {
        version.to_owned() + lines
    };
    let map = MapFile::from_bytes(Bytes::from(text.into_bytes()), Path::new("mapping.txt"));
    let map = map.expect("a map with a class");
    assert_eq!(map.survey().bad_lines, 0, "{:?}", map.survey());
    map
}

/// The entries of `x.A -> a:`, each for a method `f` in the app; it returns void unless the entry
/// has a type.
fn method(entries: &[&str]) -> MapFile {
    let mut text = String::from("x.A -> a:\n");
    for entry in entries {
        if entry.starts_with('#') {
            text += &format!("      {entry}\n");
            continue;
        }
        let digits = |c: char| c.is_ascii_digit() || c == ':';
        let name = entry.trim_start_matches(digits);
        let range = &entry[..entry.len() - name.len()];
        text += &format!("    {range}void {name} -> f\n");
    }
    map(&text)
}

/// Parses chains of the cases: `y.U.i:7 / m:20`, alternatives separated by ` OR `; names of `x.A`
/// are bare, and a class alone is that of the frame `a.f`.
fn shown(retraced: &Retraced, line: Option<u32>) -> String {
    let with_line = |name: String, line: Option<u32>| match line {
        Some(line) => format!("{name}:{line}"),
        None => name,
    };
    match retraced {
        Retraced::Unknown => "unknown".to_owned(),
        Retraced::Class(class) => with_line(format!("{class}.f"), line),
        Retraced::Frames(chains) => {
            let chain = |chain: &Chain| {
                let frames = chain.iter().map(|frame| {
                    let name = format!("{}.{}", frame.method.class, frame.method.name);
                    let name = name.strip_prefix("x.A.").unwrap_or(&name).to_owned();
                    with_line(name, frame.line)
                });
                frames.collect::<Vec<_>>().join(" / ")
            };
            chains.iter().map(chain).collect::<Vec<_>>().join(" OR ")
        }
    }
}

/// `a.f` with a line, as in a stack trace.
fn at(map: &MapFile, line: u32) -> String {
    let frame = Retracer::new(map).frame("a", "f", Some(line), None);
    shown(&frame.retraced, Some(line))
}

/// `a.f` without a line, as in a stack trace.
fn no_line(map: &MapFile) -> String {
    let frame = Retracer::new(map).frame("a", "f", None, None);
    shown(&frame.retraced, None)
}

/// `a.f` as shown in a profile: by the mapping, and by packets created from it.
fn profile(map: &MapFile) -> String {
    let shown = names::by_file(map, &["a.f"]).remove(0);
    assert_eq!(names::by_packets(map, &["a.f"])[0], shown, "packets");
    shown
}

/// The field `a.f` of a type.
fn field(map: &MapFile, of_type: FieldType) -> String {
    let fields = Retracer::new(map).field("a", "f", of_type);
    let names: Vec<&str> = fields.iter().map(|field| field.name).collect();
    names.join(" or ")
}
