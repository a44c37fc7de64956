# SPDX-License-Identifier: GPL-3.0-or-later
"""A minimal speaker of guest/bj-lane-protocol.h: the raw channel that Belljar's exec is measured against."""
import os
import socket
import struct
import time

MAGIC, HEAD = 0x314c4a42, struct.Struct('<IHHI')
HELLO, CALL, DATA, END, OK, RESULT, OUT, ERR, DONE, CREDIT = 1, 2, 3, 4, 65, 67, 68, 69, 70, 129
ANSWER_S, HELLO_S, COMMAND_S, READ = 60, 2, 300, 65536


def build_request(argv, **options):
    records = [('argv', word) for word in argv] + [('user', 'root'), ('timeout', COMMAND_S), ('cap', 4096), ('nnp', 0), ('input', 0)]
    body = b''.join(f'{key}={value}\0'.encode() for key, value in records + list(options.items()))
    return b'BJRQ0001' + struct.pack('<I', len(body)) + body


class Lane:
    """One connection to the socket of a virtio-serial port; one call at a time."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.rest, self.id = b'', 0

    def close(self):
        self.socket.close()

    def send(self, kind, call, payload=b''):
        self.socket.sendall(HEAD.pack(MAGIC, kind, len(payload), call) + payload)

    def receive(self, seconds):
        self.socket.settimeout(seconds)
        data = self.socket.recv(READ)
        if not data:
            raise AssertionError('the lane was closed')
        self.rest += data

    def greet(self, seconds):
        """Until the guest echoes a nonce; everything before that is dropped."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            nonce = os.urandom(16)
            self.send(HELLO, 0, nonce)
            wanted, until = HEAD.pack(MAGIC, OK, len(nonce), 0) + nonce, time.monotonic() + HELLO_S
            while wanted not in self.rest and time.monotonic() < until:
                try:
                    self.receive(max(until - time.monotonic(), 0.001))
                except TimeoutError:
                    pass
            if wanted in self.rest:
                self.rest = self.rest.split(wanted, 1)[1]
                return self
        raise AssertionError(f'the guest did not answer on its lane in {seconds} s')

    def frame(self):
        while len(self.rest) < HEAD.size or len(self.rest) < HEAD.size + HEAD.unpack_from(self.rest)[2]:
            self.receive(ANSWER_S)
        magic, kind, length, call = HEAD.unpack_from(self.rest)
        if magic != MAGIC:
            raise AssertionError('the guest sent what is no frame')
        payload, self.rest = self.rest[HEAD.size:HEAD.size + length], self.rest[HEAD.size + length:]
        return kind, call, payload

    def execute(self, *argv, mode='exec'):
        """Returns the bytes of the answer and how much output flowed."""
        self.id += 1
        self.send(CALL, self.id, mode.encode() + b'\0' + build_request(argv))
        self.send(END, self.id)
        answer, flowed = b'', 0
        while True:
            kind, _call, payload = self.frame()
            if kind == DONE:
                if payload != bytes(4):
                    raise AssertionError(f'{argv}: the call ended with {payload}')
                return answer, flowed
            if kind == RESULT:
                answer += payload
            elif kind in (OUT, ERR):
                flowed += len(payload)
                self.send(CREDIT, self.id, struct.pack('<II', kind, len(payload)))
