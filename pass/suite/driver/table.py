"""The table: ours beside the published columns, averages and worsts of either half, and verdicts that are computed."""
from .goals import GAP_NS, has_own_gap, verdicts
from .programs import HALVES
from .published import PRINTED_AVERAGE, PRINTED_MAXIMUM, TABLE_1

HEADER = ["program", "half", "ms", "overhead %", "95 % interval", "fastest %", "instructions %", "probes/µs", "longest way", "p50", "p99", "σ", "of control", "off 5 µs", "gaps", "control",
          "beyond", "Concord %", "CI %", "Concord σ"]
NOTES = f"""\
overhead: median over rounds, each the median of instrumented / plain over pairs of neighbours in time, and the interval that holds
the median of rounds at 95 %. fastest: the same of either build's fastest repetition, the median over layouts of the code. instructions: executed more, by valgrind. probes/µs: executed, per µs of the plain program. longest way: between two probes, µs, free of disturbances.
p50, p99, σ, off 5 µs: lengths of slices under a flag raised after a quantum, µs; σ around their mean and around the quantum,
the longest 1 % left out; of control: σ of a loop that only looks at the flag. gaps: slices above {GAP_NS / 1000:.0f} µs; control: those of that loop, in as much time;
beyond: more than chance explains. Concord, CI: Table 1 of the Concord paper (SOSP 2023), other machine, original programs."""


def _us(nanoseconds: float) -> str:
    return f"{nanoseconds / 1000:.2f}"


def _published(row: str | None) -> list[str]:
    if row is None:
        return ["", "", ""]
    concord, interrupts, sigma = TABLE_1[row]
    return [f"{concord:+.1f}", f"{interrupts:+.0f}", f"{sigma:.2f}"]


def _cells(result: dict) -> list[str]:
    overhead = result["overhead"]
    low, high = overhead["interval_percent"]
    cells = [result["name"], result["half"], f"{overhead['plain_ns'] / 1e6:.1f}", f"{overhead['overhead_percent']:+.2f}", f"{low:+.2f} … {high:+.2f}",
             f"{overhead['fastest_percent']:+.2f}", f"{result['instructions']['overhead_percent']:+.2f}" if "instructions" in result else ""]
    if "slices" not in result:
        cells += [""] * 10
    else:
        slices, stretches = result["slices"], result["stretches"]
        kernel = slices["kernel"]
        cells += [f"{stretches['probes_per_us']:.1f}", _us(stretches["longest_ns"]), _us(kernel["p50_ns"]), _us(kernel["p99_ns"]),
                  f"{kernel['sigma_ns'] / 1000:.3f}",
                  f"{slices['control']['sigma_ns'] / 1000:.3f}", f"{kernel['off_target_ns'] / 1000:.3f}", str(kernel["gaps"]),
                  str(slices["control"]["gaps"]), str(slices["gaps_beyond_control"])]
    return cells + _published(result["row"])


def _average(values: list[float]) -> float:
    return sum(values) / len(values)


def _summary(name: str, results: list[dict]) -> list[str]:
    overheads = [result["overhead"]["overhead_percent"] for result in results]
    worst = max(results, key=lambda result: result["overhead"]["overhead_percent"])
    lines = [f"{name}: {len(results)} programs, overhead {_average(overheads):+.2f} % on average, {max(overheads):+.2f} % at worst ({worst['name']})"]
    slowest = max(results, key=lambda result: result["overhead"]["fastest_percent"])
    fastest = [result["overhead"]["fastest_percent"] for result in results]
    lines.append(f"  of the fastest repetitions {_average(fastest):+.2f} % on average, {max(fastest):+.2f} % at worst ({slowest['name']})")
    executed = {result["name"]: result["instructions"]["overhead_percent"] for result in results if "instructions" in result}
    if executed:
        most = max(executed, key=executed.get)
        lines.append(f"  instructions {_average([*executed.values()]):+.2f} % on average, {executed[most]:+.2f} % at worst ({most})")
    measured = [result for result in results if "slices" in result]
    if measured:
        ways = [result["stretches"]["longest_ns"] / 1000 for result in measured]
        farthest = max(measured, key=lambda result: result["stretches"]["longest_ns"])
        lines.append(f"  longest way between probes {_average(ways):.2f} µs on average, {max(ways):.2f} at worst ({farthest['name']})")
        sigmas = [result["slices"]["kernel"]["sigma_ns"] / 1000 for result in measured]
        loosest = max(measured, key=lambda result: result["slices"]["kernel"]["sigma_ns"])
        far = [result["name"] for result in measured if has_own_gap(result)]
        lines.append(f"  σ {_average(sigmas):.3f} µs on average, {max(sigmas):.3f} at worst ({loosest['name']}); "
                     f"gaps above {GAP_NS / 1000:.0f} µs of its own: {', '.join(far) or 'none'}")
    return lines


