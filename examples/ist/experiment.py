#!/usr/bin/env python3
"""Independent subnets beside local SGD and data parallel training: how long each takes to each accuracy, over fast and slow links.

    python3 examples/ist/experiment.py               all of it, an hour on two busy cores; needs root, iproute2 and MPICH
    python3 examples/ist/experiment.py --quick       digits on two sites of one process, some seconds

What a net learns in a step does not depend on the links. So every net is trained once with each strategy and number of sites, in one process, and
evaluated as it goes; then some steps of each are timed over each kind of link, without evaluations, and seconds to an accuracy are steps times
the median time of a step. Python's library is enough; einc is taken from --einc, the variable EINC or the path. What was measured is kept in
results.json of --folder: a run that was ended goes on there, --fresh begins anew, and --again measures again what has names of a pattern
(`learn NET STRATEGY SITES`, `time NET STRATEGY SITES LINK`), for --minutes at most. Tables go to tables.md, plots to *.svg.
"""

import argparse
import json
import math
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time

from plot import panels

HERE = pathlib.Path(__file__).resolve().parent
LINKS = HERE / "links.sh"
SITES = [2, 4, 8]
# MPICH 4.0.2 over UCX's TCP sometimes does not come back from MPI_Finalize.
GRACE = 5

# The paper's table 1: seconds on clusters of m5.2xlarge, by level; 2, 4 and 8 nodes.
PAPER = {
    "speech2": {
        0.63: {"parallel": [118, 269, 450], "local": [68, 130, 235], "ist": [35, 28, 24]},
        0.75: {"parallel": [759, 1708, 2417], "local": [444, 742, 1110], "ist": [231, 167, 192]},
    },
    "speech3": {
        0.63: {"parallel": [376, 1228, 1922], "local": [182, 586, 1115], "ist": [76, 141, 300]},
        0.75: {"parallel": [4534, 9340, 14886], "local": [2032, 4107, 6539], "ist": [812, 664, 1161]},
    },
}

# Key: (name in tables, strategy, steps of a round).
STRATEGIES = {
    "parallel": ("data parallel", "local_sgd(steps: 1)", 1),
    "sync": ("`sync`", "sync", 1),
    "local": ("local SGD 10", "local_sgd(steps: 10)", 10),
    "ist": ("IST 10", "ist(local_steps: 10, state: reset)", 10),
    "ist50": ("IST 50", "ist(local_steps: 50, state: reset)", 50),
}

# By net: its title, the accuracies, and by strategy how many steps are made to reach them, on 2, 4 and 8 sites or those of SETTINGS.
NETS = {
    "speech2": (
        "speech-shaped, 4096-1024-35",
        [0.63, 0.75, 0.80],
        {
            "parallel": [200, 140, 100],
            "sync": [200, 140, 100],
            "local": [150, 140, 130],
            "ist": [320, 400, 600],
            "ist50": [300, 400, 600],
        },
    ),
    "speech3": (
        "speech-shaped, 4096-1024-1024-35",
        [0.63, 0.75, 0.80],
        {
            "parallel": [160, 100, 80],
            "sync": [160, 100, 80],
            "local": [200, 100, 100],
            "ist": [400, 600, 400],
            "ist50": [400, 600, 400],
        },
    ),
    "wide": (
        "speech-shaped, 4096-4096-35",
        [0.63, 0.75, 0.80],
        {"parallel": [100], "sync": [100], "local": [150], "ist": [200], "ist50": [250]},
    ),
    "apart": (
        "speech-shaped with modes farther apart (rho = 1), 4096-1024-1024-35",
        [0.63, 0.75, 0.80],
        {"parallel": [100], "sync": [100], "local": [100], "ist": [360], "ist50": [350]},
    ),
    "digits2": (
        "digits, 64-512-10",
        [0.90, 0.95, 0.98],
        {"parallel": [200, 100, 60], "sync": [200, 100, 60], "local": [100, 80, 60], "ist": [120, 120, 120]},
    ),
    "digits3": (
        "digits, 64-512-512-10",
        [0.90, 0.95, 0.98],
        {"parallel": [200, 100, 60], "sync": [200, 100, 60], "local": [100, 80, 60], "ist": [120, 120, 120]},
    ),
}

