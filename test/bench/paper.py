#!/usr/bin/env python3
"""The experiment of the FlexFlow paper (arXiv 1807.05358; MLSys 2019, figure 6), simulated: six benchmarks, two clusters, all sizes.

    test/bench/paper.py BUILD_DIR [--budget S] [--space soap|full] [--today] [--only NAME ...] [--sizes largest|all] [--jobs N] [--out DIR]

Every benchmark is compiled for every size of both clusters at the paper's batch a GPU, with roofline costs, and the search stops after
--budget seconds. Each benchmark's device rates are scaled by one factor a cluster, so that one GPU is as fast as in the paper; nothing
else is fitted. Prints a table a cluster, predicted samples/s a GPU for data parallelism, expert and found beside the paper's, and
writes one plot a cluster (SVG) and all figures (JSON) to DIR. The clusters synchronise each weight through one server, as the paper's
figures show that it did; with --today they reduce by collectives, as systems do now, and the paper's gains are no longer there to be had.
"""
import argparse
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys

# Samples a GPU; recurrent layers are placed by blocks of this many of their 40 steps.
BENCHMARKS = {"alexnet": (256, 0), "inception-v3": (64, 0), "resnet101": (64, 0), "rnntc": (64, 10), "rnnlm": (64, 10), "nmt": (64, 10)}
CLUSTERS = {"p100-4x4": (1, 2, 4, 8, 16), "k80-16x4": (1, 2, 4, 8, 16, 32, 64)}
# Figure 6, samples/s a GPU: data parallelism, expert, found; read off the drawing.
PAPER = {
    "p100-4x4": {
        "alexnet": ((2254, 1475, 1213, 879, 635), (2254, 1821, 1521, 1225, 949), (2254, 2244, 2141, 1927, 1570)),
        "inception-v3": ((149, 148, 132, 126, 110), (149, 148, 134, 129, 114), (149, 149, 149, 145, 138)),
        "resnet101": ((159, 158, 157, 147, 138), (159, 158, 157, 147, 138), (159, 158, 159, 151, 143)),
        "rnntc": ((551, 512, 397, 314, 236), (551, 481, 357, 303, 247), (551, 547, 477, 429, 365)),
        "rnnlm": ((350, 299, 232, 206, 169), (350, 295, 197, 179, 154), (350, 331, 297, 270, 234)),
        "nmt": ((358, 324, 268, 221, 172), (358, 272, 192, 164, 135), (358, 349, 333, 285, 245)),
    },
    "k80-16x4": {
        "alexnet": ((615, 506, 399, 289, 204, 137, 89), (615, 549, 430, 333, 250, 181, 126), (615, 603, 563, 517, 460, 384, 288)),
        "inception-v3": ((30, 28, 26.5, 25.9, 24.5, 20.9, 16.7), (30, 28.5, 27.5, 26.4, 25.1, 21.3, 17.0), (30, 30, 30, 30, 29, 28, 26)),
        "resnet101": ((39, 38, 38, 36, 34, 32, 30), (39, 38, 38, 36, 34, 32, 30), (39, 39, 39, 37, 35, 34, 33)),
        "rnntc": ((155, 146, 110, 96, 81, 64, 48), (155, 131, 97, 86, 75, 62, 48), (155, 152, 125, 114, 103, 90, 78)),
        "rnnlm": ((81, 74, 62, 57, 50, 42, 34), (81, 67, 45, 42, 37, 33, 28), (81, 79, 72, 65, 59, 54, 49)),
        "nmt": ((100, 94, 84, 73, 59, 45, 34), (100, 81, 58, 49, 41, 33, 24), (100, 98, 97, 87, 76, 66, 58)),
    },
}
RATES = re.compile(r"(flops_f32|flops_f64|memory_bandwidth): (\S+)")
KINDS = ("data-parallel", "expert", "found")


def compile_one(options, cluster, size, name):
    """The report of one search, with samples/s a GPU by kind."""
    batch, chunk = BENCHMARKS[name]
    scale = options.scales[cluster, name]
    machine, report = (options.out / f"{name}-{cluster}-{size}.{ending}" for ending in ("machine", "json"))
    preset = f"{cluster}{'' if options.today else '-paper'}:devices={size}"
    text = subprocess.run([options.build / "bin/fftopo", "--preset", preset], check=True, capture_output=True, text=True).stdout
    machine.write_text(RATES.sub(lambda m: f"{m[1]}: {float(m[2]) * scale}", text))
    command = [options.build / "bin/ffcompile", options.out / f"{name}.onnx", "--machine", machine, "--batch", batch * size,
               "--loss", "softmax-cross-entropy", "--cost", "roofline", "--space", options.space, "--budget", options.budget,
               "--batchnorm", "local", "--no-reference", "--report", report, "-o", options.out / f"{name}-{cluster}-{size}.soap"]
    if size == 1:
        command += ["--search", "data-parallel"]
    if chunk:
        command += ["--rnn-chunk", chunk]
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr}")
    result = json.loads(report.read_text())
    seconds = {k: b["predicted_step_seconds"] for k, b in result["baselines"].items()} | {"found": result["predicted_step_seconds"]}
    return {"cluster": cluster, "size": size, "name": name, "search": result["search"],
            "rate": {k: batch / s for k, s in seconds.items()}}


