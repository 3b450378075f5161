"""Puts compiled kernels into the wheel, so that a first command does not wait for the compiler."""

import os
import subprocess
import sys
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Kernels(BuildHookInterface):
    """Runs `rue.cli.prebuild` when a wheel is built; for an editable install `make run` and `make test` do it.

    A wheel with machine code is tagged for the platform. Where the kernels cannot be compiled, the wheel has none.
    """

    def initialize(self, version: str, build_data: dict) -> None:
        if version == "editable":
            return
        source = Path(self.root, "src")
        env = {**os.environ, "PYTHONPATH": str(source)}
        done = subprocess.run([sys.executable, "-m", "rue.cli.prebuild"], env=env, capture_output=True, text=True)
        if done.returncode != 0 or not (source / "rue/prebuilt").is_dir():
            self.app.display_warning(f"without compiled kernels: {(done.stderr or done.stdout).strip()[-300:]}")
            return
        build_data["artifacts"].append("src/rue/prebuilt")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{self._platform()}"

    @staticmethod
    def _platform() -> str:
        import sysconfig

        return sysconfig.get_platform().replace("-", "_").replace(".", "_")
