//! Host services: versions, lists, tracking, selection; the error for each refusal; reconnecting.

use super::super::scripted::*;
use super::super::*;
use super::SOON;
use heaptap_base::error::{Classified, ErrorClass};

#[tokio::test(start_paused = true)]
async fn version_and_list() {
    let script = Scripted::new([
        vec![expect("host:version"), okay_text("0029")],
        vec![
            expect("host:devices-l"),
            okay_text("S                      device model:M transport_id:1\n"),
        ],
        vec![expect("host:devices-l"), okay_text("")],
    ])
    .byte_by_byte();
    let server = script.server();
    assert_eq!(server.version().await.unwrap(), 41);
    assert_eq!(server.devices().await.unwrap()[0].serial, "S");
    assert!(server.devices().await.unwrap().is_empty());
    assert_eq!(script.complaints(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn what_is_no_adb_server_is_said_to_be_none() {
    for answer in [
        "HTTP/1.1 400 Bad Request\r\n\r\n",
        "OKAYzzzz",
        "OKAY+029",
        "OKAY0004nope",
        "\0\0\0\0\0\0\0\0",
    ] {
        let script = Scripted::new([vec![expect("host:version"), say(answer)]]);
        let error = script.server().version().await.unwrap_err();
        assert_eq!(error.kind(), "not-an-adb-server", "{answer:?}: {error}");
        assert_eq!(error.class(), ErrorClass::NoDevice);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_cut_anywhere_is_lost() {
    let answer = b"OKAY00040029";
    for end in 0..answer.len() {
        let script = Scripted::new([vec![expect("host:version"), say(&answer[..end])]]);
        let error = script.server().version().await.unwrap_err();
        assert_eq!(error.kind(), "adb-server-lost", "{end}: {error}");
    }
    let script = Scripted::new([vec![expect("host:version"), Step::Hang]]);
    let error = script.server().version().await.unwrap_err();
    assert_eq!(error.kind(), "adb-server-silent");
    let script = Scripted::new([vec![expect("host:version"), fail("unknown host service")]]);
    let error = script.server().version().await.unwrap_err();
    assert_eq!(error.kind(), "adb-server-refused");
}

#[tokio::test(start_paused = true)]
async fn every_refusal_of_the_server_has_its_meaning() {
    for (text, kind, class) in [
        ("device 'S' not found", "device-gone", ErrorClass::NoDevice),
        ("device offline", "device-offline", ErrorClass::NoDevice),
        (
            "device unauthorized.\nThis adb server's $ADB_VENDOR_KEYS is not set",
            "device-unauthorized",
            ErrorClass::NoDevice,
        ),
        (
            "device still authorizing",
            "device-authorizing",
            ErrorClass::NoDevice,
        ),
        (
            "device still connecting",
            "device-connecting",
            ErrorClass::NoDevice,
        ),
        (
            "insufficient permissions for device: user in plugdev group",
            "device-no-permissions",
            ErrorClass::NoDevice,
        ),
        (
            "no devices/emulators found",
            "device-gone",
            ErrorClass::NoDevice,
        ),
        // A transport that disappeared while a service was being opened.
        ("closed", "connection-lost", ErrorClass::Device),
        ("", "device-refused", ErrorClass::Device),
    ] {
        let script = Scripted::new([vec![expect("host:transport:S"), fail(text)]]);
        let result = script.phone().pull("/x", &mut |_| Ok(()), SOON).await;
        let error = result.unwrap_err();
        assert_eq!((error.kind(), error.class()), (kind, class), "{text}");
    }
    // A FAIL with a cut text or without a length is still a refusal.
    for answer in ["FAIL", "FAIL00", "FAIL0100half", "FAILzzzz"] {
        let script = Scripted::new([vec![expect("host:transport:S"), say(answer)]]);
        let result = script.phone().pull("/x", &mut |_| Ok(()), SOON).await;
        assert_eq!(result.unwrap_err().kind(), "device-refused", "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_from_before_features_gets_the_oldest_requests() {
    let script = Scripted::new([vec![
        expect("host-serial:S:features"),
        fail("unknown host service"),
    ]]);
    let features = script.phone().features(SOON).await.unwrap();
    assert_eq!(features, Features::default());
    let script = Scripted::new([vec![
        expect("host-serial:S:features"),
        fail("device offline"),
    ]]);
    let error = script.phone().features(SOON).await.unwrap_err();
    assert_eq!(error.kind(), "device-offline");
}

#[tokio::test(start_paused = true)]
async fn nobody_there_is_no_server() {
    let script = Scripted::new([]);
    for error in [
        script.server().version().await.unwrap_err(),
        script.phone().stat("/x", SOON).await.unwrap_err(),
        script.server().ensure_running().await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), "no-adb-server");
        assert!(error.help().is_some() && error.is_connection());
    }
}

#[tokio::test(start_paused = true)]
async fn two_with_one_serial_are_reached_by_transport() {
    let list = "S  device usb:1-1 transport_id:5\nS  device usb:1-2 transport_id:6\n";
    let script = Scripted::new([
        vec![expect("host:devices-l"), okay_text(list)],
        vec![expect("host-transport-id:6:features"), okay_text("stat_v2")],
        vec![expect("host:transport-id:6"), fail("device offline")],
    ]);
    let phone = script
        .server()
        .select(&Selector::parse("transport:6"))
        .await
        .unwrap();
    let error = phone.stat("/x", SOON).await.unwrap_err();
    assert_eq!(error.kind(), "device-offline");
    assert_eq!(script.complaints(), Vec::<String>::new());
}

fn list_update(text: &str) -> Step {
    say(format!("{:04x}{text}", text.len()))
}

#[tokio::test(start_paused = true)]
async fn the_list_is_followed_also_from_old_servers() {
    let script = Scripted::new([
        vec![expect("host:track-devices-l"), fail("unknown host service")],
        vec![
            expect("host:track-devices"),
            say("OKAY"),
            list_update(""),
            list_update("S\tdevice\n"),
        ],
    ])
    .byte_by_byte();
    let mut tracker = script.server().track().await.unwrap();
    // Canceled at any time, it still returns only complete lists.
    let mut lists = Vec::new();
    while lists.len() < 2 {
        if let Ok(list) = tokio::time::timeout(std::time::Duration::ZERO, tracker.next()).await {
            lists.push(list.unwrap());
        }
        tokio::task::yield_now().await;
    }
    assert!(lists[0].is_empty());
    assert_eq!(lists[1][0].serial, "S");
    assert_eq!(tracker.next().await.unwrap_err().kind(), "adb-server-lost");
}

/// Scripts of the connections in which the device `serial` shows that it answers.
fn answers(serial: &str) -> [Vec<Step>; 2] {
    let mut run = vec![
        expect(&format!("host:transport:{serial}")),
        say("OKAY"),
        expect("shell,v2,raw:true"),
        say("OKAY"),
    ];
    run.push(say(packet(3, &[0])));
    let features = vec![
        expect(&format!("host-serial:{serial}:features")),
        okay_text("shell_v2"),
    ];
    [features, run]
}

#[tokio::test(start_paused = true)]
async fn a_phone_that_comes_back_is_ready_again() {
    let mut scripts = vec![vec![
        expect("host:track-devices-l"),
        say("OKAY"),
        list_update(""),
        list_update("S                      offline transport_id:2\n"),
        list_update("S                      device transport_id:2\n"),
        Step::Hang,
    ]];
    scripts.extend(answers("S"));
    let script = Scripted::new(scripts);
    script.phone().wait_ready(SOON).await.unwrap();
    assert_eq!(script.complaints(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_dies_while_waiting_is_asked_again() {
    let listed = || {
        vec![
            expect("host:track-devices-l"),
            say("OKAY"),
            list_update("S\tdevice\n"),
            Step::Hang,
        ]
    };
    let mut scripts = vec![
        vec![expect("host:track-devices-l"), say("OKAY"), list_update("")],
        vec![], // is it there?
        // The list still contains it, but it is gone.
        listed(),
        vec![
            expect("host-serial:S:features"),
            fail("device 'S' not found"),
        ],
        vec![],
        listed(),
    ];
    scripts.extend(answers("S"));
    let script = Scripted::new(scripts);
    script.phone().wait_ready(SOON).await.unwrap();
    assert_eq!(script.complaints(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_phone_that_is_listed_but_silent_is_not_ready() {
    let mut scripts = Vec::new();
    for _ in 0..2 {
        scripts.push(vec![
            expect("host:track-devices-l"),
            say("OKAY"),
            list_update("S\tdevice\n"),
        ]);
        scripts.push(vec![expect("host-serial:S:features"), Step::Hang]);
        scripts.push(vec![]);
    }
    let script = Scripted::new(scripts);
    let limit = std::time::Duration::from_secs(11);
    let error = script.phone().wait_ready(limit).await.unwrap_err();
    assert_eq!(error.kind(), "no-adb-server", "{error}");
}

#[tokio::test(start_paused = true)]
async fn what_stands_in_the_way_is_told_at_the_deadline() {
    for (list, kind) in [
        ("", "device-gone"),
        ("S\tunauthorized\n", "device-unauthorized"),
        ("T\tdevice\n", "device-gone"),
    ] {
        let script = Scripted::new([vec![
            expect("host:track-devices-l"),
            say("OKAY"),
            list_update(list),
            Step::Hang,
        ]]);
        let error = script.phone().wait_ready(SOON).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{list:?}");
    }
    let error = Scripted::new([])
        .phone()
        .wait_ready(SOON)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), "no-adb-server");
}

#[tokio::test(start_paused = true)]
async fn a_network_phone_is_connected_again_until_it_answers() {
    let address = "10.0.0.7:5555";
    let listed = parse_list(&format!("{address}\tdevice"));
    let connect = |answer| vec![expect("host:connect:10.0.0.7:5555"), okay_text(answer)];
    let mut scripts = vec![
        vec![
            expect("host:track-devices-l"),
            say("OKAY"),
            list_update(""),
            Step::After(2),
            list_update(&format!("{address}\tdevice\n")),
            Step::Hang,
        ],
        connect("failed to connect to 10.0.0.7:5555"),
        connect("connected to 10.0.0.7:5555"),
    ];
    scripts.extend(answers(address));
    let script = Scripted::new(scripts);
    let phone = script.server().device(&listed[0], &listed);
    phone.wait_ready(SOON).await.unwrap();
    assert_eq!(script.complaints(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn of_twins_the_one_on_the_same_port_comes_back_with_a_new_transport() {
    let twins = |id| {
        format!(
            "S                      device usb:1-1 transport_id:5\n\
             S                      device usb:1-2 transport_id:{id}\n"
        )
    };
    let script = Scripted::new([
        vec![expect("host:devices-l"), okay_text(&twins(6))],
        vec![
            expect("host:track-devices-l"),
            say("OKAY"),
            list_update("S                      device usb:1-1 transport_id:5\n"),
            list_update(&twins(9)),
            Step::Hang,
        ],
        vec![
            expect("host-transport-id:9:features"),
            okay_text("shell_v2"),
        ],
        vec![
            expect("host:transport-id:9"),
            say("OKAY"),
            expect("shell,v2,raw:true"),
            say("OKAY"),
            say(packet(3, &[0])),
        ],
    ]);
    let server = script.server();
    let phone = server.select(&Selector::Transport(6)).await.unwrap();
    phone.wait_ready(SOON).await.unwrap();
    assert_eq!(script.complaints(), Vec::<String>::new());
}
