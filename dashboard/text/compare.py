"""Sentences of the comparison: which run is faster, by how much, how sure that is, and what explains it."""

from __future__ import annotations

from collections.abc import Sequence

from sweepscope.dashboard.format.implementation import differing, label
from sweepscope.dashboard.format.metrics import performance
from sweepscope.dashboard.format.numbers import count, faster_than, in_sentence, number, part_of, percent, token_count
from sweepscope.dashboard.format.symbols import STATUS
from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.text.cell import chance
from sweepscope.dashboard.text.run import ended
from sweepscope.dashboard.view_models.compare import Line, Subject
from sweepscope.dashboard.view_models.compare_losses import Difference, Term, largest
from sweepscope.dashboard.view_models.compare_speed import Race
from sweepscope.dashboard.view_models.frontier import hardware

_DEGREES = ("dp", "tp", "pp", "cp", "ep")
_LAYOUT = (*_DEGREES, "vpp", "gas", "mbs", "zero_stage")


def pair(row: Row) -> str:
    """A cell whose winner and runner-up may be compared, with the conditions in which others of the model differ."""
    where = hardware(row["num_gpus"], row["accelerator"])
    batch = f", {token_count(row['gbs_tokens'])}-token batch" if row["gbs_tokens"] is not None else ""
    origin = f", {row['origin']}" if row["origin"] != "measured" else ""
    return f"{row['model']} on {where}{batch}{origin}: winner and runner-up"


NOTHING_CHOSEN = "**No runs are chosen.** Pick two below, tick rows on Runs, or begin with a winner and its runner-up."
HOW_TO_READ = (
    "**How to read it.** Only what differs is listed; equal settings are folded below. A dash means that no file or "
    "source states the value, which is not the same as a difference. Where all runs train one model on one kind of "
    "accelerator they are ranked by tokens/s/GPU, else by the share of each one's own peak.",
    "**What it hides.** Two runs differ in more than their logs state: nodes, neighbours on the network, temperature. "
    "Parts of a step are estimated, not measured; only their sum, the step time, is.",
)


def one_chosen(one: Subject) -> str:
    """What is missing beside a single run."""
    layout = f", {one.shared('layout')}," if one.shared("layout") else ""
    return f"**One run is chosen: {heading(one)}**{layout} and none to compare it with."


def short_names(columns: Sequence[Subject]) -> dict[str, str]:
    """A name by letter that tells the columns apart: the parts of the layout in which they differ, else what ran them.

    The letter where nothing of that differs.
    """
    for names in (_DEGREES, _LAYOUT):
        by_layout = {one.letter: _parts(one, _unlike_in(columns, names)) for one in columns}
        if len(set(by_layout.values())) == len(columns) and all(by_layout.values()):
            return by_layout
    rows = [{name: one.shared(name) for name in (*one.runs[0],)} for one in columns]
    implementation = [label(row, differing(rows)) for row in rows]
    if len(set(implementation)) == len(columns):
        return {one.letter: text for one, text in zip(columns, implementation, strict=True)}
    return {one.letter: one.letter for one in columns}


def _unlike_in(columns: Sequence[Subject], names: Sequence[str]) -> list[str]:
    return [name for name in names if len({one.shared(name) for one in columns}) > 1]


def _parts(one: Subject, names: Sequence[str]) -> str:
    known = [(name, one.shared(name)) for name in names if one.shared(name) is not None]
    return " ".join(f"{'Z' if name == 'zero_stage' else name.upper()}{value}" for name, value in known)


def heading(one: Subject) -> str:
    """What a column is of: the run's model and hardware, or how many runs a group has.

    The unlike values of a group are named as such.
    """
    model = one.shared("model") or ("several models" if one.is_group else "model unknown")
    gpus, accelerator = one.shared("num_gpus"), one.shared("accelerator")
    place = hardware(gpus, accelerator) if gpus is not None else accelerator
    where = f" · {place}" if place else ""
    return f"{count(len(one.runs), 'run')}: {model}{where}" if one.is_group else f"{model}{where}"


def option(run: Row) -> str:
    """A run in the list of those that can be added."""
    speed = performance(run) if run["mfu"] or run["tokens_per_s_per_gpu"] else STATUS[run["status"]].word
    place = hardware(run["num_gpus"], run["accelerator"]) if run["num_gpus"] else run["accelerator"]
    parts = (run["model"] or "model unknown", place, run["layout"], run["framework"], speed, run["run_id"])
    return " · ".join(str(part) for part in parts if part)


def answer(race: Race, columns: Sequence[Subject], explained: Difference | None, settings: Sequence[Line]) -> str:
    """Which column is faster, by how much, whether that is more than noise, and what explains it."""
    if not race.standings:
        reasons = "; ".join(f"{one.letter} {_why_none(one, race)}" for one in columns[:4])
        return f"**None of these has a speed to compare:** {reasons}."
    if len(race.standings) == 1:
        only = race.standings[0]
        reasons = "; ".join(f"{one.letter} {_why_none(one, race)}" for one in race.without[:4])
        return f"**Only {only.subject.letter} has a speed**, {_figure(race, 0)}: {reasons}."
    sentence = _speed(race, columns)
    return f"{sentence} {_explanation(race, explained, settings)}".strip()


