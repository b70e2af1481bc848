"""Plots of the comparison. The argument is the folder of report.json, where the plots are written too."""

import json
import os
import sys

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

FOLDER = sys.argv[1]

# The colours of Okabe and Ito, which colour-blind people can distinguish.
LIBRARIES = {
    "ours": ("this crate", "#0072B2"),
    "python": ("python-blosc2", "#E69F00"),
    "c": ("C-Blosc2", "#009E73"),
    "blosc2_rs": ("blosc2 0.2", "#CC79A7"),
    "pure_rs": ("blosc2-pure-rs", "#D55E00"),
    "blusc": ("blusc", "#000000"),
    "zarrs": ("zarrs", "#56B4E9"),
    "hdf5": ("HDF5", "#F0E442"),
    "memcpy": ("memcpy, 1 thread", "#999999"),
}
CODECS = {"blosclz": "BloscLZ", "lz4": "LZ4", "lz4hc": "LZ4HC", "zlib": "zlib", "zstd": "Zstandard"}

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


def save(figure, name):
    figure.savefig(os.path.join(FOLDER, name), facecolor="white", metadata={"Date": None})
    plt.close(figure)
    print("written:", os.path.join(FOLDER, name))


def find(cases, **wanted):
    return [case for case in cases if all(case[key] == value for key, value in wanted.items())]


def speed(case, library):
    """In GB/s, or None."""
    seconds = case.get(f"{library}_s")
    return case["bytes"] / seconds / 1e9 if seconds else None


def throughput(cases):
    """Reads and writes of the whole array by library."""
    workloads = [
        ("read_new", "read into\nnew memory"),
        ("read_into", "read into\nexisting memory"),
        ("read_file", "read from\na file"),
        ("create", "create\nin memory"),
        ("create_file", "create\nin a file"),
    ]
    figure, rows = plt.subplots(2, 2, figsize=(12, 7), sharey="col", layout="constrained")
    for row, threads in zip(rows, (1, 2)):
        for axes, codec in zip(row, ("lz4", "zstd")):
            x = 0.0
            ticks = []
            for key, name in workloads:
                found = find(cases, key=key, codec=codec, threads=threads)
                values = [(library, speed(case, library)) for case in found for library in LIBRARIES]
                values = [(library, value) for library, value in values if value]
                for index, (library, value) in enumerate(values):
                    axes.bar(x + index * 0.1, value, width=0.09, color=LIBRARIES[library][1])
                ticks.append((x + (len(values) - 1) * 0.05, name))
                x += len(values) * 0.1 + 0.15
            axes.set_xticks([place for place, _ in ticks], [name for _, name in ticks], fontsize=9)
            axes.tick_params(axis="x", length=0)
            axes.grid(axis="x", visible=False)
            axes.set_title(f"{CODECS[codec]}, {threads} thread{'s' if threads > 1 else ''}")
            axes.set_ylabel("uncompressed data, GB/s")
            axes.tick_params(labelleft=True)
    present = [name for name in LIBRARIES if any(case.get(f"{name}_s") for case in cases)]
    handles = [plt.Rectangle((0, 0), 1, 1, color=LIBRARIES[name][1]) for name in present]
    figure.legend(handles, [LIBRARIES[name][0] for name in present], loc="outside lower center", ncols=5, frameon=False)
    save(figure, "throughput.svg")


def threads(cases):
    """Speed by the number of threads."""
    figure, both = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for axes, key, name in zip(both, ("read_into", "create"), ("read into existing memory", "create in memory")):
        for codec, style in (("lz4", "-"), ("zstd", "--")):
            for library in ("ours", "python", "c"):
                found = sorted(find(cases, key=key, codec=codec), key=lambda case: case["threads"])
                points = [(case["threads"], speed(case, library)) for case in found if speed(case, library)]
                if points:
                    title, colour = LIBRARIES[library]
                    axes.plot(*zip(*points), style, marker="o", color=colour, label=f"{title}, {CODECS[codec]}")
        counts = sorted({case["threads"] for case in find(cases, key=key)})
        axes.set_xticks(counts)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("threads")
        axes.set_ylabel("uncompressed data, GB/s")
        axes.set_title(name)
    handles, labels = both[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    save(figure, "threads.svg")


def sizes(cases):
    """Time per byte by the size of the array."""
    figure, both = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    for axes, key, name in zip(both, ("read_size", "write_size"), ("read into new memory", "create in memory")):
        for library in ("ours", "python"):
            for threads, style in ((1, "-"), (2, "--")):
                found = sorted(find(cases, key=key, threads=threads), key=lambda case: case["bytes"])
                points = [(case["bytes"], 1 / speed(case, library)) for case in found if speed(case, library)]
                if points:
                    title, colour = LIBRARIES[library]
                    label = f"{title}, {threads} thread{'s' if threads > 1 else ''}"
                    axes.plot(*zip(*points), style, marker="o", markersize=4, color=colour, label=label)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        places = [4 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20, 4 << 30]
        axes.set_xticks(places, ["4 KiB", "64 KiB", "1 MiB", "16 MiB", "256 MiB", "4 GiB"], fontsize=9)
        axes.set_xlabel("size of the array")
        axes.set_ylabel("ns per byte")
        axes.set_title(f"{name}, LZ4")
    handles, labels = both[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    save(figure, "sizes.svg")


def codecs(cases):
    """Decode speed by codec."""
    figure, both = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
    for axes, threads in zip(both, (1, 2)):
        copies = []
        for group, (codec, name) in enumerate(CODECS.items()):
            for case in find(cases, key="read_into", codec=codec, threads=threads):
                copies.append(speed(case, "memcpy"))
                for index, library in enumerate(("ours", "python", "c")):
                    value = speed(case, library)
                    if value:
                        title, colour = LIBRARIES[library]
                        label = title if group == 0 else None
                        axes.bar(group + (index - 1) * 0.27, value, width=0.25, color=colour, label=label)
        copies = sorted(value for value in copies if value)
        if copies:
            axes.axhline(copies[len(copies) // 2], color="black", linestyle="--", label="memcpy, 1 thread")
        axes.set_xticks(range(len(CODECS)), CODECS.values())
        axes.grid(axis="x", visible=False)
        axes.tick_params(labelleft=True)
        axes.set_ylabel("uncompressed data, GB/s")
        axes.set_title(f"read into existing memory, {threads} thread{'s' if threads > 1 else ''}")
    handles, labels = both[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    save(figure, "codecs.svg")


def main():
    with open(os.path.join(FOLDER, "report.json"), encoding="utf-8") as file:
        cases = json.load(file)
    for plot in (throughput, threads, sizes, codecs):
        plot(cases)


main()
