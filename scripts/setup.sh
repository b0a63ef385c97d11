#!/bin/sh
# Brings the machine to where the other targets work: compiler, libraries, redis-server, the Redis
# module header, a Python environment. Installs only what is missing; quick when nothing is.
#
#   scripts/setup.sh [build|estimate|server|python3|python|tcl|fuzz|lint|coverage|deb|bench|all]...     (default: all)
#   scripts/setup.sh clients|glide|arm64|image|imagetest     not in all
#
# python3 is the interpreter alone, python the environment of the tests in .venv,
# clients, glide and imagetest those of `make test-clients`, `make bench` and `make test-image` below build.
#
# On Debian and Ubuntu packages come from apt; elsewhere it says what to install and stops.
set -eu
cd "$(dirname "$0")/.."

CC=${CC:-cc}
PYTHON=${PYTHON:-python3}
REDIS_SERVER=${REDIS_SERVER:-redis-server}

packages=
elsewhere=

# need <Debian packages> <what to say elsewhere>
need() {
    packages="$packages $1"
    elsewhere="$elsewhere
  $2"
}

have() { command -v "$1" >/dev/null 2>&1; }
header() { have "$CC" && printf '#include <stddef.h>\n#include <%s>\n' "$1" | "$CC" -E - >/dev/null 2>&1; }

# The newest function that this module asks for came with Redis 7.4 (servers may be older): an older header on the include
# path is no use.
header_is_new() {
    printf '#include <stddef.h>\n#include <redismodule.h>\n' |
        "$CC" ${1:+-I"$1"} -E - 2>/dev/null | grep -q RedisModule_AddACLCategory
}

header_found() {
    if [ -n "${REDISMODULE_INCLUDE:-}" ]; then
        [ -e "$REDISMODULE_INCLUDE/redismodule.h" ] || {
            echo "setup: no redismodule.h in REDISMODULE_INCLUDE=$REDISMODULE_INCLUDE" >&2
            exit 1
        }
        header_is_new "$REDISMODULE_INCLUDE" || {
            echo "setup: $REDISMODULE_INCLUDE/redismodule.h is older than Redis 7.4" >&2
            exit 1
        }
        return 0
    fi
    if header redismodule.h; then
        header_is_new "" && return 0
        echo "setup: the redismodule.h on the include path is older than Redis 7.4;" \
            "choose another with REDISMODULE_INCLUDE=<dir>" >&2
        exit 1
    fi
    [ -e build/deps/include/redismodule.h ]
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif have sudo; then
        sudo "$@"
    else
        echo "setup: not root and no sudo; run this as root:  $*" >&2
        exit 1
    fi
}

install_missing() {
    [ -n "$packages" ] || return 0
    if ! have apt-get; then
        echo "setup: this is not Debian or Ubuntu; please install, then try again:$elsewhere" >&2
        exit 1
    fi
    echo "setup: installing$packages" >&2
    if ! install_packages; then
        echo "setup: refreshing apt's package lists" >&2
        as_root apt-get update -qq </dev/null >&2
        install_packages || {
            tail -n 30 build/setup.log >&2
            exit 1
        }
    fi
    packages=
}

# shellcheck disable=SC2086  # $packages is a list of words
install_packages() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
        $packages </dev/null >build/setup.log 2>&1
}

