//! Members of ZIP and TAR archives. They are identified by content, not by name, and only streamed:
//! no path in an archive becomes a path on the host. Texts do not have a signature, so the text of a
//! ZIP is selected by name.

use super::detect::HEAD;
use super::directory::NAMED;
use super::error::ImportError;
use super::tar::Tar;
use std::io::{Read, Seek};

/// Maximum number of members that are examined.
pub(super) const MAX_MEMBERS: usize = 10_000;

/// Receiver of the members of an archive.
pub(super) trait Members {
    /// Reads a member, which begins with `head`, if the receiver supports it.
    fn add(&mut self, name: String, head: Vec<u8>, rest: impl Read) -> Result<(), ImportError>;

    fn unread(&mut self) -> &mut Unread;
}

/// Parts of an archive that were not read.
#[derive(Default)]
pub(super) struct Unread {
    /// Names of a few members without what is sought.
    pub(super) others: Vec<String>,
    /// Reason why a part cannot be read.
    pub(super) damage: Option<String>,
}

impl Unread {
    pub(super) fn add(&mut self, name: String) {
        if self.others.len() < NAMED {
            self.others.push(name);
        }
    }

    fn limit_members(&mut self) {
        self.damage = Some(format!("only its first {MAX_MEMBERS} files were read"));
    }
}

/// Passes a file to `members`.
fn pass(
    members: &mut impl Members,
    name: String,
    mut stream: impl Read,
) -> Result<(), ImportError> {
    let mut head = Vec::new();
    if let Err(error) = stream.by_ref().take(HEAD as u64).read_to_end(&mut head) {
        members.unread().damage = Some(format!("{name}: {error}"));
    }
    members.add(name, head, stream)
}

/// Passes the files of a TAR to `members`, in order.
pub(super) fn each_in_tar(
    source: impl Read,
    members: &mut impl Members,
) -> Result<(), ImportError> {
    let mut archive = Tar::new(source);
    let mut left = MAX_MEMBERS;
    loop {
        match archive.next() {
            Ok(Some(_)) if left == 0 => {
                members.unread().limit_members();
                break;
            }
            Ok(Some(Some(mut file))) => {
                left -= 1;
                let member = std::mem::take(&mut file.name);
                pass(members, member, file)?;
            }
            Ok(Some(None)) => left -= 1,
            Ok(None) => break,
            Err(error) => {
                members.unread().damage = Some(format!("the TAR breaks off: {error}"));
                break;
            }
        }
    }
    Ok(())
}

/// Returns why a ZIP cannot be opened. A ZIP is read from its end.
pub(super) fn unopened(error: &zip::result::ZipError) -> String {
    match error {
        zip::result::ZipError::InvalidArchive(_) => {
            "the directory at the end of the ZIP is missing or damaged".to_owned()
        }
        other => other.to_string(),
    }
}

/// Passes the files of a ZIP to `members`, in order.
pub(super) fn each_in_zip(
    source: impl Read + Seek,
    name: &str,
    members: &mut impl Members,
) -> Result<(), ImportError> {
    let mut archive = zip::ZipArchive::new(source).map_err(|error| ImportError::Damaged {
        name: name.to_owned(),
        what: unopened(&error),
    })?;
    if archive.len() > MAX_MEMBERS {
        members.unread().limit_members();
    }
    for at in 0..archive.len().min(MAX_MEMBERS) {
        match archive.by_index(at) {
            Ok(file) if file.is_file() => {
                let member = match file.name() {
                    Ok(name) => name.into_owned(),
                    Err(_) => format!("member {at}"),
                };
                pass(members, member, file)?;
            }
            Ok(_) => {}
            Err(error) => members.unread().damage = Some(error.to_string()),
        }
    }
    Ok(())
}

/// Bugreport member that contains the name of the main text.
const MAIN_ENTRY: &str = "main_entry.txt";
/// Maximum number of bytes of the name read from [`MAIN_ENTRY`].
const MAX_NAME_LENGTH: u64 = 4 << 10;

/// Returns the index of the main text in a ZIP: the text of a bugreport, or the only text in the
/// ZIP.
pub(super) fn one_text<R: Read + Seek>(archive: &mut zip::ZipArchive<R>) -> Option<usize> {
    let mut texts: Vec<(usize, String)> = Vec::new();
    let mut main = None;
    for at in 0..archive.len().min(MAX_MEMBERS) {
        // A damaged member cannot be the main text.
        let Ok(member) = archive.by_index(at) else {
            continue;
        };
        if !member.is_file() {
            continue;
        }
        let Ok(name) = member.name().map(|name| name.into_owned()) else {
            continue;
        };
        if name == MAIN_ENTRY {
            let mut text = String::new();
            // If this fails, the member names decide.
            let _ = member.take(MAX_NAME_LENGTH).read_to_string(&mut text);
            main = Some(text.trim().to_owned());
        } else if name.ends_with(".txt") || name.ends_with(".log") {
            texts.push((at, name));
        }
    }
    let named = texts.iter().find(|(_, name)| Some(name) == main.as_ref());
    let is_report = |name: &str| file_name(name).starts_with("bugreport");
    let report = || texts.iter().find(|(_, name)| is_report(name));
    let alone = || texts.first().filter(|_| texts.len() == 1);
    let found = named.or_else(report).or_else(alone);
    found.map(|(at, _)| *at)
}

pub(super) fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}