def table(rows, cluster):
    print(f"\n{cluster}: samples/s a GPU, simulated (the paper's); gain of found over data parallelism and over expert\n")
    print("| benchmark | GPUs | data parallel | expert | found | over data parallel | over expert |")
    print("|---|---|---|---|---|---|---|")
    for row in rows:
        at = CLUSTERS[cluster].index(row["size"])
        paper = [series[at] for series in PAPER[cluster][row["name"]]]
        ours = [row["rate"][k] for k in KINDS]
        cells = [f"{o:.0f} ({p:g})" if o >= 100 else f"{o:.1f} ({p:g})" for o, p in zip(ours, paper)]
        cells += [f"{ours[2] / ours[i]:.2f} ({paper[2] / paper[i]:.2f})" for i in (0, 1)]
        print(f"| {row['name']} | {row['size']} | {' | '.join(cells)} |")


def plot(rows, cluster, path):
    """A panel a benchmark: samples/s a GPU over GPUs; ours drawn through, the paper's dashed."""
    names = [n for n in BENCHMARKS if any(r["name"] == n for r in rows)]
    width, height, colours = 300, 200, {"data-parallel": "#888888", "expert": "#1f77b4", "found": "#d62728"}
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width * 3}" height="{(height + 30) * -(-len(names) // 3) + 30}" '
           'font-family="sans-serif" font-size="11">']
    sizes = CLUSTERS[cluster]
    for panel, name in enumerate(names):
        left, top = panel % 3 * width + 40, panel // 3 * (height + 30) + 20
        ours = {r["size"]: r["rate"] for r in rows if r["name"] == name}
        paper = PAPER[cluster][name]
        most = 1.05 * max([max(series) for series in paper] + [rate[k] for rate in ours.values() for k in KINDS])

        def point(size, value):
            return f"{left + sizes.index(size) * (width - 60) / (len(sizes) - 1):.1f},{top + height - 30 - value / most * (height - 50):.1f}"

        out.append(f'<text x="{left}" y="{top}" font-weight="bold">{name}</text>')
        out.append(f'<path d="M{left},{top + 10} V{top + height - 30} H{left + width - 60}" fill="none" stroke="black"/>')
        out.append(f'<text x="{left - 4}" y="{top + 24}" text-anchor="end">{most / 1.05:.0f}</text>')
        for size in sizes:
            x = point(size, 0).split(",")[0]
            out.append(f'<text x="{x}" y="{top + height - 16}" text-anchor="middle">{size}</text>')
        for kind, series in zip(KINDS, paper):
            drawn = " ".join(point(s, v) for s, v in zip(sizes, series))
            out.append(f'<polyline points="{drawn}" fill="none" stroke="{colours[kind]}" stroke-dasharray="3 3"/>')
            mine = " ".join(point(s, ours[s][kind]) for s in sizes if s in ours)
            out.append(f'<polyline points="{mine}" fill="none" stroke="{colours[kind]}" stroke-width="2"/>')
    foot = (height + 30) * -(-len(names) // 3) + 20
    for i, kind in enumerate(KINDS):
        out.append(f'<text x="{40 + i * 120}" y="{foot}" fill="{colours[kind]}">{kind}</text>')
    out.append(f'<text x="400" y="{foot}">{cluster}: samples/s a GPU over GPUs; through: simulated here, dashed: the paper</text></svg>')
    path.write_text("\n".join(out) + "\n")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--budget", type=float, default=10)
    parser.add_argument("--space", choices=("soap", "full"), default="soap")
    parser.add_argument("--today", action="store_true")
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, default=list(BENCHMARKS))
    parser.add_argument("--sizes", choices=("largest", "all"), default="all")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("paper-experiment"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.only:
        subprocess.run([options.build / "bin/ffmodel", name, "--light", "-o", options.out / f"{name}.onnx"], check=True, stdout=subprocess.DEVNULL)
    options.scales = {}
    for cluster in CLUSTERS:
        for name in options.only:
            options.scales[cluster, name] = 1
            for _ in range(3):  # launch times do not scale, so once is not enough
                rate = compile_one(options, cluster, 1, name)["rate"]["data-parallel"]
                options.scales[cluster, name] *= PAPER[cluster][name][0][0] / rate
    cases = [(c, s, n) for c, sizes in CLUSTERS.items() for n in options.only for s in (sizes if options.sizes == "all" else sizes[-1:])]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(lambda case: compile_one(options, *case), cases))
    for cluster in CLUSTERS:
        mine = [r for r in rows if r["cluster"] == cluster]
        table(mine, cluster)
        plot(mine, cluster, options.out / f"{cluster}.svg")
    (options.out / "results.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
