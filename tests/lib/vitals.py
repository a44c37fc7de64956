# SPDX-License-Identifier: GPL-3.0-or-later
"""What a belljard takes of its host, to see whether it takes more with every session."""
import os
import statistics

import belljar_test as bt

KIB = 1024


def _read(path):
    with open(path, encoding='utf-8', errors='replace') as file:
        return file.read()


def _kib(text, key):
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith(key + ':'))


def _children(pid):
    found = 0
    for name in filter(str.isdigit, os.listdir('/proc')):
        try:
            found += _read(f'/proc/{name}/stat').rsplit(')', 1)[1].split()[1] == str(pid)
        except OSError:
            continue
    return found


def _size(top, leave_out=()):
    """Bytes of files below @top; names that leave while we look were no lasting ones."""
    total = 0
    for folder, folders, names in os.walk(top):
        folders[:] = [name for name in folders if os.path.join(folder, name) not in leave_out and name != 'evidence']
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_blocks * 512
            except OSError:
                continue
    return total


def sample(daemon):
    """One look at a bt.Daemon between two sessions. Sizes are KiB."""
    pid = daemon.process.pid
    rollup = _read(f'/proc/{pid}/smaps_rollup')
    state = daemon.state_dir
    database, wal = (os.path.getsize(f'{state}/belljar.db{part}') if os.path.exists(f'{state}/belljar.db{part}') else 0
                     for part in ('', '-wal'))
    apart = [os.path.join(state, name) for name in ('images', 'templates', 'projects')]
    return {
        'rss': _kib(_read(f'/proc/{pid}/status'), 'VmRSS'),
        'pss': _kib(rollup, 'Pss'),
        'anon': _kib(rollup, 'Pss_Anon'),
        'fds': len(os.listdir(f'/proc/{pid}/fd')),
        'threads': len(os.listdir(f'/proc/{pid}/task')),
        'children': _children(pid),
        'machines': len(bt.machines_of(state)),
        'disk': (_size(state, apart) - database - wal) // KIB,
        'projects': _size(os.path.join(state, 'projects')) // KIB,
        'database': database // KIB,
        'wal': wal // KIB,
        'sockets': sum(daemon.folder in line for line in _read('/proc/net/unix').splitlines()),
        'cgroups': sum(1 for _entry in os.walk('/sys/fs/cgroup')),
        'mounts': sum(daemon.folder in line for line in _read(f'/proc/{pid}/mountinfo').splitlines()),
    }


def settle(daemon):
    """Machines end in the background, after whoever waited has his result."""
    bt.wait_until(lambda: not bt.machines_of(daemon.state_dir), 'machines to be gone', 60)


def slope(points):
    """Median of the slopes between all pairs (Theil and Sen): a few odd samples do not move it."""
    slopes = [(y2 - y1) / (x2 - x1) for i, (x1, y1) in enumerate(points) for x2, y2 in points[i + 1:] if x2 != x1]
    return statistics.median(slopes) if slopes else 0.0
