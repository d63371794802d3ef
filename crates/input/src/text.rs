//! Device texts (logs, meminfo, mappings) in any compression. This module opens a file, a pipe or
//! standard input that can be a text. It reads the first bytes without consuming them, then streams
//! the text as UTF-8. It unpacks gzip, zstd, xz, and a ZIP that has one text. The size of the
//! unpacked text is limited. Damage to the compression is reported after all the text before it.

use super::archive::{one_text, unopened};
use super::bugreport::{self, Section, SectionReader};
use super::codec::{Codec, PACKED_HEAD, breaks_off, codec_at};
use super::detect::{HEAD, Kind, detect};
use super::error::ImportError;
use super::shared::share;
use super::spool::{self, Budget, Spool};
use heaptap_base::bytes::Bytes;
use heaptap_base::text::{plain, plain_reader};
use heaptap_base::units::ByteSize;
use perfetto_heap::Source;
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek as _};
use std::path::Path;
use std::rc::Rc;
use zip::ZipArchive;

/// Path that means standard input.
pub const STDIN: &str = "-";
/// Name of standard input in messages.
pub const STDIN_NAME: &str = "standard input";

/// Returns whether a path argument is a directory. `-` is always standard input, even if a
/// directory has that name.
pub fn is_directory(typed: &Path) -> bool {
    typed != Path::new(STDIN) && typed.is_dir()
}

/// Maximum number of bytes per request to a codec. A codec that fails loses what it had unpacked
/// for that request.
const STEP: usize = 1 << 10;

/// Maximum number of bytes of an unpacked bug report.
const MAX_REPORT_SIZE: u64 = 8 << 30;

/// Replacement for half a character.
const HALF: &str = "\u{fffd}";

/// An input that can be a text. Opening it does not consume any bytes.
pub struct TextInput<'a> {
    name: String,
    looked_at: LookedAt,
    origin: Origin<'a>,
    is_regular: bool,
    /// Open ZIP whose member is being read.
    archive: Option<ZipArchive<Box<dyn Source>>>,
}

/// File type and first bytes of an input.
struct LookedAt {
    kind: Kind,
    head: Vec<u8>,
    /// Number of compression or archive layers around the text.
    depth: u32,
}

impl LookedAt {
    fn new(name: &str, begin: &[u8]) -> Result<LookedAt, ImportError> {
        let text = Text::new(name, Box::new(begin), 0, Rc::default(), u64::MAX)?;
        Ok(text.looked_at)
    }
}

/// Source of the bytes.
enum Origin<'a> {
    /// A regular file, positioned at its start, or an unpacked copy of a ZIP.
    Seekable(Box<dyn Source>),
    /// The first bytes, which have already been read, and the rest.
    Stream(Vec<u8>, Box<dyn Read + 'a>),
}

impl<'a> Origin<'a> {
    /// Takes the origin and leaves an empty stream.
    fn take(&mut self) -> Origin<'a> {
        std::mem::replace(self, Origin::Stream(Vec::new(), Box::new(io::empty())))
    }

    fn into_stream(self) -> Box<dyn Read + 'a> {
        match self {
            Origin::Seekable(source) => source,
            Origin::Stream(begin, rest) => Box::new(Cursor::new(begin).chain(rest)),
        }
    }
}

impl TextInput<'static> {
    /// Opens a path argument; `-` is standard input.
    ///
    /// # Errors
    /// Returns the same errors as [`TextInput::open`].
    pub fn typed(path: &Path) -> Result<Self, ImportError> {
        match path == Path::new(STDIN) {
            true => Self::stdin(),
            false => Self::open(path),
        }
    }

    /// Opens standard input.
    ///
    /// # Errors
    /// Returns the same errors as [`TextInput::open`].
    pub fn stdin() -> Result<Self, ImportError> {
        Self::of_stream(io::stdin().lock(), STDIN_NAME)
    }

    /// Opens a regular file. Returns `None` if the path is not a regular file or cannot be read. A
    /// pipe can be read only once, so its bytes are left for its reader.
    pub fn of_regular(path: &Path) -> Option<Self> {
        path.is_file().then(|| Self::open(path).ok()).flatten()
    }

    /// Opens a file or a pipe.
    ///
    /// # Errors
    /// Returns an error if the input cannot be read or is nested deeper than the crate unpacks.
    pub fn open(path: &Path) -> Result<Self, ImportError> {
        let name = path.display().to_string();
        let unreadable = ImportError::unreadable(&name);
        let mut file = File::open(path).map_err(unreadable)?;
        // A pipe can be read only once.
        if !file.metadata().map_err(unreadable)?.is_file() {
            return Self::of_stream(file, &name);
        }
        let begin = begin(&mut file).map_err(unreadable)?;
        file.rewind().map_err(unreadable)?;
        let looked_at = LookedAt::new(&name, &begin)?;
        let origin = Origin::Seekable(Box::new(file));
        Ok(Self::new(&name, looked_at, origin, true))
    }
}

