//! Conditions of the phone: temperatures, battery and doze. Other reports agree with the battery
//! here: `dumpsys power`.

use super::{Cmd, Done};
use crate::faults::FaultKind;
use crate::foreground;
use crate::screen::DOZE;

/// `dumpsys thermalservice`, since Android 10.
pub(super) fn thermal(cmd: &Cmd) -> String {
    let status = cmd.kernel.faults.value(FaultKind::Hot, 3).unwrap_or(0);
    // In degrees Celsius.
    let skin = 31.5 + 4.5 * status as f64;
    let row =
        format!("Temperature{{mValue={skin:.1}, mType=3, mName=VIRTUAL-SKIN, mStatus={status}}}");
    format!(
        "IsStatusOverride: false\nThermalEventListeners:\n\tcallbacks: 3\n\tkilled: false\n\t\
         broadcasts count: -1\nThermalStatusListeners:\n\tcallbacks: 2\n\tkilled: false\n\t\
         broadcasts count: -1\nThermal Status: {status}\nCached temperatures:\n\t{row}\nHAL Ready: \
         true\nHAL connection:\n\tThermalHAL 2.0 connected: yes\nCurrent temperatures from HAL:\n\t\
         {row}\nCurrent cooling devices from HAL:\n\tCoolingDevice{{mValue=0, mType=2, \
         mName=thermal-cpufreq-0}}\n"
    )
}

/// `dumpsys battery`: charged over USB.
pub(super) fn battery() -> String {
    "Current Battery Service state:\n  AC powered: false\n  USB powered: true\n  Wireless powered: \
     false\n  Max charging current: 500000\n  Max charging voltage: 5000000\n  Charge counter: \
     2871000\n  status: 2\n  health: 2\n  present: true\n  level: 87\n  scale: 100\n  voltage: \
     4215\n  temperature: 281\n  technology: Li-ion\n"
        .to_owned()
}

/// `cmd deviceidle enabled|enable|disable [deep|light|all]`.
pub(super) fn deviceidle(cmd: &Cmd, rest: &[String]) -> Done {
    let word = |at: usize| rest.get(at).map(String::as_str);
    let modes: &[&str] = match word(1) {
        None | Some("all") => &["deep", "light"],
        Some("deep") => &["deep"],
        Some("light") => &["light"],
        Some(other) => {
            return cmd.answer(&format!("Unknown idle mode: {other}\n"));
        }
    };
    let now = cmd.kernel.clock.now();
    let is_off = |mode: &str| cmd.kernel.state().screen.setting(DOZE, mode).is_some();
    match word(0) {
        Some("enabled") => {
            let all = !modes.iter().any(|mode| is_off(mode));
            cmd.out(&format!("{}\n", u8::from(all)))?;
        }
        Some(verb @ ("enable" | "disable")) => {
            let off = verb == "disable";
            for mode in modes.iter().filter(|mode| is_off(mode) != off) {
                let value = off.then_some("off");
                foreground::set(&mut cmd.kernel.state(), DOZE, mode, value, now);
                let name = if *mode == "deep" { "Deep" } else { "Light" };
                cmd.out(&format!("{name} idle mode {verb}d\n"))?;
            }
        }
        _ => return cmd.end(255, "Device idle controller (deviceidle) commands:\n"),
    }
    Ok(0)
}