# What nets that are others with something changed have instead.
SETTINGS = {
    "wide": {"of": "speech2", "dims": {"H": 4096}, "momentum": 0.1, "sites": [8], "links": ["1gbit"]},
    "apart": {"of": "speech3", "rho": 1.0, "sites": [4]},
}

# Final accuracy, with a rate that falls to 0. Net, neurons of a hidden layer, strategy, sites, steps; or the steps of a finishing stage.
FINAL = {
    "speech2": [
        (1024, "sync", 8, 200, None),
        (1024, "local", 4, 200, None),
        (1024, "ist", 2, 800, None),
        (1024, "ist", 4, 800, None),
        (1024, "ist", 8, 800, None),
        (1024, "ist", 8, 600, 100),
        (2048, "sync", 8, 200, None),
        (2048, "ist", 8, 800, None),
    ],
    "speech3": [
        (1024, "sync", 8, 200, None),
        (1024, "ist", 2, 600, None),
        (1024, "ist", 4, 600, None),
        (1024, "ist", 8, 600, None),
        (1024, "ist", 8, 600, 100),
    ],
}


class Experiment:
    def __init__(self, options):
        self.einc = options.einc
        self.folder = pathlib.Path(options.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.quick = options.quick
        self.links = ["process"] if self.quick else ["loopback", "1gbit", "100mbit"]
        self.nets = ["digits2"] if self.quick else list(NETS)
        self.readme = options.readme
        self.again = options.again and re.compile(options.again)
        self.until = time.monotonic() + 60 * (options.minutes or math.inf)
        self.measured = set()
        self.file = self.folder / "results.json"
        self.results = {}
        if self.file.exists() and not options.fresh:
            self.results = json.loads(self.file.read_text())

    def once(self, key, measure):
        """A measurement, or what it was in an earlier run."""
        if self.wanted(key):
            print(key, flush=True)
            self.results[key] = measure()
            self.measured.add(key)
            self.file.write_text(json.dumps(self.results, indent=1))
        return self.results[key]

    def wanted(self, key):
        """Whether it is measured in this run."""
        if key not in self.results:
            return True
        again = self.again and self.again.fullmatch(key) and key not in self.measured
        return again and time.monotonic() < self.until

    def sites(self, net):
        return [2] if self.quick else SETTINGS.get(net, {}).get("sites", SITES)

    def links_of(self, net):
        return SETTINGS.get(net, {}).get("links", self.links)

    def data(self, net):
        """The data of the speech-shaped problem, made by a program; where they are."""
        rho = SETTINGS.get(net, {}).get("rho")
        folder = self.folder / f"rho{rho}" if rho else self.folder
        if not (folder / "test_y.npy").exists():
            folder.mkdir(exist_ok=True)
            print("speech_data.ein", flush=True)
            changed = [f"--set=rho={rho}"] if rho else []
            self.run([self.einc, "run", HERE / "speech_data.ein", *changed], 600, folder=folder)
        return folder

    def run(self, command, seconds, enough=None, folder=None):
        """Runs a command. `enough`: whether all that is wanted of it is there; it is then given GRACE seconds to end."""
        command = [str(word) for word in command]
        with (
            open(self.folder / "stdout.txt", "w+") as out,
            open(self.folder / "stderr.txt", "w+") as err,
            subprocess.Popen(command, cwd=folder or self.folder, stdout=out, stderr=err) as process,
        ):
            began, since = time.monotonic(), None
            while process.poll() is None:
                time.sleep(0.1)
                now = time.monotonic()
                if enough and since is None and enough():
                    since = now
                if since is not None and now > since + GRACE:
                    process.terminate()
                    return None
                if now > began + seconds:
                    process.terminate()
                    sys.exit(f"this took more than {seconds} seconds: {' '.join(command)}")
            texts = [(self.folder / name).read_text() for name in ("stdout.txt", "stderr.txt")]
            if process.returncode != 0 and not (enough and enough()):
                sys.exit(f"this failed: {' '.join(command)}\n{texts[0]}{texts[1]}")
            return texts

    def program(self, net, strategy, sites, steps, every, decay=0, stage=None):
        """A program with a net of examples/ist and another `train` block, evaluated so often (0: never, not even at the end)."""
        settings = SETTINGS.get(net, {})
        of = settings.get("of", net)
        text = (HERE / f"{of}.ein").read_text().replace('"../data/', f'"{HERE.parent}/data/')
        if "rho" in settings:
            text = text.replace('load("', f'load("{self.data(net).resolve()}/')
        rows, rate, rule = (32, 0.3, "momentum") if of.startswith("digits") else (64, 3, "sgd")
        if strategy == "sync":
            rows *= sites
        if strategy in ("sync", "parallel"):
            # With momentum, which stays at its site: the mean of what sites have after a step is what the mean gradient makes.
            rate, rule = settings.get("momentum", {"momentum": 0.2, "sgd": 0.1}[rule] * math.sqrt(sites)), "momentum"

        def put(pattern, words):
            nonlocal text
            text, count = re.subn(pattern, words, text, flags=re.M)
            assert count > 0, f"{of}.ein has no {pattern}"

        for dim, size in settings.get("dims", {}).items():
            put(rf"^dim {dim} = \d+", f"dim {dim} = {size}")
        put(r" by \d+ ", f" by {rows} ")
        put(r"^  steps: +\d+", f"  steps: {steps}")
        put(r"optimizer: .*", f"optimizer: {rule}(lr: {rate:.4g})")
        put(r"poly\(.*\)", f"poly(power: {decay})")
        put(r"strategy: .*", f"strategy: {STRATEGIES[strategy][1]}")
        put(r"every \d+ steps", f"every {every or 1} steps")
        if every == 0:
            put(r"^  validate: .*\n", "")
            put(r"^output .*\n", "")
            text += f"output b{of[-1]}\n"
        if stage:
            train = re.search(r"^train \{.*?^\}\n", text, re.M | re.S).group()
            finish = train.replace("state: reset", "state: reset, parts: 2").replace(f"\n  steps: {steps}\n", f"\n  steps: {stage}\n")
            text = text.replace(train, re.sub(r"poly\(.*\)", "poly(power: 0)", train) + "\n" + finish)
        name = f"{net}-{strategy}-{sites}.ein"
        (self.folder / name).write_text(text)
        return name

    def learn(self, net, strategy, sites):
        """Accuracies by step, and floats that go from site to site for a step, of all sites."""
        limit = NETS[net][2][strategy][0 if self.quick else self.sites(net).index(sites)]
        words = STRATEGIES[strategy]
        slow = strategy == "ist" and sites == 8 and net.startswith("speech")
        every = max(10, words[2]) * (2 if slow else 1)
        every = 5 if net.startswith("digits") and words[2] == 1 else every
        name = self.program(net, strategy, sites, limit, every)
        record = self.folder / "learn.jsonl"
        record.unlink(missing_ok=True)
        command = [self.einc, "run", name, "--sites", sites, "--json-lines", record, "--progress=none", "--stats"]
        _, told = self.run(command, 1800)
        lines = [json.loads(line) for line in record.read_text().splitlines()]
        curve = [(line["step"], line["validation"]["accuracy"]) for line in lines if "validation" in line]
        sent = [int(found) for found in re.findall(r"stats: train\.1: .*sent (\d+) floats", told)]
        if strategy == "sync":
            plan, _ = self.run([self.einc, "plan", name, "--sites", sites, "--format=json"], 120)
            floats = json.loads(plan)["cost"]["bytes"] / 4
        else:
            floats = sum(sent) / limit
        return {"curve": curve, "floats": floats, "steps": limit}

    def time(self, net, strategy, sites, link):
        """Seconds of a step over a link."""
        length = STRATEGIES[strategy][2]
        rounds = {1: 6, 10: 6, 50: 3}[length]
        name = self.program(net, strategy, sites, rounds * length, 0)
        record = self.folder / "time.jsonl"
        record.unlink(missing_ok=True)
        program = [self.einc, "run", name, "--sites", sites, "--json-lines", record, "--progress=none"]
        command = program if link == "process" else ["sh", LINKS, "run", sites, *program]
        self.run(command, 600, lambda: record.exists() and len(record.read_text().splitlines()) == rounds * length)
        lines = [json.loads(line) for line in record.read_text().splitlines()]
        ends = [line["seconds"] for line in lines if line["step"] % length == 0]
        between = [after - before for before, after in zip(ends, ends[1:])]
        return statistics.median(between) / length

    def final(self, net, neurons, strategy, sites, steps, stage):
        """The accuracy at the end, with a rate that falls to 0."""
        name = self.program(net, strategy, sites, steps, 1_000_000, 1, stage)
        printed, _ = self.run([self.einc, "run", name, "--sites", sites, "--progress=none", f"--dim=H={neurons}"], 3600)
        return float(re.search(r"accuracy\S* = (\S+)", printed).group(1))

    def all(self):
        for net in self.nets:
            if not net.startswith("digits"):
                self.data(net)
            for sites in self.sites(net):
                for strategy in NETS[net][2]:
                    self.once(f"learn {net} {strategy} {sites}", lambda: self.learn(net, strategy, sites))
            for sites in reversed(self.sites(net)):
                for link in self.links_of(net):
                    self.timed(net, sites, link)
        if not self.quick:
            self.run(["sh", LINKS, "down"], 60)
        for net in self.nets if not self.quick else []:
            for row in FINAL.get(net, []):
                words = " ".join(str(part) for part in row)
                self.once(f"final {net} {words}", lambda: self.final(net, *row))

    def timed(self, net, sites, link):
        """All strategies over one kind of link."""
        keys = {strategy: f"time {net} {strategy} {sites} {link}" for strategy in NETS[net][2]}
        if not any(self.wanted(key) for key in keys.values()):
            return
        if link != "process":
            self.run(["sh", LINKS, "up", sites, "none" if link == "loopback" else link], 60)
        for strategy, key in keys.items():
            self.once(key, lambda: self.time(net, strategy, sites, link))

    def reached(self, net, strategy, sites, level):
        """The first step after which an accuracy was seen, or None."""
        curve = self.results[f"learn {net} {strategy} {sites}"]["curve"]
        return next((step for step, accuracy in curve if accuracy >= level), None)

    def seconds(self, net, strategy, sites, level, link):
        steps = self.reached(net, strategy, sites, level)
        return None if steps is None else steps * self.results[f"time {net} {strategy} {sites} {link}"]

    def table(self, net):
        """Steps and seconds to each accuracy, beside the paper's table 1, and what all sites send until the one in the middle."""
        title, levels, strategies = NETS[net]
        three = " / ".join(f"{level:.2f}" for level in levels)
        lines = [f"**{title}**: steps, and seconds by link, to accuracies of {three}; megabytes that all sites send until {levels[1]:.2f}", ""]
        heads = ["strategy", "sites", "steps", *(LINK_NAMES[link] for link in self.links_of(net)), "MB"]
        if net in PAPER:
            heads.append("the paper, to 0.63 / 0.75")
        lines += ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
        for strategy in strategies:
            for sites in self.sites(net):
                steps = [self.reached(net, strategy, sites, level) for level in levels]
                cells = [STRATEGIES[strategy][0], str(sites), " / ".join("–" if at is None else str(at) for at in steps)]
                for link in self.links_of(net):
                    cells.append(" / ".join(number(self.seconds(net, strategy, sites, level, link)) for level in levels))
                floats = self.results[f"learn {net} {strategy} {sites}"]["floats"]
                cells.append("–" if steps[1] is None else number(steps[1] * floats * 4e-6))
                if net in PAPER:
                    rows = [PAPER[net][level].get(strategy) for level in levels[:2]]
                    cells.append(" / ".join(str(row[SITES.index(sites)]) for row in rows if row))
                lines.append("| " + " | ".join(cells) + " |")
        return lines

    def finals(self):
        lines = ["**Final accuracy**, the rate falling to 0", ""]
        lines += ["| net | hidden | strategy | sites | neurons a site and layer | steps | accuracy |", "|---|---|---|---|---|---|---|"]
        for net, rows in FINAL.items():
            for neurons, strategy, sites, steps, stage in rows:
                words = " ".join(str(part) for part in (neurons, strategy, sites, steps, stage))
                found = self.results[f"final {net} {words}"]
                name = STRATEGIES[strategy][0] + (f", then {stage} steps of 2 parts" if stage else "")
                own = neurons // sites if strategy == "ist" else neurons
                lines.append(f"| {NETS[net][0].split(',')[1].strip()} | {neurons} | {name} | {sites} | {own} | {steps} | {found:.3f} |")
        return lines

    def write(self):
        parts = [self.table(net) for net in self.nets]
        if not self.quick:
            parts.append(self.finals())
        text = "\n\n".join("\n".join(part) for part in parts) + "\n"
        (self.folder / "tables.md").write_text(text)
        for net in self.nets:
            title, _, strategies = NETS[net]
            sites = self.sites(net)[-1]
            shown = []
            for link in self.links_of(net):
                lines = []
                for strategy in strategies:
                    found = self.results[f"learn {net} {strategy} {sites}"]["curve"]
                    step = self.results[f"time {net} {strategy} {sites} {link}"]
                    lines.append((STRATEGIES[strategy][0].strip("`"), [(at * step, accuracy) for at, accuracy in found]))
                shown.append((LINK_NAMES[link], lines))
            picture = panels(f"{title}, {sites} sites: accuracy on test rows by seconds", shown)
            (self.folder / f"{net}.svg").write_text(picture)
        if self.readme:
            self.put_into(pathlib.Path(self.readme), parts)
        print(text)
        print(f"tables and plots are in {self.folder}")


    def put_into(self, readme, parts):
        """Replaces the tables of a text, each of which begins with its title and ends with an empty line, and the pictures beside it."""
        text = readme.read_text()
        for part in parts:
            title = part[0].split("**")[1]
            pattern = rf"^\*\*{re.escape(title)}\*\*.*\n\n(?:\|.*\n)+"
            lines = "\n".join(part) + "\n"
            text, count = re.subn(pattern, lambda _: lines, text, flags=re.M)
            if count != 1:
                sys.exit(f"{readme} has no table {title}")
        readme.write_text(text)
        for picture in readme.parent.glob("*.svg"):
            made = self.folder / picture.name
            if made.exists() and made.resolve() != picture.resolve():
                shutil.copy(made, picture)


LINK_NAMES = {"process": "one process", "loopback": "no limit", "1gbit": "1 Gb/s", "100mbit": "100 Mb/s"}


def number(value):
    """Three digits, or a dash."""
    if value is None:
        return "–"
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--einc", default=os.environ.get("EINC") or shutil.which("einc"))
    parser.add_argument("--folder", default="ist-experiment", help="where data, results, tables and plots go (160 MB)")
    parser.add_argument("--quick", action="store_true", help="digits with one hidden layer on two sites of one process")
    parser.add_argument("--fresh", action="store_true", help="measure all of it again")
    parser.add_argument("--again", metavar="PATTERN", help="measure again what has a name like this, e.g. 'time speech.* 100mbit'")
    parser.add_argument("--minutes", type=float, help="begin nothing of --again after so many minutes")
    parser.add_argument("--readme", metavar="FILE", help="put the tables into a text that has such tables, and pictures beside it")
    options = parser.parse_args()
    if not options.einc:
        sys.exit("einc is not on the path: give --einc PATH, or set EINC")
    options.einc = os.path.abspath(options.einc)
    if not options.quick:
        ready = subprocess.run(["sh", LINKS, "needed"], check=False)
        if ready.returncode != 0:
            sys.exit("slow links cannot be made here; --quick needs none")
    experiment = Experiment(options)
    experiment.all()
    experiment.write()


if __name__ == "__main__":
    main()
