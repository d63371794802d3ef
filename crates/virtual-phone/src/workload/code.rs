//! The code of a synthetic process: its memory mappings and the frames of its stacks. Names,
//! layouts and addresses are those of the libraries on the phone. [`super::sources`] owns the
//! allocations.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::site::{FrameDef, Life, MappingDef, Phase, Site};
use crate::image::{Function, image};
use crate::installed::{Mapped, mapped, obfuscated};
use crate::numbers::{hash, mix};
use crate::packages::Package;
use crate::process::Process;
use crate::spec::{Abi, Names, PhoneSpec};

/// Collector of the mappings and frames of one process.
pub(crate) struct Builder {
    pub(crate) mappings: Vec<MappingDef>,
    pub(crate) frames: Vec<FrameDef>,
    known: BTreeMap<FrameDef, u32>,
    paths: BTreeMap<&'static str, usize>,
    spec: PhoneSpec,
    abi: Abi,
    package: Option<Package>,
}

/// Source of a frame's code, by the first word of its text.
enum Source {
    /// A library of the image with this file name.
    Library(String),
    /// Interpreted or compiled Java, or no code at all: names without an ELF file.
    Runtime(String),
}

impl Builder {
    pub(crate) fn new(spec: &PhoneSpec, package: Option<Package>, process: &Process) -> Builder {
        Builder {
            mappings: Vec::new(),
            frames: Vec::new(),
            known: BTreeMap::new(),
            paths: BTreeMap::new(),
            abi: spec.abi.of_process(process.bits_32),
            spec: spec.clone(),
            package,
        }
    }

    fn source(&self, key: &str) -> Source {
        let code = || self.package.as_ref().map(Package::code_path);
        Source::Library(match key {
            "boot" => "boot-framework.oat".to_owned(),
            "odex" => "base.odex".to_owned(),
            "app_process" | "surfaceflinger" => key.to_owned(),
            "vdex" => {
                let code = code().unwrap_or_default();
                return Source::Runtime(format!("{code}/oat/{}/base.vdex", self.abi.isa()));
            }
            "jit" => return Source::Runtime("/memfd:jit-cache (deleted)".to_owned()),
            // Downloaded by the app itself, into a directory that is not accessible to others.
            "libscene" => {
                let name = self.package.as_ref().map_or("", |p| p.name);
                return Source::Runtime(format!("/data/user/0/{name}/files/libscene.so"));
            }
            "none" => return Source::Runtime(String::new()),
            library => format!("{library}.so"),
        })
    }

    /// Returns the address range of `size` bytes of a mapped file. Processes forked from one zygote
    /// share addresses of the system's libraries; here, all processes of a phone do.
    fn place(&self, path: &str, size: u64) -> (u64, u64) {
        let random = mix(&[self.spec.seed, hash(path)]);
        let start = match self.abi.is_64_bit() {
            false => 0xa000_0000 + (random & 0x1_ffff) * 0x2000,
            true => 0x7a_0000_0000 + (random & 0xff_ffff) * 0x1_0000,
        };
        (start, start + size)
    }

    pub(crate) fn mapping(&mut self, key: &'static str) -> usize {
        if let Some(known) = self.paths.get(key) {
            return *known;
        }
        let def = match self.source(key) {
            Source::Library(name) => self.map_library(&self.mapped(&name)),
            Source::Runtime(path) => {
                let random = mix(&[self.spec.seed, hash(&path)]);
                let size = 0x10_0000 + (random >> 44 << 12) % 0x60_0000;
                let (start, end) = self.place(&path, size);
                // Only ELF files have a build ID.
                let build_id = match key {
                    "libscene" => (0..20)
                        .map(|i| (mix(&[hash(&path), i]) & 0xff) as u8)
                        .collect(),
                    _ => Vec::new(),
                };
                MappingDef {
                    path,
                    build_id,
                    start,
                    end,
                    start_offset: 0,
                    exact_offset: 0x1000 + (random >> 20 & 0x3f) * 0x1000,
                    load_bias: 0,
                }
            }
        };
        self.mappings.push(def);
        self.paths.insert(key, self.mappings.len() - 1);
        self.mappings.len() - 1
    }

