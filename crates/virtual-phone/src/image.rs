//! The libraries of a phone: real ELF files for each instruction set, their functions, and the
//! calls that stacks can contain. Also the files that a build of the app leaves on its developer's
//! disk (files with DWARF, an R8 mapping). All are embedded in the program; `fixtures/phone` has
//! the sources and the recipe. Owns reading them; [`super::installed`] owns their paths on a phone.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::{Arc, OnceLock};

use object::{Object as _, ObjectSection as _, ObjectSegment as _, SegmentFlags};

use super::spec::Abi;

/// `ABI/LIBRARY`, `ABI/symbols/LIBRARY`, `ABI/functions.tsv`.
static ARCHIVE: &[u8] = include_bytes!("../image/libraries.tar.xz");

/// The R8 mapping of `com.example.app` on a phone with `obfuscated=yes`.
pub const MAPPING: &str = include_str!("../image/mapping.txt");

/// Original and residual name.
pub(super) type Renamed = (&'static str, &'static str);

/// Returns the classes of [`MAPPING`], each once by itself and once with each of its members. The
/// original name of a member is its whole declaration.
pub(super) fn renamed() -> impl Iterator<Item = (Renamed, Option<Renamed>)> {
    let mut class = ("", "");
    let lines = MAPPING.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(move |line| {
        let (original, residual) = line.split_once(" -> ")?;
        let Some(residual) = residual.strip_suffix(':') else {
            return Some((class, Some((original.trim_start(), residual))));
        };
        class = (original, residual);
        Some((class, None))
    })
}

#[derive(Debug)]
pub(super) struct Library {
    /// Bytes on a phone: stripped as by its builder.
    pub(super) bytes: Vec<u8>,
    /// File with DWARF; only for the app's own libraries.
    pub(super) unstripped: Option<Vec<u8>>,
    pub(super) build_id: Vec<u8>,
    pub(super) code: Code,
    /// Whether the file on the phone names functions that it does not export.
    pub(super) has_symbols: bool,
}

/// The executable segment of an ELF file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Code {
    pub(super) offset: u64,
    pub(super) address: u64,
    pub(super) size: u64,
}

/// A function of a library.
#[derive(Debug)]
pub(super) struct Function {
    /// Name in .symtab.
    pub(super) linkage: Arc<str>,
    /// Whether it is in .dynsym.
    pub(super) exported: bool,
    /// Address that a stack shows for a frame in each call, and the callee; empty if the callee is
    /// known only at run time.
    calls: Vec<(u64, String)>,
}

impl Function {
    /// Returns the address of a frame of this function that has called `callee`; `variant` selects
    /// one of several.
    pub(super) fn address(&self, callee: Option<&str>, variant: u64) -> u64 {
        let of = |wanted: &str| -> Vec<u64> {
            let found = self.calls.iter().filter(|(_, callee)| callee == wanted);
            found.map(|(address, _)| *address).collect()
        };
        let mut fit = callee.map(of).unwrap_or_default();
        if fit.is_empty() {
            fit = of("");
        }
        if fit.is_empty() {
            fit = self.calls.iter().map(|(address, _)| *address).collect();
        }
        fit[(variant % fit.len() as u64) as usize]
    }
}

/// All libraries and functions of one instruction set.
#[derive(Debug, Default)]
pub(super) struct Image {
    libraries: BTreeMap<String, Library>,
    /// Functions by library and name without arguments.
    functions: BTreeMap<(String, String), Function>,
}

/// Returns the image of an instruction set. The first call unpacks all of them, in about 10 ms.
pub(super) fn image(abi: Abi) -> &'static Image {
    static IMAGES: OnceLock<Vec<Image>> = OnceLock::new();
    let images = IMAGES.get_or_init(|| {
        let files = unpack();
        Abi::ALL
            .iter()
            .map(|abi| Image::new(&files, *abi))
            .collect()
    });
    let at = Abi::ALL.iter().position(|known| *known == abi);
    &images[at.expect("every instruction set has an image")]
}

fn unpack() -> BTreeMap<String, Vec<u8>> {
    const OWN: &str = "the archive is part of the program, and a test reads it";
    let mut tar = tar::Archive::new(lzma_rust2::XzReader::new(ARCHIVE, false));
    let entries = tar.entries().expect(OWN);
    entries
        .map(|entry| {
            let mut entry = entry.expect(OWN);
            let name = entry.path().expect(OWN).to_string_lossy().into_owned();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).expect(OWN);
            (name, bytes)
        })
        .collect()
}

impl Image {
    fn new(files: &BTreeMap<String, Vec<u8>>, abi: Abi) -> Image {
        let mut image = Image::default();
        for (path, bytes) in files {
            match path.split('/').collect::<Vec<_>>()[..] {
                [of, "functions.tsv"] if of == abi.name() => {
                    image.read_functions(&String::from_utf8_lossy(bytes));
                }
                [of, name] if of == abi.name() => {
                    let twin = files.get(&format!("{of}/symbols/{name}"));
                    let library = Library::new(bytes, twin);
                    image.libraries.insert(name.to_owned(), library);
                }
                _ => {}
            }
        }
        image
    }

