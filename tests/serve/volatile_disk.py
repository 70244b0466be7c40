"""A disk that forgets what was not synced: a layer (VFS) between SQLite and the file system.

Every write goes to the real file, and is noted until SQLite syncs the file. `after_power_cut` is
what a disk may contain if the power fails now: each file as of its last sync, and any part of the
writes since then, in any order.

SQLite's C API has this extension point, and Python's sqlite3 uses the same shared library, so a
default VFS that is registered with ctypes is in effect for both.
"""

import ctypes
import ctypes.util
import threading
from contextlib import contextmanager
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int64, c_void_p
from pathlib import Path

OK = 0
XOpen = CFUNCTYPE(c_int, c_void_p, c_char_p, c_void_p, c_int, POINTER(c_int))
XDelete = CFUNCTYPE(c_int, c_void_p, c_char_p, c_int)
XWrite = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
XTruncate = CFUNCTYPE(c_int, c_void_p, c_int64)
XSync = CFUNCTYPE(c_int, c_void_p, c_int)


class IoMethods(Structure):
    """sqlite3_io_methods; what is not named here is copied as it is."""

    _fields_ = (
        ("version", c_int),
        ("close", c_void_p),
        ("read", c_void_p),
        ("write", XWrite),
        ("truncate", XTruncate),
        ("sync", XSync),
        ("rest", c_void_p * 13),
    )


class Vfs(Structure):
    """sqlite3_vfs, version 3."""

    _fields_ = (
        ("version", c_int),
        ("file_size", c_int),
        ("longest_path", c_int),
        ("next", c_void_p),
        ("name", c_char_p),
        ("data", c_void_p),
        ("open", XOpen),
        ("delete", XDelete),
        ("rest", c_void_p * 13),
    )


class VolatileDisk:
    """See the module."""

    def __init__(self):
        self._library = ctypes.CDLL(ctypes.util.find_library("sqlite3"))
        self._library.sqlite3_vfs_find.restype = POINTER(Vfs)
        self._lock = threading.Lock()
        self._paths = {}  # by the address of an open file
        self._methods = {}  # SQLite's own and ours, by the address of the former
        self.synced = {}
        self.unsynced = {}
        self._real = self._library.sqlite3_vfs_find(None)
        self._vfs = Vfs.from_buffer_copy(self._real.contents)
        self._vfs.name = b"volatile"
        self._vfs.open = XOpen(self._open)
        self._vfs.delete = XDelete(self._delete)

    @contextmanager
    def in_use(self):
        """While this is entered, SQLite opens files on this disk."""
        self._library.sqlite3_vfs_register(ctypes.byref(self._vfs), 1)
        try:
            yield self
        finally:
            self._library.sqlite3_vfs_register(self._real, 1)
            self._library.sqlite3_vfs_unregister(ctypes.byref(self._vfs))

    def after_power_cut(self, random):
        """A possible content of each file, by name."""
        with self._lock:
            found = {}
            for path, content in self.synced.items():
                content = bytearray(content)
                pending = self.unsynced[path]
                for change in random.sample(pending, random.randint(0, len(pending))):
                    change(content)
                found[path.name] = bytes(content)
            return found

    def _open(self, vfs, name, file, flags, flags_out):
        result = self._real.contents.open(vfs, name, file, flags, flags_out)
        address = ctypes.cast(file, POINTER(c_void_p))
        if result == OK and address[0] and name:
            with self._lock:
                path = self._paths[file] = Path(name.decode())
                self.synced.setdefault(path, path.read_bytes())
                self.unsynced.setdefault(path, [])
                _, ours = self._methods.get(address[0]) or self._wrap(address[0])
                address[0] = ctypes.addressof(ours)
        return result

    def _delete(self, vfs, name, sync_folder):
        with self._lock:
            self.synced.pop(Path(name.decode()), None)
            return self._real.contents.delete(vfs, name, sync_folder)

    def _wrap(self, address):
        real = IoMethods.from_address(address)
        ours = IoMethods.from_buffer_copy(real)

        def write(file, data, size, offset):
            text = ctypes.string_at(data, size)
            self._note(file, lambda content: overwrite(content, offset, text))
            return real.write(file, data, size, offset)

        def truncate(file, size):
            self._note(file, lambda content: content.__delitem__(slice(size, None)))
            return real.truncate(file, size)

        def sync(file, flags):
            with self._lock:
                path = self._paths[file]
                self.synced[path] = path.read_bytes()
                self.unsynced[path].clear()
            return OK

        ours.write, ours.truncate, ours.sync = XWrite(write), XTruncate(truncate), XSync(sync)
        self._methods[address] = real, ours
        return real, ours

    def _note(self, file, change):
        with self._lock:
            self.unsynced[self._paths[file]].append(change)


def overwrite(content, offset, text):
    content.extend(bytes(max(0, offset + len(text) - len(content))))
    content[offset : offset + len(text)] = text
