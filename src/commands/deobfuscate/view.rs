//! `heaptap deobfuscate`: shows which maps were written for a trace.

use std::path::Path;

use serde_json::json;

use super::args::Args;
use super::run::{self, Deobfuscated};
use crate::console::Console;
use crate::conversion::convert::Input;
use crate::conversion::symbolize::{self, Refreshed, SymbolizeError};
use crate::error::{ErrorClass, Failure};
use crate::exit::Outcome;
use crate::flags::context::Context;
use crate::flags::goal;
use crate::heaps::java::FOLDER;
use crate::naming::names::NameOptions;
use crate::naming::r8_mappings::{Origin, WrittenPackage};
use crate::results::manifest::{FILE_NAME, MappingFile};
use crate::units::ByteSize;
use crate::views::blocking::watched;
use crate::views::paths::near;
use crate::views::symbolized::{READING, refreshed_shown};

/// Runs the command.
///
/// # Errors
/// Where the input holds no trace, there is no mapping file that can be used, or the output
/// can't be written.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    let console = &ctx.console;
    let names = args.names.options(&ctx.console)?;
    let (input, scope, named) = args.packets.places();
    if let (Input::Path(folder), None) = (&input, &named)
        && folder.is_dir()
    {
        return of_folder(ctx, folder, names).await;
    }
    let goal = goal::asked(console, &input, named, ".deobfuscation")?;
    let (sink, goal) = goal.open(console, args.packets.force);
    let work = watched(ctx, READING, None, move |_| {
        run::deobfuscate(&input, scope, sink, &names)
    });
    let done = work.await?;
    show(console, goal.as_deref(), &done);
    Ok(done.class().into())
}

/// Names the recording in a folder, and the Java heaps that were taken beside it.
async fn of_folder(ctx: &Context, folder: &Path, names: NameOptions) -> Result<Outcome, Failure> {
    let beside = folder.join(FOLDER);
    if beside.is_symlink() {
        return Err(SymbolizeError::Linked { path: beside }.into());
    }
    let mut folders = vec![folder.to_owned()];
    folders.extend(beside.join(FILE_NAME).is_file().then_some(beside));
    // All of them or none.
    for folder in &folders[1..] {
        symbolize::check(folder)?;
    }
    let mut named_any = false;
    let mut names_allocations = false;
    let mut files = 0;
    let mut classes = Vec::new();
    let mut shown = Vec::new();
    for folder in folders {
        let refreshed = watched(ctx, READING, None, {
            let (folder, names) = (folder.clone(), names.clone());
            move |control| symbolize::refresh(&folder, names, control)
        })
        .await?;
        if let Refreshed::Recording(recording) = &refreshed {
            let maps = &recording.mappings;
            files = files.max(maps.len());
            named_any |= maps.iter().any(MappingFile::named_any);
            names_allocations |= recording.names_allocations;
        }
        classes.extend(refreshed.class());
        shown.push((folder, refreshed));
    }
    // In JSON there is one document.
    let most = if ctx.console.is_json() {
        1
    } else {
        shown.len()
    };
    for (folder, refreshed) in &shown[..most] {
        refreshed_shown(&ctx.console, folder, refreshed);
    }
    if !named_any && !names_allocations {
        let why = format!("no name changed: {}", run::known_to_none(files));
        let help = "give R8's mapping file of the build on the phone with --mapping FILE";
        ctx.console.warn_with_help(why, Some(help));
        classes.push(ErrorClass::Incomplete);
    }
    Ok(Outcome::of(classes))
}

/// Says what was written where; in a JSON mode as a document of both.
fn show(console: &Console, goal: Option<&Path>, done: &Deobfuscated) {
    if console.is_json() {
        let maps = done.maps.iter().map(|map| {
            json!({
                "file": map.path,
                "package": map.package,
                "origin": map.origin.word(),
                "classes": map.written.classes,
                "fields": map.written.fields,
                "methods": map.written.methods,
                "packets": map.written.packets,
                "bytes": map.written.bytes,
            })
        });
        console.json(&json!({
            "output": goal,
            "maps": maps.collect::<Vec<_>>(),
            "java_frames": done.java_frames,
            "frames_named": done.frames_named,
            "classes_named": done.classes_named,
            "classes_counted_in_part": done.classes_counted_in_part,
        }));
    }
    for finding in &done.findings {
        console.finding(finding.kind, &finding.message, finding.help.as_deref());
    }
    for map in &done.maps {
        console.say(line(map));
    }
    let bytes: u64 = done.maps.iter().map(|map| map.written.bytes).sum();
    let goal = match goal {
        Some(goal) => near(goal).display().to_string(),
        None => "standard output".to_owned(),
    };
    let at_least = if done.classes_counted_in_part {
        "at least "
    } else {
        ""
    };
    let classes = match done.classes_named {
        0 => String::new(),
        1 => format!(", and {at_least}1 class of Java heaps"),
        n => format!(", and {at_least}{n} classes of Java heaps"),
    };
    console.say(format_args!(
        "wrote {goal}: {} of maps; they name {} of {} Java frames{classes}",
        ByteSize(bytes),
        done.frames_named,
        done.java_frames
    ));
}

fn line(map: &WrittenPackage) -> String {
    let package = match &*map.package {
        "" => "no package",
        package => package,
    };
    let found = match &map.origin {
        Origin::Discovered { variant, older } => {
            let older = match older {
                0 => String::new(),
                older => format!(", the newest of {}", older + 1),
            };
            format!(" ({variant}{older})")
        }
        Origin::Given | Origin::Variable => String::new(),
    };
    format!(
        "{package}: {} classes of {}{found}",
        map.written.classes,
        near(&map.path).display()
    )
}
