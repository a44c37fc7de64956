# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows of the bench's table: what was measured, against what, and what the goal is."""
import math

UNITS = {'ms': 1000, 's': 1, 'MiB': 1, 'MB/s': 1}  # all times are measured in seconds
HEAD = ('figure', 'ours', 'spread', 'n', 'against', 'its', 'ratio', 'goal', '')


def quantile(values, part):
    """The value that @part of all are not above; the median is between the two in the middle."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    if part == 0.5 and len(ordered) % 2 == 0:
        return (ordered[middle - 1] + ordered[middle]) / 2
    return ordered[max(math.ceil(part * len(ordered)) - 1, 0)]


class Row:
    """name: what; unit: of UNITS; ours, peer: the values, seconds, MiB or MB/s; against: what the peer is
    at_most: the goal for ours, in seconds or MiB; at_most_ratio: the goal for the ratio; part: which quantile counts
    """

    def __init__(self, name, unit, ours, peer=(), against='', at_most=None, at_most_ratio=None, part=0.5):
        self.name, self.unit, self.ours, self.peer, self.against = name, unit, list(ours), list(peer), against
        self.at_most, self.at_most_ratio, self.part = at_most, at_most_ratio, part

    def number(self, value):
        return round(value * UNITS[self.unit], 3)

    def show(self, value):
        value = self.number(value)
        return f'{value:.0f}' if abs(value) >= 100 else f'{value:.1f}' if abs(value) >= 10 else f'{value:.2f}'

    def ratio(self):
        floor = quantile(self.peer, self.part) if self.peer else 0
        return round(quantile(self.ours, self.part) / floor, 3) if floor > 0 else None

    def met(self):
        if self.at_most is not None:
            return quantile(self.ours, self.part) <= self.at_most
        if self.at_most_ratio is not None and self.peer:
            return self.ratio() <= self.at_most_ratio
        return None

    def goal(self):
        if self.at_most is not None:
            return f'≤ {self.at_most * UNITS[self.unit]:g} {self.unit}'
        return f'≤ {self.at_most_ratio:g} ×' if self.at_most_ratio is not None else ''

    def cells(self):
        spread = f'{self.show(min(self.ours))} to {self.show(max(self.ours))}' if len(self.ours) > 1 else ''
        its = f'{self.show(quantile(self.peer, self.part))} {self.unit}' if self.peer else ''
        ratio = self.ratio()
        return (self.name, f'{self.show(quantile(self.ours, self.part))} {self.unit}', spread, str(len(self.ours)), self.against,
                its, f'{ratio:.2f} ×' if ratio is not None else '', self.goal(),
                {True: 'met', False: 'MISSED', None: ''}[self.met()])

    def statistics(self, values):
        return {'n': len(values), 'value': self.number(quantile(values, self.part)), 'min': self.number(min(values)),
                'max': self.number(max(values)), 'values': [self.number(value) for value in values]}

    def json(self):
        peer = {'what': self.against, **self.statistics(self.peer)} if self.peer else None
        return {'name': self.name, 'unit': self.unit, 'quantile': self.part, 'ours': self.statistics(self.ours), 'peer': peer,
                'ratio': self.ratio(), 'goal': self.goal() or None, 'met': self.met()}


def show_cells(cells, numbers):
    """Lines of aligned text; @numbers: the columns that stand to the right"""
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]

    def align(line):
        return '  '.join(cell.rjust(width) if column in numbers else cell.ljust(width)
                         for column, (cell, width) in enumerate(zip(line, widths))).rstrip()
    return '\n'.join([align(cells[0]), '  '.join('-' * width for width in widths).rstrip(), *map(align, cells[1:])])


def show_table(rows):
    return show_cells([HEAD, *(row.cells() for row in rows)], (1, 2, 3, 5, 6, 7))


def describe_side(side, unit):
    """The value of one run that was read from its file, with its spread."""
    spread = f' ({side["min"]:g} to {side["max"]:g}, {side["n"]})' if side['n'] > 1 else ''
    return f'{side["value"]:g} {unit}{spread}'


def divide(first, second):
    return f'{second / first:.2f} ×' if first else ''


def show_comparison(first, second):
    """Two lists of figures as Row.json() made them, side by side: values, what B's is of A's, and the same of the peers."""
    others = {(figure['name'], (figure['peer'] or {}).get('what')): figure for figure in second}
    cells = [('figure', 'A (spread, n)', 'B (spread, n)', 'B / A', 'peer', 'its B / A')]
    for figure in first:
        other = others.pop((figure['name'], (figure['peer'] or {}).get('what')), None)
        if other is None:
            cells.append((figure['name'], describe_side(figure['ours'], figure['unit']), '', '', '', ''))
            continue
        peers = [(side['peer'] or {}).get('value') for side in (figure, other)]
        cells.append((figure['name'], describe_side(figure['ours'], figure['unit']), describe_side(other['ours'], other['unit']),
                      divide(figure['ours']['value'], other['ours']['value']), figure['peer']['what'] if figure['peer'] else '',
                      divide(*peers) if peers[0] else ''))
    cells += [(figure['name'], '', describe_side(figure['ours'], figure['unit']), '', '', '') for figure in others.values()]
    return show_cells(cells, (1, 2, 3, 5))