    fn mapped(&self, library: &str) -> Mapped {
        mapped(&self.spec, self.abi, self.package.as_ref(), library)
            .expect("stacks contain only libraries of the process")
    }

    /// Returns the mapping of a library's code, as made by the dynamic linker.
    fn map_library(&self, mapped: &Mapped) -> MappingDef {
        const PAGE: u64 = 4096;
        let code = mapped.library.code;
        let inside = code.offset % PAGE;
        let size = (inside + code.size).next_multiple_of(PAGE);
        let (start, end) = self.place(&mapped.path, size);
        MappingDef {
            path: mapped.path.clone(),
            build_id: mapped.library.build_id.clone(),
            start,
            end,
            start_offset: mapped.start_offset,
            exact_offset: mapped.start_offset + code.offset - inside,
            load_bias: code.address - code.offset,
        }
    }

    /// Adds a frame: `library function` with the names in its sources. `next` is the callee;
    /// `variant` distinguishes calls from different positions of one function.
    pub(crate) fn frame(&mut self, text: &'static str, next: Option<&str>, variant: u64) -> u32 {
        let (key, function) = text.split_once(' ').unwrap_or((text, ""));
        let mapping = self.mapping(key);
        let (function, rel_pc) = match self.source(key) {
            Source::Library(library) => {
                let found = image(self.abi)
                    .function(&library, function)
                    .unwrap_or_else(|| panic!("{library} does not have function {function:?}"));
                let next = next
                    .and_then(|text| text.split_once(' '))
                    .map(|(_, name)| name);
                let rel_pc = found.address(next, mix(&[hash(text), variant]));
                (self.name(key, &library, function, found), rel_pc)
            }
            Source::Runtime(_) => {
                let m = &self.mappings[mapping];
                let place = (mix(&[hash(text), variant]) % (m.end - m.start)) & !3;
                let java = matches!(key, "jit" | "vdex") && self.spec.obfuscated;
                let name = if java {
                    obfuscated(function)
                } else {
                    function.to_owned()
                };
                (name.into(), place + m.exact_offset + m.load_bias)
            }
        };
        self.add(FrameDef {
            mapping,
            function,
            rel_pc,
        })
    }

    /// Returns heapprofd's name of a function of a library.
    fn name(&self, key: &str, library: &str, name: &str, function: &Function) -> Arc<str> {
        match key {
            // Names of Java methods come from the dex file.
            "odex" if self.spec.obfuscated => obfuscated(name).into(),
            "odex" | "boot" => name.into(),
            _ => {
                let symbols = self.spec.names == Names::All && self.mapped(library).has_symbols;
                if function.exported || symbols {
                    function.linkage.clone()
                } else {
                    "".into()
                }
            }
        }
    }

    pub(crate) fn add(&mut self, frame: FrameDef) -> u32 {
        if let Some(known) = self.known.get(&frame) {
            return *known;
        }
        let id = self.frames.len() as u32;
        self.frames.push(frame.clone());
        self.known.insert(frame, id);
        id
    }

    pub(crate) fn site(
        &mut self,
        name: &'static str,
        all: &[&'static str],
        per_second: f64,
        size: (u64, u64),
        life: Life,
        phase: Phase,
    ) -> Site {
        let variant = hash(name);
        let ids: Vec<u32> = all
            .iter()
            .enumerate()
            .map(|(i, f)| {
                // Roots are shared. Where a stack branches, the callers differ in the position of
                // the call.
                let own = i + 4 >= all.len() && i + 1 < all.len();
                let next = all.get(i + 1).copied();
                self.frame(f, next, if own { variant } else { 0 })
            })
            .collect();
        self.named_site(name.into(), ids, per_second, size, life, phase)
    }

    pub(crate) fn named_site(
        &mut self,
        name: Arc<str>,
        frames: Vec<u32>,
        per_second: f64,
        size: (u64, u64),
        life: Life,
        phase: Phase,
    ) -> Site {
        let stack = frames
            .iter()
            .map(|f| self.frames[*f as usize].function.clone())
            .collect::<Vec<_>>();
        Site {
            name,
            frames,
            stack: stack.into(),
            per_second,
            size,
            life,
            phase,
        }
    }
}
