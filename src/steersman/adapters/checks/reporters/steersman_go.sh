#!/bin/sh
# Stands between `go test` and each test binary, and says so where one has left with 0 before its tests had ended.
# Go's own `testing` writes this log when they have: `go test` asks for it too, to know what it may cache.
unset GOFLAGS
log=$(mktemp) || exit 1
program=$1
shift
"$program" -test.testlogfile="$log" "$@"
code=$?
[ "$code" -ne 0 ] || [ -s "$log" ] || printf '\n%s\n' 'steersman: it left before its tests had ended'
rm -f "$log"
exit "$code"
