"""Forms in which a tracker keeps a run as a folder of files, each with a metric or a part of what it states."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sweepscope.pipeline.logs.trackers import mlflow_folder, series_folder
from sweepscope.pipeline.logs.trackers.tracked_run import TrackedRun


@dataclass(frozen=True)
class FolderForm:
    """One form.

    Attributes:
        run_folder: what names the run that a file tells of, by its path; "" for any other file.
        part_of: what a file of a run holds.
        check: raises ValueError for the text of a part that is damaged.
        names_run: whether what a part holds is of one run only, so that the same content elsewhere is a copy.
        read: the run, of the texts of its files by `part_of` and its folder; None for one that does not count.
    """

    run_folder: Callable[[str], str]
    part_of: Callable[[str], str]
    check: Callable[[str, str], None]
    names_run: Callable[[str], bool]
    read: Callable[[Mapping[str, str], str], TrackedRun | None]


FORMS = tuple(
    FolderForm(form.run_folder, form.part_of, form.check, form.names_run, form.read)
    for form in (mlflow_folder, series_folder)
)


def form_of(path: str) -> FolderForm | None:
    """The form of the run that a file tells of; None for any other file."""
    return next((form for form in FORMS if form.run_folder(path)), None)


def run_folder(path: str) -> str:
    """What names the run that a file tells of, as a path; "" for any other file."""
    form = form_of(path)
    return form.run_folder(path) if form else ""


@dataclass
class FolderParts:
    """Files of one run that were read so far: the source and the text of each, by what it holds."""

    form: FolderForm
    sources: dict[str, int]
    texts: dict[str, str]

    @property
    def source(self) -> int:
        """The file that the run's rows name: one that is of this run only, where there is one."""
        own = [source for part, source in self.sources.items() if self.form.names_run(part)]
        return min(own or self.sources.values())
