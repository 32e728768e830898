"""Draw the pictures of the concept pages: `make pictures`, or `python docs/site/pictures.py`. It takes Node.

    docs/concepts/pictures/NAME.yaml  ──▶  web/drawing.mjs (the code of the web app)  ──▶  NAME.svg

A file is a workflow, which pages also quote and run, or boxes and arrows.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, Final

import yaml

from pointsman import Workflow
from pointsman.definition.graph.analysis import graph_view
from pointsman.dialects.detect import write_workflow

ROOT: Final = Path(__file__).parents[2]
PICTURES: Final = ROOT / "docs" / "concepts" / "pictures"


def drawn() -> dict[Path, str]:
    """Return the text of each picture by its file."""
    wanted = {path.with_suffix(".svg"): wanted_picture(path) for path in sorted(PICTURES.glob("*.yaml"))}
    done = subprocess.run(
        ["node", "drawing.mjs"],
        cwd=ROOT / "web",
        input=json.dumps({path.name: picture for path, picture in wanted.items()}),
        stdout=subprocess.PIPE,
        encoding="utf-8",
        check=True,
    )
    texts = json.loads(done.stdout)
    return {path: texts[path.name] for path in wanted}


def wanted_picture(path: Path) -> dict[str, Any]:
    """Return what `web/drawing.mjs` draws for a file."""
    data = yaml.safe_load(path.read_text("utf-8"))
    if "nodes" not in data:
        boxes = [{"position": None, **box} for box in data["boxes"]]
        arrows = [{"id": f"{number}", "isError": False, **arrow} for number, arrow in enumerate(data["arrows"])]
        return {"title": data["title"], "picture": {"boxes": boxes, "arrows": arrows}}
    workflow = Workflow.load(path).definition
    document = write_workflow(workflow, dialect="native").document
    known = [node.id for node in workflow.nodes]
    return {"title": data["name"], "definition": {**document, "graph": {**graph_view(workflow), "known": known}}}


if __name__ == "__main__":
    for picture, text in drawn().items():
        picture.write_text(text, "utf-8")
