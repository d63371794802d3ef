//! Texts of a phone (logs, meminfo, mappings), whatever they are packed in. Owns how a file, a pipe
//! or standard input is opened that may be one: its first bytes without consuming them, and then
//! the text as a stream in UTF-8. It comes out of gzip, zstd and xz, and of a ZIP that has one text.
//! What comes out is bounded, and a packing that breaks off is reported after all that came before.

use super::archive::one_text;
use super::codec::{Codec, PACKED_HEAD, breaks_off, codec_at};
use super::detect::{Kind, detect};
use super::spool::{Budget, Spool};
use super::{HEAD, ImportError};
use heaptap_model::bytes::Bytes;
use heaptap_model::units::ByteSize;
use perfetto_heap::Source;
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek as _};
use std::path::Path;
use std::rc::Rc;
use zip::ZipArchive;

/// Standard input, as it is typed.
pub const STDIN: &str = "-";
/// Standard input, as messages call it.
pub const STDIN_NAME: &str = "standard input";

/// Whether a path as it was typed is a folder: `-` is standard input, whatever is called so.
pub fn is_folder(typed: &Path) -> bool {
    typed != Path::new(STDIN) && typed.is_dir()
}

/// Bytes that are asked of a codec at a time. One that fails loses what it had unpacked for that
/// request.
const STEP: usize = 1 << 10;
/// The mark in front of a text in UTF-8.
const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";

/// An input that may be a text. Opening it consumes nothing.
pub struct TextInput<'a> {
    name: String,
    looked_at: LookedAt,
    origin: Origin<'a>,
    /// The ZIP whose member is being read.
    archive: Option<ZipArchive<Box<dyn Source>>>,
}

/// The kind of an input, and its first bytes.
struct LookedAt {
    kind: Kind,
    head: Vec<u8>,
    /// Number of packings around the text.
    depth: u32,
}

impl LookedAt {
    fn of(name: &str, begin: &[u8]) -> Result<LookedAt, ImportError> {
        let text = Text::of(name, Box::new(begin), 0, Rc::default(), u64::MAX)?;
        Ok(text.looked_at)
    }
}

/// Where the bytes come from.
enum Origin<'a> {
    /// A regular file, at its begin.
    File(File),
    /// The bytes that were looked at, and the rest.
    Stream(Vec<u8>, Box<dyn Read + 'a>),
}

impl<'a> Origin<'a> {
    /// Leaves nothing behind.
    fn take(&mut self) -> Origin<'a> {
        std::mem::replace(self, Origin::Stream(Vec::new(), Box::new(io::empty())))
    }

    fn into_stream(self) -> Box<dyn Read + 'a> {
        match self {
            Origin::File(file) => Box::new(file),
            Origin::Stream(begin, rest) => Box::new(Cursor::new(begin).chain(rest)),
        }
    }
}

impl TextInput<'static> {
    /// Opens a path as it was typed: `-` is standard input.
    ///
    /// # Errors
    /// As [`TextInput::open`].
    pub fn typed(path: &Path) -> Result<Self, ImportError> {
        match path == Path::new(STDIN) {
            true => Self::stdin(),
            false => Self::open(path),
        }
    }

    /// Opens standard input.
    ///
    /// # Errors
    /// As [`TextInput::open`].
    pub fn stdin() -> Result<Self, ImportError> {
        Self::of_stream(io::stdin().lock(), STDIN_NAME)
    }

    /// Opens a regular file. `None` if it is none, or cannot be read: a pipe gives its bytes once,
    /// and they are left for its reader.
    pub fn of_regular(path: &Path) -> Option<Self> {
        path.is_file().then(|| Self::open(path).ok()).flatten()
    }

    /// Opens a file or a pipe.
    ///
    /// # Errors
    /// Returns an error if it cannot be read, or is packed deeper than the crate unpacks.
    pub fn open(path: &Path) -> Result<Self, ImportError> {
        let name = path.display().to_string();
        let unreadable = ImportError::unreadable(&name);
        let mut file = File::open(path).map_err(unreadable)?;
        // A pipe gives its bytes once.
        if !file.metadata().map_err(unreadable)?.is_file() {
            return Self::of_stream(file, &name);
        }
        let begin = begin(&mut file).map_err(unreadable)?;
        file.rewind().map_err(unreadable)?;
        let looked_at = LookedAt::of(&name, &begin)?;
        Ok(Self::new(&name, looked_at, Origin::File(file)))
    }
}

