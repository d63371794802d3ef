//! Leaks in Android itself and in manufacturers' changes to it: references that the platform does
//! not clear. Apps cannot fix them, so they are listed separately, with the affected releases.

/// Reference through which the platform leaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pattern {
    /// Class that declares the field.
    pub class: &'static str,
    pub field: &'static str,
    /// Whether the field is static.
    pub is_static: bool,
    /// First affected API level.
    pub from: i64,
    /// Last affected API level; `None` if the leak is not fixed.
    pub to: Option<i64>,
    /// Lower-case values of `Build.MANUFACTURER`; empty if all devices are affected.
    pub makers: &'static [&'static str],
    /// Description of the leak, as a sentence without a period.
    pub what: &'static str,
}

impl Pattern {
    /// Returns the display name: `android.os.Message.obj`.
    pub fn name(&self) -> String {
        format!("{}.{}", self.class, self.field)
    }

    /// Returns whether a device might be affected; true if its release or manufacturer is unknown.
    pub(super) fn is_on(&self, sdk: Option<i64>, maker: Option<&str>) -> bool {
        let in_range =
            sdk.is_none_or(|sdk| sdk >= self.from && self.to.is_none_or(|last| sdk <= last));
        let maker = maker.map(str::to_lowercase);
        let by_maker = self.makers.is_empty()
            || maker.is_none_or(|maker| self.makers.contains(&maker.as_str()));
        in_range && by_maker
    }
}

const fn instance(
    class: &'static str,
    field: &'static str,
    from: i64,
    to: Option<i64>,
    what: &'static str,
) -> Pattern {
    Pattern {
        class,
        field,
        is_static: false,
        from,
        to,
        makers: &[],
        what,
    }
}

const fn fixed(
    class: &'static str,
    field: &'static str,
    from: i64,
    to: Option<i64>,
    what: &'static str,
) -> Pattern {
    Pattern {
        is_static: true,
        ..instance(class, field, from, to, what)
    }
}

const INPUT_METHODS: &str = "android.view.inputmethod.InputMethodManager";

pub(super) const PATTERNS: &[Pattern] = &[
    instance(
        INPUT_METHODS,
        "mServedView",
        15,
        Some(28),
        "the input method keeps the view that last had the focus",
    ),
    instance(
        INPUT_METHODS,
        "mNextServedView",
        15,
        Some(35),
        "the input method keeps the view that would get the focus next",
    ),
    instance(
        INPUT_METHODS,
        "mCurRootView",
        15,
        Some(28),
        "the input method keeps the root of the window that last had the focus",
    ),
    instance(
        INPUT_METHODS,
        "mImeInsetsConsumer",
        30,
        None,
        "the input method keeps the consumer of its insets, which holds a window root",
    ),
    instance(
        "android.app.ActivityThread",
        "mNewActivities",
        19,
        None,
        "an activity stays in the list of new activities until the main thread is idle",
    ),
    instance(
        "android.os.Message",
        "obj",
        1,
        Some(30),
        "the last message of an idle thread stays in a local variable of its looper",
    ),
    fixed(
        "android.text.TextLine",
        "sCached",
        1,
        Some(22),
        "the pool of text lines keeps the spans of the last text",
    ),
    instance(
        "android.os.UserManager",
        "mContext",
        18,
        Some(25),
        "the UserManager singleton keeps the context that first requested it",
    ),
    instance(
        "android.app.Activity$1",
        "this$0",
        29,
        Some(29),
        "another process holds the activity's binder for assistance",
    ),
    instance(
        "android.view.accessibility.AccessibilityNodeInfo",
        "mOriginalText",
        26,
        Some(27),
        "the pool of accessibility nodes keeps their texts and spans",
    ),
    instance(
        "android.view.ViewGroup$ViewLocationHolder",
        "mRoot",
        28,
        Some(28),
        "the pool that orders children for accessibility keeps their root",
    ),
    instance(
        "android.view.accessibility.AccessibilityNodeIdManager",
        "mIdsToViews",
        28,
        Some(29),
        "the ID manager of accessibility nodes keeps views",
    ),
    instance(
        "android.media.AudioManager$1",
        "this$0",
        1,
        Some(22),
        "a handler of the AudioManager keeps the context it was created with",
    ),
    fixed(
        "android.net.ConnectivityManager",
        "sInstance",
        1,
        Some(23),
        "the ConnectivityManager singleton keeps the context that first requested it",
    ),
    instance(
        "android.view.textservice.SpellCheckerSession$1",
        "this$0",
        16,
        Some(24),
        "the spell checker's handler keeps its session after it was closed",
    ),
    instance(
        "android.hardware.biometrics.BiometricPrompt",
        "mFingerprintManager",
        28,
        Some(28),
        "the biometric prompt keeps a manager with the activity's context",
    ),
    instance(
        "android.hardware.input.InputManager",
        "mLateInitContext",
        33,
        Some(33),
        "the InputManager keeps the context that first requested it",
    ),
    instance(
        "android.permission.PermissionControllerManager",
        "mContext",
        29,
        None,
        "the PermissionControllerManager keeps the context that first requested it",
    ),
    instance(
        "android.app.assist.AssistStructure$ViewNodeText",
        "mText",
        24,
        None,
        "the structure passed to the assistant keeps texts and their spans",
    ),
    Pattern {
        makers: &[
            "hmd global",
            "lge",
            "oneplus",
            "oppo",
            "realme",
            "vivo",
            "xiaomi",
        ],
        ..fixed(
            "android.content.res.ResourcesImpl",
            "mAppContext",
            30,
            None,
            "a manufacturer's change to ResourcesImpl keeps an activity as the app context",
        )
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_holds_for_its_releases_and_makers_and_for_unknown_ones() {
        let by_name = |name: &str| {
            let found = PATTERNS.iter().find(|p| p.name() == name);
            found.expect("it is listed")
        };
        let message = by_name("android.os.Message.obj");
        assert!(message.is_on(Some(30), None));
        assert!(!message.is_on(Some(31), None));
        assert!(message.is_on(None, None));
        let oem = by_name("android.content.res.ResourcesImpl.mAppContext");
        assert!(oem.is_on(Some(31), Some("OnePlus")));
        assert!(!oem.is_on(Some(31), Some("Google")));
        assert!(!oem.is_on(Some(29), Some("OnePlus")));
    }
}
