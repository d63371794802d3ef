//! Commands: both shell services, stdin, exit codes, losses.

use super::super::scripted::*;
use super::super::*;
use super::SOON;

fn v2(answer: &[u8]) -> Vec<Vec<Step>> {
    let mut script = service("shell,v2,raw:id -u");
    script.push(Step::Hear(5, Some(vec![4, 0, 0, 0, 0])));
    script.push(say(answer));
    vec![features("shell_v2,stat_v2"), script]
}

fn id() -> Command {
    Command::program("id").arg("-u")
}

fn whole() -> Vec<u8> {
    [
        packet(1, b"20"),
        packet(2, b"warn"),
        packet(9, b"unknown"),
        packet(1, b""),
        packet(1, b"00\n"),
        packet(3, &[7]),
    ]
    .concat()
}

#[tokio::test(start_paused = true)]
async fn output_comes_apart_by_channel_with_the_exit_code() {
    for script in [
        Scripted::new(v2(&whole())),
        Scripted::new(v2(&whole())).byte_by_byte(),
    ] {
        let output = script.phone().run(&id(), SOON).await.unwrap();
        assert_eq!(output.stdout, b"2000\n");
        assert_eq!(output.stderr, b"warn");
        assert_eq!(output.exit, 7);
        assert_eq!(script.complaints(), Vec::<String>::new());
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_ends_at_any_byte_is_lost() {
    let answer = whole();
    // The last byte is the exit code: without it, the command has no result.
    for end in 0..answer.len() {
        let script = Scripted::new(v2(&answer[..end]));
        let error = script.phone().run(&id(), SOON).await.unwrap_err();
        assert!(matches!(error, DeviceError::Lost { .. }), "{end}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_transport_or_service_is_lost_at_every_byte() {
    let full = [
        (expect("host:transport:S"), b"OKAY"),
        (expect("shell,v2,raw:id -u"), b"OKAY"),
    ];
    for stop in 0..2 {
        for end in 0..4 {
            let mut steps = Vec::new();
            for (i, (request, answer)) in full.iter().enumerate().take(stop + 1) {
                steps.push(request.clone());
                steps.push(say(if i == stop {
                    &answer[..end]
                } else {
                    &answer[..]
                }));
            }
            let script = Scripted::new([features("shell_v2"), steps]);
            let error = script.phone().run(&id(), SOON).await.unwrap_err();
            assert!(matches!(error, DeviceError::Lost { .. }), "{error}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn silence_ends_at_the_deadline() {
    let mut script = v2(b"");
    script[1].push(Step::Hang);
    let script = Scripted::new(script);
    let error = script.phone().run(&id(), SOON).await.unwrap_err();
    assert!(matches!(error, DeviceError::Deadline { after, .. } if after == SOON));
    assert_eq!(error.to_string(), "S did not answer within 3 s (`id -u`)");
}

#[tokio::test(start_paused = true)]
async fn a_length_of_four_gigabytes_costs_nothing() {
    let mut answer = vec![1, 0xff, 0xff, 0xff, 0xff];
    answer.extend(b"some");
    let script = Scripted::new(v2(&answer));
    let error = script.phone().run(&id(), SOON).await.unwrap_err();
    assert!(matches!(error, DeviceError::Lost { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_exit_packet_without_a_code_is_garbled() {
    let script = Scripted::new(v2(&packet(3, b"")));
    let error = script.phone().run(&id(), SOON).await.unwrap_err();
    assert!(matches!(error, DeviceError::Garbled { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn stdin_is_fed_while_output_is_read_and_then_closed() {
    // Larger than the pipe's buffer in both directions: neither side must block the other.
    let stdin: Vec<u8> = (0..200_000u32).map(|i| i as u8).collect();
    let mut script = service("shell,v2,raw:cat");
    for chunk in stdin.chunks(32 * 1024) {
        script.push(say(packet(1, chunk)));
        script.push(Step::Hear(5 + chunk.len(), Some(packet(0, chunk))));
    }
    script.push(Step::Hear(5, Some(packet(4, b""))));
    script.push(say(packet(3, &[0])));
    let script = Scripted::new([features("shell_v2"), script]);
    let output = script
        .phone()
        .run_with_stdin(&Command::program("cat"), &stdin, SOON)
        .await
        .unwrap();
    assert!(output.stdout == stdin);
    assert_eq!(script.complaints(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_command_that_ignores_its_stdin_keeps_its_exit_code() {
    let mut script = service("shell,v2,raw:false");
    script.push(say(packet(3, &[1])));
    let script = Scripted::new([features("shell_v2"), script]);
    let output = script
        .phone()
        .run_with_stdin(&Command::program("false"), &vec![0; 1 << 20], SOON)
        .await
        .unwrap();
    assert_eq!(output.exit, 1);
}

#[tokio::test(start_paused = true)]
async fn a_spawned_command_is_talked_to_and_can_be_left_waiting() {
    let mut script = service("shell,v2,raw:sh");
    script.push(say(packet(1, b"ready\n")));
    script.push(Step::Hear(8, Some(packet(0, b"go\n"))));
    script.push(say(packet(2, b"gone\n")));
    script.push(Step::Hear(5, Some(packet(4, b""))));
    script.push(say(packet(3, &[130])));
    let script = Scripted::new([features("shell_v2"), script]).byte_by_byte();
    let mut shell = script
        .phone()
        .spawn(&Command::program("sh"), SOON)
        .await
        .unwrap();
    let mut out = Vec::new();
    while out != b"ready\n" {
        match shell.next().await.unwrap() {
            ShellEvent::Stdout(bytes) => out.extend(bytes),
            other => panic!("{other:?}"),
        }
    }
    // Nothing more arrives; a canceled `next` loses nothing.
    for _ in 0..3 {
        assert!(tokio::time::timeout(SOON, shell.next()).await.is_err());
    }
    shell.write(b"go\n").await.unwrap();
    let mut err = Vec::new();
    while err != b"gone\n" {
        match shell.next().await.unwrap() {
            ShellEvent::Stderr(bytes) => err.extend(bytes),
            other => panic!("{other:?}"),
        }
    }
    shell.close_stdin().await.unwrap();
    assert_eq!(shell.next().await.unwrap(), ShellEvent::Exit(130));
    assert_eq!(script.complaints(), Vec::<String>::new());
}

/// Runs a command on a device without shell_v2: the script reads the mark from the request.
async fn old_phone(answer: impl Fn(&str) -> String) -> Result<Output, DeviceError> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    struct Old(tokio::sync::Mutex<Vec<tokio::io::DuplexStream>>);
    impl Connect for Old {
        fn connect(&self) -> Connecting<'_> {
            Box::pin(async {
                let stream = self.0.lock().await.pop();
                match stream {
                    Some(stream) => Ok(Box::new(stream) as Box<dyn Stream>),
                    None => Err(std::io::ErrorKind::ConnectionRefused.into()),
                }
            })
        }
        fn address(&self) -> String {
            "old".into()
        }
    }
    let (ours1, mut first) = tokio::io::duplex(64);
    let (ours2, mut second) = tokio::io::duplex(64);
    let listed = parse_list("S\tdevice");
    let server = Server::over(Old(tokio::sync::Mutex::new(vec![ours2, ours1])));
    let phone = server.device(&listed[0], &listed);
    let script = async {
        let mut request = vec![0; 4 + "host-serial:S:features".len()];
        first.read_exact(&mut request).await.unwrap();
        first.write_all(b"OKAY0003cmd").await.unwrap();
        let mut request = vec![0; 4 + "host:transport:S".len()];
        second.read_exact(&mut request).await.unwrap();
        second.write_all(b"OKAY").await.unwrap();
        let mut length = [0; 4];
        second.read_exact(&mut length).await.unwrap();
        let length = usize::from_str_radix(std::str::from_utf8(&length).unwrap(), 16).unwrap();
        let mut request = vec![0; length];
        second.read_exact(&mut request).await.unwrap();
        let request = String::from_utf8(request).unwrap();
        assert!(
            request.starts_with("exec:head -c 3 | (\nwc -c\n) 2>&1\necho heaptap:"),
            "{request}"
        );
        let mark = request
            .rsplit_once("echo ")
            .unwrap()
            .1
            .strip_suffix("$?")
            .unwrap();
        second.write_all(b"OKAY").await.unwrap();
        let mut stdin = [0; 3];
        second.read_exact(&mut stdin).await.unwrap();
        assert_eq!(&stdin, b"abc");
        second.write_all(answer(mark).as_bytes()).await.unwrap();
        drop(second);
    };
    let command = Command::program("wc").arg("-c");
    let run = phone.run_with_stdin(&command, b"abc", SOON);
    let ((), result) = tokio::join!(script, run);
    result
}

#[tokio::test(start_paused = true)]
async fn without_shell_v2_a_printed_line_carries_the_exit_code() {
    let output = old_phone(|mark| format!("3\nheap{mark}42\n"))
        .await
        .unwrap();
    assert_eq!(
        (output.stdout.as_slice(), output.exit),
        (&b"3\nheap"[..], 42)
    );
    for answer in [
        |_: &str| String::new(),
        |_: &str| "3\n".to_owned(),
        |mark: &str| format!("3\n{mark}"),
        |mark: &str| format!("3\n{}0\n", &mark[1..]),
    ] {
        let error = old_phone(answer).await.unwrap_err();
        assert!(matches!(error, DeviceError::Lost { .. }), "{error}");
    }
}
