//! `heaptap hprof conv|info|strip`: shows the contents of a dump and the result of a rewrite.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::args::{Args, Command, ConvArgs, InfoArgs, StripArgs};
use super::run::{self, Made};
use crate::commands::shared::blocking;
use crate::commands::shared::paths::near;
use crate::console::exit::Outcome;
use crate::console::flags::context::Context;
use crate::console::table::show_columns;
use crate::console::{Console, ConsoleWriter};
use crate::names::frames::LookupControl;
use crate::recording::conversion::convert::Input;
use android_hprof::Rewritten;
use android_hprof::convert::ConvertOptions;
use android_hprof::info::{Contents, Info, Tally, heap_word};
use android_hprof::records::tag;
use android_hprof::strip::StripOptions;
use android_hprof::sub_records::{root_kind, sub_tag};
use heaptap_base::error::Failure;
use heaptap_base::units::{ByteSize, counted};
use heaptap_results::destination::Destination;

/// Runs the command.
///
/// # Errors
/// Returns an error if the input does not contain a dump or the output cannot be written.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    match args.command {
        Command::Conv(args) => conv(ctx, args).await,
        Command::Info(args) => info(ctx, args).await,
        Command::Strip(args) => strip(ctx, args).await,
    }
}

async fn conv(ctx: &Context, args: ConvArgs) -> Result<Outcome, Failure> {
    let options = ConvertOptions {
        app_only: args.app_only,
        compat: args.compat,
    };
    let place = (args.input, args.output, args.force);
    let work = move |input, output, control| run::convert(&input, output, options, &control);
    rewrite(ctx, place, "converting …", work, |done| {
        let mut said = String::new();
        if done.left_out > 0 {
            said = format!("; objects of other heaps left out: {}", done.left_out);
        }
        if done.without_data > 0 {
            let words = format!("; arrays without data or length: {}", done.without_data);
            said.push_str(&words);
        }
        let extra = json!({
            "objects_left_out": done.left_out,
            "arrays_without_data": done.without_data,
        });
        (&done.file, extra, said)
    })
    .await
}

async fn strip(ctx: &Context, args: StripArgs) -> Result<Outcome, Failure> {
    let options = StripOptions {
        keep_strings: args.keep_strings,
        fields: args.fields,
    };
    let place = (args.input, args.output, args.force);
    let work = move |input, output, control| run::strip(&input, output, options, &control);
    rewrite(ctx, place, "stripping …", work, |done| {
        let mut said = format!(
            "; arrays zeroed: {} ({})",
            done.arrays,
            ByteSize(done.array_bytes)
        );
        if options.fields {
            said.push_str("; numbers in fields zeroed");
        }
        if done.strings_kept > 0 {
            said.push_str(&format!("; strings kept: {}", done.strings_kept));
        }
        let extra = json!({
            "arrays_zeroed": done.arrays,
            "array_bytes_zeroed": done.array_bytes,
            "fields_zeroed": options.fields,
            "strings_kept": done.strings_kept,
            "unknown_records_zeroed": done.unknown_records,
        });
        (&done.file, extra, said)
    })
    .await
}

/// Rewrites a dump from a path to another, with a flag to overwrite the output. `tell` returns the
/// written file, with extra JSON fields and words for the message.
async fn rewrite<T>(
    ctx: &Context,
    (from, to, force): (PathBuf, PathBuf, bool),
    doing: &str,
    work: impl FnOnce(Input, Destination, LookupControl) -> Result<Made<T>, Failure> + Send + 'static,
    tell: impl FnOnce(&T) -> (&Rewritten, Value, String),
) -> Result<Outcome, Failure>
where
    T: Send + 'static,
{
    let goal = place(&ctx.console, to)?;
    let output = Destination::new(goal.as_deref(), force, ConsoleWriter(ctx.console.clone()));
    let input = Input::from_typed(&from);
    let work = move |control| work(input, output, control);
    let made = blocking::watched(ctx, doing, None, work).await?;
    let (file, extra, said) = tell(&made.what);
    written(&ctx.console, &made, file, goal.as_deref(), extra, &said);
    Ok(made.class().into())
}

/// Returns the file to write; `None` for standard output.
fn place(console: &Console, path: PathBuf) -> Result<Option<PathBuf>, Failure> {
    if path != Path::new("-") {
        return Ok(Some(path));
    }
    if console.is_json() {
        return Err(
            Failure::usage("cannot write both `--json` and the dump to standard output")
                .with_help("name a file instead of `-`"),
        );
    }
    Ok(None)
}

