"""A pytest plugin that copies every file and every cframe that the tests make.

`pytest -p record` with RECORD_TO, the folder of the copies. A file is copied

- after each test, if it is below the folder of temporary files or below the working directory;
- before it is removed or replaced by Python code.

An object in memory is copied as its cframe: at the return of each function of a test file, all local variables are
searched for it. The name of a copy is the hash of its content, so that equal contents are copied once.
"""

import hashlib
import io
import os
import shutil
import sys
import threading
import zipfile
from pathlib import Path

import blosc2
import pytest

FOLDER = Path(os.environ["RECORD_TO"])
# The start of a frame: an array of msgpack, and its first string.
MAGIC = b"\x9e\xa8b2frame\0"
# A test that makes larger files tests sizes, which the tests of this project do with less copying.
LARGEST = 64 << 20

# The originals: the plugin replaces them.
remove, rmtree, replace, rename = os.remove, shutil.rmtree, os.replace, os.rename
remove_urlpath = blosc2.remove_urlpath
open_file = open
# Flags of code objects: generators, coroutines, and both.
GENERATORS = 0x2A0

seen_files = {}
seen_hashes = set()
inside = threading.local()


def is_frame(data):
    return data[: len(MAGIC)] == MAGIC


def keep(name, data):
    """Stores the content under its hash."""
    digest = hashlib.sha256(data).hexdigest()[:32]
    if (name, digest) in seen_hashes:
        return
    seen_hashes.add((name, digest))
    target = FOLDER / f"{digest}{name}"
    if not target.exists():
        partial = FOLDER / f"{digest}{name}.{os.getpid()}"
        with open_file(partial, "wb") as file:
            file.write(data)
        replace(partial, target)


def read(path):
    with open_file(path, "rb") as file:
        return file.read()


def keep_file(path):
    """Copies a frame or a store in one file, and the frames in a store."""
    try:
        status = os.stat(path)
    except OSError:
        return
    state = (status.st_mtime_ns, status.st_size, status.st_ino)
    if seen_files.get(path) == state or not 16 <= status.st_size <= LARGEST:
        return
    seen_files[path] = state
    try:
        data = read(path)
    except OSError:
        return
    if is_frame(data):
        keep(".b2frame", data)
    elif data[:4] == b"PK\x03\x04" and path.endswith(".b2z"):
        keep(".b2z", data)
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                for member in archive.namelist():
                    content = archive.read(member)
                    if is_frame(content):
                        keep(".b2frame", content)
        except Exception:
            pass  # The writer has not finished the file.


def keep_directory(path, kind):
    """Copies a frame or a store in a directory."""
    digest, files, size = hashlib.sha256(), [], 0
    for folder, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            file = os.path.join(folder, name)
            try:
                data = read(file)
            except OSError:
                return
            size += len(data)
            if size > LARGEST:
                return
            relative = os.path.relpath(file, path)
            digest.update(f"{relative}\0{len(data)}\0".encode() + data)
            files.append((relative, data))
    name = digest.hexdigest()[:32] + kind
    if name in seen_hashes:
        return
    seen_hashes.add(name)
    target = FOLDER / name
    if target.exists():
        return
    partial = FOLDER / f"{name}.{os.getpid()}"
    for relative, data in files:
        file = partial / relative
        file.parent.mkdir(parents=True, exist_ok=True)
        with open_file(file, "wb") as output:
            output.write(data)
    if not target.exists():
        rename(partial, target)


def keep_path(path):
    """Copies what a file or a directory contains."""
    if getattr(inside, "it", False):
        return
    inside.it = True
    try:
        path = os.path.abspath(os.fspath(path))
        if isinstance(path, bytes) or str(FOLDER) in path:
            return
        if os.path.isdir(path):
            keep_tree(path)
        else:
            keep_file(path)
    except Exception as error:
        print(f"record: {path}: {error!r}", file=sys.stderr)
    finally:
        inside.it = False


def keep_tree(path):
    entries = sorted(os.scandir(path), key=lambda entry: entry.name)
    if any(entry.name == "chunks.b2frame" for entry in entries):
        keep_directory(path, ".frame")
        return
    if path.endswith(".b2d"):
        keep_directory(path, ".b2d")
    for entry in entries:
        if entry.is_symlink():
            continue
        if entry.is_dir():
            keep_tree(entry.path)
        else:
            keep_file(entry.path)


def keep_object(value, depth=0):
    """Copies the cframe of an object in memory, or bytes that are one."""
    if isinstance(value, (bytes, bytearray)):
        if 16 <= len(value) <= LARGEST and is_frame(value[:16]):
            keep(".b2frame", bytes(value))
    elif isinstance(value, (list, tuple)) and depth < 2:
        for item in value[:50]:
            keep_object(item, depth + 1)
    elif isinstance(value, dict) and depth < 2:
        for item in list(value.values())[:50]:
            keep_object(item, depth + 1)
    elif type(value).__module__.startswith("blosc2."):
        schunk = value if isinstance(value, blosc2.SChunk) else getattr(value, "schunk", None)
        if not isinstance(schunk, blosc2.SChunk) or schunk.urlpath is not None:
            return
        if schunk.nbytes > LARGEST or schunk.cbytes > LARGEST:
            return
        keep(".b2frame", bytes(schunk.to_cframe()))


def on_return(frame, event, _):
    if event == "return" and not getattr(inside, "it", False):
        inside.it = True
        try:
            for value in list(frame.f_locals.values()):
                try:
                    keep_object(value)
                except Exception:
                    pass  # An object that its test has damaged or closed.
        finally:
            inside.it = False
    return on_return


def on_call(frame, event, _):
    code = frame.f_code
    if event == "call" and "/tests/" in code.co_filename and not code.co_flags & GENERATORS:
        frame.f_trace_lines = False
        return on_return
    return None


def before(original):
    """The function, after its first argument has been copied."""

    def wrapper(path, *args, **kwargs):
        if isinstance(path, (str, os.PathLike)):
            keep_path(path)
        return original(path, *args, **kwargs)

    return wrapper


def before_replacing(original):
    """The function, after both of its arguments have been copied."""

    def wrapper(source, target, *args, **kwargs):
        for path in (source, target):
            if isinstance(path, (str, os.PathLike)):
                keep_path(path)
        return original(source, target, *args, **kwargs)

    return wrapper


def pytest_configure(config):
    FOLDER.mkdir(parents=True, exist_ok=True)
    os.remove, os.unlink = before(remove), before(remove)
    shutil.rmtree = before(rmtree)
    os.replace, os.rename = before_replacing(replace), before_replacing(rename)
    for module in list(sys.modules.values()):
        if getattr(module, "remove_urlpath", None) is remove_urlpath:
            module.remove_urlpath = before(remove_urlpath)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item):
    sys.settrace(on_call)
    threading.settrace(on_call)
    try:
        return (yield)
    finally:
        sys.settrace(None)
        threading.settrace(None)
        keep_path(os.getcwd())
        folder = getattr(item, "funcargs", {}).get("tmp_path")
        if folder is not None and folder.exists():
            keep_path(folder)
