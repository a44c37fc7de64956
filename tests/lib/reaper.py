# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever a daemon leaves behind becomes a child of the test's process, so that it can be seen.

That makes us the one who has to reap what QEMU, virtiofsd and others leave when they end: libvirt waits until a machine's process is
really gone. Programs that this process started itself are subprocess's to reap, so they are left alone.
"""
import ctypes
import os
import subprocess
import threading
import time
import weakref

PR_SET_CHILD_SUBREAPER = 36
PAUSE_S = 0.02
_started = threading.Event()
_own = {}  # pid to a weak reference; numbers come again, so that one counts only until its program was waited for


class _Popen(subprocess.Popen):
    """Remembers what we started."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        _own[self.pid] = weakref.ref(self)


def _is_own(pid):
    popen = _own.get(pid, lambda: None)()
    return popen is not None and popen.returncode is None


def children():
    found = set()
    for task in os.listdir('/proc/self/task'):
        try:
            with open(f'/proc/self/task/{task}/children', encoding='ascii') as file:
                found.update(map(int, file.read().split()))
        except OSError:
            pass
    return found


def _is_zombie(pid):
    try:
        with open(f'/proc/{pid}/stat', encoding='utf-8', errors='replace') as file:
            return file.read().rpartition(')')[2].split()[0] == 'Z'
    except OSError:
        return False


def _reap_forever():
    while True:
        zombies = {pid for pid in children() if _is_zombie(pid)}
        time.sleep(PAUSE_S)  # a program of our own has been noted by now
        for pid in zombies:
            if _is_own(pid):
                continue
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                pass


def start():
    if _started.is_set():
        return
    _started.set()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    subprocess.Popen = _Popen
    threading.Thread(target=_reap_forever, daemon=True).start()