/// Shows the written file and the problems of the dump, in JSON modes as a document.
fn written<T>(
    console: &Console,
    made: &Made<T>,
    file: &Rewritten,
    goal: Option<&Path>,
    extra: Value,
    said: &str,
) {
    if console.is_json() {
        let mut document = json!({
            "input": made.name,
            "output": goal.map(Path::to_string_lossy),
            "bytes": file.bytes,
            "records": file.records,
            "whole": file.is_whole() && made.findings.is_empty(),
            "warnings": made.findings,
        });
        if let (Some(all), Value::Object(extra)) = (document.as_object_mut(), extra) {
            all.extend(extra);
        }
        console.json(&document);
    }
    console.findings(&made.findings);
    let goal = match goal {
        Some(goal) => near(goal).display().to_string(),
        None => "standard output".to_owned(),
    };
    console.say(format_args!("wrote {goal}: {}{said}", ByteSize(file.bytes)));
}

async fn info(ctx: &Context, args: InfoArgs) -> Result<Outcome, Failure> {
    let input = Input::from_typed(&args.input);
    let work = blocking::watched(ctx, "reading …", None, move |_| run::info(&input));
    let made = work.await?;
    if ctx.console.is_json() {
        ctx.console.json(&document(&made));
    } else {
        show_columns(&ctx.console, &overview(&made.name, &made.what), &[]);
        ctx.console.data("");
        show_columns(&ctx.console, &holdings(&made.what), &[1, 2]);
    }
    ctx.console.findings(&made.findings);
    Ok(made.class().into())
}

fn date(info: &Info) -> Option<String> {
    let nanoseconds = i128::from(info.time_ms) * 1_000_000;
    let at = OffsetDateTime::from_unix_timestamp_nanos(nanoseconds).ok()?;
    at.format(&Rfc3339).ok()
}

fn threads(info: &Info) -> u64 {
    const THREAD_OBJECT: u8 = 0x08;
    let started = info.top(tag::START_THREAD).count;
    info.sub(THREAD_OBJECT).count.max(started)
}

fn segments(info: &Info) -> u64 {
    info.top(tag::HEAP_DUMP).count + info.top(tag::HEAP_DUMP_SEGMENT).count
}

fn document(made: &Made<Info>) -> Value {
    let info = &made.what;
    let tally = |tally: Tally| json!({"count": tally.count, "bytes": tally.bytes});
    let top = info.records.iter().map(|(&tag, it)| {
        json!({"tag": tag, "name": tag::name(tag), "count": it.count, "bytes": it.bytes})
    });
    let sub = info.sub_records.iter().map(|(&tag, it)| {
        json!({"tag": tag, "name": sub_name(tag), "count": it.count, "bytes": it.bytes})
    });
    let heaps = info.heaps.iter().map(|(&number, heap)| {
        json!({
            "number": number,
            "name": if heap.name.is_empty() { heap_word(number) } else { &heap.name },
            "objects": heap.objects,
            "bytes": heap.bytes,
        })
    });
    let roots = info
        .roots()
        .map(|(kind, it)| json!({"kind": kind.name(), "count": it.count}));
    let places = info.damage.first.iter();
    json!({
        "file": made.name,
        "version": info.version,
        "dialect": if info.android { "android" } else { "javase" },
        "id_bytes": info.id_bytes,
        "date": date(info),
        "time_ms": info.time_ms,
        "bytes": info.bytes,
        "whole": info.is_whole() && made.findings.is_empty(),
        "end_record": info.ending.end_record,
        "contents": info.contents.word(),
        "stripped": info.contents == Contents::Zeroed,
        "allocation_tracking": info.has_allocation_sites(),
        "objects_with_allocation_site": info.with_site,
        "segments": segments(info),
        "classes": info.sub(sub_tag::CLASS).count,
        "classes_loaded": info.top(tag::LOAD_CLASS).count,
        "objects": info.objects(),
        "instances": tally(info.sub(sub_tag::INSTANCE)),
        "object_arrays": tally(info.sub(sub_tag::OBJECT_ARRAY)),
        "primitive_arrays": tally(info.sub(sub_tag::PRIMITIVE_ARRAY)),
        "arrays_without_data": tally(info.sub(sub_tag::PRIMITIVE_ARRAY_NODATA)),
        "strings": info.strings,
        "names": info.top(tag::UTF8).count,
        "threads": threads(info),
        "stacks": info.top(tag::TRACE).count,
        "stacks_with_frames": info.stacks_with_frames,
        "frames": info.top(tag::FRAME).count,
        "heaps": heaps.collect::<Vec<_>>(),
        "roots": roots.collect::<Vec<_>>(),
        "records": top.collect::<Vec<_>>(),
        "sub_records": sub.collect::<Vec<_>>(),
        "damage": {
            "count": info.damage.count,
            "places": places
                .map(|it| json!({"offset": it.at, "message": it.to_string()}))
                .collect::<Vec<_>>(),
        },
        "warnings": made.findings,
    })
}

