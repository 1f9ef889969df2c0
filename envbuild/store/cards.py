"""Give cards to a service when it starts; a copy lies in each generation and is run by its Python.

`cards.py take UNIT …`, which cards.sh runs before a unit's program, chooses cards, notes them in
the host's ledger below /run/envbuild, lets the unit open their nodes and no other card's, and
writes the variables of its program. A unit whose cgroup is gone holds nothing. `cards.py give UNIT`
gives them back at once: clients of an MPS server do, for what that has to do then.

The unit's properties are set until the next boot (`systemctl set-property --runtime`): that needs
no reload, and a reload keeps them. It runs on every Python from 3.9 on, and imports nothing of
envbuild and little of Python (argparse and pathlib would double its time): a service waits for it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Card = dict[str, Any]
    Held = dict[str, Card]

LATER = 75  # exit code where it may work later (sysexits.h, EX_TEMPFAIL)
_NODES = ("/dev/nvidiactl rw", "char-nvidia-uvm rw")
_GIS = "proc/driver/nvidia/capabilities/gpu{}/mig"
_SYSTEMCTL = ("/usr/bin/systemctl", "/bin/systemctl")
_CONTROL = "run/systemd/system.control"  # where `systemctl set-property --runtime` writes
_KILLED = {"signal", "core-dump", "oom-kill", "watchdog"}  # systemd.exec(5), $SERVICE_RESULT


class No(Exception):
    """What is wanted cannot be given; the reason in words."""


class Wish:
    """What is asked for: an option for each, `--card` as often as there are cards."""

    job = ""  # for whom instances were made: NAME.SERVICE
    count = 1
    mode = "whole"  # or mig, mps, none
    memory = sm = ""
    pcie = 0  # most traffic, bytes per second
    server = ""  # the unit of its MPS server
    affinity = "none"  # or auto
    root = "/"  # of the host that is read
    systemctl = ""  # another one

    def __init__(self, what: str, unit: str, *words: str) -> None:
        """Read the words."""
        self.what, self.unit, self.words = what, unit, " ".join((unit, *words))
        self.card: list[str] = []
        for at in range(0, len(words) - 1, 2):
            name, value = words[at][2:], words[at + 1]
            if name == "card":
                self.card.append(value)
            else:
                setattr(self, name, type(getattr(self, name))(value))


class Host:
    """The machine, below a root."""

    def __init__(self, root: str) -> None:
        """Take the root."""
        self.root = root
        self.own = f"{root}/run/envbuild"

    def text(self, name: str) -> str:
        """Return what a file says, nothing where there is none."""
        try:
            with open(f"{self.root}/{name}", encoding="utf-8") as file:
                return file.read()
        except OSError:
            return ""

    def names(self, name: str) -> list[str]:
        """Return the names in a folder, none where there is none."""
        try:
            return sorted(os.listdir(f"{self.root}/{name}"))
        except OSError:
            return []

    def cards(self) -> list[Card]:
        """Return the cards in the order of their addresses, as NVML counts them."""
        found: list[Card] = []
        for address in self.names("proc/driver/nvidia/gpus"):
            text = self.text(f"proc/driver/nvidia/gpus/{address}/information")
            told = dict(re.findall(r"^([^:\n]+):\s*(.*?)\s*$", text, re.MULTILINE))
            minor = told.get("Device Minor", f"{len(found)}")
            found.append(
                {
                    "index": len(found),
                    "address": address.lower(),
                    "uuid": told.get("GPU UUID", ""),
                    "minor": int(minor),
                }
            )
        return found

    def instances(self) -> list[Card]:
        """Return the MIG instances that were made for jobs and that are still there."""
        found: list[Card] = []
        for one in json.loads(self.text("run/envbuild/instances.json") or "[]"):
            folder = _GIS.format(one["minor"]) + f"/gi{one['gpu_instance']}"
            inner = f"{folder}/ci{one['compute_instance']}/access"
            texts = (self.text(f"{folder}/access"), self.text(inner))
            minors = [re.search(r"DeviceFileMinor:\s*(\d+)", text) for text in texts]
            caps = [int(minor[1]) for minor in minors if minor is not None]
            if len(caps) == len(minors):
                found.append({**one, "caps": caps})
        return found

    def cut(self, card: Card) -> bool:
        """Tell whether a card is in parts: it has MIG instances, whoever made them."""
        return any(name.startswith("gi") for name in self.names(_GIS.format(card["minor"])))

    def runs(self, cgroup: str) -> bool:
        """Tell whether a unit's cgroup is there: then it runs, or is about to."""
        return os.path.isdir(f"{self.root}/sys/fs/cgroup{cgroup}")

    def cgroup(self) -> str:
        """Return the cgroup that this process is in."""
        found = re.search(r"^0::(.*)$", self.text("proc/self/cgroup"), re.MULTILINE)
        return found[1] if found else "/"

    def near(self, cards: list[Card]) -> dict[str, str]:
        """Return what is next to cards: CPUs and memory nodes; nothing where the host has one."""
        cpus: list[str] = []
        nodes: list[str] = []
        for card in cards:
            folder = f"sys/bus/pci/devices/{card['address']}"
            nodes.append(self.text(f"{folder}/numa_node").strip())
            cpus.append(self.text(f"{folder}/local_cpulist").strip())
        if not all(cpus) or any(not node.isdigit() for node in nodes):
            return {}
        return {
            "AllowedCPUs": ",".join(dict.fromkeys(cpus)),
            "AllowedMemoryNodes": ",".join(dict.fromkeys(nodes)),
        }


