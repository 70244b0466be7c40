"""The example notebooks are run from top to bottom, in a kernel of their own."""

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

FOLDER = Path(__file__).parents[2] / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def shown(cell):
    """What a cell shows, as the plain text and the HTML of its last value."""
    data = [output["data"] for output in cell["outputs"] if "data" in output]
    return [(each.get("text/plain", ""), each.get("text/html", "")) for each in data]


# Whatever Jupyter's own parts complain about is not ours to mend.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_runs_from_top_to_bottom(path, monkeypatch, tmp_path):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell["outputs"] for cell in code), "outputs are not kept: they only grow old"
    client = nbclient.NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(FOLDER)}}
    )
    client.execute()
    values = [value for cell in code for value in shown(cell)]
    assert any("<table>" in html and "pods on 8 nodes" in html for _, html in values)
    assert any("stays pending" in html for _, html in values)
    assert any("'Insufficient cpu'" in text for text, _ in values)


def test_there_are_some():
    assert NOTEBOOKS
