//! Servers that send arbitrary answers: every operation ends with an error or with the content of
//! the bytes, and stores no more than was sent.

use proptest::prelude::*;

use super::super::scripted::*;
use super::super::*;
use super::SOON;

/// Generates pieces of the protocol and random bytes.
fn speech() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"OKAY".to_vec()),
        Just(b"FAIL".to_vec()),
        Just(b"0004".to_vec()),
        Just(b"ffff".to_vec()),
        Just(b"shell_v2,stat_v2".to_vec()),
        Just(b"STA2".to_vec()),
        Just(b"STAT".to_vec()),
        Just(b"DATA".to_vec()),
        Just(b"DONE".to_vec()),
        Just(vec![0xff; 4]),
        Just(vec![0; 4]),
        Just(vec![3, 0, 0, 1, 0]),
        Just(packet(1, b"out")),
        Just(packet(3, &[0])),
        Just(record(b"DATA", 3, b"abc")),
        proptest::collection::vec(any::<u8>(), 0..90),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// Runs `test` on a paused clock: an operation without an answer reaches its deadline at once.
fn on_paused_clock<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(test)
}

proptest! {
    #[test]
    fn every_operation_ends(
        speeches in proptest::collection::vec(speech(), 4),
        leaves in any::<bool>(),
        slowly in any::<bool>(),
    ) {
        let script = |n: usize| {
            let mut scripts = Vec::new();
            for speech in &speeches[..n] {
                let mut script = vec![say(speech)];
                if !leaves {
                    script.push(Step::Hang);
                }
                scripts.push(script);
            }
            let script = Scripted::new(scripts);
            if slowly { script.byte_by_byte() } else { script }
        };
        on_paused_clock(async {
            let command = Command::program("id");
            if let Ok(output) = script(4).phone().run_with_stdin(&command, b"in", SOON).await {
                let came: usize = speeches[..2].iter().map(Vec::len).sum();
                prop_assert!(output.stdout.len() + output.stderr.len() <= came);
            }
            let _ = script(4).phone().stat("/x", SOON).await;
            let mut kept = 0;
            let pulled = script(4)
                .phone()
                .pull("/x", &mut |bytes| { kept += bytes.len(); Ok(()) }, SOON)
                .await;
            prop_assert!(kept <= speeches[0].len());
            if let Ok(length) = pulled {
                prop_assert_eq!(length, kept as u64);
            }
            let _ = script(4).phone().push(&[7; 3000], "/x", 0o644, SOON).await;
            let _ = script(1).server().version().await;
            let _ = script(1).server().devices().await;
            if let Ok(mut tracker) = script(2).server().track().await {
                while let Ok(Ok(_)) = tokio::time::timeout(SOON, tracker.next()).await {}
            }
            let _ = script(4).phone().wait_ready(SOON).await;
            Ok(())
        })?;
    }
}
