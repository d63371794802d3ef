//! The phone's debugger support: permissions, one connection at a time, and the allocations tracked
//! by a runtime.

#![allow(
    clippy::unwrap_used,
    reason = "an answer that lacks what is looked for fails the test"
)]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use heaptap_capture::jdwp::{Allocations, ChunkType, HANDSHAKE, Packet};
use virtual_phone::VirtualPhone;

use crate::client::{body, connect, phone, text};

fn pid(phone: &VirtualPhone, name: &str) -> u32 {
    text(phone, &format!("pidof {name}"))
        .trim()
        .parse()
        .unwrap()
}

fn debugger(phone: &VirtualPhone, pid: u32) -> Result<TcpStream, String> {
    connect(phone, &format!("jdwp:{pid}"))
}

fn shake(stream: &mut TcpStream) {
    stream.write_all(HANDSHAKE).unwrap();
    let mut said = [0; 14];
    stream.read_exact(&mut said).unwrap();
    assert_eq!(said, *HANDSHAKE);
}

fn tell(stream: &mut TcpStream, kind: ChunkType, data: &[u8]) {
    stream.write_all(&Packet::command(9, kind, data)).unwrap();
}

/// Returns the next packet.
fn packet(stream: &mut TcpStream) -> Packet {
    let mut bytes = vec![0; 4];
    stream.read_exact(&mut bytes).unwrap();
    bytes.resize(Packet::length(&bytes).unwrap() as usize, 0);
    stream.read_exact(&mut bytes[4..]).unwrap();
    Packet::read(&bytes).unwrap()
}

/// Returns the data of the next reply.
fn ask(stream: &mut TcpStream, kind: ChunkType) -> Vec<u8> {
    tell(stream, kind, &[]);
    match packet(stream) {
        Packet::Reply {
            id: 9,
            error: 0,
            chunk: Some(chunk),
        } if chunk.kind == kind => chunk.data,
        other => panic!("{other:?}"),
    }
}

#[test]
fn who_takes_a_debugger_follows_from_build_and_app() {
    for build in ["user", "userdebug"] {
        let phone = phone(&format!("android=11,build={build}"));
        let list = body(&mut connect(&phone, "track-jdwp").unwrap());
        let listed: Vec<u32> = list.lines().map(|pid| pid.parse().unwrap()).collect();
        for (name, on_user) in [
            ("com.example.app", true),
            ("com.example.app:service", true),
            ("com.example.profileable", false),
            ("com.example.closed", false),
        ] {
            let pid = pid(&phone, name);
            let takes = on_user || build == "userdebug";
            assert_eq!(listed.contains(&pid), takes, "{name} on {build}");
            match debugger(&phone, pid) {
                Ok(mut stream) if takes => shake(&mut stream),
                Err(words) if !takes => assert_eq!(words, "closed"),
                other => panic!("{name} on {build}: {other:?}"),
            }
        }
        assert!(!listed.contains(&pid(&phone, "surfaceflinger")));
        assert!(debugger(&phone, 1).is_err());
    }
}

#[test]
fn a_runtime_has_one_debugger_at_a_time() {
    let phone = phone("android=14");
    let pid = pid(&phone, "com.example.app");
    let mut first = debugger(&phone, pid).unwrap();
    shake(&mut first);
    let mut second = debugger(&phone, pid).unwrap();
    second.write_all(HANDSHAKE).unwrap();
    // The first one is served all the time.
    assert_eq!(ask(&mut first, ChunkType::REAQ), [0]);
    drop(first);
    let mut said = [0; 14];
    second.read_exact(&mut said).unwrap();
    assert_eq!(ask(&mut second, ChunkType::REAQ), [0]);
    text(&phone, "am force-stop com.example.app");
    assert_eq!(
        second.read(&mut [0]).unwrap(),
        0,
        "it ends with the process"
    );
}

#[test]
fn what_is_tracked_is_told_as_long_as_it_is_on() {
    let phone = phone("android=11,speed=40");
    let pid = pid(&phone, "com.example.app");
    let mut stream = debugger(&phone, pid).unwrap();
    shake(&mut stream);
    tell(&mut stream, ChunkType(*b"HELO"), &[0, 0, 0, 1]);
    let unasked = packet(&mut stream);
    assert!(
        matches!(&unasked, Packet::Command { chunk: Some(chunk), .. } if chunk.kind == ChunkType(*b"APNM")),
        "{unasked:?}"
    );
    assert!(matches!(packet(&mut stream), Packet::Reply { .. }));
    let read = |stream: &mut TcpStream| {
        let answer = ask(stream, ChunkType::REAL);
        let read = Allocations::read(&answer).unwrap();
        let truth = phone.tracked_truth().pop().unwrap();
        let bytes = |read: &Allocations| {
            read.entries()
                .iter()
                .map(|e| u64::from(e.bytes))
                .sum::<u64>()
        };
        assert_eq!(read.entries().len() as u64, truth.entries);
        assert_eq!(
            bytes(&read),
            truth.sites.values().map(|sums| sums.1).sum::<u64>()
        );
        assert_eq!(read.unread(), 0);
        (read, truth)
    };
    assert_eq!(read(&mut stream).0, Allocations::default(), "nothing yet");
    tell(&mut stream, ChunkType::REAE, &[1]);
    assert_eq!(ask(&mut stream, ChunkType::REAQ), [1]);
    let since = phone.boot_ns();
    while phone.boot_ns() < since + 2_000_000_000 {
        std::thread::yield_now();
    }
    let (some, _) = read(&mut stream);
    assert!(some.entries().len() > 1000, "{}", some.entries().len());
    let string = some
        .entries()
        .iter()
        .find(|e| some.class_of(e) == Some("Ljava/lang/String;"));
    let frames: Vec<_> = some.stack_of(string.unwrap()).collect();
    assert_eq!(frames[0].class, Some("Ljava/lang/StringFactory;"));
    assert_eq!(frames[2].file, Some("FeedAdapter.kt"));
    // The connection can end: the runtime continues tracking, up to its limit.
    drop(stream);
    while phone.boot_ns() < since + 25_000_000_000 {
        std::thread::yield_now();
    }
    let mut stream = debugger(&phone, pid).unwrap();
    shake(&mut stream);
    let (full, truth) = read(&mut stream);
    assert_eq!(full.entries().len(), 65_535);
    assert!(truth.forgotten);
    tell(&mut stream, ChunkType::REAE, &[0]);
    assert_eq!(ask(&mut stream, ChunkType::REAQ), [0]);
    assert_eq!(read(&mut stream).0.entries().len(), 0);
    tell(&mut stream, ChunkType::REAE, &[1]);
    assert_eq!(ask(&mut stream, ChunkType::REAQ), [1]);
    phone.reboot(0);
    assert_eq!(phone.tracking(), [0; 0], "a restart ends it");
}
