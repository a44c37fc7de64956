#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs after the base's script, with the same variables (BELLJAR_RECIPE_DIR is this folder).
set -eu
umask 022
root=$BELLJAR_ROOT

(cd "$BELLJAR_RECIPE_DIR/files" && find . -type f) | while read -r file; do
  mkdir -p "$root/${file%/*}"
  install -m 0644 "$BELLJAR_RECIPE_DIR/files/$file" "$root/$file"
done
chmod 0755 "$root/usr/lib/belljar/desktop" "$root/usr/lib/belljar/warm"

# The X server finds keyboard and pointer through udev.
for want in $BELLJAR_IDLE; do
  case $want in *udev*) rm -f "$root/etc/systemd/system/$want" ;; esac
done
systemctl --quiet --root="$root" enable belljar-desktop.service

find "$root"/etc "$root"/usr/lib/belljar -newermt "@$SOURCE_DATE_EPOCH" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
