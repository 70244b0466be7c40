#!/bin/sh
# Install what some tests need beside Python, where that is possible: as root, with apt.
# Usage: sh tests/install.sh "COMMAND..." PACKAGE...
# It never fails and never waits for long: without the commands their tests are skipped.
commands=$1
shift

missing() {
	for command in $commands; do
		command -v "$command" >/dev/null || return 0
	done
	return 1
}

apt() {
	timeout 180 apt-get -qq -o Acquire::Retries=1 -o Acquire::http::Timeout=20 -o DPkg::Lock::Timeout=60 "$@" >/dev/null
}

missing || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	export DEBIAN_FRONTEND=noninteractive
	apt install -y --no-install-recommends "$@" 2>/dev/null ||
		{ apt update && apt install -y --no-install-recommends "$@"; }
fi
if missing; then
	echo "MISSING: $commands, and not to be installed here ($*). Tests that need it WILL BE SKIPPED." >&2
fi
exit 0
