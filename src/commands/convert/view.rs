//! `heaptap convert`: shows the result of the conversion of a trace to pprofs. `export` handles the
//! other formats.

use std::path::Path;

use time::OffsetDateTime;

pub(crate) use super::args::{Args, Format};
use super::export::run::stem;
use super::export::view as export;
use super::format::{format, is_one_file};
use crate::commands::shared::missing::Remedy;
use crate::commands::shared::single_file::SingleFile;
use crate::commands::shared::summary::Wrote;
use crate::commands::shared::{blocking, summary};
use crate::console::exit::Outcome;
use crate::console::flags::conflicts::conflict;
use crate::console::flags::context::Context;
use crate::console::flags::typed::of_same_name;
use crate::heaps::input::InputError;
use crate::heaps::java::lying_in;
use crate::heaps::selector::JavaInput;
use crate::recording::conversion::convert::{self, Input, Request};
use crate::recording::conversion::error::ConvertError;
use crate::recording::conversion::selection::Selection;
use crate::recording::conversion::tracked::Again;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::untrusted::sanitize;
use heaptap_base::untrusted::shell::quoted_path;
use heaptap_capture::session::SessionId;
use heaptap_export::pprof::PprofOptions;
use heaptap_input::{ImportError, STDIN, STDIN_NAME};
use heaptap_results::file_names::default_name;
use heaptap_results::manifest::{Dumps, Manifest};
use heaptap_results::output::OutputDirectory;
use heaptap_results::overwrite::{self, Replace};
use heaptap_results::recorded;

