#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs after the base's test, as root in the booted guest.
set -eux
[ "$(systemctl is-active belljar-desktop.service)" = active ]
export DISPLAY=:0
for _ in $(seq 100); do
  if xprop -root _NET_SUPPORTING_WM_CHECK 2>/dev/null | grep -q window; then break; fi
  sleep 0.5
done
xprop -root _NET_SUPPORTING_WM_CHECK | grep window
[ -e /dev/dri/card0 ]
grep -q 'QEMU Virtio Tablet' /proc/bus/input/devices
grep -q 'QEMU Virtio Tablet' /var/log/Xorg.0.log
printf clip | xclip -selection clipboard -in >/dev/null 2>&1
[ "$(xclip -selection clipboard -out)" = clip ]
command -v mousepad xterm
