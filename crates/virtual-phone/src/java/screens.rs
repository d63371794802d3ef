//! Activities, windows and views: on the screen, destroyed or leaked.

use super::framework::Skeleton;
use super::heap::{Obj, Value};

/// A window with its initial views.
pub(super) struct Window {
    pub(super) window: Obj,
    pub(super) decor: Obj,
    pub(super) content: Obj,
}

/// An activity and the parent of its views.
#[derive(Debug, Clone, Copy)]
pub(super) struct Screen {
    pub(super) activity: Obj,
    pub(super) content: Obj,
    /// Set for a window on the screen.
    pub(super) attach_info: Option<Obj>,
}

impl Skeleton<'_> {
    /// Adds an activity with its window. A live activity has a view tree on the screen and is
    /// listed in ActivityThread; a destroyed one has neither.
    pub(super) fn activity(
        &mut self,
        class: &'static str,
        application: Obj,
        alive: bool,
    ) -> Screen {
        let activity = self.b.object(
            class,
            &[
                ("mApplication", application.into()),
                ("mMainThread", self.activity_thread.into()),
                ("mUiThread", self.main_thread.into()),
                ("mDestroyed", (!alive).into()),
                ("mFinished", (!alive).into()),
                ("mResumed", alive.into()),
                ("mStopped", (!alive).into()),
                ("mCalled", true.into()),
            ],
        );
        let context = self.context(activity);
        self.b.set(activity, "mBase", context);
        self.b.set(activity, "mResources", self.resources);
        let token = self.b.object(
            "android.os.BinderProxy",
            &[(
                "mNativeData",
                Value::Long(0x7a00_3000_0000 + i64::from(self.newest_thread())),
            )],
        );
        let window = self.window(activity);
        let intent = self.intent(class);
        for (field, value) in [
            ("mToken", token),
            ("mWindow", window.window),
            ("mDecor", window.decor),
            ("mIntent", intent),
        ] {
            // A destroyed activity does not hold its decor.
            if alive || field != "mDecor" {
                self.b.set(activity, field, value);
            }
        }
        if alive {
            let record = self.b.object(
                "android.app.ActivityThread$ActivityClientRecord",
                &[
                    ("activity", activity.into()),
                    ("intent", intent.into()),
                    ("packageInfo", self.loaded_apk.into()),
                    ("token", token.into()),
                    ("window", window.window.into()),
                ],
            );
            self.activities.push((token, record));
        }
        Screen {
            activity,
            attach_info: alive.then(|| self.attach(&window, activity)),
            content: window.content,
        }
    }

    fn intent(&mut self, class: &'static str) -> Obj {
        let b = &mut self.b;
        let action = b.string("android.intent.action.VIEW");
        let (package, class) = (b.string(&self.inputs.package), b.string(class));
        let component = b.object(
            "android.content.ComponentName",
            &[("mPackage", package.into()), ("mClass", class.into())],
        );
        b.object(
            "android.content.Intent",
            &[("mAction", action.into()), ("mComponent", component.into())],
        )
    }

    /// Adds a window with its decor and content frame.
    pub(super) fn window(&mut self, activity: Obj) -> Window {
        let b = &mut self.b;
        let window = b.object(
            "com.android.internal.policy.PhoneWindow",
            &[
                ("mContext", activity.into()),
                ("mCallback", activity.into()),
            ],
        );
        let decor_context = b.object(
            "com.android.internal.policy.DecorContext",
            &[
                ("mPhoneWindow", window.into()),
                ("mResources", self.resources.into()),
            ],
        );
        let decor = self.view("com.android.internal.policy.DecorView", decor_context, None);
        self.b.set(decor, "mWindow", window);
        let content = self.view("android.widget.FrameLayout", activity, Some(decor));
        self.children(decor, &[content]);
        self.b.set(window, "mDecor", decor);
        self.b.set(window, "mContentParent", content);
        self.b.set(decor, "mWindowAttachCount", 1);
        Window {
            window,
            decor,
            content,
        }
    }

    fn attach(&mut self, window: &Window, activity: Obj) -> Obj {
        let b = &mut self.b;
        let root = b.object(
            "android.view.ViewRootImpl",
            &[
                ("mContext", activity.into()),
                ("mView", window.decor.into()),
                ("mAdded", true.into()),
            ],
        );
        let info = b.object(
            "android.view.View$AttachInfo",
            &[
                ("mRootView", window.decor.into()),
                ("mViewRootImpl", root.into()),
            ],
        );
        b.set(root, "mAttachInfo", info);
        let params = b.object(
            "android.view.WindowManager$LayoutParams",
            &[
                ("type", 1.into()),
                ("width", Value::Int(-1)),
                ("height", Value::Int(-1)),
            ],
        );
        b.set(root, "mWindowAttributes", params);
        for view in [window.decor, window.content] {
            b.set(view, "mAttachInfo", info);
        }
        b.set(window.decor, "mParent", root);
        self.windows.push([window.decor, root, params]);
        info
    }

    /// Adds a view of a class with its render node to a parent.
    pub(super) fn view(&mut self, class: &'static str, context: Obj, parent: Option<Obj>) -> Obj {
        let b = &mut self.b;
        let node = b.object(
            "android.graphics.RenderNode",
            &[("mNativeRenderNode", Value::Long(0x7a00_4000_0000))],
        );
        let params = b.object(
            "android.view.ViewGroup$LayoutParams",
            &[("width", Value::Int(-1)), ("height", Value::Int(-2))],
        );
        b.object(
            class,
            &[
                ("mContext", context.into()),
                ("mResources", self.resources.into()),
                ("mRenderNode", node.into()),
                ("mLayoutParams", params.into()),
                ("mParent", parent.into()),
                ("mRight", 1_080.into()),
                ("mBottom", 2_400.into()),
            ],
        )
    }

    /// Adds children to a view group.
    pub(super) fn children(&mut self, group: Obj, children: &[Obj]) {
        let mut slots: Vec<Option<Obj>> = children.iter().copied().map(Some).collect();
        slots.resize(children.len().next_multiple_of(12), None);
        let array = self.b.array("android.view.View[]", slots);
        self.b.set(group, "mChildren", array);
        self.b.set(group, "mChildrenCount", children.len() as i32);
    }
}
