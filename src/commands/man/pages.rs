//! Man pages of the commands, from the tree that parses the command line.

use std::io;

use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

/// A man page.
pub(super) struct Page {
    /// For example `heaptap-record.1`.
    pub(super) name: String,
    /// Source of the page.
    pub(super) text: Vec<u8>,
}

/// Returns the page of the program and of each command.
///
/// # Errors
/// None in practice: the pages are written to memory.
pub(super) fn pages(mut root: clap::Command) -> io::Result<Vec<Page>> {
    // Propagates names and global options to the commands.
    root.build();
    let mut found = Vec::new();
    add(&root, &mut found)?;
    Ok(found)
}

fn add(command: &clap::Command, found: &mut Vec<Page>) -> io::Result<()> {
    found.push(page(command)?);
    for command in command.get_subcommands() {
        if command.get_name() != "help" && !command.is_hide_set() {
            add(command, found)?;
        }
    }
    Ok(())
}

fn page(command: &clap::Command) -> io::Result<Page> {
    let version = crate::results::manifest::version();
    // The pages leave out help that is hidden from `-h`.
    let shown = command.clone().mut_args(|arg| arg.hide_short_help(false));
    let has_commands = shown.get_subcommands().next().is_some();
    let man = Man::new(shown)
        .source(format!("heaptap {version}"))
        .manual("heaptap manual");
    let name = man.get_filename();
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    let examples = command.get_before_long_help().map(ToString::to_string);
    if let Some(examples) = examples {
        // Its first line is a heading.
        let lines = examples.lines().skip(1).map(str::trim_start);
        write_verbatim(&mut text, "EXAMPLES", lines)?;
    }
    man.render_options_section(&mut text)?;
    if has_commands {
        man.render_subcommands_section(&mut text)?;
    }
    let notes = command.get_after_long_help().map(ToString::to_string);
    if let Some(notes) = notes.filter(|notes| !notes.trim().is_empty()) {
        write_verbatim(&mut text, "NOTES", notes.lines())?;
    }
    Ok(Page { name, text })
}

/// Writes a section whose lines stay as they are.
fn write_verbatim<'a>(
    text: &mut Vec<u8>,
    heading: &str,
    lines: impl Iterator<Item = &'a str>,
) -> io::Result<()> {
    let mut section = Roff::default();
    section.control("SH", [heading]);
    section.control("nf", []);
    for line in lines {
        section.text([roman(line)]);
    }
    section.control("fi", []);
    section.to_writer(text)
}
