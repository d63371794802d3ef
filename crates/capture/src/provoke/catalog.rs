//! What may be provoked, for people who look for it.

use serde::Serialize;

/// One action, explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// The word before the colon.
    pub name: &'static str,
    /// How it is written.
    pub form: &'static str,
    /// What it does.
    pub does: &'static str,
    /// What it brings out.
    pub finds: &'static str,
    /// Since which Android, and what is special on some.
    pub android: &'static str,
}

/// All actions.
pub const ALL: [Entry; 18] = [
    Entry {
        name: "rotate",
        form: "rotate:N",
        does: "turns the screen N times, upright and sideways in turn, and checks each time that \
               the activity in front was created anew",
        finds: "activities, views and fragments that something outlives: static fields, \
                listeners, threads",
        android: "all; 10 and 11 by wm set-user-rotation, 12 and later by wm user-rotation",
    },
    Entry {
        name: "home-and-back",
        form: "home-and-back:N",
        does: "presses HOME and comes back as the app's icon does, N times",
        finds: "what onStop ought to release and does not",
        android: "all",
    },
    Entry {
        name: "switch-apps",
        form: "switch-apps:N",
        does: "opens the system's settings and comes back, N times",
        finds: "surfaces, cameras, caches that are made at each return",
        android: "all",
    },
    Entry {
        name: "restart-activity",
        form: "restart-activity:N",
        does: "backs out of the app and starts it with an empty task, N times, in the same process",
        finds: "what outlives all screens: whatever grows here is held by the process",
        android: "all; since 12 BACK leaves the last activity alive, the empty task ends it",
    },
    Entry {
        name: "trim",
        form: "trim:LEVEL, trim:all",
        does: "asks the app to give memory back (onTrimMemory): running-moderate, running-low, \
               running-critical, hidden, background, moderate, complete; all sends them rising. \
               From hidden on HOME is pressed first and the app is brought back afterwards",
        finds: "caches that are not emptied",
        android: "6 and later; 14 and later send apps only hidden and background by themselves",
    },
    Entry {
        name: "monkey",
        form: "monkey:EVENTS[,seed=N][,throttle=MS]",
        does: "sends random taps, swipes and keys to the app alone; the same seed sends the same. \
               A crash does not end it, the app's processes are watched",
        finds: "leaks on ways through the app that nobody thought of",
        android: "all; where the phone's build has monkey",
    },
    Entry {
        name: "deep-link",
        form: "deep-link:URI",
        does: "opens a link in the app, in an activity of its own",
        finds: "screens that pile up",
        android: "all",
    },
    Entry {
        name: "tap",
        form: "tap:X,Y",
        does: "touches a point, pixels from the top left corner of the screen as it is turned",
        finds: "what a screen of your app's leaves behind",
        android: "all",
    },
    Entry {
        name: "swipe",
        form: "swipe:X1,Y1,X2,Y2[,MS]",
        does: "moves a finger, in 300 ms where nothing else is said",
        finds: "lists: rows and pictures that are not used again",
        android: "all",
    },
    Entry {
        name: "key",
        form: "key:NAME",
        does: "presses a key: BACK, MENU, ENTER, APP_SWITCH … or its number",
        finds: "what a screen of your app's leaves behind",
        android: "all; names as the release has them",
    },
    Entry {
        name: "text",
        form: "text:WORDS",
        does: "types WORDS, made of what an English keyboard has",
        finds: "what a screen of your app's leaves behind",
        android: "all",
    },
    Entry {
        name: "wait",
        form: "wait:DURATION",
        does: "does nothing, on the phone's clock",
        finds: "what grows by itself",
        android: "all",
    },
    Entry {
        name: "start",
        form: "start",
        does: "starts the app as its icon does, or brings it to the front",
        finds: "nothing by itself",
        android: "all; whether it was a cold start is known since 10",
    },
    Entry {
        name: "home",
        form: "home",
        does: "presses HOME and stays there",
        finds: "what an app in the background keeps",
        android: "all",
    },
    Entry {
        name: "force-stop",
        form: "force-stop",
        does: "ends all of the app's processes",
        finds: "nothing by itself: whatever was held is gone",
        android: "all",
    },
    Entry {
        name: "kill",
        form: "kill",
        does: "presses HOME and ends the app's process as the system does to save memory",
        finds: "how the app comes back: start it afterwards",
        android: "all",
    },
    Entry {
        name: "crash",
        form: "crash",
        does: "makes the app's process crash",
        finds: "what a restart after a crash costs",
        android: "7 and later",
    },
    Entry {
        name: "compact",
        form: "compact",
        does: "lets the kernel move the app's pages to swap: RSS falls, nothing is freed",
        finds: "the part of RSS that nobody uses",
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
