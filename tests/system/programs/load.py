"""Asks a service without a pause until a file is there, and counts: `load.py PORT FILE`."""

import json
import os
import socket
import sys

counts = {"answered": 0, "refused": 0, "lost": 0}
processes: set[bytes] = set()
while not os.path.exists(sys.argv[2]):
    try:
        with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=60) as connection:
            connection.sendall(b"x")
            answer = connection.recv(100)
    except ConnectionRefusedError:
        counts["refused"] += 1
    except OSError:
        counts["lost"] += 1
    else:
        counts["answered" if answer else "lost"] += 1
        processes |= {answer} if answer else set()
print(json.dumps(counts | {"processes": len(processes)}))
