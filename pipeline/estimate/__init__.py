"""The estimator: layouts in, memory and step time out. Vectorised; it reads profiles and track records, and no store.

How a question flows through the rooms, from left to right as they may import each other:

* `physics`: a `Question` (model shape, cluster, profile of constants, sequence length) and `Layouts` (arrays) give an
  `Estimate`: bytes by component on the fullest stage, seconds by what they are spent on, their MFU.
* `learned`: what measured runs of a framework add to that: a penalty and an interval of comparable runs, from the
  `TrackRecord` beside the profile.
* `search`: a `Request` (question, accelerators, batch) enumerates every layout; the best and the Pareto front remain,
  and the reasons against the others. `whatif` moves single choices.
* `rows`: frames of any runs or tables become questions and layouts; each row gets its estimate or the reason why not.
* `calibration`: recipes fit the constants of a profile to measured rows and learn its track record.
* `advice`: documents' rules scored on measured cells, the three-step recipe of a question, and what to run next.

Shapes, clusters and registered models are facts and live in `pipeline.reference`.

Symbols in formulas are those of the papers: T tokens of a micro-batch on one rank, h width, f feed-forward width,
tp, cp, pp, ep, dp degrees, m micro-batches per step (gas), sigma = tp under sequence parallelism, else 1.
"""
