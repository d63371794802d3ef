//! Files: stat in both versions, pull, push, refusals and losses.

use super::super::scripted::*;
use super::super::*;
use super::SOON;
use heaptap_base::error::Classified as _;

const PATH: &str = "/data/misc/perfetto-traces/t";

fn sync(features_offered: &str, request: Vec<u8>, answer: impl AsRef<[u8]>) -> Scripted {
    let mut script = service("sync:");
    script.push(Step::Hear(request.len(), Some(request)));
    script.push(say(answer));
    let mut scripts = vec![script];
    if !features_offered.is_empty() {
        scripts.insert(0, features(features_offered));
    }
    Scripted::new(scripts)
}

fn path_request(id: &[u8; 4]) -> Vec<u8> {
    record(id, PATH.len() as u32, PATH.as_bytes())
}

fn sta2(errno: u32, mode: u32, size: u64, mtime: i64) -> Vec<u8> {
    let mut answer = b"STA2".to_vec();
    answer.extend(errno.to_le_bytes());
    answer.extend([0xaa; 16]); // dev, ino
    answer.extend(mode.to_le_bytes());
    answer.extend([0xbb; 12]); // nlink, uid, gid
    answer.extend(size.to_le_bytes());
    answer.extend([0xcc; 8]); // atime
    answer.extend(mtime.to_le_bytes());
    answer.extend([0xdd; 8]); // ctime
    assert_eq!(answer.len(), 72);
    answer
}

