//! Checks before anything starts: whether the preload library can be loaded into the program, and
//! whether it would record it. A failed load is silent for the program, or ends it, so heaptap
//! reads the headers of both files instead of trying.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use heaptap_base::bytes::Bytes;
use heaptap_base::error::{ErrorClass, Failure};
use object::elf;

use super::elf::ElfFacts;
use super::error::unsuitable;
use super::find::{self, Tools};
use super::os;
use super::request::Request;

/// Remark about a program that can be recorded, but not completely.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caution {
    pub message: String,
    pub help: String,
}

/// Result of the checks.
#[derive(Debug, Clone)]
pub struct Checked {
    pub tools: Tools,
    /// The executable file.
    pub program: PathBuf,
    /// Last part of the name as typed.
    pub name: String,
    /// Interpreter, if the program is a script.
    pub interpreter: Option<PathBuf>,
    pub cautions: Vec<Caution>,
}

/// Maximum number of interpreters that are followed; Linux stops at the same depth.
const MAX_INTERPRETERS: usize = 4;
/// Maximum length of the first line of a script that Linux reads.
const MAX_SHEBANG_BYTES: usize = 255;

/// Returns the name of the program in messages and default names, if it exists.
///
/// # Errors
/// Returns an error if it does not exist.
pub fn program_name(request: &Request) -> Result<String, Failure> {
    find_program(request).map(|(_, name)| name)
}

/// Returns the executable file, and the last part of the name as typed.
fn find_program(request: &Request) -> Result<(PathBuf, String), Failure> {
    let typed = request.command.first().cloned().unwrap_or_default();
    let program = search(&typed, request.path.as_deref());
    let program = program.ok_or_else(|| {
        let message = format!("cannot find the program {}", typed.to_string_lossy());
        Failure::new(ErrorClass::BadInput, "host-program-missing", message)
            .with_help("check the name after `--`; a program of the current directory needs ./")
    })?;
    let name = Path::new(&typed).file_name().unwrap_or(&typed);
    Ok((program, name.to_string_lossy().into_owned()))
}

/// Checks the program, the Perfetto build and the library; what the user typed comes first.
///
/// # Errors
/// Returns an error if a part is missing, or if the program would not be recorded; with
/// [`Request::force`], the latter are cautions.
pub fn check(request: &Request) -> Result<Checked, Failure> {
    let (program, name) = find_program(request)?;
    let tools = find::find(request)?;
    let ring = request.tmp.as_deref().unwrap_or(Path::new("/tmp"));
    if !ring.is_dir() || !os::is_writable(ring) {
        let message = format!(
            "cannot profile here: TMPDIR is {}, which is not a writable directory, and heapprofd \
             keeps its ring buffer there",
            ring.display()
        );
        let failure = Failure::new(ErrorClass::HostWrite, "host-ring-buffer", message);
        return Err(failure.with_help("create the directory, or unset TMPDIR"));
    }
    let library = read_library(&tools.library)?;
    let typed = request.command.first().cloned().unwrap_or_default();
    let shown = typed.to_string_lossy().into_owned();
    let search = |name: &OsStr| search(name, request.path.as_deref());
    let mut checked = Checked {
        tools,
        program: program.clone(),
        name,
        interpreter: None,
        cautions: Vec::new(),
    };
    let mut file = program;
    for _ in 0..=MAX_INTERPRETERS {
        match look_at(&file, &library) {
            Look::Fits(cautions) => {
                checked.cautions.extend(cautions);
                break;
            }
            Look::Unfit { why, help } => {
                let about = match &checked.interpreter {
                    Some(interpreter) => {
                        format!("its interpreter {}: {why}", interpreter.display())
                    }
                    None => why,
                };
                if !request.force {
                    return Err(unsuitable(&shown, &about, help));
                }
                checked.cautions.push(Caution {
                    message: format!("{shown}: {about}"),
                    help,
                });
                break;
            }
            Look::Script(line) => match interpreter(&line, search) {
                Some(interpreter) => {
                    checked.interpreter = Some(interpreter.clone());
                    file = interpreter;
                }
                None => {
                    let why = format!("its interpreter does not exist: {line}");
                    let help = "correct the first line of the script";
                    return Err(unsuitable(&shown, &why, help));
                }
            },
        }
    }
    Ok(checked)
}

