//! Settings of a device for the time of a run: its screen stays on, animations and doze are off.
//! They are journaled like those of actions, in journals of their own, because actions restore
//! theirs meanwhile.

use heaptap_adb::Device;

use super::commands::press;
use super::event::PutBack;
use super::phone_state::{self, SLOW, hardware_serial, run_quick};
use super::run::dismiss;
use super::settings_journal::{DOZE, Journals, Lock, Saved, Setting, identity_of, put_back};
use crate::error::CaptureError;

/// Wanted settings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HoldOptions {
    /// Switch the screen on and keep it on.
    pub awake: bool,
    /// Switch animations off.
    pub no_animations: bool,
    /// Disable doze.
    pub no_doze: bool,
}

impl HoldOptions {
    /// Returns the commands that change the settings, as texts.
    pub fn commands(self) -> Vec<String> {
        let setting = |(space, key, value): (&str, &str, &str)| Setting {
            space: space.to_owned(),
            key: key.to_owned(),
            value: Some(value.to_owned()),
        };
        let commands = self.settings().map(|one| setting(one).command());
        commands.map(|command| command.text().to_owned()).collect()
    }

    /// Returns the settings: namespace, key, value.
    fn settings(self) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
        const AWAKE: &[(&str, &str, &str)] = &[
            // With any charger: AC, USB, wireless.
            ("global", "stay_on_while_plugged_in", "7"),
        ];
        const ANIMATIONS: &[(&str, &str, &str)] = &[
            ("global", "window_animation_scale", "0"),
            ("global", "transition_animation_scale", "0"),
            ("global", "animator_duration_scale", "0"),
        ];
        const NO_DOZE: &[(&str, &str, &str)] = &[(DOZE, "deep", "0"), (DOZE, "light", "0")];
        let wanted = [
            (self.awake, AWAKE),
            (self.no_animations, ANIMATIONS),
            (self.no_doze, NO_DOZE),
        ];
        let wanted = wanted.into_iter().filter(|(wanted, _)| *wanted);
        wanted.flat_map(|(_, settings)| settings.iter().copied())
    }
}

/// A device with changed settings. [`HeldSettings::release`] restores them; without it, [`restore`]
/// does.
#[derive(Debug)]
pub struct HeldSettings {
    saved: Saved,
    _lock: Lock,
}

impl HeldSettings {
    /// Restores the settings, and verifies them.
    ///
    /// # Errors
    /// Returns the errors of [`put_back`]; the journal stays.
    pub async fn release(
        &self,
        device: &Device,
        journals: &Journals,
    ) -> Result<PutBack, CaptureError> {
        put_back(device, &journals.of_runs(), &self.saved).await
    }
}

/// Changes the settings of a device until they are released, for a run with `package`. What an
/// earlier run left is restored first.
///
/// # Errors
/// Returns an error if the device is lost or refuses a setting; then it is restored, if possible.
pub async fn hold(
    device: &Device,
    journals: &Journals,
    package: &str,
    options: HoldOptions,
) -> Result<HeldSettings, CaptureError> {
    let journals = &journals.of_runs();
    let (hardware_serial, lock, _) = journals.claim(device).await?;
    let mut saved = Saved::new(device, &hardware_serial, package);
    let mut changes = Vec::new();
    for (space, key, value) in options.settings() {
        let was = Setting::read(device, space, key).await?;
        if was.value.as_deref() != Some(value) {
            changes.push(Setting {
                value: Some(value.to_owned()),
                ..was.clone()
            });
            saved.settings.push(was);
        }
    }
    if options.awake {
        saved.screen_off = phone_state::screen(device).await?.0 == Some(true);
    }
    let held = HeldSettings { saved, _lock: lock };
    journals.note(&held.saved)?;
    if let Err(error) = change(device, &held.saved, &changes, options).await {
        // The first error tells the cause.
        let _ = put_back(device, journals, &held.saved).await;
        return Err(error);
    }
    Ok(held)
}

async fn change(
    device: &Device,
    saved: &Saved,
    changes: &[Setting],
    options: HoldOptions,
) -> Result<(), CaptureError> {
    for setting in changes {
        run_quick(device, &setting.command(), SLOW).await?;
    }
    if saved.screen_off {
        run_quick(device, &press("KEYCODE_WAKEUP"), SLOW).await?;
    }
    // A lock screen with a PIN stays; steps that need the screen report it.
    if options.awake && phone_state::screen(device).await?.1 == Some(true) {
        run_quick(device, &dismiss(), SLOW).await?;
    }
    Ok(())
}

/// Restores what actions and runs that were killed changed on a device, in this order.
///
/// # Errors
/// Returns the errors of [`put_back`], or an error if another process changes the device.
pub async fn restore(device: &Device, journals: &Journals) -> Result<Vec<PutBack>, CaptureError> {
    let hardware_serial = hardware_serial(device).await?;
    let identity = identity_of(device, &hardware_serial);
    let mut restored = Vec::new();
    for journals in [journals, &journals.of_runs()] {
        // A device that needs nothing is not locked: another process can be changing it.
        if journals.of(&identity)?.is_none() {
            continue;
        }
        let _lock = journals.lock(&identity)?;
        if let Some(saved) = journals.of(&identity)? {
            restored.push(put_back(device, journals, &saved).await?);
        }
    }
    Ok(restored)
}
