#!/bin/sh
# Compiles a crate of the workspace with coverage counters for libFuzzer. cargo calls it as `rustc-with-coverage.sh rustc ...`
# (RUSTC_WORKSPACE_WRAPPER). Programs that run while cargo builds are left as they are: they would lack libFuzzer's functions.
# Crates that parse nothing are left so, too: they take long to compile with counters.
case " $* " in
    *" --crate-type proc-macro "* | *" --crate-name build_script_build "*) exec "$@" ;;
    *" --crate-name linerate_report "* | *" --crate-name linerate_copy "* | *" --crate-name linerate_testsuite "*) exec "$@" ;;
    *" --crate-name "*) ;;
    *) exec "$@" ;;
esac
exec "$@" -Copt-level=1 -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares
