//! Locks of this process, of killed ones, and of other hosts.

use std::sync::Barrier;

use super::*;

fn store() -> (tempfile::TempDir, Store) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::in_directory(directory.path()).unwrap();
    (directory, store)
}

async fn take(store: &Store, key: &str, limit: u64) -> Result<DeviceLock, Failure> {
    DeviceLock::acquire_key(store, key, key, Duration::from_secs(limit), || {}).await
}

/// An owner on another host.
fn foreign(beat: u64) -> Owner {
    Owner {
        host: "other".to_owned(),
        boot: "another boot".to_owned(),
        pid: 7,
        beat,
        free: false,
    }
}

fn write(directory: &Path, number: u64, owner: &Owner) {
    let devices = directory.join(DIRECTORY);
    std::fs::create_dir_all(&devices).unwrap();
    std::fs::write(devices.join(format!("a.owner-{number}")), owner.text()).unwrap();
}

#[tokio::test]
async fn a_device_is_of_one_scenario_until_it_ends() {
    let (_directory, store) = store();
    let first = take(&store, "a", 0).await.unwrap();
    let second = take(&store, "a", 0).await.unwrap_err();
    let pid = std::process::id().to_string();
    assert_eq!(
        (second.kind, second.class),
        ("device-busy", ErrorClass::Device)
    );
    assert!(second.message.contains(&pid), "{second}");
    take(&store, "b", 0).await.unwrap();
    let frees = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        drop(first);
    };
    let (taken, ()) = tokio::join!(take(&store, "a", 20), frees);
    taken.unwrap();
}

#[tokio::test]
async fn a_killed_process_of_this_host_is_not_waited_for() {
    let (directory, store) = store();
    let dead = Owner {
        pid: 7,
        ..Owner::this_process()
    };
    write(directory.path(), 41, &dead);
    let taken = take(&store, "a", 0).await;
    assert_eq!(taken.is_ok(), cfg!(target_os = "linux"));
}

#[tokio::test(start_paused = true)]
async fn another_host_has_the_device_while_its_beats_come() {
    let (directory, store) = store();
    let path = directory.path().to_owned();
    write(&path, 3, &foreign(0));
    let beats = tokio::spawn(async move {
        for beat in 1..=12 {
            tokio::time::sleep(BEAT).await;
            write(&path, 3, &foreign(beat));
        }
    });
    let busy = take(&store, "a", 45).await.unwrap_err();
    assert!(busy.message.contains("process 7 on other"), "{busy}");
    let began = Instant::now();
    let lock = take(&store, "a", 120).await.unwrap();
    beats.await.unwrap();
    assert!(began.elapsed() >= GONE, "{:?}", began.elapsed());
    drop(lock);
    let began = Instant::now();
    take(&store, "a", 0).await.unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO, "it was released");
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_slept_notices_the_next_one() {
    let (directory, store) = store();
    let lock = take(&store, "a", 0).await.unwrap();
    write(directory.path(), 2, &foreign(0));
    lock.lost().await;
    drop(lock);
    let busy = take(&store, "a", 0).await.unwrap_err();
    assert_eq!(busy.kind, "device-busy");
}

#[tokio::test(start_paused = true)]
async fn a_beat_does_not_overwrite_the_release() {
    let directory = tempfile::tempdir().unwrap();
    let files = Files {
        directory: directory.path().to_owned(),
        key: "a".to_owned(),
    };
    std::fs::write(files.owner(1), "released").unwrap();
    let (lose, _lost) = watch::channel(false);
    let is_over = Arc::new(Mutex::new(true));
    let beats = beat(files.clone(), 1, foreign(0), lose, is_over);
    tokio::time::timeout(2 * BEAT, beats).await.unwrap();
    assert_eq!(std::fs::read(files.owner(1)).unwrap(), b"released");
}

#[test]
fn of_two_hosts_that_take_a_device_at_one_moment_one_has_it_in_200_rounds() {
    let directory = tempfile::tempdir().unwrap();
    let files = Files {
        directory: directory.path().to_owned(),
        key: "a".to_owned(),
    };
    for number in 1..=200 {
        let start = Barrier::new(2);
        let claim = || {
            start.wait();
            files.claim(number, &foreign(0)).unwrap()
        };
        let taken = std::thread::scope(|scope| {
            let both = [scope.spawn(claim), scope.spawn(claim)];
            both.map(|one| one.join().unwrap())
        });
        assert_ne!(taken[0], taken[1], "{number}");
    }
    assert!(!files.claim(190, &foreign(0)).unwrap(), "of a slow process");
    assert_eq!(files.last().unwrap(), 200);
    assert_eq!(files.numbers().unwrap().len(), 2);
}

#[test]
fn a_device_has_one_name_and_emulators_have_several() {
    let at = "10.0.0.2:5037";
    assert_eq!(key("R5", "R5", at), key("10.0.0.7:5555", "R5", "other:1"));
    let shared = "EMULATOR34X1X5X0";
    assert_ne!(
        key("emulator-5554", shared, at),
        key("emulator-5554", shared, "10.0.0.3:5037")
    );
    assert_ne!(key("a", "", at), key("b", "", at));
}
