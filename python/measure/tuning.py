"""What `tune` finds beside the planner's own grid, on three workloads; both judged by seeds that neither saw.

target/python/venv/bin/python python/measure/tuning.py
"""

from __future__ import annotations

import json

import headway
from headway import _native

WORKLOADS = ("high-bimodal", "tpcc", "leveldb-synergy")
POLICY, SLO, LOAD, WORKERS = "shinjuku-sq", "class.*.slowdown.p999<=20", 0.6, 8
REQUESTS, TRIALS, REPLICATIONS = "50k", 24, 3
JUDGES = range(101, 111)


def used(policy: str, workload: str) -> headway.Interval:
    """What the policy uses of the SLO under the judges' seeds."""
    uses = []
    for seed in JUDGES:
        run = headway.simulate(policy, workload, load=LOAD, workers=WORKERS, requests=REQUESTS, seed=seed).run
        uses.append(_native.slo_use(SLO, json.dumps(run.details)))
    found = json.loads(_native.mean_interval(uses))
    return headway.Interval(found["estimate"], found["lo"], found["hi"], found["confidence"])


def shown(use: headway.Interval) -> str:
    """With its interval."""
    return f"{use.estimate:.3f} [{use.lo:.3f}, {use.hi:.3f}]"


def main() -> None:
    """Searches by both, and prints."""
    print("| workload | the grid's | SLO used | tuned | SLO used | pruned | default |\n|---|---|---|---|---|---|---|")
    for workload in WORKLOADS:
        # A worker's core each, and the dispatcher's.
        planned = headway.plan(
            workload, slo=SLO, policies=POLICY, load=LOAD * WORKERS / (WORKERS + 1), cores=WORKERS + 1, requests=REQUESTS, replications=REPLICATIONS
        ).policy
        tuned = headway.tune(POLICY, ["q"], SLO, workload, load=LOAD, workers=WORKERS, requests=REQUESTS, trials=TRIALS, replications=REPLICATIONS)
        pruned = int(tuned.frame()["pruned"].sum())
        cells = [f"`{planned}`", shown(used(planned, workload)), f"`{tuned.policy}`", shown(used(tuned.policy, workload)), f"{pruned} of {TRIALS}"]
        print(f"| `{workload}` | {' | '.join(cells)} | {shown(used(POLICY, workload))} |", flush=True)


if __name__ == "__main__":
    main()
