#!/bin/sh
# Installs Debian packages: install.sh PACKAGE... Two that are started side by side
# wait for each other, which apt-get itself doesn't.
set -eu
export DEBIAN_FRONTEND=noninteractive
exec flock /tmp/deployer-install.lock sh -c 'apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@" >/dev/null' install "$@"
