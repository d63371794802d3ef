//! Rules for views, windows, dialogs and toasts.

use super::access::{Flag, MAX_STEPS, Rules};
use crate::leaks::kinds::Kind;
use crate::leaks::verdict::{Certainty, Status, Verdict};
use crate::lookup;
use heaptap_model::heap_graph::{ObjectIndex, Value};

/// Maximum number of tags of a view that are read: a damaged dump can have any number, for each view.
const MAX_TAGS: usize = 256;

impl Rules<'_> {
    /// Returns a view and the views above it.
    pub(super) fn line(&self, view: ObjectIndex) -> impl Iterator<Item = ObjectIndex> + '_ {
        std::iter::successors(Some(view), |&view| self.parent_view(view)).take(MAX_STEPS)
    }

    /// Returns the verdict on a detached view by an owner in its tags that has ended.
    fn by_owner(&self, view: ObjectIndex) -> Option<Verdict> {
        let tags = self
            .get(view, "android.view.View", "mKeyedTags")?
            .object()?;
        let values = lookup::any(self.graph, tags, "mValues")?.object()?;
        if self.graph.references(values).len() > MAX_TAGS {
            return None;
        }
        lookup::elements(self.graph, values)
            .into_iter()
            .find_map(|(_, owner)| {
                let name = self.name_of(owner);
                let is_leaking = |verdict: Verdict| verdict.status == Status::Leaking;
                match self.kind(owner) {
                    Some(Kind::Activity) if is_leaking(self.activity(owner)) => {
                        Some(format!("its owner {name} was destroyed"))
                    }
                    Some(kind) if kind.is_fragment() && is_leaking(self.judge(owner)) => {
                        Some(format!("its fragment {name} was removed"))
                    }
                    None => {
                        let registry =
                            lookup::any(self.graph, owner, "mLifecycleRegistry")?.object()?;
                        let state = self.lifecycle_state(registry)?;
                        (state == "DESTROYED").then(|| format!("its owner, a {name}, is DESTROYED"))
                    }
                    _ => None,
                }
            })
            .map(|reason| Verdict::leaking(Certainty::Likely, reason))
    }

    fn parent_view(&self, view: ObjectIndex) -> Option<ObjectIndex> {
        let parent = self.get(view, "android.view.View", "mParent")?.object()?;
        (self.kind(parent) == Some(Kind::View)).then_some(parent)
    }

    /// Returns whether a view has no parent view. The search covers only such views.
    pub(in crate::leaks) fn is_root_view(&self, view: ObjectIndex) -> bool {
        self.parent_view(view).is_none()
    }

    pub(super) fn was_attached(&self, view: ObjectIndex) -> Option<bool> {
        let count = self.get(view, "android.view.View", "mWindowAttachCount")?;
        Some(count.integer()? > 0)
    }

    /// Returns the verdict on the context in the class's field `mContext` if it leaks.
    fn leaking_context(&self, object: ObjectIndex, class: &str) -> Option<Verdict> {
        let context = self.get(object, class, "mContext")?.object()?;
        self.of_context(context, "its context")
            .filter(|verdict| verdict.status == Status::Leaking)
    }

    pub(super) fn view(&self, object: ObjectIndex) -> Verdict {
        let class = "android.view.View";
        if let Some(verdict) = self.leaking_context(object, class) {
            return verdict;
        }
        let attached = self.get(object, class, "mAttachInfo");
        if attached == Some(Value::Null)
            && let Some(verdict) = self.line(object).find_map(|view| self.by_owner(view))
        {
            return verdict;
        }
        let root = self.line(object).last().unwrap_or(object);
        let parent = self.get(root, class, "mParent");
        let in_window = matches!(parent, Some(Value::Object(_)))
            || self.graph.is_a(
                self.graph.class_of(root),
                "com.android.internal.policy.DecorView",
            );
        let root_attached = self.get(root, class, "mAttachInfo");
        match (attached, in_window) {
            (Some(Value::Object(_)), true) if root != object => match root_attached {
                Some(Value::Null) => Verdict::leaking(
                    Certainty::Certain,
                    "it is attached below a root view that was detached",
                ),
                _ => Verdict::in_use("it is attached to a window"),
            },
            (Some(Value::Object(_)), _) => Verdict::in_use("it is attached to a window"),
            (Some(Value::Null), true) => match self.was_attached(object) {
                Some(true) => {
                    Verdict::leaking(Certainty::Certain, "it was detached from its window")
                }
                Some(false) => Verdict::unknown("it was never attached to its window"),
                None if self.graph.contents().has_values() => Verdict::default(),
                None => Verdict::leaking(
                    Certainty::Possible,
                    "mAttachInfo is null: detached or not yet shown (unknown in a heap graph)",
                ),
            },
            (Some(Value::Null), false) => {
                Verdict::unknown("it is not in a window; apps can keep views for reuse")
            }
            _ => Verdict::default(),
        }
    }

    pub(super) fn window(&self, object: ObjectIndex) -> Verdict {
        // The flag is set only for windows of activities.
        let by_flag = self.flag(object, "android.view.Window", "mDestroyed", Flag::MayEnd);
        if by_flag.status == Status::Leaking {
            return by_flag;
        }
        self.leaking_context(object, "android.view.Window")
            .unwrap_or(by_flag)
    }

    pub(super) fn view_root(&self, object: ObjectIndex) -> Verdict {
        let class = "android.view.ViewRootImpl";
        match self.get(object, class, "mView") {
            Some(Value::Null) => {
                return Verdict::leaking(
                    Certainty::Certain,
                    "mView is null: its window was removed",
                );
            }
            Some(_) => {}
            None => return Verdict::default(),
        }
        self.leaking_context(object, class).unwrap_or_default()
    }

    pub(super) fn toast(&self, object: ObjectIndex) -> Verdict {
        let shower = self
            .get(object, "android.widget.Toast", "mTN")
            .and_then(Value::object);
        let Some(shower) = shower else {
            return Verdict::default();
        };
        let manager = lookup::any(self.graph, shower, "mWM");
        let view = lookup::any(self.graph, shower, "mView");
        match (manager, view) {
            (Some(Value::Object(_)), Some(Value::Null)) => {
                Verdict::leaking(Certainty::Certain, "it was shown and then hidden")
            }
            (_, Some(Value::Object(_))) => Verdict::in_use("it is visible"),
            // Since Android 11, a toast that was hidden is as one that was not shown yet.
            _ => Verdict::default(),
        }
    }

    pub(super) fn dialog(&self, object: ObjectIndex) -> Verdict {
        match self.get(object, "android.app.Dialog", "mDecor") {
            Some(Value::Null) => Verdict::unknown("a dialog that is not showing"),
            // A dialog can keep its views after its window was removed.
            Some(Value::Object(decor)) => {
                match self.get(decor, "android.view.View", "mAttachInfo") {
                    Some(Value::Object(_)) => Verdict::unknown("a dialog that is showing"),
                    Some(Value::Null) => {
                        Verdict::unknown("a dialog whose views are not in a window")
                    }
                    _ => Verdict::default(),
                }
            }
            _ => Verdict::default(),
        }
    }
}
