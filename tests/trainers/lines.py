"""How a trainer prints its steps: some forty habits of people, mixed at random."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from tests.trainers.facts import Run, Step

NAMES: dict[str, list[str]] = {
    "step": [
        "step",
        "step",
        "step",
        "iter",
        "iteration",
        "it",
        "global_step",
        "update",
        "batch",
        "train_step",
        "optimizer_step",
        "Step",
        "steps",
        "num_updates",
    ],
    "loss": [
        "loss",
        "loss",
        "loss",
        "train_loss",
        "train/loss",
        "training loss",
        "lm_loss",
        "ce_loss",
        "avg_loss",
        "running_loss",
        "train loss",
        "loss/train",
        "nll_loss",
    ],
    "lr": ["lr", "lr", "learning_rate", "learning rate", "LR", "train/lr"],
    "grad_norm": ["grad_norm", "gnorm", "norm", "grad norm", "gradient_norm", "total_norm", "|g|", "grad/norm"],
    "memory": ["mem", "memory", "gpu_mem", "max_mem", "peak memory", "vram", "cuda_mem", "mem_alloc"],
    "mfu": ["mfu", "MFU", "mfu"],
}
TIMES: list[tuple[str, Callable[[float], str]]] = [
    ("time {}", lambda s: f"{s * 1e3:.2f}ms"),
    ("dt: {}", lambda s: f"{s * 1e3:.1f}ms"),
    ("dt={}", lambda s: f"{s * 1000:.0f}ms"),
    ("{}", lambda s: f"{s * 1e3:.1f} ms/step"),
    ("{}", lambda s: f"{s:.3f}s/it"),
    ("{}", lambda s: f"{1 / s:.2f} it/s"),
    ("{}", lambda s: f"{1 / s:.3f} steps/s"),
    ("step_time: {}", lambda s: f"{s:.4f}s"),
    ("step_time={}", lambda s: f"{s:.4f}"),
    ("iter_time: {}", lambda s: f"{s:.3f}"),
    ("time/step: {}", lambda s: f"{s:.3f}s"),
    ("sec/iter {}", lambda s: f"{s:.4f}"),
    ("ms/batch {}", lambda s: f"{s * 1e3:5.2f}"),
    ("batch_time {}", lambda s: f"{s:.3f}"),
    ("step time (s): {}", lambda s: f"{s:.3f}"),
    ("step_ms: {}", lambda s: f"{s * 1e3:.1f}"),
    ("time per iteration (ms): {}", lambda s: f"{s * 1e3:.1f}"),
    ("took {}", lambda s: f"{s:.2f} sec per step"),
    ("its/s {}", lambda s: f"{1 / s:.2f}"),
]
RATES: list[tuple[str, Callable[[float], str]]] = [
    ("{}", lambda r: f"{r:.0f} tok/s"),
    ("{}", lambda r: f"{r / 1e3:.1f}K tok/s"),
    ("{}", lambda r: f"{r:,.0f} tokens/sec"),
    ("tok/sec: {}", lambda r: f"{r:.2f}"),
    ("tokens_per_sec={}", lambda r: f"{r:.1f}"),
    ("throughput: {}", lambda r: f"{r:.1f} tokens/s"),
    ("tokens/s {}", lambda r: f"{r:.0f}"),
    ("tokens per second: {}", lambda r: f"{r:,.1f}"),
    ("speed {}", lambda r: f"{r / 1e3:.2f}k tok/s"),
]
EXTRAS: list[Callable[[Run, Step, Random], str]] = [
    lambda run, step, random: f"ppl {2.718281828 ** min(step.loss, 20):.2f}",
    lambda run, step, random: f"acc: {random.uniform(0, 1):.4f}",
    lambda run, step, random: f"data_time {random.uniform(0.001, 0.02):.4f}",
    lambda run, step, random: (
        f"eta {int(step.elapsed) // 3600}:{int(step.elapsed) // 60 % 60:02d}:{int(step.elapsed) % 60:02d}"
    ),
    lambda run, step, random: f"elapsed: {step.elapsed:.1f}s",
    lambda run, step, random: f"epoch {step.number / max(run.planned, 1):.4f}",
    lambda run, step, random: f"tokens: {step.tokens / 1e6:.2f}M",
    lambda run, step, random: f"scale {2 ** random.choice([15, 16])}.0",
    lambda run, step, random: f"samples/s {run.tokens_per_step / run.seq_len / step.seconds:.2f}",
    lambda run, step, random: "wd 0.1",
    lambda run, step, random: f"aux_loss {random.uniform(0.9, 1.3):.4f}",
    lambda run, step, random: f"grad_clip {random.choice([0, 1])}",
]


@dataclass
class Style:
    """How one trainer prints: `line` gives the text of a step; `states` names what it prints."""

    line: Callable[[Step], str]
    states: set[str]
    header: str = ""
    is_bar: bool = False
    total: bool = False
    footer: Callable[[], str] | None = None
    notes: list[str] = field(default_factory=list)


def number(random: Random) -> Callable[[float], str]:
    """How a loss is printed."""
    return random.choice(
        [
            lambda v: f"{v:.4f}",
            lambda v: f"{v:.4f}",
            lambda v: f"{v:.3f}",
            lambda v: f"{v:.6f}",
            lambda v: f"{v:.2f}",
            lambda v: repr(v),
            lambda v: f"{v:.4e}",
            lambda v: f"{v:7.4f}",
        ]
    )


def draw_style(run: Run, random: Random) -> Style:
    """A way to print."""
    makers = [
        (_pairs, 40),
        (_positional, 14),
        (_dictionary, 10),
        (_csv, 5),
        (_bar, 7),
        (_meters, 5),
        (_sentence, 6),
        (_table_row, 5),
        (_keras, 3),
        (_word_lm, 3),
        (_epochs, 6),
    ]
    makers = [(maker, weight) for maker, weight in makers]
    maker = random.choices([maker for maker, _ in makers], [weight for _, weight in makers])[0]
    return maker(run, random)


def _fields(run: Run, random: Random) -> tuple[list[Callable[[Step], tuple[str, str]]], set[str]]:
    """Named values of a line beside step and loss: functions to (name or '', text); and what they state."""
    fields: list[Callable[[Step], tuple[str, str]]] = []
    states: set[str] = set()
    if random.random() < 0.7:
        name, form = random.choice(NAMES["lr"]), random.choice(["{:.2e}", "{:.3e}", "{:.6f}", "{:.8f}", "{}"])
        fields.append(lambda step: (name, form.format(step.lr)))
    if random.random() < 0.4:
        norm = random.choice(NAMES["grad_norm"])
        fields.append(lambda step: (norm, f"{step.grad_norm:.3f}"))
    if random.random() < 0.6:
        label, shown = random.choice(TIMES)
        fields.append(lambda step: ("", label.format(shown(step.seconds))))
        states.add("step_time_s")
    if random.random() < 0.4:
        rate, printed = random.choice(RATES)
        fields.append(lambda step: ("", rate.format(printed(step.tokens_per_s))))
        states.add("tokens_per_s")
    if random.random() < 0.3:
        memory, unit = random.choice(NAMES["memory"]), random.choice(["{:.2f}GB", "{:.1f} GiB", "{:.0f}MiB", "{:.2f}G"])
        value = run.memory_gib * (1024 if "Mi" in unit else 1)
        fields.append(lambda step: (memory, unit.format(value)))
    if random.random() < 0.2:
        mfu = random.choice(["{:.2f}%", "{:.1f}%", "{:.3f}"])
        fields.append(lambda step: ("mfu", mfu.format(41.27 if "%" in mfu else 0.4127)))
    for extra in random.sample(EXTRAS, random.choice([0, 0, 0, 1, 1, 2])):
        fields.append(lambda step, extra=extra: ("", extra(run, step, random)))
    random.shuffle(fields)
    return fields, states


def _cased(name: str, case: str) -> str:
    return {"title": name.title() if "_" not in name else name, "upper": name.upper()}.get(case, name)


def _pairs(run: Run, random: Random) -> Style:
    """`step: 10 | loss: 2.3 | ...` with any separators, order and names."""
    between = random.choice([": ", ": ", "=", " ", " ", " = ", ":"])
    separator = random.choice([" | ", ", ", " ", "  ", "\t", " - ", "; ", ",\t", " || ", " / "])
    if between == " " and separator == " / ":
        separator = " | "
    case = random.choice(["", "", "title", "upper"])
    step_name, loss_name, shown = random.choice(NAMES["step"]), random.choice(NAMES["loss"]), number(random)
    total = random.random() < 0.45
    width = random.choice([0, 0, 0, 5, 6])
    slash = random.choice(["/", "/", " / ", " of "]) if separator != " / " else "/"
    fields, states = _fields(run, random)
    lead = random.choice(["", "", "", "[train] ", "Train: ", "train | ", "[TRAIN] ", ">>> ", "* "])
    swaps = random.random() < 0.1

    def line(step: Step) -> str:
        count = f"{step.number:{width}d}" + (f"{slash}{run.planned}" if total else "")
        parts = [f"{_cased(step_name, case)}{between}{count}", f"{_cased(loss_name, case)}{between}{shown(step.loss)}"]
        for one in fields:
            name, text = one(step)
            parts.append(f"{_cased(name, case)}{between}{text}" if name else text)
        if swaps:
            parts[0], parts[1] = parts[1], parts[0]
        return lead + separator.join(parts)

    return Style(line, states, total=total)


def _positional(run: Run, random: Random) -> Style:
    """Counters in brackets or bare, words without signs."""
    shown, (fields, states) = number(random), _fields(run, random)
    head = random.choice(
        [
            "[{n}/{N}]",
            "({n}/{N})",
            "{n}/{N}:",
            "[step {n}]",
            "[{n:6d}/{N}]",
            "#{n}",
            "Step [{n}/{N}],",
            "it {n}/{N} |",
            "[iter {n}/{N}]",
            "step {n} ({p:.1f}%):",
            "Iteration {n} --",
            "step#{n}",
        ]
    )
    words = random.choice(["loss {}", "loss: {}", "train loss {}", "loss={}", "L={}", "Loss {}"])

    def line(step: Step) -> str:
        begin = head.format(n=step.number, N=run.planned, p=100 * step.number / max(run.planned, 1))
        texts = [f"{name} {text}".strip() for name, text in (one(step) for one in fields)]
        return f"{begin} {words.format(shown(step.loss))}" + "".join(
            f" {text}" if random_sep == " " else f"{random_sep}{text}" for text in texts
        )

    random_sep = random.choice([" ", ", ", " | "])
    return Style(line, states, total="{N}" in head)


def _dictionary(run: Run, random: Random) -> Style:
    """JSON lines, printed dictionaries, logfmt."""
    form = random.choice(["json", "json", "dict", "logfmt", "nested"])
    step_name = random.choice([name for name in NAMES["step"] if name not in ("it", "Step", "steps")])
    loss_name = random.choice(["loss", "train_loss", "train/loss", "loss/train"])
    digits = random.choice([3, 4, 6, 12])
    chosen: list[tuple[str, Callable[[Step], object]]] = [
        (step_name, lambda step: step.number),
        (loss_name, lambda step: round(step.loss, digits)),
    ]
    states: set[str] = set()
    others: list[tuple[str, Callable[[Step], object], str]] = [
        (random.choice(["lr", "learning_rate"]), lambda step: step.lr, ""),
        (random.choice(["grad_norm", "gnorm"]), lambda step: round(step.grad_norm, 4), ""),
        (
            random.choice(["step_time", "step_time_s", "iter_time", "time_per_step_s"]),
            lambda step: round(step.seconds, 5),
            "step_time_s",
        ),
        (
            random.choice(["dt_ms", "step_time_ms", "ms_per_step"]),
            lambda step: round(step.seconds * 1e3, 2),
            "step_time_s",
        ),
        (
            random.choice(
                ["tokens_per_sec", "tokens_per_second", "tok_per_sec", "tokens/s", "throughput_tokens_per_s"]
            ),
            lambda step: round(step.tokens_per_s, 1),
            "tokens_per_s",
        ),
        ("epoch", lambda step: round(step.number / run.planned, 4), ""),
        ("elapsed", lambda step: round(step.elapsed, 2), ""),
        ("gpu_mem_gb", lambda step: round(run.memory_gib, 2), ""),
        ("tokens_seen", lambda step: step.tokens, ""),
    ]
    for name, value, state in random.sample(others, random.randrange(1, 6)):
        chosen.append((name, value))
        states |= {state} - {""}
    random.shuffle(chosen)

    def line(step: Step) -> str:
        values = {name: value(step) for name, value in chosen}
        if form == "json":
            return json.dumps(values)
        if form == "dict":
            return str(values)
        if form == "nested":
            inner = {name: value for name, value in values.items() if name != step_name}
            return json.dumps({step_name: values[step_name], "metrics": inner})
        return " ".join(f"{name}={value}" for name, value in values.items())

    return Style(line, states)


def _csv(run: Run, random: Random) -> Style:
    separator = random.choice([",", ",", "\t", ", ", ";"])
    names, states = ["step", "loss"], set()
    values: list[Callable[[Step], str]] = [lambda step: str(step.number), lambda step: f"{step.loss:.5f}"]
    for name, value, state in random.sample(
        [
            ("lr", lambda step: f"{step.lr:.3e}", ""),
            ("step_time_s", lambda step: f"{step.seconds:.4f}", "step_time_s"),
            ("tokens_per_s", lambda step: f"{step.tokens_per_s:.1f}", "tokens_per_s"),
            ("grad_norm", lambda step: f"{step.grad_norm:.3f}", ""),
            ("elapsed", lambda step: f"{step.elapsed:.1f}", ""),
        ],
        random.randrange(1, 4),
    ):
        names.append(name)
        values.append(value)
        states |= {state} - {""}
    return Style(lambda step: separator.join(value(step) for value in values), states, header=separator.join(names))


def _bar(run: Run, random: Random) -> Style:
    """tqdm with a postfix."""
    name = random.choice(["", "Training: ", "train: ", "Epoch 0: ", "pretrain: "])
    postfix = random.choice(
        ["loss={:.3f}", "loss={:.4f}, lr={lr:.2e}", "loss: {:.4f}", "train_loss={:.3f}, gnorm={g:.2f}"]
    )

    def line(step: Step) -> str:
        share = min(step.number / max(run.planned, 1), 1)
        filled = int(10 * share)
        bar = "█" * filled + " " * (10 - filled)
        rate = f"{1 / step.seconds:5.2f}it/s" if step.seconds < 1 else f"{step.seconds:5.2f}s/it"
        clock = f"{int(step.elapsed) // 60:02d}:{int(step.elapsed) % 60:02d}"
        shown = postfix.format(step.loss, lr=step.lr, g=step.grad_norm)
        return f"{name}{100 * share:3.0f}%|{bar}| {step.number}/{run.planned} [{clock}<{clock}, {rate}, {shown}]"

    return Style(line, {"step_time_s"}, is_bar=random.random() < 0.7, total=True)


def _meters(run: Run, random: Random) -> Style:
    """The meters of PyTorch's ImageNet example, in one epoch or many."""
    lead = random.choice(["Step: [{n}/{N}]", "Train: [{n}/{N}]", "Iter: [{n:>5}/{N}]"])

    def line(step: Step) -> str:
        begin = lead.format(n=step.number, N=run.planned)
        return (
            f"{begin}\tTime {step.seconds:6.3f} ({step.seconds * 1.02:6.3f})\tData  0.003 ( 0.004)\t"
            f"Loss {step.loss:.4e} ({step.loss + 0.1:.4e})\tLR {step.lr:.2e}"
        )

    return Style(line, {"step_time_s"}, total=True)


