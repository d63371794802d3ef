//! A first scenario for an app, with comments.

/// Returns a scenario for a package that is useful as it is, and shows the language.
pub fn first_scenario(package: &str) -> String {
    TEMPLATE.replace("PACKAGE", package)
}

const TEMPLATE: &str = "\
# Scenario of heaptap: what to do with the app, what to measure, and what it can use.
version: 1

# Stable name: the history of the figures depends on it.
name: rotation

# One process, as `heaptap record --name`; `package:` records all processes of a package.
target: {name: PACKAGE}

# To install the app first, from a variable of the environment:
# install: {apk: \"${APK}\"}

# Data to capture at each snapshot: native, java, meminfo, smaps, gc.
measure: [native, java, meminfo]

# Runs until each budget is decided, at least 3 and at most 5.
repeats: {min: 3, max: 5}

# Time limit of one run.
timeout: 15m

steps:
- start
- sleep: 3s                  # or wait-for: {quiet: 2s}, {activity: .Main}, {log: REGEX}
- snapshot: started
- repeat: 10                 # the snapshots get the labels round-1 to round-10
  steps:
  - rotate: 2                # or another action of `heaptap provoke --list`
  - sleep: 1s
  - snapshot: round
# The end of the recording is the moment `end`.

budgets:
# Java objects that the app no longer needs, such as destroyed activities.
- {name: leaks, leaks: {}, at: end, limit: 0}
# Growth of native memory by each rotation.
- {name: native-growth, native: {}, per: round, limit: 64KiB}
# Memory of the app as the system counts it (PSS).
- {name: total, meminfo: {row: TOTAL}, at: end, limit: 300MiB}

# Keep the recordings only if a budget is not within its limit: on-failure.
keep: always
";
