#!/bin/sh
# Check for a Java that Spark can run on. Install one if possible, otherwise print what to do.
# Like Spark, use $JAVA_HOME/bin/java if JAVA_HOME is set, and the `java` on PATH otherwise.
set -eu
needed=17

# Print the major version of the Java that Spark would use, or nothing: 17 for "17.0.15", 8 for "1.8.0_402".
java_version() {
    java=java
    [ -z "${JAVA_HOME:-}" ] || java="$JAVA_HOME/bin/java"
    command -v "$java" >/dev/null 2>&1 || return 0
    "$java" -version 2>&1 | sed -n 's/.* version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -n 1
}

good_enough() {
    version=$(java_version)
    [ -n "$version" ] && [ "$version" -ge "$needed" ]
}

good_enough && exit 0

if [ -n "${JAVA_HOME:-}" ]; then
    cat >&2 <<EOF
Spark needs Java $needed or newer; JAVA_HOME=$JAVA_HOME has ${version:-none}.
Set JAVA_HOME to a newer one, or unset it to use the java on PATH.
EOF
    exit 1
fi

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "Java $needed or newer not found (${version:-none}): installing Debian's headless JRE." >&2
    export DEBIAN_FRONTEND=noninteractive
    mkdir -p /usr/share/man/man1 # slim images lack it, and the JRE's install script needs it
    apt-get update -qq || echo "apt-get update failed; trying with the existing package lists." >&2
    apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless >&2 ||
        apt-get install -y -qq --no-install-recommends default-jre-headless >&2 || true
    good_enough && exit 0
    echo "The installation did not put Java $needed or newer on PATH." >&2
fi

cat >&2 <<EOF
Spark needs Java $needed or newer; found: ${version:-none}. Install one, then run make again:
  Debian, Ubuntu   sudo apt-get install openjdk-17-jre-headless    (or default-jre-headless)
  Fedora           sudo dnf install java-latest-openjdk-headless
  macOS            brew install openjdk@17 && export JAVA_HOME="\$(brew --prefix openjdk@17)"
  elsewhere        unpack a JDK $needed+ and set JAVA_HOME to its directory
EOF
exit 1
