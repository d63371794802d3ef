//! What is missing for every frame to have a name, in a few lines: the libraries that hide
//! most, where their symbols were looked for, and the command that would name them.

use super::console::{Console, Style};
use crate::app::manifest::{CutLibrary, LookedIn, MissingLibrary, Symbolization};
use crate::names::module;

/// Libraries shown; the manifest has all.
const LIBRARIES: usize = 5;
/// Places named for one library.
const PLACES: usize = 4;

/// A sentence for each thing that is missing; empty where nothing is. `fix` is the command that
/// takes more symbols, with DIR for where they are.
pub(super) fn lines(console: &Console, names: &Symbolization, fix: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let note = console.on_stderr(Style::Dim, "note");
    let cut = names.libraries_without_unwind.iter();
    lines.extend(
        cut.take(LIBRARIES)
            .map(|cut| format!("   {note}: {}", cut_line(cut))),
    );
    // What nobody asked for is told.
    let found = names.mappings.iter().filter(|m| m.origin == "project");
    lines.extend(found.map(|m| {
        format!(
            "   {note}: Java names of {} are by {} ({}); --mapping takes another",
            m.packages.join(", "),
            m.path,
            m.variant
        )
    }));
    if names.frames_unnamed == 0 {
        return lines;
    }
    let all = names.frames_unnamed + names.frames_named;
    let hidden = match names.share_unnamed {
        0.0 => String::new(),
        share => format!(
            "; they are in the callstacks of {} of the bytes, and allocate {}",
            percent(share),
            percent(names.leaf_share_unnamed)
        ),
    };
    lines.push(format!(
        "   {note}: {} of {all} frames have no name{hidden}",
        names.frames_unnamed
    ));
    let missing = &names.libraries_missing;
    if missing.is_empty() {
        return lines;
    }
    let heading = format!("  {:>6} {:>7}  {}", "hides", "frames", "library, build ID");
    lines.push(console.on_stderr(Style::Dim, heading).to_string());
    for library in missing.iter().take(LIBRARIES) {
        lines.push(format!(
            "  {:>6} {:>7}  {}",
            percent(library.share),
            library.frames,
            identity(library)
        ));
        lines.extend(why(library).map(|why| format!("{:18}{why}", "")));
    }
    if let Some(left) = missing.len().checked_sub(LIBRARIES + 1) {
        lines.push(format!(
            "{:18}… and {} more, in manifest.json",
            "",
            left + 1
        ));
    }
    let help = console.on_stderr(Style::Help, "help");
    let fix = console.on_stderr(Style::Help, fix);
    let mut advice = format!("   {help}: {fix}");
    advice.push_str(
        "\n         DIR holds the unstripped files of these builds, or is a ZIP or APK with them",
    );
    let on_phone = |library: &MissingLibrary| {
        [
            "/system/",
            "/apex/",
            "/vendor/",
            "/product/",
            "/odm/",
            "/system_ext/",
        ]
        .iter()
        .any(|folder| library.path.starts_with(folder))
    };
    if missing.iter().take(LIBRARIES).any(on_phone) {
        advice.push_str("\n         those of the system: record or collect with --pull-libs");
    }
    lines.push(advice);
    lines
}

fn cut_line(cut: &CutLibrary) -> String {
    format!(
        "{} callstacks ({} of the bytes) end in {} after one frame: it seems to have no unwind \
         information; keep .eh_frame (-funwind-tables) to see its callers",
        cut.callsites,
        percent(cut.share),
        module(&cut.path)
    )
}

fn identity(library: &MissingLibrary) -> String {
    let name = module(&library.path);
    let name = match &*name {
        "" => "(no path)",
        name => name,
    };
    match library.build_id.as_str() {
        "" => format!("{name}  (no build ID)"),
        id => format!("{name}  {id}"),
    }
}

/// Why it has no names, a line each.
fn why(library: &MissingLibrary) -> impl Iterator<Item = String> {
    let mut lines = Vec::new();
    if library.build_id.is_empty() {
        lines
            .push("the recording has no build ID of it: nothing tells which file it is".to_owned());
    }
    if let Some(nearest) = &library.nearest {
        lines.push(match nearest.build_id.as_str() {
            "" => format!(
                "{} has no build ID; --allow-no-build-id takes it by its name",
                nearest.path
            ),
            id => format!(
                "{} is {id}: your build differs from what is on the phone",
                nearest.path
            ),
        });
    }
    let is_nearest = |l: &&LookedIn| library.nearest.as_ref().is_some_and(|n| n.path == l.path);
    let (in_vain, refused): (Vec<&LookedIn>, Vec<&LookedIn>) = library
        .looked_in
        .iter()
        .filter(|place| !is_nearest(place))
        .partition(|place| matches!(place.why.as_str(), "not-there" | "no-such-place"));
    let refused_lines = refused.iter().take(PLACES);
    lines.extend(refused_lines.map(|place| format!("{} {}", place.path, place.detail)));
    if !in_vain.is_empty() {
        let mut places: Vec<&str> = Vec::new();
        for place in &in_vain {
            let path = match place.path.as_str() {
                // A mapping's own path says nothing of where else to look.
                _ if place.place == "host-path" => "this host",
                "" => place.place.as_str(),
                path => path,
            };
            if !places.contains(&path) {
                places.push(path);
            }
        }
        let more = places.len().saturating_sub(PLACES);
        places.truncate(PLACES);
        let mut places = places.join(", ");
        if more > 0 {
            places.push_str(&format!(" and {more} more places"));
        }
        lines.push(format!("not in {places}"));
    }
    lines.into_iter()
}

