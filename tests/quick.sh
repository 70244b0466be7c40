#!/bin/sh
# Run a quick part of the tests with another Python, in a virtual environment of its own.
# Usage: sh tests/quick.sh PYTHON_VERSION [lowest]
# With `lowest`, every package has the lowest version that pyproject.toml allows. If that Python is
# not installed, neither on the PATH nor by pyenv, a line says so, and that is all.
set -eu
version=$1
lowest=${2-}
environment=.venv/$version${lowest:+-$lowest}

# Every package of ours that the wheel needs is needed by some of these.
tests="tests/test_public_api.py tests/api/config tests/nodes/test_table.py tests/cel/test_functions.py
	tests/metrics tests/cli/test_main.py tests/cli/test_explain.py tests/cli/test_simulate.py
	tests/live/test_server.py tests/live/test_http1.py tests/live/test_client.py
	tests/live/test_credentials.py tests/serve/rest/test_requests.py"
extras=test
if [ "$lowest" ]; then
	tests="$tests tests/sim/test_frames.py tests/sweeping/test_dask.py"
	extras=dask,frames,test
fi

find_python() {
	for python in "python$version" "$HOME/.pyenv/versions/$version".*/bin/python; do
		"$python" -c "import sys, venv, ensurepip; sys.exit('%d.%d' % sys.version_info[:2] != '$version')" \
			>/dev/null 2>&1 && echo "$python" && return
	done
	return 0
}

python=$(find_python)
if [ -z "$python" ]; then
	echo "Python $version is not installed: its tests ARE SKIPPED." >&2
	exit 0
fi
if [ ! -e "$environment/.ready" ] || [ pyproject.toml -nt "$environment/.ready" ]; then
	"$python" -m venv --clear "$environment"
	"$python" tools/lowest.py >"$environment/lowest.txt"
	"$environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check \
		${lowest:+--constraint "$environment/lowest.txt"} --editable ".[$extras]"
	touch "$environment/.ready"
fi
echo "Python $version${lowest:+, lowest versions}"
# shellcheck disable=SC2086  # These are several paths.
env -u PYTHONHASHSEED -u PYTHONDONTWRITEBYTECODE "$environment/bin/pytest" -n 2 -p no:cacheprovider $tests