/// Runs the command.
///
/// # Errors
/// Returns an error if the input does not contain a trace or the output cannot be written.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    args.moment.check([&args.input])?;
    args.heap.refuse_java_parts("convert")?;
    let chosen = format(&args)?;
    // The others are in the branches below.
    if let Some(format) = of_same_name(chosen) {
        return export::run(ctx, args, format).await;
    }
    if chosen == Format::Html {
        return export::page(ctx, args).await;
    }
    if !args.views.is_empty() {
        let message = "a pprof contains all views; `--view` applies to other formats";
        return Err(Failure::usage(message));
    }
    let typed = JavaInput::parse(&args.input);
    // A file gets the only pprof of a directory that is removed again.
    let single = match &args.output {
        Some(output) if is_one_file(output) => Some(single_pprof(output, &typed.path, args.force)?),
        _ => None,
    };
    let dumps = args.moment.dumps(&typed);
    let typed_path = typed.path.clone();
    let input = Input::from_typed(&typed.path);
    let target = match &input {
        Input::Stdin => "stdin".to_owned(),
        Input::Path(path) => stem(path),
    };
    let output = match (&single, args.output) {
        (Some(single), _) => single.directory(),
        (None, Some(output)) => output,
        (None, None) => {
            default_name(&target, OffsetDateTime::now_utc(), &SessionId::random()).into()
        }
    };
    if let Input::Path(path) = &input {
        // Before a directory for the results is created.
        let name = path.display().to_string();
        std::fs::metadata(path).map_err(ImportError::unreadable(&name))?;
    }
    let named = match (&input, dumps.is_empty()) {
        (_, true) => None,
        (Input::Stdin, false) => {
            let message = "cannot select a dump of standard input by number or label";
            let failure = Failure::usage(message);
            return Err(failure.with_help("select with `-p`, `--heap` or `--timestamps`"));
        }
        (Input::Path(path), false) => {
            Some(export::named(ctx, path, dumps, args.heap.is_java_only()).await?)
        }
    };
    let input = match input {
        // The trace of the recording has no Java heap.
        Input::Path(path) if args.heap.of_java().is_some() => match lying_in(&path) {
            Some(_) if !args.heap.is_java_only() => {
                return Err(conflict(
                    "the Java heaps of this recording are in another trace",
                    "convert only the Java heaps with `--heap java`",
                ));
            }
            directory => Input::Path(directory.unwrap_or(path)),
        },
        other => other,
    };
    let mut manifest = Manifest::default();
    let mut labels = Vec::new();
    let mut again = None;
    if let Input::Path(path) = &input {
        match recorded::beside(path) {
            Ok(Some(recorded)) => {
                again = Again::new(path, &recorded);
                labels = recorded.carry_into(&mut manifest);
            }
            Ok(None) => {}
            Err(error) => manifest.warnings.push(recorded::unread(&error)),
        }
    }
    let names = args.names.options(&ctx.console)?;
    let directory = OutputDirectory::hold(&output)?;
    let staging = directory.stage()?;
    let pprof = PprofOptions {
        sample_names: args.sample_names.into(),
        annotations: !args.no_annotations,
    };
    let request = Request {
        selection: Selection {
            processes: args.target.filter(),
            heaps: args.heap.heaps,
            timestamps: args.timestamps,
            named,
        },
        pprof,
        dominators: args.dominators,
        process_names: recorded::process_names(&manifest),
        ..Request::new(input, staging.path(), names)
    };
    let phone = crate::commands::shared::lookup::phone_asked(ctx, &args.names).await;
    let converted = blocking::watched(ctx, "converting …", phone, move |control| {
        let request = Request { control, ..request };
        let maps = request.maps()?;
        let converted = convert::convert_with(&request, &maps)?;
        let is_all = converted.dumps.is_empty() && converted.java.is_empty();
        let again =
            again.map(|again| again.write(is_all, &request.output, &request.selection, &maps));
        Ok::<_, ConvertError>((converted, again.transpose()?))
    });
    let converted = converted.await;
    let (converted, tracked) = match converted {
        Ok(converted) => converted,
        Err(failure) => {
            drop(staging);
            directory.discard();
            return Err(failure);
        }
    };
    let (class, is_cut) = (converted.class(), converted.is_cut());
    let is_empty = converted.dumps.is_empty() && converted.java.is_empty();
    if let (Some(_), Some(class), true) = (&single, class, is_empty)
        && let Some(why) = (converted.findings.iter()).find(|why| why.class == Some(class))
    {
        drop(staging);
        directory.discard();
        let name = match typed_path == Path::new(STDIN) {
            true => STDIN_NAME.to_owned(),
            false => typed_path.display().to_string(),
        };
        return Err(InputError::nothing_in(name, why.clone()).into());
    }
    manifest.warnings.extend(converted.warnings());
    let dumps = Dumps {
        native: converted.dumps,
        java: converted.java,
    };
    if let Some(single) = single {
        for warning in &manifest.warnings {
            let help = warning.help.as_deref();
            ctx.console.warn_with_help(&warning.message, help);
        }
        let written = single.write(&ctx.console, &dumps, staging.path(), || {
            format!(
                "choose one dump, such as `heaptap convert {}@last -o {}`, and one heap with \
                 `--heap`; or name a directory",
                quoted_path(&typed_path),
                quoted_path(&single.path)
            )
        });
        drop(staging);
        directory.discard();
        return written.map(|()| Outcome::from(class));
    }
    let class = match tracked {
        Some(tracked) => tracked.enter(&mut manifest, class),
        None => class,
    };
    manifest.outcome.exit_code = class.map_or(0, ErrorClass::exit_code);
    manifest.outcome.complete = class.is_none() && !is_cut;
    manifest.dumps = dumps;
    recorded::bind(&mut manifest, &labels);
    manifest.symbolization = Some(converted.symbolization);
    manifest.profiles = Some(pprof.into());
    manifest.write(staging.path())?;
    let written = directory.path().to_owned();
    directory.publish(staging)?;
    let again = format!("heaptap convert {}", quoted_path(&args.input));
    let heaps = &converted.heaps;
    let remedy = match args.names.no_symbolize {
        true => Remedy::NotAsked,
        false => Remedy::Again(&again),
    };
    let wrote = Wrote::default();
    summary::show(&ctx.console, &written, &manifest, &wrote, heaps, remedy);
    Ok(Outcome::from(class))
}

/// Checks the file that gets a pprof.
fn single_pprof(path: &Path, input: &Path, force: bool) -> Result<SingleFile, Failure> {
    let name = path.to_string_lossy();
    if name.ends_with(".pb") || name == "-" {
        let message = format!(
            "cannot write to {}: pprofs are packed with gzip",
            sanitize(&name)
        );
        return Err(Failure::new(ErrorClass::Usage, "bad-value", message)
            .with_help("name a file that ends in .pb.gz"));
    }
    Ok(SingleFile {
        path: path.to_owned(),
        existing: overwrite::check(path, [input], Replace::of_force(force))?,
    })
}
