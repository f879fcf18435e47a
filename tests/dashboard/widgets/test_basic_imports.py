"""What must be imported before any page draws."""

from __future__ import annotations

import subprocess
import sys


def test_pandas_is_whole_before_a_chart_can_be_made() -> None:
    """Plotly looks at `sys.modules["pandas"]`, also while another thread has imported half of it."""
    code = "import sys, sweepscope.dashboard.widgets.basic; print(hasattr(sys.modules.get('pandas'), 'Series'))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "True\n"
