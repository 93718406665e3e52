# SPDX-License-Identifier: Apache-2.0
"""Tells the meter (joulemark run -- python train.py) where epochs and other regions begin and end.

    import joulemark

    joulemark.config(local_batch=64, precision="bf16")
    for epoch in joulemark.epochs(range(90)):
        ...
    with joulemark.region("eval", samples=50000) as result:
        result.quality("top1_error", 0.24, "lower")

One file, standard library only, Python 3.8 and newer: copy it beside the program or put its folder on PYTHONPATH. Without
the variable JOULEMARK_SOCKET every function returns at once. A meter that does not take messages costs
0.1 s once and then nothing, and never fails the program. A message that does not get through, or is longer
than 64 KiB, is lost; the meter counts and reports it.
"""

import contextlib
import errno
import json
import math
import os
import socket
import threading
import time

__all__ = ["begin", "end", "abort", "region", "epochs", "config", "note", "enabled", "Result"]

_PATIENCE_S = 0.1
_RANK_VARIABLES = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")


class _Sender:
    """The connected socket; off for good when there is no meter, or it has gone."""

    def __init__(self):
        self._lock = threading.Lock()
        self._socket = None
        self._stuck = False
        self._lost = 0  # messages that did not get through, and that the meter does not know of
        self._off = not os.environ.get("JOULEMARK_SOCKET")

    @property
    def on(self):
        return not self._off

    def send(self, message):
        if self._off:
            return
        data = _encoded(message)
        with self._lock:
            if data is None or not self._pass_on(data):
                self._lost += 1
            if self._lost and not self._stuck:
                if self._pass_on(_encoded({"event": "lost", "count": self._lost})):
                    self._lost = 0

    def _pass_on(self, data):
        """Whether the meter has it."""
        if self._off:
            return False
        try:
            if self._socket is None:
                self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
                self._socket.connect(os.environ["JOULEMARK_SOCKET"])
            self._socket.settimeout(0 if self._stuck else _PATIENCE_S)
            self._socket.send(data)
            self._stuck = False
            return True
        except (socket.timeout, BlockingIOError):
            self._stuck = True
        except OSError as error:
            if error.errno != errno.EMSGSIZE:  # then only this one message is lost
                self._off = True
        return False


def _encoded(message):
    """The datagram; None for what cannot be said in JSON."""
    try:
        return json.dumps(message, default=_plain, allow_nan=False).encode()
    except Exception:  # noqa: BLE001: whatever a value's own methods raise, the training goes on
        try:
            return json.dumps(_finite(message), default=_plain, skipkeys=True).encode()
        except Exception:  # noqa: BLE001
            return None


def _plain(value):
    """What JSON does not know: numbers of other libraries, and else a text."""
    number = _number(value)
    return str(value) if number is None else number


def _number(value):
    """A float, also from a tensor of one element; None for what is no finite number."""
    try:
        number = float(value)
    except Exception:  # noqa: BLE001: `value` may be of any library
        return None
    return number if math.isfinite(number) else None


def _finite(value):
    """Without what JSON cannot say: nan and infinities, at any depth."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items() if not _is_nan(item)}
    if isinstance(value, (list, tuple)):
        return [None if _is_nan(item) else _finite(item) for item in value]
    return value


def _is_nan(value):
    return isinstance(value, float) and not math.isfinite(value)


def _rank():
    for name in _RANK_VARIABLES:
        value = os.environ.get(name, "")
        if value.isdigit():
            return int(value)
    return 0


_sender = _Sender()


def enabled():
    """Whether a meter listens."""
    return _sender.on


def _send(event, **members):
    if not _sender.on:
        return
    message = {"event": event, "t": time.monotonic_ns(), "rank": _rank()}
    message.update((key, value) for key, value in members.items() if value is not None)
    _sender.send(message)


class Result:
    """What a region came to; told when it ends. Counts are those of this rank."""

    def __init__(self, samples=None, updates=None, tokens=None, loss=None):
        self.samples = samples
        self.updates = updates
        self.tokens = tokens
        self.loss = loss
        self._quality = None

    def quality(self, name, value, direction):
        """A quality metric; direction is "higher" or "lower", whichever is better."""
        if direction not in ("higher", "lower"):
            raise ValueError('direction must be "higher" or "lower"')
        self._quality = {"name": name, "value": _number(value), "direction": direction}

    def _members(self):
        return {
            "samples": _number(self.samples),
            "updates": _number(self.updates),
            "tokens": _number(self.tokens),
            "loss": _number(self.loss),
            "quality": self._quality,
        }


def begin(name, index=None):
    """A region begins: "epoch", "eval", "block" of steps, or any other name."""
    _send("begin", name=name, index=index)


def end(name, index=None, result=None, **counts):
    """The region ends. Counts (samples, updates, tokens, loss) as keywords, or a Result."""
    if _sender.on:
        _send("end", name=name, index=index, **(result or Result(**counts))._members())


def abort(name, index=None):
    """The region is left before its end: its time is kept, and it counts for nothing."""
    _send("abort", name=name, index=index)


@contextlib.contextmanager
def region(name, index=None, **counts):
    """`with region("eval", samples=50000) as result:` aborts the region when the block raises."""
    result = Result(**counts)
    begin(name, index)
    try:
        yield result
    except BaseException:
        abort(name, index)
        raise
    end(name, index, result)


def epochs(iterable, name="epoch", **counts):
    """Yields from `iterable`, marking each turn of the loop's body as one epoch.

    A turn that is left by an exception, `break` or `return` is aborted: nobody can know how far it came. To stop
    after a whole epoch and count it, leave `with region("epoch"):` instead, or stop what `iterable` yields.
    """
    for item in iterable:
        with region(name, **counts):
            yield item


def config(**values):
    """Configuration the meter cannot know: local_batch, global_batch, workload, precision, ... (docs/schema.md)."""
    _send("config", data=values)


def note(**values):
    """Anything worth keeping with the run."""
    _send("note", data=values)
