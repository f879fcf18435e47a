"""The analytical estimator: layouts in, memory and step time out. Pure and vectorised; nothing here reads a store.

One module per thing:

* `shape` what a model is and how many parameters each part has; `cluster` accelerators and links; `profile` constants
* `layouts` the columns of a layout as arrays; `stages` which layers stand on which pipeline stage
* `memory` bytes by component; `compute` matrix products, attention, elementwise; `communication` volumes and bandwidth
* `schedule` bubbles and micro-batches in flight; `step_time` their sum
* `estimate` all of it for one model on one cluster; `frame` the same for a frame of any rows, with refusals
* `waterfall` from the peak to the MFU, loss by loss; `patterns` how a layout lies on the nodes
* `penalty` what an implementation costs on top; `learn` it and the residuals from runs into a `track_record`;
  `expected` penalty and intervals beside the physics
* `enumerate` every layout of a question; `search` the best of them, with reasons for the rest; `fit` calibration
* `rules` what documents advise, `rule_scores` how that did on measured cells, `recipe` the three steps for a question
* `cell` the runs that ask one question; `propose` and `next_runs` what to run next in it

Symbols in formulas are those of the papers: T tokens of a micro-batch on one rank, h width, f feed-forward width,
tp, cp, pp, ep, dp degrees, m micro-batches per step (gas), sigma = tp under sequence parallelism, else 1.
"""