impl<'a> TextInput<'a> {
    /// Opens a stream; messages call it `name`.
    ///
    /// # Errors
    /// As [`TextInput::open`].
    pub fn of_stream(mut stream: impl Read + 'a, name: &str) -> Result<Self, ImportError> {
        let begin = begin(&mut stream).map_err(ImportError::unreadable(name))?;
        let looked_at = LookedAt::of(name, &begin)?;
        let origin = Origin::Stream(begin, Box::new(stream));
        Ok(Self::new(name, looked_at, origin))
    }

    fn new(name: &str, looked_at: LookedAt, origin: Origin<'a>) -> Self {
        TextInput {
            name: name.to_owned(),
            looked_at,
            origin,
            archive: None,
        }
    }

    /// Whether the input is a regular file, which can be opened again.
    pub fn is_regular(&self) -> bool {
        matches!(self.origin, Origin::File(_))
    }

    /// The name that messages use.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What comes out of gzip, zstd and xz; the packing itself if nothing comes out of it.
    pub fn kind(&self) -> Kind {
        self.looked_at.kind
    }

    /// The first 64 KiB of that, in UTF-8 if they were in UTF-16.
    pub fn head(&self) -> &[u8] {
        &self.looked_at.head
    }

    /// The bytes as they came, packed or not.
    pub fn into_stream(self) -> Box<dyn Read + 'a> {
        self.origin.into_stream()
    }

    /// The text, once. A ZIP gives the text of a bugreport, or the only text in it; `None` if it
    /// has neither. At most `most` bytes come out of a packing; a plain text is not bounded.
    ///
    /// # Errors
    /// Returns an error if it cannot be read, nothing comes out of its packing, or it is packed
    /// deeper than the crate unpacks.
    pub fn text(&mut self, most: u64) -> Result<Option<Text<'_>>, ImportError> {
        if self.looked_at.kind == Kind::Zip {
            return self.member(most);
        }
        let stream = self.origin.take().into_stream();
        let text = Text::of(&self.name, stream, 0, Rc::default(), most)?;
        text.unless_nothing_came(&self.name).map(Some)
    }

    fn member(&mut self, most: u64) -> Result<Option<Text<'_>>, ImportError> {
        let damaged = |what: String| ImportError::Damaged {
            name: self.name.clone(),
            what,
        };
        let flaws: Rc<Flaws> = Rc::default();
        let source: Box<dyn Source> = match self.origin.take() {
            Origin::File(file) if self.looked_at.depth == 0 => Box::new(file),
            // The list of its members lies at the end of a ZIP.
            origin => {
                let stream = origin.into_stream();
                let zip = Text::of(&self.name, stream, 0, Rc::clone(&flaws), u64::MAX)?;
                let spooled = Spool::new(&self.name, &Budget::new(most)).copy(zip)?;
                match spooled.damage {
                    Some(what) => return Err(damaged(what)),
                    None => spooled.source,
                }
            }
        };
        let archive = ZipArchive::new(source).map_err(|error| {
            // A ZIP of which the end is missing, because a packing around it broke off.
            let around = flaws.damage.borrow_mut().take();
            damaged(around.unwrap_or_else(|| error.to_string()))
        })?;
        let archive = self.archive.insert(archive);
        let Some(at) = one_text(archive) else {
            return Ok(None);
        };
        let member = archive.by_index(at);
        let member = member.map_err(|error| damaged(error.to_string()))?;
        let member = Unpacked::new(Box::new(member), "ZIP", &flaws);
        let text = Text::of(
            &self.name,
            Box::new(member),
            self.looked_at.depth + 1,
            flaws,
            most,
        )?;
        text.unless_nothing_came(&self.name).map(Some)
    }

    /// The text as a whole, up to `most` bytes. A ZIP is not opened.
    ///
    /// # Errors
    /// As [`TextInput::text`]; [`ImportError::TooLarge`] if the text has more bytes.
    pub fn whole(self, most: u64) -> Result<WholeText, ImportError> {
        let name = &self.name;
        let unreadable = ImportError::unreadable(name);
        let stream = self.origin.into_stream();
        let text = Text::of(name, stream, 0, Rc::default(), u64::MAX)?;
        let mut text = text.unless_nothing_came(name)?;
        let (bytes, failed) = match self.looked_at.depth {
            // No larger than the input itself.
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
        })
    }
}

/// A text that was read as a whole.
pub struct WholeText {
    /// The text, in UTF-8 if it was in UTF-16.
    pub bytes: Bytes,
    /// Why its packing broke off, if it did; `bytes` is what came before.
    pub damage: Option<String>,
}

/// A text as it comes out of its packings. If one of them breaks off, the text ends there.
pub struct Text<'a> {
    looked_at: LookedAt,
    flaws: Rc<Flaws>,
    stream: Box<dyn Read + 'a>,
}

