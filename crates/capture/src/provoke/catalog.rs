//! Descriptions of the actions for people.

use serde::Serialize;

/// Description of one action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Name before the colon.
    pub name: &'static str,
    /// Syntax.
    pub form: &'static str,
    /// Effect.
    pub does: &'static str,
    /// Kinds of leaks that it reveals.
    pub finds: &'static str,
    /// Supported Android releases, and differences between them.
    pub android: &'static str,
}

/// All actions.
pub const ALL: [Entry; 18] = [
    Entry {
        name: "rotate",
        form: "rotate:N",
        does: "rotates the screen N times between portrait and landscape, and checks each time \
               that the foreground activity was recreated. After an odd number of rotations, \
               restoring the screen recreates it once more",
        finds: "activities, views and fragments that static fields, listeners or threads keep \
                alive",
        android: "all; 10 and 11 by wm set-user-rotation, 12 and later by wm user-rotation",
    },
    Entry {
        name: "home-and-back",
        form: "home-and-back:N",
        does: "presses HOME and returns like the app's icon, N times",
        finds: "resources that onStop does not release",
        android: "all",
    },
    Entry {
        name: "switch-apps",
        form: "switch-apps:N",
        does: "opens the system settings and returns, N times",
        finds: "surfaces, cameras and caches that each return creates",
        android: "all",
    },
    Entry {
        name: "restart-activity",
        form: "restart-activity:N",
        does: "leaves the app with BACK and starts it with an empty task, N times, in one process",
        finds: "objects that outlive all activities: growth here is kept by the process",
        android: "all; since 12 BACK keeps the last activity alive, and the empty task ends it",
    },
    Entry {
        name: "trim",
        form: "trim:LEVEL, trim:all",
        does: "asks the app to release memory (onTrimMemory): running-moderate, running-low, \
               running-critical, hidden, background, moderate, complete; all sends them in rising \
               order. From hidden on, HOME is pressed first and the app is brought back later",
        finds: "caches that are not emptied",
        android: "6 and later; since 14 the system itself sends only hidden and background",
    },
    Entry {
        name: "monkey",
        form: "monkey:EVENTS[,seed=N][,throttle=MS]",
        does: "sends random taps, swipes and keys to the app only; equal seeds send equal events. \
               A crash does not end it, and the app's processes are watched",
        finds: "leaks on unexpected paths through the app",
        android: "all, if the device has monkey",
    },
    Entry {
        name: "deep-link",
        form: "deep-link:URI",
        does: "opens a link in the app, in a separate activity",
        finds: "activities that pile up",
        android: "all",
    },
    Entry {
        name: "tap",
        form: "tap:X,Y",
        does: "touches a point, in pixels from the top left corner of the rotated screen",
        finds: "objects that a screen of your app leaves behind",
        android: "all",
    },
    Entry {
        name: "swipe",
        form: "swipe:X1,Y1,X2,Y2[,MS]",
        does: "moves a finger, by default in 300 ms",
        finds: "lists whose rows and pictures are not reused",
        android: "all",
    },
    Entry {
        name: "key",
        form: "key:NAME",
        does: "presses a key: BACK, MENU, ENTER, APP_SWITCH … or its number",
        finds: "objects that a screen of your app leaves behind",
        android: "all; the key names depend on the release",
    },
    Entry {
        name: "text",
        form: "text:WORDS",
        does: "types WORDS, limited to characters of an English keyboard",
        finds: "objects that a screen of your app leaves behind",
        android: "all",
    },
    Entry {
        name: "wait",
        form: "wait:DURATION",
        does: "does nothing, by the device's clock",
        finds: "growth without input",
        android: "all",
    },
    Entry {
        name: "start",
        form: "start",
        does: "starts the app like its icon, or brings it to the foreground",
        finds: "nothing by itself",
        android: "all; cold starts are detected since 10",
    },
    Entry {
        name: "home",
        form: "home",
        does: "presses HOME and stays there",
        finds: "memory that the app keeps in the background",
        android: "all",
    },
    Entry {
        name: "force-stop",
        form: "force-stop",
        does: "ends all processes of the app",
        finds: "nothing by itself, because all memory is released",
        android: "all",
    },
    Entry {
        name: "kill",
        form: "kill",
        does: "presses HOME and ends the app's process like the system does to save memory",
        finds: "problems when the app comes back: start it afterwards",
        android: "all",
    },
    Entry {
        name: "crash",
        form: "crash",
        does: "crashes the app's process",
        finds: "the cost of a restart after a crash",
        android: "7 and later",
    },
    Entry {
        name: "compact",
        form: "compact",
        does: "makes the kernel move the app's pages to swap: RSS falls, nothing is freed",
        finds: "the unused part of RSS",
        android: "14 and later",
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provoke::Action;

    #[test]
    fn every_entry_is_an_action() {
        for entry in ALL {
            let value = match entry.name {
                "trim" => ":all",
                "monkey" => ":5",
                "deep-link" => ":a:b",
                "tap" => ":1,2",
                "swipe" => ":1,2,3,4",
                "key" => ":BACK",
                "text" => ":a",
                "wait" => ":1s",
                _ => "",
            };
            let action: Action = format!("{}{value}", entry.name).parse().unwrap();
            assert_eq!(action.name(), entry.name);
            assert!(entry.form.starts_with(entry.name));
        }
    }
}
