"""Plain values of an untrusted pickle: nothing is imported, called or constructed.

An opcode machine for the part of protocols 2 to 5 that dumps of plain values use (PyTorch's allocator snapshots need
22 opcodes, its flight recorder 18; https://docs.python.org/3/library/pickletools.html lists them all). Any other
opcode refuses the file before it has an effect. `Limits` refuse streams that are cheap to write and expensive to read:
deep nesting, announced lengths, memo indices, values that grow without bound when walked.

`load` is for dumps of moderate size. A reader of large ones subclasses `PickleMachine`
(see `pipeline.memory.snapshot`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from sweepscope.schemas.limits import PICKLED_KEY_BITS

STOP: Final = 0x2E
_CHUNK_BYTES = 1 << 20
_KEY_END = 1 << PICKLED_KEY_BITS
_LONGEST_FIXED = 16  # an opcode with its argument, strings apart


class PickleRefusedError(ValueError):
    """The stream is not a dump of plain values, is damaged, or exceeds a limit; the message has offset and reason."""


@dataclass(frozen=True)
class Limits:
    """Limits of a stream. `nodes` counts a shared value each time that a walk would reach it.

    `open_values`: values on the stack that are in no container yet; Python's pickler leaves a thousand at most.
    """

    string_bytes: int = 16 << 20
    int_bytes: int = 16
    marks: int = 64
    depth: int = 64
    nodes: int = 50_000_000
    padding_bytes: int = 3
    open_values: int = 1_000_000


DEFAULT_LIMITS: Final = Limits()


class _Unset:
    """Value of an empty memo slot."""


UNSET: Final = _Unset()


def load(data: bytes | Iterable[bytes], limits: Limits = DEFAULT_LIMITS) -> object:
    """The one value of a pickle: None, bool, int, float, str, bytes, and lists, tuples and dicts of these.

    Shared values are shared in the result; there are no cycles. Dict keys are str or int.

    Raises:
        PickleRefusedError: the stream is anything else.
    """
    chunks = _pieces(data) if isinstance(data, bytes) else iter(data)
    value = PickleMachine(chunks, limits).load()
    check_walk(value, limits)
    return value


def is_pickle(head: bytes) -> bool:
    """Whether a file with this beginning is a pickle of protocol 2 to 5.

    >>> is_pickle(b"\\x80\\x04\\x95"), is_pickle(b"step 1")
    (True, False)
    """
    return len(head) > 1 and head[0] == 0x80 and 2 <= head[1] <= 5


def check_walk(value: object, limits: Limits) -> None:
    """Refuse a value that contains itself, nests too deep, or unfolds to too many nodes in a walk.

    Every container is examined once, whatever the number of its parents. Raises PickleRefusedError.
    """
    sizes: dict[int, tuple[int, int]] = {}  # id -> nodes and depth of a walk from there
    open_ids: set[int] = set()
    todo: list[tuple[object, bool]] = [(value, False)]
    while todo:
        node, is_done = todo.pop()
        if not isinstance(node, list | tuple | dict) or id(node) in sizes:
            continue
        children = list(node.values()) if isinstance(node, dict) else node
        if is_done:
            known = [sizes[id(c)] for c in children if isinstance(c, list | tuple | dict)]
            nodes = 1 + len(children) - len(known) + sum(n for n, _ in known)
            depth = 1 + max((d for _, d in known), default=0)
            if nodes > limits.nodes or depth > limits.depth:
                raise PickleRefusedError(f"its values nest over {limits.depth} deep or unfold to over {limits.nodes:,}")
            sizes[id(node)] = nodes, depth
            open_ids.discard(id(node))
        elif id(node) in open_ids:
            raise PickleRefusedError("a value contains itself")
        else:
            open_ids.add(id(node))
            todo.append((node, True))
            todo += [(c, False) for c in children if isinstance(c, list | tuple | dict)]


class PickleMachine:
    """Executes opcodes of one stream, block by block. Subclasses override handlers to keep less of the value."""

    def __init__(self, chunks: Iterable[bytes], limits: Limits = DEFAULT_LIMITS) -> None:
        self.chunks, self.limits = iter(chunks), limits
        self.buffer, self.pos, self.base = b"", 0, 0  # `base`: bytes of the stream before the buffer
        self.stack: list[object] = []
        self.marks: list[list[object]] = []
        self.memo: list[object] = []
        self._frame_end = 0
        self._handlers = _table(self)

    def load(self) -> object:
        """The value of the stream. Raises PickleRefusedError."""
        self._header()
        handlers = self._handlers
        try:
            while True:
                if len(self.buffer) - self.pos < _LONGEST_FIXED:
                    self.refill(_LONGEST_FIXED)
                    if self.pos >= len(self.buffer):
                        raise self.refusal("the stream ends before its STOP")
                opcode = self.buffer[self.pos]
                self.pos += 1
                if opcode == STOP:
                    return self._finish()
                handler = handlers[opcode]
                if handler is None:
                    raise self.refusal(f"opcode 0x{opcode:02x} ({_FORBIDDEN.get(opcode, 'not for plain values')})")
                handler()
        except (IndexError, TypeError, struct.error) as error:
            # Too few values on the stack, an argument that is cut, a key that cannot be one.
            raise self.refusal("malformed stream") from error

    def refill(self, wanted: int) -> None:
        """Fill the buffer with `wanted` bytes behind `pos`, as far as the stream has them."""
        if len(self.stack) > self.limits.open_values:
            raise self.refusal(f"over {self.limits.open_values:,} values that belong to nothing")
        parts, have = [self.buffer[self.pos :]], len(self.buffer) - self.pos
        while have < wanted and (chunk := next(self.chunks, b"")):
            parts.append(chunk)
            have += len(chunk)
        self.base += self.pos
        self.buffer, self.pos = b"".join(parts), 0

    def refusal(self, why: str) -> PickleRefusedError:
        """The error to raise, with the offset."""
        return PickleRefusedError(f"refused at byte {self.base + self.pos:,}: {why}")

    def take(self, size: int) -> bytes:
        """The next `size` bytes, all of them."""
        if len(self.buffer) - self.pos < size:
            self.refill(size)
        data = self.buffer[self.pos : self.pos + size]
        if len(data) < size:
            raise self.refusal("the stream ends inside a value")
        self.pos += size
        return data

    def unsigned(self, size: int) -> int:
        """The next little-endian integer of `size` bytes."""
        return int.from_bytes(self.take(size), "little")

    def _header(self) -> None:
        if not is_pickle(self.take(2)):
            raise self.refusal("not a pickle of protocol 2 to 5")

    def _finish(self) -> object:
        if self.marks or len(self.stack) != 1:
            raise self.refusal("STOP inside an unfinished value")
        if self.base + self.pos < self._frame_end:
            raise self.refusal("a frame goes on behind STOP")
        self.refill(self.limits.padding_bytes + 1)
        padding = self.buffer[self.pos :]
        if len(padding) > self.limits.padding_bytes or padding.strip(b"\0"):
            raise self.refusal("there is more behind STOP")
        return self.stack[0]

    # One method per opcode; `pos` is behind the opcode.

    def mark(self) -> None:
        if len(self.marks) >= self.limits.marks:
            raise self.refusal(f"values nest over {self.limits.marks} deep")
        self.marks.append(self.stack)
        self.stack = []

    def pop_mark(self) -> list[object]:
        """Values since the last mark, which are removed from the stack."""
        if not self.marks:
            raise self.refusal("a mark is missing")
        items, self.stack = self.stack, self.marks.pop()
        return items

    def empty_dict(self) -> None:
        self.stack.append({})

    def remember(self, index: int, value: object) -> None:
        """Store a value in the memo. Writers count up; an index far ahead would only cost memory."""
        size = len(self.memo)
        if index == size:
            self.memo.append(value)
        elif index < size:
            self.memo[index] = value
        elif index <= size + 1024:
            self.memo += [UNSET] * (index - size)
            self.memo.append(value)
        else:
            raise self.refusal(f"memo index {index:,} of {size:,}")

    def recall(self, index: int) -> None:
        value = self.memo[index] if index < len(self.memo) else UNSET
        if value is UNSET:
            raise self.refusal("refers to a value that is not there")
        self.stack.append(value)

    def text(self, size: int) -> None:
        if size > self.limits.string_bytes:
            raise self.refusal(f"a text of {size:,} bytes")
        try:
            # "surrogatepass", as the writer has it: Python's file names may hold lone surrogates.
            self.stack.append(self.take(size).decode("utf-8", "surrogatepass"))
        except UnicodeDecodeError as error:
            raise self.refusal("text that is not UTF-8") from error

    def binary(self, size: int) -> None:
        if size > self.limits.string_bytes:
            raise self.refusal(f"a value of {size:,} bytes")
        self.stack.append(self.take(size))

    def long(self) -> None:
        size = self.unsigned(1)
        if size > self.limits.int_bytes:
            raise self.refusal(f"an integer of {size} bytes")
        self.stack.append(int.from_bytes(self.take(size), "little", signed=True))

    def float_(self) -> None:
        self.stack.append(struct.unpack(">d", self.take(8))[0])

    def int_(self) -> None:
        self.stack.append(int.from_bytes(self.take(4), "little", signed=True))

    def frame(self) -> None:
        size, here = self.unsigned(8), self.base + self.pos
        if here < self._frame_end or size > 1 << 40:
            raise self.refusal(f"a frame of {size:,} bytes")
        self._frame_end = here + size

    def append(self) -> None:
        value = self.stack.pop()
        self.extend([value])

    def extend(self, items: list[object]) -> None:
        """Append items to the list on top of the stack."""
        target = self.stack[-1]
        if type(target) is not list:
            raise self.refusal("items for something that is not a list")
        target.extend(items)

    def set_items(self, items: list[object]) -> None:
        """Add keys and values to the dict on top of the stack."""
        target = self.stack[-1]
        if type(target) is not dict or len(items) % 2:
            raise self.refusal("items for something that is not a dict")
        keys = items[::2]
        if not all(type(key) is str or (type(key) is int and -_KEY_END <= key < _KEY_END) for key in keys):
            raise self.refusal(f"a key that is neither text nor an integer of {PICKLED_KEY_BITS} bits")
        target.update(zip(keys, items[1::2], strict=True))

    def set_item(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self.set_items([key, value])

    def last(self, count: int) -> tuple[object, ...]:
        """The last `count` values, which are removed from the stack."""
        if len(self.stack) < count:
            raise self.refusal("too few values for a tuple")
        items = tuple(self.stack[-count:])
        del self.stack[-count:]
        return items

    def collect(self, container: Callable[[list[object]], object]) -> None:
        items = self.pop_mark()
        self.stack.append(container(items))

    def new_dict(self) -> None:
        items = self.pop_mark()
        self.stack.append({})
        self.set_items(items)


def _table(m: PickleMachine) -> list[Callable[[], object] | None]:
    """Handler by opcode; None refuses."""

    def push(value: object) -> Callable[[], None]:
        return lambda: m.stack.append(value)

    known: dict[int, Callable[[], object]] = {
        ord("("): m.mark,
        ord("}"): m.empty_dict,
        ord("]"): lambda: m.stack.append([]),
        ord(")"): push(()),
        ord("N"): push(None),
        0x88: push(True),
        0x89: push(False),
        ord("K"): lambda: m.stack.append(m.unsigned(1)),
        ord("M"): lambda: m.stack.append(m.unsigned(2)),
        ord("J"): m.int_,
        0x8A: m.long,
        ord("G"): m.float_,
        0x8C: lambda: m.text(m.unsigned(1)),
        ord("X"): lambda: m.text(m.unsigned(4)),
        0x8D: lambda: m.text(m.unsigned(8)),
        ord("C"): lambda: m.binary(m.unsigned(1)),
        ord("B"): lambda: m.binary(m.unsigned(4)),
        0x8E: lambda: m.binary(m.unsigned(8)),
        0x94: lambda: m.remember(len(m.memo), m.stack[-1]),
        ord("q"): lambda: m.remember(m.unsigned(1), m.stack[-1]),
        ord("r"): lambda: m.remember(m.unsigned(4), m.stack[-1]),
        ord("h"): lambda: m.recall(m.unsigned(1)),
        ord("j"): lambda: m.recall(m.unsigned(4)),
        ord("a"): m.append,
        ord("e"): lambda: m.extend(m.pop_mark()),
        ord("s"): m.set_item,
        ord("u"): lambda: m.set_items(m.pop_mark()),
        ord("d"): m.new_dict,
        ord("l"): lambda: m.collect(list),
        ord("t"): lambda: m.collect(tuple),
        0x85: lambda: m.stack.append(m.last(1)),
        0x86: lambda: m.stack.append(m.last(2)),
        0x87: lambda: m.stack.append(m.last(3)),
        0x95: m.frame,
    }
    return [known.get(code) for code in range(256)]


_FORBIDDEN = {
    ord("c"): "GLOBAL, imports code",
    0x93: "STACK_GLOBAL, imports code",
    ord("i"): "INST, makes an object",
    ord("o"): "OBJ, makes an object",
    ord("R"): "REDUCE, calls a function",
    ord("b"): "BUILD, sets an object's state",
    0x81: "NEWOBJ, makes an object",
    0x92: "NEWOBJ_EX, makes an object",
    ord("P"): "PERSID, asks for an outside object",
    ord("Q"): "BINPERSID, asks for an outside object",
    0x82: "EXT1, imports code",
    0x83: "EXT2, imports code",
    0x84: "EXT4, imports code",
    0x97: "NEXT_BUFFER, asks for outside memory",
    0x80: "a second pickle",
}


def _pieces(data: bytes) -> Iterator[bytes]:
    for begin in range(0, len(data), _CHUNK_BYTES):
        yield data[begin : begin + _CHUNK_BYTES]