fn sub_name(tag: u8) -> String {
    match tag {
        sub_tag::CLASS => "CLASS_DUMP".to_owned(),
        sub_tag::INSTANCE => "INSTANCE_DUMP".to_owned(),
        sub_tag::OBJECT_ARRAY => "OBJECT_ARRAY_DUMP".to_owned(),
        sub_tag::PRIMITIVE_ARRAY => "PRIMITIVE_ARRAY_DUMP".to_owned(),
        sub_tag::PRIMITIVE_ARRAY_NODATA => "PRIMITIVE_ARRAY_NODATA_DUMP".to_owned(),
        sub_tag::HEAP_DUMP_INFO => "HEAP_DUMP_INFO".to_owned(),
        tag => match root_kind(tag) {
            Some(kind) => kind.name().to_owned(),
            None => format!("0x{tag:02x}"),
        },
    }
}

/// Returns the properties of the dump as rows of a table.
fn overview(name: &str, info: &Info) -> Vec<Vec<String>> {
    let dialect = match info.android {
        true => "Android",
        false => "Java SE",
    };
    let whole = match (info.is_whole(), info.ending.end_record) {
        (true, _) => "yes".to_owned(),
        (false, true) => "no: damaged".to_owned(),
        (false, false) => "no: end record missing".to_owned(),
    };
    let contents = match info.contents {
        Contents::None => "none",
        Contents::Zeroed => "zeroed: the dump was stripped",
        Contents::Present => "present",
        Contents::Cut => "cut out, as KOOM does",
    };
    let sites = match info.has_allocation_sites() {
        true => format!(
            "for {}, at {}",
            counted(info.with_site, "object", "objects"),
            counted(info.stacks_with_frames, "stack", "stacks")
        ),
        false => "not tracked".to_owned(),
    };
    [
        ("File", name.to_owned()),
        ("Version", format!("{} ({dialect})", info.version)),
        ("Dumped at", date(info).unwrap_or_else(|| "-".to_owned())),
        (
            "Size",
            format!("{} ({} bytes)", ByteSize(info.bytes), info.bytes),
        ),
        ("IDs", format!("{} bytes", info.id_bytes)),
        ("Complete", whole),
        ("Array contents", contents.to_owned()),
        ("Allocation sites", sites),
        ("Strings", info.strings.to_string()),
        ("Threads", threads(info).to_string()),
        ("Dump records", segments(info).to_string()),
    ]
    .map(|(what, value)| vec![what.to_owned(), value])
    .to_vec()
}

/// Returns the contents of the dump as a table of counts and sizes.
fn holdings(info: &Info) -> Vec<Vec<String>> {
    let heading = ["CONTENTS", "COUNT", "BYTES IN THE FILE"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    let mut row = |what: String, tally: Tally| {
        rows.push(vec![what, tally.count.to_string(), tally.bytes.to_string()]);
    };
    for (what, tally) in [
        ("classes", info.sub(sub_tag::CLASS)),
        ("instances", info.sub(sub_tag::INSTANCE)),
        ("object arrays", info.sub(sub_tag::OBJECT_ARRAY)),
        ("primitive arrays", info.sub(sub_tag::PRIMITIVE_ARRAY)),
    ] {
        row(what.to_owned(), tally);
    }
    let without = info.sub(sub_tag::PRIMITIVE_ARRAY_NODATA);
    if without.count > 0 {
        row("arrays without data".to_owned(), without);
    }
    for (&number, heap) in &info.heaps {
        let name = match heap.name.is_empty() {
            true => heap_word(number),
            false => &heap.name,
        };
        let tally = Tally {
            count: heap.objects,
            bytes: heap.bytes,
        };
        row(format!("heap {name}"), tally);
    }
    for (kind, tally) in info.roots() {
        row(format!("root: {}", kind.in_words()), tally);
    }
    for (&tag, &tally) in &info.records {
        let name = match tag::name(tag) {
            Some(name) => name.to_owned(),
            None => format!("0x{tag:02x} (unknown)"),
        };
        row(format!("record {name}"), tally);
    }
    rows
}
