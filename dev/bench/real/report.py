"""Plots and tables of `cargo xtask bench real`.

Arguments: the folder of real.json, where the plots and tables.md are written too, the folder of the sets, and corpus.json.
"""

import json
import math
import os
import sys

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

RESULTS, SETS, CORPUS = sys.argv[1:4]

# The colours of Okabe and Ito, which colour-blind people can distinguish, and the shapes of the points.
LIBRARIES = {
    "blosc2": ("this crate", "#0072B2", "o"),
    "zarrs": ("zarrs", "#56B4E9", "s"),
    "zarr-python": ("zarr-python", "#E69F00", "P"),
    "HDF5": ("HDF5", "#CC79A7", "D"),
    "Parquet": ("Parquet", "#009E73", "^"),
    "Vortex": ("Vortex", "#D55E00", "v"),
    "Lance": ("Lance", "#B8A800", "p"),
    "npy.zst": ("npy with Zstandard", "#000000", "X"),
}
# A setting is on the frontier unless another library is better by more than this in both measures: the shortest times
# of two runs differ by as much.
TOLERANCE = 0.02

matplotlib.rcParams.update(
    {
        "font.family": "sans-serif",
        "font.size": 10,
        "svg.fonttype": "none",
        # The same names of elements in every run.
        "svg.hashsalt": "blosc2",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "axes.grid": True,
        "grid.color": "#dddddd",
    }
)


def ratio(record):
    return record["nbytes"] / record["bytes"]


def speed(record, key="read_1_s"):
    """Uncompressed data in GB/s."""
    return record["nbytes"] / record[key] / 1e9


def frontier(records, value):
    """The records that no other one surpasses in both ratio and value, from the smallest ratio to the greatest."""
    found, best = [], -math.inf
    for record in sorted(records, key=lambda it: (-ratio(it), -value(it))):
        if value(record) > best:
            found.append(record)
            best = value(record)
    return found[::-1]


def is_ours(records, value):
    """Whether a setting of this crate is on the frontier, within the tolerance of the measurement."""
    others = [it for it in records if it["library"] != "blosc2"]
    better = lambda it, other: ratio(other) > ratio(it) * (1 + TOLERANCE) and value(other) > value(it) * (1 + TOLERANCE)
    ours = [it for it in frontier(records, value) if it["library"] == "blosc2"]
    return any(not any(better(it, other) for other in others) for it in ours)


def save(figure, name):
    figure.savefig(os.path.join(RESULTS, name), facecolor="white", metadata={"Date": None})
    plt.close(figure)


def short(setting):
    """The label of a point."""
    for long, text in (("shuffle+bytedelta", "bytedelta"), (" or delta", ""), (" (default)", ""), ("+", " + ")):
        setting = setting.replace(long, text)
    return setting


def plot(about, records):
    """One point for each setting and library."""
    figure, axes = plt.subplots(figsize=(9, 5.6), layout="constrained")
    for library, (title, colour, shape) in LIBRARIES.items():
        found = [it for it in records if it["library"] == library]
        if found:
            points = [(speed(it), ratio(it)) for it in found]
            faces = [colour if it["default"] else "none" for it in found]
            axes.scatter(*zip(*points), marker=shape, s=34, facecolors=faces, edgecolors=colour, linewidths=1.2)
            axes.scatter([], [], marker=shape, s=34, color=colour, label=title)
    line = frontier(records, speed)
    axes.plot([speed(it) for it in line], [ratio(it) for it in line], color="#777777", linewidth=1, zorder=0)
    axes.set_xscale("log")
    ratios = [ratio(it) for it in records]
    if max(ratios) / min(ratios) > 6:
        axes.set_yscale("log")
    places = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10]
    low, high = min(map(speed, records)), max(map(speed, records))
    axes.set_xlim(low / 1.25, high * 1.9)
    axes.set_xticks([place for place in places if low / 1.25 <= place <= high * 1.9])
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_minor_formatter("")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    # With all digits, the labels near a power of ten overlap.
    is_log = axes.get_yscale() == "log"
    axes.yaxis.set_minor_formatter(lambda value, _: f"{value:g}" if is_log and f"{value:e}"[0] in "25" else "")
    axes.set_xlabel("read everything with one thread, GB/s of uncompressed data")
    axes.set_ylabel("compression ratio")
    axes.set_title(f"{about['name']}: {about['about']}")
    # Places are known only after a layout.
    figure.legend(loc="outside lower center", ncols=6, frameon=False)
    figure.draw_without_rendering()
    label(axes, line, records)
    save(figure, about["name"] + ".svg")


