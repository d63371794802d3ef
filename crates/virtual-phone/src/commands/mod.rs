//! The phone's programs by name: each file contains programs of one kind. `program` owns their
//! execution.

mod activity;
mod conditions;
mod dumpheap;
mod dumpsys;
mod dumpsys_screen;
mod files;
mod input;
mod launch;
mod logcat;
mod meminfo;
mod memory;
mod packages;
mod perfetto;
mod processes;
mod refusals;
mod system;
mod text;

use super::program::{Arguments, BadOption, Cmd, Done, Halt, Program, Programs, refuse};
use super::spec::PhoneSpec;

/// Programs by name.
const PROGRAMS: &[(&str, Program)] = &[
    ("am", activity::am),
    ("cat", files::cat),
    ("cmd", packages::cmd),
    ("date", system::date),
    ("dd", files::dd),
    ("df", files::df),
    ("dmabuf_dump", memory::dmabuf_dump),
    ("dumpsys", dumpsys::dumpsys),
    ("getenforce", system::getenforce),
    ("getprop", system::getprop),
    ("grep", text::grep),
    ("head", text::head),
    ("id", system::id),
    ("input", input::input),
    ("kill", processes::kill),
    ("killall", processes::killall),
    ("log", system::log),
    ("logcat", logcat::logcat),
    ("ls", files::ls),
    ("monkey", input::monkey),
    ("perfetto", perfetto::perfetto),
    ("pgrep", processes::pgrep),
    ("pidof", processes::pidof),
    ("pkill", processes::pgrep),
    ("pm", packages::pm),
    ("ps", processes::ps),
    ("rm", files::rm),
    ("run-as", launch::run_as),
    ("setenforce", system::setenforce),
    ("setprop", system::setprop),
    ("settings", input::settings),
    ("sh", launch::sh),
    ("simpleperf_app_runner", packages::simpleperf_app_runner),
    ("sha256sum", text::sha256sum),
    ("sleep", system::sleep),
    ("stat", files::stat),
    ("su", launch::su),
    ("svc", input::svc),
    ("tail", text::tail),
    ("trigger_perfetto", perfetto::trigger_perfetto),
    ("wm", input::wm),
];

/// Returns whether a phone of this kind has the program.
fn exists(spec: &PhoneSpec, name: &str) -> bool {
    match name {
        "su" => super::access::has_su(spec),
        "simpleperf_app_runner" => spec.android >= 12,
        "dmabuf_dump" => spec.android >= 11,
        _ => true,
    }
}

/// Returns the programs of a phone.
pub(crate) fn programs(spec: &PhoneSpec) -> Programs {
    let all = PROGRAMS.iter().copied();
    Programs::new(all.filter(|(name, _)| exists(spec, name)))
}
