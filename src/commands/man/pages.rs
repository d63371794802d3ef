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
    root = without_help(root);
    // Propagates names and global options to the commands.
    root.build();
    let mut found = Vec::new();
    add(&root, &mut found)?;
    Ok(found)
}

fn add(command: &clap::Command, found: &mut Vec<Page>) -> io::Result<()> {
    found.push(page(command)?);
    for command in command.get_subcommands() {
        add(command, found)?;
    }
    Ok(())
}

/// The commands without `help`, which would need a page.
fn without_help(command: clap::Command) -> clap::Command {
    let command = command.disable_help_subcommand(true);
    command.mut_subcommands(without_help)
}

fn page(command: &clap::Command) -> io::Result<Page> {
    let version = heaptap_results::manifest::version();
    // The pages leave out help that is hidden from `-h`.
    let mut shown = command.clone().mut_args(|arg| arg.hide_short_help(false));
    let usage = shown.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").to_owned();
    let has_commands = shown.get_subcommands().next().is_some();
    let man = Man::new(shown.override_usage(usage));
    let name = man.get_filename();
    let mut text = Vec::new();
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
        write_notes(&mut text, &notes)?;
    }
    let title = name.trim_end_matches(".1");
    let title = format!(".TH \"{title}\" 1 \"\" \"heaptap {version}\" \"heaptap manual\"\n");
    let text = tidied(&title, &String::from_utf8_lossy(&text));
    Ok(Page { name, text })
}

/// Definition of the apostrophe, which each section repeats.
const APOSTROPHE: &str = ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n";

/// The page below its title, in ASCII and without breaks that formatters warn of.
fn tidied(title: &str, sections: &str) -> Vec<u8> {
    let sections = sections.replace(APOSTROPHE, "");
    let sections = sections.replace("\n.br\n\n.br\n", "\n.sp\n");
    let mut text = format!("{APOSTROPHE}{title}");
    for c in sections.chars() {
        match c.is_ascii() {
            true => text.push(c),
            false => text += &format!("\\[u{:04X}]", u32::from(c)),
        }
    }
    text.into_bytes()
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

/// Writes a section of paragraphs, whose lines are filled, and of tables, whose lines stay.
fn write_notes(text: &mut Vec<u8>, notes: &str) -> io::Result<()> {
    let mut section = Roff::default();
    section.control("SH", ["NOTES"]);
    let mut was_table = false;
    for line in notes.lines() {
        // Columns have two spaces between them.
        let is_table = line.trim_start().contains("  ");
        match (was_table, is_table) {
            (false, true) => {
                section.control("nf", []);
            }
            (true, false) => {
                section.control("fi", []);
            }
            _ => {}
        }
        was_table = is_table;
        match line.trim().is_empty() {
            true => section.control("PP", []),
            false => section.text([roman(line)]),
        };
    }
    if was_table {
        section.control("fi", []);
    }
    section.to_writer(text)
}
