//! What a developer can do: a sentence or two by what is suspected and what leaks.

use super::kinds::Kind;
use super::library::Pattern;
use super::rules::{is_library, short};
use super::steps::Reference;
use super::{Shape, Step};

/// The next step for a leak with that path.
pub(super) fn of(
    kind: Kind,
    class: &str,
    library: Option<Pattern>,
    path: &[Step],
    root: &str,
) -> String {
    if let Some(pattern) = library {
        let releases = match pattern.to {
            Some(last) if last == pattern.from => format!("API {last}"),
            Some(last) => format!("API {} to {last}", pattern.from),
            None => format!("API {} and later", pattern.from),
        };
        return format!(
            "Android leaks this itself ({releases}): {}. Your code can't mend it; it goes away \
             when the reference is set anew.",
            pattern.what
        );
    }
    let when = end_of_life(kind);
    let what = short(class);
    // The app's own reference is what its developer can change; of several, the one that is
    // nearest to the leak.
    let suspects = || path.iter().enumerate().filter(|(_, step)| step.suspect);
    let own = suspects().rfind(|(_, step)| !is_library(declaring(step)));
    // Where a library holds it, what it was given to, not the list in there.
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
            "A message that waits holds it ({what}): call removeCallbacks or \
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
    match reference {
        Reference::Static(field) if into_collection => format!(
            "Take it out of {owner}.{field} {when}, or keep there what does not hold the {what}."
        ),
        Reference::Static(field) => format!(
            "Set {owner}.{field} to null {when}, or keep there what does not hold the {what}."
        ),
        Reference::Field(field) if field.starts_with("this$") => format!(
            "{owner} is an inner class and holds the object it was made in: make it static (in \
             Kotlin, not `inner`), or let go of it {when}."
        ),
        Reference::Field(field) if is_captured(owner, field) => format!(
            "The lambda {owner} captured it: unregister or cancel it {when}, or capture less."
        ),
        Reference::Field(field) if is_library(&step.class) && into_collection => {
            format!("Unregister it from the {owner} (it stands in {field}) {when}.")
        }
        Reference::Field(field) if into_collection => {
            format!("Take it out of {owner}.{field} {when}.")
        }
        Reference::Field(field) => format!("Clear {owner}.{field} {when}."),
        Reference::Element(_) if step.shape == Shape::Array => {
            format!("Clear its place in the {owner} {when}.")
        }
        Reference::Element(_) => format!("Take it out of the {owner} {when}."),
        Reference::ThreadLocal => format!(
            "A ThreadLocal of the {owner} holds it: call remove() on that ThreadLocal {when}, on \
             that thread."
        ),
        Reference::Local => format!(
            "A method that the {owner} is in has it in a local variable: end or cancel that work \
             {when}."
        ),
        Reference::Unnamed => format!("Find out how {owner} holds it, and release it {when}."),
    }
}

/// The class whose code sets the reference.
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
            "when the view goes (onDestroyView of a fragment, onDestroy of an activity)"
        }
        Kind::Service => "when the service is destroyed (onDestroy)",
        Kind::ViewModel => "when the view model is cleared (onCleared)",
        Kind::Composition | Kind::Recomposer => "when the composition is disposed (onDispose)",
        Kind::Toast => "when the toast is over",
        Kind::MessageQueue => "when its thread ends",
        _ => "when its life ends",
    }
}

/// Fields by which compilers hand a lambda or an anonymous class what it uses.
fn is_captured(class: &str, field: &str) -> bool {
    let by_name = field.starts_with("arg$") || field.starts_with("f$") || field.starts_with("val$");
    by_name || class.contains("$$Lambda") || class.contains("$$ExternalSyntheticLambda")
}

fn is_message(step: &Step) -> bool {
    step.class == "android.os.Message"
}
