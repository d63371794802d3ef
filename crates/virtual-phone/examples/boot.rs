//! Boots a virtual phone, prints the address of its adb server, and serves until adb ends it.
//!
//! ```console
//! $ cargo run -p virtual-phone --example boot -- android=12,killable=yes
//! ```
#![allow(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use virtual_phone::{PhoneSpec, VirtualPhone};

fn boot(spec: &str) -> Result<(VirtualPhone, String), Box<dyn Error>> {
    let phone = VirtualPhone::start(PhoneSpec::parse(spec)?)?;
    let port = phone.addr().port();
    let serials = phone.serials().join(", ");
    let text = format!(
        "{serials} at {}\ntry: adb -P {port} shell ps -A\n",
        phone.addr()
    );
    Ok((phone, text))
}

fn main() -> Result<(), Box<dyn Error>> {
    let spec = std::env::args().nth(1).unwrap_or_default();
    let (phone, text) = boot(&spec)?;
    print!("{text}");
    phone.wait();
    Ok(())
}

#[test]
fn booted_phone_has_an_address() {
    let (phone, text) = boot("android=12,serial=lab").unwrap();
    assert!(text.starts_with("lab at 127.0.0.1:"), "{text}");
    assert!(phone.has_file("/system/bin/sh"));
}
