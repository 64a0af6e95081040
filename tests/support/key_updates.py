"""
A TLS client that asks for new keys again and again, which Python's ``ssl`` cannot.

The client's records are made by hand from the secret that ``ssl`` logs (RFC 8446, section 7).
"""

from __future__ import annotations

import hashlib
import hmac
import socket
import ssl
from contextlib import suppress
from pathlib import Path
from struct import pack
from typing import Final

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

HANDSHAKE: Final = 22
KEY_UPDATE_REQUESTED: Final = bytes([24, 0, 0, 1, 1])
_SECRET_NAME: Final = "CLIENT_TRAFFIC_SECRET_0"


class KeyUpdatingClient:
    """
    A connection with TLS 1.3 that has shaken hands.
    """

    def __init__(
        self, port: int, context: ssl.SSLContext, key_log: Path, *, buffer_bytes: int
    ) -> None:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.keylog_filename = str(key_log)
        self.socket = socket.socket()
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            self.socket.setsockopt(socket.SOL_SOCKET, option, buffer_bytes)
        self.socket.settimeout(10)
        self.socket.connect(("127.0.0.1", port))
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
        is_done = False
        while not is_done:
            with suppress(ssl.SSLWantReadError):
                tls.do_handshake()
                is_done = True
            self.socket.sendall(outgoing.read())
            if not is_done:
                incoming.write(self.socket.recv(65536))
        cipher = tls.cipher()
        assert cipher is not None
        self._hash = "sha384" if cipher[0].endswith("SHA384") else "sha256"
        self._key_bytes = 16 if "AES_128" in cipher[0] else 32
        assert "GCM" in cipher[0], cipher
        lines = [line.split() for line in key_log.read_text().splitlines()]
        self._secret = bytes.fromhex(
            next(line[2] for line in reversed(lines) if line[0] == _SECRET_NAME)
        )

    def key_updates(self, count: int) -> bytes:
        """
        So many records that ask the broker for new keys.
        """
        return b"".join(self._key_update() for _ in range(count))

    def _key_update(self) -> bytes:
        key = self._expand("key", self._key_bytes)
        nonce = self._expand("iv", 12)  # of the first record with these keys
        plain = KEY_UPDATE_REQUESTED + bytes([HANDSHAKE])
        head = pack(">BHH", 23, 0x0303, len(plain) + 16)
        record = head + AESGCM(key).encrypt(nonce, plain, head)
        self._secret = self._expand("traffic upd", hashlib.new(self._hash).digest_size)
        return record

    def _expand(self, label: str, size: int) -> bytes:
        name = b"tls13 " + label.encode()
        info = pack(">HB", size, len(name)) + name + b"\0\1"
        return hmac.digest(self._secret, info, self._hash)[:size]