def _sentence(run: Run, random: Random) -> Style:
    form = random.choice(
        [
            "Loss at step {n}: {l:.4f}",
            "After {n} steps the loss is {l:.4f}, learning rate {lr:.2e}",
            "Finished step {n} of {N} with loss {l:.3f} in {s:.2f} seconds",
            "step {n} done, loss was {l:.4f} ({r:.0f} tokens per second)",
            "Training step {n}: loss = {l:.4f}; took {ms:.1f} ms",
            "{n} iterations done. train loss {l:.3f}, {s:.3f} s per iteration",
        ]
    )
    states = set()
    if "{r" in form:
        states.add("tokens_per_s")
    if "ms}" in form or "{ms" in form or "s per iteration" in form or ("seconds" in form and run.every == 1):
        states.add("step_time_s")
    return Style(
        lambda step: form.format(
            n=step.number,
            N=run.planned,
            l=step.loss,
            lr=step.lr,
            s=step.seconds * (run.every if "in {s" in form else 1),
            r=step.tokens_per_s,
            ms=step.seconds * 1e3,
        ),
        states,
        total="{N}" in form,
    )


def _table_row(run: Run, random: Random) -> Style:
    """Rows under a header, with bars or blanks between the cells."""
    bar = random.choice([True, False])
    states = {"step_time_s"} if random.random() < 0.5 else set()
    heads = ["step", "loss", "lr"] + (["time(s)"] if states else []) + ["gnorm"]

    def line(step: Step) -> str:
        cells = [
            f"{step.number:>8d}",
            f"{step.loss:>10.4f}",
            f"{step.lr:>10.2e}",
            *([f"{step.seconds:>9.3f}"] if states else []),
            f"{step.grad_norm:>8.3f}",
        ]
        return "| " + " | ".join(cells) + " |" if bar else " ".join(cells)

    head = (
        "| " + " | ".join(f"{name:>8s}" for name in heads) + " |" if bar else " ".join(f"{name:>9s}" for name in heads)
    )
    return Style(line, states, header=head)


