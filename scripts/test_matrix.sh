#!/bin/sh
# Run tests on several versions of pyspark: test_matrix.sh BIN "VERSIONS" PROCESSES TESTS...
# BIN has uv and the Python to use. Each version gets the virtual environment .matrix/VERSION, which later runs reuse.
set -eu
bin=$1 versions=$2 jobs=$3
shift 3
unset PYSPARK_PYTHON PYSPARK_DRIVER_PYTHON
# PySpark 4.0 leaves the sockets of collected results open.
open_sockets="-W ignore::ResourceWarning -W ignore::pytest.PytestUnraisableExceptionWarning"

for version in $versions; do
    echo "== pyspark $version"
    folder=.matrix/$version
    [ -x "$folder/bin/python" ] || "$bin/uv" venv --quiet --python "$bin/python" "$folder"
    "$bin/uv" pip install --quiet --python "$folder/bin/python" --editable '.[dev]' "pyspark==$version.*"
    # shellcheck disable=SC2086 # several words
    PYSPARK_PYTHON=$PWD/$folder/bin/python "$folder/bin/python" -m pytest -q $open_sockets \
        -n "$jobs" --dist loadgroup "$@"
done
