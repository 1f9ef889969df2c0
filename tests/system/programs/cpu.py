"""Says how much processor time control groups used: `cpu.py SECONDS GROUP…`, in seconds each."""

import json
import sys
import time


def used(group: str) -> int:
    with open(f"/sys/fs/cgroup/{group}/cpu.stat") as file:
        return int(dict(line.split() for line in file)["usage_usec"])


groups = sys.argv[2:]
begin, before = time.monotonic(), [used(group) for group in groups]
time.sleep(float(sys.argv[1]))
after, end = [used(group) for group in groups], time.monotonic()
spent = {group: (b - a) / 1e6 for group, a, b in zip(groups, before, after, strict=True)}
print(json.dumps({"seconds": end - begin, "spent": spent}))
