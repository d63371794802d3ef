//! Small files and trees for the tests of places.

use crate::symbolize::library::Library;
use heaptap_base::units::BuildId;
use std::path::{Path, PathBuf};

/// Build IDs of the tests.
pub const ID: [u8; 20] = [0xab; 20];
pub const OTHER: [u8; 20] = [0xcd; 20];

/// Section names of files with an increasing amount of information.
pub const STRIPPED: &[&str] = &[".dynsym"];
pub const NAMES: &[&str] = &[".dynsym", ".symtab"];
pub const FULL: &[&str] = &[".dynsym", ".symtab", ".debug_info", ".debug_line"];

/// Makes an ELF file for arm64: a segment of code, the note of the build ID (unless it is empty),
/// and sections of these names with a few bytes each.
pub fn elf(build_id: &[u8], sections: &[&str]) -> Vec<u8> {
    let mut note = Vec::new();
    if !build_id.is_empty() {
        for word in [4, build_id.len() as u32, 3] {
            note.extend(word.to_le_bytes());
        }
        note.extend(b"GNU\0");
        note.extend(build_id);
        note.resize(note.len().next_multiple_of(4), 0);
    }
    const HEADER: usize = 64;
    const SEGMENT: usize = 56;
    const SECTION: usize = 64;
    const BODY: usize = 64;
    let note_at = HEADER + 2 * SEGMENT;
    let bodies_at = note_at + note.len();
    let mut names = vec![0];
    let mut headers = vec![[0; SECTION]];
    let section = |names: &mut Vec<u8>, name: &str, kind: u32, at: usize, size: usize| {
        let mut header = [0; SECTION];
        header[..4].copy_from_slice(&(names.len() as u32).to_le_bytes());
        header[4..8].copy_from_slice(&kind.to_le_bytes());
        header[24..32].copy_from_slice(&(at as u64).to_le_bytes());
        header[32..40].copy_from_slice(&(size as u64).to_le_bytes());
        header[48] = 1;
        if matches!(kind, 2 | 11) {
            // Symbols of 24 bytes; their names are in the last section.
            header[40..44].copy_from_slice(&(sections.len() as u32 + 2).to_le_bytes());
            header[56] = 24;
        }
        names.extend(name.as_bytes());
        names.push(0);
        header
    };
    let header = section(&mut names, ".note.gnu.build-id", 7, note_at, note.len());
    headers.push(header);
    for (at, name) in sections.iter().enumerate() {
        let (kind, size) = match *name {
            ".symtab" => (2, 48),
            ".dynsym" => (11, 48),
            _ => (1, BODY),
        };
        let header = section(&mut names, name, kind, bodies_at + at * BODY, size);
        headers.push(header);
    }
    let names_at = bodies_at + sections.len() * BODY;
    let mut last = section(&mut names, ".shstrtab", 3, names_at, 0);
    last[32..40].copy_from_slice(&(names.len() as u64).to_le_bytes());
    headers.push(last);
    let headers_at = (names_at + names.len()).next_multiple_of(8);

    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    file.extend(3u16.to_le_bytes()); // ET_DYN
    file.extend(183u16.to_le_bytes()); // EM_AARCH64
    file.extend(1u32.to_le_bytes());
    file.extend(0u64.to_le_bytes());
    file.extend((HEADER as u64).to_le_bytes());
    file.extend((headers_at as u64).to_le_bytes());
    file.extend(0u32.to_le_bytes());
    for half in [
        HEADER,
        SEGMENT,
        2,
        SECTION,
        headers.len(),
        headers.len() - 1,
    ] {
        file.extend((half as u16).to_le_bytes());
    }
    let size = headers_at + headers.len() * SECTION;
    // PT_LOAD r-x of the whole file, PT_NOTE.
    for (kind, flags, at, size) in [(1u32, 5u32, 0, size), (4, 4, note_at, note.len())] {
        file.extend(kind.to_le_bytes());
        file.extend(flags.to_le_bytes());
        for value in [at, at, at, size, size, 4] {
            file.extend((value as u64).to_le_bytes());
        }
    }
    file.extend(note);
    // The bodies differ between files of the same build ID.
    file.resize(names_at, sections.len() as u8);
    file.extend(names);
    file.resize(headers_at, 0);
    file.extend(headers.concat());
    file
}

/// Writes `bytes` at `below` in `root` and creates all directories.
pub fn put(root: &Path, below: &str, bytes: &[u8]) -> PathBuf {
    let path = root.join(below);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, bytes).unwrap();
    path
}

/// Makes a library of a recording.
pub fn library(path: &str, build_id: &[u8]) -> Library {
    Library {
        path: path.to_owned(),
        build_id: BuildId(build_id.to_vec()),
        offset: 0x1000,
        load_bias: 0,
        addresses: vec![0x1234],
    }
}

/// Makes a ZIP archive of members, given by name, bytes, and whether to compress.
pub fn zip(members: &[(&str, &[u8], bool)]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes, is_packed) in members {
        let method = match is_packed {
            true => zip::CompressionMethod::Deflated,
            false => zip::CompressionMethod::Stored,
        };
        let options = zip::write::SimpleFileOptions::default().compression_method(method);
        archive.start_file(*name, options).unwrap();
        std::io::Write::write_all(&mut archive, bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

/// Makes the text of a Breakpad file for arm64.
pub fn breakpad(debug_id: &str, build_id: Option<&str>) -> String {
    let code = build_id.map(|id| format!("INFO CODE_ID {id}\n"));
    let code = code.unwrap_or_default();
    format!("MODULE Linux arm64 {debug_id} libfoo.so\n{code}FUNC 1000 10 0 f\n1000 10 1 0\n")
}