def label(axes, line, records):
    """Labels points of the frontier where the text covers no point and no other label."""
    points = [axes.transData.transform((speed(it), ratio(it))) for it in records]
    taken, last = [], None
    for record in line[::-1]:
        at = axes.transData.transform((speed(record), ratio(record)))
        if last is not None and math.dist(at, last) < 24:
            continue
        colour = LIBRARIES[record["library"]][1]
        for offset, align in (((7, 4), "left"), ((7, -11), "left"), ((-7, 5), "right"), ((-7, -12), "right")):
            text = axes.annotate(
                short(record["setting"]), (speed(record), ratio(record)), offset, textcoords="offset points",
                fontsize=8, color=colour if colour != "#56B4E9" else "#2277AA", ha=align,
            )  # fmt: skip
            box = text.get_window_extent().expanded(1.02, 1.1)
            inside = axes.get_window_extent()
            fits = inside.x0 <= box.x0 and box.x1 <= inside.x1 and inside.y0 <= box.y0 and box.y1 <= inside.y1 + 8
            free = not any(box.contains(*point) for point in points) and not any(box.overlaps(other) for other in taken)
            if fits and free:
                taken.append(box)
                last = at
                break
            text.remove()


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def time(seconds):
    if seconds is None:
        return ""
    for unit, name in ((1, "s"), (1e-3, "ms")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds * 1e6:.3g} µs"


def defaults(records):
    """The default settings."""
    rows = []
    for it in records:
        if it["default"]:
            peaks = [it["peak_read"], it["peak_write"]]
            read_2 = f"{speed(it, 'read_2_s'):.2f}" if it["read_2_s"] else ""
            rows.append(
                [LIBRARIES[it["library"]][0], it["setting"], f"{ratio(it):.2f}", f"{speed(it, 'write_s'):.2f}",
                 f"{speed(it):.2f}", read_2, time(it["tile_s"]), time(it["row_s"]), time(it["open_s"]),
                 *("" if peak is None else f"{peak / 1e6:.0f}" for peak in peaks)]
            )  # fmt: skip
    head = [
        "library", "setting", "ratio", "write", "read, 1 thread", "read, 2 threads", "tile", "item", "open and item",
        "memory of a read", "memory of a write",
    ]  # fmt: skip
    return table(head, rows)


def random(record):
    return 1 / record["tile_s"]


def summary(sets, by_set):
    """What each set shows: the frontier, the greatest ratios, and the fastest reads."""
    rows, ours, tiles = [], 0, 0
    for about in sets:
        records = by_set[about["name"]]
        line = frontier(records, speed)
        parts = [it for it in records if it["tile_s"]]
        on_line, on_tiles = is_ours(records, speed), is_ours(parts, random)
        ours, tiles = ours + on_line, tiles + on_tiles
        count = sum(it["library"] == "blosc2" for it in line)
        best = lambda mine: max((it for it in records if (it["library"] == "blosc2") == mine), key=ratio)
        mine, other = best(True), best(False)
        fastest = max((it for it in records if it["library"] == "blosc2"), key=speed)
        rows.append(
            [about["name"], f"{count} of {len(line)}" if on_line else "none", "yes" if on_tiles else "no",
             f"{ratio(mine):.2f} ({mine['setting']})",
             f"{ratio(other):.2f} ({LIBRARIES[other['library']][0]}, {other['setting']})",
             f"{speed(fastest):.2f} ({fastest['setting']})"]
        )  # fmt: skip
    head = [
        "set", "this crate's part of the frontier", "on the frontier for tiles", "greatest ratio of this crate",
        "greatest ratio of others", "fastest read of this crate, GB/s",
    ]  # fmt: skip
    text = (
        f"A setting of this crate is on the frontier of ratio against full-read speed for {ours} of {len(sets)} sets, and "
        f"on that of ratio against the speed of random tiles for {tiles} of {len(sets)}."
    )
    return text + "\n\n" + table(head, rows)


