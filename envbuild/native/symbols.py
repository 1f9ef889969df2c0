"""The dynamic symbols of an ELF file: versions, string ABI, and names that have no version."""

from collections.abc import Iterator
from dataclasses import dataclass

from envbuild.native import tables
from envbuild.native.known_symbols import known_symbols
from envbuild.native.mangled import AbiVotes, StringAbi
from envbuild.native.tables import BrokenElf, Tables

_REGISTER = b"__cudaRegisterFatBinary"
_GLOBAL, _WEAK = 1, 2
_LOCAL_VERSION, _NO_VERSION = 0, 1
_VERSION_BITS = 0x7FFF
_MOST_SYMBOLS = 2_000_000
_MOST_NAME_BYTES = 64 << 10
_MOST_NAMES_BYTES = 256 << 20
_ENTRY = {True: "IBBHQQ", False: "IIIBBH"}
_COLUMNS = {True: (0, 1, 3), False: (0, 3, 5)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Symbols:
    """What the dynamic symbols say.

    Attributes:
        string_abi: Which of libstdc++'s string ABIs the names speak.
        open: Undefined symbols without a version that the known libraries have.
        exports: Known symbols that it exports itself.
        registers_gpu_code: Whether it takes `__cudaRegisterFatBinary` from another library.
    """

    string_abi: StringAbi = "none"
    open: frozenset[str] = frozenset()
    exports: frozenset[str] = frozenset()
    registers_gpu_code: bool = False


def read(elf: Tables) -> Symbols:
    """Return what the dynamic symbols of a file say.

    Raises:
        BrokenElf: Its tables contradict themselves.
    """
    known = known_symbols()
    strings = elf.strings
    missing: set[str] = set()
    exports: set[str] = set()
    registers = False
    votes = AbiVotes()
    left = _MOST_NAMES_BYTES
    for at, defined, weak, version in _rows(elf):
        end = strings.find(b"\0", at, at + _MOST_NAME_BYTES)
        name = strings[at : end if end >= 0 else at]
        left -= len(name)
        if left < 0:
            message = "its symbols have more than 256 MiB of names"
            raise BrokenElf(message)
        if not defined and name == _REGISTER:
            registers = True
        plain = version in (_LOCAL_VERSION, _NO_VERSION)
        votes.count(name, defined=defined, versioned=not plain)
        if name not in known:
            continue
        if defined:
            exports.add(name.decode())
        elif not weak and plain:
            missing.add(name.decode())
    return Symbols(
        string_abi=votes.answer,
        open=frozenset(missing),
        exports=frozenset(exports),
        registers_gpu_code=registers,
    )


def _rows(elf: Tables) -> Iterator[tuple[int, bool, bool, int]]:
    """Yield of each global symbol: place of its name, whether defined, whether weak, version."""
    address = elf.tag(tables.DT_SYMTAB)
    if address is None:
        return
    layout = elf.unpacker(_ENTRY[elf.wide])
    offset, size = _place(elf, elf.offset_of(address), layout.size)
    count = size // layout.size
    if count > _MOST_SYMBOLS:
        message = f"it claims {count} symbols"
        raise BrokenElf(message)
    name, info, section = _COLUMNS[elf.wide]
    versions = _versions(elf, count)
    rows = layout.iter_unpack(elf.read(offset, count * layout.size))
    for index, row in enumerate(rows):
        binding = row[info] >> 4
        if binding in (_GLOBAL, _WEAK):
            version = versions[index] & _VERSION_BITS if versions else _NO_VERSION
            yield row[name], row[section] != 0, binding == _WEAK, version


def _versions(elf: Tables, count: int) -> tuple[int, ...]:
    address = elf.tag(tables.DT_VERSYM)
    if address is None:
        return ()
    layout = elf.unpacker(f"{count}H")
    return layout.unpack(elf.read(elf.offset_of(address), layout.size))


def _place(elf: Tables, offset: int, entry: int) -> tuple[int, int]:
    """Return where the symbols lie and how long they are (bytes)."""
    for section in elf.sections:
        if section.kind == tables.SHT_DYNSYM and section.offset == offset:
            return offset, section.size
    address = elf.tag(tables.DT_HASH)
    if address is not None:
        pair = elf.unpacker("II")
        chains: int = pair.unpack(elf.read(elf.offset_of(address), pair.size))[1]
        return offset, chains * entry
    address = elf.tag(tables.DT_GNU_HASH)
    return offset, 0 if address is None else _hashed(elf, elf.offset_of(address)) * entry


def _hashed(elf: Tables, at: int) -> int:
    """Return the number of symbols that a GNU hash table covers: the end of its last chain."""
    head = elf.unpacker("IIII")
    first: int
    buckets, first, blooms, _ = head.unpack(elf.read(at, head.size))
    at += head.size + blooms * (8 if elf.wide else 4)
    layout = elf.unpacker("I")
    last: int = max((row[0] for row in layout.iter_unpack(elf.read(at, 4 * buckets))), default=0)
    if last < first:
        return first
    at += 4 * buckets + 4 * (last - first)
    for extra in range(_MOST_SYMBOLS):
        if layout.unpack(elf.read(at + 4 * extra, 4))[0] & 1:
            return last + extra + 1
    return last
