"""One Manager a store: a lock that ends with its process, and a try-out of the store before the first hour is lost."""
import errno
import fcntl
import os
import shutil
import socket
import time

from .library import Error
from .store import Store

_NAME = "manager.lock"
_held = set()  # real paths; locks of fcntl do not see other users of the same process


class StoreLock:
    """Makes the folder when it is missing. Tries again for `wait` seconds: a process that was killed may still be ending."""

    def __init__(self, path, wait=5.0):
        self._file = self._real = None
        self._owner = os.getpid()
        path = os.fspath(path)
        real = os.path.realpath(path)
        if real in _held:
            raise RuntimeError(f"{path}: this process has a Manager on this store; close() it first, or use another folder")
        try:
            os.makedirs(path, exist_ok=True)
            file = open(os.path.join(path, _NAME), "a+")
        except OSError as problem:
            raise _cannot_write(path, problem) from None
        try:
            self._take(path, file, time.monotonic() + wait)
        except BaseException:
            file.close()
            raise
        self._file, self._real = file, real
        _held.add(real)

    @staticmethod
    def _take(path, file, until):
        while True:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as problem:
                if problem.errno not in (errno.EACCES, errno.EAGAIN):
                    raise OSError(problem.errno, f"{path}: this file system has no locks, so a Manager cannot tell whether it is "
                                  f"alone on the store: {problem.strerror}; use a folder on another file system") from None
                if time.monotonic() >= until:
                    file.seek(0)
                    raise RuntimeError(f"{path}: another Manager works on this store ({file.read().strip() or 'unknown'}); end that "
                                       "process, or use another folder") from None
            time.sleep(0.05)
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}, since {time.strftime('%Y-%m-%d %H:%M:%S')}\n")
        file.flush()

    def close(self):
        if self._file is None:
            return
        self._file.close()  # and with it the lock
        self._file = None
        if self._owner == os.getpid():
            _held.discard(self._real)

    def __del__(self):
        self.close()


def _cannot_write(path, problem):
    reason = problem.strerror or str(problem)
    return OSError(problem.errno, f"{path}: checkpoints cannot be saved here: {reason}; give the Manager a folder that this user "
                   "may write, or mend its permissions")


def try_out(path):
    """Saves, loads and removes a few bytes in a store of its own inside the folder, and asks for the locks of the store.
    Raises an Error or OSError that says what is wrong. A store that is not there yet is made."""
    import numpy as np

    from .. import checkpoint

    probe = os.path.join(path, f".probe-{os.getpid()}")
    for name in os.listdir(path):
        if name.startswith(".probe-"):  # of a process that was killed meanwhile: this one has the lock
            shutil.rmtree(os.path.join(path, name), ignore_errors=True)
    values = np.arange(4096, dtype=np.float32)
    try:
        checkpoint.save(probe, {"values": values}, step=1, threads=1)
        back = checkpoint.load(probe, step=1, threads=1)["values"]
        if not np.array_equal(back, values):
            raise OSError(errno.EIO, f"{path}: what is read here is not what was written; use another disk")
    except Error as problem:
        raise Error(problem.status, f"{path}: checkpoints cannot be saved here: {problem}") from None
    finally:
        shutil.rmtree(probe, ignore_errors=True)
    for folder in ("data", "manifests", "tmp"):
        where = os.path.join(path, folder)
        if os.path.isdir(where) and not os.access(where, os.R_OK | os.W_OK | os.X_OK):
            raise OSError(errno.EACCES, f"{where}: this user may not write here; mend the permissions of the store")
    with Store(path, write=True, threads=1) as store:
        if os.path.isdir(os.path.join(path, "manifests")):
            store.steps()
            try:
                store.collect()  # removes nothing but what unfinished saves have left
            except Error as problem:
                if ": the store is in use;" not in str(problem):  # another process saves: its locks work
                    raise


def try_out_state(path, state, copies, options):
    """Saves and verifies a state in a store of its own inside the folder, and removes it. Returns Saved. OSError when
    `copies` of it do not fit on the disk."""
    from .. import checkpoint

    probe = os.path.join(path, f".probe-{os.getpid()}")
    try:
        saved = checkpoint.save(probe, state, step=1, **{**options, "base": None})
        checkpoint.verify(probe, step=1)
        free = shutil.disk_usage(path).free + saved.stored_bytes
    finally:
        shutil.rmtree(probe, ignore_errors=True)
    if free < copies * saved.stored_bytes:
        raise OSError(errno.ENOSPC, f"{path}: {copies} checkpoints of {saved.stored_bytes} bytes do not fit: {free} bytes are free; "
                      "make room, or keep fewer")
    return saved
