"""VneuroTK's own package, in a process of its own, beside what is installed here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

_ROOT = Path(__file__).resolve().parents[2]
_PROGRAM = """
import json, sys
import numpy as np
import vneurotk as vtk
file, out, with_images = sys.argv[1], sys.argv[2], sys.argv[3] == "1"
data = vtk.read(file)
np.save(out, data.neuro.data)
meta = data.trial_meta
told = {
    "version": vtk.__version__,
    "configured": bool(data.configured),
    "mode": data.data_mode,
    "ids": [None if value != value else value for value in map(lambda v: getattr(v, "item", lambda: v)(), data.trial_stim_ids)]
    if data.n_trials else [],
    "onsets": np.asarray(data.vision_onsets).tolist(),
    "starts": np.asarray(data.trial_starts).tolist(),
    "ends": np.asarray(data.trial_ends).tolist(),
    "stim_ids": list(data.vision_info["stim_ids"]),
    "trial_info": {name: np.asarray(value).tolist() for name, value in data.trial_info.items()},
    "info": {name: value for name, value in dict(data.neuro_info).items()},
    "meta": None if meta is None else {name: [None if v is None or v != v else v for v in meta[name].tolist()] for name in meta.columns},
    "heavy": sorted({"torch", "transformers"} & set(sys.modules)),
}
if with_images:
    from vneurotk.io.loader import LazyH5Dict
    images = LazyH5Dict(file, "stimuli_db")
    told["images"] = {str(key): np.asarray(images[key]).tolist() for key in images}
print(json.dumps(told, default=str))
"""


@dataclass(frozen=True)
class Reader:
    """A folder that holds the package, and one for what it needs."""

    packages: Path
    beside: Path | None = None

    def read(self, file: Path, *, with_images: bool = False) -> tuple[dict[str, Any], np.ndarray]:
        """What it finds in a file, and the samples."""
        out = file.with_suffix(".npy")
        ran = subprocess.run(
            [sys.executable, "-c", _PROGRAM, str(file), str(out), "1" if with_images else "0"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(str(one) for one in (self.packages, self.beside) if one)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr[-3000:]
        return json.loads(ran.stdout.splitlines()[-1]), np.load(out)


def install(folder: Path) -> str | None:
    """Install what ``tests/vneurotk-requirements.txt`` pins into a folder, without dependencies; what went wrong, or None."""
    uv = Path(sys.executable).with_name("uv")
    command = [str(uv), "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--python", sys.executable]
    command += ["--target", str(folder), "-r", str(_ROOT / "tests" / "vneurotk-requirements.txt")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    return ran.stderr[-500:] if ran.returncode else None
