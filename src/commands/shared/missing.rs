//! Summary of missing symbols: the libraries with most unnamed bytes, the searched places, and the
//! command that adds symbols.

use crate::console::{Console, Style};
use heaptap_base::units::counted;
use heaptap_model::names::module;
use heaptap_results::manifest::{
    CutLibrary, LookedIn, MissingLibrary, NamedLibrary, SymbolFile, Symbolization,
};

/// Libraries shown.
const LIBRARIES: usize = 5;
/// A smaller share of the bytes is negligible: as a percentage, it rounds to 0.0.
const SMALL: f64 = 0.0005;
/// Maximum number of places listed for one library.
const PLACES: usize = 4;

/// Remedies for frames without a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy<'a> {
    /// The command that accepts more symbols.
    Again(&'a str),
    /// Symbolization was not requested.
    NotAsked,
    /// Symbols came from the build in the demo, which no longer exists.
    Demo,
}

/// Returns a sentence about the number of unnamed frames.
fn unnamed(names: &Symbolization) -> String {
    let all = names.frames_unnamed + names.frames_named;
    let (have, they_are, allocate) = match names.frames_unnamed {
        1 => ("has", "it is", "allocates"),
        _ => ("have", "they are", "allocate"),
    };
    let (share, own) = (
        percent(names.share_unnamed),
        percent(names.leaf_share_unnamed),
    );
    let own = match share == own {
        true => "them".to_owned(),
        false => own,
    };
    let hidden = match names.share_unnamed {
        0.0 => String::new(),
        _ => {
            format!("; {they_are} in the callstacks of {share} of the bytes, and {allocate} {own}")
        }
    };
    format!(
        "{} of {all} frames {have} no name{hidden}",
        names.frames_unnamed
    )
}

/// Prints the missing symbols: notes, which quiet mode leaves out. `all` is where the list of
/// libraries is complete.
pub(crate) fn tell(console: &Console, names: &Symbolization, remedy: Remedy<'_>, all: &str) {
    for line in lines(console, names, remedy, all) {
        console.say(line);
    }
}

/// Returns the lines about missing symbols; empty if there are none.
fn lines(console: &Console, names: &Symbolization, remedy: Remedy<'_>, all: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let note = console.on_stderr(Style::Dim, "note");
    let cut = names.libraries_without_unwind.iter();
    lines.extend(
        cut.take(LIBRARIES)
            .map(|cut| format!("   {note}: {}", cut_line(cut))),
    );
    // Files that the user did not name are reported.
    let found = names.mappings.iter().filter(|m| m.origin == "project");
    lines.extend(found.map(|m| {
        format!(
            "   {note}: Java names in {} come from {} ({}); use `--mapping` to choose another file",
            m.packages.join(", "),
            m.path,
            m.variant
        )
    }));
    if names.frames_unnamed == 0 {
        return lines;
    }
    lines.push(format!("   {note}: {}", unnamed(names)));
    // A share of 0 can be unknown: a trace without dumps has frames, but no bytes.
    let is_known = names.share_unnamed > 0.0 || names.frames_named > names.frames_unnamed;
    let is_small = is_known && names.share_unnamed < SMALL;
    if remedy == Remedy::NotAsked || is_small {
        return lines;
    }
    let missing = by_build(&names.libraries_missing);
    if missing.is_empty() {
        return lines;
    }
    // A callstack counts for each of its libraries, so the column can add up to more than 100%.
    let heading = format!(
        "  {:>9} {:>7}  {}",
        "in stacks", "frames", "library, build ID"
    );
    lines.push(console.on_stderr(Style::Dim, heading).to_string());
    let large = missing.iter().take_while(|library| library.share >= SMALL);
    // Many negligible shares can have a sum that is not.
    let shown = LIBRARIES.min(large.count().max(1));
    for library in missing.iter().take(shown) {
        lines.push(format!(
            "  {:>9} {:>7}  {}",
            percent(library.share),
            library.frames,
            identity(library)
        ));
        if remedy == Remedy::Demo {
            lines.push(format!(
                "{:21}the demo intentionally does not have its symbols",
                ""
            ));
            continue;
        }
        let is_it = |named: &&NamedLibrary| match library.build_id.as_str() {
            "" => named.path == library.path && named.build_id.is_empty(),
            id => named.build_id == id,
        };
        let used = names
            .libraries_named
            .iter()
            .find(is_it)
            .map_or(&[][..], |named| &named.files);
        lines.extend(
            why(library, used)
                .into_iter()
                .map(|why| format!("{:21}{why}", "")),
        );
    }
    if let Some(left) = missing.len().checked_sub(shown + 1) {
        lines.push(format!("{:21}… and {} more, in {all}", "", left + 1));
    }
    let Remedy::Again(command) = remedy else {
        return lines;
    };
    let help = console.on_stderr(Style::Help, "help");
    let fix = console.on_stderr(Style::Help, format!("{command} --symbols DIR"));
    lines.push(format!("   {help}: {fix}"));
    lines.push(
        "         DIR: directory, ZIP or APK with the unstripped (or Breakpad .sym) files of these \
         builds"
            .to_owned(),
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
        .any(|directory| library.path.starts_with(directory))
    };
    if missing.iter().take(shown).any(on_phone) {
        lines.push(
            "         for system libraries, record or stop with `--pull-libs always`".to_owned(),
        );
    }
    lines
}

