//! Advice for developers: one or two sentences by suspected reference and leaking object.

use super::kinds::Kind;
use super::known_leaks::{Known, is_library};
use super::steps::Reference;
use super::{Shape, Step};
use crate::paths::short;

/// Returns the next step for a leak with that path.
pub(super) fn of(
    kind: Kind,
    class: &str,
    library: Option<&Known>,
    path: &[Step],
    root: &str,
) -> String {
    if let Some(known) = library {
        return known.advice();
    }
    let when = end_of_life(kind);
    let what = short(class);
    // The developer can change references of the app's own classes; the one nearest to the leak is
    // preferred.
    let suspects = || path.iter().enumerate().filter(|(_, step)| step.suspect);
    let own = suspects().rfind(|(_, step)| !is_library(declaring(step)));
    // If a library holds the object, prefer the field to which it was added, not the internals of
    // the library.
    let given_to = || {
        suspects().rfind(|(_, step)| {
            matches!(
                step.reference,
                Some(Reference::Static(_) | Reference::Field(_))
            )
        })
    };
    if let Some((_, message)) = suspects().rfind(|(_, step)| is_message(step)) {
        let what = match &message.reference {
            Some(reference) => reference.shown(),
            None => String::new(),
        };
        return format!(
            "A pending message holds it ({what}): call removeCallbacks or \
             removeCallbacksAndMessages(null) on its Handler {when}."
        );
    }
    let chosen = own.or_else(given_to).or_else(|| suspects().next_back());
    let Some((at, step)) = chosen else {
        return match path.len() {
            0 | 1 => format!("{root} holds it directly: release that reference {when}."),
            _ => format!("Release it {when}."),
        };
    };
    let Some(reference) = &step.reference else {
        return format!("Release it {when}.");
    };
    let owner = short(&step.class);
    let next = path.get(at + 1);
    let into_collection = next
        .is_some_and(|next| matches!(next.reference, Some(Reference::Element(_))) && next.suspect);
    let is_field = matches!(reference, Reference::Static(_) | Reference::Field(_));
    if own.is_none() && is_field && !into_collection {
        let field = reference.shown();
        return format!(
            "{owner}.{field} is not a field of the app: find the call that gave the {what} to the \
             {owner}, and undo it {when}."
        );
    }
    match reference {
        Reference::Static(field) if into_collection => format!(
            "Remove it from {owner}.{field} {when}, or store an object there that does not hold \
             the {what}."
        ),
        Reference::Static(field) => format!(
            "Set {owner}.{field} to null {when}, or store an object there that does not hold \
             the {what}."
        ),
        Reference::Field(field) if field.starts_with("this$") => format!(
            "{owner} is an inner class that holds its outer object: make it static (in Kotlin, \
             not `inner`), or release it {when}."
        ),
        Reference::Field(field) if is_captured(owner, field) => format!(
            "The lambda {owner} captured it: unregister or cancel the lambda {when}, or capture \
             less."
        ),
        Reference::Field(field) if is_library(&step.class) && into_collection => {
            format!("Unregister it from the {owner} (field {field}) {when}.")
        }
        Reference::Field(field) if into_collection => {
            format!("Remove it from {owner}.{field} {when}.")
        }
        Reference::Field(field) => format!("Clear {owner}.{field} {when}."),
        Reference::Element(_) if step.shape == Shape::Array => {
            format!("Clear its slot in the {owner} {when}.")
        }
        Reference::Element(_) => format!("Remove it from the {owner} {when}."),
        Reference::ThreadLocal => format!(
            "A ThreadLocal of the {owner} holds it: call remove() on that ThreadLocal {when}, on \
             that thread."
        ),
        Reference::Local => format!(
            "A method running on the {owner} holds it in a local variable: end or cancel that \
             work {when}."
        ),
        Reference::Unnamed => format!("Find out how {owner} holds it, and release it {when}."),
    }
}

/// Returns the class whose code sets the reference.
fn declaring(step: &Step) -> &str {
    step.declared_in.as_deref().unwrap_or(&step.class)
}

fn end_of_life(kind: Kind) -> &'static str {
    match kind {
        Kind::Activity | Kind::DecorContext | Kind::ContextWrapper | Kind::ContextImpl => {
            "when the activity is destroyed (onDestroy)"
        }
        Kind::Window | Kind::ViewRoot => "when its window is closed",
        Kind::PlatformFragment | Kind::SupportFragment | Kind::AndroidxFragment => {
            "when the fragment is destroyed (onDestroy)"
        }
        Kind::View | Kind::Editor => {
            "when the view is destroyed (onDestroyView of a fragment, onDestroy of an activity)"
        }
        Kind::Service => "when the service is destroyed (onDestroy)",
        Kind::ViewModel => "when the view model is cleared (onCleared)",
        Kind::Composition | Kind::Recomposer => "when the composition is disposed (onDispose)",
        Kind::Toast => "when the toast disappears",
        Kind::MessageQueue => "when its thread ends",
        _ => "when its lifecycle ends",
    }
}

/// Returns whether a compiler uses the field to pass captured values to a lambda or an anonymous
/// class.
fn is_captured(class: &str, field: &str) -> bool {
    let by_name = field.starts_with("arg$") || field.starts_with("f$") || field.starts_with("val$");
    by_name || class.contains("$$Lambda") || class.contains("$$ExternalSyntheticLambda")
}

fn is_message(step: &Step) -> bool {
    step.class == "android.os.Message"
}