def losses(sets, by_set):
    """Where another library surpasses this crate: in ratio, or in speed at the same ratio."""
    lines = []
    for about in sets:
        records = by_set[about["name"]]
        ours = [it for it in records if it["library"] == "blosc2"]
        for it in frontier(records, speed):
            if it["library"] == "blosc2":
                continue
            same = [mine for mine in ours if ratio(mine) >= ratio(it) * 0.995]
            title = f"{LIBRARIES[it['library']][0]}, {it['setting']}"
            if same:
                mine = max(same, key=speed)
                factor = speed(it) / speed(mine)
                if factor > 1 + TOLERANCE:
                    lines.append(
                        f"- {about['name']}: {title} reads {factor:.2f} times as fast as {mine['setting']}, the fastest "
                        f"setting of this crate with at least its ratio of {ratio(it):.2f}."
                    )
            else:
                mine = max(ours, key=ratio)
                lines.append(
                    f"- {about['name']}: {title} has the ratio {ratio(it):.2f} at {speed(it):.2f} GB/s; the greatest of "
                    f"this crate is {ratio(mine):.2f}, at {speed(mine):.2f} GB/s."
                )
    return "\n".join(lines) or "In no set."


def choices(found):
    """The choice of CParams::suggest for each set and aim."""
    rows = [
        [it["set"], it["aim"], it["chosen"], it["best"], f"{100 * it['loss']:.1f} %", f"{it['seconds']:.2f}"]
        for it in found
    ]
    good, slow = sum(it["loss"] <= 0.05 for it in found), max(it["seconds"] for it in found)
    text = (
        f"The choice is within 5 % of the best setting for {good} of {len(found)} pairs of set and aim. The slowest "
        f"choice took {slow:.2f} seconds."
    )
    return text + "\n\n" + table(["set", "aim", "choice", "best setting", "difference", "seconds"], rows)


def lossy(found, by_set):
    """trunc_prec, beside the lossless setting with the same codec."""
    rows = []
    for it in found:
        lossless = next(
            one for one in by_set[it["set"]] if (one["library"], one["setting"]) == ("blosc2", "zstd 5 shuffle")
        )
        rows.append(
            [it["set"], it["setting"], f"{ratio(it):.2f}", f"{ratio(lossless):.2f}", f"{speed(it, 'write_s'):.2f}",
             f"{speed(it):.2f}", f"2^-{it['bits']} = {it['most_relative']:.2g}", f"{it['relative']:.2g}",
             f"{it['absolute']:.2g}"]
        )  # fmt: skip
    head = [
        "set", "setting", "ratio", "ratio of zstd 5 shuffle, lossless", "write, GB/s", "read, 1 thread, GB/s",
        "bound of the relative error", "greatest relative error", "greatest absolute error",
    ]  # fmt: skip
    return table(head, rows)


def large(found):
    memory = lambda it: "" if it["memory"] is None else f"{it['memory'] / 1e6:.1f}"
    rows = [[it["task"], time(it["seconds"]), memory(it), f"{it['bytes'] / 1e6:.2f}"] for it in found]
    return table(["operation", "time", "peak memory, MB", "file after it, MB"], rows)