    /// Parses rows of the table that `fixtures/phone/build.py` describes.
    fn read_functions(&mut self, table: &str) {
        for row in table.lines() {
            let [library, name, linkage, word, calls] = row.split('\t').collect::<Vec<_>>()[..]
            else {
                continue;
            };
            let calls = calls.split('|').filter_map(|call| {
                let (address, callee) = call.split_once('=')?;
                let address = u64::from_str_radix(address, 16).ok()?;
                Some((address, callee.to_owned()))
            });
            let function = Function {
                linkage: linkage.into(),
                exported: word == "exported",
                calls: calls.collect(),
            };
            let key = (library.to_owned(), name.to_owned());
            self.functions.insert(key, function);
        }
    }

    /// Returns a library by its file name.
    pub(super) fn library(&self, name: &str) -> Option<&Library> {
        self.libraries.get(name)
    }

    /// Returns a function by its library and its name without arguments.
    pub(super) fn function(&self, library: &str, name: &str) -> Option<&Function> {
        let key = (library.to_owned(), name.to_owned());
        self.functions.get(&key)
    }
}

impl Library {
    fn new(bytes: &[u8], unstripped: Option<&Vec<u8>>) -> Library {
        const ELF: &str = "the libraries are ELF files, and a test reads them";
        let file = object::File::parse(bytes).expect(ELF);
        Library {
            bytes: bytes.to_vec(),
            unstripped: unstripped.cloned(),
            build_id: file.build_id().ok().flatten().expect(ELF).to_vec(),
            code: code(&file).expect(ELF),
            has_symbols: has_symbols(&file),
        }
    }
}

fn code(file: &object::File<'_>) -> Option<Code> {
    let executable = |segment: &object::Segment<'_, '_>| matches!(segment.flags(), SegmentFlags::Elf { p_flags, .. } if p_flags.0 & object::elf::PF_X.0 != 0);
    let segment = file.segments().find(executable)?;
    Some(Code {
        offset: segment.file_range().0,
        address: segment.address(),
        size: segment.size(),
    })
}

fn has_symbols(file: &object::File<'_>) -> bool {
    file.sections().any(|section| {
        let name = section.name().unwrap_or_default();
        matches!(name, ".symtab" | ".gnu_debugdata")
    })
}

/// Returns the app's libraries as its build leaves them on the developer's disk: with DWARF and
/// under their file names.
pub fn unstripped_libraries(abi: Abi) -> impl Iterator<Item = (&'static str, &'static [u8])> {
    let libraries = image(abi).libraries.iter();
    libraries.filter_map(|(name, library)| Some((name.as_str(), library.unstripped.as_deref()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_abi_has_the_same_functions_each_with_calls_in_its_code() {
        let names = |abi| -> Vec<_> { image(abi).functions.keys().cloned().collect() };
        for abi in Abi::ALL {
            let image = image(abi);
            assert_eq!(names(abi), names(Abi::Arm64), "{abi:?}");
            assert_eq!(image.libraries.len(), 16, "{abi:?}");
            for ((library, name), function) in &image.functions {
                let code = image.library(library).unwrap().code;
                assert!(!function.calls.is_empty(), "{library} {name}");
                for (address, _) in &function.calls {
                    let inside = code.address..code.address + code.size;
                    assert!(inside.contains(address), "{library} {name} {address:x}");
                }
            }
        }
    }

    #[test]
    fn a_twin_with_dwarf_is_the_same_build_and_a_stripped_file_has_no_names() {
        for abi in Abi::ALL {
            let mut twins = 0;
            for (name, bytes) in unstripped_libraries(abi) {
                let twin = object::File::parse(bytes).unwrap();
                let library = image(abi).library(name).unwrap();
                assert_eq!(
                    twin.build_id().unwrap().unwrap(),
                    library.build_id,
                    "{name}"
                );
                assert_eq!(code(&twin), Some(library.code), "{name}");
                assert!(twin.section_by_name(".debug_info").is_some(), "{name}");
                assert!(!library.has_symbols, "{name}");
                twins += 1;
            }
            assert_eq!(twins, 2, "{abi:?}");
        }
        assert!(image(Abi::Arm64).library("libc.so").unwrap().has_symbols);
    }

    #[test]
    fn a_frame_stands_in_the_call_of_the_next_one() {
        let image = image(Abi::Arm64);
        let function = |name| image.function("libexample.so", name).unwrap();
        let put = function("example::feed::FeedCache::Put");
        let new = put.address(Some("operator new"), 0);
        assert_eq!(new, put.address(Some("operator new"), 7), "one such call");
        assert_ne!(new, put.address(Some("operator delete"), 0));
        // Called through a pointer: any of the possible calls.
        let malloc = image.function("libc.so", "malloc").unwrap();
        assert_ne!(malloc.address(None, 0), malloc.address(None, 1));
    }
}
