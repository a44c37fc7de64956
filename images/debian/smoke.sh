#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs as root in the booted guest, once, before the image may be used. Anything that fails makes the build fail.
set -eux
grep -qx 'api=1' /etc/belljar-image
[ -x /usr/lib/belljar/run ]

# systemd behaves as people expect.
systemctl is-system-running --wait
[ -z "$(systemctl --failed --no-legend)" ]
systemd-run --quiet --wait --pipe true
[ "$(systemctl is-active qemu-guest-agent.service)" = active ]
[ "$(systemctl is-active belljar-lane@control.service belljar-lane@bulk.service)" = "active
active" ]
[ "$(stat -c %a /tmp)" = 1777 ]

# The tools a task needs.
dir=$(mktemp -d)
cd "$dir"
printf '#include <stdio.h>\nint main (void) { puts ("compiled"); return 0; }\n' >hello.c
printf 'hello: hello.c\n\tcc -o hello hello.c\n' >Makefile
make -s hello
[ "$(./hello)" = compiled ]
[ "$(python3 -c 'print(6 * 7)')" = 42 ]
git init -q . && git add hello.c
git -c user.name=smoke -c user.email=smoke@localhost commit -q -m smoke
curl --version >/dev/null
unzip -v >/dev/null
xz --version >/dev/null
command -v sudo ip ps patch less file tar gcc

# The user for checks exists and has no way up.
[ "$(id -u check)" = 1000 ]
if grep -rqs '^check' /etc/sudoers /etc/sudoers.d; then exit 1; fi
[ "$(id -nG check)" = check ]
awk -F: '($1 == "root" || $1 == "check") && $2 !~ /^[!*]/ { bad = 1 } END { exit bad }' /etc/shadow

# Kernel: a share can be mounted, random numbers come from the host too.
grep -qw virtiofs /proc/filesystems
grep -qw 'sysrq_always_enabled' /proc/cmdline

# Nothing that two machines would have in common.
[ ! -e /var/lib/systemd/random-seed ]
if ls /etc/ssh/ssh_host_* 2>/dev/null; then exit 1; fi
cd /
rm -rf "$dir"
