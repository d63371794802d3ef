//! Leaks of Android itself and of its makers' changes: references that the platform forgets to
//! clear. No app can mend them, so they are shown apart, with the releases that have them.

/// A reference that the platform leaks through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pattern {
    /// The class that declares the field.
    pub class: &'static str,
    /// The field.
    pub field: &'static str,
    /// Whether it is a static.
    pub is_static: bool,
    /// First API level that has it.
    pub from: i64,
    /// Last API level that has it; `None` where it still stands.
    pub to: Option<i64>,
    /// `Build.MANUFACTURER`, in lower case; empty where all phones have it.
    pub makers: &'static [&'static str],
    /// What happens, as a sentence.
    pub what: &'static str,
}

impl Pattern {
    /// How it is called in output: `android.os.Message.obj`.
    pub fn name(&self) -> String {
        format!("{}.{}", self.class, self.field)
    }

    /// Whether that phone has it; an unknown release or maker may.
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

/// All that are known.
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
        "the input method keeps the view that was to have the focus next",
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
        "the input method keeps the consumer of its insets, and by that a window root",
    ),
    instance(
        "android.app.ActivityThread",
        "mNewActivities",
        19,
        None,
        "an activity that was started while the main thread was never idle stays listed as new",
    ),
    instance(
        "android.os.Message",
        "obj",
        1,
        Some(30),
        "the last message of a thread that waits stays in a local variable of its looper",
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
        "the one UserManager keeps the context that first asked for it",
    ),
    instance(
        "android.app.Activity$1",
        "this$0",
        29,
        Some(29),
        "the activity's binder for assistance is held by the other process",
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
        "accessibility keeps views by their id",
    ),
    instance(
        "android.media.AudioManager$1",
        "this$0",
        1,
        Some(22),
        "a handler of the AudioManager keeps the context it was made with",
    ),
    fixed(
        "android.net.ConnectivityManager",
        "sInstance",
        1,
        Some(23),
        "the one ConnectivityManager keeps the context that first asked for it",
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
        "the prompt keeps a manager with the activity's context",
    ),
    instance(
        "android.hardware.input.InputManager",
        "mLateInitContext",
        33,
        Some(33),
        "the InputManager keeps the context that first asked for it",
    ),
    instance(
        "android.permission.PermissionControllerManager",
        "mContext",
        29,
        None,
        "one manager for all keeps the context that first asked for it",
    ),
    instance(
        "android.app.assist.AssistStructure$ViewNodeText",
        "mText",
        24,
        None,
        "the structure that was given to the assistant keeps texts and their spans",
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
            "a maker's change of ResourcesImpl keeps an activity as the app's context",
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
