//! Prints function, file and line of addresses in an ELF file with debug information, like
//! addr2line.
//!
//! ```console
//! $ cargo run -p heaptap-symbols --example symbolize -- fixtures/symbolize/alloc_test 0x12c4
//! ```
#![allow(clippy::print_stdout, reason = "an example prints")]

use heaptap_base::bytes::Bytes;
use heaptap_symbols::symbolize::file::{Alone, FileError, SymbolFile};
use std::num::NonZero;
use std::sync::Arc;

/// `addresses` are link-time addresses in ascending order.
fn symbolize(file: Bytes, addresses: &[u64]) -> Result<String, FileError> {
    let file = SymbolFile::open(file, Arc::new(Alone))?;
    let mut text = String::new();
    file.lookup(addresses, NonZero::<usize>::MIN, &mut |at, lines| {
        for line in lines {
            let (address, function) = (addresses[at], line.function);
            // Without the directory in which the library was compiled.
            let file = line.file.rsplit('/').next().unwrap_or_default();
            text += &format!("{address:#x} {function} {file}:{}\n", line.line);
        }
    });
    Ok(text)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("usage: symbolize ELF ADDRESS...")?;
    let parse = |text: String| u64::from_str_radix(text.trim_start_matches("0x"), 16);
    let mut addresses = args.map(parse).collect::<Result<Vec<_>, _>>()?;
    addresses.sort_unstable();
    print!("{}", symbolize(Bytes::map(path.as_ref())?, &addresses)?);
    Ok(())
}

#[test]
fn address_in_a_function_has_its_line() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fixtures/symbolize/alloc_test"
    );
    let file = Bytes::map(path.as_ref()).unwrap();
    let text = symbolize(file, &[0x12c4]).unwrap();
    assert_eq!(
        text.lines().next(),
        Some("0x12c4 leak_parent alloc_test.c:14")
    );
}
