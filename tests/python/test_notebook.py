"""Notebooks of examples/python, from the first cell to the last: by nbclient, or where that is missing cell by cell here."""
import glob
import json
import os
import sys
import tempfile
import unittest

from support import import_or_skip

for needed in ("h5py", "h5netcdf", "xarray"):
    import_or_skip(needed)
EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "python")


def run_cells(cells):
    names = {"__name__": "__main__"}
    for cell in cells:
        exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
    return names


class Notebooks(unittest.TestCase):
    def setUp(self):
        here = os.getcwd()
        self.addCleanup(os.chdir, here)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(setattr, tempfile, "tempdir", tempfile.tempdir)
        tempfile.tempdir = os.environ["TMPDIR"] = folder.name  # what notebooks make goes with the test
        os.chdir(folder.name)

    def test_they_run(self):
        paths = sorted(glob.glob(os.path.join(EXAMPLES, "*.ipynb")))
        self.assertTrue(paths)
        for path in paths:
            with self.subTest(notebook=os.path.basename(path)):
                with open(path, encoding="utf-8") as file:
                    notebook = json.load(file)
                cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
                self.assertTrue(cells)
                # What it prints depends on the machine: it is kept in nobody's tree.
                self.assertTrue(all(not cell["outputs"] and cell["execution_count"] is None for cell in cells))
                try:
                    import ipykernel  # noqa: F401
                    import nbclient
                    import nbformat
                except ImportError:
                    names = run_cells(cells)
                    self.assertIn("<iframe", names["page"]._repr_html_())
                    continue
                done = nbclient.NotebookClient(nbformat.reads(json.dumps(notebook), 4), timeout=120, kernel_name="python3").execute()
                shown = [output for cell in done.cells if cell.cell_type == "code" for output in cell.outputs]
                self.assertFalse([output for output in shown if output.output_type == "error"])
                self.assertTrue(any("text/html" in output.get("data", {}) for output in shown))


if __name__ == "__main__":
    sys.exit(unittest.main())