def requests(found):
    rows = []
    keys = dict.fromkeys((it["set"], it["delay_ms"], it["concurrency"]) for it in found if it["library"] != "npy.zst")
    for name, delay, limit in keys:
        at = {
            it["library"]: it
            for it in found
            if (it["set"], it["delay_ms"]) == (name, delay) and it["concurrency"] in (limit, 1)
        }
        cells = [time(at[library][key]) for library in ("blosc2", "zarrs") for key in ("read_s", "tiles_s")]
        rows.append([name, f"{delay} ms", str(limit), *cells, time(at["npy.zst"]["read_s"])])
    head = [
        "set", "delay", "requests at once", "this crate: everything", "128 tiles", "zarrs: everything", "128 tiles",
        "npy with Zstandard: everything",
    ]  # fmt: skip
    return table(head, rows)


def machine(facts):
    changes = ", with changes" if facts["has_uncommitted_changes"] else ""
    return "\n".join(
        [
            f"- Run: commit {facts['commit']}{changes}, {facts['date']}, {facts['seconds'] / 60:.1f} minutes",
            f"- CPU: {facts['cpu']}, {facts['cores']} cores; {', '.join(facts['caches'])}",
            f"- Load before the run: {facts['load']}",
            f"- Versions: {facts['rustc']}; {facts['python']}",
        ]
    )


def corpus(sets):
    with open(CORPUS, encoding="utf-8") as file:
        packages = json.load(file)
    rows = []
    for about in sets:
        package = next(it for it in packages if about["name"] in it["sets"])
        size = math.prod(about["shape"]) * about["itemsize"]
        shape = " x ".join(map(str, about["shape"]))
        chunk = " x ".join(map(str, about["chunks"]))
        rows.append(
            [about["name"], about["about"], f"`{about['dtype']}`".replace("|", "\\|"), shape, chunk, f"{size / 1e6:.1f}",
             f"{package['name']} {package['version']}", package["licence"]]
        )  # fmt: skip
    return table(["set", "content", "dtype", "shape", "chunk", "MB", "package", "licence"], rows)


def main():
    with open(os.path.join(RESULTS, "real.json"), encoding="utf-8") as file:
        report = json.load(file)
    with open(os.path.join(SETS, "sets.json"), encoding="utf-8") as file:
        sets = json.load(file)
    by_set = {about["name"]: [it for it in report["records"] if it["set"] == about["name"]] for about in sets}
    sets = [about for about in sets if by_set[about["name"]]]
    if not sets:
        sys.exit("no set was measured")
    parts = [machine(report["machine"])]
    parts += [f"- Not measured: {it['set']}, because {it['error']}" for it in report["failures"]]
    parts = ["\n".join(parts), "### Sets", corpus(sets), "### Summary", summary(sets, by_set)]
    parts += ["### Where other libraries are better", losses(sets, by_set)]
    if report["choices"]:
        parts += ["### Settings that `CParams::suggest` chooses", choices(report["choices"])]
    if report["lossy"]:
        parts += ["### With less precision", lossy(report["lossy"], by_set)]
    if report["requests"]:
        parts += ["### Object store", requests(report["requests"])]
    if report["large"]:
        parts += ["### Arrays of 100 GB and 1 TB", large(report["large"])]
    parts.append("### Sets, one by one")
    units = "Speeds are GB/s of uncompressed data, memory is MB."
    parts.append(units)
    for about in sets:
        plot(about, by_set[about["name"]])
        parts += [f"#### {about['name']}", f"![{about['about']}](real/{about['name']}.svg)"]
        parts.append(defaults(by_set[about["name"]]))
    with open(os.path.join(RESULTS, "tables.md"), "w", encoding="utf-8") as file:
        file.write("\n\n".join(parts) + "\n")
    print("written:", RESULTS)


main()
