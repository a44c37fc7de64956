# SPDX-License-Identifier: GPL-3.0-or-later
"""Work on a real desktop: an editor is opened, written in, saved, and seen. It builds an image of its own, which takes minutes, so
tests/run does it only when it is named: tests/run desktop"""
import json
import os
import struct
import unittest
import zlib

import belljar_test as bt
from sessions import call, finish, turn
from test_tools import ToolCase

LINE = 'Typed on a real desktop: (42) {ok}'


def pixels(path):
    """Width and rows of an 8-bit PNG file."""
    with open(path, 'rb') as file:
        data = file.read()
    width, height, depth, kind = struct.unpack('>IIBB', data[16:26])
    step = {2: 3, 6: 4}[kind]
    assert depth == 8 and data[28] == 0, 'another kind of PNG'
    packed, at = b'', 8
    while at < len(data):
        size, name = struct.unpack('>I4s', data[at:at + 8])
        packed += data[at + 8:at + 8 + size] if name == b'IDAT' else b''
        at += size + 12
    raw, rows, above = zlib.decompress(packed), [], bytearray(width * step)
    for y in range(height):
        start = y * (width * step + 1)
        row = bytearray(raw[start + 1:start + 1 + width * step])
        unfilter(raw[start], row, above, step)
        rows.append(bytes(row))
        above = row
    return width, rows, step


def unfilter(kind, row, above, step):
    for i, value in enumerate(row):
        left, corner = (row[i - step], above[i - step]) if i >= step else (0, 0)
        guess = left + above[i] - corner
        paeth = min((left, above[i], corner), key=lambda one: abs(guess - one))
        row[i] = (value + (0, left, above[i], (left + above[i]) // 2, paeth)[kind]) & 255


def changed(first, second, rows):
    """How wide and high is what differs within @rows of two pictures, and how many pixels do."""
    (width, one, step), (_width, other, _step) = first, second
    found = [(x, y) for y in rows for x in range(width) if one[y] != other[y]
             and one[y][x * step:x * step + 3] != other[y][x * step:x * step + 3]]
    xs, ys = [x for x, _y in found], [y for _x, y in found]
    return (max(xs) - min(xs) + 1, max(ys) - min(ys) + 1, len(found)) if found else (0, 0, 0)


class DesktopDaemon(bt.Daemon):
    """With an image of its own."""

    def __init__(self, **more):
        super().__init__(image=os.environ.get('BELLJAR_TEST_DESKTOP'), **more)

    def __enter__(self):
        super().__enter__()
        if not self.image:
            ran = self.cli('image', 'build', 'debian-desktop', timeout=bt.BUILD_IMAGE_S)
            if ran.returncode != 0:
                self.clean()
                raise AssertionError(ran.stderr)
        return self


def until(condition):
    return call('run', command=f'export DISPLAY=:0; until {condition}; do sleep 0.3; done', timeout_s=100)


class Desktop(ToolCase):
    daemon_class = DesktopDaemon
    capabilities = 'tools,vision'
    config = '[images]\ndefault=debian-desktop\n'
    scenarios = {
        'edit': [
            turn(call('start', command='DISPLAY=:0 exec mousepad letter.txt'),
                 until('xwininfo -root -tree | grep -q "letter.txt.*Mousepad"'), call('wait', seconds=3), call('screenshot')),
            turn(call('mouse_click', x=400, y=400), call('type_text', text=LINE + '\n'), call('wait', seconds=1), call('screenshot')),
            turn(call('press_keys', keys='ctrl+s'), until('grep -q real letter.txt'), call('run', command='cat letter.txt'),
                 call('press_keys', keys='ctrl+a ctrl+c'), call('wait', seconds=1), call('read_clipboard'),
                 call('write_clipboard', text='from outside: ü\n'), call('press_keys', keys='ctrl+End ctrl+v'), call('wait', seconds=2),
                 call('press_keys', keys='ctrl+s'),
                 until('grep -q outside letter.txt'), call('run', command='cat letter.txt')),
            turn(call('mouse_click', x=400, y=400, button='right'), call('wait', seconds=2), call('screenshot'),
                 call('press_keys', keys='Escape'), call('mouse_click', x=60000, y=5)),
            finish()]}

    def shots(self, report):
        folder = os.path.join(self.daemon.state_dir, 'sessions', report['session'], 'evidence')
        with open(os.path.join(folder, 'transcript.jsonl'), encoding='utf-8') as file:
            records = [json.loads(line) for line in file]
        return [pixels(os.path.join(folder, record['data']['file'])) for record in records if record['type'] == 'screenshot']

    def test_edit(self):
        self.import_project('desk', {'a.txt': 'a\n'})
        report, results = self.run_scenario('edit', '--project', 'desk')
        bad = [(tool, result) for tool, result in results[:-1] if 'error' in result or result.get('exit', 0) != 0]
        self.assertEqual(bad, [])
        runs = [result['stdout'] for tool, result in results if tool == 'run']
        self.assertEqual(runs[2], LINE + '\n')
        self.assertEqual(dict(results)['read_clipboard'], {'text': LINE + '\n', 'truncated': False})
        self.assertEqual(runs[4], LINE + '\nfrom outside: ü\n')
        self.assertRegex(results[-1][1]['error'], r'it is \d{3,4} pixels wide and \d{3,4} high')
        self.assertIn('letter.txt', [change['path'] for change in report['files_changed']])
        empty, written, menu = self.shots(report)
        self.assertGreaterEqual(empty[0], 800)
        # Where the first lines are: title, clock and pointer change too.
        width, height, count = changed(empty, written, range(70, 130))
        self.assertTrue(200 < width < 400 and height < 60 and count > 300, f'a line of text: {width} x {height}, {count} pixels')
        width, height, count = changed(written, menu, range(380, 760))
        self.assertTrue(width > 150 and height > 200 and count > 20000, f'a menu: {width} x {height}, {count} pixels')
        images = [message['images'] for entry in self.model.requests() for message in entry.get('messages', [])]
        self.assertIn(1, images, 'the model was shown a picture')


if __name__ == '__main__':
    unittest.main(verbosity=2)