/// Returns the executable that a shell would start.
fn search(name: &OsStr, path: Option<&OsStr>) -> Option<PathBuf> {
    let usable = |path: &Path| fs::metadata(path).is_ok_and(|m| os::is_executable(&m));
    let named = Path::new(name);
    if named.components().count() > 1 || name.as_encoded_bytes().contains(&b'/') {
        return usable(named).then(|| named.to_owned());
    }
    if name.is_empty() {
        return None;
    }
    std::env::split_paths(path?)
        .map(|directory| directory.join(name))
        .find(|path| usable(path))
}

/// Returns the interpreter of a script's first line. `env NAME` stands for the program NAME.
fn interpreter(line: &str, search: impl Fn(&OsStr) -> Option<PathBuf>) -> Option<PathBuf> {
    let mut words = line.split_whitespace();
    let first = words.next()?;
    if Path::new(first).file_name() == Some(OsStr::new("env"))
        && let Some(name) = words.find(|word| !word.starts_with('-') && !word.contains('='))
    {
        return search(OsStr::new(name));
    }
    search(OsStr::new(first))
}

/// The library, as far as programs must match it.
struct Library {
    path: PathBuf,
    facts: ElfFacts,
}

fn read_library(path: &Path) -> Result<Library, Failure> {
    let unusable = |why: String, help: &str| {
        let message = format!("cannot use the preload library {}: {why}", path.display());
        Failure::new(ErrorClass::BadInput, "host-library-unusable", message).with_help(help)
    };
    const NAME: &str = "name libheapprofd_glibc_preload.so of a Perfetto build for this system";
    let bytes = Bytes::map(path).map_err(|error| unusable(error.to_string(), NAME))?;
    let facts = match super::elf::read(&bytes) {
        None => return Err(unusable("it is not an ELF file".to_owned(), NAME)),
        Some(Err(why)) => {
            return Err(unusable(
                format!("it is damaged ({why}), and would crash the program"),
                "download or build it again",
            ));
        }
        Some(Ok(facts)) => facts,
    };
    if facts.kind != elf::ET_DYN.0 || facts.interpreter.is_some() {
        return Err(unusable("it is a program, not a library".to_owned(), NAME));
    }
    Ok(Library {
        path: path.to_owned(),
        facts,
    })
}

/// Result of reading an executable file.
enum Look {
    Fits(Vec<Caution>),
    Unfit {
        why: String,
        help: String,
    },
    /// A script with this first line.
    Script(String),
}

fn look_at(path: &Path, library: &Library) -> Look {
    let unfit = |why: String, help: &str| Look::Unfit {
        why,
        help: help.to_owned(),
    };
    let bytes = match Bytes::map(path) {
        Ok(bytes) => bytes,
        Err(error) => {
            return unfit(
                format!("heaptap cannot read it to check it ({error})"),
                "make it readable, or add --no-check",
            );
        }
    };
    if let Some(rest) = bytes.strip_prefix(b"#!") {
        let end = rest.len().min(MAX_SHEBANG_BYTES);
        let line = rest[..end].split(|b| *b == b'\n').next().unwrap_or(b"");
        return Look::Script(String::from_utf8_lossy(line).trim().to_owned());
    }
    let facts = match super::elf::read(&bytes) {
        None => {
            return unfit(
                "it is neither an ELF program nor a script with a #! line".to_owned(),
                "name its interpreter, such as `-- sh SCRIPT`",
            );
        }
        Some(Err(why)) => return unfit(format!("it is damaged: {why}"), "build or copy it again"),
        Some(Ok(facts)) => facts,
    };
    match unfit_facts(&facts, library) {
        Some((why, help)) => return unfit(why, &help),
        None if fs::metadata(path).is_ok_and(|m| os::changes_user(&m)) => {
            return unfit(
                "it is a set-user-ID or set-group-ID program, so the dynamic linker ignores the \
                 preload library"
                    .to_owned(),
                "run it as its owner, or profile a copy without the bit",
            );
        }
        None => {}
    }
    Look::Fits(cautions(path, &facts))
}

