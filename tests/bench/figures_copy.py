# SPDX-License-Identifier: GPL-3.0-or-later
"""belljar copy of one large file, and what a command beside it has to wait."""
import os
import shutil
import tempfile
import threading

import belljar_test as bt
from basis import Basis, execute_in, measure
from table import Row

MB, FOLDER = 1000000, '/root'


def run_copy(daemon, source, destination):
    ran = daemon.cli('copy', source, destination)
    if ran.returncode != 0:
        raise AssertionError(f'belljar copy ended with {ran.returncode}: {ran.stderr}')


class CopyFigures(Basis):
    def time_true(self, connection):
        return measure(execute_in, connection, self.session, '/bin/true')

    def time_beside(self, *args):
        """One true after the other, from a connection of its own, while the copy goes on. Returns its seconds and theirs."""
        seconds, over = [], threading.Event()
        connection = self.daemon.bus.connect()

        def work():
            while not over.is_set():
                seconds.append(self.time_true(connection))
        thread = threading.Thread(target=work)
        thread.start()
        try:
            took = measure(run_copy, self.daemon, *args)
        finally:
            over.set()
            thread.join()
            connection.close_sync(None)
        return took, seconds

    def figure_copy(self):
        """One file of random bytes in, the same one out, compared at the end."""
        _ = self.session
        self.execute(self.daemon.connection, '/usr/bin/systemctl', 'is-system-running', '--wait')
        size = self.choose(1000, 32) * MB
        rows, folder = [], tempfile.mkdtemp(prefix='bj-copy-', dir=bt.places()[0])
        self.stack.callback(shutil.rmtree, folder)
        here, back, there = os.path.join(folder, 'big'), os.path.join(folder, 'back'), f'{self.session}:{FOLDER}/big'
        with open(here, 'wb') as out:
            for _ in range(size // MB):
                out.write(os.urandom(MB))
        for way, args in (('in', (here, there)), ('out', (there, back))):
            alone = [self.time_true(self.daemon.connection) for _ in range(self.choose(60, 10))]
            grown = []

            def copy():
                grown.append(self.time_beside(*args))  # pylint: disable=cell-var-from-loop
            growth = self.grow(copy)
            took, beside = grown[0]
            name = f'copy: {size // MB} MB {way}'
            rows += [Row(name, 'MB/s', [size / MB / took]), Row(f'{name}, growth', 'MiB', [growth], at_most=5),
                     Row(f'{name}, true beside it p50', 'ms', beside, alone, 'true alone p50'),
                     Row(f'{name}, true beside it p95', 'ms', beside, alone, 'true alone p95', part=0.95)]
        if bt.digest_file(here) != bt.digest_file(back):
            raise AssertionError('what came back is not what went in')
        return rows