impl<'a> TextInput<'a> {
    /// Opens a stream; messages use `name` for it.
    ///
    /// # Errors
    /// Returns the same errors as [`TextInput::open`].
    pub fn of_stream(mut stream: impl Read + 'a, name: &str) -> Result<Self, ImportError> {
        let begin = begin(&mut stream).map_err(ImportError::unreadable(name))?;
        let looked_at = LookedAt::new(name, &begin)?;
        let origin = Origin::Stream(begin, Box::new(stream));
        Ok(Self::new(name, looked_at, origin, false))
    }

    fn new(name: &str, looked_at: LookedAt, origin: Origin<'a>, is_regular: bool) -> Self {
        TextInput {
            name: name.to_owned(),
            looked_at,
            origin,
            is_regular,
            archive: None,
        }
    }

    /// Returns whether the input is a regular file, which can be opened again.
    pub fn is_regular(&self) -> bool {
        self.is_regular
    }

    /// Returns the name used in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the file type inside gzip, zstd and xz, or that of the compression if nothing can be
    /// unpacked.
    pub fn kind(&self) -> Kind {
        self.looked_at.kind
    }

    /// Returns the first 64 KiB of the unpacked content, converted from UTF-16 to UTF-8.
    pub fn head(&self) -> &[u8] {
        &self.looked_at.head
    }

    /// Returns the first bytes of the text: of a ZIP, those of its main text. Empty if it has none.
    ///
    /// # Errors
    /// Returns the same errors as [`TextInput::text`].
    pub fn text_head(&mut self) -> Result<Vec<u8>, ImportError> {
        if self.looked_at.kind != Kind::Zip {
            return Ok(self.looked_at.head.clone());
        }
        let text = self.member(spool::MAX_SIZE)?;
        Ok(text.map(|text| text.looked_at.head).unwrap_or_default())
    }

    /// Returns whether the input is a bug report, as text or in a ZIP.
    pub fn is_bugreport(&mut self) -> bool {
        let head = self.text_head().unwrap_or_default();
        bugreport::year(&head).is_some()
    }