/// Sanitizers that cannot run with another preloaded allocator.
const SANITIZERS: [(&str, &str); 4] = [
    ("libasan.so", "AddressSanitizer"),
    ("libtsan.so", "ThreadSanitizer"),
    ("libclang_rt.asan", "AddressSanitizer"),
    ("libclang_rt.tsan", "ThreadSanitizer"),
];
/// Allocators that replace malloc: the library then sees only a part of the allocations.
const ALLOCATORS: [(&str, &str); 2] = [("libtcmalloc", "tcmalloc"), ("libmimalloc", "mimalloc")];

/// Returns the reason why a program cannot load the library, and the remedy.
fn unfit_facts(facts: &ElfFacts, library: &Library) -> Option<(String, String)> {
    let lib = &library.facts;
    if facts.bits != lib.bits {
        return Some((
            format!(
                "it is a {}-bit program, and the preload library has {} bits",
                facts.bits, lib.bits
            ),
            format!(
                "build it with {} bits, or name a library of its own kind",
                lib.bits
            ),
        ));
    }
    if facts.machine != lib.machine {
        return Some((
            format!(
                "it is for the processor {}, and the preload library is for {}",
                machine(facts.machine),
                machine(lib.machine)
            ),
            "name a library for the same processor with --preload-library".to_owned(),
        ));
    }
    let Some(linker) = &facts.interpreter else {
        return Some((
            "it is statically linked, so no library can be preloaded".to_owned(),
            "link it dynamically".to_owned(),
        ));
    };
    if linker.contains("ld-musl") {
        return Some((
            "it is linked to musl, and the preload library needs glibc".to_owned(),
            "build it for glibc".to_owned(),
        ));
    }
    let needs = |prefix: &str| facts.needed.iter().any(|name| name.starts_with(prefix));
    if let Some((_, what)) = SANITIZERS.iter().find(|(prefix, _)| needs(prefix)) {
        return Some((
            format!("it is built with {what}, which does not run with a preloaded allocator"),
            "build it without the sanitizer".to_owned(),
        ));
    }
    if needs("libjemalloc") {
        return Some((
            "it is linked to jemalloc, and aborts with the preload library".to_owned(),
            "build it without jemalloc".to_owned(),
        ));
    }
    let missing = missing_version(linker, lib)?;
    Some((
        format!(
            "the preload library {} needs {missing}, and the C library of this host is older",
            library.path.display()
        ),
        "use a library built on this system or an older one (--preload-library)".to_owned(),
    ))
}

/// Returns a version that the library needs and the C library next to the dynamic linker lacks;
/// `None` also if the C library cannot be read.
fn missing_version(linker: &str, library: &ElfFacts) -> Option<String> {
    let linker = fs::canonicalize(linker).ok()?;
    let libc = Bytes::map(&linker.with_file_name("libc.so.6")).ok()?;
    let libc = super::elf::read(&libc)?.ok()?;
    if libc.versions.is_empty() {
        return None;
    }
    let mut missing: Vec<&String> = library.version_needs.difference(&libc.versions).collect();
    missing.sort_by_key(|version| {
        let digits = version.split(|c: char| !c.is_ascii_digit());
        digits
            .filter_map(|d| d.parse::<u32>().ok())
            .collect::<Vec<_>>()
    });
    missing.last().map(|version| (*version).clone())
}

fn cautions(path: &Path, facts: &ElfFacts) -> Vec<Caution> {
    let linked =
        |prefix: &&(&str, &str)| facts.needed.iter().any(|name| name.starts_with(prefix.0));
    ALLOCATORS
        .iter()
        .filter(linked)
        .map(|(_, name)| Caution {
            message: format!(
                "{} is linked to {name}: malloc is recorded, C++ new is not",
                path.display()
            ),
            help: format!("link it without {name} for a complete profile"),
        })
        .collect()
}

fn machine(machine: u16) -> String {
    match elf::Machine(machine) {
        elf::EM_386 => "x86".to_owned(),
        elf::EM_X86_64 => "x86-64".to_owned(),
        elf::EM_ARM => "arm".to_owned(),
        elf::EM_AARCH64 => "arm64".to_owned(),
        elf::EM_RISCV => "RISC-V".to_owned(),
        elf::Machine(other) => format!("number {other}"),
    }
}
