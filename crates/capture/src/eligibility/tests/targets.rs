//! Tests of target resolution and of the findings about absent targets. The shell calls are
//! left out: everything here is pure.

use crate::config::Targets;
use crate::eligibility::assess::build_assessment;
use crate::eligibility::assessment::{AssessOptions, Assessment, Startup};
use crate::eligibility::decide::Answer;
use crate::eligibility::facts::{BuildType, DeviceFacts, Selinux};
use crate::eligibility::finding::{FindingId as F, Scope};
use crate::eligibility::matching::{Snapshot, list_targets};
use crate::eligibility::packages::{AppType, read_list};
use crate::eligibility::processes::read_ps;
use heaptap_base::error::ErrorClass;

const PS: &[u8] = b"PID PPID UID S NAME\n\
    1 0 0 S init\n\
    502 1 1000 S surfaceflinger\n\
    503 1 1000 S hal.a@1.0-service\n\
    504 1 1000 S hal.a@2.0-service\n\
    700 1 0 S zygote64\n\
    900 700 1000 S system_server\n\
    1000 700 10234 S com.example.app\n\
    1001 700 10234 S com.example.app:service\n\
    1002 700 10234 S own.name\n\
    1003 700 99001 S com.example.app:iso:C:0\n\
    1004 700 20234 S com.example.app_sdk_sandbox\n\
    1010 700 10237 S com.example.closed\n\
    1020 700 10241 S com.example.chat\n\
    1021 700 1010241 S com.example.chat\n\
    1030 700 10250 S com.shared.a\n\
    1031 700 10250 S com.shared.b\n\
    1040 700 10260 Z com.zombie\n";

const PACKAGES: &[u8] = b"package:com.example.app uid:10234\n\
    package:com.example.closed uid:10237\n\
    package:com.example.chat uid:10241\n\
    package:com.example.idle uid:10238\n\
    package:com.shared.a uid:10250\n\
    package:com.shared.b uid:10250\n\
    package:com.zombie uid:10260\n";

fn facts(build: BuildType) -> DeviceFacts {
    let mut d = DeviceFacts::read("S", b"");
    d.sdk = Some(34);
    d.build_type = Some(build);
    d.selinux = Some(Selinux::Enforcing);
    d.abis = vec!["arm64-v8a".into()];
    d
}

fn snapshot() -> Snapshot {
    let mut packages = read_list(PACKAGES);
    for p in &mut packages {
        p.app_type = Some(match p.name.as_str() {
            "com.example.closed" => AppType::Closed,
            _ => AppType::Debuggable,
        });
    }
    Snapshot {
        processes: read_ps(PS, Some(true)),
        packages: Some(packages),
    }
}

pub(super) fn names(names: &[&str]) -> Targets {
    Targets {
        names: names.iter().map(|n| (*n).to_owned()).collect(),
        ..Targets::default()
    }
}

fn assess(build: BuildType, targets: &Targets, options: &AssessOptions) -> Assessment {
    let specs = list_targets(targets);
    build_assessment(&facts(build), &specs, &snapshot(), options)
}

fn of_package(package: &str) -> Targets {
    Targets {
        packages: vec![package.to_owned()],
        ..Targets::default()
    }
}

fn ids(a: &Assessment) -> Vec<F> {
    a.findings(Scope::Both).iter().map(|(_, f)| f.id).collect()
}

#[test]
fn a_pattern_leaves_out_the_commands_that_list_processes() {
    let with = |rows: &[u8], name: &str| {
        let processes = read_ps(&[PS, rows].concat(), Some(true));
        let packages = snapshot().packages;
        let snapshot = Snapshot {
            processes,
            packages,
        };
        let specs = list_targets(&names(&[name]));
        let options = AssessOptions::default();
        build_assessment(&facts(BuildType::Userdebug), &specs, &snapshot, &options)
    };
    let shell = b"2000 1 2000 S sh\n2001 2000 2000 R ps\n2002 1 0 S sh\n2003 1 0 R ps\n\
        2004 1 2000 S own\n";
    let found = |a: &Assessment| -> Vec<u32> {
        let pids = a.targets[0].processes.iter().map(|p| p.process.pid);
        pids.filter(|pid| *pid >= 2000).collect()
    };
    assert_eq!(found(&with(shell, "*")), [2002, 2004]);
    assert_eq!(found(&with(shell, "sh")), [2000, 2002]);
}