def _keras(run: Run, random: Random) -> Style:
    def line(step: Step) -> str:
        return f"{step.number}/{run.planned} [=====>........] - ETA: {int(step.elapsed)}s - loss: {step.loss:.4f} - accuracy: 0.{random.randrange(1000, 9999)} - {step.seconds * 1e3:.0f}ms/step"

    return Style(line, {"step_time_s"}, total=True)


def _word_lm(run: Run, random: Random) -> Style:
    def line(step: Step) -> str:
        return f"| epoch   1 | {step.number:5d}/{run.planned:5d} batches | lr {step.lr:02.2e} | ms/batch {step.seconds * 1e3:5.2f} | loss {step.loss:5.2f} | ppl {2.718281828 ** min(step.loss, 12):8.2f}"

    return Style(line, {"step_time_s"})


def _epochs(run: Run, random: Random) -> Style:
    """Batches counted within their epoch; the truth is their number over all epochs."""
    length = max(run.every * max(len(run.steps) // random.choice([2, 3, 4]), 1), 1)
    epochs = -(-(run.planned + 1) // length)
    form = random.choice(
        [
            "Epoch [{e}/{E}], Step [{i}/{n}], Loss: {l:.4f}",
            "Epoch: [{e0}][{i}/{n}]\tTime {s:.3f} ({s:.3f})\tLoss {l:.4f} ({l:.4f})",
            "epoch {e}/{E} batch {i}/{n} loss {l:.4f} lr {lr:.2e}",
            "Epoch {e0} | step {i}/{n} | loss={l:.4f} | {s:.3f}s/it",
        ]
    )
    first = 0 if "{e0}" in form else 1

    def line(step: Step) -> str:
        epoch, within = divmod(step.number, length)
        return form.format(e=epoch + 1, e0=epoch, E=epochs, i=within, n=length, l=step.loss, lr=step.lr, s=step.seconds)

    style = Style(line, {"step_time_s"} if "{s:" in form else set(), total=False)
    style.notes = [f"epochs of {length} from {first}"]
    return style
