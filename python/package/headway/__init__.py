"""Keep microsecond requests from waiting behind millisecond ones: simulate, sweep and plan schedulers for latency-critical services.

    >>> import headway
    >>> run = headway.simulate("darc", "high-bimodal", load=0.8, requests=20_000)
    >>> run.frame()            # a row a class, latencies in µs
    >>> curves = headway.sweep(["c-fcfs", "darc"], "high-bimodal", loads="0.1..0.9:0.1", requests=20_000)
    >>> curves.plot()          # 99.9th percentile of slowdown by load
    >>> headway.reproduce("persephone-fig1", fast=True).verdicts()

All figures are those of the command ``headway``, to the bit: the same library makes both.
"""

from headway._native import Cutoff, HeadwayError, __version__
from headway.capacities import CapacityResult, PolicyCapacity, capacity
from headway.custom import Ingress, Local, Monitor, ServerPolicy, Take, check_policy
from headway.planning import FitResult, PlanResult, fit, plan
from headway.registry import Parameter, Policy, policies
from headway.reproductions import ClaimResult, ReproductionResult, experiments, reproduce
from headway.results import ClassResult, Interval, Run, Summary
from headway.settings import SystemSettings
from headway.simulation import SimulationResult, simulate
from headway.sweeps import SweepPoint, SweepResult, sweep
from headway.tuning import TuneResult, tune
from headway.workloads import Workload, workload

__all__ = [
    "CapacityResult",
    "ClaimResult",
    "ClassResult",
    "Cutoff",
    "FitResult",
    "HeadwayError",
    "Ingress",
    "Interval",
    "Local",
    "Monitor",
    "Parameter",
    "PlanResult",
    "Policy",
    "PolicyCapacity",
    "ReproductionResult",
    "Run",
    "ServerPolicy",
    "SimulationResult",
    "Summary",
    "SweepPoint",
    "SweepResult",
    "SystemSettings",
    "Take",
    "TuneResult",
    "Workload",
    "__version__",
    "capacity",
    "check_policy",
    "experiments",
    "fit",
    "plan",
    "policies",
    "reproduce",
    "simulate",
    "sweep",
    "tune",
    "workload",
]