#[test]
fn an_exact_name_stays_and_tells_what_it_leaves_out() {
    let a = assess(
        BuildType::User,
        &names(&["com.example.app"]),
        &AssessOptions::default(),
    );
    assert_eq!(a.resolved, names(&["com.example.app"]));
    let t = &a.targets[0];
    assert_eq!((t.native, t.processes.len()), (Answer::Yes, 1));
    assert_eq!(t.processes[0].package.as_deref(), Some("com.example.app"));
    let f = &t.findings[0];
    assert_eq!(f.id, F::Subproc);
    assert_eq!(
        f.what,
        "com.example.app also runs com.example.app:service, own.name"
    );
    assert!(
        f.fix
            .as_deref()
            .is_some_and(|x| x.contains("--package com.example.app"))
    );
    assert!(a.all_eligible(Scope::Native) && a.refusal(Scope::Native).is_none());
}

#[test]
fn a_pattern_becomes_the_names_it_matches() {
    let a = assess(
        BuildType::User,
        &names(&["com.example.app*"]),
        &AssessOptions::default(),
    );
    assert_eq!(
        a.resolved.names,
        [
            "com.example.app",
            "com.example.app:service",
            "com.example.app:iso:C:0",
            "com.example.app_sdk_sandbox"
        ]
    );
    assert!(a.resolved.pids.is_empty());
    assert!(!a.all_eligible(Scope::Native), "the isolated one is not");
    assert!(a.refusal(Scope::Native).is_none(), "the others are");
}

#[test]
fn a_name_that_would_match_more_becomes_a_pid() {
    // heapprofd cuts both at the `@`: the name alone would record both.
    let a = assess(
        BuildType::Userdebug,
        &names(&["*a@2.0*"]),
        &AssessOptions::default(),
    );
    assert_eq!(
        (a.resolved.names.len(), &a.resolved.pids[..]),
        (0, &[504][..])
    );
    let both = assess(
        BuildType::Userdebug,
        &names(&["hal.a@1.0-service"]),
        &AssessOptions::default(),
    );
    assert_eq!(both.targets[0].processes.len(), 2);
    // One user of two.
    let user = AssessOptions {
        user: Some(10),
        ..AssessOptions::default()
    };
    let a = assess(BuildType::User, &names(&["com.example.chat"]), &user);
    assert_eq!(
        (a.resolved.names.len(), &a.resolved.pids[..]),
        (0, &[1021][..])
    );
    let a = assess(
        BuildType::User,
        &names(&["com.example.chat"]),
        &AssessOptions::default(),
    );
    assert_eq!(ids(&a), [F::OtherUser]);
}

#[test]
fn a_package_is_all_its_processes_that_may_be_profiled() {
    let a = assess(
        BuildType::User,
        &of_package("com.example.app"),
        &AssessOptions::default(),
    );
    let pids: Vec<u32> = a.targets[0]
        .processes
        .iter()
        .map(|p| p.process.pid)
        .collect();
    assert_eq!(pids, [1000, 1001, 1002, 1003, 1004]);
    assert_eq!(
        a.resolved.names,
        [
            "com.example.app",
            "com.example.app:service",
            "own.name",
            "com.example.app_sdk_sandbox"
        ]
    );
    let a = assess(
        BuildType::Userdebug,
        &of_package("com.example.app"),
        &AssessOptions::default(),
    );
    assert!(
        a.resolved
            .names
            .contains(&"com.example.app:iso:C:0".to_owned())
    );
    // A process named after another package does not belong to this one, despite the UID.
    let a = assess(
        BuildType::User,
        &of_package("com.shared.a"),
        &AssessOptions::default(),
    );
    assert_eq!(a.resolved.names, ["com.shared.a"]);
}

#[test]
fn pids_are_taken_as_they_are_and_missed_when_gone() {
    let targets = Targets {
        pids: vec![1010, 4],
        ..Targets::default()
    };
    let a = assess(BuildType::User, &targets, &AssessOptions::default());
    assert_eq!(a.resolved.pids, [1010, 4]);
    assert_eq!(ids(&a), [F::UserRelease, F::NotRunning]);
    let refusal = a.refusal(Scope::Native).expect("none may be profiled");
    assert_eq!(refusal.class, ErrorClass::NotEligible);
    assert_eq!(refusal.kind, "not-eligible");
    assert!(
        refusal
            .help
            .is_some_and(|h| h.contains("profileable") && h.contains("--no-check"))
    );
}

