#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs suites of tests and measurements. What they need is built and installed first; the last line reads
"N passed, M failed".

    python3 test/run.py --list
    python3 test/run.py cpp asan
    python3 test/run.py cli -- -k explain        # what follows -- goes to the suite's commands
    python3 test/run.py executorch-suite --sample 20 --seed 3

Every option can be a variable of the environment, too (SEED=7, SAMPLE=20, FUZZ_SECONDS=600; ARGS for what follows --), so
that `make test-asan-part SEED=7` is `run.py asan-part --seed 7`."""
import argparse
import concurrent.futures
import os
import shlex
import shutil
import subprocess
import sys
import time

import count_results
from suites.commands import ROOT, Options
from suites.table import table

RESULTS = ROOT / "build/test-results"
VARIABLES = {"seed": "which part, or which sample, of tests that run by turns; the number of commits",
             "shards": "parts of these (8)", "sample": "every how many-th of ExecuTorch's tests (40)",
             "plugin": "how they are run on tosaic: ours, ours_quantized", "suite": "which folder of them",
             "fuzz_seconds": "for each fuzzer (60)",
             "jobs": "processes (all cores)", "python": "a Python that has test/requirements.txt (.venv/bin/python)"}


def asked():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="*", metavar="SUITE")
    parser.add_argument("--list", action="store_true", help="the suites, a line for each")
    parser.add_argument("--dry-run", action="store_true", help="print the commands")
    parser.add_argument("--as-is", action="store_true", help="build and install nothing")
    parser.add_argument("--set-up", action="store_true", help="build and install, and run nothing")
    for name, about in VARIABLES.items():
        parser.add_argument(f"--{name.replace('_', '-')}", default=os.environ.get(name.upper(), ""), help=about)
    parser.add_argument("--tosaic", default="", help="the tool to test, where a suite takes another one")
    words = sys.argv[1:]
    split = words.index("--") if "--" in words else len(words)
    return parser.parse_args(words[:split]), words[split + 1:] or shlex.split(os.environ.get("ARGS", ""))


class Run:
    """The seconds that each thing took, and how it ended."""

    def __init__(self, dry, seed=0):
        self.dry, self.seed, self.took, self.ended = dry, seed, {}, {}

    def commands(self, name, commands, results="", stop=False):
        """0 if all end so. A suite's run whatever comes of those before them."""
        print(f"== {name}", flush=True)
        started, code = time.monotonic(), 0
        try:
            for command in commands():
                command = command.filled(results)
                if self.dry:
                    print(command)
                elif not (stop and code):
                    code = command.run() or code
        except (OSError, subprocess.CalledProcessError) as why:
            print(f"{name}: {why}", file=sys.stderr)
            code = 127
        self.took[name], self.ended[name] = time.monotonic() - started, code
        return code

    def needs(self, needs):
        """Each once. What fails is told by the suites that need it; the others have their turn."""
        once = {need.name: need for need in needs}.values()

        def lane(name):
            for need in once:
                if need.lane == name:
                    self.commands(need.name, need.commands, stop=True)
        with concurrent.futures.ThreadPoolExecutor(1 if self.dry else 2) as pool:
            list(pool.map(lane, ("python", "compile")))
        lane("after")

    def suite(self, suite):
        """Runs it where all that it needs is there. Its folder keeps the reports and how it ended."""
        results = RESULTS / suite.name
        if not self.dry:
            shutil.rmtree(results, ignore_errors=True)
            results.mkdir(parents=True)
        missing = [need.name for need in suite.needs if self.ended.get(need.name) and not need.optional]
        if missing:
            print(f"== {suite.name}: not run, for want of {', '.join(missing)}", flush=True)
            self.ended[suite.name] = 1
        else:
            self.commands(suite.name, suite.commands, results)
        if not self.dry:
            (results / "exit").write_text(f"{self.ended[suite.name]}\n")

    def summary(self, suites):
        """Ends with what was counted: how each suite ended counts as well as what it reported."""
        took = [f"{name} {seconds:.0f}" for name, seconds in self.took.items() if seconds >= 1]
        print(f"seed {self.seed}; seconds: {', '.join(took)}")
        for suite in suites:
            if not suite.reports:
                print(f"{suite.name}: {'failed' if self.ended[suite.name] else 'passed'}")
        failed = any(self.ended[suite.name] for suite in suites)
        counted = [suite.name for suite in suites if suite.reports]
        return count_results.main(RESULTS, counted) or failed if counted else failed


def main():
    o, more = asked()
    known = {}
    options = Options(vars(o), more)
    for suite in table(options):
        known.setdefault(suite.name, suite)
    if o.list or not o.suites:
        print("\n".join(f"{suite.name:24} {suite.about}" for suite in known.values()))
        return not o.list
    unknown = [name for name in o.suites if name not in known]
    if unknown:
        print(f"no suite {', '.join(unknown)}: --list prints all", file=sys.stderr)
        return 2
    suites = [part for name in o.suites for part in ([known[p] for p in known[name].parts] or [known[name]])]
    run = Run(o.dry_run, options.turn)
    if not o.as_is:
        run.needs(need for suite in suites for need in suite.needs)
    if o.set_up:
        return any(run.ended.values())
    for suite in suites:
        run.suite(suite)
    return False if o.dry_run else run.summary(suites)


if __name__ == "__main__":
    sys.exit(main())
