"""Concord's Table 1 (Iyer et al., "Achieving Microsecond-Scale Tail Latency Efficiently with Approximate Optimal Scheduling",
SOSP 2023, § 5.4): overhead in percent of Concord's pass and of Compiler Interrupts, and the standard deviation of Concord's slices
from a quantum of 5 µs, in µs. Measured on the authors' machine and on the original programs, which ours resemble in kind only.
"""
from typing import NamedTuple


class Row(NamedTuple):
    concord_percent: float
    interrupts_percent: float
    concord_sigma_us: float


TABLE_1 = {
    "water-nsquared": Row(-0.3, 3, 0.24),
    "water-spatial": Row(-0.6, 4, 0.23),
    "ocean-cp": Row(0.1, 10, 1.8),
    "ocean-ncp": Row(1, 6, 1.1),
    "volrend": Row(0.5, 13, 0.47),
    "fmm": Row(0.4, -2, 0.11),
    "raytrace": Row(-0.2, 4, 0.03),
    "radix": Row(0.9, 4, 0.56),
    "fft": Row(1.2, 1, 0.63),
    "lu-c": Row(4.6, 13, 0.63),
    "lu-nc": Row(-3.7, 23, 0.58),
    "cholesky": Row(-2.9, 29, 0.86),
    "histogram": Row(1.6, 20, 0.57),
    "kmeans": Row(-0.3, 3, 1),
    "pca": Row(-2.7, 25, 0.06),
    "string_match": Row(2, 18, 0.86),
    "linear_regression": Row(6.7, 37, 0.78),
    "word_count": Row(2.4, 30, 1.11),
    "blackscholes": Row(4, 10, 1.14),
    "fluidanimate": Row(1.3, 2, 0.04),
    "swapoptions": Row(2.2, 24, 0.86),
    "canneal": Row(1.5, 34, 0.02),
    "streamcluster": Row(-2.1, 6, 0.08),
    "dedup": Row(0.4, 4, 1.2),
}
PRINTED_AVERAGE = Row(1.04, 13.7, 0.29)  # the rows themselves average 0.75, 13.4 and 0.62
PRINTED_MAXIMUM = Row(6.7, 37, 1.8)
