//! Transfer of a library from the device into a cache file: a whole file by the sync service; from
//! an APK only the library's own bytes, read by `dd`, otherwise the whole APK.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::time::Duration;

use tokio::time::timeout;

use heaptap_adb::{Command, Device, DeviceError, ShellEvent};

/// Time without data after which the device counts as disconnected.
pub(super) const STALL: Duration = Duration::from_secs(20);
/// Block size of `dd`; libraries in an APK start at a multiple of it.
const PAGE: u64 = 4096;
/// Maximum size of a library in its headers; larger ones are damaged.
const MAX_SIZE: u64 = 4 << 30;

/// Error of a transfer.
#[derive(Debug)]
pub(super) enum Failed {
    /// The device or the connection failed.
    Device(DeviceError),
    /// This host.
    Host(io::Error),
    /// It exceeds the limit.
    TooLarge(u64),
    /// It changed after the previous check.
    Changed,
    /// The file is not a library.
    Damaged(String),
    /// The device cannot read parts of files.
    NoDd,
}

impl From<DeviceError> for Failed {
    fn from(error: DeviceError) -> Failed {
        Failed::Device(error)
    }
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Failed {
        Failed::Host(error)
    }
}

/// Fetches the file at `path`, which has at most `most` bytes.
pub(super) async fn fetch_whole(
    device: &Device,
    path: &str,
    most: u64,
    file: &mut File,
) -> Result<u64, Failed> {
    let mut received = 0;
    let mut grown = false;
    let mut sink = |bytes: &[u8]| {
        received += bytes.len() as u64;
        if received > most {
            grown = true;
            return Err(io::Error::other("the file grew"));
        }
        file.write_all(bytes)
    };
    match device.pull(path, &mut sink, STALL).await {
        Ok(bytes) => Ok(bytes),
        Err(_) if grown => Err(Failed::Changed),
        Err(error) => Err(error.into()),
    }
}

/// Fetches the library that starts at `start` of the APK, at most `most` bytes.
pub(super) async fn fetch_from_apk(
    device: &Device,
    apk: &str,
    start: u64,
    most: u64,
    file: &mut File,
) -> Result<u64, Failed> {
    // Without shell v2, the messages of dd would be mixed with the bytes.
    if start.is_multiple_of(PAGE) && device.features(STALL).await?.shell_v2 {
        match fetch_part(device, apk, start, most, file).await {
            Err(Failed::NoDd) => {}
            other => return other,
        }
    }
    let mut whole = tempfile::tempfile()?;
    let bytes = fetch_whole(device, apk, most, &mut whole).await?;
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    unpack(whole, start, most, file)?;
    Ok(bytes)
}

/// Copies the member whose data starts at `start`; mapped members are not compressed.
fn unpack(apk: File, start: u64, most: u64, file: &mut File) -> Result<(), Failed> {
    let damaged = |error: zip::result::ZipError| Failed::Damaged(error.to_string());
    let mut archive = zip::ZipArchive::new(io::BufReader::new(apk)).map_err(damaged)?;
    for at in 0..archive.len() {
        let member = archive.by_index(at).map_err(damaged)?;
        if member.data_start() == Some(start)
            && member.compression() == zip::CompressionMethod::Stored
        {
            io::copy(&mut member.take(most), file)?;
            return Ok(());
        }
    }
    Err(Failed::Damaged(
        "the APK contains nothing at that offset".to_owned(),
    ))
}

async fn fetch_part(
    device: &Device,
    apk: &str,
    start: u64,
    most: u64,
    file: &mut File,
) -> Result<u64, Failed> {
    let mut got = read_pages(device, apk, start, PAGE, file).await?;
    // The section headers contain the end of the last section, which can come after them.
    for _ in 0..2 {
        let size = elf_size(file)?;
        if size > most {
            return Err(Failed::TooLarge(size));
        }
        if size <= got {
            break;
        }
        let more = (size - got).next_multiple_of(PAGE);
        let came = read_pages(device, apk, start + got, more, file).await?;
        got += came;
        if got < size {
            return Err(Failed::Damaged("the APK ends within it".to_owned()));
        }
    }
    // The following bytes of the APK do not belong to the library.
    let size = elf_size(file)?;
    file.set_len(size.min(got))?;
    Ok(got)
}

/// Appends pages of a file on the device; returns the number of bytes.
async fn read_pages(
    device: &Device,
    path: &str,
    start: u64,
    bytes: u64,
    file: &mut File,
) -> Result<u64, Failed> {
    let command = Command::program("dd")
        .arg(format!("if={path}"))
        .arg(format!("bs={PAGE}"))
        .arg(format!("skip={}", start / PAGE))
        .arg(format!("count={}", bytes / PAGE))
        .called("reading a library from an APK");
    let silent = || DeviceError::Deadline {
        serial: device.serial().to_owned(),
        what: command.what(),
        after: STALL,
    };
    let mut shell = device.spawn(&command, STALL).await?;
    let mut came = 0u64;
    let mut said = Vec::new();
    file.seek(SeekFrom::End(0))?;
    loop {
        let event = timeout(STALL, shell.next()).await.map_err(|_| silent())?;
        match event? {
            ShellEvent::Stdout(block) => {
                came += block.len() as u64;
                if came > bytes {
                    return Err(Failed::Damaged(
                        "dd returned more than requested".to_owned(),
                    ));
                }
                file.write_all(&block)?;
            }
            ShellEvent::Stderr(text) => {
                said.extend_from_slice(&text[..text.len().min(1024)]);
                said.truncate(1024);
            }
            ShellEvent::Exit(0) => return Ok(came),
            // Exit codes of shells for a missing program.
            ShellEvent::Exit(126 | 127) => return Err(Failed::NoDd),
            ShellEvent::Exit(_) => {
                let said = String::from_utf8_lossy(&said);
                let text = said.trim().replace(|c: char| c.is_control(), " ");
                return Err(Failed::Device(DeviceError::Refused {
                    serial: device.serial().to_owned(),
                    what: command.what(),
                    text,
                }));
            }
        }
    }
}