class Ledger:
    """Which unit has what; one process at a time has it."""

    def __init__(self, host: Host) -> None:
        """Wait for the lock, read what is held, and leave out units that are gone."""
        os.makedirs(f"{host.own}/cards", exist_ok=True)
        self._host = host
        self._lock = os.open(f"{host.own}/cards.lock", os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        held: Held = {}
        with contextlib.suppress(ValueError):
            held = json.loads(host.text("run/envbuild/cards.json"))
        self._were = held.keys()
        self.held = {unit: one for unit, one in held.items() if host.runs(one["cgroup"])}

    def write(self) -> None:
        """Keep what is held, whole or not at all; first go variables of what holds nothing more."""
        for unit in self._were - self.held.keys():
            with contextlib.suppress(FileNotFoundError):
                os.unlink(_variables(self._host, unit))
        text = json.dumps(self.held, indent=1, sort_keys=True)
        _replace(f"{self._host.own}/cards.json", f"{text}\n")

    def close(self) -> None:
        """Let the next one in."""
        os.close(self._lock)


def take(host: Host, wish: Wish) -> None:
    """Give a unit its cards.

    Raises:
        No: There are none for it, or systemd does not let it open them.
    """
    with contextlib.closing(Ledger(host)) as ledger:
        ledger.held.pop(wish.unit, None)
        got = {**chosen(host, wish, ledger.held), "cgroup": host.cgroup(), "pcie_bytes": wish.pcie}
        ledger.held[wish.unit] = got
        ledger.write()
        try:
            _set_properties(host, wish, _properties(host, wish, got))
            _replace(_variables(host, wish.unit), _lines(wish, got))
        except BaseException:
            del ledger.held[wish.unit]
            ledger.write()
            raise
    sys.stderr.write(f"{wish.unit} has {', '.join(got['cards'])}\n")


def give(host: Host, wish: Wish) -> None:
    """Take a unit's cards back."""
    with contextlib.closing(Ledger(host)) as ledger:
        ledger.held.pop(wish.unit, None)
        ledger.write()
    if wish.server and os.environ.get("SERVICE_RESULT") in _KILLED:
        # A client that was killed leaves its server in an unknown state (NVIDIA MPS documentation,
        # client early termination); what is bound to the server is started anew with it.
        _systemctl(wish, "restart", "--no-block", wish.server)


def chosen(host: Host, wish: Wish, held: Held) -> Card:
    """Return what a unit gets beside what others have.

    Raises:
        No: There is nothing for it.
    """
    if wish.mode == "mig":
        return _instance(host, wish, held)
    if wish.server:
        return _shared(host, wish, held)
    cards = host.cards()
    if not cards:
        what = "the driver shows no card in /proc/driver/nvidia/gpus"
        raise No(what)
    taken = {
        card: unit
        for unit, one in held.items()
        if not (wish.mode == "none" and one["mode"] == "none")
        for card in one["whole"]
    }
    allowed = [card for card in cards if not wish.card or any(_is(card, one) for one in wish.card)]
    if wish.card and len(allowed) < len(wish.card):
        what = f"there are no cards {', '.join(wish.card)}, only {len(allowed)} of them"
        raise No(what)
    cut = [card["address"] for card in allowed if host.cut(card)]
    free = [card for card in allowed if card["address"] not in {*taken, *cut}]
    if len(free) < wish.count:
        reasons = [f"it wants {wish.count} of {len(allowed)} cards, and {len(free)} are free"]
        reasons += [f"{user} has {card}" for card, user in taken.items()]
        reasons += [f"{card} is cut by MIG" for card in cut]
        raise No("; ".join(reasons))
    return _whole(wish, _together(host, free, wish.count))


def _shared(host: Host, wish: Wish, held: Held) -> Card:
    """Return the cards of an MPS server, as long as its clients' memory is not above theirs."""
    if wish.server not in held:
        what = f"{wish.server} has no card: it does not run"
        raise No(what)
    mine = _mib(wish.memory, 0)
    used = sum(one["memory_mib"] for one in held.values() if one.get("server") == wish.server)
    room = host.text(f"run/envbuild/cards/{wish.server}.memory")  # written by compute_mode.py
    if room and used + mine > int(room):
        what = f"it wants {mine / 1024:.1f}G of its card, which has {int(room) / 1024:.1f}G"
        what += f", and others have {used / 1024:.1f}G of that"
        raise No(what)
    return {**held[wish.server], "whole": [], "server": wish.server, "memory_mib": mine}


def _together(host: Host, free: list[Card], count: int) -> list[Card]:
    """Return cards next to one memory node where there are as many, else the first ones."""
    by_node: dict[str, list[Card]] = {}
    for card in free:
        by_node.setdefault(host.near([card]).get("AllowedMemoryNodes", ""), []).append(card)
    fitting = [cards for cards in by_node.values() if len(cards) >= count]
    return (min(fitting, key=len) if fitting else free)[:count]


def _whole(wish: Wish, cards: list[Card]) -> Card:
    addresses = [card["address"] for card in cards]
    uuids = [card["uuid"] for card in cards]
    if any(not uuid or "?" in uuid for uuid in uuids):  # a card that never woke has none yet
        uuids = [f"{card['index']}" for card in cards]
    return {
        "mode": wish.mode,
        "cards": uuids,
        "whole": addresses,
        "addresses": addresses,
        "uuids": [card["uuid"] for card in cards],
        "nodes": [f"/dev/nvidia{card['minor']} rw" for card in cards],
    }


def _instance(host: Host, wish: Wish, held: Held) -> Card:
    taken = {card for one in held.values() for card in one["cards"]}
    there = host.instances()
    fitting = [
        one
        for one in there
        if one["uuid"] not in taken
        and one["memory_mib"] >= _mib(wish.memory, one["card_mib"])
        and one["sm_percent"] >= float(wish.sm.rstrip("%") or 0)
        and (not wish.card or any(_is(one, word) for word in wish.card))
    ]
    if not fitting:
        what = f"none of {len(there)} MIG instances is free and has what it wants"
        raise No(what + "; envbuild slice apply makes instances")
    own = [one for one in fitting if one["job"] == wish.job]
    one = min(own or fitting, key=lambda each: (each["memory_mib"], each["sm_percent"]))
    caps = [f"/dev/nvidia-caps/nvidia-cap{minor} r" for minor in one["caps"]]
    return {
        "mode": wish.mode,
        "cards": [one["uuid"]],
        "whole": [],
        "addresses": [one["address"]],
        "uuids": [one["card_uuid"]],
        "nodes": [f"/dev/nvidia{one['minor']} rw", *caps],
    }


def _is(card: Card, word: str) -> bool:
    if word.isdigit():
        return bool(card["index"] == int(word))
    if word.startswith(("GPU-", "MIG-")):
        return word in {card["uuid"], card.get("card_uuid")}
    tail = ":".join(word.lower().split(":")[-2:])
    return str(card["address"]).endswith(tail)


def _mib(text: str, whole: float) -> float:
    """Return the MiB of a size, or of a share of a card."""
    if text.endswith("%"):
        return whole * float(text[:-1]) / 100
    found = re.fullmatch(r"([\d.]+)([KMGT]?)B?", text)
    return float(found[1]) * 1024.0 ** (" KMGT".index(found[2] or " ") - 2) if found else 0.0


def _properties(host: Host, wish: Wish, got: Card) -> list[str]:
    found: list[str] = []
    if wish.affinity == "auto":
        cards = [card for card in host.cards() if card["address"] in got["addresses"]]
        found += [f"{name}={value}" for name, value in host.near(cards).items()]
    # Sorted by name: systemd 252 takes its own files for changed ones where they are not.
    found += ["DeviceAllow=", *(f"DeviceAllow={node}" for node in (*_NODES, *got["nodes"]))]
    return found


def _set_properties(host: Host, wish: Wish, properties: list[str]) -> None:
    values = sorted(each for each in properties if not each.endswith("="))
    if values == sorted(_set_before(host, wish.unit, {each.split("=")[0] for each in values})):
        return  # as after most ends: systemd need not work it all out anew
    if not _systemctl(wish, "set-property", "--runtime", wish.unit, *properties):
        what = "systemd does not let it open its cards"
        raise No(what)


def _set_before(host: Host, unit: str, names: set[str]) -> list[str]:
    """Return what properties of a unit were set to before, as systemd keeps it in drop-ins."""
    return [
        line
        for name in names
        for line in host.text(f"{_CONTROL}/{unit}.d/50-{name}.conf").splitlines()
        if line.startswith(f"{name}=") and line != f"{name}="
    ]


def _systemctl(wish: Wish, *words: str) -> bool:
    """Run systemctl, and tell whether it did it."""
    program = next((each for each in (wish.systemctl, *_SYSTEMCTL) if os.access(each, os.X_OK)), "")
    try:
        child = os.posix_spawn(program, [program, *words], os.environ)
    except OSError as error:
        what = f"systemctl cannot be run: {error.strerror}"
        raise No(what) from error
    return os.waitpid(child, 0)[1] == 0


def _variables(host: Host, unit: str) -> str:
    return f"{host.own}/cards/{unit}.env"


def _lines(wish: Wish, got: Card) -> str:
    lines = ["CUDA_DEVICE_ORDER=PCI_BUS_ID", f"CUDA_VISIBLE_DEVICES={','.join(got['cards'])}"]
    if wish.server and wish.memory:
        limits = (f"{number}={wish.memory}" for number in range(len(got["cards"])))
        lines.append(f"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT={','.join(limits)}")
    if wish.mode == "whole" and got["cards"] == got["uuids"]:  # what cards.sh looks at
        minors = (node.split()[0].removeprefix("/dev/nvidia") for node in got["nodes"])
        there = map("=".join, zip(got["whole"], minors))  # noqa: B905 - Python 3.9 has no strict
        lines[:0] = [f"# {wish.words}", f"# {' '.join(there)}"]
    return "".join(f"{line}\n" for line in lines)


def _replace(path: str, text: str) -> None:
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(f"{path}.new", 0o644)
    os.replace(f"{path}.new", path)


def main(words: list[str]) -> int:
    """Do what the words say, and return the exit code."""
    try:
        wish = Wish(*words)
        {"take": take, "give": give}[wish.what](Host(wish.root), wish)
    except (No, OSError) as error:
        sys.stderr.write(f"{words[1]}: {error}\n")
        return LATER
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
