//! Histograms, slowdown, SLOs, confidence intervals, and the JSON, CSV, table and HTML they are shown in.
