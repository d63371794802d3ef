//! The device layer against the virtual phone over TCP: successful operations for every protocol
//! version, and the error for each fault. Scripted servers (crates/adb/src/tests) cut every byte;
//! here the other side is a whole phone with a shell and files.

use std::time::Duration;

use heaptap_adb::{Address, Command, Device, DeviceError, Selector, Server, ShellEvent, Tcp};
use heaptap_base::error::Classified as _;
use virtual_phone::{PhoneSpec, VirtualPhone};

/// Long enough for a busy host; no test waits for it.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time limit that tests reach on purpose.
const SHORT: Duration = Duration::from_millis(200);

const TMP: &str = "/data/local/tmp/a file";

fn start(spec: &str) -> (VirtualPhone, Server) {
    let spec = PhoneSpec::parse(spec).expect("a spec");
    let phone = VirtualPhone::start(spec).expect("a port on loopback");
    let address = Address::new("127.0.0.1", phone.addr().port());
    // With a connector, no real adb is started instead.
    (phone, Server::over(Tcp(address)))
}

async fn choose(server: &Server) -> Device {
    let chosen = server.select(&Selector::Only).await;
    chosen.expect("the phone is ready")
}

fn kind<T: std::fmt::Debug>(result: Result<T, DeviceError>) -> &'static str {
    result.expect_err("a failure").kind()
}

fn bytes(length: u32) -> Vec<u8> {
    (0..length)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect()
}

async fn pull(device: &Device, path: &str, stall: Duration) -> (Result<u64, DeviceError>, Vec<u8>) {
    let mut kept = Vec::new();
    let mut sink = |bytes: &[u8]| {
        kept.extend_from_slice(bytes);
        Ok(())
    };
    let result = device.pull(path, &mut sink, stall).await;
    (result, kept)
}

#[tokio::test]
async fn everything_works_however_the_phone_answers() {
    for spec in [
        "android=14",
        "android=10,build=userdebug",
        "android=14,fault=fragment",
        "android=14,fault=slow@1",
        "android=10,fault=no-stat-v2",
        "android=10,fault=no-shell-v2",
        "android=10,fault=no-shell-v2,fault=no-stat-v2,fault=fragment",
    ] {
        let (_phone, server) = start(spec);
        let v1 = spec.contains("no-shell-v2");
        let device = choose(&server).await;
        let features = device.features(PATIENCE).await.unwrap();
        assert_eq!(features.shell_v2, !v1, "{spec}");
        for code in [0, 1, 3, 255] {
            let script = Command::script("echo out; echo err >&2; exit $1");
            let output = device
                .run(&script.arg(code.to_string()), PATIENCE)
                .await
                .unwrap();
            assert_eq!(i32::from(output.exit), code, "{spec}");
            let text = String::from_utf8([output.stdout.clone(), output.stderr].concat()).unwrap();
            assert_eq!(text, "out\nerr\n", "{spec}");
            assert_eq!(output.stdout == b"out\n", !v1, "{spec}");
        }
        // Bytes of all values, more than any buffer on the path, in both directions.
        let size = if spec.contains("fragment") {
            5_000
        } else {
            300_000
        };
        let data = bytes(size);
        let output = device
            .run_with_stdin(&Command::program("cat"), &data, PATIENCE)
            .await
            .unwrap_or_else(|e| panic!("{spec}: {e}"));
        assert!(output.stdout == data && output.exit == 0, "{spec}");
        device.push(&data, TMP, 0o644, PATIENCE).await.unwrap();
        let stat = device.stat(TMP, PATIENCE).await.unwrap().unwrap();
        assert_eq!(stat.size, u64::from(size), "{spec}");
        let (result, kept) = pull(&device, TMP, PATIENCE).await;
        assert_eq!(result.unwrap(), u64::from(size), "{spec}");
        assert!(kept == data, "{spec}");
        assert_eq!(
            device.stat("/data/local/tmp/none", PATIENCE).await.unwrap(),
            None
        );
        let (result, _) = pull(&device, "/data/local/tmp/none", PATIENCE).await;
        assert_eq!(kind(result), "device-refused", "{spec}");
        let denied = device.push(&data, "/system/x", 0o644, PATIENCE).await;
        assert_eq!(kind(denied), "device-refused", "{spec}");
    }
}