/// A share as people read it.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if share > 0.0 && percent < 0.05 {
        return "<0.1%".to_owned();
    }
    format!("{percent:.1}%")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::manifest::NearestFile;

    fn text(names: &Symbolization) -> String {
        let console = Console::from_raw_args(&[]);
        lines(&console, names, "heaptap symbolize out --symbols DIR").join("\n")
    }

    fn place(place: &str, path: &str, why: &str, detail: &str) -> LookedIn {
        LookedIn {
            place: place.to_owned(),
            path: path.to_owned(),
            why: why.to_owned(),
            detail: detail.to_owned(),
        }
    }

    #[test]
    fn nothing_is_said_where_nothing_is_missing() {
        let names = Symbolization {
            frames_named: 7,
            ..Symbolization::default()
        };
        assert_eq!(text(&names), "");
    }

    #[test]
    fn each_library_says_what_it_hides_and_where_it_was_looked_for() {
        let names = Symbolization {
            frames_named: 60,
            frames_unnamed: 40,
            share_unnamed: 0.5,
            leaf_share_unnamed: 0.25,
            libraries_missing: vec![
                MissingLibrary {
                    path: "/data/app/x/lib/arm64/libgame.so".to_owned(),
                    build_id: "ab01".to_owned(),
                    frames: 30,
                    share: 0.4,
                    leaf_share: 0.2,
                    looked_in: vec![
                        place(
                            "symbols",
                            "/syms/libgame.so",
                            "other-build-id",
                            "is another",
                        ),
                        place("host-path", "/data/app/x/lib", "not-there", "not there"),
                        place("cache", "/cache", "not-there", "not there"),
                    ],
                    nearest: Some(NearestFile {
                        place: "symbols".to_owned(),
                        path: "/syms/libgame.so".to_owned(),
                        build_id: "ab02".to_owned(),
                    }),
                },
                MissingLibrary {
                    path: "/system/lib64/libx.so".to_owned(),
                    frames: 10,
                    share: 0.0002,
                    looked_in: vec![place("symbols", "/s.zip", "damaged", "is damaged: cut")],
                    ..MissingLibrary::default()
                },
            ],
            ..Symbolization::default()
        };
        assert_eq!(
            text(&names),
            "   note: 40 of 100 frames have no name; they are in the callstacks of 50.0% of the \
             bytes, and allocate 25.0%
   hides  frames  library, build ID
   40.0%      30  libgame.so  ab01
                  /syms/libgame.so is ab02: your build differs from what is on the phone
                  not in this host, /cache
   <0.1%      10  libx.so  (no build ID)
                  the recording has no build ID of it: nothing tells which file it is
                  /s.zip is damaged: cut
   help: heaptap symbolize out --symbols DIR
         DIR holds the unstripped files of these builds, or is a ZIP or APK with them
         those of the system: record or collect with --pull-libs"
        );
    }

    #[test]
    fn many_libraries_are_counted_and_cut_ones_told() {
        let library = |n: usize| MissingLibrary {
            path: format!("/data/app/lib{n}.so"),
            build_id: "aa".to_owned(),
            frames: 1,
            ..MissingLibrary::default()
        };
        let names = Symbolization {
            frames_unnamed: 8,
            libraries_missing: (0..8).map(library).collect(),
            libraries_without_unwind: vec![CutLibrary {
                path: "/data/app/libcut.so".to_owned(),
                build_id: "cc".to_owned(),
                callsites: 12,
                share: 0.125,
            }],
            ..Symbolization::default()
        };
        let text = text(&names);
        assert!(
            text.contains("12 callstacks (12.5% of the bytes) end in libcut.so"),
            "{text}"
        );
        assert!(text.contains("… and 3 more, in manifest.json"), "{text}");
        assert!(!text.contains("--pull-libs"), "{text}");
    }
}