/// Returns the end of an ELF file according to its bytes in `file`: after its headers, its
/// segments, its section headers, and its sections if their headers are already present.
fn elf_size(file: &mut File) -> Result<u64, Failed> {
    let not_elf = || Failed::Damaged("no ELF file starts at that offset".to_owned());
    let mut header = [0u8; 64];
    file.seek(SeekFrom::Start(0))?;
    file.read_exact(&mut header).map_err(|_| not_elf())?;
    let is_64 = match &header[..6] {
        b"\x7fELF\x02\x01" => true,
        b"\x7fELF\x01\x01" => false,
        _ => return Err(not_elf()),
    };
    let fields = if is_64 { &FIELDS_64 } else { &FIELDS_32 };
    let at = |field: Field| field.read(&header);
    let (segments, sections) = (at(fields.phoff), at(fields.shoff));
    let segments_size = at(fields.phnum) * at(fields.phentsize);
    let sections_size = at(fields.shnum) * at(fields.shentsize);
    let mut end = 64u64
        .max(segments.saturating_add(segments_size))
        .max(sections.saturating_add(sections_size));
    let length = file.metadata()?.len();
    let mut table = |start: u64, size: u64, each: u64, extent: fn(&Fields, &[u8]) -> u64| {
        if each == 0 || start.saturating_add(size) > length {
            return Ok::<u64, io::Error>(0);
        }
        let mut bytes = vec![0; size as usize];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut bytes)?;
        let entries = bytes.chunks_exact(each as usize);
        Ok(entries
            .map(|entry| extent(fields, entry))
            .max()
            .unwrap_or(0))
    };
    end = end
        .max(table(
            segments,
            segments_size,
            at(fields.phentsize),
            |f, entry| {
                f.p_offset
                    .read(entry)
                    .saturating_add(f.p_filesz.read(entry))
            },
        )?)
        .max(table(
            sections,
            sections_size,
            at(fields.shentsize),
            |f, entry| {
                // SHT_NOBITS has no data in the file.
                match f.sh_type.read(entry) {
                    8 => 0,
                    _ => f
                        .sh_offset
                        .read(entry)
                        .saturating_add(f.sh_size.read(entry)),
                }
            },
        )?);
    match end > MAX_SIZE {
        true => Err(Failed::Damaged(
            "its headers claim more than 4 GiB".to_owned(),
        )),
        false => Ok(end),
    }
}

/// A little-endian number in a header: offset and size in bytes.
#[derive(Debug, Clone, Copy)]
struct Field(usize, usize);

impl Field {
    /// Returns its value; 0 if the header is shorter.
    fn read(self, bytes: &[u8]) -> u64 {
        let mut value = [0; 8];
        match bytes.get(self.0..self.0 + self.1) {
            Some(found) => value[..self.1].copy_from_slice(found),
            None => return 0,
        }
        u64::from_le_bytes(value)
    }
}

/// Positions of numbers in the headers of an ELF class.
struct Fields {
    phoff: Field,
    shoff: Field,
    phentsize: Field,
    phnum: Field,
    shentsize: Field,
    shnum: Field,
    p_offset: Field,
    p_filesz: Field,
    sh_type: Field,
    sh_offset: Field,
    sh_size: Field,
}

const FIELDS_64: Fields = Fields {
    phoff: Field(0x20, 8),
    shoff: Field(0x28, 8),
    phentsize: Field(0x36, 2),
    phnum: Field(0x38, 2),
    shentsize: Field(0x3a, 2),
    shnum: Field(0x3c, 2),
    p_offset: Field(0x08, 8),
    p_filesz: Field(0x20, 8),
    sh_type: Field(0x04, 4),
    sh_offset: Field(0x18, 8),
    sh_size: Field(0x20, 8),
};

const FIELDS_32: Fields = Fields {
    phoff: Field(0x1c, 4),
    shoff: Field(0x20, 4),
    phentsize: Field(0x2a, 2),
    phnum: Field(0x2c, 2),
    shentsize: Field(0x2e, 2),
    shnum: Field(0x30, 2),
    p_offset: Field(0x04, 4),
    p_filesz: Field(0x10, 4),
    sh_type: Field(0x04, 4),
    sh_offset: Field(0x10, 4),
    sh_size: Field(0x14, 4),
};
