//! From Android's HPROF to Java SE's, with the result of Android's `hprof-conv`, byte for byte.
//! Owns what becomes of each sub-record; record by record copying is [`super::rewrite`]'s.
//!
//! | Android's | becomes |
//! |---|---|
//! | version `1.0.3` | `1.0.2` |
//! | FE heap | nothing |
//! | 89 interned string, 8A finalizing, 8B debugger, 8C reference cleanup, 8D VM internal, 90 unreachable | FF unknown root |
//! | 8E JNI monitor, with thread and frame | FF unknown root, without |
//! | C3 array without data | 23 array of length 0 |
//!
//! All else stays, and so do lengths of 0 where nothing stays of a segment. `hprof-conv` meant
//! the length of C3 arrays too, but clears their stack's number instead, and what follows is
//! read as their values: only where that very result is wanted, see [`ConvertOptions::compat`].

use super::records::{Header, HeaderError, Record};
use super::rewrite::{Body, Edit, Other, Rewritten, rewrite};
use super::sub_records::{SubRecord, sub_tag};
use crate::error::{Classified, ErrorClass};
use std::io::{self, Write};
use std::ops::Range;

/// What to make of a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ConvertOptions {
    /// Leave out objects of the zygote's and the boot image's heap (`hprof-conv -z`). Classes,
    /// roots and references to what is missing stay.
    pub app_only: bool,
    /// Repeat the mistake of `hprof-conv` with arrays that have no data.
    pub compat: bool,
}

/// What was converted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Converted {
    /// What was copied, and what could not be read.
    pub file: Rewritten,
    /// Objects left out as not the app's own.
    pub left_out: u64,
    /// Arrays without data.
    pub without_data: u64,
}

/// Why a dump was not converted.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// It has no header.
    #[error("it is no HPROF: {0}")]
    Header(#[from] HeaderError),
    /// It is another dialect.
    #[error("it is not Android's dialect but {version:?}, which Java SE tools read as it is")]
    NotAndroid {
        /// What its header says.
        version: String,
    },
    /// The result can't be written.
    #[error("the result cannot be written")]
    Write(#[from] io::Error),
}

impl Classified for ConvertError {
    fn class(&self) -> ErrorClass {
        match self {
            ConvertError::Header(_) | ConvertError::NotAndroid { .. } => ErrorClass::BadInput,
            ConvertError::Write(_) => ErrorClass::HostWrite,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            ConvertError::Header(_) => "hprof-header",
            ConvertError::NotAndroid { .. } => "hprof-not-android",
            ConvertError::Write(_) => "output-unwritable",
        }
    }

    fn help(&self) -> Option<String> {
        let help = match self {
            ConvertError::Header(_) => "fetch the dump again; `heaptap dump --hprof` checks it",
            ConvertError::NotAndroid { .. } => {
                "give it to the other tool directly; there is nothing to convert"
            }
            ConvertError::Write(_) => "make room there, or name another file",
        };
        Some(help.to_owned())
    }
}

/// Byte of the header that tells `1.0.3` from `1.0.2`.
const VERSION_AT: usize = 17;

/// Converts. Damage is no error: what can be read is converted, the rest is left out and told.
///
/// # Errors
/// Where it is no dump of Android's dialect, or the result can't be written.
pub fn convert(
    file: &[u8],
    options: ConvertOptions,
    out: &mut dyn Write,
) -> Result<Converted, ConvertError> {
    let header = Header::read(file)?;
    if !header.is_android() {
        return Err(ConvertError::NotAndroid {
            version: header.version.to_owned(),
        });
    }
    let mut new_header = file[..header.bytes].to_vec();
    new_header[VERSION_AT] = b'2';
    let mut edit = ToJavaSe {
        options,
        ignoring: false,
        left_out: 0,
        without_data: 0,
        id_bytes: header.id_size.bytes(),
    };
    let file = rewrite(file, &header, &new_header, &mut edit, out)?;
    Ok(Converted {
        file,
        left_out: edit.left_out,
        without_data: edit.without_data,
    })
}

#[derive(Clone)]
struct ToJavaSe {
    options: ConvertOptions,
    /// Whether objects that follow are not the app's.
    ignoring: bool,
    left_out: u64,
    without_data: u64,
    id_bytes: usize,
}

impl Edit for ToJavaSe {
    fn other(&mut self, _: &Record<'_>) -> Other {
        Other::Keep
    }

    fn dump(&mut self) {
        self.ignoring = false;
    }

    #[inline]
    fn sub_record(&mut self, range: Range<usize>, record: &SubRecord<'_>, out: &mut Body<'_>) {
        let id = range.start + 1..range.start + 1 + self.id_bytes;
        match record {
            SubRecord::Heap { heap, .. } => {
                let foreign = matches!(u8::try_from(*heap), Ok(b'Z' | b'I'));
                self.ignoring = self.options.app_only && foreign;
            }
            SubRecord::Root(root) => match root.tag {
                0x89 | 0x8a | 0x8b | 0x8c | 0x8d | 0x8e | 0x90 => {
                    out.put(&[0xff]);
                    out.keep(id);
                }
                _ => out.keep(range),
            },
            SubRecord::PrimitiveArray(array) if array.data.is_none() => {
                self.without_data += 1;
                let stack_end = id.end + 4;
                let length_end = stack_end + 4;
                out.put(&[sub_tag::PRIMITIVE_ARRAY]);
                out.keep(id.clone());
                if self.options.compat {
                    out.put(&[0; 4]);
                    out.keep(stack_end..range.end);
                } else {
                    out.keep(id.end..stack_end);
                    out.put(&[0; 4]);
                    out.keep(length_end..range.end);
                }
            }
            SubRecord::Instance(_) | SubRecord::ObjectArray(_) | SubRecord::PrimitiveArray(_)
                if self.ignoring =>
            {
                self.left_out += 1;
            }
            _ => out.keep(range),
        }
    }
}
