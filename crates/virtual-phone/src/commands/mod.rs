//! The phone's programs, by name: each file holds programs of one kind. How one runs is
//! `program`'s.

mod activity;
mod dumpheap;
mod dumpsys;
mod files;
mod front;
mod input;
mod launch;
mod logcat;
mod meminfo;
mod memory;
mod packages;
mod perfetto;
mod processes;
mod procstats;
mod search;
mod storage;
mod system;
mod text;

use super::program::{Cmd, Done, Halt, Program, Programs, flags, on_thread};
use super::spec::PhoneSpec;

/// Programs by name.
const PROGRAMS: &[(&str, Program)] = &[
    ("am", activity::am),
    ("basename", text::basename),
    ("cat", files::cat),
    ("chmod", files::chmod),
    ("cmd", packages::cmd),
    ("cp", files::cp),
    ("cut", text::cut),
    ("date", system::date),
    ("dd", files::dd),
    ("df", storage::df),
    ("dirname", text::dirname),
    ("du", storage::du),
    ("dmabuf_dump", memory::dmabuf_dump),
    ("dumpsys", dumpsys::dumpsys),
    ("echo", text::echo),
    ("env", launch::env),
    ("expr", text::expr),
    ("false", system::no),
    ("find", storage::find),
    ("getenforce", system::getenforce),
    ("getprop", system::getprop),
    ("grep", search::grep),
    ("head", text::head),
    ("hostname", system::hostname),
    ("id", system::id),
    ("input", input::input),
    ("kill", processes::kill),
    ("killall", processes::killall),
    ("ln", files::ln),
    ("log", system::log),
    ("logcat", logcat::logcat),
    ("ls", files::ls),
    ("md5sum", text::digest),
    ("mkdir", files::mkdir),
    ("monkey", input::monkey),
    ("mv", files::mv),
    ("nohup", launch::nohup),
    ("perfetto", perfetto::perfetto),
    ("pgrep", processes::pgrep),
    ("pidof", processes::pidof),
    ("pkill", processes::pgrep),
    ("pm", packages::pm),
    ("printenv", launch::printenv),
    ("printf", text::printf),
    ("procrank", memory::procrank),
    ("ps", processes::ps),
    ("pwd", system::pwd),
    ("readlink", files::readlink),
    ("realpath", files::readlink),
    ("rm", files::rm),
    ("rmdir", files::rm),
    ("run-as", launch::run_as),
    ("sed", search::sed),
    ("seq", text::seq),
    ("setenforce", system::setenforce),
    ("setprop", system::setprop),
    ("setsid", launch::setsid),
    ("settings", input::settings),
    ("sh", launch::sh),
    ("sha256sum", text::digest),
    ("simpleperf_app_runner", packages::simpleperf_app_runner),
    ("showmap", memory::showmap),
    ("sleep", system::sleep),
    ("sort", text::sort),
    ("stat", storage::stat),
    ("su", launch::su),
    ("svc", input::svc),
    ("sync", system::yes),
    ("tail", text::tail),
    ("tee", text::tee),
    ("test", text::test),
    ("[", text::test),
    ("timeout", launch::timeout),
    ("touch", files::touch),
    ("toybox", launch::toybox),
    ("tr", text::tr),
    ("true", system::yes),
    ("uname", system::uname),
    ("uniq", text::uniq),
    ("uptime", system::uptime),
    ("wc", text::wc),
    ("which", launch::which),
    ("whoami", system::id),
    ("wm", input::wm),
    ("xargs", launch::xargs),
    ("xxd", text::xxd),
];

/// Whether a phone of this kind has the program.
fn exists(spec: &PhoneSpec, name: &str) -> bool {
    match name {
        "su" => super::access::has_su(spec),
        "simpleperf_app_runner" => spec.android >= 12,
        "dmabuf_dump" => spec.android >= 11,
        _ => true,
    }
}

/// The programs of a phone.
pub(crate) fn programs(spec: &PhoneSpec) -> Programs {
    let all = PROGRAMS.iter().copied();
    Programs::new(all.filter(|(name, _)| exists(spec, name)))
}