def _closing(results: list[dict]) -> list[str]:
    lines = []
    for half in HALVES:
        part = [result for result in results if result["half"] == half]
        if part:
            lines += _summary(half, part)
    lines += _summary("all", results)
    shared = [result for result in results if result["row"]]
    if shared:
        rows = [TABLE_1[result["row"]] for result in shared]
        lines += _summary("programs of Table 1", shared)
        lines.append(f"  the same rows as published: Concord {_average([row.concord_percent for row in rows]):+.2f} %, worst "
                     f"{max(row.concord_percent for row in rows):+.1f} %, σ {_average([row.concord_sigma_us for row in rows]):.2f} µs; Compiler "
                     f"Interrupts {_average([row.interrupts_percent for row in rows]):+.1f} %, worst {max(row.interrupts_percent for row in rows):+.0f} %")
        lines.append(f"  the paper's own bottom lines: average {PRINTED_AVERAGE.concord_percent} % and {PRINTED_AVERAGE.interrupts_percent} %, "
                     f"σ {PRINTED_AVERAGE.concord_sigma_us} µs; worst {PRINTED_MAXIMUM.concord_percent} %, {PRINTED_MAXIMUM.interrupts_percent} %, "
                     f"{PRINTED_MAXIMUM.concord_sigma_us} µs")
    reported = [result for result in results if result["half"] == "reported"]
    if reported:
        lines += ["goals, on the reported half:", *verdicts(reported)]
    return lines


def _sorted_rows(results: list[dict]) -> list[list[str]]:
    return [_cells(result) for result in sorted(results, key=lambda result: (HALVES.index(result["half"]), result["name"]))]


def _filled_columns(results: list[dict]) -> list[list[str]]:
    """The header and the rows, without columns in which no program has anything."""
    rows = [HEADER, *_sorted_rows(results)]
    kept = [column for column in range(len(HEADER)) if any(row[column] for row in rows[1:])]
    return [[row[column] for column in kept] for row in rows]


def text(results: list[dict]) -> str:
    rows = _filled_columns(results)
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) if column < 2 else cell.rjust(width) for column, (cell, width) in enumerate(zip(row, widths)))
             for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join([*lines, "", *_closing(results), "", NOTES])


def markdown(results: list[dict]) -> str:
    header, *rows = _filled_columns(results)
    lines = ["| " + " | ".join(header) + " |", "|---|---|" + "--:|" * (len(header) - 2)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([*lines, "", "```text", *_closing(results), "```", "", NOTES])


def progress(result: dict) -> str:
    """One line while the measurement goes on."""
    line = f"{result['name']}: {result['overhead']['overhead_percent']:+.2f} %"
    if "instructions" in result:
        line += f", instructions {result['instructions']['overhead_percent']:+.2f} %"
    if "slices" in result:
        line += f", σ {result['slices']['kernel']['sigma_ns'] / 1000:.3f} µs, longest way {_us(result['stretches']['longest_ns'])} µs"
    return line


def places(results: list[dict]) -> str:
    """For those who work on the pass: where most probes are executed, and between which two the longest way lies."""
    lines = []
    for result in results:
        stretches = result["stretches"]
        lines.append(f"{result['name']}: longest way {_us(stretches['longest_ns'])} µs, from {stretches.get('from', 'the beginning')} "
                     f"to {stretches.get('to', 'the end')}")
        for place in stretches["hottest"]:
            lines.append(f"  {100 * place['taken'] / stretches['probes']:5.1f} % of its probes: {place['at']}")
    return "\n".join(lines)
