//! Text from a device, safe for CI systems. They obey commands in the text that they show: GitHub
//! Actions a leading `::` and any `##[`, Azure Pipelines `##vso[`, TeamCity `##teamcity[`; GitLab
//! and Travis fold at `section_start:` and `travis_fold:`; Jenkins and GitLab copy the file that
//! `[[ATTACHMENT|path]]` names.

use std::borrow::Cow;

const ATTACHMENT: &str = "attachment";
/// Words that begin a fold if a colon follows.
const FOLDS: [&str; 3] = ["section_start", "section_end", "travis_fold"];

/// Variables that CI systems set for the programs that they run.
const VARIABLES: [&str; 10] = [
    "CI",
    "GITHUB_ACTIONS",
    "GITEA_ACTIONS",
    "TF_BUILD",
    "TEAMCITY_VERSION",
    "GITLAB_CI",
    "JENKINS_URL",
    "TRAVIS",
    "BUILDKITE",
    "APPVEYOR",
];

/// Returns whether a CI system reads the output of this program, given the environment.
pub fn is_listening(variable: impl Fn(&str) -> Option<String>) -> bool {
    let is_on = |value: String| !matches!(&*value, "" | "0" | "false" | "False");
    VARIABLES
        .iter()
        .any(|name| variable(name).is_some_and(is_on))
}

/// Inserts blanks into the commands of each line of a text.
pub fn broken_up(text: &str) -> Cow<'_, str> {
    // .NET, which the runners of GitHub and Azure are written in, ends lines at either.
    let lines = || text.split_inclusive(['\n', '\r']);
    let may_begin = |line: &str| line.trim_start().starts_with("::");
    if !["##", "[[", "section_", "travis_fold"]
        .iter()
        .any(|mark| text.contains(mark))
        && !lines().any(may_begin)
    {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for line in lines() {
        push_broken_up(&mut out, line);
    }
    Cow::Owned(out)
}

fn push_broken_up(out: &mut String, line: &str) {
    let mut body = line.trim_start();
    out.push_str(&line[..line.len() - body.len()]);
    if body.starts_with("::") {
        out.push_str(": ");
        body = &body[1..];
    }
    for (at, c) in body.char_indices() {
        if completes(out, c, &body[at + c.len_utf8()..]) {
            out.push(' ');
        }
        out.push(c);
    }
}

/// Returns whether a character after `out` completes the mark of a command, given what follows.
fn completes(out: &str, c: char, rest: &str) -> bool {
    match c {
        '#' => out.ends_with('#'),
        '[' => out.ends_with('[') && is_attachment(rest),
        ':' => FOLDS.iter().any(|word| out.ends_with(word)),
        _ => false,
    }
}

fn is_attachment(rest: &str) -> bool {
    rest.get(..ATTACHMENT.len())
        .is_some_and(|word| word.eq_ignore_ascii_case(ATTACHMENT))
}

/// Marks of commands, at least one of which is in each text that has one inside of a line.
const MARKS: [&str; 4] = ["#", "[[", "section_", "travis_fold"];

/// Escapes the commands in JSON, whose values stay the same: these marks occur in strings only. No
/// line begins inside of a string.
pub fn escaped_json(json: &str) -> Cow<'_, str> {
    if !MARKS.iter().any(|mark| json.contains(mark)) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for (at, c) in json.char_indices() {
        match c == '#' || completes(&out, c, &json[at + c.len_utf8()..]) {
            true => out += &format!("\\u{:04x}", u32::from(c)),
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_broken_up_in_each_line() {
        let pairs = [
            ("::error::x", ": :error::x"),
            (" \t::error::x", " \t: :error::x"),
            (":::x", ": ::x"),
            ("std::vector", "std::vector"),
            ("a\n::x\r\u{2003}::y", "a\n: :x\r\u{2003}: :y"),
            ("##[group]a ###vso[x]", "# #[group]a # # #vso[x]"),
            ("a ##teamcity[x]", "a # #teamcity[x]"),
            ("[[[ATTACHMENT|/etc/x]]", "[[ [ATTACHMENT|/etc/x]]"),
            ("[[attachment|x]]", "[ [attachment|x]]"),
            ("[[I", "[[I"),
            ("section_start:1:a", "section_start :1:a"),
            ("x section_end:1:a", "x section_end :1:a"),
            ("travis_fold:start:a", "travis_fold :start:a"),
            ("section_starter: # a", "section_starter: # a"),
        ];
        for (text, safe) in pairs {
            assert_eq!(broken_up(text), safe);
        }
        assert!(matches!(broken_up("a # b: [c]"), Cow::Borrowed(_)));
    }

    #[test]
    fn json_has_the_same_values_without_commands() {
        let json = r###"{"a":"##[error]\\##vso[x] [[ATTACHMENT|x]] section_start:1:a"}"###;
        let safe = escaped_json(json);
        for mark in ["#", "[[", "section_start:"] {
            assert!(!safe.contains(mark), "{safe}");
        }
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(read(&safe), read(json));
    }

    #[test]
    fn ci_system_is_known_by_its_variables() {
        let with = |set: &[(&str, &str)]| {
            is_listening(|name| {
                let found = set.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        assert!(with(&[("GITHUB_ACTIONS", "true")]) && with(&[("TF_BUILD", "True")]));
        assert!(with(&[("CI", "1")]) && with(&[("TEAMCITY_VERSION", "2026.1")]));
        assert!(!with(&[]) && !with(&[("CI", "false"), ("GITLAB_CI", "")]));
        assert!(!with(&[("HOME", "/root")]));
    }
}
