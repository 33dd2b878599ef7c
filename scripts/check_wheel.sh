#!/bin/sh
# Does the package install in an environment of its own, and run? $1 is a Python that has `build`.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$1" -m build --wheel --outdir "$folder"
"$1" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet "$folder"/streamsift-*.whl
cd "$folder"
unset PYTHONPATH PYSPARK_PYTHON PYSPARK_DRIVER_PYTHON
venv/bin/streamsift --version
venv/bin/streamsift demo --rows 20000