check_build() {
    { have "$CC" && have make && header stdlib.h; } || need build-essential "a C11 compiler and GNU make"
    # Without a compiler a header cannot be looked for: then both are asked for.
    header zstd.h || need libzstd-dev "libzstd with its headers, 1.4 or newer"
    if ! header_found; then
        have apt-get || need apt \
            "redismodule.h of Redis 7.4 or newer (src/redismodule.h in its sources); say REDISMODULE_INCLUDE=<dir>"
        [ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || ! have apt-get ||
            need debian-archive-keyring "-"
    fi
}

check_server() {
    have "$REDIS_SERVER" || need redis-server "redis-server 7.0.6 or newer (or Valkey 8 or newer)"
    have redis-cli || need redis-tools "redis-cli and redis-benchmark"
}

check_python() {
    have "$PYTHON" || {
        need "python3" "Python 3.9 or newer"
        return 0
    }
    have_venv || "$PYTHON" -c 'import venv, ensurepip' 2>/dev/null || need python3-venv "Python's venv module"
}

check_clients() {
    check_python
    have tar || need tar "tar"
}

check_glide() { check_python; }

check_python3() { have "$PYTHON" || need python3 "Python 3.9 or newer"; }

check_tcl() { have tclsh8.6 || have tclsh8.7 || need tcl "Tcl 8.6 (tclsh8.6)"; }

check_fuzz() {
    have clang || need clang "clang with libFuzzer, AddressSanitizer and UBSan (compiler-rt)"
}

check_lint() {
    have clang-format || need clang-format "clang-format"
    have cppcheck || need cppcheck "cppcheck"
}

check_coverage() { have gcovr || need gcovr "gcovr"; }

check_deb() {
    have dpkg-shlibdeps || need dpkg-dev "dpkg-dev"
    have dh || need debhelper "debhelper"
}

check_hiredis() { header hiredis/hiredis.h || need libhiredis-dev "hiredis with its headers"; }

check_estimate() {
    check_hiredis
    header openssl/ssl.h || need libssl-dev "OpenSSL with its headers"
}

check_bench() {
    check_hiredis
    header libmemcached/memcached.h || need libmemcached-dev "libmemcached with its headers"
    header zlib.h || need zlib1g-dev "zlib with its headers"
    have memcached || need memcached "memcached"
}

check_arm64() {
    have aarch64-linux-gnu-gcc || need gcc-aarch64-linux-gnu "a cross compiler for aarch64-linux-gnu"
    [ -e /usr/aarch64-linux-gnu/include/stdlib.h ] || need libc6-dev-arm64-cross "-"
    have qemu-aarch64 || need qemu-user "qemu-aarch64 (user mode)"
    have mmdebstrap || need mmdebstrap "mmdebstrap"
}

check_image() {
    have buildah || need buildah "buildah"
    have mmdebstrap || need mmdebstrap "mmdebstrap"
}

check_imagetest() { check_python; }

# have_venv [<folder> <requirements>]
have_venv() { cmp -s "${2-requirements.txt}" "${1-.venv}/.requirements" && "${1-.venv}/bin/python" -c '' 2>/dev/null; }

# Steps that follow once the packages are there.
finish_build() {
    header_found || scripts/fetch_redismodule.sh build/deps
}

finish_python() { make_venv .venv requirements.txt; }

finish_glide() { make_venv build/glide-venv bench/requirements.txt; }

finish_clients() { make_venv build/clients-venv tests/clients/requirements.txt; }

finish_imagetest() { make_venv build/image-venv tests/image/requirements.txt; }

make_venv() {
    have_venv "$1" "$2" && return 0
    if ! "$PYTHON" -c 'import venv, ensurepip' 2>/dev/null; then
        need python3-venv "Python's venv module"
        install_missing
    fi
    echo "setup: Python environment in $1" >&2
    rm -rf "$1"
    "$PYTHON" -m venv "$1"
    "$1/bin/python" -m pip install --quiet --disable-pip-version-check -r "$2" >&2
    cp "$2" "$1/.requirements"
}

# libFuzzer's run-time is a package of its own, named after clang's version.
finish_fuzz() {
    [ -e "$(clang -print-file-name="libclang_rt.fuzzer-$(uname -m).a")" ] && return 0
    probe=$(mktemp -d)
    echo 'int LLVMFuzzerTestOneInput(const char *d, long n) { return d == 0 && n; }' >"$probe/f.c"
    if ! clang -fsanitize=fuzzer,address "$probe/f.c" -o "$probe/f" 2>/dev/null; then
        need "libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev" "clang's compiler-rt (libFuzzer)"
    fi
    rm -rf "$probe"
    install_missing
}

[ $# -gt 0 ] || set -- all
parts=
for part in "$@"; do
    case $part in
        all) parts="$parts build estimate server python tcl fuzz lint coverage deb bench" ;;
        build | estimate | server | python | python3 | tcl | fuzz | lint | coverage | deb | bench) parts="$parts $part" ;;
        clients | glide | arm64 | image | imagetest) parts="$parts $part" ;;
        *)
            echo "setup: unknown part '$part'" >&2
            exit 1
            ;;
    esac
done

# One at a time, also under make -j.
mkdir -p build
if have flock; then
    exec 9>build/.setup.lock
    flock 9
fi

for part in $parts; do "check_$part"; done
install_missing
for part in $parts; do
    case $part in
        build | python | clients | glide | imagetest | fuzz) "finish_$part" ;;
    esac
done