    /// Returns the original bytes, packed or not.
    pub fn into_stream(self) -> Box<dyn Read + 'a> {
        self.origin.into_stream()
    }

    /// Returns the text; can be called once. A ZIP provides the text of a bugreport or its only
    /// text; `None` if it has neither. `most` limits the unpacked bytes; an uncompressed text is
    /// not limited.
    ///
    /// # Errors
    /// Returns an error if the input cannot be read, nothing can be unpacked, or it is nested
    /// deeper than the crate unpacks.
    pub fn text(&mut self, most: u64) -> Result<Option<Text<'_>>, ImportError> {
        if self.looked_at.kind == Kind::Zip {
            return self.member(most);
        }
        let stream = self.origin.take().into_stream();
        let text = Text::new(&self.name, stream, 0, Rc::default(), most)?;
        text.unless_nothing_came(&self.name).map(Some)
    }

    fn member(&mut self, most: u64) -> Result<Option<Text<'_>>, ImportError> {
        let damaged = |what: String| ImportError::Damaged {
            name: self.name.clone(),
            what,
        };
        let flaws: Rc<Flaws> = Rc::default();
        let source: Box<dyn Source> = match self.origin.take() {
            Origin::Seekable(source) if self.looked_at.depth == 0 => source,
            // The directory of a ZIP is at its end.
            origin => {
                let stream = origin.into_stream();
                let zip = Text::new(&self.name, stream, 0, Rc::clone(&flaws), u64::MAX)?;
                let spooled = Spool::new(&self.name, &Budget::new(most)).copy(zip)?;
                match spooled.damage {
                    Some(what) => return Err(damaged(what)),
                    None => spooled.source,
                }
            }
        };
        let (source, kept) = share(source);
        self.origin = Origin::Seekable(kept);
        let archive = ZipArchive::new(source).map_err(|error| {
            // The end of the ZIP is missing because the compression around it broke off.
            let around = flaws.damage.borrow_mut().take();
            damaged(around.unwrap_or_else(|| unopened(&error)))
        })?;
        let archive = self.archive.insert(archive);
        let Some(at) = one_text(archive) else {
            return Ok(None);
        };
        let member = archive.by_index(at);
        let member = member.map_err(|error| damaged(error.to_string()))?;
        let member = Unpacked::new(Box::new(member), "ZIP", &flaws);
        let text = Text::new(
            &self.name,
            Box::new(member),
            self.looked_at.depth + 1,
            flaws,
            most,
        )?;
        text.unless_nothing_came(&self.name).map(Some)
    }

    /// Returns a section of a bug report, as text or in a ZIP, or the whole of another text, up to
    /// `most` bytes. `None` if a ZIP has no text.
    ///
    /// # Errors
    /// Returns the same errors as [`TextInput::whole`].
    pub fn section(
        mut self,
        section: Section,
        most: u64,
    ) -> Result<Option<WholeText>, ImportError> {
        let is_report = bugreport::year(self.head()).is_some();
        if self.kind() != Kind::Zip && !is_report {
            return self.whole(most).map(Some);
        }
        let name = self.name.clone();
        let Some(mut text) = self.text(MAX_REPORT_SIZE)? else {
            return Ok(None);
        };
        let is_report = bugreport::year(text.head()).is_some();
        let mut bytes = Vec::new();
        let limit = most.saturating_add(1);
        let read = match is_report {
            true => SectionReader::new(&mut text, section)
                .take(limit)
                .read_to_end(&mut bytes),
            false => text.by_ref().take(limit).read_to_end(&mut bytes),
        };
        read.map_err(ImportError::unreadable(&name))?;
        if bytes.len() as u64 > most || text.is_cut() {
            let most = ByteSize(most);
            return Err(ImportError::TooLarge { name, most });
        }
        Ok(Some(WholeText {
            bytes: Bytes::from(bytes),
            damage: text.damage(),
            is_section: is_report,
        }))
    }

    /// Returns the whole text, up to `most` bytes. Does not open a ZIP.
    ///
    /// # Errors
    /// Returns the same errors as [`TextInput::text`], and [`ImportError::TooLarge`] if the text
    /// has more than `most` bytes.
    pub fn whole(self, most: u64) -> Result<WholeText, ImportError> {
        let name = &self.name;
        let unreadable = ImportError::unreadable(name);
        let stream = self.origin.into_stream();
        let text = Text::new(name, stream, 0, Rc::default(), u64::MAX)?;
        let mut text = text.unless_nothing_came(name)?;
        let (bytes, failed) = match self.looked_at.depth {
            // An uncompressed text is not larger than the input.
            0 => {
                let mut bytes = Vec::new();
                let mut bounded = text.by_ref().take(most.saturating_add(1));
                bounded.read_to_end(&mut bytes).map_err(unreadable)?;
                if bytes.len() as u64 > most {
                    return Err(ImportError::TooLarge {
                        name: name.clone(),
                        most: ByteSize(most),
                    });
                }
                (Bytes::from(bytes), None)
            }
            _ => {
                let budget = Budget::new(most);
                let mut spool = Spool::new(name, &budget);
                let failed = spool.append(&mut text)?;
                (spool.into_bytes()?, failed)
            }
        };
        Ok(WholeText {
            bytes,
            damage: text.damage().or(failed),
            is_section: false,
        })
    }
}

/// A text that was read as a whole.
pub struct WholeText {
    /// Text, converted from UTF-16 to UTF-8.
    pub bytes: Bytes,
    /// Damage to the compression, if any; `bytes` is the text before it.
    pub damage: Option<String>,
    /// True if it is a section of a bug report; empty if the report lacks it.
    pub is_section: bool,
}

/// An unpacked text. It ends where its compression broke off.
pub struct Text<'a> {
    looked_at: LookedAt,
    flaws: Rc<Flaws>,
    stream: Box<dyn Read + 'a>,
}

/// Damage to the compression of a text, known after the text has been read.
#[derive(Default)]
struct Flaws {
    damage: RefCell<Option<String>>,
    is_cut: Cell<bool>,
}

