"""Runs the reference implementation of MLRsearch on simulated devices.

Reads a JSON list of cases from standard input, each a device, a range of loads and some goals; writes a JSON list with,
for each case, what the package found for each goal: [lower, upper, conditional throughput], rounded down, or nulls.

`forwarded` is the same function as in device.rs, in whole numbers, so that both searches meet the same device.
"""

import json
import sys

from MLRsearch import AbstractMeasurer, Config, MeasurementResult, MultipleLossRatioSearch, SearchGoal

MILLION = 1_000_000
SECOND = 1_000_000_000


def forwarded(device, load, nanos):
    """Frames intended by a trial, and those of them that the device forwards."""
    intended = load * nanos // SECOND
    loss_ppm = 0
    if device["dip_from"] <= load < device["dip_to"]:
        loss_ppm += device["dip_ppm"]
    if load >= device["lossy_from"]:
        spread = (load * 2_654_435_761 + device["seed"]) // 128 % (2 * device["jitter_ppm"] + 1)
        loss_ppm += device["lossy_ppm"] - device["jitter_ppm"] + spread
    through = intended - -(-intended * loss_ppm // MILLION)
    capacity = device["capacity"]
    if load > capacity:
        overloaded = {"steady": capacity, "falling": capacity * capacity // load, "collapse": capacity // 50}
        through = min(through, overloaded[device["overload"]] * nanos // SECOND)
    return intended, through


class Simulated(AbstractMeasurer):
    """A device in place of a trial."""

    def __init__(self, device):
        self.device = device

    def measure(self, intended_duration, intended_load):
        nanos = round(intended_duration * SECOND)
        intended, through = forwarded(self.device, int(intended_load), nanos)
        return MeasurementResult(
            intended_duration=intended_duration,
            intended_load=intended_load,
            offered_count=intended,
            forwarding_count=through,
        )


def search(case):
    """What the package finds for each goal of a case."""
    goals = [SearchGoal(fail_fast=False, **goal) for goal in case["goals"]]
    config = Config()
    config.goals = goals
    config.min_load = case["minimum"]
    config.max_load = case["maximum"]
    config.warmup_duration = None
    found = MultipleLossRatioSearch(config).search(Simulated(case["device"]), debug=lambda _: None)
    for goal in goals:
        result = found[goal]
        loads = result.relevant_lower_bound, result.relevant_upper_bound, result.conditional_throughput
        yield [None if load is None else int(float(load)) for load in loads]


json.dump([list(search(case)) for case in json.load(sys.stdin)], sys.stdout)
