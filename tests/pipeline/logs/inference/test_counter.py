"""What numbers the steps of a log."""

from __future__ import annotations

from sweepscope.pipeline.logs.inference.counter import find_counter
from sweepscope.pipeline.logs.inference.series import all_series, line


def test_a_named_counter_within_epochs_counts_where_no_line_has_a_loss() -> None:
    texts = []
    for epoch in range(10):
        for batch in range(20, 640, 20):
            speed = f"Speed: {140 + batch / 99:.2f} samples/sec\taccuracy=0.{batch + 300}"
            texts.append(f"Epoch[{epoch}] Batch [{batch}]\t{speed}")
        texts.append(f"Epoch[{epoch}] Time cost={140 + epoch}.970")
    lines = [line(number, text, 0, None, None) for number, text in enumerate(texts, 1)]
    counter = find_counter(all_series(lines), lines)
    assert counter is not None
    assert counter.epoch is not None
    assert (counter.key[0], counter.epoch[0]) == ("batch", "epoch")
