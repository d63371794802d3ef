//! System properties of the phone at boot.

use std::collections::BTreeMap;

use super::faults::{FaultKind, Faults};
use super::spec::{Abi, BuildType, PhoneSpec, Release};

/// Returns all properties.
pub(crate) fn at_boot(spec: &PhoneSpec, serial: &str, faults: &Faults) -> BTreeMap<String, String> {
    let Release {
        model,
        device,
        build_id: id,
        ..
    } = spec.release();
    let (build, release, sdk) = (spec.build.name(), spec.android, spec.sdk());
    let tags = if spec.build == BuildType::User {
        "release-keys"
    } else {
        "dev-keys"
    };
    let incremental = 11_000_000 + release * 31_415;
    let fingerprint =
        format!("google/{device}/{device}:{release}/{id}/{incremental}:{build}/{tags}");
    let (list, list32, list64) = match spec.abi {
        Abi::Arm64 => (
            "arm64-v8a,armeabi-v7a,armeabi",
            "armeabi-v7a,armeabi",
            "arm64-v8a",
        ),
        Abi::Arm => ("armeabi-v7a,armeabi", "armeabi-v7a,armeabi", ""),
        Abi::X86_64 => ("x86_64,x86", "x86", "x86_64"),
        Abi::X86 => ("x86", "x86", ""),
    };
    let debuggable = u8::from(spec.build != BuildType::User).to_string();
    let (traced, service) = match faults.strikes(FaultKind::TracedOff) {
        Some(_) => ("0", "stopped"),
        None => ("1", "running"),
    };
    let mut all: BTreeMap<String, String> = [
        ("dalvik.vm.heapgrowthlimit", "256m"),
        ("dalvik.vm.heapsize", "512m"),
        ("dev.bootcomplete", "1"),
        ("init.svc.traced", service),
        ("init.svc.traced_probes", service),
        ("persist.sys.timezone", "UTC"),
        ("persist.traced.enable", traced),
        ("ro.build.fingerprint", &fingerprint),
        ("ro.build.id", id),
        ("ro.build.type", build),
        ("ro.build.version.codename", "REL"),
        ("ro.build.version.release", &release.to_string()),
        ("ro.build.version.sdk", &sdk.to_string()),
        ("ro.dalvik.vm.native.bridge", "0"),
        ("ro.debuggable", &debuggable),
        ("ro.product.brand", "google"),
        ("ro.product.cpu.abi", spec.abi.name()),
        ("ro.product.cpu.abilist", list),
        ("ro.product.cpu.abilist32", list32),
        ("ro.product.cpu.abilist64", list64),
        ("ro.product.device", device),
        ("ro.product.manufacturer", "Google"),
        ("ro.product.model", model),
        ("ro.serialno", serial),
        ("ro.system.build.version.release", &release.to_string()),
        ("ro.system.build.version.sdk", &sdk.to_string()),
        ("sys.boot_completed", "1"),
    ]
    .into_iter()
    .map(|(k, v)| (k.to_owned(), v.to_owned()))
    .collect();
    if release >= 11 {
        let key = "ro.build.version.release_or_codename";
        all.insert(key.to_owned(), release.to_string());
    }
    all
}
