#!/bin/sh
# Fails if a suite of Debian has a Redis or Valkey that is not among the servers that are tested.
#
#   scripts/check_servers.sh <name>=<package>/<suite> ...      e.g. valkey-9.1=valkey/sid
#
# A suite that cannot be asked is told of and left out: without a network the servers that are built are still tested.
set -eu
cd "$(dirname "$0")/.."

missing=
for suite in bookworm trixie sid experimental; do
    for package in redis valkey; do
        if ! version=$(ONLY_VERSION=yes APT_DIR=build/deps/apt scripts/fetch_source.sh $package $suite build/servers/src 2>/dev/null); then
            echo "check_servers: $suite has no $package, or cannot be asked" >&2
            continue
        fi
        name=$package-$(echo "$version" | cut -d . -f 1,2)
        case " $*" in
        *" $name="*) ;;
        *) missing="$missing $name=$package/$suite" ;;
        esac
    done
done
[ -z "$missing" ] && exit 0
echo "check_servers: not among the SERVERS of the Makefile:$missing" >&2
exit 1