/// What is wrong with the packings of a text, known once it has been read.
#[derive(Default)]
struct Flaws {
    damage: RefCell<Option<String>>,
    is_cut: Cell<bool>,
}

impl<'a> Text<'a> {
    /// Unpacks a stream that lies `depth` packings deep in the input `name`.
    fn of(
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
        if head.starts_with(UTF8_MARK) {
            let mark = UTF8_MARK.len();
            io::copy(&mut (&mut stream).take(mark as u64), &mut io::sink()).map_err(unreadable)?;
            head.drain(..mark);
            kind = detect(&head);
        } else if let Some(unit) = utf16(&head) {
            let mut narrow = Vec::new();
            let mut wide = Narrow::new(&head[..], unit);
            wide.read_to_end(&mut narrow).map_err(unreadable)?;
            // The head may end inside a character.
            if narrow.ends_with(HALF.as_bytes()) {
                narrow.truncate(narrow.len() - HALF.len());
            }
            head = narrow;
            stream = Box::new(Narrow::new(stream, unit));
            kind = detect(&head);
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

    /// What it is, by its first bytes.
    pub fn kind(&self) -> Kind {
        self.looked_at.kind
    }

    /// The first bytes, as [`TextInput::head`]; reading the text gives them again.
    pub fn head(&self) -> &[u8] {
        &self.looked_at.head
    }

    /// Why its packing broke off, if it did; known at the end.
    pub fn damage(&self) -> Option<String> {
        self.flaws.damage.borrow().clone()
    }

    /// Whether more came out of its packing than was wanted; known at the end.
    pub fn is_cut(&self) -> bool {
        self.flaws.is_cut.get()
    }
}

impl Read for Text<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.stream.read(out)
    }
}

/// The first bytes of an input: enough to tell what is in it, packed or not.
fn begin(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut begin = first(input, HEAD)?;
    if Codec::of(detect(&begin)).is_some() {
        begin.extend(first(input, PACKED_HEAD - HEAD)?);
    }
    Ok(begin)
}

fn first(input: &mut impl Read, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(most as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What comes out of one packing. If it breaks off, this ends and the reason is noted.
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
                // The end of an inner packing is missing because an outer one broke off.
                let mut damage = self.flaws.damage.borrow_mut();
                damage
                    .get_or_insert_with(|| breaks_off(self.packing, self.size, &error.to_string()));
                Ok(0)
            }
        }
    }
}

/// So much of a stream; if more would come, that is noted.
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

type Unit = fn([u8; 2]) -> u16;

/// What half a character becomes.
const HALF: &str = "\u{fffd}";

/// How two bytes become a unit, of a text that begins with the mark of UTF-16.
fn utf16(head: &[u8]) -> Option<Unit> {
    match head {
        [0xff, 0xfe, ..] => Some(u16::from_le_bytes),
        [0xfe, 0xff, ..] => Some(u16::from_be_bytes),
        _ => None,
    }
}

/// UTF-16 as UTF-8.
struct Narrow<R> {
    inner: R,
    unit: Unit,
    /// The first half of a character of two units.
    half: Option<u16>,
    ready: Vec<u8>,
    at: usize,
}

impl<R: Read> Narrow<R> {
    fn new(inner: R, unit: Unit) -> Self {
        Narrow {
            inner,
            unit,
            half: None,
            ready: Vec::new(),
            at: 0,
        }
    }
}

impl<R: Read> Read for Narrow<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.at == self.ready.len() {
            let bytes = first(&mut self.inner, 8192)?;
            self.ready.clear();
            self.at = 0;
            if bytes.is_empty() {
                if self.half.take().is_none() {
                    return Ok(0);
                }
                self.ready.extend(HALF.as_bytes());
                continue;
            }
            let units = bytes
                .chunks_exact(2)
                .map(|pair| (self.unit)([pair[0], pair[1]]));
            let mut units: Vec<u16> = self.half.take().into_iter().chain(units).collect();
            if units
                .last()
                .is_some_and(|unit| (0xd800..0xdc00).contains(unit))
            {
                self.half = units.pop();
            }
            let mut text = String::with_capacity(bytes.len());
            for c in char::decode_utf16(units) {
                match c {
                    Ok('\u{feff}') => {}
                    Ok(c) => text.push(c),
                    Err(_) => text.push(char::REPLACEMENT_CHARACTER),
                }
            }
            // Only the last bytes are odd.
            if bytes.len() % 2 == 1 {
                text.push(char::REPLACEMENT_CHARACTER);
            }
            self.ready = text.into_bytes();
        }
        let some = &self.ready[self.at..];
        let count = some.len().min(out.len());
        out[..count].copy_from_slice(&some[..count]);
        self.at += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
