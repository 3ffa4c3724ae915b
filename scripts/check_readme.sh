#!/usr/bin/env bash
# Compares the README's table of environment switches and docs/ops.md with what the program prints;
# with --fix, replaces them.
#   scripts/check_readme.sh [--fix] [PATH-OF-HOLDFAST-COMMAND]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fix=false
if [[ ${1:-} == --fix ]]; then
  fix=true
  shift
fi
tool=${1:-build/release/bin/holdfast}
if [[ ! -x $tool ]]; then
  echo "check_readme: $tool is not built; ./run builds it" >&2
  exit 1
fi

if $fix; then
  mkdir -p docs
  "$tool" ops --markdown >docs/ops.md
elif ! diff docs/ops.md <("$tool" ops --markdown); then
  echo "check_readme: docs/ops.md (<) differs from the registry (>); scripts/check_readme.sh --fix updates it" >&2
  exit 1
fi

begin='<!-- switches:begin -->'
end='<!-- switches:end -->'
for marker in "$begin" "$end"; do
  if [[ $(grep -cxF -- "$marker" README.md) != 1 ]]; then
    echo "check_readme: README.md must have exactly one line \"$marker\"" >&2
    exit 1
  fi
done

printed=$("$tool" switches --markdown)
if [[ -z $printed ]]; then
  echo "check_readme: \`holdfast switches --markdown\` printed nothing" >&2
  exit 1
fi
written=$(awk -v b="$begin" -v e="$end" '$0 == e { inside = 0 } inside { print } $0 == b { inside = 1 }' README.md)
[[ $printed == "$written" ]] && exit 0

if $fix; then
  fresh=$(mktemp)
  TABLE=$printed awk -v b="$begin" -v e="$end" '
    $0 == e { inside = 0 }
    !inside { print }
    $0 == b { inside = 1; print ENVIRON["TABLE"] }' README.md >"$fresh"
  cat "$fresh" >README.md
  rm -f "$fresh"
  exit 0
fi
diff <(echo "$written") <(echo "$printed") || true
echo "check_readme: the README's switches (<) differ from the program's (>); scripts/check_readme.sh --fix updates them" >&2
exit 1
