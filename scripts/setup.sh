# shellcheck shell=bash disable=SC2034
# Sourced by ./run and ./test. Installs missing Debian packages by name; takes a few milliseconds
# when none is missing.

build_packages=(g++ cmake ninja-build ccache doctest-dev nlohmann-json3-dev zlib1g-dev libopenblas-serial-dev
  llvm-19-dev libclang-19-dev libclang-cpp19-dev libsqlite3-dev libzstd-dev libpcre2-dev libutf8proc-dev python3-dev python3-venv)
test_packages=("${build_packages[@]}" clang-19 libclang-rt-19-dev clang-format-19 python3 python3-numpy python3-pytest chromium)

# install_packages NAME... : returns when all are installed, else says which command would do it and
# exits with 1.
install_packages() {
  if ! command -v dpkg-query >/dev/null; then
    echo "setup: not a Debian system; needed are the equivalents of: $*" >&2
    return 0
  fi
  local installed missing=() name
  installed=" $(dpkg-query -W -f='${Package}=${db:Status-Status} ' "$@" 2>/dev/null || true)"
  for name in "$@"; do
    [[ $installed == *" $name=installed "* ]] || missing+=("$name")
  done
  ((${#missing[@]})) || return 0

  local install=(apt-get install -y --no-install-recommends "${missing[@]}")
  local as_root=(env DEBIAN_FRONTEND=noninteractive)
  if [[ $(id -u) != 0 ]]; then
    # Without a terminal nobody can type a password.
    if [[ -t 0 ]]; then as_root=(sudo "${as_root[@]}"); else as_root=(sudo -n "${as_root[@]}"); fi
  fi
  if [[ $(id -u) == 0 ]] || command -v sudo >/dev/null; then
    echo "setup: installing ${missing[*]}"
    local log
    log=$(mktemp)
    # The list of available packages may be missing or old: then fetch it and try again.
    if "${as_root[@]}" "${install[@]}" >"$log" 2>&1 ||
      { "${as_root[@]}" apt-get update && "${as_root[@]}" "${install[@]}"; } >"$log" 2>&1; then
      rm -f "$log"
      return 0
    fi
    tail -n 15 "$log" >&2
    rm -f "$log"
  fi
  echo "setup: could not install the packages. Please run, as root:" >&2
  echo "  apt-get update && ${install[*]}" >&2
  exit 1
}
