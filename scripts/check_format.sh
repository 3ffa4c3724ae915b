#!/usr/bin/env bash
# Checks that all sources are formatted as .clang-format says; with --fix, formats them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fix=false
case "${1:-}" in
  "") ;;
  --fix) fix=true ;;
  --help | -h)
    echo "usage: scripts/check_format.sh [--fix]"
    exit 0
    ;;
  *)
    echo "usage: scripts/check_format.sh [--fix]" >&2
    exit 2
    ;;
esac

formatter=${CLANG_FORMAT:-clang-format-19}
if ! command -v "$formatter" >/dev/null; then
  echo "check_format: $formatter is missing: apt-get install clang-format-19" >&2
  exit 1
fi

# Tracked files and new ones, not what git ignores. In a source archive without git: all but build/.
list_sources() {
  if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    git ls-files -z --cached --others --exclude-standard -- '*.h' '*.cpp'
  else
    find . -path ./build -prune -o \( -name '*.h' -o -name '*.cpp' \) -print0
  fi
}

sources=()
while IFS= read -r -d '' file; do
  if [[ -f $file ]]; then sources+=("$file"); fi # git still lists a file deleted a moment ago
done < <(list_sources)
if ((${#sources[@]} == 0)); then
  echo "check_format: no sources"
  exit 0
fi

# for_each_source COMMAND : runs the shell command for each source as $1, several at a time.
for_each_source() {
  printf '%s\0' "${sources[@]}" | FORMATTER=$formatter xargs -0 -n 1 -P "$(nproc)" bash -c "$1" _
}

if $fix; then
  for_each_source '"$FORMATTER" --style=file -i "$1"'
else
  # One short line a file, because the processes share this output.
  bad=$(for_each_source '"$FORMATTER" --style=file --dry-run -Werror "$1" >/dev/null 2>&1 || echo "$1"')
  if [[ -n $bad ]]; then
    sort <<<"$bad"
    echo "check_format: these files are not formatted; scripts/check_format.sh --fix does it" >&2
    exit 1
  fi
fi
echo "check_format: ${#sources[@]} files"