#[test]
fn what_does_not_run_waits_for_its_start_unless_told_otherwise() {
    let with = |startup| AssessOptions {
        startup,
        ..AssessOptions::default()
    };
    let idle = names(&["com.example.idle"]);
    for (startup, native) in [
        (Startup::Allowed, Answer::OnlyFromStartup),
        (Startup::Asked, Answer::OnlyFromStartup),
        (Startup::Off, Answer::No),
    ] {
        let a = assess(BuildType::User, &idle, &with(startup));
        assert_eq!(a.targets[0].native, native, "{startup:?}");
        assert_eq!(a.targets[0].java, Answer::OnceRunning);
        assert_eq!(ids(&a), [F::NotRunning]);
        assert_eq!(a.refusal(Scope::Native).is_some(), native == Answer::No);
    }
    // A zombie is not running.
    let a = assess(
        BuildType::User,
        &names(&["com.zombie"]),
        &with(Startup::Allowed),
    );
    assert_eq!(a.targets[0].native, Answer::OnlyFromStartup);
}

#[test]
fn a_mistyped_name_gets_similar_ones_and_is_refused() {
    let with = |startup| AssessOptions {
        startup,
        ..AssessOptions::default()
    };
    let typo = names(&["com.exmaple.app"]);
    let a = assess(BuildType::User, &typo, &with(Startup::Allowed));
    let f = &a.targets[0].findings[0];
    assert_eq!((f.id, a.targets[0].found), (F::NotInstalled, false));
    assert!(
        f.fix
            .as_deref()
            .is_some_and(|x| x.contains("com.example.app")),
        "{f:?}"
    );
    let refusal = a.refusal(Scope::Native).expect("it is not installed");
    assert_eq!(refusal.kind, "target-not-found");
    let offers = refusal
        .help
        .as_ref()
        .map(|help| help.contains("--no-check"));
    assert_eq!(offers, Some(false), "it would not help: {refusal}");
    // A manifest can name processes freely: with startup requested it might still appear.
    let a = assess(BuildType::User, &typo, &with(Startup::Asked));
    assert_eq!(a.targets[0].native, Answer::Unknown);
    assert!(a.refusal(Scope::Native).is_none());
    // A native program: never on a user build, from its start on others.
    let tool = names(&["mytool"]);
    let a = assess(BuildType::User, &tool, &with(Startup::Asked));
    assert_eq!(a.targets[0].native, Answer::No);
    let a = assess(BuildType::Userdebug, &tool, &with(Startup::Allowed));
    assert_eq!(a.targets[0].native, Answer::OnlyFromStartup);
    // A pattern without a match has nothing to wait for.
    let a = assess(
        BuildType::Userdebug,
        &names(&["nothing*"]),
        &with(Startup::Allowed),
    );
    assert!(a.refusal(Scope::Native).is_some());
}

#[test]
fn a_package_manager_that_is_silent_claims_nothing() {
    let s = Snapshot {
        packages: None,
        ..snapshot()
    };
    let targets = names(&["com.example.app", "com.not.there"]);
    let specs = list_targets(&targets);
    let a = build_assessment(
        &facts(BuildType::User),
        &specs,
        &s,
        &AssessOptions::default(),
    );
    assert_eq!(a.targets[0].native, Answer::Unknown);
    assert_eq!(a.targets[1].findings[0].id, F::NotRunning);
}

#[test]
fn another_recording_that_waits_for_a_name_is_told() {
    let mut d = facts(BuildType::User);
    d.armed_names = vec!["com.example.app".into()];
    let specs = list_targets(&names(&["com.example.app"]));
    let a = build_assessment(&d, &specs, &snapshot(), &AssessOptions::default());
    assert!(ids(&a).contains(&F::Busy));
}

#[test]
fn a_report_is_a_json_object_of_plain_words() {
    let a = assess(
        BuildType::User,
        &names(&["com.example.closed"]),
        &AssessOptions::default(),
    );
    let json = serde_json::to_value(&a).expect("plain data");
    let target = &json["targets"][0];
    assert_eq!(target["native"], "no");
    assert_eq!(target["kind"], "name");
    assert_eq!(target["processes"][0]["pid"], 1010);
    assert_eq!(target["processes"][0]["kind"], "app");
    assert_eq!(target["processes"][0]["findings"][0]["id"], "USER_RELEASE");
    assert_eq!(target["packages"][0]["app_type"], "closed");
}