def _why_none(one: Subject, race: Race) -> str:
    """Why a column takes no part in the race."""
    run = one.runs[0]
    if one.is_group:
        return "has no run with a speed"
    if race.measure == "utilisation" and run["tokens_per_s_per_gpu"]:
        return "has no comparable MFU"
    if run["status"] == "completed" and run["tokens_per_s"] is not None and run["num_gpus"] is None:
        return "does not state its number of GPUs"
    if run["status"] == "completed":
        if run["origin"] == "published":
            return f"is published without {'an MFU' if race.standings and race.measure == 'utilisation' else 'a speed'}"
        return "logs no step time and no throughput"
    return in_sentence(ended(run))


def _figure(race: Race, place: int) -> str:
    value = race.standings[place].value
    return f"{number(value)} tokens/s/GPU" if race.measure == "throughput" else f"{percent(value)} of its peak"


def _speed(race: Race, columns: Sequence[Subject]) -> str:
    first, second = (standing.subject for standing in race.standings[:2])
    a, b = first.letter, second.letter
    of_many = (
        f"**{a} is the fastest of {number(len(race.standings))}**{_left_behind(race)}, " if len(columns) > 2 else ""
    )
    if race.measure == "utilisation":
        return f"{_utilisation(race)} {_unlike(race)}"
    if race.is_same:
        return (
            f"**{a} and {b} ran one configuration** and are {part_of(race.lead, 1)} apart: that is noise, not a lead."
        )
    if race.is_within_noise:
        lead = f"**{a} is {part_of(race.lead, 1)} ahead of {b}, within the noise** ({percent(race.noise)}"
        return f"{lead}{_chance(race)}){_conditions(first, second)}.{_over_repeats(race)}"
    by = faster_than(race.lead, b)
    sentence = f"{of_many}**{by}**" if of_many else f"**{a} is {by}**"
    return f"{sentence}{_conditions(first, second)}{_certainty(race)}.{_over_repeats(race)}"


def _over_repeats(race: Race) -> str:
    """Whose layout leads over all repeats, where that is not the faster of these two runs."""
    if not race.is_turned_by_repeats or race.medians is None:
        return ""
    second = race.standings[1].subject.letter
    runs = f"{race.repeats[1]} and {race.repeats[0]} runs" if max(race.repeats) > 1 else "one run each"
    speeds = f"{number(race.medians[1])} to {number(race.medians[0])} tokens/s/GPU"
    return f" **Over all repeats {second}'s layout leads:** {speeds} in the median ({runs})."


def _left_behind(race: Race) -> str:
    """Columns without a speed, in brackets."""
    reasons = [f"{one.letter} {_why_none(one, race)}" for one in race.without[:3]]
    return f" ({'; '.join(reasons)})" if reasons else ""


def _utilisation(race: Race) -> str:
    """Who reaches most of its peak, and by how many points each other stays behind."""
    first = race.standings[0]
    is_one_model = len({standing.subject.shared("model") for standing in race.standings}) == 1
    name = _letter if is_one_model else _model
    behind = [
        f"{name(standing.subject)} by {number(100 * (first.value - standing.value), 1)}"
        for standing in race.standings[1:]
    ]
    if len(behind) == 1:
        more = number(100 * race.lead, 1)
        return (
            f"**{name(first.subject)} reaches {_figure(race, 0)}, {more} points more than "
            f"{name(race.standings[1].subject)}**{_left_behind(race)}."
        )
    listed = ", ".join(behind[:5]) + (" and others" if len(behind) > 5 else "")
    most = f"**{name(first.subject)} reaches the most, {_figure(race, 0)}**{_left_behind(race)}"
    return f"{most}; points behind: {listed}."


def _letter(one: Subject) -> str:
    return one.letter


def _model(one: Subject) -> str:
    model = one.shared("model")
    return f"{model} ({one.letter})" if model else one.letter


def _certainty(race: Race) -> str:
    if race.noise is None:
        return "; how much repeats would differ is unknown"
    return f", more than the noise ({percent(race.noise)}{_chance(race)})"


def _chance(race: Race) -> str:
    if race.chance is None:
        return ""
    return f"; chance that {race.standings[0].subject.letter} is the faster: {chance(race.chance)}"


def _conditions(first: Subject, second: Subject) -> str:
    """Unlike conditions under which tokens/s/GPU are no fair race."""
    parts = []
    for name, words in (("num_gpus", "GPUs"), ("seq_len", "tokens a sequence"), ("gbs_tokens", "tokens a batch")):
        mine, other = first.shared(name), second.shared(name)
        if mine is not None and other is not None and mine != other:
            parts.append(f"{number(mine)} instead of {number(other)} {words}")
    return f" at {' and '.join(parts)}" if parts else ""


