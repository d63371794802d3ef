//! `heaptap symbolize`: shows the symbols found for the frames of a trace, and those missing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::args::{Args, OnlyArg};
use super::output;
use crate::commands::shared::blocking;
use crate::commands::shared::lookup::phone_asked;
use crate::commands::shared::paths::near;
use crate::commands::shared::symbolized::{READING, refreshed_shown, show};
use crate::console::exit::Outcome;
use crate::console::flags::conflicts::conflict;
use crate::console::flags::context::Context;
use crate::console::flags::typed::of_same_name;
use crate::console::{Console, ConsoleWriter};
use crate::heaps::java::DIRECTORY;
use crate::names::device_libs::DeviceLibs;
use crate::names::options::NameOptions;
use crate::recording::conversion::convert::Input;
use crate::recording::conversion::deobfuscate::known_to_none;
use crate::recording::conversion::packet_output::PacketScope;
use crate::recording::conversion::symbolize::{self, Refreshed, SymbolizeError, Symbolized};
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::untrusted::shell::quoted_path;
use heaptap_results::destination::Destination;
use heaptap_results::lists::join_list;
use heaptap_results::manifest::{FILE_NAME, MappingFile};
use heaptap_symbols::symbolize::find::Place;

/// Runs the command.
///
/// # Errors
/// Returns an error if the input does not contain a trace or the output cannot be written.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    let console = &ctx.console;
    let names = args.names.options(&ctx.console)?;
    let phone = match args.only {
        Some(OnlyArg::Java) => None,
        Some(OnlyArg::Native) | None => phone_asked(ctx, &args.names).await,
    };
    let input = Input::from_typed(&args.input);
    let scope = match args.whole_trace {
        true => PacketScope::WholeTrace,
        false => PacketScope::Packets,
    };
    let kind = args.only.and_then(of_same_name).unwrap_or_default();
    if let (Input::Path(directory), None) = (&input, &args.output)
        && directory.is_dir()
    {
        return of_directory(ctx, &args, directory, names, phone).await;
    }
    let goal = output::asked(console, &input, args.output.clone())?;
    let out = Destination::new(goal.as_deref(), args.force, ConsoleWriter(console.clone()));
    let task = blocking::watched(ctx, READING, phone, move |control| {
        symbolize::symbolize(&input, scope, out, names, kind, control)
    });
    let symbolized = task.await?;
    let again = format!("heaptap symbolize {}", quoted_path(&args.input));
    show(console, &again, goal.as_deref(), &symbolized);
    let lacking = found_nothing(console, &args.names.symbols, &symbolized);
    Ok(Outcome::from_classes(
        symbolized.class().into_iter().chain(lacking),
    ))
}

/// Warns if files are missing and none of the named `places` has one. Returns the class of the exit
/// code.
fn found_nothing(
    console: &Console,
    places: &[PathBuf],
    symbolized: &Symbolized,
) -> Option<ErrorClass> {
    let names = &symbolized.symbolization;
    let mut files = names.libraries_named.iter().flat_map(|named| &named.files);
    let is_used = files.any(|file| file.place == Place::Symbols.word());
    // Names that the trace had are not looked up again.
    if places.is_empty() || is_used || symbolized.had_names || names.libraries_missing.is_empty() {
        return None;
    }
    let places = join_list(places.iter().map(|place| near(place).display().to_string()));
    let why = format!("found no symbols of these builds in {places}");
    let help = "name the directory with the unstripped files of the build on the device";
    console.warn_with_help(why, Some(help));
    Some(ErrorClass::Incomplete)
}

/// Names the recording in a directory, and the Java heaps that were recorded with it.
async fn of_directory(
    ctx: &Context,
    args: &Args,
    directory: &Path,
    mut names: NameOptions,
    phone: Option<Arc<DeviceLibs>>,
) -> Result<Outcome, Failure> {
    if args.force {
        let message = "`--force` does not apply to a directory: its results are always replaced";
        return Err(conflict(message, "leave out the option"));
    }
    if !args.names.mappings.is_empty() && !directory.join(FILE_NAME).is_file() {
        let message = "`--mapping` does not apply to a directory without manifest.json";
        return Err(conflict(
            message,
            "add `-o FILE` to write the names as packets",
        ));
    }
    let java = directory.join(DIRECTORY);
    if java.is_symlink() {
        return Err(SymbolizeError::Linked { path: java }.into());
    }
    names.symbolize &= args.only != Some(OnlyArg::Java);
    let mut directories = vec![directory.to_owned()];
    let has_java = args.only != Some(OnlyArg::Native) && java.join(FILE_NAME).is_file();
    directories.extend(has_java.then_some(java));
    // All of them or none.
    for directory in &directories[1..] {
        symbolize::check(directory)?;
    }
    let mut named_any = false;
    let mut files = 0;
    let mut classes = Vec::new();
    let mut shown = Vec::new();
    for directory in directories {
        let refreshed = blocking::watched(ctx, READING, phone.clone(), {
            let (directory, names) = (directory.clone(), names.clone());
            move |control| symbolize::refresh(&directory, names, control)
        })
        .await?;
        if let Refreshed::Recording(recording) = &refreshed {
            let maps = &recording.mappings;
            files = files.max(maps.len());
            named_any |= maps.iter().any(MappingFile::named_any) || recording.names_allocations;
        }
        classes.extend(refreshed.class());
        if let Refreshed::Symbols(symbolized) = &refreshed {
            classes.extend(found_nothing(&ctx.console, &names.symbols, symbolized));
        }
        shown.push((directory, refreshed));
    }
    // In JSON there is one document.
    let most = match ctx.console.is_json() {
        true => 1,
        false => shown.len(),
    };
    for (directory, refreshed) in &shown[..most] {
        refreshed_shown(&ctx.console, directory, refreshed);
    }
    let wants_java = match args.only {
        Some(OnlyArg::Java) => true,
        Some(OnlyArg::Native) => false,
        None => !args.names.mappings.is_empty(),
    };
    if wants_java && !named_any {
        let why = format!("no Java name changed: {}", known_to_none(files));
        let help = "name R8's mapping file of the build on the device with --mapping FILE";
        ctx.console.warn_with_help(why, Some(help));
        classes.push(ErrorClass::Incomplete);
    }
    Ok(Outcome::from_classes(classes))
}