impl<'a> Text<'a> {
    /// Unpacks a stream that is `depth` layers deep in the input `name`.
    fn new(
        name: &str,
        mut stream: Box<dyn Read + 'a>,
        mut depth: u32,
        flaws: Rc<Flaws>,
        most: u64,
    ) -> Result<Text<'a>, ImportError> {
        let unreadable = ImportError::unreadable(name);
        let mut packing = Kind::Zip;
        let mut head = first(&mut stream, HEAD).map_err(unreadable)?;
        let mut kind = detect(&head);
        while let Some(codec) = codec_at(kind, depth, name)? {
            let packed = Cursor::new(head).chain(stream);
            let packed = BufReader::with_capacity(HEAD, packed);
            let reader = codec.reader(packed).map_err(unreadable)?;
            stream = Box::new(Unpacked::new(reader, codec.name(), &flaws));
            depth += 1;
            packing = kind;
            head = first(&mut stream, HEAD).map_err(unreadable)?;
            kind = detect(&head);
        }
        stream = Box::new(Cursor::new(head.clone()).chain(stream));
        if depth > 0 {
            stream = Box::new(Bounded {
                inner: stream,
                left: most,
                flaws: Rc::clone(&flaws),
            });
        }
        // What is not a text passes unchanged.
        if kind.may_be_text() {
            stream = plain_reader(stream, &head).map_err(unreadable)?;
            if let Cow::Owned(plain) = plain(&head) {
                head = plain;
                // The head can end inside a character of UTF-16.
                if head.ends_with(HALF.as_bytes()) {
                    head.truncate(head.len() - HALF.len());
                }
                kind = detect(&head);
            }
        }
        if head.is_empty() && flaws.damage.borrow().is_some() {
            kind = packing;
        }
        Ok(Text {
            looked_at: LookedAt { kind, head, depth },
            flaws,
            stream,
        })
    }

    fn unless_nothing_came(self, name: &str) -> Result<Text<'a>, ImportError> {
        match self.damage().filter(|_| self.looked_at.head.is_empty()) {
            Some(what) => Err(ImportError::Damaged {
                name: name.to_owned(),
                what,
            }),
            None => Ok(self),
        }
    }

    /// Returns the file type, detected from the first bytes.
    pub fn kind(&self) -> Kind {
        self.looked_at.kind
    }

    /// Returns the first bytes, as [`TextInput::head`] does; reading the text returns them again.
    pub fn head(&self) -> &[u8] {
        &self.looked_at.head
    }

    /// Returns the damage to the compression, if any; known at the end of the text.
    pub fn damage(&self) -> Option<String> {
        self.flaws.damage.borrow().clone()
    }

    /// Returns whether the unpacked text exceeded the limit; known at the end of the text.
    pub fn is_cut(&self) -> bool {
        self.flaws.is_cut.get()
    }
}

impl Read for Text<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.stream.read(out)
    }
}

/// Reads the first bytes of an input: enough to detect its type, packed or not.
fn begin(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut begin = first(input, HEAD)?;
    if Codec::from_kind(detect(&begin)).is_some() {
        begin.extend(first(input, PACKED_HEAD - HEAD)?);
    }
    Ok(begin)
}

fn first(input: &mut impl Read, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(most as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A reader of one unpacked stream. If the stream breaks off, the reader ends and stores the
/// reason.
struct Unpacked<'a> {
    inner: Box<dyn Read + 'a>,
    packing: &'static str,
    size: u64,
    is_torn: bool,
    flaws: Rc<Flaws>,
}

impl<'a> Unpacked<'a> {
    fn new(inner: Box<dyn Read + 'a>, packing: &'static str, flaws: &Rc<Flaws>) -> Self {
        Unpacked {
            inner,
            packing,
            size: 0,
            is_torn: false,
            flaws: Rc::clone(flaws),
        }
    }
}

impl Read for Unpacked<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.is_torn {
            return Ok(0);
        }
        let most = out.len().min(STEP);
        match self.inner.read(&mut out[..most]) {
            Ok(read) => {
                self.size += read as u64;
                Ok(read)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => {
                self.is_torn = true;
                // Keep the first reason: an inner stream ends early because an outer one broke off.
                let mut damage = self.flaws.damage.borrow_mut();
                damage
                    .get_or_insert_with(|| breaks_off(self.packing, self.size, &error.to_string()));
                Ok(0)
            }
        }
    }
}

/// A reader limited to a number of bytes. It records whether more bytes would follow.
struct Bounded<'a> {
    inner: Box<dyn Read + 'a>,
    left: u64,
    flaws: Rc<Flaws>,
}

impl Read for Bounded<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            if !out.is_empty() && !self.flaws.is_cut.get() {
                self.flaws.is_cut.set(self.inner.read(&mut [0])? > 0);
            }
            return Ok(0);
        }
        let read = (&mut self.inner).take(self.left).read(out)?;
        self.left -= read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests;
