//! Start and end of every page.

use super::super::data::header::{Dump, Folded, Header};
use super::super::html::{Foreign, Html, Sentence};
use super::callsites::size;
use heaptap_base::units::{ByteSize, thousands};

/// Writes the title, warnings, and memory by kind.
pub(super) fn head(html: &mut Html, header: &Header) {
    html.add(format_args!("<h1>{}</h1>\n", Foreign(&header.title)));
    for warning in &header.warnings {
        html.add(format_args!(
            "<p class=\"warn\"><b>Warning:</b> {}",
            Sentence(&warning.message)
        ));
        if let Some(help) = &warning.help {
            html.add(format_args!("<br>{}", Sentence(help)));
        }
        html.add(format_args!("</p>\n"));
    }
    if let Some(folded) = &header.folded {
        html.add(format_args!(
            "<p class=\"warn\">This page lists {} of {} callsites individually. The others have \
             the fewest bytes{}: they are summed as “(other)” by {}. Totals are exact. To list all \
             callsites, run <code>{}</code>.</p>\n",
            thousands(folded.kept as u64),
            thousands(folded.of as u64),
            how_much(header, folded),
            match folded {
                Folded {
                    functions: true, ..
                } => "library and function",
                Folded {
                    libraries: true, ..
                } => "library, without functions",
                _ => "the library that owns the memory, without its callers",
            },
            Foreign(&folded.command)
        ));
    }
    let Some(went) = &header.went else {
        return;
    };
    html.add(format_args!("<h2 id=\"where\">Where the memory is</h2>\n"));
    if let (Some(total), Some(of)) = (went.total, &went.of) {
        html.add(format_args!("<p>{} {}", ByteSize(total), Foreign(of)));
        if let Some(at) = &went.at {
            html.add(format_args!(", at {}", Foreign(at)));
        }
        html.add(format_args!(".</p>\n"));
    }
    let rows = went.parts.iter().map(|part| {
        vec![
            Foreign(&part.name).to_string(),
            match part.bytes {
                Some(bytes) => size(bytes),
                None => "unknown".to_owned(),
            },
            Sentence(&part.how).to_string(),
        ]
    });
    html.table("By kind.", &["kind", "#size", "source"], rows);
}

/// Returns the summed part of the largest dump: `, 3.2 MiB of 120.1 MiB (2.7%) at @3`. Each process
/// and heap numbers its dumps from 1, so the process is named if there are several.
fn how_much(header: &Header, folded: &Folded) -> String {
    let measure = |dump: &Dump| dump.measures.get(dump.default_measure).cloned();
    let dumps = header.dumps.iter().zip(&folded.bytes);
    let dumps = dumps.filter_map(|(dump, summed)| Some((dump, *summed, measure(dump)?)));
    let Some((dump, summed, of)) = dumps.max_by_key(|(.., of)| of.total) else {
        return String::new();
    };
    let share = summed as f64 * 100.0 / of.total.max(1) as f64;
    match of.unit.as_str() {
        "bytes" => format!(
            ", {} of {} ({share:.1}%) at @{}{}",
            size(summed),
            size(of.total),
            dump.number,
            match header.series.len() {
                1 => String::new(),
                _ => whose(dump),
            }
        ),
        _ => String::new(),
    }
}

/// Returns ` of com.example.app (4242), libc.malloc`, as far as known.
fn whose(dump: &Dump) -> String {
    let process = match (dump.process.as_str(), dump.pid) {
        ("", 0) => String::new(),
        ("", pid) => format!("process {pid}"),
        (name, 0) => Foreign(name).to_string(),
        (name, pid) => format!("{} ({pid})", Foreign(name)),
    };
    let heap = match dump.heap.as_str() {
        "" => String::new(),
        heap => Foreign(heap).to_string(),
    };
    let known: Vec<String> = [process, heap]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect();
    match known.is_empty() {
        true => String::new(),
        false => format!(" of {}", known.join(", ")),
    }
}

/// Writes memory outside the profile, recording facts, and next steps.
pub(super) fn foot(html: &mut Html, header: &Header) {
    if !header.unseen.is_empty() {
        html.add(format_args!(
            "<h2 id=\"unseen\">Memory outside this profile</h2>\n<dl>"
        ));
        for unseen in &header.unseen {
            let bytes = match unseen.bytes {
                Some(bytes) => format!(" ({})", ByteSize(bytes)),
                None => String::new(),
            };
            html.add(format_args!(
                "<dt>{}{bytes}</dt><dd>{}</dd>",
                Foreign(&unseen.what),
                Sentence(&unseen.why)
            ));
        }
        html.add(format_args!("</dl>\n"));
    }
    if !header.facts.is_empty() {
        html.add(format_args!("<h2 id=\"facts\">Recording</h2>\n<dl>"));
        for fact in &header.facts {
            html.add(format_args!(
                "<dt>{}</dt><dd>{}</dd>",
                Foreign(&fact.name),
                Foreign(&fact.value)
            ));
        }
        html.add(format_args!("</dl>\n"));
    }
    if !header.commands.is_empty() {
        html.add(format_args!("<h2 id=\"commands\">Next steps</h2>\n<dl>"));
        for command in &header.commands {
            html.add(format_args!(
                "<dt>{}</dt><dd><code>{}</code></dd>",
                Foreign(&command.what),
                Foreign(&command.command)
            ));
        }
        html.add(format_args!("</dl>\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::outline;
    use heaptap_model::stacks::{self, Measure, NodeId, StackProfile, Values, View};

    fn first_line(pids: &[u64], functions: bool) -> String {
        let dump = |(pid, bytes): (&u64, i64)| {
            let mut dump = stacks::Dump {
                measures: vec![Measure::of_view(View::Space)],
                values: Values {
                    nodes: vec![NodeId::ROOT],
                    columns: vec![vec![bytes]],
                },
                ..stacks::Dump::default()
            };
            dump.facts.number = 3;
            dump.facts.pid = *pid;
            dump.facts.process = "com.example.app".to_owned();
            dump.facts.heap = "libc.malloc".to_owned();
            dump
        };
        let profile = StackProfile {
            dumps: pids.iter().zip([4096, 8192]).map(dump).collect(),
            ..StackProfile::default()
        };
        let mut header = Header {
            folded: Some(Folded {
                kept: 1,
                of: 2,
                functions,
                libraries: true,
                bytes: vec![1024; pids.len()],
                command: "heaptap report -l 0 rec".to_owned(),
            }),
            ..Header::default()
        };
        outline(&profile, &[], &mut header);
        let mut html = Html::default();
        head(&mut html, &header);
        html.into_body()
    }

    #[test]
    fn what_is_summed_up_is_said_of_one_dump_and_by_what() {
        let one = first_line(&[7], true);
        assert!(one.contains("1.0 KiB of 4.0 KiB (25.0%) at @3:"), "{one}");
        assert!(one.contains("by library and function."), "{one}");
        let several = first_line(&[7, 9], false);
        let dump = "@3 of <bdi>com.example.app</bdi> (9), <bdi>libc.malloc</bdi>:";
        assert!(several.contains("of 8.0 KiB (12.5%) at "), "{several}");
        assert!(several.contains(dump), "{several}");
        assert!(
            several.contains("by library, without functions."),
            "{several}"
        );
    }
}
