#!/bin/sh
# Check that the package installs in clean environments and runs: without pyspark in process, with it on Spark.
# $1 is a Python that has `build`.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$1" -m build --wheel --outdir "$folder"
wheel=$(ls "$folder"/streamsift-*.whl)
"$1" -m venv "$folder/venv"
cd "$folder"
unset PYTHONPATH PYSPARK_PYTHON PYSPARK_DRIVER_PYTHON

venv/bin/python -m pip install --quiet "$wheel"
if venv/bin/python -c 'import pyspark' 2>/dev/null; then
    echo "pyspark is installed without the extra that asks for it" >&2
    exit 1
fi
venv/bin/streamsift --version
venv/bin/streamsift demo --save data --rows 20000
echo 'PATTERN SEQ(Washing w, !Disinfection d, Operating o) WHERE [id] WITHIN 1 hour' >query.txt
venv/bin/streamsift check query.txt
venv/bin/streamsift run query.txt --input data/hospital.csv --time ts --type kind --engine local --limit 3

venv/bin/python -m pip install --quiet "$wheel[spark]"
venv/bin/streamsift demo --rows 20000
