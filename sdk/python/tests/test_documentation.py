from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

from network import URL, ServiceTest

HERE = Path(__file__).resolve().parent.parent


class FirstLines(ServiceTest):
    def test_the_first_lines_of_the_readme_work(self) -> None:
        """They are a program, as they stand, and ten lines at most."""
        block = re.search(r"```python\n(.*?)```", (HERE / "README.md").read_text(), re.DOTALL)
        assert block
        self.assertLessEqual(len([line for line in block[1].splitlines() if line.strip()]), 10)
        session = self.new_session(max_actions=2, max_value="0.5")
        made = self.organization.rotate_agent_secret(self.agent.id)
        settings = {
            "REMIT_URL": URL, "REMIT_AGENT": self.agent.id, "REMIT_SECRET": made.credential.reveal(),
            "REMIT_SESSION": session.id, "PYTHONPATH": str(HERE / "src"),
        }
        for want in ("1 actions and 0.13 USD left\n", "out of max_value_usd: nothing was charged\n"):
            run = subprocess.run(
                [sys.executable, "-c", block[1]], env={**os.environ, **settings}, capture_output=True, text=True, timeout=30
            )
            self.assertEqual((run.stdout + run.stderr, run.returncode), (want, 0))


class Source(unittest.TestCase):
    def test_every_file_is_python_3_9(self) -> None:
        files = [f for folder in ("src", "tests", "examples") for f in (HERE / folder).rglob("*.py")]
        self.assertGreater(len(files), 20)
        for file in files:
            ast.parse(file.read_text(), str(file), feature_version=(3, 9))

    def test_nothing_but_the_standard_library_is_imported(self) -> None:
        if sys.version_info < (3, 10):
            self.assertTrue(True)  # it has no list of its own; the other versions look
            return
        for file in (HERE / "src").rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom) and node.level == 0:
                    names = [node.module or ""]
                for name in names:
                    self.assertIn(name.partition(".")[0], sys.stdlib_module_names, file)

    def test_no_float_is_near_money(self) -> None:
        for name in ("money.py", "usage.py"):
            for node in ast.walk(ast.parse((HERE / "src/remit" / name).read_text())):
                is_float = isinstance(node, ast.Name) and node.id == "float" or isinstance(node, ast.Constant) and type(node.value) is float
                self.assertFalse(is_float or isinstance(node, ast.Div), f"{name}:{getattr(node, 'lineno', '')}")
