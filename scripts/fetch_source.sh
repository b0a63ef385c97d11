#!/bin/sh
# Downloads the upstream source of a Debian package, without Debian's patches (which take libraries
# from Debian), and unpacks it as <dest>/<package>-<version>.
#
#   scripts/fetch_source.sh <package> <suite> <dest>      prints the folder as its last line
#
# The machine's apt configuration is left as it is: the sources list, the package lists and the
# cache are this script's own, under <dest>/apt. What it takes over from the machine is the mirror
# (and, implicitly, the proxy settings in apt.conf), because that may be all the machine can reach.
#
#   DEBIAN_MIRROR=http://...   another mirror
#   ONLY_VERSION=yes           prints the version that the suite has, and downloads nothing
#   APT_DIR=<dir>              where apt's lists are kept, instead of <dest>/apt
set -eu

package=$1
suite=$2
dest=$3

die() {
    echo "fetch_source: $*" >&2
    exit 1
}

command -v apt-get >/dev/null || die "apt-get is needed to fetch Debian's source package '$package'"

# The first source of this machine that is Debian's main archive; elsewhere the public one.
mirror() {
    if [ -n "${DEBIAN_MIRROR:-}" ]; then
        echo "$DEBIAN_MIRROR"
        return
    fi
    own=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
        grep -E '/debian/?$' | head -n 1 || true)
    echo "${own:-http://deb.debian.org/debian}"
}

mkdir -p "$dest"
dest=$(cd "$dest" && pwd)
apt=${APT_DIR:-$dest/apt}/$suite
mkdir -p "$apt"
apt=$(cd "$apt" && pwd)
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/empty"

keyring=/usr/share/keyrings/debian-archive-keyring.gpg
signed=
[ -e "$keyring" ] && signed="[signed-by=$keyring] "
echo "deb-src $signed$(mirror) $suite main" >"$apt/sources.list"

# As root apt would drop to the user _apt, who may not enter this folder.
own_apt() {
    tool=$1
    shift
    "$tool" -qq \
        -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts="$apt/empty" \
        -o Dir::State::Lists="$apt/lists" -o Dir::Cache="$apt/cache" \
        -o APT::Sandbox::User="$(id -un)" -o Acquire::Retries=3 -o Acquire::Languages=none "$@"
}

own_apt apt-get update >&2 || die "cannot read the package lists of '$suite' ($(cat "$apt/sources.list"))"

version=$(own_apt apt-cache showsrc "$package" 2>/dev/null |
    sed -n "/^Package: $package\$/,/^\$/s/^Version: //p" | sort -V | tail -n 1)
[ -n "$version" ] || die "no source package '$package' in '$suite'"

# 5:8.0.2-3+deb13u2 -> 8.0.2, 8.1.1+dfsg1-3 -> 8.1.1
upstream=$(echo "$version" | sed -e 's/^[0-9]*://' -e 's/-[^-]*$//' -e 's/[+~].*//')
if [ -n "${ONLY_VERSION:-}" ]; then
    echo "$upstream"
    exit 0
fi
folder=$dest/$package-$upstream
if [ ! -e "$folder/.unpacked" ]; then
    download=$apt/download
    rm -rf "$folder" "$download"
    mkdir -p "$folder" "$download"
    # A mirror may lack the description of a version that it lists, and have upstream's archive.
    (cd "$download" && own_apt apt-get source --tar-only --download-only "$package=$version" >&2) ||
        die "cannot download the source package '$package' $version"
    rm -f "$download"/*.asc
    tar -xf "$download/$package"_*.orig.tar.* -C "$folder" --strip-components=1 ||
        die "cannot unpack the source package '$package' $version"
    rm -rf "$download"
    echo "$version" >"$folder/.unpacked"
fi
echo "$folder"