#[tokio::test]
async fn a_shell_that_is_cut_is_lost() {
    let (_phone, server) = start("fault=shell-cut@7");
    let device = choose(&server).await;
    let echo = Command::program("echo").arg("twelve bytes");
    assert_eq!(kind(device.run(&echo, PATIENCE).await), "connection-lost");
    let (_phone, server) = start("fault=no-exit");
    let device = choose(&server).await;
    let result = device.run(&Command::program("true"), PATIENCE).await;
    assert_eq!(kind(result), "connection-lost");
    let (_phone, server) = start("fault=shell-hang");
    let device = choose(&server).await;
    device.features(PATIENCE).await.unwrap();
    assert_eq!(
        kind(device.run(&Command::program("true"), SHORT).await),
        "device-silent"
    );
}

#[tokio::test]
async fn a_server_that_drops_or_hangs_is_no_phone_that_refuses() {
    let (phone, server) = start("android=14");
    let device = choose(&server).await;
    device.features(PATIENCE).await.unwrap();
    for (fault, expected) in [
        ("drop", "connection-lost"),
        ("transport-fail", "device-offline"),
    ] {
        phone
            .faults()
            .add(virtual_phone::Fault::parse(&format!("{fault}#1")).unwrap());
        let result = device.run(&Command::program("true"), PATIENCE).await;
        assert_eq!(kind(result), expected, "{fault}");
        device
            .run(&Command::program("true"), PATIENCE)
            .await
            .unwrap();
    }
    phone
        .faults()
        .add(virtual_phone::Fault::parse("hang").unwrap());
    let result = device.run(&Command::program("true"), SHORT).await;
    assert_eq!(kind(result), "device-silent");
    phone.shutdown();
    // A connection made while the server closes its port is also cut, not refused.
    let ended = loop {
        match kind(device.run(&Command::program("true"), PATIENCE).await) {
            "connection-lost" => {}
            ended => break ended,
        }
    };
    assert_eq!(ended, "no-adb-server");
}

#[tokio::test]
async fn a_pull_says_how_it_failed() {
    let data = bytes(100_000);
    for (fault, expected) in [
        ("pull-cut@1", "connection-lost"),
        ("pull-cut@65536", "connection-lost"),
        ("pull-cut@99999", "connection-lost"),
        ("pull-fail", "device-refused"),
        ("pull-hang@70000", "device-silent"),
    ] {
        let (_phone, server) = start(&format!("fault={fault}"));
        let device = choose(&server).await;
        device.push(&data, TMP, 0o600, PATIENCE).await.unwrap();
        let stall = if fault.contains("hang") {
            SHORT
        } else {
            PATIENCE
        };
        let (result, kept) = pull(&device, TMP, stall).await;
        assert_eq!(kind(result), expected, "{fault}");
        assert!(
            data.starts_with(&kept) && kept.len() < data.len(),
            "{fault}"
        );
    }
    // The protocol does not detect these: the caller compares size and hash.
    let (_phone, server) = start("fault=pull-short@10");
    let device = choose(&server).await;
    device.push(&data, TMP, 0o600, PATIENCE).await.unwrap();
    assert_eq!(pull(&device, TMP, PATIENCE).await.0.unwrap(), 10);

    let (_phone, server) = start("fault=push-fail");
    let device = choose(&server).await;
    let result = device.push(&bytes(4 << 20), TMP, 0o600, PATIENCE).await;
    assert_eq!(kind(result), "device-refused");
}

