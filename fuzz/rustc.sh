#!/bin/sh
# Compiles crates of the workspace with the coverage counters of libFuzzer: the RUSTC_WORKSPACE_WRAPPER
# of fuzz/run.sh. Build scripts and macros run in the compiler, where nothing counts.
case " $* " in
*" --crate-name build_script_"* | *" --crate-type proc-macro "* | *" -vV "*) exec "$@" ;;
esac
exec "$@" -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
  -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
  -Cllvm-args=-sanitizer-coverage-pc-table \
  -Cllvm-args=-sanitizer-coverage-trace-compares
