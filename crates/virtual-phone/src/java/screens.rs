//! Activities, windows and views: on the screen, destroyed or leaked.

use super::builder::NONE;
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

impl Screen {
    /// Adds a view of a class to the activity's content.
    pub(super) fn view(&self, s: &mut Skeleton<'_>, class: &'static str) -> Obj {
        s.view(class, self.activity, Some(self.content))
    }
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
        let activity = self.b.instance(
            class,
            "mApplication mMainThread mUiThread mCalled=true",
            &[application, self.activity_thread, self.main_thread],
        );
        let states = match alive {
            true => "mResumed=true",
            false => "mDestroyed=true mFinished=true mStopped=true",
        };
        self.b.fill(activity, states, NONE);
        let context = self.context(activity);
        let handle = 0x7a00_3000_0000 + i64::from(self.newest_thread());
        let token = self
            .b
            .object("android.os.BinderProxy mNativeData", &[handle]);
        let window = self.window(activity);
        let intent = self.intent(class);
        let fields = "mBase mResources mToken mWindow mIntent";
        let values = [context, self.resources, token, window.window, intent];
        self.b.fill(activity, fields, &values);
        // A destroyed activity does not hold its decor.
        if alive {
            self.b.set(activity, "mDecor", window.decor);
            let record = self.b.object("android.app.ActivityThread$ActivityClientRecord activity intent packageInfo token window", &[activity, intent, self.loaded_apk, token, window.window]);
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
            "android.content.ComponentName mPackage mClass",
            &[package, class],
        );
        b.object(
            "android.content.Intent mAction mComponent",
            &[action, component],
        )
    }

    /// Adds a window with its decor and content frame.
    pub(super) fn window(&mut self, activity: Obj) -> Window {
        let b = &mut self.b;
        let window = b.object(
            "com.android.internal.policy.PhoneWindow mContext mCallback",
            &[activity, activity],
        );
        let decor_context = b.object(
            "com.android.internal.policy.DecorContext mPhoneWindow mResources",
            &[window, self.resources],
        );
        let decor = self.view("com.android.internal.policy.DecorView", decor_context, None);
        let content = self.view("android.widget.FrameLayout", activity, Some(decor));
        self.children(decor, &[content]);
        self.b
            .fill(window, "mDecor mContentParent", &[decor, content]);
        self.b
            .fill(decor, "mWindow mWindowAttachCount=1", &[window]);
        Window {
            window,
            decor,
            content,
        }
    }

    fn attach(&mut self, window: &Window, activity: Obj) -> Obj {
        let b = &mut self.b;
        let root = b.object(
            "android.view.ViewRootImpl mContext mView mAdded=true",
            &[activity, window.decor],
        );
        let info = b.object(
            "android.view.View$AttachInfo mRootView mViewRootImpl",
            &[window.decor, root],
        );
        let params = b.object(
            "android.view.WindowManager$LayoutParams type=1 width=-1 height=-1",
            NONE,
        );
        b.fill(root, "mAttachInfo mWindowAttributes", &[info, params]);
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
            "android.graphics.RenderNode mNativeRenderNode=0x7a0040000000",
            NONE,
        );
        let params = b.object(
            "android.view.ViewGroup$LayoutParams width=-1 height=-2",
            NONE,
        );
        b.instance(
            class,
            "mContext mResources mRenderNode mLayoutParams mParent mRight=1080 mBottom=2400",
            &[
                context.into(),
                self.resources.into(),
                node.into(),
                params.into(),
                Value::from(parent),
            ],
        )
    }

    /// Adds children to a view group.
    pub(super) fn children(&mut self, group: Obj, children: &[Obj]) {
        let mut slots: Vec<Option<Obj>> = children.iter().copied().map(Some).collect();
        slots.resize(children.len().next_multiple_of(12), None);
        let array = self.b.array("android.view.View[]", slots);
        let values = [array.into(), children.len().into()];
        self.b
            .fill::<Value>(group, "mChildren mChildrenCount", &values);
    }
}