#[tokio::test]
async fn a_pulled_cable_is_a_loss_and_its_return_is_waited_for() {
    let (phone, server) = start("android=14");
    let device = choose(&server).await;
    let mut shell = device
        .spawn(&Command::program("cat"), PATIENCE)
        .await
        .unwrap();
    shell.write(b"still there\n").await.unwrap();
    assert_eq!(
        shell.next().await.unwrap(),
        ShellEvent::Stdout(b"still there\n".to_vec())
    );
    phone.unplug(0);
    assert!(matches!(shell.next().await, Err(DeviceError::Lost { .. })));
    let gone = device.run(&Command::program("true"), PATIENCE).await;
    assert_eq!(kind(gone), "device-gone");
    assert_eq!(kind(device.wait_ready(SHORT).await), "device-gone");
    let (waited, ()) = tokio::join!(device.wait_ready(PATIENCE), async {
        tokio::task::yield_now().await;
        phone.plug_in(0);
    });
    waited.unwrap();
    device
        .run(&Command::program("true"), PATIENCE)
        .await
        .unwrap();

    let mut tracker = server.track().await.unwrap();
    assert_eq!(tracker.next().await.unwrap().len(), 1);
    phone.unplug(0);
    assert_eq!(tracker.next().await.unwrap().len(), 0);
}

#[tokio::test]
async fn a_phone_that_blinks_or_reboots_comes_back() {
    let (_phone, server) = start("fault=blink@50#1");
    let device = choose(&server).await;
    let blinked = device.run(&Command::program("true"), PATIENCE).await;
    assert!(blinked.is_err_and(|e| e.is_connection()));
    device.wait_ready(PATIENCE).await.unwrap();

    let (phone, server) = start("android=12");
    let device = choose(&server).await;
    let boot_id = Command::program("cat").arg("/proc/sys/kernel/random/boot_id");
    let before = device.run(&boot_id, PATIENCE).await.unwrap();
    let mut shell = device
        .spawn(&Command::program("cat"), PATIENCE)
        .await
        .unwrap();
    phone.reboot(0);
    // The kernel kills the command and then adbd: the exit of the first can still get through.
    match shell.next().await {
        Err(DeviceError::Lost { .. }) | Ok(ShellEvent::Exit(137)) => {}
        other => panic!("{other:?}"),
    }
    device.wait_ready(PATIENCE).await.unwrap();
    let after = device.run(&boot_id, PATIENCE).await.unwrap();
    assert_ne!(before.stdout, after.stdout);
}

#[tokio::test]
async fn many_operations_at_once_keep_to_themselves() {
    let (_phone, server) = start("android=14");
    let device = choose(&server).await;
    let mut running = tokio::task::JoinSet::new();
    for n in 0..100u32 {
        let device = device.clone();
        running.spawn(async move {
            let command = Command::script("cat; echo $1 >&2; exit $1").arg((n % 256).to_string());
            let stdin = bytes(n * 1000);
            let output = device
                .run_with_stdin(&command, &stdin, PATIENCE)
                .await
                .unwrap();
            assert!(output.stdout == stdin);
            assert_eq!(output.stderr, format!("{}\n", n % 256).into_bytes());
            assert_eq!(u32::from(output.exit), n % 256);
        });
    }
    while let Some(done) = running.join_next().await {
        done.unwrap();
    }
}

#[tokio::test]
async fn a_dropped_operation_hangs_up_the_command() {
    let (_phone, server) = start("android=14");
    let device = choose(&server).await;
    let sleeping = Command::program("sleep").arg("98765");
    let given_up = device.run(&sleeping, SHORT).await;
    assert_eq!(kind(given_up), "device-silent");
    // adbd sends it a hang-up at an unspecified time.
    let gone = async {
        loop {
            let ps = Command::program("ps").args(["-A", "-o", "ARGS"]);
            let output = device.run(&ps, PATIENCE).await.unwrap();
            if !String::from_utf8_lossy(&output.stdout).contains("98765") {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, gone)
        .await
        .expect("the command ends");
}
