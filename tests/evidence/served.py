# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for belljard that serves evidence as it lies in a folder, so that the command judges what a test laid there.

Usage: served.py ADDRESS FOLDER     FOLDER/SESSION/{report.json,transcript.jsonl} and FOLDER/key; ends with its standard input"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'integration'))

import fake_daemon  # noqa: E402  pylint: disable=wrong-import-position

SESSIONS = ('abcd2345', 'efgh2345')


class Served(fake_daemon.Session):
    """A session that is over."""

    def path_of(self, name):
        return os.path.join(self.daemon.folder, self.path.rsplit('/', 1)[1], name)

    def Report(self, invocation):
        with open(self.path_of('report.json'), encoding='utf-8') as file:
            invocation.return_value(fake_daemon.GLib.Variant('(s)', (file.read(),)))

    def OpenTranscript(self, invocation, _offset):
        self.return_fd(invocation, os.open(self.path_of('transcript.jsonl'), os.O_RDONLY))


class ServedManager(fake_daemon.Manager):
    def on_get(self, bus, sender, path, interface, name):
        if name == 'ReportKey':
            return fake_daemon.GLib.Variant('s', self.key())
        return super().on_get(bus, sender, path, interface, name)

    def variants(self):
        self.values['ReportKey'] = self.key()
        return super().variants()

    def key(self):
        with open(os.path.join(self.daemon.folder, 'key'), encoding='ascii') as file:
            return file.read().strip()


if __name__ == '__main__':
    fake_daemon.Manager = ServedManager
    plain = fake_daemon.FakeDaemon

    def with_evidence(address, folder):
        daemon = plain(address, folder)
        for name in SESSIONS:
            Served(daemon, name, {'hold': True}).values.update(State='finished', Outcome='DONE')
        return daemon

    fake_daemon.FakeDaemon = with_evidence
    fake_daemon.main()
