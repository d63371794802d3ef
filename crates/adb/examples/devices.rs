//! Lists the devices of an adb server and the model of each one that is ready.
//!
//! ```console
//! $ cargo run -p heaptap-adb --example devices
//! ```
//!
//! `-- 127.0.0.1:5038` uses another server, such as that of a virtual phone.
#![allow(clippy::print_stdout, reason = "an example prints")]

use heaptap_adb::{Command, DeviceError, DeviceState, Server};
use std::time::Duration;

const DEADLINE: Duration = Duration::from_secs(5);

async fn devices(server: &Server) -> Result<String, DeviceError> {
    let listed = server.devices().await?;
    let mut text = String::new();
    for line in &listed {
        let mut about = line.state.kind().to_owned();
        if line.state == DeviceState::Device {
            let command = Command::program("getprop").arg("ro.product.model");
            let output = server.device(line, &listed).run(&command, DEADLINE).await?;
            about = String::from_utf8_lossy(&output.stdout)
                .trim_end()
                .to_owned();
        }
        text += &format!("{}\t{about}\n", line.serial);
    }
    Ok(text)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1);
    let server = Server::locate(address.as_deref()).await?;
    print!("{}", devices(&server).await?);
    Ok(())
}

#[cfg(feature = "scripted")]
#[tokio::test]
async fn device_that_is_not_ready_is_listed_with_its_state() {
    use heaptap_adb::scripted::{Scripted, expect, okay_text};

    let list = okay_text("S\toffline\n");
    let script = Scripted::new([vec![expect("host:devices-l"), list]]);
    let text = devices(&script.server()).await.unwrap();
    assert_eq!(text.lines().next(), Some("S\tdevice-offline"));
}
