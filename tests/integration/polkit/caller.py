# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls org.belljar1 as the user it runs as: one JSON request a line on standard input, one JSON answer a line on output."""

import json
import os
import sys

import gi

gi.require_version("Gio", "2.0")
from gi.repository import Gio, GLib  # noqa: E402

TIMEOUT_MS = 60000


def call(bus, request):
    parameters = GLib.Variant.parse(None, request["parameters"], None, None)
    flags = Gio.DBusCallFlags.ALLOW_INTERACTIVE_AUTHORIZATION if request.get("interactive") else Gio.DBusCallFlags.NONE
    fds = Gio.UnixFDList.new()
    folder = os.open("/tmp", os.O_RDONLY | os.O_DIRECTORY)
    fds.append(folder)
    os.close(folder)
    try:
        reply, _fds = bus.call_with_unix_fd_list_sync("org.belljar1", request["path"], request["interface"],
                                                      request["method"], parameters, None, flags, TIMEOUT_MS, fds, None)
        return {"reply": reply.unpack()}
    except GLib.Error as error:
        name = Gio.dbus_error_get_remote_error(error) or "local"
        return {"error": name, "message": error.message}


def main():
    bus = Gio.bus_get_sync(Gio.BusType.SYSTEM, None)
    for line in sys.stdin:
        print(json.dumps(call(bus, json.loads(line))), flush=True)


main()