def _unlike(race: Race) -> str:
    """Why tokens/s are not compared, and whose figure is no MFU like the others."""
    compared = [standing.subject for standing in race.standings]
    everybody = [*compared, *race.without]
    models = len({one.shared("model") for one in compared}) > 1
    chips = len({one.shared("accelerator") for one in compared}) > 1
    unstated = [one.letter for one in everybody if all(run["accelerator"] is None for run in one.runs)]
    if models:
        reason = f"Different models{' on different accelerators' if chips else ''}: tokens/s do not compare."
    elif chips:
        reason = "Different accelerators: tokens/s/GPU do not compare."
    elif unstated:
        reason = f"The accelerator of {together(unstated)} is not stated: tokens/s/GPU do not compare."
    else:
        reason = "Not all of them have a throughput."
    doubts = [one.letter for one in compared if any(_is_doubtful(run) for run in one.runs)]
    if doubts:
        reason += f" The figure of {' and '.join(doubts)} is not comparable; the reason is in the table."
    return reason


def _is_doubtful(run: Row) -> bool:
    """Whether its publication says that its MFU may not be compared."""
    return run["comparability"] not in (None, "comparable")


def _explanation(race: Race, explained: Difference | None, settings: Sequence[Line]) -> str:
    if explained is None or race.is_same:
        return "" if race.measure == "utilisation" or race.is_same else _settings(settings)
    names = short_names([standing.subject for standing in race.standings[:2]])
    name = names[race.standings[0].subject.letter]
    return _short(explained, name) or _settings(settings)


def _short(explained: Difference, name: str) -> str:
    """The largest part of each side, for the headline."""
    if _is_off(explained):
        return _contradiction(explained, name)
    sentence = _saved_and_paid(explained, name, most=1)
    rest = abs(explained.unexplained) * 100
    if sentence and not explained.is_estimated and rest >= 100 * max(0.005, abs(explained.total) / 2):
        return f"{sentence}; {number(rest, 1)} are unexplained."
    return f"{sentence}." if sentence else ""


def terms_sentence(explained: Difference, name: str, *, most: int) -> str:
    """What the first run saves and what it pays, in points, at most so many parts of each.

    Empty where no part differs by half a point, and where the estimate misses what was measured: the headline states
    that.
    """
    if _is_off(explained):
        return ""
    sentence = _saved_and_paid(explained, name, most=most)
    return f"{sentence}.{_unexplained(explained)}" if sentence else _unexplained(explained).strip()


_FAR = 0.1  # points over 100 by which an estimate has to miss before its parts are not worth naming


def _is_off(explained: Difference) -> bool:
    """Whether the estimate misses the measured difference by more than twice that difference."""
    return not explained.is_estimated and abs(explained.unexplained) > max(_FAR, 2 * abs(explained.total))


def _contradiction(explained: Difference, name: str) -> str:
    expected = explained.total - explained.unexplained
    lead = f"{number(abs(expected) * 100, 1)} points {'ahead' if expected > 0 else 'behind'}"
    measured = number(explained.total * 100, 1)
    return f"The estimate puts {name} {lead}; {measured} were measured, so it does not explain these runs."


def _saved_and_paid(explained: Difference, name: str, *, most: int) -> str:
    saved, paid = (largest(explained.terms, sign=sign, most=most) for sign in (1, -1))
    parts = [f"saves {_listed(saved, 'of')}"] if saved else []
    parts += [f"loses {_listed(paid, 'to', bool(saved))}"] if paid else []
    begin = "By the estimate alone, " if explained.is_estimated and parts else ""
    return f"{begin}{name} {' and '.join(parts)}" if parts else ""


def _listed(terms: Sequence[Term], word: str, is_second: bool = False) -> str:
    unit = "" if is_second else " points"
    first = f"{_points(terms[0])}{unit} {word} {in_sentence(terms[0].label)}"
    return " and ".join([first, *(f"{_points(term)} {word} {in_sentence(term.label)}" for term in terms[1:])])


def _points(term: Term) -> str:
    return number(abs(term.gain) * 100, 1)


def _unexplained(explained: Difference) -> str:
    rest, total = explained.unexplained, explained.total
    if explained.is_estimated or abs(rest) < 0.005 or abs(rest) < abs(total) / 2:
        return ""
    if (total - rest) * total < 0 and abs(total - rest) >= 0.005:
        return f" The estimate expected it to be slower: {number(abs(rest) * 100, 1)} points are unexplained."
    if abs(rest) > abs(total):
        return f" {number(abs(rest) * 100, 1)} points are unexplained."
    return f" Most of it, {number(rest * 100, 1)} of {number(total * 100, 1)} points, is unexplained."


def _settings(lines: Sequence[Line]) -> str:
    """What they differ in, where no estimate explains it."""
    shown = [line for line in lines if line.name not in ("layout", "hosts")]
    if not shown:
        return "No setting that their logs state differs."
    if len(shown) == 1:
        values = " against ".join(text or "not stated" for text in shown[0].texts[:2])
        return f"They differ in one setting: {in_sentence(shown[0].label)}, {values}."
    named = ", ".join(in_sentence(line.label) for line in shown[:3])
    return f"They differ in {count(len(shown), 'setting')}, among them {named}."


def together(letters: Sequence[str]) -> str:
    """Letters of columns in a sentence."""
    return letters[0] if len(letters) == 1 else f"{', '.join(letters[:-1])} and {letters[-1]}"
