"""The queries of `scan.rs` with the API of Python's `CTable`: the fastest time of each, and its rows."""

import sys
import time

import blosc2
import numpy as np

path, start, end, runs = sys.argv[1], *map(int, sys.argv[2:])
table = blosc2.open(path)


def moment(value):
    """Microseconds as Arrow writes them."""
    value = int(value) if isinstance(value, np.integer) else str(value)
    seconds, fraction = str(np.datetime64(value, "us")).split(".")
    fraction = fraction.removesuffix("000")
    return seconds if fraction == "000" else f"{seconds}.{fraction}"


def scan():
    return [(len(table), int(table["id"].sum()), float(round(table["price"].sum())))]


def scan_and_maximum():
    return [(*scan()[0], *maximum()[0])]


def maximum():
    return [(moment(table["time"].max()),)]


def group():
    groups = table.group_by("city", sort=True).agg(n=("*", "size"), mean=("price", "mean"))
    means = np.round(np.asarray(groups["mean"][:]), 3)
    return [(str(city), int(n), float(mean)) for city, n, mean in zip(groups["city"][:], groups["n"][:], means)]


def top():
    rows = table.sort_by(["price", "id"], ascending=[False, True], view=True).head(10)
    columns = [rows[name][:] for name in ("id", "city", "price", "time")]
    return [(int(id), str(city), float(price), moment(when)) for id, city, price, when in zip(*columns)]


def select():
    found = table.where((table["id"] >= start) & (table["id"] < end))
    return [(len(found), float(round(found["price"].sum())))]


for query in (scan, scan_and_maximum, maximum, group, top, select):
    times = []
    # A slow query runs less often.
    while len(times) < runs and sum(times) < 10:
        begin = time.perf_counter()
        rows = query()
        times.append(time.perf_counter() - begin)
    print("\t".join([str(min(times)), *(" ".join(map(str, row)) for row in rows)]))
