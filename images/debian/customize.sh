#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Makes a Belljar guest of a bootstrapped tree. The builder runs it in a mount and process namespace of its own, with
#   BELLJAR_ROOT        the tree
#   BELLJAR_RECIPE_DIR  this folder
#   BELLJAR_GUEST_DIR   where belljar-guest-run lies
#   BELLJAR_NAME BELLJAR_VERSION BELLJAR_API BELLJAR_MASK BELLJAR_IDLE (separated by spaces)
set -eu
umask 022
root=$BELLJAR_ROOT

# What bootstrapping left: the host's mirror and proxy, logs, caches, identities, seeds.
rm -f "$root"/etc/apt/sources.list "$root"/etc/apt/sources.list.d/* "$root"/etc/apt/apt.conf.d/99mmdebstrap
rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/*.bin "$root"/var/cache/apt/archives/*.deb \
  "$root"/var/cache/debconf/*-old "$root"/var/lib/dpkg/*-old "$root"/var/cache/ldconfig/aux-cache "$root"/tmp/* "$root"/run/*
find "$root/var/log" -type f -delete
rm -f "$root"/etc/ssh/ssh_host_* "$root"/var/lib/systemd/random-seed "$root"/var/lib/systemd/credential.secret
: >"$root/etc/machine-id"
rm -f "$root/etc/resolv.conf"
: >"$root/etc/resolv.conf"
echo belljar >"$root/etc/hostname"

(cd "$BELLJAR_RECIPE_DIR/files" && find . -type d) | while read -r dir; do
  mkdir -p "$root/$dir"
done
(cd "$BELLJAR_RECIPE_DIR/files" && find . -type f) | while read -r file; do
  install -m 0644 "$BELLJAR_RECIPE_DIR/files/$file" "$root/$file"
done
chmod 0755 "$root"/usr/lib/belljar/*
install -m 0755 "$BELLJAR_GUEST_DIR/belljar-guest-run" "$root/usr/lib/belljar/run"
printf 'api=%s\nname=%s\nversion=%s\nrecipe=%s\n' \
  "$BELLJAR_API" "$BELLJAR_NAME" "$BELLJAR_VERSION" "$BELLJAR_NAME" >"$root/etc/belljar-image"
mkdir -p "$root/work"

# Checks run as this user: no password, no sudo, no way up. Root has no password either, so that su leads nowhere.
chroot "$root" useradd --create-home --uid 1000 --user-group --shell /bin/bash check
chroot "$root" usermod --password '*' root
chroot "$root" sh -c 'echo "debconf debconf/frontend select Noninteractive" | debconf-set-selections'

for unit in $BELLJAR_MASK; do
  ln -sf /dev/null "$root/etc/systemd/system/$unit"
done
for want in $BELLJAR_IDLE; do
  mkdir -p "$root/etc/systemd/system/${want%/*}"
  ln -sf /dev/null "$root/etc/systemd/system/$want"
done
# Starting the generators of units costs two seconds under TCG and none of them finds anything on this disk.
mkdir -p "$root/etc/systemd/system-generators"
for generator in "$root"/usr/lib/systemd/system-generators/*; do
  ln -sf /dev/null "$root/etc/systemd/system-generators/${generator##*/}"
done
systemctl --quiet --root="$root" set-default multi-user.target
systemctl --quiet --root="$root" enable belljar-lane@control.service belljar-lane@bulk.service \
  qemu-guest-agent.service belljar-network.service getty@tty1.service

# The kernel is started from outside: no boot folder, no initramfs, no module that drives hardware we do not give.
rm -rf "$root"/boot/* "$root"/initrd.img* "$root"/vmlinuz*
find "$root"/etc "$root"/var "$root"/usr/lib/belljar -newermt "@$SOURCE_DATE_EPOCH" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