#[tokio::test(start_paused = true)]
async fn stat_v2_has_64_bits_and_errors() {
    let big = 6 << 30;
    let script = sync(
        "shell_v2,stat_v2",
        path_request(b"STA2"),
        sta2(0, 0o100644, big, -5),
    );
    let stat = script.phone().stat(PATH, SOON).await.unwrap().unwrap();
    assert_eq!((stat.size, stat.mode, stat.mtime), (big, 0o100644, -5));
    for (errno, absent) in [(2, true), (20, true), (13, false), (40, false), (99, false)] {
        let script = sync("stat_v2", path_request(b"STA2"), sta2(errno, 0, 0, 0));
        match script.phone().stat(PATH, SOON).await {
            Ok(None) => assert!(absent, "{errno}"),
            Err(DeviceError::Refused { text, .. }) => assert!(!absent, "{errno}: {text}"),
            other => panic!("{errno}: {other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn stat_v1_takes_zeros_for_absent() {
    let answer = |mode: u32, size: u32, mtime: u32| {
        [
            b"STAT".to_vec(),
            mode.to_le_bytes().to_vec(),
            size.to_le_bytes().to_vec(),
            mtime.to_le_bytes().to_vec(),
        ]
        .concat()
    };
    let script = sync("cmd", path_request(b"STAT"), answer(0o100600, u32::MAX, 7)).byte_by_byte();
    let stat = script.phone().stat(PATH, SOON).await.unwrap().unwrap();
    assert_eq!(
        stat,
        RemoteStat {
            size: u64::from(u32::MAX),
            mode: 0o100600,
            mtime: 7
        }
    );
    let script = sync("cmd", path_request(b"STAT"), answer(0, 0, 0));
    assert_eq!(script.phone().stat(PATH, SOON).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_stat_cut_anywhere_is_lost_and_a_strange_one_garbled() {
    let answer = sta2(0, 1, 2, 3);
    for end in 0..answer.len() {
        let script = sync("stat_v2", path_request(b"STA2"), &answer[..end]);
        let error = script.phone().stat(PATH, SOON).await.unwrap_err();
        assert!(matches!(error, DeviceError::Lost { .. }), "{end}: {error}");
    }
    let script = sync("stat_v2", path_request(b"STA2"), "\u{1b}[2Jxxxxxxx");
    let error = script.phone().stat(PATH, SOON).await.unwrap_err();
    assert_eq!(error.kind(), "device-garbled", "{error}");
    assert!(!error.to_string().contains('\u{1b}'));
}

async fn pull(script: &Scripted) -> (Result<u64, DeviceError>, Vec<u8>) {
    let mut kept = Vec::new();
    let result = script
        .phone()
        .pull(
            PATH,
            &mut |bytes| {
                kept.extend_from_slice(bytes);
                Ok(())
            },
            SOON,
        )
        .await;
    (result, kept)
}

fn blocks() -> Vec<u8> {
    [
        record(b"DATA", 3, b"abc"),
        record(b"DATA", 0, b""),
        record(b"DATA", 65536, &[7; 65536]),
        record(b"DONE", 0, b""),
    ]
    .concat()
}

#[tokio::test(start_paused = true)]
async fn a_pull_hands_on_every_byte() {
    for script in [
        sync("", path_request(b"RECV"), blocks()),
        sync("", path_request(b"RECV"), blocks()).byte_by_byte(),
    ] {
        let (result, kept) = pull(&script).await;
        assert_eq!(result.unwrap(), 65539);
        assert_eq!(&kept[..3], b"abc");
        assert!(kept.len() == 65539 && kept[3..].iter().all(|&b| b == 7));
        assert_eq!(script.complaints(), Vec::<String>::new());
    }
}

#[tokio::test(start_paused = true)]
async fn a_pull_without_its_done_is_lost_wherever_it_ends() {
    let answer = [
        record(b"DATA", 3, b"abc"),
        record(b"DATA", 2, b"de"),
        record(b"DONE", 0, b""),
    ]
    .concat();
    for end in 0..answer.len() {
        let script = sync("", path_request(b"RECV"), &answer[..end]);
        let (result, _) = pull(&script).await;
        assert!(
            matches!(result, Err(DeviceError::Lost { .. })),
            "{end}: {result:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_pull_has_the_phones_words_also_between_blocks() {
    let text = b"open failed: Permission denied";
    let refusal = record(b"FAIL", text.len() as u32, text);
    for answer in [
        refusal.clone(),
        [record(b"DATA", 1, b"x"), refusal].concat(),
    ] {
        let (result, _) = pull(&sync("", path_request(b"RECV"), answer)).await;
        let error = result.unwrap_err();
        assert_eq!(
            error.to_string(),
            "S refused pull /data/misc/perfetto-traces/t: open failed: Permission denied"
        );
    }
    // The length is wrong and the text is cut: the received part of the text is kept.
    let (result, _) = pull(&sync(
        "",
        path_request(b"RECV"),
        record(b"FAIL", u32::MAX, b"no"),
    ))
    .await;
    assert!(matches!(result, Err(DeviceError::Refused { text, .. }) if text == "no"));
}

#[tokio::test(start_paused = true)]
async fn a_block_beyond_the_protocols_limit_is_garbled() {
    for length in [65537, u32::MAX] {
        let (result, kept) = pull(&sync(
            "",
            path_request(b"RECV"),
            record(b"DATA", length, b"zz"),
        ))
        .await;
        assert!(
            matches!(result, Err(DeviceError::Garbled { .. })),
            "{result:?}"
        );
        assert!(kept.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn empty_blocks_without_end_are_garbled() {
    let blocks = [record(b"DATA", 1, b"x"), record(b"DATA", 0, b"").repeat(17)].concat();
    let (result, kept) = pull(&sync("", path_request(b"RECV"), blocks)).await;
    assert!(
        matches!(result, Err(DeviceError::Garbled { .. })),
        "{result:?}"
    );
    assert_eq!(kept, b"x");
}

#[tokio::test(start_paused = true)]
async fn silence_between_blocks_ends_at_the_stall_limit() {
    let mut script = service("sync:");
    script.push(Step::Hear(path_request(b"RECV").len(), None));
    script.push(say(record(b"DATA", 9, b"half")));
    script.push(Step::Hang);
    let (result, kept) = pull(&Scripted::new([script])).await;
    assert!(
        matches!(result, Err(DeviceError::Deadline { .. })),
        "{result:?}"
    );
    assert_eq!(kept, b"half");
}

#[tokio::test(start_paused = true)]
async fn the_sink_can_end_a_pull() {
    let script = sync("", path_request(b"RECV"), blocks());
    let result = script
        .phone()
        .pull(
            PATH,
            &mut |_| Err(std::io::ErrorKind::StorageFull.into()),
            SOON,
        )
        .await;
    assert!(matches!(result, Err(DeviceError::Sink(_))), "{result:?}");
}

fn push_script(bytes: &[u8], mode: u32, answer: Vec<u8>) -> Scripted {
    let mut script = service("sync:");
    let target = format!("/data/local/tmp/a,b,{mode}");
    let start = record(b"SEND", target.len() as u32, target.as_bytes());
    script.push(Step::Hear(start.len(), Some(start)));
    for block in bytes.chunks(65536) {
        let data = record(b"DATA", block.len() as u32, block);
        script.push(Step::Hear(data.len(), Some(data)));
    }
    script.push(Step::Hear(4, Some(b"DONE".to_vec())));
    script.push(Step::Hear(4, None));
    script.push(say(answer));
    Scripted::new([script])
}

#[tokio::test(start_paused = true)]
async fn a_push_sends_blocks_and_waits_for_okay() {
    let bytes: Vec<u8> = (0..150_000u32).map(|i| (i >> 3) as u8).collect();
    let script = push_script(&bytes, 420, record(b"OKAY", 0, b""));
    script
        .phone()
        .push(&bytes, "/data/local/tmp/a,b", 0o644, SOON)
        .await
        .unwrap();
    assert_eq!(script.complaints(), Vec::<String>::new());
    let script = push_script(b"", 420, b"OKAY\0\0".to_vec());
    let error = script
        .phone()
        .push(b"", "/data/local/tmp/a,b", 0o644, SOON)
        .await
        .unwrap_err();
    assert!(matches!(error, DeviceError::Lost { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_push_refused_early_does_not_wait_for_its_end() {
    let text = b"couldn't create file: Permission denied";
    for hang in [true, false] {
        let mut script = service("sync:");
        script.push(Step::Hear(4, Some(b"SEND".to_vec())));
        script.push(say(record(b"FAIL", text.len() as u32, text)));
        if hang {
            script.push(Step::Hang);
        }
        let script = Scripted::new([script]);
        let error = script
            .phone()
            .push(&vec![1; 4 << 20], "/system/x", 0o644, SOON)
            .await
            .unwrap_err();
        assert!(
            matches!(&error, DeviceError::Refused { text, .. } if text.contains("Permission denied")),
            "{error}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn paths_that_the_protocol_cannot_carry_are_refused() {
    for path in ["/x\0y".to_owned(), "/x".repeat(600)] {
        let script = Scripted::new([service("sync:")]);
        let error = script
            .phone()
            .push(b"", &path, 0o644, SOON)
            .await
            .unwrap_err();
        assert!(matches!(error, DeviceError::Refused { .. }), "{error}");
    }
}
