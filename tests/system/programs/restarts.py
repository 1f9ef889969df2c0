"""Says how long units take from kill -9 to ready: `restarts.py TIMES UNIT…`, in seconds each.

One after the other in turn; by systemd's own times, so that asking costs nothing.
"""

import json
import os
import shutil
import subprocess
import sys
import time

SYSTEMCTL = shutil.which("systemctl") or "systemctl"


def shown(unit: str, name: str) -> str:
    words = [SYSTEMCTL, "show", "--value", f"--property={name}", unit]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def restarted(unit: str) -> float:
    """Kill a unit's process and wait until systemd has started it again."""
    subprocess.run([SYSTEMCTL, "reset-failed", unit], check=True)  # of its start limit, too
    pid = int(shown(unit, "MainPID"))
    begin = time.clock_gettime(time.CLOCK_MONOTONIC)
    os.kill(pid, 9)
    while True:
        time.sleep(1)
        ready = int(shown(unit, "ActiveEnterTimestampMonotonic")) / 1e6
        if ready > begin:
            return ready - begin


found: dict[str, list[float]] = {unit: [] for unit in sys.argv[2:]}
for _ in range(int(sys.argv[1])):
    for unit, times in found.items():
        times.append(restarted(unit))
print(json.dumps(found))
