//! Names for frames. [`symbolize`] maps addresses of native code to functions, files and lines.
//! [`deobfuscate`] restores the Java names that R8 or ProGuard replaced. Both depend only on
//! [`heaptap_model`] for recordings. Neither prints, and only [`symbolize::debuginfod`] uses the
//! network, if the caller names servers.
//!
//! # Symbol files
//!
//! | format | gives | read from |
//! |---|---|---|
//! | ELF with `.debug_info` (DWARF 2 to 5, split, dwz) | functions, inlined ones, files, lines | the file, its `.debug` file, `.dwo`, `.dwp` |
//! | ELF with `.symtab` or `.gnu_debugdata` | functions | the file |
//! | ELF with `.dynsym` only | exported functions | the file |
//! | Breakpad text | functions, files, lines | the file |
//!
//! A file matches if its build ID is that of the memory mapping. There are three kinds of address:
//! a frame's `rel_pc` (file offset in the ELF plus the load bias that the unwinder used), the file
//! offset, and the link-time address (SVMA) for [`symbolize::file::SymbolFile::lookup`].
//!
//! # Mapping files
//!
//! A mapping file of R8 is text: a line `original -> obfuscated:` for each class, followed by its
//! members with line ranges. A method can have several entries: inlined calls are in order,
//! innermost first. [`deobfuscate::Retracer`] follows the rules of retrace, and
//! `tests/formats/retrace` compares it with the original.
//!
//! # Worked examples
//!
//! ```
//! use heaptap_base::bytes::Bytes;
//! use heaptap_symbols::deobfuscate::{MapFile, Retraced, Retracer};
//! use std::path::Path;
//!
//! let text = "\
//! com.example.Cache -> a.a:
//!     1:3:void put(java.lang.String):40:42 -> a
//! ";
//! let map = MapFile::from_bytes(Bytes::from(text.as_bytes().to_vec()), Path::new("mapping.txt"))?;
//! let frame = Retracer::new(&map).frame("a.a", "a", Some(2), None);
//! let Retraced::Frames(chains) = frame.retraced else {
//!     panic!("the map has the method")
//! };
//! let frame = chains[0][0];
//! assert_eq!((frame.method.class, frame.method.name), ("com.example.Cache", "put"));
//! assert_eq!(frame.line, Some(41));
//! # Ok::<(), heaptap_symbols::deobfuscate::MapError>(())
//! ```
//!
//! ```
//! use heaptap_base::bytes::Bytes;
//! use heaptap_symbols::symbolize::file::{Alone, SymbolFile};
//! use std::{num::NonZero, sync::Arc};
//!
//! let text = "\
//! MODULE Linux arm64 000000000000000000000000000000000 libapp.so
//! FILE 0 cache.cc
//! FUNC 1000 20 0 put
//! 1000 20 41 0
//! ";
//! let file = SymbolFile::open(Bytes::from(text.as_bytes().to_vec()), Arc::new(Alone))?;
//! let mut names = Vec::new();
//! file.lookup(&[0x1010], NonZero::<usize>::MIN, &mut |_, lines| {
//!     names.extend(lines.iter().map(|line| format!("{} {}:{}", line.function, line.file, line.line)));
//! });
//! assert_eq!(names, ["put cache.cc:41"]);
//! # Ok::<(), heaptap_symbols::symbolize::file::FileError>(())
//! ```
//!
//! # Modules
//!
//! | module | owns |
//! |---|---|
//! | [`symbolize::library`] | libraries of a recording with frames without names |
//! | [`symbolize::find`] | the ordered search for symbols, and the outcome at each place |
//! | [`symbolize::file`] | symbol files: ELF, DWARF, Breakpad |
//! | [`symbolize::resolve`] | symbolization of all libraries of a recording |
//! | [`symbolize::cache`] | results on disk, by build ID |
//! | [`symbolize::debuginfod`] | symbol files from servers |
//! | [`deobfuscate`] | mapping files, retrace's rules, names for frames and Java heaps |

pub mod deobfuscate;
pub mod symbolize;
