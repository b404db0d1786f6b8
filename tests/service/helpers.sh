# What the checks of the service share; to be sourced: helpers.sh TSOMON-FOLDER PROJECT. They are then in a folder of their own,
# which goes at the end with all that they have started.
# shellcheck shell=bash
set -euo pipefail
PATH=$1:$PATH
# shellcheck disable=SC2034
project=$2
build=$(cd "$1/.." && pwd)
work=$(mktemp -d)
trap 'kill -9 $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"
failed=0
wrong() { echo "wrong: $*"; failed=1; }

# have PROGRAM PACKAGE: its path in `program`. Where it is not installed its package is unpacked in the build folder: servers that are
# installed run for ever.
have() {
  local unpacked=$build/unpacked
  program=$(command -v "$1" || find "$unpacked" -name "$1" -type f -perm -u+x 2>/dev/null || true)
  if [[ -z $program ]]; then
    mkdir -p "$unpacked"
    # Several checks may do this at once.
    (cd "$unpacked" && exec 9>lock && flock 9 && apt-get -q download "$2" && dpkg-deb -x "$2"_*.deb .) >unpacked.log 2>&1 || true
    program=$(find "$unpacked" -name "$1" -type f -perm -u+x)
  fi
  [[ -n $program ]]
}
# wait_for SECONDS COMMAND...: until it succeeds.
wait_for() {
  local until=$((SECONDS + $1))
  shift
  while ! "$@" >/dev/null 2>&1; do
    ((SECONDS < until)) || return 1
    sleep 0.1
  done
}
# The sum of what tsomon.prom has of this name, with labels or without.
counter() { awk -v name="$1" 'index($1, name) == 1 { sum += $NF } END { print sum + 0 }' tsomon.prom; }
more_than() { (($(counter "$1" | cut -d. -f1) > $2)); }
start_monitor() { tsomon monitor --config "$@" >told 2>said & monitor=$!; }
end_monitor() {
  local status=0
  kill -TERM "$monitor"
  wait "$monitor" || status=$?
  [[ $status == 0 ]] || wrong "the monitor ended with $status: $(tail -n 5 said)"
}