/// Returns one entry per build: apps can have the same library at other paths.
fn by_build(missing: &[MissingLibrary]) -> Vec<MissingLibrary> {
    let mut builds: Vec<MissingLibrary> = Vec::new();
    for library in missing {
        let is_same =
            |b: &&mut MissingLibrary| !b.build_id.is_empty() && b.build_id == library.build_id;
        let Some(build) = builds.iter_mut().find(is_same) else {
            builds.push(library.clone());
            continue;
        };
        build.frames += library.frames;
        build.share += library.share;
        build.leaf_share += library.leaf_share;
        build.nearest = build.nearest.take().or_else(|| library.nearest.clone());
        for place in &library.searched {
            if !build.searched.contains(place) {
                build.searched.push(place.clone());
            }
        }
    }
    builds.sort_by(|a, b| b.share.total_cmp(&a.share));
    builds
}

fn cut_line(cut: &CutLibrary) -> String {
    let end = if cut.callsites == 1 { "ends" } else { "end" };
    format!(
        "{} ({} of the bytes) {end} in {} after one frame because it seems to lack unwind \
         information; keep .eh_frame (-funwind-tables) to see its callers",
        counted(cut.callsites, "callstack", "callstacks"),
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

/// Returns the reasons for missing names, one per line; `used` are the files that were read.
fn why(library: &MissingLibrary, used: &[SymbolFile]) -> Vec<String> {
    let mut lines = Vec::new();
    if library.build_id.is_empty() {
        lines
            .push("the recording does not have its build ID, so no file can be matched".to_owned());
    }
    lines.extend(used.iter().take(PLACES).map(knows_too_little));
    let is_used = |place: &LookedIn| {
        let same = |file: &SymbolFile| match file.place.as_str() {
            // One directory contains all fetched files.
            "cache" => place.place == "cache",
            _ => place.path == file.path,
        };
        used.iter().any(same)
    };
    // Other builds are irrelevant if the user has the right one. The device always has it.
    let was_found = used
        .iter()
        .any(|file| file.verified && file.place != "cache");
    let nearest = library.nearest.as_ref().filter(|_| !was_found);
    if let Some(nearest) = nearest {
        lines.push(match nearest.build_id.as_str() {
            "" => format!(
                "{} has no build ID; use `--allow-no-build-id` to match it by name",
                nearest.path
            ),
            id => format!(
                "{} has build ID {id}: your build differs from the one on the device",
                nearest.path
            ),
        });
    }
    let is_told = |place: &LookedIn| {
        let is_another = matches!(place.why.as_str(), "other-build-id" | "no-build-id");
        is_used(place)
            || nearest.is_some_and(|nearest| nearest.path == place.path)
            || (was_found && is_another)
    };
    let (in_vain, refused): (Vec<&LookedIn>, Vec<&LookedIn>) = library
        .searched
        .iter()
        .filter(|place| !is_told(place))
        .partition(|place| matches!(place.why.as_str(), "not-there" | "no-such-place"));
    let refused_lines = refused.iter().take(PLACES);
    lines.extend(refused_lines.map(|place| format!("{} {}", place.path, place.detail)));
    let mut places: Vec<&str> = Vec::new();
    // The mapping's own path is the path on the device.
    let at_own_path = in_vain.iter().any(|place| place.place == "host-path");
    for place in in_vain {
        let path = match place.path.as_str() {
            _ if place.place == "host-path" => continue,
            "" => place.place.as_str(),
            path => path,
        };
        if !places.contains(&path) {
            places.push(path);
        }
    }
    let more = match places.len().saturating_sub(PLACES) {
        // One more place is as short as its count.
        0 | 1 => String::new(),
        more => {
            places.truncate(PLACES);
            format!(" and {more} more places")
        }
    };
    let places = places.join(", ") + &more;
    lines.extend(match (places.as_str(), at_own_path) {
        ("", false) => None,
        ("", true) => Some("not at its own path on the host".to_owned()),
        (places, false) => Some(format!("not in {places}")),
        (places, true) => Some(format!("not in {places}, nor at its own path on the host")),
    });
    lines
}

/// Returns why a file that was read left frames without a name.
fn knows_too_little(file: &SymbolFile) -> String {
    let SymbolFile {
        place,
        path,
        knowledge,
        ..
    } = file;
    let stripped = match knowledge.as_str() {
        "dynsym" => "exports only",
        "nothing" => "no names at all",
        _ => return format!("{path} has no names for these addresses"),
    };
    match place.as_str() {
        "cache" => format!("fetched from the device; it has {stripped}"),
        _ if file.verified => {
            format!("{path} is this build, but stripped ({stripped}); provide the unstripped file")
        }
        _ => format!("{path} is stripped ({stripped}); provide the unstripped file"),
    }
}

/// Formats a share as a percentage.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if share > 0.0 && share < SMALL {
        return "<0.1%".to_owned();
    }
    format!("{percent:.1}%")
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_results::manifest::NearestFile;

    fn text(names: &Symbolization) -> String {
        let console = Console::from_raw_args(&[]);
        let remedy = Remedy::Again("heaptap symbolize out");
        lines(&console, names, remedy, "manifest.json").join("\n")
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
    fn equal_shares_are_told_once() {
        let names = Symbolization {
            frames_named: 5,
            frames_unnamed: 1,
            share_unnamed: 0.2,
            leaf_share_unnamed: 0.2,
            ..Symbolization::default()
        };
        let text = "1 of 6 frames has no name; it is in the callstacks of 20.0% of the bytes, and \
                    allocates them";
        assert_eq!(unnamed(&names), text);
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
                    searched: vec![
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
                    share: 0.002,
                    searched: vec![place("symbols", "/s.zip", "damaged", "is damaged: cut")],
                    ..MissingLibrary::default()
                },
            ],
            ..Symbolization::default()
        };
        assert_eq!(
            text(&names),
            "   note: 40 of 100 frames have no name; they are in the callstacks of 50.0% of the \
             bytes, and allocate 25.0%
  in stacks  frames  library, build ID
      40.0%      30  libgame.so  ab01
                     /syms/libgame.so has build ID ab02: your build differs from the one on the device
                     not in /cache, nor at its own path on the host
       0.2%      10  libx.so  (no build ID)
                     the recording does not have its build ID, so no file can be matched
                     /s.zip is damaged: cut
   help: heaptap symbolize out --symbols DIR
         DIR: directory, ZIP or APK with the unstripped (or Breakpad .sym) files of these builds
         for system libraries, record or stop with `--pull-libs always`"
        );
    }

    #[test]
    fn many_libraries_are_counted_and_cut_ones_told() {
        let library = |n: usize| MissingLibrary {
            path: format!("/data/app/lib{n}.so"),
            build_id: format!("a{n}"),
            frames: 1,
            share: if n < 2 { 0.01 } else { 0.0004 },
            ..MissingLibrary::default()
        };
        let names = Symbolization {
            frames_unnamed: 8,
            share_unnamed: 0.02,
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
        assert!(text.contains("… and 6 more, in manifest.json"), "{text}");
        assert!(!text.contains("--pull-libs"), "{text}");
    }

    #[test]
    fn a_build_at_several_paths_is_one_row() {
        let at = |path: &str, build_id: &str, share| MissingLibrary {
            path: path.to_owned(),
            build_id: build_id.to_owned(),
            share,
            ..library(vec![place("cache", "/cache", "not-there", "not there")])
        };
        let names = Symbolization {
            frames_unnamed: 12,
            share_unnamed: 0.5,
            libraries_missing: vec![
                at("/data/app/b/libother.so", "cd02", 0.25),
                at("/data/app/a/base.apk!libgame.so", "ab01", 0.2),
                at("/data/app/b/lib/arm64/libgame.so", "ab01", 0.1),
                at("/data/app/a/libold.so", "", 0.02),
                at("/data/app/b/libold.so", "", 0.01),
            ],
            ..Symbolization::default()
        };
        let text = text(&names);
        let is_row = |line: &&str| line.contains('%') && line.contains("lib");
        let rows: Vec<&str> = text.lines().filter(is_row).collect();
        assert_eq!(
            rows,
            [
                "      30.0%       6  libgame.so  ab01",
                "      25.0%       3  libother.so  cd02",
                "       2.0%       3  libold.so  (no build ID)",
                "       1.0%       3  libold.so  (no build ID)",
            ],
            "{text}"
        );
        assert_eq!(text.matches("not in /cache").count(), 4, "{text}");
    }

    #[test]
    fn negligible_share_is_one_line() {
        let names = Symbolization {
            frames_named: 5,
            frames_unnamed: 1,
            share_unnamed: 0.0004,
            leaf_share_unnamed: 0.0004,
            libraries_missing: vec![library(Vec::new())],
            ..Symbolization::default()
        };
        let line = "   note: 1 of 6 frames has no name; it is in the callstacks of <0.1% of the \
                    bytes, and allocates them";
        assert_eq!(text(&names), line);
    }

    fn library(searched: Vec<LookedIn>) -> MissingLibrary {
        MissingLibrary {
            path: "/data/app/x/lib/arm64/libgame.so".to_owned(),
            build_id: "ab01".to_owned(),
            frames: 3,
            share: 0.4,
            searched,
            nearest: Some(NearestFile {
                place: "symbols".to_owned(),
                path: "/syms/armv7/libgame.so".to_owned(),
                build_id: "ab02".to_owned(),
            }),
            ..MissingLibrary::default()
        }
    }

    fn file(place: &str, path: &str, knowledge: &str) -> SymbolFile {
        SymbolFile {
            place: place.to_owned(),
            path: path.to_owned(),
            knowledge: knowledge.to_owned(),
            verified: true,
            addresses: 0,
            notes: Vec::new(),
        }
    }

    #[test]
    fn the_right_build_without_symbols_is_named_and_no_other_build_is_blamed() {
        let other = "/syms/armv7/libgame.so";
        let library = library(vec![
            place("symbols", other, "other-build-id", "has another build ID"),
            place("cache", "/cache", "not-there", "not there"),
        ]);
        let used = [
            file("symbols", "/syms/arm64/libgame.so", "dynsym"),
            file("cache", "/cache/lib/ab/01", "dynsym"),
        ];
        let expected = [
            "/syms/arm64/libgame.so is this build, but stripped (exports only); provide the \
             unstripped file",
            "fetched from the device; it has exports only",
        ];
        assert_eq!(why(&library, &used), expected);
        let fetched = why(&library, &used[1..]);
        let another = "has build ID ab02: your build differs from the one on the device";
        assert!(
            fetched.iter().any(|line| line.contains(another)),
            "{fetched:?}"
        );
        let names = Symbolization {
            frames_unnamed: 3,
            share_unnamed: 0.4,
            libraries_named: vec![NamedLibrary {
                path: library.path.clone(),
                build_id: library.build_id.clone(),
                addresses: 3,
                files: used.to_vec(),
            }],
            libraries_missing: vec![library],
            ..Symbolization::default()
        };
        assert!(text(&names).contains(expected[0]), "{}", text(&names));
    }

    #[test]
    fn a_single_place_is_never_counted_instead_of_named() {
        let of = |count: usize| {
            let places = (0..count).map(|n| place("project", &format!("/{n}"), "not-there", ""));
            let library = MissingLibrary {
                nearest: None,
                ..library(places.collect())
            };
            why(&library, &[]).join("\n")
        };
        assert_eq!(of(5), "not in /0, /1, /2, /3, /4");
        assert_eq!(of(6), "not in /0, /1, /2, /3 and 2 more places");
    }

    #[test]
    fn nothing_is_advised_that_would_not_help() {
        let names = Symbolization {
            frames_unnamed: 1,
            libraries_missing: vec![library(vec![place("symbols", "/gone", "not-there", "")])],
            ..Symbolization::default()
        };
        let console = Console::from_raw_args(&[]);
        assert_eq!(
            lines(&console, &names, Remedy::NotAsked, ""),
            ["   note: 1 of 1 frames has no name"]
        );
        let demo = lines(&console, &names, Remedy::Demo, "").join("\n");
        assert!(demo.contains("the demo intentionally"), "{demo}");
        assert!(
            !demo.contains("/gone") && !demo.contains("--symbols"),
            "{demo}"
        );
    }
}
